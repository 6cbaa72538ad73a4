//! The limit on the memory that a file may request.
//!
//! A few bytes can declare gigabytes: a random weight, a zip bomb, a table of a hundred million
//! equal rows. Reading a file may take memory in proportion to its size, plus one limit for the
//! whole process. Readers check declared sizes against the limit before they allocate, so a hostile
//! file causes an error instead of killing the process.
//!
//! ```
//! use bornite::memory;
//!
//! assert_eq!(memory::limit(), memory::DEFAULT_LIMIT);
//! // For files that you trust.
//! memory::set_limit(64 << 30);
//! # memory::set_limit(memory::DEFAULT_LIMIT);
//! ```

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The default limit: 2 GiB.
pub const DEFAULT_LIMIT: u64 = 2 << 30;

/// The bytes of memory that each byte of a file may take in addition to the limit. No honest file
/// needs more.
const PER_BYTE: u64 = 128;

static LIMIT: AtomicU64 = AtomicU64::new(DEFAULT_LIMIT);

/// The maximum number of bytes that a short file may request.
pub fn limit() -> u64 {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets the limit for the whole process. Raise it for files that you trust.
pub fn set_limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// The maximum number of bytes of memory that a file of this length may request.
pub(crate) fn allowance(file_bytes: u64) -> u64 {
    limit().saturating_add(file_bytes.saturating_mul(PER_BYTE))
}

/// Checks that a file of this length may request this many bytes.
pub(crate) fn check(what: &'static str, needed: u128, file_bytes: u64) -> Result<(), OverLimit> {
    let allowed = allowance(file_bytes);
    if needed <= u128::from(allowed) {
        return Ok(());
    }
    Err(OverLimit { what, needed: Some(u64::try_from(needed).unwrap_or(u64::MAX)), allowed })
}

/// The memory that is currently free, if the system reports it.
#[cfg(target_os = "linux")]
pub(crate) fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn available() -> Option<u64> {
    None
}

/// Checks that this many rows fit into free memory, before they are allocated: a failed allocation
/// would abort the process.
///
/// # Errors
/// The rows do not fit.
pub fn check_rows(rows: usize, columns: usize) -> Result<(), TooManyRows> {
    // A number takes 8 bytes, and exists twice while it is handed over.
    let needed = rows as u128 * columns.max(1) as u128 * 16;
    let free = available().unwrap_or(u64::MAX).min(isize::MAX.cast_unsigned() as u64);
    if needed <= u128::from(free) { Ok(()) } else { Err(TooManyRows { rows, columns, needed }) }
}

/// More rows than fit into memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rows} rows of {columns} columns need {} of memory, more than is available; ask for fewer at a time", Bytes(*needed))]
pub struct TooManyRows {
    /// The number of rows requested.
    pub rows: usize,
    /// The number of columns per row.
    pub columns: usize,
    /// The number of bytes that they need.
    pub needed: u128,
}

/// Something in a file needs more memory than [`limit`] allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} needs {} of memory, but the limit is {}; raise the memory limit if you trust the file",
    needed.map_or_else(|| "too much".to_owned(), |n| Bytes(n.into()).to_string()),
    Bytes((*allowed).into())
)]
pub struct OverLimit {
    /// The item that needs it.
    pub what: &'static str,
    /// The number of bytes that it needs, if known.
    pub needed: Option<u64>,
    /// The number of bytes allowed.
    pub allowed: u64,
}

/// A number of bytes, displayed with a unit.
pub(crate) struct Bytes(pub(crate) u128);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.iter().find(|(size, _)| self.0 >= *size) {
            Some((size, unit)) => write!(f, "{:.1} {unit}", self.0 as f64 / *size as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_memory_are_rejected() {
        assert_eq!(check_rows(1000, 10), Ok(()));
        for rows in [usize::MAX, 1 << 60, 1 << 50] {
            assert!(check_rows(rows, 3).is_err(), "{rows}");
        }
    }

    #[test]
    fn declared_sizes_are_checked_against_the_limit_and_the_file() {
        assert!(check("a table", 1 << 20, 0).is_ok());
        assert!(check("a table", 3 << 30, 0).is_err());
        assert!(check("a table", 3 << 30, 1 << 24).is_ok());
        let error = check("a table", 3 << 30, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a table needs 3.0 GiB of memory, but the limit is 2.0 GiB; raise the memory limit if you trust the file"
        );
    }
}

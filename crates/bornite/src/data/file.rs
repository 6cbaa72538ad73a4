//! Whole files: read and unpacked, written entirely or not at all.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};

use super::{DataError, FormatProblem};

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The content of a file, unpacked where it is gzip.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    let io = |source| io_error(path, "read", source);
    let bytes = fs::read(path).map_err(io)?;
    if bytes.starts_with(&GZIP) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(&bytes[..])
            .read_to_end(&mut unpacked)
            .map_err(|source| io_error(path, "unpack", source))?;
        return Ok(unpacked);
    }
    Ok(bytes)
}

/// The content of a file, unpacked where it is gzip.
///
/// # Errors
/// The file cannot be read.
pub fn read_file(path: impl AsRef<Path>) -> Result<Vec<u8>, DataError> {
    read(path.as_ref())
}

/// Writes a file, whole or not at all; packed by gzip where the name ends in `.gz`.
///
/// # Errors
/// The file cannot be written. What was there before then stays.
pub fn write_file(path: impl AsRef<Path>, content: &[u8]) -> Result<(), DataError> {
    write(path.as_ref(), |out| out.write_all(content))
}

/// Writes a file through a temporary one beside it; packed where the name ends in `.gz`.
pub(super) fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), DataError> {
    let io = |source| io_error(path, "write", source);
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new().prefix(".bornite-").tempfile_in(folder).map_err(io)?;
    {
        let mut buffer = io::BufWriter::new(file.as_file_mut());
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz")) {
            let mut packer = GzEncoder::new(&mut buffer, Compression::default());
            content(&mut packer).map_err(io)?;
            packer.finish().map_err(io)?;
        } else {
            content(&mut buffer).map_err(io)?;
        }
        buffer.flush().map_err(io)?;
    }
    file.as_file().sync_all().map_err(io)?;
    make_readable(file.as_file()).map_err(io)?;
    file.persist(path).map_err(|e| io_error(path, "write", e.error))?;
    Ok(())
}

/// Temporary files are readable by their owner alone; tables are as readable as any new file.
#[cfg(unix)]
fn make_readable(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_: &fs::File) -> io::Result<()> {
    Ok(())
}

/// A file's name for a message.
pub(super) fn name(path: &Path) -> String {
    path.display().to_string()
}

pub(super) fn io_error(path: &Path, action: &'static str, source: io::Error) -> DataError {
    DataError::Io { file: name(path), action, source }
}

/// The data of a binary file must be exactly as long as announced.
pub(super) fn check_length(found: usize, expected: Option<u128>) -> Result<(), FormatProblem> {
    let expected = expected.unwrap_or(u128::MAX);
    match (found as u128).cmp(&expected) {
        std::cmp::Ordering::Less => Err(FormatProblem::CutOff { expected, found }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => {
            Err(FormatProblem::TooLong { extra: (found as u128 - expected) as usize })
        }
    }
}

//! Serialization of numbers and texts, for data that no model predicts.

use crate::codec::CodecError;

pub(super) fn damaged() -> CodecError {
    CodecError::Damaged { what: "the data beside its rows does not match them" }
}

/// Appends an integer: seven bits per byte, the lowest first, with the highest bit set in all bytes except the last.
pub(super) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a text: its length in bytes, then the bytes.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// Appends bytes: their number, then the bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Appends rows in increasing order, each as the distance from the row after the previous one, with its data.
pub(super) fn put_rows<T>(
    out: &mut Vec<u8>,
    rows: &[(usize, T)],
    mut each: impl FnMut(&mut Vec<u8>, &T),
) {
    put(out, rows.len() as u64);
    let mut next = 0;
    for (row, item) in rows {
        put(out, (row - next) as u64);
        each(out, item);
        next = row + 1;
    }
}

/// Reads what was appended.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn number(&mut self) -> Result<u64, CodecError> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or_else(damaged)?;
            self.0 = rest;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(damaged())
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], CodecError> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, CodecError> {
        std::str::from_utf8(self.sized()?).map_err(|_| damaged())
    }

    /// Reads bytes, preceded by their number.
    pub(super) fn sized(&mut self) -> Result<&'a [u8], CodecError> {
        let length = usize::try_from(self.number()?).map_err(|_| damaged())?;
        self.bytes(length)
    }

    /// Reads rows below `num_rows`, each with its data.
    pub(super) fn rows<T>(
        &mut self,
        num_rows: usize,
        mut each: impl FnMut(&mut Self) -> Result<T, CodecError>,
    ) -> Result<Vec<(usize, T)>, CodecError> {
        let count = self.number()?;
        let mut rows = Vec::new();
        let mut next = 0_u64;
        for _ in 0..count {
            let row = next.checked_add(self.number()?).ok_or_else(damaged)?;
            if row >= num_rows as u64 {
                return Err(damaged());
            }
            rows.push((row as usize, each(self)?));
            next = row + 1;
        }
        Ok(rows)
    }
}

//! A read buffer for the head of a file.

use std::io::Read;

use super::DataError;

/// A file that is read sequentially, with the bytes that are read but not used yet.
#[derive(Debug)]
pub(super) struct Buffered<R> {
    input: R,
    /// The name of the file in messages.
    pub(super) name: String,
    /// The bytes that are read but not taken yet.
    pub(super) bytes: Vec<u8>,
    /// Whether the end of the file is reached.
    pub(super) is_end: bool,
}

impl<R: Read> Buffered<R> {
    pub(super) fn new(input: R, name: &str) -> Self {
        Self { input, name: name.to_owned(), bytes: Vec::new(), is_end: false }
    }

    /// Reads until this many bytes are available, or to the end.
    pub(super) fn fill(&mut self, length: usize) -> Result<(), DataError> {
        let missing = length.saturating_sub(self.bytes.len());
        if missing > 0 && !self.is_end {
            let read = self.input.by_ref().take(missing as u64).read_to_end(&mut self.bytes);
            let file = &self.name;
            let io = |source| DataError::Io { file: file.clone(), action: "read", source };
            self.is_end = read.map_err(io)? < missing;
        }
        Ok(())
    }

    /// Takes the first bytes, or as many as are available.
    pub(super) fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.bytes.split_off(length.min(self.bytes.len()));
        std::mem::replace(&mut self.bytes, rest)
    }
}

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use super::FileError;
use super::limits::MAX_STREAM;
use crate::disk;

/// Reads a file. Only a regular file may have any length.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let failed = |source| FileError::Io {
        action: "read the file",
        source,
        remedy: "does it exist, can you read it, and does it fit into memory?",
    };
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?;
    let limit = if length.is_file() { u64::MAX } else { MAX_STREAM };
    let mut bytes = Vec::new();
    if length.is_file() {
        let reserved = usize::try_from(length.len()).map(|n| bytes.try_reserve_exact(n));
        if !matches!(reserved, Ok(Ok(()))) {
            return Err(failed(io::ErrorKind::OutOfMemory.into()));
        }
    }
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 == limit {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    Ok(bytes)
}

/// Writes a file, completely or not at all.
pub(super) fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> Result<(), FileError>,
) -> Result<(), FileError> {
    disk::write(path, content, |source| FileError::Io {
        action: "write the file",
        source,
        remedy: "does the folder exist, can you write to it, and is there enough disk space?",
    })
}

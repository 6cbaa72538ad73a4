//! Files: reading and decompressing them, and writing them completely or not at all.

use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};

use super::{DataError, FormatProblem};
use crate::disk;
use crate::memory::{self, OverLimit};

pub(super) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The content of a file, decompressed if it is gzip. What has no length, and what a short file becomes, is limited by
/// [`memory`].
pub(super) fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    let Opened { reader, is_gzip, length } = open(path)?;
    let limit = match length {
        Some(_) if !is_gzip => u64::MAX,
        length => memory::allowance(length.unwrap_or(0)),
    };
    let mut content = Vec::new();
    let read = reader.take(limit.saturating_add(1)).read_to_end(&mut content);
    read.map_err(|source| io_error(path, if is_gzip { "unpack" } else { "read" }, source))?;
    if content.len() as u64 > limit {
        let source = OverLimit { what: "its content", needed: None, allowed: limit };
        return Err(DataError::Memory { file: name(path), source });
    }
    Ok(content)
}

/// Opens a file to be read from its beginning, decompressed if it is gzip.
///
/// # Errors
/// The file cannot be read.
pub fn open_file(path: impl AsRef<Path>) -> Result<Box<dyn Read>, DataError> {
    Ok(open(path.as_ref())?.reader)
}

/// A file that is open.
struct Opened {
    reader: Box<dyn Read>,
    is_gzip: bool,
    /// The bytes of a regular file.
    length: Option<u64>,
}

fn open(path: &Path) -> Result<Opened, DataError> {
    let io = |source| io_error(path, "read", source);
    let file = fs::File::open(path).map_err(io)?;
    let found = file.metadata().map_err(io)?;
    let length = found.is_file().then_some(found.len());
    let mut file = io::BufReader::with_capacity(1 << 16, file);
    let is_gzip = file.fill_buf().map_err(io)?.starts_with(&GZIP);
    let reader: Box<dyn Read> =
        if is_gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    Ok(Opened { reader, is_gzip, length })
}

/// Writes a file, completely or not at all: what `content` writes goes to a temporary file beside it, which takes its name at the
/// end. Compressed with gzip if the name ends in `.gz`. A file that is replaced keeps its permissions, and a device or a
/// pipe is written to directly.
///
/// ```
/// use bornite::data::{DataError, write_file};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("half.csv");
/// let written = write_file(&path, |out| {
///     out.write_all(b"a,b\n1,").map_err(|_| DataError::NoColumns)?;
///     Err::<(), _>(DataError::NoColumns)
/// });
/// assert!(written.is_err() && !path.exists());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Those of `content`, and where the file cannot be written. An existing file is then left unchanged.
pub fn write_file<T, E: From<DataError>>(
    path: impl AsRef<Path>,
    content: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let path = path.as_ref();
    let io = |source| io_error(path, "write", source);
    let is_gzip = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    disk::write(
        path,
        |out| {
            if !is_gzip {
                return content(out);
            }
            let mut packer = GzEncoder::new(out, Compression::default());
            let result = content(&mut packer)?;
            packer.finish().map_err(io)?;
            Ok(result)
        },
        |source| io(source).into(),
    )
}

/// [`write_file`] of what fails only where writing does.
pub(super) fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), DataError> {
    write_file(path, |out| content(out).map_err(|source| io_error(path, "write", source)))
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

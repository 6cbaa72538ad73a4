//! Files: reading and decompressing them, and writing them completely or not at all.

use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};

use super::{DataError, FormatProblem};
use crate::disk;
use crate::memory::{self, OverLimit};

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The content of a file.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    /// The number of bytes that limit the memory of the result: the size of the file before decompression, or 0 for a
    /// pipe.
    pub(super) file_bytes: u64,
}

/// Reads a file, decompressed if it is gzip. Pipes and compressed files are limited by [`memory`].
pub(super) fn read(path: &Path) -> Result<Content, DataError> {
    let file = FileReader::open(path).map_err(|source| io_error(path, "read", source))?;
    let action = if file.is_gzip { "unpack" } else { "read" };
    file.content(&name(path), action)
}

/// Reads all of an open file of this size, or of a pipe.
fn read_all(
    reader: impl Read,
    length: Option<u64>,
    is_gzip: bool,
    name: &str,
    action: &'static str,
) -> Result<Content, DataError> {
    let file_bytes = length.unwrap_or(0);
    let is_whole = length.is_some() && !is_gzip;
    let allowed = if is_whole { u64::MAX } else { memory::allowance(file_bytes) };
    let mut bytes = Vec::new();
    let read = reader.take(allowed.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|source| io_error(Path::new(name), action, source))?;
    if bytes.len() as u64 > allowed {
        let source = OverLimit { what: "its content", needed: None, allowed };
        return Err(DataError::Memory { file: name.to_owned(), source });
    }
    // Files in /proc are longer than their reported size.
    let file_bytes = if is_gzip { file_bytes } else { bytes.len() as u64 };
    Ok(Content { bytes, file_bytes: if length.is_some() { file_bytes } else { 0 } })
}

/// Opens a file for sequential reading, decompressed if it is gzip. `-` is standard input.
///
/// # Errors
/// The file cannot be read.
pub fn open_file(path: impl AsRef<Path>) -> Result<FileReader, DataError> {
    let path = path.as_ref();
    if path == Path::new("-") {
        let io = |source| io_error(Path::new("standard input"), "read", source);
        return FileReader::standard_input().map_err(io);
    }
    FileReader::open(path).map_err(|source| io_error(path, "read", source))
}

/// A file that is read from start to end, decompressed if it is gzip.
pub struct FileReader {
    reader: Box<dyn Read + Send>,
    is_gzip: bool,
    share: ReadShare,
}

/// How much of a file has been read. It can be kept while the file is read elsewhere.
#[derive(Clone, Debug)]
pub struct ReadShare {
    /// The number of bytes read, before decompression.
    read: Arc<AtomicU64>,
    /// The size of a regular file.
    length: Option<u64>,
}

impl FileReader {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        let found = file.metadata()?;
        Self::of(file, found.is_file().then_some(found.len()))
    }

    pub(super) fn standard_input() -> io::Result<Self> {
        Self::of(io::stdin(), None)
    }

    fn of(file: impl Read + Send + 'static, length: Option<u64>) -> io::Result<Self> {
        let share = ReadShare { read: Arc::new(AtomicU64::new(0)), length };
        let (file, is_gzip) = buffered(Counted { input: file, count: share.read.clone() })?;
        let reader: Box<dyn Read + Send> =
            if is_gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
        Ok(Self { reader, is_gzip, share })
    }

    /// How much of the file has been read, now and later.
    pub fn share(&self) -> ReadShare {
        self.share.clone()
    }

    #[cfg(feature = "parquet")]
    pub(super) fn is_gzip(&self) -> bool {
        self.is_gzip
    }

    /// The size of a regular file.
    #[cfg(feature = "parquet")]
    pub(super) fn length(&self) -> Option<u64> {
        self.share.length
    }

    /// Reads the rest. Pipes and decompressed data are limited by [`memory`].
    pub(super) fn content(self, name: &str, action: &'static str) -> Result<Content, DataError> {
        read_all(self.reader, self.share.length, self.is_gzip, name, action)
    }
}

impl Read for FileReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.reader.read(out)
    }
}

impl std::fmt::Debug for FileReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileReader").field("share", &self.share).finish_non_exhaustive()
    }
}

impl ReadShare {
    /// The fraction of the file that has been read so far; `None` for a pipe.
    pub fn get(&self) -> Option<f64> {
        let read = self.read.load(Ordering::Relaxed) as f64;
        self.length.map(|length| (read / length.max(1) as f64).min(1.0))
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    input: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A buffered file, and whether it is gzip-compressed.
fn buffered<R: Read>(file: R) -> io::Result<(io::BufReader<R>, bool)> {
    let mut file = io::BufReader::with_capacity(1 << 16, file);
    let is_gzip = file.fill_buf()?.starts_with(&GZIP);
    Ok((file, is_gzip))
}

/// Reads all of a pipe, decompressed if it is gzip and limited by [`memory`].
pub(super) fn read_pipe(pipe: impl Read, name: &str) -> Result<Content, DataError> {
    let io = |source| io_error(Path::new(name), "read", source);
    match buffered(pipe).map_err(io)? {
        (pipe, true) => read_all(MultiGzDecoder::new(pipe), None, true, name, "read"),
        (pipe, false) => read_all(pipe, None, false, name, "read"),
    }
}

/// Writes a file, completely or not at all: `content` writes to a temporary file next to it, which is renamed at the
/// end. The file is gzip-compressed if its name ends in `.gz`. A replaced file keeps its permissions. Devices and pipes
/// are written directly.
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
/// `content` fails, or the file cannot be written. An existing file is then unchanged.
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

/// [`write_file`] for content that fails only if writing does.
pub(super) fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), DataError> {
    write_file(path, |out| content(out).map_err(|source| io_error(path, "write", source)))
}

/// The name of a file in messages.
pub(crate) fn name(path: &Path) -> String {
    path.display().to_string()
}

pub(super) fn io_error(path: &Path, action: &'static str, source: io::Error) -> DataError {
    DataError::Io { file: name(path), action, source }
}

/// Checks that the data of a binary file has exactly the announced size.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The share counts the bytes of the file, also if it is decompressed on the way.
    #[test]
    fn readers_know_how_much_they_have_read() {
        // Bytes that gzip cannot compress.
        let noise = |n: u32| (n.wrapping_mul(2_654_435_761) >> 13).wrapping_mul(n | 1) as u8;
        let content: Vec<u8> = (0..300_000).map(noise).collect();
        let folder = tempfile::tempdir().unwrap();
        for name in ["plain", "packed.gz"] {
            let path = folder.path().join(name);
            write(&path, |out| out.write_all(&content)).unwrap();
            let mut file = open_file(&path).unwrap();
            let share = file.share();
            let mut read = vec![0; 100_000];
            file.read_exact(&mut read).unwrap();
            let third = share.get().unwrap();
            assert!(third > 0.2 && third < 0.7, "{name}: {third}");
            file.read_to_end(&mut read).unwrap();
            assert_eq!((read == content, share.get()), (true, Some(1.0)), "{name}");
        }
        assert_eq!(FileReader::of(&b"pipe"[..], None).unwrap().share().get(), None);
    }
}

//! Whole files: read and unpacked, written entirely or not at all.

use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};

use super::{DataError, FormatProblem};

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The content of a file, unpacked where it is gzip.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    let (mut file, action) = open(path)?;
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(|source| io_error(path, action, source))?;
    Ok(content)
}

/// Opens a file to be read from its beginning, unpacked where it is gzip.
///
/// # Errors
/// The file cannot be read.
pub fn open_file(path: impl AsRef<Path>) -> Result<Box<dyn Read>, DataError> {
    Ok(open(path.as_ref())?.0)
}

/// A file, and what reading it is.
fn open(path: &Path) -> Result<(Box<dyn Read>, &'static str), DataError> {
    let io = |source| io_error(path, "read", source);
    let mut file = io::BufReader::with_capacity(1 << 16, fs::File::open(path).map_err(io)?);
    let is_packed = file.fill_buf().map_err(io)?.starts_with(&GZIP);
    Ok(if is_packed {
        (Box::new(MultiGzDecoder::new(file)), "unpack")
    } else {
        (Box::new(file), "read")
    })
}

/// Writes a file, whole or not at all: what `content` writes goes to a temporary file beside it, which takes its name at the
/// end. Packed by gzip where the name ends in `.gz`.
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
/// Those of `content`, and where the file cannot be written. What was there before then stays.
pub fn write_file<T, E: From<DataError>>(
    path: impl AsRef<Path>,
    content: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let path = path.as_ref();
    let io = |source| io_error(path, "write", source);
    let is_packed = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    let target = match fs::metadata(path) {
        Ok(old) if old.is_dir() => return Err(io(io::ErrorKind::IsADirectory.into()).into()),
        // A device or a pipe is written to as it is: a file must not take its place.
        Ok(old) if !old.is_file() => {
            let device = fs::File::options().write(true).open(path).map_err(io)?;
            return fill(path, &device, is_packed, content);
        }
        // Of a link, what it leads to is replaced.
        Ok(_) => fs::canonicalize(path).map_err(io)?,
        Err(_) => path.to_owned(),
    };
    let folder = match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new().prefix(".bornite-").tempfile_in(folder).map_err(io)?;
    let result = fill(path, file.as_file(), is_packed, content)?;
    file.as_file().sync_all().map_err(io)?;
    make_readable(file.as_file()).map_err(io)?;
    file.persist(&target).map_err(|e| io_error(path, "write", e.error))?;
    Ok(result)
}

/// [`write_file`] of what fails only where writing does.
pub(super) fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), DataError> {
    write_file(path, |out| content(out).map_err(|source| io_error(path, "write", source)))
}

fn fill<T, E: From<DataError>>(
    path: &Path,
    file: &fs::File,
    is_packed: bool,
    content: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let io = |source| io_error(path, "write", source);
    let mut buffer = io::BufWriter::new(file);
    let result = if is_packed {
        let mut packer = GzEncoder::new(&mut buffer, Compression::default());
        let result = content(&mut packer)?;
        packer.finish().map_err(io)?;
        result
    } else {
        content(&mut buffer)?
    };
    buffer.flush().map_err(io)?;
    Ok(result)
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

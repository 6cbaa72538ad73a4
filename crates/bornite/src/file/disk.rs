use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::FileError;
use super::limits::MAX_STREAM;

/// The content of a file. Only a regular file may be of any length.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let failed = |source| FileError::Io {
        action: "read the file",
        source,
        remedy: "is it there, may you read it and does it fit into memory?",
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

/// Writes a file whole or not at all: under another name in the same folder, through to the disk, then renamed.
pub(super) fn write(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<&File>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    const FOLDER: &str = "is the folder there, and may you write to it?";
    const SPACE: &str = "is there space left?";
    let failed = |action, remedy| move |source| FileError::Io { action, source, remedy };
    let target = target(path)?;
    let folder = match target.path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let temporary =
        temporary(folder, target.old.as_ref()).map_err(failed("create a file", FOLDER))?;
    let mut buffer = BufWriter::with_capacity(1 << 20, temporary.as_file());
    content(&mut buffer)?;
    buffer.flush().map_err(failed("write the file", SPACE))?;
    drop(buffer);
    temporary.as_file().sync_all().map_err(failed("write the file to the disk", SPACE))?;
    let moved = temporary.persist(&target.path);
    moved.map_err(|e| failed("give the file its name", FOLDER)(e.error))?;
    // The new name is on the disk when the folder is. Not every system can say so; the file is whole either way.
    if let Ok(folder) = File::open(folder) {
        let _unsupported = folder.sync_all();
    }
    Ok(())
}

/// Where to write, and what is there already.
struct Target {
    path: PathBuf,
    old: Option<Metadata>,
}

/// Follows links, so that the file that they lead to is replaced and not they.
fn target(path: &Path) -> Result<Target, FileError> {
    let failed = |source| FileError::Io {
        action: "replace what is there",
        source,
        remedy: "give the name of a file",
    };
    match fs::metadata(path) {
        Ok(old) if old.is_file() => {
            Ok(Target { path: fs::canonicalize(path).map_err(failed)?, old: Some(old) })
        }
        Ok(old) if old.is_dir() => Err(failed(io::ErrorKind::IsADirectory.into())),
        Ok(_) => Err(failed(io::Error::other("it is not a regular file"))),
        Err(_) => Ok(Target { path: path.to_owned(), old: None }),
    }
}

/// A file with the permissions of the one that it replaces, or those that any new file gets.
fn temporary(folder: &Path, old: Option<&Metadata>) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".bornite-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(folder)?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    Ok(file)
}

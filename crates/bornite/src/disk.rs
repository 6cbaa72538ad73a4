//! Writes files completely or not at all.
//!
//! The content is written to a temporary file in the same folder and flushed to disk, and then the
//! file is renamed. A file that is replaced keeps its permissions; a new one gets those that the
//! umask allows. Symbolic links are followed: the target is replaced, not the link. Devices and
//! pipes are written directly.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The maximum length of a chain of symbolic links, as on Linux.
const MAX_LINKS: usize = 40;

/// The temporary files that currently exist.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Writes a file, completely or not at all. `content` writes the content, and `failed` converts an
/// error of the file system.
pub(crate) fn write<T, E>(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> Result<T, E>,
    failed: impl Fn(io::Error) -> E,
) -> Result<T, E> {
    let target = resolve(path).map_err(&failed)?;
    let old = match fs::metadata(&target) {
        Ok(old) if old.is_dir() => {
            return Err(failed(io::Error::new(
                io::ErrorKind::IsADirectory,
                "this is a folder; give a file name",
            )));
        }
        Ok(old) if !old.is_file() => {
            let device = File::options().write(true).open(&target).map_err(&failed)?;
            return fill(&device, content, failed);
        }
        old => old.ok(),
    };
    let temporary = Temporary::new(folder_of(&target), old.as_ref()).map_err(&failed)?;
    let result = fill(temporary.file.as_file(), content, &failed)?;
    temporary.file.as_file().sync_all().map_err(&failed)?;
    temporary.persist(&target).map_err(&failed)?;
    // Flush the folder too, because it holds the new name. Not every system supports this; the file
    // is complete either way.
    if let Ok(folder) = File::open(folder_of(&target)) {
        let _unsupported = folder.sync_all();
    }
    Ok(result)
}

fn fill<T, E>(
    file: &File,
    content: impl FnOnce(&mut dyn Write) -> Result<T, E>,
    failed: impl Fn(io::Error) -> E,
) -> Result<T, E> {
    let mut buffer = BufWriter::with_capacity(1 << 18, file);
    let result = content(&mut buffer)?;
    buffer.flush().map_err(failed)?;
    Ok(result)
}

/// Removes the temporary files of all unfinished writes. For a process that is about to exit
/// because of a signal.
pub fn remove_unfinished() {
    let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    for path in unfinished.iter() {
        // The file may have been renamed just now.
        let _gone = fs::remove_file(path);
    }
    // Keep the lock, so that no other thread renames a file any more.
    std::mem::forget(unfinished);
}

/// A temporary file that is removed unless it is renamed.
struct Temporary {
    file: tempfile::NamedTempFile,
    listed: Listed,
}

/// An entry of [`UNFINISHED`] that is removed together with its file.
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Removes the name of the temporary file from an error, because the user does not know it.
fn without_name(error: io::Error) -> io::Error {
    // The error has the form "reason at path name", and does not give the reason by itself.
    match error.to_string().rsplit_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason),
        None => error,
    }
}

impl Temporary {
    fn new(folder: &Path, old: Option<&Metadata>) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".bornite-").suffix(".tmp").rand_bytes(12);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // No one else may read the replacement of a private file, not even briefly.
            let mode = if old.is_some() { 0o600 } else { 0o666 };
            builder.permissions(fs::Permissions::from_mode(mode));
        }
        let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        let file = builder.tempfile_in(folder).map_err(without_name)?;
        unfinished.insert(file.path().to_owned());
        drop(unfinished);
        let temporary = Self { listed: Listed(file.path().to_owned()), file };
        if let Some(old) = old {
            temporary.file.as_file().set_permissions(old.permissions())?;
        }
        Ok(temporary)
    }

    fn persist(self, target: &Path) -> io::Result<()> {
        let Self { file, listed } = self;
        let persisted = {
            let _unless_the_process_ends =
                UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
            file.persist(target)
        };
        drop(listed);
        persisted.map(drop).map_err(|e| e.error)
    }
}

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The path after following all symbolic links, whether or not anything exists there.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let target = fs::read_link(&path)?;
                path = folder_of(&path).join(target);
            }
            _ => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails after `left` bytes, like a full disk.
    struct Failing<'a> {
        out: &'a mut dyn Write,
        left: usize,
    }

    impl Write for Failing<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.left == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let count = self.out.write(&bytes[..bytes.len().min(self.left)])?;
            self.left -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.out.flush()
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_write_that_fails_at_any_point_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        let content = "new content";
        for point in 0..=content.len() {
            let written = write(
                &path,
                |out| Failing { out, left: point }.write_all(content.as_bytes()),
                |e| e,
            );
            let expected = if point < content.len() { "old" } else { content };
            assert_eq!(written.is_ok(), point == content.len());
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
            assert_eq!(names(folder.path()), ["a"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn errors_do_not_name_temporary_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none").join("out");
        let error = write(&path, |_| Ok(()), |e| e).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains(".bornite-"), "{error}");
        assert!(error.to_string().contains("No such file"), "{error}");
    }

    #[test]
    fn permissions_stay_and_links_are_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        // A dangling link, relative to its own folder.
        symlink("real", &link).unwrap();
        let put = |path: &Path, text: &str| {
            write(path, |out| out.write_all(text.as_bytes()), |e: io::Error| e).unwrap();
        };
        put(&link, "first");
        assert_eq!(fs::read_to_string(&real).unwrap(), "first");
        for mode in [0o600, 0o640, 0o444] {
            fs::set_permissions(&real, fs::Permissions::from_mode(mode)).unwrap();
            put(&link, "second");
            assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, mode);
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "second");
        let around = folder.path().join("around");
        symlink("around", &around).unwrap();
        assert!(write(&around, |_| Ok(()), |e: io::Error| e).is_err());
    }
}

//! Checkpoints of a fit.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bornite::data::{DataError, write_file};
use bornite::learn::{Control, Snapshot, used_budget};
use pyo3::prelude::*;

use crate::exception::BorniteError;

/// Writes checkpoints at regular intervals.
#[derive(Debug)]
pub(crate) struct Saver {
    path: PathBuf,
    every: Duration,
    last: Instant,
    /// Why the last checkpoint could not be written.
    pub(crate) failed: Option<String>,
}

impl Saver {
    /// A checkpoint in this file, written every so many seconds. The file must not be one of the inputs.
    pub(crate) fn new((path, every): (PathBuf, f64), inputs: &[PathBuf]) -> PyResult<Self> {
        let refuse = |problem: &str| {
            Err(BorniteError::new_err(format!("checkpoint={}: {problem}", path.display())))
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            return refuse("there is no such folder");
        }
        let same = |input: &PathBuf| {
            let [a, b] = [&path, input].map(fs::canonicalize);
            matches!((a, b), (Ok(a), Ok(b)) if a == b)
        };
        if path.is_dir() || inputs.iter().any(same) {
            return refuse("a folder or a table would be overwritten; give another name");
        }
        let every = Duration::try_from_secs_f64(every).map_err(|_| {
            BorniteError::new_err("checkpoint_every: give a number of seconds of at least 0")
        })?;
        Ok(Self { path, every, last: Instant::now(), failed: None })
    }

    /// Writes a checkpoint if it is time for one, or if the fit ends early.
    pub(crate) fn step(&mut self, control: Control, snapshot: &Snapshot<'_>) {
        if control != Control::Stop && self.last.elapsed() < self.every {
            return;
        }
        let bytes = snapshot.to_bytes();
        let written = write_file(&self.path, |out| {
            let file = self.path.display().to_string();
            out.write_all(&bytes).map_err(|source| DataError::Io { file, action: "write", source })
        });
        self.failed = written.err().map(|error| error.to_string());
        self.last = Instant::now();
    }
}

/// Reads a checkpoint, and the fraction of its budget that was used.
pub(crate) fn read(path: &Path) -> PyResult<(Vec<u8>, f64)> {
    let file = path.display();
    let bytes = fs::read(path)
        .map_err(|e| BorniteError::new_err(format!("{file}: cannot read the checkpoint: {e}")))?;
    let used = used_budget(&bytes).map_err(|e| BorniteError::new_err(format!("{file}: {e}")))?;
    Ok((bytes, used))
}

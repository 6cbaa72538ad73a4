//! Compression of files.

use std::path::PathBuf;

use bornite::data::{self, DataError};
use bornite::model::{self, CompressOptions, ModelError};
use pyo3::prelude::*;

use crate::detached::detached;
use crate::exception::Raise;
use crate::model::{TableModel, Watch, check_time};

/// Compresses a file; returns the number of bytes before and after, and whether Ctrl-C ended the fit.
#[pyfunction]
#[pyo3(signature = (source, target, model, *, time, width, epochs, seed, header))]
#[expect(clippy::too_many_arguments, reason = "all but the files and the model are named")]
pub(crate) fn compress_file(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    model: Option<&TableModel>,
    time: Option<f64>,
    width: Option<usize>,
    epochs: Option<usize>,
    seed: u64,
    header: Option<bool>,
) -> PyResult<(u64, u64, bool)> {
    check_time(time)?;
    let mut watch = Watch::new(time, None);
    let options = CompressOptions { width, epochs, seed, header, ..CompressOptions::default() };
    let name = source.display().to_string();
    let model = model.map(|m| &m.0);
    let sizes = detached(py, || -> Result<_, ModelError> {
        let content = data::open_file(&source)?;
        let packed = data::write_file(&target, |out| {
            model::compress_file(content, out, &name, model, &options, &mut |p| watch.step(p))
        })?;
        Ok((packed.bytes_in, packed.bytes_out))
    })?;
    let (before, after) = sizes.map_err(Raise::raise)?;
    Ok((before, after, watch.interrupted))
}

/// Writes bytes to a file, completely or not at all. A file that is replaced keeps its permissions.
#[pyfunction]
pub(crate) fn write_file(py: Python<'_>, path: PathBuf, content: &[u8]) -> PyResult<()> {
    let io = |source| DataError::Io { file: path.display().to_string(), action: "write", source };
    let write = || {
        data::write_file(&path, |out| out.write_all(content).map_err(io)).map_err(ModelError::from)
    };
    detached(py, write)?.map_err(Raise::raise)
}

/// Restores a compressed file, byte for byte.
#[pyfunction]
pub(crate) fn decompress_file(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    model: Option<&TableModel>,
) -> PyResult<()> {
    let model = model.map(|m| &m.0);
    let write = || -> Result<_, ModelError> {
        let packed = data::open_file(&source)?;
        data::write_file(&target, |out| model::decompress_file(packed, out, model))?;
        Ok(())
    };
    detached(py, write)?.map_err(Raise::raise)
}

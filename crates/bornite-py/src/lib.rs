//! The extension module `bornite._bornite`.
//!
//! This crate only converts: arguments in, one library call with the interpreter released, results out.
//! `python/bornite/` defines the public interface.

mod argument;
mod array;
mod basis;
mod builder;
mod checkpoint;
mod circuit;
mod compress;
mod detached;
mod domain;
mod environment;
mod exception;
mod layer;
mod model;
mod overlap;
mod query;
mod random;
mod squared;
mod table;
mod worker;

use pyo3::prelude::*;

/// The compiled part of the package `bornite`.
#[pymodule]
mod _bornite {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::basis::Basis;
    #[pymodule_export]
    use super::builder::Builder;
    #[pymodule_export]
    use super::circuit::Circuit;
    #[pymodule_export]
    use super::compress::{compress_file, decompress_file, write_file};
    #[pymodule_export]
    use super::detached::set_threads;
    #[pymodule_export]
    use super::domain::{Domain, Variable};
    #[pymodule_export]
    use super::environment::{Environments, Univariate};
    #[pymodule_export]
    use super::layer::Layer;
    #[pymodule_export]
    use super::model::TableModel;
    #[pymodule_export]
    use super::overlap::Overlap;
    #[pymodule_export]
    use super::query::Marginal;
    #[pymodule_export]
    use super::squared::Squared;
    #[pymodule_export]
    use super::worker::{Worker, sample_places};

    /// Sets the maximum number of bytes of memory that reading a short file may request, for the whole process.
    #[pyfunction]
    fn set_memory_limit(bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        bornite::memory::set_limit(super::argument::whole(bytes, "a number of bytes")? as u64);
        Ok(())
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::detached::remember_process();
        super::exception::add_to(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

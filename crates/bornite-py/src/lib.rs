//! The extension module `bornite._bornite`: Python's view of the library.
//!
//! This crate translates and nothing else: arguments in, one call of the library with the
//! interpreter released, results out. What a caller imports is chosen in `python/bornite/`.

use pyo3::prelude::*;

/// The compiled half of the package `bornite`.
#[pymodule]
mod _bornite {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

//! One exception class per error type of the library, with the library's messages.

use bornite::basis::BasisError as RustBasisError;
use bornite::circuit::CircuitError as RustCircuitError;
use bornite::data::DataError as RustDataError;
use bornite::file::FileError as RustFileError;
use bornite::model::ModelError as RustModelError;
use bornite::ops::OperationError as RustOperationError;
use bornite::printable;
use bornite::query::QueryError as RustQueryError;
use bornite::structure::TreeError as RustTreeError;
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    bornite,
    BorniteError,
    PyValueError,
    "The base class of all errors raised by this package."
);
create_exception!(bornite, BasisError, BorniteError, "Invalid input functions.");
create_exception!(bornite, CircuitError, BorniteError, "Layers that do not form a valid circuit.");
create_exception!(bornite, DataError, BorniteError, "A table or cells that do not fit the model.");
create_exception!(bornite, ModelError, BorniteError, "A model that cannot be fitted or queried.");
create_exception!(
    bornite,
    FileError,
    BorniteError,
    "A file or text that does not describe a circuit."
);
create_exception!(bornite, OperationError, BorniteError, "An operation without a defined result.");
create_exception!(bornite, QueryError, BorniteError, "A query that does not fit the variables.");
create_exception!(bornite, TreeError, BorniteError, "A nested list that is not a region tree.");

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("BorniteError", py.get_type::<BorniteError>())?;
    module.add("BasisError", py.get_type::<BasisError>())?;
    module.add("CircuitError", py.get_type::<CircuitError>())?;
    module.add("DataError", py.get_type::<DataError>())?;
    module.add("ModelError", py.get_type::<ModelError>())?;
    module.add("FileError", py.get_type::<FileError>())?;
    module.add("OperationError", py.get_type::<OperationError>())?;
    module.add("QueryError", py.get_type::<QueryError>())?;
    module.add("TreeError", py.get_type::<TreeError>())
}

/// The exception for an argument of an unsupported type: a `BorniteError` that is also a `TypeError`.
pub(crate) fn argument_error(words: impl AsRef<str>) -> PyErr {
    let words = printable(words.as_ref());
    Python::attach(|py| {
        let class =
            PyModule::import(py, "bornite._errors").and_then(|m| m.getattr("ArgumentError"));
        match class.and_then(|class| class.call1((&words,))) {
            Ok(exception) => PyErr::from_value(exception),
            Err(_) => PyTypeError::new_err(words),
        }
    })
}

/// An error that can be converted to a Python exception.
pub(crate) trait Raise {
    fn raise(self) -> PyErr;
}

macro_rules! impl_raise {
    ($($error:ty => $class:ident),* $(,)?) => {$(
        impl Raise for $error {
            fn raise(self) -> PyErr {
                $class::new_err(printable(&self.to_string()))
            }
        }
    )*};
}
impl_raise! {
    RustBasisError => BasisError,
    RustCircuitError => CircuitError,
    RustDataError => DataError,
    RustQueryError => QueryError,
    RustTreeError => TreeError,
}

impl Raise for RustOperationError {
    fn raise(self) -> PyErr {
        match self {
            RustOperationError::Query(e) => e.raise(),
            other => OperationError::new_err(printable(&other.to_string())),
        }
    }
}

impl Raise for RustFileError {
    /// File system errors become the matching `OSError`, as from `open`.
    fn raise(self) -> PyErr {
        let mut cause = &self;
        while let RustFileError::InFile { source, .. } = cause {
            cause = source;
        }
        match cause {
            RustFileError::Io { source, .. } => {
                std::io::Error::new(source.kind(), printable(&self.to_string())).into()
            }
            _ => FileError::new_err(printable(&self.to_string())),
        }
    }
}

impl Raise for RustModelError {
    fn raise(self) -> PyErr {
        match self {
            RustModelError::Data(e) => e.raise(),
            RustModelError::Query(e) => e.raise(),
            RustModelError::Basis(e) => e.raise(),
            RustModelError::Circuit(e) => e.raise(),
            RustModelError::Operation(e) => e.raise(),
            RustModelError::File(e) => e.raise(),
            RustModelError::LittleToLearn(found) => {
                let names = |all: &[&str]| {
                    all.iter().map(|c| format!("'{c}'")).collect::<Vec<_>>().join(", ")
                };
                ModelError::new_err(printable(&found.explain(names, "as_is=True")))
            }
            other => ModelError::new_err(printable(&other.to_string())),
        }
    }
}

impl Raise for bornite::Error {
    fn raise(self) -> PyErr {
        match self {
            bornite::Error::Basis(e) => e.raise(),
            bornite::Error::Circuit(e) => e.raise(),
            bornite::Error::File(e) => e.raise(),
            bornite::Error::Query(e) => e.raise(),
            bornite::Error::Operation(e) => e.raise(),
            bornite::Error::Model(e) => e.raise(),
            bornite::Error::Data(e) => e.raise(),
            other => BorniteError::new_err(printable(&other.to_string())),
        }
    }
}

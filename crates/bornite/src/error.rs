//! The error type that combines those of all modules.

use crate::basis::BasisError;
use crate::circuit::{CircuitError, NotOrthonormal};
#[cfg(feature = "codec")]
use crate::codec::CodecError;
#[cfg(feature = "tables")]
use crate::data::DataError;
use crate::file::FileError;
#[cfg(feature = "tables")]
use crate::model::ModelError;
use crate::ops::OperationError;
use crate::query::QueryError;

/// Any error of this library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Input functions with invalid parameters.
    #[error(transparent)]
    Basis(#[from] BasisError),
    /// Layers that do not form a circuit.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// Rows that cannot be compressed, or a compressed stream that cannot be read.
    #[cfg(feature = "codec")]
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A circuit file that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A query that does not fit the variables.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// An operation that has no result.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// A model that cannot be fitted or queried.
    #[cfg(feature = "tables")]
    #[error(transparent)]
    Model(#[from] Box<ModelError>),
    /// A table that cannot be read, written or used.
    #[cfg(feature = "tables")]
    #[error(transparent)]
    Data(#[from] Box<DataError>),
    /// A circuit that is not orthonormal where an orthonormal one is required.
    #[error(transparent)]
    NotOrthonormal(#[from] Box<NotOrthonormal>),
}

#[cfg(feature = "tables")]
impl From<DataError> for Error {
    fn from(e: DataError) -> Self {
        Error::Data(Box::new(e))
    }
}

#[cfg(feature = "tables")]
impl From<ModelError> for Error {
    fn from(e: ModelError) -> Self {
        Error::Model(Box::new(e))
    }
}

use crate::basis::BasisError;
use crate::circuit::CircuitError;
#[cfg(feature = "codec")]
use crate::codec::CodecError;
use crate::data::{DataError, Findings};
use crate::engine::{RowError, SampleError};
use crate::file::FileError;
use crate::learn::LearnError;
use crate::memory::{OverLimit, TooManyRows};
use crate::names::shown;
use crate::ops::OperationError;
use crate::query::QueryError;
use crate::structure::InformationError;

/// The reason that a model cannot be fitted or queried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A table, or a cell or a label of a question, that does not fit the schema.
    #[error(transparent)]
    Data(#[from] Box<DataError>),
    /// A question that cannot be read, or rows that do not fit.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A value that is not in its variable's domain.
    #[error(transparent)]
    Row(#[from] RowError),
    /// Input functions that cannot be made.
    #[error(transparent)]
    Basis(#[from] BasisError),
    /// Layers that do not make a circuit.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// No structure from data.
    #[error(transparent)]
    Information(#[from] InformationError),
    /// A circuit that cannot be learned.
    #[error(transparent)]
    Learn(#[from] LearnError),
    /// An operation that has no answer.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// A file that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// More rows than fit into memory.
    #[error(transparent)]
    TooManyRows(#[from] TooManyRows),
    /// A model that would take more memory than is allowed.
    #[error("{0}")]
    Memory(#[from] OverLimit),
    /// A table that cannot be compressed, or a stream that cannot be read.
    #[cfg(feature = "codec")]
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A setting that is out of range.
    #[error("{setting} = {value}: {remedy}")]
    Option {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: f64,
        /// What it can be.
        remedy: &'static str,
    },
    /// A table without rows.
    #[error("{which} has no rows; give a table with at least one")]
    NoRows {
        /// The table.
        which: &'static str,
    },
    /// Weights of rows that are read in pieces.
    #[error(
        "row weights are not supported for tables larger than memory; omit the weights, or allow more memory"
    )]
    WeightsInPieces,
    /// A row that cannot count for what it says.
    #[error("row {}, column '{}': the weight '{}' is not a number of at least 0", row + 1, shown(column), shown(text))]
    Weight {
        /// The row, counted from 0.
        row: usize,
        /// The column of weights.
        column: String,
        /// The cell.
        text: String,
    },
    /// Uninformative rows or columns.
    #[error("{0}")]
    LittleToLearn(Findings),
    /// An image structure without images.
    #[error(
        "the structure 'image' needs a table of images, such as an IDX or NPY file; choose another structure"
    )]
    NotImages,
    /// A model that a fit cannot continue from as it is asked to.
    #[error("a fit that continues from a model keeps its columns and circuit: {problem}")]
    Start {
        /// What does not go with that.
        problem: String,
    },
    /// A truncation bound for a conditional model.
    #[error(
        "a conditional model has no truncation bound; truncate the unconditional model instead"
    )]
    Conditioned,
    /// A plot of pixels of a model without any.
    #[error(
        "this is not a model of images, so there are no pixels to show; fit it with an image size"
    )]
    NoPixels,
    /// A plot of rows without a table.
    #[error("this plot shows rows of a table; give one, preferably of held-out rows")]
    NeedsTable,
    /// Evidence of probability 0.
    #[error("{what} has probability 0, so there is no conditional distribution; relax it")]
    Impossible {
        /// What was given.
        what: String,
    },
    /// A row whose known cells have probability 0.
    #[error(
        "the evidence in row {} has probability 0, so there is no conditional distribution; relax it", row + 1
    )]
    ImpossibleRow {
        /// The row, counted from 0.
        row: usize,
    },
    /// A question that has no answer for each row of a table.
    #[error(
        "this cannot be answered row by row; ask for P(…), E[…], median(…), quantile(…, p) or argmax of one column"
    )]
    NotForRows,
    /// Evidence with too many separate parts.
    #[error(
        "the evidence consists of more than {limit} separate cases of values; use fewer intervals of wide integers"
    )]
    TooManyParts {
        /// The maximum number of cases.
        limit: usize,
    },
    /// The probabilities of the values of a column that has too many.
    #[error(
        "column '{column}' does not have a small set of values with probabilities; ask for quantiles"
    )]
    NotFinite {
        /// The column.
        column: String,
    },
    /// A question about a column that has one value.
    #[error(
        "column '{column}' has no {what}: it has only one value given the evidence; relax the evidence"
    )]
    Constant {
        /// The column.
        column: String,
        /// What was asked for.
        what: &'static str,
    },
    /// A numeric question about a column of text.
    #[error(
        "column '{column}' has no {what}: its labels are not numbers; ask argmax({column}) or P({column}=…)"
    )]
    NoNumbers {
        /// The column.
        column: String,
        /// What was asked for.
        what: &'static str,
    },
}

impl ModelError {
    /// Whether a file holds a circuit that is not a model.
    pub fn is_not_a_model(&self) -> bool {
        matches!(self, ModelError::File(e) if e.is_not_a_model())
    }
}

impl ModelError {
    /// The same error with its row numbers shifted by the number of preceding rows.
    #[must_use]
    pub fn after(self, rows: usize) -> Self {
        match self {
            ModelError::Data(e) => e.after(rows).into(),
            ModelError::ImpossibleRow { row } => ModelError::ImpossibleRow { row: row + rows },
            other => other,
        }
    }
}

impl From<DataError> for ModelError {
    fn from(e: DataError) -> Self {
        ModelError::Data(Box::new(e))
    }
}

impl From<SampleError> for ModelError {
    fn from(e: SampleError) -> Self {
        match e {
            SampleError::Query(e) => ModelError::Query(e),
            SampleError::Impossible { row } => ModelError::ImpossibleRow { row },
        }
    }
}

use crate::basis::BasisError;
use crate::circuit::CircuitError;
#[cfg(feature = "codec")]
use crate::codec::CodecError;
use crate::data::{DataError, Findings};
use crate::engine::{RowError, SampleError};
use crate::file::FileError;
use crate::learn::LearnError;
use crate::memory::{Bytes, OverLimit, TooManyRows};
use crate::names::shown;
use crate::ops::OperationError;
use crate::query::QueryError;
use crate::structure::InformationError;

/// The reason why a model cannot be fitted or queried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A table, or a cell or label in a question, does not match the schema.
    #[error(transparent)]
    Data(#[from] Box<DataError>),
    /// A question cannot be parsed, or rows do not match the variables.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A value is outside its variable's domain.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A basis is invalid.
    #[error(transparent)]
    Basis(#[from] BasisError),
    /// The layers do not form a circuit.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// No structure can be learned from the data.
    #[error(transparent)]
    Information(#[from] InformationError),
    /// A circuit cannot be learned.
    #[error(transparent)]
    Learn(#[from] LearnError),
    /// An operation has no answer.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The rows do not fit into memory.
    #[error(transparent)]
    TooManyRows(#[from] TooManyRows),
    /// A model would take more memory than allowed.
    #[error("{0}")]
    Memory(#[from] OverLimit),
    /// A circuit is too large for the memory limit.
    #[error(
        "fitting {columns} columns with circuits of width {width} needs about {} of memory, but the limit is {}; drop \
         columns{} or raise the memory limit",
        Bytes((*needed).into()), Bytes((*allowed).into()),
        if *width > 1 { ", choose a smaller width," } else { "" }
    )]
    TooLarge {
        /// The number of columns.
        columns: usize,
        /// The smallest width that was considered.
        width: usize,
        /// The bytes of memory that a fit needs, an estimate.
        needed: u64,
        /// How much is allowed.
        allowed: u64,
    },
    /// A fit was stopped before there was anything to keep.
    #[error("the fit was stopped before its first step, so there is no model")]
    Stopped,
    /// A table cannot be compressed, or a stream cannot be read.
    #[cfg(feature = "codec")]
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A setting is out of range.
    #[error("{setting} = {value}: {remedy}")]
    Option {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: f64,
        /// What it can be.
        remedy: &'static str,
    },
    /// A table has no rows.
    #[error("{which} has no rows; give a table with at least one")]
    NoRows {
        /// The table.
        which: &'static str,
    },
    /// A row has an invalid weight.
    #[error("row {}, column '{}': the weight '{}' is not a number of at least 0", row + 1, shown(column), shown(text))]
    Weight {
        /// The row, counted from 0.
        row: usize,
        /// The column with the weights.
        column: String,
        /// The cell.
        text: String,
    },
    /// A row of a table that is read in pieces has a weight far above those of the sampled rows.
    #[error(
        "row {}, column '{}': the weight {text} is too large: it is more than 16,384 times the mean of the sampled rows", row + 1, shown(column)
    )]
    LargeWeight {
        /// The row, counted from 0.
        row: usize,
        /// The column with the weights.
        column: String,
        /// The weight.
        text: String,
    },
    /// One of several files has a problem.
    #[error("'{file}': {source}")]
    InFile {
        /// The file.
        file: String,
        /// The problem.
        source: Box<ModelError>,
    },
    /// Rows or columns are uninformative.
    #[error("{0}")]
    LittleToLearn(Findings),
    /// An image structure is requested for a table that does not contain images.
    #[error(
        "the structure 'image' needs a table of images, such as an IDX or NPY file; choose another structure"
    )]
    NotImages,
    /// A fit cannot continue from a model with these settings.
    #[error("a fit that continues from a model keeps its columns and circuit: {problem}")]
    Start {
        /// What the settings conflict with.
        problem: String,
    },
    /// A conditional model cannot be truncated.
    #[error(
        "a conditional model has no truncation bound; truncate the unconditional model instead"
    )]
    Conditioned,
    /// A plot of pixels is requested for a model without pixels.
    #[error(
        "this is not a model of images, so there are no pixels to show; fit it with an image size"
    )]
    NoPixels,
    /// A plot of rows is requested without a table.
    #[error("this plot shows rows of a table; give one, preferably of held-out rows")]
    NeedsTable,
    /// The evidence has probability 0.
    #[error("{what} has probability 0, so there is no conditional distribution; relax it")]
    Impossible {
        /// The evidence.
        what: String,
    },
    /// The observed cells of a row have probability 0.
    #[error(
        "the evidence in row {} has probability 0, so there is no conditional distribution; relax it", row + 1
    )]
    ImpossibleRow {
        /// The row, counted from 0.
        row: usize,
    },
    /// A question cannot be answered row by row.
    #[error(
        "this cannot be answered row by row; ask for P(…), E[…], median(…), quantile(…, p) or argmax of one column"
    )]
    NotForRows,
    /// The evidence has too many separate parts.
    #[error(
        "the evidence consists of more than {limit} separate cases of values; use fewer intervals of wide integers"
    )]
    TooManyParts {
        /// The maximum number of cases.
        limit: usize,
    },
    /// A column has too many values to list their probabilities.
    #[error(
        "column '{column}' does not have a small set of values with probabilities; ask for quantiles"
    )]
    NotFinite {
        /// The column.
        column: String,
    },
    /// A question requires a column that is not constant.
    #[error(
        "column '{column}' has no {what}: it has only one value given the evidence; relax the evidence"
    )]
    Constant {
        /// The column.
        column: String,
        /// What was asked for.
        what: &'static str,
    },
    /// A numeric question is about a text column.
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
    /// Whether the file contains a circuit that is not a model.
    pub fn is_not_a_model(&self) -> bool {
        matches!(self, ModelError::File(e) if e.is_not_a_model())
    }
}

impl ModelError {
    /// Shifts the row numbers in the error by the number of preceding rows.
    #[must_use]
    pub fn after(self, rows: usize) -> Self {
        match self {
            ModelError::Data(e) => e.after(rows).into(),
            ModelError::ImpossibleRow { row } => ModelError::ImpossibleRow { row: row + rows },
            ModelError::Weight { row, column, text } => {
                ModelError::Weight { row: row + rows, column, text }
            }
            ModelError::LargeWeight { row, column, text } => {
                ModelError::LargeWeight { row: row + rows, column, text }
            }
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

use super::Digest;
use crate::basis::BasisError;
use crate::circuit::CircuitError;
use crate::data::DataError;
use crate::domain::Domain;
use crate::engine::RowError;
use crate::memory::OverLimit;

/// The reason why rows cannot be compressed, or a stream cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// A variable is not finite.
    #[error(
        "the domain of variable '{variable}' is {domain}: only finite variables can be coded; bin or round it"
    )]
    NotFinite {
        /// The variable.
        variable: String,
        /// Its domain.
        domain: Domain,
    },
    /// A variable has too many values to reserve a minimum probability for each.
    #[error("variable '{variable}' has {values} values, but at most {limit} can be coded; bin it")]
    TooManyValues {
        /// The variable.
        variable: String,
        /// The number of values.
        values: usize,
        /// The maximum number of values.
        limit: usize,
    },
    /// The values are not rows of the model's variables.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A number of rows per block is out of range.
    #[error("{rows} rows per block with {variables} variables; give 1 to {limit}")]
    BlockRows {
        /// The requested number.
        rows: usize,
        /// The number of variables.
        variables: usize,
        /// The maximum number.
        limit: usize,
    },
    /// Reading or writing failed.
    #[error("cannot {action} the compressed stream: {source}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The underlying error.
        source: std::io::Error,
    },
    /// The content would take more memory than allowed.
    #[error("{0}")]
    Memory(#[from] OverLimit),
    /// The bytes do not start like a compressed stream.
    #[error("not a compressed stream: it does not begin like one")]
    NotAStream,
    /// The format is newer than this program.
    #[error(
        "this is version {found} of the compressed format, but only version {known} is supported; use a newer bornite"
    )]
    Version {
        /// The version found.
        found: u16,
        /// The version that this program reads.
        known: u16,
    },
    /// The stream has another content type than expected.
    #[error(
        "this stream contains content of kind {found}, which was not expected: 0 is rows, 1 is a file or a table, and others need a newer bornite"
    )]
    Content {
        /// The content type found.
        found: u16,
    },
    /// The stream was compressed with another model.
    #[error(
        "this stream was made with the model {found}, not with {expected}; give the model that compressed it"
    )]
    WrongModel {
        /// The digest of the given model.
        expected: Digest,
        /// The digest in the stream.
        found: Digest,
    },
    /// A compressed file is read as a table.
    #[error("this is a compressed file, not a table from memory; decompress it as a file")]
    IsFile,
    /// A compressed table is read as a file.
    #[error("this is a compressed table from memory, not a file; decompress it as a table")]
    IsTable,
    /// The stream does not contain its model, and none is given.
    #[error("this stream does not contain its model; give the model that compressed it")]
    NeedsModel,
    /// The cells of a table cannot be restored.
    #[error(transparent)]
    Data(#[from] Box<DataError>),
    /// A basis cannot be discretized.
    #[error(transparent)]
    Basis(#[from] BasisError),
    /// A circuit cannot be discretized.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// The stream is damaged or truncated.
    #[error("the stream is damaged: {what}; get another copy")]
    Damaged {
        /// The problem.
        what: &'static str,
    },
    /// A block is damaged or truncated.
    #[error("block {block} of the stream is damaged: {what}; get another copy")]
    DamagedBlock {
        /// The block, counted from 0.
        block: usize,
        /// The problem.
        what: &'static str,
    },
    /// There is no such block.
    #[error("there is no block {block}: the stream has {count}, counted from 0")]
    NoBlock {
        /// The requested block.
        block: usize,
        /// The number of blocks.
        count: usize,
    },
}

impl From<DataError> for CodecError {
    fn from(e: DataError) -> Self {
        CodecError::Data(Box::new(e))
    }
}

/// The coder reached an impossible state, so a word of the stream is wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken;

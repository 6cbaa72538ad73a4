use super::Digest;
use crate::basis::BasisError;
use crate::circuit::CircuitError;
use crate::data::DataError;
use crate::domain::Domain;
use crate::engine::RowError;
use crate::memory::OverLimit;

/// Why rows cannot be compressed, or a stream cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// A variable that is not finite.
    #[error(
        "the domain of variable '{variable}' is {domain}: only finite variables can be coded; bin or round it"
    )]
    NotFinite {
        /// The variable.
        variable: String,
        /// Its domain.
        domain: Domain,
    },
    /// A variable with so many values that each being possible would take all the room.
    #[error("variable '{variable}' has {values} values, but at most {limit} can be coded; bin it")]
    TooManyValues {
        /// The variable.
        variable: String,
        /// The number of its values.
        values: usize,
        /// The most that are possible.
        limit: usize,
    },
    /// Values that are no rows of the model's variables.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A number of rows to a block that cannot be.
    #[error("{rows} rows per block with {variables} variables; give 1 to {limit}")]
    BlockRows {
        /// The number asked for.
        rows: usize,
        /// The number of variables.
        variables: usize,
        /// The most that are possible.
        limit: usize,
    },
    /// Reading or writing failed.
    #[error("cannot {action} the compressed stream: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The answer.
        source: std::io::Error,
    },
    /// What was compressed would take more memory than is allowed.
    #[error("{0}")]
    Memory(#[from] OverLimit),
    /// Bytes that begin like nothing compressed here.
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
    /// A stream of another content than was asked for.
    #[error(
        "this stream contains content of kind {found}, which was not expected: 0 is rows, 1 is a file or a table, and others need a newer bornite"
    )]
    Content {
        /// The kind found.
        found: u16,
    },
    /// A stream that was made with another model.
    #[error(
        "this stream was made with the model {found}, not with {expected}; give the model that compressed it"
    )]
    WrongModel {
        /// The digest of the model at hand.
        expected: Digest,
        /// The digest in the stream.
        found: Digest,
    },
    /// A file that was asked for as a table.
    #[error("this is a compressed file, not a table from memory; decompress it as a file")]
    IsFile,
    /// A table from memory that was asked for as a file.
    #[error("this is a compressed table from memory, not a file; decompress it as a table")]
    IsTable,
    /// A stream that holds no model, read without one.
    #[error("this stream does not contain its model; give the model that compressed it")]
    NeedsModel,
    /// A table whose cells cannot be read back.
    #[error(transparent)]
    Data(#[from] Box<DataError>),
    /// Input functions that cannot be cut into bins.
    #[error(transparent)]
    Basis(#[from] BasisError),
    /// A circuit that cannot be cut into bins.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// Bytes that have changed or are not all there.
    #[error("the stream is damaged: {what}; get another copy")]
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
    /// A block whose bytes have changed or are not all there.
    #[error("block {block} of the stream is damaged: {what}; get another copy")]
    DamagedBlock {
        /// The block, counted from 0.
        block: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A block that is not there.
    #[error("there is no block {block}: the stream has {count}, counted from 0")]
    NoBlock {
        /// The block asked for.
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

/// Symbols that the coder cannot have: a word of the stream is wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken;

use std::path::PathBuf;

use crate::Domain;
use crate::basis::BasisError;
use crate::circuit::CircuitError;
use crate::memory::OverLimit;
use crate::structure::TreeError;

/// Why a circuit file cannot be read or written.
///
/// A `place` is the way from the top of the file to the trouble, as in `layers[3].weight[1]`: positions count from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The trouble is in this file.
    #[error("{}: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// The trouble.
        source: Box<FileError>,
    },
    /// The file system refused something.
    #[error("cannot {action}: {source}; {remedy}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The answer of the file system.
        source: std::io::Error,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The file asks for more memory than is allowed.
    #[error("{place}: {source}")]
    Memory {
        /// Where.
        place: String,
        /// What needs how much.
        source: OverLimit,
    },
    /// One circuit was asked for, of a model that has several.
    #[error("a mixture of {count} circuits, not one circuit; load it as a model")]
    Mixture {
        /// The number of its circuits.
        count: usize,
    },
    /// The content is neither JSON nor safetensors.
    #[error(
        "not a circuit file: it {found}; expected JSON that begins with '{{', or a safetensors file"
    )]
    NotACircuit {
        /// What it is instead.
        found: &'static str,
    },
    /// The text is not JSON.
    #[error("invalid JSON: {source}")]
    Syntax {
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// Lists nested more than 128 deep.
    #[error(
        "line {line}, column {column}: lists and objects nest too deep; write a deep tree as a string, \
         \"tree\": \"[[0, 1], 2]\""
    )]
    TooDeep {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// A circuit without a model, where a model is needed.
    #[error("not a model file: it contains a circuit, but not the columns of a table")]
    NotAModel,
    /// A model whose parts do not belong together.
    #[error("the model is damaged: {problem}; copy it again, or fit it again")]
    Model {
        /// What is wrong.
        problem: String,
    },
    /// Content that is not what was written.
    #[error("the file is damaged: its digest is {found} but should be {expected}; copy it again")]
    Digest {
        /// The digest that was written.
        expected: String,
        /// The digest of what is there.
        found: String,
    },
    /// The format is newer than this program.
    #[error(
        "{place}: this is version {found} of the format, but only version {known} is supported; use a newer bornite"
    )]
    Version {
        /// Where.
        place: String,
        /// The version of the file.
        found: u64,
        /// The version that this program writes.
        known: u64,
    },
    /// A field that must be there is not.
    #[error("{place}: the field '{field}' is missing; add it")]
    MissingField {
        /// The object.
        place: String,
        /// The field.
        field: &'static str,
    },
    /// A field that means nothing here.
    #[error("{place}: there is no field '{field}'; {}", suggestion(nearest.as_deref(), known))]
    UnknownField {
        /// The object.
        place: String,
        /// The field.
        field: String,
        /// The known field most like it.
        nearest: Option<String>,
        /// All fields that are known there.
        known: String,
    },
    /// A field that is there twice.
    #[error("{place}: '{field}' appears twice; keep one")]
    DuplicateField {
        /// The object.
        place: String,
        /// The field.
        field: String,
    },
    /// Two fields that exclude each other.
    #[error("{place}: '{first}' and '{second}' exclude each other; keep one")]
    Conflict {
        /// The object.
        place: String,
        /// One field.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A value of another kind than is needed.
    #[error("{place}: expected {expected}, found {found}")]
    Expected {
        /// Where.
        place: String,
        /// What is needed.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A name for something that is not there.
    #[error("{place}: there is no {what} '{name}'; {}", suggestion(nearest.as_deref(), known))]
    UnknownName {
        /// Where.
        place: String,
        /// What it should name.
        what: &'static str,
        /// The name.
        name: String,
        /// The known name most like it.
        nearest: Option<String>,
        /// The names that are known, or the first of them.
        known: String,
    },
    /// Something named that nothing refers to.
    #[error("{place}: nothing refers to it; refer to it or remove it")]
    Unused {
        /// Where.
        place: String,
    },
    /// Rows of unlike lengths.
    #[error(
        "{place}: this row has {found} entries, but the first has {expected}; give all rows the same length"
    )]
    RowLength {
        /// The row.
        place: String,
        /// The length of the first row.
        expected: usize,
        /// The length of this one.
        found: usize,
    },
    /// A number of things that does not fit another.
    #[error("{place}: found {found} {what}, but {expected} are needed")]
    Count {
        /// Where.
        place: String,
        /// What is counted.
        what: &'static str,
        /// How many are needed.
        expected: usize,
        /// How many are there.
        found: usize,
    },
    /// A size beyond what a file may ask for.
    #[error("{place}: {what} of {found} exceeds the limit for files, {limit}; give a smaller one")]
    TooLarge {
        /// Where.
        place: String,
        /// What is too large.
        what: &'static str,
        /// The size asked for.
        found: u128,
        /// The largest that is accepted.
        limit: u128,
    },
    /// A basis that does not exist on the variable's domain.
    #[error("{place}: the basis '{kind}' needs {needs}, but the variable's domain is {domain}")]
    BasisDomain {
        /// The basis.
        place: String,
        /// Its kind.
        kind: &'static str,
        /// The domains that it can have.
        needs: &'static str,
        /// The variable's domain.
        domain: Domain,
    },
    /// A basis that cannot be made.
    #[error("{place}: {source}")]
    Basis {
        /// The basis.
        place: String,
        /// The underlying error.
        source: BasisError,
    },
    /// A nested list that is not a tree.
    #[error("{place}: {source}")]
    Tree {
        /// The list.
        place: String,
        /// The underlying error.
        source: TreeError,
    },
    /// Variables or layers that do not make a circuit.
    #[error("{place}: {source}")]
    Circuit {
        /// The list that they stand in.
        place: String,
        /// The underlying error.
        source: CircuitError,
    },
    /// A reference to a tensor from a file that has none.
    #[error("{place}: a JSON file has no tensors; write the rows here, or use a safetensors file")]
    NoTensors {
        /// The reference.
        place: String,
    },
    /// Two references to one tensor.
    #[error(
        "{place}: the tensor '{tensor}' is already used; name a weight in \"weights\" to share it"
    )]
    TensorReused {
        /// The second reference.
        place: String,
        /// The tensor.
        tensor: String,
    },
    /// The first 8 bytes of a safetensors file announce a header that is not there.
    #[error(
        "the header should have {announced} bytes, but {available} bytes follow (at most {limit} are accepted): the file is truncated or not a safetensors file; copy it again"
    )]
    HeaderLength {
        /// The length that the file announces.
        announced: u64,
        /// The bytes that follow.
        available: usize,
        /// The longest header that is accepted.
        limit: usize,
    },
    /// The header of a safetensors file is not JSON.
    #[error("header: invalid JSON: {source}; the file is damaged, copy it again")]
    HeaderSyntax {
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// The header of a safetensors file is not UTF-8.
    #[error("header: byte {position} is not UTF-8: the file is damaged; copy it again")]
    HeaderText {
        /// The first byte that is not.
        position: usize,
    },
    /// The tensors do not cover the bytes after the header, each byte once.
    #[error(
        "{place}: the tensor should begin at byte {expected} but begins at {found}: tensors overlap or leave a gap; write the file again"
    )]
    TensorOffset {
        /// The tensor.
        place: String,
        /// Where the one before it ends.
        expected: u64,
        /// Where it begins.
        found: u64,
    },
    /// A tensor's shape does not fit its bytes.
    #[error(
        "{place}: the shape {shape:?} does not match the {bytes} bytes of its offsets; write the file again"
    )]
    TensorShape {
        /// The tensor.
        place: String,
        /// Its shape.
        shape: Vec<u64>,
        /// Its length in bytes.
        bytes: u64,
    },
    /// The file is shorter or longer than its tensors.
    #[error(
        "the tensors take {expected} bytes, but the file has {found}: it is truncated or has trailing bytes; copy it again"
    )]
    DataLength {
        /// The bytes that the header promises.
        expected: u64,
        /// The bytes that follow the header.
        found: u64,
    },
}

impl FileError {
    /// Whether the file holds a circuit, and no model.
    pub fn is_not_a_model(&self) -> bool {
        match self {
            FileError::InFile { source, .. } => source.is_not_a_model(),
            other => matches!(other, FileError::NotAModel),
        }
    }
}

fn suggestion(nearest: Option<&str>, known: &str) -> String {
    match nearest {
        Some(nearest) => format!("did you mean '{nearest}'? (known: {known})"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("known: {known}"),
    }
}

use std::path::PathBuf;

use crate::Domain;
use crate::basis::BasisError;
use crate::circuit::CircuitError;
use crate::memory::OverLimit;
use crate::structure::TreeError;

/// The reason why a circuit file cannot be read or written.
///
/// A `place` is the path from the top of the file to the problem, such as `layers[3].weight[1]`. Positions count from
/// 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A file has a problem.
    #[error("{}: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: Box<FileError>,
    },
    /// The file system reported an error.
    #[error("cannot {action}: {source}; {remedy}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The underlying error.
        source: std::io::Error,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The file requires more memory than allowed.
    #[error("{place}: {source}")]
    Memory {
        /// The place.
        place: String,
        /// The amount that is required.
        source: OverLimit,
    },
    /// A model with several circuits is read as a single circuit.
    #[error("a mixture of {count} circuits, not one circuit; load it as a model")]
    Mixture {
        /// The number of circuits.
        count: usize,
    },
    /// The content is neither JSON nor safetensors.
    #[error(
        "not a circuit file: it {found}; expected JSON that begins with '{{', or a safetensors file"
    )]
    NotACircuit {
        /// What the content looks like.
        found: &'static str,
    },
    /// The text is not JSON.
    #[error("invalid JSON: {source}")]
    Syntax {
        /// The underlying error, with line and column.
        source: serde_json::Error,
    },
    /// Lists are nested more than 128 levels deep.
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
    /// A file with only a circuit is read as a model.
    #[error("not a model file: it contains a circuit, but not the columns of a table")]
    NotAModel,
    /// The parts of a model are inconsistent.
    #[error("the model is damaged: {problem}; copy it again, or fit it again")]
    Model {
        /// The problem.
        problem: String,
    },
    /// The content does not match its digest.
    #[error("the file is damaged: its digest is {found} but should be {expected}; copy it again")]
    Digest {
        /// The digest in the file.
        expected: String,
        /// The digest of the content.
        found: String,
    },
    /// The format is newer than this program.
    #[error(
        "{place}: this is version {found} of the format, but only version {known} is supported; use a newer bornite"
    )]
    Version {
        /// The place.
        place: String,
        /// The version of the file.
        found: u64,
        /// The supported version.
        known: u64,
    },
    /// A required field is missing.
    #[error("{place}: the field '{field}' is missing; add it")]
    MissingField {
        /// The object.
        place: String,
        /// The field.
        field: &'static str,
    },
    /// A field is unknown.
    #[error("{place}: there is no field '{field}'; {}", suggestion(nearest.as_deref(), known))]
    UnknownField {
        /// The object.
        place: String,
        /// The field.
        field: String,
        /// The nearest known field.
        nearest: Option<String>,
        /// All fields that are known there.
        known: String,
    },
    /// A field appears twice.
    #[error("{place}: '{field}' appears twice; keep one")]
    DuplicateField {
        /// The object.
        place: String,
        /// The field.
        field: String,
    },
    /// Two fields exclude each other.
    #[error("{place}: '{first}' and '{second}' exclude each other; keep one")]
    Conflict {
        /// The object.
        place: String,
        /// One field.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A value has the wrong type or range.
    #[error("{place}: expected {expected}, found {found}")]
    Expected {
        /// The place.
        place: String,
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// A name is unknown.
    #[error("{place}: there is no {what} '{name}'; {}", suggestion(nearest.as_deref(), known))]
    UnknownName {
        /// The place.
        place: String,
        /// The kind of thing that it should name.
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest known name.
        nearest: Option<String>,
        /// The known names, or the first of them.
        known: String,
    },
    /// A named item is not used.
    #[error("{place}: nothing refers to it; refer to it or remove it")]
    Unused {
        /// The place.
        place: String,
    },
    /// Rows have different lengths.
    #[error(
        "{place}: this row has {found} entries, but the first has {expected}; give all rows the same length"
    )]
    RowLength {
        /// The row.
        place: String,
        /// The length of the first row.
        expected: usize,
        /// The length of this row.
        found: usize,
    },
    /// Two counts do not match.
    #[error("{place}: found {found} {what}, but {expected} are needed")]
    Count {
        /// The place.
        place: String,
        /// What is counted.
        what: &'static str,
        /// The expected number.
        expected: usize,
        /// The number found.
        found: usize,
    },
    /// A size exceeds the limit for files.
    #[error("{place}: {what} of {found} exceeds the limit for files, {limit}; give a smaller one")]
    TooLarge {
        /// The place.
        place: String,
        /// What is too large.
        what: &'static str,
        /// The requested size.
        found: u128,
        /// The limit.
        limit: u128,
    },
    /// A basis does not exist on the variable's domain.
    #[error("{place}: the basis '{kind}' needs {needs}, but the variable's domain is {domain}")]
    BasisDomain {
        /// The basis.
        place: String,
        /// Its kind.
        kind: &'static str,
        /// The domains that it supports.
        needs: &'static str,
        /// The variable's domain.
        domain: Domain,
    },
    /// A basis is invalid.
    #[error("{place}: {source}")]
    Basis {
        /// The basis.
        place: String,
        /// The underlying error.
        source: BasisError,
    },
    /// A nested list is not a tree.
    #[error("{place}: {source}")]
    Tree {
        /// The list.
        place: String,
        /// The underlying error.
        source: TreeError,
    },
    /// Variables or layers do not form a circuit.
    #[error("{place}: {source}")]
    Circuit {
        /// The list that contains them.
        place: String,
        /// The underlying error.
        source: CircuitError,
    },
    /// A JSON file refers to a tensor.
    #[error("{place}: a JSON file has no tensors; write the rows here, or use a safetensors file")]
    NoTensors {
        /// The reference.
        place: String,
    },
    /// Two references use the same tensor.
    #[error(
        "{place}: the tensor '{tensor}' is already used; name a weight in \"weights\" to share it"
    )]
    TensorReused {
        /// The second reference.
        place: String,
        /// The tensor.
        tensor: String,
    },
    /// The length of a safetensors header does not match the file.
    #[error(
        "the header should have {announced} bytes, but {available} bytes follow (at most {limit} are accepted): the file is truncated or not a safetensors file; copy it again"
    )]
    HeaderLength {
        /// The announced length.
        announced: u64,
        /// The number of bytes that follow.
        available: usize,
        /// The maximum length of a header.
        limit: usize,
    },
    /// The header of a safetensors file is not JSON.
    #[error("header: invalid JSON: {source}; the file is damaged, copy it again")]
    HeaderSyntax {
        /// The underlying error, with line and column.
        source: serde_json::Error,
    },
    /// The header of a safetensors file is not UTF-8.
    #[error("header: byte {position} is not UTF-8: the file is damaged; copy it again")]
    HeaderText {
        /// The position of the first invalid byte.
        position: usize,
    },
    /// The tensors do not cover the bytes after the header exactly once.
    #[error(
        "{place}: the tensor should begin at byte {expected} but begins at {found}: tensors overlap or leave a gap; write the file again"
    )]
    TensorOffset {
        /// The tensor.
        place: String,
        /// The end of the previous tensor.
        expected: u64,
        /// The start of the tensor.
        found: u64,
    },
    /// The shape of a tensor does not match its size.
    #[error(
        "{place}: the shape {shape:?} does not match the {bytes} bytes of its offsets; write the file again"
    )]
    TensorShape {
        /// The tensor.
        place: String,
        /// Its shape.
        shape: Vec<u64>,
        /// Its size in bytes.
        bytes: u64,
    },
    /// The file is shorter or longer than its tensors.
    #[error(
        "the tensors take {expected} bytes, but the file has {found}: it is truncated or has trailing bytes; copy it again"
    )]
    DataLength {
        /// The number of bytes that the header announces.
        expected: u64,
        /// The number of bytes after the header.
        found: u64,
    },
}

impl FileError {
    /// Whether the file contains a circuit that is not a model.
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

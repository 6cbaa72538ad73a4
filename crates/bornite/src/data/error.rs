use std::io;

use super::warp::WarpError;
use crate::memory::OverLimit;
use crate::names::{did_you_mean, short, shown};

/// A problem with a table, its file or a schema: where it is, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file that cannot be read or written.
    #[error("cannot {action} '{file}': {source}")]
    Io {
        /// The file.
        file: String,
        /// What was tried.
        action: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A file that asks for more memory than is allowed.
    #[error("cannot read '{file}': {source}")]
    Memory {
        /// The file.
        file: String,
        /// What needs how much.
        source: OverLimit,
    },
    /// A file without content.
    #[error("'{file}' is empty; a table needs one line per row")]
    EmptyFile {
        /// The file.
        file: String,
    },
    /// A table without rows.
    #[error("'{file}' has a header but no rows")]
    HeaderOnly {
        /// The file.
        file: String,
    },
    /// A file that would not be written as it is.
    #[error("'{file}' cannot be reproduced byte for byte: its quotes, types or order differ")]
    NotWrittenBack {
        /// The file.
        file: String,
    },
    /// A table without columns.
    #[error("a table needs at least one column")]
    NoColumns,
    /// A table without rows, although some are needed.
    #[error("the table has no rows; at least one is needed to infer a schema")]
    NoRows,
    /// A row with more or fewer cells than the first.
    #[error(
        "'{file}', line {line}: {found} cells, but the first line has {expected}; check the delimiter '{delimiter}' and the quotes around cells that contain it"
    )]
    Ragged {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The number of cells of the first line.
        expected: usize,
        /// The number of cells of this line.
        found: usize,
        /// The delimiter.
        delimiter: char,
    },
    /// Two columns of one name.
    #[error("columns {first} and {second} of {place} are both named '{}'; rename one", shown(name))]
    DuplicateName {
        /// The table.
        place: String,
        /// The name.
        name: String,
        /// The first column, counted from 1.
        first: usize,
        /// The second column.
        second: usize,
    },
    /// Bytes that are not UTF-8.
    #[error(
        "'{file}', line {line}: the text is not UTF-8{hint}; convert it first (iconv -t UTF-8)"
    )]
    NotUtf8 {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// A guess at what it is.
        hint: &'static str,
    },
    /// A quote without an end.
    #[error("'{file}', line {line}: the quote opened in this row is never closed")]
    UnclosedQuote {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
    },
    /// An infinite number.
    #[error(
        "{place}, column '{}': {} is not finite; leave the cell empty if the value is missing",
        shown(column),
        shown(text)
    )]
    Infinite {
        /// The file and line, or the row.
        place: String,
        /// The column.
        column: String,
        /// The cell.
        text: String,
    },
    /// A numeric column with a few cells that are none.
    #[error(
        "'{file}', line {line}, column '{}': '{}' is not a number, but {numbers} of the other cells are; \
         correct it, leave the cell empty if the number is missing, or declare the column as text",
        shown(column),
        shown(text)
    )]
    NotANumber {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The column.
        column: String,
        /// The cell.
        text: String,
        /// How many cells are numbers.
        numbers: usize,
    },
    /// Columns of unlike length.
    #[error("column '{column}' has {found} cells, but the first column has {expected}")]
    Length {
        /// The column.
        column: String,
        /// The length of the first column.
        expected: usize,
        /// The length of this column.
        found: usize,
    },
    /// A number of values that is not a number of rows.
    #[error("{found} values do not divide into rows of {width}")]
    Shape {
        /// The number of values.
        found: usize,
        /// The width of a row.
        width: usize,
    },
    /// An image shape that does not fit the columns.
    #[error("images of {height} × {width} × {channels} do not fit a table of {columns} columns")]
    ImageShape {
        /// The height.
        height: usize,
        /// The width.
        width: usize,
        /// The channels.
        channels: usize,
        /// The columns of the table.
        columns: usize,
    },
    /// A binary file that is not what its name says, or is cut off.
    #[error("'{file}' cannot be read as {format}: {problem}")]
    Format {
        /// The file.
        file: String,
        /// The format.
        format: &'static str,
        /// The underlying error.
        problem: FormatProblem,
    },
    /// A column of a file whose cells are no cells of a table.
    #[error(
        "'{file}', column '{column}': {what} are not supported; write the column as numbers or text, or leave it out of the file"
    )]
    ColumnType {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// What it holds.
        what: &'static str,
    },
    /// A column that is not there.
    #[error("there is no column '{}'{}", shown(name), did_you_mean(hint.as_deref()))]
    UnknownColumn {
        /// The name.
        name: String,
        /// The nearest name that is there.
        hint: Option<String>,
    },
    /// A column of the schema that a table does not have.
    #[error(
        "the table has no column '{}', which the schema needs{}; add it, with empty cells if there are no values",
        shown(name), did_you_mean(hint.as_deref())
    )]
    AbsentColumn {
        /// The name.
        name: String,
        /// The nearest name that is there.
        hint: Option<String>,
    },
    /// A piece of a table with other columns than those before it.
    #[error(
        "the columns are {found}, but before they were {expected}; all tables of one file need the same columns in the same order"
    )]
    OtherColumns {
        /// The columns before.
        expected: String,
        /// Those of the piece.
        found: String,
    },
    /// A piece of a table whose cells the type of the column before it has no place for.
    #[error(
        "column '{column}' of a Parquet file has the type of its earlier rows, which does not fit a cell from row {row} on; write CSV instead"
    )]
    ChangedType {
        /// The column.
        column: String,
        /// The first row of the piece, counted from 1.
        row: usize,
    },
    /// Something wrong with one of several files.
    #[error("'{file}': {source}")]
    InFile {
        /// The file.
        file: String,
        /// What is wrong.
        source: Box<DataError>,
    },
    /// A table with other columns than those before it.
    #[error(
        "its columns are {found}, but those of the files before it are {expected}; all files need the same columns"
    )]
    UnlikeColumns {
        /// The columns before.
        expected: String,
        /// Those of the table.
        found: String,
    },
    /// A column that holds something else than in the tables before it.
    #[error(
        "column '{column}' contains {found}, but {expected} in the files before it; use the same type in all files"
    )]
    UnlikeCells {
        /// The column.
        column: String,
        /// What it held before.
        expected: &'static str,
        /// What it holds.
        found: &'static str,
    },
    /// A label that the schema does not know.
    #[error(
        "{}column '{}': the label '{}' is not one of its {labels}{}; {}",
        at(*row), shown(column), shown(label), did_you_mean(hint.as_deref()), remedy_of_label(*row)
    )]
    UnseenLabel {
        /// The row, counted from 1; 0 if there is none.
        row: usize,
        /// The column.
        column: String,
        /// The label.
        label: String,
        /// The number of labels known.
        labels: usize,
        /// The nearest label that is known.
        hint: Option<String>,
    },
    /// A number outside the range of its column.
    #[error(
        "{}column '{}': {} is outside {} to {}; leave it empty or widen the schema",
        at(*row), shown(column), shown(text), short(*low), short(*high)
    )]
    OutOfRange {
        /// The row, counted from 1; 0 if there is none.
        row: usize,
        /// The column.
        column: String,
        /// The number.
        value: f64,
        /// The number as it stands in its cell.
        text: String,
        /// The smallest number allowed.
        low: f64,
        /// The largest number allowed.
        high: f64,
    },
    /// A cell of another type than the schema's column.
    #[error("{}column '{}': '{}' is not {expected}", at(*row), shown(column), shown(text))]
    WrongType {
        /// The row, counted from 1; 0 if there is none.
        row: usize,
        /// The column.
        column: String,
        /// The cell.
        text: String,
        /// What the schema asks for.
        expected: &'static str,
    },
    /// A kind that a column cannot have.
    #[error("column '{column}' cannot be {kind}: {problem}")]
    Kind {
        /// The column.
        column: String,
        /// The kind that was asked for.
        kind: &'static str,
        /// Why not.
        problem: &'static str,
    },
    /// A cell that is written as a date or time, and is none.
    #[error(
        "column '{}': there is no date or time '{}'; correct the cell or leave it empty",
        shown(column),
        shown(text)
    )]
    Date {
        /// The column.
        column: String,
        /// The cell.
        text: String,
    },
    /// A column without a transform to (0, 1).
    #[error("column '{}': {source}", shown(column))]
    Warp {
        /// The column.
        column: String,
        /// Why not.
        source: WarpError,
    },
    /// An interval whose ends are not in order.
    #[error(
        "column '{}': the interval from {} to {} is not in order; give the smaller end first",
        shown(column), short(*low), short(*high)
    )]
    Interval {
        /// The column.
        column: String,
        /// The first end.
        low: f64,
        /// The second end.
        high: f64,
    },
    /// Evidence that a column of this kind cannot have.
    #[error("column '{}': {problem}", shown(column))]
    Evidence {
        /// The column.
        column: String,
        /// Why not.
        problem: &'static str,
    },
    /// A column of a schema whose parts contradict each other.
    #[error("the schema's column '{column}' is invalid: {problem}")]
    Schema {
        /// The column.
        column: String,
        /// Why not.
        problem: &'static str,
    },
    /// An encoded value that is not in its variable's domain.
    #[error("row {row}, column '{column}': {value} is not a value of its variable")]
    Decode {
        /// The row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The value.
        value: f64,
    },
}

impl DataError {
    /// The same error with its row number shifted by the number of preceding rows.
    #[must_use]
    pub fn after(mut self, rows: usize) -> Self {
        if let Self::UnseenLabel { row, .. }
        | Self::OutOfRange { row, .. }
        | Self::WrongType { row, .. }
        | Self::Decode { row, .. } = &mut self
            && *row > 0
        {
            *row += rows;
        }
        self
    }
}

/// A problem with a binary file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatProblem {
    /// The first bytes are not those of the format.
    #[error("it does not start like such a file")]
    Magic,
    /// What the reader of Parquet files says.
    #[error("{0}; write it again, or convert the table to CSV")]
    Parquet(String),
    /// More memory than is allowed.
    #[error("{0}")]
    Memory(#[from] OverLimit),
    /// Pages packed by what is not read.
    #[error("it is compressed with Brotli or LZO; write it with snappy, zstd, gzip or lz4")]
    Packed,
    /// The file ends too early.
    #[error("expected {expected} bytes of data, found {found}; the file is truncated or damaged")]
    CutOff {
        /// The bytes announced.
        expected: u128,
        /// The bytes there.
        found: usize,
    },
    /// More than can be held at once.
    #[error("a row, or the whole array if it is stored by columns, takes more than {0} bytes")]
    TooLarge(usize),
    /// There is more than announced.
    #[error("{extra} bytes follow the data; the file is damaged")]
    TooLong {
        /// The number of bytes too many.
        extra: usize,
    },
    /// A header that cannot be understood.
    #[error("its header has no valid {field}")]
    Header {
        /// The part that is wrong.
        field: &'static str,
    },
    /// Numbers of a type that is not supported.
    #[error("its numbers are of type {name}; save integers, Booleans or floats")]
    Type {
        /// The type's name.
        name: String,
    },
    /// An array of too few or too many dimensions.
    #[error("its array has {0} dimensions; a table has 2, a set of images 3 or 4")]
    Dimensions(usize),
    /// An array with nothing in it.
    #[error("its array of shape {0:?} is empty")]
    EmptyArray(Vec<usize>),
    /// Several arrays and no choice of one.
    #[error("it contains the arrays {0}; name one of them")]
    Choose(String),
    /// An array that is not there.
    #[error("it does not contain an array '{name}', only {found}")]
    NoArray {
        /// The name asked for.
        name: String,
        /// The names there.
        found: String,
    },
    /// A member packed in a way that is not supported.
    #[error(
        "its member '{0}' is compressed with an unsupported method; save it with numpy's savez or savez_compressed"
    )]
    Packing(String),
    /// A checksum that does not fit.
    #[error("the checksum of its member '{0}' does not match; the file is damaged")]
    Checksum(String),
}

/// What to do about a label that was never seen, in a row or, where that is 0, in a question.
fn remedy_of_label(row: usize) -> &'static str {
    match row {
        0 => "a question is about labels that were seen; only scores give others a probability",
        _ => "leave it empty, or infer the schema with a place for other labels",
    }
}

fn at(row: usize) -> String {
    if row == 0 { String::new() } else { format!("row {row}, ") }
}

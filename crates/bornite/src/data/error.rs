use std::io;

use super::warp::WarpError;
use crate::memory::OverLimit;
use crate::names::{did_you_mean, shortest_number, shown};

/// A problem with a table, its file or a schema. The message says where it is and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file cannot be read or written.
    #[error("cannot {action} '{file}': {source}")]
    Io {
        /// The file.
        file: String,
        /// The attempted action.
        action: &'static str,
        /// The underlying error.
        source: io::Error,
    },
    /// A file requires more memory than allowed.
    #[error("cannot read '{file}': {source}")]
    Memory {
        /// The file.
        file: String,
        /// The amount that is required.
        source: OverLimit,
    },
    /// A file is empty.
    #[error("'{file}' is empty; a table needs one line per row")]
    EmptyFile {
        /// The file.
        file: String,
    },
    /// A file has a header but no rows.
    #[error("'{file}' has a header but no rows")]
    HeaderOnly {
        /// The file.
        file: String,
    },
    /// A file would not be written back with the same bytes.
    #[error("'{file}' cannot be reproduced byte for byte: its quotes, types or order differ")]
    NotWrittenBack {
        /// The file.
        file: String,
    },
    /// A table has no columns.
    #[error("a table needs at least one column")]
    NoColumns,
    /// A table has no rows.
    #[error("the table has no rows; at least one is needed to infer a schema")]
    NoRows,
    /// A row has more or fewer cells than the first.
    #[error(
        "'{file}', line {line}: {found} cells, but the first line has {expected}; check the delimiter '{delimiter}' and the quotes around cells that contain it"
    )]
    Ragged {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The number of cells in the first line.
        expected: usize,
        /// The number of cells in this line.
        found: usize,
        /// The delimiter.
        delimiter: char,
    },
    /// Two columns have the same name.
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
    /// A file is not UTF-8.
    #[error(
        "'{file}', line {line}: the text is not UTF-8{hint}; convert it first (iconv -t UTF-8)"
    )]
    NotUtf8 {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// A guess at the encoding.
        hint: &'static str,
    },
    /// A quote is not closed.
    #[error("'{file}', line {line}: the quote opened in this row is never closed")]
    UnclosedQuote {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
    },
    /// A number is infinite.
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
    /// A few cells of a numeric column are not numbers.
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
        /// The number of cells that are numbers.
        numbers: usize,
    },
    /// Columns have different lengths.
    #[error("column '{column}' has {found} cells, but the first column has {expected}")]
    Length {
        /// The column.
        column: String,
        /// The length of the first column.
        expected: usize,
        /// The length of this column.
        found: usize,
    },
    /// The number of values is not a multiple of the row width.
    #[error("{found} values do not divide into rows of {width}")]
    Shape {
        /// The number of values.
        found: usize,
        /// The width of a row.
        width: usize,
    },
    /// An image shape does not match the number of columns.
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
    /// A binary file does not have the format that its name suggests, or is truncated.
    #[error("'{file}' cannot be read as {format}: {problem}")]
    Format {
        /// The file.
        file: String,
        /// The format.
        format: &'static str,
        /// The underlying error.
        problem: FormatProblem,
    },
    /// A column of a file has an unsupported type.
    #[error(
        "'{file}', column '{column}': {what} are not supported; write the column as numbers or text, or leave it out of the file"
    )]
    ColumnType {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// The type.
        what: &'static str,
    },
    /// There is no such column.
    #[error("there is no column '{}'{}", shown(name), did_you_mean(hint.as_deref()))]
    UnknownColumn {
        /// The name.
        name: String,
        /// The nearest existing name.
        hint: Option<String>,
    },
    /// A table lacks a column of the schema.
    #[error(
        "the table has no column '{}', which the schema needs{}; add it, with empty cells if there are no values",
        shown(name), did_you_mean(hint.as_deref())
    )]
    AbsentColumn {
        /// The name.
        name: String,
        /// The nearest existing name.
        hint: Option<String>,
    },
    /// A piece of a table has other columns than the pieces before it.
    #[error(
        "the columns are {found}, but before they were {expected}; all tables of one file need the same columns in the same order"
    )]
    OtherColumns {
        /// The columns of the pieces before it.
        expected: String,
        /// The columns of the piece.
        found: String,
    },
    /// The cells of a piece do not fit the column type of the pieces before it.
    #[error(
        "column '{column}' of a Parquet file has the type of its earlier rows, which does not fit a cell from row {row} on; write CSV instead"
    )]
    ChangedType {
        /// The column.
        column: String,
        /// The first row of the piece, counted from 1.
        row: usize,
    },
    /// One of several files has a problem.
    #[error("'{file}': {source}")]
    InFile {
        /// The file.
        file: String,
        /// The problem.
        source: Box<DataError>,
    },
    /// A file has other columns than the files before it.
    #[error(
        "its columns are {found}, but those of the files before it are {expected}; all files need the same columns"
    )]
    UnlikeColumns {
        /// The columns of the files before it.
        expected: String,
        /// The columns of the file.
        found: String,
    },
    /// A column has another type than in the files before it.
    #[error(
        "column '{column}' contains {found}, but {expected} in the files before it; use the same type in all files"
    )]
    UnlikeCells {
        /// The column.
        column: String,
        /// The type in the files before it.
        expected: &'static str,
        /// The type in this file.
        found: &'static str,
    },
    /// A label is not in the column's domain.
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
        /// The number of labels in the domain.
        labels: usize,
        /// The nearest label in the domain.
        hint: Option<String>,
    },
    /// A number is outside the range of its column.
    #[error(
        "{}column '{}': {} is outside {} to {}; leave it empty or widen the schema",
        at(*row), shown(column), shown(text), shortest_number(*low), shortest_number(*high)
    )]
    OutOfRange {
        /// The row, counted from 1; 0 if there is none.
        row: usize,
        /// The column.
        column: String,
        /// The number.
        value: f64,
        /// The text of its cell.
        text: String,
        /// The smallest number allowed.
        low: f64,
        /// The largest number allowed.
        high: f64,
    },
    /// A cell does not have the type of its column.
    #[error("{}column '{}': '{}' is not {expected}", at(*row), shown(column), shown(text))]
    WrongType {
        /// The row, counted from 1; 0 if there is none.
        row: usize,
        /// The column.
        column: String,
        /// The cell.
        text: String,
        /// The expected type.
        expected: &'static str,
    },
    /// A column cannot have the declared kind.
    #[error("column '{column}' cannot be {kind}: {problem}")]
    Kind {
        /// The column.
        column: String,
        /// The declared kind.
        kind: &'static str,
        /// The reason.
        problem: &'static str,
    },
    /// A cell looks like a date or time, but is impossible.
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
    /// A column cannot be transformed to (0, 1).
    #[error("column '{}': {source}", shown(column))]
    Warp {
        /// The column.
        column: String,
        /// The reason.
        source: WarpError,
    },
    /// The ends of an interval are not in order.
    #[error(
        "column '{}': the interval from {} to {} is not in order; give the smaller end first",
        shown(column), shortest_number(*low), shortest_number(*high)
    )]
    Interval {
        /// The column.
        column: String,
        /// The first end.
        low: f64,
        /// The second end.
        high: f64,
    },
    /// A column of this kind cannot have such evidence.
    #[error("column '{}': {problem}", shown(column))]
    Evidence {
        /// The column.
        column: String,
        /// The reason.
        problem: &'static str,
    },
    /// A column of a schema is inconsistent.
    #[error("the schema's column '{column}' is invalid: {problem}")]
    Schema {
        /// The column.
        column: String,
        /// The reason.
        problem: &'static str,
    },
    /// An encoded value is outside its variable's domain.
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
    /// Shifts the row number in the error by the number of preceding rows.
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
    /// The first bytes do not match the format.
    #[error("it does not start like such a file")]
    Magic,
    /// The error of the Parquet reader.
    #[error("{0}; write it again, or convert the table to CSV")]
    Parquet(String),
    /// The file requires more memory than allowed.
    #[error("{0}")]
    Memory(#[from] OverLimit),
    /// Pages are compressed with an unsupported method.
    #[error("it is compressed with Brotli or LZO; write it with snappy, zstd, gzip or lz4")]
    Packed,
    /// The file is truncated.
    #[error("expected {expected} bytes of data, found {found}; the file is truncated or damaged")]
    CutOff {
        /// The expected number of bytes.
        expected: u128,
        /// The number of bytes found.
        found: usize,
    },
    /// The file is too large to be read at once.
    #[error("a row, or the whole array if it is stored by columns, takes more than {0} bytes")]
    TooLarge(usize),
    /// The file is longer than expected.
    #[error("{extra} bytes follow the data; the file is damaged")]
    TooLong {
        /// The number of additional bytes.
        extra: usize,
    },
    /// The header is invalid.
    #[error("its header has no valid {field}")]
    Header {
        /// The invalid field.
        field: &'static str,
    },
    /// The numbers have an unsupported type.
    #[error("its numbers are of type {name}; save integers, Booleans or floats")]
    Type {
        /// The type's name.
        name: String,
    },
    /// The array has an unsupported number of dimensions.
    #[error("its array has {0} dimensions; a table has 2, a set of images 3 or 4")]
    Dimensions(usize),
    /// The array is empty.
    #[error("its array of shape {0:?} is empty")]
    EmptyArray(Vec<usize>),
    /// The file has several arrays, and none was chosen.
    #[error("it contains the arrays {0}; name one of them")]
    Choose(String),
    /// There is no such array.
    #[error("it does not contain an array '{name}', only {found}")]
    NoArray {
        /// The requested name.
        name: String,
        /// The existing names.
        found: String,
    },
    /// A member is compressed with an unsupported method.
    #[error(
        "its member '{0}' is compressed with an unsupported method; save it with numpy's savez or savez_compressed"
    )]
    Packing(String),
    /// A checksum does not match.
    #[error("the checksum of its member '{0}' does not match; the file is damaged")]
    Checksum(String),
}

/// What to do about a label that was never seen, in a row or, if `row` is 0, in a question.
fn remedy_of_label(row: usize) -> &'static str {
    match row {
        0 => "a question is about labels that were seen; only scores give others a probability",
        _ => "leave it empty, or infer the schema with a place for other labels",
    }
}

fn at(row: usize) -> String {
    if row == 0 { String::new() } else { format!("row {row}, ") }
}

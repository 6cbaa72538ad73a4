//! Reading and writing of CSV.

mod cells;
mod delimiter;
mod rows;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::number::Decimal;
use super::table::check_names;
use super::writer::CsvWriter;
use super::{Column, DataError, Storage, Table, file};
use cells::ColumnReader;
use delimiter::{find_delimiter, named_delimiter};
use rows::Rows;

/// How to read a CSV file.
#[derive(Clone, Debug, PartialEq)]
pub struct CsvOptions {
    /// The delimiter; by default, it is detected among `,` `;` tab and `|`.
    pub delimiter: Option<u8>,
    /// Whether the first line contains the column names. By default, all columns are considered: a name is text above
    /// numbers, or text that does not occur in its column. Numbers can be names too if other columns have names, as in
    /// `country,2019,2020`. [`CsvLayout::header`] is the decision.
    pub header: Option<bool>,
    /// The texts of a missing cell, without surrounding space.
    pub missing: Vec<String>,
    /// Columns to read as text, even if they look like numbers.
    pub text_columns: Vec<String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        let missing = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "?"];
        Self {
            delimiter: None,
            header: None,
            missing: missing.map(str::to_owned).to_vec(),
            text_columns: Vec::new(),
        }
    }
}

/// The layout of a CSV file, apart from its cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a file")]
pub struct CsvLayout {
    /// The delimiter.
    pub delimiter: u8,
    /// Whether the first line contains the column names.
    pub header: bool,
    /// Whether lines end with CR LF.
    pub crlf: bool,
    /// Whether the last line ends with a line break.
    pub last_newline: bool,
    /// Whether the file starts with a byte-order mark.
    pub mark: bool,
    /// Whether the first line names the delimiter, as in `sep=;`, which spreadsheets read and write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub names_delimiter: bool,
}

impl Default for CsvLayout {
    fn default() -> Self {
        Self {
            delimiter: b',',
            header: true,
            crlf: false,
            last_newline: true,
            mark: false,
            names_delimiter: false,
        }
    }
}

impl Table {
    /// Reads a CSV file, which may be gzip-compressed.
    ///
    /// A column contains whole numbers, real numbers, or text. Whole numbers with leading zeros (`007`) are text.
    /// Columns without a name are called `x0`, `x1`, … by position. Blank lines are skipped.
    ///
    /// # Errors
    /// The file cannot be read, is empty or not UTF-8, or its rows do not form a table. The error names the file, line
    /// and column.
    pub fn read_csv(path: impl AsRef<Path>, options: &CsvOptions) -> Result<Self, DataError> {
        let path = path.as_ref();
        let content = file::read(path)?;
        Self::from_csv(&content.bytes, &file::name(path), options, Some(content.file_bytes))
    }

    /// Reads CSV from a pipe, such as standard input, up to the [memory limit](crate::memory). `name` is its name in
    /// messages. See [`Table::read_csv`].
    ///
    /// # Errors
    /// As for [`Table::read_csv`]; also, the table exceeds the limit.
    pub fn read_csv_from(
        pipe: impl Read,
        name: &str,
        options: &CsvOptions,
    ) -> Result<Self, DataError> {
        let content = file::read_pipe(pipe, name)?;
        Self::from_csv(&content.bytes, name, options, Some(content.file_bytes))
    }

    /// Reads CSV from memory; `name` is its name in messages. See [`Table::read_csv`].
    ///
    /// ```
    /// use bornite::data::{CsvOptions, Table};
    ///
    /// let text = b"age;city\n39;Bonn\n?;Essen\n";
    /// let table = Table::from_csv_bytes(text, "people.csv", &CsvOptions::default())?;
    /// assert_eq!(table.column("age")?.number(0), Some(39.0));
    /// assert!(table.column("age")?.is_missing(1));
    /// assert_eq!(table.to_csv(), text);
    /// # Ok::<(), bornite::data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Table::read_csv`].
    pub fn from_csv_bytes(
        bytes: &[u8],
        name: &str,
        options: &CsvOptions,
    ) -> Result<Self, DataError> {
        Self::from_csv(bytes, name, options, None)
    }

    /// Reads CSV from memory. `file_bytes` is the size of its file before decompression.
    fn from_csv(
        bytes: &[u8],
        name: &str,
        options: &CsvOptions,
        file_bytes: Option<u64>,
    ) -> Result<Self, DataError> {
        let context = Context { file_bytes, ..Context::default() };
        let table = parse(bytes, name, options, &context)?.table;
        for text_column in &options.text_columns {
            table.column(text_column)?;
        }
        Ok(table)
    }

    /// Writes the table as a CSV file, completely or not at all; gzip-compressed if the name ends in `.gz`.
    ///
    /// # Errors
    /// The file cannot be written. An existing file is then left unchanged.
    pub fn write_csv(&self, path: impl AsRef<Path>) -> Result<(), DataError> {
        file::write(path.as_ref(), |out| self.write_csv_to(out))
    }

    /// Formats the table as CSV in its own [layout](Table::layout).
    pub fn to_csv(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to memory cannot fail.
        let _ = self.write_csv_to(&mut out);
        out
    }

    /// Writes the table as CSV.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write_csv_to(&self, mut out: impl Write) -> io::Result<()> {
        let mut writer = CsvWriter::default();
        writer.write(self, &mut out)?;
        writer.finish(&mut out)?;
        out.flush()
    }
}

/// The context of a text that is parsed as rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context<'a> {
    /// The column names, if the text continues other rows.
    pub(super) names: Option<&'a [String]>,
    /// The number of preceding lines.
    pub(super) lines: u64,
    /// Whether more text follows. The last row may then be incomplete, and is left for later.
    pub(super) is_open: bool,
    /// The types of some columns; all others are text. If `None`, types are inferred from the cells.
    pub(super) types: Option<&'a BTreeMap<String, Storage>>,
    /// Whether to forget how cells were written.
    pub(super) drops_text: bool,
    /// The size of the file before decompression, if memory is limited in proportion to it.
    pub(super) file_bytes: Option<u64>,
}

/// Parsed rows.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) table: Table,
    /// The number of bytes they take.
    pub(super) used: usize,
    /// The number of lines before the text that follows.
    pub(super) lines: u64,
}

/// Parses CSV.
pub(super) fn parse(
    bytes: &[u8],
    name: &str,
    options: &CsvOptions,
    context: &Context<'_>,
) -> Result<Parsed, DataError> {
    let mark = context.lines == 0 && bytes.starts_with(b"\xef\xbb\xbf");
    let bytes = if mark { &bytes[3..] } else { bytes };
    check_utf8(bytes, name, context.lines)?;
    let named = if context.names.is_none() { named_delimiter(bytes) } else { None };
    let before = usize::from(mark) * 3 + named.map_or(0, |(_, length)| length);
    let bytes = &bytes[named.map_or(0, |(_, length)| length)..];
    let context = &Context { lines: context.lines + u64::from(named.is_some()), ..*context };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(DataError::EmptyFile { file: name.to_owned() });
    }
    let delimiter = options.delimiter.or(named.map(|(delimiter, _)| delimiter));
    let delimiter = delimiter.unwrap_or_else(|| find_delimiter(bytes));
    let mut rows = Rows::read(bytes, name, delimiter, context)?;
    let detected = match delimiter {
        b',' => Decimal::Point,
        _ if context.names.is_some() && context.types.is_some() => Decimal::Point,
        _ => rows.decimal(options, context.names.is_some()),
    };
    // A schema decides for pieces of a file, so that all of them are read alike. There are no decimal commas in a file
    // that is separated by commas.
    let decimal = match context.types {
        Some(types) if delimiter != b',' => Decimal::of_types(types.values()),
        Some(_) => Decimal::Point,
        None => detected,
    };
    let names = context.names;
    let header = names.is_none()
        && options.header.unwrap_or_else(|| rows.starts_with_names(options, detected));
    let headings = if header { rows.take_first() } else { vec![String::new(); rows.width()] };
    if rows.lines.is_empty() {
        return Err(DataError::HeaderOnly { file: name.to_owned() });
    }
    let names = names.map_or_else(|| rename(&headings), <[String]>::to_vec);
    // Commas between cells, or points in other numbers, tell that a comma in a number is not its decimal point.
    let has_points = decimal == Decimal::Point
        && context.types.is_none()
        && (delimiter == b',' || rows.have_commas() && rows.has(options, true, '.', ','));
    check_names(names.iter().map(String::as_str), &format!("'{name}'"))?;
    let columns: Vec<Column> = (0..names.len())
        .into_par_iter()
        .map(|j| {
            let reader = ColumnReader {
                file: name,
                name: &names[j],
                lines: &rows.lines,
                delimiter,
                decimal,
                has_points,
            };
            let heading = (header && headings[j] != names[j]).then(|| headings[j].clone());
            reader.column(&rows.columns[j], heading, options, context)
        })
        .collect::<Result<_, _>>()?;
    let crlf = bytes.iter().position(|&b| b == b'\n').is_some_and(|n| bytes[..n].ends_with(b"\r"));
    let last_newline = bytes[..rows.used].ends_with(b"\n");
    let names_delimiter = named.is_some();
    let layout = CsvLayout { delimiter, header, crlf, last_newline, mark, names_delimiter };
    let used = rows.used + before;
    Ok(Parsed { table: Table::new(columns)?.with_layout(layout), used, lines: rows.next_line })
}

fn check_utf8(bytes: &[u8], name: &str, lines: u64) -> Result<(), DataError> {
    let Err(e) = std::str::from_utf8(bytes) else { return Ok(()) };
    let line = lines as usize + bytes[..e.valid_up_to()].split(|&b| b == b'\n').count();
    let hint = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => " but UTF-16",
        [b'P', b'K', 3, 4, ..] => " but a zip archive or a spreadsheet",
        [b'P', b'A', b'R', b'1', ..] => " but Parquet, which this build does not read",
        _ => "",
    };
    Err(DataError::NotUtf8 { file: name.to_owned(), line, hint })
}

/// The column names: trimmed headings, or `x` and the position where that leaves nothing.
fn rename(headings: &[String]) -> Vec<String> {
    let name = |(j, heading): (usize, &String)| match heading.trim() {
        "" => format!("x{j}"),
        name => name.to_owned(),
    };
    headings.iter().enumerate().map(name).collect()
}

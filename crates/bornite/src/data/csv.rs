//! Reading and writing of CSV.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use ::csv::{ByteRecord, ReaderBuilder};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::header::names_columns;
use super::number::{Decimal, NumberFormat, Reading, Written, read};
use super::table::{TextForm, check_names};
use super::writer::CsvWriter;
use super::{Column, DataError, Storage, Table, file};
use crate::memory;

/// The delimiters to try, the most likely first.
const DELIMITERS: [u8; 4] = *b",;\t|";
/// The number of rows that determine the delimiter.
const PROBED_ROWS: usize = 64;
/// A text column is reported as numeric with invalid cells if at most this fraction of its cells are not numbers,
const FAULTY_SHARE: f64 = 0.05;
/// at least this many cells are numbers,
const FAULTY_NUMBERS: usize = 30;
/// and at least this many of these are distinct: words beside a few repeated numbers, as in 4, 6, 8 and rotary, are
/// labels.
const FAULTY_DISTINCT: usize = 12;
/// The memory per cell while a table is read.
const BYTES_PER_CELL: u128 = 32;
/// Whole numbers up to this one are exact as floats.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
/// The number of rows between checks of the memory limit.
const CHECKED_ROWS: usize = 1 << 14;
/// Words for a missing number, in any case, if all other cells of a column are numbers. In a text column, they may be
/// labels.
const NO_NUMBER: [&str; 14] = [
    "none",
    "nil",
    "missing",
    "unknown",
    "unk",
    "not available",
    "n.a.",
    "-",
    "--",
    ".",
    "..",
    "*",
    "#value!",
    "#div/0!",
];

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

/// The delimiter that a first line such as `sep=;` names, and the length of that line.
fn named_delimiter(bytes: &[u8]) -> Option<(u8, usize)> {
    let end = bytes.iter().take(16).position(|&b| b == b'\n')?;
    let line = bytes[..end].trim_ascii_end();
    // A tab is not the end of this line.
    let line = if bytes[..end].starts_with(b"sep=\t") { &bytes[..5] } else { line };
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let (word, delimiter) = line.split_at_checked(4)?;
    match delimiter {
        &[delimiter] if word.eq_ignore_ascii_case(b"sep=") && DELIMITERS.contains(&delimiter) => {
            Some((delimiter, end + 1))
        }
        _ => None,
    }
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

/// Detects the delimiter: one that gives the first rows the same width above 1 (the widest, then the most likely);
/// otherwise the one that splits the first row into the most cells.
fn find_delimiter(bytes: &[u8]) -> u8 {
    let widths = |delimiter| -> Vec<usize> {
        let records = reader(bytes, delimiter).into_byte_records().take(PROBED_ROWS);
        records.filter_map(|r| Some(r.ok()?.len())).collect()
    };
    let probes = DELIMITERS.map(|d| (d, widths(d)));
    if let Some(delimiter) = DELIMITERS.into_iter().find(|&d| d != b',' && has_commas(bytes, d)) {
        return delimiter;
    }
    let mut best = (false, 1, b',');
    for (delimiter, widths) in &probes {
        let Some(&first) = widths.first() else { continue };
        let even = first > 1 && widths.iter().all(|&w| w == first);
        if (even, first) > (best.0, best.1) {
            best = (even, first, *delimiter);
        }
    }
    best.2
}

/// Whether a delimiter splits the first rows into equally many cells that are all numbers, some with a comma. The first
/// row may be the header.
fn has_commas(bytes: &[u8], delimiter: u8) -> bool {
    [Decimal::Comma, Decimal::Grouped].into_iter().any(|d| are_numbers(bytes, delimiter, d))
}

fn are_numbers(bytes: &[u8], delimiter: u8, decimal: Decimal) -> bool {
    let (mut width, mut commas) = (None, 0);
    let records = reader(bytes, delimiter).into_byte_records().take(PROBED_ROWS);
    for (row, record) in records.filter_map(Result::ok).enumerate() {
        if record.len() < 2 || *width.get_or_insert(record.len()) != record.len() {
            return false;
        }
        for cell in record.iter().skip(if row == 0 { record.len() } else { 0 }) {
            let Ok(cell) = std::str::from_utf8(cell).map(str::trim) else { return false };
            let reading = if cell.is_empty() { None } else { Some(decimal.read(cell)) };
            if !matches!(reading, None | Some(Reading::Integer(_) | Reading::Real(_))) {
                return false;
            }
            commas += usize::from(cell.contains(','));
        }
    }
    commas > 0
}

fn reader(bytes: &[u8], delimiter: u8) -> ::csv::Reader<&[u8]> {
    ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(bytes)
}

/// The column names: trimmed headings, or `x` and the position where that leaves nothing.
fn rename(headings: &[String]) -> Vec<String> {
    let name = |(j, heading): (usize, &String)| match heading.trim() {
        "" => format!("x{j}"),
        name => name.to_owned(),
    };
    headings.iter().enumerate().map(name).collect()
}

/// The texts of one column, concatenated.
#[derive(Default)]
struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    fn get(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.text[start..self.ends[row]]
    }

    fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.ends.len()).map(|row| self.get(row))
    }
}

/// All rows of a text, by column.
struct Rows {
    columns: Vec<Texts>,
    /// The line in which each row starts.
    lines: Vec<u64>,
    /// The number of bytes of all rows, and the number of lines before the text that follows.
    used: usize,
    next_line: u64,
}

impl Rows {
    fn read(
        bytes: &[u8],
        name: &str,
        delimiter: u8,
        context: &Context<'_>,
    ) -> Result<Self, DataError> {
        let mut rows =
            Self { columns: Vec::new(), lines: Vec::new(), used: bytes.len(), next_line: 0 };
        let mut reader = reader(bytes, delimiter);
        let mut record = ByteRecord::new();
        let io = |e: ::csv::Error| DataError::Io {
            file: name.to_owned(),
            action: "read",
            source: e.into(),
        };
        let check_closed = |(line, spans_lines)| {
            if spans_lines && is_odd(bytes) {
                return Err(DataError::UnclosedQuote { file: name.to_owned(), line });
            }
            Ok(())
        };
        let mut last = (0, false);
        let mut ragged = None;
        while reader.read_byte_record(&mut record).map_err(io)? {
            if let Some(error) = ragged.take() {
                check_closed(last)?;
                return Err(error);
            }
            let place = record.position();
            let line = context.lines + place.map_or(0, ::csv::Position::line);
            if rows.lines.is_empty() {
                let width = context.names.map_or(record.len(), <[String]>::len);
                rows.columns.resize_with(width, Texts::default);
            }
            last = (line, record.iter().any(|cell| cell.contains(&b'\n')));
            if record.len() != rows.columns.len() {
                // If more text follows, the last row may be incomplete.
                let (expected, found) = (rows.columns.len(), record.len());
                let (file, delimiter) = (name.to_owned(), char::from(delimiter));
                ragged = Some(DataError::Ragged { file, line, expected, found, delimiter });
            }
            if context.is_open {
                rows.used = place.map_or(0, |p| p.byte() as usize);
                rows.next_line = line - 1;
            }
            if ragged.is_some() {
                continue;
            }
            for (column, cell) in rows.columns.iter_mut().zip(&record) {
                // The whole text is valid UTF-8, and cells end at ASCII characters.
                column.text.push_str(&String::from_utf8_lossy(cell));
                column.ends.push(column.text.len());
            }
            rows.lines.push(line);
            if rows.lines.len().is_multiple_of(CHECKED_ROWS) {
                rows.check_memory(bytes.len(), name, context.file_bytes)?;
            }
        }
        match ragged {
            Some(_) if context.is_open => {}
            Some(error) => {
                check_closed(last)?;
                return Err(error);
            }
            None if context.is_open => rows.drop_last(),
            None => check_closed(last)?,
        }
        Ok(rows)
    }

    /// Rejects more cells than the size of the file allows, because a few bytes of gzip can contain many rows.
    fn check_memory(
        &self,
        bytes: usize,
        name: &str,
        file_bytes: Option<u64>,
    ) -> Result<(), DataError> {
        let Some(file_bytes) = file_bytes else { return Ok(()) };
        let cells = self.lines.len() as u128 * self.columns.len() as u128;
        let needed = bytes as u128 + cells * BYTES_PER_CELL;
        memory::check("a table", needed, file_bytes)
            .map_err(|source| DataError::Memory { file: name.to_owned(), source })
    }

    fn drop_last(&mut self) {
        self.lines.pop();
        for column in &mut self.columns {
            column.ends.pop();
            column.text.truncate(column.ends.last().copied().unwrap_or(0));
        }
    }

    fn width(&self) -> usize {
        self.columns.len()
    }

    /// Whether the first row contains the column names.
    fn starts_with_names(&self, options: &CsvOptions, decimal: Decimal) -> bool {
        let is_known = |text: &&str| !options.missing.iter().any(|m| m == text);
        let column = |texts| {
            let cells = Texts::iter(texts).map(str::trim);
            (cells.clone().next().filter(is_known), cells.skip(1).filter(is_known))
        };
        names_columns(self.columns.iter().map(column), decimal)
    }

    /// How the numbers are written: with commas if a column contains nothing but whole numbers and numbers with a
    /// comma, not all of which could be thousands, and no column is such a one with points. The first row may be the
    /// header, unless rows precede it.
    fn decimal(&self, options: &CsvOptions, has_names: bool) -> Decimal {
        let has = |decimal, thousands| self.has(options, has_names, decimal, thousands);
        if has(',', '.') && !has('.', ',') { Decimal::Comma } else { Decimal::Point }
    }

    /// Whether a column contains nothing but whole numbers and numbers with these separators, and they cannot mean
    /// anything else in at least one cell.
    fn has(&self, options: &CsvOptions, has_names: bool, decimal: char, thousands: char) -> bool {
        let is_known = |text: &&str| !options.missing.iter().any(|m| m == text);
        self.columns.par_iter().any(|texts| {
            let cells = texts.iter().skip(usize::from(!has_names)).map(str::trim);
            let mut is_clear = false;
            let mut cells = cells.filter(is_known).filter(|text| !is_word(text));
            let are_numbers = cells.all(|text| match Written::of(text, decimal, thousands) {
                Some(number) => {
                    is_clear |= !number.is_ambiguous;
                    true
                }
                None => matches!(read(text), Reading::Integer(_)),
            });
            are_numbers && is_clear
        })
    }

    /// Whether a cell contains a comma.
    fn have_commas(&self) -> bool {
        self.columns.iter().any(|texts| texts.text.contains(','))
    }

    fn take_first(&mut self) -> Vec<String> {
        self.lines.remove(0);
        let first = |column: &mut Texts| {
            let length = column.ends.remove(0);
            column.ends.iter_mut().for_each(|e| *e -= length);
            column.text.drain(..length).collect()
        };
        self.columns.iter_mut().map(first).collect()
    }
}

/// Whether the text has an odd number of quotes.
fn is_odd(bytes: &[u8]) -> bool {
    bytes.split(|&b| b == b'"').count() % 2 == 0
}

/// Converts texts to a column.
struct ColumnReader<'a> {
    file: &'a str,
    name: &'a str,
    lines: &'a [u64],
    delimiter: u8,
    /// How the numbers of the file are written.
    decimal: Decimal,
    /// Whether a comma in a number can only be one between thousands.
    has_points: bool,
}

impl ColumnReader<'_> {
    fn column(
        &self,
        texts: &Texts,
        heading: Option<String>,
        options: &CsvOptions,
        context: &Context<'_>,
    ) -> Result<Column, DataError> {
        let cell = |text: &'_ str| {
            let text = text.trim();
            !options.missing.iter().any(|m| m == text)
        };
        let mut known: Vec<bool> = texts.iter().map(cell).collect();
        let as_text = options.text_columns.iter().any(|c| c == self.name);
        let decimal = self.decimal(texts, &known, context);
        let this = &Self { decimal, ..*self };
        let is_text = context.types.is_some_and(|types| {
            types.get(self.name).copied().unwrap_or(Storage::Labels) == Storage::Labels
        });
        if !as_text && !is_text {
            without_words(texts, &mut known, decimal);
        }
        let kind = match context.types {
            _ if as_text => CellKind::Labels,
            None => this.kind(texts, &known)?,
            Some(types) => {
                let storage = types.get(self.name).copied().unwrap_or(Storage::Labels);
                this.cells_of(storage, texts, &known)?
            }
        };
        let column = match kind {
            CellKind::Integers(values) => Column::integers(self.name, values),
            CellKind::Numbers(values, format) => {
                let cells = values.iter().zip(texts.iter()).zip(&known);
                let cells = cells.filter(|(_, known)| **known).map(|((&x, t), _)| (x, t.trim()));
                let format = format.unwrap_or_else(|| NumberFormat::of(&cells, decimal));
                Column::numbers(self.name, values).with_format(format)
            }
            CellKind::Labels => {
                let cells = texts.iter().zip(&known);
                Column::labels(self.name, cells.map(|(t, known)| known.then(|| t.trim())))
            }
        };
        if context.drops_text {
            return Ok(column);
        }
        let form = text_form(&column, texts, &known, heading);
        Ok(column.with_form(form))
    }

    /// How the numbers of this column are written: with commas between thousands if all of its cells are numbers then,
    /// some with such a comma, and at least one that cannot be a decimal comma. If the type of the column is given, it
    /// decides instead.
    fn decimal(&self, texts: &Texts, known: &[bool], context: &Context<'_>) -> Decimal {
        if self.decimal != Decimal::Point || !texts.text.contains(',') {
            return self.decimal;
        }
        let is_grouped = match context.types.map(|types| types.get(self.name)) {
            None => self.are_grouped(texts, known),
            Some(Some(Storage::Numbers(format))) => {
                !format.has_comma() && (format.is_grouped() || self.delimiter == b',')
            }
            Some(Some(Storage::Integers)) => self.delimiter == b',',
            Some(Some(Storage::Labels) | None) => false,
        };
        if is_grouped { Decimal::Grouped } else { Decimal::Point }
    }

    fn are_grouped(&self, texts: &Texts, known: &[bool]) -> bool {
        let (mut is_grouped, mut is_clear) = (false, self.has_points);
        let mut cells = texts.iter().zip(known).filter(|(_, known)| **known);
        let are_numbers = cells.all(|(text, _)| {
            let text = text.trim();
            match Written::of(text, '.', ',').filter(|number| number.is_grouped) {
                Some(number) => {
                    is_grouped = true;
                    is_clear |= !number.is_ambiguous;
                    true
                }
                None => is_word(text) || is_number(read(text)),
            }
        });
        are_numbers && is_grouped && is_clear
    }

    /// Reads cells as a given type, each by itself, so that pieces of a file are read like the whole. If a cell is not
    /// a number, or would be rounded, all of them become text.
    fn cells_of(
        &self,
        storage: Storage,
        texts: &Texts,
        known: &[bool],
    ) -> Result<CellKind, DataError> {
        if storage == Storage::Labels {
            return Ok(CellKind::Labels);
        }
        let readings: Vec<Option<Reading>> =
            texts.iter().zip(known).map(|(t, &k)| k.then(|| self.decimal.read(t.trim()))).collect();
        let (mut are_whole, mut are_exact) = (true, true);
        for (row, reading) in readings.iter().enumerate() {
            match reading {
                Some(Reading::Integer(x)) => are_exact &= x.unsigned_abs() <= EXACT,
                Some(Reading::Real(_)) => are_whole = false,
                Some(Reading::Huge(_)) => (are_whole, are_exact) = (false, false),
                Some(Reading::Infinite) => {
                    let (line, text) = (self.lines[row], texts.get(row).trim().to_owned());
                    let place = format!("'{}', line {line}", self.file);
                    return Err(DataError::Infinite { place, column: self.name.to_owned(), text });
                }
                Some(Reading::Padded | Reading::Text) => return Ok(CellKind::Labels),
                None => {}
            }
        }
        let numbers = || readings.iter().map(|r| number(*r)).collect();
        Ok(match storage {
            Storage::Numbers(format) => {
                let format = match self.decimal {
                    Decimal::Point | Decimal::Grouped => format.with_point(),
                    Decimal::Comma => format,
                };
                CellKind::Numbers(numbers(), Some(format))
            }
            Storage::Integers if are_whole => CellKind::Integers(
                readings
                    .iter()
                    .map(|r| if let Some(Reading::Integer(x)) = r { Some(*x) } else { None })
                    .collect(),
            ),
            Storage::Integers if are_exact => {
                CellKind::Numbers(numbers(), Some(NumberFormat::Shortest))
            }
            Storage::Integers | Storage::Labels => CellKind::Labels,
        })
    }

    fn kind(&self, texts: &Texts, known: &[bool]) -> Result<CellKind, DataError> {
        let readings: Vec<Option<Reading>> =
            texts.iter().zip(known).map(|(t, &k)| k.then(|| self.decimal.read(t.trim()))).collect();
        let count = |f: fn(&Reading) -> bool| readings.iter().flatten().filter(|&r| f(r)).count();
        let real = count(|r| matches!(r, Reading::Real(_)));
        let huge = count(|r| matches!(r, Reading::Huge(_)));
        let numbers = count(|r| matches!(r, Reading::Integer(_))) + real + huge;
        let infinite = count(|r| *r == Reading::Infinite);
        let texts_only = count(|r| *r == Reading::Text);
        let padded = count(|r| *r == Reading::Padded);
        let find = |f: fn(&Reading) -> bool| {
            let row = readings.iter().position(|r| r.as_ref().is_some_and(f)).unwrap_or(0);
            (self.lines[row], texts.get(row).trim().to_owned())
        };
        if infinite > 0 && texts_only + padded == 0 {
            let (line, text) = find(|r| *r == Reading::Infinite);
            let place = format!("'{}', line {line}", self.file);
            return Err(DataError::Infinite { place, column: self.name.to_owned(), text });
        }
        let few = (texts_only as f64) <= FAULTY_SHARE * numbers as f64;
        if texts_only > 0 && padded == 0 && few && numbers >= FAULTY_NUMBERS {
            let mut distinct: Vec<u64> = readings.iter().map(|r| number(*r).to_bits()).collect();
            distinct.sort_unstable();
            distinct.dedup();
            let words = readings.iter().zip(texts.iter());
            let words = words.filter(|(r, _)| **r == Some(Reading::Text)).map(|(_, text)| text);
            let have = |what: fn(char) -> bool| words.clone().all(|word| word.contains(what));
            // Letters with digits next to whole numbers, as in 117 and c168, are codes.
            let are_codes = real + huge == 0 && have(|c| c.is_ascii_digit());
            let are_labels = distinct.len() <= FAULTY_DISTINCT || are_codes;
            if !(are_labels && have(char::is_alphabetic)) {
                let (line, text) = find(|r| *r == Reading::Text);
                let (file, column) = (self.file.to_owned(), self.name.to_owned());
                return Err(DataError::NotANumber { file, line, column, text, numbers });
            }
        }
        if texts_only + padded + infinite > 0 || numbers == 0 {
            return Ok(CellKind::Labels);
        }
        if huge > 0 && real == 0 && !Self::are_floats(texts, known) {
            // As floats, some of the numbers would be equal.
            return Ok(CellKind::Labels);
        }
        let integers: Option<Vec<Option<i64>>> = readings
            .iter()
            .map(|r| match r {
                Some(Reading::Integer(x)) => Some(Some(*x)),
                None => Some(None),
                _ => None,
            })
            .collect();
        // Only real numbers have a format, so whole numbers with separators between thousands count as such, if that is
        // exact.
        let has_form = self.decimal != Decimal::Point
            && texts.iter().zip(known).any(|(text, known)| *known && text.contains([',', '.']));
        let are_exact =
            |values: &Vec<Option<i64>>| values.iter().flatten().all(|x| x.unsigned_abs() <= EXACT);
        Ok(match integers {
            Some(values) if !has_form || !are_exact(&values) => CellKind::Integers(values),
            _ => CellKind::Numbers(readings.iter().map(|r| number(*r)).collect(), None),
        })
    }

    /// Whether the observed cells are whole numbers that floats represent exactly.
    fn are_floats(texts: &Texts, known: &[bool]) -> bool {
        let is_float = |text: &str| {
            let digits = text.trim().trim_start_matches('+');
            digits.parse::<f64>().is_ok_and(|x| format!("{x:.0}") == digits)
        };
        texts.iter().zip(known).all(|(text, known)| !known || is_float(text))
    }
}

enum CellKind {
    Integers(Vec<Option<i64>>),
    /// Real numbers, and how they are written if that is known.
    Numbers(Vec<f64>, Option<NumberFormat>),
    Labels,
}

/// Whether this word means a missing number.
fn is_word(text: &str) -> bool {
    NO_NUMBER.iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn is_number(reading: Reading) -> bool {
    match reading {
        Reading::Integer(_) | Reading::Real(_) | Reading::Huge(_) => true,
        Reading::Infinite | Reading::Padded | Reading::Text => false,
    }
}

/// Treats words such as `None` as missing if all other cells are numbers.
fn without_words(texts: &Texts, known: &mut [bool], decimal: Decimal) {
    let mut words = Vec::new();
    let mut are_numbers = false;
    for (row, text) in texts.iter().enumerate().filter(|(row, _)| known[*row]) {
        let text = text.trim();
        if is_word(text) {
            words.push(row);
            continue;
        }
        if !is_number(decimal.read(text)) {
            return;
        }
        are_numbers = true;
    }
    if are_numbers {
        for row in words {
            known[row] = false;
        }
    }
}

fn number(reading: Option<Reading>) -> f64 {
    match reading {
        Some(Reading::Integer(x)) => x as f64,
        Some(Reading::Real(x) | Reading::Huge(x)) => x,
        Some(Reading::Infinite | Reading::Padded | Reading::Text) | None => f64::NAN,
    }
}

/// The most common text of a missing cell, and the texts that differ from the column's own format.
fn text_form(column: &Column, texts: &Texts, known: &[bool], heading: Option<String>) -> TextForm {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for (text, _) in texts.iter().zip(known).filter(|(_, known)| !**known) {
        *counts.entry(text).or_default() += 1;
    }
    let missing = counts.iter().max_by_key(|(_, n)| **n).map_or("", |(text, _)| *text).to_owned();
    let differs = |row: &usize| {
        let text = texts.get(*row);
        !column.writes(*row, text).unwrap_or_else(|| missing == text)
    };
    let exceptions =
        (0..known.len()).filter(differs).map(|row| (row, texts.get(row).to_owned())).collect();
    TextForm::of_text(heading, missing, exceptions)
}

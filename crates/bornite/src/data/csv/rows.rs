//! Rows of texts, by column.

use ::csv::ByteRecord;
use rayon::prelude::*;

use super::cells::is_word;
use super::delimiter::reader;
use super::{Context, CsvOptions};
use crate::data::DataError;
use crate::data::header::names_columns;
use crate::data::number::{Decimal, Reading, Written, read};
use crate::memory;

/// The memory per cell while a table is read.
const BYTES_PER_CELL: u128 = 32;
/// The number of rows between checks of the memory limit.
const CHECKED_ROWS: usize = 1 << 14;

/// The texts of one column, concatenated.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) text: String,
    pub(super) ends: Vec<usize>,
}

impl Texts {
    pub(super) fn get(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.text[start..self.ends[row]]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.ends.len()).map(|row| self.get(row))
    }
}

/// All rows of a text, by column.
pub(super) struct Rows {
    pub(super) columns: Vec<Texts>,
    /// The line in which each row starts.
    pub(super) lines: Vec<u64>,
    /// The number of bytes of all rows, and the number of lines before the text that follows.
    pub(super) used: usize,
    pub(super) next_line: u64,
}

impl Rows {
    pub(super) fn read(
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

    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Whether the first row contains the column names.
    pub(super) fn starts_with_names(&self, options: &CsvOptions, decimal: Decimal) -> bool {
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
    pub(super) fn decimal(&self, options: &CsvOptions, has_names: bool) -> Decimal {
        let has = |decimal, thousands| self.has(options, has_names, decimal, thousands);
        if has(',', '.') && !has('.', ',') { Decimal::Comma } else { Decimal::Point }
    }

    /// Whether a column contains nothing but whole numbers and numbers with these separators, and they cannot mean
    /// anything else in at least one cell.
    pub(super) fn has(
        &self,
        options: &CsvOptions,
        has_names: bool,
        decimal: char,
        thousands: char,
    ) -> bool {
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
    pub(super) fn have_commas(&self) -> bool {
        self.columns.iter().any(|texts| texts.text.contains(','))
    }

    pub(super) fn take_first(&mut self) -> Vec<String> {
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

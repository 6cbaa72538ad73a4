//! The types and cells of columns, from their texts.

use super::rows::Texts;
use super::{Context, CsvOptions};
use crate::data::number::{Decimal, NumberFormat, Reading, Written, read};
use crate::data::table::TextForm;
use crate::data::{Column, DataError, Storage};

/// A text column is reported as numeric with invalid cells if at most this fraction of its cells are not numbers,
const FAULTY_SHARE: f64 = 0.05;
/// at least this many cells are numbers,
const FAULTY_NUMBERS: usize = 30;
/// and at least this many of these are distinct: words beside a few repeated numbers, as in 4, 6, 8 and rotary, are
/// labels.
const FAULTY_DISTINCT: usize = 12;
/// Whole numbers up to this one are exact as floats.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
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

/// Converts texts to a column.
pub(super) struct ColumnReader<'a> {
    pub(super) file: &'a str,
    pub(super) name: &'a str,
    pub(super) lines: &'a [u64],
    pub(super) delimiter: u8,
    /// How the numbers of the file are written.
    pub(super) decimal: Decimal,
    /// Whether a comma in a number can only be one between thousands.
    pub(super) has_points: bool,
}

impl ColumnReader<'_> {
    pub(super) fn column(
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
pub(super) fn is_word(text: &str) -> bool {
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

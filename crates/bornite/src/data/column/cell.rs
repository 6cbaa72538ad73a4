//! Single cells: their types, and the reasons why a column rejects them.

use crate::data::number::{Reading, read};
use crate::data::{ColumnSchema, DataError};
use crate::names::{nearest, shortest_number};

/// The value of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A whole number.
    Integer(i64),
    /// A real number.
    Number(f64),
    /// Text, which may be the text of a number.
    Text(&'a str),
}

impl Cell<'_> {
    /// The cell as a finite number.
    pub(crate) fn number(self) -> Option<f64> {
        match self {
            Cell::Integer(x) => Some(x as f64),
            Cell::Number(x) => Some(x).filter(|x| x.is_finite()),
            Cell::Text(t) => match read(t) {
                Reading::Integer(x) => Some(x as f64),
                Reading::Real(x) | Reading::Huge(x) => Some(x),
                Reading::Padded => t.parse().ok(),
                Reading::Infinite | Reading::Text => None,
            },
        }
    }

    /// The cell as a whole number.
    pub(super) fn integer(self) -> Option<i64> {
        let whole = |x: f64| (x.fract() == 0.0 && x.abs() < 2f64.powi(63)).then_some(x as i64);
        match self {
            Cell::Integer(x) => Some(x),
            Cell::Number(x) => whole(x),
            Cell::Text(t) => t.parse().ok().or_else(|| whole(self.number()?)),
        }
    }

    /// The nearest whole number, and whether the cell is exactly that number.
    pub(super) fn nearest_integer(self) -> Option<(i128, bool)> {
        match self.integer() {
            Some(x) => Some((i128::from(x), true)),
            None => self.number().map(|x| (x.round() as i128, false)),
        }
    }

    /// The cell as text.
    pub(crate) fn text(self) -> String {
        match self {
            Cell::Integer(x) => x.to_string(),
            Cell::Number(x) => x.to_string(),
            Cell::Text(t) => t.to_owned(),
        }
    }
}

/// A decoded cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decoded<'a> {
    Missing,
    Text(&'a str),
    /// Text composed from the values.
    Written(String),
    Integer(i64),
    Number(f64),
}

impl Decoded<'_> {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Decoded::Text(text) => Some(text),
            Decoded::Written(text) => Some(text),
            Decoded::Missing | Decoded::Integer(_) | Decoded::Number(_) => None,
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Decoded::Missing | Decoded::Written(_) => None,
            Decoded::Text(text) => text.parse().ok(),
            Decoded::Integer(x) => Some(*x as f64),
            Decoded::Number(x) => Some(*x),
        }
    }

    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Decoded::Missing | Decoded::Written(_) => None,
            Decoded::Text(text) => text.parse().ok(),
            Decoded::Integer(x) => Some(*x),
            Decoded::Number(x) => Some(x.round() as i64),
        }
    }
}

/// The reason why a cell does not match a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Problem {
    /// The label is not in the domain.
    Unseen,
    /// The number is outside the column's range.
    OutOfRange { low: f64, high: f64 },
    /// The number lies between two grid points. The values of the nearest one are written, with this ln F′.
    Between { slope: f64, expected: &'static str },
    /// The type is right, but the value is not of the expected kind.
    Beyond(&'static str),
    /// The type differs from the expected one.
    Type(&'static str),
}

impl Problem {
    /// The error for a cell in a row, counted from 1; 0 if it does not belong to a row.
    pub(crate) fn error(self, row: usize, column: &ColumnSchema, cell: Cell<'_>) -> DataError {
        let (name, text) = (column.name.clone(), cell.text());
        match self {
            Problem::Unseen => {
                let labels = column.kind.coding().labels();
                let hint = nearest(labels.iter().map(String::as_str), &text);
                let labels = labels.len();
                DataError::UnseenLabel { row, column: name, label: text, labels, hint }
            }
            Problem::OutOfRange { low, high } => {
                let value = cell.number().unwrap_or(f64::NAN);
                let text = match cell {
                    Cell::Number(x) => shortest_number(x),
                    Cell::Integer(_) | Cell::Text(_) => text,
                };
                DataError::OutOfRange { row, column: name, value, text, low, high }
            }
            Problem::Between { expected, .. }
            | Problem::Beyond(expected)
            | Problem::Type(expected) => DataError::WrongType { row, column: name, text, expected },
        }
    }
}

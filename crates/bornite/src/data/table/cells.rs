//! The cells of a column: real numbers, whole numbers or text.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::data::number::NumberFormat;

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Real numbers; NaN is a missing cell.
    Numbers(Numbers),
    /// Whole numbers.
    Integers(Integers),
    /// Text, with a dictionary.
    Labels(Labels),
}

/// Real numbers, and how they are written. Two missing cells are equal.
#[derive(Clone, Debug)]
pub struct Numbers {
    pub(super) values: Vec<f64>,
    pub(super) format: NumberFormat,
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        self.format == other.format
            && self.values.len() == other.values.len()
            && self.values.iter().zip(&other.values).all(same)
    }
}

impl Numbers {
    /// The values; NaN is a missing cell.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The format in which they are written.
    pub fn format(&self) -> NumberFormat {
        self.format
    }
}

/// Whole numbers, in one byte each if they fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Integers {
    values: Whole,
    /// Empty if no cell is missing.
    missing: Vec<bool>,
}

#[derive(Clone, Debug, PartialEq)]
enum Whole {
    /// Shared with batches that use them as codes.
    Bytes(Arc<Vec<u8>>),
    Wide(Vec<i64>),
}

impl Integers {
    pub(super) fn from_bytes(values: Vec<u8>) -> Self {
        Self { values: Whole::Bytes(Arc::new(values)), missing: Vec::new() }
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        match &self.values {
            Whole::Bytes(v) => v.len(),
            Whole::Wide(v) => v.len(),
        }
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number in this row; `None` if it is missing.
    pub fn get(&self, row: usize) -> Option<i64> {
        if self.missing.get(row).copied().unwrap_or(false) {
            return None;
        }
        Some(match &self.values {
            Whole::Bytes(v) => i64::from(v[row]),
            Whole::Wide(v) => v[row],
        })
    }

    /// The cells in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<i64>> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }

    /// The cells as bytes, if none is missing and all fit.
    pub(crate) fn bytes(&self) -> Option<&Arc<Vec<u8>>> {
        match &self.values {
            Whole::Bytes(bytes) if self.missing.is_empty() => Some(bytes),
            Whole::Bytes(_) | Whole::Wide(_) => None,
        }
    }

    pub(super) fn select(&self, rows: &[usize]) -> Self {
        let values = match &self.values {
            Whole::Bytes(v) => Whole::Bytes(Arc::new(rows.iter().map(|&r| v[r]).collect())),
            Whole::Wide(v) => Whole::Wide(rows.iter().map(|&r| v[r]).collect()),
        };
        let missing = match &self.missing[..] {
            [] => Vec::new(),
            some => rows.iter().map(|&r| some[r]).collect(),
        };
        Self { values, missing }
    }
}

impl FromIterator<Option<i64>> for Integers {
    fn from_iter<I: IntoIterator<Item = Option<i64>>>(cells: I) -> Self {
        let cells: Vec<Option<i64>> = cells.into_iter().collect();
        let missing = if cells.iter().any(Option::is_none) {
            cells.iter().map(Option::is_none).collect()
        } else {
            Vec::new()
        };
        let bytes: Option<Vec<u8>> =
            cells.iter().map(|x| u8::try_from(x.unwrap_or(0)).ok()).collect();
        let values = match bytes {
            Some(bytes) => Whole::Bytes(Arc::new(bytes)),
            None => Whole::Wide(cells.into_iter().map(|x| x.unwrap_or(0)).collect()),
        };
        Self { values, missing }
    }
}

/// Text, with a dictionary.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    pub(super) codes: Vec<u32>,
    pub(super) labels: Vec<String>,
}

impl Labels {
    /// The code of a missing cell.
    pub const MISSING: u32 = u32::MAX;

    /// The position in the dictionary of every cell, or [`Labels::MISSING`].
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The dictionary, in the order of first appearance.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The label in this row; `None` if it is missing.
    pub fn get(&self, row: usize) -> Option<&str> {
        self.labels.get(self.codes[row] as usize).map(String::as_str)
    }
}

impl<'a> FromIterator<Option<&'a str>> for Labels {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(cells: I) -> Self {
        let mut known: BTreeMap<&'a str, u32> = BTreeMap::new();
        let mut labels = Vec::new();
        let mut code = |cell: Option<&'a str>| {
            let Some(label) = cell else { return Self::MISSING };
            *known.entry(label).or_insert_with(|| {
                labels.push(label.to_owned());
                labels.len() as u32 - 1
            })
        };
        let codes = cells.into_iter().map(&mut code).collect();
        Self { codes, labels }
    }
}

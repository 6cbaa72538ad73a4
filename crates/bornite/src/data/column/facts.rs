//! Facts about the cells of a column, used to infer its kind.

use std::collections::BTreeMap;

use super::infer::InferOptions;
use super::{ColumnKind, Outside};
use crate::data::{Cells, Column, DataError, Labels, Storage};

/// 2⁵³: all whole numbers up to it are representable as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A column whose kind is to be inferred.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(super) column: &'a Column,
    pub(super) options: &'a InferOptions,
    pub(super) cells: KnownCells,
}

/// The observed cells of a column.
#[derive(Debug)]
pub(crate) enum KnownCells {
    Nothing,
    Text,
    Whole { min: i64, max: i64, values: Vec<i64> },
    Real { values: Vec<f64> },
}

impl KnownCells {
    /// Collects the observed cells of a column.
    ///
    /// # Errors
    /// A number is infinite.
    pub(crate) fn of(column: &Column) -> Result<Self, DataError> {
        Ok(match column.cells() {
            Cells::Labels(c) if c.codes().iter().all(|&c| c == Labels::MISSING) => Self::Nothing,
            Cells::Labels(_) => Self::Text,
            Cells::Integers(c) => Self::whole(c.iter().flatten().collect()),
            Cells::Numbers(c) => {
                if let Some(row) = c.values().iter().position(|x| x.is_infinite()) {
                    return Err(DataError::Infinite {
                        place: format!("row {}", row + 1),
                        column: column.name().to_owned(),
                        text: c.values()[row].to_string(),
                    });
                }
                let known = || c.values().iter().copied().filter(|x| !x.is_nan());
                if known().all(|x| x.fract() == 0.0 && x.abs() <= EXACT) {
                    Self::whole(known().map(|x| x as i64).collect())
                } else {
                    Self::Real { values: known().collect() }
                }
            }
        })
    }

    fn whole(values: Vec<i64>) -> Self {
        match (values.iter().min().copied(), values.iter().max().copied()) {
            (Some(min), Some(max)) => Self::Whole { min, max, values },
            _ => Self::Nothing,
        }
    }

    /// The observed cells as numbers, if they are numbers.
    pub(super) fn numbers(&self) -> Option<Vec<f64>> {
        match self {
            Self::Whole { values, .. } => Some(values.iter().map(|&x| x as f64).collect()),
            Self::Real { values } => Some(values.clone()),
            Self::Nothing | Self::Text => None,
        }
    }
}

impl<'a> Facts<'a> {
    pub(crate) fn new(column: &'a Column, options: &'a InferOptions) -> Result<Self, DataError> {
        Ok(Self { column, options, cells: KnownCells::of(column)? })
    }

    /// The expected fraction of cells outside the domain of a kind, estimated from rare values in the data.
    ///
    /// For labels, this is the Good–Turing estimate: unseen labels are as likely as labels seen once. For numbers, the
    /// next one exceeds the largest with probability 1 / (n + 1), or less if several rows share the largest.
    pub(crate) fn outside(&self, kind: &ColumnKind, storage: Storage) -> f64 {
        let Some(outside) = kind.coding().outside(storage) else { return 0.0 };
        let known = self.column.len() - self.column.num_missing();
        let of_rare_values = || match (outside, &self.cells, kind.coding().labels().is_empty()) {
            (Outside::Numbers(_), KnownCells::Whole { min, max, values }, true) => {
                let rows = |end: &i64| values.iter().filter(|x| *x == end).count().max(1) as f64;
                let below = if *min == 0 { 0.0 } else { 1.0 / rows(min) };
                below + 1.0 / rows(max)
            }
            _ => (self.counts().iter().filter(|c| c.1 == 1).count() as f64).max(0.5),
        };
        let expected = kind.coding().expected_outside().unwrap_or_else(of_rare_values);
        (expected / (known as f64 + 1.0)).min(0.5)
    }

    /// Whether the cells are text.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.column.cells(), Cells::Labels(_))
    }

    /// Whether there are few distinct numbers: at most `max_distinct`, with at least 4 rows for each; or a single
    /// number.
    pub(super) fn is_coarse<T: Ord + Copy>(&self, values: &[T]) -> bool {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let few = sorted.len() <= self.options.max_distinct && sorted.len() * 4 <= values.len();
        sorted.len() == 1 || few
    }

    /// The labels with their numbers of rows. Numbers are converted to text.
    pub(super) fn counts(&self) -> Vec<(String, usize)> {
        let mut counts = BTreeMap::<String, usize>::new();
        match self.column.cells() {
            Cells::Labels(c) => {
                let mut rows = vec![0; c.labels().len()];
                for &code in c.codes().iter().filter(|&&c| c != Labels::MISSING) {
                    rows[code as usize] += 1;
                }
                // Selecting rows may leave unused labels in the dictionary.
                let used = c.labels().iter().cloned().zip(rows).filter(|(_, n)| *n > 0);
                counts.extend(used);
            }
            Cells::Integers(c) => {
                let mut numbers = BTreeMap::<i64, usize>::new();
                c.iter().flatten().for_each(|x| *numbers.entry(x).or_default() += 1);
                counts.extend(numbers.into_iter().map(|(x, n)| (x.to_string(), n)));
            }
            Cells::Numbers(c) => {
                let mut sorted: Vec<f64> =
                    c.values().iter().copied().filter(|x| !x.is_nan()).collect();
                sorted.sort_unstable_by(f64::total_cmp);
                for run in sorted.chunk_by(|a, b| a == b) {
                    // Adding 0 turns −0 into 0.
                    *counts.entry((run[0] + 0.0).to_string()).or_default() += run.len();
                }
            }
        }
        counts.into_iter().collect()
    }
}

//! Whole numbers with a small range.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::outside::Tails;
use super::{
    Coding, ColumnKind, Decoded, Encoder, Ends, MAX_VALUES, Outside, Parts, Problem, finite_set,
    values,
};
use crate::data::Storage;
use crate::domain::Domain;

/// A whole number from `min` to `max`. A finite variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integer {
    /// The smallest number.
    pub min: i64,
    /// The largest number.
    pub max: i64,
}

impl From<Integer> for ColumnKind {
    fn from(kind: Integer) -> Self {
        ColumnKind::Integer(kind)
    }
}

impl Coding for Integer {
    fn name(&self) -> &'static str {
        "an integer"
    }

    fn summary(&self) -> String {
        format!("{} to {}", self.min, self.max)
    }

    fn problem(&self, storage: Storage) -> Option<&'static str> {
        if self.min > self.max || self.max.abs_diff(self.min) >= MAX_VALUES {
            return Some("its range is empty or too wide");
        }
        storage.problem_of_numbers()
    }

    fn domains(&self) -> Vec<Domain> {
        vec![Domain::Finite(self.max.abs_diff(self.min) as usize + 1)]
    }

    fn encoder(&self, _storage: Storage) -> Encoder<'_> {
        Box::new(|cell, out| {
            const EXPECTED: &str = "a whole number";
            let (x, is_whole) = cell.nearest_integer().ok_or(Problem::Type(EXPECTED))?;
            if !(i128::from(self.min)..=i128::from(self.max)).contains(&x) {
                return Err(Problem::OutOfRange { low: self.min as f64, high: self.max as f64 });
            }
            out[0] = (x - i128::from(self.min)) as f64;
            let between = Problem::Between { slope: 0.0, expected: EXPECTED };
            if is_whole { Ok(0.0) } else { Err(between) }
        })
    }

    fn are_values(&self, bytes: &Arc<Vec<u8>>) -> bool {
        self.min == 0 && self.max < 256 && bytes.iter().all(|&byte| i64::from(byte) <= self.max)
    }

    fn decode(&self, values: &[f64]) -> Decoded<'_> {
        Decoded::Integer(self.min + values[0] as i64)
    }

    fn outside(&self, _storage: Storage) -> Option<Outside> {
        let (min, max) = self.range();
        Some(Outside::Numbers(Tails::of_range(min, max)))
    }

    fn set(&self, values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str> {
        Ok(finite_set(values))
    }

    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str> {
        let range = ends.whole(i128::from(self.min), i128::from(self.max));
        Ok(range.map_or(Vec::new(), |(from, to)| values((from as usize..=to as usize).collect())))
    }

    fn term(&self, _storage: Storage, _place: usize, x: f64) -> Option<f64> {
        Some(self.min as f64 + x)
    }

    fn nearest(&self, x: f64) -> Vec<f64> {
        let (min, max) = self.range();
        vec![(x.round().clamp(min, max) - min).max(0.0)]
    }

    fn range(&self) -> (f64, f64) {
        (self.min as f64, self.max as f64)
    }
}

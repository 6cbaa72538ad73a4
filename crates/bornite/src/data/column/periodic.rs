//! Numbers that repeat with a period, such as angles.

use serde::{Deserialize, Serialize};

use super::{Coding, ColumnKind, Decoded, Encoder, Ends, NO_SET, ONLY_A_DENSITY, Parts, Problem};
use crate::basis::Part;
use crate::data::Storage;
use crate::domain::Domain;
use crate::query::Evidence;

/// A number that repeats with a period, encoded on a circle of length 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Periodic {
    /// The number that is encoded as 0.
    pub origin: f64,
    /// The period.
    pub period: f64,
}

impl Periodic {
    /// The position of x on the circle of length 1.
    fn turns(&self, x: f64) -> f64 {
        let turns = ((x - self.origin) / self.period).rem_euclid(1.0);
        // A tiny negative number may be rounded up to 1.
        if turns < 1.0 { turns } else { 0.0 }
    }
}

impl From<Periodic> for ColumnKind {
    fn from(kind: Periodic) -> Self {
        ColumnKind::Periodic(kind)
    }
}

impl Coding for Periodic {
    fn name(&self) -> &'static str {
        "periodic"
    }

    fn summary(&self) -> String {
        format!("from {}, period {}", self.origin, self.period)
    }

    fn problem(&self, storage: Storage) -> Option<&'static str> {
        let fits = self.origin.is_finite() && self.period.is_finite() && self.period > 0.0;
        if !fits {
            return Some("its period is not positive");
        }
        storage.problem_of_numbers()
    }

    fn why_no_atoms(&self, _are_numbers: bool) -> Option<&'static str> {
        Some(ONLY_A_DENSITY)
    }

    fn domains(&self) -> Vec<Domain> {
        vec![Domain::Circle(1.0)]
    }

    fn num_values(&self) -> Option<usize> {
        None
    }

    fn encoder(&self, _storage: Storage) -> Encoder<'_> {
        Box::new(|cell, out| {
            let x = cell.number().ok_or(Problem::Type("a finite number"))?;
            out[0] = self.turns(x);
            Ok(-self.period.ln())
        })
    }

    fn decode(&self, values: &[f64]) -> Decoded<'_> {
        Decoded::Number(self.origin + self.period * values[0])
    }

    fn set(&self, _values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str> {
        Err(NO_SET)
    }

    /// An interval that contains the origin becomes two intervals.
    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str> {
        let (a, b) = ends.numbers();
        if b - a >= self.period {
            return Ok(vec![Vec::new()]);
        }
        if a >= b {
            return Ok(Vec::new());
        }
        let (low, high) = (self.turns(a), self.turns(b));
        let pieces = if low < high { vec![(low, high)] } else { vec![(low, 1.0), (0.0, high)] };
        let pieces = pieces.into_iter().filter(|(low, high)| low < high);
        let part = |(low, high)| vec![(0, Evidence::In(Part::Interval { low, high }))];
        Ok(pieces.map(part).collect())
    }

    fn term(&self, _storage: Storage, _place: usize, x: f64) -> Option<f64> {
        Some(self.origin + self.period * x)
    }

    fn position(&self, x: f64) -> Option<f64> {
        Some((x - self.origin) / self.period)
    }

    fn nearest(&self, x: f64) -> Vec<f64> {
        vec![((x - self.origin) / self.period).clamp(0.0, 1.0)]
    }

    fn range(&self) -> (f64, f64) {
        (self.origin, self.origin + self.period)
    }

    fn log_spread(&self) -> f64 {
        self.period.ln()
    }
}

//! Columns of real numbers with a density.

use serde::{Deserialize, Serialize};

use super::{Coding, ColumnKind, Decoded, Encoder, Ends, NO_SET, ONLY_A_DENSITY, Parts, Problem};
use crate::basis::Part;
use crate::data::{Storage, Warp};
use crate::domain::Domain;
use crate::query::Evidence;

/// A real number x, encoded as u = F(x) in [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Continuous {
    /// The transform F.
    pub warp: Warp,
}

impl From<Continuous> for ColumnKind {
    fn from(kind: Continuous) -> Self {
        ColumnKind::Continuous(kind)
    }
}

impl Coding for Continuous {
    fn name(&self) -> &'static str {
        "continuous"
    }

    fn summary(&self) -> String {
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|u| self.warp.inverse(u));
        format!("median {middle:.4}, quartiles {low:.4} to {high:.4}")
    }

    fn problem(&self, storage: Storage) -> Option<&'static str> {
        storage.problem_of_numbers()
    }

    fn format_version(&self) -> u32 {
        self.warp.format_version()
    }

    fn why_no_atoms(&self, _are_numbers: bool) -> Option<&'static str> {
        Some(ONLY_A_DENSITY)
    }

    fn domains(&self) -> Vec<Domain> {
        vec![Domain::Interval(0.0, 1.0)]
    }

    fn num_values(&self) -> Option<usize> {
        None
    }

    fn encoder(&self, _storage: Storage) -> Encoder<'_> {
        Box::new(|cell, out| {
            let x = cell.number().ok_or(Problem::Type("a finite number"))?;
            let slope = self.warp.log_slope(x);
            if slope == f64::NEG_INFINITY {
                let (low, high) = self.warp.support().bounds();
                return Err(Problem::OutOfRange { low, high });
            }
            out[0] = self.warp.forward(x);
            Ok(slope)
        })
    }

    fn decode(&self, values: &[f64]) -> Decoded<'_> {
        Decoded::Number(self.warp.inverse(values[0]))
    }

    fn set(&self, _values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str> {
        Err(NO_SET)
    }

    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str> {
        let (a, b) = ends.numbers();
        let (low, high) = (self.warp.distribution(a), self.warp.distribution(b));
        if low >= high {
            return Ok(Vec::new());
        }
        Ok(vec![vec![(0, Evidence::In(Part::Interval { low, high }))]])
    }

    fn term(&self, _storage: Storage, _place: usize, x: f64) -> Option<f64> {
        Some(self.warp.inverse(x))
    }

    fn position(&self, x: f64) -> Option<f64> {
        Some(self.warp.distribution(x))
    }

    fn nearest(&self, x: f64) -> Vec<f64> {
        vec![self.warp.forward(x)]
    }

    fn range(&self) -> (f64, f64) {
        (self.warp.inverse(0.01), self.warp.inverse(0.99))
    }

    fn log_spread(&self) -> f64 {
        (self.warp.inverse(0.75) - self.warp.inverse(0.25)).ln()
    }

    fn shortened(&self) -> Option<ColumnKind> {
        self.warp.rounded().map(|warp| Self { warp }.into())
    }
}

//! Smaller models.

use super::{Model, ModelError, Truncated};
use crate::engine::Batch;
use crate::mixture::TruncatedMixture;
use crate::ops::Budget;

/// The maximum number of rows that are listed to find a distance.
const MAX_LISTED: usize = 1 << 16;

/// A smaller model, with a guarantee.
#[derive(Debug)]
pub struct Truncation {
    /// The smaller model. Its record is that of the fit of the larger one, but for the width, and says so.
    pub model: Model,
    /// The two distributions are at most this far apart in Hellinger distance √(1 − ∫ √(p q)).
    pub bound: f64,
    /// How far they are, where all rows can be listed.
    pub distance: Option<f64>,
}

impl Model {
    /// Shrinks the circuit of a model, or each of them, within a [`Budget`]. See [`truncate`](crate::ops::truncate()).
    ///
    /// # Errors
    /// The model is conditioned, the error is not from 0 to 1, or the width is 0.
    pub fn truncate(&self, budget: Budget<'_>) -> Result<Truncation, ModelError> {
        if !self.given.is_nothing() {
            return Err(ModelError::Conditioned);
        }
        let TruncatedMixture { mixture, bound: own, width } = self.mixture.truncate(budget)?;
        let mut info = self.info.clone();
        // Distances add up: of a model that was truncated before, the one that was fitted counts.
        let fitted = info.truncated.unwrap_or(Truncated { width: info.width, bound: 0.0 });
        let bound = (fitted.bound + own).min(1.0);
        info.truncated = Some(Truncated { bound, ..fitted });
        info.width = width.unwrap_or(info.width);
        let model = Self::new(self.schema.clone(), mixture, info);
        let distance = self.distance(&model)?;
        Ok(Truncation { model, bound: own, distance })
    }

    /// The Hellinger distance of two models of the same variables, by the sum over all rows; `None` if these are too many.
    fn distance(&self, other: &Self) -> Result<Option<f64>, ModelError> {
        let variables = self.mixture.variables();
        let mut sizes = Vec::with_capacity(variables.len());
        for variable in variables {
            let Some(size) = variable.domain.num_values() else { return Ok(None) };
            sizes.push(size);
        }
        let count = sizes.iter().try_fold(1_usize, |n, &s| n.checked_mul(s));
        let Some(count) = count.filter(|&n| n <= MAX_LISTED) else { return Ok(None) };
        let mut values = Vec::with_capacity(count * sizes.len());
        for row in 0..count {
            let mut rest = row;
            for &size in &sizes {
                values.push((rest % size) as f64);
                rest /= size;
            }
        }
        let rows = Batch::from_rows(variables, &values)?;
        let (p, q) = (self.mixture.log_marginals(&rows)?, other.mixture.log_marginals(&rows)?);
        let overlap: f64 = p.iter().zip(&q).map(|(p, q)| (0.5 * (p + q)).exp()).sum();
        Ok(Some((1.0 - overlap).max(0.0).sqrt()))
    }
}

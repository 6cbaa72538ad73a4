//! Truncation: smaller models with an error bound.

use super::{Model, ModelError, Truncated};
use crate::engine::Batch;
use crate::mixture::TruncatedMixture;
use crate::ops::Budget;

/// The maximum number of rows that are enumerated to compute a distance.
const MAX_LISTED: usize = 1 << 16;

/// A truncated model, with a bound on its distance from the original.
#[derive(Debug)]
pub struct Truncation {
    /// The smaller model. Its [`Info`](super::Info) describes the fit of the original, except for the width.
    pub model: Model,
    /// An upper bound on the Hellinger distance √(1 − ∫ √(p q)) between the two distributions.
    pub bound: f64,
    /// The exact distance, if all rows can be enumerated.
    pub distance: Option<f64>,
}

impl Model {
    /// Truncates each circuit of the model within a [`Budget`]. See [`truncate`](crate::ops::truncate()).
    ///
    /// # Errors
    /// The model is conditional, the error is not between 0 and 1, or the width is 0.
    pub fn truncate(&self, budget: Budget<'_>) -> Result<Truncation, ModelError> {
        if !self.given.is_certain() {
            return Err(ModelError::Conditioned);
        }
        let TruncatedMixture { mixture, bound: own, width } = self.mixture.truncate(budget)?;
        let mut info = self.info.clone();
        // Distances add up: if the model was truncated before, the bound is relative to the model that was fitted.
        let fitted = info.truncated.unwrap_or(Truncated { width: info.width, bound: 0.0 });
        let bound = (fitted.bound + own).min(1.0);
        info.truncated = Some(Truncated { bound, ..fitted });
        info.width = width.unwrap_or(info.width);
        let model = Self::new(self.schema.clone(), mixture, info);
        let distance = self.distance(&model)?;
        Ok(Truncation { model, bound: own, distance })
    }

    /// The Hellinger distance between two models of the same variables, by enumeration; `None` if there are too many
    /// rows.
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

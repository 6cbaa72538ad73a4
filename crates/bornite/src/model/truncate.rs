//! Smaller models.

use super::{Model, ModelError};
use crate::ops::{self, Budget};

impl Model {
    /// A smaller model, and a bound of the Hellinger distance √(1 − ∫ √(p q)) between its distribution and this one's,
    /// both without what the model is conditioned on.
    ///
    /// # Errors
    /// The error is not from 0 to 1, a width is 0, or what the model is conditioned on became impossible.
    pub fn truncate(&self, budget: Budget<'_>) -> Result<(Self, f64), ModelError> {
        let truncated = ops::truncate(&self.circuit, budget)?;
        let mut model = self.with_circuit(truncated.circuit)?;
        let widths = truncated.widths.iter().map(|w| w.after);
        model.info.width = widths.max().unwrap_or(model.info.width).min(model.info.width);
        Ok((model, truncated.bound))
    }
}

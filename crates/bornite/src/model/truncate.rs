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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Column, Table};
    use crate::learn::Control;
    use crate::model::ModelOptions;

    #[test]
    fn a_smaller_model_stays_within_its_bound() {
        let cell = |i: usize, k: usize| Some(((i * 7 + i / 5 * k) % 4) as i64);
        let column = |k: usize| Column::integers(format!("c{k}"), (0..200).map(|i| cell(i, k)));
        let table = Table::new((0..4).map(column).collect()).unwrap();
        let options = ModelOptions { epochs: Some(5), width: Some(8), ..ModelOptions::default() };
        let model = Model::fit(&table, None, &options, &mut |_| Control::Continue).unwrap();
        let given = model.condition("c0 in {1, 2}").unwrap();
        let (smaller, bound) = given.truncate(Budget::Width(2)).unwrap();
        assert_eq!(smaller.given(), ["c0 in {1, 2}"]);
        assert!(smaller.info().width <= 2);
        // The Hellinger distance of the two unconditional distributions, by enumeration.
        let row = |n: usize| (0..4).map(move |k| (n >> (2 * k) & 3) as f64);
        let rows: Vec<f64> = (0..256).flat_map(row).collect();
        let all = Table::from_rows(&["c0", "c1", "c2", "c3"], &rows).unwrap();
        let (unconditional, _) = model.truncate(Budget::Width(2)).unwrap();
        let (p, q) = (model.score(&all).unwrap(), unconditional.score(&all).unwrap());
        let affinity: f64 = p.iter().zip(&q).map(|(p, q)| (0.5 * (p + q)).exp()).sum();
        assert!((1.0 - affinity).max(0.0).sqrt() <= bound + 1e-9, "{affinity} {bound}");
        assert!(bound < 1.0);
    }
}

//! The circuits and rows of the benchmarks.

use std::sync::Arc;

use anyhow::Result;
use bornite::circuit::Weights;
use bornite::structure::{Product, RegionTree, Structure};
use bornite::{Basis, Circuit, Domain, Orthonormal, Variable};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The shape of a circuit whose variables all have the same number of values.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) tree: RegionTree,
    pub(super) states: usize,
    pub(super) product: Product,
    pub(super) width: usize,
}

impl Shape {
    /// A circuit with complex weights.
    pub(super) fn build(&self, weights: Weights, rng: &mut ChaCha8Rng) -> Result<Circuit> {
        let basis = Arc::new(Basis::indicator(self.states));
        let leaf =
            |v| (Variable::new(format!("x{v}"), Domain::Finite(self.states)), Arc::clone(&basis));
        let structure = Structure::new(self.tree.clone(), leaf);
        Ok(structure.width(self.width).product(self.product).build(weights, rng)?)
    }

    pub(super) fn orthonormal(&self, rng: &mut ChaCha8Rng) -> Result<Orthonormal> {
        let circuit = self.build(Weights::Haar, rng)?;
        Ok(Orthonormal::verify(circuit).map_err(bornite::Error::from)?)
    }

    /// `count` rows of random values, row by row; `unknown` selects the missing cells.
    pub(super) fn rows(
        &self,
        count: usize,
        rng: &mut ChaCha8Rng,
        mut unknown: impl FnMut(usize, &mut ChaCha8Rng) -> bool,
    ) -> Vec<f64> {
        let d = self.tree.num_variables();
        let mut values = Vec::with_capacity(count * d);
        for cell in 0..count * d {
            let value = rng.random_range(0..self.states) as f64;
            values.push(if unknown(cell % d, rng) { f64::NAN } else { value });
        }
        values
    }
}

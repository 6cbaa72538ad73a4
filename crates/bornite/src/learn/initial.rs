//! A first circuit near the product of the data's own marginals.

use rand::Rng;

use super::parameter::normalized;
use crate::basis::Basis;
use crate::circuit::{Circuit, Layer, Weight, Weights, random_weight};
use crate::engine::Rows;
use crate::linalg::{Complex64, Matrix};

/// How far the first weights are from the product of marginals.
const NOISE: f64 = 0.3;

/// Replaces the weights of a circuit by others near the product of the rows' marginals: the first output of every layer
/// is the product of the first outputs below it, and at a variable of finite domain the root of its frequencies.
///
/// The rest is random. Cost: one pass over the rows.
pub(crate) fn near_marginals(
    circuit: &Circuit,
    rows: &Rows<'_>,
    complex: bool,
    rng: &mut impl Rng,
) -> Circuit {
    let kind = if complex { Weights::Gaussian } else { Weights::RealGaussian };
    let mut weights: Vec<Option<Matrix<Complex64>>> = vec![None; circuit.weights().len()];
    for id in circuit.layer_ids() {
        let Layer::Sum { input, weight } = circuit.layer(id) else { continue };
        let slot = &mut weights[weight.index()];
        if slot.is_some() {
            continue;
        }
        let shape = circuit.weight(*weight);
        let mut w = random_weight(shape.rows(), shape.cols(), kind, rng)
            .to_matrix::<Complex64>()
            .scaled(NOISE);
        let first = match circuit.layer(*input) {
            Layer::Input { variable, basis } if matches!(**basis, Basis::Indicator(_)) => {
                root_frequencies(rows, variable.index(), basis.width())
            }
            _ => (0..w.cols()).map(|n| f64::from(u8::from(n == 0))).collect(),
        };
        for (x, f) in w.row_mut(0).iter_mut().zip(first) {
            *x += f;
        }
        *slot = Some(normalized(w, id == circuit.output()));
    }
    let weights = weights.into_iter().flatten();
    let weights =
        weights.map(|w| if complex { Weight::Complex(w) } else { Weight::Real(w.map(|z| z.re)) });
    match circuit.with_weights(weights) {
        Ok(circuit) => circuit,
        Err(error) => unreachable!("only the weights are new: {error}"),
    }
}

/// √p of each value, with half a row added to each.
pub(super) fn root_frequencies(rows: &Rows<'_>, variable: usize, values: usize) -> Vec<f64> {
    let mut counts = vec![0.5; values];
    for row in 0..rows.len() {
        let x = rows.value(row, variable);
        if !x.is_nan() {
            counts[x as usize] += 1.0;
        }
    }
    let total: f64 = counts.iter().sum();
    counts.into_iter().map(|c| (c / total).sqrt()).collect()
}

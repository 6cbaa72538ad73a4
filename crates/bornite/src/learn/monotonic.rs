//! Monotonic circuits on the same structures: the baseline for squared circuits.
//!
//! Weights are non-negative and their rows sum to 1, so the outputs of every layer are
//! distributions: p(x) = c(x), not |c(x)|². Training uses the same passes, because
//! log c = ½ log |c|²; the leaf of a missing value is all ones. Inputs are indicators. Continuous
//! variables on (0, 1) must be binned first: see [`binned`].

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::error::{LearnError, program_of};
use super::initial::with_weights;
use super::mixture::frequencies;
use super::options::FitOptions;
use super::parameter::{Parameterization, row_normalized};
use super::partition::Partition;
use super::pass::Workspace;
use super::pieces::Rows;
use super::progress::{Control, Epoch, Progress};
use super::quota::Quota;
use super::trainer::Trainer;
use crate::basis::Basis;
use crate::circuit::{Circuit, Layer, Skeleton, Weight};
use crate::engine::Batch;
use crate::linalg::Matrix;

/// A learned monotonic circuit and its history.
#[derive(Clone, Debug)]
pub struct MonotonicFit {
    /// The circuit, with real weights. Its density is c(x) itself.
    pub circuit: Circuit,
    /// The mean log-likelihood of the validation rows.
    pub valid: f64,
    /// One entry per epoch; the residual is the largest |Σ w − 1| of a row.
    pub history: Vec<Epoch>,
}

/// Learns the weights of a monotonic circuit from rows; NaN is a missing value.
///
/// Options for squares and complex weights are ignored.
///
/// # Errors
/// A product is not binary or not below a sum, an input is not an indicator, or the circuit has more
/// than one output.
pub fn fit(
    circuit: &Skeleton,
    train: &Batch,
    valid: &Batch,
    options: &FitOptions,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<MonotonicFit, LearnError> {
    check(circuit)?;
    let options = &FitOptions {
        parameterization: Parameterization::Monotonic,
        complex: false,
        ..options.clone()
    };
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    let first = near_marginals(circuit, train, &mut rng);
    let trainer = Trainer::new(&first, Rows::new(train, valid), options, rng)?;
    let outcome = trainer.run(&Quota::default(), &mut |p, _| progress(p))?;
    let shapes = circuit.weight_shapes().iter().zip(&outcome.best.weights);
    let weights = shapes.map(|(&[rows, cols], parts)| {
        let parts = parts.iter().map(|&x| f64::from(x)).collect();
        Weight::Real(row_normalized(Matrix::new(rows, cols, parts)))
    });
    let circuit = with_weights(circuit, weights);
    Ok(MonotonicFit { circuit, valid: outcome.best.valid, history: outcome.history })
}

/// The mean log-likelihood of rows under a monotonic circuit; NaN is a missing value.
///
/// # Errors
/// See [`fit`].
pub fn mean_log_likelihood(circuit: &Circuit, rows: &Batch) -> Result<f64, LearnError> {
    check(circuit)?;
    let program = program_of(circuit)?;
    let weights: Vec<Matrix<f64>> =
        circuit.weights().iter().map(|w| w.to_matrix::<f64>().into_owned()).collect();
    let weights: Vec<&Matrix<f64>> = weights.iter().collect();
    let workspace = Workspace::<f64>::new(&program, &weights, false);
    let all: Vec<usize> = (0..rows.len()).collect();
    let logs = workspace.logs::<_, false>(&Partition::new(&program, weights, true), rows, &all);
    Ok(0.5 * logs.iter().sum::<f64>() / logs.len().max(1) as f64)
}

/// The bins of values in (0, 1), all of the same size. The density is the probability of the bin
/// times their number.
pub fn binned(values: &[f64], bins: usize) -> Vec<f64> {
    let last = bins.saturating_sub(1) as f64;
    let bin = |&x: &f64| if x.is_nan() { x } else { (x * bins as f64).floor().clamp(0.0, last) };
    values.iter().map(bin).collect()
}

fn check(circuit: &Skeleton) -> Result<(), LearnError> {
    if circuit.width(circuit.output()) != 1 {
        return Err(LearnError::Monotonic { layer: circuit.output() });
    }
    for layer in circuit.layer_ids() {
        if let Layer::Input { basis, .. } = circuit.layer(layer)
            && !matches!(**basis, Basis::Indicator(_))
        {
            return Err(LearnError::Monotonic { layer });
        }
    }
    Ok(())
}

/// Weights near the product of the rows' marginals: every input distribution is that of its column,
/// randomly perturbed.
fn near_marginals(circuit: &Skeleton, rows: &Batch, rng: &mut ChaCha8Rng) -> Circuit {
    let mut weights: Vec<Option<Matrix<f64>>> = vec![None; circuit.weight_shapes().len()];
    for id in circuit.layer_ids() {
        let Layer::Sum { input, weight } = circuit.layer(id) else { continue };
        let [k, n] = circuit.weight_shapes()[weight.index()];
        let first = match circuit.layer(*input) {
            Layer::Input { variable, .. } => frequencies(rows, variable.index(), n, |x| x as usize),
            Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => vec![1.0; n],
        };
        let entry = |_, j| first[j] * rng.random_range(0.1..1.0_f64);
        weights[weight.index()] = Some(row_normalized(Matrix::from_fn(k, n, entry)));
    }
    with_weights(circuit, weights.into_iter().flatten().map(Weight::Real))
}

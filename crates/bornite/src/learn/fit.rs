use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::initial::near_marginals;
use super::network::{LearnError, Network};
use super::objective::Objective;
use super::parameter::{Adam, Parameter, Parameterization};
use crate::circuit::{Circuit, Layer, Orthonormal, Weight};
use crate::engine::{Engine, Rows};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::ops::orthonormalize;

/// The settings of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// The width of inner layers that these settings are for. Structures take it; a fit keeps the widths of its circuit.
    pub width: usize,
    /// The width of the output, likewise: how many squares are summed. Densities of few squares have zeros, near which the
    /// gradient of a row is very large; more squares learn steadier and generalize better.
    pub squares: usize,
    /// Complex weights, which learn much better than real ones.
    pub complex: bool,
    /// How weights are kept normalized.
    pub parameterization: Parameterization,
    /// The most passes over the rows.
    pub epochs: usize,
    /// Rows to a step.
    pub batch: usize,
    /// The largest step of a parameter, reached after the warm-up.
    pub rate: f64,
    /// Stop after so many epochs without a better validation likelihood.
    pub patience: usize,
    /// The share of the average of past weights that one step keeps; 0 for none.
    pub averaging: f64,
    /// The seed of everything random.
    pub seed: u64,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            width: 16,
            squares: 1,
            complex: true,
            parameterization: Parameterization::Cholesky,
            epochs: 100,
            batch: 256,
            rate: 0.02,
            patience: 10,
            averaging: 0.98,
            seed: 0,
        }
    }
}

/// Widths to try, from the narrowest: each costs about three times the one before it.
pub const WIDTHS: [usize; 7] = [2, 3, 4, 6, 8, 12, 16];

impl FitOptions {
    /// Settings for so many rows, with inner layers of this width.
    ///
    /// Entries of a semi-unitary weight have a size of 1 / width, and so have steps. The rest was found by a few
    /// trials on binary tables of 10 000 rows; larger tables learn faster with larger batches. [`fit_best`] finds the width.
    ///
    /// [`fit_best`]: super::fit_best
    pub fn for_data(rows: usize, width: usize) -> Self {
        Self {
            width,
            squares: width,
            epochs: (400_000 / rows.max(1)).clamp(5, 40),
            batch: 32,
            rate: 0.03 / width.max(1) as f64,
            patience: 20,
            averaging: 0.998,
            ..Self::default()
        }
    }
}

/// Where a fit stands, after every step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Epochs done, from 0.
    pub epoch: usize,
    /// The most epochs.
    pub epochs: usize,
    /// Rows learned from in this epoch.
    pub rows: usize,
    /// Rows of an epoch.
    pub epoch_rows: usize,
    /// The mean log-likelihood of the last batch, before its step.
    pub train: f64,
    /// The mean log-likelihood of the validation rows, after the last whole epoch.
    pub valid: Option<f64>,
    /// The best so far.
    pub best: Option<f64>,
    /// Whether an epoch has just ended.
    pub epoch_ended: bool,
}

/// What the caller wants of a running fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Go on; this share of the caller's budget is used up. At 1 the fit ends.
    Used(f64),
    /// End now, with the best model so far.
    Stop,
}

/// A learned circuit, and how it came about.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The best circuit by validation.
    pub circuit: Orthonormal,
    /// Its mean log-likelihood on the validation rows.
    pub valid: f64,
    /// One entry an epoch.
    pub history: Vec<Epoch>,
}

/// What an epoch brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// The mean log-likelihood of its batches, each before its step.
    pub train: f64,
    /// The mean log-likelihood of the validation rows after it, by the averaged weights.
    pub valid: f64,
    /// The largest entry of W Wᴴ − I of any inner weight.
    pub residual: f64,
}

/// Learns the weights of a circuit from rows, normalized at every step.
///
/// The circuit gives layers and widths; its weights are replaced by ones near the product of the rows' marginals. Each
/// step follows the exact gradient of a batch's log-likelihood: of what is known, the unknown cells integrated out. The best weights by the validation rows' likelihood
/// are kept. The same seed gives the same circuit bit for bit, for any number of threads.
///
/// # Errors
/// The circuit's products are not binary, each below a sum, or its functions are not orthonormal.
pub fn fit(
    circuit: &Circuit,
    train: &Rows<'_>,
    valid: &Rows<'_>,
    options: &FitOptions,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Fit, LearnError> {
    let rng = &mut ChaCha8Rng::seed_from_u64(options.seed);
    let first = near_marginals(circuit, train, options.complex, rng);
    if first.is_real() {
        Ok(Trainer::<f64, false>::new(first, options)?.run(train, valid, rng, progress))
    } else {
        Ok(Trainer::<Complex64, true>::new(first, options)?.run(train, valid, rng, progress))
    }
}

struct Trainer<'a, T, const C: bool> {
    circuit: Circuit,
    options: &'a FitOptions,
    network: Network,
    parameters: Vec<Parameter<T>>,
    average: Vec<Matrix<T>>,
    step: u32,
}

impl<'a, T: Scalar, const C: bool> Trainer<'a, T, C> {
    fn new(circuit: Circuit, options: &'a FitOptions) -> Result<Self, LearnError> {
        let network = Network::new(&circuit)?;
        for layer in circuit.layer_ids() {
            if let Layer::Input { basis, .. } = circuit.layer(layer)
                && options.parameterization != Parameterization::Unconstrained
                && !basis.is_orthonormal()
            {
                return Err(LearnError::Basis { layer });
            }
        }
        let output = match circuit.layer(circuit.output()) {
            Layer::Sum { weight, .. } => Some(*weight),
            _ => None,
        };
        let parameters: Vec<Parameter<T>> = circuit
            .weights()
            .iter()
            .enumerate()
            .map(|(n, w)| {
                let is_output = output.is_some_and(|o| o.index() == n);
                Parameter::new(&w.to_matrix::<T>(), is_output, options.parameterization)
            })
            .collect();
        let average = parameters.iter().map(|p| p.w.clone()).collect();
        Ok(Self { circuit, options, network, parameters, average, step: 0 })
    }

    fn run(
        mut self,
        train: &Rows<'_>,
        valid: &Rows<'_>,
        rng: &mut ChaCha8Rng,
        progress: &mut dyn FnMut(&Progress) -> Control,
    ) -> Fit {
        let mut order: Vec<usize> = (0..train.len()).collect();
        let mut history: Vec<Epoch> = Vec::new();
        let mut best: Option<(f64, usize, Vec<Matrix<T>>)> = None;
        let mut used = 0.0_f64;
        for epoch in 0..self.options.epochs {
            order.shuffle(rng);
            let (mut sum, mut rows) = (0.0, 0);
            for batch in order.chunks(self.options.batch.max(1)) {
                let done = epoch as f64 + rows as f64 / order.len() as f64;
                let share = (done / self.options.epochs as f64).max(used);
                let mean = self.learn(train, batch, share);
                sum += mean * batch.len() as f64;
                rows += batch.len();
                let state = Progress {
                    epoch,
                    epochs: self.options.epochs,
                    rows,
                    epoch_rows: order.len(),
                    train: mean,
                    valid: history.last().map(|e| e.valid),
                    best: best.as_ref().map(|b| b.0),
                    epoch_ended: false,
                };
                match progress(&state) {
                    Control::Continue => {}
                    Control::Used(share) => used = share,
                    Control::Stop => used = f64::INFINITY,
                }
                if used >= 1.0 {
                    break;
                }
            }
            let weights = self.averaged();
            let score = self.score(&weights, valid);
            let train_mean = sum / rows.max(1) as f64;
            history.push(Epoch { train: train_mean, valid: score, residual: self.residual() });
            if best.as_ref().is_none_or(|b| score > b.0) {
                best = Some((score, epoch, weights));
            }
            let state = Progress {
                epoch: epoch + 1,
                epochs: self.options.epochs,
                rows: order.len(),
                epoch_rows: order.len(),
                train: train_mean,
                valid: Some(score),
                best: best.as_ref().map(|b| b.0),
                epoch_ended: true,
            };
            match progress(&state) {
                Control::Used(share) => used = used.max(share),
                Control::Stop => used = f64::INFINITY,
                Control::Continue => {}
            }
            let waited = best.as_ref().map_or(0, |b| epoch - b.1);
            if used >= 1.0 || waited >= self.options.patience {
                break;
            }
        }
        let (valid, weights) = match best {
            Some((score, _, weights)) => (score, weights),
            None => (f64::NEG_INFINITY, self.averaged()),
        };
        let circuit = self.with_weights(&weights);
        let circuit = match orthonormalize(&circuit) {
            Ok(result) => result.circuit,
            Err(error) => unreachable!("a normalized circuit is not zero: {error}"),
        };
        Fit { circuit, valid, history }
    }

    /// One step on one batch; returns the batch's mean log-likelihood before it.
    fn learn(&mut self, rows: &Rows<'_>, batch: &[usize], share: f64) -> f64 {
        let weights: Vec<Matrix<T>> = self.parameters.iter().map(|p| p.w.clone()).collect();
        let objective = Objective::new(&self.network, &weights, self.orthonormal());
        let (mean, gradients) = objective.gradient::<f32, C>(rows, batch);
        self.step += 1;
        let rate = self.options.rate * schedule(share);
        let (step, adam) = (self.step, Adam::default());
        self.parameters
            .par_iter_mut()
            .zip(&gradients)
            .for_each(|(p, g)| p.step(g, rate, step, &adam));
        let keep = self.options.averaging.min(f64::from(step) / (f64::from(step) + 9.0));
        self.average.par_iter_mut().zip(&self.parameters).for_each(|(a, p)| {
            for (a, &w) in a.data_mut().iter_mut().zip(p.w.data()) {
                *a = a.scale_by(keep) + w.scale_by(1.0 - keep);
            }
        });
        mean
    }

    fn orthonormal(&self) -> bool {
        self.options.parameterization != Parameterization::Unconstrained
    }

    /// The averaged weights, brought back to the manifold.
    fn averaged(&self) -> Vec<Matrix<T>> {
        self.average.par_iter().zip(&self.parameters).map(|(a, p)| p.on_manifold(a)).collect()
    }

    fn score(&self, weights: &[Matrix<T>], rows: &Rows<'_>) -> f64 {
        let all: Vec<usize> = (0..rows.len()).collect();
        Objective::new(&self.network, weights, self.orthonormal()).mean::<f32, C>(rows, &all)
    }

    fn residual(&self) -> f64 {
        let inner = self.parameters.par_iter().filter(|p| !p.is_output());
        inner.map(|p| p.w.semi_unitary_residual()).reduce(|| 0.0, f64::max)
    }

    fn with_weights(&self, weights: &[Matrix<T>]) -> Circuit {
        match self.circuit.with_weights(weights.iter().map(Weight::from_matrix)) {
            Ok(circuit) => circuit,
            Err(error) => unreachable!("only the weights are new: {error}"),
        }
    }
}

/// A warm-up over the first twentieth, then half a cosine down to a hundredth.
fn schedule(share: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    let warm_up = (share / 0.05).clamp(0.05, 1.0);
    let cosine = 0.5 * (1.0 + (std::f64::consts::PI * share).cos());
    warm_up * cosine.max(0.01)
}

/// The mean log-likelihood of rows under a circuit, in full precision.
pub fn mean_log_likelihood(circuit: &Orthonormal, rows: &Rows<'_>) -> f64 {
    let engine: Engine = Engine::new(circuit);
    match engine.log_marginals(rows) {
        Ok(logs) => logs.iter().sum::<f64>() / logs.len().max(1) as f64,
        Err(_) => f64::NAN,
    }
}

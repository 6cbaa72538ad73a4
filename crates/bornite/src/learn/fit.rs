use std::fmt;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::checkpoint_bytes::{Reader, Writer};
use super::error::LearnError;
use super::initial::{Start, Starts, first_circuit, unlearned};
use super::options::FitOptions;
use super::parameter::Parameterization;
use super::trainer::{Outcome, Trainer};
use crate::circuit::{Orthonormal, Skeleton};
use crate::engine::{Batch, Engine};

/// Where a fit stands, after every step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The place of the candidate that is being fitted, in a search.
    pub candidate: usize,
    /// The width that its settings name.
    pub width: usize,
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
    /// Whether this is a short fit that only chooses between circuits, see [`most_promising`](super::most_promising).
    pub is_trial: bool,
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
pub struct Fitted {
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

/// A running fit that can be written down, to be continued later bit for bit.
pub struct Snapshot<'a> {
    write: &'a dyn Fn(&mut Writer),
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(write: &'a dyn Fn(&mut Writer)) -> Self {
        Self { write }
    }

    /// Before there is anything to be written down: its bytes stand for the beginning.
    pub(crate) fn of_nothing() -> Self {
        Self { write: &|_| {} }
    }

    pub(super) fn write(&self, to: &mut Writer) {
        (self.write)(to);
    }

    /// The bytes of a checkpoint, for [`fit_best`](super::fit_best).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.write(&mut writer);
        writer.finish()
    }
}

impl fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

/// Learns the weights of a circuit from rows, normalized at every step.
///
/// The weights start near a mixture of products that fits the rows, of as
/// many components as squares, or near the product of the rows' marginals where a product is one of Hadamard. Each
/// step follows the exact gradient of a batch's log-likelihood: of what is known, the unknown cells integrated out. The best weights by the validation rows' likelihood
/// are kept. The same seed gives the same circuit bit for bit, for any number of threads.
///
/// # Errors
/// The circuit's products are not binary, each below a sum, or its functions are not orthonormal; the parameterization is
/// the one for [`monotonic`](super::monotonic::fit) circuits.
pub fn fit(
    circuit: &Skeleton,
    train: &Batch,
    valid: &Batch,
    options: &FitOptions,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Fitted, LearnError> {
    let starts = &mut Starts::default();
    let outcome =
        run(circuit, [train, valid], options, None, Start::anew(starts), &mut |p, _| progress(p))?;
    outcome.into_fit(circuit, options)
}

/// Fits one circuit, from a checkpoint on where there is one.
pub(super) fn run(
    circuit: &Skeleton,
    [train, valid]: [&Batch; 2],
    options: &FitOptions,
    from: Option<&mut Reader<'_>>,
    start: Start<'_>,
    progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
) -> Result<Outcome, LearnError> {
    if options.parameterization == Parameterization::Monotonic {
        return Err(LearnError::Monotonic { layer: circuit.output() });
    }
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    let first = if from.is_some() {
        // Its weights are in the checkpoint.
        unlearned(circuit, options.complex)
    } else {
        first_circuit(circuit, train, options, start, &mut rng)
    };
    let mut trainer = Trainer::new(&first, [train, valid], options, rng)?;
    if let Some(from) = from {
        trainer.restore(from)?;
    }
    trainer.run(progress)
}

/// The mean log-likelihood of rows under a circuit, in full precision.
pub fn mean_log_likelihood(circuit: &Orthonormal, rows: &Batch) -> f64 {
    let engine = Engine::new(circuit);
    match engine.log_marginals(rows) {
        Ok(logs) => logs.iter().sum::<f64>() / logs.len().max(1) as f64,
        Err(_) => f64::NAN,
    }
}

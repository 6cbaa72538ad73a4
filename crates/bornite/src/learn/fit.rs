use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::checkpoint_bytes::Reader;
use super::error::LearnError;
use super::initial::{Start, Starts, first_circuit, placeholder};
use super::options::FitOptions;
use super::parameter::Parameterization;
use super::pieces::Rows;
use super::progress::{Control, Fitted, Progress, Snapshot};
use super::trainer::{Outcome, Trainer};
use crate::circuit::{Orthonormal, Skeleton};
use crate::engine::{Batch, Engine};

/// Learns the weights of a circuit from rows, normalized at every step.
///
/// Training starts near a fitted mixture of products with as many components as squares, or near
/// the product of the rows' marginals if there are Hadamard products. Each step follows the exact
/// gradient of a batch's log-likelihood, with missing values integrated out. The weights with the
/// best validation likelihood are kept. The same seed gives the same circuit bit for bit, for any
/// number of threads.
///
/// # Errors
/// A product is not binary or not below a sum, a basis is not orthonormal, or the parameterization
/// is the one for [`monotonic`](super::monotonic::fit) circuits.
pub fn fit(
    circuit: &Skeleton,
    train: &Batch,
    valid: &Batch,
    options: &FitOptions,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Fitted, LearnError> {
    let starts = &mut Starts::default();
    let (rows, start) = (Rows::new(train, valid), Start::new(starts));
    let outcome = run(circuit, rows, options, None, start, &mut |p, _| progress(p))?;
    outcome.into_fit(circuit, options)
}

/// Fits one circuit, or continues from a checkpoint.
pub(super) fn run(
    circuit: &Skeleton,
    rows: Rows<'_>,
    options: &FitOptions,
    from: Option<&mut Reader<'_>>,
    start: Start<'_>,
    progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
) -> Result<Outcome, LearnError> {
    if options.parameterization == Parameterization::Monotonic {
        return Err(LearnError::Monotonic { layer: circuit.output() });
    }
    let (quota, is_learned) = (start.starts.quota.clone(), start.is_learned());
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    let first = if from.is_some() {
        // The weights come from the checkpoint.
        placeholder(circuit, options.complex)
    } else {
        first_circuit(circuit, rows, options, start, &mut rng)
    };
    let mut trainer = Trainer::new(&first, rows, options, rng)?;
    if let Some(from) = from {
        trainer.restore(from)?;
    } else if is_learned {
        trainer.keep_first()?;
    }
    trainer.run(&quota, progress)
}

/// The mean log-likelihood of rows under a circuit, in full precision.
pub fn mean_log_likelihood(circuit: &Orthonormal, rows: &Batch) -> f64 {
    let engine = Engine::new(circuit);
    match engine.log_marginals(rows) {
        Ok(logs) => logs.iter().sum::<f64>() / logs.len().max(1) as f64,
        Err(_) => f64::NAN,
    }
}

use super::error::LearnError;
use super::fit::run;
use super::initial::{Start, Starts};
use super::options::FitOptions;
use super::pieces::Rows;
use super::progress::{Control, Progress};
use crate::circuit::Skeleton;
use crate::engine::Batch;

/// The length of a trial, as a fraction of a fit's epochs.
const EPOCH_SHARE: f64 = 0.2;
/// The maximum number of cells that a trial learns from.
const MAX_CELLS: f64 = 1e7;
/// The maximum fraction of the remaining budget that a trial takes.
const MAX_QUOTA_SHARE: f64 = 0.1;

/// Fits every circuit for a short time, and returns the index of the one with the best validation
/// likelihood. Meant for narrow circuits over different trees: differences between trees show
/// early, and at any width.
///
/// The length of a trial depends only on the rows and not on the clock. If `progress` ends the
/// trial, with [`Control::Stop`] or because its budget is used up, the result is the best circuit
/// so far.
///
/// # Errors
/// A circuit cannot be learned: see [`fit`](super::fit).
pub fn most_promising(
    candidates: &[(Skeleton, FitOptions)],
    train: &Batch,
    valid: &Batch,
    starts: &mut Starts,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<usize, LearnError> {
    if candidates.len() < 2 {
        return Ok(0);
    }
    let all = Rows::new(train, valid);
    let (mut best, mut ended) = ((0, f64::NEG_INFINITY), false);
    for (n, (circuit, options)) in candidates.iter().enumerate() {
        let rows = (EPOCH_SHARE * (options.epochs * all.num_train()) as f64)
            .min(MAX_CELLS / circuit.variables().len().max(1) as f64);
        let (quota, mut end) = (starts.quota.clone(), None);
        let outcome = run(circuit, all, options, None, Start::new(starts), &mut |p, _| {
            let done = p.epochs_done() * p.epoch_rows as f64;
            ended |= progress(&Progress { candidate: n, is_trial: true, ..*p }).is_end();
            // The first circuit waits for mixtures that later fits start from too.
            let end = *end.get_or_insert_with(|| quota.after(MAX_QUOTA_SHARE));
            if ended || quota.used() >= end { Control::Stop } else { Control::Used(done / rows) }
        })?;
        if outcome.best.valid > best.1 {
            best = (n, outcome.best.valid);
        }
        if ended {
            break;
        }
    }
    Ok(best.0)
}

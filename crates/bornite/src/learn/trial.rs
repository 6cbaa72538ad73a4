use super::error::LearnError;
use super::fit::run;
use super::initial::{Start, Starts};
use super::options::FitOptions;
use super::pieces::Rows;
use super::progress::{Control, Progress};
use crate::circuit::Skeleton;
use crate::engine::Batch;
use crate::linalg::{Complex64, Matrix};

/// The part of a fit's epochs that a trial takes.
const SHARE: f64 = 0.2;
/// The maximum number of cells that a trial learns from.
const CELLS: f64 = 1e7;
/// The part of what is left of a budget that it takes at most.
const PART: f64 = 0.1;

/// The place of the circuit that learns best in a short fit, by the validation rows. Meant for narrow circuits over different
/// trees: which tree is better shows early, and at any width.
///
/// The first is best if there are no others. How much is learned from depends only on the rows, never on a clock; but where
/// `progress` ends the trial, by [`Control::Stop`] or a budget that is used up, the best until then is taken.
///
/// # Errors
/// A circuit cannot be learned, see [`fit`](super::fit).
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
    let all: Vec<_> =
        candidates.iter().map(|(circuit, options)| (circuit, options, None)).collect();
    Ok(trial(all, Rows::new(train, valid), starts, progress)?.0)
}

/// A circuit, how it is fitted, and the first rows of its weights where it continues from a smaller one.
pub(super) type Grown<'a> = (&'a Skeleton, &'a FitOptions, Option<Vec<Matrix<Complex64>>>);

/// The same for circuits that may continue from others, and whether the caller has ended it.
pub(super) fn trial(
    candidates: Vec<Grown<'_>>,
    all: Rows<'_>,
    starts: &mut Starts,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<(usize, bool), LearnError> {
    let (mut best, mut ended) = ((0, f64::NEG_INFINITY), false);
    for (n, (circuit, options, grown)) in candidates.into_iter().enumerate() {
        let rows = (SHARE * (options.epochs * all.num_train()) as f64)
            .min(CELLS / circuit.variables().len().max(1) as f64);
        let (quota, end) = (starts.quota.clone(), starts.quota.after(PART));
        let start = Start { grown, ..Start::anew(starts) };
        let outcome = run(circuit, all, options, None, start, &mut |p, _| {
            let done = p.epochs_done() * p.epoch_rows as f64;
            ended |= progress(&Progress { candidate: n, is_trial: true, ..*p }).is_end();
            if ended || quota.used() >= end { Control::Stop } else { Control::Used(done / rows) }
        })?;
        if outcome.best.valid > best.1 {
            best = (n, outcome.best.valid);
        }
        if ended {
            break;
        }
    }
    Ok((best.0, ended))
}

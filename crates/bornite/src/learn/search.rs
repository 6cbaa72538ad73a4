use super::checkpoint_bytes::{Reader, Writer};
use super::error::LearnError;
use super::fit::{Control, Fitted, Progress, Snapshot, run};
use super::initial::Starts;
use super::options::{Device, FitOptions};
use super::trainer::{Outcome, read_best, read_history, write_best, write_history};
use crate::circuit::{Circuit, Layer, Weight};
use crate::engine::Batch;

/// The best of several fits, and which it was.
#[derive(Clone, Debug)]
pub struct BestFit {
    /// The place of the best among the candidates.
    pub index: usize,
    /// Its fit.
    pub fit: Fitted,
    /// The candidates that were fitted and their validation likelihoods, in turn.
    pub tried: Vec<(usize, f64)>,
}

/// How far a search has come.
#[derive(Debug, Default)]
struct State {
    tried: Vec<(usize, f64)>,
    /// The share of the budget that was used up when the present candidate began, and now.
    used: [f64; 2],
    best: Option<(usize, Outcome)>,
}

/// Fits one candidate after the other and keeps the best by the validation rows. Candidates come from the narrowest to the
/// widest: after the third (or the last, of fewer) wider ones follow as long as each is better, and narrower ones where the first
/// wider one is not.
///
/// On tables of some thousand rows wide circuits overfit, and by how much depends on the data: trying is cheap, since a
/// narrow circuit learns far faster than a wide one. A stop ends the search. A share of a budget is one of the whole search:
/// each candidate has what is left.
///
/// With the bytes of a [`Snapshot`] the search goes on where it was: to the same circuit, bit for bit, as if it had never
/// ended, as long as `progress` answers alike.
///
/// Returns `None` where there are no candidates.
///
/// # Errors
/// A candidate cannot be learned, see [`fit`](super::fit); the checkpoint is damaged, or one of other rows, circuits or options.
pub fn fit_best(
    candidates: &[(Circuit, FitOptions)],
    train: &Batch,
    valid: &Batch,
    checkpoint: Option<&[u8]>,
    starts: &mut Starts,
    progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
) -> Result<Option<BestFit>, LearnError> {
    let mut reader = checkpoint.map(Reader::new).transpose()?.filter(|from| !from.is_empty());
    let mut state = State::default();
    if let Some(from) = &mut reader {
        state = State::read(from, candidates, [train, valid])?;
    }
    while let Some(index) = next(&state.tried, candidates.len()) {
        let (circuit, options) = &candidates[index];
        let mut ended = false;
        let outcome = {
            let State { used, .. } = &mut state;
            let mut now = *used;
            let begun = now[0];
            let from = reader.as_mut();
            let outcome = run(circuit, [train, valid], options, from, starts, &mut |p, s| {
                let write = |to: &mut Writer| {
                    State { used: now, tried: state.tried.clone(), best: None }.write(
                        state.best.as_ref(),
                        candidates,
                        [train, valid],
                        to,
                    );
                    s.write(to);
                };
                let control =
                    progress(&Progress { candidate: index, ..*p }, &Snapshot::new(&write));
                match control {
                    Control::Continue => {}
                    Control::Stop => ended = true,
                    Control::Used(share) => {
                        now[1] = share;
                        ended |= share >= 1.0;
                        return Control::Used(
                            (share - begun) / (1.0 - begun).max(f64::MIN_POSITIVE),
                        );
                    }
                }
                control
            })?;
            state.used = [now[1]; 2];
            outcome
        };
        reader = None;
        state.tried.push((index, outcome.best.valid));
        let is_better =
            state.best.as_ref().is_none_or(|(_, best)| outcome.best.valid > best.best.valid);
        if is_better {
            state.best = Some((index, outcome));
        }
        if ended {
            break;
        }
    }
    let State { tried, best, .. } = state;
    let Some((index, outcome)) = best else { return Ok(None) };
    let (circuit, options) = &candidates[index];
    Ok(Some(BestFit { index, fit: outcome.into_fit(circuit, options)?, tried }))
}

/// The place of the first candidate.
const FIRST: usize = 2;

/// The candidate to try after these, of so many.
pub(super) fn next(tried: &[(usize, f64)], count: usize) -> Option<usize> {
    let first = FIRST.min(count.checked_sub(1)?);
    let Some(&(last, value)) = tried.last() else { return Some(first) };
    let is_best = tried.iter().all(|&(_, other)| other <= value);
    let (best, _) = tried.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    if last >= first && is_best && last + 1 < count {
        return Some(last + 1);
    }
    let goes_down = if last >= first { best == first } else { is_best };
    if goes_down { last.min(first).checked_sub(1) } else { None }
}

/// The share of the budget that was used up when a checkpoint was made.
///
/// # Errors
/// The bytes are no checkpoint.
pub fn used_budget(checkpoint: &[u8]) -> Result<f64, LearnError> {
    let mut from = Reader::new(checkpoint)?;
    if from.is_empty() {
        return Ok(0.0);
    }
    from.numbers()?;
    from.reals()?.get(1).copied().ok_or(LearnError::Damaged)
}

/// Whether a checkpoint is one of these candidates, whatever the rows; `None` where it is of the very beginning, before there were any.
///
/// # Errors
/// The bytes are no checkpoint.
pub(crate) fn is_of(
    checkpoint: &[u8],
    candidates: &[(Circuit, FitOptions)],
) -> Result<Option<bool>, LearnError> {
    let mut from = Reader::new(checkpoint)?;
    if from.is_empty() {
        return Ok(None);
    }
    Ok(Some(from.numbers()?.get(2) == Some(&digest_of_candidates(candidates))))
}

impl State {
    fn write(
        &self,
        best: Option<&(usize, Outcome)>,
        candidates: &[(Circuit, FitOptions)],
        rows: [&Batch; 2],
        to: &mut Writer,
    ) {
        to.numbers(&digest(candidates, rows));
        to.reals(&self.used);
        let (places, values): (Vec<usize>, Vec<f64>) = self.tried.iter().copied().unzip();
        to.numbers(&places);
        to.reals(&values);
        to.numbers(&best.map_or(Vec::new(), |(index, _)| vec![*index]));
        if let Some((_, outcome)) = best {
            write_history(&outcome.history, to);
            write_best(Some(&outcome.best), to);
        }
    }

    fn read(
        from: &mut Reader<'_>,
        candidates: &[(Circuit, FitOptions)],
        rows: [&Batch; 2],
    ) -> Result<Self, LearnError> {
        let digest = digest(candidates, rows);
        let found = from.numbers()?;
        let names = ["rows to learn from", "validation rows", "structure or options"];
        if found.len() != digest.len() {
            return Err(LearnError::Damaged);
        }
        if let Some(n) = (0..digest.len()).find(|&n| found[n] != digest[n]) {
            return Err(LearnError::OtherFit { what: names[n] });
        }
        let &[begun, now] = &from.reals()?[..] else { return Err(LearnError::Damaged) };
        if !(begun.is_finite() && now.is_finite()) {
            return Err(LearnError::Damaged);
        }
        let (places, values) = (from.numbers()?, from.reals()?);
        if places.len() != values.len() || places.iter().any(|&n| n >= candidates.len()) {
            return Err(LearnError::Damaged);
        }
        let tried = places.into_iter().zip(values).collect();
        let best = match from.numbers()?[..] {
            [] => None,
            [index] if index < candidates.len() => {
                let history = read_history(from)?;
                let best = read_best(from)?.ok_or(LearnError::Damaged)?;
                let weights = candidates[index].0.weights();
                let fits = |(own, found): (&Weight, &Vec<f32>)| {
                    let entries = own.rows() * own.cols();
                    found.len() == entries || found.len() == 2 * entries
                };
                if weights.len() != best.weights.len()
                    || !weights.iter().zip(&best.weights).all(fits)
                {
                    return Err(LearnError::Damaged);
                }
                Some((index, Outcome { best, history }))
            }
            _ => return Err(LearnError::Damaged),
        };
        Ok(Self { tried, used: [begun, now], best })
    }
}

/// What the rows, and the candidates without their weights, are known by.
fn digest(candidates: &[(Circuit, FitOptions)], [train, valid]: [&Batch; 2]) -> [usize; 3] {
    let rows = |rows: &Batch| {
        let mut hash = crc32fast::Hasher::new();
        for variable in 0..rows.num_variables() {
            for row in 0..rows.len() {
                hash.update(&rows.value(row, variable).to_le_bytes());
            }
        }
        hash.finalize() as usize
    };
    [rows(train), rows(valid), digest_of_candidates(candidates)]
}

fn digest_of_candidates(candidates: &[(Circuit, FitOptions)]) -> usize {
    let mut hash = crc32fast::Hasher::new();
    for (circuit, options) in candidates {
        // A fit can be continued on another device.
        let options = FitOptions { device: Device::Cpu, ..options.clone() };
        hash.update(format!("{options:?}").as_bytes());
        for id in circuit.layer_ids() {
            let inputs = match circuit.layer(id) {
                Layer::Input { variable, basis } => format!("{variable:?} {basis:?}"),
                Layer::Hadamard { inputs } => format!("H {inputs:?}"),
                Layer::Kronecker { inputs } => format!("K {inputs:?}"),
                Layer::Sum { input, weight } => format!("{input:?} {weight:?}"),
            };
            hash.update(format!("{} {inputs}", circuit.width(id)).as_bytes());
        }
    }
    hash.finalize() as usize
}

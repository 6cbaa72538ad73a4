//! The state of a search, and how checkpoints store it.

use crate::circuit::{Layer, Skeleton};
use crate::engine::Batch;
use crate::learn::checkpoint_bytes::{Reader, Writer};
use crate::learn::defaults::MAX_GROWN_VARIABLES;
use crate::learn::error::LearnError;
use crate::learn::folds::Folds;
use crate::learn::grow::grown;
use crate::learn::options::{Device, FitOptions};
use crate::learn::pieces::{Pieces, Rows};
use crate::learn::trainer::{Outcome, read_best, read_history, write_best, write_history};
use crate::learn::widen::with_widths;
use crate::linalg::{Complex64, Matrix};

/// The state of a search.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) tried: Vec<(usize, f64)>,
    /// The fraction of the budget that had been used when the current candidate started, and now.
    pub(super) used: [f64; 2],
    pub(super) best: Option<(usize, Outcome)>,
    /// The circuit of the best fit, if it is wider than its candidate.
    pub(super) widened: Option<Skeleton>,
    /// Whether a wider circuit was not better, or there was none.
    pub(super) is_wide_enough: bool,
    /// Whether all candidates have been tried, and partners of the best one are fitted.
    pub(super) is_mixing: bool,
    /// The number of partners that were fitted.
    pub(super) num_fitted: usize,
    /// The partners that are kept, with their numbers among all that were fitted.
    pub(super) partners: Vec<(usize, Outcome)>,
}

/// The fraction of the budget that had been used when a checkpoint was written.
///
/// # Errors
/// The bytes are not a checkpoint.
pub fn used_budget(checkpoint: &[u8]) -> Result<f64, LearnError> {
    if let Some(folds) = Folds::read(checkpoint) {
        return Ok(folds?.0.used);
    }
    let mut from = Reader::new(checkpoint)?;
    if from.is_empty() {
        return Ok(0.0);
    }
    from.numbers()?;
    from.reals()?.get(1).copied().ok_or(LearnError::Damaged)
}

/// Whether a checkpoint is from a fit with these candidates, with any rows; `None` if it is from the
/// very start, before there were candidates.
///
/// # Errors
/// The bytes are not a checkpoint.
pub(crate) fn has_candidates(
    checkpoint: &[u8],
    candidates: &[(Skeleton, FitOptions)],
) -> Result<Option<bool>, LearnError> {
    let mut from = Reader::new(checkpoint)?;
    if from.is_empty() {
        return Ok(None);
    }
    Ok(Some(from.numbers()?.get(2) == Some(&digest_of_candidates(candidates))))
}

impl State {
    /// The first rows of a circuit's weights, if it can grow from the best candidate.
    pub(super) fn grown(
        &self,
        candidates: &[(Skeleton, FitOptions)],
        circuit: &Skeleton,
    ) -> Option<Vec<Matrix<Complex64>>> {
        let (n, outcome) = self.best.as_ref()?;
        let can_grow = circuit.variables().len() <= MAX_GROWN_VARIABLES;
        let narrow = self.widened.as_ref().unwrap_or(&candidates[*n].0);
        can_grow.then(|| grown(narrow, &outcome.best.weights, circuit)).flatten()
    }

    /// Writes the state, with these fractions of the budget instead of its own.
    pub(super) fn write(
        &self,
        used: [f64; 2],
        candidates: &[(Skeleton, FitOptions)],
        rows: Rows<'_>,
        to: &mut Writer,
    ) {
        let best = self.best.as_ref();
        to.numbers(&digest(candidates, rows));
        to.reals(&used);
        let (places, values): (Vec<usize>, Vec<f64>) = self.tried.iter().copied().unzip();
        to.numbers(&places);
        to.reals(&values);
        to.numbers(&best.map_or(Vec::new(), |(index, _)| vec![*index]));
        let widths = |wide: &Skeleton| wide.layer_ids().map(|id| wide.width(id)).collect();
        to.numbers(&self.widened.as_ref().map_or(Vec::new(), widths));
        to.numbers(&[usize::from(self.is_wide_enough)]);
        let places = self.partners.iter().map(|(place, _)| *place);
        let mixing = [usize::from(self.is_mixing), self.num_fitted].into_iter().chain(places);
        to.numbers(&mixing.collect::<Vec<_>>());
        for (_, outcome) in best.into_iter().chain(&self.partners) {
            write_history(&outcome.history, to);
            write_best(Some(&outcome.best), to);
        }
    }

    pub(super) fn read(
        from: &mut Reader<'_>,
        [ordinary, candidates]: [&[(Skeleton, FitOptions)]; 2],
        rows: Rows<'_>,
    ) -> Result<Self, LearnError> {
        let digest = digest(ordinary, rows);
        let found = from.numbers()?;
        let names = ["training rows", "validation rows", "structure or options"];
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
        let index = from.numbers()?;
        let (widths, &[is_wide_enough]) = (from.numbers()?, &from.numbers()?[..]) else {
            return Err(LearnError::Damaged);
        };
        let mixing = from.numbers()?;
        let &[is_mixing, num_fitted, ref places @ ..] = &mixing[..] else {
            return Err(LearnError::Damaged);
        };
        if places.len() > num_fitted {
            return Err(LearnError::Damaged);
        }
        let mut outcome = || -> Result<Outcome, LearnError> {
            let history = read_history(from)?;
            Ok(Outcome { best: read_best(from)?.ok_or(LearnError::Damaged)?, history })
        };
        let mut widened = None;
        let best = match index[..] {
            [] => None,
            [index] if index < candidates.len() => {
                let Outcome { best, history } = outcome()?;
                let circuit = &candidates[index].0;
                if !widths.is_empty() {
                    let is_whole = widths.len() == circuit.num_layers();
                    let wide = is_whole.then(|| with_widths(circuit, &widths)).flatten();
                    widened = Some(wide.ok_or(LearnError::Damaged)?);
                }
                let shapes = widened.as_ref().unwrap_or(circuit).weight_shapes();
                let fits = |([rows, cols], found): (&[usize; 2], &Vec<f32>)| {
                    let entries = rows * cols;
                    found.len() == entries || found.len() == 2 * entries
                };
                if shapes.len() != best.weights.len() || !shapes.iter().zip(&best.weights).all(fits)
                {
                    return Err(LearnError::Damaged);
                }
                Some((index, Outcome { best, history }))
            }
            _ => return Err(LearnError::Damaged),
        };
        let partners = places.iter().map(|&place| Ok((place, outcome()?)));
        let partners = partners.collect::<Result<_, LearnError>>()?;
        let (is_wide_enough, is_mixing) = (is_wide_enough > 0, is_mixing > 0);
        Ok(Self {
            tried,
            used: [begun, now],
            best,
            widened,
            is_wide_enough,
            is_mixing,
            num_fitted,
            partners,
        })
    }
}

/// Checksums of the training rows, the validation rows, and the candidates without their weights.
fn digest(candidates: &[(Skeleton, FitOptions)], rows: Rows<'_>) -> [usize; 3] {
    let own = |rows: &Batch| {
        let mut hash = crc32fast::Hasher::new();
        for variable in 0..rows.num_variables() {
            for row in 0..rows.len() {
                hash.update(&rows.value(row, variable).to_le_bytes());
            }
        }
        hash.finalize() as usize
    };
    let train = rows.pieces.map_or_else(|| own(rows.train), Pieces::digest);
    [train, own(rows.valid), digest_of_candidates(candidates)]
}

fn digest_of_candidates(candidates: &[(Skeleton, FitOptions)]) -> usize {
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

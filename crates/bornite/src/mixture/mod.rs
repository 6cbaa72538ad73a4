//! Mixtures of circuits: p(x) = Σ wₜ ‖cₜ(x)‖², where every circuit cₜ has its own tree.
//!
//! The products of one circuit split its variables in one way; a mixture combines several. It
//! remains exact: a marginal is the weighted mean of the circuits' marginals, and given evidence e,
//! the weight of a circuit becomes wₜ pₜ(e) / p(e).

mod picks;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::iter::zip;

use rayon::prelude::*;

use crate::circuit::{Layer, Orthonormal};
use crate::domain::Variable;
use crate::engine::{
    Batch, CellAnswer, CellAnswers, CellDistribution, CellRequest, Device, Engine, SampleError,
};
use crate::ops::{Budget, OperationError, truncate};
use crate::query::QueryError;

pub(crate) use picks::Picks;

/// The number of rows for which the cell distributions of all circuits are in memory at once.
const BLOCK: usize = 256;

/// One or more orthonormal circuits over the same variables, with weights.
///
/// ```
/// use bornite::Mixture;
/// use bornite::engine::Batch;
/// use bornite::structure::{RegionTree, Structure};
/// use bornite::{Basis, Domain, Variable, circuit::Weights, ops};
/// use rand::SeedableRng;
///
/// let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
/// let rng = &mut rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let mut circuits = Vec::new();
/// for tree in [RegionTree::balanced(4), RegionTree::linear(4)] {
///     let circuit = Structure::new(tree, bit).build(Weights::Gaussian, rng)?;
///     circuits.push(ops::orthonormalize(&circuit)?.circuit);
/// }
/// let mixture = Mixture::new(circuits, &[0.7, 0.3])?;
/// let rows: Vec<f64> = (0..16).flat_map(|n| (0..4).map(move |v| f64::from(n >> v & 1))).collect();
/// let logs = mixture.log_marginals(&Batch::from_rows(mixture.variables(), &rows)?)?;
/// let total: f64 = logs.iter().map(|l| l.exp()).sum();
/// assert!((total - 1.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Mixture {
    /// The circuits, heaviest first.
    members: Vec<Member>,
    /// Whether all circuits have the same input functions for every variable.
    shares_functions: bool,
}

/// The position of each row in the sequence of samples for a seed.
type SampleIndex<'a> = dyn Fn(usize) -> u64 + Sync + 'a;

/// A circuit of a mixture.
#[derive(Debug)]
struct Member {
    circuit: Orthonormal,
    weight: f64,
    engine: Engine,
}

/// Why circuits and weights do not form a mixture.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MixtureError {
    /// No circuits, or not as many weights.
    #[error(
        "{circuits} circuits and {weights} weights: give at least one circuit and one weight per circuit"
    )]
    Count {
        /// The number of circuits.
        circuits: usize,
        /// The number of weights.
        weights: usize,
    },
    /// A weight that is not positive.
    #[error("weight {index} is {weight}: weights must be positive")]
    Weight {
        /// The position of the weight, from 0.
        index: usize,
        /// Its value.
        weight: f64,
    },
    /// A circuit whose variables differ from those of the first circuit.
    #[error("circuit {index} does not have the same variables as the first circuit")]
    Variables {
        /// The position of the circuit, from 0.
        index: usize,
    },
}

impl From<Orthonormal> for Mixture {
    fn from(circuit: Orthonormal) -> Self {
        let engine = Engine::new(&circuit);
        Self { members: vec![Member { circuit, weight: 1.0, engine }], shares_functions: true }
    }
}

impl Mixture {
    /// A mixture of circuits. The weights are divided by their sum.
    ///
    /// # Errors
    /// There are no circuits, they have different variables, or there is not exactly one positive
    /// weight per circuit.
    pub fn new(circuits: Vec<Orthonormal>, weights: &[f64]) -> Result<Self, MixtureError> {
        if circuits.is_empty() || circuits.len() != weights.len() {
            let (circuits, weights) = (circuits.len(), weights.len());
            return Err(MixtureError::Count { circuits, weights });
        }
        let is_weight = |weight: f64| weight > 0.0 && weight.is_finite();
        if let Some(index) = weights.iter().position(|&weight| !is_weight(weight)) {
            return Err(MixtureError::Weight { index, weight: weights[index] });
        }
        let differs = |circuit: &Orthonormal| circuit.variables() != circuits[0].variables();
        if let Some(index) = circuits.iter().position(differs) {
            return Err(MixtureError::Variables { index });
        }
        let total: f64 = weights.iter().sum();
        // Weights that already sum to 1, up to rounding, stay unchanged, so saving and loading
        // preserves every bit.
        let is_one = (total - 1.0).abs() <= f64::EPSILON * weights.len() as f64;
        let total = if is_one { 1.0 } else { total };
        let weights = weights.iter().map(|weight| weight / total);
        let mut members: Vec<Member> = zip(circuits, weights)
            .map(|(circuit, weight)| Member { engine: Engine::new(&circuit), circuit, weight })
            .collect();
        members.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let shares_functions =
            members.iter().all(|m| has_same_functions(&m.circuit, &members[0].circuit));
        Ok(Self { members, shares_functions })
    }

    /// The circuits, heaviest first.
    pub fn circuits(&self) -> impl ExactSizeIterator<Item = &Orthonormal> {
        self.members.iter().map(|m| &m.circuit)
    }

    /// The weights of the [`circuits`](Self::circuits), which sum to 1.
    pub fn weights(&self) -> Vec<f64> {
        self.members.iter().map(|m| m.weight).collect()
    }

    /// The circuits, each with the logarithm of its weight.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (f64, &Orthonormal)> {
        self.members.iter().map(|m| (m.weight.ln(), &m.circuit))
    }

    /// The total number of parameters of all circuits.
    pub fn num_parameters(&self) -> usize {
        self.circuits().map(|circuit| circuit.num_parameters()).sum()
    }

    /// The variables, which all circuits share.
    pub fn variables(&self) -> &[Variable] {
        self.members[0].circuit.variables()
    }

    /// log p(evidence) of every row: see [`Engine::log_marginals`].
    ///
    /// # Errors
    /// The rows were created for a different number of variables.
    pub fn log_marginals(&self, rows: &Batch) -> Result<Vec<f64>, QueryError> {
        self.log_marginals_on(rows, Device::Cpu)
    }

    /// log p(evidence) of every row, on a device: see [`Engine::log_marginals_on`].
    ///
    /// # Errors
    /// The rows were created for a different number of variables, or the requested device is
    /// missing or has too little memory.
    pub fn log_marginals_on(&self, rows: &Batch, device: Device) -> Result<Vec<f64>, QueryError> {
        match &self.members[..] {
            [only] => only.engine.log_marginals_on(rows, device),
            _ => Ok(by_row(&self.log_parts(rows, device)?).map(|logs| log_sum(&logs)).collect()),
        }
    }

    /// log wₜ pₜ(evidence): for every circuit, one number per row.
    fn log_parts(&self, rows: &Batch, device: Device) -> Result<Vec<Vec<f64>>, QueryError> {
        let of = |m: &Member| {
            let mut logs = m.engine.log_marginals_on(rows, device)?;
            for log in &mut logs {
                *log += m.weight.ln();
            }
            Ok(logs)
        };
        self.members.iter().map(of).collect()
    }

    /// Draws `count` exact samples, one row after another. The same seed gives the same samples,
    /// and a larger count starts with the same ones.
    pub fn sample(&self, count: usize, seed: u64) -> Vec<f64> {
        self.sample_from(0, count, seed)
    }

    /// Draws `count` of the [samples](Self::sample) for a seed, starting with sample `start`.
    pub fn sample_from(&self, start: u64, count: usize, seed: u64) -> Vec<f64> {
        if let [only] = &self.members[..] {
            return only.engine.sample_from(start, count, seed);
        }
        let chosen = self.chosen(start, count, seed);
        let rows = Batch::unknown(self.variables().len(), count);
        self.sample_of(&chosen, start, &rows, seed)
    }

    /// Draws the samples of [`sample_from`](Self::sample_from) on a device: see
    /// [`Engine::sample_from_on`].
    ///
    /// # Errors
    /// The requested device is missing, has too little memory, or cannot draw variables that are
    /// not finite.
    pub fn sample_from_on(
        &self,
        start: u64,
        count: usize,
        seed: u64,
        device: Device,
    ) -> Result<Vec<f64>, QueryError> {
        if let [only] = &self.members[..] {
            return only.engine.sample_from_on(start, count, seed, device);
        }
        let chosen = self.chosen(start, count, seed);
        self.sample_by(&chosen, start, |engine, rows, index| {
            engine.sample_at_on(rows.len(), seed, index, device)
        })
    }

    /// The circuit that each sample is drawn from.
    fn chosen(&self, start: u64, count: usize, seed: u64) -> Vec<usize> {
        let (weights, mut picks) = (self.weights(), Picks::of_circuits(seed));
        (start..).take(count).map(|n| picks.pick(n, &weights)).collect()
    }

    /// Draws one exact sample for every row, given its evidence. The rows are a piece of a table,
    /// and `start` rows come before them.
    ///
    /// # Errors
    /// The rows were created for a different number of variables, or the evidence of a row is
    /// impossible.
    pub fn sample_given_from(
        &self,
        start: u64,
        rows: &Batch,
        seed: u64,
    ) -> Result<Vec<f64>, SampleError> {
        if let [only] = &self.members[..] {
            return only.engine.sample_given_from(start, rows, seed);
        }
        let mut picks = Picks::of_circuits(seed);
        let mut chosen = Vec::with_capacity(rows.len());
        for (row, logs) in by_row(&self.log_parts(rows, Device::Cpu)?).enumerate() {
            let shares = shares(&logs).ok_or(SampleError::Impossible { row })?;
            chosen.push(picks.pick(start.wrapping_add(row as u64), &shares));
        }
        Ok(self.sample_of(&chosen, start, rows, seed))
    }

    /// Draws one sample for every row from the circuit chosen for it. Every row must be possible.
    fn sample_of(&self, chosen: &[usize], start: u64, rows: &Batch, seed: u64) -> Vec<f64> {
        let draw = |engine: &Engine, chosen: &[usize], index: &SampleIndex<'_>| {
            Ok::<_, Infallible>(engine.sample_at(&rows.select(chosen), seed, index))
        };
        match self.sample_by(chosen, start, draw) {
            Ok(values) => values,
            Err(never) => match never {},
        }
    }

    /// Draws one sample for every row with `draw`, which is called once for each circuit with the
    /// rows that it is chosen for.
    fn sample_by<E>(
        &self,
        chosen: &[usize],
        start: u64,
        draw: impl Fn(&Engine, &[usize], &SampleIndex<'_>) -> Result<Vec<f64>, E>,
    ) -> Result<Vec<f64>, E> {
        let d = self.variables().len();
        let mut out = vec![0.0; chosen.len() * d];
        for (n, member) in self.members.iter().enumerate() {
            let rows: Vec<usize> = (0..chosen.len()).filter(|&row| chosen[row] == n).collect();
            let index = |row: usize| start.wrapping_add(rows[row] as u64);
            let values = draw(&member.engine, &rows, &index)?;
            for (&row, values) in zip(&rows, values.chunks_exact(d)) {
                out[row * d..(row + 1) * d].copy_from_slice(values);
            }
        }
        Ok(out)
    }

    /// Calls `answer` for every wanted cell of every row that is possible: see
    /// [`Engine::answer_cells`].
    pub(crate) fn answer_cells<T: Send>(
        &self,
        rows: &Batch,
        wanted: &CellRequest<'_>,
        answer: &(dyn Fn(usize, usize, CellDistribution<'_>) -> T + Sync),
    ) -> Result<CellAnswers<T>, QueryError> {
        if let [only] = &self.members[..] {
            return only.engine.answer_cells(rows, wanted, answer);
        }
        let tables: Vec<_> =
            self.members.iter().map(|m| m.engine.cell_tables(self.shares_functions)).collect();
        let (mut answers, mut logs) = (Vec::new(), Vec::with_capacity(rows.len()));
        for first in (0..rows.len()).step_by(BLOCK) {
            let block: Vec<usize> = (first..rows.len().min(first + BLOCK)).collect();
            let block = rows.select(&block);
            let cells = |row: usize, variable: usize| (wanted.cells)(first + row, variable);
            let wanted = CellRequest { cells: &cells, functionals: wanted.functionals };
            let (mut found, mut parts) = (Vec::new(), Vec::new());
            for (n, (member, tables)) in zip(&self.members, &tables).enumerate() {
                let keep = |_, _, distribution| distribution;
                let (cells, mut logs) =
                    member.engine.answer_cells_by(&block, &wanted, tables, &keep)?;
                for log in &mut logs {
                    *log += member.weight.ln();
                }
                parts.push(logs);
                found.extend(cells.into_iter().map(|cell| (n, cell)));
            }
            let shares: Vec<_> = by_row(&parts).map(|logs| shares(&logs)).collect();
            logs.extend(by_row(&parts).map(|logs| log_sum(&logs)));
            found.sort_by_key(|(n, cell)| (cell.row, cell.variable, *n));
            let mut merged: Vec<CellAnswer<Vec<(f64, CellDistribution<'_>)>>> = Vec::new();
            for (n, CellAnswer { row, variable, answer }) in found {
                let part = (shares[row].as_ref().map_or(0.0, |shares| shares[n]), answer);
                match merged.last_mut() {
                    Some(cell) if (cell.row, cell.variable) == (row, variable) => {
                        cell.answer.push(part);
                    }
                    _ => merged.push(CellAnswer { row, variable, answer: vec![part] }),
                }
            }
            let answer_cell = |CellAnswer { row, variable, answer: parts }: CellAnswer<_>| {
                let (row, distribution) = (first + row, CellDistribution::mixture(parts)?);
                Some(CellAnswer { row, variable, answer: answer(row, variable, distribution) })
            };
            answers.extend(merged.into_par_iter().filter_map(answer_cell).collect::<Vec<_>>());
        }
        Ok((answers, logs))
    }

    /// Shrinks every circuit within a [`Budget`].
    ///
    /// The squared Hellinger distance between the two mixtures is at most the weighted mean of the
    /// squared distances between their circuits.
    ///
    /// # Errors
    /// The error is not in [0, 1], or the width is 0.
    pub fn truncate(&self, budget: Budget<'_>) -> Result<TruncatedMixture, OperationError> {
        let (mut bounds, mut width, mut members) = (Vec::new(), None, Vec::new());
        for &Member { ref circuit, weight, .. } in &self.members {
            let smaller = truncate(circuit, budget)?;
            bounds.push(smaller.bound);
            width = smaller.widths.iter().map(|w| w.after).max().max(width);
            let circuit = smaller.circuit;
            members.push(Member { engine: Engine::new(&circuit), circuit, weight });
        }
        let bound = match bounds[..] {
            [only] => only,
            _ => zip(&members, &bounds).map(|(m, b)| m.weight * b * b).sum::<f64>().sqrt().min(1.0),
        };
        let mixture = Self { members, shares_functions: self.shares_functions };
        Ok(TruncatedMixture { mixture, bound, width })
    }
}

/// A truncated mixture.
#[derive(Debug)]
pub struct TruncatedMixture {
    /// The smaller circuits, with the same weights.
    pub mixture: Mixture,
    /// An upper bound on the Hellinger distance to the original mixture.
    pub bound: f64,
    /// The greatest width that remains among the layers that could be truncated.
    pub width: Option<usize>,
}

/// Whether two circuits over the same variables have the same input functions.
fn has_same_functions(a: &Orthonormal, b: &Orthonormal) -> bool {
    let functions = |circuit: &Orthonormal| {
        let mut of = vec![None; circuit.num_variables()];
        for layer in circuit.layers() {
            if let Layer::Input { variable, basis } = layer {
                of[variable.index()] = Some(basis.clone());
            }
        }
        of
    };
    functions(a) == functions(b)
}

/// Transposes the logarithms of every circuit into those of every row.
fn by_row(parts: &[Vec<f64>]) -> impl Iterator<Item = Vec<f64>> {
    let rows = parts.first().map_or(0, Vec::len);
    (0..rows).map(move |row| parts.iter().map(|logs| logs[row]).collect())
}

/// log Σ exp, without overflow.
pub(crate) fn log_sum(logs: &[f64]) -> f64 {
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return max;
    }
    max + logs.iter().map(|log| (log - max).exp()).sum::<f64>().ln()
}

/// The shares of the summands in a sum, given their logarithms; `None` if the sum is 0.
pub(crate) fn shares(logs: &[f64]) -> Option<Vec<f64>> {
    let total = log_sum(logs);
    (total > f64::NEG_INFINITY).then(|| logs.iter().map(|log| (log - total).exp()).collect())
}

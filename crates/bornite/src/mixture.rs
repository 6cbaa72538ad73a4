//! Mixtures of circuits: p(x) = Σ wₜ ‖cₜ(x)‖², where every circuit cₜ has its own tree.
//!
//! The products of one circuit split its variables in one way; a mixture combines several. It
//! remains exact: a marginal is the weighted mean of the circuits' marginals, and given evidence e,
//! the weight of a circuit becomes wₜ pₜ(e) / p(e).

use std::convert::Infallible;
use std::iter::zip;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::circuit::{Layer, Orthonormal};
use crate::domain::Variable;
use crate::engine::{
    Batch, CellAnswer, CellAnswers, CellDistribution, CellRequest, Device, Engine, SampleError,
};
use crate::ops::{Budget, OperationError, truncate};
use crate::query::QueryError;

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

/// A random choice for every row, which depends only on the seed and the row's position.
pub(crate) struct Picks(ChaCha8Rng);

impl Picks {
    /// Chooses one of several cases.
    pub(crate) fn of_cases(seed: u64) -> Self {
        Self::in_stream(seed, u64::MAX)
    }

    /// Chooses one of several circuits.
    fn of_circuits(seed: u64) -> Self {
        Self::in_stream(seed, u64::MAX - 1)
    }

    /// Uses one of the last streams, which no row uses.
    fn in_stream(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// Picks one of these shares, which sum to 1, and returns its index.
    pub(crate) fn pick(&mut self, row: u64, shares: &[f64]) -> usize {
        if shares.len() == 1 {
            return 0;
        }
        // Each number takes two words.
        self.0.set_word_pos(2 * u128::from(row));
        let (u, mut sum): (f64, f64) = (self.0.random(), 0.0);
        let reached = |share: &f64| {
            sum += share;
            u < sum
        };
        let found = shares.iter().position(reached);
        found.or(shares.iter().rposition(|share| *share > 0.0)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::{Mixture, MixtureError};
    use crate::basis::Part;
    use crate::circuit::{Orthonormal, VariableId, Weights};
    use crate::engine::{Batch, CellDistribution, CellRequest, SampleError};
    use crate::ops::{self, Budget, Environments};
    use crate::query::{Evidence, Query};
    use crate::structure::{RegionTree, Structure};
    use crate::{Basis, Domain, Variable};

    const WEIGHTS: [f64; 3] = [0.5, 0.3, 0.2];

    /// Finite variables, and every third one continuous where `mixed`.
    fn circuit(tree: RegionTree, seed: u64, mixed: bool) -> Orthonormal {
        let leaf = |v: usize| {
            let name = format!("x{v}");
            if mixed && v % 3 == 1 {
                let basis = Basis::legendre(4, 0.0, 1.0).unwrap();
                (Variable::new(name, Domain::Interval(0.0, 1.0)), basis)
            } else {
                (Variable::new(name, Domain::Finite(3)), Basis::indicator(3))
            }
        };
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let structure = Structure::new(tree, leaf).width(3).output_width(2);
        ops::orthonormalize(&structure.build(Weights::Haar, rng).unwrap()).unwrap().circuit
    }

    fn mixture(mixed: bool) -> Mixture {
        let trees = [RegionTree::balanced(5), RegionTree::linear(5), RegionTree::balanced(5)];
        let circuits = trees.into_iter().zip(1..).map(|(tree, seed)| circuit(tree, seed, mixed));
        Mixture::new(circuits.collect(), &WEIGHTS).unwrap()
    }

    fn queries(variables: &[Variable], count: usize) -> Vec<Query> {
        let rng = &mut ChaCha8Rng::seed_from_u64(9);
        let evidence = |variable: &Variable, rng: &mut ChaCha8Rng| {
            let is_finite = variable.domain.num_values().is_some();
            match (rng.random_range(0..3), is_finite) {
                (0, true) => Evidence::Value(rng.random_range(0..3).into()),
                (0, false) => Evidence::Value(rng.random_range(0.0..1.0)),
                (1, true) => Evidence::In(Part::Values(vec![0, 2])),
                (1, false) => Evidence::In(Part::Interval { low: 0.2, high: 0.7 }),
                _ => Evidence::Unknown,
            }
        };
        let query = |_| {
            let mut query = Query::unknown(variables.len());
            for (v, variable) in variables.iter().enumerate() {
                query.set(variables, v, evidence(variable, rng)).unwrap();
            }
            query
        };
        (0..count).map(query).collect()
    }

    fn exact(mixture: &Mixture, query: &Query) -> f64 {
        let parts = mixture.circuits().zip(mixture.weights());
        parts.map(|(c, w)| w * ops::log_marginal(c, query).unwrap().exp()).sum()
    }

    #[test]
    fn marginals_are_means_of_the_circuits() {
        let mixture = mixture(true);
        let queries = queries(mixture.variables(), 300);
        let rows = Batch::from_queries(mixture.variables(), &queries).unwrap();
        for (query, log) in queries.iter().zip(mixture.log_marginals(&rows).unwrap()) {
            let truth = exact(&mixture, query);
            assert!((log.exp() - truth).abs() < 1e-11 * (1.0 + truth), "{} for {truth}", log.exp());
        }
    }

    /// The distributions of cells are those of the circuits, each by its weight given the rest of
    /// the row.
    #[test]
    fn cells_follow_the_weights_given_the_row() {
        for shares_functions in [true, false] {
            let mut mixture = mixture(true);
            mixture.shares_functions = shares_functions;
            let variables = mixture.variables();
            let queries = queries(variables, 300);
            let rows = Batch::from_queries(variables, &queries).unwrap();
            let middle = |_: usize| vec![vec![(0.25, 1.0), (0.5, 2.0)]];
            let wanted = CellRequest { cells: &|_, _| true, functionals: &middle };
            let numbers = |_, _, p: CellDistribution<'_>| match p {
                CellDistribution::Finite(p) => (p, None),
                CellDistribution::Piecewise(p) => {
                    let u = p.quantile(0.3);
                    (vec![p.cdf(0.4), p.density(0.6)], Some((u, p.cdf(u), p.functionals()[0])))
                }
                CellDistribution::Exact(p) => {
                    let sum = |of: &dyn Fn(&ops::Univariate) -> f64| {
                        p.iter().map(|(w, p)| w * of(p)).sum::<f64>()
                    };
                    (vec![sum(&|p| p.cdf(0.4)), sum(&|p| p.density(0.6))], None)
                }
            };
            let (answers, logs) = mixture.answer_cells(&rows, &wanted, &numbers).unwrap();
            let (mut checked, mut piecewise) = (0, 0);
            for cell in &answers {
                let query = &queries[cell.row];
                let evidence = &query.evidence()[cell.variable];
                if let Evidence::Value(_) = evidence {
                    continue;
                }
                let of = |f: &dyn Fn(&ops::Univariate) -> f64| {
                    let parts = mixture.parts().map(|(log_weight, circuit)| {
                        let id = VariableId::new(cell.variable);
                        let environments = Environments::given(circuit, query).unwrap();
                        let share = log_weight + environments.log_evidence() - logs[cell.row];
                        let marginal = environments.marginal(id);
                        let marginal = match evidence {
                            Evidence::In(part) => marginal.within(part).unwrap(),
                            Evidence::Unknown | Evidence::Value(_) => marginal,
                        };
                        share.exp() * f(&marginal)
                    });
                    parts.sum::<f64>()
                };
                let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} for {b}");
                let (values, extra) = &cell.answer;
                if variables[cell.variable].domain.num_values().is_some() {
                    for (x, p) in values.iter().enumerate() {
                        near(*p, of(&|u| u.probabilities().unwrap()[x]));
                    }
                } else {
                    near(values[0], of(&|u| u.cdf(0.4)));
                    near(values[1], of(&|u| u.density(0.6)));
                }
                if let Some((u, level, functional)) = extra {
                    near(*level, 0.3);
                    near(of(&|p| p.cdf(*u)), 0.3);
                    near(*functional, of(&|p| p.density(0.25) + 2.0 * p.density(0.5)));
                    piecewise += 1;
                }
                checked += 1;
            }
            assert!(
                checked > 500 && (piecewise > 50) == shares_functions,
                "{checked}, {piecewise}"
            );
        }
    }

    #[test]
    fn samples_are_by_the_weights_and_the_same_in_pieces() {
        let mixture = mixture(false);
        let variables = mixture.variables();
        let samples = mixture.sample(20_000, 3);
        let pieces = [mixture.sample_from(0, 777, 3), mixture.sample_from(777, 19_223, 3)];
        assert_eq!(samples, pieces.concat());
        for query in queries(variables, 20) {
            let holds = |row: &&[f64]| {
                row.iter().zip(query.evidence()).all(|(x, e)| match e {
                    Evidence::Value(v) => x == v,
                    Evidence::In(Part::Values(values)) => values.contains(&(*x as usize)),
                    Evidence::In(Part::Interval { .. }) | Evidence::Unknown => true,
                })
            };
            let share = samples.chunks_exact(5).filter(holds).count() as f64 / 20_000.0;
            let p = exact(&mixture, &query);
            let error = (p * (1.0 - p) / 20_000.0).sqrt();
            assert!((share - p).abs() < 4.5 * error + 1e-9, "{share} for {p}");

            // Given the query, samples keep to it, in the proportions of the next variable.
            let rows = Batch::from_queries(variables, &vec![query.clone(); 2000]).unwrap();
            let given = mixture.sample_given_from(0, &rows, 5).unwrap();
            assert!(given.chunks_exact(5).all(|row| holds(&row)));
            let mut first = query.clone();
            let Ok(()) = first.set(variables, 0, Evidence::Value(2.0)) else { continue };
            if query.evidence()[0] == Evidence::Unknown {
                let share = given.chunks_exact(5).filter(|row| row[0] == 2.0).count() as f64 / 2e3;
                let p = exact(&mixture, &first) / p;
                let error = (p * (1.0 - p) / 2e3).sqrt();
                assert!((share - p).abs() < 4.5 * error + 1e-9, "{share} for {p}");
            }
        }
        let mut nothing = Query::unknown(5);
        nothing.set(variables, 0, Evidence::In(Part::Values(Vec::new()))).unwrap();
        let rows = Batch::from_queries(variables, &[nothing]).unwrap();
        let error = mixture.sample_given_from(0, &rows, 5).unwrap_err();
        assert!(matches!(error, SampleError::Impossible { row: 0 }));
    }

    #[test]
    fn truncating_keeps_its_bound() {
        let mixture = mixture(false);
        let smaller = mixture.truncate(Budget::Width(2)).unwrap();
        assert_eq!(smaller.width, Some(2));
        let count = 3_usize.pow(5);
        let digit = |n: usize, v: u32| (n / 3_usize.pow(v) % 3) as f64;
        let values: Vec<f64> = (0..count).flat_map(|n| (0..5).map(move |v| digit(n, v))).collect();
        let rows = Batch::from_rows(mixture.variables(), &values).unwrap();
        let [p, q] = [&mixture, &smaller.mixture].map(|m| m.log_marginals(&rows).unwrap());
        let overlap: f64 = p.iter().zip(&q).map(|(p, q)| (0.5 * (p + q)).exp()).sum();
        let distance = (1.0 - overlap).max(0.0).sqrt();
        assert!(distance > 1e-3 && distance <= smaller.bound, "{distance}, {}", smaller.bound);
    }

    #[test]
    fn circuits_and_weights_must_fit() {
        let one = || circuit(RegionTree::balanced(5), 1, false);
        let other = || circuit(RegionTree::balanced(4), 1, false);
        let error = |circuits, weights: &[f64]| Mixture::new(circuits, weights).unwrap_err();
        assert_eq!(error(vec![], &[]), MixtureError::Count { circuits: 0, weights: 0 });
        assert_eq!(
            error(vec![one()], &[0.5, 0.5]),
            MixtureError::Count { circuits: 1, weights: 2 }
        );
        let weight = error(vec![one(), one()], &[1.0, 0.0]);
        assert_eq!(weight, MixtureError::Weight { index: 1, weight: 0.0 });
        assert!(matches!(error(vec![one()], &[f64::NAN]), MixtureError::Weight { .. }));
        let variables = error(vec![one(), other()], &[1.0, 1.0]);
        assert_eq!(variables, MixtureError::Variables { index: 1 });
        let sorted = Mixture::new(vec![one(), one()], &[1.0, 3.0]).unwrap();
        assert_eq!(sorted.weights(), [0.75, 0.25]);
        for n in 1..50 {
            let weights = [1.0 + f64::from(n) / 7.0, 1.0, 0.3];
            let first = Mixture::new(vec![one(), one(), one()], &weights).unwrap().weights();
            let again = Mixture::new(vec![one(), one(), one()], &first).unwrap().weights();
            assert_eq!(again, first);
        }
    }
}

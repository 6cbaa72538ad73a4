//! A mixture of normal distributions with full covariances, which teaches circuits for tables with
//! few rows and strongly correlated columns.

mod normal;
#[cfg(test)]
mod tests;
mod unit;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::mixture::{frequencies, log_frequencies, place, softmax, sum_of_rows};
use super::quota::Quota;
use crate::circuit::Skeleton;
use crate::domain::{Domain, Variable};
use crate::engine::Batch;
use crate::linalg::{Matrix, cholesky};
use normal::{Component, Conditional, LOG_ROOT, Marginal, distribution, normal, quantile};
pub(crate) use unit::Unit;

/// The numbers of components to try, as long as the validation likelihood improves.
const COMPONENTS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// The maximum number of EM iterations.
const ROUNDS: usize = 60;
/// EM ends when the mean log-likelihood rises by less than this.
const MIN_RISE: f64 = 1e-4;
/// The prior count of every component, in rows with the overall frequencies.
const PRIOR: f64 = 1.0;
/// This is added to the variance of every score.
const RIDGE: f64 = 1e-4;
/// The maximum number of rows.
const MAX_ROWS: usize = 20_000;
/// The maximum number of products of two scores, over all rows.
const MAX_PRODUCTS: usize = 4_000_000;
/// The maximum fraction of the remaining budget that a teacher takes.
const MAX_QUOTA_SHARE: f64 = 0.4;
/// The number of rows in a block.
const BLOCK: usize = 64;
/// The distributions of one variable.
#[derive(Clone, Debug)]
enum Column {
    /// log p of value x in component k, at x · components + k.
    Finite(Vec<f64>),
    /// The index of the variable's score.
    Normal(usize),
    /// The atoms, log p of each and of the rest in the same order as for finite values, and the index
    /// of the rest's score.
    Atoms(Vec<f64>, Vec<f64>, usize),
}

/// The units of variables, by variable; `None` for normal scores.
pub(crate) type Units = [Option<Unit>];

/// A mixture over the rows of a table. In each component, the values of finite variables are
/// independent, and the *scores* of continuous variables are jointly normal. The normal score of a
/// value at the fraction u of its interval is Φ⁻¹(u). A variable with a unit has scores in that unit
/// instead: columns that are proportional, or sums of others, have normal scores whose relations may
/// be far from straight lines.
#[derive(Clone, Debug)]
pub(crate) struct Teacher<'a> {
    variables: Vec<Variable>,
    units: &'a Units,
    columns: Vec<Column>,
    components: Vec<Component>,
}

/// Rows, sorted so that those with the same missing scores are adjacent.
struct Rows {
    batch: Batch,
    /// The scores of all continuous variables, row by row; NaN if missing.
    scores: Vec<f64>,
    /// For every row, the sum over its scores of ln ds/dv, where v is the fraction of the interval.
    slopes: Vec<f64>,
    dimension: usize,
}

impl Rows {
    fn new(variables: &[Variable], units: &Units, batch: &Batch, dimension: usize) -> Self {
        let (scores, slopes) = scores(variables, units, batch, dimension);
        let rows: Vec<&[f64]> = scores.chunks_exact(dimension).collect();
        let pattern = |row: usize| rows[row].iter().map(|z| z.is_nan());
        let mut order: Vec<usize> = (0..batch.len()).collect();
        order.sort_by(|&a, &b| pattern(a).cmp(pattern(b)));
        let scores = order.iter().flat_map(|&row| rows[row]).copied().collect();
        let slopes = order.iter().map(|&row| slopes[row]).collect();
        Self { batch: batch.select(&order), scores, slopes, dimension }
    }

    fn len(&self) -> usize {
        self.batch.len()
    }

    fn score(&self, row: usize) -> &[f64] {
        &self.scores[row * self.dimension..][..self.dimension]
    }

    /// Whether two rows have the same missing scores.
    fn have_same_missing(&self, a: usize, b: usize) -> bool {
        self.score(a).iter().zip(self.score(b)).all(|(a, b)| a.is_nan() == b.is_nan())
    }
}

impl<'a> Teacher<'a> {
    /// The number of continuous variables, if a mixture can be fitted: at least two and not too many,
    /// all of them intervals with or without atoms, and all other variables finite.
    fn dimension(circuit: &Skeleton, rows: usize) -> Option<usize> {
        let mut dimension = 0;
        for variable in circuit.variables() {
            match &variable.domain {
                Domain::Finite(_) => {}
                Domain::Interval(..) => dimension += 1,
                Domain::Atoms(a) if matches!(a.rest, Domain::Interval(..)) => dimension += 1,
                Domain::Atoms(_) | Domain::Real | Domain::HalfLine(_) | Domain::Circle(_) => {
                    return None;
                }
            }
        }
        let is_small =
            rows <= MAX_ROWS && rows.saturating_mul(dimension * dimension) <= MAX_PRODUCTS;
        (dimension >= 2 && is_small).then_some(dimension)
    }

    /// Whether a mixture can be fitted.
    pub(crate) fn is_for(circuit: &Skeleton, rows: usize) -> bool {
        Self::dimension(circuit, rows).is_some()
    }

    /// The mixture with the best validation likelihood, and the mean log-likelihood of the validation
    /// rows; `None` if no mixture can be fitted.
    pub(crate) fn fit(
        circuit: &Skeleton,
        units: &'a Units,
        [train, valid]: [&Batch; 2],
        seed: u64,
        quota: &Quota,
    ) -> Option<(Self, f64)> {
        let variables = circuit.variables();
        let dimension = Self::dimension(circuit, train.len())?;
        let end = quota.after(MAX_QUOTA_SHARE);
        let has_budget = &|| quota.used() < end;
        let [train, valid] =
            [train, valid].map(|rows| Rows::new(variables, units, rows, dimension));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(4);
        let all = vec![1.0; train.len()];
        let whole = Self::maximize(1, (variables, units), &train, &all, None, None)?;
        let mut best: Option<(Self, f64)> = None;
        for count in COMPONENTS {
            if count > 1 && (train.len() < 5 * count || !has_budget()) {
                break;
            }
            let Some(teacher) = whole.split(count, &train, &mut rng, has_budget) else { break };
            let value = teacher.mean_log_likelihood(&valid);
            if best.as_ref().is_some_and(|(_, found)| *found >= value) {
                break;
            }
            best = value.is_finite().then_some((teacher, value)).or(best);
        }
        best
    }

    /// The mean of log p(target | rest) over rows, given the mean of log p(row).
    pub(crate) fn mean_of_target(&self, rows: &Batch, target: &[usize], whole: f64) -> f64 {
        let dimension = self.components[0].mean.len();
        let rest = Rows::new(&self.variables, self.units, &rows.without(target), dimension);
        whole - self.mean_log_likelihood(&rest)
    }

    /// Fits a mixture with this many components, starting from this one, which has one component.
    fn split(
        &self,
        count: usize,
        rows: &Rows,
        rng: &mut impl Rng,
        has_budget: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let variables = (&self.variables[..], self.units);
        let mut shares = first_shares(count, rows, rng);
        let factor = &self.components[0].factor;
        let spread =
            factor.times_adjoint(factor).scaled((count as f64).powf(-2.0 / rows.dimension as f64));
        let prior = (count > 1).then_some(&spread);
        let mut teacher = Self::maximize(count, variables, rows, &shares, Some(self), prior)?;
        let mut last = f64::NEG_INFINITY;
        for _ in 0..ROUNDS {
            let blocks = shares.par_chunks_mut(BLOCK * count).enumerate().map(|(n, shares)| {
                teacher.logs(rows, n * BLOCK, shares);
                shares.chunks_exact_mut(count).map(softmax).collect::<Vec<f64>>()
            });
            let logs: Vec<Vec<f64>> = blocks.collect();
            let mean = logs.iter().flatten().sum::<f64>() / rows.len() as f64;
            if mean.is_nan() {
                return None;
            }
            if mean - last < MIN_RISE || !has_budget() {
                break;
            }
            last = mean;
            teacher = Self::maximize(count, variables, rows, &shares, Some(&teacher), prior)?;
        }
        Some(teacher)
    }

    /// The maximization step: the most likely mixture, given the responsibilities of components for
    /// rows. Missing scores have their expected values under the mixture `before`. The prior
    /// covariance `expected`, if any, counts as two more rows than there are scores.
    fn maximize(
        count: usize,
        (variables, units): (&[Variable], &'a Units),
        rows: &Rows,
        shares: &[f64],
        before: Option<&Self>,
        expected: Option<&Matrix<f64>>,
    ) -> Option<Self> {
        let m = rows.dimension;
        let all = sum_of_rows(shares, count);
        let frequencies = |v: usize, values: usize, place: &dyn Fn(f64) -> usize| {
            let whole = frequencies(&rows.batch, v, values, place);
            let cells = shares.chunks_exact(count).enumerate();
            let cells = cells.map(|(row, shares)| (rows.batch.value(row, v), shares));
            log_frequencies(cells, &all, &whole, PRIOR, place)
        };
        let mut places = 0..;
        let columns: Vec<Column> = variables
            .iter()
            .enumerate()
            .map(|(v, variable)| match &variable.domain {
                Domain::Finite(size) => Column::Finite(frequencies(v, *size, &|x| x as usize)),
                Domain::Atoms(a) => {
                    let logs = frequencies(v, a.points.len() + 1, &|x| place(&a.points, x));
                    Column::Atoms(a.points.clone(), logs, places.next().unwrap_or(0))
                }
                Domain::Real | Domain::Interval(..) | Domain::HalfLine(_) | Domain::Circle(_) => {
                    Column::Normal(places.next().unwrap_or(0))
                }
            })
            .collect();
        let components = (0..count).into_par_iter().map(|k| {
            let component = before.map(|b| &b.components[k.min(b.components.len() - 1)]);
            let mut total = 0.0;
            let (mut sum, mut products) = (vec![0.0; m], Matrix::<f64>::zeros(m, m));
            let (mut mean, mut z) = (vec![0.0; m], Vec::with_capacity(m));
            let mut start = 0;
            while start < rows.len() {
                let alike =
                    (start..rows.len()).take_while(|&row| rows.have_same_missing(start, row));
                let conditional = Conditional::new(rows.score(start), component);
                let (mut end, mut within) = (start, 0.0);
                for row in alike {
                    end = row + 1;
                    let r = shares[row * count + k];
                    if r < 1e-9 {
                        continue;
                    }
                    conditional.mean(rows.score(row), &mut mean, &mut z);
                    within += r;
                    for i in 0..m {
                        let scaled = r * mean[i];
                        sum[i] += scaled;
                        let products = products.row_mut(i)[..=i].iter_mut();
                        products.zip(&mean).for_each(|(p, x)| *p += scaled * x);
                    }
                }
                conditional.add_covariance(within, &mut products);
                total += within;
                start = end;
            }
            (total, sum, products)
        });
        let sums: Vec<(f64, Vec<f64>, Matrix<f64>)> = components.collect();
        let all: f64 = sums.iter().map(|s| s.0).sum();
        let degrees = if expected.is_some() { m as f64 + 2.0 } else { 0.0 };
        let components = sums.into_iter().map(|(total, sum, products)| {
            let mean: Vec<f64> = sum.iter().map(|x| x / total.max(1e-9)).collect();
            let covariance = Matrix::from_fn(m, m, |i, j| {
                let (i, j) = (i.max(j), i.min(j));
                let within = products[(i, j)] - total * mean[i] * mean[j];
                let before = expected.map_or(0.0, |e| degrees * e[(i, j)]);
                (within + before) / (total + degrees) + if i == j { RIDGE } else { 0.0 }
            });
            let weight = (total + PRIOR) / (all + count as f64 * PRIOR);
            Some(Component { weight, mean, factor: cholesky(&covariance)? })
        });
        let components = components.collect::<Option<Vec<_>>>()?;
        Some(Self { variables: variables.to_vec(), units, columns, components })
    }

    /// log wₖ pₖ of the observed values of the rows from `first` on, for each row and k.
    fn logs(&self, rows: &Rows, first: usize, out: &mut [f64]) {
        let count = self.components.len();
        let mut z = Vec::with_capacity(rows.dimension);
        let mut marginals: Vec<Marginal<'_>> = Vec::new();
        for (row, out) in (first..).zip(out.chunks_exact_mut(count)) {
            let scores = rows.score(row);
            if row == first || !rows.have_same_missing(row - 1, row) {
                let marginal = |c| Marginal::new(scores, c);
                marginals = self.components.iter().map(marginal).collect();
            }
            for (out, marginal) in out.iter_mut().zip(&marginals) {
                *out = marginal.component.weight.ln() + marginal.log_density(scores, &mut z);
            }
            for (v, column) in self.columns.iter().enumerate() {
                let x = rows.batch.value(row, v);
                let (logs, n) = match column {
                    Column::Normal(_) => continue,
                    Column::Finite(logs) => (logs, x as usize),
                    Column::Atoms(points, logs, _) => (logs, place(points, x)),
                };
                if !x.is_nan() {
                    out.iter_mut().zip(&logs[n * count..][..count]).for_each(|(out, p)| *out += p);
                }
            }
        }
    }

    /// The mean log-likelihood of rows, as a density on the variables' domains.
    fn mean_log_likelihood(&self, rows: &Rows) -> f64 {
        let count = self.components.len();
        let mut logs = vec![0.0; rows.len() * count];
        let blocks = logs.par_chunks_mut(BLOCK * count).enumerate();
        blocks.for_each(|(n, logs)| self.logs(rows, n * BLOCK, logs));
        let of = |(row, logs): (usize, &mut [f64])| {
            softmax(logs) + rows.slopes[row] - self.log_lengths(&rows.batch, row)
        };
        let sum: f64 = logs.chunks_exact_mut(count).enumerate().map(of).sum();
        sum / rows.len().max(1) as f64
    }

    /// The sum of the log lengths of the intervals that belong to a row's scores.
    fn log_lengths(&self, rows: &Batch, row: usize) -> f64 {
        let lengths = self.variables.iter().enumerate().map(|(v, variable)| {
            let x = rows.value(row, v);
            match interval(&variable.domain) {
                Some((a, b)) if is_score(&variable.domain, x) => (b - a).ln(),
                _ => 0.0,
            }
        });
        lengths.sum()
    }

    /// Draws `count` rows from the mixture.
    pub(crate) fn sample(&self, count: usize, seed: u64) -> Option<Batch> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(5);
        let components = self.components.len();
        let mut values = Vec::with_capacity(count * self.variables.len());
        for _ in 0..count {
            let k = choose(self.components.iter().map(|c| c.weight), &mut rng);
            let c = &self.components[k];
            let noise: Vec<f64> = c.mean.iter().map(|_| normal(&mut rng)).collect();
            let score = |i: usize| {
                let moved = c.factor.row(i)[..=i].iter().zip(&noise).map(|(l, e)| l * e);
                c.mean[i] + moved.sum::<f64>()
            };
            for ((variable, unit), column) in
                self.variables.iter().zip(self.units).zip(&self.columns)
            {
                let at = |place: usize| {
                    let (a, b) = interval(&variable.domain).unwrap_or((0.0, 1.0));
                    let score = score(place);
                    let z = unit.as_ref().map_or(score, |unit| unit.normal(score));
                    (a + (b - a) * distribution(z)).clamp(a, b)
                };
                let drawn = |logs: &[f64], rng: &mut ChaCha8Rng| {
                    choose(logs.iter().skip(k).step_by(components).map(|p| p.exp()), rng)
                };
                values.push(match column {
                    Column::Normal(place) => at(*place),
                    Column::Finite(logs) => drawn(logs, &mut rng) as f64,
                    Column::Atoms(points, logs, place) => match drawn(logs, &mut rng) {
                        n if n < points.len() => points[n],
                        _ => at(*place),
                    },
                });
            }
        }
        Batch::from_rows(&self.variables, &values).ok()
    }
}

fn interval(domain: &Domain) -> Option<(f64, f64)> {
    match domain {
        Domain::Interval(a, b) => Some((*a, *b)),
        Domain::Atoms(atoms) => interval(&atoms.rest),
        Domain::Finite(_) | Domain::Real | Domain::HalfLine(_) | Domain::Circle(_) => None,
    }
}

/// Whether a value belongs to a continuous variable and is neither missing nor an atom.
fn is_score(domain: &Domain, x: f64) -> bool {
    let is_atom = match domain {
        Domain::Atoms(atoms) => place(&atoms.points, x) < atoms.points.len(),
        Domain::Finite(_) => true,
        Domain::Real | Domain::Interval(..) | Domain::HalfLine(_) | Domain::Circle(_) => false,
    };
    !x.is_nan() && !is_atom
}

/// The scores of all rows, and the sums of the logs of their slopes.
fn scores(
    variables: &[Variable],
    units: &Units,
    rows: &Batch,
    dimension: usize,
) -> (Vec<f64>, Vec<f64>) {
    let mut scores = Vec::with_capacity(rows.len() * dimension);
    let mut slopes = vec![0.0; rows.len()];
    for (row, slopes) in slopes.iter_mut().enumerate() {
        for (v, (variable, unit)) in variables.iter().zip(units).enumerate() {
            let Some((a, b)) = interval(&variable.domain) else { continue };
            let x = rows.value(row, v);
            if !is_score(&variable.domain, x) {
                scores.push(f64::NAN);
                continue;
            }
            let z = quantile((x - a) / (b - a));
            let (score, log_slope) = unit.as_ref().map_or((z, 0.0), |unit| unit.score(z));
            scores.push(score);
            // dz/dv is the inverse of the normal density.
            *slopes += log_slope + 0.5 * z * z + LOG_ROOT;
        }
    }
    (scores, slopes)
}

/// Initial responsibilities: each row mostly belongs to the nearest of some random rows, which are
/// far from each other.
fn first_shares(count: usize, rows: &Rows, rng: &mut impl Rng) -> Vec<f64> {
    let n = rows.len();
    let distance = |a: usize, b: usize| {
        let pairs = rows.score(a).iter().zip(rows.score(b));
        pairs.map(|(x, y)| (x - y) * (x - y)).filter(|d| !d.is_nan()).sum::<f64>()
    };
    let mut nearest: Vec<(f64, usize)> = vec![(f64::INFINITY, 0); n];
    let mut next = rng.random_range(0..n);
    for k in 0..count {
        for (row, near) in nearest.iter_mut().enumerate() {
            let d = distance(row, next);
            if d < near.0 {
                *near = (d, k);
            }
        }
        next = choose(nearest.iter().map(|near| near.0), rng);
    }
    let mut shares = vec![0.1 / count as f64; n * count];
    for (row, (_, k)) in nearest.iter().enumerate() {
        shares[row * count + k] += 0.9;
    }
    shares
}

/// Draws an index, with probabilities proportional to the weights.
fn choose(weights: impl Iterator<Item = f64> + Clone, rng: &mut impl Rng) -> usize {
    let total: f64 = weights.clone().sum();
    let mut rest = rng.random::<f64>() * total;
    let mut last = 0;
    for (n, weight) in weights.enumerate() {
        if weight > 0.0 {
            last = n;
            if rest < weight {
                return n;
            }
        }
        rest -= weight;
    }
    last
}

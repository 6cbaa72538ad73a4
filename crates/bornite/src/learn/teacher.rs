//! A mixture of normal distributions with full covariances, to learn from where rows are few and columns strongly correlated.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::mixture::{frequencies, log_frequencies, place, softmax};
use crate::circuit::Skeleton;
use crate::domain::{Domain, Variable};
use crate::engine::Batch;
use crate::linalg::{Matrix, cholesky};

/// Numbers of components to try, as long as validation gets better.
const COMPONENTS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// The most rounds of expectation and maximization, and the rise of the mean log-likelihood below which they end.
const ROUNDS: usize = 60;
const RISE: f64 = 1e-4;
/// Rows that a frequency of all rows counts for, in each component.
const PRIOR: f64 = 1.0;
/// What the variance of a score has at least.
const RIDGE: f64 = 1e-4;
/// The most rows that it is fitted to, and products of two of their scores.
const ROWS: usize = 20_000;
const PRODUCTS: usize = 4_000_000;
/// Numbers beyond this many deviations are taken for this many.
const FAR: f64 = 6.0;

/// What of a variable a teacher knows.
#[derive(Clone, Debug)]
enum Column {
    /// log p of value x in component k, at x · components + k.
    Finite(Vec<f64>),
    /// The place of its score among those of all continuous variables.
    Normal(usize),
    /// The atoms; log p of each, and of the rest, as of finite values; and the place of the rest's score.
    Atoms(Vec<f64>, Vec<f64>, usize),
}

/// One component: its weight, and the mean and the Cholesky factor of the covariance of the scores.
#[derive(Clone, Debug)]
struct Component {
    weight: f64,
    mean: Vec<f64>,
    factor: Matrix<f64>,
}

impl Component {
    fn covariance(&self, i: usize, j: usize) -> f64 {
        let both = self.factor.row(i).iter().zip(self.factor.row(j));
        both.map(|(a, b)| a * b).sum()
    }

    /// The Cholesky factor of the covariance of some scores.
    fn factor_of(&self, places: &[usize]) -> Option<Matrix<f64>> {
        let n = places.len();
        cholesky(&Matrix::from_fn(n, n, |i, j| self.covariance(places[i], places[j])))
    }
}

/// A mixture over rows of a table. Values of finite variables are independent in each component; the *scores* of continuous ones, which
/// are Φ⁻¹(u) of a value at the share u of its interval, are jointly normal.
#[derive(Clone, Debug)]
pub(crate) struct Teacher {
    variables: Vec<Variable>,
    columns: Vec<Column>,
    components: Vec<Component>,
}

/// Rows as the maximization needs them.
struct Rows<'a> {
    batch: &'a Batch,
    /// The scores of all continuous variables, row after row; NaN where there is none.
    scores: Vec<f64>,
    dimension: usize,
}

impl Rows<'_> {
    fn score(&self, row: usize) -> &[f64] {
        &self.scores[row * self.dimension..][..self.dimension]
    }
}

impl Teacher {
    /// The number of continuous variables, where a mixture can be fitted: at least two and not too many, all others finite, and all of
    /// them intervals, with or without atoms.
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
        let is_small = rows <= ROWS && rows.saturating_mul(dimension * dimension) <= PRODUCTS;
        (dimension >= 2 && is_small).then_some(dimension)
    }

    /// Whether there is a mixture to be fitted.
    pub(crate) fn is_for(circuit: &Skeleton, rows: usize) -> bool {
        Self::dimension(circuit, rows).is_some()
    }

    /// The best mixture by the validation rows, and their mean log-likelihood. `None` where there is none.
    pub(crate) fn fit(
        circuit: &Skeleton,
        train: &Batch,
        valid: &Batch,
        seed: u64,
    ) -> Option<(Self, f64)> {
        let variables = circuit.variables();
        let dimension = Self::dimension(circuit, train.len())?;
        let rows = |batch| Rows { batch, scores: scores(variables, batch, dimension), dimension };
        let (train, valid) = (rows(train), rows(valid));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(4);
        let all = vec![1.0; train.batch.len()];
        let whole = Self::maximize(1, variables, &train, &all, None, None)?;
        let mut best: Option<(Self, f64)> = None;
        for count in COMPONENTS {
            if count > 1 && train.batch.len() < 5 * count {
                break;
            }
            let Some(teacher) = whole.split(count, variables, &train, &mut rng) else { break };
            let value = teacher.mean_log_likelihood(&valid);
            if best.as_ref().is_some_and(|(_, found)| *found >= value) {
                break;
            }
            best = value.is_finite().then_some((teacher, value)).or(best);
        }
        best
    }

    /// A mixture of so many components, from this one of a single component.
    fn split(
        &self,
        count: usize,
        variables: &[Variable],
        rows: &Rows<'_>,
        rng: &mut impl Rng,
    ) -> Option<Self> {
        let mut shares = first_shares(count, rows, rng);
        let factor = &self.components[0].factor;
        let spread =
            factor.times_adjoint(factor).scaled((count as f64).powf(-2.0 / rows.dimension as f64));
        let prior = (count > 1).then_some(&spread);
        let mut teacher = Self::maximize(count, variables, rows, &shares, Some(self), prior)?;
        let mut last = f64::NEG_INFINITY;
        for _ in 0..ROUNDS {
            let logs = shares.par_chunks_mut(count).enumerate().map(|(row, shares)| {
                teacher.logs(rows, row, shares);
                softmax(shares)
            });
            let mean = logs.collect::<Vec<f64>>().iter().sum::<f64>() / rows.batch.len() as f64;
            if mean.is_nan() {
                return None;
            }
            if mean - last < RISE {
                break;
            }
            last = mean;
            teacher = Self::maximize(count, variables, rows, &shares, Some(&teacher), prior)?;
        }
        Some(teacher)
    }

    /// The mixture that is likeliest if rows are the components' by their shares; missing scores are what `before` expects.
    /// Where a covariance is expected before there are rows, it counts for as many of them as there are scores, and two.
    fn maximize(
        count: usize,
        variables: &[Variable],
        rows: &Rows<'_>,
        shares: &[f64],
        before: Option<&Self>,
        expected: Option<&Matrix<f64>>,
    ) -> Option<Self> {
        let m = rows.dimension;
        let frequencies = |v: usize, values: usize, place: &dyn Fn(f64) -> usize| {
            let whole = frequencies(rows.batch, v, values, place);
            let cells = shares.chunks_exact(count).enumerate();
            let cells = cells.map(|(row, shares)| (rows.batch.value(row, v), shares));
            log_frequencies(cells.filter(|(x, _)| !x.is_nan()), &whole, PRIOR, count, place)
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
            let mut total = 0.0;
            let (mut sum, mut products) = (vec![0.0; m], Matrix::<f64>::zeros(m, m));
            let mut known = Conditional::new(m);
            for row in 0..rows.batch.len() {
                let r = shares[row * count + k];
                if r < 1e-9 {
                    continue;
                }
                let component = before.map(|b| &b.components[k.min(b.components.len() - 1)]);
                known.fill(rows.score(row), component);
                total += r;
                for i in 0..m {
                    sum[i] += r * known.mean[i];
                    for j in 0..=i {
                        products[(i, j)] +=
                            r * (known.mean[i] * known.mean[j] + known.covariance[(i, j)]);
                    }
                }
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
        Some(Self { variables: variables.to_vec(), columns, components })
    }

    /// log wₖ pₖ of what is known of a row.
    fn logs(&self, rows: &Rows<'_>, row: usize, out: &mut [f64]) {
        let count = self.components.len();
        let scores = rows.score(row);
        for (out, c) in out.iter_mut().zip(&self.components) {
            *out = c.weight.ln() + log_normal(scores, c);
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

    /// Of rows, by the measure of the variables' domains.
    fn mean_log_likelihood(&self, rows: &Rows<'_>) -> f64 {
        let of = |row: usize| {
            let mut logs = vec![0.0; self.components.len()];
            self.logs(rows, row, &mut logs);
            // A score has the density of its u times du/dz, the normal density.
            let slope: f64 = rows
                .score(row)
                .iter()
                .filter(|z| !z.is_nan())
                .map(|z| 0.5 * z * z + LOG_ROOT)
                .sum();
            softmax(&mut logs) + slope - self.log_lengths(rows.batch, row)
        };
        let logs: Vec<f64> = (0..rows.batch.len()).into_par_iter().map(of).collect();
        logs.iter().sum::<f64>() / logs.len().max(1) as f64
    }

    /// Σ ln of the lengths of the intervals that a row's scores are of.
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

    /// So many rows of the mixture.
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
            for (variable, column) in self.variables.iter().zip(&self.columns) {
                let at = |place: usize| {
                    let (a, b) = interval(&variable.domain).unwrap_or((0.0, 1.0));
                    (a + (b - a) * distribution(score(place))).clamp(a, b)
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

/// ln √(2π).
const LOG_ROOT: f64 = 0.918_938_533_204_672_8;

fn interval(domain: &Domain) -> Option<(f64, f64)> {
    match domain {
        Domain::Interval(a, b) => Some((*a, *b)),
        Domain::Atoms(atoms) => interval(&atoms.rest),
        Domain::Finite(_) | Domain::Real | Domain::HalfLine(_) | Domain::Circle(_) => None,
    }
}

/// Whether a value of a continuous variable is known and no atom.
fn is_score(domain: &Domain, x: f64) -> bool {
    let is_atom = match domain {
        Domain::Atoms(atoms) => place(&atoms.points, x) < atoms.points.len(),
        Domain::Finite(_) => true,
        Domain::Real | Domain::Interval(..) | Domain::HalfLine(_) | Domain::Circle(_) => false,
    };
    !x.is_nan() && !is_atom
}

/// The scores of all rows.
fn scores(variables: &[Variable], rows: &Batch, dimension: usize) -> Vec<f64> {
    let mut scores = Vec::with_capacity(rows.len() * dimension);
    for row in 0..rows.len() {
        for (v, variable) in variables.iter().enumerate() {
            let Some((a, b)) = interval(&variable.domain) else { continue };
            let x = rows.value(row, v);
            let is_score = is_score(&variable.domain, x);
            scores.push(if is_score { quantile((x - a) / (b - a)) } else { f64::NAN });
        }
    }
    scores
}

/// Mostly the component of the nearest of some rows that are far from each other.
fn first_shares(count: usize, rows: &Rows<'_>, rng: &mut impl Rng) -> Vec<f64> {
    let n = rows.batch.len();
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

/// One of several, by their weights.
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

/// A row's scores in one component, those that are missing by their mean and covariance given the others.
struct Conditional {
    mean: Vec<f64>,
    covariance: Matrix<f64>,
    is_complete: bool,
}

impl Conditional {
    fn new(m: usize) -> Self {
        Self { mean: vec![0.0; m], covariance: Matrix::zeros(m, m), is_complete: true }
    }

    fn fill(&mut self, scores: &[f64], component: Option<&Component>) {
        let m = scores.len();
        self.mean.copy_from_slice(scores);
        if !self.is_complete {
            self.covariance = Matrix::zeros(m, m);
        }
        self.is_complete = scores.iter().all(|z| !z.is_nan());
        if self.is_complete {
            return;
        }
        let (known, missing): (Vec<usize>, Vec<usize>) = (0..m).partition(|&i| !scores[i].is_nan());
        let Some(c) = component else {
            for &i in &missing {
                (self.mean[i], self.covariance[(i, i)]) = (0.0, 1.0);
            }
            return;
        };
        let Some(l) = c.factor_of(&known) else { return };
        // B = L⁻¹ Σ(known, missing), and L⁻¹ of the known scores.
        let solve = |mut b: Vec<f64>| {
            for i in 0..b.len() {
                let done: f64 = l.row(i)[..i].iter().zip(&b).map(|(l, b)| l * b).sum();
                b[i] = (b[i] - done) / l[(i, i)];
            }
            b
        };
        let by: Vec<Vec<f64>> = missing
            .iter()
            .map(|&j| solve(known.iter().map(|&i| c.covariance(i, j)).collect()))
            .collect();
        let z = solve(known.iter().map(|&i| scores[i] - c.mean[i]).collect());
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for (p, &i) in missing.iter().enumerate() {
            self.mean[i] = c.mean[i] + dot(&by[p], &z);
            for (q, &j) in missing.iter().enumerate() {
                self.covariance[(i, j)] = c.covariance(i, j) - dot(&by[p], &by[q]);
            }
        }
    }
}

/// The log density of the scores that are known.
fn log_normal(scores: &[f64], c: &Component) -> f64 {
    let known: Vec<usize> = (0..scores.len()).filter(|&i| !scores[i].is_nan()).collect();
    let block;
    let factor = if known.len() == scores.len() {
        &c.factor
    } else {
        let Some(l) = c.factor_of(&known) else { return f64::NEG_INFINITY };
        block = l;
        &block
    };
    let mut z: Vec<f64> = Vec::with_capacity(known.len());
    let mut log = 0.0;
    for (n, &i) in known.iter().enumerate() {
        let done: f64 = factor.row(n)[..n].iter().zip(&z).map(|(l, z)| l * z).sum();
        let next = (scores[i] - c.mean[i] - done) / factor[(n, n)];
        log -= 0.5 * next * next + factor[(n, n)].ln() + LOG_ROOT;
        z.push(next);
    }
    log
}

fn normal(rng: &mut impl Rng) -> f64 {
    let (a, b): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// Φ(z).
fn distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// Φ⁻¹(u), at most `FAR`: by halving, and then by Newton's steps.
fn quantile(u: f64) -> f64 {
    if !(u > distribution(-FAR) && u < distribution(FAR)) {
        return if u < 0.5 { -FAR } else { FAR };
    }
    let (mut low, mut high) = (-FAR, FAR);
    for _ in 0..12 {
        let middle = 0.5 * (low + high);
        if distribution(middle) < u { low = middle } else { high = middle }
    }
    let mut z = 0.5 * (low + high);
    for _ in 0..3 {
        let density = (-0.5 * z * z - LOG_ROOT).exp();
        z -= (distribution(z) - u) / density;
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::Basis;
    use crate::circuit::{Circuit, Weights};
    use crate::structure::{RegionTree, Structure};

    /// x and y with a correlation of 0.95, y an atom in a fifth of the rows, and a label that tells the sign of x.
    fn rows(count: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let mut values = Vec::new();
        for _ in 0..count {
            let (a, b) = (normal(rng), normal(rng));
            let y = distribution(0.95 * a + 0.312_25 * b);
            let y = if rng.random_bool(0.2) { 0.5 } else { y };
            values.extend([distribution(a), y, f64::from(u8::from(a > 0.0))]);
        }
        values
    }

    fn circuit() -> Circuit {
        let leaf = |v: usize| {
            let basis = Basis::legendre(4, 0.0, 1.0).unwrap();
            let unit = Domain::Interval(0.0, 1.0);
            match v {
                0 => (Variable::new("x", unit), basis),
                1 => (
                    Variable::new("y", Domain::with_atoms([0.5], unit)),
                    basis.with_atoms([0.5]).unwrap(),
                ),
                _ => (Variable::new("z", Domain::Finite(2)), Basis::indicator(2)),
            }
        };
        let structure = Structure::new(RegionTree::balanced(3), leaf).width(2);
        structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn it_learns_correlations_atoms_and_labels() {
        let rng = &mut ChaCha8Rng::seed_from_u64(7);
        let circuit = circuit();
        let mut values = rows(2000, rng);
        values[3] = f64::NAN;
        values[10] = f64::NAN;
        let train = Batch::from_rows(circuit.variables(), &values).unwrap();
        let valid = Batch::from_rows(circuit.variables(), &rows(1000, rng)).unwrap();
        let (teacher, value) = Teacher::fit(&circuit, &train, &valid, 1).unwrap();
        // The entropy of the atom, a label that two components know, and ½ ln(1 / (1 − ρ²)) where y is no atom.
        let atom = 0.2 * 0.2_f64.ln() + 0.8 * 0.8_f64.ln();
        let best = atom + 0.8 * -0.5 * (1.0 - 0.95_f64 * 0.95).ln();
        assert!(value < best + 0.1 && value > best - 0.75, "{value} for {best}");

        let made = teacher.sample(4000, 2).unwrap();
        let number = |row, v| made.value(row, v);
        let atoms = (0..4000).filter(|&row| number(row, 1) == 0.5).count() as f64 / 4000.0;
        assert!((atoms - 0.2).abs() < 0.03, "{atoms}");
        let scores: Vec<[f64; 2]> = (0..4000)
            .filter(|&row| number(row, 1) != 0.5)
            .map(|row| [quantile(number(row, 0)), quantile(number(row, 1))])
            .collect();
        let n = scores.len() as f64;
        let moment = |f: &dyn Fn(&[f64; 2]) -> f64| scores.iter().map(f).sum::<f64>() / n;
        let (x, y) = (moment(&|s| s[0]), moment(&|s| s[1]));
        let covariance = moment(&|s| s[0] * s[1]) - x * y;
        let spread = |i: usize, m: f64| (moment(&|s| s[i] * s[i]) - m * m).sqrt();
        let correlation = covariance / (spread(0, x) * spread(1, y));
        assert!((correlation - 0.95).abs() < 0.02, "{correlation}");
    }

    #[test]
    fn it_has_nothing_to_say_of_labels_alone_or_other_domains() {
        let finite =
            |v: usize| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
        let real = |v: usize| {
            let basis = Basis::hermite(3, 0.0, 1.0).unwrap();
            (Variable::new(format!("x{v}"), Domain::Real), basis)
        };
        let leaves: [&dyn Fn(usize) -> (Variable, Basis); 2] = [&finite, &real];
        for leaf in leaves {
            let structure = Structure::new(RegionTree::balanced(2), leaf).width(2);
            let rng = &mut ChaCha8Rng::seed_from_u64(1);
            let circuit = structure.build(Weights::Haar, rng).unwrap();
            let rows = Batch::from_rows(circuit.variables(), &[0.0, 1.0, 1.0, 0.0]).unwrap();
            assert!(Teacher::fit(&circuit, &rows, &rows, 1).is_none());
        }
    }

    #[test]
    fn quantiles_invert_the_distribution() {
        for z in [-5.5, -2.0, -0.1, 0.0, 0.7, 3.0, 5.9] {
            assert!((quantile(distribution(z)) - z).abs() < 1e-6 * (1.0 + z.exp()), "{z}");
        }
        assert_eq!([quantile(0.0), quantile(1.0)], [-FAR, FAR]);
    }
}

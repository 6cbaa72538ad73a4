//! A mixture of products of single-variable distributions, fitted by expectation maximization.

#![expect(clippy::inline_always, reason = "only inlined code is compiled for the instruction set")]

use std::sync::Arc;

use rand::{Rng, RngExt};
use rayon::prelude::*;

use super::quota::Quota;
use crate::basis::Basis;
use crate::domain::find;
use crate::engine::{Batch, Simd};
use crate::linalg::{Complex64, Matrix};

/// The prior count of every component, in rows with each column's overall distribution. So
/// components with few rows are close to that distribution. At most the mean number of rows
/// per component, so that it does not outweigh the rows if there are few.
const MAX_PRIOR: f64 = 10.0;
/// The maximum number of EM iterations, for few and for many cells.
const ROUNDS: [usize; 2] = [60, 40];
/// More cells than this are many.
const MANY_CELLS: usize = 4_000_000;
/// EM ends when the mean log-likelihood rises by less than this many nats.
const MIN_RISE: f64 = 1e-3;
/// The maximum fraction of the remaining budget that EM takes.
const MAX_QUOTA_SHARE: f64 = 0.2;
/// The maximum number of cells that EM uses.
const MAX_CELLS: usize = 16_000_000;
/// The number of rows in a block.
const BLOCK: usize = 64;
/// The number of quadrature nodes for projecting densities on basis functions.
const POINTS: usize = 1024;

/// Σₖ wₖ Πᵢ pᵢₖ.
#[derive(Debug)]
pub(super) struct Mixture {
    weights: Vec<f64>,
    columns: Vec<Column>,
}

/// The distributions of one variable, one per component.
#[derive(Debug)]
enum Column {
    Finite(Logs),
    /// The means and standard deviations of normal distributions.
    Normal(Vec<(f64, f64)>),
    /// Atoms at these points, log p of each and of the rest, and normal distributions of the rest.
    Atoms(Arc<[f64]>, Logs, Vec<(f64, f64)>),
}

impl Column {
    fn logs(&self) -> Option<&Logs> {
        match self {
            Self::Finite(logs) | Self::Atoms(_, logs, _) => Some(logs),
            Self::Normal(_) => None,
        }
    }
}

/// log p of the values of a variable, in every component.
#[derive(Debug)]
struct Logs {
    /// log p of value x in component k is at x · components + k.
    all: Vec<f64>,
    components: usize,
    /// The most frequent value.
    usual: usize,
}

impl Logs {
    fn of(&self, value: usize) -> &[f64] {
        &self.all[value * self.components..][..self.components]
    }

    /// Replaces log p of the most frequent value, which has been added to `out`, by that of a cell.
    /// `place` returns the number of a value.
    #[inline(always)]
    fn replace_usual(&self, x: f64, place: impl Fn(f64) -> usize, out: &mut [f64]) {
        let usual = self.of(self.usual);
        if x.is_nan() {
            out.iter_mut().zip(usual).for_each(|(out, p)| *out -= p);
            return;
        }
        let value = place(x);
        if value != self.usual {
            let changes = self.of(value).iter().zip(usual);
            out.iter_mut().zip(changes).for_each(|(out, (p, usual))| *out += p - usual);
        }
    }
}

/// The overall distribution of one variable.
#[derive(Debug)]
enum Whole {
    /// p of each value.
    Finite(Vec<f64>),
    /// The means of x and of x².
    Normal(f64, f64),
    /// Atoms, p of each and of the rest, and the means of x and of x² over the rest.
    Atoms(Arc<[f64]>, Vec<f64>, (f64, f64)),
}

/// Rows, and the responsibility of each component for each row.
#[derive(Debug)]
struct Sample {
    rows: Batch,
    components: usize,
    shares: Vec<f64>,
    prior: f64,
}

impl Mixture {
    /// Fits a mixture with this many components to the rows, or to a part of them if there are many.
    /// Missing values are ignored.
    ///
    /// The bases determine which variables are finite. The same random numbers give the same bits,
    /// for any number of threads. `None` if values are so large that their squares are not finite.
    pub(super) fn fit(
        components: usize,
        bases: &[&Basis],
        rows: &Batch,
        rng: &mut impl Rng,
        quota: &Quota,
    ) -> Option<Self> {
        let end = quota.after(MAX_QUOTA_SHARE);
        let count = rows.len().min((MAX_CELLS / bases.len().max(1)).max(1));
        let prior = MAX_PRIOR.min(count as f64 / components as f64);
        let mut sample = Sample {
            rows: some_rows(rows, count),
            components,
            prior,
            // Each row mostly belongs to one component.
            shares: vec![0.2 / components as f64; count * components],
        };
        for row in sample.shares.chunks_exact_mut(components) {
            row[rng.random_range(0..components)] += 0.8;
        }
        let wholes = bases.par_iter().enumerate().map(|(variable, basis)| {
            let points = basis.atoms();
            match basis_frequencies(rows, variable, basis) {
                None => {
                    let (x, square) = sample.moments(variable, points);
                    Whole::Normal(x, square)
                }
                Some(p) if points.is_empty() => Whole::Finite(p),
                Some(p) => Whole::Atoms(points.into(), p, sample.moments(variable, points)),
            }
        });
        let wholes: Vec<Whole> = wholes.collect();
        let mut mixture = sample.maximize(&wholes);
        let mut last = f64::NEG_INFINITY;
        let is_many = count * bases.len() > MANY_CELLS;
        for _ in 0..ROUNDS[usize::from(is_many)] {
            let blocks = sample.shares.par_chunks_mut(BLOCK * components).enumerate();
            let logs = blocks.map(|(n, shares)| {
                mixture.logs(&sample.rows, n * BLOCK, shares);
                shares.chunks_exact_mut(components).map(softmax).collect::<Vec<f64>>()
            });
            let logs: Vec<Vec<f64>> = logs.collect();
            let mean = logs.iter().flatten().sum::<f64>() / count.max(1) as f64;
            if mean.is_nan() || mean - last < MIN_RISE {
                break;
            }
            last = mean;
            mixture = sample.maximize(&wholes);
            if quota.used() >= end {
                break;
            }
        }
        last.is_finite().then_some(mixture)
    }

    /// A mixture over finite variables whose components have equal weights, given log p of value x in
    /// component k, at x · components + k, and the most frequent value of every variable.
    pub(super) fn of_tables(
        components: usize,
        tables: impl Iterator<Item = (Vec<f64>, usize)>,
    ) -> Self {
        let column = |(all, usual)| Column::Finite(Logs { all, components, usual });
        let weights = vec![1.0 / components as f64; components];
        Self { weights, columns: tables.map(column).collect() }
    }

    /// The mean of log p over rows, up to constants for normal distributions.
    pub(super) fn mean_log_likelihood(&self, rows: &Batch) -> f64 {
        let mut logs = vec![0.0; rows.len() * self.weights.len()];
        let blocks = logs.par_chunks_mut(BLOCK * self.weights.len()).enumerate();
        let sums = blocks.map(|(n, logs)| {
            self.logs(rows, n * BLOCK, logs);
            logs.chunks_exact_mut(self.weights.len()).map(softmax).sum::<f64>()
        });
        let sums: Vec<f64> = sums.collect();
        sums.iter().sum::<f64>() / rows.len().max(1) as f64
    }

    /// log wₖ pₖ of the observed values of the rows from `first` on, for each row and k, up to a
    /// constant for each normal distribution.
    ///
    /// Every row starts with the sum for the most frequent value of every column. So only cells with
    /// other values take time, which are few in a sparse table.
    fn logs(&self, rows: &Batch, first: usize, out: &mut [f64]) {
        Simd::default().run(
            #[inline(always)]
            || {
                let components = self.weights.len();
                let count = out.len() / components;
                let mut usual: Vec<f64> = self.weights.iter().map(|w| w.ln()).collect();
                for logs in self.columns.iter().filter_map(Column::logs) {
                    add(&mut usual, logs.of(logs.usual));
                }
                for row in out.chunks_exact_mut(components) {
                    row.copy_from_slice(&usual);
                }
                let mut values = vec![0.0; count];
                for (variable, column) in self.columns.iter().enumerate() {
                    rows.read(variable, first..first + count, &mut values);
                    let rows = out.chunks_exact_mut(components).zip(&values);
                    match column {
                        Column::Finite(logs) => {
                            rows.for_each(|(out, &x)| logs.replace_usual(x, |x| x as usize, out));
                        }
                        Column::Normal(normals) => {
                            let scales = scales(normals);
                            for (out, &x) in rows.filter(|(_, x)| !x.is_nan()) {
                                add_normals(&scales, x, out);
                            }
                        }
                        Column::Atoms(points, logs, normals) => {
                            let scales = scales(normals);
                            for (out, &x) in rows {
                                logs.replace_usual(x, |x| place(points, x), out);
                                if !x.is_nan() && find(points, x).is_none() {
                                    add_normals(&scales, x, out);
                                }
                            }
                        }
                    }
                }
            },
        );
    }

    /// log p of the evidence about a row.
    #[cfg(test)]
    pub(super) fn log_likelihood(&self, rows: &Batch, row: usize) -> f64 {
        let mut logs = vec![0.0; self.weights.len()];
        self.logs(rows, row, &mut logs);
        softmax(&mut logs)
    }

    /// The number of parameters of all variables.
    pub(super) fn num_entries(&self) -> usize {
        let entries = |column: &Column| match column {
            Column::Finite(logs) => logs.all.len(),
            Column::Normal(normals) => 2 * normals.len(),
            Column::Atoms(_, logs, normals) => logs.all.len() + 2 * normals.len(),
        };
        self.columns.iter().map(entries).sum()
    }

    /// The weight of each component.
    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The frequencies of the values of a finite variable.
    pub(super) fn frequencies(&self, variable: usize) -> Option<Vec<f64>> {
        let Column::Finite(logs) = &self.columns[variable] else { return None };
        let mean = |logs: &[f64]| logs.iter().zip(&self.weights).map(|(p, w)| w * p.exp()).sum();
        Some(logs.all.chunks_exact(self.weights.len()).map(mean).collect())
    }

    /// The roots of one variable's densities in terms of its functions, one per row, with unit norm.
    pub(super) fn roots(&self, variable: usize, basis: &Basis) -> Matrix<Complex64> {
        let (components, width) = (self.weights.len(), basis.width());
        nonzero_unit_rows(match &self.columns[variable] {
            Column::Finite(logs) => Matrix::from_fn(components, width, |k, x| {
                Complex64::from((0.5 * logs.of(x)[k]).exp())
            }),
            Column::Normal(normals) => nonzero_unit_rows(projected(normals, basis)),
            Column::Atoms(points, logs, normals) => {
                let rest = nonzero_unit_rows(projected(normals, basis.rest()));
                let (m, share) = (points.len(), |k: usize, n: usize| logs.of(n)[k]);
                Matrix::from_fn(components, width, |k, x| match x.checked_sub(m) {
                    None => Complex64::from((0.5 * share(k, x)).exp()),
                    Some(x) => rest[(k, x)] * (0.5 * share(k, m)).exp(),
                })
            }
        })
    }
}

impl Sample {
    /// The maximization step: the most likely mixture, given the responsibilities.
    fn maximize(&self, wholes: &[Whole]) -> Mixture {
        let all = sum_of_rows(&self.shares, self.components);
        let total: f64 = all.iter().map(|w| 1.0 + w).sum();
        let weights = all.iter().map(|w| (1.0 + w) / total).collect();
        let columns = wholes.par_iter().enumerate().map(|(variable, whole)| match whole {
            Whole::Finite(p) => Column::Finite(self.logs(variable, &all, p, &|x| x as usize)),
            Whole::Normal(center, square) => {
                Column::Normal(self.normals(variable, &[], (*center, *square)))
            }
            Whole::Atoms(points, p, moments) => Column::Atoms(
                points.clone(),
                self.logs(variable, &all, p, &|x| place(points, x)),
                self.normals(variable, points, *moments),
            ),
        });
        Mixture { weights, columns: columns.collect() }
    }

    /// The mean and standard deviation in each component of the values that are not atoms, given the
    /// overall means of x and x².
    fn normals(
        &self,
        variable: usize,
        atoms: &[f64],
        (center, square): (f64, f64),
    ) -> Vec<(f64, f64)> {
        let least = 1e-3 * (square - center * center).max(0.0).sqrt() + 1e-9;
        // Rows, Σ x and Σ x² of each component.
        let prior = self.prior;
        let mut sums = vec![[prior, prior * center, prior * square]; self.components];
        for (x, shares) in self.known(variable).filter(|(x, _)| find(atoms, *x).is_none()) {
            for ([rows, sum, squares], r) in sums.iter_mut().zip(shares) {
                *rows += r;
                *sum += r * x;
                *squares += r * x * x;
            }
        }
        let normal = |[rows, sum, squares]: &[f64; 3]| {
            let mean = sum / rows;
            (mean, (squares / rows - mean * mean).max(0.0).sqrt().max(least))
        };
        sums.iter().map(normal).collect()
    }

    /// The values of a variable (NaN if missing), with the responsibilities for their rows.
    fn cells(&self, variable: usize) -> impl Iterator<Item = (f64, &[f64])> {
        let shares = self.shares.chunks_exact(self.components).enumerate();
        shares.map(move |(row, shares)| (self.rows.value(row, variable), shares))
    }

    fn known(&self, variable: usize) -> impl Iterator<Item = (f64, &[f64])> {
        self.cells(variable).filter(|(x, _)| !x.is_nan())
    }

    fn logs(
        &self,
        variable: usize,
        all: &[f64],
        whole: &[f64],
        place: &dyn Fn(f64) -> usize,
    ) -> Logs {
        let logs = log_frequencies(self.cells(variable), all, whole, self.prior, place);
        Logs { all: logs, components: self.components, usual: most_frequent(whole) }
    }

    /// The means of x and of x² over the values that are not atoms.
    fn moments(&self, variable: usize, atoms: &[f64]) -> (f64, f64) {
        let (mut total, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (x, _) in self.known(variable).filter(|(x, _)| find(atoms, *x).is_none()) {
            total += 1.0;
            sum += x;
            squares += x * x;
        }
        let total = f64::max(total, 1.0);
        (sum / total, squares / total)
    }
}

/// The frequencies of the values of a finite variable, or of the atoms and the rest of a continuous
/// one; `None` if there are neither values nor atoms.
pub(super) fn basis_frequencies(rows: &Batch, variable: usize, basis: &Basis) -> Option<Vec<f64>> {
    match basis {
        Basis::Indicator(b) => Some(frequencies(rows, variable, b.width(), |x| x as usize)),
        Basis::Atoms(b) => {
            let points = b.points();
            Some(frequencies(rows, variable, points.len() + 1, |x| place(points, x)))
        }
        Basis::Fourier(_)
        | Basis::Legendre(_)
        | Basis::Laguerre(_)
        | Basis::Hermite(_)
        | Basis::Table(_)
        | Basis::Gaussian(_)
        | Basis::BSpline(_)
        | Basis::Transformed(_)
        | Basis::Squared(_)
        | Basis::Steps(_) => None,
    }
}

/// The frequency of each value, with half a row added to each count. `place` returns the number of
/// a value.
pub(super) fn frequencies(
    rows: &Batch,
    variable: usize,
    values: usize,
    place: impl Fn(f64) -> usize,
) -> Vec<f64> {
    let mut counts = vec![0.5; values];
    for x in rows.known(variable) {
        counts[place(x)] += 1.0;
    }
    let total: f64 = counts.iter().sum();
    counts.into_iter().map(|c| c / total).collect()
}

/// log p of value x in component k, at x · components + k, given cells with the responsibilities for
/// their rows, which sum to `all`. `place` returns the number of a value. The overall frequencies
/// count as `prior` rows of each component.
///
/// The count of the most frequent value is the rest, so its cells are not summed.
pub(super) fn log_frequencies<'a>(
    cells: impl Iterator<Item = (f64, &'a [f64])>,
    all: &[f64],
    whole: &[f64],
    prior: f64,
    place: &dyn Fn(f64) -> usize,
) -> Vec<f64> {
    let (components, missing, usual) = (all.len(), whole.len(), most_frequent(whole));
    let mut sums = vec![0.0; (whole.len() + 1) * components];
    Simd::default().run(
        #[inline(always)]
        || {
            for (x, shares) in cells {
                let value = if x.is_nan() { missing } else { place(x) };
                if value != usual {
                    add(&mut sums[value * components..][..components], shares);
                }
            }
        },
    );
    let mut left = all.to_vec();
    for sums in sums.chunks_exact(components) {
        left.iter_mut().zip(sums).for_each(|(left, sum)| *left = (*left - sum).max(0.0));
    }
    sums[usual * components..][..components].copy_from_slice(&left);
    let known = all.iter().zip(&sums[missing * components..]);
    let totals: Vec<f64> = known.map(|(all, missing)| prior + all - missing).collect();
    sums.truncate(missing * components);
    for (sums, p) in sums.chunks_exact_mut(components).zip(whole) {
        let totals = sums.iter_mut().zip(&totals);
        totals.for_each(|(sum, total)| *sum = ((prior * p + *sum) / total).ln());
    }
    sums
}

/// The sums of the columns of a table with rows of this length.
pub(super) fn sum_of_rows(table: &[f64], length: usize) -> Vec<f64> {
    let mut sums = vec![0.0; length];
    table.chunks_exact(length).for_each(|row| add(&mut sums, row));
    sums
}

#[inline(always)]
fn add(sums: &mut [f64], row: &[f64]) {
    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
}

/// The most frequent value; the first one in case of a tie.
pub(super) fn most_frequent(frequencies: &[f64]) -> usize {
    let better = |best: usize, n: usize| if frequencies[n] > frequencies[best] { n } else { best };
    (0..frequencies.len()).fold(0, better)
}

/// `count` of the rows, evenly spaced.
fn some_rows(rows: &Batch, count: usize) -> Batch {
    if count == rows.len() {
        return rows.clone();
    }
    rows.select(&(0..count).map(|n| n * rows.len() / count).collect::<Vec<_>>())
}

/// The number of the atom x, or the number of atoms if x is not an atom.
pub(super) fn place(points: &[f64], x: f64) -> usize {
    find(points, x).unwrap_or(points.len())
}

/// The means of normal distributions, and the reciprocals and logarithms of their standard
/// deviations.
fn scales(normals: &[(f64, f64)]) -> Vec<[f64; 3]> {
    normals.iter().map(|(mean, deviation)| [*mean, deviation.recip(), deviation.ln()]).collect()
}

/// Adds the logarithms of normal densities, up to a constant.
fn add_normals(scales: &[[f64; 3]], x: f64, out: &mut [f64]) {
    for (out, [mean, per, log]) in out.iter_mut().zip(scales) {
        let z = (x - mean) * per;
        *out -= 0.5 * z * z + log;
    }
}

/// Scales rows to unit norm, except for zeros.
pub(super) fn unit_rows(mut m: Matrix<Complex64>) -> Matrix<Complex64> {
    for k in 0..m.rows() {
        let row = m.row_mut(k);
        let norm = row.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
        if norm > 0.0 {
            for z in row {
                *z /= norm;
            }
        }
    }
    m
}

/// Scales rows to unit norm. A row that is zero, because the functions represent nothing of it,
/// becomes the first function.
fn nonzero_unit_rows(roots: Matrix<Complex64>) -> Matrix<Complex64> {
    let mut roots = unit_rows(roots);
    for k in 0..roots.rows() {
        let root = roots.row_mut(k);
        if !root.iter().any(|z| z.norm_sqr() > 0.0) {
            root[0] = Complex64::ONE;
        }
    }
    roots
}

/// ∫ f* √p of every function of a basis, over the range where the densities are not tiny.
fn projected(normals: &[(f64, f64)], basis: &Basis) -> Matrix<Complex64> {
    let ends = |sign: f64| normals.iter().map(move |(m, s)| m + 6.0 * sign * s);
    let low = ends(-1.0).fold(f64::INFINITY, f64::min);
    let high = ends(1.0).fold(f64::NEG_INFINITY, f64::max);
    let domain = basis.natural_domain();
    let mut sums = Matrix::zeros(normals.len(), basis.width());
    let mut f = vec![Complex64::ZERO; basis.width()];
    for n in 0..POINTS {
        let x = low + (high - low) * (n as f64 + 0.5) / POINTS as f64;
        if !domain.contains(x) {
            continue;
        }
        basis.evaluate(x, &mut f);
        for (k, (mean, deviation)) in normals.iter().enumerate() {
            let z = (x - mean) / deviation;
            let root = (-0.25 * z * z).exp();
            sums.row_mut(k).iter_mut().zip(&f).for_each(|(sum, f)| *sum += f.conj() * root);
        }
    }
    sums
}

/// Replaces logarithms by their normalized exponentials, and returns the logarithm of the sum.
pub(super) fn softmax(logs: &mut [f64]) -> f64 {
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for x in &mut *logs {
        *x = (*x - max).exp();
        sum += *x;
    }
    for x in logs {
        *x /= sum;
    }
    max + sum.ln()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{Domain, Variable};

    fn fit(values: &[f64]) -> Option<Mixture> {
        let bases = [Basis::indicator(2), Basis::hermite(4, 0.0, 1.0).unwrap()];
        let variables = [Variable::new("x", Domain::Finite(2)), Variable::new("y", Domain::Real)];
        let rows = Batch::from_rows(&variables, values).unwrap();
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        Mixture::fit(2, &bases.each_ref(), &rows, rng, &Quota::default())
    }

    #[test]
    fn two_clusters_are_separated() {
        let mut values = Vec::new();
        for n in 0..400 {
            let x = f64::from(n % 2);
            values.extend([x, 4.0 * x - 2.0 + 0.1 * f64::from(n % 7)]);
        }
        values[0] = f64::NAN;
        values[9] = f64::NAN;
        let mixture = fit(&values).unwrap();
        let Column::Normal(normals) = &mixture.columns[1] else { panic!("a normal column") };
        let mut means = [normals[0].0, normals[1].0];
        means.sort_by(f64::total_cmp);
        assert!((means[0] + 1.7).abs() < 0.3 && (means[1] - 2.3).abs() < 0.3, "{means:?}");
        assert!(mixture.weights().iter().all(|w| (w - 0.5).abs() < 0.02));
    }

    #[test]
    fn missing_columns_and_values_out_of_range() {
        let unknown = [0.0, f64::NAN, 1.0, f64::NAN];
        let mixture = fit(&unknown).unwrap();
        let roots = mixture.roots(1, &Basis::hermite(4, 0.0, 1.0).unwrap());
        assert!(roots.data().iter().all(|z| z.is_finite()));
        assert!(fit(&[0.0, 1e200, 1.0, -1e200]).is_none());
    }
}

//! Normal distributions with full covariances, their marginals and conditionals.

use rand::{Rng, RngExt};

use crate::linalg::{Matrix, cholesky};

/// Scores beyond this many standard deviations are clipped.
pub(super) const MAX_SCORE: f64 = 6.0;

/// ln √(2π).
pub(super) const LOG_ROOT: f64 = 0.918_938_533_204_672_8;

/// A component: its weight, and the mean and the Cholesky factor of the covariance of the scores.
#[derive(Clone, Debug)]
pub(super) struct Component {
    pub(super) weight: f64,
    pub(super) mean: Vec<f64>,
    pub(super) factor: Matrix<f64>,
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

/// The distribution of the known scores of rows with the same missing scores, in one component.
pub(super) struct Marginal<'a> {
    pub(super) component: &'a Component,
    known: Vec<usize>,
    /// The Cholesky factor L of their covariance; `None` if it is that of the component.
    own: Option<Matrix<f64>>,
    /// The log density at the mean.
    log_peak: f64,
}

impl<'a> Marginal<'a> {
    pub(super) fn new(scores: &[f64], component: &'a Component) -> Self {
        let known: Vec<usize> = (0..scores.len()).filter(|&i| !scores[i].is_nan()).collect();
        let is_part = known.len() < scores.len();
        // A principal submatrix of a positive definite matrix has a Cholesky factor too.
        let own = is_part.then(|| component.factor_of(&known)).flatten();
        let factor = own.as_ref().unwrap_or(&component.factor);
        let log_peak = (0..known.len()).map(|n| -factor[(n, n)].ln() - LOG_ROOT).sum();
        Self { component, known, own, log_peak }
    }

    /// Replaces b by L⁻¹ b.
    fn solve(&self, b: &mut [f64]) {
        let factor = self.own.as_ref().unwrap_or(&self.component.factor);
        for i in 0..b.len() {
            let (done, rest) = b.split_at_mut(i);
            let row = factor.row(i);
            let sum: f64 = row[..i].iter().zip(&*done).map(|(l, b)| l * b).sum();
            rest[0] = (rest[0] - sum) / row[i];
        }
    }

    /// L⁻¹ times the deviations of the known scores from their means.
    fn deviations(&self, scores: &[f64], z: &mut Vec<f64>) {
        z.clear();
        z.extend(self.known.iter().map(|&i| scores[i] - self.component.mean[i]));
        self.solve(z);
    }

    pub(super) fn log_density(&self, scores: &[f64], z: &mut Vec<f64>) -> f64 {
        self.deviations(scores, z);
        self.log_peak - 0.5 * z.iter().map(|z| z * z).sum::<f64>()
    }
}

/// The distribution of the missing scores of such rows, given the known ones.
pub(super) struct Conditional<'a> {
    missing: Vec<usize>,
    /// The distribution of the known scores. Without a component, all scores are standard normal.
    given: Option<Marginal<'a>>,
    /// L⁻¹ Σ(known, i) for each missing score i.
    by: Vec<Vec<f64>>,
}

impl<'a> Conditional<'a> {
    pub(super) fn new(scores: &[f64], component: Option<&'a Component>) -> Self {
        let missing: Vec<usize> = (0..scores.len()).filter(|&i| scores[i].is_nan()).collect();
        let given = component.map(|c| Marginal::new(scores, c));
        let by = given.as_ref().map_or_else(Vec::new, |given| {
            let solved = |&j: &usize| {
                let covariances = given.known.iter().map(|&i| given.component.covariance(i, j));
                let mut b: Vec<f64> = covariances.collect();
                given.solve(&mut b);
                b
            };
            missing.iter().map(solved).collect()
        });
        Self { missing, given, by }
    }

    /// Writes the scores of a row, with the missing ones replaced by their conditional means.
    pub(super) fn mean(&self, scores: &[f64], mean: &mut [f64], z: &mut Vec<f64>) {
        mean.copy_from_slice(scores);
        if self.missing.is_empty() {
            return;
        }
        let Some(given) = &self.given else {
            self.missing.iter().for_each(|&i| mean[i] = 0.0);
            return;
        };
        given.deviations(scores, z);
        for (&i, by) in self.missing.iter().zip(&self.by) {
            mean[i] = given.component.mean[i] + dot(by, z);
        }
    }

    /// Adds `times` the covariance of the missing scores to the lower triangle of a matrix.
    pub(super) fn add_covariance(&self, times: f64, to: &mut Matrix<f64>) {
        for (p, &i) in self.missing.iter().enumerate() {
            for (q, &j) in self.missing[..=p].iter().enumerate() {
                to[(i, j)] += times
                    * match &self.given {
                        Some(given) => {
                            given.component.covariance(i, j) - dot(&self.by[p], &self.by[q])
                        }
                        None => f64::from(u8::from(i == j)),
                    };
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Draws a standard normal number.
pub(super) fn normal(rng: &mut impl Rng) -> f64 {
    let (a, b): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// Φ(z).
pub(super) fn distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// Φ⁻¹(u), clipped to `MAX_SCORE`: by bisection, followed by Newton steps.
pub(super) fn quantile(u: f64) -> f64 {
    if !(u > distribution(-MAX_SCORE) && u < distribution(MAX_SCORE)) {
        return if u < 0.5 { -MAX_SCORE } else { MAX_SCORE };
    }
    let (mut low, mut high) = (-MAX_SCORE, MAX_SCORE);
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

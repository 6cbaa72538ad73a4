use std::sync::Arc;

use super::error::{BasisError, MAX_STEP_FUNCTIONS, MAX_STEPS, check_bounds, check_functions};
use super::part::Part;
use crate::Domain;
use crate::linalg::{Matrix, Scalar};

/// A step is at least this part of the whole interval, 2⁻⁴⁰.
const SHORTEST: f64 = 9.094_947_017_729_282e-13;
/// A vector that keeps less than this part of its norm is made orthogonal once more.
const KEPT: f64 = 0.5;
/// The maximum number of times.
const MAX_ROUNDS: usize = 4;

/// Orthonormal step functions on [a, b], each constant on every step.
///
/// Function n is the polynomial of degree n in the middles of the steps that is orthogonal to all
/// polynomials of lower degree, where every step counts by its length. With short steps, these are
/// Legendre polynomials; with as many functions as steps, they span all step functions. So a
/// density |Σ cₙ fₙ|² is constant on every step, and the probability of a part of a step is its
/// length times the density anywhere on the step.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// One row.
    edges: Arc<Matrix<f64>>,
    /// The functions at each step, one row per step.
    values: Arc<Matrix<f64>>,
}

impl Steps {
    pub(super) fn new(functions: usize, edges: Vec<f64>) -> Result<Self, BasisError> {
        check_functions("step", functions)?;
        let steps = edges.len().saturating_sub(1);
        if steps < functions || functions > MAX_STEP_FUNCTIONS || steps > MAX_STEPS {
            return Err(BasisError::Steps { functions, steps });
        }
        check_bounds(edges[0], edges[steps])?;
        let shortest = SHORTEST * (edges[steps] - edges[0]);
        let is_short = |w: &[f64]| (w[1] - w[0]).is_nan() || w[1] - w[0] < shortest;
        if let Some(n) = edges.windows(2).position(is_short) {
            let (left, right) = (edges[n], edges[n + 1]);
            return Err(BasisError::EdgesDecrease { index: n + 1, left, right });
        }
        let values = polynomials(functions, &edges);
        Ok(Self { edges: Arc::new(Matrix::new(1, steps + 1, edges)), values: Arc::new(values) })
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.values.cols()
    }

    /// The edges of the steps, in increasing order.
    pub fn edges(&self) -> &[f64] {
        self.edges.data()
    }

    /// The edges as a matrix with one row.
    pub(crate) fn edge_matrix(&self) -> &Matrix<f64> {
        &self.edges
    }

    pub(super) fn natural_domain(&self) -> Domain {
        let edges = self.edges();
        Domain::Interval(edges[0], edges[edges.len() - 1])
    }

    /// The step that contains x. The last one includes its right end.
    pub(crate) fn step(&self, x: f64) -> usize {
        let edges = self.edges();
        edges[1..edges.len() - 1].partition_point(|&edge| edge <= x)
    }

    /// The functions on a step.
    pub(crate) fn on_step(&self, step: usize) -> &[f64] {
        self.values.row(step)
    }

    /// The steps between two numbers, each with the bounds of what is between them.
    fn between(&self, low: f64, high: f64) -> impl Iterator<Item = (usize, f64, f64)> + '_ {
        let steps = self.edges().windows(2).enumerate().skip(self.step(low));
        let cut = move |(n, step): (usize, &[f64])| (n, step[0].max(low), step[1].min(high));
        steps.map(cut).take_while(|(_, low, high)| low < high)
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        for (out, &value) in out.iter_mut().zip(self.on_step(self.step(x))) {
            *out = T::from_real(value);
        }
    }

    /// Nodes and weights that integrate products of two functions times x² from low to high.
    pub(super) fn nodes_over(&self, low: f64, high: f64) -> Vec<(f64, f64)> {
        let nodes = self.between(low, high).flat_map(|(_, low, high)| {
            let (middle, half) = (0.5 * low + 0.5 * high, 0.5 * (high - low));
            let offset = half / 3f64.sqrt();
            [(middle - offset, half), (middle + offset, half)]
        });
        nodes.collect()
    }

    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        part.integrate(&self.natural_domain(), self.width(), |low, high| {
            self.weighted(low, high, |a, b| b - a)
        })
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        let (low, high) = self.natural_domain().bounds();
        match power {
            0 => Some(Matrix::identity(self.width())),
            1 => Some(self.weighted(low, high, |a, b| (b - a) * (0.5 * a + 0.5 * b))),
            2 => Some(self.weighted(low, high, |a, b| (b - a) * (a * a + a * b + b * b) / 3.0)),
            _ => None,
        }
    }

    /// Σ w(a, b) f fᵀ over the steps between two numbers, cut to [a, b].
    fn weighted<T: Scalar>(
        &self,
        low: f64,
        high: f64,
        weight: impl Fn(f64, f64) -> f64,
    ) -> Matrix<T> {
        let k = self.width();
        let mut sum = Matrix::<f64>::zeros(k, k);
        for (n, a, b) in self.between(low, high) {
            let (w, f) = (weight(a, b), self.on_step(n));
            for (i, x) in f.iter().enumerate() {
                let scaled = w * x;
                sum.row_mut(i)[..=i].iter_mut().zip(f).for_each(|(sum, y)| *sum += scaled * y);
            }
        }
        Matrix::from_fn(k, k, |i, j| T::from_real(sum[(i.max(j), i.min(j))]))
    }
}

/// The functions, one row per step.
///
/// Uses only operations whose bits are the same on every machine, so that files need to store only
/// the edges. More functions do not change the first ones.
fn polynomials(functions: usize, edges: &[f64]) -> Matrix<f64> {
    let steps = edges.len() - 1;
    let (low, length) = (edges[0], edges[steps] - edges[0]);
    let roots: Vec<f64> = edges.windows(2).map(|w| ((w[1] - w[0]) / length).sqrt()).collect();
    let middle = |w: &[f64]| ((w[0] - low) + (w[1] - low)) / length - 1.0;
    let middles: Vec<f64> = edges.windows(2).map(middle).collect();
    // Times the roots of the lengths, the functions are orthonormal vectors.
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(functions);
    let mut next = roots.clone();
    for n in 0..functions {
        let vector = orthogonal_unit(&vectors, next)
            .or_else(|| (0..steps).find_map(|m| orthogonal_unit(&vectors, unit(steps, m + n))));
        let vector = vector.unwrap_or_else(|| unit(steps, n));
        next = vector.iter().zip(&middles).map(|(v, t)| t * v).collect();
        vectors.push(vector);
    }
    let scale = length.sqrt();
    Matrix::from_fn(steps, functions, |step, n| vectors[n][step] / (roots[step] * scale))
}

/// The unit vector with a 1 at n, modulo its length.
fn unit(len: usize, n: usize) -> Vec<f64> {
    let mut unit = vec![0.0; len];
    unit[n % len] = 1.0;
    unit
}

/// What is left of a vector orthogonal to all of these, as a unit vector; `None` if that is only
/// rounding.
fn orthogonal_unit(all: &[Vec<f64>], mut vector: Vec<f64>) -> Option<Vec<f64>> {
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut before = norm(&vector);
    for _ in 0..MAX_ROUNDS {
        for other in all {
            let dot: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
            vector.iter_mut().zip(other).for_each(|(a, b)| *a -= dot * b);
        }
        let after = norm(&vector);
        for x in &mut vector {
            *x /= after;
        }
        if after > KEPT * before {
            return Some(vector);
        }
        before = 1.0;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn residual(steps: &Steps) -> f64 {
        let gram: Matrix<f64> = steps.weighted(f64::MIN, f64::MAX, |a, b| b - a);
        let k = steps.width();
        let target = |n: usize| if n.is_multiple_of(k + 1) { 1.0 } else { 0.0 };
        gram.data().iter().enumerate().map(|(n, x)| (x - target(n)).abs()).fold(0.0, f64::max)
    }

    /// Steps whose lengths differ by a factor of up to 10⁹.
    fn uneven(steps: usize) -> Vec<f64> {
        let length = |n: usize| 10f64.powf(-9.0 * (n as f64 * 0.618).fract());
        let sums = (0..steps).scan(0.0, |sum, n| {
            *sum += length(n);
            Some(*sum)
        });
        [0.0].into_iter().chain(sums).collect()
    }

    #[test]
    fn functions_are_orthonormal_up_to_all_of_them() {
        for steps in [1, 2, 7, 60, 250] {
            let even: Vec<f64> = (0..=steps).map(|n| n as f64 / steps as f64).collect();
            for edges in [even, uneven(steps)] {
                let basis = Steps::new(steps, edges.clone()).unwrap();
                assert!(residual(&basis) < 1e-12, "{steps}: {:e}", residual(&basis));
                let few = Steps::new(steps.div_ceil(3), edges).unwrap();
                for step in 0..steps {
                    assert_eq!(few.on_step(step), &basis.on_step(step)[..few.width()]);
                }
            }
        }
    }

    #[test]
    fn short_steps_give_legendre_polynomials() {
        let edges: Vec<f64> = (0..=4000).map(|n| f64::from(n) / 1000.0).collect();
        let steps = Steps::new(12, edges).unwrap();
        let legendre = super::super::Basis::legendre(12, 0.0, 4.0).unwrap();
        let (mut a, mut b) = ([0.0; 12], [0.0; 12]);
        for n in 0..4000 {
            let x = (f64::from(n) + 0.5) / 1000.0;
            steps.evaluate(x, &mut a);
            legendre.evaluate(x, &mut b);
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-3), "{x}: {a:?}, {b:?}");
        }
    }

    #[test]
    fn steps_include_their_lower_edges() {
        let steps = Steps::new(3, vec![-1.0, 0.0, 0.5, 2.0]).unwrap();
        let found = [-2.0, -1.0, -0.1, 0.0, 0.49, 0.5, 2.0, 3.0].map(|x| steps.step(x));
        assert_eq!(found, [0, 0, 0, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn bad_steps_are_rejected() {
        for (functions, edges) in [
            (3, vec![0.0, 0.5, 1.0]),
            (1, vec![]),
            (1, vec![1.0]),
            (257, (0..400).map(f64::from).collect()),
            (1, (0..5000).map(f64::from).collect()),
        ] {
            let found = Steps::new(functions, edges);
            assert!(matches!(found, Err(BasisError::Steps { .. })), "{found:?}");
        }
        for edges in [vec![0.0, 0.5, 0.5, 1.0], vec![0.0, f64::NAN, 1.0], vec![0.0, 2.0, 1.0]] {
            let found = Steps::new(1, edges);
            assert!(matches!(found, Err(BasisError::EdgesDecrease { .. })), "{found:?}");
        }
        assert!(matches!(Steps::new(1, vec![0.0, f64::INFINITY]), Err(BasisError::Bounds { .. })));
    }
}

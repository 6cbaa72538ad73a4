use super::error::{BasisError, MAX_DEGREE, MAX_MAGNITUDE, check_bounds, check_functions};
use super::part::Part;
use super::quadrature::gauss_legendre;
use super::sturm::symmetric;
use crate::Domain;
use crate::linalg::{Matrix, Scalar};

/// The B-splines of one degree on a knot vector. They are not orthonormal.
///
/// The domain extends from the first knot to the last. The functions sum to 1 everywhere only if
/// the end knots are repeated degree + 1 times.
#[derive(Clone, Debug, PartialEq)]
pub struct BSpline {
    degree: usize,
    knots: Vec<f64>,
    /// Nodes and weights on [−1, 1] that are exact for products of two functions times x².
    rule: Vec<(f64, f64)>,
}

/// The degree + 1 functions that may be nonzero in one span, the last of which has index `last`.
struct Local {
    values: [f64; MAX_DEGREE + 1],
    last: usize,
}

impl BSpline {
    pub(super) fn new(degree: usize, knots: Vec<f64>) -> Result<Self, BasisError> {
        if degree > MAX_DEGREE {
            return Err(BasisError::Degree { found: degree });
        }
        let (found, needed) = (knots.len(), degree + 2);
        if found < needed {
            return Err(BasisError::TooFewKnots { found, degree, needed });
        }
        check_functions("B-spline", found - degree - 1)?;
        let bad = |t: &f64| t.is_nan() || t.abs() > MAX_MAGNITUDE;
        if let Some(index) = knots.iter().position(bad) {
            return Err(BasisError::Knot { index, value: knots[index] });
        }
        if let Some(n) = knots.windows(2).position(|w| w[1] < w[0]) {
            let (left, right) = (knots[n], knots[n + 1]);
            return Err(BasisError::KnotsDecrease { index: n + 1, left, right });
        }
        if let Some(n) = knots.windows(needed).position(|w| w[degree + 1] <= w[0]) {
            return Err(BasisError::KnotsRepeat { function: n, knot: knots[n] });
        }
        check_bounds(knots[0], knots[found - 1])?;
        Ok(Self { degree, knots, rule: gauss_legendre(degree + 2) })
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.knots.len() - self.degree - 1
    }

    /// The degree.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// The knots.
    pub fn knots(&self) -> &[f64] {
        &self.knots
    }

    pub(super) fn natural_domain(&self) -> Domain {
        Domain::Interval(self.knots[0], self.last_knot())
    }

    fn last_knot(&self) -> f64 {
        self.knots[self.knots.len() - 1]
    }

    /// Evaluates the Cox–de Boor recurrence in the span that contains x. The last span includes its
    /// right end.
    ///
    /// For functions that would extend past the knots, the end knots are repeated. They do not
    /// affect the functions of the basis.
    fn local(&self, x: f64) -> Local {
        let last = self.last_knot();
        let end = if x < last {
            self.knots.partition_point(|&t| t <= x)
        } else {
            self.knots.partition_point(|&t| t < last)
        };
        let span = end.saturating_sub(1);
        let knot =
            |n: usize, back: usize| self.knots[n.saturating_sub(back).min(self.knots.len() - 1)];
        let mut values = [0.0; MAX_DEGREE + 1];
        values[0] = 1.0;
        for p in 1..=self.degree {
            let mut saved = 0.0;
            for r in 0..p {
                let (right, left) = (knot(span + r + 1, 0), knot(span + r + 1, p));
                let share = values[r] / (right - left);
                values[r] = saved + (right - x) * share;
                saved = (x - left) * share;
            }
            values[p] = saved;
        }
        Local { values, last: span }
    }

    /// Calls `put(i, value)` for the functions of the basis that may be nonzero at x.
    fn each_local(&self, local: &Local, mut put: impl FnMut(usize, f64)) {
        for r in 0..=self.degree {
            if let Some(i) = (local.last + r).checked_sub(self.degree)
                && i < self.width()
            {
                put(i, local.values[r]);
            }
        }
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        out.fill(T::ZERO);
        self.each_local(&self.local(x), |i, value| out[i] = T::from_real(value));
    }

    /// Nodes and weights that integrate every fᵢ fⱼ x^p, p ≤ 2, from low to high exactly.
    pub(super) fn nodes_over(&self, low: f64, high: f64) -> Vec<(f64, f64)> {
        let mut nodes = Vec::new();
        for span in self.knots.windows(2) {
            let (low, high) = (span[0].max(low), span[1].min(high));
            if low < high {
                let (half, middle) = (0.5 * (high - low), 0.5 * low + 0.5 * high);
                nodes.extend(self.rule.iter().map(|&(x, w)| (middle + half * x, half * w)));
            }
        }
        nodes
    }

    /// ∫ w f fᵀ by exact quadrature in each span.
    fn weighted<T: Scalar>(&self, low: f64, high: f64, weight: impl Fn(f64) -> f64) -> Matrix<T> {
        let mut sum = Matrix::<f64>::zeros(self.width(), self.width());
        for (x, w) in self.nodes_over(low, high) {
            let local = self.local(x);
            self.each_local(&local, |i, a| {
                let scaled = w * weight(x) * a;
                self.each_local(&local, |j, b| sum[(i, j)] += scaled * b);
            });
        }
        symmetric(self.width(), |i, j| sum[(i, j)])
    }

    pub(super) fn gram<T: Scalar>(&self) -> Matrix<T> {
        self.weighted(self.knots[0], self.last_knot(), |_| 1.0)
    }

    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        part.integrate(&self.natural_domain(), self.width(), |low, high| {
            self.weighted(low, high, |_| 1.0)
        })
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        let power = i32::try_from(power).ok().filter(|&p| p <= 2)?;
        Some(self.weighted(self.knots[0], self.last_knot(), |x| x.powi(power)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hats_and_parabolas_match_hand_computed_values() {
        let hats = BSpline::new(1, vec![0.0, 0.0, 1.0, 3.0, 3.0]).unwrap();
        let at = |x| {
            let mut out = vec![0.0; hats.width()];
            hats.evaluate(x, &mut out);
            out
        };
        assert_eq!(at(0.0), [1.0, 0.0, 0.0]);
        assert_eq!(at(1.0), [0.0, 1.0, 0.0]);
        assert_eq!(at(2.0), [0.0, 0.5, 0.5]);
        assert_eq!(at(3.0), [0.0, 0.0, 1.0]);
        // One parabola on the knots 0, 1, 2, 3, without repeated ends: 3/4 in the middle.
        let parabola = BSpline::new(2, vec![0.0, 1.0, 2.0, 3.0]).unwrap();
        let mut out = [0.0];
        for (x, y) in [(0.0, 0.0), (0.5, 0.125), (1.5, 0.75), (2.5, 0.125), (3.0, 0.0)] {
            parabola.evaluate(x, &mut out);
            assert!((out[0] - y).abs() < 1e-15, "{x}: {}", out[0]);
        }
        // ∫ of its square is 11/20.
        assert!((parabola.gram::<f64>()[(0, 0)] - 0.55).abs() < 1e-15);
    }

    #[test]
    fn clamped_splines_sum_to_one_also_at_repeated_knots() {
        let knots = vec![-1.0, -1.0, -1.0, -1.0, 0.5, 0.5, 0.5, 2.0, 4.0, 4.0, 4.0, 4.0];
        let basis = BSpline::new(3, knots).unwrap();
        let mut out = vec![0.0; basis.width()];
        for x in [-1.0, -0.3, 0.5, 1.0, 2.0, 3.999, 4.0] {
            basis.evaluate(x, &mut out);
            assert!((out.iter().sum::<f64>() - 1.0).abs() < 1e-14, "{x}: {out:?}");
            assert!(out.iter().all(|&v| v >= 0.0));
        }
    }
}

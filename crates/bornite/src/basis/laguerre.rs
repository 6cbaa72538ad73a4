use super::error::{BasisError, check_functions, check_location, check_scale};
use super::part::Part;
use super::scaled::{MAX_EXPONENT, ScaledExp, ScaledPair};
use super::sturm::{End, gram_between, gram_of_short, jacobi_moments};
use crate::Domain;
use crate::linalg::{Matrix, Scalar};

/// The Laguerre functions on [a, ∞): e^(−t/2) Lₙ(t) / √s at t = (x − a) / s.
#[derive(Clone, Debug, PartialEq)]
pub struct Laguerre {
    functions: usize,
    start: f64,
    scale: f64,
}

impl Laguerre {
    pub(super) fn new(functions: usize, start: f64, scale: f64) -> Result<Self, BasisError> {
        check_functions("Laguerre", functions)?;
        check_location(start)?;
        check_scale(scale)?;
        Ok(Self { functions, start, scale })
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.functions
    }

    /// The start a of the half-line.
    pub fn start(&self) -> f64 {
        self.start
    }

    /// The scale s.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        let factor = self.scale.sqrt().recip();
        each_function((x - self.start) / self.scale, self.functions, |n, u, _| {
            out[n] = T::from_real(factor * u);
        });
    }

    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        let k = self.functions;
        part.integrate(&Domain::HalfLine(self.start), k, |low, high| {
            let (low, high) = ((low - self.start) / self.scale, (high - self.start) / self.scale);
            // uₙ behaves like J₀(2 √(n t)) inside the turning point, and decays like e^(−t/2)
            // outside.
            let phase = 4.0 * (k as f64).sqrt() * (high.sqrt() - low.sqrt());
            if phase <= 8.0 && high - low <= 8.0 {
                return gram_of_short(k, low, high, |t, out| {
                    each_function(t, k, |n, u, _| out[n] = u);
                });
            }
            let (a, b) = (end(low, k), end(high, k));
            let first = -(-low).exp() * (low - high).exp_m1();
            gram_between(&a, &b, |n| n as f64, &squares(&a, &b, first))
        })
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        let diagonal = |n: usize| self.start + self.scale * (2.0 * n as f64 + 1.0);
        jacobi_moments(self.functions, power, diagonal, |n| -self.scale * (n as f64 + 1.0))
    }
}

/// Calls `put(n, uₙ, dₙ)` for n = 0 … count − 1, where uₙ = e^(−t/2) Lₙ(t) and dₙ = n (uₙ − uₙ₋₁).
///
/// Uses dₙ₊₁ = dₙ − t uₙ and uₙ₊₁ = uₙ + dₙ₊₁ / (n + 1), which is the three-term recurrence without
/// its cancellation near t = 0. The mantissas share a power of two, because e^(−t/2) may be below
/// the range of `f64` where a function of high order is not.
fn each_function(t: f64, count: usize, mut put: impl FnMut(usize, f64, f64)) {
    let t = if t < 0.0 { 0.0 } else { t };
    if t.is_nan() || t > MAX_EXPONENT {
        (0..count).for_each(|n| put(n, 0.0, 0.0));
        return;
    }
    let first = ScaledExp::new(-0.5 * t, 0.0);
    let mut pair = ScaledPair { first: first.mantissa, second: 0.0, exponent: first.exponent };
    for n in 0..count {
        let (u, d) = pair.get();
        put(n, u, d);
        pair.second -= t * pair.first;
        pair.first += pair.second / (n as f64 + 1.0);
        pair.rescale();
    }
}

/// uₙ and the flux dₙ = t uₙ′ + t uₙ / 2.
fn end(t: f64, count: usize) -> End {
    let mut end = End::vanishing(count);
    each_function(t, count, |n, u, d| {
        end.value[n] = u;
        end.flux[n] = d;
    });
    end
}

/// ∫ uₙ² from ∫ u₀², using ∫ uₙ² = ∫ uₙ₋₁² − [(uₙ − uₙ₋₁)²].
fn squares(low: &End, high: &End, first: f64) -> Vec<f64> {
    let mut squares = vec![first; low.value.len()];
    for n in 1..squares.len() {
        let boundary = |end: &End| (end.flux[n] / n as f64).powi(2);
        squares[n] = squares[n - 1] + (boundary(low) - boundary(high));
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(n: usize, t: f64) -> f64 {
        let mut last = 0.0;
        each_function(t, n + 1, |_, u, _| last = u);
        last
    }

    /// Reference values are from 60-digit arithmetic.
    #[test]
    fn values_match_the_reference() {
        for (n, t, expected, tolerance) in [
            (0, 0.5, 0.778_800_783_071_404_9, 1e-15),
            (63, 0.125, 0.038_382_228_702_951_74, 1e-14),
            (63, 100.0, -0.069_404_706_574_406_41, 1e-14),
            (63, 240.0, -0.099_078_924_027_255_93, 1e-14),
            (63, 3e-7, 0.999_980_950_090_731_1, 1e-15),
            (500, 1900.0, 0.028_632_272_624_803_577, 1e-13),
            (4095, 16000.0, -0.016_019_929_721_035_116, 1e-12),
        ] {
            let found = value(n, t);
            assert!((found - expected).abs() < tolerance, "u_{n}({t}): {found} of {expected}");
        }
    }

    #[test]
    fn tails_keep_relative_accuracy() {
        for (n, t, expected) in
            [(63, 1000.0, -5.142_444_738_802_12e-118), (63, 1500.0, -7.498_803_144_045_26e-215)]
        {
            let found = value(n, t);
            assert!(
                (found / expected - 1.0).abs() < 1e-12,
                "u_{n}({t}): {found:e} of {expected:e}"
            );
        }
        for t in [1e4, 1e6, 1e300, f64::INFINITY] {
            assert_eq!(value(63, t), 0.0);
        }
    }

    #[test]
    fn integrals_match_the_reference() {
        let basis = Laguerre::new(64, 0.0, 1.0).unwrap();
        let entry = |i, j, low, high| basis.gram_over::<f64>(&Part::Interval { low, high })[(i, j)];
        assert!((entry(63, 63, 1.0, 50.0) - 0.254_664_968_100_318_25).abs() < 1e-14);
        assert!((entry(63, 62, 0.5, 150.0) - 0.279_933_243_274_030_3).abs() < 1e-13);
    }
}

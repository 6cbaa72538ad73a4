use super::error::{BasisError, check_functions, check_location, check_scale};
use super::part::Part;
use super::quadrature::gaussian_mass;
use super::scaled::{MAX_EXPONENT, ScaledExp, ScaledPair};
use super::sturm::{End, gram_between, gram_of_short, jacobi_moments};
use crate::Domain;
use crate::linalg::{Matrix, Scalar};

/// π^(−1/4).
const FIRST: f64 = 0.751_125_544_464_943;

/// The Hermite functions on ℝ: hₙ(t) / √s at t = (x − m) / s, where h₀(t) = π^(−1/4) e^(−t²/2).
#[derive(Clone, Debug, PartialEq)]
pub struct Hermite {
    functions: usize,
    location: f64,
    scale: f64,
}

impl Hermite {
    pub(super) fn new(functions: usize, location: f64, scale: f64) -> Result<Self, BasisError> {
        check_functions("Hermite", functions)?;
        check_location(location)?;
        check_scale(scale)?;
        Ok(Self { functions, location, scale })
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.functions
    }

    /// The location m.
    pub fn location(&self) -> f64 {
        self.location
    }

    /// The scale s.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        let factor = self.scale.sqrt().recip();
        each_function((x - self.location) / self.scale, self.functions, |n, h| {
            out[n] = T::from_real(factor * h);
        });
    }

    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        let k = self.functions;
        part.integrate(&Domain::Real, k, |low, high| {
            let (low, high) = (low - self.location, high - self.location);
            let (low, high) = (low / self.scale, high / self.scale);
            // Inside the turning point √(2K + 1), the phase changes at that rate; outside, the
            // decay rate is |t|.
            let rate = (2.0 * k as f64 + 1.0).sqrt().max(low.abs()).max(high.abs());
            if (high - low) * rate <= 4.0 {
                return gram_of_short(k, low, high, |t, u| each_function(t, k, |n, h| u[n] = h));
            }
            let (a, b) = (end(low, k), end(high, k));
            gram_between(&a, &b, |n| 2.0 * n as f64, &squares(&a, &b, gaussian_mass(low, high)))
        })
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        let off = |n: usize| self.scale * (0.5 * (n as f64 + 1.0)).sqrt();
        jacobi_moments(self.functions, power, |_| self.location, off)
    }
}

/// Calls `put(n, hₙ(t))` for n = 0 … count − 1.
///
/// Uses hₙ₊₁ = √(2/(n+1)) t hₙ − √(n/(n+1)) hₙ₋₁, which is stable upward everywhere. The mantissas
/// share a power of two, because e^(−t²/2) may be far below the range of `f64` where a function of
/// high order is not.
fn each_function(t: f64, count: usize, mut put: impl FnMut(usize, f64)) {
    let square = t * t;
    if square.is_nan() || square > MAX_EXPONENT {
        (0..count).for_each(|n| put(n, 0.0));
        return;
    }
    let tail = t.mul_add(t, -square);
    let first = ScaledExp::new(-0.5 * square, -0.5 * tail);
    let mut pair =
        ScaledPair { first: 0.0, second: FIRST * first.mantissa, exponent: first.exponent };
    for n in 0..count {
        put(n, pair.get().1);
        let m = n as f64;
        let next = (2.0 / (m + 1.0)).sqrt() * t * pair.second - (m / (m + 1.0)).sqrt() * pair.first;
        (pair.first, pair.second) = (pair.second, next);
        pair.rescale();
    }
}

/// hₙ and the flux eₙ = hₙ′ + t hₙ = √(2n) hₙ₋₁.
fn end(t: f64, count: usize) -> End {
    let mut end = End::vanishing(count);
    each_function(t, count, |n, h| end.value[n] = h);
    for n in 1..count {
        end.flux[n] = (2.0 * n as f64).sqrt() * end.value[n - 1];
    }
    end
}

/// ∫ hₙ² from ∫ h₀², using ∫ hₙ² = ∫ hₙ₋₁² − [hₙ₋₁ hₙ] / √(2n).
fn squares(low: &End, high: &End, first: f64) -> Vec<f64> {
    let mut squares = vec![first; low.value.len()];
    for n in 1..squares.len() {
        let boundary = |end: &End| end.value[n - 1] * end.value[n];
        squares[n] = squares[n - 1] + (boundary(low) - boundary(high)) / (2.0 * n as f64).sqrt();
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(n: usize, t: f64) -> f64 {
        let mut last = 0.0;
        each_function(t, n + 1, |_, h| last = h);
        last
    }

    /// Reference values are from 60-digit arithmetic.
    #[test]
    fn values_match_the_reference() {
        for (n, t, expected, tolerance) in [
            (0, 0.5, 0.662_865_966_442_479_5, 1e-15),
            (63, 0.125, -0.234_566_689_360_150_24, 1e-14),
            (63, 11.0, 0.437_701_383_644_594_6, 1e-14),
            (63, -7.3, 0.172_667_396_883_699_17, 1e-14),
            (1000, 40.0, 0.172_250_520_732_792_26, 1e-12),
            (4095, 85.0, 0.091_553_600_269_433_96, 1e-11),
        ] {
            let found = value(n, t);
            assert!((found - expected).abs() < tolerance, "h_{n}({t}): {found} of {expected}");
        }
    }

    #[test]
    fn tails_keep_relative_accuracy() {
        for (n, t, expected) in [
            (63, 20.0, 4.585_650_748_675_265_7e-41),
            (63, 40.0, 8.578_563_981_620_671e-282),
            (200, 40.0, 4.153_878_131_187_192e-188),
            (1000, 46.5, 3.750_838_774_447_735_6e-8),
        ] {
            let found = value(n, t);
            assert!(
                (found / expected - 1.0).abs() < 1e-11,
                "h_{n}({t}): {found:e} of {expected:e}"
            );
        }
        // A subnormal number has few digits.
        assert!((value(10, -38.75) / 8.260_720_529_931e-313 - 1.0).abs() < 1e-9);
        for t in [1e3, -1e6, 1e300, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(value(63, t), 0.0);
        }
    }

    #[test]
    fn integrals_match_the_reference() {
        let basis = Hermite::new(64, 0.0, 1.0).unwrap();
        let entry = |i, j, low, high| basis.gram_over::<f64>(&Part::Interval { low, high })[(i, j)];
        assert!((entry(63, 63, -2.5, 11.25) - 0.553_515_242_001_097_6).abs() < 1e-14);
        assert!((entry(63, 60, 8.0, 12.0) - 0.079_685_972_656_529_26).abs() < 1e-14);
    }
}

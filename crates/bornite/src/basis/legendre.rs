use super::error::{BasisError, check_bounds, check_functions};
use super::part::Part;
use super::sturm::{End, gram_between, gram_of_short, jacobi_moments};
use crate::Domain;
use crate::linalg::{Matrix, Scalar};

/// The orthonormal Legendre polynomials on [a, b]: √((2n + 1) / (b − a)) Pₙ(t) at t = (2x − a − b)
/// / (b − a).
#[derive(Clone, Debug, PartialEq)]
pub struct Legendre {
    functions: usize,
    low: f64,
    high: f64,
}

impl Legendre {
    pub(super) fn new(functions: usize, low: f64, high: f64) -> Result<Self, BasisError> {
        check_functions("Legendre", functions)?;
        check_bounds(low, high)?;
        Ok(Self { functions, low, high })
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.functions
    }

    /// The bounds a and b.
    pub fn bounds(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    fn to_unit(&self, x: f64) -> f64 {
        (((x - self.low) - (self.high - x)) / (self.high - self.low)).clamp(-1.0, 1.0)
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        let factor = (2.0 / (self.high - self.low)).sqrt();
        each_function(self.to_unit(x), self.functions, |n, u, _| {
            out[n] = T::from_real(factor * u);
        });
    }

    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        let k = self.functions;
        part.integrate(&Domain::Interval(self.low, self.high), k, |low, high| {
            let (low, high) = (self.to_unit(low), self.to_unit(high));
            // The phase of Pₙ(cos θ) changes by n + 1/2 per radian of θ.
            if (low.acos() - high.acos()) * k as f64 <= 4.0 {
                return gram_of_short(k, low, high, |t, out| {
                    each_function(t, k, |n, u, _| out[n] = u);
                });
            }
            let (a, b) = (end(low, k), end(high, k));
            let squares = squares((&a, low), (&b, high));
            gram_between(&a, &b, |n| n as f64 * (n as f64 + 1.0), &squares)
        })
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        let middle = 0.5 * self.low + 0.5 * self.high;
        let half = 0.5 * (self.high - self.low);
        jacobi_moments(
            self.functions,
            power,
            |_| middle,
            |n| {
                let m = n as f64 + 1.0;
                half * m / (4.0 * m * m - 1.0).sqrt()
            },
        )
    }
}

/// Calls `put(n, uₙ, eₙ)` for n = 0 … count − 1, where uₙ = √(n + 1/2) Pₙ(t) is orthonormal on [−1,
/// 1] and eₙ = (1 − t²) uₙ′ = n √(n + 1/2) (Pₙ₋₁ − t Pₙ).
///
/// For t ≥ 0, uses Dₙ₊₁ = Dₙ − (2n + 1) (1 − t) Pₙ and Pₙ₊₁ = Pₙ + Dₙ₊₁ / (n + 1), where Dₙ = n (Pₙ
/// − Pₙ₋₁). This is the three-term recurrence without its cancellation near t = 1. For t < 0, uses
/// symmetry.
fn each_function(t: f64, count: usize, mut put: impl FnMut(usize, f64, f64)) {
    let rest = 1.0 - t.abs();
    let (mut p, mut d) = (1.0, 0.0);
    let mut sign = 1.0;
    for n in 0..count {
        let m = n as f64;
        let norm = sign * (m + 0.5).sqrt();
        let flux = m * rest * p - d;
        put(n, norm * p, if t < 0.0 { -norm * flux } else { norm * flux });
        d -= (2.0 * m + 1.0) * rest * p;
        p += d / (m + 1.0);
        if t < 0.0 {
            sign = -sign;
        }
    }
}

fn end(t: f64, count: usize) -> End {
    let mut end = End::vanishing(count);
    each_function(t, count, |n, u, e| {
        end.value[n] = u;
        end.flux[n] = e;
    });
    end
}

/// ∫ uₙ² from ∫ u₀², using 2 ∫ uₙ² = 2 ∫ uₙ₋₁² + [t Pₙ² + t Pₙ₋₁² − 2 Pₙ Pₙ₋₁].
fn squares(low: (&End, f64), high: (&End, f64)) -> Vec<f64> {
    let mut squares = vec![0.5 * (high.1 - low.1); low.0.value.len()];
    for n in 1..squares.len() {
        let boundary = |(end, t): (&End, f64)| {
            let p = end.value[n] / (n as f64 + 0.5).sqrt();
            let q = end.value[n - 1] / (n as f64 - 0.5).sqrt();
            t * p * p + t * q * q - 2.0 * p * q
        };
        squares[n] = squares[n - 1] + 0.5 * (boundary(high) - boundary(low));
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values are from 60-digit arithmetic.
    #[test]
    fn values_match_the_reference() {
        for (n, t, expected, tolerance) in [
            (63, 0.25, 0.268_680_278_484_804_36, 1e-14),
            (63, 0.999, -1.603_451_735_590_196_7, 2e-14),
            (31, -0.7, -0.610_936_566_937_895_7, 1e-14),
            (4095, 0.3, 0.498_599_749_213_563_8, 1e-12),
        ] {
            let mut found = 0.0;
            each_function(t, n + 1, |_, u, _| found = u);
            assert!((found - expected).abs() < tolerance, "u_{n}({t}): {found} of {expected}");
        }
    }

    #[test]
    fn the_first_integrals_are_those_of_powers() {
        // On [−1, 1]: u₁ = √(3/2) t, so ∫ u₁² over [0, 1/2] is 1/16, and ∫ u₀ u₁ is √3/16.
        let basis = Legendre::new(2, -1.0, 1.0).unwrap();
        let m = basis.gram_over::<f64>(&Part::Interval { low: 0.0, high: 0.5 });
        assert!((m[(1, 1)] - 1.0 / 16.0).abs() < 1e-15);
        assert!((m[(0, 1)] - 3f64.sqrt() / 16.0).abs() < 1e-15);
        assert!((m[(0, 0)] - 0.25).abs() < 1e-15);
    }
}

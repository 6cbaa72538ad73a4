use std::f64::consts::{PI, SQRT_2, TAU};

use num_complex::Complex64;

use super::error::{BasisError, check_bounds, check_functions};
use super::part::Part;
use super::sturm::symmetric;
use crate::Domain;
use crate::linalg::{Matrix, Scalar};

/// The functions of a Fourier basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FourierForm {
    /// 1/√P, then √(2/P) cos(2πkθ), √(2/P) sin(2πkθ) for k = 1, 2, …
    Real,
    /// e^(2πikθ)/√P for k = 0, 1, −1, 2, −2, …
    Complex,
}

/// The Fourier functions on [a, b], or on a circle if a = 0, with period P = b − a and θ = (x − a)
/// / P.
#[derive(Clone, Debug, PartialEq)]
pub struct Fourier {
    functions: usize,
    low: f64,
    high: f64,
    form: FourierForm,
}

impl Fourier {
    pub(super) fn new(
        functions: usize,
        low: f64,
        high: f64,
        form: FourierForm,
    ) -> Result<Self, BasisError> {
        check_functions("Fourier", functions)?;
        check_bounds(low, high)?;
        Ok(Self { functions, low, high, form })
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.functions
    }

    /// The bounds a and b.
    pub fn bounds(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The form: real or complex.
    pub fn form(&self) -> FourierForm {
        self.form
    }

    pub(super) fn natural_domain(&self) -> Domain {
        if self.low == 0.0 { Domain::Circle(self.high) } else { self.interval() }
    }

    pub(super) fn interval(&self) -> Domain {
        Domain::Interval(self.low, self.high)
    }

    pub(super) fn is_real(&self) -> bool {
        self.form == FourierForm::Real || self.functions == 1
    }

    fn period(&self) -> f64 {
        self.high - self.low
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        let turns = (x - self.low) / self.period();
        let factor = self.period().sqrt().recip();
        out[0] = T::from_real(factor);
        for (pair, values) in out[1..].chunks_mut(2).enumerate() {
            let (sin, cos) = turn(pair + 1, turns);
            let (first, second) = match self.form {
                FourierForm::Real => {
                    let factor = SQRT_2 * factor;
                    (T::from_real(factor * cos), T::from_real(factor * sin))
                }
                FourierForm::Complex => {
                    let z = T::from_complex(Complex64::new(factor * cos, factor * sin));
                    (z, z.conjugate())
                }
            };
            values[0] = first;
            if let Some(value) = values.get_mut(1) {
                *value = second;
            }
        }
    }

    /// ∫ f fᴴ over a part. The phase of ∫ e^(2πimθ) is that of the middle of the interval, and its
    /// modulus is a sinc, so no difference between two ends cancels.
    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        part.integrate(&self.interval(), self.functions, |low, high| {
            let length = (high - low) / self.period();
            let middle = (0.5 * (low - self.low) + 0.5 * (high - self.low)) / self.period();
            self.from_coefficients(|m| {
                if m == 0 {
                    return Complex64::new(length, 0.0);
                }
                let (sin, cos) = turn(m, middle);
                // sin(πmℓ), from a reduced half turn.
                let sinc = turn(m, 0.5 * length).0 / (PI * m as f64);
                Complex64::new(sinc * cos, sinc * sin)
            })
        })
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        let (a, p) = (self.low, self.period());
        match power {
            0 => Some(Matrix::identity(self.functions)),
            1 => Some(self.from_coefficients(|m| {
                let shift = if m == 0 { a } else { 0.0 };
                Complex64::new(shift, 0.0) + theta_coefficient(m).scale(p)
            })),
            2 => Some(self.from_coefficients(|m| {
                let shift = if m == 0 { a * a } else { 0.0 };
                Complex64::new(shift, 0.0)
                    + theta_coefficient(m).scale(2.0 * a * p)
                    + theta_squared_coefficient(m).scale(p * p)
            })),
            _ => None,
        }
    }

    /// ∫ w f fᴴ from the coefficients cₘ = (1/P) ∫ w e^(2πimθ) dx of a real weight w, m ≥ 0.
    #[expect(clippy::wrong_self_convention, reason = "a matrix is made, not a basis")]
    fn from_coefficients<T: Scalar>(&self, coefficient: impl Fn(usize) -> Complex64) -> Matrix<T> {
        let k = self.functions;
        let c: Vec<Complex64> = (0..=k).map(coefficient).collect();
        match self.form {
            FourierForm::Real => symmetric(k, |i, j| real_entry(&c, i, j)),
            FourierForm::Complex => Matrix::from_fn(k, k, |i, j| {
                let difference = frequency(i) - frequency(j);
                let value = c[difference.unsigned_abs()];
                T::from_complex(if difference < 0 { value.conj() } else { value })
            }),
        }
    }
}

/// The signed frequency of function i of the complex form: 0, 1, −1, 2, −2, …
fn frequency(i: usize) -> isize {
    let k = i.div_ceil(2).cast_signed();
    if i % 2 == 1 { k } else { -k }
}

/// ∫ w fᵢ fⱼ of the real form for j ≤ i, by the product formulas of cosine and sine.
fn real_entry(c: &[Complex64], i: usize, j: usize) -> f64 {
    let (m, n) = (i.div_ceil(2), j.div_ceil(2));
    let (sum, difference) = (c[if j == 0 { m } else { m + n }], c[m - n]);
    match (i, j, i % 2 == 1, j % 2 == 1) {
        (0, 0, ..) => sum.re,
        (_, 0, true, _) => SQRT_2 * sum.re,
        (_, 0, false, _) => SQRT_2 * sum.im,
        (_, _, true, true) => difference.re + sum.re,
        (_, _, false, false) => difference.re - sum.re,
        (_, _, false, true) => sum.im + difference.im,
        (_, _, true, false) => sum.im - difference.im,
    }
}

/// (sin, cos) of 2π k θ, after whole turns have been removed.
fn turn(k: usize, turns: f64) -> (f64, f64) {
    let product = k as f64 * turns;
    // Not the system's function, so that the bits are the same on every machine.
    libm::sincos(TAU * (product - product.round()))
}

/// ∫₀¹ θ e^(2πimθ) dθ.
fn theta_coefficient(m: usize) -> Complex64 {
    if m == 0 {
        return Complex64::new(0.5, 0.0);
    }
    Complex64::new(0.0, -1.0 / (TAU * m as f64))
}

/// ∫₀¹ θ² e^(2πimθ) dθ.
fn theta_squared_coefficient(m: usize) -> Complex64 {
    if m == 0 {
        return Complex64::new(1.0 / 3.0, 0.0);
    }
    let c = TAU * m as f64;
    Complex64::new(2.0 / (c * c), -1.0 / c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_come_in_the_stated_order() {
        let real = Fourier::new(5, -1.0, 3.0, FourierForm::Real).unwrap();
        let mut out = [0.0; 5];
        real.evaluate(0.5, &mut out);
        let angle = TAU * 1.5 / 4.0;
        let root = 0.5f64.sqrt();
        let expected = [0.5, root * angle.cos(), root * angle.sin()];
        assert!(out.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-15));
        assert!((out[4] - root * (2.0 * angle).sin()).abs() < 1e-15);

        let complex = Fourier::new(4, -1.0, 3.0, FourierForm::Complex).unwrap();
        let mut out = [Complex64::ZERO; 4];
        complex.evaluate(0.5, &mut out);
        for (value, k) in out.iter().zip([0.0, 1.0, -1.0, 2.0]) {
            assert!((value - Complex64::from_polar(0.5, k * angle)).norm() < 1e-15);
        }
        assert_eq!([0, 1, 2, 3, 4].map(frequency), [0, 1, -1, 2, -2]);
    }

    #[test]
    fn tiny_intervals_keep_relative_accuracy() {
        let basis = Fourier::new(64, 0.0, 1.0, FourierForm::Complex).unwrap();
        let m = basis.gram_over::<Complex64>(&Part::Interval { low: 0.25, high: 0.25 + 1e-9 });
        // Every entry has modulus ℓ to first order.
        assert!(m.data().iter().all(|z| (z.norm() / 1e-9 - 1.0).abs() < 1e-6));
    }
}

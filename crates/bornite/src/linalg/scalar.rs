use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

use num_complex::Complex64;

use super::Matrix;

/// The number type of an algorithm: `f64` for real circuits, `Complex64` for all others.
///
/// Operations choose it once, on entry, and are generic below.
pub trait Scalar:
    faer::traits::ComplexField
    + Copy
    + Debug
    + Default
    + PartialEq
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Whether the type has an imaginary part.
    const IS_COMPLEX: bool;

    /// The number with this real part and no imaginary part.
    fn from_real(x: f64) -> Self;
    /// Converts a complex number. A real type drops the imaginary part.
    fn from_complex(z: Complex64) -> Self;
    /// Converts to a complex number.
    fn to_complex(self) -> Complex64;
    /// The complex conjugate.
    #[must_use]
    fn conjugate(self) -> Self;
    /// |x|².
    fn abs2(self) -> f64;
    /// The product with a real number.
    #[must_use]
    fn scale_by(self, factor: f64) -> Self;
    /// The larger of |re| and |im|, which is the modulus up to a factor of √2.
    fn max_part(self) -> f64;
    /// The numbers as real parts, each followed by its imaginary part if the type has one.
    fn parts(numbers: &[Self]) -> &[f64];
    /// The parts of the numbers, mutable: see [`parts`](Self::parts).
    fn parts_mut(numbers: &mut [Self]) -> &mut [f64];
    /// Converts a complex matrix; borrowed if it already has this type.
    fn matrix_from_complex(m: &Matrix<Complex64>) -> Cow<'_, Matrix<Self>>;
    /// Converts a real matrix; borrowed if it already has this type.
    fn matrix_from_real(m: &Matrix<f64>) -> Cow<'_, Matrix<Self>>;
}

impl Scalar for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const IS_COMPLEX: bool = false;

    fn from_real(x: f64) -> Self {
        x
    }
    fn from_complex(z: Complex64) -> Self {
        z.re
    }
    fn to_complex(self) -> Complex64 {
        Complex64::new(self, 0.0)
    }
    fn conjugate(self) -> Self {
        self
    }
    fn abs2(self) -> f64 {
        self * self
    }
    fn scale_by(self, factor: f64) -> Self {
        self * factor
    }
    fn max_part(self) -> f64 {
        self.abs()
    }
    fn parts(numbers: &[Self]) -> &[f64] {
        numbers
    }
    fn parts_mut(numbers: &mut [Self]) -> &mut [f64] {
        numbers
    }
    fn matrix_from_complex(m: &Matrix<Complex64>) -> Cow<'_, Matrix<Self>> {
        Cow::Owned(m.map(|z| z.re))
    }
    fn matrix_from_real(m: &Matrix<f64>) -> Cow<'_, Matrix<Self>> {
        Cow::Borrowed(m)
    }
}

impl Scalar for Complex64 {
    const ZERO: Self = Complex64::new(0.0, 0.0);
    const ONE: Self = Complex64::new(1.0, 0.0);
    const IS_COMPLEX: bool = true;

    fn from_real(x: f64) -> Self {
        Complex64::new(x, 0.0)
    }
    fn from_complex(z: Complex64) -> Self {
        z
    }
    fn to_complex(self) -> Complex64 {
        self
    }
    fn conjugate(self) -> Self {
        self.conj()
    }
    fn abs2(self) -> f64 {
        self.norm_sqr()
    }
    fn scale_by(self, factor: f64) -> Self {
        Complex64::new(self.re * factor, self.im * factor)
    }
    fn max_part(self) -> f64 {
        // `f64::max` would drop a NaN.
        let (re, im) = (self.re.abs(), self.im.abs());
        if re > im || re.is_nan() { re } else { im }
    }
    fn parts(numbers: &[Self]) -> &[f64] {
        bytemuck::cast_slice(numbers)
    }
    fn parts_mut(numbers: &mut [Self]) -> &mut [f64] {
        bytemuck::cast_slice_mut(numbers)
    }
    fn matrix_from_complex(m: &Matrix<Complex64>) -> Cow<'_, Matrix<Self>> {
        Cow::Borrowed(m)
    }
    fn matrix_from_real(m: &Matrix<f64>) -> Cow<'_, Matrix<Self>> {
        Cow::Owned(m.map(|x| Complex64::new(x, 0.0)))
    }
}

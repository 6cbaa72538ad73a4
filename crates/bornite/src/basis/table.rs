use num_complex::Complex64;

use super::error::{BasisError, MAX_MAGNITUDE, check_functions};
use super::part::Part;
use crate::linalg::{Matrix, Scalar, row_orthonormalize};

/// The maximum distance from orthonormal at which the rows of a table count as orthonormal.
const ORTHONORMAL_TOLERANCE: f64 = 1e-12;

/// K arbitrary functions on a finite domain: function i at value x is entry (i, x) of a K×v matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    values: Matrix<Complex64>,
    is_real: bool,
    is_orthonormal: bool,
}

impl Table {
    pub(super) fn new(values: Matrix<Complex64>) -> Result<Self, BasisError> {
        check_functions("table", values.rows())?;
        if values.cols() == 0 {
            return Err(BasisError::NoValues);
        }
        let bad = |z: &Complex64| !(z.re.abs() <= MAX_MAGNITUDE && z.im.abs() <= MAX_MAGNITUDE);
        if let Some(n) = values.data().iter().position(bad) {
            let (function, value) = (n / values.cols(), n % values.cols());
            let Complex64 { re, im } = values[(function, value)];
            return Err(BasisError::TableEntry { function, value, re, im });
        }
        if values.data().iter().all(|z| *z == Complex64::ZERO) {
            return Err(BasisError::ZeroTable);
        }
        Ok(Self::checked(values))
    }

    fn checked(values: Matrix<Complex64>) -> Self {
        let is_real = values.data().iter().all(|z| z.im == 0.0);
        let fits = values.rows() <= values.cols();
        let is_orthonormal = fits && values.semi_unitary_residual() <= ORTHONORMAL_TOLERANCE;
        Self { values, is_real, is_orthonormal }
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.values.rows()
    }

    /// The functions, one per row, at the values 0 … v − 1.
    pub fn values(&self) -> &Matrix<Complex64> {
        &self.values
    }

    pub(super) fn is_real(&self) -> bool {
        self.is_real
    }

    pub(super) fn is_orthonormal(&self) -> bool {
        self.is_orthonormal
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        let x = (x as usize).min(self.values.cols() - 1);
        for (i, value) in out.iter_mut().enumerate() {
            *value = T::from_complex(self.values[(i, x)]);
        }
    }

    /// Σ w(x) f(x) f(x)ᴴ over some values of x.
    fn weighted<T: Scalar>(&self, values: &[usize], weight: impl Fn(usize) -> f64) -> Matrix<T> {
        let k = self.width();
        if values.is_empty() {
            return Matrix::zeros(k, k);
        }
        let at = |i: usize, n: usize| T::from_complex(self.values[(i, values[n])]);
        let left = Matrix::from_fn(k, values.len(), |i, n| at(i, n).scale_by(weight(values[n])));
        left.times_adjoint(&Matrix::from_fn(k, values.len(), at)).hermitian_part()
    }

    pub(super) fn gram<T: Scalar>(&self) -> Matrix<T> {
        if self.is_orthonormal {
            return Matrix::identity(self.width());
        }
        self.weighted(&(0..self.values.cols()).collect::<Vec<_>>(), |_| 1.0)
    }

    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        self.weighted(&part.values(self.values.cols()), |_| 1.0)
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        let all: Vec<usize> = (0..self.values.cols()).collect();
        (power <= 2).then(|| self.weighted(&all, |x| (x as f64).powi(power.cast_signed())))
    }

    /// (f′, L) with f = L f′, by factoring the table itself. Its Gram matrix would lose digits.
    pub(super) fn orthonormalized(&self) -> (Self, Matrix<Complex64>) {
        let (l, q) = if self.is_real {
            let factor = row_orthonormalize(&self.values.map(|z| z.re));
            (factor.l.map(Scalar::to_complex), factor.q.map(Scalar::to_complex))
        } else {
            let factor = row_orthonormalize(&self.values);
            (factor.l, factor.q)
        };
        (Self::checked(q), l)
    }
}

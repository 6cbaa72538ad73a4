use std::sync::Arc;

use super::Basis;
use super::part::Part;
use crate::linalg::{Matrix, Scalar};

/// The K² products fᵢ fⱼ* of the functions of another basis; that of i and j stands at i K + j.
#[derive(Clone, Debug, PartialEq)]
pub struct Squared(Arc<Basis>);

impl Squared {
    pub(super) fn new(base: Arc<Basis>) -> Self {
        Self(base)
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.0.width().saturating_mul(self.0.width())
    }

    /// The basis whose functions are multiplied.
    pub fn base(&self) -> &Basis {
        &self.0
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        let k = self.0.width();
        let mut f = vec![T::ZERO; k];
        self.0.evaluate(x, &mut f);
        for (n, value) in out.iter_mut().enumerate() {
            *value = f[n / k] * f[n % k].conjugate();
        }
    }

    pub(super) fn gram_over<T: Scalar>(&self, _: &Part) -> Matrix<T> {
        Matrix::zeros(self.width(), self.width())
    }

    pub(super) fn moments<T: Scalar>(&self, _: u32) -> Option<Matrix<T>> {
        None
    }
}

use super::error::MAX_FUNCTIONS;
use super::part::Part;
use crate::linalg::{Matrix, Scalar};

/// The indicators of the v values of a finite domain: fₖ(x) = δₓₖ.
///
/// There may be millions of values, so use
/// [`Basis::gram_diagonal_over`](super::Basis::gram_diagonal_over) rather than the v×v matrices.
#[derive(Clone, Debug, PartialEq)]
pub struct Indicator {
    values: usize,
}

impl Indicator {
    pub(super) fn new(values: usize) -> Self {
        Self { values }
    }

    /// The number of values, and of functions.
    pub fn width(&self) -> usize {
        self.values
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        out.fill(T::ZERO);
        let x = x as usize;
        if x < self.values {
            out[x] = T::ONE;
        }
    }

    pub(super) fn diagonal_over(&self, part: &Part) -> Vec<f64> {
        let mut diagonal = vec![0.0; self.values];
        for x in part.values(self.values) {
            diagonal[x] = 1.0;
        }
        diagonal
    }

    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        let mut gram = Matrix::zeros(self.values, self.values);
        for x in part.values(self.values) {
            gram[(x, x)] = T::ONE;
        }
        gram
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        if self.values > MAX_FUNCTIONS || power > 2 {
            return None;
        }
        let mut moments = Matrix::zeros(self.values, self.values);
        for x in 0..self.values {
            moments[(x, x)] = T::from_real((x as f64).powi(power.cast_signed()));
        }
        Some(moments)
    }
}

use std::sync::Arc;

use super::{Basis, Part};
use crate::linalg::{Matrix, Scalar};

/// The K² functions fᵢ fⱼ* of K functions f. The first index varies slowest.
///
/// Paper: `alg:tensorized-square`, input layers.
#[derive(Clone, Debug, PartialEq)]
pub struct Squared {
    base: Arc<Basis>,
}

impl Squared {
    pub(super) fn new(base: Arc<Basis>) -> Self {
        Self { base }
    }

    /// The functions f.
    pub fn base(&self) -> &Arc<Basis> {
        &self.base
    }

    pub(super) fn width(&self) -> usize {
        self.base.width().saturating_mul(self.base.width())
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        let mut f = vec![T::ZERO; self.base.width()];
        self.base.evaluate(x, &mut f);
        for (row, &a) in out.chunks_exact_mut(f.len()).zip(&f) {
            for (o, &b) in row.iter_mut().zip(&f) {
                *o = a * b.conjugate();
            }
        }
    }

    #[expect(clippy::unused_self, reason = "the signature that every family shares")]
    pub(super) fn gram_over<T: Scalar>(&self, _: &Part) -> Matrix<T> {
        panic!("the products f f* of a squared circuit are integrated, not squared again")
    }

    #[expect(clippy::unused_self, reason = "the signature that every family shares")]
    pub(super) fn moments<T: Scalar>(&self, _: u32) -> Option<Matrix<T>> {
        None
    }
}

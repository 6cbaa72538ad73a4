//! Weights, packed for the passes.

use crate::engine::lanes::planes;
use crate::engine::{PackedWeight, Real, Uses, dense};
use crate::linalg::{Matrix, Scalar};
use crate::program::Operand;

/// A packed weight.
#[derive(Debug)]
pub(super) enum Packed<F> {
    /// Column by column, with real and imaginary parts interleaved.
    Columns {
        data: Vec<F>,
    },
    Weight(PackedWeight<F>),
}

impl<F: Real> Packed<F> {
    pub(super) fn new<T: Scalar>(w: &Matrix<T>, operand: Operand, uses: Uses) -> Self {
        match operand {
            Operand::Indicators => Self::columns(w, Vec::new()),
            Operand::Vector => Self::Weight(PackedWeight::plain(dense(w), uses)),
            Operand::Pair(k1, k2) => {
                Self::Weight(PackedWeight::kronecker(dense(w), [k1, k2], uses))
            }
        }
    }

    fn columns<T: Scalar>(w: &Matrix<T>, mut data: Vec<F>) -> Self {
        let (width, parts) = (w.rows(), planes(T::IS_COMPLEX));
        data.resize(w.cols() * parts * width, F::ZERO);
        for (k, row) in T::parts(w.data()).chunks_exact((w.cols() * parts).max(1)).enumerate() {
            let columns = data.chunks_exact_mut(parts * width);
            for (column, x) in columns.zip(row.chunks_exact(parts)) {
                for (plane, &x) in x.iter().enumerate() {
                    column[k * parts + plane] = F::from_f64(x);
                }
            }
        }
        Self::Columns { data }
    }

    /// Replaces the numbers.
    pub(super) fn refill<T: Scalar>(&mut self, w: &Matrix<T>, operand: Operand, uses: Uses) {
        *self = match self {
            Self::Columns { data } => Self::columns(w, std::mem::take(data)),
            Self::Weight(_) => Self::new(w, operand, uses),
        };
    }

    pub(super) fn weight(&self) -> &PackedWeight<F> {
        match self {
            Self::Weight(packed) => packed,
            Self::Columns { .. } => unreachable!("only leaves of indicators have columns"),
        }
    }
}

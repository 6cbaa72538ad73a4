//! Dense matrices and the factorizations that the algorithms need.
//!
//! This module is the only user of the linear-algebra crate (faer). Everything here is sequential
//! and deterministic; parallelism is left to the callers, over rows and regions.

mod factor;
mod matrix;
mod scalar;

pub use factor::{Eigen, RowFactor, cholesky, eigh, row_orthonormalize, row_svd};
pub use matrix::Matrix;
pub(crate) use matrix::{product_of_rows, product_with_adjoint};
pub use num_complex::{Complex32, Complex64};
pub use scalar::Scalar;

/// The largest of some non-negative numbers; 0 if there are none, and NaN if any is NaN.
///
/// Every check of a residual uses this function. `f64::max` ignores NaN, so with it a broken matrix
/// would pass.
pub(crate) fn largest(numbers: impl IntoIterator<Item = f64>) -> f64 {
    numbers.into_iter().fold(0.0, |max: f64, x| if max.is_nan() || x <= max { max } else { x })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_is_the_largest_at_any_position() {
        assert_eq!(largest([]), 0.0);
        assert_eq!(largest([0.5, 2.0, 1.0]), 2.0);
        for place in 0..3 {
            let mut numbers = [1.0, f64::INFINITY, 3.0];
            numbers[place] = f64::NAN;
            assert!(largest(numbers).is_nan(), "{place}");
        }
    }

    #[test]
    fn entries_that_overflow_are_not_orthonormal() {
        // Products of infinities are NaN. Because of them, 84 of 3,036 single-number edits of a
        // model once passed.
        for x in [1e300, f64::INFINITY, f64::NAN] {
            let mut m = Matrix::<Complex64>::identity(2);
            m[(0, 0)] = Complex64::new(0.0, x);
            let residual = m.semi_unitary_residual();
            assert!(residual.is_nan() || residual > 1.0, "{residual}");
            assert!(m.max_part() == x || m.max_part().is_nan());
        }
    }
}

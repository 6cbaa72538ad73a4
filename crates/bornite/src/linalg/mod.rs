//! Dense matrices and the factorizations that the algorithms need.
//!
//! This module is the only user of the linear-algebra crate (faer). Everything here is sequential and
//! deterministic; parallelism lives above, over rows and regions.

mod factor;
mod matrix;
mod scalar;

pub use factor::{Eigen, RowFactor, cholesky, eigh, row_orthonormalize, row_svd};
pub use matrix::Matrix;
pub(crate) use matrix::{product_of_rows, product_with_adjoint};
pub use num_complex::{Complex32, Complex64};
pub use scalar::Scalar;

//! Squared orthonormal circuits.

pub mod basis;
pub mod domain;
pub mod linalg;

pub use basis::Basis;
pub use domain::{Domain, Variable};

//! Squared orthonormal circuits.

pub mod domain;
pub mod linalg;

pub use domain::{Domain, Variable};

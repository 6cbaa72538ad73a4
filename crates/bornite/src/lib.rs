//! Squared orthonormal circuits.

pub mod domain;
pub mod engine;
pub mod linalg;

pub use domain::{Domain, Variable};

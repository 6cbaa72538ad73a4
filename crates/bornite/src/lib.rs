//! Squared orthonormal circuits.

pub mod basis;
pub mod circuit;
pub mod codec;
pub mod data;
pub mod domain;
pub mod draw;
pub mod engine;
mod error;
pub mod file;
pub mod learn;
pub mod linalg;
pub mod ops;
pub mod query;
pub mod structure;
mod tolerance;

pub use basis::Basis;
pub use circuit::{Circuit, CircuitBuilder, LayerId, Orthonormal, VariableId, WeightId};
pub use domain::{Domain, Variable};
pub use error::Error;
pub use query::{Evidence, Query};

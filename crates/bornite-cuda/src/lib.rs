//! Circuits on an NVIDIA GPU: learning from complete rows ([`Learner`]), with the forward and
//! reverse passes, the normalization of weights and Adam all on the device; and log densities of
//! rows with any evidence, and samples ([`Evaluator`]).
//!
//! The driver is loaded when a [`Device`] is opened, and kernels are compiled when they are first
//! needed. So this crate builds and runs without CUDA, and [`Device::open`] reports what is
//! missing. The same calls give the same bits on the same device.

mod arena;
mod device;
mod error;
mod evaluator;
mod kernels;
mod launch;
mod layout;
mod learner;
mod plan;
mod samples;
mod script;
mod tasks;
#[cfg(test)]
mod tests;

pub use device::Device;
pub use error::CudaError;
pub use evaluator::{Dense, Evaluator};
pub use learner::{Learner, Part, Update};
pub use plan::{Factors, Plan, Settings, Step, Table, Weight};
pub use script::{Block, Cells, Group, StepRows};

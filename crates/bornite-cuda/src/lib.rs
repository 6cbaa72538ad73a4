//! Learning circuits from complete rows on an NVIDIA GPU: forward, reverse, the normalization of weights and Adam, all of
//! it on the device.
//!
//! The driver is loaded when a [`Device`] is opened, and kernels are compiled when a [`Learner`] is made: without CUDA this
//! crate builds and runs, and [`Device::open`] says what is missing. The same steps give the same bits on the same device.

mod device;
mod error;
mod kernels;
mod layout;
mod learner;
mod plan;
mod tasks;

pub use device::Device;
pub use error::CudaError;
pub use learner::{Learner, Part, Update};
pub use plan::{Plan, Settings, Step, Table, Weight};

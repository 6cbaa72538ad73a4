//! The device that computes queries.

use anyhow::anyhow;
use bornite::engine;
use bornite::model::ModelError;
use bornite::query::QueryError;
use clap::ValueEnum;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// An NVIDIA GPU with enough memory for the model, if there is one; otherwise the CPU.
    Auto,
}

impl From<Device> for engine::Device {
    fn from(device: Device) -> Self {
        match device {
            Device::Cpu => Self::Cpu,
            Device::Cuda => Self::Cuda,
            Device::Auto => Self::Auto,
        }
    }
}

/// Suggests a flag if a device cannot be used.
pub(crate) fn with_flag_hint(error: ModelError) -> anyhow::Error {
    match error {
        ModelError::Query(QueryError::Device { .. }) => {
            anyhow!("{error}; --device auto uses the CPU instead")
        }
        other => other.into(),
    }
}

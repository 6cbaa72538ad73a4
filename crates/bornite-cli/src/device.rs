//! Where queries are computed.

use anyhow::anyhow;
use bornite::engine;
use bornite::model::ModelError;
use bornite::query::QueryError;
use clap::ValueEnum;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// An NVIDIA GPU that has room for the model, if there is one; otherwise the processor.
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

/// Words the remedy for a device that cannot be used as a flag.
pub(crate) fn in_words_of_flags(error: ModelError) -> anyhow::Error {
    match error {
        ModelError::Query(QueryError::Device { .. }) => {
            anyhow!("{error}; --device auto uses the processor instead")
        }
        other => other.into(),
    }
}

//! The device that computes queries: the CPU or an NVIDIA GPU (see [`bornite_cuda`]).

#[cfg(feature = "cuda")]
use super::AnyPlan;
use super::{Batch, Engine, Real};
use crate::query::QueryError;

/// The device that computes a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The CPU. It gives the same bits on every machine.
    #[default]
    Cpu,
    /// An NVIDIA GPU, which requires the feature `cuda`. It gives the same bits on the same kind of
    /// device. In double precision, log densities agree with those of the CPU to 10⁻⁹, absolute or
    /// relative, whichever is larger; in single precision, to about 10⁻³.
    Cuda,
    /// A GPU if one is available and has enough memory for the circuit, otherwise the CPU.
    Auto,
}

impl<F: Real> Engine<F> {
    /// Computes [`log_marginals`](Self::log_marginals) on a device. The first call copies the
    /// circuit to the device, where it stays as long as the engine exists.
    ///
    /// # Errors
    /// The rows were created for a different number of variables, or the requested device is
    /// missing or has too little memory.
    pub fn log_marginals_on(&self, rows: &Batch, device: Device) -> Result<Vec<f64>, QueryError> {
        match device {
            Device::Cpu => self.log_marginals(rows),
            Device::Cuda => self.log_marginals_on_cuda(rows),
            Device::Auto => match self.log_marginals_on_cuda(rows) {
                Err(QueryError::Device { .. }) => self.log_marginals(rows),
                other => other,
            },
        }
    }

    /// Draws the samples of [`sample_from`](Self::sample_from) on a device, for circuits with
    /// finite variables. The same seed always gives the same samples on one kind of device, and
    /// different samples of the same distribution on another.
    ///
    /// # Errors
    /// The requested device is missing, has too little memory, or cannot draw variables that are
    /// not finite.
    pub fn sample_from_on(
        &self,
        start: u64,
        count: usize,
        seed: u64,
        device: Device,
    ) -> Result<Vec<f64>, QueryError> {
        self.sample_at_on(count, seed, &|row| start.wrapping_add(row as u64), device)
    }

    /// Draws one sample per row without evidence. `index` is the position of a row in the sequence
    /// of samples for the seed.
    pub(crate) fn sample_at_on(
        &self,
        count: usize,
        seed: u64,
        index: &(dyn Fn(usize) -> u64 + Sync),
        device: Device,
    ) -> Result<Vec<f64>, QueryError> {
        let on_cpu = || {
            let rows = Batch::unknown(self.variables.len(), count);
            Ok(self.sample_at(&rows, seed, index))
        };
        match device {
            Device::Cpu => on_cpu(),
            Device::Cuda => self.sample_on_cuda(count, seed, index),
            Device::Auto => match self.sample_on_cuda(count, seed, index) {
                Err(QueryError::Device { .. }) => on_cpu(),
                other => other,
            },
        }
    }
}

#[cfg(feature = "cuda")]
impl<F: Real> Engine<F> {
    fn sample_on_cuda(
        &self,
        count: usize,
        seed: u64,
        index: &(dyn Fn(usize) -> u64 + Sync),
    ) -> Result<Vec<f64>, QueryError> {
        let values = match &self.plan {
            AnyPlan::Real(plan) => plan.sample_on(count, seed, index, &self.evaluator),
            AnyPlan::Complex(plan) => plan.sample_on(count, seed, index, &self.evaluator),
        };
        values.map_err(|error| QueryError::Device { reason: error.to_string() })
    }

    fn log_marginals_on_cuda(&self, rows: &Batch) -> Result<Vec<f64>, QueryError> {
        self.check(rows)?;
        let logs = match &self.plan {
            AnyPlan::Real(plan) => plan.log_marginals_on(rows, &self.evaluator),
            AnyPlan::Complex(plan) => plan.log_marginals_on(rows, &self.evaluator),
        };
        logs.map_err(|error| QueryError::Device { reason: error.to_string() })
    }
}

#[cfg(not(feature = "cuda"))]
#[expect(clippy::unused_self, reason = "the signatures are those with CUDA")]
impl<F: Real> Engine<F> {
    fn sample_on_cuda(
        &self,
        _: usize,
        _: u64,
        _: &(dyn Fn(usize) -> u64 + Sync),
    ) -> Result<Vec<f64>, QueryError> {
        Err(no_cuda())
    }

    fn log_marginals_on_cuda(&self, _: &Batch) -> Result<Vec<f64>, QueryError> {
        Err(no_cuda())
    }
}

#[cfg(not(feature = "cuda"))]
fn no_cuda() -> QueryError {
    QueryError::Device { reason: "this build does not include CUDA".to_owned() }
}

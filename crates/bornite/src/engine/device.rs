//! The device that computes queries: the CPU, or an NVIDIA GPU (see [`bornite_cuda`]).

#[cfg(feature = "cuda")]
use super::AnyPlan;
use super::{Batch, Engine, Real};
use crate::query::QueryError;

/// The device that computes a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// On the CPU: the same bits on every machine.
    #[default]
    Cpu,
    /// On an NVIDIA GPU, with the crate's feature `cuda`: the same bits on the same device. In double precision, log densities are
    /// those of the CPU within 10⁻⁹ of their size or 10⁻⁹, whichever is more; in single precision within about 10⁻³.
    Cuda,
    /// On a GPU if there is one that has room for the circuit, and on the CPU otherwise.
    Auto,
}

impl<F: Real> Engine<F> {
    /// [`log_marginals`](Self::log_marginals) on a device. The circuit is copied to the device with the first rows, and
    /// stays there as long as the engine.
    ///
    /// # Errors
    /// Rows created for another number of variables, or a device that is not there or too small, if it must be used.
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

    /// [`sample_from`](Self::sample_from) on a device, for circuits with finite variables. The same seed
    /// always gives the same samples on one kind of device, and different samples of the same distribution on another.
    ///
    /// # Errors
    /// A device that is not there or too small, or variables that are not finite, if it must be used.
    pub fn sample_from_on(
        &self,
        start: u64,
        count: usize,
        seed: u64,
        device: Device,
    ) -> Result<Vec<f64>, QueryError> {
        self.sample_at_on(count, seed, &|row| start.wrapping_add(row as u64), device)
    }

    /// The samples that stand at these places among those of a seed.
    pub(crate) fn sample_at_on(
        &self,
        count: usize,
        seed: u64,
        place: &(dyn Fn(usize) -> u64 + Sync),
        device: Device,
    ) -> Result<Vec<f64>, QueryError> {
        let on_processor = || {
            let rows = Batch::unknown(self.variables.len(), count);
            Ok(self.sample_at(&rows, seed, place))
        };
        match device {
            Device::Cpu => on_processor(),
            Device::Cuda => self.sample_on_cuda(count, seed, place),
            Device::Auto => match self.sample_on_cuda(count, seed, place) {
                Err(QueryError::Device { .. }) => on_processor(),
                other => other,
            },
        }
    }

    #[cfg(feature = "cuda")]
    fn sample_on_cuda(
        &self,
        count: usize,
        seed: u64,
        place: &(dyn Fn(usize) -> u64 + Sync),
    ) -> Result<Vec<f64>, QueryError> {
        let values = match &self.plan {
            AnyPlan::Real(plan) => plan.sample_on(count, seed, place, &self.evaluator),
            AnyPlan::Complex(plan) => plan.sample_on(count, seed, place, &self.evaluator),
        };
        values.map_err(|error| QueryError::Device { reason: error.to_string() })
    }

    #[cfg(not(feature = "cuda"))]
    fn sample_on_cuda(
        &self,
        _: usize,
        _: u64,
        _: &(dyn Fn(usize) -> u64 + Sync),
    ) -> Result<Vec<f64>, QueryError> {
        Err(QueryError::Device { reason: "this build does not include CUDA".to_owned() })
    }

    #[cfg(feature = "cuda")]
    fn log_marginals_on_cuda(&self, rows: &Batch) -> Result<Vec<f64>, QueryError> {
        self.check(rows)?;
        let logs = match &self.plan {
            AnyPlan::Real(plan) => plan.log_marginals_on(rows, &self.evaluator),
            AnyPlan::Complex(plan) => plan.log_marginals_on(rows, &self.evaluator),
        };
        logs.map_err(|error| QueryError::Device { reason: error.to_string() })
    }

    #[cfg(not(feature = "cuda"))]
    fn log_marginals_on_cuda(&self, _: &Batch) -> Result<Vec<f64>, QueryError> {
        Err(QueryError::Device { reason: "this build does not include CUDA".to_owned() })
    }
}

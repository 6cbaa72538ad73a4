//! The batched engine: rows of a batch in SIMD lanes.
//!
//! [`Engine`] answers queries for many rows at once, each with its own missing cells, sets and intervals.
//!
//! The loops are in a separate crate, `bornite-kernels`: rows lie side by side in SIMD lanes, and all arithmetic is a
//! fixed order of fused multiply-adds per lane. The bits of a row therefore do not depend on its neighbors, the batch
//! size or the instruction set ([`SimdLevel`]).

mod batch;
mod columns;
mod combine;
mod conditional;
mod count;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
#[cfg(test)]
mod device_tests;
mod finite;
mod leaf;
mod message;
mod pieces;
mod plan;
mod posterior;
mod region;
#[cfg(test)]
mod tests;
mod traverse;
mod unravel;
mod upward;
mod workspace;

pub use crate::algebra::Work;
pub use batch::{Batch, RowError};
pub(crate) use batch::{BatchColumn, check_rows};
pub(crate) use bornite_kernels::{
    Buffer, Dense, Kernels, PackedWeight, Simd, Uses, WeightGradient, lanes,
};
pub use bornite_kernels::{Real, SimdLevel};
pub(crate) use combine::{contract_tile, set_lane};
#[cfg(feature = "cuda")]
pub(crate) use cuda::device;
pub use device::Device;
pub(crate) use finite::{Choose, Cumulative, Traversal};
pub(crate) use message::Sent;
pub use posterior::Posteriors;
pub(crate) use posterior::{CellAnswer, CellAnswers, CellDistribution, PiecewiseDensity, Wanted};

use crate::circuit::{Circuit, Orthonormal, VariableId};
use crate::domain::Variable;
use crate::linalg::{Matrix, Scalar};
use crate::query::QueryError;
use plan::Plan;

/// A matrix as the kernels pack it.
pub(crate) fn dense<T: Scalar>(m: &Matrix<T>) -> Dense<'_> {
    Dense::new([m.rows(), m.cols()], T::IS_COMPLEX, T::parts(m.data()))
}

/// An orthonormal circuit, packed for batches of queries.
///
/// Results are the same bit for bit whatever the number of threads, the rows around a row and the SIMD level.
///
/// ```
/// use bornite::engine::{Batch, Engine};
/// use bornite::structure::{RegionTree, Structure};
/// use bornite::{Basis, Domain, Variable, circuit::Weights, ops};
/// use rand::SeedableRng;
///
/// let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
/// let rng = &mut rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let circuit = Structure::new(RegionTree::balanced(8), bit).build(Weights::Gaussian, rng)?;
/// let engine = Engine::new(&ops::orthonormalize(&circuit)?.circuit);
///
/// let samples = engine.sample(1000, 7);
/// let rows = Batch::from_rows(engine.variables(), &samples)?;
/// let log_p = engine.log_marginals(&rows)?;
/// assert!(log_p.iter().all(|l| l.is_finite()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine<F: Real = f64> {
    variables: Vec<Variable>,
    plan: AnyPlan<F>,
    #[cfg(feature = "cuda")]
    evaluator: cuda::OnDevice,
}

#[derive(Debug)]
enum AnyPlan<F: Real> {
    Real(Plan<F, false>),
    Complex(Plan<F, true>),
}

/// The same call on a real or a complex plan.
macro_rules! with_plan {
    ($engine:expr, $plan:ident => $body:expr) => {
        match &$engine.plan {
            AnyPlan::Real($plan) => $body,
            AnyPlan::Complex($plan) => $body,
        }
    };
}

impl Engine {
    /// Packs a circuit in double precision, for the best instruction set of this machine.
    pub fn new(circuit: &Orthonormal) -> Self {
        Self::with_level(circuit, SimdLevel::Best)
    }
}

impl Engine<f32> {
    /// Packs a circuit in single precision: half the memory and twice the lanes, for about six digits.
    pub fn single(circuit: &Orthonormal) -> Self {
        Self::with_level(circuit, SimdLevel::Best)
    }
}

impl<F: Real> Engine<F> {
    /// Packs a circuit, for no higher instruction set than `level`.
    pub fn with_level(circuit: &Orthonormal, level: SimdLevel) -> Self {
        Self::of_circuit(circuit, level)
    }

    /// Packs a circuit whose input functions and weights are taken to be orthonormal.
    pub(crate) fn of_circuit(circuit: &Circuit, level: SimdLevel) -> Self {
        let plan = if circuit.is_real() {
            AnyPlan::Real(Plan::new(circuit, level))
        } else {
            AnyPlan::Complex(Plan::new(circuit, level))
        };
        Self {
            variables: circuit.variables().to_vec(),
            plan,
            #[cfg(feature = "cuda")]
            evaluator: cuda::OnDevice::default(),
        }
    }

    /// The circuit's variables.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// log p(evidence) of every row: the exact log marginal of the evidence about it; −∞ if that is impossible.
    ///
    /// Cost: rows are grouped by kind at every layer, so each row pays only for its own messages (see
    /// [`marginalize`](crate::ops::marginalize())); rows in which the same cells are unknown share everything.
    ///
    /// # Errors
    /// Rows created for another number of variables.
    pub fn log_marginals(&self, rows: &Batch) -> Result<Vec<f64>, QueryError> {
        self.check(rows)?;
        Ok(with_plan!(self, plan => plan.log_marginals(rows)))
    }

    /// The order in which [`log_conditionals`](Self::log_conditionals) and the samplers visit the variables.
    pub fn traversal_order(&self) -> Vec<VariableId> {
        let order = with_plan!(self, plan => plan.program.traversal_order());
        order.into_iter().map(VariableId::new).collect()
    }

    /// log p(xᵢ | the variables before i in the traversal order), of every variable of every row, in one traversal:
    /// the result is row by row, each in the order of the variables, and each row's sum is its log density.
    ///
    /// Cost: at a sum over a Kronecker product of widths K, 2 K⁴ + 4 K³ multiply-adds per row; K² per variable on a linear
    /// tree.
    ///
    /// # Errors
    /// Rows with unknown cells, or made for another number of variables.
    pub fn log_conditionals(&self, rows: &Batch) -> Result<Vec<f64>, QueryError> {
        self.check(rows)?;
        for row in 0..rows.len() {
            if let Some(v) = rows.first_missing(row) {
                let Variable { name, domain } = self.variables[v].clone();
                return Err(QueryError::OutOfDomain { variable: name, value: f64::NAN, domain });
            }
        }
        Ok(with_plan!(self, plan => plan.log_conditionals(rows)))
    }

    /// `count` exact samples, row by row. The same seed gives the same samples, and a larger count starts with the same
    /// ones.
    ///
    /// Cost: 4 K³ multiply-adds per row at a sum over a Kronecker product of widths K; K² per variable on a linear tree.
    pub fn sample(&self, count: usize, seed: u64) -> Vec<f64> {
        self.sample_from(0, count, seed)
    }

    /// `count` of the [samples](Self::sample) for a seed, beginning with sample `start`, so samples can be drawn in
    /// pieces.
    pub fn sample_from(&self, start: u64, count: usize, seed: u64) -> Vec<f64> {
        let rows = Batch::unknown(self.variables.len(), count);
        self.sample_at(&rows, seed, &|row| start.wrapping_add(row as u64))
    }

    /// One exact sample for every row, given the evidence about it: values are kept, sets and intervals respected.
    ///
    /// # Errors
    /// Rows created for another number of variables, or evidence that is impossible.
    pub fn sample_given(&self, rows: &Batch, seed: u64) -> Result<Vec<f64>, SampleError> {
        self.sample_given_from(0, rows, seed)
    }

    /// The [samples](Self::sample_given) for a piece of the rows that is preceded by `start` rows.
    ///
    /// # Errors
    /// As for [`sample_given`](Self::sample_given).
    pub fn sample_given_from(
        &self,
        start: u64,
        rows: &Batch,
        seed: u64,
    ) -> Result<Vec<f64>, SampleError> {
        let log_p = self.log_marginals(rows)?;
        if let Some(row) = log_p.iter().position(|l| *l == f64::NEG_INFINITY) {
            return Err(SampleError::Impossible { row });
        }
        Ok(self.sample_at(rows, seed, &|row| start.wrapping_add(row as u64)))
    }

    /// The samples of rows that are possible and stand at these places among those of a seed.
    pub(crate) fn sample_at(
        &self,
        rows: &Batch,
        seed: u64,
        place: &(dyn Fn(usize) -> u64 + Sync),
    ) -> Vec<f64> {
        with_plan!(self, plan => plan.sample(rows, seed, place))
    }

    fn check(&self, rows: &Batch) -> Result<(), QueryError> {
        let (expected, found) = (self.variables.len(), rows.num_variables());
        if expected == found { Ok(()) } else { Err(QueryError::Count { expected, found }) }
    }
}

/// The reason that there is no sample.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The rows do not fit the circuit.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// What a row is said to know has probability 0.
    #[error("row {row}: its evidence has probability 0, so there is nothing to sample; relax it")]
    Impossible {
        /// The row, counted from 0.
        row: usize,
    },
}

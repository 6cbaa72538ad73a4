//! The batched engine: answers queries for many rows at once.
//!
//! [`Engine`] takes a [`Batch`] of rows, each with its own missing values, sets and intervals.
//!
//! The inner loops are in a separate crate, `bornite-kernels`: rows lie side by side in SIMD lanes,
//! and all arithmetic is a fixed order of fused multiply-adds per lane. Therefore, the bits of a
//! row do not depend on its neighbors, the batch size or the instruction set ([`SimdLevel`]).

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
pub(crate) use combine::{contract_tile, hadamard_tile, set_lane};
#[cfg(feature = "cuda")]
pub(crate) use cuda::device;
pub use device::Device;
pub(crate) use finite::{Choose, Cumulative, Traversal};
pub(crate) use leaf::{evaluate_functions, gather_columns};
pub(crate) use message::{Sent, add_exponents, trace};
pub use posterior::Posteriors;
pub(crate) use posterior::{
    CellAnswer, CellAnswers, CellDistribution, CellRequest, PiecewiseDensity,
};

use crate::circuit::{Circuit, Orthonormal, VariableId};
use crate::domain::Variable;
use crate::linalg::{Matrix, Scalar};
use crate::query::QueryError;
use plan::Plan;

/// A matrix in the form that the kernels pack.
pub(crate) fn dense<T: Scalar>(m: &Matrix<T>) -> Dense<'_> {
    Dense::new([m.rows(), m.cols()], T::IS_COMPLEX, T::parts(m.data()))
}

/// An orthonormal circuit, packed for batches of queries.
///
/// The results are the same bit for bit for any number of threads, any SIMD level, and whatever
/// other rows are in the batch.
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

/// Evaluates an expression for a real or a complex plan.
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
    /// Packs a circuit in single precision: half the memory and twice the lanes, with about six
    /// digits.
    pub fn single(circuit: &Orthonormal) -> Self {
        Self::with_level(circuit, SimdLevel::Best)
    }
}

impl<F: Real> Engine<F> {
    /// Packs a circuit for an instruction set no higher than `level`.
    pub fn with_level(circuit: &Orthonormal, level: SimdLevel) -> Self {
        Self::of_circuit(circuit, level)
    }

    /// Packs a circuit, assuming that its input functions and weights are orthonormal.
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

    /// Computes log p(evidence) of every row, the exact log marginal of its evidence; −∞ if that is
    /// impossible.
    ///
    /// Cost: rows are grouped by the kind of their messages at every layer, so each row pays only
    /// for its own messages (see [`marginalize`](crate::ops::marginalize())). Rows with the same
    /// missing values share all groups.
    ///
    /// # Errors
    /// The rows were created for a different number of variables.
    pub fn log_marginals(&self, rows: &Batch) -> Result<Vec<f64>, QueryError> {
        self.check(rows)?;
        Ok(with_plan!(self, plan => plan.log_marginals(rows)))
    }

    /// The order in which [`log_conditionals`](Self::log_conditionals) and the samplers visit the
    /// variables.
    pub fn traversal_order(&self) -> Vec<VariableId> {
        let order = with_plan!(self, plan => plan.program.traversal_order());
        order.into_iter().map(VariableId::new).collect()
    }

    /// Computes log p(xᵢ | the variables before i in the traversal order) for every variable of
    /// every row, in one traversal. The result is row by row, with each row in the order of the
    /// variables; the sum of a row is its log density.
    ///
    /// Cost: at a sum over a Kronecker product with widths K, 2 K⁴ + 4 K³ multiply-adds per row; on
    /// a linear tree, K² per variable.
    ///
    /// # Errors
    /// A row has missing values, or the rows were created for a different number of variables.
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

    /// Draws `count` exact samples, one row after another. The same seed gives the same samples,
    /// and a larger count starts with the same ones.
    ///
    /// Cost: at a sum over a Kronecker product with widths K, 4 K³ multiply-adds per row; on a
    /// linear tree, K² per variable.
    pub fn sample(&self, count: usize, seed: u64) -> Vec<f64> {
        self.sample_from(0, count, seed)
    }

    /// Draws `count` of the [samples](Self::sample) for a seed, starting with sample `start`, so
    /// that samples can be drawn in pieces.
    pub fn sample_from(&self, start: u64, count: usize, seed: u64) -> Vec<f64> {
        let rows = Batch::unknown(self.variables.len(), count);
        self.sample_at(&rows, seed, &|row| start.wrapping_add(row as u64))
    }

    /// Draws one exact sample for every row, given its evidence: values are kept, and sets and
    /// intervals are respected.
    ///
    /// # Errors
    /// The rows were created for a different number of variables, or the evidence of a row is
    /// impossible.
    pub fn sample_given(&self, rows: &Batch, seed: u64) -> Result<Vec<f64>, SampleError> {
        self.sample_given_from(0, rows, seed)
    }

    /// Draws the [samples](Self::sample_given) for a piece of a table. `start` rows come before the
    /// piece.
    ///
    /// # Errors
    /// The same as for [`sample_given`](Self::sample_given).
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

    /// Draws one sample for every row, given its evidence, which must be possible. `index` is the
    /// position of a row in the sequence of samples for the seed.
    pub(crate) fn sample_at(
        &self,
        rows: &Batch,
        seed: u64,
        index: &(dyn Fn(usize) -> u64 + Sync),
    ) -> Vec<f64> {
        with_plan!(self, plan => plan.sample(rows, seed, index))
    }

    fn check(&self, rows: &Batch) -> Result<(), QueryError> {
        let (expected, found) = (self.variables.len(), rows.num_variables());
        if expected == found { Ok(()) } else { Err(QueryError::Count { expected, found }) }
    }
}

/// Why there is no sample.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The rows do not match the circuit.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The evidence of a row has probability 0.
    #[error("row {row}: its evidence has probability 0, so there is nothing to sample; relax it")]
    Impossible {
        /// The row, counted from 0.
        row: usize,
    },
}

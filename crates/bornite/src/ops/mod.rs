//! The operations on circuits, one algorithm per file.
//!
//! [`orthonormalize`] a circuit once, then [`marginalize`] for every query. [`evaluate`] and
//! [`log_partition`] work on any circuit. [`Environments`] give all marginals, means and
//! covariances of an orthonormal circuit at once, with or without evidence, and cheap marginals of
//! a few variables. [`expectation`] averages products of functions, [`overlap`] compares two
//! circuits, and [`truncate`] shrinks one. [`square`] is the literal construction of the paper's
//! appendix: a baseline for comparisons and tests.

mod covariance;
mod environment;
mod evaluate;
mod expectation;
mod function;
mod marginalize;
mod message;
mod orthonormalize;
mod overlap;
mod partition;
mod pass;
mod regions;
pub(crate) mod scaled;
mod square;
mod truncate;
mod univariate;

pub use environment::{Environments, RegionMarginal};
pub use evaluate::{Amplitude, evaluate};
pub use expectation::{Factor, expectation};
pub use function::FunctionNode;
pub use marginalize::{
    LayerCounts, Marginal, MultiplyAdds, dependences, log_marginal, marginalize,
};
pub use orthonormalize::{Orthonormalized, face_splitting, orthonormalize};
pub use overlap::{Overlap, overlap};
pub use partition::{log_partition, log_unnormalized_marginal, partition_multiply_adds};
pub use square::{Squared, square};
pub use truncate::{Budget, Truncated, WidthChange, truncate};
pub use univariate::Univariate;
#[cfg(feature = "tables")]
pub(crate) use univariate::finite_quantile;

use crate::circuit::LayerId;
use crate::query::QueryError;

/// The maximum number of entries of a matrix that an operation forms: 2 GiB of complex numbers.
pub(crate) const MAX_ENTRIES: u128 = 1 << 27;

/// Checks that a matrix or tensor with these dimensions may be formed.
fn check_entries<const N: usize>(layer: LayerId, dims: [usize; N]) -> Result<(), OperationError> {
    let entries = dims.iter().fold(1_u128, |product, &n| product.saturating_mul(n as u128));
    if entries <= MAX_ENTRIES {
        return Ok(());
    }
    Err(OperationError::TooLarge { layer, entries, limit: MAX_ENTRIES, remedy: "" })
}

/// Why an operation has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// A query that does not match the circuit.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The circuit is zero everywhere and encodes no distribution.
    #[error(
        "layer {layer} is zero everywhere, so the circuit encodes no distribution; check its weights"
    )]
    ZeroCircuit {
        /// A layer that is zero.
        layer: LayerId,
    },
    /// An intermediate matrix is too large.
    #[error(
        "layer {layer}: this needs a matrix of {entries} entries, more than the limit of {limit}; \
             use smaller widths{remedy}"
    )]
    TooLarge {
        /// The layer.
        layer: LayerId,
        /// The number of entries that the matrix would have.
        entries: u128,
        /// The maximum number of entries.
        limit: u128,
        /// Another remedy, as the end of the sentence.
        remedy: &'static str,
    },
    /// An operation that needs ∫ f fᴴ was given functions that are already squares.
    #[error(
        "layer {layer}: its functions are products f f*, whose own Gram matrix is not defined here; \
             this circuit is already a square, so integrate it instead of squaring it again"
    )]
    AlreadySquared {
        /// The layer.
        layer: LayerId,
    },
    /// Evidence of probability 0.
    #[error("the evidence has probability 0, so there is no conditional distribution")]
    ImpossibleEvidence,
    /// A query about a variable that is already part of the evidence.
    #[error(
        "variable '{variable}' is already part of the evidence; ask about the others, or put both into one query"
    )]
    AlreadyKnown {
        /// The variable.
        variable: String,
    },
    /// A level that is not a probability.
    #[error("{level} is not a probability; give a number from 0 to 1")]
    Level {
        /// The level.
        level: f64,
    },
    /// A request for all values of a variable that is not finite.
    #[error(
        "variable '{variable}' is not finite, so there is no table of its values; ask for parts of its domain"
    )]
    NotFinite {
        /// The variable.
        variable: String,
    },
    /// Two factors for one variable.
    #[error("variable '{variable}' has two factors; multiply them into one")]
    RepeatedFactor {
        /// The variable.
        variable: String,
    },
    /// A power of a continuous variable for which no integrals are known.
    #[error("variable '{variable}': there is no moment of power {power}; give 0, 1 or 2")]
    FactorPower {
        /// The variable.
        variable: String,
        /// The power.
        power: u32,
    },
    /// A factor that does not have one entry per value, or one row and column per function.
    #[error("variable '{variable}': its factor is {rows}x{cols}; give {expected}x{expected_cols}")]
    FactorShape {
        /// The variable.
        variable: String,
        /// The rows of the factor.
        rows: usize,
        /// The columns of the factor.
        cols: usize,
        /// The number of rows that it needs.
        expected: usize,
        /// The number of columns that it needs.
        expected_cols: usize,
    },
    /// A matrix that is not Hermitian, or a function with a value that is not finite.
    #[error(
        "variable '{variable}': its factor is not Hermitian or not finite; give A with A = Aᴴ, or finite values"
    )]
    FactorEntries {
        /// The variable.
        variable: String,
    },
    /// A factor given as a matrix, for a variable with evidence.
    #[error(
        "variable '{variable}': a matrix factor cannot be combined with evidence on the same variable; the variable must be unknown"
    )]
    FactorEvidence {
        /// The variable.
        variable: String,
    },
    /// Two circuits with different variables.
    #[error("the two circuits have different variables: variable {variable} differs")]
    VariablesDiffer {
        /// The position of the first variable that differs.
        variable: usize,
    },
    /// Two circuits with different region trees or input functions.
    #[error(
        "layer {layer} of the first circuit and layer {other} of the second do not match: \
             they need the same region tree and the same input functions"
    )]
    StructuresDiffer {
        /// The layer of the first circuit.
        layer: LayerId,
        /// The layer of the second circuit.
        other: LayerId,
    },
    /// A budget that is out of range.
    #[error("the budget must be an error in [0, 1] or a width of at least 1")]
    InvalidBudget,
}

//! The operations on circuits, one algorithm a file.
//!
//! Which one? [`orthonormalize`] once, then [`marginalize`] for every query. [`evaluate`] and [`log_partition`] work on
//! any circuit. [`square`] is the literal construction of the paper's appendix: a baseline to compare with and to test
//! against, not a tool for work.

mod evaluate;
mod marginalize;
mod message;
mod orthonormalize;
mod partition;
mod scaled;
mod square;

pub use evaluate::{Amplitude, evaluate};
pub use marginalize::{
    LayerCounts, Marginal, MultiplyAdds, dependences, log_marginal, marginalize,
};
pub use orthonormalize::{Orthonormalized, face_splitting, orthonormalize};
pub use partition::{log_partition, log_unnormalized_marginal};
pub use square::{Squared, square};

use crate::circuit::LayerId;

/// The most entries that one matrix made by an operation may have: 2 GiB of complex numbers.
pub(crate) const MAX_ENTRIES: u128 = 1 << 27;

/// Whether a matrix or tensor of these dimensions may be formed.
fn check_entries<const N: usize>(layer: LayerId, dims: [usize; N]) -> Result<(), OperationError> {
    let entries = dims.iter().fold(1_u128, |product, &n| product.saturating_mul(n as u128));
    if entries <= MAX_ENTRIES {
        return Ok(());
    }
    Err(OperationError::TooLarge { layer, entries, limit: MAX_ENTRIES, remedy: "" })
}

/// Why an operation has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The circuit is zero everywhere and encodes no distribution.
    #[error(
        "layer {layer} is zero everywhere, so the circuit encodes no distribution; check its weights"
    )]
    ZeroCircuit {
        /// A layer that is zero.
        layer: LayerId,
    },
    /// A matrix on the way would not fit in memory.
    #[error(
        "layer {layer}: it would take a matrix of {entries} entries, more than the {limit} allowed; \
             use smaller widths{remedy}"
    )]
    TooLarge {
        /// The layer.
        layer: LayerId,
        /// How many entries the matrix would have.
        entries: u128,
        /// The most that is allowed.
        limit: u128,
        /// What else can be done.
        remedy: &'static str,
    },
    /// An operation that needs ∫ f fᴴ met functions that are themselves squares.
    #[error(
        "layer {layer}: its functions are products f f*, whose own Gram matrix is not defined here; \
             this circuit is already a square, so integrate it instead of squaring it again"
    )]
    AlreadySquared {
        /// The layer.
        layer: LayerId,
    },
}

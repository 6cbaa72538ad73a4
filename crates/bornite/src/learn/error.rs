//! Errors of learning.

use crate::circuit::{LayerId, Skeleton};
use crate::program::Program;

/// Why a circuit cannot be learned, or a checkpoint cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// A Kronecker product without a sum above it, or with more than two inputs.
    #[error(
        "layer {layer}: learning needs Kronecker products of two inputs, each below a sum; build the circuit from a binary region tree"
    )]
    Kronecker {
        /// The product layer.
        layer: LayerId,
    },
    /// A basis that is not orthonormal, for weights that are semi-unitary.
    #[error(
        "layer {layer}: its functions are not orthonormal; orthonormalize the circuit first, or learn \
             unconstrained weights"
    )]
    Basis {
        /// The input layer.
        layer: LayerId,
    },
    /// A weight that is shared between sums over products of different widths.
    #[error("layer {layer}: its weight is shared with a sum over another kind of input")]
    SharedShape {
        /// The sum layer.
        layer: LayerId,
    },
    /// A layer that a monotonic circuit cannot have.
    #[error(
        "layer {layer}: a monotonic circuit needs indicator inputs and one output, and is learned with learn::monotonic; bin continuous variables, and use one square"
    )]
    Monotonic {
        /// The input or output layer.
        layer: LayerId,
    },
    /// A target that is not among the variables, or in a circuit that does not support one.
    #[error(
        "a target must be one or more of the circuit's variables, and monotonic circuits do not support one"
    )]
    Target,
    /// A device that does not exist or does not support this fit.
    #[error("the fit cannot use a CUDA device: {reason}")]
    Device {
        /// Why not.
        reason: String,
    },
    /// Rows that cannot be read back from their temporary file.
    #[error("the rows in the temporary file cannot be read: {reason}; start over")]
    Pieces {
        /// Why not.
        reason: String,
    },
    /// Workers that do not answer.
    #[error("the workers cannot continue: {reason}")]
    Workers {
        /// Why not.
        reason: String,
    },
    /// Bytes that are not a checkpoint.
    #[error("not a checkpoint file")]
    NoCheckpoint,
    /// A damaged checkpoint.
    #[error("the checkpoint is damaged; start over, or resume from an older checkpoint")]
    Damaged,
    /// A checkpoint of a different fit.
    #[error("the checkpoint is from a fit with different {what}; use the same ones, or start over")]
    OtherFit {
        /// What differs.
        what: &'static str,
    },
}

/// The program of a circuit whose weights can be learned.
pub(super) fn program_of(circuit: &Skeleton) -> Result<Program, LearnError> {
    let program = Program::new(circuit);
    for (index, step) in program.steps().iter().enumerate() {
        let layer = step.layer;
        if step.weight().is_some_and(|weight| weight >= program.num_weights()) {
            return Err(LearnError::Kronecker { layer });
        }
        let shared = step.weight().map(|weight| program.operand_of(weight));
        if shared != program.operand(index) {
            return Err(LearnError::SharedShape { layer });
        }
    }
    Ok(program)
}

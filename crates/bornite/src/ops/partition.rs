use super::OperationError;
use super::marginalize::{check_messages, forms, multiply_adds, upward};
use crate::basis::Basis;
use crate::circuit::{Circuit, Layer};
use crate::linalg::Complex64;
use crate::query::Query;

/// Computes log Z = log ∫ ‖c(x)‖² dx of any circuit, from the Gram matrices ∫ ℓ ℓᴴ of its layers.
///
/// The logarithm may have any size. Within a layer, functions whose norm is below 2⁻⁵⁰⁰ times the
/// largest norm are lost, unless the next layer's weight makes up for it.
/// [`orthonormalize`](super::orthonormalize()) keeps them.
///
/// Cost: 3 K⁴ multiply-adds at a sum over a Kronecker product with widths K. Nothing of size K⁴ is
/// stored.
///
/// Paper: the partition function of `app:squaring-circuits`, in tensor form.
///
/// # Errors
/// The circuit is itself a square, or an intermediate matrix would be too large.
pub fn log_partition(circuit: &Circuit) -> Result<f64, OperationError> {
    check_not_squared(circuit)?;
    log_trace(circuit, &Query::unknown(circuit.num_variables()))
}

/// Counts the multiply-adds of [`log_partition`], except those of the sums over input layers.
///
/// # Errors
/// The same as for [`log_partition`].
pub fn partition_multiply_adds(circuit: &Circuit) -> Result<u128, OperationError> {
    check_not_squared(circuit)?;
    let query = Query::unknown(circuit.num_variables());
    Ok(multiply_adds(circuit, &forms(circuit, &query, false)))
}

/// Computes log ∫ ‖c(y, z)‖² dz of any circuit without orthonormalizing it. No layer is skipped.
///
/// Subtract [`log_partition`] to get the log marginal. For more than one query, orthonormalize
/// first.
///
/// # Errors
/// The query was created for different variables, the circuit is already a square, or an
/// intermediate matrix would be too large.
pub fn log_unnormalized_marginal(circuit: &Circuit, query: &Query) -> Result<f64, OperationError> {
    query.check(circuit.variables())?;
    check_not_squared(circuit)?;
    log_trace(circuit, query)
}

fn log_trace(circuit: &Circuit, query: &Query) -> Result<f64, OperationError> {
    let forms = forms(circuit, query, false);
    check_messages(circuit, &forms)?;
    let width = circuit.width(circuit.output());
    Ok(if circuit.is_real() {
        upward::<f64>(circuit, query, &forms).log_trace(width)
    } else {
        upward::<Complex64>(circuit, query, &forms).log_trace(width)
    })
}

/// Checks that the circuit is not the result of [`square`](super::square()).
pub(super) fn check_not_squared(circuit: &Circuit) -> Result<(), OperationError> {
    for id in circuit.layer_ids() {
        if let Layer::Input { basis, .. } = circuit.layer(id)
            && matches!(**basis, Basis::Squared(_))
        {
            return Err(OperationError::AlreadySquared { layer: id });
        }
    }
    Ok(())
}

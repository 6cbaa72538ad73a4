use std::ops::Deref;

use super::{Circuit, Layer, LayerId};
use crate::basis::Basis;
use crate::linalg::{Complex64, Scalar, largest};
use crate::tolerance;

/// A circuit that has been proven orthonormal, so its square is a normalized distribution: Z = 1.
///
/// Created by [`orthonormalize`](crate::ops::orthonormalize) and [`Orthonormal::verify`].
///
/// Paper: `defn:orthonormal-circuit`, with an output of width r ≥ 1 whose weight has unit Frobenius
/// norm.
#[derive(Clone, Debug, PartialEq)]
pub struct Orthonormal(Circuit);

impl Orthonormal {
    /// Accepts a circuit that is already orthonormal.
    ///
    /// # Errors
    /// The circuit is not orthonormal. The error returns it, with a report of its worst layer.
    pub fn verify(circuit: Circuit) -> Result<Self, Box<NotOrthonormal>> {
        let report = check_orthonormality(&circuit);
        if report.holds() {
            Ok(Self(circuit))
        } else {
            Err(Box::new(NotOrthonormal { circuit, report }))
        }
    }

    /// The underlying circuit.
    pub fn into_circuit(self) -> Circuit {
        self.0
    }

    /// Wraps a circuit that is orthonormal by construction. Only debug builds check it.
    pub(crate) fn new_unchecked(circuit: Circuit) -> Self {
        debug_assert!(
            check_orthonormality(&circuit).holds(),
            "{:?}",
            check_orthonormality(&circuit)
        );
        Self(circuit)
    }
}

impl Deref for Orthonormal {
    type Target = Circuit;

    fn deref(&self) -> &Circuit {
        &self.0
    }
}

/// How far a circuit is from orthonormal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orthonormality {
    /// The layer with the largest residual.
    pub worst: LayerId,
    /// The largest entry of |∫ f fᴴ − I| at an input and of |W Wᴴ − I| at an inner sum; |‖W‖² − 1|
    /// at the output.
    pub residual: f64,
}

impl Orthonormality {
    /// Whether the residual is within the tolerance for rounding.
    pub fn holds(&self) -> bool {
        self.residual <= tolerance::ORTHONORMALITY
    }
}

/// A circuit that is not orthonormal.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the circuit is not orthonormal: layer {} has a residual of {:.3e}; orthonormalize it first",
        report.worst, report.residual)]
pub struct NotOrthonormal {
    /// The circuit, unchanged.
    pub circuit: Circuit,
    /// The report of its worst layer.
    pub report: Orthonormality,
}

/// Measures how far every layer is from orthonormal, and reports the worst.
///
/// Cost: one W Wᴴ per sum layer, K² ∏ Kᵢ.
pub fn check_orthonormality(circuit: &Circuit) -> Orthonormality {
    if circuit.is_real() { check::<f64>(circuit) } else { check::<Complex64>(circuit) }
}

fn check<T: Scalar>(circuit: &Circuit) -> Orthonormality {
    let mut report = Orthonormality { worst: circuit.output(), residual: 0.0 };
    for id in circuit.layer_ids() {
        let is_output = id == circuit.output();
        let residual = match circuit.layer(id) {
            // The products f f* are not orthonormal, and their Gram matrix is not defined here.
            Layer::Input { basis, .. } if matches!(**basis, Basis::Squared(_)) => f64::INFINITY,
            Layer::Input { basis, .. } if !basis.is_orthonormal() => {
                let gram = basis.gram::<T>();
                let entry = |i: usize, j: usize| if i == j { T::ONE } else { T::ZERO };
                let n = gram.rows();
                let distance = |k| (gram[(k / n, k % n)] - entry(k / n, k % n)).abs2().sqrt();
                largest((0..n * n).map(distance))
            }
            Layer::Sum { weight, .. } if is_output => {
                (circuit.weight(*weight).to_matrix::<T>().norm2() - 1.0).abs()
            }
            Layer::Sum { weight, .. } => {
                circuit.weight(*weight).to_matrix::<T>().semi_unitary_residual()
            }
            Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } => 0.0,
        };
        // An output of width r without a weight has Z = r.
        let residual = match circuit.layer(id) {
            Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } if is_output => {
                largest([residual, circuit.width(id) as f64 - 1.0])
            }
            Layer::Input { .. }
            | Layer::Hadamard { .. }
            | Layer::Kronecker { .. }
            | Layer::Sum { .. } => residual,
        };
        // A NaN counts as larger than any number.
        if residual > report.residual || (residual.is_nan() && !report.residual.is_nan()) {
            report = Orthonormality { worst: id, residual };
        }
    }
    report
}

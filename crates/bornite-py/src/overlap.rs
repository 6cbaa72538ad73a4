//! The overlap of two circuits.

use pyo3::prelude::*;
use pyo3::types::PyComplex;

/// The normalized overlap ∫ c₁* c₂ᵀ of two circuits, from ``Circuit.overlap``.
///
/// >>> from bornite import Circuit
/// >>> c = Circuit.random([2, 3, 2], seed=1)
/// >>> same = c.overlap(c)
/// >>> bool(abs(same.fidelity - 1) < 1e-12), bool(same.amplitude_distance < 1e-6)
/// (True, True)
#[pyclass(frozen, module = "bornite")]
#[derive(Debug)]
pub(crate) struct Overlap(pub(crate) bornite::ops::Overlap);

#[pymethods]
impl Overlap {
    /// ⟨c₁|c₂⟩ if both outputs have the same width; None otherwise.
    #[getter]
    fn inner_product<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyComplex>> {
        self.0.inner_product().map(|z| PyComplex::from_doubles(py, z.re, z.im))
    }

    /// |⟨c₁|c₂⟩|, or for wider outputs the maximum over all unitary transformations of the outputs; from 0 to 1.
    #[getter]
    fn magnitude(&self) -> f64 {
        self.0.magnitude()
    }

    /// The logarithm of ``magnitude``, accurate even far below the range of a float.
    #[getter]
    fn log_magnitude(&self) -> f64 {
        self.0.log_magnitude()
    }

    /// The square of ``magnitude``.
    #[getter]
    fn fidelity(&self) -> f64 {
        self.0.fidelity()
    }

    /// An upper bound √(1 − magnitude) on the Hellinger distance between the two distributions; equal to it if their
    /// phases agree.
    #[getter]
    fn amplitude_distance(&self) -> f64 {
        self.0.amplitude_distance()
    }

    fn __repr__(&self) -> String {
        format!("<Overlap: fidelity {}>", self.0.fidelity())
    }
}

//! Explicitly squared circuits.

use bornite::Query;
use pyo3::prelude::*;

use crate::circuit::Circuit;
use crate::detached::detached;
use crate::exception::Raise;
use crate::query::query;

/// The circuit c² with layers of width K², which computes ‖c(x)‖² as its only output.
///
/// A baseline for comparison: its integrals cost the squares of the layers' sizes, whatever the query.
///
/// >>> from bornite import Circuit
/// >>> c = Circuit.random([2, 3, 2], seed=1)
/// >>> squared = c.square()
/// >>> bool(abs(squared.log_partition() - c.log_partition()) < 1e-12)
/// True
/// >>> bool(abs(squared.log_marginal("x1=2") - c.marginalize("x1=2")) < 1e-12)
/// True
#[pyclass(frozen, module = "bornite")]
#[derive(Debug)]
pub(crate) struct Squared(pub(crate) bornite::ops::Squared);

#[pymethods]
impl Squared {
    /// The circuit c², whose value at x is ‖c(x)‖².
    #[getter]
    fn circuit(&self) -> Circuit {
        Circuit::from(self.0.circuit().clone())
    }

    /// log Z, by integrating every input layer of c².
    fn log_partition(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.0.log_partition())
    }

    /// log p(evidence) of the normalized distribution, by integrating the input layers of unknown variables.
    fn log_marginal(&self, py: Python<'_>, query: &Bound<'_, PyAny>) -> PyResult<f64> {
        let query: Query = self::query(self.0.circuit().variables(), query)?;
        detached(py, || {
            let log = self.0.log_unnormalized_marginal(&query)?;
            Ok(log - self.0.log_partition())
        })?
        .map_err(|e: bornite::query::QueryError| e.raise())
    }

    fn __repr__(&self) -> String {
        let circuit = self.0.circuit();
        let (layers, parameters) = (circuit.num_layers(), circuit.num_parameters());
        format!("<Squared: {layers} layers, {parameters} parameters>")
    }
}

//! The environments of a circuit's layers, and posterior marginals.

use bornite::ops::OperationError;
use bornite::{LayerId, Orthonormal, Query, VariableId};
use numpy::{IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;

use crate::argument::Position;
use crate::array::to_array;
use crate::detached::detached;
use crate::exception::{BorniteError, Raise};
use crate::query::{find, query};

/// The environments of all layers given evidence: all posterior marginals, means and covariances from one pass up and
/// one pass down, from ``Circuit.environments``.
///
/// >>> from bornite import Circuit
/// >>> c = Circuit.random([2, 3, 2], seed=1)
/// >>> e = c.environments("x0=1")
/// >>> bool(abs(e.log_evidence - c.marginalize("x0=1")) < 1e-12)
/// True
/// >>> e.marginal("x1").probabilities.shape, e.pairwise("x1", "x2").shape
/// ((3,), (3, 2))
#[pyclass(frozen, module = "bornite")]
#[derive(Debug)]
pub(crate) struct Environments(bornite::ops::Environments<Box<Orthonormal>>);

impl Environments {
    pub(crate) fn new(
        circuit: Orthonormal,
        query: &Query,
    ) -> Result<Self, bornite::ops::OperationError> {
        bornite::ops::Environments::given(Box::new(circuit), query).map(Self)
    }

    fn variable(&self, name: &str) -> PyResult<VariableId> {
        let index = find(self.0.circuit().variables(), name).map_err(Raise::raise)?;
        Ok(VariableId::new(index))
    }

    fn layer(&self, layer: Position) -> PyResult<LayerId> {
        let count = self.0.circuit().num_layers();
        if layer.index() >= count {
            let message = format!("there is no layer {}: the circuit has {count}", layer.index());
            return Err(BorniteError::new_err(message));
        }
        Ok(LayerId::new(layer.index()))
    }

    fn of_each<'py>(
        &self,
        py: Python<'py>,
        f: impl Fn(VariableId) -> f64 + Send,
    ) -> Bound<'py, PyArray1<f64>> {
        let count = self.0.circuit().num_variables();
        let numbers: Vec<f64> = (0..count).map(|v| f(VariableId::new(v))).collect();
        numbers.into_pyarray(py)
    }
}

#[pymethods]
impl Environments {
    /// log p(evidence); 0 without evidence.
    #[getter]
    fn log_evidence(&self) -> f64 {
        self.0.log_evidence()
    }

    /// The distribution of one variable given the evidence about the others.
    fn marginal(&self, variable: &str) -> PyResult<Univariate> {
        Ok(Univariate(self.0.marginal(self.variable(variable)?)))
    }

    /// The mean of every variable given the evidence.
    fn means<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.of_each(py, |v| self.0.mean(v))
    }

    /// The variance of every variable given the evidence.
    fn variances<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.of_each(py, |v| self.0.variance(v))
    }

    /// The covariances of all pairs of variables given the evidence.
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_array(py, &detached(py, || self.0.covariance_matrix())?)
    }

    /// The joint probabilities of two finite variables, given the evidence about the others.
    fn pairwise<'py>(
        &self,
        py: Python<'py>,
        first: &str,
        second: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (a, b) = (self.variable(first)?, self.variable(second)?);
        to_array(py, &detached(py, || self.0.pairwise(a, b))?.map_err(Raise::raise)?)
    }

    /// log p(query | evidence), for variables that are not part of the evidence.
    fn log_marginal(&self, py: Python<'_>, query: &Bound<'_, PyAny>) -> PyResult<f64> {
        let query = self::query(self.0.circuit().variables(), query)?;
        detached(py, || self.0.log_marginal(&query))?.map_err(Raise::raise)
    }

    /// The reduced density matrix of a layer: Hermitian, positive semidefinite, with trace 1.
    fn reduced_density<'py>(
        &self,
        py: Python<'py>,
        layer: Position,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = self.layer(layer)?;
        to_array(py, &detached(py, || self.0.reduced_density(id))?.map_err(Raise::raise)?)
    }

    /// The entanglement spectrum of a layer: the eigenvalues of its reduced density matrix, which sum to 1, largest first.
    fn spectrum<'py>(
        &self,
        py: Python<'py>,
        layer: Position,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let id = self.layer(layer)?;
        let values = detached(py, || self.0.spectrum(id))?.map_err(Raise::raise)?;
        Ok(values.into_pyarray(py))
    }

    fn __repr__(&self) -> String {
        format!("<Environments: {} layers>", self.0.circuit().num_layers())
    }
}

/// The distribution of one variable.
///
/// >>> from bornite import Basis, Circuit
/// >>> c = Circuit.random([Basis.hermite(3), 2], seed=1)
/// >>> height = c.environments().marginal("x0")
/// >>> bool(abs(height.cdf(height.quantile(0.3)) - 0.3) < 1e-9)
/// True
#[pyclass(frozen, module = "bornite")]
#[derive(Debug)]
pub(crate) struct Univariate(bornite::ops::Univariate);

impl Univariate {
    /// `f` of a number, or of every number of an array.
    fn map<'py>(
        x: &Bound<'py, PyAny>,
        f: impl Fn(f64) -> Result<f64, OperationError>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = x.py();
        if let Ok(x) = x.extract::<f64>() {
            return Ok(f(x).map_err(Raise::raise)?.into_pyobject(py)?.into_any());
        }
        let numpy = PyModule::import(py, intern!(py, "numpy"))?;
        let array = numpy.call_method1(intern!(py, "asarray"), (x, numpy::dtype::<f64>(py)))?;
        let array = array.cast_into::<PyArrayDyn<f64>>()?.readonly();
        let view = array.as_array();
        let values: Result<Vec<f64>, _> = view.iter().map(|&x| f(x)).collect();
        let flat = values.map_err(Raise::raise)?.into_pyarray(py);
        Ok(flat.reshape(view.shape().to_vec())?.into_any())
    }
}

#[pymethods]
impl Univariate {
    /// p(x): a probability on a finite domain, otherwise a density; 0 outside the domain.
    fn density<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::map(x, |x| Ok(self.0.density(x)))
    }

    /// The probability of all values up to and including x.
    fn cdf<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::map(x, |x| Ok(self.0.cdf(x)))
    }

    /// The inverse of ``cdf``.
    fn quantile<'py>(&self, p: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::map(p, |p| self.0.quantile(p))
    }

    /// The mean.
    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The variance.
    #[getter]
    fn variance(&self) -> f64 {
        self.0.variance()
    }

    /// The probabilities of the values 0, 1, … of a finite domain; None for other domains.
    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.0.probabilities().map(|p| p.to_vec().into_pyarray(py))
    }

    fn __repr__(&self) -> String {
        format!("<Univariate on {}>", self.0.domain())
    }
}

//! Variables and domains.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::exception::BorniteError;

/// The set of values of a variable. Every value is a float; those of a finite domain are 0, 1, …, v − 1.
///
/// Wherever a domain is expected, a whole number v means ``Domain.finite(v)``.
///
/// >>> from bornite import Domain
/// >>> Domain.interval(0, 2)
/// Domain.interval(0.0, 2.0)
/// >>> 1.5 in Domain.interval(0, 2), 1.5 in Domain.finite(3)
/// (True, False)
#[pyclass(frozen, eq, module = "bornite")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Domain(pub(crate) bornite::Domain);

#[pymethods]
impl Domain {
    /// The v values 0, 1, …, v − 1.
    #[classmethod]
    fn finite(_class: &Bound<'_, PyType>, num_values: usize) -> Self {
        Self(bornite::Domain::Finite(num_values))
    }

    /// The real line.
    #[classmethod]
    fn real(_class: &Bound<'_, PyType>) -> Self {
        Self(bornite::Domain::Real)
    }

    /// The bounded interval from low to high, both included.
    #[classmethod]
    fn interval(_class: &Bound<'_, PyType>, low: f64, high: f64) -> Self {
        Self(bornite::Domain::Interval(low, high))
    }

    /// The half-line x ≥ low.
    #[classmethod]
    fn half_line(_class: &Bound<'_, PyType>, low: f64) -> Self {
        Self(bornite::Domain::HalfLine(low))
    }

    /// The circle of numbers from 0 to the period, which is the same point as 0.
    #[classmethod]
    fn circle(_class: &Bound<'_, PyType>, period: f64) -> Self {
        Self(bornite::Domain::Circle(period))
    }

    /// A continuous domain with atoms added: points of positive probability, in increasing order.
    ///
    /// >>> from bornite import Domain
    /// >>> Domain.half_line(0).with_atoms([0])
    /// Domain.half_line(0.0).with_atoms([0.0])
    fn with_atoms(&self, points: Vec<f64>) -> PyResult<Self> {
        let domain = bornite::Domain::with_atoms(points, self.0.clone());
        if domain.is_valid() {
            Ok(Self(domain))
        } else {
            Err(BorniteError::new_err(
                "atoms must be finite numbers in increasing order, added to a continuous domain without atoms",
            ))
        }
    }

    /// The atoms, in order; empty for other domains.
    #[getter]
    fn atoms(&self) -> Vec<f64> {
        self.0.atoms().to_vec()
    }

    /// The kind: ``finite``, ``real``, ``interval``, ``half_line``, ``circle`` or ``atoms``.
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.0 {
            bornite::Domain::Finite(_) => "finite",
            bornite::Domain::Real => "real",
            bornite::Domain::Interval(..) => "interval",
            bornite::Domain::HalfLine(_) => "half_line",
            bornite::Domain::Circle(_) => "circle",
            bornite::Domain::Atoms(_) => "atoms",
        }
    }

    /// The number of values of a finite domain, otherwise None.
    #[getter]
    fn num_values(&self) -> Option<usize> {
        self.0.num_values()
    }

    /// The smallest and the largest value; infinite if there is none.
    #[getter]
    fn bounds(&self) -> (f64, f64) {
        self.0.bounds()
    }

    fn __contains__(&self, value: f64) -> bool {
        self.0.contains(value)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        // −0 and 0 are equal.
        let (low, high) = self.0.bounds();
        (self.kind(), (low + 0.0).to_bits(), (high + 0.0).to_bits()).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        match &self.0 {
            bornite::Domain::Finite(v) => format!("Domain.finite({v})"),
            bornite::Domain::Real => "Domain.real()".to_owned(),
            bornite::Domain::Interval(a, b) => format!("Domain.interval({a:?}, {b:?})"),
            bornite::Domain::HalfLine(a) => format!("Domain.half_line({a:?})"),
            bornite::Domain::Circle(period) => format!("Domain.circle({period:?})"),
            bornite::Domain::Atoms(parts) => {
                let rest = Self(parts.rest.clone()).__repr__();
                format!("{rest}.with_atoms({:?})", parts.points)
            }
        }
    }
}

/// A variable of a circuit: a name and a domain.
#[pyclass(frozen, eq, module = "bornite")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variable(pub(crate) bornite::Variable);

#[pymethods]
impl Variable {
    /// The name, unique in its circuit.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The set of its values.
    #[getter]
    fn domain(&self) -> Domain {
        Domain(self.0.domain.clone())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.0.name, self.domain().__hash__()).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = PyString::new(py, &self.0.name).repr()?;
        Ok(format!("Variable({name}, {})", self.domain().__repr__()))
    }
}

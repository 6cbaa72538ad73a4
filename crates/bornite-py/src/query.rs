//! Queries from Python, and their answers.

use bornite::basis::Part;
use bornite::query::QueryError;
use bornite::{Evidence, Query, Variable};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyMapping, PyRange, PySet, PyString, PyTuple};

use crate::argument::{Name, shown};
use crate::exception::{Raise, argument_error};

/// Reads a query: text in the query language, or a mapping from names to evidence; None is no evidence.
pub(crate) fn query(variables: &[Variable], object: &Bound<'_, PyAny>) -> PyResult<Query> {
    if object.is_none() {
        return Ok(Query::unknown(variables.len()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Query::parse(variables, &text.to_string_lossy()).map_err(Raise::raise);
    }
    let Ok(mapping) = object.cast::<PyMapping>() else {
        let found = object.get_type().name()?;
        return Err(argument_error(format!(
            "expected a query such as \"x0=1, x2 in {{0, 1}}\" or a mapping from names to evidence, found {found}"
        )));
    };
    let mut query = Query::unknown(variables.len());
    for item in mapping.items()?.iter() {
        let (Name(name), known) = item.extract::<(Name, Bound<'_, PyAny>)>()?;
        let index = find(variables, &name).map_err(Raise::raise)?;
        let evidence = evidence(&variables[index], &known)?;
        query.set(variables, index, evidence).map_err(Raise::raise)?;
    }
    Ok(query)
}

pub(crate) fn find(variables: &[Variable], name: &str) -> Result<usize, QueryError> {
    let Some(index) = variables.iter().position(|v| v.name == name) else {
        // This call only produces the library's own error message, with the nearest name.
        let known = Query::unknown(variables.len()).with_value(variables, name, 0.0);
        return Err(known.expect_err("the name is not there"));
    };
    Ok(index)
}

/// The evidence about one variable: a number, None, a set or range of values, or a pair (low, high).
pub(crate) fn evidence(variable: &Variable, known: &Bound<'_, PyAny>) -> PyResult<Evidence> {
    if known.is_none() || known.get_type().name()?.to_string_lossy() == "NAType" {
        return Ok(Evidence::Unknown);
    }
    if known.is_instance_of::<PySet>()
        || known.is_instance_of::<PyFrozenSet>()
        || known.is_instance_of::<PyRange>()
    {
        return values(variable, known);
    }
    if let Ok(pair) = known.cast::<PyTuple>() {
        return interval(variable, pair);
    }
    match known.extract::<f64>() {
        Ok(x) if x.is_nan() => Ok(Evidence::Unknown),
        Ok(x) => Ok(Evidence::Value(x)),
        Err(_) => Err(not_evidence(variable, known)),
    }
}

fn values(variable: &Variable, set: &Bound<'_, PyAny>) -> PyResult<Evidence> {
    let Variable { name, domain } = variable;
    if domain.num_values().is_none() && domain.atoms().is_empty() {
        let (variable, domain) = (name.clone(), domain.clone());
        return Err(QueryError::SetOfContinuous { variable, domain }.raise());
    }
    let mut values = Vec::new();
    for value in set.try_iter()? {
        let value = value?.extract::<f64>()?;
        // Check values one by one, so that a huge range stops at the first value outside.
        if !domain.contains(value) {
            let (variable, domain) = (name.clone(), domain.clone());
            return Err(QueryError::OutOfDomain { variable, value, domain }.raise());
        }
        if domain.num_values().is_some() {
            values.push(value as usize);
        } else if let Some(atom) = domain.atom(value) {
            values.push(atom);
        } else {
            let (variable, domain) = (name.clone(), domain.clone());
            return Err(QueryError::Atom { variable, domain }.raise());
        }
    }
    Ok(Evidence::In(Part::Values(values)))
}

fn interval(variable: &Variable, pair: &Bound<'_, PyTuple>) -> PyResult<Evidence> {
    let Ok((low, high)) = pair.extract::<(Option<f64>, Option<f64>)>() else {
        return Err(not_evidence(variable, pair));
    };
    let (low, high) = (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY));
    Ok(Evidence::In(Part::Interval { low, high }))
}

fn not_evidence(variable: &Variable, known: &Bound<'_, PyAny>) -> PyErr {
    let found = shown(known);
    argument_error(format!(
        "variable '{}': expected a number, None, a set or range of values, or a pair (low, high), \
         found {found}",
        variable.name
    ))
}

/// The answer to a query, with its cost.
///
/// >>> from bornite import Circuit
/// >>> c = Circuit.random([2] * 4, weights="haar", seed=1)
/// >>> answer = c.marginalize("x0=1", counts=True)
/// >>> answer.layers["marginalized"] > 0
/// True
#[pyclass(frozen, module = "bornite")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marginal(pub(crate) bornite::ops::Marginal);

#[pymethods]
impl Marginal {
    /// log p(evidence); −inf if it is impossible.
    #[getter]
    fn log_marginal(&self) -> f64 {
        self.0.log_marginal
    }

    /// The numbers of layers that depend only on observed variables (``kept``), only on unobserved variables
    /// (``marginalized``), or on both (``mixed``).
    #[getter]
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        counts.set_item("kept", self.0.layers.kept)?;
        counts.set_item("marginalized", self.0.layers.marginalized)?;
        counts.set_item("mixed", self.0.layers.mixed)?;
        Ok(counts)
    }

    /// The multiply-adds of this query (``ours``), of the paper's algorithm (``paper_bound``), and of squaring the
    /// whole circuit (``squaring``).
    #[getter]
    fn multiply_adds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        counts.set_item("ours", self.0.multiply_adds.ours)?;
        counts.set_item("paper_bound", self.0.multiply_adds.paper_bound)?;
        counts.set_item("squaring", self.0.multiply_adds.squaring)?;
        Ok(counts)
    }

    fn __repr__(&self) -> String {
        let bornite::ops::Marginal { log_marginal, layers, multiply_adds } = &self.0;
        format!(
            "Marginal(log_marginal={log_marginal:?}, layers={{kept: {}, marginalized: {}, mixed: {}}}, \
             multiply_adds={{ours: {}, paper_bound: {}, squaring: {}}})",
            layers.kept,
            layers.marginalized,
            layers.mixed,
            multiply_adds.ours,
            multiply_adds.paper_bound,
            multiply_adds.squaring,
        )
    }
}

//! Circuits built layer by layer.

use bornite::circuit::Layer;
use bornite::{CircuitBuilder, LayerId, VariableId, WeightId};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::argument::{BasisLike, DomainLike, Name, Position};
use crate::array;
use crate::circuit::Circuit;
use crate::detached::detached;
use crate::exception::{CircuitError, Raise};

/// Collects variables, layers and weights; ``build`` checks them and creates the circuit.
///
/// Variables, layers and weights are referred to by their positions, which the methods return.
///
/// >>> from bornite import Basis, Builder, Domain
/// >>> b = Builder()
/// >>> x, y = b.variable("x", 2), b.variable("y", Domain.real())
/// >>> f, g = b.input(x, 2), b.input(y, Basis.hermite(3))
/// >>> output = b.sum(b.kronecker([f, g]), [[1, 0, 0, 0, 2j, 0]])
/// >>> b.build(output)
/// <Circuit: 2 variables, 4 layers, 6 parameters, complex>
#[pyclass(module = "bornite")]
#[derive(Debug, Default)]
pub(crate) struct Builder {
    builder: CircuitBuilder,
    names: Vec<String>,
}

fn layer(position: Position) -> LayerId {
    LayerId::new(position.index())
}

#[pymethods]
impl Builder {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds a variable; a whole number v as its domain means the values 0, …, v − 1.
    fn variable(&mut self, name: String, domain: DomainLike) -> usize {
        self.names.push(name.clone());
        self.builder.variable(name, domain.0).index()
    }

    /// Adds an input layer with the functions of a basis, for a variable given by position or name.
    fn input(&mut self, variable: &Bound<'_, PyAny>, basis: BasisLike) -> PyResult<usize> {
        let variable = if variable.is_instance_of::<PyString>() {
            let Name(name) = variable.extract()?;
            self.names.iter().position(|n| *n == name).ok_or_else(|| {
                CircuitError::new_err(format!("there is no variable '{name}'; add it first"))
            })?
        } else {
            variable.extract::<Position>()?.index()
        };
        Ok(self.builder.input(VariableId::new(variable), basis.0).index())
    }

    /// Adds a Hadamard product of layers with the same width.
    fn hadamard(&mut self, inputs: Vec<Position>) -> usize {
        let inputs = inputs.into_iter().map(layer).collect();
        self.builder.push(Layer::Hadamard { inputs }).index()
    }

    /// Adds a Kronecker product of layers; the first input varies slowest.
    fn kronecker(&mut self, inputs: Vec<Position>) -> usize {
        let inputs = inputs.into_iter().map(layer).collect();
        self.builder.push(Layer::Kronecker { inputs }).index()
    }

    /// Adds a sum layer. The weight is a matrix, real or complex, or the position of one added by ``weight``.
    fn sum(&mut self, input: Position, weight: &Bound<'_, PyAny>) -> PyResult<usize> {
        let weight = if weight.is_instance_of::<PyInt>() {
            WeightId::new(weight.extract::<Position>()?.index())
        } else {
            self.builder.weight(array::weight(weight)?)
        };
        Ok(self.builder.shared_sum(layer(input), weight).index())
    }

    /// Adds a weight that sum layers can share.
    ///
    /// >>> import numpy as np
    /// >>> from bornite import Builder
    /// >>> b = Builder()
    /// >>> shared = b.weight(np.eye(2))
    /// >>> parts = [b.sum(b.input(b.variable(name, 2), 2), shared) for name in "xy"]
    /// >>> c = b.build(b.sum(b.hadamard(parts), [[1, 1]]))
    /// >>> len(c.weights)
    /// 2
    fn weight(&mut self, weight: &Bound<'_, PyAny>) -> PyResult<usize> {
        Ok(self.builder.weight(array::weight(weight)?).index())
    }

    /// Checks everything and creates the circuit with this output layer. The builder can still be used afterwards.
    fn build(&self, py: Python<'_>, output: Position) -> PyResult<Circuit> {
        let builder = &self.builder;
        let circuit = detached(py, || builder.clone().build(layer(output)))?;
        circuit.map(Circuit::from).map_err(Raise::raise)
    }

    fn __repr__(&self) -> String {
        format!("<Builder: {} variables>", self.names.len())
    }
}

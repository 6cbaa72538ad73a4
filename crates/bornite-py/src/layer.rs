//! Layers of a circuit.

use std::sync::Arc;

use bornite::LayerId;
use bornite::circuit::Layer as RustLayer;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::array::weight_to_array;
use crate::basis::{Basis, repr};
use crate::circuit::Shared;

/// One layer of a circuit: a vector-valued function of the variables in its scope.
///
/// >>> from bornite import Circuit
/// >>> Circuit.random([2, 3], seed=1).layers[-1]
/// Layer(3, 'sum', inputs=[2], width=1, size=6)
#[pyclass(frozen, module = "bornite")]
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    circuit: Arc<Shared>,
    id: LayerId,
}

impl Layer {
    pub(crate) fn new(circuit: Arc<Shared>, id: LayerId) -> Self {
        Self { circuit, id }
    }

    fn layer(&self) -> &RustLayer {
        self.circuit.layer(self.id)
    }
}

#[pymethods]
impl Layer {
    /// The position in the circuit.
    #[getter]
    fn index(&self) -> usize {
        self.id.index()
    }

    /// The kind: ``input``, ``hadamard``, ``kronecker`` or ``sum``.
    #[getter]
    fn kind(&self) -> &'static str {
        self.layer().kind()
    }

    /// The positions of the input layers.
    #[getter]
    fn inputs(&self) -> Vec<usize> {
        self.layer().inputs().iter().map(|i| i.index()).collect()
    }

    /// The position of the layer that this one feeds into; None for the output.
    #[getter]
    fn consumer(&self) -> Option<usize> {
        self.circuit.consumer(self.id).map(LayerId::index)
    }

    /// The names of the variables that this layer depends on.
    #[getter]
    fn scope(&self) -> Vec<&str> {
        let scope = self.circuit.scope(self.id).iter();
        scope.map(|&v| self.circuit.variable(v).name.as_str()).collect()
    }

    /// The width K: the length of its output vector.
    #[getter]
    fn width(&self) -> usize {
        self.circuit.width(self.id)
    }

    /// The number of multiplications needed to evaluate it.
    #[getter]
    fn size(&self) -> u128 {
        self.circuit.size(self.id)
    }

    /// The name of an input layer's variable, otherwise None.
    #[getter]
    fn variable(&self) -> Option<&str> {
        match self.layer() {
            RustLayer::Input { variable, .. } => {
                Some(self.circuit.variable(*variable).name.as_str())
            }
            RustLayer::Hadamard { .. } | RustLayer::Kronecker { .. } | RustLayer::Sum { .. } => {
                None
            }
        }
    }

    /// An input layer's functions, otherwise None.
    #[getter]
    fn basis(&self) -> Option<Basis> {
        match self.layer() {
            RustLayer::Input { basis, .. } => Some(Basis(basis.clone())),
            RustLayer::Hadamard { .. } | RustLayer::Kronecker { .. } | RustLayer::Sum { .. } => {
                None
            }
        }
    }

    /// The position of a sum layer's weight in the circuit's weights, otherwise None. Layers may share a weight.
    #[getter]
    fn weight_index(&self) -> Option<usize> {
        match self.layer() {
            RustLayer::Sum { weight, .. } => Some(weight.index()),
            RustLayer::Input { .. } | RustLayer::Hadamard { .. } | RustLayer::Kronecker { .. } => {
                None
            }
        }
    }

    /// A sum layer's weight as a new array, otherwise None.
    #[getter]
    fn weight<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.layer() {
            RustLayer::Sum { weight, .. } => {
                weight_to_array(py, self.circuit.weight(*weight)).map(Some)
            }
            RustLayer::Input { .. } | RustLayer::Hadamard { .. } | RustLayer::Kronecker { .. } => {
                Ok(None)
            }
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (index, kind, width, size) = (self.index(), self.kind(), self.width(), self.size());
        let of = match self.layer() {
            RustLayer::Input { variable, basis } => {
                let name = PyString::new(py, &self.circuit.variable(*variable).name).repr()?;
                format!("variable={name}, basis={}", repr(basis))
            }
            RustLayer::Hadamard { .. } | RustLayer::Kronecker { .. } | RustLayer::Sum { .. } => {
                format!("inputs={:?}", self.inputs())
            }
        };
        Ok(format!("Layer({index}, '{kind}', {of}, width={width}, size={size})"))
    }
}

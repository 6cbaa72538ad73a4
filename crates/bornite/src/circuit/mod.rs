//! Tensorized circuits: layers, scopes, widths and sizes.
//!
//! A [`Circuit`] is made by a [`CircuitBuilder`] and is valid from then on: smooth, structured-decomposable,
//! topologically ordered, with finite weights of the right shapes. Nothing rechecks it.

mod builder;
mod error;
mod orthonormal;
mod random;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub use builder::CircuitBuilder;
pub use error::CircuitError;
pub use orthonormal::{NotOrthonormal, Orthonormal, Orthonormality, check_orthonormality};
pub use random::{Weights, random_weight};

use crate::basis::Basis;
use crate::domain::Variable;
use crate::linalg::{Complex64, Matrix, Scalar};

/// The position of a variable in its circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableId(pub(crate) u32);

/// The position of a layer in its circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LayerId(pub(crate) u32);

/// The position of a weight in its circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WeightId(pub(crate) u32);

macro_rules! impl_id {
    ($($id:ident),*) => {$(
        impl $id {
            /// The id of position `index`.
            ///
            /// # Panics
            /// If `index` does not fit 32 bits.
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than 2³² items in a circuit"))
            }

            /// The position as a number.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}
impl_id!(VariableId, LayerId, WeightId);

/// One layer: a vector-valued function of the variables in its scope.
///
/// Paper: `defn:tensorized-circuit`.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// K functions of one variable.
    Input {
        /// The variable.
        variable: VariableId,
        /// The functions.
        basis: Arc<Basis>,
    },
    /// The elementwise product of N ≥ 2 inputs of one width.
    Hadamard {
        /// The inputs.
        inputs: Vec<LayerId>,
    },
    /// The Kronecker product of N ≥ 2 inputs; the first input varies slowest.
    Kronecker {
        /// The inputs.
        inputs: Vec<LayerId>,
    },
    /// The product W ℓ of a weight matrix with one input.
    Sum {
        /// The input.
        input: LayerId,
        /// The weight W, which layers may share.
        weight: WeightId,
    },
}

impl Layer {
    /// The layers that this one receives.
    pub fn inputs(&self) -> &[LayerId] {
        match self {
            Layer::Input { .. } => &[],
            Layer::Hadamard { inputs } | Layer::Kronecker { inputs } => inputs,
            Layer::Sum { input, .. } => std::slice::from_ref(input),
        }
    }

    /// The name of the kind, as in the paper: `input`, `hadamard`, `kronecker` or `sum`.
    pub fn kind(&self) -> &'static str {
        match self {
            Layer::Input { .. } => "input",
            Layer::Hadamard { .. } => "hadamard",
            Layer::Kronecker { .. } => "kronecker",
            Layer::Sum { .. } => "sum",
        }
    }
}

/// The weight matrix of sum layers.
#[derive(Clone, Debug, PartialEq)]
pub enum Weight {
    /// A real matrix.
    Real(Matrix<f64>),
    /// A complex matrix.
    Complex(Matrix<Complex64>),
}

impl Weight {
    /// The number of rows: the width of the sum layer.
    pub fn rows(&self) -> usize {
        match self {
            Weight::Real(m) => m.rows(),
            Weight::Complex(m) => m.rows(),
        }
    }

    /// The number of columns: the width of the sum layer's input.
    pub fn cols(&self) -> usize {
        match self {
            Weight::Real(m) => m.cols(),
            Weight::Complex(m) => m.cols(),
        }
    }

    /// The matrix in the number type of an algorithm, borrowed where it already is.
    pub fn to_matrix<T: Scalar>(&self) -> Cow<'_, Matrix<T>> {
        match self {
            Weight::Real(m) => T::matrix_from_real(m),
            Weight::Complex(m) => T::matrix_from_complex(m),
        }
    }

    pub(crate) fn from_matrix<T: Scalar>(m: &Matrix<T>) -> Self {
        if T::IS_COMPLEX {
            Weight::Complex(m.map(Scalar::to_complex))
        } else {
            Weight::Real(m.map(|x| x.to_complex().re))
        }
    }

    pub(crate) fn scaled(&self, factor: f64) -> Self {
        match self {
            Weight::Real(m) => Weight::Real(m.scaled(factor)),
            Weight::Complex(m) => Weight::Complex(m.scaled(factor)),
        }
    }

    fn first_not_finite(&self) -> Option<(usize, usize)> {
        let cols = self.cols().max(1);
        let position = match self {
            Weight::Real(m) => m.data().iter().position(|x| !x.is_finite()),
            Weight::Complex(m) => {
                m.data().iter().position(|z| !(z.re.is_finite() && z.im.is_finite()))
            }
        };
        position.map(|n| (n / cols, n % cols))
    }
}

impl From<Matrix<f64>> for Weight {
    fn from(m: Matrix<f64>) -> Self {
        Weight::Real(m)
    }
}

impl From<Matrix<Complex64>> for Weight {
    fn from(m: Matrix<Complex64>) -> Self {
        Weight::Complex(m)
    }
}

/// A tensorized circuit c(X) ∈ ℂʳ whose square encodes the distribution p(x) = ‖c(x)‖² / Z.
///
/// Decomposability makes the layers a tree below the output; each layer's scope is a contiguous piece of one order of
/// the variables, so all scopes together take no more memory than the variables.
///
/// Paper: `defn:tensorized-circuit`, `defn:smoothness-decomposability`.
#[derive(Clone, Debug, PartialEq)]
pub struct Circuit {
    variables: Vec<Variable>,
    layers: Vec<Layer>,
    weights: Vec<Weight>,
    output: LayerId,
    widths: Vec<usize>,
    /// The variables in the order in which the tree's input layers stand, left to right.
    order: Vec<VariableId>,
    /// For each layer, where its scope begins and ends in `order`.
    spans: Vec<(u32, u32)>,
    /// For each layer, the one layer that receives it; itself for the output.
    consumers: Vec<LayerId>,
    is_real: bool,
}

impl Circuit {
    /// All variables.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// One variable.
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.index()]
    }

    /// The variable with this name.
    pub fn find_variable(&self, name: &str) -> Option<VariableId> {
        self.variables.iter().position(|v| v.name == name).map(VariableId::new)
    }

    /// The number d of variables.
    pub fn num_variables(&self) -> usize {
        self.variables.len()
    }

    /// The variables in the order in which the tree's input layers stand, left to right.
    pub fn variable_order(&self) -> &[VariableId] {
        &self.order
    }

    /// All layers, inputs before those that receive them.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// One layer.
    pub fn layer(&self, id: LayerId) -> &Layer {
        &self.layers[id.index()]
    }

    /// The ids of all layers, inputs before those that receive them.
    pub fn layer_ids(&self) -> impl DoubleEndedIterator<Item = LayerId> + use<> {
        (0..self.layers.len()).map(LayerId::new)
    }

    /// The number L of layers.
    pub fn num_layers(&self) -> usize {
        self.layers.len()
    }

    /// The output layer.
    pub fn output(&self) -> LayerId {
        self.output
    }

    /// The layer that receives this one; `None` for the output.
    pub fn consumer(&self, id: LayerId) -> Option<LayerId> {
        let consumer = self.consumers[id.index()];
        (consumer != id).then_some(consumer)
    }

    /// All weights.
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// One weight.
    pub fn weight(&self, id: WeightId) -> &Weight {
        &self.weights[id.index()]
    }

    /// The circuit with the same variables and layers and other weights, one for each.
    ///
    /// # Errors
    /// A weight that is missing, not finite, or of another shape than its layers need.
    pub fn with_weights(
        &self,
        weights: impl IntoIterator<Item = Weight>,
    ) -> Result<Self, CircuitError> {
        let mut b = CircuitBuilder::over(&self.variables);
        for w in weights {
            b.weight(w);
        }
        for layer in &self.layers {
            b.push(layer.clone());
        }
        b.build(self.output)
    }

    /// The scope of a layer: the variables that it depends on.
    pub fn scope(&self, id: LayerId) -> &[VariableId] {
        let (start, end) = self.span(id);
        &self.order[start..end]
    }

    /// Where a layer's scope begins and ends in [`variable_order`](Self::variable_order).
    pub fn span(&self, id: LayerId) -> (usize, usize) {
        let (start, end) = self.spans[id.index()];
        (start as usize, end as usize)
    }

    /// The width K of a layer: the length of its output vector.
    pub fn width(&self, id: LayerId) -> usize {
        self.widths[id.index()]
    }

    /// The size of a layer, which is the number of multiplications that evaluate it: K for an input layer, N K for a
    /// Hadamard layer, N ∏ Kᵢ for a Kronecker layer, K₁ K₂ for a sum.
    pub fn size(&self, id: LayerId) -> u128 {
        let width = self.width(id) as u128;
        match self.layer(id) {
            Layer::Input { .. } => width,
            Layer::Hadamard { inputs } | Layer::Kronecker { inputs } => {
                inputs.len() as u128 * width
            }
            Layer::Sum { input, .. } => width * self.width(*input) as u128,
        }
    }

    /// The size of the layer that [`square`](crate::ops::square) makes of this one.
    pub fn squared_size(&self, id: LayerId) -> u128 {
        let width = self.width(id) as u128;
        match self.layer(id) {
            Layer::Input { .. } => width * width,
            Layer::Hadamard { inputs } | Layer::Kronecker { inputs } => {
                inputs.len() as u128 * width * width
            }
            Layer::Sum { .. } => self.size(id).saturating_mul(self.size(id)),
        }
    }

    /// The size S of the largest layer.
    pub fn max_size(&self) -> u128 {
        self.layer_ids().map(|id| self.size(id)).max().unwrap_or(0)
    }

    /// The number of weight entries; a complex entry counts once.
    pub fn num_parameters(&self) -> usize {
        self.weights.iter().map(|w| w.rows() * w.cols()).sum()
    }

    /// Whether all weights and all input functions are real.
    pub fn is_real(&self) -> bool {
        self.is_real
    }

    /// The inputs that a sum layer contracts its weight with: those of the Kronecker layer below it, or the one layer
    /// below it where that is of another kind.
    pub(crate) fn sum_factors<'a>(&'a self, input: &'a LayerId) -> &'a [LayerId] {
        match self.layer(*input) {
            Layer::Kronecker { inputs } => inputs,
            Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Sum { .. } => {
                std::slice::from_ref(input)
            }
        }
    }

    /// Whether this is a Kronecker layer that a sum contracts directly, so that its own output is never formed.
    pub(crate) fn is_fused(&self, id: LayerId) -> bool {
        matches!(self.layer(id), Layer::Kronecker { .. })
            && self.consumer(id).is_some_and(|c| matches!(self.layer(c), Layer::Sum { .. }))
    }
}

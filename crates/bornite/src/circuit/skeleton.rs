//! A circuit without the entries of its weights.

use super::{Circuit, CircuitBuilder, CircuitError, Layer, LayerId, VariableId, Weight};
use crate::domain::Variable;

/// The variables and layers of a circuit, and the shapes of its weights, but not their entries.
///
/// Because the circuit is decomposable, the layers form a tree below the output. The scope of each
/// layer is a contiguous range of one order of the variables, so all scopes together take no more
/// memory than the variables.
///
/// Created by [`Structure::skeleton`](crate::structure::Structure::skeleton), or as part of a
/// [`Circuit`]. [Learning](crate::learn) starts from one.
#[derive(Clone, Debug, PartialEq)]
pub struct Skeleton {
    pub(super) variables: Vec<Variable>,
    pub(super) layers: Vec<Layer>,
    pub(super) weight_shapes: Vec<[usize; 2]>,
    pub(super) output: LayerId,
    pub(super) widths: Vec<usize>,
    /// The variables in the order of the tree's input layers, left to right.
    pub(super) order: Vec<VariableId>,
    /// For each layer, the start and end of its scope in `order`.
    pub(super) spans: Vec<(u32, u32)>,
    /// For each layer, the layer that takes it as an input; the output refers to itself.
    pub(super) consumers: Vec<LayerId>,
}

impl Skeleton {
    /// All variables.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// One variable.
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.index()]
    }

    /// The variable with this name, if there is one.
    pub fn find_variable(&self, name: &str) -> Option<VariableId> {
        self.variables.iter().position(|v| v.name == name).map(VariableId::new)
    }

    /// The number d of variables.
    pub fn num_variables(&self) -> usize {
        self.variables.len()
    }

    /// The variables in the order of the tree's input layers, left to right.
    pub fn variable_order(&self) -> &[VariableId] {
        &self.order
    }

    /// All layers, each after its inputs.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// One layer.
    pub fn layer(&self, id: LayerId) -> &Layer {
        &self.layers[id.index()]
    }

    /// The ids of all layers, each after its inputs.
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

    /// The layer that takes this one as an input; `None` for the output.
    pub fn consumer(&self, id: LayerId) -> Option<LayerId> {
        let consumer = self.consumers[id.index()];
        (consumer != id).then_some(consumer)
    }

    /// The numbers of rows and columns of every weight.
    pub fn weight_shapes(&self) -> &[[usize; 2]] {
        &self.weight_shapes
    }

    /// Builds a circuit with these variables and layers, given one matrix for each weight.
    ///
    /// # Errors
    /// A weight is missing, is not finite, or has the wrong shape.
    pub fn with_weights(
        &self,
        weights: impl IntoIterator<Item = Weight>,
    ) -> Result<Circuit, CircuitError> {
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

    /// The start and end of a layer's scope in [`variable_order`](Self::variable_order).
    pub fn span(&self, id: LayerId) -> (usize, usize) {
        let (start, end) = self.spans[id.index()];
        (start as usize, end as usize)
    }

    /// The width K of a layer: the length of its output vector.
    pub fn width(&self, id: LayerId) -> usize {
        self.widths[id.index()]
    }

    /// The size of a layer: the number of multiplications that evaluate it. This is K for an input
    /// layer, N K for a Hadamard layer, N ∏ Kᵢ for a Kronecker layer and K₁ K₂ for a sum.
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

    /// The size of the corresponding layer of the [squared](crate::ops::square) circuit.
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
        self.weight_shapes.iter().map(|[rows, cols]| rows * cols).sum()
    }

    /// The layers that a sum contracts its weight with: the inputs of the Kronecker layer below it,
    /// or its own input if that is another kind of layer.
    pub(crate) fn sum_factors<'a>(&'a self, input: &'a LayerId) -> &'a [LayerId] {
        match self.layer(*input) {
            Layer::Kronecker { inputs } => inputs,
            Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Sum { .. } => {
                std::slice::from_ref(input)
            }
        }
    }

    /// Whether this is a Kronecker layer that a sum contracts directly, so that its output is never
    /// formed.
    pub(crate) fn is_fused(&self, id: LayerId) -> bool {
        matches!(self.layer(id), Layer::Kronecker { .. })
            && self.consumer(id).is_some_and(|c| matches!(self.layer(c), Layer::Sum { .. }))
    }
}

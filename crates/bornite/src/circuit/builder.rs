use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Circuit, CircuitError, Layer, LayerId, Skeleton, VariableId, Weight, WeightId};
use crate::basis::Basis;
use crate::domain::{Domain, Variable};

/// Collects variables, weights and layers, and checks them once at the end.
///
/// ```
/// use bornite::{Basis, CircuitBuilder, Domain, linalg::Matrix};
///
/// let mut b = CircuitBuilder::new();
/// let (x, y) = (b.variable("x", Domain::Finite(2)), b.variable("y", Domain::Real));
/// let (f, g) = (b.input(x, Basis::indicator(2)), b.input(y, Basis::hermite(3, 0.0, 1.0)?));
/// let product = b.kronecker([f, g]);
/// let output = b.sum(product, Matrix::from_rows(&[[1.0, 0.0, 0.0, 0.0, 2.0, 0.0]]));
/// let circuit = b.build(output)?;
/// assert_eq!(circuit.width(product), 6);
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CircuitBuilder {
    variables: Vec<Variable>,
    layers: Vec<Layer>,
    weight_shapes: Vec<[usize; 2]>,
    /// Empty for a skeleton, which only has the shapes.
    weights: Vec<Weight>,
}

impl CircuitBuilder {
    /// A builder without variables or layers.
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder with these variables and no layers.
    pub fn over(variables: &[Variable]) -> Self {
        Self { variables: variables.to_vec(), ..Self::default() }
    }

    /// Adds a variable.
    pub fn variable(&mut self, name: impl Into<String>, domain: Domain) -> VariableId {
        self.variables.push(Variable::new(name, domain));
        VariableId::new(self.variables.len() - 1)
    }

    /// Adds an input layer.
    pub fn input(&mut self, variable: VariableId, basis: impl Into<Arc<Basis>>) -> LayerId {
        self.push(Layer::Input { variable, basis: basis.into() })
    }

    /// Adds a Hadamard product layer.
    pub fn hadamard(&mut self, inputs: impl Into<Vec<LayerId>>) -> LayerId {
        self.push(Layer::Hadamard { inputs: inputs.into() })
    }

    /// Adds a Kronecker product layer. Its first input varies slowest.
    pub fn kronecker(&mut self, inputs: impl Into<Vec<LayerId>>) -> LayerId {
        self.push(Layer::Kronecker { inputs: inputs.into() })
    }

    /// Adds a sum layer with its own weight.
    pub fn sum(&mut self, input: LayerId, weight: impl Into<Weight>) -> LayerId {
        let weight = self.weight(weight);
        self.shared_sum(input, weight)
    }

    /// Adds a weight that several sum layers can share.
    pub fn weight(&mut self, weight: impl Into<Weight>) -> WeightId {
        let weight = weight.into();
        let id = self.weight_shape([weight.rows(), weight.cols()]);
        self.weights.push(weight);
        id
    }

    /// Adds only the shape of a weight, for a [`skeleton`](Self::skeleton).
    pub(crate) fn weight_shape(&mut self, shape: [usize; 2]) -> WeightId {
        self.weight_shapes.push(shape);
        WeightId::new(self.weight_shapes.len() - 1)
    }

    /// The number of rows of a weight that has been added.
    pub(crate) fn weight_rows(&self, id: WeightId) -> usize {
        self.weight_shapes[id.index()][0]
    }

    /// Adds a sum layer with a weight that other layers can use as well.
    pub fn shared_sum(&mut self, input: LayerId, weight: WeightId) -> LayerId {
        self.push(Layer::Sum { input, weight })
    }

    /// Adds any layer.
    pub fn push(&mut self, layer: Layer) -> LayerId {
        self.layers.push(layer);
        LayerId::new(self.layers.len() - 1)
    }

    /// Checks everything, and builds the circuit with this output.
    ///
    /// Cost: linear in the number of layers and weight entries.
    ///
    /// # Errors
    /// The first problem found, and the layer where it occurs.
    pub fn build(mut self, output: LayerId) -> Result<Circuit, CircuitError> {
        let skeleton = self.check(output)?;
        let is_real = self.weights.iter().all(|w| matches!(w, Weight::Real(_)))
            && skeleton.layers.iter().all(|l| match l {
                Layer::Input { basis, .. } => basis.is_real(),
                Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => true,
            });
        Ok(Circuit { skeleton, weights: self.weights, is_real })
    }

    /// Builds only the skeleton: the circuit without the entries of its weights.
    pub(crate) fn skeleton(mut self, output: LayerId) -> Result<Skeleton, CircuitError> {
        self.check(output)
    }

    fn check(&mut self, output: LayerId) -> Result<Skeleton, CircuitError> {
        if self.layers.is_empty() {
            return Err(CircuitError::Empty);
        }
        if output.index() >= self.layers.len() {
            let count = self.layers.len();
            return Err(CircuitError::UnknownOutput { output: output.index(), count });
        }
        self.check_variables()?;
        let widths = self.check_layers()?;
        let tree = self.walk(output)?;
        Ok(Skeleton {
            variables: std::mem::take(&mut self.variables),
            layers: std::mem::take(&mut self.layers),
            weight_shapes: std::mem::take(&mut self.weight_shapes),
            output,
            widths,
            order: tree.order,
            spans: tree.spans,
            consumers: tree.consumers,
        })
    }

    fn check_variables(&self) -> Result<(), CircuitError> {
        let mut names = BTreeSet::new();
        for v in &self.variables {
            if !v.domain.is_valid() {
                let (variable, domain) = (v.name.clone(), v.domain.clone());
                return Err(CircuitError::InvalidDomain { variable, domain });
            }
            if !names.insert(v.name.as_str()) {
                return Err(CircuitError::DuplicateVariable { name: v.name.clone() });
            }
        }
        Ok(())
    }

    fn check_layers(&self) -> Result<Vec<usize>, CircuitError> {
        let mut widths = Vec::with_capacity(self.layers.len());
        let mut checked = vec![false; self.weight_shapes.len()];
        for (index, layer) in self.layers.iter().enumerate() {
            let id = LayerId::new(index);
            if let Some(input) = layer.inputs().iter().find(|i| i.index() >= index) {
                return Err(CircuitError::UnknownInput { layer: id, input: input.index() });
            }
            let width = match layer {
                Layer::Input { variable, basis } => self.check_input(id, *variable, basis)?,
                Layer::Hadamard { inputs } => check_hadamard(id, inputs, &widths)?,
                Layer::Kronecker { inputs } => check_kronecker(id, inputs, &widths)?,
                Layer::Sum { input, weight } => {
                    self.check_sum(id, *input, *weight, &widths, &mut checked)?
                }
            };
            if width == 0 {
                return Err(CircuitError::ZeroWidth { layer: id });
            }
            widths.push(width);
        }
        if let Some(index) = checked.iter().position(|&c| !c) {
            return Err(CircuitError::UnusedWeight { weight: WeightId::new(index) });
        }
        Ok(widths)
    }

    fn check_input(
        &self,
        layer: LayerId,
        variable: VariableId,
        basis: &Basis,
    ) -> Result<usize, CircuitError> {
        let Some(v) = self.variables.get(variable.index()) else {
            let (variable, count) = (variable.index(), self.variables.len());
            return Err(CircuitError::UnknownVariable { layer, variable, count });
        };
        if !basis.accepts(&v.domain) {
            let (variable, domain, basis) =
                (v.name.clone(), v.domain.clone(), basis.natural_domain());
            return Err(CircuitError::BasisDomain { layer, variable, domain, basis });
        }
        Ok(basis.width())
    }

    fn check_sum(
        &self,
        layer: LayerId,
        input: LayerId,
        weight: WeightId,
        widths: &[usize],
        checked: &mut [bool],
    ) -> Result<usize, CircuitError> {
        let Some(&[rows, cols]) = self.weight_shapes.get(weight.index()) else {
            return Err(CircuitError::UnknownWeight { layer, weight });
        };
        let expected = widths[input.index()];
        if rows > 0 && cols != expected {
            return Err(CircuitError::WeightShape { layer, input, rows, cols, expected });
        }
        if !std::mem::replace(&mut checked[weight.index()], true)
            && let Some((row, col)) =
                self.weights.get(weight.index()).and_then(Weight::first_not_finite)
        {
            return Err(CircuitError::NotFinite { layer, row, col });
        }
        Ok(rows)
    }

    /// Traverses the tree below the output, left to right, and finds the span and consumer of each
    /// layer.
    fn walk(&self, output: LayerId) -> Result<Tree, CircuitError> {
        let count = self.layers.len();
        let mut tree = Tree {
            order: Vec::with_capacity(self.variables.len()),
            spans: vec![(0, 0); count],
            consumers: (0..count).map(LayerId::new).collect(),
        };
        let mut reached = vec![false; count];
        let mut used = vec![false; self.variables.len()];
        let mut stack = vec![(output, false)];
        while let Some((id, done)) = stack.pop() {
            let position = tree.order.len() as u32;
            if done {
                tree.spans[id.index()].1 = position;
                continue;
            }
            if std::mem::replace(&mut reached[id.index()], true) {
                return Err(self.overlap(self.any_variable(id)));
            }
            tree.spans[id.index()].0 = position;
            stack.push((id, true));
            if let Layer::Input { variable, .. } = &self.layers[id.index()] {
                if std::mem::replace(&mut used[variable.index()], true) {
                    return Err(self.overlap(*variable));
                }
                tree.order.push(*variable);
            }
            for &input in self.layers[id.index()].inputs().iter().rev() {
                tree.consumers[input.index()] = id;
                stack.push((input, false));
            }
        }
        if let Some(index) = reached.iter().position(|&r| !r) {
            return Err(CircuitError::NotReached { layer: LayerId::new(index) });
        }
        if let Some(index) = used.iter().position(|&u| !u) {
            return Err(CircuitError::UnusedVariable {
                variable: self.variables[index].name.clone(),
            });
        }
        Ok(tree)
    }

    /// The error about the first product layer with two inputs that depend on this variable. There
    /// is one: two paths from the output lead to the variable, and they diverge at a product.
    fn overlap(&self, variable: VariableId) -> CircuitError {
        let mut depends: Vec<bool> = Vec::with_capacity(self.layers.len());
        for (index, layer) in self.layers.iter().enumerate() {
            let times = match layer {
                Layer::Input { variable: v, .. } => usize::from(*v == variable),
                Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => {
                    layer.inputs().iter().filter(|i| depends[i.index()]).count()
                }
            };
            if times > 1 {
                let (layer, variable) =
                    (LayerId::new(index), self.variables[variable.index()].name.clone());
                return CircuitError::OverlappingScopes { layer, variable };
            }
            depends.push(times == 1);
        }
        unreachable!("two paths to one variable part at a product layer")
    }

    /// A variable that a layer depends on.
    fn any_variable(&self, layer: LayerId) -> VariableId {
        let mut id = layer;
        loop {
            match &self.layers[id.index()] {
                Layer::Input { variable, .. } => return *variable,
                Layer::Hadamard { inputs } | Layer::Kronecker { inputs } => id = inputs[0],
                Layer::Sum { input, .. } => id = *input,
            }
        }
    }
}

struct Tree {
    order: Vec<VariableId>,
    spans: Vec<(u32, u32)>,
    consumers: Vec<LayerId>,
}

fn check_count(layer: LayerId, inputs: &[LayerId]) -> Result<(), CircuitError> {
    match inputs.len() {
        found @ 0..2 => Err(CircuitError::TooFewInputs { layer, found }),
        _ => Ok(()),
    }
}

fn check_hadamard(
    id: LayerId,
    inputs: &[LayerId],
    widths: &[usize],
) -> Result<usize, CircuitError> {
    check_count(id, inputs)?;
    let expected = widths[inputs[0].index()];
    match inputs.iter().find(|i| widths[i.index()] != expected) {
        Some(&input) => {
            let found = widths[input.index()];
            Err(CircuitError::WidthMismatch { layer: id, input, expected, found })
        }
        None => Ok(expected),
    }
}

fn check_kronecker(
    id: LayerId,
    inputs: &[LayerId],
    widths: &[usize],
) -> Result<usize, CircuitError> {
    check_count(id, inputs)?;
    inputs
        .iter()
        .try_fold(1_usize, |product, i| product.checked_mul(widths[i.index()]))
        .filter(|&width| u32::try_from(width).is_ok())
        .ok_or(CircuitError::TooLarge { layer: id, what: "the product of its inputs' widths" })
}

//! A circuit as the steps that learning takes.

use std::sync::Arc;

use crate::basis::Basis;
use crate::circuit::{Circuit, Layer, LayerId};

/// The layers of a circuit as binary steps in topological order, for learning its weights.
#[derive(Debug)]
pub(crate) struct Network {
    pub(super) steps: Vec<Step>,
    /// For each weight, the steps that use it.
    pub(super) users: Vec<Vec<usize>>,
    pub(super) shapes: Vec<Shape>,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) width: usize,
    pub(super) kind: Kind,
}

impl Step {
    /// How many functions below a weight have to be evaluated: none of indicators.
    pub(super) fn functions(&self) -> usize {
        match &self.kind {
            Kind::Leaf { basis, weight: Some(_), .. } if !is_indicator(basis) => basis.width(),
            _ => 0,
        }
    }
}

#[derive(Debug)]
pub(super) enum Kind {
    /// The functions of a variable, or a weight times them.
    Leaf { variable: usize, basis: Arc<Basis>, weight: Option<usize> },
    /// W (ℓ₁ ⊗ ℓ₂).
    Kronecker { inputs: [usize; 2], weight: usize },
    /// ℓ₁ ⊙ ℓ₂.
    Hadamard { inputs: [usize; 2] },
    /// W ℓ₁.
    Sum { input: usize, weight: usize },
}

/// What a weight is contracted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Indicators: only one column meets a row.
    Columns,
    Plain,
    Kronecker(usize, usize),
}

/// A circuit that cannot be learned, or a checkpoint that is none of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// A Kronecker product without a sum above it, or of more than two inputs.
    #[error(
        "layer {layer}: learning takes Kronecker products of two inputs, each below a sum; \
             make the circuit from a binary region tree"
    )]
    Kronecker {
        /// The product layer.
        layer: LayerId,
    },
    /// Functions that are not orthonormal below weights that are kept so.
    #[error(
        "layer {layer}: its functions are not orthonormal; orthonormalize the circuit first, or learn \
             unconstrained weights"
    )]
    Basis {
        /// The input layer.
        layer: LayerId,
    },
    /// A weight that is shared between sums over products of different widths.
    #[error("layer {layer}: its weight is shared with a sum over another kind of input")]
    SharedShape {
        /// The sum layer.
        layer: LayerId,
    },
    /// A layer that a monotonic circuit cannot have.
    #[error(
        "layer {layer}: a monotonic circuit has indicators for inputs and one output, and is learned by \
             learn::monotonic; cut continuous variables into bins, and take one square"
    )]
    Monotonic {
        /// The input or output layer.
        layer: LayerId,
    },
    /// Bytes that are something else.
    #[error("this is no checkpoint of a fit; give the file that --checkpoint wrote")]
    NoCheckpoint,
    /// A checkpoint that is not whole.
    #[error("the checkpoint is damaged; start the fit anew, or from an older checkpoint")]
    Damaged,
    /// A checkpoint of another fit.
    #[error("the checkpoint was made with other {what}; give the same as then, or start anew")]
    OtherFit {
        /// What differs.
        what: &'static str,
    },
}

impl Network {
    pub(crate) fn new(circuit: &Circuit) -> Result<Self, LearnError> {
        let mut network = Self {
            steps: Vec::new(),
            users: vec![Vec::new(); circuit.weights().len()],
            shapes: Vec::new(),
        };
        let mut shapes: Vec<Option<Shape>> = vec![None; circuit.weights().len()];
        let mut step_of = vec![usize::MAX; circuit.num_layers()];
        for id in circuit.layer_ids() {
            let below_sum =
                circuit.consumer(id).is_some_and(|c| matches!(circuit.layer(c), Layer::Sum { .. }));
            step_of[id.index()] = match circuit.layer(id) {
                Layer::Input { .. } if below_sum => continue,
                Layer::Input { variable, basis } => {
                    let kind = Kind::Leaf {
                        variable: variable.index(),
                        basis: basis.clone(),
                        weight: None,
                    };
                    network.push(basis.width(), kind)
                }
                Layer::Kronecker { inputs } if below_sum && inputs.len() == 2 => continue,
                Layer::Kronecker { .. } => return Err(LearnError::Kronecker { layer: id }),
                Layer::Hadamard { inputs } => {
                    let width = circuit.width(id);
                    inputs[1..].iter().fold(step_of[inputs[0].index()], |left, right| {
                        let inputs = [left, step_of[right.index()]];
                        network.push(width, Kind::Hadamard { inputs })
                    })
                }
                Layer::Sum { input, weight } => {
                    let weight = weight.index();
                    let (kind, shape) = network.sum(circuit, *input, weight, &step_of);
                    if shapes[weight].replace(shape).is_some_and(|old| old != shape) {
                        return Err(LearnError::SharedShape { layer: id });
                    }
                    let step = network.push(circuit.width(id), kind);
                    network.users[weight].push(step);
                    step
                }
            };
        }
        network.shapes = shapes.into_iter().map(|s| s.unwrap_or(Shape::Plain)).collect();
        Ok(network)
    }

    fn push(&mut self, width: usize, kind: Kind) -> usize {
        self.steps.push(Step { width, kind });
        self.steps.len() - 1
    }

    fn sum(
        &self,
        circuit: &Circuit,
        input: LayerId,
        weight: usize,
        step_of: &[usize],
    ) -> (Kind, Shape) {
        match circuit.layer(input) {
            Layer::Input { variable, basis } => {
                let (variable, basis) = (variable.index(), basis.clone());
                let shape = if is_indicator(&basis) { Shape::Columns } else { Shape::Plain };
                (Kind::Leaf { variable, basis, weight: Some(weight) }, shape)
            }
            Layer::Kronecker { inputs } => {
                let inputs = [step_of[inputs[0].index()], step_of[inputs[1].index()]];
                let [k1, k2] = inputs.map(|i| self.steps[i].width);
                (Kind::Kronecker { inputs, weight }, Shape::Kronecker(k1, k2))
            }
            _ => (Kind::Sum { input: step_of[input.index()], weight }, Shape::Plain),
        }
    }
}

fn is_indicator(basis: &Basis) -> bool {
    matches!(basis, Basis::Indicator(_))
}

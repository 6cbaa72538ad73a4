//! A circuit as the passes over it take it: binary steps in post-order, without numbers.
//!
//! The engine adds packed weights to it, learning adds parameters; counts, partition functions and traversals walk it as it
//! is. A program knows which steps share a weight, so that each weight is packed, and its gradient summed, once.

use std::ops::Range;
use std::sync::Arc;

use crate::basis::Basis;
use crate::circuit::{Layer, LayerId, Skeleton};

/// The steps of a circuit in post-order: right before a step comes all that is below it, and the last one is the output.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    steps: Vec<Step>,
    num_leaves: usize,
    /// Those of the circuit, and after them the identities above products that have no sum above them.
    weights: Vec<WeightUse>,
    num_weights: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The layer that it computes, or helps to compute.
    pub(crate) layer: LayerId,
    pub(crate) width: usize,
    /// The leaves below, by their places among all leaves.
    pub(crate) leaves: Range<usize>,
    pub(crate) kind: StepKind,
}

#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    /// The functions of a variable, or a weight times them.
    Leaf { variable: usize, basis: Arc<Basis>, weight: Option<usize> },
    /// W (ℓ₁ ⊗ ℓ₂).
    Kronecker { inputs: [usize; 2], weight: usize },
    /// ℓ₁ ⊙ ℓ₂.
    Hadamard { inputs: [usize; 2] },
    /// W ℓ₁.
    Sum { input: usize, weight: usize },
}

impl Step {
    /// The steps whose outputs it takes.
    pub(crate) fn inputs(&self) -> &[usize] {
        match &self.kind {
            StepKind::Leaf { .. } => &[],
            StepKind::Kronecker { inputs, .. } | StepKind::Hadamard { inputs } => inputs,
            StepKind::Sum { input, .. } => std::slice::from_ref(input),
        }
    }

    /// The weight that it multiplies with.
    pub(crate) fn weight(&self) -> Option<usize> {
        match &self.kind {
            StepKind::Leaf { weight, .. } => *weight,
            StepKind::Kronecker { weight, .. } | StepKind::Sum { weight, .. } => Some(*weight),
            StepKind::Hadamard { .. } => None,
        }
    }

    /// The number of variables below.
    pub(crate) fn num_variables(&self) -> usize {
        self.leaves.len()
    }

    /// How many functions below a weight have to be evaluated: none of indicators.
    pub(crate) fn functions(&self) -> usize {
        match &self.kind {
            StepKind::Leaf { basis, weight: Some(_), .. } if !is_indicator(basis) => basis.width(),
            StepKind::Leaf { .. }
            | StepKind::Kronecker { .. }
            | StepKind::Hadamard { .. }
            | StepKind::Sum { .. } => 0,
        }
    }
}

/// What a weight is multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// Indicators: only one column meets a row.
    Indicators,
    /// One vector.
    Vector,
    /// A Kronecker product of vectors of these widths.
    Pair(usize, usize),
}

/// Where a weight is used.
#[derive(Clone, Debug, Default)]
struct WeightUse {
    /// The steps that multiply with it.
    steps: Vec<usize>,
    /// What the first of them multiplies it with; none if nothing uses it.
    operand: Option<Operand>,
}

impl Program {
    pub(crate) fn new(circuit: &Skeleton) -> Self {
        let num_weights = circuit.weight_shapes().len();
        let weights = vec![WeightUse::default(); num_weights];
        let mut program = Self { steps: Vec::new(), num_leaves: 0, weights, num_weights };
        let mut step_of = vec![usize::MAX; circuit.num_layers()];
        for id in post_order(circuit) {
            let consumer = circuit.consumer(id).map(|c| circuit.layer(c));
            let is_below_sum = matches!(consumer, Some(Layer::Sum { .. }));
            let steps =
                |inputs: &[LayerId]| inputs.iter().map(|i| step_of[i.index()]).collect::<Vec<_>>();
            step_of[id.index()] = match circuit.layer(id) {
                Layer::Input { .. } | Layer::Kronecker { .. } if is_below_sum => continue,
                Layer::Input { variable, basis } => program.leaf(id, variable.index(), basis, None),
                Layer::Hadamard { inputs } => program.fold(&steps(inputs), |program, inputs| {
                    let width = program.steps[inputs[0]].width;
                    program.push(id, width, StepKind::Hadamard { inputs })
                }),
                Layer::Kronecker { inputs } => program.bare_kronecker(id, &steps(inputs)),
                Layer::Sum { input, weight } => {
                    let (width, weight) = (circuit.width(id), weight.index());
                    match circuit.layer(*input) {
                        Layer::Input { variable, basis } => {
                            program.leaf(id, variable.index(), basis, Some((width, weight)))
                        }
                        Layer::Kronecker { inputs } => {
                            let steps = steps(inputs);
                            let (first, last) = (&steps[..steps.len() - 1], steps[steps.len() - 1]);
                            let left = program.bare_kronecker(*input, first);
                            let inputs = [left, last];
                            program.push(id, width, StepKind::Kronecker { inputs, weight })
                        }
                        Layer::Hadamard { .. } | Layer::Sum { .. } => {
                            let input = step_of[input.index()];
                            program.push(id, width, StepKind::Sum { input, weight })
                        }
                    }
                }
            };
        }
        program.in_post_order()
    }

    /// The same with every subtree together, also those of the pairs that products of many inputs are made of.
    fn in_post_order(mut self) -> Self {
        let mut order = Vec::with_capacity(self.steps.len());
        let mut stack = vec![self.root()];
        while let Some(step) = stack.pop() {
            order.push(step);
            stack.extend_from_slice(self.steps[step].inputs());
        }
        order.reverse();
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
        for step in &mut self.steps {
            match &mut step.kind {
                StepKind::Leaf { .. } => {}
                StepKind::Kronecker { inputs, .. } | StepKind::Hadamard { inputs } => {
                    *inputs = inputs.map(|input| place[input]);
                }
                StepKind::Sum { input, .. } => *input = place[*input],
            }
        }
        self.steps = order.iter().map(|&old| self.steps[old].clone()).collect();
        for weight in &mut self.weights {
            weight.steps.iter_mut().for_each(|step| *step = place[*step]);
            weight.steps.sort_unstable();
        }
        self
    }

    /// The first of the steps below one, all of which come right before it.
    pub(crate) fn first_below(&self, mut step: usize) -> usize {
        while let Some(&first) = self.steps[step].inputs().first() {
            step = first;
        }
        step
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The last step: the circuit's output.
    pub(crate) fn root(&self) -> usize {
        self.steps.len() - 1
    }

    /// How many weights the circuit has. Weights from there on are identities.
    pub(crate) fn num_weights(&self) -> usize {
        self.num_weights
    }

    /// The steps that multiply with a weight.
    pub(crate) fn users(&self, weight: usize) -> &[usize] {
        &self.weights[weight].steps
    }

    /// What the first user of a weight multiplies it with.
    pub(crate) fn operand_of(&self, weight: usize) -> Operand {
        self.weights[weight].operand.unwrap_or(Operand::Vector)
    }

    pub(crate) fn width(&self, step: usize) -> usize {
        self.steps[step].width
    }

    /// What a step multiplies its weight with; none if it has none.
    pub(crate) fn operand(&self, step: usize) -> Option<Operand> {
        let step = &self.steps[step];
        step.weight()?;
        Some(match &step.kind {
            StepKind::Leaf { basis, .. } if is_indicator(basis) => Operand::Indicators,
            StepKind::Leaf { .. } | StepKind::Sum { .. } => Operand::Vector,
            StepKind::Kronecker { inputs: [a, b], .. } => {
                Operand::Pair(self.width(*a), self.width(*b))
            }
            StepKind::Hadamard { .. } => return None,
        })
    }

    /// Which input of a product is visited first: the one with fewer variables, since its message has to be made again.
    pub(crate) fn first_side(&self, inputs: [usize; 2]) -> usize {
        let [a, b] = inputs.map(|input| self.steps[input].num_variables());
        usize::from(b < a)
    }

    /// The variables in the order of a traversal.
    pub(crate) fn traversal_order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.num_leaves);
        let mut stack = vec![self.root()];
        while let Some(step) = stack.pop() {
            match &self.steps[step].kind {
                StepKind::Leaf { variable, .. } => order.push(*variable),
                StepKind::Sum { input, .. } => stack.push(*input),
                StepKind::Kronecker { inputs, .. } | StepKind::Hadamard { inputs } => {
                    let first = self.first_side(*inputs);
                    stack.extend([inputs[1 - first], inputs[first]]);
                }
            }
        }
        order
    }

    fn push(&mut self, layer: LayerId, width: usize, kind: StepKind) -> usize {
        let index = self.steps.len();
        let mut step = Step { layer, width, leaves: 0..0, kind };
        step.leaves = match step.inputs() {
            [] => self.num_leaves..self.num_leaves + 1,
            [first, .., last] => self.steps[*first].leaves.start..self.steps[*last].leaves.end,
            [input] => self.steps[*input].leaves.clone(),
        };
        self.num_leaves = self.num_leaves.max(step.leaves.end);
        let weight = step.weight();
        self.steps.push(step);
        if let Some(weight) = weight {
            let operand = self.operand(index);
            let WeightUse { steps, operand: first } = &mut self.weights[weight];
            steps.push(index);
            *first = first.or(operand);
        }
        index
    }

    fn fold(
        &mut self,
        inputs: &[usize],
        mut pair: impl FnMut(&mut Self, [usize; 2]) -> usize,
    ) -> usize {
        inputs[1..].iter().fold(inputs[0], |left, &right| pair(self, [left, right]))
    }

    /// ℓ₁ ⊗ ℓ₂ ⊗ … with no sum above it: sums with the identity.
    fn bare_kronecker(&mut self, layer: LayerId, inputs: &[usize]) -> usize {
        self.fold(inputs, |program, inputs| {
            let width = inputs.map(|i| program.steps[i].width).iter().product();
            program.weights.push(WeightUse::default());
            let weight = program.weights.len() - 1;
            program.push(layer, width, StepKind::Kronecker { inputs, weight })
        })
    }

    fn leaf(
        &mut self,
        layer: LayerId,
        variable: usize,
        basis: &Arc<Basis>,
        weight: Option<(usize, usize)>,
    ) -> usize {
        let width = weight.map_or(basis.width(), |(width, _)| width);
        let weight = weight.map(|(_, weight)| weight);
        self.push(layer, width, StepKind::Leaf { variable, basis: basis.clone(), weight })
    }
}

fn is_indicator(basis: &Basis) -> bool {
    matches!(basis, Basis::Indicator(_))
}

/// The layers with every subtree together, left before right, each after its inputs.
fn post_order(circuit: &Skeleton) -> Vec<LayerId> {
    let mut order = Vec::with_capacity(circuit.num_layers());
    let mut stack = vec![circuit.output()];
    while let Some(id) = stack.pop() {
        order.push(id);
        stack.extend_from_slice(circuit.layer(id).inputs());
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;
    use crate::{CircuitBuilder, Domain};

    /// Three inputs under one codebook, a product of all three, a bare product above: every way that a step comes about.
    #[test]
    fn steps_come_in_post_order_and_know_their_leaves_and_weights() {
        let mut b = CircuitBuilder::new();
        let code = b.weight(Matrix::from_fn(2, 3, |i, j| (i + j) as f64));
        let sums: Vec<_> = (0..3)
            .map(|v| {
                let x = b.variable(format!("x{v}"), Domain::Finite(3));
                let input = b.input(x, Basis::indicator(3));
                b.shared_sum(input, code)
            })
            .collect();
        let y = b.variable("y", Domain::Finite(2));
        let y = b.input(y, Basis::indicator(2));
        let product = b.kronecker(sums);
        let sum = b.sum(product, Matrix::from_fn(4, 8, |i, j| (i * j) as f64));
        let output = b.kronecker([sum, y]);
        let program = Program::new(&b.build(output).unwrap());
        let leaves: Vec<_> = program.steps().iter().map(|s| s.leaves.clone()).collect();
        assert_eq!(leaves, [0..1, 1..2, 0..2, 2..3, 0..3, 3..4, 0..4]);
        let widths: Vec<_> = program.steps().iter().map(|s| s.width).collect();
        assert_eq!(widths, [2, 2, 4, 2, 4, 2, 8]);
        assert_eq!(program.num_weights(), 2);
        assert_eq!(
            (program.users(0), program.operand_of(0)),
            (&[0, 1, 3][..], Operand::Indicators)
        );
        assert_eq!((program.users(1), program.operand_of(1)), (&[4][..], Operand::Pair(4, 2)));
        assert_eq!(program.traversal_order(), [3, 2, 0, 1]);
        for (index, step) in program.steps().iter().enumerate() {
            assert!(step.inputs().iter().all(|&input| input < index));
            // 2 n − 1 steps over n leaves, one after another.
            assert_eq!(program.first_below(index), index + 2 - 2 * step.num_variables());
        }
    }
}

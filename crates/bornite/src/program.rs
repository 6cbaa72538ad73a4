//! A circuit compiled to binary steps in post-order, without numbers.
//!
//! The engine adds packed weights to a program and learning adds parameters; counts, partition
//! functions and traversals need only the program. It records which steps share a weight, so that
//! each weight is packed, and its gradient summed, only once.

use std::ops::Range;
use std::sync::Arc;

use crate::basis::Basis;
use crate::circuit::{Layer, LayerId, Skeleton};

/// The steps of a circuit in post-order: each step directly follows its subtree, and the last step
/// is the output.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    steps: Vec<Step>,
    num_leaves: usize,
    /// The weights of the circuit, followed by identities for the products without a sum above
    /// them.
    weights: Vec<WeightUse>,
    num_weights: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The layer that this step computes, or contributes to.
    pub(crate) layer: LayerId,
    pub(crate) width: usize,
    /// The leaves below this step, as positions among all leaves.
    pub(crate) leaves: Range<usize>,
    pub(crate) kind: StepKind,
}

#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    /// The functions of a variable, multiplied by a weight if there is one.
    Leaf { variable: usize, basis: Arc<Basis>, weight: Option<usize> },
    /// W (ℓ₁ ⊗ ℓ₂).
    Kronecker { inputs: [usize; 2], weight: usize },
    /// ℓ₁ ⊙ ℓ₂.
    Hadamard { inputs: [usize; 2] },
    /// W ℓ₁.
    Sum { input: usize, weight: usize },
}

impl Step {
    /// The steps whose outputs this step takes.
    pub(crate) fn inputs(&self) -> &[usize] {
        match &self.kind {
            StepKind::Leaf { .. } => &[],
            StepKind::Kronecker { inputs, .. } | StepKind::Hadamard { inputs } => inputs,
            StepKind::Sum { input, .. } => std::slice::from_ref(input),
        }
    }

    /// The weight of this step, if it has one.
    pub(crate) fn weight(&self) -> Option<usize> {
        match &self.kind {
            StepKind::Leaf { weight, .. } => *weight,
            StepKind::Kronecker { weight, .. } | StepKind::Sum { weight, .. } => Some(*weight),
            StepKind::Hadamard { .. } => None,
        }
    }

    /// The number of variables below this step.
    pub(crate) fn num_variables(&self) -> usize {
        self.leaves.len()
    }

    /// The number of functions that must be evaluated below a weight; 0 for indicators, which only
    /// select a column.
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

/// What a weight is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// Indicators: each row selects one column.
    Indicators,
    /// A vector.
    Vector,
    /// The Kronecker product of two vectors with these widths.
    Pair(usize, usize),
}

/// The steps that use a weight.
#[derive(Clone, Debug, Default)]
struct WeightUse {
    /// The steps that multiply by it.
    steps: Vec<usize>,
    /// The operand of the first of them; `None` if no step uses the weight.
    operand: Option<Operand>,
}

impl Program {
    /// Compiles a circuit. Products of more than two inputs become several steps.
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

    /// Reorders the steps so that every subtree is contiguous, including those of the pairs that
    /// products of many inputs are split into.
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

    /// The first step of the subtree below `step`. The subtree's steps directly precede `step`.
    pub(crate) fn first_below(&self, mut step: usize) -> usize {
        while let Some(&first) = self.steps[step].inputs().first() {
            step = first;
        }
        step
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The last step, which computes the circuit's output.
    pub(crate) fn root(&self) -> usize {
        self.steps.len() - 1
    }

    /// The number of weights of the circuit. Weights with larger indices are identities.
    pub(crate) fn num_weights(&self) -> usize {
        self.num_weights
    }

    /// The steps that multiply by a weight.
    pub(crate) fn users(&self, weight: usize) -> &[usize] {
        &self.weights[weight].steps
    }

    /// The operand of the first step that uses a weight.
    pub(crate) fn operand_of(&self, weight: usize) -> Operand {
        self.weights[weight].operand.unwrap_or(Operand::Vector)
    }

    pub(crate) fn width(&self, step: usize) -> usize {
        self.steps[step].width
    }

    /// What a step multiplies its weight by; `None` if it has no weight.
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

    /// Which input of a product a traversal visits first: the one with fewer variables, because its
    /// message must be computed again.
    pub(crate) fn first_side(&self, inputs: [usize; 2]) -> usize {
        let [a, b] = inputs.map(|input| self.steps[input].num_variables());
        usize::from(b < a)
    }

    /// The variables in the order in which a traversal visits them.
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

    /// The product ℓ₁ ⊗ ℓ₂ ⊗ … without a sum above it, as sums whose weights are identities.
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

/// The layers in post-order, left before right: every subtree is contiguous, and each layer follows
/// its inputs.
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

    /// Three inputs with a shared weight, their product, and a product without a sum: all ways in
    /// which a step arises.
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
            // 2n − 1 contiguous steps over n leaves.
            assert_eq!(program.first_below(index), index + 2 - 2 * step.num_variables());
        }
    }
}

//! log Z of weights that are not orthonormal, and its gradient by every weight.
//!
//! Every step sends M = ∫ ℓ ℓᴴ over all of its variables, and receives the environment E with
//! Z = Σ E[k, k′] M[k, k′]. Since M = W N Wᴴ, the gradient by W is 2 Eᵀ W N / Z. Rows with missing
//! values use M at steps without evidence, and add to its E.

use super::tensor::{gram_first, gram_last, multiply_first, multiply_last};
use crate::basis::Basis;
use crate::linalg::{Matrix, Scalar};
use crate::ops::scaled::{ldexp, rescale};
use crate::program::{Program, StepKind};

/// The message of a step, with a power of two stored separately.
#[derive(Clone, Debug)]
pub(super) struct Node<T> {
    pub(super) matrix: Matrix<T>,
    /// M is `matrix` times 2^exponent, with the exponents of all steps below included.
    pub(super) exponent: i64,
    /// The power of two that M was multiplied by at this step.
    factor: f64,
}

/// The messages of all steps without evidence.
#[derive(Debug)]
pub(super) struct Partition<'a, T> {
    pub(super) program: &'a Program,
    pub(super) weights: Vec<&'a Matrix<T>>,
    /// `None` if all of them are identities.
    nodes: Option<Vec<Node<T>>>,
}

impl<'a, T: Scalar> Partition<'a, T> {
    /// Computes all integrals, unless the weights and inputs are known to be orthonormal.
    pub(super) fn new(
        program: &'a Program,
        weights: Vec<&'a Matrix<T>>,
        orthonormal: bool,
    ) -> Self {
        let mut this = Self { program, weights, nodes: None };
        if !orthonormal {
            this.nodes = Some(this.forward());
        }
        this
    }

    /// log Z; 0 if the circuit is orthonormal.
    pub(super) fn log_partition(&self) -> f64 {
        let Some(Node { matrix, exponent, .. }) = self.nodes.as_ref().and_then(|n| n.last()) else {
            return 0.0;
        };
        trace(matrix).max(0.0).ln() + *exponent as f64 * std::f64::consts::LN_2
    }

    /// The message of a step without evidence; `None` for an identity.
    pub(super) fn node(&self, step: usize) -> Option<&Node<T>> {
        self.nodes.as_ref().map(|nodes| &nodes[step])
    }

    pub(super) fn is_orthonormal(&self) -> bool {
        self.nodes.is_none()
    }

    /// The environment of the output divided by its trace p, times a factor.
    pub(super) fn at_output(&self, factor: f64) -> Option<Matrix<T>> {
        let matrix = &self.nodes.as_ref()?.last()?.matrix;
        Some(Matrix::identity(matrix.rows()).scaled(factor / trace(matrix)))
    }

    /// Adds the gradient of `factor` log Z by every weight, ∂/∂re + i ∂/∂im, and that of Σ E M over
    /// all steps, with the environments E that they have `received`.
    pub(super) fn add_gradient(
        &self,
        factor: f64,
        mut received: Vec<Option<Matrix<T>>>,
        gradients: &mut [Matrix<T>],
    ) {
        let Some(nodes) = &self.nodes else { return };
        if let Some(e) = self.at_output(factor) {
            give(&mut received, nodes.len() - 1, e);
        }
        for (index, step) in self.program.steps().iter().enumerate().rev() {
            let Some(mut e) = received[index].take() else { continue };
            for x in e.data_mut() {
                *x = x.scale_by(nodes[index].factor);
            }
            match &step.kind {
                StepKind::Leaf { basis, weight, .. } => {
                    if let Some(weight) = *weight {
                        let h = e.transpose().times(self.weights[weight]);
                        add(gradients[weight].data_mut(), h.times(&basis.gram()).data(), 2.0);
                    }
                }
                StepKind::Kronecker { inputs: [a, b], weight } => {
                    let w = self.weights[*weight];
                    let dims = self.dims(w, [*a, *b]);
                    let (ma, mb) = (&nodes[*a].matrix, &nodes[*b].matrix);
                    let h = e.transpose().times(w);
                    let g = multiply_last(&multiply_first(&h, dims, ma), dims, mb);
                    add(gradients[*weight].data_mut(), g.data(), 2.0);
                    let to_a = gram_first(&multiply_last(w, dims, mb), &h, dims);
                    give(&mut received, *a, to_a);
                    let to_b = gram_last(&multiply_first(w, dims, ma), &h, dims[2]);
                    give(&mut received, *b, to_b);
                }
                StepKind::Hadamard { inputs: [a, b] } => {
                    for (to, other) in [(*a, *b), (*b, *a)] {
                        give(&mut received, to, entrywise(&e, &nodes[other].matrix));
                    }
                }
                StepKind::Sum { input, weight } => {
                    let w = self.weights[*weight];
                    let h = e.transpose().times(w);
                    let g = h.times(&nodes[*input].matrix);
                    add(gradients[*weight].data_mut(), g.data(), 2.0);
                    give(&mut received, *input, gram_last(w, &h, w.cols()));
                }
            }
        }
    }

    fn forward(&self) -> Vec<Node<T>> {
        let mut nodes: Vec<Node<T>> = Vec::with_capacity(self.program.steps().len());
        for step in self.program.steps() {
            let (matrix, below) = match &step.kind {
                StepKind::Leaf { basis, weight, .. } => (self.leaf(basis, *weight), 0),
                StepKind::Kronecker { inputs: [a, b], weight } => {
                    let w = self.weights[*weight];
                    let dims = self.dims(w, [*a, *b]);
                    let t = multiply_first(w, dims, &nodes[*a].matrix);
                    let t = multiply_last(&t, dims, &nodes[*b].matrix);
                    (t.times_adjoint(w), nodes[*a].exponent + nodes[*b].exponent)
                }
                StepKind::Hadamard { inputs: [a, b] } => {
                    let (a, b) = (&nodes[*a], &nodes[*b]);
                    (entrywise(&a.matrix, &b.matrix), a.exponent + b.exponent)
                }
                StepKind::Sum { input, weight } => {
                    let (w, input) = (self.weights[*weight], &nodes[*input]);
                    (w.times(&input.matrix).times_adjoint(w), input.exponent)
                }
            };
            let mut matrix = matrix.hermitian_part();
            let exponent = rescale(matrix.data_mut());
            let factor = ldexp(1.0, -exponent).min(f64::MAX);
            nodes.push(Node { matrix, exponent: below + exponent, factor });
        }
        nodes
    }

    fn leaf(&self, basis: &Basis, weight: Option<usize>) -> Matrix<T> {
        let gram = basis.gram();
        match weight {
            Some(weight) => self.weights[weight].times(&gram).times_adjoint(self.weights[weight]),
            None => gram,
        }
    }

    fn dims(&self, w: &Matrix<T>, inputs: [usize; 2]) -> [usize; 3] {
        let [k1, k2] = inputs.map(|i| self.program.steps()[i].width);
        [w.rows(), k1, k2]
    }
}

fn trace<T: Scalar>(m: &Matrix<T>) -> f64 {
    (0..m.rows()).map(|i| m[(i, i)].to_complex().re).sum()
}

/// Adds an environment to those that a step has received.
pub(super) fn give<T: Scalar>(received: &mut [Option<Matrix<T>>], step: usize, new: Matrix<T>) {
    match &mut received[step] {
        Some(sum) => add(sum.data_mut(), new.data(), 1.0),
        empty => *empty = Some(new),
    }
}

fn entrywise<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    let data = a.data().iter().zip(b.data()).map(|(&a, &b)| a * b).collect();
    Matrix::new(a.rows(), a.cols(), data)
}

/// sum += factor x.
pub(super) fn add<T: Scalar>(sum: &mut [T], x: &[T], factor: f64) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum += x.scale_by(factor);
    }
}

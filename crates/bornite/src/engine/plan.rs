//! A circuit as the engine runs it: binary steps in post-order, with packed weights.

use std::sync::{Arc, OnceLock};

use super::columns::Columns;
use super::kernels::Kernels;
use super::lanes::{Real, planes};
use super::weight::{PackedWeight, Uses};
use super::workspace::Pool;
use super::{Simd, SimdLevel};
use crate::basis::Basis;
use crate::circuit::{Circuit, Layer, LayerId, VariableId};
use crate::linalg::{Complex64, Matrix, Scalar};

/// Steps in post-order: every step comes after those that it receives, and a subtree is contiguous.
#[derive(Debug)]
pub(crate) struct Plan<F: Real, const C: bool> {
    pub(crate) kernels: Kernels<F, C>,
    pub(crate) steps: Vec<Step<F>>,
    /// The memory of upward passes.
    pub(crate) pool: Pool<F>,
}

#[derive(Debug)]
pub(crate) struct Step<F> {
    pub(crate) width: usize,
    /// The number of variables below, itself included.
    pub(crate) num_variables: usize,
    pub(crate) kind: StepKind<F>,
}

#[derive(Debug)]
pub(crate) enum StepKind<F> {
    /// The functions of one variable, times a weight where a sum stands right above them.
    Leaf(Leaf<F>),
    /// W (ℓ₁ ⊗ ℓ₂).
    Kronecker { inputs: [usize; 2], weight: NodeWeight<F> },
    /// ℓ₁ ⊙ ℓ₂.
    Hadamard { inputs: [usize; 2] },
    /// W ℓ₁.
    Sum { input: usize, weight: NodeWeight<F> },
}

impl<F> StepKind<F> {
    pub(crate) fn inputs(&self) -> &[usize] {
        match self {
            StepKind::Leaf(_) => &[],
            StepKind::Kronecker { inputs, .. } | StepKind::Hadamard { inputs } => inputs,
            StepKind::Sum { input, .. } => std::slice::from_ref(input),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Leaf<F> {
    pub(crate) variable: VariableId,
    pub(crate) basis: Arc<Basis>,
    /// K × (number of functions), in full precision.
    pub(crate) weight: Option<Matrix<Complex64>>,
    pub(crate) packed: Option<PackedWeight<F>>,
    /// For a finite domain.
    pub(crate) columns: Option<Columns<F>>,
    /// The same as a weight, made when samples are first drawn.
    pub(crate) amplitudes: OnceLock<PackedWeight<F>>,
    /// Whether a column may be so large or small that products of two are out of range.
    pub(crate) needs_rescale: bool,
    /// Whether this is the whole circuit, whose weight is of unit norm and not semi-unitary.
    pub(crate) is_output: bool,
}

/// A weight W, packed for the upward pass at once and for the others when they first need it.
#[derive(Debug)]
pub(crate) struct NodeWeight<F> {
    source: Source,
    /// [K₁, K₂] of a Kronecker product; [K₁, 1] of a single input.
    shape: [usize; 2],
    pure: PackedWeight<F>,
    mixed: OnceLock<PackedWeight<F>>,
    down: [OnceLock<PackedWeight<F>>; 2],
    down_gram: [OnceLock<Vec<F>>; 2],
}

#[derive(Debug)]
enum Source {
    Real(Matrix<f64>),
    Complex(Matrix<Complex64>),
}

impl<F: Real> NodeWeight<F> {
    fn new(w: Matrix<Complex64>, shape: [usize; 2], complex: bool) -> Self {
        let source = if complex { Source::Complex(w) } else { Source::Real(w.map(|z| z.re)) };
        let pure = source.pack(shape, [0, 1, 2], Uses::PURE);
        let empty = || [OnceLock::new(), OnceLock::new()];
        let down_gram = [OnceLock::new(), OnceLock::new()];
        Self { source, shape, pure, mixed: OnceLock::new(), down: empty(), down_gram }
    }

    /// W[k, i, j], for pure messages.
    pub(crate) fn pure(&self) -> &PackedWeight<F> {
        &self.pure
    }

    /// W[k, i, j], for all messages.
    pub(crate) fn mixed(&self) -> &PackedWeight<F> {
        self.mixed.get_or_init(|| self.source.pack(self.shape, [0, 1, 2], Uses::QUERY))
    }

    /// The weight of the environment of input `side`: W[i; k, j] for the left, W[j; k, i] for the right, where k is
    /// the environment's own index and the last that of the other input.
    pub(crate) fn down(&self, side: usize) -> &PackedWeight<F> {
        let order = if side == 0 { [1, 0, 2] } else { [2, 0, 1] };
        self.down[side].get_or_init(|| self.source.pack(self.shape, order, Uses::QUERY))
    }

    /// Σ over the other two indices of `down(side)` with itself: what two identities make. K × K numbers, planar.
    pub(crate) fn down_gram(&self, side: usize) -> &[F] {
        self.down_gram[side].get_or_init(|| {
            let order = if side == 0 { [1, 0, 2] } else { [2, 0, 1] };
            match &self.source {
                Source::Real(m) => gram(&permuted(m, self.shape, order)),
                Source::Complex(m) => gram(&permuted(m, self.shape, order)),
            }
        })
    }
}

/// M Mᴴ in a fixed order of operations, so that its bits depend on no CPU.
fn gram<T: Scalar, F: Real>(m: &Matrix<T>) -> Vec<F> {
    let dot = |i: usize, j: usize| {
        let pairs = m.row(i).iter().zip(m.row(j));
        pairs.fold(T::ZERO, |sum, (&a, &b)| sum + a * b.conjugate())
    };
    let gram = Matrix::from_fn(m.rows(), m.rows(), dot);
    numbers(gram.hermitian_part().data(), T::IS_COMPLEX)
}

fn numbers<T: Scalar, F: Real>(values: &[T], complex: bool) -> Vec<F> {
    let mut out = Vec::with_capacity(values.len() * planes(complex));
    for x in values {
        let z = x.to_complex();
        out.push(F::from_f64(z.re));
        if complex {
            out.push(F::from_f64(z.im));
        }
    }
    out
}

/// The tensor W[k, i, j] with its modes in another order, the first as rows.
fn permuted<T: Scalar>(w: &Matrix<T>, [k1, k2]: [usize; 2], order: [usize; 3]) -> Matrix<T> {
    let dims = [w.rows(), k1, k2];
    let shape = order.map(|mode| dims[mode]);
    Matrix::from_fn(shape[0], shape[1] * shape[2], |a, rest| {
        let at = [a, rest / shape[2], rest % shape[2]];
        let mut index = [0; 3];
        for (position, &mode) in order.iter().enumerate() {
            index[mode] = at[position];
        }
        w[(index[0], index[1] * k2 + index[2])]
    })
}

impl Source {
    fn pack<F: Real>(&self, shape: [usize; 2], order: [usize; 3], uses: Uses) -> PackedWeight<F> {
        fn go<T: Scalar, F: Real>(
            w: &Matrix<T>,
            shape: [usize; 2],
            order: [usize; 3],
            uses: Uses,
        ) -> PackedWeight<F> {
            let dims = [w.rows(), shape[0], shape[1]];
            if order == [0, 1, 2] {
                return PackedWeight::kronecker(w, shape, uses);
            }
            PackedWeight::kronecker(
                &permuted(w, shape, order),
                [dims[order[1]], dims[order[2]]],
                uses,
            )
        }
        match self {
            Source::Real(m) => go(m, shape, order, uses),
            Source::Complex(m) => go(m, shape, order, uses),
        }
    }
}

impl<F: Real, const C: bool> Plan<F, C> {
    pub(crate) fn new(circuit: &Circuit, level: SimdLevel) -> Self {
        let kernels = Kernels::new(Simd::new(level));
        let mut plan = Self { kernels, steps: Vec::new(), pool: Pool::default() };
        let mut step_of = vec![usize::MAX; circuit.num_layers()];
        for id in post_order(circuit) {
            let consumer = circuit.consumer(id).map(|c| circuit.layer(c));
            let below_sum = matches!(consumer, Some(Layer::Sum { .. }));
            step_of[id.index()] = match circuit.layer(id) {
                Layer::Input { .. } | Layer::Kronecker { .. } if below_sum => continue,
                Layer::Input { variable, basis } => plan.leaf(*variable, basis, None),
                Layer::Hadamard { inputs } => {
                    let steps: Vec<usize> = inputs.iter().map(|i| step_of[i.index()]).collect();
                    plan.fold(&steps, |plan, inputs| {
                        let width = plan.steps[inputs[0]].width;
                        plan.push(width, StepKind::Hadamard { inputs })
                    })
                }
                Layer::Kronecker { inputs } => {
                    let steps: Vec<usize> = inputs.iter().map(|i| step_of[i.index()]).collect();
                    plan.fold(&steps, Self::bare_kronecker)
                }
                Layer::Sum { input, weight } => {
                    let w = circuit.weight(*weight).to_matrix::<Complex64>().into_owned();
                    plan.sum(circuit, *input, w, &step_of)
                }
            };
        }
        if let Some(Step { kind: StepKind::Leaf(leaf), .. }) = plan.steps.last_mut() {
            leaf.is_output = true;
        }
        Columns::join(plan.steps.iter_mut().filter_map(|step| match &mut step.kind {
            StepKind::Leaf(leaf) => leaf.columns.as_mut(),
            _ => None,
        }));
        plan
    }

    fn push(&mut self, width: usize, kind: StepKind<F>) -> usize {
        let below: usize = kind.inputs().iter().map(|&i| self.steps[i].num_variables).sum();
        let num_variables = below.max(1);
        self.steps.push(Step { width, num_variables, kind });
        self.steps.len() - 1
    }

    fn fold(
        &mut self,
        inputs: &[usize],
        mut pair: impl FnMut(&mut Self, [usize; 2]) -> usize,
    ) -> usize {
        inputs[1..].iter().fold(inputs[0], |left, &right| pair(self, [left, right]))
    }

    /// ℓ₁ ⊗ ℓ₂ with no sum above it: a sum with the identity.
    fn bare_kronecker(&mut self, inputs: [usize; 2]) -> usize {
        let shape = inputs.map(|i| self.steps[i].width);
        let width = shape[0] * shape[1];
        let weight = NodeWeight::new(Matrix::identity(width), shape, C);
        self.push(width, StepKind::Kronecker { inputs, weight })
    }

    fn sum(
        &mut self,
        circuit: &Circuit,
        input: LayerId,
        w: Matrix<Complex64>,
        step_of: &[usize],
    ) -> usize {
        let rows = w.rows();
        match circuit.layer(input) {
            Layer::Input { variable, basis } => self.leaf(*variable, basis, Some(w)),
            Layer::Kronecker { inputs } => {
                let steps: Vec<usize> = inputs.iter().map(|i| step_of[i.index()]).collect();
                let (last, first) = (steps[steps.len() - 1], &steps[..steps.len() - 1]);
                let left = self.fold(first, Self::bare_kronecker);
                let shape = [self.steps[left].width, self.steps[last].width];
                let weight = NodeWeight::new(w, shape, C);
                self.push(rows, StepKind::Kronecker { inputs: [left, last], weight })
            }
            _ => {
                let input = step_of[input.index()];
                let weight = NodeWeight::new(w, [self.steps[input].width, 1], C);
                self.push(rows, StepKind::Sum { input, weight })
            }
        }
    }

    fn leaf(
        &mut self,
        variable: VariableId,
        basis: &Arc<Basis>,
        weight: Option<Matrix<Complex64>>,
    ) -> usize {
        let width = weight.as_ref().map_or(basis.width(), Matrix::rows);
        let columns = basis.natural_domain().num_values().map(|v| {
            let len = width * planes(C);
            let mut columns = Vec::with_capacity(v * len);
            for x in 0..v {
                let values = leaf_values(basis, weight.as_ref(), x as f64);
                columns.extend(numbers::<Complex64, F>(&values, C));
            }
            Columns::new(&columns)
        });
        let packed = match (&weight, &columns) {
            (Some(w), None) if C => Some(PackedWeight::plain(w, Uses::PURE)),
            (Some(w), None) => Some(PackedWeight::plain(&w.map(|z| z.re), Uses::PURE)),
            _ => None,
        };
        let needs_rescale = columns
            .as_ref()
            .is_some_and(|c| c.chunks_exact(width * planes(C)).any(|c| !largest(c).is_moderate()));
        let (is_output, amplitudes) = (false, OnceLock::new());
        let leaf = Leaf {
            variable,
            basis: basis.clone(),
            weight,
            packed,
            columns,
            amplitudes,
            needs_rescale,
            is_output,
        };
        self.push(width, StepKind::Leaf(leaf))
    }

    /// The last step: the circuit's output.
    pub(crate) fn root(&self) -> usize {
        self.steps.len() - 1
    }
}

fn largest<F: Real>(column: &[F]) -> f64 {
    column.iter().fold(0.0_f64, |max, x| max.max(x.to_f64().abs()))
}

/// W f(x).
pub(crate) fn leaf_values(
    basis: &Basis,
    weight: Option<&Matrix<Complex64>>,
    x: f64,
) -> Vec<Complex64> {
    let mut f = vec![Complex64::ZERO; basis.width()];
    basis.evaluate(x, &mut f);
    match weight {
        // A column of the weight, without a product of mostly zeros.
        Some(w) if matches!(basis, Basis::Indicator(_)) => {
            (0..w.rows()).map(|k| w[(k, x as usize)]).collect()
        }
        Some(w) => w.times_vector(&f),
        None => f,
    }
}

/// The layers with every subtree together, left before right, each after its inputs.
fn post_order(circuit: &Circuit) -> Vec<LayerId> {
    let mut order = Vec::with_capacity(circuit.num_layers());
    let mut stack = vec![circuit.output()];
    while let Some(id) = stack.pop() {
        order.push(id);
        stack.extend_from_slice(circuit.layer(id).inputs());
    }
    order.reverse();
    order
}

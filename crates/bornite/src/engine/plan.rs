//! A program together with its weights, packed for the kernels.

use std::sync::{Arc, OnceLock};

use super::columns::Columns;
use super::lanes::{Real, planes};
use super::workspace::Pool;
use super::{Kernels, PackedWeight, Simd, SimdLevel, Uses, dense};
use crate::basis::Basis;
use crate::circuit::Circuit;
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::program::{Program, StepKind};

/// A program and its packed weights. Weights that several steps share are packed once.
#[derive(Debug)]
pub(crate) struct Plan<F: Real, const C: bool> {
    pub(crate) program: Program,
    pub(crate) kernels: Kernels<F, C>,
    weights: Vec<NodeWeight<F>>,
    /// For each step, the index of its weight in `weights`; `None` for leaves and Hadamard
    /// products.
    weight_of: Vec<Option<usize>>,
    leaves: Vec<Leaf<F>>,
    /// For each leaf of the program, its index in `leaves`.
    leaf_of: Vec<usize>,
    /// Reusable memory for upward passes.
    pub(crate) pool: Pool<F>,
}

/// The functions of one variable, multiplied by a weight if a sum is directly above them.
#[derive(Debug)]
pub(crate) struct Leaf<F> {
    pub(crate) basis: Arc<Basis>,
    /// K × (number of functions), in double precision.
    pub(crate) weight: Option<Matrix<Complex64>>,
    pub(crate) packed: Option<PackedWeight<F>>,
    /// The outputs at every value, for a finite domain.
    pub(crate) columns: Option<Columns<F>>,
    /// The same outputs as a weight, packed when the first samples are drawn.
    pub(crate) amplitudes: OnceLock<PackedWeight<F>>,
    /// Whether a column may be so large or small that a product of two is out of range.
    pub(crate) needs_rescale: bool,
    /// Whether this leaf is the whole circuit. Then its weight has unit norm and is not
    /// semi-unitary.
    pub(crate) is_output: bool,
}

/// A weight W. It is packed for the upward pass at once, and for other uses when they first need
/// it.
#[derive(Debug)]
pub(crate) struct NodeWeight<F> {
    source: PlainWeight,
    /// [K₁, K₂] for a Kronecker product; [K₁, 1] for a single input.
    shape: [usize; 2],
    pure: PackedWeight<F>,
    mixed: OnceLock<PackedWeight<F>>,
    down: [OnceLock<PackedWeight<F>>; 2],
    down_gram: [OnceLock<Vec<F>>; 2],
}

#[derive(Debug)]
enum PlainWeight {
    Real(Matrix<f64>),
    Complex(Matrix<Complex64>),
}

impl<F: Real> NodeWeight<F> {
    fn new(w: Matrix<Complex64>, shape: [usize; 2], complex: bool) -> Self {
        let source =
            if complex { PlainWeight::Complex(w) } else { PlainWeight::Real(w.map(|z| z.re)) };
        let pure = source.pack(shape, [0, 1, 2], Uses::PURE);
        let empty = || [OnceLock::new(), OnceLock::new()];
        let down_gram = [OnceLock::new(), OnceLock::new()];
        Self { source, shape, pure, mixed: OnceLock::new(), down: empty(), down_gram }
    }

    /// The numbers of rows and columns, and the entries as real parts.
    #[cfg(feature = "cuda")]
    pub(crate) fn plain(&self) -> ([usize; 2], &[f64]) {
        match &self.source {
            PlainWeight::Real(m) => ([m.rows(), m.cols()], m.data()),
            PlainWeight::Complex(m) => ([m.rows(), m.cols()], Complex64::parts(m.data())),
        }
    }

    /// W[k, i, j], packed for pure messages.
    pub(crate) fn pure(&self) -> &PackedWeight<F> {
        &self.pure
    }

    /// W[k, i, j], packed for all messages.
    pub(crate) fn mixed(&self) -> &PackedWeight<F> {
        self.mixed.get_or_init(|| self.source.pack(self.shape, [0, 1, 2], Uses::QUERY))
    }

    /// The weight for the environment of input `side`: W[i; k, j] for the left input and W[j; k, i]
    /// for the right. The index k belongs to the step's environment, and the last index to the
    /// other input.
    pub(crate) fn down(&self, side: usize) -> &PackedWeight<F> {
        let order = if side == 0 { [1, 0, 2] } else { [2, 0, 1] };
        self.down[side].get_or_init(|| self.source.pack(self.shape, order, Uses::QUERY))
    }

    /// The environment of input `side` if both messages are identities: `down(side)` times its
    /// adjoint, as K × K numbers.
    pub(crate) fn down_gram(&self, side: usize) -> &[F] {
        self.down_gram[side].get_or_init(|| {
            let order = if side == 0 { [1, 0, 2] } else { [2, 0, 1] };
            match &self.source {
                PlainWeight::Real(m) => gram(&permuted(m, self.shape, order)),
                PlainWeight::Complex(m) => gram(&permuted(m, self.shape, order)),
            }
        })
    }
}

/// M Mᴴ in a fixed order of operations, so that its bits do not depend on the CPU.
fn gram<T: Scalar, F: Real>(m: &Matrix<T>) -> Vec<F> {
    let dot = |i: usize, j: usize| {
        let pairs = m.row(i).iter().zip(m.row(j));
        pairs.fold(T::ZERO, |sum, (&a, &b)| sum + a * b.conjugate())
    };
    let gram = Matrix::from_fn(m.rows(), m.rows(), dot);
    numbers(gram.hermitian_part().data(), T::IS_COMPLEX)
}

/// The numbers in the precision of the engine, with real and imaginary parts interleaved.
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

/// The tensor W[k, i, j] with its modes in another order, the first of which becomes the rows.
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

impl PlainWeight {
    fn pack<F: Real>(&self, shape: [usize; 2], order: [usize; 3], uses: Uses) -> PackedWeight<F> {
        fn go<T: Scalar, F: Real>(
            w: &Matrix<T>,
            shape: [usize; 2],
            order: [usize; 3],
            uses: Uses,
        ) -> PackedWeight<F> {
            let dims = [w.rows(), shape[0], shape[1]];
            if order == [0, 1, 2] {
                return PackedWeight::kronecker(dense(w), shape, uses);
            }
            PackedWeight::kronecker(
                dense(&permuted(w, shape, order)),
                [dims[order[1]], dims[order[2]]],
                uses,
            )
        }
        match self {
            PlainWeight::Real(m) => go(m, shape, order, uses),
            PlainWeight::Complex(m) => go(m, shape, order, uses),
        }
    }
}

impl<F: Real, const C: bool> Plan<F, C> {
    pub(crate) fn new(circuit: &Circuit, level: SimdLevel) -> Self {
        let mut plan = Self {
            program: Program::new(circuit),
            kernels: Kernels::new(Simd::new(level)),
            weights: Vec::new(),
            weight_of: Vec::new(),
            leaves: Vec::new(),
            leaf_of: Vec::new(),
            pool: Pool::default(),
        };
        plan.pack(circuit);
        if let [leaf] = &mut plan.leaves[..] {
            leaf.is_output = plan.program.steps().len() == 1;
        }
        Columns::join(plan.leaves.iter_mut().filter_map(|leaf| leaf.columns.as_mut()));
        plan
    }

    /// Packs every weight once for each shape in which it is used, and every leaf once for each
    /// pair of weight and basis.
    fn pack(&mut self, circuit: &Circuit) {
        let circuit = circuit.weights();
        let mut weights: Vec<Vec<([usize; 2], usize)>> = vec![Vec::new(); circuit.len()];
        let mut leaves: Vec<Vec<usize>> = vec![Vec::new(); circuit.len()];
        for step in self.program.steps() {
            let matrix = |w: usize| match circuit.get(w) {
                Some(w) => w.to_matrix::<Complex64>().into_owned(),
                None => Matrix::identity(step.width),
            };
            let shape = match &step.kind {
                StepKind::Leaf { basis, weight, .. } => {
                    let same = |&leaf: &usize| self.leaves[leaf].basis == *basis;
                    let known = weight.and_then(|w| leaves[w].iter().copied().find(same));
                    self.leaf_of.push(known.unwrap_or(self.leaves.len()));
                    if known.is_none() {
                        if let Some(w) = weight {
                            leaves[*w].push(self.leaves.len());
                        }
                        self.leaves.push(Leaf::new::<C>(basis, weight.map(matrix)));
                    }
                    None
                }
                StepKind::Hadamard { .. } => None,
                StepKind::Kronecker { inputs, weight } => {
                    Some((*weight, inputs.map(|input| self.program.width(input))))
                }
                StepKind::Sum { input, weight } => Some((*weight, [self.program.width(*input), 1])),
            };
            let index = shape.map(|(weight, shape)| {
                let packed = weights.get(weight).into_iter().flatten();
                let known = packed.copied().find(|(packed, _)| *packed == shape);
                known.map_or(self.weights.len(), |(_, index)| index)
            });
            if let Some((weight, shape)) = shape
                && index == Some(self.weights.len())
            {
                if let Some(packed) = weights.get_mut(weight) {
                    packed.push((shape, self.weights.len()));
                }
                self.weights.push(NodeWeight::new(matrix(weight), shape, C));
            }
            self.weight_of.push(index);
        }
    }

    /// The weight of a step that is a sum or a Kronecker product.
    pub(crate) fn weight(&self, step: usize) -> &NodeWeight<F> {
        match self.weight_of[step] {
            Some(weight) => &self.weights[weight],
            None => unreachable!("leaves keep their weight, and Hadamard products have none"),
        }
    }

    /// The weights of all sums and Kronecker products.
    #[cfg(feature = "cuda")]
    pub(crate) fn weights(&self) -> &[NodeWeight<F>] {
        &self.weights
    }

    /// The index in [`weights`](Self::weights) of the weight of a step.
    #[cfg(feature = "cuda")]
    pub(crate) fn weight_index(&self, step: usize) -> Option<usize> {
        self.weight_of[step]
    }

    /// All distinct leaves.
    #[cfg(feature = "cuda")]
    pub(crate) fn leaves(&self) -> &[Leaf<F>] {
        &self.leaves
    }

    /// The index in [`leaves`](Self::leaves) of a leaf of the program.
    #[cfg(feature = "cuda")]
    pub(crate) fn leaf_index(&self, leaf: usize) -> usize {
        self.leaf_of[leaf]
    }

    /// A leaf, given its position among the leaves of the program.
    pub(crate) fn leaf(&self, leaf: usize) -> &Leaf<F> {
        &self.leaves[self.leaf_of[leaf]]
    }
}

impl<F: Real> Leaf<F> {
    fn new<const C: bool>(basis: &Arc<Basis>, weight: Option<Matrix<Complex64>>) -> Self {
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
            (Some(w), None) if C => Some(PackedWeight::plain(dense(w), Uses::PURE)),
            (Some(w), None) => Some(PackedWeight::plain(dense(&w.map(|z| z.re)), Uses::PURE)),
            _ => None,
        };
        let needs_rescale = columns
            .as_ref()
            .is_some_and(|c| c.chunks_exact(width * planes(C)).any(|c| !largest(c).is_moderate()));
        let (basis, amplitudes) = (basis.clone(), OnceLock::new());
        Self { basis, weight, packed, columns, amplitudes, needs_rescale, is_output: false }
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
    if let (Some(w), Basis::Indicator(_)) = (weight, basis) {
        // Read a column of the weight. A product with a vector of mostly zeros would take time
        // quadratic in the size of the domain.
        return (0..w.rows()).map(|k| w[(k, x as usize)]).collect();
    }
    let mut f = vec![Complex64::ZERO; basis.width()];
    basis.evaluate(x, &mut f);
    match weight {
        Some(w) => w.times_vector(&f),
        None => f,
    }
}

//! A block of rows with holes: the memory of the messages and environments of every step.

use super::Weights;
use super::layout::{Places, layout};
use crate::engine::lanes::tile_len;
use crate::engine::{Batch, Buffer, Kernels, Real, WeightGradient};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::program::{Program, Step, StepKind};

/// The numbers of one step, of vectors and of matrices.
#[derive(Debug)]
pub(super) struct Tiles<F: Real> {
    pub(super) values: [Buffer<F>; 2],
    /// By the numbers *before* they were multiplied with their factors: gradients by vectors, and twice the environments
    /// of matrices.
    pub(super) environments: [Buffer<F>; 2],
    /// For each lane the power of two that its numbers were multiplied with.
    pub(super) factors: [Vec<F>; 2],
    /// The basis functions below a leaf's weight, where they are not indicators.
    pub(super) functions: Buffer<F>,
}

/// The gradient by one weight, of all but leaves.
#[derive(Debug)]
pub(super) struct Gradient<F: Real> {
    pub(super) sum: WeightGradient<F>,
    /// With its last two indices exchanged.
    pub(super) exchanged: Option<WeightGradient<F>>,
}

#[derive(Debug)]
pub(super) struct Block<F: Real> {
    pub(super) indices: Vec<usize>,
    pub(super) places: Vec<Places>,
    pub(super) steps: Vec<Tiles<F>>,
    pub(super) gradients: Vec<Option<Gradient<F>>>,
    /// Σ E / p over the rows that know nothing of a step, where that is not the identity.
    pub(super) unknown: Vec<Option<Matrix<Complex64>>>,
    /// log₂ of what has been divided out of each row's p.
    pub(super) log2: Vec<i64>,
    pub(super) logs: Vec<f64>,
    /// Rows of whose digits so many have canceled that they need more.
    pub(super) is_doubtful: Vec<bool>,
    pub(super) scratch: [Buffer<F>; 6],
}

impl<F: Real> Default for Block<F> {
    fn default() -> Self {
        Self {
            indices: Vec::new(),
            places: Vec::new(),
            steps: Vec::new(),
            gradients: Vec::new(),
            unknown: Vec::new(),
            log2: Vec::new(),
            logs: Vec::new(),
            is_doubtful: Vec::new(),
            scratch: empty(),
        }
    }
}

pub(super) fn empty<F: Real, const N: usize>() -> [Buffer<F>; N] {
    std::array::from_fn(|_| Buffer::zeros(0))
}

impl<F: Real> Block<F> {
    /// Takes up other rows, in the memory of those before.
    pub(super) fn load<T: Scalar, const C: bool>(
        &mut self,
        weights: &Weights<'_, F, T, C>,
        rows: &Batch,
        indices: &[usize],
        with_gradients: bool,
    ) {
        let program = weights.program;
        let count = program.steps().len();
        self.places = layout(program, rows, indices, weights.partition.is_orthonormal(), F::LANES);
        self.indices = indices.to_vec();
        self.log2 = vec![0; indices.len()];
        self.is_doubtful = vec![false; indices.len()];
        self.unknown = vec![None; count];
        self.steps.resize_with(count, || Tiles {
            values: empty(),
            environments: empty(),
            factors: [Vec::new(), Vec::new()],
            functions: Buffer::zeros(0),
        });
        let mut numbers = 0;
        let steps = self.steps.iter_mut().zip(&self.places).zip(program.steps());
        for (index, ((tiles, places), step)) in steps.enumerate() {
            tiles.make_room(C, step, places.counts);
            if with_gradients {
                tiles.clear_environments(C, step, places, index + 1 == count);
            }
            numbers = numbers.max(scratch_numbers::<F, C>(program, step));
        }
        self.scratch.iter_mut().for_each(|s| s.grow(tile_len::<F>(C, numbers)));
        self.gradients.resize_with(program.num_weights(), || None);
        for gradient in self.gradients.iter_mut().flatten() {
            gradient.sum.clear();
            gradient.exchanged.iter_mut().for_each(WeightGradient::clear);
        }
    }

    /// The rows that need more digits, by their places.
    pub(super) fn doubtful(&self) -> impl Iterator<Item = usize> {
        self.is_doubtful.iter().enumerate().filter(|(_, is)| **is).map(|(row, _)| row)
    }
}

/// The numbers of scratch memory that a step needs at most.
fn scratch_numbers<F: Real, const C: bool>(program: &Program, step: &Step) -> usize {
    let k = step.width;
    let (shape, is_product) = match &step.kind {
        StepKind::Leaf { .. } => return k * k,
        StepKind::Kronecker { inputs, .. } => (inputs.map(|i| program.steps()[i].width), true),
        StepKind::Hadamard { .. } => ([k, k], false),
        StepKind::Sum { input, .. } => ([program.steps()[*input].width, 1], false),
    };
    let [k1, k2] = shape;
    let shape = [k, k1, k2];
    let mut most = (k1 * k1).max(k2 * k2).max(k * k1);
    most = most.max(Kernels::<F, C>::gradient_scratch(shape));
    if !is_product {
        return most.max(Kernels::<F, C>::congruence_reverse_scratch(shape));
    }
    most.max(k * k2)
        .max(Kernels::<F, C>::mixed_scratch(shape))
        .max(Kernels::<F, C>::mixed_reverse_scratch(shape))
        .max(Kernels::<F, C>::block_reverse_scratch([k, k1.max(k2)]))
}

impl<F: Real> Tiles<F> {
    fn make_room(&mut self, complex: bool, step: &Step, counts: [usize; 2]) {
        let k = step.width;
        for (n, (numbers, tiles)) in [k, k * k].into_iter().zip(counts).enumerate() {
            let len = tiles * tile_len::<F>(complex, numbers);
            self.values[n].grow(len);
            self.factors[n].clear();
            self.factors[n].resize(tiles * F::LANES, F::ONE);
        }
        self.functions.grow(counts[0] * tile_len::<F>(complex, step.functions()));
    }

    /// Zeros for lanes without a row, and at the output for rows that have no gradient; all others will be set.
    fn clear_environments(&mut self, complex: bool, step: &Step, places: &Places, is_output: bool) {
        let k = step.width;
        let lens = [k, k * k].map(|numbers| tile_len::<F>(complex, numbers));
        for (n, len) in lens.into_iter().enumerate() {
            self.environments[n].grow(places.counts[n] * len);
        }
        for tile in places.tiles.iter().filter(|t| is_output || t.rows.len() < F::LANES) {
            let n = usize::from(!tile.is_pure());
            self.environments[n][tile.index * lens[n]..(tile.index + 1) * lens[n]].fill(F::ZERO);
        }
    }
}

/// The part of a buffer that is one tile of so many numbers.
pub(super) fn tile_of<F: Real, const C: bool>(
    numbers: usize,
    index: usize,
) -> std::ops::Range<usize> {
    let len = tile_len::<F>(C, numbers);
    index * len..(index + 1) * len
}

//! A block of rows: its schedule, and the messages and environments of every step.

use super::Pass;
use crate::algebra::Kind;
use crate::engine::lanes::tile_len;
use crate::engine::{Batch, Buffer, Kernels, Real, WeightGradient};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::program::{Program, Step, StepKind};
use crate::schedule::{Grouping, Places, Planner, Schedule, Tile};

/// Whether rows may have missing values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    /// All cells have values. In monotonic circuits, missing values count as values: their leaves are
    /// ones.
    Complete,
    /// Values may be missing, or restricted to a part of their domain.
    Any,
}

/// The numbers of one step, for vectors and for matrices.
#[derive(Debug)]
pub(super) struct Tiles<F: Real> {
    pub(super) values: [Buffer<F>; 2],
    /// The gradients by vectors, and twice the environments of matrices. They refer to the numbers
    /// *before* these were multiplied by their factors.
    pub(super) environments: [Buffer<F>; 2],
    /// For each lane, the power of two that its numbers were multiplied by.
    pub(super) factors: [Vec<F>; 2],
    /// The values of the basis functions below a leaf's weight, unless they are indicators.
    pub(super) functions: Buffer<F>,
}

/// The gradient by the weight of a sum or product.
#[derive(Debug)]
pub(super) struct Gradient<F: Real> {
    pub(super) sum: WeightGradient<F>,
    /// A part of the gradient whose last two indices are exchanged.
    pub(super) exchanged: Option<WeightGradient<F>>,
}

impl<F: Real> Gradient<F> {
    pub(super) fn kronecker(complex: bool, shape: [usize; 3]) -> Self {
        Self { sum: WeightGradient::kronecker(complex, shape), exchanged: None }
    }

    pub(super) fn plain(complex: bool, shape: [usize; 2]) -> Self {
        Self { sum: WeightGradient::plain(complex, shape), exchanged: None }
    }
}

#[derive(Debug)]
pub(super) struct Block<F: Real> {
    pub(super) indices: Vec<usize>,
    /// The values of all variables, `[variable][row]`.
    values: Vec<f64>,
    pub(super) schedule: Schedule,
    pub(super) steps: Vec<Tiles<F>>,
    pub(super) gradients: Vec<Option<Gradient<F>>>,
    /// For each step, Σ E / p over the rows without evidence, unless their message is an identity.
    pub(super) unknown: Vec<Option<Matrix<Complex64>>>,
    /// log₂ of the factor that has been divided out of each row's p.
    pub(super) log2: Vec<i64>,
    /// The trace of each row's message at the output.
    pub(super) traces: Vec<f64>,
    pub(super) logs: Vec<f64>,
    /// Whether each row has lost too many digits to cancellation.
    pub(super) is_imprecise: Vec<bool>,
    pub(super) scratch: [Buffer<F>; 6],
}

impl<F: Real> Default for Block<F> {
    fn default() -> Self {
        Self {
            indices: Vec::new(),
            values: Vec::new(),
            schedule: Schedule::default(),
            steps: Vec::new(),
            gradients: Vec::new(),
            unknown: Vec::new(),
            log2: Vec::new(),
            traces: Vec::new(),
            logs: Vec::new(),
            is_imprecise: Vec::new(),
            scratch: empty(),
        }
    }
}

fn empty<F: Real, const N: usize>() -> [Buffer<F>; N] {
    std::array::from_fn(|_| Buffer::zeros(0))
}

impl<F: Real> Block<F> {
    /// Replaces the rows, and reuses the memory.
    pub(super) fn load<T: Scalar, const C: bool>(
        &mut self,
        pass: &Pass<'_, F, T, C>,
        rows: &Batch,
        indices: &[usize],
        cells: Completeness,
        with_gradients: bool,
    ) {
        let (program, steps) = (pass.program, pass.program.steps().len());
        let count = indices.len();
        let grouping = Grouping::Shared { orthonormal: pass.partition.is_orthonormal() };
        let mut planner = Planner::new(grouping, F::LANES);
        planner.begin(count);
        self.schedule = match cells {
            Completeness::Complete => Schedule::complete(&mut planner),
            Completeness::Any => {
                let cell = |row: usize, variable: usize| rows.kind(indices[row], variable);
                Schedule::new(program, &mut planner, cell)
            }
        };
        self.indices.clear();
        self.indices.extend_from_slice(indices);
        self.values.resize(count * rows.num_variables(), 0.0);
        for (variable, values) in self.values.chunks_exact_mut(count.max(1)).enumerate() {
            rows.gather(variable, indices, values);
        }
        self.log2.clear();
        self.log2.resize(count, 0);
        self.is_imprecise.clear();
        self.is_imprecise.resize(count, false);
        self.unknown.clear();
        self.unknown.resize(steps, None);
        self.steps.resize_with(steps, || Tiles {
            values: empty(),
            environments: empty(),
            factors: [Vec::new(), Vec::new()],
            functions: Buffer::zeros(0),
        });
        let mut numbers = 0;
        for (index, (tiles, step)) in self.steps.iter_mut().zip(program.steps()).enumerate() {
            let places = self.schedule.at(index);
            tiles.make_room(C, step, places.counts);
            if with_gradients {
                tiles.clear_environments(C, step, places, index + 1 == steps);
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

    /// The values of a variable, in the order of the pure tiles of its leaf.
    pub(super) fn leaf_values(&self, places: &Places, variable: usize) -> Vec<f64> {
        let count = self.indices.len();
        let values = &self.values[variable * count..(variable + 1) * count];
        if self.schedule.is_complete() {
            return values.to_vec();
        }
        let pure = places.tiles().filter(Tile::is_pure);
        pure.flat_map(|t| t.rows).map(|&row| values[row as usize]).collect()
    }

    /// The positions of the rows that have lost too many digits.
    pub(super) fn imprecise(&self) -> impl Iterator<Item = usize> {
        self.is_imprecise.iter().enumerate().filter(|(_, is)| **is).map(|(row, _)| row)
    }
}

/// The maximum number of numbers of scratch memory that a step needs.
fn scratch_numbers<F: Real, const C: bool>(program: &Program, step: &Step) -> usize {
    let k = step.width;
    let (shape, is_product) = match &step.kind {
        StepKind::Leaf { .. } => return k * k,
        StepKind::Kronecker { inputs, .. } => (inputs.map(|i| program.width(i)), true),
        StepKind::Hadamard { .. } => ([k, k], false),
        StepKind::Sum { input, .. } => ([program.width(*input), 1], false),
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
        for (n, kind) in [Kind::Pure, Kind::Mixed].into_iter().enumerate() {
            self.values[n].grow(counts[n] * tile_len::<F>(complex, kind.numbers(step.width)));
            self.factors[n].clear();
            self.factors[n].resize(counts[n] * F::LANES, F::ONE);
        }
        self.functions.grow(counts[0] * tile_len::<F>(complex, step.functions()));
    }

    /// Sets to zero the lanes without a row, and all lanes of the output, where rows may have no
    /// gradient. All others will be set.
    fn clear_environments(&mut self, complex: bool, step: &Step, places: &Places, is_output: bool) {
        let lens =
            [Kind::Pure, Kind::Mixed].map(|kind| tile_len::<F>(complex, kind.numbers(step.width)));
        for (n, len) in lens.into_iter().enumerate() {
            self.environments[n].grow(places.counts[n] * len);
        }
        for tile in places.tiles().filter(|t| is_output || t.rows.len() < F::LANES) {
            let n = usize::from(!tile.is_pure());
            self.environments[n][tile.index * lens[n]..(tile.index + 1) * lens[n]].fill(F::ZERO);
        }
    }

    /// The factors of one tile of vectors (0) or matrices (1).
    pub(super) fn tile_factors(&self, n: usize, tile: usize) -> &[F] {
        &self.factors[n][tile * F::LANES..(tile + 1) * F::LANES]
    }
}

/// The range of one tile in a buffer of tiles with this many numbers.
pub(super) fn tile_of<F: Real, const C: bool>(
    numbers: usize,
    index: usize,
) -> std::ops::Range<usize> {
    let len = tile_len::<F>(C, numbers);
    index * len..(index + 1) * len
}

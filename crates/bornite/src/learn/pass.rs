//! The forward and reverse pass of learning, on complete rows: log ‖c(x)‖² and its gradient by every weight.
//!
//! Rows go through in chunks of a few tiles, in parallel; each chunk keeps its vectors and their gradients. The weight
//! gradients are then summed over all chunks in order, one weight a task, so that no result depends on the number of
//! threads.

use rayon::prelude::*;

use super::chunk::{Chunk, add_columns};
use super::holes::Blocks;
use crate::engine::lanes::{planes, tile_len};
use crate::engine::{
    Batch, Buffer, Kernels, PackedWeight, Real, Simd, Uses, WeightGradient, dense,
};
use crate::linalg::{Matrix, Scalar};
use crate::program::{Operand, Program, StepKind};

/// Tiles to a chunk.
const TILES: usize = 4;

/// A weight in the order in which a pass reads it.
#[derive(Debug)]
pub(super) enum Packed<F> {
    /// Column after column, of each number the real part and then the imaginary one.
    Columns {
        width: usize,
        data: Vec<F>,
    },
    Weight(PackedWeight<F>),
}

impl<F: Real> Packed<F> {
    pub(super) fn new<T: Scalar>(w: &Matrix<T>, operand: Operand, uses: Uses) -> Self {
        match operand {
            Operand::Indicators => Self::columns(w, Vec::new()),
            Operand::Vector => Self::Weight(PackedWeight::plain(dense(w), uses)),
            Operand::Pair(k1, k2) => {
                Self::Weight(PackedWeight::kronecker(dense(w), [k1, k2], uses))
            }
        }
    }

    fn columns<T: Scalar>(w: &Matrix<T>, mut data: Vec<F>) -> Self {
        let (width, parts) = (w.rows(), planes(T::IS_COMPLEX));
        data.resize(w.cols() * parts * width, F::ZERO);
        for (k, row) in T::parts(w.data()).chunks_exact((w.cols() * parts).max(1)).enumerate() {
            let columns = data.chunks_exact_mut(parts * width);
            for (column, x) in columns.zip(row.chunks_exact(parts)) {
                for (plane, &x) in x.iter().enumerate() {
                    column[k * parts + plane] = F::from_f64(x);
                }
            }
        }
        Self::Columns { width, data }
    }

    /// The same weight with other numbers.
    fn refill<T: Scalar>(&mut self, w: &Matrix<T>, operand: Operand, uses: Uses) {
        *self = match self {
            Self::Columns { data, .. } => Self::columns(w, std::mem::take(data)),
            Self::Weight(_) => Self::new(w, operand, uses),
        };
    }

    pub(super) fn weight(&self) -> &PackedWeight<F> {
        match self {
            Self::Weight(packed) => packed,
            Self::Columns { .. } => unreachable!("only leaves of indicators have columns"),
        }
    }
}

/// Packed weights and the memory of the passes through them.
#[derive(Debug)]
pub(crate) struct Workspace<F: Real> {
    pub(super) packed: Vec<Packed<F>>,
    uses: Uses,
    pub(super) blocks: Blocks<F>,
    chunks: Vec<Chunk<F>>,
    /// Chunks of the last pass.
    used: usize,
}

impl<F: Real> Workspace<F> {
    /// For complete rows, or with holes.
    pub(crate) fn new<T: Scalar>(program: &Program, weights: &[&Matrix<T>], holes: bool) -> Self {
        let uses = if holes { Uses::ALL } else { Uses::LEARN };
        let pack = |(n, w): (usize, &&Matrix<T>)| Packed::new(w, program.operand_of(n), uses);
        let packed = weights.par_iter().enumerate().map(pack).collect();
        Self { packed, uses, blocks: Blocks::default(), chunks: Vec::new(), used: 0 }
    }

    /// Takes other weights.
    pub(super) fn refill<T: Scalar>(&mut self, program: &Program, weights: &[&Matrix<T>]) {
        let packed = self.packed.par_iter_mut().zip(weights).enumerate();
        packed.for_each(|(n, (packed, w))| packed.refill(w, program.operand_of(n), self.uses));
    }

    /// log ‖c(x)‖² of every row named; keeps what [`weight_gradient`](Self::weight_gradient) needs for the gradient of
    /// Σ `row_weight` log ‖c(x)‖². The rows must be complete.
    pub(crate) fn reverse<const C: bool>(
        &mut self,
        program: &Program,
        rows: &Batch,
        indices: &[usize],
        row_weight: f64,
    ) -> Vec<f64> {
        let kernels = Kernels::<F, C>::new(Simd::default());
        let packed = &self.packed;
        self.used = indices.len().div_ceil(TILES * F::LANES);
        while self.chunks.len() < self.used {
            self.chunks.push(Chunk::empty());
        }
        let chunks = self.chunks.par_iter_mut().zip(indices.par_chunks(TILES * F::LANES));
        chunks.for_each(|(chunk, indices)| {
            chunk.load::<C>(program, rows, indices, true);
            chunk.forward::<C>(program, kernels, packed);
            chunk.backward::<C>(program, kernels, packed, row_weight);
        });
        self.chunks().iter().flat_map(|c| c.log_density.iter().copied()).collect()
    }

    /// log ‖c(x)‖² of every row named; the rows must be complete.
    pub(crate) fn log_density<const C: bool>(
        &self,
        program: &Program,
        rows: &Batch,
        indices: &[usize],
    ) -> Vec<f64> {
        let kernels = Kernels::<F, C>::new(Simd::default());
        let chunks: Vec<Vec<f64>> = indices
            .par_chunks(TILES * F::LANES)
            .map_init(Chunk::empty, |chunk, indices| {
                chunk.load::<C>(program, rows, indices, false);
                chunk.forward::<C>(program, kernels, &self.packed);
                std::mem::take(&mut chunk.log_density)
            })
            .collect();
        chunks.concat()
    }

    fn chunks(&self) -> &[Chunk<F>] {
        &self.chunks[..self.used]
    }

    /// The gradient of the last pass by one weight, of this many rows and columns: ∂/∂re + i ∂/∂im.
    pub(crate) fn weight_gradient<T: Scalar, const C: bool>(
        &self,
        program: &Program,
        weight: usize,
        [rows, cols]: [usize; 2],
    ) -> Matrix<T> {
        let mut out = Matrix::zeros(rows, cols);
        let mut tiled = match program.operand_of(weight) {
            Operand::Indicators => {
                for &step in program.users(weight) {
                    let StepKind::Leaf { variable, .. } = program.steps()[step].kind else {
                        unreachable!("only leaves have columns")
                    };
                    for chunk in self.chunks() {
                        let values = chunk.values(variable);
                        add_columns::<F, T, C>(values, &chunk.gradients[step], &mut out);
                    }
                }
                return out;
            }
            Operand::Vector => WeightGradient::plain(C, [rows, cols]),
            Operand::Pair(k1, k2) => WeightGradient::kronecker(C, [rows, k1, k2]),
        };
        let kernels = Kernels::<F, C>::new(Simd::default());
        let scratch = tile_len::<F>(C, Kernels::<F, C>::gradient_scratch(tiled.shape()));
        let mut scratch = Buffer::zeros(scratch);
        for &step in program.users(weight) {
            for chunk in self.chunks() {
                let g = &chunk.gradients[step];
                match &program.steps()[step].kind {
                    StepKind::Leaf { .. } => {
                        kernels.sum_gradient(g, &chunk.functions[step], &mut scratch, &mut tiled);
                    }
                    StepKind::Kronecker { inputs: [a, b], .. } => {
                        let vectors = [&*chunk.vectors[*a], &*chunk.vectors[*b]];
                        kernels.kron_sum_gradient(g, vectors, &mut scratch, &mut tiled);
                    }
                    StepKind::Sum { input, .. } => {
                        kernels.sum_gradient(g, &chunk.vectors[*input], &mut scratch, &mut tiled);
                    }
                    StepKind::Hadamard { .. } => unreachable!("it has no weight"),
                }
            }
        }
        tiled.add_to(T::parts_mut(out.data_mut()));
        out
    }
}

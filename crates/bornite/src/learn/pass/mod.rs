//! The forward and reverse passes of learning: log ∫ ‖c(y, z)‖² dz of every row, where z are its
//! missing values, and the gradient by every weight.
//!
//! Every step sends M = ∫ ℓ ℓᴴ over its missing variables, and receives the environment E with
//! p = Σ E[k, k′] M[k, k′]. Since M = W N Wᴴ, the gradient by W is 2 Eᵀ W N / p. If all variables of
//! a step have values, M = v vᴴ: the step sends v and receives its gradient 2 Eᵀ v / p. Complete rows
//! have only vectors.
//!
//! If no variable of a step has a value, M does not depend on the row. For semi-unitary weights, it
//! is always I, so nothing is sent down. For other weights, the environments of all rows are summed
//! and sent down once.
//!
//! Rows are processed in blocks, in parallel. A block schedules its rows, and keeps the messages and
//! environments of every step. A block with matrices sums its own gradients; the gradients of
//! complete rows are summed over all blocks, with one task per weight. Sums are in the order of the
//! blocks, so results do not depend on the number of threads.
//!
//! A small matrix loses digits to cancellation, which a small vector does not. Therefore, rows that
//! are nearly impossible are computed again in double precision.

mod backward;
mod block;
mod forward;
mod gradient;
mod lanes;
mod packed;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::partition::{Partition, give};
use crate::engine::lanes::tile_len;
use crate::engine::{Batch, Kernels, Real, Simd, Uses};
use crate::linalg::{Matrix, Scalar};
use crate::program::Program;
use block::{Block, Completeness};
use packed::Packed;

/// The maximum number of tiles in a block.
const MAX_TILES: usize = 4;

/// The maximum size in bytes of the matrices of a block with more than one tile.
const MAX_BYTES: usize = 1 << 26;

/// The number of steps that share a weight and whose gradients are summed in one task.
const STEPS_PER_TASK: usize = 16;

/// A circuit with its weights, ready for rows.
#[derive(Debug)]
struct Pass<'a, F, T, const C: bool> {
    program: &'a Program,
    partition: &'a Partition<'a, T>,
    packed: &'a [Packed<F>],
    kernels: Kernels<F, C>,
}

impl<'a, F: Real, T: Scalar, const C: bool> Pass<'a, F, T, C> {
    fn new(partition: &'a Partition<'a, T>, packed: &'a [Packed<F>]) -> Self {
        let kernels = Kernels::new(Simd::default());
        Self { program: partition.program, partition, packed, kernels }
    }

    /// The number of rows in a block, in whole tiles.
    fn block_len(&self, cells: Completeness) -> usize {
        let tiles = match cells {
            Completeness::Complete => MAX_TILES,
            Completeness::Any => {
                let numbers: usize =
                    self.program.steps().iter().map(|step| step.width * step.width).sum();
                let bytes = 2 * tile_len::<F>(C, numbers) * size_of::<F>();
                (MAX_BYTES / bytes.max(1)).clamp(1, MAX_TILES)
            }
        };
        tiles * F::LANES
    }

    /// log ∫ ‖c‖² of the given rows.
    fn logs(&self, rows: &Batch, indices: &[usize], cells: Completeness) -> Vec<f64> {
        let blocks: Vec<(Vec<f64>, Vec<usize>)> = indices
            .par_chunks(self.block_len(cells))
            .map_init(Block::default, |block, indices| {
                block.load(self, rows, indices, cells, false);
                block.forward(self, rows);
                (std::mem::take(&mut block.logs), block.imprecise().collect())
            })
            .collect();
        let (mut logs, mut imprecise) = (Vec::with_capacity(indices.len()), Vec::new());
        for (more, rows) in blocks {
            imprecise.extend(rows.into_iter().map(|row| logs.len() + row));
            logs.extend(more);
        }
        let ask = |exact: &Pass<'_, f64, T, C>, indices: &[usize]| exact.logs(rows, indices, cells);
        self.repeat(&imprecise, indices, &mut logs, ask);
        logs
    }

    /// log ∫ ‖c‖² of the given rows. Adds the gradient of `row_weight` Σ log ∫ ‖c‖² by every weight,
    /// ∂/∂re + i ∂/∂im, and the environments that steps without evidence receive.
    fn reverse(
        &self,
        rows: &Batch,
        indices: &[usize],
        row_weight: f64,
        blocks: &mut Vec<Block<F>>,
        (gradients, unknown): (&mut [Matrix<T>], &mut [Option<Matrix<T>>]),
    ) -> Vec<f64> {
        let threads = rayon::current_num_threads().max(1);
        let len = self.block_len(Completeness::Any);
        blocks.resize_with(blocks.len().max(threads), Block::default);
        let (mut logs, mut imprecise) = (Vec::with_capacity(indices.len()), Vec::new());
        // One block per thread at a time, because blocks need much memory.
        for indices in indices.chunks(len * threads) {
            let blocks = &mut blocks[..indices.len().div_ceil(len)];
            let parts = blocks.par_iter_mut().zip(indices.par_chunks(len));
            parts.for_each(|(block, indices)| {
                block.load(self, rows, indices, Completeness::Any, true);
                block.forward(self, rows);
                block.backward(self, row_weight);
            });
            gradients.par_iter_mut().enumerate().for_each(|(weight, out)| {
                for block in &*blocks {
                    block.add_summed_gradient(self, rows, weight, out);
                    let block = std::slice::from_ref(block);
                    let users = (weight, self.program.users(weight));
                    gradient::add_pure(self.kernels, self.program, block, users, out);
                }
            });
            for block in blocks {
                imprecise.extend(block.imprecise().map(|row| logs.len() + row));
                logs.append(&mut block.logs);
                for (step, received) in block.unknown.iter().enumerate() {
                    if let Some(e) = received {
                        give(unknown, step, e.map(T::from_complex));
                    }
                }
            }
        }
        self.repeat(&imprecise, indices, &mut logs, |exact, indices| {
            let to = (gradients, unknown);
            exact.reverse(rows, indices, row_weight, &mut Vec::new(), to)
        });
        logs
    }

    /// Repeats rows that have lost too many digits, in double precision.
    fn repeat(
        &self,
        imprecise: &[usize],
        indices: &[usize],
        logs: &mut [f64],
        ask: impl FnOnce(&Pass<'_, f64, T, C>, &[usize]) -> Vec<f64>,
    ) {
        if imprecise.is_empty() {
            return;
        }
        let workspace = Workspace::<f64>::new(self.program, &self.partition.weights, true);
        let exact = Pass::<f64, T, C>::new(self.partition, &workspace.packed);
        let indices: Vec<usize> = imprecise.iter().map(|&row| indices[row]).collect();
        for (&row, log) in imprecise.iter().zip(ask(&exact, &indices)) {
            logs[row] = log;
        }
    }
}

/// Packed weights.
#[derive(Debug)]
pub(crate) struct Workspace<F: Real> {
    packed: Vec<Packed<F>>,
    uses: Uses,
}

/// The memory of passes through a [`Workspace`], which holds the results of the last pass.
#[derive(Debug)]
pub(crate) struct Memory<F: Real> {
    /// Blocks of complete rows. The first `used` of them are those of the last pass.
    complete: Vec<Block<F>>,
    used: usize,
    /// Blocks of other rows.
    others: Vec<Block<F>>,
}

impl<F: Real> Default for Memory<F> {
    fn default() -> Self {
        Self { complete: Vec::new(), used: 0, others: Vec::new() }
    }
}

impl<F: Real> Workspace<F> {
    /// Packs weights for complete rows, or also for rows with missing values.
    pub(crate) fn new<T: Scalar>(program: &Program, weights: &[&Matrix<T>], missing: bool) -> Self {
        let uses = if missing { Uses::ALL } else { Uses::LEARN };
        let pack = |(n, w): (usize, &&Matrix<T>)| Packed::new(w, program.operand_of(n), uses);
        Self { packed: weights.par_iter().enumerate().map(pack).collect(), uses }
    }

    /// Replaces the weights.
    pub(super) fn refill<T: Scalar>(&mut self, program: &Program, weights: &[&Matrix<T>]) {
        let packed = self.packed.par_iter_mut().zip(weights).enumerate();
        packed.for_each(|(n, (packed, w))| packed.refill(w, program.operand_of(n), self.uses));
    }

    /// log ‖c(x)‖² of the given rows, which must be complete. [`Memory::weight_gradient`] then
    /// returns the gradient of Σ `row_weight` log ‖c(x)‖².
    pub(crate) fn reverse<T: Scalar, const C: bool>(
        &self,
        partition: &Partition<'_, T>,
        rows: &Batch,
        indices: &[usize],
        row_weight: f64,
        memory: &mut Memory<F>,
    ) -> Vec<f64> {
        let pass = Pass::<F, T, C>::new(partition, &self.packed);
        let len = pass.block_len(Completeness::Complete);
        memory.used = indices.len().div_ceil(len);
        memory.complete.resize_with(memory.complete.len().max(memory.used), Block::default);
        let blocks = memory.complete.par_iter_mut().zip(indices.par_chunks(len));
        blocks.for_each(|(block, indices)| {
            block.load(&pass, rows, indices, Completeness::Complete, true);
            block.forward(&pass, rows);
            block.backward(&pass, row_weight);
        });
        memory.complete[..memory.used].iter().flat_map(|b| b.logs.iter().copied()).collect()
    }

    /// log ∫ ‖c‖² of the given rows, complete or not. Adds the gradient of Σ `row_weight` log ∫ ‖c‖²
    /// by every weight, and the environments that steps without evidence receive.
    pub(crate) fn reverse_missing<T: Scalar, const C: bool>(
        &self,
        partition: &Partition<'_, T>,
        (rows, indices): (&Batch, &[usize]),
        row_weight: f64,
        memory: &mut Memory<F>,
        to: (&mut [Matrix<T>], &mut [Option<Matrix<T>>]),
    ) -> Vec<f64> {
        let pass = Pass::<F, T, C>::new(partition, &self.packed);
        pass.reverse(rows, indices, row_weight, &mut memory.others, to)
    }

    /// log ‖c(x)‖² of the given rows, which must be complete.
    pub(crate) fn logs<T: Scalar, const C: bool>(
        &self,
        partition: &Partition<'_, T>,
        rows: &Batch,
        indices: &[usize],
    ) -> Vec<f64> {
        Pass::<F, T, C>::new(partition, &self.packed).logs(rows, indices, Completeness::Complete)
    }

    /// log ∫ ‖c‖² of the given rows, complete or not.
    pub(crate) fn logs_missing<T: Scalar, const C: bool>(
        &self,
        partition: &Partition<'_, T>,
        rows: &Batch,
        indices: &[usize],
    ) -> Vec<f64> {
        Pass::<F, T, C>::new(partition, &self.packed).logs(rows, indices, Completeness::Any)
    }
}

impl<F: Real> Memory<F> {
    /// The gradient of the last [`reverse`](Workspace::reverse) by one weight with this shape,
    /// ∂/∂re + i ∂/∂im.
    pub(crate) fn weight_gradient<T: Scalar, const C: bool>(
        &self,
        program: &Program,
        weight: usize,
        [rows, cols]: [usize; 2],
    ) -> Matrix<T> {
        let kernels = Kernels::<F, C>::new(Simd::default());
        let part = |users: &[usize]| {
            let (mut out, blocks) = (Matrix::zeros(rows, cols), &self.complete[..self.used]);
            gradient::add_pure(kernels, program, blocks, (weight, users), &mut out);
            out
        };
        let parts: Vec<Matrix<T>> =
            program.users(weight).par_chunks(STEPS_PER_TASK).map(part).collect();
        let mut parts = parts.into_iter();
        let mut total = parts.next().unwrap_or_else(|| Matrix::zeros(rows, cols));
        for part in parts {
            total.data_mut().iter_mut().zip(part.data()).for_each(|(sum, &x)| *sum += x);
        }
        total
    }
}

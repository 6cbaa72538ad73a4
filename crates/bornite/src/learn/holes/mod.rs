//! The forward and reverse pass of learning on rows with holes: log ∫ ‖c(y, z)‖² dz and its gradient by every weight.
//!
//! Every step sends M = ∫ ℓ ℓᴴ over its unknown variables, and receives the E with p = Σ E[k, k′] M[k, k′]. From
//! M = W N Wᴴ the gradient by W is 2 Eᵀ W N / p. Where all variables of a step have values M = v vᴴ: then v is sent and its
//! gradient 2 Eᵀ v / p received, as on complete rows.
//!
//! Where no variable has a value, M does not depend on the row. It is I if the weights are semi-unitary, and no change
//! that keeps them so changes it: nothing is sent down. Otherwise the rows' E are summed, and sent down once.
//!
//! Rows go through in blocks, in parallel, and in a block those of one kind lie side by side in tiles. Each block sums its
//! own gradients, and these are summed in the order of the blocks: no result depends on the number of threads.
//!
//! The digits of a small matrix cancel where those of a small vector do not: a row that is nearly impossible is asked for
//! again in double precision.

mod block;
mod downward;
mod lanes;
mod layout;
#[cfg(test)]
mod tests;
mod upward;

use rayon::prelude::*;

use super::partition::{Partition, give};
use super::pass::{Packed, Workspace};
use crate::engine::lanes::tile_len;
use crate::engine::{Batch, Kernels, Real, Simd};
use crate::linalg::{Matrix, Scalar};
use crate::program::Program;
use block::Block;

/// Tiles of rows to a block at most.
const TILES: usize = 4;

/// Bytes of matrices to a block, where more than one tile would need more.
const BYTES: usize = 1 << 26;

/// The memory of the passes.
#[derive(Debug)]
pub(super) struct Blocks<F: Real>(Vec<Block<F>>);

impl<F: Real> Default for Blocks<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// What rows go through.
#[derive(Debug)]
pub(super) struct Weights<'a, F, T, const C: bool> {
    program: &'a Program,
    partition: &'a Partition<'a, T>,
    /// Packed for all uses.
    packed: &'a [Packed<F>],
    kernels: Kernels<F, C>,
}

impl<'a, F: Real, T: Scalar, const C: bool> Weights<'a, F, T, C> {
    pub(super) fn new(partition: &'a Partition<'a, T>, packed: &'a [Packed<F>]) -> Self {
        let kernels = Kernels::new(Simd::default());
        Self { program: partition.program, partition, packed, kernels }
    }

    /// Rows to a block: whole tiles of them.
    fn block_len(&self) -> usize {
        let numbers: usize = self.program.steps().iter().map(|step| step.width * step.width).sum();
        let bytes = 2 * tile_len::<F>(C, numbers) * size_of::<F>();
        (BYTES / bytes.max(1)).clamp(1, TILES) * F::LANES
    }

    /// log ∫ ‖c‖² of every row named.
    pub(super) fn logs(&self, rows: &Batch, indices: &[usize]) -> Vec<f64> {
        let blocks: Vec<(Vec<f64>, Vec<usize>)> = indices
            .par_chunks(self.block_len())
            .map_init(Block::default, |block, indices| {
                block.load(self, rows, indices, false);
                block.upward(self, rows);
                (block.logs.clone(), block.doubtful().collect())
            })
            .collect();
        let (mut logs, mut doubtful) = (Vec::with_capacity(indices.len()), Vec::new());
        for (more, rows) in blocks {
            doubtful.extend(rows.into_iter().map(|row| logs.len() + row));
            logs.extend(more);
        }
        self.again(&doubtful, indices, &mut logs, |exact, indices| exact.logs(rows, indices));
        logs
    }

    /// log ∫ ‖c‖² of every row named; adds the gradient of `row_weight` Σ log ∫ ‖c‖² by every weight, ∂/∂re + i ∂/∂im, and
    /// what the steps of which nothing is known receive.
    pub(super) fn reverse(
        &self,
        rows: &Batch,
        indices: &[usize],
        row_weight: f64,
        Blocks(blocks): &mut Blocks<F>,
        (gradients, unknown): (&mut [Matrix<T>], &mut [Option<Matrix<T>>]),
    ) -> Vec<f64> {
        let threads = rayon::current_num_threads().max(1);
        blocks.resize_with(blocks.len().max(threads), Block::default);
        let (mut logs, mut doubtful) = (Vec::with_capacity(indices.len()), Vec::new());
        // As many blocks at a time as there are threads: they need much memory.
        for indices in indices.chunks(self.block_len() * threads) {
            let blocks = &mut blocks[..indices.len().div_ceil(self.block_len())];
            let parts = blocks.par_iter_mut().zip(indices.par_chunks(self.block_len()));
            parts.for_each(|(block, indices)| {
                block.load(self, rows, indices, true);
                block.upward(self, rows);
                block.downward(self, row_weight);
            });
            gradients.par_iter_mut().enumerate().for_each(|(weight, out)| {
                for block in &*blocks {
                    block.add_gradient(self, rows, weight, out);
                }
            });
            for block in blocks {
                doubtful.extend(block.doubtful().map(|row| logs.len() + row));
                logs.append(&mut block.logs);
                for (step, received) in block.unknown.iter().enumerate() {
                    if let Some(e) = received {
                        give(unknown, step, e.map(T::from_complex));
                    }
                }
            }
        }
        self.again(&doubtful, indices, &mut logs, |exact, indices| {
            let to = (gradients, unknown);
            exact.reverse(rows, indices, row_weight, &mut Blocks::default(), to)
        });
        logs
    }

    /// Asks for doubtful rows again in double precision.
    fn again(
        &self,
        doubtful: &[usize],
        indices: &[usize],
        logs: &mut [f64],
        ask: impl FnOnce(&Weights<'_, f64, T, C>, &[usize]) -> Vec<f64>,
    ) {
        if doubtful.is_empty() {
            return;
        }
        let workspace = Workspace::<f64>::new(self.program, &self.partition.weights, true);
        let exact = Weights::<f64, T, C>::new(self.partition, &workspace.packed);
        let indices: Vec<usize> = doubtful.iter().map(|&row| indices[row]).collect();
        for (&row, log) in doubtful.iter().zip(ask(&exact, &indices)) {
            logs[row] = log;
        }
    }
}

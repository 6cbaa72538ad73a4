//! The gradients by weights from vectors, summed over the rows of many blocks in order.

use super::block::{Block, tile_of};
use crate::engine::lanes::{get, tile_len};
use crate::engine::{Buffer, Kernels, Real, WeightGradient};
use crate::linalg::{Matrix, Scalar};
use crate::program::{Operand, Program, StepKind};

/// Adds the gradient by one weight, ∂/∂re + i ∂/∂im, from the vectors of some blocks at some of the
/// steps that use the weight. [`backward`](Block::backward) has already summed the gradients of
/// blocks with matrices, except for those of leaves.
pub(super) fn add_pure<F: Real, T: Scalar, const C: bool>(
    kernels: Kernels<F, C>,
    program: &Program,
    blocks: &[Block<F>],
    (weight, users): (usize, &[usize]),
    out: &mut Matrix<T>,
) {
    let is_left = |block: &Block<F>, step: usize| {
        let is_leaf = matches!(program.steps()[step].kind, StepKind::Leaf { .. });
        is_leaf || block.schedule.is_complete()
    };
    let pairs = users.iter().flat_map(|&step| blocks.iter().map(move |block| (block, step)));
    let mut pairs = pairs.filter(|(block, step)| is_left(block, *step)).peekable();
    if pairs.peek().is_none() {
        return;
    }
    let shape = [out.rows(), out.cols()];
    let mut sum = match program.operand_of(weight) {
        Operand::Indicators => {
            for (block, step) in pairs {
                add_columns::<F, T, C>(program, block, step, out);
            }
            return;
        }
        Operand::Vector => WeightGradient::plain(C, shape),
        Operand::Pair(k1, k2) => WeightGradient::kronecker(C, [shape[0], k1, k2]),
    };
    let scratch = Kernels::<F, C>::gradient_scratch(sum.shape());
    let mut scratch = Buffer::zeros(tile_len::<F>(C, scratch));
    for (block, index) in pairs {
        let step = &program.steps()[index];
        let count = block.schedule.at(index).counts[0];
        if count == 0 {
            continue;
        }
        // All tiles at once, because the rows of a complete block are in the same order everywhere.
        let tiles = |numbers: usize| ..tile_of::<F, C>(numbers, count).start;
        let vectors = |input: usize| &block.steps[input].values[0][tiles(program.width(input))];
        let g = &block.steps[index].environments[0][tiles(step.width)];
        match &step.kind {
            StepKind::Leaf { basis, .. } => {
                let functions = &block.steps[index].functions[tiles(basis.width())];
                kernels.sum_gradient(g, functions, &mut scratch, &mut sum);
            }
            StepKind::Kronecker { inputs: [a, b], .. } => {
                let inputs = [vectors(*a), vectors(*b)];
                kernels.kron_sum_gradient(g, inputs, &mut scratch, &mut sum);
            }
            StepKind::Sum { input, .. } => {
                kernels.sum_gradient(g, vectors(*input), &mut scratch, &mut sum);
            }
            StepKind::Hadamard { .. } => unreachable!("it has no weight"),
        }
    }
    sum.add_to(T::parts_mut(out.data_mut()));
}

/// Adds the gradient by a weight over indicators: each row's gradient goes to the column of its
/// value.
fn add_columns<F: Real, T: Scalar, const C: bool>(
    program: &Program,
    block: &Block<F>,
    index: usize,
    out: &mut Matrix<T>,
) {
    let StepKind::Leaf { variable, .. } = program.steps()[index].kind else {
        unreachable!("only leaves have columns")
    };
    let values = block.leaf_values(block.schedule.at(index), variable);
    let gradients = &block.steps[index].environments[0];
    let width = out.rows();
    for (row, &x) in values.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
        let tile = &gradients[tile_of::<F, C>(width, row / F::LANES)];
        for k in 0..width {
            out[(k, x as usize)] += T::from_complex(get(C, tile, k, row % F::LANES));
        }
    }
}

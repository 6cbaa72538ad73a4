//! The environments of a block of rows, from the output to the leaves, and the gradients by weights.

use super::Weights;
use super::block::{Block, Gradient, empty, tile_of};
use super::lanes::{Input, Receiver};
use super::layout::Tile;
use crate::algebra::Kind;
use crate::engine::lanes::{get, set};
use crate::engine::{Batch, Buffer, Real, WeightGradient};
use crate::learn::chunk::add_columns;
use crate::learn::partition::{add, give};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::program::{Operand, StepKind};

impl<F: Real> Block<F> {
    /// From the gradient of `row_weight` Σ log p down; a row of density 0, or one that needs more digits, has none.
    pub(super) fn downward<T: Scalar, const C: bool>(
        &mut self,
        weights: &Weights<'_, F, T, C>,
        row_weight: f64,
    ) {
        self.begin(weights, row_weight);
        for (index, step) in weights.program.steps().iter().enumerate().rev() {
            let mut own = std::mem::replace(&mut self.steps[index].environments, empty());
            let numbers = [step.width, step.width * step.width];
            let tiles = std::mem::take(&mut self.places[index].tiles);
            for tile in &tiles {
                let n = usize::from(!tile.is_pure());
                let e = &mut own[n][tile_of::<F, C>(numbers[n], tile.index)];
                match &step.kind {
                    StepKind::Leaf { .. } => {}
                    StepKind::Kronecker { inputs, weight } => {
                        self.kronecker(weights, *inputs, *weight, tile, e);
                    }
                    StepKind::Hadamard { inputs } => self.hadamard(weights, *inputs, tile, e),
                    StepKind::Sum { input, weight } => self.sum(weights, *input, *weight, tile, e),
                }
            }
            self.places[index].tiles = tiles;
            self.steps[index].environments = own;
        }
    }

    /// p is the trace at the output: twice its environment is 2 I / p.
    fn begin<T: Scalar, const C: bool>(&mut self, weights: &Weights<'_, F, T, C>, row_weight: f64) {
        let output = weights.program.steps().len() - 1;
        let k = weights.program.steps()[output].width;
        for row in 0..self.indices.len() {
            let trace = self.trace(weights, row);
            if trace <= 0.0 || self.is_doubtful[row] {
                continue;
            }
            let kind = self.places[output].kind(row as u32);
            let (tile, lane) = self.places[output].place(row as u32, F::LANES);
            let tiles = &mut self.steps[output];
            let scale = |n: usize, tiles: &super::block::Tiles<F>| {
                2.0 * row_weight / trace * tiles.factors[n][tile * F::LANES + lane].to_f64()
            };
            match kind {
                Kind::Identity => {
                    if let Some(e) = weights.partition.at_output(row_weight) {
                        give(&mut self.unknown, output, e.map(Scalar::to_complex));
                    }
                }
                Kind::Pure => {
                    let (scale, at) = (scale(0, tiles), tile_of::<F, C>(k, tile));
                    for n in 0..k {
                        let x = get(C, &tiles.values[0][at.clone()], n, lane) * scale;
                        set(C, &mut tiles.environments[0][at.clone()], n, lane, x);
                    }
                }
                Kind::Mixed => {
                    let (scale, at) = (scale(1, tiles), tile_of::<F, C>(k * k, tile));
                    for n in 0..k {
                        let e = &mut tiles.environments[1][at.clone()];
                        set(C, e, n * k + n, lane, Complex64::from(scale));
                    }
                }
            }
        }
    }

    fn kronecker<T: Scalar, const C: bool>(
        &mut self,
        weights: &Weights<'_, F, T, C>,
        inputs: [usize; 2],
        weight: usize,
        tile: &Tile,
        e: &mut [F],
    ) {
        let (kernels, w) = (weights.kernels, weights.packed[weight].weight());
        let [k, k1, k2] = w.shape();
        let Tile { rows, kinds, .. } = tile;
        let gradient = self.gradients[weight].get_or_insert_with(|| Gradient {
            sum: WeightGradient::kronecker(C, [k, k1, k2]),
            exchanged: None,
        });
        let [s0, s1, s2, s3, s4, s5] = &mut self.scratch;
        let input = |n: usize| Input::new(weights, inputs[n], &self.places, &self.steps);
        let (a, b) =
            (input(0).gather::<C>(kinds[0], rows, s0), input(1).gather::<C>(kinds[1], rows, s1));
        let widths = [k1, k2];
        let numbers: [usize; 2] = std::array::from_fn(|n| kinds[n].numbers(widths[n]));
        let to_a = &mut s2[tile_of::<F, C>(numbers[0], 0)];
        let to_b = &mut s3[tile_of::<F, C>(numbers[1], 0)];
        let matrix = |kind: Kind| kind == Kind::Mixed;
        match kinds {
            [Kind::Pure, Kind::Pure] => {
                to_a.fill(F::ZERO);
                to_b.fill(F::ZERO);
                kernels.kron_sum_reverse(w, e, [a, b], [&mut *to_a, &mut *to_b]);
                kernels.kron_sum_gradient(e, [a, b], s4, &mut gradient.sum);
            }
            [Kind::Pure, other] => {
                let exchanged = gradient
                    .exchanged
                    .get_or_insert_with(|| WeightGradient::kronecker(C, [k, k2, k1]));
                let block = &mut s5[tile_of::<F, C>(2 * k * k2, 0)];
                let (block, g) = block.split_at_mut(tile_of::<F, C>(k * k2, 0).end);
                kernels.kron_left(w, a, block);
                let m = matrix(*other).then_some(b);
                let em = matrix(*other).then_some(&mut *to_b);
                kernels.block_reverse([k, k2], [e, block], m, s4, g, em);
                to_a.fill(F::ZERO);
                kernels.kron_left_reverse(w, g, to_a);
                kernels.kron_right_gradient(g, a, s4, exchanged);
            }
            [other, Kind::Pure] => {
                let block = &mut s5[tile_of::<F, C>(2 * k * k1, 0)];
                let (block, g) = block.split_at_mut(tile_of::<F, C>(k * k1, 0).end);
                kernels.kron_right(w, b, block);
                let m = matrix(*other).then_some(a);
                let em = matrix(*other).then_some(&mut *to_a);
                kernels.block_reverse([k, k1], [e, block], m, s4, g, em);
                to_b.fill(F::ZERO);
                kernels.kron_right_reverse(w, g, to_b);
                kernels.kron_right_gradient(g, b, s4, &mut gradient.sum);
            }
            [first, second] => {
                let m = [matrix(*first).then_some(a), matrix(*second).then_some(b)];
                let to =
                    [matrix(*first).then_some(&mut *to_a), matrix(*second).then_some(&mut *to_b)];
                kernels.mixed_reverse(w, e, m, to, s4, &mut gradient.sum);
            }
        }
        for ((to, input), kind) in [to_a, to_b].into_iter().zip(inputs).zip(kinds) {
            let (steps, unknown) = (&mut self.steps, &mut self.unknown);
            let mut receiver = Receiver::new(weights, input, &self.places, steps, unknown);
            receiver.give(kernels, *kind, rows, to);
        }
    }

    fn hadamard<T: Scalar, const C: bool>(
        &mut self,
        weights: &Weights<'_, F, T, C>,
        [a, b]: [usize; 2],
        Tile { rows, kinds, .. }: &Tile,
        e: &mut [F],
    ) {
        let kernels = weights.kernels;
        let [s0, s1, ..] = &mut self.scratch;
        for (to, other) in [(a, b), (b, a)] {
            let input = Input::new(weights, other, &self.places, &self.steps);
            let other = input.gather::<C>(kinds[0], rows, s0);
            let out = &mut s1[..e.len()];
            if kinds[0] == Kind::Pure {
                out.fill(F::ZERO);
                kernels.hadamard_reverse(e, other, out);
            } else {
                kernels.hadamard(e, other, out);
            }
            let (steps, unknown) = (&mut self.steps, &mut self.unknown);
            let mut receiver = Receiver::new(weights, to, &self.places, steps, unknown);
            receiver.give(kernels, kinds[0], rows, out);
        }
    }

    fn sum<T: Scalar, const C: bool>(
        &mut self,
        weights: &Weights<'_, F, T, C>,
        input: usize,
        weight: usize,
        tile: &Tile,
        e: &mut [F],
    ) {
        let (kernels, w) = (weights.kernels, weights.packed[weight].weight());
        let [k, k1, _] = w.shape();
        let Tile { rows, kinds, .. } = tile;
        let gradient = self.gradients[weight].get_or_insert_with(|| Gradient {
            sum: WeightGradient::plain(C, [k, k1]),
            exchanged: None,
        });
        let [s0, s1, s2, ..] = &mut self.scratch;
        let a =
            Input::new(weights, input, &self.places, &self.steps).gather::<C>(kinds[0], rows, s0);
        let numbers = if tile.is_pure() { k1 } else { k1 * k1 };
        let out = &mut s1[tile_of::<F, C>(numbers, 0)];
        if tile.is_pure() {
            out.fill(F::ZERO);
            kernels.sum_reverse(w, e, out);
            kernels.sum_gradient(e, a, s2, &mut gradient.sum);
        } else {
            kernels.congruence_reverse(w, [e, a], Some(&mut *out), s2, &mut gradient.sum);
        }
        let (steps, unknown) = (&mut self.steps, &mut self.unknown);
        let mut receiver = Receiver::new(weights, input, &self.places, steps, unknown);
        receiver.give(kernels, kinds[0], rows, out);
    }

    /// Adds the gradient of the block by one weight.
    pub(super) fn add_gradient<T: Scalar, const C: bool>(
        &self,
        weights: &Weights<'_, F, T, C>,
        rows: &Batch,
        weight: usize,
        out: &mut Matrix<T>,
    ) {
        if let Some(Gradient { sum, exchanged }) = &self.gradients[weight] {
            sum.add_to(T::parts_mut(out.data_mut()));
            if let Some(exchanged) = exchanged {
                let [k, k2, k1] = exchanged.shape();
                let mut g: Matrix<T> = Matrix::zeros(k, k1 * k2);
                exchanged.add_to(T::parts_mut(g.data_mut()));
                let at = |k: usize, n: usize| g[(k, n % k2 * k1 + n / k2)];
                add(out.data_mut(), Matrix::from_fn(k, k1 * k2, at).data(), 1.0);
            }
        }
        for &step in weights.program.users(weight) {
            if let StepKind::Leaf { .. } = &weights.program.steps()[step].kind {
                self.add_leaf_gradient(weights, rows, step, weight, out);
            }
        }
    }

    fn add_leaf_gradient<T: Scalar, const C: bool>(
        &self,
        weights: &Weights<'_, F, T, C>,
        rows: &Batch,
        index: usize,
        weight: usize,
        out: &mut Matrix<T>,
    ) {
        let step = &weights.program.steps()[index];
        let StepKind::Leaf { variable, basis, .. } = &step.kind else { return };
        let tiles = &self.steps[index];
        let values = self.leaf_values(rows, index, *variable);
        let count = self.places[index].counts[0];
        let g = &tiles.environments[0][..tile_of::<F, C>(step.width, count).start];
        if weights.program.operand_of(weight) == Operand::Indicators {
            add_columns::<F, T, C>(&values, g, out);
        } else if count > 0 {
            let shape = [out.rows(), out.cols()];
            let mut sum = WeightGradient::plain(C, shape);
            let functions = &tiles.functions[..tile_of::<F, C>(out.cols(), count).start];
            let numbers = crate::engine::Kernels::<F, C>::gradient_scratch(sum.shape());
            let mut scratch = Buffer::zeros(tile_of::<F, C>(numbers, 0).end);
            weights.kernels.sum_gradient(g, functions, &mut scratch, &mut sum);
            sum.add_to(T::parts_mut(out.data_mut()));
        }
        let k = step.width;
        for tile in self.places[index].tiles.iter().filter(|t| !t.is_pure()) {
            let e = &tiles.environments[1][tile_of::<F, C>(k * k, tile.index)];
            for (lane, &row) in tile.rows.iter().enumerate() {
                let Some(part) = rows.part(self.indices[row as usize], *variable) else { continue };
                let entry = |i: usize, j: usize| T::from_complex(get(C, e, i * k + j, lane).conj());
                let h = Matrix::from_fn(k, k, entry).times(weights.partition.weights[weight]);
                add(out.data_mut(), h.times(&basis.gram_over(part)).data(), 1.0);
            }
        }
    }
}

//! The environments of a block of rows, from the output to the leaves, and the gradients that the
//! block sums.

use super::Pass;
use super::block::{Block, Gradient, Tiles, tile_of};
use super::lanes::{Input, Receiver};
use crate::algebra::Kind;
use crate::engine::lanes::{MAX_LANES, get, set};
use crate::engine::{Batch, Buffer, Real, WeightGradient};
use crate::learn::partition::{add, give};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::program::StepKind;
use crate::schedule::{Schedule, Tile};

impl<F: Real> Block<F> {
    /// Computes the environments, starting with the gradient of `row_weight` Σ log p. Rows with
    /// density 0 and imprecise rows have none.
    pub(super) fn backward<T: Scalar, const C: bool>(
        &mut self,
        pass: &Pass<'_, F, T, C>,
        row_weight: f64,
    ) {
        self.begin(pass, row_weight);
        let Self { schedule, steps, gradients, unknown, scratch, .. } = self;
        for (index, step) in pass.program.steps().iter().enumerate().rev() {
            let (below, rest) = steps.split_at_mut(index);
            let mut below = Below { pass, schedule, steps: below, unknown };
            for tile in schedule.at(index).tiles() {
                let n = usize::from(!tile.is_pure());
                let numbers = tile.kind().numbers(step.width);
                let e = &mut rest[0].environments[n][tile_of::<F, C>(numbers, tile.index)];
                match &step.kind {
                    StepKind::Leaf { .. } => {}
                    StepKind::Kronecker { inputs, weight } => {
                        let gradient = &mut gradients[*weight];
                        below.kronecker(*inputs, *weight, &tile, e, gradient, scratch);
                    }
                    StepKind::Hadamard { inputs } => below.hadamard(*inputs, &tile, e, scratch),
                    StepKind::Sum { input, weight } => {
                        below.sum(*input, *weight, &tile, e, &mut gradients[*weight], scratch);
                    }
                }
            }
        }
    }

    /// Sets the environment of the output. Since p is its trace, twice its environment is 2 I / p.
    fn begin<T: Scalar, const C: bool>(&mut self, pass: &Pass<'_, F, T, C>, row_weight: f64) {
        let output = pass.program.root();
        let k = pass.program.width(output);
        let is_used = |row: usize| self.traces[row] > 0.0 && !self.is_imprecise[row];
        let places = self.schedule.at(output);
        let tiles = &mut self.steps[output];
        for tile in places.tiles() {
            let n = usize::from(!tile.is_pure());
            let factors = &tiles.factors[n][tile.index * F::LANES..];
            let mut scales = [F::ZERO; MAX_LANES];
            for ((scale, &row), factor) in scales.iter_mut().zip(tile.rows).zip(factors) {
                let row = row as usize;
                if is_used(row) {
                    let by = 2.0 * row_weight / self.traces[row] * factor.to_f64();
                    *scale = F::from_f64(by);
                }
            }
            let scales = &scales[..F::LANES];
            if tile.is_pure() {
                let at = tile_of::<F, C>(k, tile.index);
                let e = &mut tiles.environments[0][at.clone()];
                e.copy_from_slice(&tiles.values[0][at]);
                pass.kernels.scale(e, scales);
            } else {
                let e = &mut tiles.environments[1][tile_of::<F, C>(k * k, tile.index)];
                for (lane, scale) in scales.iter().enumerate() {
                    for n in 0..k {
                        set(C, e, n * k + n, lane, Complex64::from(scale.to_f64()));
                    }
                }
            }
        }
        for row in 0..self.indices.len() as u32 {
            if places.kind(row) == Kind::Identity
                && let Some(e) = pass.partition.at_output(row_weight)
            {
                give(&mut self.unknown, output, e.map(Scalar::to_complex));
            }
        }
    }

    /// Adds the gradient by one weight that the block has summed, and the one from matrices of
    /// leaves.
    pub(super) fn add_summed_gradient<T: Scalar, const C: bool>(
        &self,
        pass: &Pass<'_, F, T, C>,
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
        for &index in pass.program.users(weight) {
            let step = &pass.program.steps()[index];
            let StepKind::Leaf { variable, basis, .. } = &step.kind else { continue };
            let k = step.width;
            for tile in self.schedule.at(index).tiles().filter(|t| !t.is_pure()) {
                let e = &self.steps[index].environments[1][tile_of::<F, C>(k * k, tile.index)];
                for (lane, &row) in tile.rows.iter().enumerate() {
                    let Some(part) = rows.part(self.indices[row as usize], *variable) else {
                        continue;
                    };
                    let entry =
                        |i: usize, j: usize| T::from_complex(get(C, e, i * k + j, lane).conj());
                    let h = Matrix::from_fn(k, k, entry).times(pass.partition.weights[weight]);
                    add(out.data_mut(), basis.times_gram_over(&h, part).data(), 1.0);
                }
            }
        }
    }
}

/// The steps below the one whose environment is sent down.
struct Below<'a, 'b, F: Real, T, const C: bool> {
    pass: &'a Pass<'b, F, T, C>,
    schedule: &'a Schedule,
    steps: &'a mut [Tiles<F>],
    unknown: &'a mut [Option<Matrix<Complex64>>],
}

impl<F: Real, T: Scalar, const C: bool> Below<'_, '_, F, T, C> {
    fn input(&self, step: usize) -> Input<'_, F, T> {
        Input::new(self.pass, step, self.schedule, self.steps)
    }

    fn give(&mut self, step: usize, kind: Kind, rows: &[u32], e: &mut [F]) {
        let mut receiver = Receiver::new(self.pass, step, self.schedule, self.steps, self.unknown);
        receiver.give(self.pass.kernels, kind, rows, e);
    }

    fn kronecker(
        &mut self,
        inputs: [usize; 2],
        weight: usize,
        tile: &Tile<'_>,
        e: &mut [F],
        gradient: &mut Option<Gradient<F>>,
        scratch: &mut [Buffer<F>; 6],
    ) {
        if self.schedule.is_complete() {
            return self.kronecker_in_place(inputs, weight, tile.index, e);
        }
        let (kernels, w) = (self.pass.kernels, self.pass.packed[weight].weight());
        let [k, k1, k2] = w.shape();
        let Tile { rows, kinds, .. } = tile;
        let [s0, s1, s2, s3, s4, s5] = scratch;
        let [a, b] = inputs.map(|n| self.input(n));
        let (a, b) = (a.gather::<C>(kinds[0], rows, s0), b.gather::<C>(kinds[1], rows, s1));
        let to_a = &mut s2[tile_of::<F, C>(kinds[0].numbers(k1), 0)];
        let to_b = &mut s3[tile_of::<F, C>(kinds[1].numbers(k2), 0)];
        let is_mixed = |kind: Kind| kind == Kind::Mixed;
        match *kinds {
            [Kind::Pure, Kind::Pure] => {
                to_a.fill(F::ZERO);
                to_b.fill(F::ZERO);
                kernels.kron_sum_reverse(w, e, [a, b], [&mut *to_a, &mut *to_b]);
                let gradient = gradient.get_or_insert_with(|| Gradient::kronecker(C, w.shape()));
                kernels.kron_sum_gradient(e, [a, b], s4, &mut gradient.sum);
            }
            [Kind::Pure, other] => {
                let exchanged = gradient
                    .get_or_insert_with(|| Gradient::kronecker(C, w.shape()))
                    .exchanged
                    .get_or_insert_with(|| WeightGradient::kronecker(C, [k, k2, k1]));
                let block = &mut s5[tile_of::<F, C>(2 * k * k2, 0)];
                let (block, g) = block.split_at_mut(tile_of::<F, C>(k * k2, 0).end);
                kernels.kron_left(w, a, block);
                let m = is_mixed(other).then_some(b);
                let em = is_mixed(other).then_some(&mut *to_b);
                kernels.block_reverse([k, k2], [e, block], m, s4, g, em);
                to_a.fill(F::ZERO);
                kernels.kron_left_reverse(w, g, to_a);
                kernels.kron_right_gradient(g, a, s4, exchanged);
            }
            [other, Kind::Pure] => {
                let block = &mut s5[tile_of::<F, C>(2 * k * k1, 0)];
                let (block, g) = block.split_at_mut(tile_of::<F, C>(k * k1, 0).end);
                kernels.kron_right(w, b, block);
                let m = is_mixed(other).then_some(a);
                let em = is_mixed(other).then_some(&mut *to_a);
                kernels.block_reverse([k, k1], [e, block], m, s4, g, em);
                to_b.fill(F::ZERO);
                kernels.kron_right_reverse(w, g, to_b);
                let gradient = gradient.get_or_insert_with(|| Gradient::kronecker(C, w.shape()));
                kernels.kron_right_gradient(g, b, s4, &mut gradient.sum);
            }
            [first, second] => {
                let m = [is_mixed(first).then_some(a), is_mixed(second).then_some(b)];
                let to =
                    [is_mixed(first).then_some(&mut *to_a), is_mixed(second).then_some(&mut *to_b)];
                let gradient = gradient.get_or_insert_with(|| Gradient::kronecker(C, w.shape()));
                kernels.mixed_reverse(w, e, m, to, s4, &mut gradient.sum);
            }
        }
        for ((to, input), kind) in [to_a, to_b].into_iter().zip(inputs).zip(*kinds) {
            self.give(input, kind, rows, to);
        }
    }

    /// The same if all rows are pure and in the same order at every step, without copies.
    fn kronecker_in_place(&mut self, inputs: [usize; 2], weight: usize, tile: usize, e: &[F]) {
        let (kernels, w) = (self.pass.kernels, self.pass.packed[weight].weight());
        let [_, k1, k2] = w.shape();
        let Ok([a, b]) = self.steps.get_disjoint_mut(inputs) else {
            unreachable!("the inputs of a product are two different steps")
        };
        let [at_a, at_b] = [k1, k2].map(|k| tile_of::<F, C>(k, tile));
        let to_a = &mut a.environments[0][at_a.clone()];
        let to_b = &mut b.environments[0][at_b.clone()];
        to_a.fill(F::ZERO);
        to_b.fill(F::ZERO);
        let vectors = [&a.values[0][at_a], &b.values[0][at_b]];
        kernels.kron_sum_reverse(w, e, vectors, [&mut *to_a, &mut *to_b]);
        let lanes = tile * F::LANES..(tile + 1) * F::LANES;
        kernels.scale(to_a, &a.factors[0][lanes.clone()]);
        kernels.scale(to_b, &b.factors[0][lanes]);
    }

    fn hadamard(
        &mut self,
        [a, b]: [usize; 2],
        Tile { rows, kinds, .. }: &Tile<'_>,
        e: &mut [F],
        [s0, s1, ..]: &mut [Buffer<F>; 6],
    ) {
        let kernels = self.pass.kernels;
        for (to, other) in [(a, b), (b, a)] {
            let other = self.input(other).gather::<C>(kinds[0], rows, s0);
            let out = &mut s1[..e.len()];
            if kinds[0] == Kind::Pure {
                out.fill(F::ZERO);
                kernels.hadamard_reverse(e, other, out);
            } else {
                kernels.hadamard(e, other, out);
            }
            self.give(to, kinds[0], rows, out);
        }
    }

    fn sum(
        &mut self,
        input: usize,
        weight: usize,
        tile: &Tile<'_>,
        e: &mut [F],
        gradient: &mut Option<Gradient<F>>,
        [s0, s1, s2, ..]: &mut [Buffer<F>; 6],
    ) {
        let (kernels, w) = (self.pass.kernels, self.pass.packed[weight].weight());
        let [k, k1, _] = w.shape();
        let Tile { rows, kinds, .. } = tile;
        let out = &mut s1[tile_of::<F, C>(kinds[0].numbers(k1), 0)];
        if tile.is_pure() {
            out.fill(F::ZERO);
            kernels.sum_reverse(w, e, out);
        }
        if !self.schedule.is_complete() {
            let Gradient { sum, .. } = gradient.get_or_insert_with(|| Gradient::plain(C, [k, k1]));
            let a = self.input(input).gather::<C>(kinds[0], rows, s0);
            if tile.is_pure() {
                kernels.sum_gradient(e, a, s2, sum);
            } else {
                kernels.congruence_reverse(w, [e, a], Some(&mut *out), s2, sum);
            }
        }
        self.give(input, kinds[0], rows, out);
    }
}

//! The messages of a block of rows, from the leaves to the output.

use super::Weights;
use super::block::{Block, Tiles, empty, tile_of};
use super::lanes::Input;
use super::layout::{Places, Tile};
use crate::algebra::Kind;
use crate::basis::Basis;
use crate::engine::lanes::get;
use crate::engine::{Batch, Buffer, PackedWeight, Real, set_lane};
use crate::learn::chunk::{leaf, power_of_two};
use crate::linalg::{Matrix, Scalar};
use crate::program::{Step, StepKind};

/// A matrix of single precision that is smaller by so many powers of two than what it is made of has lost half of its
/// digits.
const DOUBT: i64 = -12;

impl<F: Real> Block<F> {
    pub(super) fn upward<T: Scalar, const C: bool>(
        &mut self,
        weights: &Weights<'_, F, T, C>,
        rows: &Batch,
    ) {
        for (index, step) in weights.program.steps().iter().enumerate() {
            let mut values = std::mem::replace(&mut self.steps[index].values, empty());
            if let StepKind::Leaf { variable, basis, weight } = &step.kind {
                self.leaf(weights, rows, (index, *variable, basis, *weight), &mut values);
            }
            let places = &self.places[index];
            let numbers = [step.width, step.width * step.width];
            for tile in &places.tiles {
                let n = usize::from(!tile.is_pure());
                let out = &mut values[n][tile_of::<F, C>(numbers[n], tile.index)];
                join(weights, step, tile, (&self.places, &self.steps), &mut self.scratch, out);
                let mut taken = [0_i64; 32];
                weights.kernels.rescale(out, &mut taken[..F::LANES]);
                let factors = &mut self.steps[index].factors[n][tile.index * F::LANES..];
                let is_joined =
                    !matches!(step.kind, StepKind::Leaf { .. } | StepKind::Hadamard { .. });
                for ((&row, taken), factor) in tile.rows.iter().zip(taken).zip(factors) {
                    let row = row as usize;
                    self.log2[row] += if n == 0 { 2 * taken } else { taken };
                    *factor = F::from_f64(power_of_two(-taken));
                    let is_single = size_of::<F>() < size_of::<f64>();
                    self.is_doubtful[row] |= is_single && n == 1 && is_joined && taken < DOUBT;
                }
            }
            self.book_unknown(weights, index, &step.kind);
            self.steps[index].values = values;
        }
        self.close(weights);
    }

    /// Books the powers of two in what rows take where they know nothing.
    fn book_unknown<T: Scalar, const C: bool>(
        &mut self,
        weights: &Weights<'_, F, T, C>,
        index: usize,
        kind: &StepKind,
    ) {
        let (StepKind::Kronecker { inputs, .. } | StepKind::Hadamard { inputs }) = kind else {
            return;
        };
        for &input in inputs {
            let Some(node) = weights.partition.node(input) else { return };
            for (row, log2) in (0..).zip(&mut self.log2) {
                let is_met = self.places[index].kind(row) != Kind::Identity;
                if is_met && self.places[input].kind(row) == Kind::Identity {
                    *log2 += node.exponent;
                }
            }
        }
    }

    /// The vectors and matrices of a leaf.
    fn leaf<T: Scalar, const C: bool>(
        &mut self,
        weights: &Weights<'_, F, T, C>,
        rows: &Batch,
        (index, variable, basis, weight): (usize, usize, &Basis, Option<usize>),
        [vectors, matrices]: &mut [Buffer<F>; 2],
    ) {
        let width = weights.program.steps()[index].width;
        let values = self.leaf_values(rows, index, variable);
        let tiles = &mut self.steps[index];
        let len = tile_of::<F, C>(width, values.len().div_ceil(F::LANES)).start;
        let functions = weights.program.steps()[index].functions();
        let functions_len = tile_of::<F, C>(functions, values.len().div_ceil(F::LANES)).start;
        if !values.len().is_multiple_of(F::LANES) {
            vectors[..len].fill(F::ZERO);
            tiles.functions[..functions_len].fill(F::ZERO);
        }
        let packed = weight.map(|w| &weights.packed[w]);
        let functions = &mut tiles.functions[..functions_len];
        leaf(weights.kernels, &values, basis, packed, functions, &mut vectors[..len]);
        for tile in self.places[index].tiles.iter().filter(|t| !t.is_pure()) {
            let out = &mut matrices[tile_of::<F, C>(width * width, tile.index)];
            out.fill(F::ZERO);
            for (lane, &row) in tile.rows.iter().enumerate() {
                let Some(part) = rows.part(self.indices[row as usize], variable) else { continue };
                let gram: Matrix<T> = basis.gram_over(part);
                let gram = weight.map_or(gram.clone(), |w| {
                    let w = weights.partition.weights[w];
                    w.times(&gram).times_adjoint(w).hermitian_part()
                });
                set_lane(C, out, lane, gram.data().iter().map(|x| x.to_complex()));
            }
        }
    }

    /// The values that rows have of the variable of a leaf, in the order of their vectors.
    pub(super) fn leaf_values(&self, rows: &Batch, index: usize, variable: usize) -> Vec<f64> {
        let pure = self.places[index].tiles.iter().filter(|t| t.is_pure());
        let known = pure.flat_map(|t| &t.rows);
        known.map(|&row| rows.value(self.indices[row as usize], variable)).collect()
    }

    /// log p of every row: the trace at the output.
    fn close<T: Scalar, const C: bool>(&mut self, weights: &Weights<'_, F, T, C>) {
        let traces: Vec<f64> =
            (0..self.indices.len()).map(|row| self.trace(weights, row)).collect();
        let log = |(trace, &log2): (f64, &i64)| trace.ln() + log2 as f64 * std::f64::consts::LN_2;
        self.logs = traces.into_iter().zip(&self.log2).map(log).collect();
        let output = weights.program.steps().len() - 1;
        for (row, log) in (0..).zip(&mut self.logs) {
            if self.places[output].kind(row) == Kind::Identity {
                *log = weights.partition.log_partition();
            }
        }
    }

    /// The trace of a row's message at the output; 1 where nothing is known.
    pub(super) fn trace<T: Scalar, const C: bool>(
        &self,
        weights: &Weights<'_, F, T, C>,
        row: usize,
    ) -> f64 {
        let output = weights.program.steps().len() - 1;
        let (places, k) = (&self.places[output], weights.program.steps()[output].width);
        let (tile, lane) = places.place(row as u32, F::LANES);
        let [vectors, matrices] = &self.steps[output].values;
        match places.kind(row as u32) {
            Kind::Identity => 1.0,
            Kind::Pure => {
                let v = &vectors[tile_of::<F, C>(k, tile)];
                (0..k).map(|n| get(C, v, n, lane).norm_sqr()).sum()
            }
            Kind::Mixed => {
                let m = &matrices[tile_of::<F, C>(k * k, tile)];
                (0..k).map(|n| get(C, m, n * k + n, lane).re).sum::<f64>().max(0.0)
            }
        }
    }
}

/// The message of the rows of a tile, from those of the inputs.
fn join<F: Real, T: Scalar, const C: bool>(
    weights: &Weights<'_, F, T, C>,
    step: &Step,
    tile: &Tile,
    (places, tiles): (&[Places], &[Tiles<F>]),
    [s0, s1, s2, s3, ..]: &mut [Buffer<F>; 6],
    out: &mut [F],
) {
    let kernels = weights.kernels;
    let Tile { rows, kinds, .. } = tile;
    let input = |n: usize| Input::new(weights, n, places, tiles);
    match &step.kind {
        StepKind::Leaf { .. } => {}
        StepKind::Kronecker { inputs: [a, b], weight } => {
            let a = input(*a).gather::<C>(kinds[0], rows, s0);
            let b = input(*b).gather::<C>(kinds[1], rows, s1);
            kronecker(weights, weights.packed[*weight].weight(), *kinds, [a, b], [s2, s3], out);
        }
        StepKind::Hadamard { inputs: [a, b] } => {
            let a = input(*a).gather::<C>(kinds[0], rows, s0);
            let b = input(*b).gather::<C>(kinds[1], rows, s1);
            kernels.hadamard(a, b, out);
        }
        StepKind::Sum { input: a, weight } => {
            let w = weights.packed[*weight].weight();
            let a = input(*a).gather::<C>(kinds[0], rows, s0);
            if tile.is_pure() {
                kernels.sum(w, a, out);
            } else {
                kernels.congruence(w, a, s2, out);
            }
        }
    }
}

fn kronecker<F: Real, T: Scalar, const C: bool>(
    weights: &Weights<'_, F, T, C>,
    w: &PackedWeight<F>,
    kinds: [Kind; 2],
    [a, b]: [&[F]; 2],
    [block, scratch]: [&mut Buffer<F>; 2],
    out: &mut [F],
) {
    let (kernels, [k, k1, k2]) = (weights.kernels, w.shape());
    let (len, other) = match kinds {
        [Kind::Pure, Kind::Pure] => return kernels.kron_sum(w, a, b, out),
        [Kind::Mixed, Kind::Identity] => return kernels.mixed_identity(w, a, scratch, out),
        [Kind::Identity, Kind::Mixed] => return kernels.identity_mixed(w, b, scratch, out),
        [Kind::Pure, _] => (k2, b),
        [_, Kind::Pure] => (k1, a),
        _ => return kernels.mixed_mixed(w, [a, b], scratch, out),
    };
    let block = &mut block[tile_of::<F, C>(k * len, 0)];
    if kinds[0] == Kind::Pure {
        kernels.kron_left(w, a, block);
    } else {
        kernels.kron_right(w, b, block);
    }
    if other.is_empty() {
        kernels.outer_self([k, len], block, out);
    } else {
        kernels.sandwich([k, len], [block, other], scratch, out);
    }
}

//! The messages of a block of rows, from the leaves to the output.

use super::Pass;
use super::block::{Block, Tiles, tile_of};
use super::lanes::Input;
use super::packed::Packed;
use crate::algebra::Kind;
use crate::basis::Basis;
use crate::engine::lanes::{MAX_LANES, tile_len};
use crate::engine::{
    Batch, Buffer, Kernels, Real, add_exponents, contract_tile, evaluate_functions, gather_columns,
    hadamard_tile, set_lane, trace,
};
use crate::linalg::{Matrix, Scalar};
use crate::program::{Step, StepKind};
use crate::schedule::{Schedule, Tile};

/// A single-precision matrix that is smaller than its inputs by this many powers of two has lost
/// half of its digits.
const IMPRECISE_EXPONENT: i64 = -12;

impl<F: Real> Block<F> {
    pub(super) fn forward<T: Scalar, const C: bool>(
        &mut self,
        pass: &Pass<'_, F, T, C>,
        rows: &Batch,
    ) {
        for (index, step) in pass.program.steps().iter().enumerate() {
            if let StepKind::Leaf { variable, basis, weight } = &step.kind {
                self.leaf(pass, rows, index, (*variable, basis, *weight));
            }
            let (done, rest) = self.steps.split_at_mut(index);
            let own = &mut rest[0];
            for tile in self.schedule.at(index).tiles() {
                let n = usize::from(!tile.is_pure());
                let numbers = tile.kind().numbers(step.width);
                let out = &mut own.values[n][tile_of::<F, C>(numbers, tile.index)];
                join(pass, step, &tile, (&self.schedule, done), &mut self.scratch, out);
                let mut exponents = [0_i64; MAX_LANES];
                pass.kernels.rescale(out, &mut exponents[..F::LANES]);
                add_exponents(tile.kind(), tile.rows, &exponents, &mut self.log2);
                let factors = &mut own.factors[n][tile.index * F::LANES..];
                let can_cancel = size_of::<F>() < size_of::<f64>()
                    && !tile.is_pure()
                    && matches!(step.kind, StepKind::Kronecker { .. } | StepKind::Sum { .. });
                for ((&row, exponent), factor) in tile.rows.iter().zip(exponents).zip(factors) {
                    *factor = F::from_f64(power_of_two(-exponent));
                    self.is_imprecise[row as usize] |= can_cancel && exponent < IMPRECISE_EXPONENT;
                }
            }
            self.add_unknown_exponents(pass, index, step);
        }
        self.set_logs(pass);
    }

    /// Adds the exponents of the messages that rows without evidence take.
    fn add_unknown_exponents<T: Scalar, const C: bool>(
        &mut self,
        pass: &Pass<'_, F, T, C>,
        index: usize,
        step: &Step,
    ) {
        if self.schedule.is_complete() || step.inputs().len() < 2 {
            return;
        }
        for &input in step.inputs() {
            let Some(node) = pass.partition.node(input) else { return };
            for (row, log2) in (0..).zip(&mut self.log2) {
                let has_evidence = self.schedule.at(index).kind(row) != Kind::Identity;
                if has_evidence && self.schedule.at(input).kind(row) == Kind::Identity {
                    *log2 += node.exponent;
                }
            }
        }
    }

    /// The vectors and matrices of a leaf.
    fn leaf<T: Scalar, const C: bool>(
        &mut self,
        pass: &Pass<'_, F, T, C>,
        rows: &Batch,
        index: usize,
        (variable, basis, weight): (usize, &Basis, Option<usize>),
    ) {
        let step = &pass.program.steps()[index];
        let places = self.schedule.at(index);
        let values = self.leaf_values(places, variable);
        let count = values.len().div_ceil(F::LANES);
        let Tiles { values: [vectors, matrices], functions, .. } = &mut self.steps[index];
        let vectors = &mut vectors[..tile_of::<F, C>(step.width, count).start];
        let functions = &mut functions[..tile_of::<F, C>(step.functions(), count).start];
        let packed = weight.map(|w| &pass.packed[w]);
        leaf(pass.kernels, &values, basis, packed, functions, vectors);
        for tile in places.tiles().filter(|t| !t.is_pure()) {
            let out = &mut matrices[tile_of::<F, C>(step.width * step.width, tile.index)];
            out.fill(F::ZERO);
            for (lane, &row) in tile.rows.iter().enumerate() {
                let Some(part) = rows.part(self.indices[row as usize], variable) else { continue };
                let w = weight.map(|w| pass.partition.weights[w]);
                let gram: Matrix<T> = basis.weighted_gram_over(w, part);
                set_lane(C, out, lane, gram.data().iter().map(|x| x.to_complex()));
            }
        }
    }

    /// Computes every row's trace at the output, and log p.
    fn set_logs<T: Scalar, const C: bool>(&mut self, pass: &Pass<'_, F, T, C>) {
        let output = pass.program.root();
        let (k, count) = (pass.program.width(output), self.indices.len());
        self.traces.clear();
        self.traces.resize(count, 1.0);
        self.logs.clear();
        self.logs.resize(count, pass.partition.log_partition());
        for tile in self.schedule.at(output).tiles() {
            let values = &self.steps[output].values[usize::from(!tile.is_pure())];
            let numbers = &values[tile_of::<F, C>(tile.kind().numbers(k), tile.index)];
            for (lane, &row) in tile.rows.iter().enumerate() {
                let row = row as usize;
                let trace = trace(C, tile.kind(), k, (numbers, lane));
                self.traces[row] = trace;
                self.logs[row] = trace.ln() + self.log2[row] as f64 * std::f64::consts::LN_2;
            }
        }
    }
}

/// The messages of the rows of a tile, given those of the inputs.
fn join<F: Real, T: Scalar, const C: bool>(
    pass: &Pass<'_, F, T, C>,
    step: &Step,
    tile: &Tile<'_>,
    (schedule, tiles): (&Schedule, &[Tiles<F>]),
    [s0, s1, s2, s3, ..]: &mut [Buffer<F>; 6],
    out: &mut [F],
) {
    let kernels = pass.kernels;
    let Tile { rows, kinds, .. } = tile;
    let input = |n: usize| Input::new(pass, n, schedule, tiles);
    match &step.kind {
        StepKind::Leaf { .. } => {}
        StepKind::Kronecker { inputs: [a, b], weight } => {
            let a = input(*a).gather::<C>(kinds[0], rows, s0);
            let b = input(*b).gather::<C>(kinds[1], rows, s1);
            let (w, kinds) = (pass.packed[*weight].weight(), (kinds[0], kinds[1]));
            contract_tile(&kernels, w, || w, kinds, [a, b], [s2, s3], out);
        }
        StepKind::Hadamard { inputs: [a, b] } => {
            let a = input(*a).gather::<C>(kinds[0], rows, s0);
            let b = input(*b).gather::<C>(kinds[1], rows, s1);
            hadamard_tile(&kernels, step.width, (kinds[0], kinds[1]), [a, b], out);
        }
        StepKind::Sum { input: a, weight } => {
            let w = pass.packed[*weight].weight();
            let a = input(*a).gather::<C>(kinds[0], rows, s0);
            if tile.is_pure() {
                kernels.sum(w, a, out);
            } else {
                kernels.congruence(w, a, s2, out);
            }
        }
    }
}

/// The vectors of a leaf at values that fill tiles in order. `functions` gets the values of the
/// basis functions below a weight, unless they are indicators. Lanes without a row have finite
/// numbers.
fn leaf<F: Real, const C: bool>(
    kernels: Kernels<F, C>,
    values: &[f64],
    basis: &Basis,
    weight: Option<&Packed<F>>,
    functions: &mut [F],
    out: &mut [F],
) {
    let w = match weight {
        Some(Packed::Columns { data }) => {
            gather_columns(&kernels, data, values, out);
            return set_missing(values, out);
        }
        Some(Packed::Weight(w)) => w,
        None => {
            evaluate_functions(C, basis, values, out);
            return set_missing(values, out);
        }
    };
    evaluate_functions(C, basis, values, functions);
    set_missing(values, functions);
    let inputs = functions.chunks_exact(tile_len::<F>(C, basis.width()));
    for (input, tile) in inputs.zip(out.chunks_exact_mut(tile_len::<F>(C, w.shape()[0]))) {
        kernels.sum(w, input, tile);
    }
}

/// Sets the lanes of missing values to ones. Only monotonic circuits, which are real, have missing
/// values here.
fn set_missing<F: Real>(values: &[f64], tiles: &mut [F]) {
    let len = tiles.len() / values.len().div_ceil(F::LANES).max(1);
    for (row, _) in values.iter().enumerate().filter(|(_, x)| x.is_nan()) {
        let tile = &mut tiles[row / F::LANES * len..][..len];
        tile.chunks_exact_mut(F::LANES).for_each(|lanes| lanes[row % F::LANES] = F::ONE);
    }
}

/// 2ⁿ within the normal range.
fn power_of_two(n: i64) -> f64 {
    f64::from_bits(((1023 + n).clamp(1, 2046) as u64) << 52)
}

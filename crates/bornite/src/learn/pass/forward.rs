//! The messages of a block of rows, from the leaves to the output.

use super::Pass;
use super::block::{Block, Tiles, tile_of};
use super::lanes::Input;
use super::packed::Packed;
use crate::algebra::Kind;
use crate::basis::Basis;
use crate::engine::lanes::{MAX_LANES, get, tile_len};
use crate::engine::{Batch, Buffer, Kernels, Real, contract_tile, set_lane};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::program::{Step, StepKind};
use crate::schedule::{Schedule, Tile};

/// A matrix of single precision that is smaller by this many powers of two than what it is made of has lost half of its
/// digits.
const LOST: i64 = -12;

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
                let mut taken = [0_i64; MAX_LANES];
                pass.kernels.rescale(out, &mut taken[..F::LANES]);
                let factors = &mut own.factors[n][tile.index * F::LANES..];
                let is_joined =
                    matches!(step.kind, StepKind::Kronecker { .. } | StepKind::Sum { .. });
                for ((&row, taken), factor) in tile.rows.iter().zip(taken).zip(factors) {
                    let row = row as usize;
                    self.log2[row] += if n == 0 { 2 * taken } else { taken };
                    *factor = F::from_f64(power_of_two(-taken));
                    let is_single = size_of::<F>() < size_of::<f64>();
                    self.is_imprecise[row] |= is_single && n == 1 && is_joined && taken < LOST;
                }
            }
            self.add_unknown_exponents(pass, index, step);
        }
        self.close(pass);
    }

    /// Adds the exponents of what rows take where they know nothing.
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
                let is_met = self.schedule.at(index).kind(row) != Kind::Identity;
                if is_met && self.schedule.at(input).kind(row) == Kind::Identity {
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
                let gram: Matrix<T> = basis.gram_over(part);
                let gram = weight.map_or(gram.clone(), |w| {
                    let w = pass.partition.weights[w];
                    w.times(&gram).times_adjoint(w).hermitian_part()
                });
                set_lane(C, out, lane, gram.data().iter().map(|x| x.to_complex()));
            }
        }
    }

    /// The trace at the output of every row, and log p.
    fn close<T: Scalar, const C: bool>(&mut self, pass: &Pass<'_, F, T, C>) {
        let output = pass.program.root();
        let (k, count) = (pass.program.width(output), self.indices.len());
        self.traces.clear();
        self.traces.resize(count, 1.0);
        self.logs.clear();
        self.logs.resize(count, pass.partition.log_partition());
        for tile in self.schedule.at(output).tiles() {
            let mut traces = [F::ZERO; MAX_LANES];
            let [vectors, matrices] = &self.steps[output].values;
            if tile.is_pure() {
                let v = &vectors[tile_of::<F, C>(k, tile.index)];
                pass.kernels.norm2(v, &mut traces[..F::LANES]);
            }
            for (lane, &row) in tile.rows.iter().enumerate() {
                let trace = if tile.is_pure() {
                    traces[lane].to_f64()
                } else {
                    let m = &matrices[tile_of::<F, C>(k * k, tile.index)];
                    (0..k).map(|n| get(C, m, n * k + n, lane).re).sum::<f64>().max(0.0)
                };
                let row = row as usize;
                self.traces[row] = trace;
                self.logs[row] = trace.ln() + self.log2[row] as f64 * std::f64::consts::LN_2;
            }
        }
    }
}

/// The message of the rows of a tile, from those of the inputs.
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
            kernels.hadamard(a, b, out);
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

/// The vectors of a leaf at the values of rows that fill tiles in order; `functions` keeps the basis functions below a
/// weight, if they are not indicators. Lanes without a row hold finite numbers.
fn leaf<F: Real, const C: bool>(
    kernels: Kernels<F, C>,
    values: &[f64],
    basis: &Basis,
    weight: Option<&Packed<F>>,
    functions: &mut [F],
    out: &mut [F],
) {
    if let Some(Packed::Columns { data }) = weight {
        let len = out.len() / values.len().div_ceil(F::LANES).max(1);
        for (values, tile) in values.chunks(F::LANES).zip(out.chunks_exact_mut(len.max(1))) {
            let mut at = [0; MAX_LANES];
            at.iter_mut().zip(values).for_each(|(at, &x)| *at = x as usize);
            kernels.gather(data, &at[..F::LANES], tile);
            set_missing(values, tile);
        }
        return;
    }
    let len = tile_len::<F>(C, basis.width());
    let mut f = vec![Complex64::ZERO; basis.width()];
    let to: &mut [F] = if weight.is_some() { &mut *functions } else { &mut *out };
    for (values, tile) in values.chunks(F::LANES).zip(to.chunks_exact_mut(len)) {
        if values.len() < F::LANES {
            tile.fill(F::ZERO);
        }
        for (lane, &x) in values.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
            basis.evaluate(x, &mut f);
            set_lane(C, tile, lane, f.iter().copied());
        }
        set_missing(values, tile);
    }
    if let Some(packed) = weight {
        let w = packed.weight();
        let tiles = out.chunks_exact_mut(tile_len::<F>(C, w.shape()[0]));
        for (input, tile) in functions.chunks_exact(len).zip(tiles) {
            kernels.sum(w, input, tile);
        }
    }
}

/// A missing cell is a leaf of ones: in monotonic circuits, which are real. Others do not come here with one.
fn set_missing<F: Real>(values: &[f64], tile: &mut [F]) {
    for (lane, _) in values.iter().enumerate().filter(|(_, x)| x.is_nan()) {
        tile.chunks_exact_mut(F::LANES).for_each(|lanes| lanes[lane] = F::ONE);
    }
}

/// 2ⁿ within the normal range.
fn power_of_two(n: i64) -> f64 {
    f64::from_bits(((1023 + n).clamp(1, 2046) as u64) << 52)
}

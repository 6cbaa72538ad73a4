//! A few tiles of complete rows on their way through the steps, up and back down.

use super::pass::Packed;
use crate::basis::Basis;
use crate::engine::lanes::{get, planes, tile_len};
use crate::engine::{Batch, Buffer, Kernels, Real};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::program::{Program, StepKind};

/// The vectors of a few tiles of rows at every step, and their gradients.
#[derive(Debug)]
pub(super) struct Chunk<F> {
    tiles: usize,
    rows: usize,
    /// The values of all variables, `[variable][row]`.
    values: Vec<f64>,
    pub(super) vectors: Vec<Buffer<F>>,
    /// The basis functions below a leaf's weight, where they are not indicators.
    pub(super) functions: Vec<Buffer<F>>,
    /// For each step and row the power of two that its vector was multiplied with.
    factors: Vec<Vec<F>>,
    /// By the vector *before* that multiplication. Empty where there is no way back.
    pub(super) gradients: Vec<Buffer<F>>,
    pub(super) log_density: Vec<f64>,
}

impl<F: Real> Chunk<F> {
    /// Without room for any row.
    pub(super) fn empty() -> Self {
        Self {
            tiles: 0,
            rows: 0,
            values: Vec::new(),
            vectors: Vec::new(),
            functions: Vec::new(),
            factors: Vec::new(),
            gradients: Vec::new(),
            log_density: Vec::new(),
        }
    }

    /// Takes up other rows. Memory is kept where it is of the right size; lanes without a row keep what they had.
    pub(super) fn load<const C: bool>(
        &mut self,
        program: &Program,
        rows: &Batch,
        indices: &[usize],
        with_gradients: bool,
    ) {
        let tiles = indices.len().div_ceil(F::LANES);
        if tiles != self.tiles || (with_gradients && self.gradients.is_empty()) {
            self.make_room::<C>(program, tiles, with_gradients);
        }
        let count = indices.len();
        self.rows = count;
        self.values.resize(count * rows.num_variables(), 0.0);
        for (variable, values) in self.values.chunks_exact_mut(count.max(1)).enumerate() {
            rows.gather(variable, indices, values);
        }
    }

    fn make_room<const C: bool>(&mut self, program: &Program, tiles: usize, with_gradients: bool) {
        let room = |numbers: usize| Buffer::zeros(tiles * tile_len::<F>(C, numbers));
        self.tiles = tiles;
        self.vectors = program.steps().iter().map(|s| room(s.width)).collect();
        self.functions = program.steps().iter().map(|s| room(s.functions())).collect();
        self.factors = program.steps().iter().map(|_| vec![F::ONE; tiles * F::LANES]).collect();
        self.gradients = if with_gradients {
            program.steps().iter().map(|s| room(s.width)).collect()
        } else {
            Vec::new()
        };
    }

    pub(super) fn values(&self, variable: usize) -> &[f64] {
        &self.values[variable * self.rows..(variable + 1) * self.rows]
    }

    pub(super) fn forward<const C: bool>(
        &mut self,
        program: &Program,
        kernels: Kernels<F, C>,
        packed: &[Packed<F>],
    ) {
        let mut exponents = vec![0_i64; self.tiles * F::LANES];
        for (index, step) in program.steps().iter().enumerate() {
            let mut out = std::mem::replace(&mut self.vectors[index], Buffer::zeros(0));
            let len = tile_len::<F>(C, step.width);
            match &step.kind {
                StepKind::Leaf { variable, basis, weight } => {
                    let weight = weight.map(|w| &packed[w]);
                    let values = &self.values[variable * self.rows..(variable + 1) * self.rows];
                    let functions = &mut self.functions[index];
                    leaf(kernels, values, basis, weight, functions, &mut out);
                }
                StepKind::Kronecker { inputs: [a, b], weight } => {
                    let w = packed[*weight].weight();
                    for (n, tile) in out.chunks_exact_mut(len).enumerate() {
                        let [a, b] = [*a, *b].map(|step| self.tile::<C>(program, step, n));
                        kernels.kron_sum(w, a, b, tile);
                    }
                }
                StepKind::Hadamard { inputs: [a, b] } => {
                    for (n, tile) in out.chunks_exact_mut(len).enumerate() {
                        let [a, b] = [*a, *b].map(|step| self.tile::<C>(program, step, n));
                        kernels.hadamard(a, b, tile);
                    }
                }
                StepKind::Sum { input, weight } => {
                    let w = packed[*weight].weight();
                    for (n, tile) in out.chunks_exact_mut(len).enumerate() {
                        kernels.sum(w, self.tile::<C>(program, *input, n), tile);
                    }
                }
            }
            let tiles = out.chunks_exact_mut(len).zip(exponents.chunks_exact_mut(F::LANES));
            for ((tile, exponents), factors) in
                tiles.zip(self.factors[index].chunks_exact_mut(F::LANES))
            {
                let mut taken = [0_i64; 32];
                kernels.rescale(tile, &mut taken[..F::LANES]);
                for ((sum, taken), factor) in exponents.iter_mut().zip(taken).zip(factors) {
                    *sum += taken;
                    *factor = F::from_f64(power_of_two(-taken));
                }
            }
            self.vectors[index] = out;
        }
        self.close::<C>(program, kernels, &exponents);
    }

    fn tile<const C: bool>(&self, program: &Program, step: usize, n: usize) -> &[F] {
        let len = tile_len::<F>(C, program.steps()[step].width);
        &self.vectors[step][n * len..(n + 1) * len]
    }

    fn close<const C: bool>(
        &mut self,
        program: &Program,
        kernels: Kernels<F, C>,
        exponents: &[i64],
    ) {
        let root = program.steps().len() - 1;
        let mut norms = vec![F::ZERO; F::LANES];
        let mut logs = Vec::with_capacity(self.rows);
        for n in 0..self.tiles {
            kernels.norm2(self.tile::<C>(program, root, n), &mut norms);
            for (lane, norm) in norms.iter().enumerate().take(self.rows - n * F::LANES) {
                let exponent = 2 * exponents[n * F::LANES + lane];
                logs.push(norm.to_f64().ln() + exponent as f64 * std::f64::consts::LN_2);
            }
        }
        self.log_density = logs;
    }

    /// From ∂ log ‖c‖² / ∂c = 2 c / ‖c‖² down; a row of density 0 has no gradient.
    pub(super) fn backward<const C: bool>(
        &mut self,
        program: &Program,
        kernels: Kernels<F, C>,
        packed: &[Packed<F>],
        row_weight: f64,
    ) {
        let mut gradients = std::mem::take(&mut self.gradients);
        let root = program.steps().len() - 1;
        self.root_gradient::<C>(program, kernels, row_weight, &mut gradients[root]);
        for (index, step) in program.steps().iter().enumerate().rev() {
            let g = std::mem::replace(&mut gradients[index], Buffer::zeros(0));
            match &step.kind {
                StepKind::Leaf { .. } => {}
                StepKind::Kronecker { inputs: [a, b], weight } => {
                    let w = packed[*weight].weight();
                    let [ga, gb] = two(&mut gradients, *a, *b);
                    for n in 0..self.tiles {
                        let inputs = [*a, *b].map(|step| self.tile::<C>(program, step, n));
                        let (ga, gb) =
                            (part::<F, C>(program, *a, n, ga), part::<F, C>(program, *b, n, gb));
                        ga.fill(F::ZERO);
                        gb.fill(F::ZERO);
                        let g = &g[range::<F, C>(program, index, n)];
                        kernels.kron_sum_reverse(w, g, inputs, [&mut *ga, &mut *gb]);
                        kernels.scale(ga, self.factors(*a, n));
                        kernels.scale(gb, self.factors(*b, n));
                    }
                }
                StepKind::Hadamard { inputs: [a, b] } => {
                    for (to, other) in [(*a, *b), (*b, *a)] {
                        for n in 0..self.tiles {
                            let out = part::<F, C>(program, to, n, &mut gradients[to]);
                            out.fill(F::ZERO);
                            let g = &g[range::<F, C>(program, index, n)];
                            kernels.hadamard_reverse(g, self.tile::<C>(program, other, n), out);
                            kernels.scale(out, self.factors(to, n));
                        }
                    }
                }
                StepKind::Sum { input, weight } => {
                    let w = packed[*weight].weight();
                    for n in 0..self.tiles {
                        let out = part::<F, C>(program, *input, n, &mut gradients[*input]);
                        out.fill(F::ZERO);
                        kernels.sum_reverse(w, &g[range::<F, C>(program, index, n)], out);
                        kernels.scale(out, self.factors(*input, n));
                    }
                }
            }
            gradients[index] = g;
        }
        self.gradients = gradients;
    }

    fn factors(&self, step: usize, tile: usize) -> &[F] {
        &self.factors[step][tile * F::LANES..(tile + 1) * F::LANES]
    }

    fn root_gradient<const C: bool>(
        &self,
        program: &Program,
        kernels: Kernels<F, C>,
        row_weight: f64,
        g: &mut [F],
    ) {
        let root = program.steps().len() - 1;
        let len = tile_len::<F>(C, program.steps()[root].width);
        let (mut norms, mut scales) = (vec![F::ZERO; F::LANES], vec![F::ZERO; F::LANES]);
        g.copy_from_slice(&self.vectors[root]);
        for (n, tile) in g.chunks_exact_mut(len).enumerate() {
            kernels.norm2(tile, &mut norms);
            let lanes = norms.iter().zip(self.factors(root, n)).zip(&mut scales);
            for (lane, ((norm, factor), scale)) in lanes.enumerate() {
                let norm = norm.to_f64();
                let is_row = n * F::LANES + lane < self.rows && norm > 0.0;
                let by = if is_row { 2.0 * row_weight / norm * factor.to_f64() } else { 0.0 };
                *scale = F::from_f64(by);
            }
            kernels.scale(tile, &scales);
        }
    }
}

/// The vectors of a leaf at the values of rows that fill tiles in order; `functions` keeps the basis functions below a
/// weight, where they are not indicators. Lanes without a row keep what they had.
pub(super) fn leaf<F: Real, const C: bool>(
    kernels: Kernels<F, C>,
    values: &[f64],
    basis: &Basis,
    weight: Option<&Packed<F>>,
    functions: &mut [F],
    out: &mut [F],
) {
    if let Some(Packed::Columns { width, data }) = weight {
        let (len, column) = (tile_len::<F>(C, *width), planes(C) * width);
        for (row, &x) in values.iter().enumerate() {
            let tile = &mut out[row / F::LANES * len..(row / F::LANES + 1) * len];
            if x.is_nan() {
                unknown(tile, row % F::LANES);
                continue;
            }
            let from = &data[x as usize * column..(x as usize + 1) * column];
            for (lanes, &w) in tile.chunks_exact_mut(F::LANES).zip(from) {
                lanes[row % F::LANES] = w;
            }
        }
        return;
    }
    let len = tile_len::<F>(C, basis.width());
    let mut f = vec![Complex64::ZERO; basis.width()];
    let to: &mut [F] = if weight.is_some() { &mut *functions } else { &mut *out };
    for (row, &x) in values.iter().enumerate() {
        let tile = &mut to[row / F::LANES * len..(row / F::LANES + 1) * len];
        if x.is_nan() {
            unknown(tile, row % F::LANES);
            continue;
        }
        basis.evaluate(x, &mut f);
        crate::engine::set_lane(C, tile, row % F::LANES, f.iter().copied());
    }
    if let Some(packed) = weight {
        let w = packed.weight();
        let tiles = out.chunks_exact_mut(tile_len::<F>(C, w.shape()[0]));
        for (input, tile) in functions.chunks_exact(len).zip(tiles) {
            kernels.sum(w, input, tile);
        }
    }
}

/// Adds each row's gradient to the column of its value: the gradient of a weight over indicators.
pub(super) fn add_columns<F: Real, T: Scalar, const C: bool>(
    values: &[f64],
    gradients: &[F],
    out: &mut Matrix<T>,
) {
    let width = out.rows();
    let len = tile_len::<F>(C, width);
    for (row, &x) in values.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
        let tile = &gradients[row / F::LANES * len..(row / F::LANES + 1) * len];
        for k in 0..width {
            out[(k, x as usize)] += T::from_complex(get(C, tile, k, row % F::LANES));
        }
    }
}

/// An unknown cell is a leaf of ones: in monotonic circuits, which are real. Others do not come here with one.
fn unknown<F: Real>(tile: &mut [F], lane: usize) {
    tile.chunks_exact_mut(F::LANES).for_each(|lanes| lanes[lane] = F::ONE);
}

/// 2ⁿ within the normal range.
pub(super) fn power_of_two(n: i64) -> f64 {
    f64::from_bits(((1023 + n).clamp(1, 2046) as u64) << 52)
}

fn range<F: Real, const C: bool>(
    program: &Program,
    step: usize,
    tile: usize,
) -> std::ops::Range<usize> {
    let len = tile_len::<F>(C, program.steps()[step].width);
    tile * len..(tile + 1) * len
}

fn part<'a, F: Real, const C: bool>(
    program: &Program,
    step: usize,
    tile: usize,
    buffer: &'a mut Buffer<F>,
) -> &'a mut [F] {
    &mut buffer[range::<F, C>(program, step, tile)]
}

/// Two different buffers of a list, to be changed.
fn two<F>(buffers: &mut [Buffer<F>], a: usize, b: usize) -> [&mut Buffer<F>; 2] {
    match buffers.get_disjoint_mut([a, b]) {
        Ok(pair) => pair,
        Err(_) => unreachable!("the inputs of a product are two different steps"),
    }
}

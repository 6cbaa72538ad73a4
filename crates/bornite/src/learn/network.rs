//! The forward and reverse pass of learning, on complete rows: log ‖c(x)‖² and its gradient by every weight.
//!
//! Rows go through in chunks of a few tiles, in parallel; each chunk keeps its vectors and their gradients. The weight
//! gradients are then summed over all chunks in order, one weight a task, so that no result depends on the number of
//! threads.

use std::sync::Arc;

use rayon::prelude::*;

use crate::basis::Basis;
use crate::circuit::{Circuit, Layer, LayerId};
use crate::engine::lanes::{planes, tile_len};
use crate::engine::{Buffer, Kernels, PackedWeight, Real, Rows, Simd, Uses, WeightGradient};
use crate::linalg::{Complex64, Matrix, Scalar};

/// Tiles to a chunk.
const TILES: usize = 4;

/// The layers of a circuit as binary steps in topological order, for learning its weights.
#[derive(Debug)]
pub(crate) struct Network {
    pub(super) steps: Vec<Step>,
    /// For each weight, the steps that use it.
    users: Vec<Vec<usize>>,
    shapes: Vec<Shape>,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) width: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// The functions of a variable, or a weight times them.
    Leaf { variable: usize, basis: Arc<Basis>, weight: Option<usize> },
    /// W (ℓ₁ ⊗ ℓ₂).
    Kronecker { inputs: [usize; 2], weight: usize },
    /// ℓ₁ ⊙ ℓ₂.
    Hadamard { inputs: [usize; 2] },
    /// W ℓ₁.
    Sum { input: usize, weight: usize },
}

/// What a weight is contracted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Plain,
    Kronecker(usize, usize),
}

/// A circuit that this pass cannot learn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// A Kronecker product without a sum above it, or of more than two inputs.
    #[error(
        "layer {layer}: learning takes Kronecker products of two inputs, each below a sum; \
             make the circuit from a binary region tree"
    )]
    Kronecker {
        /// The product layer.
        layer: LayerId,
    },
    /// A weight that is shared between sums over products of different widths.
    #[error("layer {layer}: its weight is shared with a sum over another kind of input")]
    SharedShape {
        /// The sum layer.
        layer: LayerId,
    },
}

impl Network {
    pub(crate) fn new(circuit: &Circuit) -> Result<Self, LearnError> {
        let mut network = Self {
            steps: Vec::new(),
            users: vec![Vec::new(); circuit.weights().len()],
            shapes: Vec::new(),
        };
        let mut shapes: Vec<Option<Shape>> = vec![None; circuit.weights().len()];
        let mut step_of = vec![usize::MAX; circuit.num_layers()];
        for id in circuit.layer_ids() {
            let below_sum =
                circuit.consumer(id).is_some_and(|c| matches!(circuit.layer(c), Layer::Sum { .. }));
            step_of[id.index()] = match circuit.layer(id) {
                Layer::Input { .. } if below_sum => continue,
                Layer::Input { variable, basis } => {
                    let kind = Kind::Leaf {
                        variable: variable.index(),
                        basis: basis.clone(),
                        weight: None,
                    };
                    network.push(basis.width(), kind)
                }
                Layer::Kronecker { inputs } if below_sum && inputs.len() == 2 => continue,
                Layer::Kronecker { .. } => return Err(LearnError::Kronecker { layer: id }),
                Layer::Hadamard { inputs } => {
                    let width = circuit.width(id);
                    inputs[1..].iter().fold(step_of[inputs[0].index()], |left, right| {
                        let inputs = [left, step_of[right.index()]];
                        network.push(width, Kind::Hadamard { inputs })
                    })
                }
                Layer::Sum { input, weight } => {
                    let weight = weight.index();
                    let (kind, shape) = network.sum(circuit, *input, weight, &step_of);
                    if shapes[weight].replace(shape).is_some_and(|old| old != shape) {
                        return Err(LearnError::SharedShape { layer: id });
                    }
                    let step = network.push(circuit.width(id), kind);
                    network.users[weight].push(step);
                    step
                }
            };
        }
        network.shapes = shapes.into_iter().map(|s| s.unwrap_or(Shape::Plain)).collect();
        Ok(network)
    }

    fn push(&mut self, width: usize, kind: Kind) -> usize {
        self.steps.push(Step { width, kind });
        self.steps.len() - 1
    }

    fn sum(
        &self,
        circuit: &Circuit,
        input: LayerId,
        weight: usize,
        step_of: &[usize],
    ) -> (Kind, Shape) {
        match circuit.layer(input) {
            Layer::Input { variable, basis } => {
                let (variable, basis) = (variable.index(), basis.clone());
                (Kind::Leaf { variable, basis, weight: Some(weight) }, Shape::Plain)
            }
            Layer::Kronecker { inputs } => {
                let inputs = [step_of[inputs[0].index()], step_of[inputs[1].index()]];
                let [k1, k2] = inputs.map(|i| self.steps[i].width);
                (Kind::Kronecker { inputs, weight }, Shape::Kronecker(k1, k2))
            }
            _ => (Kind::Sum { input: step_of[input.index()], weight }, Shape::Plain),
        }
    }

    /// Packs the weights for a pass.
    pub(crate) fn pack<F: Real, T: Scalar>(&self, weights: &[Matrix<T>]) -> Vec<PackedWeight<F>> {
        weights
            .par_iter()
            .zip(&self.shapes)
            .map(|(w, shape)| match *shape {
                Shape::Plain => PackedWeight::plain(w, Uses::LEARN),
                Shape::Kronecker(k1, k2) => PackedWeight::kronecker(w, [k1, k2], Uses::LEARN),
            })
            .collect()
    }

    /// log ‖c(x)‖² of every row, and the gradient of Σ `row_weight` log ‖c(x)‖² by every weight: ∂/∂re + i ∂/∂im.
    ///
    /// `indices` names the rows of the batch; they must be complete.
    pub(crate) fn gradient<F: Real, T: Scalar, const C: bool>(
        &self,
        weights: &[Matrix<T>],
        rows: &Rows<'_>,
        indices: &[usize],
        row_weight: f64,
    ) -> (Vec<f64>, Vec<Matrix<T>>) {
        let packed = self.pack::<F, T>(weights);
        let kernels = Kernels::<F, C>::new(Simd::default());
        let chunks: Vec<Chunk<F>> = indices
            .par_chunks(TILES * F::LANES)
            .map(|indices| {
                let mut chunk = Chunk::new(self, C, rows, indices);
                chunk.forward::<T, C>(self, kernels, weights, &packed);
                chunk.backward::<C>(self, kernels, &packed, row_weight);
                chunk
            })
            .collect();
        let gradients = (0..weights.len())
            .into_par_iter()
            .map(|w| self.weight_gradient::<F, T, C>(w, &weights[w], kernels, &chunks))
            .collect();
        let logs = chunks.iter().flat_map(|c| c.log_density.iter().copied()).collect();
        (logs, gradients)
    }

    /// log ‖c(x)‖² of every row named.
    pub(crate) fn log_density<F: Real, T: Scalar, const C: bool>(
        &self,
        weights: &[Matrix<T>],
        rows: &Rows<'_>,
        indices: &[usize],
    ) -> Vec<f64> {
        let packed = self.pack::<F, T>(weights);
        let kernels = Kernels::<F, C>::new(Simd::default());
        let chunks: Vec<Vec<f64>> = indices
            .par_chunks(TILES * F::LANES)
            .map(|indices| {
                let mut chunk = Chunk::new(self, C, rows, indices);
                chunk.forward::<T, C>(self, kernels, weights, &packed);
                chunk.log_density
            })
            .collect();
        chunks.concat()
    }

    fn weight_gradient<F: Real, T: Scalar, const C: bool>(
        &self,
        weight: usize,
        w: &Matrix<T>,
        kernels: Kernels<F, C>,
        chunks: &[Chunk<F>],
    ) -> Matrix<T> {
        let mut out = Matrix::zeros(w.rows(), w.cols());
        let mut tiled = match self.shapes[weight] {
            Shape::Plain => WeightGradient::plain(C, [w.rows(), w.cols()]),
            Shape::Kronecker(k1, k2) => WeightGradient::kronecker(C, [w.rows(), k1, k2]),
        };
        let mut scratch =
            Buffer::zeros(tile_len::<F>(C, Kernels::<F, C>::gradient_scratch(tiled.shape())));
        let mut is_tiled = false;
        for &step in &self.users[weight] {
            for chunk in chunks {
                let g = &chunk.gradients[step];
                match &self.steps[step].kind {
                    Kind::Leaf { variable, basis, .. } => {
                        if matches!(**basis, Basis::Indicator(_)) {
                            chunk.add_columns::<T, C>(*variable, step, &mut out);
                        } else {
                            kernels.sum_gradient(
                                g,
                                &chunk.functions[step],
                                &mut scratch,
                                &mut tiled,
                            );
                            is_tiled = true;
                        }
                    }
                    Kind::Kronecker { inputs: [a, b], .. } => {
                        let vectors = [&*chunk.vectors[*a], &*chunk.vectors[*b]];
                        kernels.kron_sum_gradient(g, vectors, &mut scratch, &mut tiled);
                        is_tiled = true;
                    }
                    Kind::Sum { input, .. } => {
                        kernels.sum_gradient(g, &chunk.vectors[*input], &mut scratch, &mut tiled);
                        is_tiled = true;
                    }
                    Kind::Hadamard { .. } => unreachable!("it has no weight"),
                }
            }
        }
        if is_tiled {
            tiled.add_to(&mut out);
        }
        out
    }
}

/// The vectors of a few tiles of rows at every step, and their gradients.
struct Chunk<F> {
    tiles: usize,
    rows: usize,
    /// The values of all variables, `[variable][row]`.
    values: Vec<f64>,
    vectors: Vec<Buffer<F>>,
    /// The basis functions below a leaf's weight, where they are not indicators.
    functions: Vec<Buffer<F>>,
    /// For each step and row the power of two that its vector was multiplied with.
    factors: Vec<Vec<F>>,
    /// By the vector *before* that multiplication.
    gradients: Vec<Buffer<F>>,
    log_density: Vec<f64>,
}

impl<F: Real> Chunk<F> {
    fn new(network: &Network, complex: bool, rows: &Rows<'_>, indices: &[usize]) -> Self {
        let tiles = indices.len().div_ceil(F::LANES);
        let mut values = Vec::with_capacity(indices.len() * rows.num_variables());
        for variable in 0..rows.num_variables() {
            values.extend(indices.iter().map(|&row| rows.value(row, variable)));
        }
        let buffers = |len: &dyn Fn(&Step) -> usize| -> Vec<Buffer<F>> {
            network
                .steps
                .iter()
                .map(|s| Buffer::zeros(tiles * tile_len::<F>(complex, len(s))))
                .collect()
        };
        Self {
            tiles,
            rows: indices.len(),
            values,
            vectors: buffers(&|s| s.width),
            functions: buffers(&|s| match &s.kind {
                Kind::Leaf { basis, weight: Some(_), .. }
                    if !matches!(**basis, Basis::Indicator(_)) =>
                {
                    basis.width()
                }
                _ => 0,
            }),
            factors: network.steps.iter().map(|_| vec![F::ONE; tiles * F::LANES]).collect(),
            gradients: Vec::new(),
            log_density: Vec::new(),
        }
    }

    fn values(&self, variable: usize) -> &[f64] {
        &self.values[variable * self.rows..(variable + 1) * self.rows]
    }

    fn forward<T: Scalar, const C: bool>(
        &mut self,
        network: &Network,
        kernels: Kernels<F, C>,
        weights: &[Matrix<T>],
        packed: &[PackedWeight<F>],
    ) {
        let mut exponents = vec![0_i64; self.tiles * F::LANES];
        for (index, step) in network.steps.iter().enumerate() {
            let mut out = std::mem::replace(&mut self.vectors[index], Buffer::zeros(0));
            let len = tile_len::<F>(C, step.width);
            match &step.kind {
                Kind::Leaf { variable, basis, weight } => {
                    self.leaf::<T, C>(
                        index,
                        *variable,
                        basis,
                        weight.map(|w| (&weights[w], &packed[w])),
                        kernels,
                        &mut out,
                    );
                }
                Kind::Kronecker { inputs: [a, b], weight } => {
                    for (n, tile) in out.chunks_exact_mut(len).enumerate() {
                        let (a, b) =
                            (self.tile::<C>(network, *a, n), self.tile::<C>(network, *b, n));
                        kernels.kron_sum(&packed[*weight], a, b, tile);
                    }
                }
                Kind::Hadamard { inputs: [a, b] } => {
                    for (n, tile) in out.chunks_exact_mut(len).enumerate() {
                        let (a, b) =
                            (self.tile::<C>(network, *a, n), self.tile::<C>(network, *b, n));
                        kernels.hadamard(a, b, tile);
                    }
                }
                Kind::Sum { input, weight } => {
                    for (n, tile) in out.chunks_exact_mut(len).enumerate() {
                        kernels.sum(&packed[*weight], self.tile::<C>(network, *input, n), tile);
                    }
                }
            }
            for (n, tile) in out.chunks_exact_mut(len).enumerate() {
                let mut taken = [0_i64; 32];
                kernels.rescale(tile, &mut taken[..F::LANES]);
                for lane in 0..F::LANES {
                    let place = n * F::LANES + lane;
                    exponents[place] += taken[lane];
                    self.factors[index][place] = F::from_f64(2_f64.powi(-taken[lane] as i32));
                }
            }
            self.vectors[index] = out;
        }
        self.close::<C>(network, kernels, &exponents);
    }

    fn tile<const C: bool>(&self, network: &Network, step: usize, n: usize) -> &[F] {
        let len = tile_len::<F>(C, network.steps[step].width);
        &self.vectors[step][n * len..(n + 1) * len]
    }

    fn leaf<T: Scalar, const C: bool>(
        &mut self,
        index: usize,
        variable: usize,
        basis: &Basis,
        weight: Option<(&Matrix<T>, &PackedWeight<F>)>,
        kernels: Kernels<F, C>,
        out: &mut [F],
    ) {
        let values = self.values(variable).to_vec();
        if let (Some((w, _)), Basis::Indicator(_)) = (weight, basis) {
            let len = tile_len::<F>(C, w.rows());
            for (row, &x) in values.iter().enumerate() {
                let tile = &mut out[row / F::LANES * len..(row / F::LANES + 1) * len];
                let column = (0..w.rows()).map(|k| w[(k, x as usize)].to_complex());
                crate::engine::set_lane(C, tile, row % F::LANES, column);
            }
            return;
        }
        let len = tile_len::<F>(C, basis.width());
        let mut f = vec![Complex64::ZERO; basis.width()];
        let functions: &mut [F] =
            if weight.is_some() { &mut self.functions[index] } else { &mut *out };
        for (row, &x) in values.iter().enumerate() {
            basis.evaluate(x, &mut f);
            let tile = &mut functions[row / F::LANES * len..(row / F::LANES + 1) * len];
            crate::engine::set_lane(C, tile, row % F::LANES, f.iter().copied());
        }
        if let Some((w, packed)) = weight {
            let inputs = self.functions[index].chunks_exact(len);
            for (input, tile) in inputs.zip(out.chunks_exact_mut(tile_len::<F>(C, w.rows()))) {
                kernels.sum(packed, input, tile);
            }
        }
    }

    fn close<const C: bool>(
        &mut self,
        network: &Network,
        kernels: Kernels<F, C>,
        exponents: &[i64],
    ) {
        let root = network.steps.len() - 1;
        let mut norms = vec![F::ZERO; F::LANES];
        let mut logs = Vec::with_capacity(self.rows);
        for n in 0..self.tiles {
            kernels.norm2(self.tile::<C>(network, root, n), &mut norms);
            for (lane, norm) in norms.iter().enumerate().take(self.rows - n * F::LANES) {
                let exponent = 2 * exponents[n * F::LANES + lane];
                logs.push(norm.to_f64().ln() + exponent as f64 * std::f64::consts::LN_2);
            }
        }
        self.log_density = logs;
    }

    /// From ∂ log ‖c‖² / ∂c = 2 c / ‖c‖² down; a row of density 0 has no gradient.
    fn backward<const C: bool>(
        &mut self,
        network: &Network,
        kernels: Kernels<F, C>,
        packed: &[PackedWeight<F>],
        row_weight: f64,
    ) {
        let root = network.steps.len() - 1;
        let mut gradients: Vec<Buffer<F>> =
            self.vectors.iter().map(|v| Buffer::zeros(v.len())).collect();
        gradients[root] = self.root_gradient::<C>(network, kernels, row_weight);
        for (index, step) in network.steps.iter().enumerate().rev() {
            let mut g = std::mem::replace(&mut gradients[index], Buffer::zeros(0));
            let len = tile_len::<F>(C, step.width);
            for (n, tile) in g.chunks_exact_mut(len).enumerate() {
                let factors = &self.factors[index][n * F::LANES..(n + 1) * F::LANES];
                for lanes in tile.chunks_exact_mut(F::LANES) {
                    for (x, &factor) in lanes.iter_mut().zip(factors) {
                        *x = F::from_f64(x.to_f64() * factor.to_f64());
                    }
                }
            }
            let range = |step: usize, n: usize| {
                let len = tile_len::<F>(C, network.steps[step].width);
                n * len..(n + 1) * len
            };
            match &step.kind {
                Kind::Leaf { .. } => {}
                Kind::Kronecker { inputs: [a, b], weight } => {
                    let [ga, gb] = two(&mut gradients, *a, *b);
                    for (n, tile) in g.chunks_exact(len).enumerate() {
                        let inputs =
                            [self.tile::<C>(network, *a, n), self.tile::<C>(network, *b, n)];
                        let outputs = [&mut ga[range(*a, n)], &mut gb[range(*b, n)]];
                        kernels.kron_sum_reverse(&packed[*weight], tile, inputs, outputs);
                    }
                }
                Kind::Hadamard { inputs: [a, b] } => {
                    let [ga, gb] = two(&mut gradients, *a, *b);
                    hadamard_reverse::<F, C>(&g, &self.vectors[*b], ga);
                    hadamard_reverse::<F, C>(&g, &self.vectors[*a], gb);
                }
                Kind::Sum { input, weight } => {
                    for (n, tile) in g.chunks_exact(len).enumerate() {
                        let out = &mut gradients[*input][range(*input, n)];
                        kernels.sum_reverse(&packed[*weight], tile, out);
                    }
                }
            }
            gradients[index] = g;
        }
        self.gradients = gradients;
    }

    fn root_gradient<const C: bool>(
        &self,
        network: &Network,
        kernels: Kernels<F, C>,
        row_weight: f64,
    ) -> Buffer<F> {
        let root = network.steps.len() - 1;
        let len = tile_len::<F>(C, network.steps[root].width);
        let mut g = self.vectors[root].clone();
        let mut norms = vec![F::ZERO; F::LANES];
        for (n, tile) in g.chunks_exact_mut(len).enumerate() {
            kernels.norm2(tile, &mut norms);
            for lanes in tile.chunks_exact_mut(F::LANES) {
                for (lane, x) in lanes.iter_mut().enumerate() {
                    let norm = norms[lane].to_f64();
                    let is_row = n * F::LANES + lane < self.rows && norm > 0.0;
                    let factor = if is_row { 2.0 * row_weight / norm } else { 0.0 };
                    *x = F::from_f64(x.to_f64() * factor);
                }
            }
        }
        g
    }

    /// Adds each row's gradient to the column of its value: the gradient of a weight over indicators.
    fn add_columns<T: Scalar, const C: bool>(
        &self,
        variable: usize,
        step: usize,
        out: &mut Matrix<T>,
    ) {
        let width = out.rows();
        let len = tile_len::<F>(C, width);
        for (row, &x) in self.values(variable).iter().enumerate() {
            let tile = &self.gradients[step][row / F::LANES * len..(row / F::LANES + 1) * len];
            for k in 0..width {
                let z = crate::engine::lanes::get(C, tile, k, row % F::LANES);
                out[(k, x as usize)] += T::from_complex(z);
            }
        }
    }
}

/// ga += g conj(b), number by number.
fn hadamard_reverse<F: Real, const C: bool>(g: &[F], b: &[F], ga: &mut [F]) {
    let step = planes(C) * F::LANES;
    let inputs = g.chunks_exact(step).zip(b.chunks_exact(step));
    for ((g, b), ga) in inputs.zip(ga.chunks_exact_mut(step)) {
        for lane in 0..F::LANES {
            let number = |t: &[F]| {
                let im = if C { t[F::LANES + lane].to_f64() } else { 0.0 };
                Complex64::new(t[lane].to_f64(), im)
            };
            let z = number(ga) + number(g) * number(b).conj();
            ga[lane] = F::from_f64(z.re);
            if C {
                ga[F::LANES + lane] = F::from_f64(z.im);
            }
        }
    }
}

/// Two different buffers of a list, to be changed.
fn two<F>(buffers: &mut [Buffer<F>], a: usize, b: usize) -> [&mut Buffer<F>; 2] {
    match buffers.get_disjoint_mut([a, b]) {
        Ok(pair) => pair,
        Err(_) => unreachable!("the inputs of a product are two different steps"),
    }
}

//! A block of rows with holes: the messages and environments of every step, and lanes in and out of them.

use super::Weights;
use super::layout::{Form, Message, Places, layout};
use crate::engine::lanes::{get, planes, tile_len};
use crate::engine::{Buffer, Kernels, Real, Rows, WeightGradient, set_lane};
use crate::learn::network::{Kind, Network, Step};
use crate::linalg::{Complex64, Matrix, Scalar};

/// The numbers of one step, of vectors and of matrices.
#[derive(Debug)]
pub(super) struct Tiles<F: Real> {
    pub(super) values: [Buffer<F>; 2],
    /// By the numbers *before* they were multiplied with their factors: gradients by vectors, and twice the environments
    /// of matrices.
    pub(super) environments: [Buffer<F>; 2],
    /// For each lane the power of two that its numbers were multiplied with.
    pub(super) factors: [Vec<F>; 2],
    /// The basis functions below a leaf's weight, where they are not indicators.
    pub(super) functions: Buffer<F>,
}

/// The gradient by one weight, of all but leaves.
#[derive(Debug)]
pub(super) struct Gradient<F: Real> {
    pub(super) sum: WeightGradient<F>,
    /// With its last two indices exchanged.
    pub(super) exchanged: Option<WeightGradient<F>>,
}

#[derive(Debug)]
pub(super) struct Block<F: Real> {
    pub(super) indices: Vec<usize>,
    pub(super) places: Vec<Places>,
    pub(super) steps: Vec<Tiles<F>>,
    pub(super) gradients: Vec<Option<Gradient<F>>>,
    /// Σ E / p over the rows that know nothing of a step, where that is not the identity.
    pub(super) unknown: Vec<Option<Matrix<Complex64>>>,
    /// log₂ of what has been divided out of each row's p.
    pub(super) log2: Vec<i64>,
    pub(super) logs: Vec<f64>,
    /// Rows of whose digits so many have canceled that they need more.
    pub(super) is_doubtful: Vec<bool>,
    pub(super) scratch: [Buffer<F>; 6],
}

impl<F: Real> Default for Block<F> {
    fn default() -> Self {
        Self {
            indices: Vec::new(),
            places: Vec::new(),
            steps: Vec::new(),
            gradients: Vec::new(),
            unknown: Vec::new(),
            log2: Vec::new(),
            logs: Vec::new(),
            is_doubtful: Vec::new(),
            scratch: empty(),
        }
    }
}

pub(super) fn empty<F: Real, const N: usize>() -> [Buffer<F>; N] {
    std::array::from_fn(|_| Buffer::zeros(0))
}

impl<F: Real> Block<F> {
    /// Takes up other rows, in the memory of those before.
    pub(super) fn load<T: Scalar, const C: bool>(
        &mut self,
        weights: &Weights<'_, F, T, C>,
        rows: &Rows<'_>,
        indices: &[usize],
        with_gradients: bool,
    ) {
        let network = weights.network;
        let count = network.steps.len();
        self.places = layout(network, rows, indices, weights.partition.is_orthonormal(), F::LANES);
        self.indices = indices.to_vec();
        self.log2 = vec![0; indices.len()];
        self.is_doubtful = vec![false; indices.len()];
        self.unknown = vec![None; count];
        self.steps.resize_with(count, || Tiles {
            values: empty(),
            environments: empty(),
            factors: [Vec::new(), Vec::new()],
            functions: Buffer::zeros(0),
        });
        let mut numbers = 0;
        let steps = self.steps.iter_mut().zip(&self.places).zip(&network.steps);
        for (index, ((tiles, places), step)) in steps.enumerate() {
            tiles.make_room(C, step, places.counts);
            if with_gradients {
                tiles.clear_environments(C, step, places, index + 1 == count);
            }
            numbers = numbers.max(scratch_numbers::<F, C>(network, step));
        }
        self.scratch.iter_mut().for_each(|s| s.grow(tile_len::<F>(C, numbers)));
        self.gradients.resize_with(network.shapes.len(), || None);
        for gradient in self.gradients.iter_mut().flatten() {
            gradient.sum.clear();
            gradient.exchanged.iter_mut().for_each(WeightGradient::clear);
        }
    }

    /// The rows that need more digits, by their places.
    pub(super) fn doubtful(&self) -> impl Iterator<Item = usize> {
        self.is_doubtful.iter().enumerate().filter(|(_, is)| **is).map(|(row, _)| row)
    }
}

/// The numbers of scratch memory that a step needs at most.
fn scratch_numbers<F: Real, const C: bool>(network: &Network, step: &Step) -> usize {
    let k = step.width;
    let (shape, is_product) = match &step.kind {
        Kind::Leaf { .. } => return k * k,
        Kind::Kronecker { inputs, .. } => (inputs.map(|i| network.steps[i].width), true),
        Kind::Hadamard { .. } => ([k, k], false),
        Kind::Sum { input, .. } => ([network.steps[*input].width, 1], false),
    };
    let [k1, k2] = shape;
    let shape = [k, k1, k2];
    let mut most = (k1 * k1).max(k2 * k2).max(k * k1);
    most = most.max(Kernels::<F, C>::gradient_scratch(shape));
    if !is_product {
        return most.max(Kernels::<F, C>::congruence_reverse_scratch(shape));
    }
    most.max(k * k2)
        .max(Kernels::<F, C>::mixed_scratch(shape))
        .max(Kernels::<F, C>::mixed_reverse_scratch(shape))
        .max(Kernels::<F, C>::block_reverse_scratch([k, k1.max(k2)]))
}

impl<F: Real> Tiles<F> {
    fn make_room(&mut self, complex: bool, step: &Step, counts: [usize; 2]) {
        let k = step.width;
        for (n, (numbers, tiles)) in [k, k * k].into_iter().zip(counts).enumerate() {
            let len = tiles * tile_len::<F>(complex, numbers);
            self.values[n].grow(len);
            self.factors[n].clear();
            self.factors[n].resize(tiles * F::LANES, F::ONE);
        }
        self.functions.grow(counts[0] * tile_len::<F>(complex, step.functions()));
    }

    /// Zeros for lanes without a row, and at the output for rows that have no gradient; all others will be set.
    fn clear_environments(&mut self, complex: bool, step: &Step, places: &Places, is_output: bool) {
        let k = step.width;
        let lens = [k, k * k].map(|numbers| tile_len::<F>(complex, numbers));
        for (n, len) in lens.into_iter().enumerate() {
            self.environments[n].grow(places.counts[n] * len);
        }
        for tile in places.tiles.iter().filter(|t| is_output || t.rows.len() < F::LANES) {
            let n = usize::from(!tile.is_pure());
            self.environments[n][tile.index * lens[n]..(tile.index + 1) * lens[n]].fill(F::ZERO);
        }
    }
}

/// What a step sends.
pub(super) struct Input<'a, F: Real, T> {
    width: usize,
    places: &'a Places,
    tiles: &'a Tiles<F>,
    /// Where nothing is known, unless it is the identity.
    unknown: Option<&'a Matrix<T>>,
}

impl<'a, F: Real, T: Scalar> Input<'a, F, T> {
    pub(super) fn new<const C: bool>(
        weights: &Weights<'a, F, T, C>,
        step: usize,
        places: &'a [Places],
        tiles: &'a [Tiles<F>],
    ) -> Self {
        Self {
            width: weights.network.steps[step].width,
            places: &places[step],
            tiles: &tiles[step],
            unknown: weights.partition.node(step).map(|node| &node.matrix),
        }
    }

    /// The messages of some rows in one form, as one tile: where they lie in one already, in order, that is it; else they
    /// are made in `scratch`, and lanes without a row are zero.
    pub(super) fn gather<const C: bool>(
        &self,
        form: Form,
        rows: &[u32],
        scratch: &'a mut [F],
    ) -> &'a [F] {
        let (kind, numbers) = match form {
            Form::Identity => return &[],
            Form::Vector => (Message::Vector, self.width),
            Form::Matrix => (Message::Matrix, self.width * self.width),
        };
        let len = tile_len::<F>(C, numbers);
        let values: &[F] = &self.tiles.values[kind as usize - 1];
        if let Some(tile) = in_order(self.places, kind, rows, F::LANES) {
            return &values[tile * len..(tile + 1) * len];
        }
        let out = &mut scratch[..len];
        if rows.len() < F::LANES {
            out.fill(F::ZERO);
        }
        // The lanes of rows of this kind, and where they begin in the values.
        let (mut lanes, mut count) = ([(0, 0); 32], 0);
        for (lane, &row) in rows.iter().enumerate() {
            if self.places.kind(row) == kind {
                let (tile, from) = self.places.place(row, F::LANES);
                lanes[count] = (lane, tile * len + from);
                count += 1;
            }
        }
        for (n, to) in out.chunks_exact_mut(F::LANES).enumerate() {
            for &(lane, start) in &lanes[..count] {
                to[lane] = values[start + n * F::LANES];
            }
        }
        if count == rows.len() {
            return out;
        }
        for (lane, &row) in rows.iter().enumerate() {
            let (tile, from) = self.places.place(row, F::LANES);
            match self.places.kind(row) {
                found if found == kind => {}
                Message::Vector => {
                    let v = self.vector::<C>(tile, from);
                    let outer = v.iter().flat_map(|&x| v.iter().map(move |y| x * y.conj()));
                    set_lane(C, out, lane, outer);
                }
                _ => self.set_unknown::<C>(out, lane),
            }
        }
        out
    }

    fn set_unknown<const C: bool>(&self, out: &mut [F], lane: usize) {
        if let Some(m) = self.unknown {
            set_lane(C, out, lane, m.data().iter().map(|x| x.to_complex()));
        } else {
            let entry = |n: usize| Complex64::from(f64::from(n.is_multiple_of(self.width + 1)));
            set_lane(C, out, lane, (0..self.width * self.width).map(entry));
        }
    }

    fn vector<const C: bool>(&self, tile: usize, lane: usize) -> Vec<Complex64> {
        let len = tile_len::<F>(C, self.width);
        let tile = &self.tiles.values[0][tile * len..(tile + 1) * len];
        (0..self.width).map(|k| get(C, tile, k, lane)).collect()
    }
}

/// The tile in which rows of one kind lie already, in order, if they do.
fn in_order(places: &Places, kind: Message, rows: &[u32], lanes: usize) -> Option<usize> {
    let (_, first) = places.rows[rows[0] as usize];
    let tile = (first as usize).is_multiple_of(lanes).then_some(first as usize / lanes)?;
    let is_next = |(&row, n): (&u32, u32)| places.rows[row as usize] == (kind, first + n);
    rows.iter().zip(0..).all(is_next).then_some(tile)
}

/// A step to which environments are sent.
pub(super) struct Receiver<'a, F: Real> {
    width: usize,
    places: &'a Places,
    tiles: &'a mut Tiles<F>,
    /// The sum over rows that know nothing here, where it is wanted.
    unknown: Option<&'a mut Option<Matrix<Complex64>>>,
}

impl<'a, F: Real> Receiver<'a, F> {
    pub(super) fn new<T: Scalar, const C: bool>(
        weights: &Weights<'_, F, T, C>,
        step: usize,
        places: &'a [Places],
        tiles: &'a mut [Tiles<F>],
        unknown: &'a mut [Option<Matrix<Complex64>>],
    ) -> Self {
        let is_wanted = !weights.partition.is_orthonormal();
        Self {
            width: weights.network.steps[step].width,
            places: &places[step],
            tiles: &mut tiles[step],
            unknown: is_wanted.then_some(&mut unknown[step]),
        }
    }

    /// Gives each row of a tile its gradient, or its environment. What is made of a vector as a matrix gives the gradient
    /// by the vector.
    pub(super) fn give<const C: bool>(
        &mut self,
        kernels: Kernels<F, C>,
        form: Form,
        rows: &[u32],
        e: &mut [F],
    ) {
        match form {
            Form::Identity => {}
            Form::Vector => self.give_lanes::<C>(kernels, Message::Vector, rows, e),
            Form::Matrix => {
                for (lane, &row) in rows.iter().enumerate() {
                    match self.places.kind(row) {
                        Message::Matrix => {}
                        Message::Unknown => self.sum_unknown::<C>(e, lane),
                        Message::Vector => self.give_vector_of::<C>(row, e, lane),
                    }
                }
                self.give_lanes::<C>(kernels, Message::Matrix, rows, e);
            }
        }
    }

    /// The rows of one kind get what is in their lanes, times their factors.
    fn give_lanes<const C: bool>(
        &mut self,
        kernels: Kernels<F, C>,
        kind: Message,
        rows: &[u32],
        e: &mut [F],
    ) {
        let (len, n) = (e.len(), kind as usize - 1);
        let to: &mut [F] = &mut self.tiles.environments[n];
        let factors = &self.tiles.factors[n];
        if rows.len() == F::LANES
            && let Some(tile) = in_order(self.places, kind, rows, F::LANES)
        {
            kernels.scale(e, &factors[tile * F::LANES..(tile + 1) * F::LANES]);
            to[tile * len..(tile + 1) * len].copy_from_slice(e);
            return;
        }
        // The rows of this kind: their lane, and where it begins in what they receive.
        let mut lanes = [(0, 0); 32];
        let (mut own, mut count) = ([F::ONE; 32], 0);
        for (lane, &row) in rows.iter().enumerate() {
            if self.places.kind(row) == kind {
                let (tile, place) = self.places.place(row, F::LANES);
                own[lane] = factors[tile * F::LANES + place];
                lanes[count] = (lane, tile * len + place);
                count += 1;
            }
        }
        kernels.scale(e, &own[..F::LANES]);
        for (n, from) in e.chunks_exact(F::LANES).enumerate() {
            for &(lane, start) in &lanes[..count] {
                to[start + n * F::LANES] = from[lane];
            }
        }
    }

    fn sum_unknown<const C: bool>(&mut self, e: &[F], lane: usize) {
        if let Some(sum) = &mut self.unknown {
            let k = self.width;
            let sum = sum.get_or_insert_with(|| Matrix::zeros(k, k));
            for (n, sum) in sum.data_mut().iter_mut().enumerate() {
                *sum += get(C, e, n, lane) * 0.5;
            }
        }
    }

    /// E* v.
    fn give_vector_of<const C: bool>(&mut self, row: u32, e: &[F], lane: usize) {
        let (tile, place) = self.places.place(row, F::LANES);
        let (k, len) = (self.width, tile_len::<F>(C, self.width));
        let v = &self.tiles.values[0][tile * len..(tile + 1) * len];
        let factor = self.tiles.factors[0][tile * F::LANES + place].to_f64();
        let entry = |i: usize| -> Complex64 {
            let terms = (0..k).map(|j| get(C, e, i * k + j, lane).conj() * get(C, v, j, place));
            terms.sum::<Complex64>() * factor
        };
        let to = &mut self.tiles.environments[0][tile * len..(tile + 1) * len];
        set_lane(C, to, place, (0..k).map(entry));
    }
}

/// The part of a buffer that is one tile of so many numbers.
pub(super) fn tile_of<F: Real, const C: bool>(
    numbers: usize,
    index: usize,
) -> std::ops::Range<usize> {
    let len = numbers * planes(C) * F::LANES;
    index * len..(index + 1) * len
}

//! The initial circuit, from the distributions of single columns and of clusters of rows.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::sync::Arc;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::decoder::Decoder;
use super::mixture::{Mixture, basis_frequencies, unit_rows};
use super::options::FitOptions;
use super::parameter::normalized;
use super::pieces::Rows;
use super::quota::Quota;
use crate::basis::Basis;
use crate::circuit::{
    Circuit, Layer, LayerId, Orthonormal, Skeleton, Weight, Weights, random_weight,
};
use crate::engine::Batch;
use crate::linalg::{Complex64, Matrix, eigh, row_orthonormalize};

/// The norm of the noise that is added to a mixture of products.
const MIXTURE_NOISE: f64 = 0.02;
/// The norm of the noise that is added to circuits that are not trained.
const NOISE_OF_PARTS: f64 = 1e-3;
/// The norm of the noise that is added to a single product.
const PRODUCT_NOISE: f64 = 0.3;
/// The maximum number of entries of a mixture that is kept for later fits.
const MAX_KEPT_ENTRIES: usize = 1 << 22;
/// If a matrix has more rows than this, its largest directions are approximate: ...
const MANY_ROWS: usize = 128;
/// ... those among the wanted number and this many more, ...
const EXTRA_DIRECTIONS: usize = 8;
/// ... after this many steps of the power method.
const POWER_STEPS: usize = 2;
/// The number of rows that initialize shared weights, in addition to the mixture.
const SHARED_ROWS: usize = 64;

/// The mixtures that fits of the same rows start from, kept from one fit to the next.
#[derive(Debug, Default)]
pub struct Starts {
    /// By the number of components and the seed; `None` if no mixture can be fitted.
    known: BTreeMap<(usize, u64), Option<Arc<Mixture>>>,
    /// The decoder of the rows, once it has been trained; `None` if there is none for them.
    decoder: OnceCell<Option<Arc<Decoder>>>,
    /// Learned circuits that fits continue from instead. Only the weights differ from those of the
    /// circuits to fit.
    learned: Vec<Circuit>,
    pub(super) quota: Quota,
}

impl Starts {
    /// Starts of fits within a budget.
    pub(crate) fn within(quota: &Quota) -> Self {
        Self { quota: quota.clone(), ..Self::default() }
    }

    /// Makes fits continue from these circuits, in this order.
    pub(crate) fn with_learned(self, learned: Vec<Circuit>) -> Self {
        Self { learned, ..self }
    }

    /// The fraction of the budget that has been used.
    pub(crate) fn used(&self) -> f64 {
        self.quota.used()
    }

    /// Whether the caller wants to stop at once.
    pub(crate) fn is_stopped(&self) -> bool {
        self.quota.is_stopped()
    }

    /// The mixture for a circuit: that of a decoder, or of separate components, one per square, if
    /// these are better on the validation rows.
    fn mixture(&mut self, circuit: &Skeleton, rows: Rows<'_>, seed: u64) -> Option<Arc<Mixture>> {
        let components = circuit.width(circuit.output());
        if let Some(known) = self.known.get(&(components, seed)) {
            return known.clone();
        }
        let bases = bases(circuit)?;
        let decoder = self.decoder(&bases, rows);
        // A separate stream, so that the mixture is the same for every circuit.
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(3);
        let own = Mixture::fit(components, &bases, rows.train, &mut rng, &self.quota);
        let is_worse = |decoder: &Arc<Decoder>| {
            own.as_ref().is_none_or(|own| own.mean_log_likelihood(rows.valid) < decoder.valid)
        };
        let mixture = match decoder.filter(is_worse) {
            Some(decoder) => Some(Arc::new(decoder.mixture(seed))),
            None => own.map(Arc::new),
        };
        if mixture.as_ref().is_none_or(|m| m.num_entries() <= MAX_KEPT_ENTRIES) {
            self.known.insert((components, seed), mixture.clone());
        }
        mixture
    }

    /// The decoder of the rows, trained once. It does not depend on the seed of a fit, so that a fit
    /// that continues from a checkpoint has the same one.
    fn decoder(&self, bases: &[&Basis], rows: Rows<'_>) -> Option<Arc<Decoder>> {
        let fit = || {
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            let both = [rows.train, rows.valid];
            Decoder::fit(bases, both, &mut rng, &self.quota).map(Arc::new)
        };
        self.decoder.get_or_init(fit).clone()
    }

    /// Circuits that together are close to a decoder's mixture of many components, with equal
    /// weights. Empty if there is no decoder for the rows, or a circuit is no tree of Kronecker
    /// products.
    pub(crate) fn circuits_of_decoder(
        &self,
        circuit: &Skeleton,
        rows: Rows<'_>,
    ) -> Vec<Orthonormal> {
        let decoder = bases(circuit).and_then(|bases| self.decoder(&bases, rows));
        let parts = decoder.map_or(Vec::new(), |decoder| decoder.parts());
        let built = parts.par_iter().map(|part| {
            let noise = Noise { complex: false, norm: NOISE_OF_PARTS, seed: 0 };
            let weights = near_mixture(circuit, part, rows.train, noise, None)?;
            let weights = weights.into_iter().map(|w| weight(w, false));
            Orthonormal::verify(with_weights(circuit, weights)).ok()
        });
        built.collect::<Option<_>>().unwrap_or_default()
    }
}

/// The basis of every variable.
fn bases(circuit: &Skeleton) -> Option<Vec<&Basis>> {
    let mut bases: Vec<Option<&Basis>> = vec![None; circuit.variables().len()];
    for layer in circuit.layers() {
        if let Layer::Input { variable, basis } = layer {
            bases[variable.index()] = Some(basis);
        }
    }
    bases.into_iter().collect()
}

/// The start of one fit.
#[derive(Debug)]
pub(super) struct Start<'a> {
    pub(super) starts: &'a mut Starts,
    /// The first rows of all weights, from a [smaller circuit](super::grow::grown).
    pub(super) grown: Option<Vec<Matrix<Complex64>>>,
    /// The index of the learned circuit to continue from, if there is one.
    pub(super) place: usize,
}

impl<'a> Start<'a> {
    /// A start that depends only on the rows.
    pub(super) fn new(starts: &'a mut Starts) -> Self {
        Self { starts, grown: None, place: 0 }
    }

    /// Whether the fit continues from a learned circuit.
    pub(super) fn is_learned(&self) -> bool {
        self.place < self.starts.learned.len()
    }
}

/// A circuit with the same layers and initial weights: see [`near_mixture`] and [`near_product`].
pub(super) fn first_circuit(
    circuit: &Skeleton,
    rows: Rows<'_>,
    options: &FitOptions,
    start: Start<'_>,
    rng: &mut impl Rng,
) -> Circuit {
    let Start { starts, grown, place } = start;
    let complex = options.complex;
    if let Some(learned) = starts.learned.get(place) {
        let weights = learned.weights().iter().map(|w| w.to_matrix::<Complex64>().into_owned());
        return with_weights(circuit, weights.map(|w| weight(w, complex)));
    }
    let is_kronecker = !circuit.layers().iter().any(|l| matches!(l, Layer::Hadamard { .. }));
    let mixture = if is_kronecker { starts.mixture(circuit, rows, options.seed) } else { None };
    let noise = Noise { complex, norm: MIXTURE_NOISE, seed: rng.random() };
    let weights = mixture
        .and_then(|mixture| near_mixture(circuit, &mixture, rows.train, noise, grown))
        .unwrap_or_else(|| near_product(circuit, rows.train, complex, rng));
    let weights = weights.into_iter().map(|w| weight(w, complex));
    with_weights(circuit, weights)
}

/// A circuit with the same layers and placeholder weights, which will be replaced.
pub(super) fn placeholder(circuit: &Skeleton, complex: bool) -> Circuit {
    let shapes = circuit.weight_shapes().iter();
    let weights = shapes.map(|&[rows, cols]| {
        let one = |k: usize, n: usize| Complex64::from(f64::from(u8::from(k == n)));
        weight(Matrix::from_fn(rows, cols, one), complex)
    });
    with_weights(circuit, weights)
}

fn weight(w: Matrix<Complex64>, complex: bool) -> Weight {
    if complex { Weight::Complex(w) } else { Weight::Real(w.map(|z| z.re)) }
}

/// The circuit with weights of the right shapes.
pub(super) fn with_weights(
    circuit: &Skeleton,
    weights: impl IntoIterator<Item = Weight>,
) -> Circuit {
    match circuit.with_weights(weights) {
        Ok(circuit) => circuit,
        Err(error) => unreachable!("weights of the right shapes: {error}"),
    }
}

/// Weights near a fitted mixture of products. The circuit then represents clusters of rows from the
/// start, and only has to learn the rest.
///
/// The root of each component's density is a product of functions of single variables. A layer keeps
/// the K directions in which the weighted components are largest. The output has one square per
/// component or, if there are more components, the largest squares of the same sum. If the widths suffice, the result is the mixture itself, up to noise of this norm. A
/// shared weight keeps the directions in which the components and some of the rows are largest over
/// all of its layers. A codebook starts as [smooth functions](codebook) of the values. `None` if
/// there are Hadamard products, because a Hadamard product of sums is not a sum of products.
fn near_mixture(
    circuit: &Skeleton,
    mixture: &Mixture,
    rows: &Batch,
    noise: Noise,
    grown: Option<Vec<Matrix<Complex64>>>,
) -> Option<Vec<Matrix<Complex64>>> {
    FromMixture::new(circuit, mixture, rows, noise, grown).weights()
}

/// The noise that is added to initial weights.
#[derive(Debug)]
struct Noise {
    complex: bool,
    norm: f64,
    seed: u64,
}

impl Noise {
    /// The noise of one weight, from a separate stream of random numbers.
    fn of(&self, weight: usize, shape: [usize; 2]) -> Matrix<Complex64> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(weight as u64);
        noise(shape, self.complex, self.norm, &mut rng)
    }
}

/// A circuit that gets initial weights from a mixture.
#[derive(Debug)]
struct FromMixture<'a> {
    circuit: &'a Skeleton,
    mixture: &'a Mixture,
    batch: &'a Batch,
    /// The indices of some complete rows.
    rows: Vec<usize>,
    noise: Noise,
    /// The sums, grouped by the number of sums below them.
    levels: Vec<Vec<LayerId>>,
    /// Whether there is a shared weight at or above each layer.
    below_shared: Vec<bool>,
    /// The first rows of all weights, from a smaller circuit.
    grown: Option<Vec<Matrix<Complex64>>>,
}

/// The components and the conjugated rows in terms of the functions of a layer, one per row of a
/// matrix.
#[derive(Debug)]
struct Projections {
    components: Matrix<Complex64>,
    rows: Option<Matrix<Complex64>>,
}

impl<'a> FromMixture<'a> {
    fn new(
        circuit: &'a Skeleton,
        mixture: &'a Mixture,
        batch: &'a Batch,
        noise: Noise,
        grown: Option<Vec<Matrix<Complex64>>>,
    ) -> Self {
        let mut heights = vec![0; circuit.num_layers()];
        let mut levels: Vec<Vec<LayerId>> = Vec::new();
        let mut users = vec![0_usize; circuit.weight_shapes().len()];
        for id in circuit.layer_ids() {
            let below = circuit.layer(id).inputs().iter().map(|i| heights[i.index()]).max();
            let below = below.unwrap_or(0);
            heights[id.index()] = below;
            if let Layer::Sum { weight, .. } = circuit.layer(id) {
                users[weight.index()] += 1;
                heights[id.index()] = below + 1;
                levels.resize_with(levels.len().max(below + 1), Vec::new);
                levels[below].push(id);
            }
        }
        let mut below_shared = vec![false; circuit.num_layers()];
        for id in circuit.layer_ids().rev() {
            let is_shared = match circuit.layer(id) {
                Layer::Sum { weight, .. } => users[weight.index()] > 1,
                Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } => false,
            };
            let above = circuit.consumer(id).is_some_and(|c| below_shared[c.index()]);
            below_shared[id.index()] = is_shared || above;
        }
        let step = batch.len().div_ceil(SHARED_ROWS).max(1);
        let is_complete =
            |&row: &usize| !(0..batch.num_variables()).any(|v| batch.is_missing(row, v));
        let rows = (0..batch.len()).step_by(step).filter(is_complete).collect();
        Self { circuit, mixture, batch, rows, noise, levels, below_shared, grown }
    }

    /// Computes all weights, level by level from the inputs up. The weights of one level are computed
    /// in parallel.
    fn weights(&self) -> Option<Vec<Matrix<Complex64>>> {
        let mut weights: Vec<Option<Matrix<Complex64>>> =
            vec![None; self.circuit.weight_shapes().len()];
        let mut known: Vec<Option<Projections>> = Vec::new();
        known.resize_with(self.circuit.num_layers(), || None);
        for level in &self.levels {
            let mut users: BTreeMap<usize, Vec<(LayerId, LayerId)>> = BTreeMap::new();
            for &id in level {
                if let Layer::Sum { input, weight } = self.circuit.layer(id) {
                    users.entry(weight.index()).or_default().push((id, *input));
                }
            }
            let new: Option<Vec<_>> = users
                .par_iter()
                .filter(|(weight, _)| weights[**weight].is_none())
                .map(|(&weight, users)| Some((weight, self.weight(weight, users, &known)?)))
                .collect();
            for (weight, w) in new? {
                weights[weight] = Some(w);
            }
            let all: Vec<_> = users.iter().flat_map(|(w, u)| u.iter().map(|u| (*w, *u))).collect();
            let inside: Option<Vec<_>> = all
                .par_iter()
                .map(|&(weight, (id, input))| {
                    let w = weights[weight].as_ref()?;
                    let components = self.components(input, &known)?.times_adjoint(w);
                    let has_rows = self.below_shared[id.index()] && !self.rows.is_empty();
                    let rows = has_rows.then(|| self.values(input, &known)).flatten();
                    let rows = rows.map(|rows| rows.times_adjoint(w));
                    Some((id, Projections { components, rows }))
                })
                .collect();
            for (id, inside) in inside? {
                known[id.index()] = Some(inside);
            }
        }
        weights.into_iter().collect()
    }

    /// A weight, given the sums that use it and their inputs.
    fn weight(
        &self,
        weight: usize,
        users: &[(LayerId, LayerId)],
        known: &[Option<Projections>],
    ) -> Option<Matrix<Complex64>> {
        let [k, cols] = self.circuit.weight_shapes()[weight];
        let is_output = users[0].0 == self.circuit.output();
        if let Some(grown) = &self.grown {
            return self.grown_weight(weight, users, &grown[weight], known);
        }
        let main = if let [(_, input)] = users {
            let weighted = self.weighted(*input, known)?;
            if !is_output {
                directions(&weighted, k)?
            } else if weighted.rows() > k {
                // p(x) = |A x|² = |B x|² if Aᴴ A = Bᴴ B.
                let mut largest = directions(&weighted, k)?;
                let inside = largest.times_adjoint(&weighted);
                for row in 0..largest.rows() {
                    let norm = inside.row(row).iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
                    largest.row_mut(row).iter_mut().for_each(|z| *z *= norm);
                }
                largest
            } else {
                weighted
            }
        } else if let Some(codebook) = self.codebook(users, k) {
            return Some(normalized(codebook, false));
        } else {
            self.shared_directions(users, k, known)?
        };
        let noise = self.noise.of(weight, [k, cols]);
        Some(normalized(with_rows(noise, &main), is_output))
    }

    /// A weight whose first rows are already learned. The other rows are the directions of the
    /// components outside their span.
    fn grown_weight(
        &self,
        weight: usize,
        users: &[(LayerId, LayerId)],
        learned: &Matrix<Complex64>,
        known: &[Option<Projections>],
    ) -> Option<Matrix<Complex64>> {
        let shape = self.circuit.weight_shapes()[weight];
        let (k, new) = (learned.rows(), shape[0] - learned.rows());
        let is_output = users[0].0 == self.circuit.output();
        let mut w = self.noise.of(weight, shape);
        if let ([(_, input)], false) = (users, is_output) {
            let all = self.weighted(*input, known)?;
            let inside = all.times_adjoint(learned).times(learned);
            let outside = directions(&sum(all, &inside.scaled(-1.0)), new)?;
            for row in 0..outside.rows() {
                w.row_mut(k + row).iter_mut().zip(outside.row(row)).for_each(|(w, x)| *w += x);
            }
        }
        for row in 0..k {
            w.row_mut(row).copy_from_slice(learned.row(row));
        }
        Some(normalized(w, is_output))
    }

    /// The components in terms of the functions of a layer, times the roots of their weights.
    fn weighted(&self, id: LayerId, known: &[Option<Projections>]) -> Option<Matrix<Complex64>> {
        let mut m = self.components(id, known)?;
        for (k, w) in self.mixture.weights().iter().enumerate() {
            m.row_mut(k).iter_mut().for_each(|z| *z *= w.sqrt());
        }
        Some(m)
    }

    /// The components in terms of the functions of a layer. Each has unit norm, so that none fades
    /// because lower layers leave parts of it out.
    fn components(&self, id: LayerId, known: &[Option<Projections>]) -> Option<Matrix<Complex64>> {
        Some(unit_rows(match self.circuit.layer(id) {
            Layer::Input { variable, basis } => self.mixture.roots(variable.index(), basis),
            Layer::Kronecker { inputs } => {
                let mut inputs = inputs.iter().map(|i| self.components(*i, known));
                let first = inputs.next()??;
                inputs.try_fold(first, |a, b| Some(row_products(&a, &b?)))?
            }
            Layer::Hadamard { .. } => return None,
            Layer::Sum { .. } => known[id.index()].as_ref()?.components.clone(),
        }))
    }

    /// The conjugated functions of a layer at the rows, with unit norm.
    fn values(&self, id: LayerId, known: &[Option<Projections>]) -> Option<Matrix<Complex64>> {
        Some(unit_rows(match self.circuit.layer(id) {
            Layer::Input { variable, basis } => {
                let mut values = Matrix::zeros(self.rows.len(), basis.width());
                for (n, &row) in self.rows.iter().enumerate() {
                    let x = self.batch.value(row, variable.index());
                    basis.evaluate(x, values.row_mut(n));
                }
                values.map(|z: Complex64| z.conj())
            }
            Layer::Kronecker { inputs } => {
                let mut inputs = inputs.iter().map(|i| self.values(*i, known));
                let first = inputs.next()??;
                inputs.try_fold(first, |a, b| Some(row_products(&a, &b?)))?
            }
            Layer::Hadamard { .. } => return None,
            Layer::Sum { .. } => known[id.index()].as_ref()?.rows.clone()?,
        }))
    }

    /// The directions in which the components and the rows, with equal weight, are largest over all
    /// layers that share a weight.
    fn shared_directions(
        &self,
        users: &[(LayerId, LayerId)],
        most: usize,
        known: &[Option<Projections>],
    ) -> Option<Matrix<Complex64>> {
        // Partial sums of a fixed size, so that the result does not depend on the number of threads.
        let parts: Option<Vec<_>> = users
            .par_chunks(16)
            .map(|users| {
                let mut sums: [Option<Matrix<Complex64>>; 2] = [None, None];
                for (_, input) in users {
                    let rows = if self.rows.is_empty() { None } else { self.values(*input, known) };
                    let both = [Some(self.weighted(*input, known)?), rows];
                    for (total, m) in sums.iter_mut().zip(both) {
                        let Some(m) = m else { continue };
                        let gram = m.adjoint().times(&m);
                        *total = Some(match total.take() {
                            Some(total) => sum(total, &gram),
                            None => gram,
                        });
                    }
                }
                Some(sums)
            })
            .collect();
        let mut total: Option<Matrix<Complex64>> = None;
        for side in 0..2 {
            let sums = parts.as_ref()?.iter().filter_map(|sums| sums[side].as_ref());
            let Some(gram) = sums.cloned().reduce(|a, b| sum(a, &b)) else { continue };
            let trace: f64 = (0..gram.rows()).map(|n| gram[(n, n)].re).sum();
            let gram = gram.scaled(trace.max(f64::MIN_POSITIVE).recip());
            total = Some(match total {
                Some(total) => sum(total, &gram),
                None => gram,
            });
        }
        let vectors = eigh(&total?)?.vectors;
        let rank = most.min(vectors.cols());
        Some(Matrix::from_fn(rank, vectors.rows(), |k, n| vectors[(n, k)].conj()))
    }

    /// Smooth functions of the values, if a weight is shared by inputs of finite variables.
    fn codebook(&self, users: &[(LayerId, LayerId)], size: usize) -> Option<Matrix<Complex64>> {
        let mut total: Option<Vec<f64>> = None;
        for (_, input) in users {
            let Layer::Input { variable, basis } = self.circuit.layer(*input) else { return None };
            let Basis::Indicator(_) = **basis else { return None };
            let p = self.mixture.frequencies(variable.index())?;
            match &mut total {
                Some(total) => total.iter_mut().zip(p).for_each(|(sum, p)| *sum += p),
                None => total = Some(p),
            }
        }
        Some(codebook(&total?, size))
    }
}

/// Functions of ordered values with these frequencies. The first function is the indicator of the
/// most frequent value. The others are √h(x) cos(π m u(x)) for m = 0, 1, …, where h is the frequency
/// of a value and u the fraction of rows below it; they are zero at the most frequent value.
fn codebook(frequencies: &[f64], size: usize) -> Matrix<Complex64> {
    let most = frequencies.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
    let most = most.map_or(0, |(x, _)| x);
    let rest = |x: usize| if x == most { 0.0 } else { frequencies[x] };
    let total: f64 = (0..frequencies.len()).map(rest).sum();
    let mut below = 0.0;
    let ranks: Vec<f64> = (0..frequencies.len())
        .map(|x| {
            below += rest(x) / total;
            below - 0.5 * rest(x) / total
        })
        .collect();
    Matrix::from_fn(size, frequencies.len(), |m, x| {
        Complex64::from(match (m, x == most) {
            (0, is_most) => f64::from(u8::from(is_most)),
            (_, true) => 0.0,
            _ => (rest(x) / total).sqrt() * (PI * (m - 1) as f64 * ranks[x]).cos(),
        })
    })
}

fn sum(mut a: Matrix<Complex64>, b: &Matrix<Complex64>) -> Matrix<Complex64> {
    a.data_mut().iter_mut().zip(b.data()).for_each(|(a, b)| *a += b);
    a
}

/// The Kronecker product of each row of one matrix with the same row of another.
fn row_products(a: &Matrix<Complex64>, b: &Matrix<Complex64>) -> Matrix<Complex64> {
    let right = b.cols();
    Matrix::from_fn(a.rows(), a.cols() * right, |k, n| a[(k, n / right)] * b[(k, n % right)])
}

/// At most `most` orthonormal directions in which the rows of a matrix are largest, one per row, in
/// the order of their sizes.
fn directions(m: &Matrix<Complex64>, most: usize) -> Option<Matrix<Complex64>> {
    if m.rows() <= MANY_ROWS {
        return exact_directions(m, most);
    }
    let size = (most + EXTRA_DIRECTIONS).min(m.cols());
    let rng = &mut ChaCha8Rng::seed_from_u64(0);
    let mut basis = noise([size, m.cols()], false, 1.0, rng);
    // A basis of the whole space needs no steps.
    for _ in 0..if size < m.cols() { POWER_STEPS } else { 0 } {
        basis = row_orthonormalize(&basis.times_adjoint(m).times(m)).q;
        if basis.rows() == 0 {
            return Some(basis);
        }
    }
    if size == m.cols() {
        basis = Matrix::identity(size);
    }
    // The directions of Mᴴ are those of M in terms of the basis.
    let inside = basis.times_adjoint(m);
    let eigen = eigh(&inside.times_adjoint(&inside))?;
    let rank = rank(&eigen.values, most);
    let vectors = Matrix::from_fn(rank, basis.rows(), |k, n| eigen.vectors[(n, k)].conj());
    Some(vectors.times(&basis))
}

/// The number of the largest eigenvalues that are not rounding errors, at most `most`.
fn rank(values: &[f64], most: usize) -> usize {
    let least = 1e-12 * values.first().copied().unwrap_or(0.0);
    values.iter().take(most).take_while(|&&value| value > least).count()
}

fn exact_directions(m: &Matrix<Complex64>, most: usize) -> Option<Matrix<Complex64>> {
    let eigen = eigh(&m.times_adjoint(m))?;
    let rank = rank(&eigen.values, most);
    let projected = eigen.vectors.adjoint().times(m);
    Some(Matrix::from_fn(rank, m.cols(), |k, n| projected[(k, n)] / eigen.values[k].sqrt()))
}

/// Weights near the product of the rows' marginals. The first output of every layer is the product
/// of the first outputs below it; for a finite variable, it is the root of the frequencies. The rest
/// is random.
fn near_product(
    circuit: &Skeleton,
    rows: &Batch,
    complex: bool,
    rng: &mut impl Rng,
) -> Vec<Matrix<Complex64>> {
    let mut weights: Vec<Option<Matrix<Complex64>>> = vec![None; circuit.weight_shapes().len()];
    for id in circuit.layer_ids() {
        let Layer::Sum { input, weight } = circuit.layer(id) else { continue };
        let slot = &mut weights[weight.index()];
        if slot.is_some() {
            continue;
        }
        let [k, cols] = circuit.weight_shapes()[weight.index()];
        let first = marginal(circuit, *input, cols, rows);
        let noise = noise([k, cols], complex, PRODUCT_NOISE, rng);
        *slot = Some(normalized(with_rows(noise, &first), id == circuit.output()));
    }
    weights.into_iter().flatten().collect()
}

/// The first row of the weight of a sum: the root of a variable's distribution in the rows, or the product of the first
/// functions below.
fn marginal(circuit: &Skeleton, input: LayerId, cols: usize, rows: &Batch) -> Matrix<Complex64> {
    let one = |cols: usize| (0..cols).map(|n| f64::from(u8::from(n == 0))).collect();
    let first: Vec<f64> = match circuit.layer(input) {
        Layer::Input { variable, basis } => {
            match basis_frequencies(rows, variable.index(), basis) {
                Some(p) => {
                    let roots = p.into_iter().map(f64::sqrt);
                    roots.chain(std::iter::repeat(0.0)).take(cols).collect()
                }
                None => one(cols),
            }
        }
        Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => one(cols),
    };
    Matrix::from_fn(1, cols, |_, n| Complex64::from(first[n]))
}

/// The product of the variables' own distributions in the rows, as a circuit of layers with one function each. `None` if the
/// layers have more.
pub(crate) fn product(circuit: &Skeleton, rows: &Batch) -> Option<Circuit> {
    let mut weights: Vec<Option<Matrix<Complex64>>> = vec![None; circuit.weight_shapes().len()];
    for id in circuit.layer_ids() {
        let Layer::Sum { input, weight } = circuit.layer(id) else { continue };
        let [k, cols] = circuit.weight_shapes()[weight.index()];
        if k != 1 {
            return None;
        }
        let first = marginal(circuit, *input, cols, rows);
        weights[weight.index()] = Some(normalized(first, id == circuit.output()));
    }
    let weights: Option<Vec<_>> = weights.into_iter().collect();
    Some(with_weights(circuit, weights?.into_iter().map(|w| weight(w, false))))
}

/// A random matrix with rows of about this norm.
fn noise(
    [rows, cols]: [usize; 2],
    complex: bool,
    norm: f64,
    rng: &mut impl Rng,
) -> Matrix<Complex64> {
    let kind = if complex { Weights::Gaussian } else { Weights::RealGaussian };
    random_weight(rows, cols, kind, rng).to_matrix::<Complex64>().scaled(norm)
}

/// Adds the rows of one matrix to the first rows of another.
fn with_rows(mut w: Matrix<Complex64>, rows: &Matrix<Complex64>) -> Matrix<Complex64> {
    for k in 0..w.rows().min(rows.rows()) {
        w.row_mut(k).iter_mut().zip(rows.row(k)).for_each(|(w, x)| *w += x);
    }
    w
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::learn::mean_log_likelihood;
    use crate::structure::{Product, RegionTree, Structure};
    use crate::{Domain, Orthonormal, Variable};

    const COMPONENTS: usize = 3;

    /// Rows of six columns in two clusters: labels with two and with four values, and numbers. A few
    /// values are missing.
    fn clusters(rng: &mut impl Rng) -> (Vec<(Variable, Basis)>, Vec<f64>) {
        let finite =
            |v, n| (Variable::new(format!("x{v}"), Domain::Finite(n)), Basis::indicator(n));
        let real = |v| {
            (Variable::new(format!("x{v}"), Domain::Real), Basis::hermite(16, 0.0, 1.0).unwrap())
        };
        let columns =
            vec![finite(0, 2), finite(1, 4), real(2), finite(3, 4), real(4), finite(5, 2)];
        let mut values = Vec::new();
        for _ in 0..600 {
            let cluster = f64::from(rng.random_range(0..2_u8));
            for v in 0..6 {
                let flipped = if rng.random_bool(0.1) { 1.0 - cluster } else { cluster };
                values.push(match v {
                    _ if rng.random_bool(0.05) => f64::NAN,
                    0 | 5 => flipped,
                    1 | 3 => 2.0 * flipped + f64::from(rng.random_range(0..2_u8)),
                    _ => 3.0 * flipped - 1.5 + rng.random_range(-1.0..1.0),
                });
            }
        }
        (columns, values)
    }

    fn circuit(columns: &[(Variable, Basis)], width: usize, product: Product) -> Circuit {
        let leaf = |v: usize| columns[v].clone();
        let structure = Structure::new(RegionTree::balanced(columns.len()), leaf)
            .product(product)
            .width(width)
            .output_width(COMPONENTS);
        structure.build(Weights::Gaussian, &mut ChaCha8Rng::seed_from_u64(1)).unwrap()
    }

    fn start(circuit: &Circuit, rows: &Batch, norm: f64) -> Orthonormal {
        let mixture = Starts::default().mixture(circuit, Rows::new(rows, rows), 2).unwrap();
        let noise = Noise { complex: true, norm, seed: 5 };
        let weights = near_mixture(circuit, &mixture, rows, noise, None).unwrap();
        let weights = weights.into_iter().map(Weight::Complex);
        Orthonormal::verify(circuit.with_weights(weights).unwrap()).unwrap()
    }

    #[test]
    fn without_noise_the_start_is_the_mixture() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let (columns, values) = clusters(rng);
        // Only labels are exact, because the functions cannot represent roots of normal densities.
        let finite: Vec<_> = [0, 1, 3, 5].map(|v: usize| columns[v].clone()).into();
        let labels: Vec<f64> =
            values.chunks_exact(6).flat_map(|x| [x[0], x[1], x[3], x[5]]).collect();
        let circuit = circuit(&finite, COMPONENTS, Product::Kronecker);
        let rows = Batch::from_rows(circuit.variables(), &labels).unwrap();
        let exact = start(&circuit, &rows, 0.0);
        let mixture = Starts::default().mixture(&circuit, Rows::new(&rows, &rows), 2).unwrap();
        let engine = Engine::new(&exact);
        for (row, log) in engine.log_marginals(&rows).unwrap().into_iter().enumerate() {
            let expected = mixture.log_likelihood(&rows, row);
            assert!((log - expected).abs() < 1e-9, "row {row}: {log} for {expected}");
        }
    }

    #[test]
    fn the_start_represents_clusters() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let (columns, values) = clusters(rng);
        let circuit = circuit(&columns, 4, Product::Kronecker);
        let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
        let mixture = mean_log_likelihood(&start(&circuit, &rows, MIXTURE_NOISE), &rows);
        let product = near_product(&circuit, &rows, true, rng).into_iter().map(Weight::Complex);
        let product = Orthonormal::verify(circuit.with_weights(product).unwrap()).unwrap();
        let product = mean_log_likelihood(&product, &rows);
        assert!(mixture > product + 1.0, "{mixture}, {product}");
    }

    #[test]
    fn hadamard_products_start_near_a_single_product() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let (columns, values) = clusters(rng);
        let four: Vec<_> = [1, 3].map(|v: usize| columns[v].clone()).into();
        let values: Vec<f64> = values.chunks_exact(6).flat_map(|x| [x[1], x[3]]).collect();
        let circuit = circuit(&four, 4, Product::Hadamard);
        let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
        let options = FitOptions { complex: false, ..FitOptions::default() };
        let first = first_circuit(
            &circuit,
            Rows::new(&rows, &rows),
            &options,
            Start::new(&mut Starts::default()),
            rng,
        );
        assert!(first.is_real() && Orthonormal::verify(first).is_ok());
    }

    /// Images of one bright pixel on a gradient of gray levels.
    fn images(rng: &mut impl Rng) -> Vec<f64> {
        let mut values = Vec::new();
        for _ in 0..500 {
            let (bright, slope) = (rng.random_range(0..16), rng.random_range(0..3));
            let gray = |n: usize| if n == bright { 8 } else { n / 4 * slope };
            values.extend((0..16).map(|n| gray(n) as f64));
        }
        values
    }

    #[test]
    fn shared_weights_start_near_the_mixture() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(9)), Basis::indicator(9));
        let plain = Structure::new(RegionTree::aligned_image(4, 4, 1), leaf);
        let plain = plain.width(8).output_width(16);
        let values = images(rng);
        let score = |structure: &Structure| {
            let circuit =
                structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
            let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
            let random = mean_log_likelihood(&Orthonormal::verify(circuit.clone()).unwrap(), &rows);
            (random, mean_log_likelihood(&start(&circuit, &rows, MIXTURE_NOISE), &rows))
        };
        let (_, own) = score(&plain);
        for structure in [plain.clone().codebook(Some(8)), plain.clone().share(4)] {
            let (random, first) = score(&structure);
            assert!(first > random + 10.0 && first > own - 2.0, "{random}, {first}, {own}");
        }
    }

    #[test]
    fn codebooks_have_independent_functions() {
        let frequencies: Vec<f64> =
            (0..256).map(|x| if x == 7 { 0.5 } else { 0.5 / 255.0 }).collect();
        let book = normalized(codebook(&frequencies, 24), false);
        assert_eq!([book.rows(), book.cols()], [24, 256]);
        assert!(book.semi_unitary_residual() < 1e-12);
        assert_eq!(book[(0, 7)], Complex64::ONE);
        assert!((1..24).all(|m| book[(m, 7)] == Complex64::ZERO));
    }

    /// Rows near a few directions, which the power method finds; then a matrix with few columns, one
    /// with a single direction, and one without any.
    #[test]
    fn approximate_directions_are_almost_the_largest() {
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        let few = noise([6, 100], true, 1.0, rng);
        let near =
            sum(noise([300, 6], true, 1.0, rng).times(&few), &noise([300, 100], true, 0.1, rng));
        let narrow = noise([300, 5], true, 1.0, rng);
        let one = noise([300, 1], true, 1.0, rng).times(&noise([1, 100], true, 1.0, rng));
        for (m, rank) in [(near, 4), (narrow, 4), (one, 1), (Matrix::zeros(300, 100), 0)] {
            let found = directions(&m, 4).unwrap();
            let exact = exact_directions(&m, 4).unwrap();
            assert_eq!((found.rows(), exact.rows()), (rank, rank));
            assert!(found.semi_unitary_residual() < 1e-9);
            let inside = |w: &Matrix<Complex64>| w.times_adjoint(&m).norm2();
            assert!(
                inside(&found) >= 0.999 * inside(&exact),
                "{} {}",
                inside(&found),
                inside(&exact)
            );
        }
    }
}

//! A mixture of products whose components share their parameters.
//!
//! The *decoder* is a small neural network from points z of a few dimensions to the distributions of
//! all variables. Component k consists of the distributions at a point zₖ, and the points fill the
//! space evenly. Since the components share the network, hundreds of them do not overfit, where
//! separate components would.

#![expect(clippy::inline_always, reason = "only inlined code is compiled for the instruction set")]

use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::defaults::MAX_GROWN_VARIABLES;
use super::mixture::{Mixture, frequencies, most_frequent, softmax};
use super::quota::Quota;
use crate::basis::Basis;
use crate::engine::{Batch, Simd};
use crate::linalg::Matrix;

/// The number of components.
pub(super) const COMPONENTS: usize = 256;
/// The number of components of a mixture that becomes [circuits](Decoder::parts) itself.
const MANY_COMPONENTS: usize = 1024;
/// The dimension of the points.
const DIMENSION: usize = 4;
/// How often the components are halved into parts.
const HALVINGS: usize = 6;
/// The width of the inner layers.
const HIDDEN: usize = 128;
/// The number of points that are decoded together.
const POINTS: usize = 32;
/// The number of rows per step.
const BATCH: usize = 128;
/// The maximum numbers of steps and of passes over the rows.
const STEPS: usize = 6000;
const EPOCHS: usize = 80;
/// The maximum number of multiply-adds of all steps.
const WORK: f64 = 4e11;
/// The minimum number of variables. With fewer, separate components do as well.
const MIN_VARIABLES: usize = MAX_GROWN_VARIABLES + 1;
/// The minimum number of steps between two scores of the validation rows.
const STEPS_PER_SCORE: usize = 100;
/// Training ends after this many scores without a better one.
const PATIENCE: usize = 15;
/// The learning rate, and how fast weights decay at that rate. In the second half of the steps, the
/// rate falls to zero.
const RATE: f64 = 1e-3;
const DECAY: f64 = 0.3;
/// The averages of the gradient and its square.
const MOMENTS: [f64; 2] = [0.9, 0.999];
/// The slope of the inner functions for negative numbers.
const SLOPE: f64 = 0.01;
/// The maximum fraction of the remaining budget that training takes.
const MAX_QUOTA_SHARE: f64 = 0.15;
/// The maximum numbers of cells of the table, and of values of all variables.
const MAX_CELLS: usize = 16_000_000;
const MAX_VALUES: usize = 1 << 14;

/// The values of one variable among the outputs of the network. The most frequent value has none: its
/// logit is 0.
#[derive(Clone, Debug)]
struct Values {
    usual: usize,
    /// The first output, and the number of values.
    first: usize,
    count: usize,
}

impl Values {
    fn outputs(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.count - 1
    }

    /// The output of a value; `None` for the most frequent one.
    fn output(&self, value: usize) -> Option<usize> {
        (value != self.usual).then(|| self.first + value - usize::from(value > self.usual))
    }
}

/// Rows of a table: for every row, the outputs of its values that are not the most frequent ones.
/// The number of a variable after the last output stands for a missing value.
#[derive(Debug)]
struct Cells {
    ends: Vec<usize>,
    places: Vec<u32>,
}

impl Cells {
    fn new(rows: &Batch, variables: &[Values], outputs: usize) -> Self {
        let (mut ends, mut places) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in 0..rows.len() {
            for (v, variable) in variables.iter().enumerate() {
                let x = rows.value(row, v);
                let place =
                    if x.is_nan() { Some(outputs + v) } else { variable.output(x as usize) };
                places.extend(place.map(|place| place as u32));
            }
            ends.push(places.len());
        }
        Self { ends, places }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn of(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.places[start..self.ends[row]].iter().map(|&place| place as usize)
    }
}

/// The weights of a layer, one row per output. The last column is the offset.
type Weights = Matrix<f64>;

/// A trained decoder.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    variables: Vec<Values>,
    layers: [Weights; 3],
    /// The mean log-likelihood of the validation rows.
    pub(super) valid: f64,
}

/// What the network computes for a few points.
struct Decoded {
    /// The inputs of every layer, one row per point, with a last column of ones.
    inputs: [Matrix<f64>; 3],
    /// For every output, and then for every variable, one row: the logit of a value, and −log p of
    /// the most frequent value.
    table: Vec<f64>,
    /// log p of the most frequent values of all variables.
    usual: Vec<f64>,
    points: usize,
}

impl Decoder {
    /// Whether there is a decoder for these variables.
    pub(super) fn is_for(bases: &[&Basis], rows: &Batch) -> bool {
        let is_finite = |basis: &&Basis| matches!(basis, Basis::Indicator(_)) && basis.width() > 1;
        let values: usize = bases.iter().map(|basis| basis.width()).sum();
        let cells = rows.len().saturating_mul(bases.len());
        let is_large = values > MAX_VALUES || cells > MAX_CELLS;
        bases.len() >= MIN_VARIABLES && bases.iter().all(is_finite) && !is_large && cells > 0
    }

    /// Trains a decoder on rows. Of the networks that the validation rows score, the best one is
    /// kept.
    ///
    /// The same random numbers give the same bits, for any number of threads, unless the budget ends
    /// the training. `None` if there is no decoder for these variables.
    pub(super) fn fit(
        bases: &[&Basis],
        [train, valid]: [&Batch; 2],
        rng: &mut impl Rng,
        quota: &Quota,
    ) -> Option<Self> {
        if !Self::is_for(bases, train) || valid.is_empty() {
            return None;
        }
        let (begun, end) = (quota.used(), quota.after(MAX_QUOTA_SHARE));
        let mut decoder = Self::untrained(bases, train, rng);
        let outputs = decoder.num_outputs();
        let [train, valid] = [train, valid].map(|r| Cells::new(r, &decoder.variables, outputs));
        let steps_per_epoch = train.len().div_ceil(BATCH);
        let work = 3 * COMPONENTS * HIDDEN * (outputs + HIDDEN);
        let steps = STEPS.min(EPOCHS * steps_per_epoch).min((WORK / work as f64) as usize).max(1);
        let between = steps_per_epoch.max(STEPS_PER_SCORE.min(steps));
        let mut optimizer = Optimizer::new(&decoder.layers);
        let (mut best, mut waited, mut order): (Option<Self>, _, Vec<usize>) =
            (None, 0, Vec::new());
        for step in 0..steps {
            if order.is_empty() {
                order = (0..train.len()).collect();
                order.shuffle(rng);
            }
            let rows = order.split_off(order.len().saturating_sub(BATCH));
            let points = points(COMPONENTS, &std::array::from_fn(|_| rng.random()));
            let used = quota.used();
            let share = (step as f64 / steps as f64).max((used - begun) / (end - begun));
            let rate = RATE * (2.0 - 2.0 * share).clamp(0.0, 1.0);
            let gradients = decoder.gradients(&points, &train, &rows);
            optimizer.step(&mut decoder.layers, &gradients, rate);
            let is_last = step + 1 == steps || used >= end;
            if is_last || (step + 1) % between == 0 {
                decoder.valid = decoder.mean_log_likelihood(&valid);
                if decoder.valid.is_nan() {
                    break;
                }
                waited += 1;
                if best.as_ref().is_none_or(|best| decoder.valid > best.valid) {
                    (best, waited) = (Some(decoder.clone()), 0);
                }
                if is_last || waited >= PATIENCE {
                    break;
                }
            }
        }
        best.filter(|best| best.valid.is_finite())
    }

    /// A random network whose distributions are near the overall ones.
    fn untrained(bases: &[&Basis], rows: &Batch, rng: &mut impl Rng) -> Self {
        let (mut variables, mut logits) = (Vec::new(), Vec::new());
        for (v, basis) in bases.iter().enumerate() {
            let p = frequencies(rows, v, basis.width(), |x| x as usize);
            let usual = most_frequent(&p);
            variables.push(Values { usual, first: logits.len(), count: p.len() });
            let others = p.iter().enumerate().filter(|(x, _)| *x != usual);
            logits.extend(others.map(|(_, other)| (other / p[usual]).ln()));
        }
        let mut layer = |rows: usize, cols: usize| {
            let size = (cols as f64).sqrt().recip();
            Matrix::from_fn(rows, cols + 1, |_, _| rng.random_range(-size..size))
        };
        let mut layers =
            [layer(HIDDEN, DIMENSION), layer(HIDDEN, HIDDEN), layer(logits.len(), HIDDEN)];
        for (output, logit) in logits.into_iter().enumerate() {
            layers[2][(output, HIDDEN)] = logit;
        }
        Self { variables, layers, valid: f64::NEG_INFINITY }
    }

    fn num_outputs(&self) -> usize {
        self.layers[2].rows()
    }

    /// The mixture of the components at some points, which depend on the seed.
    pub(super) fn mixture(&self, seed: u64) -> Mixture {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(6);
        self.mixture_at(&points(COMPONENTS, &std::array::from_fn(|_| rng.random())))
    }

    /// A mixture of many components, in parts whose components are similar and that have the same
    /// weight.
    pub(super) fn parts(&self) -> Vec<Mixture> {
        let mut groups = vec![points(MANY_COMPONENTS, &[0.5; DIMENSION])];
        for halving in 0..HALVINGS {
            let coordinate = halving % DIMENSION;
            let halves = groups.into_iter().flat_map(|mut points| {
                points.sort_by(|a, b| a[coordinate].total_cmp(&b[coordinate]));
                let upper = points.split_off(points.len() / 2);
                [points, upper]
            });
            groups = halves.collect();
        }
        groups.iter().map(|points| self.mixture_at(points)).collect()
    }

    /// The mixture of the components at these points.
    fn mixture_at(&self, points: &[[f64; DIMENSION]]) -> Mixture {
        let (decoded, outputs) = (self.decode(points), self.num_outputs());
        let tables = self.variables.iter().enumerate().map(|(v, variable)| {
            let mut logs = Vec::with_capacity(variable.count * points.len());
            for value in 0..variable.count {
                for part in &decoded {
                    let row = |place: usize| &part.table[place * part.points..][..part.points];
                    let usual = row(outputs + v).iter();
                    match variable.output(value) {
                        Some(output) => logs.extend(usual.zip(row(output)).map(|(u, x)| x - u)),
                        None => logs.extend(usual.map(|u| -u)),
                    }
                }
            }
            (logs, variable.usual)
        });
        Mixture::of_tables(points.len(), tables)
    }

    /// Runs the network at points, a few of them together.
    fn decode(&self, points: &[[f64; DIMENSION]]) -> Vec<Decoded> {
        points.par_chunks(POINTS).map(|points| self.decode_few(points)).collect()
    }

    fn decode_few(&self, points: &[[f64; DIMENSION]]) -> Decoded {
        let n = points.len();
        let first = Matrix::from_fn(n, DIMENSION + 1, |k, i| *points[k].get(i).unwrap_or(&1.0));
        let inner = |input: &Matrix<f64>, layer: &Weights| {
            let sums = input.times_adjoint(layer);
            Matrix::from_fn(n, HIDDEN + 1, |k, i| {
                if i == HIDDEN { 1.0 } else { sums[(k, i)].max(SLOPE * sums[(k, i)]) }
            })
        };
        let second = inner(&first, &self.layers[0]);
        let third = inner(&second, &self.layers[1]);
        let logits = self.layers[2].times_adjoint(&third);
        let mut table = Vec::with_capacity((self.num_outputs() + self.variables.len()) * n);
        table.extend_from_slice(logits.data());
        let mut usual = vec![0.0; n];
        for variable in &self.variables {
            for k in 0..n {
                let at = |output: usize| logits[(output, k)];
                let max = variable.outputs().map(at).fold(0.0, f64::max);
                let sum = variable.outputs().map(|o| (at(o) - max).exp()).sum::<f64>();
                let log = max + ((-max).exp() + sum).ln();
                table.push(log);
                usual[k] -= log;
            }
        }
        Decoded { inputs: [first, second, third], table, usual, points: n }
    }

    /// The mean log-likelihood of rows.
    fn mean_log_likelihood(&self, rows: &Cells) -> f64 {
        let decoded = self.decode(&points(COMPONENTS, &[0.5; DIMENSION]));
        let all: Vec<usize> = (0..rows.len()).collect();
        let sums = all.par_chunks(BATCH).map(|some| {
            let mut logs = vec![0.0; some.len() * COMPONENTS];
            for (n, part) in decoded.iter().enumerate() {
                let scores = part.scores(rows, some);
                let scores = scores.chunks_exact(part.points);
                for (out, scores) in logs.chunks_exact_mut(COMPONENTS).zip(scores) {
                    out[n * POINTS..][..scores.len()].copy_from_slice(scores);
                }
            }
            logs.chunks_exact_mut(COMPONENTS).map(softmax).sum::<f64>()
        });
        let sums: Vec<f64> = sums.collect();
        sums.iter().sum::<f64>() / rows.len() as f64 - (COMPONENTS as f64).ln()
    }

    /// The gradients of the mean log-likelihood of some rows by the weights, one after another for
    /// every few points.
    fn gradients(
        &self,
        points: &[[f64; DIMENSION]],
        rows: &Cells,
        some: &[usize],
    ) -> Vec<[Weights; 3]> {
        let parts = points.par_chunks(POINTS).map(|points| {
            let decoded = self.decode_few(points);
            let scores = decoded.scores(rows, some);
            (decoded, scores)
        });
        let mut parts: Vec<(Decoded, Vec<f64>)> = parts.collect();
        // Scores become responsibilities, divided by the number of rows.
        let mut logs = Vec::with_capacity(points.len());
        for row in 0..some.len() {
            logs.clear();
            for (part, scores) in &parts {
                logs.extend_from_slice(&scores[row * part.points..][..part.points]);
            }
            softmax(&mut logs);
            let mut from = &logs[..];
            for (part, scores) in &mut parts {
                let (own, rest) = from.split_at(part.points);
                let shares = &mut scores[row * part.points..][..part.points];
                shares.iter_mut().zip(own).for_each(|(to, share)| *to = share / some.len() as f64);
                from = rest;
            }
        }
        parts.par_iter().map(|(part, shares)| self.reverse(part, rows, some, shares)).collect()
    }

    /// The gradients of the weights, given the responsibilities of a few points for rows.
    fn reverse(&self, at: &Decoded, rows: &Cells, some: &[usize], shares: &[f64]) -> [Weights; 3] {
        let (n, outputs) = (at.points, self.num_outputs());
        // Σ over the rows with a value, and over those with a missing one.
        let mut sums = vec![0.0; at.table.len()];
        let mut all = vec![0.0; n];
        Simd::default().run(
            #[inline(always)]
            || {
                for (&row, shares) in some.iter().zip(shares.chunks_exact(n)) {
                    add(&mut all, shares);
                    for place in rows.of(row) {
                        add(&mut sums[place * n..][..n], shares);
                    }
                }
            },
        );
        let mut logits = Matrix::zeros(outputs, n);
        for (v, variable) in self.variables.iter().enumerate() {
            let place = (outputs + v) * n;
            for output in variable.outputs() {
                for (k, out) in logits.row_mut(output).iter_mut().enumerate() {
                    let p = (at.table[output * n + k] - at.table[place + k]).exp();
                    *out = sums[output * n + k] - (all[k] - sums[place + k]) * p;
                }
            }
        }
        let last = logits.times(&at.inputs[2]);
        let mut above = Matrix::zeros(n, HIDDEN + 1);
        above.add_transposed_products(logits.data(), self.layers[2].data(), outputs);
        let above = through(&above, &at.inputs[2]);
        let second = above.transpose().times(&at.inputs[1]);
        let below = through(&above.times(&self.layers[1]), &at.inputs[1]);
        let first = below.transpose().times(&at.inputs[0]);
        [first, second, last]
    }
}

impl Decoded {
    /// log p of rows at every point.
    fn scores(&self, rows: &Cells, some: &[usize]) -> Vec<f64> {
        let n = self.points;
        let mut scores = Vec::with_capacity(some.len() * n);
        for _ in some {
            scores.extend_from_slice(&self.usual);
        }
        Simd::default().run(
            #[inline(always)]
            || {
                for (&row, out) in some.iter().zip(scores.chunks_exact_mut(n)) {
                    for place in rows.of(row) {
                        add(out, &self.table[place * n..][..n]);
                    }
                }
            },
        );
        scores
    }
}

/// The gradient of the sums of an inner layer, given that of its outputs, which are the inputs of the
/// next one.
fn through(gradient: &Matrix<f64>, outputs: &Matrix<f64>) -> Matrix<f64> {
    Matrix::from_fn(gradient.rows(), HIDDEN, |k, i| {
        gradient[(k, i)] * if outputs[(k, i)] > 0.0 { 1.0 } else { SLOPE }
    })
}

#[inline(always)]
fn add(sums: &mut [f64], row: &[f64]) {
    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
}

/// Adam, with weights that decay, except for the offsets.
struct Optimizer {
    means: [Weights; 3],
    squares: [Weights; 3],
    step: i32,
}

impl Optimizer {
    fn new(layers: &[Weights; 3]) -> Self {
        let zeros = || layers.each_ref().map(|w| Matrix::zeros(w.rows(), w.cols()));
        Self { means: zeros(), squares: zeros(), step: 0 }
    }

    /// Takes a step uphill, given gradients that are to be added.
    fn step(&mut self, layers: &mut [Weights; 3], gradients: &[[Weights; 3]], rate: f64) {
        self.step += 1;
        let [keep, keep_square] = MOMENTS;
        let [scale, scale_square] = MOMENTS.map(|keep| (1.0 - keep.powi(self.step)).recip());
        for (n, layer) in layers.iter_mut().enumerate() {
            let cols = layer.cols();
            let rows = layer.data_mut().par_chunks_exact_mut(cols).enumerate();
            let means = self.means[n].data_mut().par_chunks_exact_mut(cols);
            let squares = self.squares[n].data_mut().par_chunks_exact_mut(cols);
            rows.zip(means).zip(squares).for_each(|(((row, weights), means), squares)| {
                let mut sum = gradients[0][n].row(row).to_vec();
                for part in &gradients[1..] {
                    add(&mut sum, part[n].row(row));
                }
                let decay = 1.0 - rate * DECAY;
                weights[..cols - 1].iter_mut().for_each(|w| *w *= decay);
                for (((w, m), s), g) in weights.iter_mut().zip(means).zip(squares).zip(&sum) {
                    *m = keep * *m + (1.0 - keep) * g;
                    *s = keep_square * *s + (1.0 - keep_square) * g * g;
                    *w += rate * scale * *m / ((scale_square * *s).sqrt() + 1e-8);
                }
            });
        }
    }
}

/// Points that fill a cube around 0 as evenly as possible: a shifted lattice.
fn points(count: usize, shift: &[f64; DIMENSION]) -> Vec<[f64; DIMENSION]> {
    // The powers of 1 / g, where g⁵ = g + 1, are as far from fractions as possible together.
    let g = (0..60).fold(1.5_f64, |g, _| (1.0 + g).powf(1.0 / (DIMENSION as f64 + 1.0)));
    let point = |k: usize| {
        std::array::from_fn(|i| {
            let u = (shift[i] + k as f64 * g.powf(-1.0 - i as f64)).fract();
            // The variance of every coordinate is 1.
            12.0_f64.sqrt() * (u - 0.5)
        })
    };
    (0..count).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Domain, Variable};

    const NUM_VARIABLES: usize = 50;

    /// Rows along a line: the later a variable, the later on the line it changes from its first value
    /// to its last one. The third variable has three values; a few cells are missing.
    fn rows(count: usize, seed: u64) -> Batch {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let variables: Vec<Variable> = (0..NUM_VARIABLES)
            .map(|v| Variable::new(format!("x{v}"), Domain::Finite(if v == 2 { 3 } else { 2 })))
            .collect();
        let mut values = Vec::new();
        for _ in 0..count {
            let place = rng.random::<f64>() * NUM_VARIABLES as f64;
            for v in 0..NUM_VARIABLES {
                let is_late = (place > v as f64) != rng.random_bool(0.03);
                let last = if v == 2 { 2.0 } else { 1.0 };
                let is_missing = rng.random_bool(0.02);
                values.push(if is_missing {
                    f64::NAN
                } else {
                    last * f64::from(u8::from(is_late))
                });
            }
        }
        Batch::from_rows(&variables, &values).unwrap()
    }

    fn bases() -> Vec<Basis> {
        (0..NUM_VARIABLES).map(|v| Basis::indicator(if v == 2 { 3 } else { 2 })).collect()
    }

    fn fitted(train: &Batch, valid: &Batch) -> Option<Decoder> {
        let bases = bases();
        let bases: Vec<&Basis> = bases.iter().collect();
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        Decoder::fit(&bases, [train, valid], rng, &Quota::default())
    }

    #[test]
    fn gradients_are_those_of_the_mean_log_likelihood() {
        let (rows, bases) = (rows(30, 1), bases());
        let bases: Vec<&Basis> = bases.iter().collect();
        let mut decoder = Decoder::untrained(&bases, &rows, &mut ChaCha8Rng::seed_from_u64(2));
        let cells = Cells::new(&rows, &decoder.variables, decoder.num_outputs());
        let some: Vec<usize> = (0..rows.len()).collect();
        let points = points(COMPONENTS, &[0.5; DIMENSION]);
        let parts = decoder.gradients(&points, &cells, &some);
        for (layer, places) in
            [[(3, 1), (100, 4)], [(7, 90), (60, 128)], [(2, 5), (49, 128)]].into_iter().enumerate()
        {
            for place in places {
                let gradient: f64 = parts.iter().map(|part| part[layer][place]).sum();
                let step = 1e-4;
                let mut at = |change: f64| {
                    decoder.layers[layer][place] += change;
                    decoder.mean_log_likelihood(&cells)
                };
                let difference = (at(step) - at(-2.0 * step)) / (2.0 * step);
                at(step);
                let error = (gradient - difference).abs();
                assert!(
                    error < 1e-6 + 1e-4 * gradient.abs(),
                    "{layer} {place:?}: {gradient} {difference}"
                );
                assert!(gradient.abs() > 1e-7, "{layer} {place:?}: {gradient}");
            }
        }
    }

    #[test]
    fn a_decoder_learns_a_curve_better_than_separate_components() {
        let [train, valid] = [rows(1500, 1), rows(300, 2)];
        let decoder = fitted(&train, &valid).unwrap();
        let bases = bases();
        let bases: Vec<&Basis> = bases.iter().collect();
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let separate = Mixture::fit(8, &bases, &train, rng, &Quota::default()).unwrap();
        let separate = separate.mean_log_likelihood(&valid);
        assert!(decoder.valid > separate + 0.5, "{} {separate}", decoder.valid);
        // Other points are as good, and so are many in parts.
        let other = decoder.mixture(4).mean_log_likelihood(&valid);
        assert!((other - decoder.valid).abs() < 0.2, "{other} {}", decoder.valid);
        let parts = decoder.parts();
        assert_eq!(parts.len(), 1 << HALVINGS);
        for part in [&parts[0], &parts[63]] {
            assert_eq!(part.weights().len(), MANY_COMPONENTS >> HALVINGS);
            for (v, basis) in bases.iter().enumerate() {
                let total: f64 = part.frequencies(v).unwrap().iter().sum();
                assert!((total - 1.0).abs() < 1e-9, "{v}: {total}");
                assert_eq!(part.frequencies(v).unwrap().len(), basis.width());
            }
        }
        // The same random numbers give the same decoder.
        assert_eq!(fitted(&train, &valid).unwrap().valid.to_bits(), decoder.valid.to_bits());
    }

    #[test]
    fn few_or_continuous_variables_and_no_rows_have_no_decoder() {
        let (rows, all) = (rows(30, 1), bases());
        let bases: Vec<&Basis> = all.iter().collect();
        assert!(Decoder::is_for(&bases, &rows));
        assert!(!Decoder::is_for(&bases[..MIN_VARIABLES - 1], &rows));
        let smooth = Basis::legendre(4, 0.0, 1.0).unwrap();
        let mut mixed = bases.clone();
        mixed[7] = &smooth;
        assert!(!Decoder::is_for(&mixed, &rows));
        assert!(!Decoder::is_for(&bases, &rows.select(&[])));
        assert!(fitted(&rows, &rows.select(&[])).is_none());
    }

    #[test]
    fn without_a_budget_training_ends_at_once() {
        let [train, valid] = [rows(400, 1), rows(200, 2)];
        let bases = bases();
        let bases: Vec<&Basis> = bases.iter().collect();
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let decoder = Decoder::fit(&bases, [&train, &valid], rng, &Quota::new(|| 1.0)).unwrap();
        assert!(decoder.valid.is_finite());
        assert!(decoder.valid < fitted(&train, &valid).unwrap().valid);
    }
}

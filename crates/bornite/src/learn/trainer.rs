//! The state of a running fit, and its steps.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::checkpoint_bytes::{Reader, Writer};
use super::error::{LearnError, program_of};
use super::fit::{Control, Epoch, Fitted, Progress, Snapshot};
use super::objective::{Objective, is_orthonormal};
use super::optimizer::{Stride, schedule};
use super::options::FitOptions;
use super::parameter::{Parameter, Parameterization, normalized};
use super::pass::Workspace;
use crate::circuit::{Circuit, Layer, Orthonormal, Weight};
use crate::engine::Batch;
use crate::linalg::{Matrix, Scalar, largest};
use crate::ops::orthonormalize;
use crate::program::{Operand, Program, StepKind};

/// The best weights so far.
#[derive(Clone, Debug)]
pub(super) struct Best {
    pub(super) valid: f64,
    pub(super) epoch: usize,
    /// Of every weight the parts of its average.
    pub(super) weights: Vec<Vec<f32>>,
}

/// What a fit came to.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) best: Best,
    pub(super) history: Vec<Epoch>,
}

/// Where a fit stands, apart from its parameters.
#[derive(Debug)]
struct State {
    rng: ChaCha8Rng,
    /// The rows in the order of this epoch.
    order: Vec<usize>,
    step: u32,
    epoch: usize,
    /// Rows done in this epoch, and the sum of their log-likelihoods.
    rows: usize,
    sum: f64,
    /// The share of the caller's budget that is used up.
    used: f64,
    history: Vec<Epoch>,
    best: Option<Best>,
}

impl State {
    /// Epochs since the best one.
    fn vain(&self) -> usize {
        self.best.as_ref().map_or(0, |b| self.history.len() - 1 - b.epoch)
    }

    /// Whether as many epochs as this have ended without a better one.
    fn has_waited(&self, patience: usize) -> bool {
        self.rows == 0 && self.best.is_some() && self.vain() >= patience
    }
}

#[derive(Debug)]
pub(super) struct Trainer<'a, T, const C: bool> {
    options: &'a FitOptions,
    program: Program,
    parameters: Vec<Parameter<T>>,
    workspace: Workspace<f32>,
    state: State,
}

impl<'a, T: Scalar, const C: bool> Trainer<'a, T, C> {
    /// At the start of a fit.
    pub(super) fn new(
        circuit: &Circuit,
        train: &Batch,
        options: &'a FitOptions,
        rng: ChaCha8Rng,
    ) -> Result<Self, LearnError> {
        check(circuit, options)?;
        let parameters: Vec<Parameter<T>> = circuit
            .weights()
            .iter()
            .enumerate()
            .map(|(n, w)| {
                let is_output = output_weight(circuit) == Some(n);
                let w = w.to_matrix::<T>();
                Parameter::new(&w, is_output, options.parameterization, options.optimizer)
            })
            .collect();
        let program = program_of(circuit)?;
        let holes = train.has_missing() && options.parameterization != Parameterization::Monotonic;
        let workspace = Workspace::new(&program, &weights(&parameters), holes);
        let mut state = State {
            rng,
            order: (0..train.len()).collect(),
            step: 0,
            epoch: 0,
            rows: 0,
            sum: 0.0,
            used: 0.0,
            history: Vec::new(),
            best: None,
        };
        state.order.shuffle(&mut state.rng);
        Ok(Self { options, program, parameters, workspace, state })
    }

    /// Runs to the end.
    pub(super) fn run(
        mut self,
        train: &Batch,
        valid: &Batch,
        progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
    ) -> Outcome {
        while self.state.epoch < self.options.epochs
            && self.state.used < 1.0
            && !self.state.has_waited(self.options.patience)
        {
            while self.state.rows < self.state.order.len() && self.state.used < 1.0 {
                // Within the pool, so that it is entered once a step.
                let mean = rayon::scope(|_| self.learn(train));
                self.tell(mean, false, progress);
            }
            self.end_epoch(valid, progress);
        }
        let state = self.state;
        let none = || Best {
            valid: f64::NEG_INFINITY,
            epoch: 0,
            weights: self.parameters.iter().map(|p| p.moments.average.clone()).collect(),
        };
        Outcome { best: state.best.unwrap_or_else(none), history: state.history }
    }

    fn tell(
        &mut self,
        train: f64,
        epoch_ended: bool,
        progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
    ) {
        let state = &self.state;
        let at = Progress {
            candidate: 0,
            width: self.options.width,
            epoch: state.epoch,
            epochs: self.options.epochs,
            rows: if epoch_ended { state.order.len() } else { state.rows },
            epoch_rows: state.order.len(),
            train,
            valid: state.history.last().map(|e| e.valid),
            best: state.best.as_ref().map(|b| b.valid),
            epoch_ended,
            is_trial: false,
        };
        let write = |to: &mut Writer| self.write(to);
        match progress(&at, &Snapshot::new(&write)) {
            Control::Continue => {}
            Control::Used(share) => self.state.used = self.state.used.max(share),
            Control::Stop => self.state.used = f64::INFINITY,
        }
    }

    /// One step on the next batch; returns the batch's mean log-likelihood before it.
    fn learn(&mut self, rows: &Batch) -> f64 {
        let (options, state) = (self.options, &mut self.state);
        let end = (state.rows + options.batch.max(1)).min(state.order.len());
        let batch = &state.order[state.rows..end];
        let done = state.epoch as f64 + state.rows as f64 / state.order.len() as f64;
        let share = (done / options.epochs as f64).max(state.used);
        let weights = weights(&self.parameters);
        let objective = Objective::new(&self.program, weights, options.parameterization);
        let (mean, others) = if let Some(image) = options.shifts {
            let (moved, all) = shifted(rows, batch, image, &mut state.rng);
            objective.reverse::<f32, C>(&moved, &all, &mut self.workspace)
        } else {
            objective.reverse::<f32, C>(rows, batch, &mut self.workspace)
        };
        state.sum += mean * batch.len() as f64;
        state.rows = end;
        state.step += 1;
        let n = f64::from(state.step);
        let stride = Stride {
            optimizer: options.optimizer,
            rate: options.rate * schedule(options.schedule, share, options.warm_up, state.vain()),
            number: state.step,
            scale: 1.0,
            keep: options.averaging.min(n / (n + 9.0)),
        };
        self.step(others.as_deref(), stride);
        mean
    }

    /// Moves every parameter. Without a bound on the gradient of all, each is finished while it is in the cache.
    fn step(&mut self, others: Option<&[Matrix<T>]>, mut stride: Stride) {
        let (program, workspace) = (&self.program, &self.workspace);
        let options = self.options;
        let gradient = |n: usize, p: &Parameter<T>| {
            let shape = [p.w.rows(), p.w.cols()];
            let mut g = workspace.weight_gradient::<T, C>(program, n, shape);
            if let Some(others) = others {
                for (g, &other) in g.data_mut().iter_mut().zip(others[n].data()) {
                    *g += other;
                }
            }
            // Once for a weight, however many share it.
            if let (Operand::Indicators, Some(&step)) =
                (program.operand_of(n), program.users(n).first())
                && let StepKind::Leaf { variable, .. } = &program.steps()[step].kind
                && let Some(&s) = options.smoothing.get(*variable).filter(|s| **s > 0.0)
            {
                smooth(&mut g, &p.w, s);
            }
            if let (Operand::Vector, Some(&step)) =
                (program.operand_of(n), program.users(n).first())
                && let StepKind::Leaf { basis, .. } = &program.steps()[step].kind
                && options.roughness > 0.0
            {
                shrink(&mut g, &p.w, &basis.roughness(), options.roughness);
            }
            p.pull_back(g)
        };
        if let Some(clip) = self.options.clip {
            let all: Vec<Matrix<T>> =
                self.parameters.par_iter().enumerate().map(|(n, p)| gradient(n, p)).collect();
            let norm = all.iter().map(Matrix::norm2).sum::<f64>().sqrt();
            stride.scale = if norm > clip { clip / norm } else { 1.0 };
            let all = self.parameters.par_iter_mut().zip(&all);
            all.for_each(|(p, g)| p.step(g, &of_weight(stride, p, options)));
        } else {
            self.parameters.par_iter_mut().enumerate().for_each(|(n, p)| {
                let g = gradient(n, p);
                p.step(&g, &of_weight(stride, p, options));
            });
        }
        self.workspace.refill(&self.program, &weights(&self.parameters));
    }

    /// Scores the averaged weights.
    fn end_epoch(
        &mut self,
        valid: &Batch,
        progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
    ) {
        let averaged: Vec<Matrix<T>> =
            self.parameters.par_iter().map(Parameter::averaged).collect();
        let score = self.score(&averaged, valid);
        drop(averaged);
        let residual = self.residual();
        let state = &mut self.state;
        let train = state.sum / state.rows.max(1) as f64;
        state.history.push(Epoch { train, valid: score, residual });
        let epoch = state.history.len() - 1;
        if state.best.as_ref().is_none_or(|b| score > b.valid) {
            let weights = self.parameters.iter().map(|p| p.moments.average.clone()).collect();
            state.best = Some(Best { valid: score, epoch, weights });
        }
        state.epoch += 1;
        (state.rows, state.sum) = (0, 0.0);
        state.order.shuffle(&mut state.rng);
        // An ended fit is not told of again: what was written down last is where it goes on.
        if self.state.used < 1.0 {
            self.tell(train, true, progress);
        }
    }

    fn score(&self, averaged: &[Matrix<T>], rows: &Batch) -> f64 {
        let all: Vec<usize> = (0..rows.len()).collect();
        let weights: Vec<&Matrix<T>> = averaged.iter().collect();
        let workspace = Workspace::<f32>::new(&self.program, &weights, rows.has_missing());
        let objective = Objective::new(&self.program, weights, self.options.parameterization);
        objective.mean::<f32, C>(rows, &all, &workspace)
    }

    fn residual(&self) -> f64 {
        self.parameters.par_iter().map(Parameter::residual).reduce(|| 0.0, |a, b| largest([a, b]))
    }

    /// All that a continued fit needs.
    fn write(&self, to: &mut Writer) {
        let state = &self.state;
        to.rng(&state.rng);
        to.numbers(&state.order);
        let counts = [state.step as usize, state.epoch, state.rows];
        to.numbers(&counts);
        to.reals(&[state.sum, if state.used.is_finite() { state.used } else { 0.0 }]);
        write_history(&state.history, to);
        write_best(state.best.as_ref(), to);
        for p in &self.parameters {
            // A monotonic fit is never written: V would be lost.
            to.reals(T::parts(p.w.data()));
            for part in [&p.moments.mean, &p.moments.square, &p.moments.average] {
                to.singles(part);
            }
        }
    }

    /// Goes on where a fit was when it was written.
    pub(super) fn restore(&mut self, from: &mut Reader<'_>) -> Result<(), LearnError> {
        let rng = from.rng()?;
        let order = from.numbers()?;
        let counts = from.numbers()?;
        let reals = from.reals()?;
        let (&[step, epoch, rows], &[sum, used]) = (&counts[..], &reals[..]) else {
            return Err(LearnError::Damaged);
        };
        let len = self.state.order.len();
        if order.len() != len || rows > len || order.iter().any(|&n| n >= len) {
            return Err(LearnError::Damaged);
        }
        let history = read_history(from)?;
        let best = read_best(from)?;
        let lengths = |b: &Best| b.weights.iter().map(Vec::len).collect::<Vec<_>>();
        let own: Vec<usize> = self.parameters.iter().map(|p| p.moments.average.len()).collect();
        if best.as_ref().is_some_and(|b| lengths(b) != own || b.epoch >= history.len()) {
            return Err(LearnError::Damaged);
        }
        for p in &mut self.parameters {
            let weight = from.reals()?;
            if weight.iter().any(|x| !x.is_finite()) {
                return Err(LearnError::Damaged);
            }
            fill(T::parts_mut(p.w.data_mut()), &weight)?;
            let moments = &mut p.moments;
            for part in [&mut moments.mean, &mut moments.square, &mut moments.average] {
                fill(part, &from.finite_singles()?)?;
            }
        }
        let step = u32::try_from(step).map_err(|_| LearnError::Damaged)?;
        self.state = State { rng, order, step, epoch, rows, sum, used, history, best };
        self.workspace.refill(&self.program, &weights(&self.parameters));
        Ok(())
    }
}

fn fill<X: Copy>(to: &mut [X], from: &[X]) -> Result<(), LearnError> {
    if to.len() != from.len() {
        return Err(LearnError::Damaged);
    }
    to.copy_from_slice(from);
    Ok(())
}

pub(super) fn write_history(history: &[Epoch], to: &mut Writer) {
    let reals: Vec<f64> = history.iter().flat_map(|e| [e.train, e.valid, e.residual]).collect();
    to.reals(&reals);
}

pub(super) fn read_history(from: &mut Reader<'_>) -> Result<Vec<Epoch>, LearnError> {
    let reals = from.reals()?;
    let epoch = |e: &[f64]| Epoch { train: e[0], valid: e[1], residual: e[2] };
    Ok(reals.chunks_exact(3).map(epoch).collect())
}

pub(super) fn write_best(best: Option<&Best>, to: &mut Writer) {
    to.numbers(&best.map_or(Vec::new(), |b| vec![b.epoch, b.weights.len()]));
    if let Some(best) = best {
        to.reals(&[best.valid]);
        best.weights.iter().for_each(|w| to.singles(w));
    }
}

pub(super) fn read_best(from: &mut Reader<'_>) -> Result<Option<Best>, LearnError> {
    let (epoch, count) = match from.numbers()?[..] {
        [] => return Ok(None),
        [epoch, count] => (epoch, count),
        _ => return Err(LearnError::Damaged),
    };
    let [valid] = from.reals()?[..] else { return Err(LearnError::Damaged) };
    let mut weights = Vec::new();
    for _ in 0..count {
        weights.push(from.finite_singles()?);
    }
    Ok(Some(Best { valid, epoch, weights }))
}

fn weights<T>(parameters: &[Parameter<T>]) -> Vec<&Matrix<T>> {
    parameters.iter().map(|p| &p.w).collect()
}

/// Some rows of a batch of images, half of them moved to one of the eight neighbouring places, and their indices.
fn shifted(
    batch: &Batch,
    rows: &[usize],
    [height, width, channels]: [usize; 3],
    rng: &mut impl Rng,
) -> (Batch, Vec<usize>) {
    let moves: Vec<[usize; 2]> = (rows.iter())
        .map(|_| match rng.random_range(0..16) {
            // (0, 0) is the fifth of nine.
            n @ 0..4 => [n / 3, n % 3],
            n @ 4..8 => [(n + 1) / 3, (n + 1) % 3],
            _ => [1, 1],
        })
        .collect();
    let from = |n: usize, v: usize| {
        let [up, left] = moves[n];
        let (y, x, c) = (v / channels / width, v / channels % width, v % channels);
        let (y, x) = ((y + height + up - 1) % height, (x + width + left - 1) % width);
        (y * width + x) * channels + c
    };
    (batch.moved(rows, from), (0..rows.len()).collect())
}

/// The step of one weight.
fn of_weight<T: Scalar>(stride: Stride, p: &Parameter<T>, options: &FitOptions) -> Stride {
    let columns = if options.by_columns { p.w.cols().max(1) as f64 } else { 1.0 };
    Stride { rate: stride.rate / columns.sqrt(), ..stride }
}

/// The weight of the output, where that is a sum.
fn output_weight(circuit: &Circuit) -> Option<usize> {
    match circuit.layer(circuit.output()) {
        Layer::Sum { weight, .. } => Some(weight.index()),
        _ => None,
    }
}

fn check(circuit: &Circuit, options: &FitOptions) -> Result<(), LearnError> {
    for layer in circuit.layer_ids() {
        if let Layer::Input { basis, .. } = circuit.layer(layer)
            && is_orthonormal(options.parameterization)
            && !basis.is_orthonormal()
        {
            return Err(LearnError::Basis { layer });
        }
    }
    Ok(())
}

/// Adds the gradient of −s/2 Σ λₙ |w[n]|².
fn shrink<T: Scalar>(g: &mut Matrix<T>, w: &Matrix<T>, roughness: &[f64], s: f64) {
    for k in 0..w.rows() {
        for ((g, &w), rough) in g.row_mut(k).iter_mut().zip(w.row(k)).zip(roughness) {
            *g -= w.scale_by(s * rough);
        }
    }
}

/// Adds the gradient of −s/2 Σ |w[x] − w[x+1]|² over neighbouring values x.
fn smooth<T: Scalar>(g: &mut Matrix<T>, w: &Matrix<T>, s: f64) {
    for k in 0..w.rows() {
        let (row, g) = (w.row(k), g.row_mut(k));
        for x in 1..row.len() {
            let slope = (row[x] - row[x - 1]).scale_by(s);
            g[x] -= slope;
            g[x - 1] += slope;
        }
    }
}

impl Outcome {
    /// The circuit with the best weights, orthonormal. Fails only for weights from a damaged checkpoint.
    pub(super) fn into_fit(
        self,
        circuit: &Circuit,
        options: &FitOptions,
    ) -> Result<Fitted, LearnError> {
        let output = output_weight(circuit);
        let weights = circuit.weights().iter().zip(&self.best.weights).enumerate();
        let weights: Vec<Weight> = weights
            .map(|(n, (shape, parts))| {
                let (rows, cols, is_output) = (shape.rows(), shape.cols(), output == Some(n));
                if parts.len() > rows * cols {
                    weight::<crate::linalg::Complex64>(rows, cols, parts, is_output, options)
                } else {
                    weight::<f64>(rows, cols, parts, is_output, options)
                }
            })
            .collect();
        let circuit = circuit.with_weights(weights).map_err(|_| LearnError::Damaged)?;
        // Weights that are normalized stay as they are, and shared.
        let circuit = match Orthonormal::verify(circuit) {
            Ok(circuit) => circuit,
            Err(rejected) => {
                orthonormalize(&rejected.circuit).map_err(|_| LearnError::Damaged)?.circuit
            }
        };
        Ok(Fitted { circuit, valid: self.best.valid, history: self.history })
    }
}

fn weight<T: Scalar>(
    rows: usize,
    cols: usize,
    parts: &[f32],
    is_output: bool,
    options: &FitOptions,
) -> Weight {
    let mut w = Matrix::<T>::zeros(rows, cols);
    for (x, &part) in T::parts_mut(w.data_mut()).iter_mut().zip(parts) {
        *x = f64::from(part);
    }
    Weight::from_matrix(&if is_orthonormal(options.parameterization) {
        normalized(w, is_output)
    } else {
        w
    })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::{Domain, Variable};

    #[test]
    fn half_of_the_images_are_moved_by_a_pixel() {
        let (height, width) = (3, 4);
        let variables: Vec<Variable> =
            (0..24).map(|v| Variable::new(format!("x{v}"), Domain::Finite(24))).collect();
        // Every cell tells its place.
        let values: Vec<f64> = (0..24 * 5).map(|n| f64::from(n % 24)).collect();
        let batch = Batch::from_rows(&variables, &values).unwrap();
        let rows: Vec<usize> = (0..2000).map(|n| n % 5).collect();
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let (moved, all) = shifted(&batch, &rows, [height, width, 2], rng);
        assert_eq!(all.len(), rows.len());
        let mut counts = [0; 9];
        for row in 0..moved.len() {
            let values = moved.row(row);
            let (y, x) = (values[0] as usize / 2 / width, values[0] as usize / 2 % width);
            for (v, &from) in values.iter().enumerate() {
                let to = |at: usize, by: usize, length: usize| (at + by) % length;
                let (vy, vx) = (v / 2 / width, v / 2 % width);
                let place = to(vy, y, height) * width + to(vx, x, width);
                assert_eq!(from as usize, 2 * place + v % 2);
            }
            counts[(y + 1) % height * 3 + (x + 1) % width] += 1;
        }
        assert!(counts[4] > 900 && counts[4] < 1100, "{counts:?}");
        assert!(counts.iter().all(|&n| n > 80), "{counts:?}");
    }
}

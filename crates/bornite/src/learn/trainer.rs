//! The state of a running fit, and its steps.

use std::ops::Range;

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

use super::backend::{self, Backend, Numbers, Selection, Shifts, output_weight};
use super::checkpoint_bytes::{Reader, Writer};
use super::error::LearnError;
use super::layout::Layout;
use super::objective::is_orthonormal;
use super::optimizer::{Update, schedule};
use super::options::FitOptions;
use super::parameter::{Parameterization, normalized};
use super::pieces::{Pieces, Rows};
use super::progress::{Control, Epoch, Fitted, Progress, Snapshot};
use super::quota::Quota;
use crate::circuit::{Circuit, Layer, Orthonormal, Skeleton, Weight};
use crate::linalg::{Matrix, Scalar};
use crate::ops::orthonormalize;

/// The best weights so far.
#[derive(Clone, Debug)]
pub(super) struct Best {
    pub(super) valid: f64,
    pub(super) epoch: usize,
    /// The parts of every averaged weight.
    pub(super) weights: Vec<Vec<f32>>,
}

/// The epoch whose weights the backend keeps.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    valid: f64,
    epoch: usize,
}

impl Candidate {
    fn with(self, weights: Vec<Vec<f32>>) -> Best {
        Best { valid: self.valid, epoch: self.epoch, weights }
    }
}

/// The result of a fit.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) best: Best,
    pub(super) history: Vec<Epoch>,
}

/// The state of a fit, except for its parameters.
#[derive(Debug)]
struct State {
    rng: ChaCha8Rng,
    /// The rows in memory, in the order of this epoch, and how many of them are done.
    order: Vec<usize>,
    done: usize,
    /// The pieces of rows in the order of this epoch, and the range of them that is in memory.
    pieces: Vec<usize>,
    loaded: Range<usize>,
    step: u32,
    epoch: usize,
    /// Rows done in this epoch, and the sum of their log-likelihoods.
    rows: usize,
    sum: f64,
    /// The fraction of the caller's budget that has been used.
    used: f64,
    history: Vec<Epoch>,
    best: Option<Candidate>,
}

impl State {
    /// Shuffles the rows, or their pieces, for the next epoch.
    fn shuffle(&mut self, layout: Option<&Layout>) {
        self.done = 0;
        if let Some(layout) = layout {
            layout.shuffle(&mut self.pieces, &mut self.rng);
            (self.loaded, self.order) = (0..0, Vec::new());
        } else {
            self.order.shuffle(&mut self.rng);
        }
    }

    /// Whether all rows in memory are done.
    fn is_at_end(&self) -> bool {
        self.done == self.order.len()
    }

    /// The number of epochs since the best one.
    fn epochs_since_best(&self) -> usize {
        self.best.as_ref().map_or(0, |b| self.history.len().saturating_sub(1 + b.epoch))
    }

    /// Whether this many epochs have ended without a better one.
    fn has_waited(&self, patience: usize) -> bool {
        self.rows == 0 && self.best.is_some() && self.epochs_since_best() >= patience
    }
}

#[derive(Debug)]
pub(super) struct Trainer<'a> {
    options: &'a FitOptions,
    backend: Box<dyn Backend + 'a>,
    rows: Rows<'a>,
    state: State,
}

impl<'a> Trainer<'a> {
    /// Starts a fit with the weights of a circuit.
    pub(super) fn new(
        circuit: &Circuit,
        rows: Rows<'a>,
        options: &'a FitOptions,
        rng: ChaCha8Rng,
    ) -> Result<Self, LearnError> {
        check(circuit, options)?;
        let backend = backend::start(circuit, rows, options)?;
        let layout = rows.pieces.map(Pieces::layout);
        let mut state = State {
            rng,
            order: (0..rows.train.len()).collect(),
            done: 0,
            pieces: (0..layout.map_or(0, Layout::len)).collect(),
            loaded: 0..0,
            step: 0,
            epoch: 0,
            rows: 0,
            sum: 0.0,
            used: 0.0,
            history: Vec::new(),
            best: None,
        };
        state.shuffle(layout);
        Ok(Self { options, backend, rows, state })
    }

    /// Scores the first weights, so that the fit cannot end with worse ones.
    pub(super) fn keep_first(&mut self) -> Result<(), LearnError> {
        let valid = self.backend.score()?;
        self.backend.keep()?;
        self.state.best = Some(Candidate { valid, epoch: 0 });
        Ok(())
    }

    /// Runs to the end, or until the remaining budget only suffices to score the result.
    pub(super) fn run(
        mut self,
        quota: &Quota,
        progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
    ) -> Result<Outcome, LearnError> {
        let (begun, mut learned) = (quota.used(), 0);
        while self.state.epoch < self.options.epochs
            && self.state.used < 1.0
            && !self.state.has_waited(self.options.patience)
        {
            while self.state.rows < self.rows.num_train() && self.state.used < 1.0 {
                let before = self.state.rows;
                let mean = self.step()?;
                learned += self.state.rows - before;
                let used = quota.used();
                let scoring = (used - begun) / learned as f64 * self.rows.valid.len() as f64;
                if used + scoring >= 1.0 {
                    self.state.used = f64::INFINITY;
                }
                self.report(mean, false, progress);
            }
            self.end_epoch(progress)?;
        }
        let state = self.state;
        // Without a score, the weights are the latest.
        if state.best.is_none() {
            self.backend.keep()?;
        }
        let none = Candidate { valid: f64::NEG_INFINITY, epoch: 0 };
        let best = state.best.unwrap_or(none).with(self.backend.kept()?);
        Ok(Outcome { best, history: state.history })
    }

    /// Reports the progress to the caller, and follows its response.
    fn report(
        &mut self,
        train: f64,
        epoch_ended: bool,
        progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
    ) {
        let state = &self.state;
        let at = Progress {
            folds: 1,
            fold: 0,
            candidate: 0,
            width: self.options.width,
            epoch: state.epoch,
            epochs: self.options.epochs,
            rows: if epoch_ended { self.rows.num_train() } else { state.rows },
            epoch_rows: self.rows.num_train(),
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

    /// Loads a range of the pieces, and returns the number of their rows.
    fn load_pieces(&mut self, loaded: Range<usize>) -> Result<usize, LearnError> {
        let len = self.backend.set_pieces(&self.state.pieces[loaded.clone()])?;
        self.state.loaded = loaded;
        Ok(len)
    }

    /// Takes one step on the next batch, and returns the batch's mean log-likelihood before it.
    fn step(&mut self) -> Result<f64, LearnError> {
        // All rows of a round may be held out.
        while let (Some(pieces), true) = (self.rows.pieces, self.state.is_at_end()) {
            let start = self.state.loaded.end;
            let count = pieces.layout().round_len(&self.state.pieces[start..]);
            if count == 0 {
                return Err(LearnError::Damaged);
            }
            let len = self.load_pieces(start..start + count)?;
            let state = &mut self.state;
            (state.order, state.done) = ((0..len).collect(), 0);
            state.order.shuffle(&mut state.rng);
        }
        let (options, state) = (self.options, &mut self.state);
        let end = (state.done + options.batch.max(1)).min(state.order.len());
        let rows = &state.order[state.done..end];
        let done = state.epoch as f64 + state.rows as f64 / self.rows.num_train() as f64;
        let share = (done / options.epochs as f64).max(state.used);
        let shifts = options.shifts.map(|image| draw_shifts(image, rows.len(), &mut state.rng));
        let step = state.step + 1;
        let n = f64::from(step);
        let update = Update {
            optimizer: options.optimizer,
            rate: options.rate
                * schedule(options.schedule, share, options.warm_up, state.epochs_since_best()),
            number: step,
            scale: 1.0,
            keep: options.averaging.min(n / (n + 9.0)),
        };
        let selection = Selection { rows, shifts: shifts.as_ref() };
        let mean = self.backend.step(&selection, update)?;
        state.sum += mean * rows.len() as f64;
        state.rows += rows.len();
        state.done = end;
        state.step = step;
        Ok(mean)
    }

    /// Scores the averaged weights, and starts the next epoch.
    fn end_epoch(
        &mut self,
        progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
    ) -> Result<(), LearnError> {
        let score = self.backend.score()?;
        let residual = self.backend.residual()?;
        let state = &mut self.state;
        let train = state.sum / state.rows.max(1) as f64;
        state.history.push(Epoch { train, valid: score, residual });
        let epoch = state.history.len() - 1;
        if state.best.as_ref().is_none_or(|b| score > b.valid) {
            self.backend.keep()?;
            state.best = Some(Candidate { valid: score, epoch });
        }
        state.epoch += 1;
        (state.rows, state.sum) = (0, 0.0);
        state.shuffle(self.rows.pieces.map(Pieces::layout));
        // The end of a fit is not reported, so that the last checkpoint can be continued.
        if self.state.used < 1.0 {
            self.report(train, true, progress);
        }
        Ok(())
    }

    /// Writes everything that is needed to continue the fit.
    fn write(&self, to: &mut Writer) {
        let state = &self.state;
        to.rng(&state.rng);
        to.numbers(&state.order);
        let counts = [state.step as usize, state.epoch, state.rows];
        to.numbers(&counts);
        to.reals(&[state.sum, if state.used.is_finite() { state.used } else { 0.0 }]);
        write_history(&state.history, to);
        // A backend that fails here fails at the next step too, and the fit ends with its error.
        let best = state.best.map(|best| best.with(self.backend.kept().unwrap_or_default()));
        write_best(best.as_ref(), to);
        for numbers in self.backend.parameters().unwrap_or_default() {
            to.reals(&numbers.weight);
            for part in [&numbers.mean, &numbers.square, &numbers.average] {
                to.singles(part);
            }
        }
        if self.rows.pieces.is_some() {
            to.numbers(&state.pieces);
            to.numbers(&[state.loaded.start, state.loaded.end, state.done]);
        }
    }

    /// Continues from a checkpoint.
    pub(super) fn restore(&mut self, from: &mut Reader<'_>) -> Result<(), LearnError> {
        let rng = from.rng()?;
        let order = from.numbers()?;
        let counts = from.numbers()?;
        let reals = from.reals()?;
        let (&[step, epoch, rows], &[sum, used]) = (&counts[..], &reals[..]) else {
            return Err(LearnError::Damaged);
        };
        if rows > self.rows.num_train() {
            return Err(LearnError::Damaged);
        }
        let history = read_history(from)?;
        let best = read_best(from)?;
        if best.as_ref().is_some_and(|b| b.epoch > history.len()) {
            return Err(LearnError::Damaged);
        }
        let count = self.backend.kept()?.len();
        let best = match best {
            None => None,
            Some(Best { valid, epoch, weights }) => {
                self.backend.set_kept(weights)?;
                Some(Candidate { valid, epoch })
            }
        };
        let mut parameters = Vec::with_capacity(count);
        for _ in 0..count {
            let weight = from.reals()?;
            if weight.iter().any(|x| !x.is_finite()) {
                return Err(LearnError::Damaged);
            }
            let [mean, square, average] =
                [from.finite_singles()?, from.finite_singles()?, from.finite_singles()?];
            parameters.push(Numbers { weight, mean, square, average });
        }
        self.backend.set_parameters(&parameters)?;
        let step = u32::try_from(step).map_err(|_| LearnError::Damaged)?;
        let (mut done, mut len) = (rows, self.state.order.len());
        if let Some(own) = self.rows.pieces {
            let pieces = from.numbers()?;
            let places = from.numbers()?;
            let &[start, end, at] = &places[..] else { return Err(LearnError::Damaged) };
            let mut sorted = pieces.clone();
            sorted.sort_unstable();
            let all = own.layout().len();
            if !sorted.into_iter().eq(0..all) || start > end || end > all {
                return Err(LearnError::Damaged);
            }
            self.state.pieces = pieces;
            len = self.load_pieces(start..end)?;
            done = at;
        }
        if order.len() != len || done > len || order.iter().any(|&n| n >= len) {
            return Err(LearnError::Damaged);
        }
        let (pieces, loaded) = (std::mem::take(&mut self.state.pieces), self.state.loaded.clone());
        self.state =
            State { rng, order, done, pieces, loaded, step, epoch, rows, sum, used, history, best };
        Ok(())
    }
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

/// Random shifts of images: half of them by one pixel, in one of eight directions.
pub(super) fn draw_shifts(image: [usize; 3], count: usize, rng: &mut impl Rng) -> Shifts {
    let place = |_| match rng.random_range(0..16) {
        // (0, 0) is the fifth of nine.
        n @ 0..4 => n,
        n @ 4..8 => n + 1,
        _ => 4,
    };
    Shifts { image, places: (0..count).map(place).collect() }
}

fn check(circuit: &Skeleton, options: &FitOptions) -> Result<(), LearnError> {
    let exists = |&variable: &usize| variable < circuit.variables().len();
    let is_monotonic = options.parameterization == Parameterization::Monotonic;
    if !options.target.iter().all(exists) || (is_monotonic && !options.target.is_empty()) {
        return Err(LearnError::Target);
    }
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

impl Outcome {
    /// The circuit with the best weights, orthonormal. Fails only for weights from a damaged checkpoint.
    pub(super) fn into_fit(
        self,
        circuit: &Skeleton,
        options: &FitOptions,
    ) -> Result<Fitted, LearnError> {
        let output = output_weight(circuit);
        let weights = circuit.weight_shapes().iter().zip(&self.best.weights).enumerate();
        let weights: Vec<Weight> = weights
            .map(|(n, (&[rows, cols], parts))| {
                let is_output = output == Some(n);
                if parts.len() > rows * cols {
                    weight::<crate::linalg::Complex64>(rows, cols, parts, is_output, options)
                } else {
                    weight::<f64>(rows, cols, parts, is_output, options)
                }
            })
            .collect();
        let circuit = circuit.with_weights(weights).map_err(|_| LearnError::Damaged)?;
        // Normalized weights stay unchanged and shared.
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

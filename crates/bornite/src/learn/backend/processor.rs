//! Learning on the CPU.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Mutex;

use rayon::prelude::*;

use super::{Backend, Numbers, Selection, Shifts, Sum, SumContext, output_weight, total};
use crate::circuit::Circuit;
use crate::engine::Batch;
use crate::learn::error::{LearnError, program_of};
use crate::learn::objective::{Emphasis, Objective};
use crate::learn::optimizer::Update;
use crate::learn::options::FitOptions;
use crate::learn::parameter::{Parameter, Parameterization};
use crate::learn::pass::{Memory, Workspace};
use crate::learn::pieces::{Pieces, Rows};
use crate::learn::workers::{self, LoadedPieces};
use crate::linalg::{Matrix, Scalar, largest};
use crate::program::{Operand, Program, StepKind};

/// The CPU backend. Weights are in double precision, and the passes of rows in single precision: see
/// [`pass`](crate::learn::pass).
#[derive(Debug)]
pub(super) struct Processor<'a, T, const C: bool> {
    options: &'a FitOptions,
    train: Cow<'a, Batch>,
    valid: &'a Batch,
    /// The training and validation rows without the target, if there is one.
    rest: Option<[Batch; 2]>,
    program: Program,
    parameters: Vec<Parameter<T>>,
    /// The averages that were kept.
    kept: Vec<Vec<f32>>,
    workspace: Workspace<f32>,
    memory: Memory<f32>,
    pieces: Option<InPieces<'a>>,
}

/// Training rows that are not all in memory.
#[derive(Debug)]
struct InPieces<'a> {
    all: Pieces<'a>,
    loaded: LoadedPieces,
    /// The message that tells workers about the fit.
    fit: Vec<u8>,
    memories: Mutex<Vec<Memory<f32>>>,
}

impl<'a, T: Scalar, const C: bool> Processor<'a, T, C> {
    pub(super) fn new(
        circuit: &Circuit,
        Rows { train, valid, pieces }: Rows<'a>,
        options: &'a FitOptions,
    ) -> Result<Self, LearnError> {
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
        let without = |rows: &Batch| rows.without(&options.target);
        let rest = (!options.target.is_empty()).then(|| [without(train), without(valid)]);
        let workspace = workspace(&program, &weights(&parameters), train, options);
        let fit = match pieces {
            Some(Pieces::Workers(..)) => workers::fit_message(circuit, options)?,
            Some(Pieces::File(_)) | None => Vec::new(),
        };
        let in_pieces = |all| {
            let (loaded, memories) = (LoadedPieces::default(), Mutex::default());
            InPieces { all, loaded, fit, memories }
        };
        Ok(Self {
            options,
            train: Cow::Borrowed(train),
            valid,
            rest,
            program,
            kept: parameters.iter().map(|p: &Parameter<T>| p.moments.average.clone()).collect(),
            parameters,
            workspace,
            memory: Memory::default(),
            pieces: pieces.map(in_pieces),
        })
    }

    /// The mean objective of some rows of the loaded pieces, and its gradient by every weight, summed
    /// over shards.
    fn sum(
        &self,
        pieces: &InPieces<'_>,
        selection: &Selection<'_>,
    ) -> Result<Option<Sum<T>>, LearnError> {
        let (layout, weights) = (pieces.all.layout(), weights(&self.parameters));
        let places = selection.shifts.map_or(&[][..], |shifts| &shifts.places);
        let chunks = pieces.loaded.chunks(layout, selection.rows, places);
        if let Pieces::Workers(_, workers) = pieces.all {
            let fit = (workers, &pieces.fit[..]);
            return workers::ask(fit, layout, &pieces.loaded, &chunks, &weights);
        }
        let context = SumContext {
            program: &self.program,
            weights: &weights,
            workspace: &self.workspace,
            memories: &pieces.memories,
            options: self.options,
            weight: 1.0 / selection.rows.len() as f64,
        };
        let known = |shards: &Range<usize>| {
            (shards.len() == 1).then(|| context.sum::<C>(&self.train, &chunks[shards.start]))
        };
        Ok(total(0..layout.num_shards(), &known))
    }

    /// The mean objective of some rows, if all of them are in memory. Its gradient is the sum of the
    /// one in `memory` and the returned one.
    fn reverse(&mut self, selection: &Selection<'_>) -> (f64, Option<Vec<Matrix<T>>>) {
        let (weights, options) = (weights(&self.parameters), self.options);
        let objective = Objective::new(&self.program, weights, options.parameterization);
        let weight = 1.0 / selection.rows.len() as f64;
        if let Some(shifts) = selection.shifts {
            let moved = shifted(&self.train, selection.rows, shifts);
            let all: Vec<usize> = (0..moved.len()).collect();
            let rest = self.rest.as_ref().map(|_| moved.without(&options.target));
            objective.emphasizing(emphasis(rest.as_ref(), options)).reverse::<f32, C>(
                &moved,
                &all,
                weight,
                &self.workspace,
                &mut self.memory,
            )
        } else {
            let rest = self.rest.as_ref().map(|[train, _]| train);
            objective.emphasizing(emphasis(rest, options)).reverse::<f32, C>(
                &self.train,
                selection.rows,
                weight,
                &self.workspace,
                &mut self.memory,
            )
        }
    }
}

/// Takes one step with every parameter. Without clipping, each one is finished while it is in the
/// cache.
fn advance<T: Scalar>(
    parameters: &mut [Parameter<T>],
    program: &Program,
    options: &FitOptions,
    gradient_of: &(impl Fn(usize, [usize; 2]) -> Matrix<T> + Sync),
    mut update: Update,
) {
    let gradient = |n: usize, p: &Parameter<T>| {
        let mut g = gradient_of(n, [p.w.rows(), p.w.cols()]);
        // Penalties count once per weight, even if several steps share it.
        if let (Operand::Indicators, Some(&step)) =
            (program.operand_of(n), program.users(n).first())
            && let StepKind::Leaf { variable, .. } = &program.steps()[step].kind
            && let Some(&s) = options.smoothing.get(*variable).filter(|s| **s > 0.0)
        {
            smooth(&mut g, &p.w, s);
        }
        if let (Operand::Vector, Some(&step)) = (program.operand_of(n), program.users(n).first())
            && let StepKind::Leaf { basis, .. } = &program.steps()[step].kind
            && options.roughness > 0.0
        {
            shrink(&mut g, &p.w, &basis.roughness(), options.roughness);
        }
        p.pull_back(g)
    };
    if let Some(clip) = options.clip {
        let all: Vec<Matrix<T>> =
            parameters.par_iter().enumerate().map(|(n, p)| gradient(n, p)).collect();
        let norm = all.iter().map(Matrix::norm2).sum::<f64>().sqrt();
        update.scale = if norm > clip { clip / norm } else { 1.0 };
        let all = parameters.par_iter_mut().zip(&all);
        all.for_each(|(p, g)| p.step(g, &weight_update(update, p, options)));
    } else {
        parameters.par_iter_mut().enumerate().for_each(|(n, p)| {
            let g = gradient(n, p);
            p.step(&g, &weight_update(update, p, options));
        });
    }
}

impl<T: Scalar, const C: bool> Backend for Processor<'_, T, C> {
    fn step(&mut self, selection: &Selection<'_>, update: Update) -> Result<f64, LearnError> {
        let sum = match &self.pieces {
            Some(pieces) => self.sum(pieces, selection)?,
            None => None,
        };
        // The thread pool is entered once per step.
        Ok(rayon::scope(|_| {
            let (mean, others) = match &sum {
                Some(sum) => (sum.mean, None),
                None => self.reverse(selection),
            };
            let (program, memory) = (&self.program, &self.memory);
            let gradient = |n: usize, shape: [usize; 2]| match &sum {
                Some(sum) => sum.gradients[n].clone(),
                None => row_gradient::<T, C>(program, memory, others.as_deref(), n, shape),
            };
            advance(&mut self.parameters, program, self.options, &gradient, update);
            self.workspace.refill(&self.program, &weights(&self.parameters));
            mean
        }))
    }

    fn set_pieces(&mut self, numbers: &[usize]) -> Result<usize, LearnError> {
        let Some(pieces) = &mut self.pieces else { return Ok(self.train.len()) };
        pieces.loaded = LoadedPieces::new(pieces.all.layout(), numbers);
        if let Pieces::File(file) = pieces.all {
            let rows = file.read(numbers)?;
            let own = weights(&self.parameters);
            self.workspace = workspace(&self.program, &own, &rows, self.options);
            self.train = Cow::Owned(rows);
        }
        Ok(pieces.loaded.len())
    }

    fn score(&mut self) -> Result<f64, LearnError> {
        let averaged: Vec<Matrix<T>> =
            self.parameters.par_iter().map(Parameter::averaged).collect();
        let all: Vec<usize> = (0..self.valid.len()).collect();
        let weights: Vec<&Matrix<T>> = averaged.iter().collect();
        let missing = self.valid.has_missing() || self.rest.is_some();
        let workspace = Workspace::<f32>::new(&self.program, &weights, missing);
        let rest = self.rest.as_ref().map(|[_, valid]| valid);
        let objective = Objective::new(&self.program, weights, self.options.parameterization)
            .emphasizing(emphasis(rest, self.options));
        Ok(objective.mean::<f32, C>(self.valid, &all, &workspace))
    }

    fn residual(&mut self) -> Result<f64, LearnError> {
        let residuals = self.parameters.par_iter().map(Parameter::residual);
        Ok(residuals.reduce(|| 0.0, |a, b| largest([a, b])))
    }

    fn keep(&mut self) -> Result<(), LearnError> {
        self.kept = self.parameters.iter().map(|p| p.moments.average.clone()).collect();
        Ok(())
    }

    fn kept(&self) -> Result<Vec<Vec<f32>>, LearnError> {
        Ok(self.kept.clone())
    }

    fn set_kept(&mut self, weights: Vec<Vec<f32>>) -> Result<(), LearnError> {
        let lengths = |list: &[Vec<f32>]| list.iter().map(Vec::len).collect::<Vec<_>>();
        if lengths(&weights) != lengths(&self.kept) {
            return Err(LearnError::Damaged);
        }
        self.kept = weights;
        Ok(())
    }

    fn parameters(&self) -> Result<Vec<Numbers>, LearnError> {
        let numbers = |p: &Parameter<T>| Numbers {
            // This does not include V, but monotonic fits cannot be continued.
            weight: T::parts(p.w.data()).to_vec(),
            mean: p.moments.mean.clone(),
            square: p.moments.square.clone(),
            average: p.moments.average.clone(),
        };
        Ok(self.parameters.iter().map(numbers).collect())
    }

    fn set_parameters(&mut self, parameters: &[Numbers]) -> Result<(), LearnError> {
        if parameters.len() != self.parameters.len() {
            return Err(LearnError::Damaged);
        }
        for (p, from) in self.parameters.iter_mut().zip(parameters) {
            fill(T::parts_mut(p.w.data_mut()), &from.weight)?;
            fill(&mut p.moments.mean, &from.mean)?;
            fill(&mut p.moments.square, &from.square)?;
            fill(&mut p.moments.average, &from.average)?;
        }
        self.workspace.refill(&self.program, &weights(&self.parameters));
        Ok(())
    }
}

/// Packs the weights for passes of these rows.
pub(in crate::learn) fn workspace<T: Scalar>(
    program: &Program,
    weights: &[&Matrix<T>],
    rows: &Batch,
    options: &FitOptions,
) -> Workspace<f32> {
    let has_missing = rows.has_missing() || !options.target.is_empty();
    let is_monotonic = options.parameterization == Parameterization::Monotonic;
    Workspace::new(program, weights, has_missing && !is_monotonic)
}

/// The gradient by one weight after a pass.
pub(super) fn row_gradient<T: Scalar, const C: bool>(
    program: &Program,
    memory: &Memory<f32>,
    others: Option<&[Matrix<T>]>,
    weight: usize,
    shape: [usize; 2],
) -> Matrix<T> {
    let mut g = memory.weight_gradient::<T, C>(program, weight, shape);
    if let Some(others) = others {
        for (g, &other) in g.data_mut().iter_mut().zip(others[weight].data()) {
            *g += other;
        }
    }
    g
}

pub(super) fn emphasis<'a>(rest: Option<&'a Batch>, options: &FitOptions) -> Option<Emphasis<'a>> {
    rest.map(|rest| Emphasis { rest, factor: options.emphasis })
}

/// Copies numbers from a checkpoint or message, which may have the wrong length.
pub(in crate::learn) fn fill<X: Copy>(to: &mut [X], from: &[X]) -> Result<(), LearnError> {
    if to.len() != from.len() {
        return Err(LearnError::Damaged);
    }
    to.copy_from_slice(from);
    Ok(())
}

fn weights<T>(parameters: &[Parameter<T>]) -> Vec<&Matrix<T>> {
    parameters.iter().map(|p| &p.w).collect()
}

/// The update of one weight, with its own learning rate.
fn weight_update<T: Scalar>(update: Update, p: &Parameter<T>, options: &FitOptions) -> Update {
    let columns = if options.by_columns { p.w.cols().max(1) as f64 } else { 1.0 };
    Update { rate: update.rate / columns.sqrt(), ..update }
}

/// Some images of a batch, shifted.
pub(super) fn shifted(batch: &Batch, rows: &[usize], shifts: &Shifts) -> Batch {
    batch.moved(rows, |n, v| Shifts::source(shifts.image, shifts.places[n], v))
}

/// Adds the gradient of −s/2 Σ λₙ |w[n]|².
fn shrink<T: Scalar>(g: &mut Matrix<T>, w: &Matrix<T>, roughness: &[f64], s: f64) {
    for k in 0..w.rows() {
        for ((g, &w), rough) in g.row_mut(k).iter_mut().zip(w.row(k)).zip(roughness) {
            *g -= w.scale_by(s * rough);
        }
    }
}

/// Adds the gradient of −s/2 Σ |w[x] − w[x+1]|² over neighboring values x.
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

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::learn::trainer::draw_shifts;
    use crate::{Domain, Variable};

    #[test]
    fn half_of_the_images_are_shifted_by_a_pixel() {
        let (height, width) = (3, 4);
        let variables: Vec<Variable> =
            (0..24).map(|v| Variable::new(format!("x{v}"), Domain::Finite(24))).collect();
        // The value of a cell is its position.
        let values: Vec<f64> = (0..24 * 5).map(|n| f64::from(n % 24)).collect();
        let batch = Batch::from_rows(&variables, &values).unwrap();
        let rows: Vec<usize> = (0..2000).map(|n| n % 5).collect();
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let moved = shifted(&batch, &rows, &draw_shifts([height, width, 2], 2000, rng));
        assert_eq!(moved.len(), rows.len());
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

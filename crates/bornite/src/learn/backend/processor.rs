//! Learning on the processor's cores.

use std::borrow::Cow;

use rayon::prelude::*;

use super::{Backend, Numbers, Selection, Shifts, output_weight};
use crate::circuit::Circuit;
use crate::engine::Batch;
use crate::learn::error::{LearnError, program_of};
use crate::learn::objective::{Emphasis, Objective};
use crate::learn::optimizer::Update;
use crate::learn::options::FitOptions;
use crate::learn::parameter::{Parameter, Parameterization};
use crate::learn::pass::Workspace;
use crate::linalg::{Matrix, Scalar, largest};
use crate::program::{Operand, Program, StepKind};

/// Weights in double precision; rows go through them in single precision, see [`pass`](crate::learn::pass).
#[derive(Debug)]
pub(super) struct Processor<'a, T, const C: bool> {
    options: &'a FitOptions,
    train: Cow<'a, Batch>,
    valid: &'a Batch,
    /// The rows to learn from, and those to be scored, without their targets, where there is one.
    rest: Option<[Batch; 2]>,
    program: Program,
    parameters: Vec<Parameter<T>>,
    workspace: Workspace<f32>,
}

impl<'a, T: Scalar, const C: bool> Processor<'a, T, C> {
    pub(super) fn new(
        circuit: &Circuit,
        [train, valid]: [&'a Batch; 2],
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
        let workspace = workspace(&program, &parameters, train, options);
        let train = Cow::Borrowed(train);
        Ok(Self { options, train, valid, rest, program, parameters, workspace })
    }

    /// Moves every parameter. Without a bound on the gradient of all, each is finished while it is in the cache.
    fn update(&mut self, others: Option<&[Matrix<T>]>, mut update: Update) {
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
            update.scale = if norm > clip { clip / norm } else { 1.0 };
            let all = self.parameters.par_iter_mut().zip(&all);
            all.for_each(|(p, g)| p.step(g, &of_weight(update, p, options)));
        } else {
            self.parameters.par_iter_mut().enumerate().for_each(|(n, p)| {
                let g = gradient(n, p);
                p.step(&g, &of_weight(update, p, options));
            });
        }
        self.workspace.refill(&self.program, &weights(&self.parameters));
    }
}

impl<T: Scalar, const C: bool> Backend for Processor<'_, T, C> {
    fn step(&mut self, selection: &Selection<'_>, update: Update) -> Result<f64, LearnError> {
        // Within the pool, so that it is entered once a step.
        Ok(rayon::scope(|_| {
            let (weights, options) = (weights(&self.parameters), self.options);
            let objective = Objective::new(&self.program, weights, options.parameterization);
            let (mean, others) = if let Some(shifts) = selection.shifts {
                let (moved, all) = shifted(&self.train, selection.rows, shifts);
                let rest = self.rest.as_ref().map(|_| moved.without(&options.target));
                objective.emphasizing(emphasis(rest.as_ref(), options)).reverse::<f32, C>(
                    &moved,
                    &all,
                    &mut self.workspace,
                )
            } else {
                let rest = self.rest.as_ref().map(|[train, _]| train);
                objective.emphasizing(emphasis(rest, options)).reverse::<f32, C>(
                    &self.train,
                    selection.rows,
                    &mut self.workspace,
                )
            };
            self.update(others.as_deref(), update);
            mean
        }))
    }

    fn set_rows(&mut self, rows: Batch) -> Result<(), LearnError> {
        if let Some([train, _]) = &mut self.rest {
            *train = rows.without(&self.options.target);
        }
        self.workspace = workspace(&self.program, &self.parameters, &rows, self.options);
        self.train = Cow::Owned(rows);
        Ok(())
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

    fn averages(&self) -> Result<Vec<Vec<f32>>, LearnError> {
        Ok(self.parameters.iter().map(|p| p.moments.average.clone()).collect())
    }

    fn parameters(&self) -> Result<Vec<Numbers>, LearnError> {
        let numbers = |p: &Parameter<T>| Numbers {
            // A monotonic fit is never continued: V would be lost.
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

/// The memory of passes of these rows.
fn workspace<T: Scalar>(
    program: &Program,
    parameters: &[Parameter<T>],
    rows: &Batch,
    options: &FitOptions,
) -> Workspace<f32> {
    let holes = rows.has_missing() || !options.target.is_empty();
    let holes = holes && options.parameterization != Parameterization::Monotonic;
    Workspace::new(program, &weights(parameters), holes)
}

fn emphasis<'a>(rest: Option<&'a Batch>, options: &FitOptions) -> Option<Emphasis<'a>> {
    rest.map(|rest| Emphasis { rest, factor: options.emphasis })
}

fn fill<X: Copy>(to: &mut [X], from: &[X]) -> Result<(), LearnError> {
    if to.len() != from.len() {
        return Err(LearnError::Damaged);
    }
    to.copy_from_slice(from);
    Ok(())
}

fn weights<T>(parameters: &[Parameter<T>]) -> Vec<&Matrix<T>> {
    parameters.iter().map(|p| &p.w).collect()
}

/// The step of one weight.
fn of_weight<T: Scalar>(update: Update, p: &Parameter<T>, options: &FitOptions) -> Update {
    let columns = if options.by_columns { p.w.cols().max(1) as f64 } else { 1.0 };
    Update { rate: update.rate / columns.sqrt(), ..update }
}

/// Some rows of a batch of images, moved, and their indices.
fn shifted(batch: &Batch, rows: &[usize], shifts: &Shifts) -> (Batch, Vec<usize>) {
    let from = |n: usize, v: usize| Shifts::source(shifts.image, shifts.places[n], v);
    (batch.moved(rows, from), (0..rows.len()).collect())
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

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::learn::trainer::draw_shifts;
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
        let (moved, all) = shifted(&batch, &rows, &draw_shifts([height, width, 2], 2000, rng));
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

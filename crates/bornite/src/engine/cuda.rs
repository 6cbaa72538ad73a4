//! The upward pass on an NVIDIA GPU: the same program and schedule, with larger blocks of rows.

use std::borrow::Cow;
use std::sync::{Mutex, OnceLock, PoisonError};

use bornite_cuda::{Block, Cells, CudaError, Dense, Device, Evaluator, Group, Step, StepRows};
use rand::RngExt;
use rayon::prelude::*;

use super::batch::Batch;
use super::conditional::row_rng;
use super::lanes::Real;
use super::plan::{Leaf, Plan};
use crate::algebra::Kind;
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::program::StepKind;
use crate::schedule::{Grouping, Places, Planner, Schedule};

/// The device of this process, opened once.
pub(crate) fn device() -> Result<&'static Device, CudaError> {
    static DEVICE: OnceLock<Result<Device, CudaError>> = OnceLock::new();
    DEVICE.get_or_init(Device::open).as_ref().map_err(Clone::clone)
}

/// A circuit on the device, once the first query has copied it there.
pub(super) type OnDevice = Mutex<Option<Evaluator>>;

impl<F: Real, const C: bool> Plan<F, C> {
    /// Computes log p(evidence) of every row; −∞ if it is impossible.
    pub(super) fn log_marginals_on(
        &self,
        rows: &Batch,
        evaluator: &OnDevice,
    ) -> Result<Vec<f64>, CudaError> {
        let mut evaluator = evaluator.lock().unwrap_or_else(PoisonError::into_inner);
        let evaluator = self.get_or_upload(&mut evaluator)?;
        let is_complete = !rows.has_missing();
        let most = evaluator.rows_at_once(is_complete)?;
        let mut planner = Planner::new(Grouping::ByKind, 1);
        let mut out = Vec::with_capacity(rows.len());
        for first in (0..rows.len()).step_by(most) {
            let len = most.min(rows.len() - first);
            planner.begin(len);
            let schedule = if is_complete {
                Schedule::complete(&mut planner)
            } else {
                let cell = |row: usize, variable: usize| rows.kind(first + row, variable);
                Schedule::new(&self.program, &mut planner, cell)
            };
            let steps = (0..self.program.steps().len()).into_par_iter();
            let steps = steps
                .flat_map_iter(|step| self.step_rows(step, schedule.at(step), rows, first))
                .collect();
            out.extend(evaluator.log_densities(&Block { len, steps })?);
        }
        Ok(out)
    }

    /// Draws samples without evidence. `index` is the position of a row in the sequence of samples
    /// for the seed.
    pub(super) fn sample_on(
        &self,
        count: usize,
        seed: u64,
        index: &(dyn Fn(usize) -> u64 + Sync),
        evaluator: &OnDevice,
    ) -> Result<Vec<f64>, CudaError> {
        let mut evaluator = evaluator.lock().unwrap_or_else(PoisonError::into_inner);
        let evaluator = self.get_or_upload(&mut evaluator)?;
        let most = evaluator.samples_at_once()?;
        let d = self.program.traversal_order().len();
        let mut out = Vec::with_capacity(count * d);
        for first in (0..count).step_by(most) {
            let len = most.min(count - first);
            let mut draws = vec![0.0; len * d];
            for row in 0..len {
                let mut rng = row_rng(seed, index(first + row));
                draws.iter_mut().skip(row).step_by(len).for_each(|u| *u = rng.random());
            }
            out.extend(evaluator.sample(len, &draws)?.into_iter().map(f64::from));
        }
        Ok(out)
    }

    /// The circuit on the device, copied there by the first call.
    fn get_or_upload<'a>(
        &self,
        known: &'a mut Option<Evaluator>,
    ) -> Result<&'a mut Evaluator, CudaError> {
        Ok(match known {
            Some(evaluator) => evaluator,
            none => none.insert(self.evaluator(device()?)?),
        })
    }

    /// Copies the circuit to a device. A leaf of functions with a weight becomes two steps there.
    fn evaluator(&self, device: &Device) -> Result<Evaluator, CudaError> {
        let mut weights = Vec::new();
        let leaves: Vec<Option<usize>> = self
            .leaves()
            .iter()
            .map(|leaf| {
                weights.push(leaf.dense::<C>()?);
                Some(weights.len() - 1)
            })
            .collect();
        let nodes = weights.len();
        weights.extend(self.weights().iter().map(|weight| {
            let (shape, parts) = weight.plain();
            Dense { shape, parts: Cow::Borrowed(parts) }
        }));
        let (mut steps, mut places) = (Vec::new(), Vec::new());
        for (index, step) in self.program.steps().iter().enumerate() {
            let place = |n: usize| places[n];
            let weight = self.weight_index(index).map_or(0, |weight| nodes + weight);
            let step = match step.kind {
                StepKind::Leaf { variable, .. } => {
                    let leaf = self.leaf_index(step.leaves.start);
                    let functions = Step::Functions { width: self.leaves()[leaf].basis.width() };
                    match leaves[leaf] {
                        None => functions,
                        Some(weight) if self.leaves()[leaf].columns.is_some() => {
                            Step::Codes { variable, weight }
                        }
                        Some(weight) => {
                            steps.push(functions);
                            Step::Sum { input: steps.len() - 1, weight }
                        }
                    }
                }
                StepKind::Kronecker { inputs, .. } => {
                    Step::Kronecker { inputs: inputs.map(place), weight }
                }
                StepKind::Hadamard { inputs } => Step::Hadamard { inputs: inputs.map(place) },
                StepKind::Sum { input, .. } => Step::Sum { input: place(input), weight },
            };
            steps.push(step);
            places.push(steps.len() - 1);
        }
        Evaluator::new(device, C, size_of::<F>() == size_of::<f64>(), steps, &weights)
    }

    /// The rows of a block, which starts at row `first`, at one step of the program. A leaf with a
    /// weight over functions gives two steps.
    fn step_rows<'a>(
        &self,
        step: usize,
        places: &'a Places,
        rows: &Batch,
        first: usize,
    ) -> impl Iterator<Item = StepRows<'a>> {
        let step = &self.program.steps()[step];
        let groups: Vec<Group<'a>> =
            places.groups().map(|(kinds, rows)| Group { kinds, rows }).collect();
        let StepKind::Leaf { variable, weight, .. } = step.kind else {
            return [Some(StepRows { groups, ..StepRows::default() }), None].into_iter().flatten();
        };
        let leaf = self.leaf(step.leaves.start);
        let (mut cells, mut grams) = (Cells::None, Vec::new());
        for (kinds, group) in places.groups() {
            if kinds == [Kind::Pure; 2] {
                let mut all = vec![0.0; places.len()];
                rows.read(variable, first..first + places.len(), &mut all);
                let values = group.iter().map(|&row| all[row as usize]);
                cells = if leaf.columns.is_some() {
                    Cells::Codes(values.map(|x| x as u32).collect())
                } else {
                    let values: Vec<f64> = values.collect();
                    Cells::Functions(if C {
                        parts::<Complex64>(&leaf.basis.evaluate_batch(&values))
                    } else {
                        parts::<f64>(&leaf.basis.evaluate_batch(&values))
                    })
                };
            } else {
                grams = leaf.grams::<C>(group, |row| rows.part(first + row as usize, variable));
            }
        }
        let sum = StepRows { groups: groups.clone(), ..StepRows::default() };
        let has_sum = weight.is_some() && leaf.columns.is_none();
        [Some(StepRows { groups, cells, grams }), has_sum.then_some(sum)].into_iter().flatten()
    }
}

fn parts<T: Scalar>(m: &Matrix<T>) -> Vec<f64> {
    T::parts(m.data()).to_vec()
}

/// The parts of a complex matrix; only the real parts if the circuit is real.
fn parts_of<const C: bool>(m: &Matrix<Complex64>) -> Vec<f64> {
    if C { parts(m) } else { m.data().iter().map(|z| z.re).collect() }
}

impl<F: Real> Leaf<F> {
    /// The outputs at every value as the columns of a weight, or the weight of the functions.
    fn dense<const C: bool>(&self) -> Option<Dense<'static>> {
        let weight = match (&self.columns, &self.weight) {
            (Some(_), _) => self.column_matrix::<C>().transpose(),
            (None, weight) => weight.clone()?,
        };
        let shape = [weight.rows(), weight.cols()];
        Some(Dense { shape, parts: Cow::Owned(parts_of::<C>(&weight)) })
    }

    /// The matrices of rows that are restricted to a part of the domain: those of the outputs for a
    /// finite domain, otherwise those of the functions below the weight.
    fn grams<'a, const C: bool>(
        &self,
        rows: &[u32],
        part: impl Fn(u32) -> Option<&'a crate::basis::Part>,
    ) -> Vec<f64> {
        let mut grams: Vec<f64> = Vec::new();
        let mut last = None;
        for &row in rows {
            let Some(part) = part(row) else { unreachable!("a mixed cell has a part") };
            // Consecutive rows often share a part.
            if let Some((same, len)) = last
                && same == part
            {
                grams.extend_from_within(grams.len() - len..);
                continue;
            }
            let gram = match self.columns {
                Some(_) => self.gram_over(part),
                None => self.basis.gram_over(part),
            };
            let gram = parts_of::<C>(&gram);
            last = Some((part, gram.len()));
            grams.extend(gram);
        }
        grams
    }
}

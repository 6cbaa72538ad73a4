//! The mean log-likelihood of rows, complete or not, and its gradient.

use super::parameter::Parameterization;
use super::partition::Partition;
use super::pass::{Memory, Workspace};
use crate::engine::{Batch, Real};
use crate::linalg::{Matrix, Scalar};
use crate::program::Program;

/// The log-likelihood of rows: log ∫ ‖c‖² over their missing values, minus log Z if the weights are
/// not orthonormal.
///
/// For a monotonic circuit, it is log c = ½ log ‖c‖²: the weights are normalized, and the leaves of
/// missing values are ones. With an [`Emphasis`], the log-likelihood of a target given the rest of
/// its row is added, times a factor.
#[derive(Debug)]
pub(crate) struct Objective<'a, T> {
    program: &'a Program,
    partition: Partition<'a, T>,
    parameterization: Parameterization,
    emphasis: Option<Emphasis<'a>>,
}

/// The additional term log p(target | rest) of the objective.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emphasis<'a> {
    /// The rows without their targets.
    pub(crate) rest: &'a Batch,
    /// The factor of log p(target | rest).
    pub(crate) factor: f64,
}

impl<'a, T: Scalar> Objective<'a, T> {
    pub(crate) fn new(
        program: &'a Program,
        weights: Vec<&'a Matrix<T>>,
        parameterization: Parameterization,
    ) -> Self {
        let orthonormal = parameterization != Parameterization::Unconstrained;
        let partition = Partition::new(program, weights, orthonormal);
        Self { program, partition, parameterization, emphasis: None }
    }

    /// Adds the term log p(target | rest) = log p(row) − log p(rest) of every row.
    pub(crate) fn emphasizing(self, emphasis: Option<Emphasis<'a>>) -> Self {
        Self { emphasis, ..self }
    }

    /// The sum over the given rows, each times `weight`. The gradient by every weight is the sum of
    /// two parts: `memory` holds that of the complete rows, and that of everything else is returned,
    /// if there is anything else.
    pub(crate) fn reverse<F: Real, const C: bool>(
        &self,
        rows: &Batch,
        indices: &[usize],
        weight: f64,
        workspace: &Workspace<F>,
        memory: &mut Memory<F>,
    ) -> (f64, Option<Vec<Matrix<T>>>) {
        if self.parameterization == Parameterization::Monotonic {
            let logs =
                workspace.reverse::<T, C>(&self.partition, rows, indices, 0.5 * weight, memory);
            return (0.5 * logs.iter().sum::<f64>() * weight, None);
        }
        let (mut complete, mut missing) = by_completeness(rows, indices);
        // Complete rows that do not fill a tile join the others.
        if !missing.is_empty() && complete.len() < F::LANES {
            missing.append(&mut complete);
        }
        let share = weight * indices.len() as f64;
        let whole = weight * (1.0 + self.emphasis.map_or(0.0, |e| e.factor));
        let logs = workspace.reverse::<T, C>(&self.partition, rows, &complete, whole, memory);
        let mut mean = whole * logs.iter().sum::<f64>();
        let mut others = None;
        if !missing.is_empty() || self.emphasis.is_some() || !is_orthonormal(self.parameterization)
        {
            let zeros = |w: &&Matrix<T>| Matrix::zeros(w.rows(), w.cols());
            let mut gradients: Vec<Matrix<T>> = self.partition.weights.iter().map(zeros).collect();
            let mut unknown = vec![None; self.program.steps().len()];
            let mut add = |rows: &Batch, indices: &[usize], weight: f64| {
                let to = (&mut gradients[..], &mut unknown[..]);
                let (partition, rows) = (&self.partition, (rows, indices));
                let logs = workspace.reverse_missing::<T, C>(partition, rows, weight, memory, to);
                mean += weight * logs.iter().sum::<f64>();
            };
            add(rows, &missing, whole);
            if let Some(Emphasis { rest, factor }) = self.emphasis {
                add(rest, indices, -factor * weight);
            }
            self.partition.add_gradient(-share, unknown, &mut gradients);
            others = Some(gradients);
        }
        (mean - share * self.partition.log_partition(), others)
    }

    /// The mean over the given rows.
    pub(crate) fn mean<F: Real, const C: bool>(
        &self,
        rows: &Batch,
        indices: &[usize],
        workspace: &Workspace<F>,
    ) -> f64 {
        if self.parameterization == Parameterization::Monotonic {
            let logs = workspace.logs::<T, C>(&self.partition, rows, indices);
            return 0.5 * logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        }
        let mean = |rows: &Batch| {
            let (complete, missing) = by_completeness(rows, indices);
            let mut logs = workspace.logs::<T, C>(&self.partition, rows, &complete);
            logs.extend(workspace.logs_missing::<T, C>(&self.partition, rows, &missing));
            logs.iter().sum::<f64>() / logs.len().max(1) as f64
        };
        let whole = mean(rows);
        let target = self.emphasis.map_or(0.0, |e| e.factor * (whole - mean(e.rest)));
        whole + target - self.partition.log_partition()
    }
}

/// Whether the circuit is orthonormal at every training step.
pub(super) fn is_orthonormal(parameterization: Parameterization) -> bool {
    matches!(parameterization, Parameterization::Cholesky | Parameterization::Stiefel)
}

/// The rows without missing values, and the others.
fn by_completeness(rows: &Batch, indices: &[usize]) -> (Vec<usize>, Vec<usize>) {
    indices.iter().partition(|&&row| rows.first_missing(row).is_none())
}

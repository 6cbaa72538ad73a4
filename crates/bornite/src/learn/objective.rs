//! The mean log-likelihood of rows, complete or not, and its gradient.

use super::parameter::Parameterization;
use super::partition::Partition;
use super::pass::{Memory, Workspace};
use crate::engine::{Batch, Real};
use crate::linalg::{Matrix, Scalar};
use crate::program::Program;

/// The log-likelihood of rows under weights: log ∫ ‖c‖² over what is unknown, less log Z if they are not orthonormal;
/// of a monotonic circuit log c = ½ log ‖c‖², where the weights are normalized and unknown leaves are ones. With an [`Emphasis`],
/// the log-likelihood of a target given the rest of its row counts once more, times a factor.
///
/// Complete rows take the vectors of a [`Workspace`], the others matrices too.
#[derive(Debug)]
pub(crate) struct Objective<'a, T> {
    program: &'a Program,
    partition: Partition<'a, T>,
    parameterization: Parameterization,
    emphasis: Option<Emphasis<'a>>,
}

/// What log p(target | rest) counts for, beside the log-likelihood of whole rows.
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

    /// The same, with log p(target | rest) = log p(row) − log p(rest) of every row added to its log-likelihood.
    pub(crate) fn emphasizing(self, emphasis: Option<Emphasis<'a>>) -> Self {
        Self { emphasis, ..self }
    }

    /// The sum of the rows named, each times `weight`. Its gradient by every weight is what the memory then holds for
    /// complete rows, and the gradient returned for all else, if there is any.
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
        // Less than a tile of complete rows goes along with the others.
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

    /// The mean of the rows named.
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

/// Whether weights, and so the circuit, are orthonormal at every step.
pub(super) fn is_orthonormal(parameterization: Parameterization) -> bool {
    matches!(parameterization, Parameterization::Cholesky | Parameterization::Stiefel)
}

/// The rows with a value in every cell, and the others.
fn by_completeness(rows: &Batch, indices: &[usize]) -> (Vec<usize>, Vec<usize>) {
    indices.iter().partition(|&&row| rows.first_missing(row).is_none())
}

//! The mean log-likelihood of rows, complete or not, and its gradient.

use super::marginal::Marginals;
use super::network::Network;
use super::parameter::Parameterization;
use super::pass::Workspace;
use crate::engine::{Real, Rows};
use crate::linalg::{Matrix, Scalar};

/// The log-likelihood of rows under weights: log ∫ ‖c‖² over what is unknown, less log Z where they are not orthonormal;
/// of a monotonic circuit log c = ½ log ‖c‖², where the weights are normalized and unknown leaves are ones.
///
/// Complete rows take the vectors of a [`Workspace`] in `F`, the others matrices in `f64`.
#[derive(Debug)]
pub(crate) struct Objective<'a, T> {
    network: &'a Network,
    marginals: Marginals<'a, T>,
    parameterization: Parameterization,
}

impl<'a, T: Scalar> Objective<'a, T> {
    pub(crate) fn new(
        network: &'a Network,
        weights: Vec<&'a Matrix<T>>,
        parameterization: Parameterization,
    ) -> Self {
        let orthonormal = parameterization != Parameterization::Unconstrained;
        let marginals = Marginals::new(network, weights, orthonormal);
        Self { network, marginals, parameterization }
    }

    /// The mean log-likelihood of the rows named. Its gradient by every weight is what the workspace then holds for
    /// complete rows, and the gradient returned for all else, if there is any.
    pub(crate) fn reverse<F: Real, const C: bool>(
        &self,
        rows: &Rows<'_>,
        indices: &[usize],
        workspace: &mut Workspace<F>,
    ) -> (f64, Option<Vec<Matrix<T>>>) {
        let weight = 1.0 / indices.len() as f64;
        if self.parameterization == Parameterization::Monotonic {
            let logs = workspace.reverse::<C>(self.network, rows, indices, 0.5 * weight);
            return (0.5 * logs.iter().sum::<f64>() * weight, None);
        }
        let (complete, holes) = by_completeness(rows, indices);
        let mut logs = workspace.reverse::<C>(self.network, rows, &complete, weight);
        let mut others = None;
        if !holes.is_empty() || !is_orthonormal(self.parameterization) {
            let (more, gradients) = self.marginals.gradient(rows, &holes, weight, 1.0);
            logs.extend(more);
            others = Some(gradients);
        }
        (logs.iter().sum::<f64>() * weight - self.marginals.log_partition(), others)
    }

    /// The mean log-likelihood of the rows named.
    pub(crate) fn mean<F: Real, const C: bool>(
        &self,
        rows: &Rows<'_>,
        indices: &[usize],
        workspace: &Workspace<F>,
    ) -> f64 {
        if self.parameterization == Parameterization::Monotonic {
            let logs = workspace.log_density::<C>(self.network, rows, indices);
            return 0.5 * logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        }
        let (complete, holes) = by_completeness(rows, indices);
        let mut logs = workspace.log_density::<C>(self.network, rows, &complete);
        logs.extend(self.marginals.logs(rows, &holes));
        logs.iter().sum::<f64>() / logs.len().max(1) as f64 - self.marginals.log_partition()
    }
}

/// Whether weights, and so the circuit, are orthonormal at every step.
pub(super) fn is_orthonormal(parameterization: Parameterization) -> bool {
    matches!(parameterization, Parameterization::Cholesky | Parameterization::Stiefel)
}

/// The rows with a value in every cell, and the others.
fn by_completeness(rows: &Rows<'_>, indices: &[usize]) -> (Vec<usize>, Vec<usize>) {
    indices.iter().partition(|&&row| !rows.row(row).iter().any(|x| x.is_nan()))
}

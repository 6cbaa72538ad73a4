//! The mean log-likelihood of rows, complete or not, and its gradient.

use super::marginal::Marginals;
use super::network::Network;
use crate::engine::Rows;
use crate::linalg::{Matrix, Scalar};

/// The log-likelihood of rows under weights: log ∫ ‖c‖² over what is unknown, less log Z where they are not orthonormal.
#[derive(Debug)]
pub(crate) struct Objective<'a, T> {
    network: &'a Network,
    weights: &'a [Matrix<T>],
    marginals: Marginals<'a, T>,
    orthonormal: bool,
}

impl<'a, T: Scalar> Objective<'a, T> {
    pub(crate) fn new(network: &'a Network, weights: &'a [Matrix<T>], orthonormal: bool) -> Self {
        let marginals = Marginals::new(network, weights, orthonormal);
        Self { network, weights, marginals, orthonormal }
    }

    /// The mean log-likelihood of the rows named, and its gradient by every weight: ∂/∂re + i ∂/∂im.
    ///
    /// Complete rows take the vectors of [`Network`] in `F`, the others matrices in `f64`.
    pub(crate) fn gradient<F: crate::engine::Real, const C: bool>(
        &self,
        rows: &Rows<'_>,
        indices: &[usize],
    ) -> (f64, Vec<Matrix<T>>) {
        let (complete, holes) = by_completeness(rows, indices);
        let weight = 1.0 / indices.len() as f64;
        let (mut logs, mut gradients) =
            self.network.gradient::<F, T, C>(self.weights, rows, &complete, weight);
        if !holes.is_empty() || !self.orthonormal {
            let (more, others) = self.marginals.gradient(rows, &holes, weight, 1.0);
            logs.extend(more);
            for (sum, g) in gradients.iter_mut().zip(&others) {
                for (sum, &g) in sum.data_mut().iter_mut().zip(g.data()) {
                    *sum += g;
                }
            }
        }
        (logs.iter().sum::<f64>() * weight - self.marginals.log_partition(), gradients)
    }

    /// The mean log-likelihood of the rows named.
    pub(crate) fn mean<F: crate::engine::Real, const C: bool>(
        &self,
        rows: &Rows<'_>,
        indices: &[usize],
    ) -> f64 {
        let (complete, holes) = by_completeness(rows, indices);
        let mut logs = self.network.log_density::<F, T, C>(self.weights, rows, &complete);
        logs.extend(self.marginals.logs(rows, &holes));
        logs.iter().sum::<f64>() / logs.len().max(1) as f64 - self.marginals.log_partition()
    }
}

/// The rows with a value in every cell, and the others.
fn by_completeness(rows: &Rows<'_>, indices: &[usize]) -> (Vec<usize>, Vec<usize>) {
    indices.iter().partition(|&&row| !rows.row(row).iter().any(|x| x.is_nan()))
}

//! Additional circuits for a mixture with the best one, kept if they improve the validation
//! likelihood.

use super::options::FitOptions;
use crate::circuit::{Orthonormal, Skeleton};
use crate::engine::{Batch, Engine};
use crate::mixture::{log_sum, shares};

/// The number of EM iterations for the weights.
const ROUNDS: usize = 200;
/// The prior count of every circuit, as a fraction of all rows.
const PRIOR: f64 = 0.05;
/// A gain counts if it exceeds this many standard errors.
const ERRORS: f64 = 2.0;
/// A smaller mean gain may be that of rounding errors, which do not average out.
const ROUNDING: f64 = 1e-9;

/// Returns the nth partner, a circuit and its settings, given the settings of the best candidate.
pub(crate) type Partner<'a> = dyn Fn(&FitOptions, usize) -> Option<(Skeleton, FitOptions)> + 'a;

/// Circuits that may be mixed with the best candidate.
pub(crate) struct Partners<'a> {
    /// The maximum number of partners.
    pub(crate) most: usize,
    /// Returns a partner, if there is one.
    pub(crate) of: &'a Partner<'a>,
}

/// A mixture of circuits, evaluated on the validation rows.
#[derive(Debug)]
pub(super) struct Ensemble<'a> {
    rows: &'a Batch,
    /// The rows without their targets, and the factor of log p(target | rest).
    rest: Option<(Batch, f64)>,
    /// For every circuit, log p of the rows, and of the rows without their targets.
    logs: Vec<[Vec<f64>; 2]>,
    /// The weights of the circuits.
    pub(super) weights: Vec<f64>,
    /// The objective of every row.
    values: Vec<f64>,
}

impl<'a> Ensemble<'a> {
    /// An ensemble of a single circuit.
    pub(super) fn new(first: &Orthonormal, rows: &'a Batch, options: &FitOptions) -> Self {
        let rest =
            (!options.target.is_empty()).then(|| (rows.without(&options.target), options.emphasis));
        let mut ensemble =
            Self { rows, rest, logs: Vec::new(), weights: Vec::new(), values: Vec::new() };
        ensemble.logs.push(ensemble.logs_of(first));
        ensemble.fit_weights();
        ensemble
    }

    /// Adds a circuit if it improves the likelihood of the rows by more than chance, and returns
    /// whether it does.
    pub(super) fn add_if_better(&mut self, circuit: &Orthonormal) -> bool {
        let (weights, values) = (self.weights.clone(), self.values.clone());
        self.logs.push(self.logs_of(circuit));
        self.fit_weights();
        let gains: Vec<f64> = self.values.iter().zip(&values).map(|(new, old)| new - old).collect();
        let is_better = exceed_chance(&gains, ERRORS);
        if !is_better {
            self.logs.pop();
            (self.weights, self.values) = (weights, values);
        }
        is_better
    }

    fn logs_of(&self, circuit: &Orthonormal) -> [Vec<f64>; 2] {
        let engine = Engine::new(circuit);
        let logs = |rows: &Batch| engine.log_marginals(rows).unwrap_or_default();
        [logs(self.rows), self.rest.as_ref().map_or(Vec::new(), |(rest, _)| logs(rest))]
    }

    /// Fits the weights of the mixture to the rows, and computes the objective of every row.
    fn fit_weights(&mut self) {
        let (count, n) = (self.logs.len(), self.rows.len());
        let mut weights = vec![1.0 / count as f64; count];
        for _ in 0..if count > 1 { ROUNDS } else { 0 } {
            let mut sums = vec![PRIOR * n as f64; count];
            for row in 0..n {
                let parts = self.parts(0, row, &weights);
                if let Some(shares) = shares(&parts) {
                    sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
                }
            }
            let total: f64 = sums.iter().sum();
            weights = sums.iter().map(|sum| sum / total).collect();
        }
        let value = |row: usize| {
            let whole = log_sum(&self.parts(0, row, &weights));
            match &self.rest {
                Some((_, factor)) => {
                    whole + factor * (whole - log_sum(&self.parts(1, row, &weights)))
                }
                None => whole,
            }
        };
        self.values = (0..n).map(value).collect();
        self.weights = weights;
    }

    /// log wₜ pₜ of a row for every circuit t: of the whole row, or without its target.
    fn parts(&self, which: usize, row: usize, weights: &[f64]) -> Vec<f64> {
        self.logs.iter().zip(weights).map(|(logs, w)| logs[which][row] + w.ln()).collect()
    }
}

/// The weight of a second distribution in a mixture with a first one, given log p of the same rows;
/// `None` if the mixture is not better than the first one by more than chance.
pub(crate) fn share_of_second(first: &[f64], second: &[f64]) -> Option<f64> {
    let n = first.len() as f64;
    let logs = |row: usize, share: f64| [first[row] + (1.0 - share).ln(), second[row] + share.ln()];
    let mut share = 0.5;
    for _ in 0..ROUNDS {
        let of_second = |row: usize| shares(&logs(row, share)).map_or(share, |shares| shares[1]);
        let sum: f64 = (0..first.len()).map(of_second).sum();
        share = (PRIOR * n + sum) / (n + 2.0 * PRIOR * n);
    }
    let gain = |row: usize| log_sum(&logs(row, share)) - first[row];
    let gains: Vec<f64> = (0..first.len()).map(gain).collect();
    exceed_chance(&gains, ERRORS).then_some(share)
}

/// Whether the mean of these numbers is above 0 by more than this many of its standard errors.
pub(crate) fn exceed_chance(gains: &[f64], errors: f64) -> bool {
    let n = gains.len() as f64;
    let mean = gains.iter().sum::<f64>() / n;
    let square = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>();
    let error = (square / (n * (n - 1.0).max(1.0))).sqrt();
    mean > errors * error + ROUNDING && mean.is_finite()
}

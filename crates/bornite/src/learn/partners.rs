//! Further circuits for a mixture with the best one, kept if they improve the validation likelihood.

use super::options::FitOptions;
use crate::circuit::{Orthonormal, Skeleton};
use crate::engine::{Batch, Engine};
use crate::mixture::{log_sum, shares};

/// Rounds in which weights are found.
const ROUNDS: usize = 200;
/// Rows that every circuit is given beforehand, in parts of all rows.
const PRIOR: f64 = 0.05;
/// A gain counts if it is so many times its own standard error.
const ERRORS: f64 = 2.0;

/// A circuit to be fitted, and how, by the settings of the best candidate and its place.
pub(crate) type Partner<'a> = dyn Fn(&FitOptions, usize) -> Option<(Skeleton, FitOptions)> + 'a;

/// Circuits that may be fitted beside the best candidate.
pub(crate) struct Partners<'a> {
    /// How many at most.
    pub(crate) most: usize,
    /// The nth of them, for the best candidate's settings, if there is one.
    pub(crate) of: &'a Partner<'a>,
}

/// What several circuits say of the validation rows.
#[derive(Debug)]
pub(super) struct Council<'a> {
    rows: &'a Batch,
    /// The same without their targets, and what log p(target | rest) counts for.
    rest: Option<(Batch, f64)>,
    /// For every circuit log p of the rows, and without their targets.
    logs: Vec<[Vec<f64>; 2]>,
    /// The weights of the circuits.
    pub(super) weights: Vec<f64>,
    values: Vec<f64>,
}

impl<'a> Council<'a> {
    /// One circuit alone.
    pub(super) fn new(first: &Orthonormal, rows: &'a Batch, options: &FitOptions) -> Self {
        let rest =
            (!options.target.is_empty()).then(|| (rows.without(&options.target), options.emphasis));
        let mut council =
            Self { rows, rest, logs: Vec::new(), weights: Vec::new(), values: Vec::new() };
        council.logs.push(council.ask(first));
        council.settle();
        council
    }

    /// Takes one more circuit, if the rows are likelier with it by more than chance.
    pub(super) fn admits(&mut self, circuit: &Orthonormal) -> bool {
        let (weights, values) = (self.weights.clone(), self.values.clone());
        self.logs.push(self.ask(circuit));
        self.settle();
        let gains: Vec<f64> = self.values.iter().zip(&values).map(|(new, old)| new - old).collect();
        let is_better = exceed_chance(&gains, ERRORS);
        if !is_better {
            self.logs.pop();
            (self.weights, self.values) = (weights, values);
        }
        is_better
    }

    fn ask(&self, circuit: &Orthonormal) -> [Vec<f64>; 2] {
        let engine = Engine::new(circuit);
        let logs = |rows: &Batch| engine.log_marginals(rows).unwrap_or_default();
        [logs(self.rows), self.rest.as_ref().map_or(Vec::new(), |(rest, _)| logs(rest))]
    }

    /// Finds the weights by which the rows are likeliest, and what the mixture makes of each row.
    fn settle(&mut self) {
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

    /// log wₜ pₜ of a row, whole or without its target.
    fn parts(&self, which: usize, row: usize, weights: &[f64]) -> Vec<f64> {
        self.logs.iter().zip(weights).map(|(logs, w)| logs[which][row] + w.ln()).collect()
    }
}

/// Whether the mean of these numbers is above 0 by more than this many of its standard errors.
pub(crate) fn exceed_chance(gains: &[f64], errors: f64) -> bool {
    let n = gains.len() as f64;
    let mean = gains.iter().sum::<f64>() / n;
    let square = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>();
    let error = (square / (n * (n - 1.0).max(1.0))).sqrt();
    mean > errors * error && mean.is_finite()
}

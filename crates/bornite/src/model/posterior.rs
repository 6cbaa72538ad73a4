//! Exact distributions of variables given several cases of evidence, with one pass up and one pass down for all of
//! them.

use crate::basis::Part::Interval;
use crate::circuit::{Orthonormal, VariableId};
use crate::mixture::shares;
use crate::ops::{Environments, Univariate};
use crate::query::{Evidence, Query};

use super::{Model, ModelError};

/// The number of bisection steps that find a quantile of a mixture.
const HALVINGS: usize = 60;

/// The distribution of one variable.
#[derive(Clone, Debug)]
pub(crate) enum Posterior {
    /// The probability of every value.
    Finite(Vec<f64>),
    /// A density on [0, 1].
    Density(Density),
    /// A value that the evidence determines.
    Point(f64),
}

/// A density on [0, 1]: a mixture with a component for each case and circuit.
#[derive(Clone, Debug)]
pub(crate) struct Density {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    weight: f64,
    low: f64,
    high: f64,
    distribution: Univariate,
}

/// The distributions of some variables given that one of several cases holds.
pub(crate) struct Posteriors<'m> {
    /// The weight and the environments of each case and circuit.
    cases: Vec<(f64, Environments<&'m Orthonormal>)>,
}

impl Model {
    /// Computes the distributions of these variables, given that one of the cases holds.
    ///
    /// Cost: for each case and circuit, one pass up, and one pass down the layers above the variables.
    pub(crate) fn posteriors(
        &self,
        cases: &[Query],
        variables: &[usize],
    ) -> Result<Posteriors<'_>, ModelError> {
        let (mut logs, mut found) = (Vec::new(), Vec::new());
        for query in cases {
            for (log_weight, circuit) in self.mixture.parts() {
                let toward = variables.iter().map(|&v| VariableId::new(v));
                if let Some(environments) = Environments::toward(circuit, query, toward)? {
                    logs.push(log_weight + environments.log_evidence());
                    found.push(environments);
                }
            }
        }
        let weights = shares(&logs).ok_or_else(impossible)?;
        Ok(Posteriors { cases: weights.into_iter().zip(found).collect() })
    }

    /// The distribution of one variable given that one of the cases holds.
    pub(super) fn posterior(
        &self,
        variable: usize,
        cases: &[Query],
    ) -> Result<Posterior, ModelError> {
        self.posteriors(cases, &[variable])?.of(variable)
    }
}

impl Posteriors<'_> {
    /// The distribution of a variable given all evidence, including evidence about itself.
    pub(crate) fn of(&self, variable: usize) -> Result<Posterior, ModelError> {
        let id = VariableId::new(variable);
        if let [(_, first), others @ ..] = &self.cases[..]
            && let Evidence::Value(x) = first.query().evidence()[variable]
            && others.iter().all(|(_, other)| other.query() == first.query())
        {
            return Ok(Posterior::Point(x));
        }
        let mut parts = Vec::with_capacity(self.cases.len());
        let mut finite: Option<Vec<f64>> = None;
        for (weight, environments) in &self.cases {
            let marginal = environments.marginal(id);
            let distribution = match &environments.query().evidence()[variable] {
                Evidence::In(part) => marginal.within(part).map_err(|_| impossible())?,
                Evidence::Unknown | Evidence::Value(_) => marginal,
            };
            if let Some(p) = distribution.probabilities() {
                let sums = finite.get_or_insert_with(|| vec![0.0; p.len()]);
                match environments.query().evidence()[variable] {
                    Evidence::Value(x) => sums[x as usize] += weight,
                    Evidence::Unknown | Evidence::In(_) => {
                        sums.iter_mut().zip(p).for_each(|(sum, p)| *sum += weight * p);
                    }
                }
            } else {
                let (low, high) = distribution.rest_support().unwrap_or((0.0, 0.0));
                parts.push(Part { weight: *weight, low, high, distribution });
            }
        }
        Ok(finite.map_or(Posterior::Density(Density { parts }), Posterior::Finite))
    }
}

fn impossible() -> ModelError {
    ModelError::Impossible { what: "the evidence".to_owned() }
}

impl Density {
    /// The density of a mixture of distributions.
    pub(super) fn of(mixture: Vec<(f64, Univariate)>) -> Self {
        let part = |(weight, distribution): (f64, Univariate)| {
            let (low, high) = distribution.rest_support().unwrap_or((0.0, 0.0));
            Part { weight, low, high, distribution }
        };
        Self { parts: mixture.into_iter().map(part).collect() }
    }

    /// p(u).
    pub(crate) fn density(&self, u: f64) -> f64 {
        self.parts.iter().map(|p| p.weight * p.distribution.density(u)).sum()
    }

    /// The probability of values ≤ u.
    pub(crate) fn cdf(&self, u: f64) -> f64 {
        self.parts.iter().map(|p| p.weight * p.distribution.cdf(u)).sum::<f64>().min(1.0)
    }

    /// The probability of values < u, excluding an atom at u.
    pub(crate) fn below(&self, u: f64) -> f64 {
        let part = Interval { low: f64::NEG_INFINITY, high: u };
        let share = |p: &Part| p.weight * p.distribution.probability(&part);
        self.parts.iter().map(share).sum::<f64>().min(1.0)
    }

    /// The atoms and their probabilities, in order.
    pub(crate) fn atoms(&self) -> impl Iterator<Item = (f64, f64)> {
        let all = self.parts.iter().flat_map(|p| {
            p.distribution.atoms().iter().map(move |&(u, mass)| (u, p.weight * mass))
        });
        let mut atoms: Vec<(f64, f64)> = all.collect();
        atoms.sort_by(|a, b| a.0.total_cmp(&b.0));
        atoms.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        atoms.into_iter().filter(|(_, p)| *p > 0.0)
    }

    /// The quantile at a level between 0 and 1.
    pub(super) fn quantile(&self, level: f64) -> f64 {
        if let [only] = &self.parts[..]
            && let Ok(u) = only.distribution.quantile(level)
        {
            return u;
        }
        let reached = |(u, _): &(f64, f64)| self.below(*u) < level && level <= self.cdf(*u);
        if let Some((u, _)) = self.atoms().find(reached) {
            return u;
        }
        let (mut low, mut high) = self.bounds();
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.cdf(middle) < level { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    /// The range of u outside of atoms.
    pub(super) fn bounds(&self) -> (f64, f64) {
        let low = self.parts.iter().map(|p| p.low).fold(1.0, f64::min);
        let high = self.parts.iter().map(|p| p.high).fold(0.0, f64::max);
        (low, high)
    }

    /// The range of each component.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.parts.iter().map(|p| (p.low, p.high))
    }

    /// The density p(u) of one component, times its weight.
    pub(super) fn piece_density(&self, part: usize, u: f64) -> f64 {
        let part = &self.parts[part];
        part.weight * part.distribution.density(u)
    }
}

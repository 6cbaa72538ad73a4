//! The most likely values of several finite variables, by branch and bound: the exact marginal of the first few values
//! bounds the probability of every completion.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use rayon::prelude::*;

use super::event::intersect_evidence;
use super::posterior::Posterior;
use super::{Model, ModelError};
use crate::basis::Part;
use crate::data::Coding;
use crate::mixture::log_sum;
use crate::query::{Evidence, Query};

/// The maximum number of prefixes that a search expands.
const MAX_PREFIXES: usize = 1 << 16;
/// The number of prefixes that are expanded together.
const TOGETHER: usize = 32;
/// The number of prefixes of each length that the first guess keeps, and of complete ones that it improves.
const BEAM: usize = 64;
const IMPROVED: usize = 8;
/// The maximum number of rounds that improve one value at a time.
const ROUNDS: usize = 16;

/// The best values that a search found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MostLikely {
    /// The values of the variables.
    pub(super) values: Vec<f64>,
    /// Their probability, given that one of the cases holds.
    pub(super) probability: f64,
    /// An upper bound on the probability of any other values, if the search ended before it could prove that these are
    /// the best.
    pub(super) bound: Option<f64>,
}

/// The values of the first variables, and the log of their probability.
#[derive(Clone, Debug, PartialEq)]
struct Prefix {
    log: f64,
    values: Vec<f64>,
}

impl Eq for Prefix {}

impl Ord for Prefix {
    /// A more likely prefix is greater; of equally likely prefixes, the one with smaller values is greater.
    fn cmp(&self, other: &Self) -> Ordering {
        let values = || {
            let pairs = self.values.iter().zip(&other.values);
            let unequal = pairs.map(|(a, b)| b.total_cmp(a)).find(|o| o.is_ne());
            unequal.unwrap_or_else(|| self.values.len().cmp(&other.values.len()))
        };
        self.log.total_cmp(&other.log).then_with(values)
    }
}

impl PartialOrd for Prefix {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Model {
    /// Finds the most likely cells of some finite columns, given that one of the cases holds.
    ///
    /// Cost: one pass up and one pass down for every prefix that the best values may have.
    pub(super) fn most_likely(
        &self,
        columns: &[usize],
        cases: &[Query],
    ) -> Result<MostLikely, ModelError> {
        let (mut variables, mut ambiguous) = (Vec::new(), Vec::new());
        for &column in columns {
            let coding = self.schema.columns()[column].kind.coding();
            let (first, own) = (variables.len(), self.schema.variables_of(column));
            variables.extend(own);
            let place = coding.ambiguous().map(|place| first + place);
            ambiguous.extend(place.map(|place| (place, first..variables.len(), coding)));
        }
        let search = Search { model: self, variables, ambiguous, cases };
        let variables = &search.variables;
        let mut best = search.first()?;
        let mut open = BinaryHeap::from([Prefix { log: 0.0, values: Vec::new() }]);
        let mut looked_at = 0;
        while looked_at < MAX_PREFIXES && open.peek().is_some_and(|top| top.log > best.log) {
            let mut chosen = Vec::with_capacity(TOGETHER);
            while chosen.len() < TOGETHER
                && let Some(top) = open.pop().filter(|top| top.log > best.log)
            {
                chosen.push(top);
            }
            looked_at += chosen.len();
            let longer: Vec<Vec<Prefix>> =
                chosen.par_iter().map(|prefix| search.longer(prefix)).collect::<Result<_, _>>()?;
            for prefix in longer.into_iter().flatten() {
                if prefix.values.len() < variables.len() {
                    if prefix.log > best.log {
                        open.push(prefix);
                    }
                } else if prefix.log > best.log {
                    best = prefix;
                }
            }
        }
        let bound = open.peek().filter(|top| top.log > best.log).map(|top| top.log.exp().min(1.0));
        Ok(MostLikely { values: best.values, probability: best.log.exp().min(1.0), bound })
    }
}

/// A search for the most likely values of some variables.
struct Search<'a> {
    model: &'a Model,
    variables: Vec<usize>,
    /// Positions of variables in which several values may mean the same cell, with those of all variables of the column.
    ambiguous: Vec<(usize, Range<usize>, &'a dyn Coding)>,
    cases: &'a [Query],
}

impl Search<'_> {
    /// All values at a position that mean the same cell; NaN is an open value. `None` if only its own value does.
    fn same_cell(&self, place: usize, values: &[f64]) -> Option<Vec<usize>> {
        let (_, range, coding) = self.ambiguous.iter().find(|found| found.0 == place)?;
        coding.same_cell(&values[range.clone()])
    }

    /// The cases, restricted to those in which the variables have these values, or others that mean the same cells; NaN
    /// is an open value.
    fn fixed(&self, values: &[f64]) -> Vec<Query> {
        let variables = self.model.mixture.variables();
        let known = values.iter().enumerate().filter(|(_, x)| !x.is_nan());
        let evidence: Vec<(usize, Evidence)> = known
            .map(|(place, &x)| {
                let set = self.same_cell(place, values).map(|set| Evidence::In(Part::Values(set)));
                (self.variables[place], set.unwrap_or(Evidence::Value(x)))
            })
            .collect();
        let fix = |case: &Query| {
            let mut query = case.clone();
            for (v, evidence) in &evidence {
                let known =
                    intersect_evidence(&variables[*v].domain, &query.evidence()[*v], evidence)?;
                query.set(variables, *v, known).ok()?;
            }
            Some(query)
        };
        self.cases.iter().filter_map(fix).collect()
    }

    /// The probabilities of the values at a position, given those at all others, of which NaN is open. Values that mean
    /// the same cell are counted together.
    fn posterior(&self, place: usize, values: &[f64]) -> Result<Vec<(f64, f64)>, ModelError> {
        let found = match self.model.posterior(self.variables[place], &self.fixed(values))? {
            Posterior::Finite(p) => p.into_iter().enumerate().map(|(x, p)| (x as f64, p)).collect(),
            Posterior::Point(x) => vec![(x, 1.0)],
            Posterior::Density(_) => Vec::new(),
        };
        let mut values = values.to_vec();
        let mut cells: Vec<(f64, f64)> = Vec::with_capacity(found.len());
        for (x, p) in found {
            values[place] = x;
            let first = self.same_cell(place, &values).map_or(x, |set| set[0] as f64);
            match cells.last_mut().filter(|(cell, _)| *cell == first) {
                Some((_, sum)) => *sum += p,
                None => cells.push((first, p)),
            }
        }
        Ok(cells)
    }

    /// The first values, followed by open ones.
    fn opened(&self, first: &[f64]) -> Vec<f64> {
        let mut values = vec![f64::NAN; self.variables.len()];
        values[..first.len()].copy_from_slice(first);
        values
    }

    /// Extends a prefix by each value of the next variable.
    fn longer(&self, prefix: &Prefix) -> Result<Vec<Prefix>, ModelError> {
        let place = prefix.values.len();
        let next = self.posterior(place, &self.opened(&prefix.values))?;
        let longer = |(x, p): (f64, f64)| {
            let values = prefix.values.iter().copied().chain([x]).collect();
            Prefix { log: prefix.log + p.ln(), values }
        };
        Ok(next.into_iter().filter(|(_, p)| *p > 0.0).map(longer).collect())
    }

    /// A good first guess: of the most likely prefixes of each length, the most likely extensions; then single values are
    /// improved given all others.
    fn first(&self) -> Result<Prefix, ModelError> {
        let mut beam = vec![Prefix { log: 0.0, values: Vec::new() }];
        for _ in 0..self.variables.len() {
            let longer: Vec<Vec<Prefix>> =
                beam.par_iter().map(|prefix| self.longer(prefix)).collect::<Result<_, _>>()?;
            beam = longer.into_iter().flatten().collect();
            beam.sort_unstable_by(|a, b| b.cmp(a));
            beam.truncate(BEAM);
        }
        beam.truncate(IMPROVED);
        let total = log_sum(&self.model.log_cases(self.cases)?);
        let improved: Vec<Prefix> =
            beam.into_par_iter().map(|p| self.improved(p, total)).collect::<Result<_, _>>()?;
        let impossible = || ModelError::Impossible { what: "the evidence".to_owned() };
        improved.into_iter().max().ok_or_else(impossible)
    }

    /// Improves single values given all others as long as that helps.
    fn improved(&self, mut best: Prefix, total: f64) -> Result<Prefix, ModelError> {
        for _ in 0..ROUNDS {
            let before = best.log;
            for place in 0..self.variables.len() {
                let mut others = best.values.clone();
                others[place] = f64::NAN;
                let rest = log_sum(&self.model.log_cases(&self.fixed(&others))?) - total;
                for (x, p) in self.posterior(place, &others)? {
                    if rest + p.ln() > best.log + 1e-12 {
                        best.log = rest + p.ln();
                        best.values[place] = x;
                    }
                }
            }
            if best.log <= before {
                break;
            }
        }
        Ok(best)
    }
}

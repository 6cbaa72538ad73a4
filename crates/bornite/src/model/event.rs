//! What is known of the columns of one row.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::{Model, ModelError};
use crate::basis::Part;
use crate::data::{Block, Cell, Schema};
use crate::domain::{Domain, Variable};
use crate::engine::Batch;
use crate::query::{Evidence, Query};

/// The most cases that evidence may be made of.
const MAX_CASES: usize = 4096;

/// An event: what is known of the columns of one row, as values, sets and intervals, all of which hold.
///
/// ```
/// use bornite::data::{CsvOptions, InferOptions, Schema, Table};
/// use bornite::model::Event;
///
/// let table = Table::from_csv_bytes(b"city,age\nBonn,30\nEssen,41\n", "t.csv", &CsvOptions::default())?;
/// let schema = Schema::infer(&table, &InferOptions::default())?;
/// let known = Event::parse(&schema, "city='Bonn', age in [30, 40)")?;
/// assert_eq!(known, Event::parse(&schema, "age < 40 , city in {Bonn}")?);
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Queries of which one holds, no two of them at once. None at all: impossible.
    cases: Vec<Query>,
    /// ln F′ of the columns with a value that have one.
    slopes: BTreeMap<usize, f64>,
    /// By column, the labels that are meant where the place for labels without one of their own is.
    others: BTreeMap<usize, BTreeSet<String>>,
}

impl Event {
    /// Nothing of so many variables.
    pub(super) fn nothing(num_variables: usize) -> Self {
        let cases = vec![Query::unknown(num_variables)];
        Self { cases, slopes: BTreeMap::new(), others: BTreeMap::new() }
    }

    /// Whether a row of values is in one of the cases.
    #[cfg(test)]
    pub(crate) fn holds(&self, variables: &[Variable], row: &Query) -> bool {
        self.cases.iter().any(|b| intersect(variables, b, row).is_some())
    }

    pub(super) fn is_nothing(&self) -> bool {
        matches!(&self.cases[..], [only] if only.evidence().iter().all(|e| *e == Evidence::Unknown))
    }

    /// Whether something is known of a column.
    pub(super) fn is_about(&self, schema: &Schema, column: usize) -> bool {
        let is_known = |query: &Query| {
            schema.variables_of(column).any(|v| query.evidence()[v] != Evidence::Unknown)
        };
        self.cases.iter().any(is_known)
    }

    /// Queries of which one holds.
    pub(super) fn cases(&self) -> &[Query] {
        &self.cases
    }

    /// Σ ln F′ over the columns with a value.
    pub(super) fn log_slope(&self) -> f64 {
        self.slopes.values().sum()
    }

    /// ln F′ by column.
    pub(super) fn slopes(&self) -> &BTreeMap<usize, f64> {
        &self.slopes
    }

    /// Whether a continuous column has a value, so that there is a density and no probability.
    pub fn is_density(&self) -> bool {
        !self.slopes.is_empty()
    }

    /// That a column has this value.
    ///
    /// # Errors
    /// There is no such column, or the value does not fit it.
    pub fn value(schema: &Schema, column: &str, cell: Cell<'_>) -> Result<Self, ModelError> {
        let block = schema.evidence_value(column, cell)?;
        let index = schema.find(column)?;
        let mut known = Self::from_blocks(schema, vec![block])?;
        let (values, slope) = schema.encode_value(index, cell)?;
        if schema.columns()[index].kind.coding().has_density(&values) {
            known.slopes.insert(index, slope);
        }
        known.name_others(schema, index, &[cell])?;
        Ok(known)
    }

    /// That a column has one of these values.
    ///
    /// # Errors
    /// There is no such column, a value does not fit it, or it is continuous.
    pub fn set(schema: &Schema, column: &str, cells: &[Cell<'_>]) -> Result<Self, ModelError> {
        let mut known = Self::from_blocks(schema, schema.evidence_set(column, cells)?)?;
        known.name_others(schema, schema.find(column)?, cells)?;
        Ok(known)
    }

    /// Remembers which labels are meant by the place for those without one of their own: no two of them hold at once.
    fn name_others(
        &mut self,
        schema: &Schema,
        column: usize,
        cells: &[Cell<'_>],
    ) -> Result<(), ModelError> {
        let Some(other) = schema.columns()[column].kind.coding().other() else { return Ok(()) };
        let mut labels = BTreeSet::new();
        for &cell in cells {
            if schema.encode_value(column, cell)?.0[0] == other as f64 {
                labels.insert(cell.text());
            }
        }
        if !labels.is_empty() {
            self.others.insert(column, labels);
        }
        Ok(())
    }

    /// That a column lies between two numbers.
    ///
    /// # Errors
    /// There is no such column, its values are no numbers, or the ends are not in order.
    pub fn interval(
        schema: &Schema,
        column: &str,
        low: Bound<f64>,
        high: Bound<f64>,
    ) -> Result<Self, ModelError> {
        Self::from_blocks(schema, schema.evidence_interval(column, low, high)?)
    }

    pub(crate) fn from_blocks(schema: &Schema, blocks: Vec<Block>) -> Result<Self, ModelError> {
        let variables = schema.variables();
        let mut cases = Vec::with_capacity(blocks.len());
        for block in blocks {
            let mut query = Query::unknown(variables.len());
            for (variable, evidence) in block {
                query.set(&variables, variable, evidence)?;
            }
            cases.push(query);
        }
        Ok(Self { cases, slopes: BTreeMap::new(), others: BTreeMap::new() })
    }

    /// Both this and the other.
    ///
    /// # Errors
    /// The evidence falls apart into too many cases.
    pub fn and(&self, schema: &Schema, other: &Self) -> Result<Self, ModelError> {
        if self.cases.len() * other.cases.len() > MAX_CASES {
            return Err(ModelError::TooManyParts { limit: MAX_CASES });
        }
        let variables = schema.variables();
        let mut cases = Vec::new();
        for a in &self.cases {
            for b in &other.cases {
                cases.extend(intersect(&variables, a, b));
            }
        }
        let mut slopes = self.slopes.clone();
        slopes.extend(&other.slopes);
        let mut others = self.others.clone();
        for (&column, labels) in &other.others {
            let Some(own) = others.get_mut(&column) else {
                others.insert(column, labels.clone());
                continue;
            };
            own.retain(|label| labels.contains(label));
            if own.is_empty() {
                let count = schema.columns()[column].kind.coding().labels().len();
                let labelled = Evidence::In(Part::Values((0..count).collect()));
                let variable = schema.variables_of(column).start;
                cases = cases
                    .into_iter()
                    .filter_map(|mut query: Query| {
                        let both = both(
                            &variables[variable].domain,
                            &query.evidence()[variable],
                            &labelled,
                        )?;
                        query.set(&variables, variable, both).ok()?;
                        Some(query)
                    })
                    .collect();
            }
        }
        Ok(Self { cases, slopes, others })
    }
}

/// What both queries say; `None` where that is impossible.
pub(super) fn intersect(variables: &[Variable], a: &Query, b: &Query) -> Option<Query> {
    let mut query = a.clone();
    for (n, (x, y)) in a.evidence().iter().zip(b.evidence()).enumerate() {
        query.set(variables, n, both(&variables[n].domain, x, y)?).ok()?;
    }
    Some(query)
}

pub(super) fn both(domain: &Domain, a: &Evidence, b: &Evidence) -> Option<Evidence> {
    use Evidence::{In, Unknown, Value};
    use Part::{Interval, Values};
    match (a, b) {
        (Unknown, other) | (other, Unknown) => Some(other.clone()),
        (Value(x), Value(y)) => (x == y).then_some(Value(*x)),
        (Value(x), In(part)) | (In(part), Value(x)) => match part {
            Values(values) => {
                let n = if domain.atoms().is_empty() { Some(*x as usize) } else { domain.atom(*x) };
                n.filter(|n| values.contains(n)).map(|_| Value(*x))
            }
            Interval { low, high } => (x >= low && x < high).then_some(Value(*x)),
        },
        (In(Values(x)), In(Values(y))) => {
            let shared: Vec<usize> = x.iter().copied().filter(|v| y.contains(v)).collect();
            (!shared.is_empty()).then_some(In(Values(shared)))
        }
        (In(Interval { low: a, high: b }), In(Interval { low: c, high: d })) => {
            let (low, high) = (a.max(*c), b.min(*d));
            (low < high).then_some(In(Interval { low, high }))
        }
        // Of a variable with atoms: no other is both finite and continuous.
        (In(Values(atoms)), In(Interval { low, high }))
        | (In(Interval { low, high }), In(Values(atoms))) => {
            let points = domain.atoms();
            let inside = |n: &usize| points.get(*n).is_some_and(|x| (*low..*high).contains(x));
            let shared: Vec<usize> = atoms.iter().copied().filter(inside).collect();
            (!shared.is_empty()).then_some(In(Values(shared)))
        }
    }
}

impl Model {
    /// log p of what is known, given what the model is conditioned on: a probability, or a density in the units of the data
    /// where a continuous column has a value. −∞ where it is impossible.
    ///
    /// Cost: one batched query for every box that the evidence is made of; one case where there are neither digits nor
    /// intervals around a circle.
    ///
    /// # Errors
    /// The evidence was made for another schema.
    pub fn log_probability(&self, known: &Event) -> Result<f64, ModelError> {
        if self.given.is_nothing() {
            return Ok(self.log_unconditional(known)?.min_if_mass(known));
        }
        let joint = known.and(&self.schema, &self.given)?;
        Ok((self.log_unconditional(&joint)? - self.log_given).min_if_mass(known))
    }

    /// log p of each of these, given what the model is conditioned on, in one batch; of sets and intervals alone.
    pub(crate) fn log_probabilities(&self, events: &[Event]) -> Result<Vec<f64>, ModelError> {
        let mut cases = Vec::new();
        let mut ends = Vec::with_capacity(events.len());
        for event in events {
            cases.extend(event.and(&self.schema, &self.given)?.cases);
            ends.push(cases.len());
        }
        let logs = self.log_cases(&cases)?;
        let mut start = 0;
        let sums = ends.into_iter().map(|end| {
            let sum = log_sum(&logs[start..end]) + self.given.log_slope() - self.log_given;
            start = end;
            sum
        });
        Ok(sums.collect())
    }

    /// log p of what is known, in the units of the data, whatever the model is conditioned on.
    pub(super) fn log_unconditional(&self, known: &Event) -> Result<f64, ModelError> {
        Ok(log_sum(&self.log_cases(known.cases())?) + known.log_slope())
    }

    /// log p of every box.
    pub(super) fn log_cases(&self, cases: &[Query]) -> Result<Vec<f64>, ModelError> {
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        let rows = Batch::from_queries(self.engine.variables(), cases)?;
        Ok(self.engine.log_marginals(&rows)?)
    }
}

/// ln Σ eˡ; −∞ for none.
pub(super) fn log_sum(logs: &[f64]) -> f64 {
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return max;
    }
    max + logs.iter().map(|l| (l - max).exp()).sum::<f64>().ln()
}

/// Rounding must not make a probability larger than 1.
trait MinIfMass {
    fn min_if_mass(self, known: &Event) -> f64;
}

impl MinIfMass for f64 {
    fn min_if_mass(self, known: &Event) -> f64 {
        if known.is_density() { self } else { self.min(0.0) }
    }
}

//! Events: evidence about the columns of one row.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::unseen::UnseenValues;
use super::{Model, ModelError};
use crate::basis::Part;
use crate::data::{Block, Cell, DataError, Ends, OutsideSet, Parts, Schema};
use crate::domain::{Domain, Variable};
use crate::engine::Batch;
use crate::mixture::log_sum;
use crate::query::{Evidence, Query};

/// The maximum number of cases in an event.
const MAX_CASES: usize = 4096;

/// An event: evidence about the columns of one row, as values, sets and intervals, combined with *and*, *or* and *not*.
///
/// ```
/// use bornite::data::{CsvOptions, InferOptions, Schema, Table};
/// use bornite::model::Event;
///
/// let table = Table::from_csv_bytes(b"city,age\nBonn,30\nEssen,41\n", "t.csv", &CsvOptions::default())?;
/// let schema = Schema::infer(&table, &InferOptions::default())?;
/// let known = Event::parse(&schema, "city='Bonn', age in [30, 40)")?;
/// assert_eq!(known, Event::parse(&schema, "age < 40 and city in {Bonn}")?);
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Mutually exclusive queries, one of which holds. An event without cases is impossible.
    cases: Vec<Query>,
    /// For every case, by column, the part of the catch-all value that is meant. Columns that are not listed mean all
    /// of it.
    outside: Vec<OutsideSets>,
    /// ln F′ of each continuous column with a value.
    slopes: BTreeMap<usize, f64>,
    /// Values in the event that are outside the domain of their column.
    unseen: UnseenValues,
}

/// Labels or numbers outside the domain, by column.
type OutsideSets = BTreeMap<usize, OutsideSet>;

/// One case of an event.
type Case = (Query, OutsideSets);

impl Event {
    /// The certain event, which says nothing about any of the variables.
    pub(super) fn certain(num_variables: usize) -> Self {
        Self::of_cases(vec![(Query::unknown(num_variables), OutsideSets::new())])
    }

    fn of_cases(cases: Vec<Case>) -> Self {
        let (cases, outside) = cases.into_iter().unzip();
        Self { cases, outside, slopes: BTreeMap::new(), unseen: UnseenValues::new() }
    }

    fn cases_with_outside(&self) -> impl Iterator<Item = (&Query, &OutsideSets)> + Clone {
        self.cases.iter().zip(&self.outside)
    }

    /// Whether a row is compatible with one of the cases.
    #[cfg(test)]
    pub(crate) fn holds(&self, variables: &[Variable], row: &Query) -> bool {
        self.cases.iter().any(|b| intersect(variables, b, row).is_some())
    }

    /// Whether the event holds in a row of values. If that depends on a missing value, it does not.
    pub(super) fn holds_in(&self, variables: &[Variable], row: &[f64]) -> bool {
        let holds = |query: &Query| {
            let known = query.evidence().iter().zip(row).zip(variables);
            known.clone().all(|((evidence, x), variable)| {
                let value = || Evidence::Value(*x);
                *evidence == Evidence::Unknown
                    || !x.is_nan()
                        && intersect_evidence(&variable.domain, evidence, &value()).is_some()
            })
        };
        self.cases.iter().any(holds)
    }

    pub(super) fn is_certain(&self) -> bool {
        matches!(&self.cases[..], [only] if only.evidence().iter().all(|e| *e == Evidence::Unknown))
    }

    /// Whether the event says something about a column.
    pub(super) fn is_about(&self, schema: &Schema, column: usize) -> bool {
        let is_known = |query: &Query| {
            schema.variables_of(column).any(|v| query.evidence()[v] != Evidence::Unknown)
        };
        self.cases.iter().any(is_known)
    }

    /// Mutually exclusive queries, one of which holds.
    pub(super) fn cases(&self) -> &[Query] {
        &self.cases
    }

    /// Σ ln F′ over the continuous columns with a value.
    pub(super) fn log_slope(&self) -> f64 {
        self.slopes.values().sum()
    }

    /// ln F′ of the continuous columns with a value, by column.
    pub(super) fn slopes(&self) -> &BTreeMap<usize, f64> {
        &self.slopes
    }

    /// Values in the event that are outside the domain of their column.
    pub(super) fn unseen(&self) -> &UnseenValues {
        &self.unseen
    }

    /// Adds the values outside the domain of two events.
    fn with_unseen_of(mut self, first: &Self, second: &Self) -> Self {
        self.unseen = first.unseen.union(&second.unseen).cloned().collect();
        self
    }

    /// For every case, the log of its share of the probability outside the domains.
    pub(super) fn log_shares(&self, schema: &Schema) -> impl Iterator<Item = f64> {
        let log = |(column, set): (&usize, &OutsideSet)| {
            let c = &schema.columns()[*column];
            c.kind.coding().spread(c.storage).map_or(0.0, |spread| spread.log_share(set))
        };
        self.outside.iter().map(move |others| others.iter().map(log).sum())
    }

    /// Whether a continuous column has a value, so that the event has a density instead of a probability.
    pub fn is_density(&self) -> bool {
        !self.slopes.is_empty()
    }

    /// The event that a column has this value. Numbers outside the column's domain have probability 0.
    ///
    /// # Errors
    /// There is no such column, or the value does not fit it.
    pub fn value(schema: &Schema, column: &str, cell: Cell<'_>) -> Result<Self, ModelError> {
        let index = schema.find(column)?;
        let mut known = Self::set_of(schema, index, &[cell], |values| {
            Ok(vec![schema.columns()[index].kind.coding().exactly(&values[0])])
        })?;
        if let Ok((values, slope)) = schema.encode_value(index, cell)
            && schema.columns()[index].kind.coding().has_density(&values)
        {
            known.slopes.insert(index, slope);
        }
        Ok(known)
    }

    /// The event that the cell of a column is missing.
    ///
    /// # Errors
    /// There is no such column, or missing is not a value in it.
    pub fn missing(schema: &Schema, column: &str) -> Result<Self, ModelError> {
        let index = schema.find(column)?;
        match schema.columns()[index].kind.coding().missing() {
            Some(x) => {
                let first = schema.variables_of(index).start;
                Self::from_blocks(schema, vec![vec![(first, Evidence::Value(x))]])
            }
            None => Err(no_missing(column)),
        }
    }

    /// The event that the cell of a column is not missing.
    ///
    /// # Errors
    /// There is no such column, or missing is not a value in it.
    pub fn known(schema: &Schema, column: &str) -> Result<Self, ModelError> {
        let index = schema.find(column)?;
        let first = schema.variables_of(index).start;
        let present = schema.present(index).ok_or_else(|| no_missing(column))?;
        Self::from_blocks(schema, vec![vec![(first, present)]])
    }

    /// The event that a column has one of these values.
    ///
    /// # Errors
    /// There is no such column, a value does not fit it, or it is continuous.
    pub fn set(schema: &Schema, column: &str, cells: &[Cell<'_>]) -> Result<Self, ModelError> {
        let index = schema.find(column)?;
        Self::set_of(schema, index, cells, |values| {
            schema.columns()[index].kind.coding().set(values)
        })
    }

    /// The event that a column has one of these values; `parts` encodes those inside the domain.
    fn set_of(
        schema: &Schema,
        column: usize,
        cells: &[Cell<'_>],
        parts: impl FnOnce(&[Vec<f64>]) -> Result<Vec<Parts>, &'static str>,
    ) -> Result<Self, ModelError> {
        let c = &schema.columns()[column];
        let coding = c.kind.coding();
        let (mut seen, mut labels, mut numbers) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut unseen = UnseenValues::new();
        for &cell in cells {
            match schema.encode_value(column, cell) {
                Ok((values, _)) if coding.other().is_some_and(|n| values[0] == n as f64) => {
                    match coding.spread(c.storage).and_then(|spread| spread.cell(cell)) {
                        Some(set @ OutsideSet::Numbers { .. }) => numbers.push(set),
                        Some(OutsideSet::Labels(_)) | None => drop(labels.insert(cell.text())),
                    }
                }
                Ok((values, _)) => seen.push(values),
                // A number beyond the range, or between grid points.
                Err(_) if c.is_outside(cell) => drop(unseen.insert((column, Some(cell.text())))),
                Err(problem) => return Err(problem.into()),
            }
        }
        let mut event = Self::of_cases(Vec::new());
        if !seen.is_empty() {
            let name = || c.name.clone();
            let parts =
                parts(&seen).map_err(|problem| DataError::Evidence { column: name(), problem })?;
            event = Self::from_blocks(schema, schema.placed_parts(column, parts))?;
        }
        let mut sets: Vec<OutsideSet> = Vec::new();
        for set in numbers {
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        sets.extend((!labels.is_empty()).then_some(OutsideSet::Labels(labels)));
        event.push_outside(schema, column, sets)?;
        event.unseen = unseen;
        Ok(event)
    }

    /// Adds a case for each set of values outside the domain.
    fn push_outside(
        &mut self,
        schema: &Schema,
        column: usize,
        sets: Vec<OutsideSet>,
    ) -> Result<(), ModelError> {
        let Some(other) = schema.columns()[column].kind.coding().other() else { return Ok(()) };
        for set in sets {
            let mut query = Query::unknown(schema.num_variables());
            let variable = schema.variables_of(column).start;
            query.set(&schema.variables(), variable, Evidence::Value(other as f64))?;
            self.cases.push(query);
            self.outside.push(OutsideSets::from([(column, set)]));
        }
        Ok(())
    }

    /// The event that a column lies between two numbers.
    ///
    /// # Errors
    /// There is no such column, it does not contain numbers, or the ends are not in order.
    pub fn interval(
        schema: &Schema,
        column: &str,
        low: Bound<f64>,
        high: Bound<f64>,
    ) -> Result<Self, ModelError> {
        let index = schema.find(column)?;
        Self::between(schema, index, Ends::new(low, high))
    }

    /// The event that a column lies between two ends. `Err` contains two ends that are not in order.
    pub(super) fn between(
        schema: &Schema,
        column: usize,
        ends: Result<Ends, (f64, f64)>,
    ) -> Result<Self, ModelError> {
        let c = &schema.columns()[column];
        let ends =
            ends.map_err(|(low, high)| DataError::Interval { column: c.name.clone(), low, high })?;
        let parts = c
            .kind
            .coding()
            .interval(&ends)
            .map_err(|problem| DataError::Evidence { column: c.name.clone(), problem })?;
        let mut event = Self::from_blocks(schema, schema.placed_parts(column, parts))?;
        let spread = c.kind.coding().spread(c.storage);
        let outside = spread.and_then(|spread| spread.between(&ends));
        event.push_outside(schema, column, outside.into_iter().collect())?;
        if event.cases.is_empty() && c.kind.coding().outside(c.storage).is_some() {
            event.unseen.insert((column, None));
        }
        Ok(event)
    }

    pub(crate) fn from_blocks(schema: &Schema, blocks: Vec<Block>) -> Result<Self, ModelError> {
        let variables = schema.variables();
        let mut cases = Vec::with_capacity(blocks.len());
        for block in blocks {
            let mut query = Query::unknown(variables.len());
            for (variable, evidence) in block {
                query.set(&variables, variable, evidence)?;
            }
            cases.push((query, OutsideSets::new()));
        }
        Ok(Self::of_cases(cases))
    }

    /// The intersection of two events.
    ///
    /// # Errors
    /// The result has too many cases.
    pub fn and(&self, schema: &Schema, other: &Self) -> Result<Self, ModelError> {
        check_cases(self.cases.len() * other.cases.len())?;
        let variables = schema.variables();
        let mut cases = Vec::new();
        for a in self.cases_with_outside() {
            cases.extend(
                other.cases_with_outside().filter_map(|b| intersect_cases(&variables, a, b)),
            );
        }
        let mut event = Self::of_cases(cases);
        event.slopes = self.slopes.clone();
        event.slopes.extend(&other.slopes);
        Ok(event.with_unseen_of(self, other))
    }

    /// The union of two events.
    ///
    /// # Errors
    /// The result has too many cases, or a continuous column has a single value, which has probability 0.
    pub fn or(&self, schema: &Schema, other: &Self) -> Result<Self, ModelError> {
        self.check_mass(schema)?;
        other.check_mass(schema)?;
        let mut cases: Vec<Case> =
            self.cases_with_outside().map(|(q, o)| (q.clone(), o.clone())).collect();
        cases.extend(other.without(schema, self)?);
        check_cases(cases.len())?;
        Ok(Self::of_cases(cases).with_unseen_of(self, other))
    }

    /// The complement of the event.
    ///
    /// # Errors
    /// The result has too many cases, or a continuous column has a single value, which has probability 0.
    pub fn not(&self, schema: &Schema) -> Result<Self, ModelError> {
        self.check_mass(schema)?;
        let all = Self::certain(schema.num_variables());
        Ok(Self::of_cases(all.without(schema, self)?).with_unseen_of(self, &all))
    }

    /// Rejects single values of continuous columns, which have probability 0.
    fn check_mass(&self, schema: &Schema) -> Result<(), ModelError> {
        let Some((&column, _)) = self.slopes.first_key_value() else { return Ok(()) };
        let problem = "a single value has probability 0, so it cannot be combined with 'or' and 'not'; ask for an interval [a, b)";
        let column = schema.columns()[column].name.clone();
        Err(DataError::Evidence { column, problem }.into())
    }

    /// The cases of this event without the other.
    fn without(&self, schema: &Schema, other: &Self) -> Result<Vec<Case>, ModelError> {
        let variables = schema.variables();
        let mut rest: Vec<Case> =
            self.cases_with_outside().map(|(q, o)| (q.clone(), o.clone())).collect();
        for taken in other.cases_with_outside() {
            let mut left = Vec::new();
            for case in rest {
                subtract(schema, &variables, case, taken, &mut left);
                check_cases(left.len())?;
            }
            rest = left;
        }
        Ok(rest)
    }
}

fn no_missing(column: &str) -> ModelError {
    let problem = "the model integrates out its missing cells; to ask about them, fit the column with missing as a value";
    DataError::Evidence { column: column.to_owned(), problem }.into()
}

fn check_cases(count: usize) -> Result<(), ModelError> {
    if count > MAX_CASES {
        return Err(ModelError::TooManyParts { limit: MAX_CASES });
    }
    Ok(())
}

/// The intersection of two cases; `None` if it is empty.
fn intersect_cases(
    variables: &[Variable],
    a: (&Query, &OutsideSets),
    b: (&Query, &OutsideSets),
) -> Option<Case> {
    let query = intersect(variables, a.0, b.0)?;
    let mut outside = a.1.clone();
    for (column, set) in b.1 {
        let both = match outside.get(column) {
            Some(own) => own.and(set)?,
            None => set.clone(),
        };
        outside.insert(*column, both);
    }
    Some((query, outside))
}

/// Appends the difference of two cases, as mutually exclusive cases.
fn subtract(
    schema: &Schema,
    variables: &[Variable],
    case: Case,
    taken: (&Query, &OutsideSets),
    left: &mut Vec<Case>,
) {
    if intersect_cases(variables, (&case.0, &case.1), taken).is_none() {
        left.push(case);
        return;
    }
    // Variable by variable: the part that differs there and agrees in all variables before.
    let (mut query, mut outside) = case;
    let mut push = |query: &Query, variable: usize, evidence: Evidence, outside: &OutsideSets| {
        let mut query = query.clone();
        if query.set(variables, variable, evidence).is_ok() {
            left.push((query, outside.clone()));
        }
    };
    for (column, _) in schema.columns().iter().enumerate() {
        for variable in schema.variables_of(column) {
            let (domain, own) = (&variables[variable].domain, query.evidence()[variable].clone());
            let evidence = &taken.0.evidence()[variable];
            if *evidence == Evidence::Unknown {
                continue;
            }
            for piece in complement(domain, evidence) {
                if let Some(both) = intersect_evidence(domain, &own, &piece) {
                    push(&query, variable, both, &outside);
                }
            }
            if let Some(set) = taken.1.get(&column) {
                let before = outside.get(&column).cloned();
                for rest in set.complement() {
                    let rest = match &before {
                        Some(before) => before.and(&rest),
                        None => Some(rest),
                    };
                    if let Some(rest) = rest {
                        let mut outside = outside.clone();
                        outside.insert(column, rest);
                        push(&query, variable, evidence.clone(), &outside);
                    }
                }
                let both = before.map_or_else(|| Some(set.clone()), |before| before.and(set));
                outside.extend(both.map(|both| (column, both)));
            }
            if let Some(both) = intersect_evidence(domain, &own, evidence) {
                // The evidence is valid because it was valid in both cases.
                let _ = query.set(variables, variable, both);
            }
        }
    }
}

/// The complement of evidence about a variable, as mutually exclusive parts.
fn complement(domain: &Domain, evidence: &Evidence) -> Vec<Evidence> {
    use Part::{Interval, Values};
    let intervals = |mut points: Vec<(f64, f64)>| {
        let (low, high) = match domain {
            Domain::Circle(period) => (0.0, *period),
            Domain::Finite(_)
            | Domain::Real
            | Domain::Interval(..)
            | Domain::HalfLine(_)
            | Domain::Atoms(_) => (f64::NEG_INFINITY, f64::INFINITY),
        };
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let starts = std::iter::once(low).chain(points.iter().map(|p| p.1));
        let ends = points.iter().map(|p| p.0).chain([high]);
        let between = starts.zip(ends).filter(|(low, high)| low < high);
        between.map(|(low, high)| Evidence::In(Interval { low, high })).collect()
    };
    let atom = |x: f64| (x, x.next_up());
    match (evidence, domain.num_values()) {
        (Evidence::Unknown, _) => Vec::new(),
        (Evidence::Value(x), Some(count)) => {
            let others: Vec<usize> = (0..count).filter(|&n| n as f64 != *x).collect();
            if others.is_empty() { Vec::new() } else { vec![Evidence::In(Values(others))] }
        }
        (Evidence::In(Values(values)), Some(count)) => {
            let others: Vec<usize> = (0..count).filter(|n| !values.contains(n)).collect();
            if others.is_empty() { Vec::new() } else { vec![Evidence::In(Values(others))] }
        }
        (Evidence::Value(x), None) => intervals(vec![atom(*x)]),
        (Evidence::In(Values(atoms)), None) => {
            let points = domain.atoms();
            intervals(atoms.iter().filter_map(|&n| points.get(n).copied().map(atom)).collect())
        }
        (Evidence::In(Interval { low, high }), _) => intervals(vec![(*low, *high)]),
    }
}

/// The intersection of two queries; `None` if it is empty.
pub(super) fn intersect(variables: &[Variable], a: &Query, b: &Query) -> Option<Query> {
    let mut query = a.clone();
    for (n, (x, y)) in a.evidence().iter().zip(b.evidence()).enumerate() {
        query.set(variables, n, intersect_evidence(&variables[n].domain, x, y)?).ok()?;
    }
    Some(query)
}

pub(super) fn intersect_evidence(domain: &Domain, a: &Evidence, b: &Evidence) -> Option<Evidence> {
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
        // The variable has atoms: no other domain is both finite and continuous.
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
    /// The log probability of an event given the model's evidence, or its log density in the units of the data if a
    /// continuous column has a value. −∞ if the event is impossible.
    ///
    /// Cost: one batched query with a row per case. There is a single case unless the event involves digits, unions or
    /// intervals around a circle.
    ///
    /// # Errors
    /// The event was created for another schema.
    pub fn log_probability(&self, event: &Event) -> Result<f64, ModelError> {
        if self.given.is_certain() {
            return Ok(cap(self.log_unconditional(event)?, event));
        }
        let joint = event.and(&self.schema, &self.given)?;
        Ok(cap(self.log_unconditional(&joint)? - self.log_given, event))
    }

    /// The log probabilities of several events given the model's evidence, in one batch. The events must not have
    /// densities.
    pub(crate) fn log_probabilities(&self, events: &[Event]) -> Result<Vec<f64>, ModelError> {
        let (mut cases, mut shares) = (Vec::new(), Vec::new());
        let mut ends = Vec::with_capacity(events.len());
        for event in events {
            let joint = event.and(&self.schema, &self.given)?;
            shares.extend(joint.log_shares(&self.schema));
            cases.extend(joint.cases);
            ends.push(cases.len());
        }
        let logs = self.log_cases(&cases)?;
        let logs: Vec<f64> = logs.iter().zip(&shares).map(|(log, share)| log + share).collect();
        let mut start = 0;
        let sums = ends.into_iter().map(|end| {
            let sum = log_sum(&logs[start..end]) + self.given.log_slope() - self.log_given;
            start = end;
            sum
        });
        Ok(sums.collect())
    }

    /// The log probability of an event in the units of the data, ignoring the model's evidence.
    pub(super) fn log_unconditional(&self, event: &Event) -> Result<f64, ModelError> {
        let logs = self.log_cases(event.cases())?;
        let shares = event.log_shares(&self.schema);
        let logs: Vec<f64> = logs.iter().zip(shares).map(|(log, share)| log + share).collect();
        Ok(log_sum(&logs) + event.log_slope())
    }

    /// The log probability of each case.
    pub(super) fn log_cases(&self, cases: &[Query]) -> Result<Vec<f64>, ModelError> {
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        let rows = Batch::from_queries(self.mixture.variables(), cases)?;
        Ok(self.mixture.log_marginals(&rows)?)
    }
}

/// Caps the log probability of an event at 0, which rounding may exceed. Densities have no such bound.
fn cap(log: f64, event: &Event) -> f64 {
    if event.is_density() { log } else { log.min(0.0) }
}

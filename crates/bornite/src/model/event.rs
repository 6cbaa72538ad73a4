//! Evidence about the columns of one row.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::unseen::NoPlace;
use super::{Model, ModelError};
use crate::basis::Part;
use crate::data::{Block, Cell, DataError, Ends, OutsideSet, Parts, Schema};
use crate::domain::{Domain, Variable};
use crate::engine::Batch;
use crate::mixture::log_sum;
use crate::query::{Evidence, Query};

/// The maximum number of cases that evidence may be made of.
const MAX_CASES: usize = 4096;

/// An event: what is known of the columns of one row, as values, sets and intervals, joined by *and*, *or* and *not*.
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
    /// Queries of which one holds, no two of them at once. None at all: impossible.
    cases: Vec<Query>,
    /// For every case, by column, what is meant by the place for what has none of its own. A column that is not there means
    /// all of it.
    others: Vec<Others>,
    /// ln F′ of the columns with a value that have one.
    slopes: BTreeMap<usize, f64>,
    /// What it says that its columns have no place for.
    no_place: NoPlace,
}

/// Labels or numbers without a place of their own, by column.
type Others = BTreeMap<usize, OutsideSet>;

/// One case of an event.
type Case = (Query, Others);

impl Event {
    /// Nothing with this many variables.
    pub(super) fn nothing(num_variables: usize) -> Self {
        Self::of_cases(vec![(Query::unknown(num_variables), Others::new())])
    }

    fn of_cases(cases: Vec<Case>) -> Self {
        let (cases, others) = cases.into_iter().unzip();
        Self { cases, others, slopes: BTreeMap::new(), no_place: NoPlace::new() }
    }

    fn pairs(&self) -> impl Iterator<Item = (&Query, &Others)> + Clone {
        self.cases.iter().zip(&self.others)
    }

    /// Whether a row of values is in one of the cases.
    #[cfg(test)]
    pub(crate) fn holds(&self, variables: &[Variable], row: &Query) -> bool {
        self.cases.iter().any(|b| intersect(variables, b, row).is_some())
    }

    /// Whether it holds in a row of values; not where that depends on a value that is missing.
    pub(super) fn holds_in(&self, variables: &[Variable], row: &[f64]) -> bool {
        let holds = |query: &Query| {
            let known = query.evidence().iter().zip(row).zip(variables);
            known.clone().all(|((evidence, x), variable)| {
                let value = || Evidence::Value(*x);
                *evidence == Evidence::Unknown
                    || !x.is_nan() && both(&variable.domain, evidence, &value()).is_some()
            })
        };
        self.cases.iter().any(holds)
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

    /// What it says that its columns have no place for.
    pub(super) fn no_place(&self) -> &NoPlace {
        &self.no_place
    }

    /// The same event, and all that both say that columns have no place for.
    fn with_no_place_of(mut self, first: &Self, second: &Self) -> Self {
        self.no_place = first.no_place.union(&second.no_place).cloned().collect();
        self
    }

    /// For every case, ln of the share that its numbers have of all without a place of their own.
    pub(super) fn log_shares(&self, schema: &Schema) -> impl Iterator<Item = f64> {
        let log = |(column, set): (&usize, &OutsideSet)| {
            let c = &schema.columns()[*column];
            c.kind.coding().spread(c.storage).map_or(0.0, |spread| spread.log_share(set))
        };
        self.others.iter().map(move |others| others.iter().map(log).sum())
    }

    /// Whether a continuous column has a value, so the event has a density and not a probability.
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

    /// That the cell of a column is missing.
    ///
    /// # Errors
    /// There is no such column, or that a cell is missing is not a value there.
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

    /// That the cell of a column is not missing.
    ///
    /// # Errors
    /// There is no such column, or that a cell is missing is not a value there.
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

    /// That a column has one of these values, of which `parts` are those with a place.
    fn set_of(
        schema: &Schema,
        column: usize,
        cells: &[Cell<'_>],
        parts: impl FnOnce(&[Vec<f64>]) -> Result<Vec<Parts>, &'static str>,
    ) -> Result<Self, ModelError> {
        let c = &schema.columns()[column];
        let coding = c.kind.coding();
        let (mut seen, mut labels, mut numbers) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut no_place = NoPlace::new();
        for &cell in cells {
            match schema.encode_value(column, cell) {
                Ok((values, _)) if coding.other().is_some_and(|n| values[0] == n as f64) => {
                    match coding.spread(c.storage).and_then(|spread| spread.cell(cell)) {
                        Some(set @ OutsideSet::Numbers { .. }) => numbers.push(set),
                        Some(OutsideSet::Labels(_)) | None => drop(labels.insert(cell.text())),
                    }
                }
                Ok((values, _)) => seen.push(values),
                // A number beyond or between all that were seen.
                Err(_) if c.is_outside(cell) => drop(no_place.insert((column, Some(cell.text())))),
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
        event.push_others(schema, column, sets)?;
        event.no_place = no_place;
        Ok(event)
    }

    /// Adds cases of a column's place for what has none of its own.
    fn push_others(
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
            self.others.push(Others::from([(column, set)]));
        }
        Ok(())
    }

    /// The event that a column lies between two numbers.
    ///
    /// # Errors
    /// There is no such column, its values are not numbers, or the ends are not in order.
    pub fn interval(
        schema: &Schema,
        column: &str,
        low: Bound<f64>,
        high: Bound<f64>,
    ) -> Result<Self, ModelError> {
        let index = schema.find(column)?;
        Self::between(schema, index, Ends::new(low, high))
    }

    /// That a column lies between two numbers, which are given if they are not in order.
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
        let others = spread.and_then(|spread| spread.between(&ends));
        event.push_others(schema, column, others.into_iter().collect())?;
        if event.cases.is_empty() && c.kind.coding().outside(c.storage).is_some() {
            event.no_place.insert((column, None));
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
            cases.push((query, Others::new()));
        }
        Ok(Self::of_cases(cases))
    }

    /// Both this and the other.
    ///
    /// # Errors
    /// The evidence falls apart into too many cases.
    pub fn and(&self, schema: &Schema, other: &Self) -> Result<Self, ModelError> {
        check_cases(self.cases.len() * other.cases.len())?;
        let variables = schema.variables();
        let mut cases = Vec::new();
        for a in self.pairs() {
            cases.extend(other.pairs().filter_map(|b| intersect_cases(&variables, a, b)));
        }
        let mut event = Self::of_cases(cases);
        event.slopes = self.slopes.clone();
        event.slopes.extend(&other.slopes);
        Ok(event.with_no_place_of(self, other))
    }

    /// This or the other, or both.
    ///
    /// # Errors
    /// The evidence falls apart into too many cases, or a continuous column has a single value, which has probability 0.
    pub fn or(&self, schema: &Schema, other: &Self) -> Result<Self, ModelError> {
        self.check_mass(schema)?;
        other.check_mass(schema)?;
        let mut cases: Vec<Case> = self.pairs().map(|(q, o)| (q.clone(), o.clone())).collect();
        cases.extend(other.without(schema, self)?);
        check_cases(cases.len())?;
        Ok(Self::of_cases(cases).with_no_place_of(self, other))
    }

    /// That this does not hold.
    ///
    /// # Errors
    /// The evidence falls apart into too many cases, or a continuous column has a single value, which has probability 0.
    pub fn not(&self, schema: &Schema) -> Result<Self, ModelError> {
        self.check_mass(schema)?;
        let all = Self::nothing(schema.num_variables());
        Ok(Self::of_cases(all.without(schema, self)?).with_no_place_of(self, &all))
    }

    /// Rejects values of probability 0.
    fn check_mass(&self, schema: &Schema) -> Result<(), ModelError> {
        let Some((&column, _)) = self.slopes.first_key_value() else { return Ok(()) };
        let problem = "a single value has probability 0, so it cannot be combined with 'or' and 'not'; ask for an interval [a, b)";
        let column = schema.columns()[column].name.clone();
        Err(DataError::Evidence { column, problem }.into())
    }

    /// The cases of what is in this and not in the other.
    fn without(&self, schema: &Schema, other: &Self) -> Result<Vec<Case>, ModelError> {
        let variables = schema.variables();
        let mut rest: Vec<Case> = self.pairs().map(|(q, o)| (q.clone(), o.clone())).collect();
        for taken in other.pairs() {
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

/// What both cases say; `None` if that is impossible.
fn intersect_cases(
    variables: &[Variable],
    a: (&Query, &Others),
    b: (&Query, &Others),
) -> Option<Case> {
    let query = intersect(variables, a.0, b.0)?;
    let mut others = a.1.clone();
    for (column, set) in b.1 {
        let both = match others.get(column) {
            Some(own) => own.and(set)?,
            None => set.clone(),
        };
        others.insert(*column, both);
    }
    Some((query, others))
}

/// Adds the cases of what is in one case and not in the other, no two of which hold at once.
fn subtract(
    schema: &Schema,
    variables: &[Variable],
    case: Case,
    taken: (&Query, &Others),
    left: &mut Vec<Case>,
) {
    if intersect_cases(variables, (&case.0, &case.1), taken).is_none() {
        left.push(case);
        return;
    }
    // Variable by variable: what differs there, and is within what was taken before it.
    let (mut query, mut others) = case;
    let mut push = |query: &Query, variable: usize, evidence: Evidence, others: &Others| {
        let mut query = query.clone();
        if query.set(variables, variable, evidence).is_ok() {
            left.push((query, others.clone()));
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
                if let Some(both) = both(domain, &own, &piece) {
                    push(&query, variable, both, &others);
                }
            }
            if let Some(set) = taken.1.get(&column) {
                let before = others.get(&column).cloned();
                for rest in set.complement() {
                    let rest = match &before {
                        Some(before) => before.and(&rest),
                        None => Some(rest),
                    };
                    if let Some(rest) = rest {
                        let mut others = others.clone();
                        others.insert(column, rest);
                        push(&query, variable, evidence.clone(), &others);
                    }
                }
                let both = before.map_or_else(|| Some(set.clone()), |before| before.and(set));
                others.extend(both.map(|both| (column, both)));
            }
            if let Some(both) = both(domain, &own, evidence) {
                // It was so in both.
                let _ = query.set(variables, variable, both);
            }
        }
    }
}

/// The evidence about a variable of which this does not hold; the parts exclude each other.
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

/// What both queries say; `None` if that is impossible.
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
    /// log p of the event, given the model's evidence: a probability, or a density in the units of the data if a
    /// continuous column has a value. −∞ if it is impossible.
    ///
    /// Cost: one batched query for every box that the evidence is made of; one case if there are neither digits nor
    /// intervals around a circle.
    ///
    /// # Errors
    /// The evidence was created for another schema.
    pub fn log_probability(&self, known: &Event) -> Result<f64, ModelError> {
        if self.given.is_nothing() {
            return Ok(self.log_unconditional(known)?.min_if_mass(known));
        }
        let joint = known.and(&self.schema, &self.given)?;
        Ok((self.log_unconditional(&joint)? - self.log_given).min_if_mass(known))
    }

    /// log p of each of these, given the model's evidence, in one batch; of sets and intervals alone.
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

    /// log p of what is known, in the units of the data, whatever the model is conditioned on.
    pub(super) fn log_unconditional(&self, known: &Event) -> Result<f64, ModelError> {
        let logs = self.log_cases(known.cases())?;
        let shares = known.log_shares(&self.schema);
        let logs: Vec<f64> = logs.iter().zip(shares).map(|(log, share)| log + share).collect();
        Ok(log_sum(&logs) + known.log_slope())
    }

    /// log p of every box.
    pub(super) fn log_cases(&self, cases: &[Query]) -> Result<Vec<f64>, ModelError> {
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        let rows = Batch::from_queries(self.mixture.variables(), cases)?;
        Ok(self.mixture.log_marginals(&rows)?)
    }
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

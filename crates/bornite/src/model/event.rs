//! What is known of the columns of one row.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::case::{Case, both};
use super::{Model, ModelError};
use crate::data::{
    Block, Cell, DataError, Encoded, Ends, Outside, OutsideCell, OutsideSet, Parts, Schema,
};
use crate::domain::Variable;
use crate::engine::Batch;
use crate::mixture::log_sum;
use crate::query::{Evidence, Query};

/// The most cases that evidence may be made of.
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
/// assert_eq!(known, Event::parse(&schema, "30 <= age < 40 and city in {Bonn}")?);
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Cases of which one holds, no two of them at once. None at all: impossible.
    cases: Vec<Case>,
    /// ln F′ of the columns with a value that have one.
    slopes: BTreeMap<usize, f64>,
}

impl Event {
    /// Nothing of so many variables.
    pub(super) fn nothing(num_variables: usize) -> Self {
        Self::of_cases(vec![Case::nothing(num_variables)])
    }

    fn of_cases(cases: Vec<Case>) -> Self {
        Self { cases, slopes: BTreeMap::new() }
    }

    /// Whether a row of values is in one of the cases.
    #[cfg(test)]
    pub(crate) fn holds(&self, schema: &Schema, row: &Query) -> bool {
        let (variables, row) = (schema.variables(), Case::of_row(schema, row.clone()));
        self.cases.iter().any(|case| case.and(&variables, &row).is_some())
    }

    /// Whether it holds in a row of a table; not where that depends on a value that is missing.
    pub(super) fn holds_in(
        &self,
        schema: &Schema,
        variables: &[Variable],
        (rows, row): (&Encoded, usize),
    ) -> bool {
        let mut values = rows.row(row);
        for column in 0..schema.columns().len() {
            if let Some(OutsideCell::Between) = rows.outside_cell(row, column) {
                values[schema.variables_of(column)].fill(f64::NAN);
            }
        }
        let has_outside = |case: &Case, column: usize| match rows.outside_cell(row, column) {
            Some(OutsideCell::Beyond(cell)) => case.has_outside(column, cell),
            Some(OutsideCell::Between) | None => false,
        };
        let holds = |case: &Case| {
            let known = case.query.evidence().iter().zip(&values).zip(variables);
            let are_values = known.clone().all(|((evidence, x), variable)| {
                let value = || Evidence::Value(*x);
                *evidence == Evidence::Unknown
                    || !x.is_nan() && both(&variable.domain, evidence, &value()).is_some()
            });
            let has_cell = |column: usize| !values[schema.variables_of(column).start].is_nan();
            are_values
                && case.placed().all(has_cell)
                && case.outside(schema).all(|column| has_outside(case, column))
        };
        self.cases.iter().any(holds)
    }

    pub(super) fn is_nothing(&self) -> bool {
        matches!(&self.cases[..], [only] if only.is_nothing())
    }

    /// Whether something is known of a column.
    pub(super) fn is_about(&self, schema: &Schema, column: usize) -> bool {
        self.cases.iter().any(|case| case.is_about(schema, column))
    }

    /// Cases of which one holds.
    pub(super) fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// The event in which these columns have values with a place: those that have a distribution.
    pub(super) fn inside(&self, schema: &Schema, columns: &[usize]) -> Self {
        let cases = self.cases.iter().filter_map(|case| case.inside(schema, columns)).collect();
        Self { cases, slopes: self.slopes.clone() }
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
    /// Numbers beyond those that a column has a place for share what [`ColumnSchema::outside`](crate::data::ColumnSchema::outside)
    /// leaves them, and [`OTHER`](crate::data::OTHER) stands for all labels that were never seen. Numbers between those of a grid have probability 0.
    ///
    /// # Errors
    /// There is no such column, or the value does not fit it.
    pub fn value(schema: &Schema, column: &str, cell: Cell<'_>) -> Result<Self, ModelError> {
        let index = schema.find(column)?;
        let coding = schema.columns()[index].kind.coding();
        let mut known =
            Self::set_of(schema, index, &[cell], |values| Ok(vec![coding.exactly(&values[0])]))?;
        match schema.encode_value(index, cell) {
            Ok((values, slope)) if coding.has_density(&values) => {
                known.slopes.insert(index, slope);
            }
            Ok(_) => {}
            Err(_) => {
                let outside = coding.outside(schema.columns()[index].storage);
                let log_per = outside.map_or(0.0, |outside| outside.log_per());
                if log_per != 0.0 {
                    known.slopes.insert(index, -log_per);
                }
            }
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
                Self::from_blocks(schema, index, vec![vec![(first, Evidence::Value(x))]])
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
        let mut event = Self::from_blocks(schema, index, vec![vec![(first, present)]])?;
        event.push_others(schema, index, [OutsideSet::All]);
        Ok(event)
    }

    /// That a column has one of these values.
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
        let (mut seen, mut labels, mut sets) = (Vec::new(), BTreeSet::new(), Vec::new());
        for &cell in cells {
            match schema.encode_value(column, cell) {
                Ok((values, _)) if coding.other().is_some_and(|n| values[0] == n as f64) => {
                    match coding.spread(c.storage) {
                        Some(spread @ Outside::Numbers(_)) => sets.extend(spread.exactly(cell)),
                        Some(Outside::Labels) | None => drop(labels.insert(cell.text())),
                    }
                }
                Ok((values, _)) => seen.push(values),
                // A number beyond all that were seen, or between them.
                Err(_) if c.is_outside(cell) => {
                    let outside = coding.outside(c.storage);
                    let is_own = coding.is_time()
                        || outside.is_some_and(|outside| outside.exactly(cell).is_some());
                    sets.extend(coding.outside_cell(c.storage, cell).filter(|_| is_own));
                }
                Err(_) if c.is_other(cell) => sets.push(OutsideSet::All),
                Err(problem) => return Err(problem.into()),
            }
        }
        let mut event = Self::of_cases(Vec::new());
        if !seen.is_empty() {
            let name = || c.name.clone();
            let parts =
                parts(&seen).map_err(|problem| DataError::Evidence { column: name(), problem })?;
            event = Self::from_blocks(schema, column, schema.placed_parts(column, parts))?;
        }
        let mut distinct: Vec<OutsideSet> = Vec::new();
        for set in sets {
            if !distinct.contains(&set) {
                distinct.push(set);
            }
        }
        distinct.extend((!labels.is_empty()).then_some(OutsideSet::Labels(labels)));
        event.push_others(schema, column, distinct);
        Ok(event)
    }

    /// Adds cases of what has no place of its own in a column, where it has any.
    fn push_others(
        &mut self,
        schema: &Schema,
        column: usize,
        sets: impl IntoIterator<Item = OutsideSet>,
    ) {
        let other = schema.columns()[column].kind.coding().other();
        if other.is_some() || schema.unplaced(column) > 0.0 {
            let variables = schema.variables();
            let cases = sets.into_iter();
            let cases = cases.filter_map(|set| Case::others(schema, &variables, column, set));
            self.cases.extend(cases);
        }
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
        let index = schema.find(column)?;
        Self::between(schema, index, Ends::new(low, high))
    }

    /// That a column lies between two numbers, which are given where they are not in order.
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
        let mut event = Self::from_blocks(schema, column, schema.placed_parts(column, parts))?;
        let spread = c.kind.coding().spread(c.storage);
        event.push_others(schema, column, spread.and_then(|spread| spread.between(&ends)));
        Ok(event)
    }

    /// That one of these blocks holds, of a column's variables.
    pub(crate) fn from_blocks(
        schema: &Schema,
        column: usize,
        blocks: Vec<Block>,
    ) -> Result<Self, ModelError> {
        let variables = schema.variables();
        let mut cases = Vec::with_capacity(blocks.len());
        for block in blocks {
            let mut query = Query::unknown(variables.len());
            for (variable, evidence) in block {
                query.set(&variables, variable, evidence)?;
            }
            // Also a block of all values says that the column has one.
            cases.push(Case::of(schema, query, [column]));
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
        for a in &self.cases {
            cases.extend(other.cases.iter().filter_map(|b| a.and(&variables, b)));
        }
        // Two sets of numbers outside may have only numbers inside in common.
        cases.retain(|case| case.log_weight(schema) > f64::NEG_INFINITY);
        let mut event = Self::of_cases(cases);
        event.slopes = self.slopes.clone();
        event.slopes.extend(&other.slopes);
        Ok(event)
    }

    /// This or the other, or both.
    ///
    /// # Errors
    /// The evidence falls apart into too many cases, or a continuous column has a single value, which has probability 0.
    pub fn or(&self, schema: &Schema, other: &Self) -> Result<Self, ModelError> {
        self.check_mass(schema)?;
        other.check_mass(schema)?;
        let mut cases = self.cases.clone();
        cases.extend(other.without(schema, self)?);
        check_cases(cases.len())?;
        Ok(Self::of_cases(cases))
    }

    /// That this does not hold.
    ///
    /// # Errors
    /// The evidence falls apart into too many cases, or a continuous column has a single value, which has probability 0.
    pub fn not(&self, schema: &Schema) -> Result<Self, ModelError> {
        self.check_mass(schema)?;
        let all = Self::nothing(schema.num_variables());
        Ok(Self::of_cases(all.without(schema, self)?))
    }

    /// Refuses values of probability 0.
    fn check_mass(&self, schema: &Schema) -> Result<(), ModelError> {
        let Some((&column, _)) = self.slopes.first_key_value() else { return Ok(()) };
        let problem = "a single value has probability 0 there, so that it has no place with 'or' \
                       and 'not'; ask for an interval [a, b)";
        let column = schema.columns()[column].name.clone();
        Err(DataError::Evidence { column, problem }.into())
    }

    /// The cases of what is in this and not in the other.
    fn without(&self, schema: &Schema, other: &Self) -> Result<Vec<Case>, ModelError> {
        let variables = schema.variables();
        let mut rest = self.cases.clone();
        for taken in &other.cases {
            let mut left = Vec::new();
            for case in rest {
                case.subtract(schema, &variables, taken, &mut left);
                check_cases(left.len())?;
            }
            left.retain(|case| case.log_weight(schema) > f64::NEG_INFINITY);
            rest = left;
        }
        Ok(rest)
    }
}

fn no_missing(column: &str) -> ModelError {
    let problem = "the model takes its missing cells for unknown: whether one is missing can be asked \
                   where the column was fitted with missing as a value";
    DataError::Evidence { column: column.to_owned(), problem }.into()
}

fn check_cases(count: usize) -> Result<(), ModelError> {
    if count > MAX_CASES {
        return Err(ModelError::TooManyParts { limit: MAX_CASES });
    }
    Ok(())
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

    /// log p of every case.
    pub(super) fn log_cases(&self, cases: &[Case]) -> Result<Vec<f64>, ModelError> {
        let logs = self.log_queries(cases)?.into_iter().zip(cases);
        Ok(logs.map(|(log, case)| log + case.log_weight(&self.schema)).collect())
    }

    /// log p of what every case says of the variables.
    pub(super) fn log_queries(&self, cases: &[Case]) -> Result<Vec<f64>, ModelError> {
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        let queries: Vec<Query> = cases.iter().map(|case| case.query.clone()).collect();
        let rows = Batch::from_queries(self.mixture.variables(), &queries)?;
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

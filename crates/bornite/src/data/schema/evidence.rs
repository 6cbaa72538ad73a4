//! Translation of evidence about columns to evidence about variables.

use std::borrow::Cow;
use std::ops::Bound;

use super::{Cell, Schema};
use crate::basis::Part;
use crate::data::DataError;
use crate::data::column::{Ends, Parts};
use crate::domain::Variable;
use crate::engine::Batch;
use crate::query::{Evidence, Query, QueryError};

/// Evidence about a column's variables, by their positions. Variables that are not listed are unobserved.
///
/// Evidence about a column may consist of several mutually exclusive blocks, whose probabilities add up. That happens
/// only for digits and for intervals around a circle.
pub type Block = Vec<(usize, Evidence)>;

impl Schema {
    /// The evidence that a column has this value.
    ///
    /// # Errors
    /// There is no such column, or the value does not match it.
    pub fn evidence_value(&self, column: &str, cell: Cell<'_>) -> Result<Block, DataError> {
        let index = self.find(column)?;
        let (values, _) = self.encode_value(index, cell)?;
        let parts = self.columns[index].kind.coding().exactly(&values);
        Ok(self.placed(index, parts))
    }

    /// The evidence that a column has one of these values.
    ///
    /// # Errors
    /// There is no such column, a value does not match it, or the column is continuous.
    pub fn evidence_set(&self, column: &str, cells: &[Cell<'_>]) -> Result<Vec<Block>, DataError> {
        let index = self.find(column)?;
        let mut values = Vec::with_capacity(cells.len());
        for &cell in cells {
            values.push(self.encode_value(index, cell)?.0);
        }
        self.blocks(index, self.columns[index].kind.coding().set(&values))
    }

    /// The evidence that a column lies between two numbers.
    ///
    /// For a continuous column, the interval of x becomes an interval of u = F(x). For numeric labels, it becomes the
    /// set of labels inside, without the catch-all value. If the probability is 0, there are no blocks.
    ///
    /// # Errors
    /// There is no such column, it does not contain numbers, or the ends are not in order.
    pub fn evidence_interval(
        &self,
        column: &str,
        low: Bound<f64>,
        high: Bound<f64>,
    ) -> Result<Vec<Block>, DataError> {
        let index = self.find(column)?;
        let ends = Ends::new(low, high).map_err(|(low, high)| DataError::Interval {
            column: column.to_owned(),
            low,
            high,
        })?;
        self.blocks(index, self.columns[index].kind.coding().interval(&ends))
    }

    /// The evidence that a part of a column, such as the hour of a time, has one of these values; `None` if there is no
    /// such part or value.
    pub(crate) fn evidence_part(
        &self,
        column: usize,
        part: &str,
        values: &[String],
    ) -> Option<Vec<Block>> {
        let parts = self.columns[column].kind.coding().part(part, values)?;
        self.blocks(column, Ok(parts)).ok()
    }

    /// The evidence that rows of encoded cells give. If several values mean the same cell, it is that any of them occurs.
    pub(crate) fn evidence_rows<'b>(&self, rows: &'b Batch) -> Cow<'b, Batch> {
        let mut found = Cow::Borrowed(rows);
        for (column, c) in self.columns.iter().enumerate() {
            let (coding, variables) = (c.kind.coding(), self.variables_of(column));
            let Some(place) = coding.ambiguous() else { continue };
            let variable = variables.start + place;
            let domain = coding.domains().swap_remove(place);
            let mut values = vec![f64::NAN; variables.len()];
            let mut same: Vec<(usize, Vec<usize>)> = Vec::new();
            for row in 0..rows.len() {
                values.iter_mut().zip(variables.clone()).for_each(|(x, v)| *x = rows.value(row, v));
                same.extend(coding.same_cell(&values).map(|set| (row, set)));
            }
            if same.is_empty() {
                continue;
            }
            found.to_mut().set_column(variable, &domain, |row| {
                let at = same.binary_search_by_key(&row, |(row, _)| *row).ok()?;
                Some(Evidence::In(Part::Values(same[at].1.clone())))
            });
        }
        found
    }

    /// The evidence that one row of encoded cells gives, as in [`evidence_rows`](Self::evidence_rows).
    pub(crate) fn evidence_row(
        &self,
        variables: &[Variable],
        row: &[f64],
    ) -> Result<Query, QueryError> {
        let mut query = Query::row(variables, row)?;
        for (column, c) in self.columns.iter().enumerate() {
            let (coding, range) = (c.kind.coding(), self.variables_of(column));
            let Some(place) = coding.ambiguous() else { continue };
            let variable = range.start + place;
            if let Some(set) = coding.same_cell(&row[range]) {
                query.set(variables, variable, Evidence::In(Part::Values(set)))?;
            }
        }
        Ok(query)
    }

    /// Converts positions within a column to positions among all variables.
    pub(crate) fn placed_parts(&self, column: usize, parts: Vec<Parts>) -> Vec<Block> {
        parts.into_iter().map(|parts| self.placed(column, parts)).collect()
    }

    /// Converts positions within a column, or reports why there is no such evidence.
    fn blocks(
        &self,
        column: usize,
        parts: Result<Vec<Parts>, &'static str>,
    ) -> Result<Vec<Block>, DataError> {
        let parts = parts.map_err(|problem| DataError::Evidence {
            column: self.columns[column].name.clone(),
            problem,
        })?;
        Ok(self.placed_parts(column, parts))
    }

    /// Converts one case to positions among all variables.
    fn placed(&self, column: usize, parts: Parts) -> Block {
        let first = self.variables_of(column).start;
        parts.into_iter().map(|(place, evidence)| (first + place, evidence)).collect()
    }
}

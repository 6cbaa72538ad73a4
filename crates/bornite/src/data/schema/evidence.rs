//! Converts evidence about a column to evidence about its variables.

use std::ops::Bound;

use super::{Cell, Schema};
use crate::data::DataError;
use crate::data::column::{Ends, Parts};
use crate::query::Evidence;

/// The evidence about a column's variables, by their positions. Variables that are not named are unknown.
///
/// The evidence about a column may be several blocks, of which one holds: their probabilities add up. It is more than one only
/// for digits and for intervals around the circle.
pub type Block = Vec<(usize, Evidence)>;

impl Schema {
    /// What it means for the variables that a column has this value.
    ///
    /// # Errors
    /// There is no such column, or the value does not fit it.
    pub fn evidence_value(&self, column: &str, cell: Cell<'_>) -> Result<Block, DataError> {
        let index = self.find(column)?;
        let (values, _) = self.encode_value(index, cell)?;
        let parts = self.columns[index].kind.coding().exactly(&values);
        Ok(self.placed(index, parts))
    }

    /// What it means for the variables that a column has one of these values.
    ///
    /// # Errors
    /// There is no such column, a value does not fit it, or it is continuous.
    pub fn evidence_set(&self, column: &str, cells: &[Cell<'_>]) -> Result<Vec<Block>, DataError> {
        let index = self.find(column)?;
        let mut values = Vec::with_capacity(cells.len());
        for &cell in cells {
            values.push(self.encode_value(index, cell)?.0);
        }
        self.blocks(index, self.columns[index].kind.coding().set(&values))
    }

    /// What it means for the variables that a column lies between two numbers.
    ///
    /// An interval of a continuous column becomes that of u = F(x). Of labels that are numbers those within the interval are
    /// meant, and never the place for others. No block at all means that the probability is 0.
    ///
    /// # Errors
    /// There is no such column, its values are not numbers, or the ends are not in order.
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

    /// What it means for the variables that a part of a column, such as the hour of a time, has one of these values; `None`
    /// if there is no such part or value.
    pub(crate) fn evidence_part(
        &self,
        column: usize,
        part: &str,
        values: &[String],
    ) -> Option<Vec<Block>> {
        let parts = self.columns[column].kind.coding().part(part, values)?;
        self.blocks(column, Ok(parts)).ok()
    }

    /// The parts of a column's variables, by the positions of all.
    pub(crate) fn placed_parts(&self, column: usize, parts: Vec<Parts>) -> Vec<Block> {
        parts.into_iter().map(|parts| self.placed(column, parts)).collect()
    }

    /// The parts of a column's variables, by the positions of all.
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

    /// One part of a column's variables, by the positions of all.
    fn placed(&self, column: usize, parts: Parts) -> Block {
        let first = self.variables_of(column).start;
        parts.into_iter().map(|(place, evidence)| (first + place, evidence)).collect()
    }
}

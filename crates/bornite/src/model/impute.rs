//! Imputation of missing cells.

use super::cells::{Statistic, own_values};
use super::event::intersect;
use super::{Model, ModelError};
use crate::data::{Encoded, Table};
use crate::mixture::log_sum;
use crate::query::Query;

/// How to impute a missing cell, given the observed cells of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Imputation {
    /// The mean, rounded to a value that the column can take; the most likely value for text.
    Mean,
    /// The most likely value of the column by itself.
    Mode,
    /// The median; the most likely value for text.
    #[default]
    Median,
    /// A joint sample of all missing cells of a row, which preserves their dependence.
    Sample,
}

impl Model {
    /// Imputes the missing cells of a table. Observed cells keep their text, and columns that the model does not have
    /// are unchanged.
    ///
    /// Cells are not imputed with the catch-all value for other labels, unless the column has no labels. In columns
    /// where missing is a value, cells are imputed as if they were not missing.
    ///
    /// Cost: one pass up and one pass down the circuit for all rows with missing cells; one more for each digit of a column of
    /// digits.
    ///
    /// # Errors
    /// The table lacks a column of the model, a cell does not fit its column, or a row is
    /// impossible under the model.
    pub fn impute(&self, table: &Table, how: Imputation, seed: u64) -> Result<Table, ModelError> {
        self.impute_from(0, table, how, seed)
    }

    /// [`impute`](Self::impute) for a piece of a table that is preceded by `start` rows. Samples depend on the position
    /// of a row, and are the same for pieces of any length.
    ///
    /// # Errors
    /// As for [`impute`](Self::impute); rows are counted from the beginning of the piece.
    pub fn impute_from(
        &self,
        start: u64,
        table: &Table,
        how: Imputation,
        seed: u64,
    ) -> Result<Table, ModelError> {
        let encoded = self.schema.encode_open(table)?;
        if encoded.num_rows() == 0 {
            return Ok(table.clone());
        }
        let values = match how {
            Imputation::Sample => self.complete(start, encoded.batch(), seed, &|_, _| true)?,
            Imputation::Mean | Imputation::Mode | Imputation::Median => self.fill(&encoded, how)?,
        };
        let filled = self.schema.decode(&values)?;
        let columns = table.columns().iter().map(|column| match self.schema.find(column.name()) {
            Ok(index) if column.num_missing() > 0 => {
                column.filled(&self.schema.in_type_of(column, index, &filled.columns()[index]))
            }
            _ => column.clone(),
        });
        Ok(table.with_columns(columns.collect())?)
    }

    fn fill(&self, encoded: &Encoded, how: Imputation) -> Result<Vec<f64>, ModelError> {
        let (batch, width) = (encoded.batch(), encoded.num_variables());
        let missing_codes: Vec<usize> =
            (0..batch.len()).filter(|&row| batch.first_missing(row).is_some()).collect();
        let rows = batch.select(&missing_codes);
        let first = |column: usize| self.schema.variables_of(column).start;
        let wanted = |row: usize, column: usize| rows.is_missing(row, first(column));
        let found = self
            .cell_statistics(&rows, &wanted, |column| self.filling(column, how))
            .map_err(|error| match error {
                ModelError::ImpossibleRow { row } => {
                    ModelError::ImpossibleRow { row: missing_codes[row] }
                }
                other => other,
            })?;
        let mut values = encoded.to_rows();
        for cell in found {
            let from = missing_codes[cell.row] * width;
            let range = self.schema.variables_of(cell.column);
            let out = &mut values[from + range.start..from + range.end];
            match self.filling(cell.column, how) {
                Statistic::Mean => {
                    let coding = self.schema.columns()[cell.column].kind.coding();
                    out.copy_from_slice(&coding.nearest(cell.values[0]));
                }
                Statistic::Mode | Statistic::Quantiles(_) | Statistic::Probabilities => {
                    out.copy_from_slice(&cell.values);
                }
            }
        }
        Ok(values)
    }

    /// The statistic that fills the cells of a column.
    pub(super) fn filling(&self, column: usize, how: Imputation) -> Statistic<'static> {
        const MEDIAN: Statistic<'static> = Statistic::Quantiles(&[0.5]);
        let c = &self.schema.columns()[column];
        let coding = c.kind.coding();
        match how {
            _ if coding.is_words(c.storage) => Statistic::Mode,
            Imputation::Median => MEDIAN,
            // The mean of the parts of a date is not a date.
            Imputation::Mean if coding.is_time() => MEDIAN,
            Imputation::Mean => Statistic::Mean,
            Imputation::Mode | Imputation::Sample => Statistic::Mode,
        }
    }
}

impl Model {
    /// Whether a column has a catch-all value for other labels, or a value for missing cells.
    pub(super) fn has_other(&self) -> bool {
        self.schema.columns().iter().any(|c| own_values(c.kind.coding()).is_some())
    }

    /// The cases of a row combined with the model's evidence. Missing cells are restricted to their column's own
    /// values; cells to be filled are not missing.
    pub(super) fn labelled_cases_of_row(
        &self,
        row: &[f64],
        is_filled: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<Query>, ModelError> {
        let cases = self.cases_of_row(row)?;
        if !self.has_other() {
            return Ok(cases);
        }
        let variables = self.mixture.variables();
        let mut labelled = Query::unknown(variables.len());
        for (column, c) in self.schema.columns().iter().enumerate() {
            let variable = self.schema.variables_of(column).start;
            let is_open = row[variable].is_nan()
                && (c.kind.coding().missing().is_none() || is_filled(column));
            if let Some(own) = own_values(c.kind.coding()).filter(|_| is_open) {
                labelled.set(variables, variable, own)?;
            }
        }
        let found: Vec<Query> =
            cases.iter().filter_map(|b| intersect(variables, b, &labelled)).collect();
        // The evidence may allow only the catch-all value.
        let possible = log_sum(&self.log_cases(&found)?) > f64::NEG_INFINITY;
        Ok(if possible { found } else { cases })
    }
}

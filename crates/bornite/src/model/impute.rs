//! Missing cells filled.

use rayon::prelude::*;

use super::event::{intersect, log_sum};
use super::{Model, ModelError};
use crate::basis::Part;
use crate::data::{Coding, Encoded, Table};
use crate::query::{Evidence, Query};

/// What a missing cell is filled with, given the row's known cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Imputation {
    /// The mean, rounded to a value that the column can take; the most likely value of words.
    Mean,
    /// The most likely value of the column by itself.
    #[default]
    Mode,
    /// The median; the most likely value of words.
    Median,
    /// A sample of all missing cells together, which keeps how they depend on each other.
    Sample,
}

impl Model {
    /// Fills the missing cells of a table. Known cells keep their text, and columns that the model does not have stay as they are.
    ///
    /// The place for other labels is no value to fill a cell with: it is left out, where there is a label at all.
    ///
    /// # Errors
    /// A column of the model is not there, a cell does not fit it, or what is known in a row has probability 0.
    pub fn impute(&self, table: &Table, how: Imputation, seed: u64) -> Result<Table, ModelError> {
        let encoded = self.schema.encode(table)?;
        if encoded.num_rows() == 0 {
            return Ok(table.clone());
        }
        let values = match how {
            Imputation::Sample => self.complete(encoded.batch(), seed)?,
            _ => self.fill(&encoded, how)?,
        };
        let filled = self.schema.decode(&values)?;
        let columns = table.columns().iter().map(|column| match self.schema.find(column.name()) {
            Ok(index) if column.num_missing() > 0 => column.filled(&filled.columns()[index]),
            _ => column.clone(),
        });
        Ok(table.with_columns(columns.collect())?)
    }

    fn fill(&self, encoded: &Encoded, how: Imputation) -> Result<Vec<f64>, ModelError> {
        let mut values = encoded.to_rows();
        let width = encoded.num_variables();
        values.par_chunks_mut(width).enumerate().try_for_each(|(row, cells)| {
            if cells.iter().all(|x| !x.is_nan()) {
                return Ok(());
            }
            let filled = self.fill_row(&encoded.row(row), how).map_err(|e| match e {
                ModelError::Impossible { .. } => {
                    let what = format!("what is known in row {}", row + 1);
                    ModelError::Impossible { what }
                }
                other => other,
            })?;
            cells.copy_from_slice(&filled);
            Ok::<(), ModelError>(())
        })?;
        Ok(values)
    }

    fn fill_row(&self, row: &[f64], how: Imputation) -> Result<Vec<f64>, ModelError> {
        let is_missing = |&column: &usize| row[self.schema.variables_of(column).start].is_nan();
        let missing: Vec<usize> = (0..self.schema.columns().len()).filter(is_missing).collect();
        let mut filled = row.to_vec();
        for distribution in self.distributions_of(&missing, self.labelled_cases_of_row(row)?)? {
            let column = distribution.column();
            let (c, range) = (&self.schema.columns()[column], self.schema.variables_of(column));
            let coding = c.kind.coding();
            let words = coding.is_words(c.storage);
            let values = match how {
                Imputation::Median if !words => distribution.quantile_values(0.5)?,
                // A mean of parts is no date.
                Imputation::Mean if coding.is_time() => distribution.quantile_values(0.5)?,
                Imputation::Mean if !words => coding.nearest(distribution.mean()?),
                _ => distribution.mode_values()?.0,
            };
            filled[range].copy_from_slice(&values);
        }
        Ok(filled)
    }
}

impl Model {
    /// Whether a column has labels and a place for others.
    pub(super) fn has_other(&self) -> bool {
        self.schema.columns().iter().any(|c| labels_beside_other(c.kind.coding()).is_some())
    }

    /// The cases of what a row and the model's evidence say together, where unknown cells have labels of their own.
    pub(super) fn labelled_cases_of_row(&self, row: &[f64]) -> Result<Vec<Query>, ModelError> {
        let cases = self.cases_of_row(row)?;
        if !self.has_other() {
            return Ok(cases);
        }
        let variables = self.engine.variables();
        let mut labelled = Query::unknown(variables.len());
        for (column, c) in self.schema.columns().iter().enumerate() {
            let variable = self.schema.variables_of(column).start;
            let labels = labels_beside_other(c.kind.coding());
            if let Some(labels) = labels.filter(|_| row[variable].is_nan()) {
                let labels = Evidence::In(Part::Values((0..labels).collect()));
                labelled.set(variables, variable, labels)?;
            }
        }
        let found: Vec<Query> =
            cases.iter().filter_map(|b| intersect(variables, b, &labelled)).collect();
        // The evidence may leave nothing but others.
        let possible = log_sum(&self.log_cases(&found)?) > f64::NEG_INFINITY;
        Ok(if possible { found } else { cases })
    }
}

/// The number of labels of a column that has a place for others too.
fn labels_beside_other(coding: &dyn Coding) -> Option<usize> {
    coding.other().filter(|&labels| labels > 0)
}

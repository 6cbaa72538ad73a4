//! How likely rows are.

use super::case::Case;
use super::{Model, ModelError};
use crate::data::{EncodeOptions, Encoded, OutsideCell, Table};
use crate::mixture::log_sum;
use crate::query::Query;

impl Model {
    /// The log density of every row, in nats and the units of the data; missing cells are unknown, and the density is that of
    /// the others. −∞ for a row that contradicts what the model is conditioned on. Labels that were never seen, and numbers
    /// beyond the range or between those on a grid, have the share that [`ColumnSchema::outside`](crate::data::ColumnSchema::outside) gives them,
    /// which the others leave them: a score is the log of what a question about all cells answers.
    ///
    /// A number on a grid of decimals counts by the density in the middle of its cell times the cell's width. That is its
    /// probability, which a question such as `P(x = 27)` integrates, up to how far the density bends within the cell: over all numbers
    /// of a column the sum is 1 within a hundredth.
    ///
    /// # Errors
    /// A column of the model is not there, or a cell is of another type.
    pub fn score(&self, table: &Table) -> Result<Vec<f64>, ModelError> {
        self.score_with(table, EncodeOptions::default())
    }

    /// [`score`](Self::score), with a choice of what happens to cells that do not fit.
    ///
    /// # Errors
    /// Names the first row, and its first column, that does not fit.
    pub fn score_with(
        &self,
        table: &Table,
        options: EncodeOptions,
    ) -> Result<Vec<f64>, ModelError> {
        self.score_encoded(&self.schema.encode_with(table, options)?)
    }

    /// The mean of [`score`](Self::score).
    ///
    /// # Errors
    /// As for [`score`](Self::score), and for a table without rows.
    pub fn mean_log_likelihood(&self, table: &Table) -> Result<f64, ModelError> {
        let scores = self.score(table)?;
        if scores.is_empty() {
            return Err(ModelError::NoRows { which: "the table" });
        }
        Ok(scores.iter().sum::<f64>() / scores.len() as f64)
    }

    /// A mean log-likelihood in bits for each column: −mean / (ln 2 · columns).
    pub fn bits_per_dimension(&self, mean_log_likelihood: f64) -> f64 {
        -mean_log_likelihood / (std::f64::consts::LN_2 * self.schema.columns().len() as f64)
    }

    /// The [`score`](Self::score) of a table that the model's schema has encoded.
    ///
    /// # Errors
    /// Rows that were encoded by another schema.
    pub fn score_encoded(&self, rows: &Encoded) -> Result<Vec<f64>, ModelError> {
        if rows.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let placed = self.log_placed(rows);
        if self.given.is_nothing() {
            let logs = self.mixture.log_marginals(rows.batch())?;
            let own = rows.log_jacobian().iter().zip(&placed);
            return Ok(logs
                .iter()
                .zip(own)
                .map(|(log, (slope, placed))| log + slope + placed)
                .collect());
        }
        let variables = self.mixture.variables();
        let (mut cases, mut places) = (Vec::new(), Vec::new());
        let is_about: Vec<bool> = (0..self.schema.columns().len())
            .map(|column| self.given.is_about(&self.schema, column))
            .collect();
        let joined = match self.given.cases() {
            [only] if !rows.outside().any(|(_, column)| is_about[column]) => {
                self.joined(rows.batch(), None).map(|joined| (joined, only))
            }
            _ => None,
        };
        let logs: Vec<f64> = if let Some((joined, given)) = joined {
            // What the row and the evidence both know counts once.
            let again =
                |row: usize| given.log_weight_of(&self.schema, |c| !self.has_cell(rows, row, c));
            let logs = self.mixture.log_marginals(&joined)?;
            logs.iter().enumerate().map(|(row, log)| log + placed[row] + again(row)).collect()
        } else {
            for row in 0..rows.num_rows() {
                let own = self.case_of_row(rows, row)?;
                let given = self.given.cases().iter();
                cases.extend(given.filter_map(|case| case.and(variables, &own)));
                places.resize(cases.len(), row);
            }
            let mut logs = vec![Vec::new(); rows.num_rows()];
            for (row, log) in places.into_iter().zip(self.log_cases(&cases)?) {
                logs[row].push(log);
            }
            // The share of a cell outside is in its case, or contradicts it where the column has no other values.
            let outside = |row: usize| -> f64 {
                let share = |column: usize| match rows.outside_cell(row, column) {
                    Some(OutsideCell::Beyond(set)) if self.schema.unplaced(column) > 0.0 => {
                        self.schema.columns()[column].log_outside_share(set)
                    }
                    Some(OutsideCell::Beyond(_)) if is_about[column] => f64::INFINITY,
                    Some(OutsideCell::Beyond(_) | OutsideCell::Between) | None => 0.0,
                };
                (0..is_about.len()).map(share).sum()
            };
            logs.iter().enumerate().map(|(row, logs)| log_sum(logs) - outside(row)).collect()
        };
        let score = |(row, log): (usize, f64)| {
            // The slope of a column with a given value counts once, here or in the row's own.
            let given = self.given.slopes().iter();
            let unknown =
                given.filter(|(c, _)| !self.has_cell(rows, row, **c)).map(|(_, slope)| slope);
            log + rows.log_jacobian()[row] + unknown.sum::<f64>() - self.log_given
        };
        Ok(logs.into_iter().enumerate().map(score).collect())
    }

    /// Whether a row has a cell in a column.
    fn has_cell(&self, rows: &Encoded, row: usize, column: usize) -> bool {
        let first = self.schema.variables_of(column).start;
        !rows.batch().is_missing(row, first) || rows.outside_cell(row, column).is_some()
    }

    /// For every row, Σ ln(1 − the share of cells outside) over the columns in which it has a cell: what a cell with a place has
    /// to be multiplied by, and one outside, which is held against those with a place, as well.
    fn log_placed(&self, rows: &Encoded) -> Vec<f64> {
        let mut logs = vec![0.0; rows.num_rows()];
        for column in 0..self.schema.columns().len() {
            let log = (-self.schema.unplaced(column)).ln_1p();
            if log < 0.0 {
                for (row, sum) in logs.iter_mut().enumerate() {
                    *sum += if self.has_cell(rows, row, column) { log } else { 0.0 };
                }
            }
        }
        logs
    }

    /// What is known of an encoded row.
    pub(super) fn case_of_row(&self, rows: &Encoded, row: usize) -> Result<Case, ModelError> {
        let query = Query::row(self.mixture.variables(), &rows.row(row))?;
        let mut case = Case::of_row(&self.schema, query);
        for column in 0..self.schema.columns().len() {
            if let Some(OutsideCell::Beyond(set)) = rows.outside_cell(row, column)
                && self.schema.unplaced(column) > 0.0
            {
                case.set_outside(column, set.clone());
            }
        }
        Ok(case)
    }

    /// The cases of what a row of values and the model's evidence say together.
    pub(crate) fn cases_of_row(&self, row: &[f64]) -> Result<Vec<Case>, ModelError> {
        let variables = self.mixture.variables();
        let own = Case::of_row(&self.schema, Query::row(variables, row)?);
        Ok(self.given.cases().iter().filter_map(|case| case.and(variables, &own)).collect())
    }
}

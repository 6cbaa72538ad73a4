//! How likely rows are.

use super::event::intersect;
use super::{Model, ModelError};
use crate::data::{EncodeOptions, Encoded, OutsideCell, Table};
use crate::engine::Device;
use crate::mixture::log_sum;
use crate::query::Query;

impl Model {
    /// The log density of every row, in nats and the units of the data, with missing cells integrated out. −∞ for a row
    /// that contradicts the model's evidence. Labels that were never seen, and numbers outside the range or between
    /// grid points, have the probability in [`ColumnSchema::outside`](crate::data::ColumnSchema::outside).
    /// Only scores use it: [questions](Model::ask), distributions, quantiles, means and samples are restricted to the values in
    /// the model's domain.
    ///
    /// A number on a grid of decimals counts by the density in the middle of its cell times the cell's width. That is its
    /// probability, which a question such as `P(x = 27)` integrates, up to how far the density bends within the cell: over all numbers
    /// of a column the sum is 1 within a hundredth.
    ///
    /// # Errors
    /// The table lacks a column of the model, or a cell has another type.
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
        self.score_on(rows, Device::Cpu)
    }

    /// [`score_encoded`](Self::score_encoded), on a device: see [`Engine::log_marginals_on`](crate::engine::Engine::log_marginals_on). Rows of a model that is conditioned on
    /// alternatives are scored on the CPU, one by one.
    ///
    /// # Errors
    /// Rows that were encoded by another schema, or a device that is not there or too small, if it must be used.
    pub fn score_on(&self, rows: &Encoded, device: Device) -> Result<Vec<f64>, ModelError> {
        if rows.num_rows() == 0 {
            return Ok(Vec::new());
        }
        if self.given.is_nothing() {
            let logs = self.mixture.log_marginals_on(rows.batch(), device)?;
            return Ok(logs.iter().zip(rows.log_jacobian()).map(|(l, s)| l + s).collect());
        }
        let logs = if let Some(joined) = self.joined(rows.batch(), None) {
            self.mixture.log_marginals_on(&joined, device)?
        } else {
            let cases = |row| self.log_cases(&self.cases_of_row(&rows.row(row))?);
            let log = |row| Ok(log_sum(&cases(row)?));
            (0..rows.num_rows()).map(log).collect::<Result<_, ModelError>>()?
        };
        let score = |(row, log): (usize, f64)| {
            // What the model is conditioned on are values that have a place.
            let contradicts = |column| {
                matches!(rows.outside_cell(row, column), Some(OutsideCell::Beyond(_)))
                    && self.given.is_about(&self.schema, column)
            };
            if (0..self.schema.columns().len()).any(contradicts) {
                return f64::NEG_INFINITY;
            }
            // The slope of a column with a given value counts once, here or in the row's own.
            let given = self.given.slopes().iter();
            let unknown = given
                .filter(|(c, _)| rows.batch().is_missing(row, self.schema.variables_of(**c).start))
                .map(|(_, slope)| slope);
            log + rows.log_jacobian()[row] + unknown.sum::<f64>() - self.log_given
        };
        Ok(logs.into_iter().enumerate().map(score).collect())
    }

    /// The cases of what a row and the model's evidence say together.
    pub(crate) fn cases_of_row(&self, row: &[f64]) -> Result<Vec<Query>, ModelError> {
        let variables = self.mixture.variables();
        let query = Query::row(variables, row)?;
        Ok(self.given.cases().iter().filter_map(|b| intersect(variables, b, &query)).collect())
    }
}

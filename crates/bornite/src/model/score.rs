//! Log densities of rows.

use super::event::intersect;
use super::{Model, ModelError};
use crate::data::{EncodeOptions, Encoded, OutsideCell, Table};
use crate::engine::Device;
use crate::mixture::log_sum;
use crate::query::Query;

impl Model {
    /// Computes the log density of every row, in nats and the units of the data, with missing cells integrated out. A
    /// row that contradicts the model's evidence has −∞.
    ///
    /// Labels that were never seen, and numbers outside the range or between grid points, have the probability in
    /// [`ColumnSchema::outside`](crate::data::ColumnSchema::outside). Only scores use it: [questions](Model::ask),
    /// distributions, quantiles, means and samples are restricted to the values in the model's domain.
    ///
    /// The score of a number on a decimal grid is its probability, as is that of a date: exp(score) is the answer to a
    /// question such as `P(x = 27)`. In models of earlier versions, whose functions of such a number are smooth, it is
    /// the density at the center of the number's cell times the width of the cell; these sum to 1 within 1 %.
    ///
    /// # Errors
    /// The table lacks a column of the model, or a cell has another type.
    pub fn score(&self, table: &Table) -> Result<Vec<f64>, ModelError> {
        self.score_with(table, EncodeOptions::default())
    }

    /// [`score`](Self::score), with a choice of what happens to cells that do not fit.
    ///
    /// # Errors
    /// A cell does not match its column. The error names the first such row and column.
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
    /// As for [`score`](Self::score); also, the table has no rows.
    pub fn mean_log_likelihood(&self, table: &Table) -> Result<f64, ModelError> {
        let scores = self.score(table)?;
        if scores.is_empty() {
            return Err(ModelError::NoRows { which: "the table" });
        }
        Ok(scores.iter().sum::<f64>() / scores.len() as f64)
    }

    /// Converts a mean log-likelihood to bits per column: −mean / (ln 2 · columns).
    pub fn bits_per_dimension(&self, mean_log_likelihood: f64) -> f64 {
        -mean_log_likelihood / (std::f64::consts::LN_2 * self.schema.columns().len() as f64)
    }

    /// [`score`](Self::score) for a table that the model's schema has already encoded.
    ///
    /// # Errors
    /// The rows were encoded with another schema.
    pub fn score_encoded(&self, rows: &Encoded) -> Result<Vec<f64>, ModelError> {
        self.score_on(rows, Device::Cpu)
    }

    /// [`score_encoded`](Self::score_encoded) on a device: see
    /// [`Engine::log_marginals_on`](crate::engine::Engine::log_marginals_on). If the model is conditioned on
    /// alternatives, the rows are scored on the CPU, one by one.
    ///
    /// # Errors
    /// The rows were encoded with another schema, or the device must be used but is not available or too small.
    pub fn score_on(&self, rows: &Encoded, device: Device) -> Result<Vec<f64>, ModelError> {
        if rows.num_rows() == 0 {
            return Ok(Vec::new());
        }
        if self.given.is_certain() {
            let evidence = self.schema.evidence_rows(rows.batch());
            let logs = self.mixture.log_marginals_on(&evidence, device)?;
            return Ok(logs.iter().zip(rows.log_jacobian()).map(|(l, s)| l + s).collect());
        }
        let logs = if let Some(joined) = self.with_model_evidence(rows.batch(), None) {
            self.mixture.log_marginals_on(&joined, device)?
        } else {
            let cases = |row| self.log_cases(&self.cases_of_row(&rows.row(row))?);
            let log = |row| Ok(log_sum(&cases(row)?));
            (0..rows.num_rows()).map(log).collect::<Result<_, ModelError>>()?
        };
        let score = |(row, log): (usize, f64)| {
            // The model's evidence consists of values inside the domain.
            let contradicts = |column| {
                matches!(rows.outside_cell(row, column), Some(OutsideCell::Beyond(_)))
                    && self.given.is_about(&self.schema, column)
            };
            if (0..self.schema.columns().len()).any(contradicts) {
                return f64::NEG_INFINITY;
            }
            // Count the slope of a column with a given value once: here, or in the row's own sum.
            let given = self.given.slopes().iter();
            let unknown = given
                .filter(|(c, _)| rows.batch().is_missing(row, self.schema.variables_of(**c).start))
                .map(|(_, slope)| slope);
            log + rows.log_jacobian()[row] + unknown.sum::<f64>() - self.log_given
        };
        Ok(logs.into_iter().enumerate().map(score).collect())
    }

    /// The cases of a row combined with the model's evidence.
    pub(crate) fn cases_of_row(&self, row: &[f64]) -> Result<Vec<Query>, ModelError> {
        let variables = self.mixture.variables();
        let query = self.schema.evidence_row(variables, row)?;
        Ok(self.given.cases().iter().filter_map(|b| intersect(variables, b, &query)).collect())
    }
}

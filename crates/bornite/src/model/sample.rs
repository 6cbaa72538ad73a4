//! Sampling of new rows, and of missing cells.

use super::cells::{WantedCells, impossible_row};
use super::{Event, Model, ModelError};
use crate::data::Table;
use crate::engine::{Batch, Device};
use crate::memory;
use crate::mixture::{Picks, shares};
use crate::query::{Query, QueryError};

/// The number of rows that are sampled together if each has its own evidence.
const BATCH: u64 = 4096;

impl Model {
    /// Draws exact samples. The same seed gives the same rows.
    ///
    /// # Errors
    /// The rows do not fit into memory.
    pub fn sample(&self, count: usize, seed: u64) -> Result<Table, ModelError> {
        self.sample_from(0, None, count, seed)
    }

    /// Draws `count` of the [samples](Self::sample) for a seed, beginning with sample `start`, on a device: see
    /// [`Engine::sample_from_on`](crate::engine::Engine::sample_from_on).
    ///
    /// # Errors
    /// The device must be used but is not available or too small, some variables are not finite, or the model is
    /// conditional.
    pub fn sample_on(
        &self,
        start: u64,
        count: usize,
        seed: u64,
        device: Device,
    ) -> Result<Table, ModelError> {
        if !self.given.is_certain() {
            return match device {
                Device::Cpu | Device::Auto => self.sample_from(start, None, count, seed),
                Device::Cuda => {
                    let reason = "it does not support samples with evidence".to_owned();
                    Err(QueryError::Device { reason }.into())
                }
            };
        }
        memory::check_rows(count, self.schema.num_variables())?;
        let values = self.mixture.sample_from_on(start, count, seed, device)?;
        Ok(self.schema.decode(&values)?)
    }

    /// Draws exact samples, given evidence.
    ///
    /// # Errors
    /// The evidence has probability 0, or was created for another schema.
    pub fn sample_given(
        &self,
        known: &Event,
        count: usize,
        seed: u64,
    ) -> Result<Table, ModelError> {
        self.sample_from(0, Some(known), count, seed)
    }

    /// Draws `count` of the [samples](Self::sample) for a seed, given optional evidence, beginning with sample `start`.
    /// Rows that do not fit into memory can be drawn in pieces, and are the same for pieces of any length.
    ///
    /// # Errors
    /// As for [`sample_given`](Self::sample_given).
    pub fn sample_from(
        &self,
        start: u64,
        known: Option<&Event>,
        count: usize,
        seed: u64,
    ) -> Result<Table, ModelError> {
        memory::check_rows(count, self.schema.num_variables())?;
        let known = match known {
            None if self.given.is_certain() => {
                return Ok(self.schema.decode(&self.mixture.sample_from(start, count, seed))?);
            }
            None => self.given.clone(),
            Some(known) => known.and(&self.schema, &self.given)?,
        };
        let shares = self.shares(known.cases())?;
        let mut picks = Picks::of_cases(seed);
        let mut values = Vec::with_capacity(count * self.schema.num_variables());
        let end = start.saturating_add(count as u64);
        let mut done = start;
        while done < end {
            let batch = done - done % BATCH;
            let next = end.min(batch.saturating_add(BATCH));
            let query = |row| known.cases()[picks.pick(row, &shares)].clone();
            let queries: Vec<Query> = (done..next).map(query).collect();
            let rows = Batch::from_queries(self.mixture.variables(), &queries)?;
            // Batches of one seed start with the same random streams, so each batch gets its own seed.
            let seed = seed.wrapping_add(batch.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            values.extend(self.mixture.sample_given_from(done - batch, &rows, seed)?);
            done = next;
        }
        Ok(self.schema.decode(&values)?)
    }

    /// The share of each case in the probability of all.
    fn shares(&self, cases: &[Query]) -> Result<Vec<f64>, ModelError> {
        shares(&self.log_cases(cases)?)
            .ok_or_else(|| ModelError::Impossible { what: "the evidence".to_owned() })
    }

    /// Samples one completion of every row, given its observed cells and the model's evidence. Sampled cells never have
    /// the catch-all value for other labels, and cells to be filled are never missing. `start` rows precede these rows
    /// in their table.
    pub(super) fn complete(
        &self,
        start: u64,
        rows: &Batch,
        seed: u64,
        filled: WantedCells<'_>,
    ) -> Result<Vec<f64>, ModelError> {
        let Some(mut joined) = self.with_model_evidence(rows, Some(filled)) else {
            return self.complete_cases(start, rows, seed, filled);
        };
        if self.has_other() {
            let logs = self.mixture.log_marginals(&joined)?;
            let is_impossible = |row: usize| logs[row] == f64::NEG_INFINITY;
            if let Some(plain) =
                self.with_model_evidence(rows, None).filter(|_| (0..rows.len()).any(is_impossible))
            {
                // The evidence may allow only the catch-all value.
                for (v, variable) in self.mixture.variables().iter().enumerate() {
                    joined.set_column(v, &variable.domain, |row| {
                        is_impossible(row).then(|| plain.evidence(row, v))
                    });
                }
            }
        }
        Ok(self.mixture.sample_given_from(start, &joined, seed)?)
    }

    /// [`complete`](Self::complete), row by row, for a model conditioned on several cases.
    fn complete_cases(
        &self,
        start: u64,
        rows: &Batch,
        seed: u64,
        filled: WantedCells<'_>,
    ) -> Result<Vec<f64>, ModelError> {
        let variables = self.mixture.variables();
        let mut picks = Picks::of_cases(seed);
        let mut queries = Vec::new();
        for row in 0..rows.len() {
            let is_filled = |column: usize| filled(row, column);
            let cases = self.labelled_cases_of_row(&rows.row(row), &is_filled)?;
            let shares = self.shares(&cases).map_err(|_| impossible_row(row))?;
            queries.push(cases[picks.pick(start + row as u64, &shares)].clone());
        }
        let rows = Batch::from_queries(variables, &queries)?;
        Ok(self.mixture.sample_given_from(start, &rows, seed)?)
    }
}

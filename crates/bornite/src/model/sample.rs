//! New rows.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::cells::impossible_row;
use super::{Event, Model, ModelError};
use crate::data::Table;
use crate::engine::Batch;
use crate::memory;
use crate::query::Query;

/// Rows that are sampled at once where each has evidence of its own.
const BATCH: u64 = 4096;

impl Model {
    /// Exact samples. The same seed gives the same rows.
    ///
    /// # Errors
    /// More rows than fit into memory.
    pub fn sample(&self, count: usize, seed: u64) -> Result<Table, ModelError> {
        self.sample_from(0, None, count, seed)
    }

    /// Exact samples of rows of which this is known.
    ///
    /// # Errors
    /// What is known has probability 0, or was made for another schema.
    pub fn sample_given(
        &self,
        known: &Event,
        count: usize,
        seed: u64,
    ) -> Result<Table, ModelError> {
        self.sample_from(0, Some(known), count, seed)
    }

    /// `count` of the [samples](Self::sample) that a seed gives, of rows of which this is known if anything is, from the one at
    /// `start` on: more rows than fit into memory can be drawn in pieces, and are the same for pieces of any length.
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
            None if self.given.is_nothing() => {
                return Ok(self.schema.decode(&self.engine.sample_from(start, count, seed))?);
            }
            None => self.given.clone(),
            Some(known) => known.and(&self.schema, &self.given)?,
        };
        let cumulative = self.cumulative(known.cases())?;
        let mut picks = Picks::new(seed);
        let mut values = Vec::with_capacity(count * self.schema.num_variables());
        let end = start.saturating_add(count as u64);
        let mut done = start;
        while done < end {
            let batch = done - done % BATCH;
            let next = end.min(batch.saturating_add(BATCH));
            let query = |row| known.cases()[picks.pick(row, &cumulative)].clone();
            let queries: Vec<Query> = (done..next).map(query).collect();
            let rows = Batch::from_queries(self.engine.variables(), &queries)?;
            // Batches begin with the same streams of one seed, so each gets a seed of its own.
            let seed = seed.wrapping_add(batch.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            values.extend(self.engine.sample_given_from(done - batch, &rows, seed)?);
            done = next;
        }
        Ok(self.schema.decode(&values)?)
    }

    /// The running sums of the cases' probabilities, of which the last is 1.
    fn cumulative(&self, cases: &[Query]) -> Result<Vec<f64>, ModelError> {
        let logs = self.log_cases(cases)?;
        let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if max == f64::NEG_INFINITY {
            return Err(ModelError::Impossible { what: "what is given".to_owned() });
        }
        let mut sum = 0.0;
        let mut sums: Vec<f64> = logs
            .iter()
            .map(|l| {
                sum += (l - max).exp();
                sum
            })
            .collect();
        for s in &mut sums {
            *s /= sum;
        }
        Ok(sums)
    }

    /// One sample for every row of encoded values, given its known cells and the model's evidence, without the place for
    /// other labels. The rows are a piece of more, of which `start` come before them.
    pub(super) fn complete(
        &self,
        start: u64,
        rows: &Batch,
        seed: u64,
    ) -> Result<Vec<f64>, ModelError> {
        let Some(mut joined) = self.joined(rows, true) else {
            return self.complete_cases(start, rows, seed);
        };
        if self.has_other() {
            let logs = self.engine.log_marginals(&joined)?;
            let is_impossible = |row: usize| logs[row] == f64::NEG_INFINITY;
            if let Some(plain) =
                self.joined(rows, false).filter(|_| (0..rows.len()).any(is_impossible))
            {
                // The evidence may leave nothing but other labels.
                for (v, variable) in self.engine.variables().iter().enumerate() {
                    joined.set_column(v, &variable.domain, |row| {
                        is_impossible(row).then(|| plain.evidence(row, v))
                    });
                }
            }
        }
        Ok(self.engine.sample_given_from(start, &joined, seed)?)
    }

    /// The same where the model's evidence is of several cases, row by row.
    fn complete_cases(&self, start: u64, rows: &Batch, seed: u64) -> Result<Vec<f64>, ModelError> {
        let variables = self.engine.variables();
        let mut picks = Picks::new(seed);
        let mut queries = Vec::new();
        for row in 0..rows.len() {
            let cases = self.labelled_cases_of_row(&rows.row(row))?;
            let cumulative = self.cumulative(&cases).map_err(|_| impossible_row(row))?;
            queries.push(cases[picks.pick(start + row as u64, &cumulative)].clone());
        }
        let rows = Batch::from_queries(variables, &queries)?;
        Ok(self.engine.sample_given_from(start, &rows, seed)?)
    }
}

/// A choice of one case for every row, which depends on the seed and the row's position alone.
struct Picks(ChaCha8Rng);

impl Picks {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::MAX);
        Self(rng)
    }

    /// A case by its probability.
    fn pick(&mut self, row: u64, cumulative: &[f64]) -> usize {
        if cumulative.len() == 1 {
            return 0;
        }
        // A number takes two words.
        self.0.set_word_pos(2 * u128::from(row));
        let u: f64 = self.0.random();
        cumulative.iter().position(|&c| u < c).unwrap_or(cumulative.len() - 1)
    }
}

//! A worker process that holds some rows of a table for a fit.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::ModelError;
use super::weights::RowWeights;
use crate::data::{Schema, Table};
use crate::learn::{Layout, LearnError, WorkerRows};

/// The schema of a table, and the division of its rows among workers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) schema: Schema,
    pub(super) layout: Layout,
    pub(super) weights: Option<RowWeights>,
}

impl Plan {
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        serde_json::to_vec(self).map_err(|e| failed(&e))
    }

    fn read(bytes: &[u8]) -> Result<Self, ModelError> {
        serde_json::from_slice(bytes).map_err(|e| failed(&e))
    }
}

fn failed(error: &serde_json::Error) -> ModelError {
    LearnError::Workers { reason: format!("the row layout is damaged: {error}") }.into()
}

/// One of the [`Workers`](crate::learn::Workers) of a fit: it holds some encoded rows of the table and computes their
/// part of a step.
#[derive(Debug)]
pub struct Worker {
    schema: Schema,
    weights: Option<RowWeights>,
    rows: WorkerRows,
}

impl Worker {
    /// The maximum number of workers that a plan has rows for: one for every 64 rows of a training step, and at most
    /// 64.
    ///
    /// # Errors
    /// The bytes are not a plan.
    pub fn most(plan: &[u8]) -> Result<usize, ModelError> {
        Ok(Plan::read(plan)?.layout.num_shards())
    }

    /// Worker `number` of `of`, counted from 0, without any rows yet.
    ///
    /// # Errors
    /// The bytes are not a plan, or `number` is too large.
    pub fn new(plan: &[u8], number: usize, of: usize) -> Result<Self, ModelError> {
        if number >= of {
            let reason = format!("there is no worker {number} among {of}");
            return Err(LearnError::Workers { reason }.into());
        }
        let Plan { schema, layout, weights } = Plan::read(plan)?;
        let rows = WorkerRows::new(&schema.variables(), layout, number, of);
        Ok(Self { schema, weights, rows })
    }

    /// The columns that it needs.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let weights = self.weights.iter().map(|weights| weights.column.as_str());
        self.schema.columns().iter().map(|column| column.name.as_str()).chain(weights)
    }

    /// The positions in the table of the rows that it still needs.
    pub fn wanted(&self) -> Range<u64> {
        self.rows.wanted()
    }

    /// Adds the next rows that it needs; any rows after the last one are ignored.
    ///
    /// # Errors
    /// A row does not match the schema.
    pub fn add(&mut self, table: &Table) -> Result<(), ModelError> {
        let start = usize::try_from(self.wanted().start).unwrap_or(usize::MAX);
        let rows = self.schema.encode(table).map_err(|e| ModelError::from(e).after(start))?;
        let weights = self.weights.as_ref().map(|weights| weights.of(table)).transpose();
        let weights = weights.map_err(|e| e.after(start))?.unwrap_or_default();
        self.rows.add(rows.batch(), rows.log_jacobian(), &weights);
        Ok(())
    }

    /// What [`Workers::hold`](crate::learn::Workers::hold) must return for this worker.
    ///
    /// # Errors
    /// The worker does not have all of its rows yet.
    pub fn held(&self) -> Result<Vec<u8>, ModelError> {
        self.check()?;
        Ok(self.rows.held())
    }

    /// What [`Workers::ask`](crate::learn::Workers::ask) must return for this worker.
    ///
    /// # Errors
    /// The worker does not have all of its rows yet, or the bytes do not belong to a fit.
    pub fn answer(&mut self, fit: &[u8], step: &[u8]) -> Result<Vec<u8>, ModelError> {
        self.check()?;
        Ok(self.rows.answer(fit, step)?)
    }

    fn check(&self) -> Result<(), ModelError> {
        let Range { start, end } = self.wanted();
        if start < end {
            let reason = format!("a worker is missing its rows {} to {end}", start + 1);
            return Err(LearnError::Workers { reason }.into());
        }
        Ok(())
    }
}

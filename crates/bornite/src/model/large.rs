//! The rows of files that memory does not hold.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::ModelError;
use crate::data::{DataError, Sample, Schema, Table, in_file};
use crate::learn::Pieces;

/// All rows of some files, encoded, and the mean of what they add to log p.
#[derive(Debug)]
pub(super) struct Spilled {
    pub(super) pieces: Pieces,
    pub(super) slope: f64,
}

impl Spilled {
    /// Writes all rows down but those of the sample that are held out. As many rows as it has are at hand at a time.
    pub(super) fn new(
        sample: &Sample,
        schema: &Schema,
        held: &[usize],
        on_rows: &mut dyn FnMut(&Path, usize, Option<f64>),
    ) -> Result<Self, ModelError> {
        let held: BTreeSet<u64> = held.iter().map(|&row| sample.places()[row]).collect();
        let mut pieces =
            Pieces::new(&schema.variables(), sample.table().num_rows()).map_err(of_disk)?;
        let mut sum = 0.0;
        let mut add = |table: &Table, before: u64| -> Result<(), ModelError> {
            let rows = schema.encode(table)?;
            let is_kept = |row: &usize| !held.contains(&(before + *row as u64));
            let kept: Vec<usize> = (0..rows.num_rows()).filter(is_kept).collect();
            sum += kept.iter().map(|&row| rows.log_jacobian()[row]).sum::<f64>();
            pieces.add(&rows.batch().select(&kept)).map_err(of_disk)
        };
        let place = |path: &Path, rows: usize, error: ModelError| match error {
            ModelError::Data(error) if !matches!(*error, DataError::Io { .. }) => {
                in_file(path, rows, *error).into()
            }
            other => other,
        };
        sample.read_all(schema, on_rows, &mut add, place)?;
        let slope = sum / pieces.num_rows().max(1) as f64;
        Ok(Self { pieces, slope })
    }
}

fn of_disk(source: io::Error) -> ModelError {
    let file = std::env::temp_dir().display().to_string();
    DataError::Io { file, action: "write the rows to a temporary file in", source }.into()
}

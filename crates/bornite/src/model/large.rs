//! Training rows of a table that does not fit into memory.

use std::io;
use std::path::Path;

use super::ModelError;
use super::worker::Plan;
use crate::data::{DataError, Sample, Schema, Table, in_file};
use crate::learn::{Layout, LearnError, PieceFile, Pieces, Workers, slopes};

/// All training rows, encoded, and the mean of their log slopes.
#[derive(Debug)]
pub(super) struct Spilled<'a> {
    rows: Stored<'a>,
    pub(super) slope: f64,
}

#[derive(Debug)]
enum Stored<'a> {
    File(PieceFile),
    Workers(Layout, &'a dyn Workers),
}

impl<'a> Spilled<'a> {
    /// Encodes all rows of a sample's files into a temporary file.
    pub(super) fn to_file(
        sample: &Sample,
        schema: &Schema,
        layout: Layout,
        on_rows: &mut dyn FnMut(&Path, usize, Option<f64>),
    ) -> Result<Self, ModelError> {
        let mut sums = vec![0.0; layout.len()];
        let mut file = PieceFile::new(&schema.variables(), layout).map_err(disk_error)?;
        let mut all = 0;
        let changed = || {
            let reason = "the files that they are from have changed".to_owned();
            ModelError::Learn(LearnError::Pieces { reason })
        };
        let mut add = |table: &Table, before: u64| -> Result<(), ModelError> {
            let rows = schema.encode(table)?;
            all = before + rows.num_rows() as u64;
            if all > sample.num_rows() {
                return Err(changed());
            }
            for (piece, own) in file.layout().split(before, rows.num_rows()) {
                for &row in &own {
                    sums[piece] += rows.log_jacobian()[row];
                }
                file.add(piece, &rows.batch().select(&own)).map_err(disk_error)?;
            }
            Ok(())
        };
        let place = |path: &Path, rows: usize, error: ModelError| match error {
            ModelError::Data(error) if !matches!(*error, DataError::Io { .. }) => {
                in_file(path, rows, *error).into()
            }
            other => other,
        };
        sample.read_all(schema, on_rows, &mut add, place)?;
        if all < sample.num_rows() {
            return Err(changed());
        }
        let slope = mean(&sums, file.layout());
        Ok(Self { rows: Stored::File(file), slope })
    }

    /// Distributes the rows to workers.
    pub(super) fn to_workers(
        workers: &'a dyn Workers,
        schema: &Schema,
        layout: Layout,
    ) -> Result<Self, ModelError> {
        let failed = |reason| ModelError::Learn(LearnError::Workers { reason });
        let plan = Plan { schema: schema.clone(), layout };
        let answers = workers.hold(&plan.to_bytes()?).map_err(failed)?;
        let slope = mean(&slopes(&answers, &plan.layout)?, &plan.layout);
        Ok(Self { rows: Stored::Workers(plan.layout, workers), slope })
    }

    pub(super) fn pieces(&self) -> Pieces<'_> {
        match &self.rows {
            Stored::File(file) => Pieces::File(file),
            Stored::Workers(layout, workers) => Pieces::Workers(layout, *workers),
        }
    }
}

/// The mean over all rows, from sums over pieces.
fn mean(sums: &[f64], layout: &Layout) -> f64 {
    sums.iter().sum::<f64>() / layout.num_rows().max(1) as f64
}

fn disk_error(source: io::Error) -> ModelError {
    let file = std::env::temp_dir().display().to_string();
    DataError::Io { file, action: "write the rows to a temporary file in", source }.into()
}

//! Training rows of a table that does not fit into memory.

use std::io;
use std::path::Path;

use super::ModelError;
use super::weights::RowWeights;
use super::worker::Plan;
use crate::data::{DataError, Sample, Schema, Table, file_name, in_file};
use crate::learn::{HeldRows, Layout, LearnError, PieceFile, Pieces, Splitter, Workers};

/// All training rows, encoded and repeated according to their weights, and the mean of their log slopes.
#[derive(Debug)]
pub(super) struct Spilled<'a> {
    rows: Stored<'a>,
    pub(super) slope: f64,
    /// The number of training rows before they are repeated.
    pub(super) num_rows: usize,
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
        (layout, weights): (Layout, Option<&RowWeights>),
        on_rows: &mut dyn FnMut(&Path, usize, Option<f64>),
    ) -> Result<Self, ModelError> {
        let (mut held, mut splitter) = (HeldRows::new(layout.len()), Splitter::default());
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
            let weights = weights.map(|weights| weights.of(table)).transpose()?.unwrap_or_default();
            for (piece, own) in splitter.split(file.layout(), before, rows.num_rows(), &weights) {
                held.add(piece, &own, rows.log_jacobian());
                file.add(piece, &rows.batch().select(&own)).map_err(disk_error)?;
            }
            Ok(())
        };
        let place = |path: &Path, rows: usize, error: ModelError| match error {
            ModelError::Data(error) if !matches!(*error, DataError::Io { .. }) => {
                in_file(path, rows, *error).into()
            }
            error @ (ModelError::Weight { .. } | ModelError::LargeWeight { .. }) => {
                ModelError::InFile { file: file_name(path), source: Box::new(error.after(rows)) }
            }
            other => other,
        };
        let column = weights.map(|weights| weights.column.as_str());
        sample.read_all(schema, column, on_rows, &mut add, place)?;
        if all < sample.num_rows() {
            return Err(changed());
        }
        if file.layout().has_weights() {
            file.layout_mut().set_counts(held.counts.clone());
        }
        let slope = mean(&held, file.layout());
        Ok(Self { rows: Stored::File(file), slope, num_rows: held.used })
    }

    /// Distributes the rows to workers.
    pub(super) fn to_workers(
        workers: &'a dyn Workers,
        schema: &Schema,
        (layout, weights): (Layout, Option<RowWeights>),
    ) -> Result<Self, ModelError> {
        let failed = |reason| ModelError::Learn(LearnError::Workers { reason });
        let plan = Plan { schema: schema.clone(), layout, weights };
        let answers = workers.hold(&plan.to_bytes()?).map_err(failed)?;
        let mut layout = plan.layout;
        let held = HeldRows::of_workers(&answers, &layout)?;
        if layout.has_weights() {
            layout.set_counts(held.counts.clone());
        }
        let slope = mean(&held, &layout);
        Ok(Self { rows: Stored::Workers(layout, workers), slope, num_rows: held.used })
    }

    pub(super) fn pieces(&self) -> Pieces<'_> {
        match &self.rows {
            Stored::File(file) => Pieces::File(file),
            Stored::Workers(layout, workers) => Pieces::Workers(layout, *workers),
        }
    }
}

/// The mean over all rows, from sums over pieces.
fn mean(held: &HeldRows, layout: &Layout) -> f64 {
    held.slopes.iter().sum::<f64>() / layout.num_rows().max(1) as f64
}

fn disk_error(source: io::Error) -> ModelError {
    let file = std::env::temp_dir().display().to_string();
    DataError::Io { file, action: "write the rows to a temporary file in", source }.into()
}

//! Missing cells filled.

use rayon::prelude::*;

use super::known::{intersect, log_sum};
use super::{Model, ModelError};
use crate::basis::Part;
use crate::data::{ColumnKind, Encoded, Storage, Table};
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
        for distribution in self.distributions_of(&missing, self.labelled_boxes_of_row(row)?)? {
            let column = distribution.column();
            let (c, range) = (&self.schema.columns()[column], self.schema.variables_of(column));
            let words = matches!(c.kind, ColumnKind::Categorical { .. })
                && c.storage == Storage::Labels
                || matches!(c.kind, ColumnKind::Boolean { .. });
            let values = match how {
                Imputation::Median if !words => distribution.quantile_values(0.5)?,
                Imputation::Mean if !words => {
                    nearest_values(&c.kind, distribution.mean()?, range.len())
                }
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
        self.schema.columns().iter().any(|c| others(&c.kind).is_some())
    }

    /// The boxes of what a row and the model's evidence say together, where unknown cells have labels of their own.
    pub(super) fn labelled_boxes_of_row(&self, row: &[f64]) -> Result<Vec<Query>, ModelError> {
        let boxes = self.boxes_of_row(row)?;
        if !self.has_other() {
            return Ok(boxes);
        }
        let variables = self.engine.variables();
        let mut labelled = Query::unknown(variables.len());
        for (column, c) in self.schema.columns().iter().enumerate() {
            let variable = self.schema.variables_of(column).start;
            if let Some(labels) = others(&c.kind).filter(|_| row[variable].is_nan()) {
                let labels = Evidence::In(Part::Values((0..labels).collect()));
                labelled.set(variables, variable, labels)?;
            }
        }
        let found: Vec<Query> =
            boxes.iter().filter_map(|b| intersect(variables, b, &labelled)).collect();
        // The evidence may leave nothing but others.
        let possible = log_sum(&self.log_boxes(&found)?) > f64::NEG_INFINITY;
        Ok(if possible { found } else { boxes })
    }
}

/// The number of labels of a column that has a place for others too.
fn others(kind: &ColumnKind) -> Option<usize> {
    match kind {
        ColumnKind::Categorical { labels, has_other: true } if !labels.is_empty() => {
            Some(labels.len())
        }
        _ => None,
    }
}

/// The values of a column's variables at the number nearest to x that it can be.
fn nearest_values(kind: &ColumnKind, x: f64, variables: usize) -> Vec<f64> {
    match kind {
        ColumnKind::Continuous { warp } => vec![warp.forward(x)],
        ColumnKind::Periodic { origin, period } => vec![((x - origin) / period).clamp(0.0, 1.0)],
        ColumnKind::Integer { min, max } => {
            vec![(x.round().clamp(*min as f64, *max as f64) - *min as f64).max(0.0)]
        }
        ColumnKind::Digits { min, radices } => {
            let count: i128 = radices.iter().map(|&r| r as i128).product();
            let mut rest = ((x.round() as i128) - i128::from(*min)).clamp(0, count - 1);
            let mut digits = vec![0.0; variables];
            for (digit, &radix) in digits.iter_mut().zip(radices).rev() {
                *digit = (rest % radix as i128) as f64;
                rest /= radix as i128;
            }
            digits
        }
        ColumnKind::Categorical { labels, .. } => vec![nearest_label(labels, x)],
        ColumnKind::Boolean { labels } => vec![nearest_label(labels, x)],
    }
}

fn nearest_label(labels: &[String], x: f64) -> f64 {
    let distance = |label: &String| label.parse().map_or(f64::INFINITY, |l: f64| (l - x).abs());
    let best = (0..labels.len())
        .fold(0, |b, n| if distance(&labels[n]) < distance(&labels[b]) { n } else { b });
    best as f64
}

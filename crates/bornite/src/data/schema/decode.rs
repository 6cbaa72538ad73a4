//! From values of variables back to cells.

use rayon::prelude::*;

use super::{ColumnKind, ColumnSchema, OTHER, Schema, Storage};
use crate::data::{Column, DataError, Table};
use crate::domain::Domain;

impl Schema {
    /// The table of these values, row by row: the inverse of [`Schema::encode`]. NaN in any digit is a missing cell.
    ///
    /// The value for other labels is [`OTHER`] in a column of text, and a missing cell in one of numbers or without labels.
    /// Real numbers in a column of whole numbers are rounded.
    ///
    /// # Errors
    /// The values are no whole rows, or one is not in its variable's domain.
    pub fn decode(&self, values: &[f64]) -> Result<Table, DataError> {
        let width = self.num_variables();
        if !values.len().is_multiple_of(width) {
            return Err(DataError::Shape { found: values.len(), width });
        }
        let columns = self
            .columns
            .par_iter()
            .enumerate()
            .map(|(n, column)| {
                let range = self.variables_of(n);
                let rows = values.chunks_exact(width).map(|row| &row[range.clone()]);
                decode_column(column, rows)
            })
            .collect::<Result<_, DataError>>()?;
        let table = Table::new(columns)?;
        match self.image {
            Some(shape) => table.with_image(shape),
            None => Ok(table),
        }
    }

    /// One column of the values of its variables, row by row.
    pub(crate) fn decode_column(&self, column: usize, values: &[f64]) -> Result<Column, DataError> {
        decode_column(&self.columns[column], values.chunks_exact(self.variables_of(column).len()))
    }
}

/// A decoded cell.
enum Decoded<'a> {
    Missing,
    Text(&'a str),
    Integer(i64),
    Number(f64),
}

impl<'a> Decoded<'a> {
    fn text(&self) -> Option<&'a str> {
        match self {
            Decoded::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Decoded::Missing => None,
            Decoded::Text(text) => text.parse().ok(),
            Decoded::Integer(x) => Some(*x as f64),
            Decoded::Number(x) => Some(*x),
        }
    }
}

fn decode_column<'v>(
    column: &ColumnSchema,
    rows: impl Iterator<Item = &'v [f64]>,
) -> Result<Column, DataError> {
    let domains = column.kind.domains();
    let mut cells = Vec::new();
    for (row, values) in rows.enumerate() {
        if values.iter().any(|x| x.is_nan()) {
            cells.push(Decoded::Missing);
            continue;
        }
        let outside = |(x, d): &(&f64, &Domain)| !d.contains(**x);
        if let Some((&value, _)) = values.iter().zip(&domains).find(outside) {
            let column = column.name.clone();
            return Err(DataError::Decode { row: row + 1, column, value });
        }
        cells.push(decode_cell(&column.kind, values));
    }
    let name = column.name.clone();
    Ok(match column.storage {
        Storage::Labels => {
            let only_other =
                matches!(&column.kind, ColumnKind::Categorical { labels, .. } if labels.is_empty());
            let texts: Vec<Option<&str>> =
                cells.iter().map(|c| c.text().filter(|_| !only_other)).collect();
            Column::labels(name, texts)
        }
        Storage::Integers => Column::integers(
            name,
            cells.iter().map(|cell| match cell {
                Decoded::Integer(x) => Some(*x),
                Decoded::Text(t) => t.parse().ok(),
                _ => cell.number().map(|x| x.round() as i64),
            }),
        ),
        Storage::Numbers(format) => {
            let values = cells.iter().map(|c| c.number().unwrap_or(f64::NAN)).collect();
            Column::numbers(name, values).with_format(format)
        }
    })
}

/// The cell of values that are in their domains.
fn decode_cell<'a>(kind: &'a ColumnKind, values: &[f64]) -> Decoded<'a> {
    let first = values[0];
    match kind {
        ColumnKind::Categorical { labels, .. } => {
            Decoded::Text(labels.get(first as usize).map_or(OTHER, String::as_str))
        }
        ColumnKind::Boolean { labels } => Decoded::Text(&labels[first as usize]),
        ColumnKind::Integer { min, .. } => Decoded::Integer(min + first as i64),
        ColumnKind::Digits { min, radices } => {
            let digits = values.iter().zip(radices);
            let offset = digits.fold(0_i128, |n, (&x, &r)| n * r as i128 + x as i128);
            // The schema has checked that the largest fits.
            Decoded::Integer((i128::from(*min) + offset) as i64)
        }
        ColumnKind::Continuous { warp } => Decoded::Number(warp.inverse(first)),
        ColumnKind::Periodic { origin, period } => Decoded::Number(origin + period * first),
    }
}

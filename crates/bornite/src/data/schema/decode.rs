//! From values of variables back to cells.

use rayon::prelude::*;

use super::{ColumnSchema, Schema, Storage};
use crate::data::column::Decoded;
use crate::data::{Column, DataError, Table};
use crate::domain::Domain;

impl Schema {
    /// The table of these values, row by row: the inverse of [`Schema::encode`]. NaN in any digit is a missing cell.
    ///
    /// The value for other labels is [`OTHER`](super::OTHER) in a column of text, and a missing cell in one of numbers or
    /// without labels. Real numbers in a column of whole numbers are rounded.
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

fn decode_column<'v>(
    column: &ColumnSchema,
    rows: impl Iterator<Item = &'v [f64]>,
) -> Result<Column, DataError> {
    let coding = column.kind.coding();
    let domains = coding.domains();
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
        cells.push(coding.decode(values));
    }
    let name = column.name.clone();
    Ok(match column.storage {
        Storage::Labels => Column::labels(name, cells.iter().map(Decoded::text)),
        Storage::Integers => Column::integers(name, cells.iter().map(Decoded::integer)),
        Storage::Numbers(format) => {
            let values = cells.iter().map(|c| c.number().unwrap_or(f64::NAN)).collect();
            Column::numbers(name, values).with_format(format)
        }
    })
}

//! Decoding of variables' values to cells.

use std::borrow::Cow;

use rayon::prelude::*;

use super::{ColumnSchema, Schema, Storage};
use crate::data::column::Decoded;
use crate::data::{Cell, Cells, Column, CsvLayout, DataError, Table};
use crate::domain::Domain;

impl Schema {
    /// Decodes rows of values to a table: the inverse of [`Schema::encode`]. A cell with NaN in any of its variables is
    /// missing.
    ///
    /// The catch-all value is [`OTHER`](super::OTHER) in a text column, and a missing cell in a column of numbers or
    /// without labels. Real numbers in a column of whole numbers are rounded.
    ///
    /// # Errors
    /// The values do not form whole rows, or a value is outside its variable's domain.
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
        let mut table = Table::new(columns)?;
        let has_comma =
            |c: &ColumnSchema| matches!(c.storage, Storage::Numbers(f) if f.has_comma());
        if self.columns.iter().any(has_comma) {
            table = table.with_layout(CsvLayout { delimiter: b';', ..CsvLayout::default() });
        }
        match self.image {
            Some(shape) => table.with_image(shape),
            None => Ok(table),
        }
    }

    /// Converts cells of one of its columns to the type of another column that may represent them differently, such as
    /// no and yes as 0 and 1. Cells that already have that type, or have no counterpart, are unchanged.
    pub(crate) fn in_type_of<'c>(
        &self,
        like: &Column,
        column: usize,
        cells: &'c Column,
    ) -> Cow<'c, Column> {
        let is_text = |c: &Column| matches!(c.cells(), Cells::Labels(_));
        if let Cells::Labels(own) = like.cells()
            && let Some(first) = own.labels().first()
            && let Some(words) = self.columns[column].kind.coding().in_words_of(first)
        {
            let values = self.encode_column(column, cells);
            let word = |x: &f64| (!x.is_nan()).then(|| words[*x as usize].as_str());
            return Cow::Owned(Column::labels(cells.name(), values.iter().map(word)));
        }
        let is_open = !like.has_type() && like.num_missing() == like.len();
        if is_text(like) == is_text(cells) || is_open {
            return Cow::Borrowed(cells);
        }
        let (schema, width) = (&self.columns[column], self.variables_of(column).len());
        let coding = schema.kind.coding();
        let values = self.encode_column(column, cells);
        let rows = values.chunks_exact(width);
        let name = cells.name();
        if let Cells::Labels(own) = like.cells() {
            let encode = |label: &String| self.encode_value(column, Cell::Text(label)).ok();
            let places: Vec<_> = own.labels().iter().map(encode).collect();
            let label = |values: &[f64]| {
                let is_it = |place: &Option<(Vec<f64>, f64)>| {
                    place.as_ref().is_some_and(|(own, _)| own == values)
                };
                places.iter().position(is_it).map(|n| own.labels()[n].as_str())
            };
            let labels: Vec<Option<&str>> = rows.map(label).collect();
            let is_whole =
                labels.iter().enumerate().all(|(row, l)| l.is_some() || cells.is_missing(row));
            let found = || Cow::Owned(Column::labels(name, labels));
            return if is_whole { found() } else { Cow::Borrowed(cells) };
        }
        let number = |(row, values): (usize, &[f64])| match coding.number(schema.storage, values) {
            _ if cells.is_missing(row) => Some(None),
            Some(x) if x.is_finite() => Some(Some(x)),
            _ => None,
        };
        let Some(numbers) = rows.enumerate().map(number).collect::<Option<Vec<_>>>() else {
            return Cow::Borrowed(cells);
        };
        Cow::Owned(match like.cells() {
            Cells::Integers(_) => {
                Column::integers(name, numbers.into_iter().map(|x| x.map(|x| x.round() as i64)))
            }
            Cells::Numbers(_) | Cells::Labels(_) => {
                Column::numbers(name, numbers.iter().map(|x| x.unwrap_or(f64::NAN)).collect())
            }
        })
    }

    /// Decodes one column, given the values of its variables row by row.
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

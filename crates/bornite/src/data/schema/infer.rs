//! Inference of a table's schema.

use rayon::prelude::*;

use super::{ColumnSchema, Schema, Storage};
use crate::data::column::{Facts, Integer, KnownCells};
use crate::data::{Column, ColumnKind, DataError, InferOptions, Table};
use crate::names::nearest;

impl Schema {
    /// Infers the meaning of the columns of a table.
    ///
    /// Text is categorical, or Boolean for pairs such as `no` and `yes`, or split into parts if all cells are dates or
    /// times. Whole numbers, in a column of either numeric type, are Boolean for 0 and 1, integers up to a range of
    /// `max_range` (less if most of the range has few rows), and numbers otherwise. Real numbers are numbers. Columns with few distinct
    /// numbers are categorical. So are constant columns, with a catch-all value, and columns without any observed cell,
    /// with only the catch-all value. The pixels of images are integers with a common range.
    ///
    /// # Errors
    /// There are no rows, a number is infinite, or a declared kind does not match its column.
    pub fn infer(table: &Table, options: &InferOptions) -> Result<Self, DataError> {
        if table.num_rows() == 0 {
            return Err(DataError::NoRows);
        }
        let named = options.kinds.keys().chain(&options.missing_as_value);
        for name in named.chain(options.named_atoms.keys()) {
            if table.columns().iter().all(|c| c.name() != name) {
                let hint = nearest(table.columns().iter().map(Column::name), name);
                return Err(DataError::UnknownColumn { name: name.clone(), hint });
            }
        }
        let pixels = table.image().and_then(|_| common_range(table.columns()));
        let columns = table.columns().par_iter().map(|column| {
            let (name, storage) = (column.name().to_owned(), Storage::of(column));
            let hint = options.kinds.get(column.name()).copied();
            let column_of = |kind: ColumnKind, storage, outside| {
                let is_optional = options.missing_as_value.contains(&name);
                let schema = ColumnSchema { name, kind, storage, outside };
                if is_optional { schema.with_missing() } else { Ok(schema) }
            };
            if let (None, Some(pixel)) = (hint, pixels) {
                return column_of(pixel.into(), storage, 0.0);
            }
            let facts = Facts::new(column, options)?;
            let kind = facts.kind(hint)?;
            // Nothing is known about the cells of an empty column.
            let is_unknown = facts.is_unobserved() && hint.is_none();
            let storage = if is_unknown { Storage::Labels } else { storage };
            let outside = facts.outside(&kind, storage);
            column_of(kind, storage, outside)
        });
        let schema = Self::new(columns.collect::<Result<_, DataError>>()?)?;
        match table.image() {
            Some(shape) => schema.with_image(shape),
            None => Ok(schema),
        }
    }
}

/// The common range of all pixels: from 0, and up to 255 if there are more than 17 gray levels.
fn common_range(columns: &[Column]) -> Option<Integer> {
    let mut range = None;
    for column in columns {
        match KnownCells::of(column).ok()? {
            KnownCells::Whole { min, max, .. } => {
                let (low, high) = range.unwrap_or((min, max));
                range = Some((low.min(min), high.max(max)));
            }
            KnownCells::Nothing => {}
            KnownCells::Text | KnownCells::Real { .. } => return None,
        }
    }
    let (min, max) = match range? {
        (min, max @ 17..=255) if min >= 0 => (0, max.max(255)),
        (min, max @ 0..=16) if min >= 0 => (0, max.max(1)),
        (min, max) if max.abs_diff(min) < 256 => (min, max),
        _ => return None,
    };
    Some(Integer { min, max })
}

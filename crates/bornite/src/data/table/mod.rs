//! Tables of named columns.

mod cells;
mod column;

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::{CsvLayout, DataError};
use crate::names::nearest;

pub use cells::{Cells, Integers, Labels, Numbers};
pub use column::Column;
pub(crate) use column::TextForm;

/// A table: named columns with the same length.
///
/// A table that was read from a CSV file keeps what is needed to write the same text again; see [`Column::text`].
///
/// ```
/// use bornite::data::{Column, Table};
///
/// let table = Table::new(vec![
///     Column::numbers("height", vec![1.7, f64::NAN]),
///     Column::labels("city", [Some("Bonn"), None]),
/// ])?;
/// assert_eq!(table.num_rows(), 2);
/// assert!(table.column("city")?.is_missing(1));
/// # Ok::<(), bornite::data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    num_rows: usize,
    image: Option<[usize; 3]>,
    layout: CsvLayout,
}

impl Table {
    /// A table with these columns.
    ///
    /// # Errors
    /// There are no columns, two have the same name, or they differ in length.
    pub fn new(columns: Vec<Column>) -> Result<Self, DataError> {
        let num_rows = columns.first().ok_or(DataError::NoColumns)?.len();
        check_names(columns.iter().map(Column::name), "the table")?;
        if let Some(c) = columns.iter().find(|c| c.len() != num_rows) {
            let (column, found) = (c.name().to_owned(), c.len());
            return Err(DataError::Length { column, expected: num_rows, found });
        }
        Ok(Self { columns, num_rows, image: None, layout: CsvLayout::default() })
    }

    /// A table of numbers, row by row; NaN is a missing cell.
    ///
    /// # Errors
    /// The values do not form whole rows, a value is infinite, or two columns have the same name.
    pub fn from_rows(names: &[impl AsRef<str>], values: &[f64]) -> Result<Self, DataError> {
        let width = names.len();
        if width == 0 {
            return Err(DataError::NoColumns);
        }
        if !values.len().is_multiple_of(width) {
            return Err(DataError::Shape { found: values.len(), width });
        }
        if let Some(at) = values.iter().position(|x| x.is_infinite()) {
            return Err(DataError::Infinite {
                place: format!("row {}", at / width + 1),
                column: names[at % width].as_ref().to_owned(),
                text: values[at].to_string(),
            });
        }
        let column = |(j, name): (usize, &_)| {
            let name: &str = AsRef::as_ref(name);
            Column::numbers(name, values.iter().skip(j).step_by(width).copied().collect())
        };
        Self::new(names.iter().enumerate().map(column).collect())
    }

    /// Declares that the columns are the pixels of images, row by row, with channels innermost.
    ///
    /// # Errors
    /// The number of columns does not match.
    pub fn with_image(mut self, shape: [usize; 3]) -> Result<Self, DataError> {
        let [height, width, channels] = shape;
        if shape.iter().try_fold(1_usize, |n, &s| n.checked_mul(s)) != Some(self.columns.len()) {
            let columns = self.columns.len();
            return Err(DataError::ImageShape { height, width, channels, columns });
        }
        self.image = Some(shape);
        Ok(self)
    }

    /// Sets the layout in which the table is written.
    #[must_use]
    pub fn with_layout(mut self, layout: CsvLayout) -> Self {
        self.layout = layout;
        self
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// The number of columns.
    pub fn num_columns(&self) -> usize {
        self.columns.len()
    }

    /// The height, width and number of channels, if the rows are images.
    pub fn image(&self) -> Option<[usize; 3]> {
        self.image
    }

    /// The layout in which the table is written as CSV.
    pub fn layout(&self) -> &CsvLayout {
        &self.layout
    }

    /// The column with this name.
    ///
    /// # Errors
    /// There is no such column; the error suggests the nearest name.
    pub fn column(&self, name: &str) -> Result<&Column, DataError> {
        self.columns.iter().find(|c| c.name() == name).ok_or_else(|| DataError::UnknownColumn {
            name: name.to_owned(),
            hint: nearest(self.columns.iter().map(Column::name), name),
        })
    }

    /// Replaces the columns, and keeps the layout.
    ///
    /// # Errors
    /// As for [`Table::new`].
    pub fn with_columns(&self, columns: Vec<Column>) -> Result<Self, DataError> {
        let image = self.image.filter(|_| columns.len() == self.columns.len());
        Ok(Self { image, layout: self.layout.clone(), ..Self::new(columns)? })
    }

    /// Selects rows, in this order.
    ///
    /// # Panics
    /// If a row does not exist.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        Self {
            columns: self.columns.iter().map(|c| c.select(rows)).collect(),
            num_rows: rows.len(),
            image: self.image,
            layout: self.layout.clone(),
        }
    }

    /// Concatenates rows of several tables with the same columns in the same order. Whole numbers beside real ones
    /// become real. `None` if there are no tables.
    pub(super) fn gathered(parts: &[(&Self, &[usize])]) -> Option<Self> {
        let (first, _) = parts.first()?;
        let column = |n: usize| {
            let parts: Vec<_> = parts.iter().map(|(t, rows)| (&t.columns[n], *rows)).collect();
            Column::gathered(&first.columns[n], &parts)
        };
        let columns = (0..first.columns.len()).into_par_iter().map(column).collect();
        let num_rows = parts.iter().map(|(_, rows)| rows.len()).sum();
        Some(Self { columns, num_rows, image: first.image, layout: first.layout.clone() })
    }

    /// The table without this column. It is then no longer one of images.
    ///
    /// # Errors
    /// There is no such column, or it is the only one.
    pub fn without_column(&self, name: &str) -> Result<Self, DataError> {
        self.column(name)?;
        if self.columns.len() == 1 {
            return Err(DataError::NoColumns);
        }
        let columns = self.columns.iter().filter(|c| c.name() != name).cloned().collect();
        Ok(Self { columns, num_rows: self.num_rows, image: None, layout: self.layout.clone() })
    }
}

/// Rejects columns with the same name.
pub(super) fn check_names<'a>(
    names: impl Iterator<Item = &'a str>,
    place: &str,
) -> Result<(), DataError> {
    let mut seen = BTreeMap::new();
    for (index, name) in names.enumerate() {
        if let Some(first) = seen.insert(name, index + 1) {
            let (place, name) = (place.to_owned(), name.to_owned());
            return Err(DataError::DuplicateName { place, name, first, second: index + 1 });
        }
    }
    Ok(())
}

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::number::NumberFormat;
use super::{CsvLayout, DataError};
use crate::names::nearest;

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
            let (column, found) = (c.name.clone(), c.len());
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
        self.columns.iter().find(|c| c.name == name).ok_or_else(|| DataError::UnknownColumn {
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
        let columns = self.columns.iter().filter(|c| c.name != name).cloned().collect();
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

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    name: String,
    cells: Cells,
    form: TextForm,
}

/// How a column was written in its original file.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct TextForm {
    /// The name in the header, if it differs from the column's.
    pub(crate) heading: Option<String>,
    /// The text of a missing cell.
    pub(crate) missing: String,
    /// The texts of the cells that the column's own format would write differently, by row.
    pub(crate) exceptions: BTreeMap<usize, String>,
    /// Whether the column is unobserved, so that not even missing is known as a value.
    pub(crate) is_unknown: bool,
    /// The column of a Parquet file that it was read from.
    #[cfg(feature = "parquet")]
    pub(crate) origin: super::parquet::Source,
}

impl TextForm {
    /// The form of a text column with this heading, text of missing cells, and texts of other cells.
    pub(crate) fn of_text(
        heading: Option<String>,
        missing: String,
        exceptions: BTreeMap<usize, String>,
    ) -> Self {
        let mut form = Self::default();
        (form.heading, form.missing, form.exceptions) = (heading, missing, exceptions);
        form
    }
}

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Real numbers; NaN is a missing cell.
    Numbers(Numbers),
    /// Whole numbers.
    Integers(Integers),
    /// Text, with a dictionary.
    Labels(Labels),
}

/// Real numbers, and how they are written. Two missing cells are equal.
#[derive(Clone, Debug)]
pub struct Numbers {
    values: Vec<f64>,
    format: NumberFormat,
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        self.format == other.format
            && self.values.len() == other.values.len()
            && self.values.iter().zip(&other.values).all(same)
    }
}

/// Whole numbers, in one byte each if they fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Integers {
    values: Whole,
    /// Empty if no cell is missing.
    missing: Vec<bool>,
}

#[derive(Clone, Debug, PartialEq)]
enum Whole {
    /// Shared with batches that use them as codes.
    Bytes(Arc<Vec<u8>>),
    Wide(Vec<i64>),
}

/// Text, with a dictionary.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    codes: Vec<u32>,
    labels: Vec<String>,
}

impl Column {
    /// A column of numbers; NaN is a missing cell.
    pub fn numbers(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self::new(name, Cells::Numbers(Numbers { values, format: NumberFormat::Shortest }))
    }

    /// A column of whole numbers; `None` is a missing cell.
    pub fn integers(
        name: impl Into<String>,
        values: impl IntoIterator<Item = Option<i64>>,
    ) -> Self {
        Self::new(name, Cells::Integers(values.into_iter().collect()))
    }

    /// A column of bytes.
    pub fn bytes(name: impl Into<String>, values: Vec<u8>) -> Self {
        let values = Whole::Bytes(Arc::new(values));
        Self::new(name, Cells::Integers(Integers { values, missing: Vec::new() }))
    }

    /// A column of labels; `None` is a missing cell.
    pub fn labels<'a>(
        name: impl Into<String>,
        cells: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Self {
        Self::new(name, Cells::Labels(cells.into_iter().collect()))
    }

    /// An unobserved column: even if missing is a value, it is not known whether its cells are missing.
    pub fn unknown(name: impl Into<String>, len: usize) -> Self {
        let form = TextForm { is_unknown: true, ..TextForm::default() };
        Self::labels(name, std::iter::repeat_n(None, len)).with_form(form)
    }

    /// Whether the column is unobserved.
    pub(crate) fn is_unknown(&self) -> bool {
        self.form.is_unknown
    }

    /// A column with these cells.
    pub fn new(name: impl Into<String>, cells: Cells) -> Self {
        Self { name: name.into(), cells, form: TextForm::default() }
    }

    pub(crate) fn with_form(mut self, form: TextForm) -> Self {
        self.form = form;
        self
    }

    /// Sets the column of a Parquet file that it was read from.
    #[cfg(feature = "parquet")]
    pub(super) fn with_origin(mut self, origin: super::parquet::Origin) -> Self {
        self.form.origin = origin.into();
        self
    }

    /// The column of a Parquet file that it was read from.
    #[cfg(feature = "parquet")]
    pub(super) fn origin(&self) -> Option<&super::parquet::Origin> {
        self.form.origin.get()
    }

    /// Whether the original file declares a type for the column, independent of its cells.
    pub(crate) fn has_type(&self) -> bool {
        #[cfg(feature = "parquet")]
        return self.origin().is_some();
        #[cfg(not(feature = "parquet"))]
        false
    }

    /// How the column was written in its original file.
    pub(crate) fn form(&self) -> &TextForm {
        &self.form
    }

    /// Sets the format of its real numbers.
    #[must_use]
    pub fn with_format(mut self, to: NumberFormat) -> Self {
        if let Cells::Numbers(Numbers { format, .. }) = &mut self.cells {
            *format = to;
        }
        self
    }

    /// Renames the column.
    #[must_use]
    pub fn renamed(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self.form.heading = None;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as it is written in a header.
    pub fn heading(&self) -> &str {
        self.form.heading.as_deref().unwrap_or(&self.name)
    }

    /// The cells.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        match &self.cells {
            Cells::Numbers(c) => c.values.len(),
            Cells::Integers(c) => c.len(),
            Cells::Labels(c) => c.codes.len(),
        }
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the cell in this row is missing.
    pub fn is_missing(&self, row: usize) -> bool {
        match &self.cells {
            Cells::Numbers(c) => c.values[row].is_nan(),
            Cells::Integers(c) => c.get(row).is_none(),
            Cells::Labels(c) => c.get(row).is_none(),
        }
    }

    /// The number of missing cells.
    pub fn num_missing(&self) -> usize {
        (0..self.len()).filter(|&row| self.is_missing(row)).count()
    }

    /// The cell in this row as a number; `None` if it is missing or text.
    pub fn number(&self, row: usize) -> Option<f64> {
        match &self.cells {
            Cells::Numbers(c) => Some(c.values[row]).filter(|x| !x.is_nan()),
            Cells::Integers(c) => c.get(row).map(|x| x as f64),
            Cells::Labels(_) => None,
        }
    }

    /// The text of the cell in this row: the original text, if the column was read from a file.
    pub fn text(&self, row: usize) -> Cow<'_, str> {
        match self.form.exceptions.get(&row) {
            Some(text) => Cow::Borrowed(text),
            None => self.usual_text(row).unwrap_or(Cow::Borrowed(&self.form.missing)),
        }
    }

    /// The text of a cell in the column's own format; `None` if it is missing.
    pub(super) fn usual_text(&self, row: usize) -> Option<Cow<'_, str>> {
        match &self.cells {
            Cells::Numbers(c) => {
                let x = c.values[row];
                (!x.is_nan()).then(|| Cow::Owned(c.format.write(x)))
            }
            Cells::Integers(c) => c.get(row).map(|x| Cow::Owned(x.to_string())),
            Cells::Labels(c) => c.get(row).map(Cow::Borrowed),
        }
    }

    /// Whether the column's own format writes a cell as this text, which was parsed as the cell; `None` if it is
    /// missing.
    pub(super) fn writes(&self, row: usize, text: &str) -> Option<bool> {
        match &self.cells {
            Cells::Numbers(c) if !c.values[row].is_nan() => {
                Some(c.format.gives_back(c.values[row], text))
            }
            Cells::Numbers(_) | Cells::Integers(_) | Cells::Labels(_) => {
                self.usual_text(row).map(|usual| usual == text)
            }
        }
    }

    /// Fills missing cells from another column of the same length. Observed cells keep their text.
    ///
    /// If all cells are missing, or the columns have different types, the result has the type of `from`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[must_use]
    pub fn filled(&self, from: &Self) -> Self {
        assert_eq!(self.len(), from.len(), "two columns of one table");
        let known = |row: usize| !self.is_missing(row);
        let pick = |row: usize| if known(row) { self } else { from };
        let rows = 0..self.len();
        let cells = match (&self.cells, &from.cells) {
            (_, Cells::Labels(_)) => {
                let texts: Vec<_> = rows.map(|row| pick(row).usual_text(row)).collect();
                Cells::Labels(texts.iter().map(Option::as_deref).collect())
            }
            (Cells::Integers(_) | Cells::Labels(_), Cells::Integers(fill)) => {
                let cell = |row: usize| match &self.cells {
                    Cells::Integers(own) => own.get(row).or_else(|| fill.get(row)),
                    Cells::Numbers(_) | Cells::Labels(_) => fill.get(row),
                };
                Cells::Integers(rows.map(cell).collect())
            }
            (Cells::Numbers(_) | Cells::Integers(_) | Cells::Labels(_), Cells::Numbers(_))
            | (Cells::Numbers(_), Cells::Integers(_)) => {
                let values = rows.map(|row| pick(row).number(row).unwrap_or(f64::NAN)).collect();
                let format = match (&self.cells, &from.cells) {
                    (Cells::Numbers(own), _) if own.values.iter().any(|x| !x.is_nan()) => {
                        own.format
                    }
                    (_, Cells::Numbers(fill)) => fill.format,
                    (_, Cells::Integers(_) | Cells::Labels(_)) => NumberFormat::Shortest,
                };
                Cells::Numbers(Numbers { values, format })
            }
        };
        let form = TextForm { exceptions: BTreeMap::new(), is_unknown: false, ..self.form.clone() };
        let mut column = Self { name: self.name.clone(), cells, form };
        for row in (0..self.len()).filter(|&row| known(row)) {
            let text = self.text(row);
            if column.usual_text(row).as_deref() != Some(&*text) {
                column.form.exceptions.insert(row, text.into_owned());
            }
        }
        column
    }

    /// Concatenates cells of several columns, in the form of the first.
    fn gathered(first: &Self, parts: &[(&Self, &[usize])]) -> Self {
        let all = || parts.iter().flat_map(|(c, rows)| rows.iter().map(move |&row| (*c, row)));
        let whole = |(c, row): (&Self, usize)| match &c.cells {
            Cells::Integers(cells) => cells.get(row),
            Cells::Numbers(_) | Cells::Labels(_) => None,
        };
        let cells = match &first.cells {
            Cells::Labels(_) => Cells::Labels(all().map(|(c, row)| c.label(row)).collect()),
            Cells::Integers(_)
                if parts.iter().all(|(c, _)| matches!(c.cells, Cells::Integers(_))) =>
            {
                Cells::Integers(all().map(whole).collect())
            }
            Cells::Integers(_) | Cells::Numbers(_) => {
                let format = match &first.cells {
                    Cells::Numbers(numbers) => numbers.format,
                    Cells::Integers(_) | Cells::Labels(_) => NumberFormat::Shortest,
                };
                let values = all().map(|(c, row)| c.number(row).unwrap_or(f64::NAN)).collect();
                Cells::Numbers(Numbers { values, format })
            }
        };
        let form = TextForm { exceptions: BTreeMap::new(), ..first.form.clone() };
        Self { name: first.name.clone(), cells, form }
    }

    /// The label in this row; `None` if it is missing or a number.
    fn label(&self, row: usize) -> Option<&str> {
        match &self.cells {
            Cells::Labels(cells) => cells.get(row),
            Cells::Numbers(_) | Cells::Integers(_) => None,
        }
    }

    fn select(&self, rows: &[usize]) -> Self {
        let mut form = self.form.clone();
        form.exceptions = match &self.form.exceptions {
            none if none.is_empty() => BTreeMap::new(),
            some => rows
                .iter()
                .enumerate()
                .filter_map(|(to, from)| Some((to, some.get(from)?.clone())))
                .collect(),
        };
        let cells = match &self.cells {
            Cells::Numbers(c) => Cells::Numbers(Numbers {
                values: rows.iter().map(|&r| c.values[r]).collect(),
                format: c.format,
            }),
            Cells::Integers(c) => Cells::Integers(c.select(rows)),
            Cells::Labels(c) => Cells::Labels(Labels {
                codes: rows.iter().map(|&r| c.codes[r]).collect(),
                labels: c.labels.clone(),
            }),
        };
        Self { name: self.name.clone(), cells, form }
    }
}

impl Numbers {
    /// The values; NaN is a missing cell.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The format in which they are written.
    pub fn format(&self) -> NumberFormat {
        self.format
    }
}

impl Integers {
    /// The number of cells.
    pub fn len(&self) -> usize {
        match &self.values {
            Whole::Bytes(v) => v.len(),
            Whole::Wide(v) => v.len(),
        }
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number in this row; `None` if it is missing.
    pub fn get(&self, row: usize) -> Option<i64> {
        if self.missing.get(row).copied().unwrap_or(false) {
            return None;
        }
        Some(match &self.values {
            Whole::Bytes(v) => i64::from(v[row]),
            Whole::Wide(v) => v[row],
        })
    }

    /// The cells in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<i64>> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }

    /// The cells as bytes, if none is missing and all fit.
    pub(crate) fn bytes(&self) -> Option<&Arc<Vec<u8>>> {
        match &self.values {
            Whole::Bytes(bytes) if self.missing.is_empty() => Some(bytes),
            Whole::Bytes(_) | Whole::Wide(_) => None,
        }
    }

    fn select(&self, rows: &[usize]) -> Self {
        let values = match &self.values {
            Whole::Bytes(v) => Whole::Bytes(Arc::new(rows.iter().map(|&r| v[r]).collect())),
            Whole::Wide(v) => Whole::Wide(rows.iter().map(|&r| v[r]).collect()),
        };
        let missing = match &self.missing[..] {
            [] => Vec::new(),
            some => rows.iter().map(|&r| some[r]).collect(),
        };
        Self { values, missing }
    }
}

impl FromIterator<Option<i64>> for Integers {
    fn from_iter<I: IntoIterator<Item = Option<i64>>>(cells: I) -> Self {
        let cells: Vec<Option<i64>> = cells.into_iter().collect();
        let missing = if cells.iter().any(Option::is_none) {
            cells.iter().map(Option::is_none).collect()
        } else {
            Vec::new()
        };
        let bytes: Option<Vec<u8>> =
            cells.iter().map(|x| u8::try_from(x.unwrap_or(0)).ok()).collect();
        let values = match bytes {
            Some(bytes) => Whole::Bytes(Arc::new(bytes)),
            None => Whole::Wide(cells.into_iter().map(|x| x.unwrap_or(0)).collect()),
        };
        Self { values, missing }
    }
}

impl Labels {
    /// The code of a missing cell.
    pub const MISSING: u32 = u32::MAX;

    /// The position in the dictionary of every cell, or [`Labels::MISSING`].
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The dictionary, in the order of first appearance.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The label in this row; `None` if it is missing.
    pub fn get(&self, row: usize) -> Option<&str> {
        self.labels.get(self.codes[row] as usize).map(String::as_str)
    }
}

impl<'a> FromIterator<Option<&'a str>> for Labels {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(cells: I) -> Self {
        let mut known: BTreeMap<&'a str, u32> = BTreeMap::new();
        let mut labels = Vec::new();
        let mut code = |cell: Option<&'a str>| {
            let Some(label) = cell else { return Self::MISSING };
            *known.entry(label).or_insert_with(|| {
                labels.push(label.to_owned());
                labels.len() as u32 - 1
            })
        };
        let codes = cells.into_iter().map(&mut code).collect();
        Self { codes, labels }
    }
}

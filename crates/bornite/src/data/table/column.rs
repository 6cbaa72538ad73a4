//! Columns: a name, cells, and how they were written.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::cells::{Cells, Integers, Labels, Numbers};
use crate::data::number::NumberFormat;

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
    pub(crate) origin: crate::data::parquet::Source,
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
        Self::new(name, Cells::Integers(Integers::from_bytes(values)))
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
    pub(in crate::data) fn with_origin(mut self, origin: crate::data::parquet::Origin) -> Self {
        self.form.origin = origin.into();
        self
    }

    /// The column of a Parquet file that it was read from.
    #[cfg(feature = "parquet")]
    pub(in crate::data) fn origin(&self) -> Option<&crate::data::parquet::Origin> {
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
    pub(in crate::data) fn usual_text(&self, row: usize) -> Option<Cow<'_, str>> {
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
    pub(in crate::data) fn writes(&self, row: usize, text: &str) -> Option<bool> {
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
    pub(super) fn gathered(first: &Self, parts: &[(&Self, &[usize])]) -> Self {
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

    pub(super) fn select(&self, rows: &[usize]) -> Self {
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

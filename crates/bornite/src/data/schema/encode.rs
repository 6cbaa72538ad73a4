//! From cells to values of variables.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::{ColumnKind, ColumnSchema, Schema, Storage, numeric_labels};
use crate::data::error::nearest;
use crate::data::number::{Reading, read};
use crate::data::{Cells, Column, DataError, Labels, Table};
use crate::domain::Domain;
use crate::engine::{Batch, BatchColumn};

/// What to do with what a schema does not provide for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mismatch {
    /// Refuse the table.
    #[default]
    Error,
    /// Treat it as unknown: the row then counts by its other cells alone.
    Unknown,
}

/// How to encode a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EncodeOptions {
    /// Labels without a place, and numbers out of range. Cells of a wrong type are always refused.
    pub unseen: Mismatch,
    /// Columns that the table does not have.
    pub absent: Mismatch,
}

/// The value of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A whole number.
    Integer(i64),
    /// A real number.
    Number(f64),
    /// Text, which may be that of a number.
    Text(&'a str),
}

/// A table as values of variables.
#[derive(Clone, Debug)]
pub struct Encoded {
    batch: Batch,
    log_jacobian: Vec<f64>,
}

impl Encoded {
    /// The values, column by column.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The values of one row; NaN is missing.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> Vec<f64> {
        self.batch.row(row)
    }

    /// The values, row by row; NaN is missing.
    pub fn to_rows(&self) -> Vec<f64> {
        self.batch.to_rows()
    }

    /// For each row Σ ln F′(x) over its known continuous cells: log p in the units of the data is log p of the values plus this.
    pub fn log_jacobian(&self) -> &[f64] {
        &self.log_jacobian
    }

    /// The number of rows.
    pub fn num_rows(&self) -> usize {
        self.batch.len()
    }

    /// The number of variables.
    pub fn num_variables(&self) -> usize {
        self.batch.num_variables()
    }

    /// These rows, in this order.
    ///
    /// # Panics
    /// If a row is not there.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let log_jacobian = rows.iter().map(|&row| self.log_jacobian[row]).collect();
        Self { batch: self.batch.select(rows), log_jacobian }
    }
}

/// What a cell has against a column.
#[derive(Clone, Copy)]
enum Problem {
    Unseen,
    OutOfRange { low: f64, high: f64 },
    Type(&'static str),
}

impl Problem {
    fn error(self, row: usize, column: &ColumnSchema, cell: Cell<'_>) -> DataError {
        let text = match cell {
            Cell::Integer(x) => x.to_string(),
            Cell::Number(x) => x.to_string(),
            Cell::Text(t) => t.to_owned(),
        };
        let name = column.name.clone();
        match self {
            Problem::Unseen => {
                let labels = match &column.kind {
                    ColumnKind::Categorical { labels, .. } => &labels[..],
                    ColumnKind::Boolean { labels } => labels,
                    _ => &[],
                };
                let hint = nearest(labels.iter().map(String::as_str), &text);
                let labels = labels.len();
                DataError::UnseenLabel { row, column: name, label: text, labels, hint }
            }
            Problem::OutOfRange { low, high } => {
                let value = number(cell).unwrap_or(f64::NAN);
                DataError::OutOfRange { row, column: name, value, low, high }
            }
            Problem::Type(expected) => DataError::WrongType { row, column: name, text, expected },
        }
    }
}

fn number(cell: Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Integer(x) => Some(x as f64),
        Cell::Number(x) => Some(x),
        Cell::Text(t) => match read(t) {
            Reading::Integer(x) => Some(x as f64),
            Reading::Real(x) => Some(x),
            Reading::Padded => t.parse().ok(),
            Reading::Infinite | Reading::Text => None,
        },
    }
}

fn integer(cell: Cell<'_>) -> Option<i64> {
    let whole = |x: f64| (x.fract() == 0.0 && x.abs() < 2f64.powi(63)).then_some(x as i64);
    match cell {
        Cell::Integer(x) => Some(x),
        Cell::Number(x) => whole(x),
        Cell::Text(t) => t.parse().ok().or_else(|| whole(number(cell)?)),
    }
}

/// The rule of one column, with its labels in order.
enum Rule<'a> {
    Numbers { labels: Vec<f64>, other: bool },
    Texts { labels: BTreeMap<&'a str, usize>, other: bool },
    Boolean(&'a [String; 2]),
    Other(&'a ColumnKind),
}

impl<'a> Rule<'a> {
    fn new(column: &'a ColumnSchema) -> Self {
        match &column.kind {
            ColumnKind::Boolean { labels } => Rule::Boolean(labels),
            ColumnKind::Categorical { labels, has_other } => match numeric_labels(labels) {
                Some(labels) if column.storage != Storage::Labels => {
                    Rule::Numbers { labels, other: *has_other }
                }
                _ => {
                    let labels = labels.iter().enumerate().map(|(n, l)| (l.as_str(), n)).collect();
                    Rule::Texts { labels, other: *has_other }
                }
            },
            kind => Rule::Other(kind),
        }
    }

    /// Writes the values of a cell and returns ln F′.
    fn encode(&self, cell: Cell<'_>, out: &mut [f64]) -> Result<f64, Problem> {
        if let Cell::Number(x) = cell
            && !x.is_finite()
        {
            return Err(Problem::Type("a finite number"));
        }
        match self {
            Rule::Numbers { labels, other } => {
                let found = number(cell).and_then(|x| labels.iter().position(|&l| l == x));
                out[0] = place(found, labels.len(), *other)?;
            }
            Rule::Texts { labels, other } => {
                let found = match cell {
                    Cell::Text(t) => labels.get(t),
                    Cell::Integer(x) => labels.get(x.to_string().as_str()),
                    Cell::Number(x) => labels.get(x.to_string().as_str()),
                };
                out[0] = place(found.copied(), labels.len(), *other)?;
            }
            Rule::Boolean(labels) => out[0] = boolean(labels, cell).ok_or(Problem::Unseen)?,
            Rule::Other(kind) => return encode_number(kind, cell, out),
        }
        Ok(0.0)
    }
}

fn place(found: Option<usize>, labels: usize, other: bool) -> Result<f64, Problem> {
    found.or(other.then_some(labels)).map(|n| n as f64).ok_or(Problem::Unseen)
}

/// By text, by number, and 0 and 1 for any two labels that are not numbers.
fn boolean(labels: &[String; 2], cell: Cell<'_>) -> Option<f64> {
    if let Cell::Text(t) = cell
        && let Some(n) = labels.iter().position(|l| l.eq_ignore_ascii_case(t))
    {
        return Some(n as f64);
    }
    let x = number(cell)?;
    let numbers = numeric_labels(labels).unwrap_or_else(|| vec![0.0, 1.0]);
    numbers.iter().position(|&l| l == x).map(|n| n as f64)
}

fn encode_number(kind: &ColumnKind, cell: Cell<'_>, out: &mut [f64]) -> Result<f64, Problem> {
    match kind {
        ColumnKind::Integer { min, max } => {
            let x = integer(cell).ok_or(Problem::Type("a whole number"))?;
            if !(*min..=*max).contains(&x) {
                return Err(Problem::OutOfRange { low: *min as f64, high: *max as f64 });
            }
            out[0] = (x - min) as f64;
            Ok(0.0)
        }
        ColumnKind::Digits { min, radices } => {
            let x = integer(cell).ok_or(Problem::Type("a whole number"))?;
            let mut rest = i128::from(x) - i128::from(*min);
            let count: i128 = radices.iter().map(|&r| r as i128).product();
            if !(0..count).contains(&rest) {
                let high = i128::from(*min) + count - 1;
                return Err(Problem::OutOfRange { low: *min as f64, high: high as f64 });
            }
            for (digit, &radix) in out.iter_mut().zip(radices).rev() {
                *digit = (rest % radix as i128) as f64;
                rest /= radix as i128;
            }
            Ok(0.0)
        }
        ColumnKind::Continuous { warp } => {
            let x = number(cell).ok_or(Problem::Type("a finite number"))?;
            let slope = warp.log_slope(x);
            if slope == f64::NEG_INFINITY {
                let (low, high) = warp.support().bounds();
                return Err(Problem::OutOfRange { low, high });
            }
            out[0] = warp.forward(x);
            Ok(slope)
        }
        ColumnKind::Periodic { origin, period } => {
            let x = number(cell).ok_or(Problem::Type("a finite number"))?;
            out[0] = turns(x, *origin, *period);
            Ok(-period.ln())
        }
        ColumnKind::Categorical { .. } | ColumnKind::Boolean { .. } => Err(Problem::Unseen),
    }
}

/// The place of x on the circle of length 1.
pub(super) fn turns(x: f64, origin: f64, period: f64) -> f64 {
    let turns = ((x - origin) / period).rem_euclid(1.0);
    // A tiny negative number rounds up to 1.
    if turns < 1.0 { turns } else { 0.0 }
}

/// A column of a table under the rule of a schema's column.
struct Source<'a> {
    schema: &'a ColumnSchema,
    rule: Rule<'a>,
    /// `None` where the table does not have the column.
    column: Option<&'a Column>,
    /// The rule's answer for every label of the column's dictionary: values, then ln F′.
    dictionary: Vec<Result<(Vec<f64>, f64), Problem>>,
}

impl<'a> Source<'a> {
    fn new(schema: &'a ColumnSchema, column: Option<&'a Column>, width: usize) -> Self {
        let rule = Rule::new(schema);
        let dictionary = match column.map(Column::cells) {
            Some(Cells::Labels(c)) => {
                let encode = |label: &String| {
                    let mut values = vec![f64::NAN; width];
                    rule.encode(Cell::Text(label), &mut values).map(|slope| (values, slope))
                };
                c.labels().par_iter().map(encode).collect()
            }
            _ => Vec::new(),
        };
        Self { schema, rule, column, dictionary }
    }

    /// Writes the values of one row, NaN before, and returns ln F′.
    fn encode(&self, row: usize, out: &mut [f64], unseen: Mismatch) -> Result<f64, DataError> {
        let Some(column) = self.column else { return Ok(0.0) };
        let (cell, result) = match column.cells() {
            Cells::Labels(c) if c.codes()[row] == Labels::MISSING => return Ok(0.0),
            Cells::Labels(c) => {
                let code = c.codes()[row] as usize;
                let result =
                    self.dictionary[code].as_ref().map_err(|p| *p).map(|(values, slope)| {
                        out.copy_from_slice(values);
                        *slope
                    });
                (Cell::Text(&c.labels()[code]), result)
            }
            Cells::Integers(c) => match c.get(row) {
                None => return Ok(0.0),
                Some(x) => (Cell::Integer(x), self.rule.encode(Cell::Integer(x), out)),
            },
            Cells::Numbers(c) => match c.values()[row] {
                x if x.is_nan() => return Ok(0.0),
                x => (Cell::Number(x), self.rule.encode(Cell::Number(x), out)),
            },
        };
        match result {
            Ok(slope) => Ok(slope),
            Err(Problem::Unseen | Problem::OutOfRange { .. }) if unseen == Mismatch::Unknown => {
                out.fill(f64::NAN);
                Ok(0.0)
            }
            Err(problem) => Err(problem.error(row + 1, self.schema, cell)),
        }
    }
}

impl Source<'_> {
    /// The columns of the variables, and ln F′ of each row, or none where it is 0 in all. An error comes with its row.
    fn columns(
        &self,
        domains: &[Domain],
        rows: usize,
        unseen: Mismatch,
    ) -> Result<(Vec<BatchColumn>, Vec<f64>), (usize, DataError)> {
        let Some(column) = self.column else {
            return Ok((domains.iter().map(|_| BatchColumn::missing(rows)).collect(), Vec::new()));
        };
        if let (ColumnKind::Integer { min: 0, max }, Cells::Integers(cells)) =
            (&self.schema.kind, column.cells())
            && let Some(bytes) = cells.bytes()
            && bytes.iter().all(|&byte| i64::from(byte) <= *max)
            && *max < 256
        {
            return Ok((vec![BatchColumn::of_bytes(Arc::clone(bytes))], Vec::new()));
        }
        let mut columns: Vec<BatchColumn> =
            domains.iter().map(|&domain| BatchColumn::with_capacity(domain, rows)).collect();
        let has_slopes = domains.iter().any(|domain| domain.num_values().is_none());
        let mut slopes = Vec::with_capacity(if has_slopes { rows } else { 0 });
        let mut values = vec![f64::NAN; domains.len()];
        for row in 0..rows {
            values.fill(f64::NAN);
            let slope = self.encode(row, &mut values, unseen).map_err(|error| (row, error))?;
            if has_slopes {
                slopes.push(slope);
            }
            columns.iter_mut().zip(&values).for_each(|(column, &x)| column.push(x));
        }
        Ok((columns, slopes))
    }
}

impl Schema {
    /// The values of the variables for every row. Columns are found by name; others of the table are left aside.
    ///
    /// # Errors
    /// A column is not there, or a cell does not fit its column: see [`Schema::encode_with`] to treat them as unknown.
    pub fn encode(&self, table: &Table) -> Result<Encoded, DataError> {
        self.encode_with(table, EncodeOptions::default())
    }

    /// The values of the variables for every row, with a choice of what happens to what does not fit.
    ///
    /// # Errors
    /// Names the first row, and its first column, that does not fit.
    pub fn encode_with(&self, table: &Table, options: EncodeOptions) -> Result<Encoded, DataError> {
        let columns: BTreeMap<&str, &Column> =
            table.columns().iter().map(|c| (c.name(), c)).collect();
        let mut sources = Vec::with_capacity(self.columns.len());
        for (n, schema) in self.columns.iter().enumerate() {
            let column = columns.get(schema.name.as_str()).copied();
            if column.is_none() && options.absent == Mismatch::Error {
                let hint = nearest(columns.keys().copied(), &schema.name);
                return Err(DataError::AbsentColumn { name: schema.name.clone(), hint });
            }
            sources.push(Source::new(schema, column, self.variables_of(n).len()));
        }
        let domains: Vec<Domain> = self.variables().iter().map(|v| v.domain).collect();
        let encode = |(n, source): (usize, Source<'_>)| {
            source.columns(&domains[self.variables_of(n)], table.num_rows(), options.unseen)
        };
        let encoded: Vec<_> = sources.into_par_iter().enumerate().map(encode).collect();
        let (mut columns, mut log_jacobian) = (Vec::new(), vec![0.0; table.num_rows()]);
        let mut first_error: Option<(usize, DataError)> = None;
        for result in encoded {
            match result {
                Ok((values, slopes)) => {
                    columns.extend(values);
                    log_jacobian.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope);
                }
                Err((row, error)) => {
                    if first_error.as_ref().is_none_or(|first| row < first.0) {
                        first_error = Some((row, error));
                    }
                }
            }
        }
        match first_error {
            Some((_, error)) => Err(error),
            None => {
                Ok(Encoded { batch: Batch::from_columns(columns, table.num_rows()), log_jacobian })
            }
        }
    }

    /// The values of a column's variables for every cell, row by row; NaN where a cell is missing or does not fit.
    pub(crate) fn encode_column(&self, column: usize, cells: &Column) -> Vec<f64> {
        let width = self.variables_of(column).len();
        let source = Source::new(&self.columns[column], Some(cells), width);
        let mut values = vec![f64::NAN; cells.len() * width];
        for (row, out) in values.chunks_exact_mut(width).enumerate() {
            if source.encode(row, out, Mismatch::Unknown).is_err() {
                out.fill(f64::NAN);
            }
        }
        values
    }

    /// The values of a column's variables for one cell, and ln F′.
    ///
    /// # Errors
    /// The cell does not fit the column.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn encode_value(
        &self,
        column: usize,
        cell: Cell<'_>,
    ) -> Result<(Vec<f64>, f64), DataError> {
        let mut values = vec![f64::NAN; self.variables_of(column).len()];
        let schema = &self.columns[column];
        match Rule::new(schema).encode(cell, &mut values) {
            Ok(slope) => Ok((values, slope)),
            Err(problem) => Err(problem.error(0, schema, cell)),
        }
    }
}

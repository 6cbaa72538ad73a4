//! Encoding of cells as values of variables.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::memo::{self, Memo};
use super::{Cell, ColumnSchema, Schema};
use crate::data::column::{Encoder, Outside, OutsideSet, Problem};
use crate::data::{Cells, Column, DataError, Labels, Table};
use crate::domain::Domain;
use crate::engine::{Batch, BatchColumn};
use crate::names::nearest;

/// How to treat columns that a table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mismatch {
    /// Reject the table.
    #[default]
    Error,
    /// Treat their cells as missing.
    Unknown,
}

/// How to treat labels that a column does not have, and numbers outside its range or between its grid points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Unseen {
    /// Score them with their own probability: see [`ColumnSchema::outside`]. In all other respects, a number between
    /// grid points counts as the nearest one.
    #[default]
    Score,
    /// Treat them as missing.
    Missing,
    /// Reject the table.
    Refuse,
}

/// How to encode a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EncodeOptions {
    /// How to treat cells outside the domain. Cells of a wrong type are always rejected.
    pub unseen: Unseen,
    /// How to treat columns that the table does not have.
    pub absent: Mismatch,
}

/// A table, encoded as values of variables.
#[derive(Clone, Debug)]
pub struct Encoded {
    batch: Batch,
    log_jacobian: Vec<f64>,
    /// Cells outside their column's domain, by row and column.
    outside: BTreeMap<(usize, usize), OutsideCell>,
}

/// A cell outside its column's domain.
#[derive(Clone, Debug)]
pub(crate) enum OutsideCell {
    /// A cell in one of these sets; its values are missing.
    Beyond(OutsideSet),
    /// A number between grid points; its values are those of the nearest one.
    Between,
}

impl Encoded {
    /// The values, column by column.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The values of one row; NaN if missing.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> Vec<f64> {
        self.batch.row(row)
    }

    /// The values, row by row; NaN if missing.
    pub fn to_rows(&self) -> Vec<f64> {
        self.batch.to_rows()
    }

    /// What to add to log p of each row's values to get log p in the units of the data: Σ ln F′(x) over its observed
    /// continuous cells, plus a term for each cell outside its column's domain.
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

    /// The row and column of every cell outside its column's domain: labels that were never seen, and numbers beyond
    /// the range or between grid points.
    pub fn outside(&self) -> impl ExactSizeIterator<Item = (usize, usize)> + '_ {
        self.outside.keys().copied()
    }

    /// The cell of a row and column, if it is outside the column's domain.
    pub(crate) fn outside_cell(&self, row: usize, column: usize) -> Option<&OutsideCell> {
        if self.outside.is_empty() { None } else { self.outside.get(&(row, column)) }
    }

    /// Selects rows, in this order.
    ///
    /// # Panics
    /// If a row does not exist.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let log_jacobian = rows.iter().map(|&row| self.log_jacobian[row]).collect();
        let outside = rows.iter().enumerate().flat_map(|(to, &from)| {
            let cells = self.outside.range((from, 0)..(from + 1, 0));
            cells.map(move |(&(_, column), cell)| ((to, column), cell.clone()))
        });
        Self { batch: self.batch.select(rows), log_jacobian, outside: outside.collect() }
    }
}

/// Encodes a column of a table according to a column of a schema.
struct ColumnEncoder<'a> {
    schema: &'a ColumnSchema,
    encoder: Encoder<'a>,
    /// `None` if the table does not have the column.
    column: Option<&'a Column>,
    /// The encoding of every label in the column's dictionary: its values, and ln F′.
    dictionary: Vec<(Vec<f64>, Result<f64, Problem>)>,
    /// The catch-all value for numbers, and how they share its probability.
    other: Option<(f64, Outside)>,
    /// The value for missing cells; `None` if they are unobserved.
    missing: Option<f64>,
}

impl<'a> ColumnEncoder<'a> {
    fn new(
        schema: &'a ColumnSchema,
        column: Option<&'a Column>,
        width: usize,
        missing_cells: MissingCells,
    ) -> Self {
        let encoder = schema.kind.coding().encoder(schema.storage);
        let dictionary = match column.map(Column::cells) {
            Some(Cells::Labels(c)) => {
                let encode = |label: &String| {
                    let mut values = vec![f64::NAN; width];
                    let slope = encoder(Cell::Text(label), &mut values);
                    (values, slope)
                };
                c.labels().par_iter().map(encode).collect()
            }
            Some(Cells::Numbers(_) | Cells::Integers(_)) | None => Vec::new(),
        };
        let coding = schema.kind.coding();
        let numbers = coding.spread(schema.storage).filter(|s| matches!(s, Outside::Numbers(_)));
        let other = coding.other().map(|n| n as f64).zip(numbers);
        let are_values =
            missing_cells == MissingCells::AsValues && !column.is_some_and(Column::is_unknown);
        let missing = coding.missing().filter(|_| are_values);
        Self { schema, encoder, column, dictionary, other, missing }
    }

    /// Encodes a missing cell.
    fn encode_missing(&self, out: &mut [f64]) -> Slope {
        if let Some(missing) = self.missing {
            out[0] = missing;
        }
        NO_CONTRIBUTION
    }

    /// Encodes the cell of one row into `out`, which contains NaN, and returns its contribution to log p.
    fn encode(&self, row: usize, out: &mut [f64], unseen: Unseen) -> Result<Slope, DataError> {
        let Some(column) = self.column else { return Ok(NO_CONTRIBUTION) };
        let (cell, result) = match column.cells() {
            Cells::Labels(c) if c.codes()[row] == Labels::MISSING => {
                return Ok(self.encode_missing(out));
            }
            Cells::Labels(c) => {
                let code = c.codes()[row] as usize;
                let (values, slope) = &self.dictionary[code];
                out.copy_from_slice(values);
                (Cell::Text(&c.labels()[code]), *slope)
            }
            Cells::Integers(c) => match c.get(row) {
                None => return Ok(self.encode_missing(out)),
                Some(x) => (Cell::Integer(x), (self.encoder)(Cell::Integer(x), out)),
            },
            Cells::Numbers(c) => match c.values()[row] {
                x if x.is_nan() => return Ok(self.encode_missing(out)),
                x => (Cell::Number(x), (self.encoder)(Cell::Number(x), out)),
            },
        };
        let problem = match result {
            Ok(log) => return Ok(Slope { log: log + self.log_share(cell, out), outside: None }),
            Err(problem) => problem,
        };
        if let (Problem::Between { slope, .. }, Unseen::Score) = (problem, unseen)
            && self.schema.outside > 0.0
        {
            let log = slope + self.schema.log_between();
            return Ok(Slope { log, outside: Some(OutsideCell::Between) });
        }
        out.fill(f64::NAN);
        let refused = || Err(problem.error(row + 1, self.schema, cell));
        match (problem, unseen) {
            (Problem::Between { .. }, Unseen::Score)
            | (Problem::Type(_), Unseen::Missing)
            | (_, Unseen::Refuse) => refused(),
            (_, Unseen::Missing) => Ok(NO_CONTRIBUTION),
            (_, Unseen::Score) => match self.schema.outside_cell(cell) {
                Some(set) => Ok(Slope {
                    log: self.schema.log_outside(&set),
                    outside: Some(OutsideCell::Beyond(set)),
                }),
                None => refused(),
            },
        }
    }
}

impl ColumnEncoder<'_> {
    /// The log of a number's share of the catch-all value; 0 if it has a value of its own.
    fn log_share(&self, cell: Cell<'_>, values: &[f64]) -> f64 {
        match &self.other {
            Some((other, spread)) if values[0] == *other => {
                spread.cell(cell).map_or(0.0, |set| spread.log_share(&set))
            }
            _ => 0.0,
        }
    }
}

/// The contribution of a cell to log p, and the cell if it is outside the domain.
struct Slope {
    log: f64,
    outside: Option<OutsideCell>,
}

const NO_CONTRIBUTION: Slope = Slope { log: 0.0, outside: None };

/// How to encode missing cells in columns in which missing is a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingCells {
    AsValues,
    Unobserved,
}

/// The columns of the variables, the contributions of the rows to log p, and the cells outside the domain with their
/// contributions.
struct EncodedColumn {
    values: Vec<BatchColumn>,
    slopes: Vec<(usize, f64)>,
    outside: Vec<(usize, f64, OutsideCell)>,
}

impl ColumnEncoder<'_> {
    /// Encodes all rows. An error comes with its row.
    fn columns(
        &self,
        domains: &[Domain],
        rows: usize,
        unseen: Unseen,
    ) -> Result<EncodedColumn, (usize, DataError)> {
        let mut outside = Vec::new();
        let Some(column) = self.column else {
            let values = domains.iter().map(|_| BatchColumn::missing(rows)).collect();
            return Ok(EncodedColumn { values, slopes: Vec::new(), outside });
        };
        let has_slopes = domains.iter().any(|domain| domain.num_values().is_none());
        if let Cells::Integers(cells) = column.cells()
            && let Some(bytes) = cells.bytes()
            && self.schema.kind.coding().are_values(bytes)
        {
            let values = vec![BatchColumn::of_bytes(Arc::clone(bytes))];
            return Ok(EncodedColumn { values, slopes: Vec::new(), outside });
        }
        let mut columns: Vec<BatchColumn> =
            domains.iter().map(|domain| BatchColumn::with_capacity(domain, rows)).collect();
        let mut slopes = Vec::new();
        let mut values = vec![f64::NAN; domains.len()];
        let mut memo = Memo::new(domains.len(), column);
        for row in 0..rows {
            let key = memo::key(column, row);
            let slope = if let Some(log) = key.and_then(|key| memo.get(key, &mut values)) {
                Slope { log, outside: None }
            } else {
                values.fill(f64::NAN);
                let slope = self.encode(row, &mut values, unseen).map_err(|error| (row, error))?;
                if let (Some(key), None) = (key, &slope.outside) {
                    memo.set(key, &values, slope.log);
                }
                slope
            };
            match slope.outside {
                Some(cell) => outside.push((row, slope.log, cell)),
                None if has_slopes || slope.log != 0.0 => slopes.push((row, slope.log)),
                None => {}
            }
            columns.iter_mut().zip(&values).for_each(|(column, &x)| column.push(x));
        }
        Ok(EncodedColumn { values: columns, slopes, outside })
    }
}

impl Schema {
    /// Encodes a table. Columns are matched by name; other columns of the table are ignored.
    ///
    /// # Errors
    /// A column is missing, or a cell does not match its column. [`Schema::encode_with`] can treat both as missing
    /// instead.
    pub fn encode(&self, table: &Table) -> Result<Encoded, DataError> {
        self.encode_with(table, EncodeOptions::default())
    }

    /// Encodes a table, with options for columns and cells that do not match.
    ///
    /// # Errors
    /// A cell does not match its column. The error names the first such row and column.
    pub fn encode_with(&self, table: &Table, options: EncodeOptions) -> Result<Encoded, DataError> {
        self.encode_table(table, options, MissingCells::AsValues)
    }

    /// Encodes a table whose missing cells are to be filled: they are unobserved even if missing is a value.
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    pub(crate) fn encode_open(&self, table: &Table) -> Result<Encoded, DataError> {
        self.encode_table(table, EncodeOptions::default(), MissingCells::Unobserved)
    }

    fn encode_table(
        &self,
        table: &Table,
        options: EncodeOptions,
        missing_cells: MissingCells,
    ) -> Result<Encoded, DataError> {
        let columns: BTreeMap<&str, &Column> =
            table.columns().iter().map(|c| (c.name(), c)).collect();
        let mut sources = Vec::with_capacity(self.columns.len());
        for (n, schema) in self.columns.iter().enumerate() {
            let column = columns.get(schema.name.as_str()).copied();
            if column.is_none() && options.absent == Mismatch::Error {
                let hint = nearest(columns.keys().copied(), &schema.name);
                return Err(DataError::AbsentColumn { name: schema.name.clone(), hint });
            }
            sources.push(ColumnEncoder::new(
                schema,
                column,
                self.variables_of(n).len(),
                missing_cells,
            ));
        }
        let domains: Vec<Domain> = self.variables().iter().map(|v| v.domain.clone()).collect();
        let encode = |(n, source): (usize, &ColumnEncoder<'_>)| {
            source.columns(&domains[self.variables_of(n)], table.num_rows(), options.unseen)
        };
        let encoded: Vec<_> = sources.par_iter().enumerate().map(encode).collect();
        let (mut columns, mut log_jacobian) = (Vec::new(), vec![0.0; table.num_rows()]);
        let mut outside = BTreeMap::new();
        let mut first_error: Option<(usize, DataError)> = None;
        for (n, result) in encoded.into_iter().enumerate() {
            match result {
                Ok(column) => {
                    columns.extend(column.values);
                    for (row, slope) in column.slopes {
                        log_jacobian[row] += slope;
                    }
                    for (row, slope, cell) in column.outside {
                        log_jacobian[row] += slope;
                        outside.insert((row, n), cell);
                    }
                }
                Err((row, error)) => {
                    if first_error.as_ref().is_none_or(|first| row < first.0) {
                        first_error = Some((row, error));
                    }
                }
            }
        }
        if let Some((_, error)) = first_error {
            return Err(error);
        }
        let batch = Batch::from_columns(columns, table.num_rows());
        Ok(Encoded { batch, log_jacobian, outside })
    }

    /// The values of a column's variables for every cell, row by row; NaN if a cell is missing or does not match.
    pub(crate) fn encode_column(&self, column: usize, cells: &Column) -> Vec<f64> {
        let width = self.variables_of(column).len();
        let source =
            ColumnEncoder::new(&self.columns[column], Some(cells), width, MissingCells::Unobserved);
        let mut values = vec![f64::NAN; cells.len() * width];
        for (row, out) in values.chunks_exact_mut(width).enumerate() {
            if source.encode(row, out, Unseen::Missing).is_err() {
                out.fill(f64::NAN);
            }
        }
        values
    }

    /// Encodes one cell: the values of its column's variables, and ln F′.
    ///
    /// # Errors
    /// The cell does not match the column.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn encode_value(
        &self,
        column: usize,
        cell: Cell<'_>,
    ) -> Result<(Vec<f64>, f64), DataError> {
        let (values, slope) = self.encode_cell(column, cell);
        match slope {
            Ok(slope) => Ok((values, slope)),
            Err(problem) => Err(problem.error(0, &self.columns[column], cell)),
        }
    }

    /// [`encode_value`](Self::encode_value), with a number between grid points encoded as the nearest one.
    ///
    /// # Errors
    /// The cell does not match the column.
    pub(crate) fn encode_nearest(
        &self,
        column: usize,
        cell: Cell<'_>,
    ) -> Result<(Vec<f64>, f64), DataError> {
        let (values, slope) = self.encode_cell(column, cell);
        match slope {
            Ok(slope) | Err(Problem::Between { slope, .. }) => Ok((values, slope)),
            Err(problem) => Err(problem.error(0, &self.columns[column], cell)),
        }
    }

    fn encode_cell(&self, column: usize, cell: Cell<'_>) -> (Vec<f64>, Result<f64, Problem>) {
        let mut values = vec![f64::NAN; self.variables_of(column).len()];
        let schema = &self.columns[column];
        let slope = schema.kind.coding().encoder(schema.storage)(cell, &mut values);
        (values, slope)
    }
}

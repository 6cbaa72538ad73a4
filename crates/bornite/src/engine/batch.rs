//! A batch of rows, column by column, with the evidence about every variable.

mod bytes;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::algebra::Kind;
use crate::basis::Part;
use crate::domain::{Domain, Variable};
use crate::query::{Evidence, Query, QueryError};

/// The number of rows that are transposed at once.
const TRANSPOSED_ROWS: usize = 64;

/// The evidence about every cell of a table: a value, nothing, a set or an interval.
///
/// The values of a variable are contiguous. Those of a finite variable are codes of one, two or
/// four bytes, so a byte of an image stays a byte; all others are `f64`.
///
/// ```
/// use bornite::{Domain, Variable, engine::Batch};
///
/// let variables = [Variable::new("x", Domain::Finite(3)), Variable::new("y", Domain::Real)];
/// // Two rows; NaN is a missing value.
/// let batch = Batch::from_rows(&variables, &[2.0, 0.5, f64::NAN, 1.5])?;
/// assert_eq!(batch.len(), 2);
/// # Ok::<(), bornite::engine::RowError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Batch {
    columns: Vec<BatchColumn>,
    len: usize,
}

/// The values of one variable, and the parts of its domain that cells without a value are
/// restricted to.
#[derive(Clone, Debug)]
pub(crate) struct BatchColumn {
    values: Values,
    num_missing: usize,
    /// Sorted by row.
    parts: Vec<(usize, Part)>,
}

#[derive(Clone, Debug)]
enum Values {
    U8(Codes<u8>),
    U16(Codes<u16>),
    U32(Codes<u32>),
    /// NaN if the value is missing.
    Real(Vec<f64>),
    /// This many missing values.
    Missing(usize),
}

/// Values of a finite variable.
#[derive(Clone, Debug)]
struct Codes<T> {
    /// 0 if the value is missing. Shared with the table if its bytes are already codes.
    codes: Arc<Vec<T>>,
    /// One bit for each row, up to the last one without a value.
    missing: Vec<u64>,
}

/// A cell that does not match its variable.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RowError {
    /// A value outside the domain of its variable.
    #[error("row {row}: {source}")]
    Cell {
        /// The row, counted from 0.
        row: usize,
        /// The underlying error.
        source: QueryError,
    },
    /// A number of values that does not divide into rows.
    #[error("{found} values do not divide into rows of {columns} variables")]
    Shape {
        /// The number of values.
        found: usize,
        /// The number of variables.
        columns: usize,
    },
}

impl<T: Copy + Default + TryFrom<usize>> Codes<T> {
    fn with_capacity(capacity: usize) -> Self {
        Self { codes: Arc::new(Vec::with_capacity(capacity)), missing: Vec::new() }
    }

    fn push(&mut self, code: Option<usize>) {
        let row = self.codes.len();
        if code.is_none() {
            self.missing.resize(row / 64 + 1, 0);
            self.missing[row / 64] |= 1 << (row % 64);
        }
        let code = T::try_from(code.unwrap_or(0)).unwrap_or_default();
        Arc::make_mut(&mut self.codes).push(code);
    }
}

impl<T: Copy> Codes<T>
where
    f64: From<T>,
{
    fn is_missing(&self, row: usize) -> bool {
        self.missing.get(row / 64).is_some_and(|bits| bits >> (row % 64) & 1 == 1)
    }

    fn get(&self, row: usize) -> f64 {
        if self.is_missing(row) { f64::NAN } else { f64::from(self.codes[row]) }
    }

    fn read(&self, rows: impl Iterator<Item = usize>, out: &mut [f64]) {
        if self.missing.is_empty() {
            out.iter_mut().zip(rows).for_each(|(out, row)| *out = f64::from(self.codes[row]));
        } else {
            out.iter_mut().zip(rows).for_each(|(out, row)| *out = self.get(row));
        }
    }
}

impl BatchColumn {
    /// An empty column for a variable with this domain, with room for `capacity` rows.
    pub(crate) fn with_capacity(domain: &Domain, capacity: usize) -> Self {
        let values = match domain.num_values() {
            Some(0..=0x100) => Values::U8(Codes::with_capacity(capacity)),
            Some(0x101..=0x1_0000) => Values::U16(Codes::with_capacity(capacity)),
            Some(_) => Values::U32(Codes::with_capacity(capacity)),
            None => Values::Real(Vec::with_capacity(capacity)),
        };
        Self { values, num_missing: 0, parts: Vec::new() }
    }

    /// The codes of a variable with at most 256 values, none of which is missing.
    pub(crate) fn of_bytes(codes: Arc<Vec<u8>>) -> Self {
        let values = Values::U8(Codes { codes, missing: Vec::new() });
        Self { values, num_missing: 0, parts: Vec::new() }
    }

    /// A column of `len` missing values.
    pub(crate) fn missing(len: usize) -> Self {
        Self { values: Values::Missing(len), num_missing: len, parts: Vec::new() }
    }

    /// Appends a value of the domain, or NaN for a missing value.
    pub(crate) fn push(&mut self, x: f64) {
        self.num_missing += usize::from(x.is_nan());
        let code = (!x.is_nan()).then_some(x as usize);
        match &mut self.values {
            Values::U8(codes) => codes.push(code),
            Values::U16(codes) => codes.push(code),
            Values::U32(codes) => codes.push(code),
            Values::Real(values) => values.push(x),
            Values::Missing(len) => *len += 1,
        }
    }

    fn push_part(&mut self, part: Part) {
        self.parts.push((self.len(), part));
        self.push(f64::NAN);
    }

    fn len(&self) -> usize {
        match &self.values {
            Values::U8(codes) => codes.codes.len(),
            Values::U16(codes) => codes.codes.len(),
            Values::U32(codes) => codes.codes.len(),
            Values::Real(values) => values.len(),
            Values::Missing(len) => *len,
        }
    }

    fn get(&self, row: usize) -> f64 {
        match &self.values {
            Values::U8(codes) => codes.get(row),
            Values::U16(codes) => codes.get(row),
            Values::U32(codes) => codes.get(row),
            Values::Real(values) => values[row],
            Values::Missing(_) => f64::NAN,
        }
    }

    fn is_missing(&self, row: usize) -> bool {
        self.num_missing > 0
            && match &self.values {
                Values::U8(codes) => codes.is_missing(row),
                Values::U16(codes) => codes.is_missing(row),
                Values::U32(codes) => codes.is_missing(row),
                Values::Real(values) => values[row].is_nan(),
                Values::Missing(_) => true,
            }
    }

    fn part(&self, row: usize) -> Option<&Part> {
        if self.parts.is_empty() {
            return None;
        }
        let at = self.parts.binary_search_by_key(&row, |part| part.0).ok()?;
        Some(&self.parts[at].1)
    }

    fn read(&self, rows: impl Iterator<Item = usize>, out: &mut [f64]) {
        match &self.values {
            Values::U8(codes) => codes.read(rows, out),
            Values::U16(codes) => codes.read(rows, out),
            Values::U32(codes) => codes.read(rows, out),
            Values::Real(values) => {
                out.iter_mut().zip(rows).for_each(|(out, row)| *out = values[row]);
            }
            Values::Missing(_) => out.fill(f64::NAN),
        }
    }

    fn select(&self, rows: &[usize]) -> Self {
        let values = match &self.values {
            Values::U8(codes) if self.num_missing == 0 => {
                let codes = rows.iter().map(|&row| codes.codes[row]).collect();
                return Self::of_bytes(Arc::new(codes));
            }
            Values::U8(_) => Values::U8(Codes::with_capacity(rows.len())),
            Values::U16(_) => Values::U16(Codes::with_capacity(rows.len())),
            Values::U32(_) => Values::U32(Codes::with_capacity(rows.len())),
            Values::Real(_) => Values::Real(Vec::with_capacity(rows.len())),
            Values::Missing(_) => return Self::missing(rows.len()),
        };
        let mut column = Self { values, num_missing: 0, parts: Vec::new() };
        for &row in rows {
            match self.part(row) {
                Some(part) => column.push_part(part.clone()),
                None => column.push(self.get(row)),
            }
        }
        column
    }
}

/// Checks that row-major values form complete rows, and that each is NaN or in its variable's
/// domain.
pub(crate) fn check_rows(variables: &[Variable], values: &[f64]) -> Result<(), RowError> {
    let columns = variables.len();
    if columns == 0 || !values.len().is_multiple_of(columns) {
        return Err(RowError::Shape { found: values.len(), columns });
    }
    for (row, cells) in values.chunks_exact(columns).enumerate() {
        for (variable, &value) in variables.iter().zip(cells) {
            if !value.is_nan() && !variable.domain.contains(value) {
                let (variable, domain) = (variable.name.clone(), variable.domain.clone());
                let source = QueryError::OutOfDomain { variable, value, domain };
                return Err(RowError::Cell { row, source });
            }
        }
    }
    Ok(())
}

impl Batch {
    /// A batch with these values, row by row. NaN is a missing value.
    ///
    /// # Errors
    /// A value is not in its variable's domain, or the values do not divide into rows.
    pub fn from_rows(variables: &[Variable], values: &[f64]) -> Result<Self, RowError> {
        check_rows(variables, values)?;
        let (d, len) = (variables.len(), values.len() / variables.len());
        let empty = |variable: &Variable| BatchColumn::with_capacity(&variable.domain, len);
        let mut columns: Vec<BatchColumn> = variables.iter().map(empty).collect();
        // A few rows at a time, so that they stay in the cache while they are read column by
        // column.
        for rows in values.chunks(TRANSPOSED_ROWS * d) {
            for (n, column) in columns.iter_mut().enumerate() {
                rows.iter().skip(n).step_by(d).for_each(|&x| column.push(x));
            }
        }
        Ok(Self { columns, len })
    }

    /// A batch with one row per query.
    ///
    /// # Errors
    /// A query was created for different variables.
    pub fn from_queries(variables: &[Variable], queries: &[Query]) -> Result<Self, RowError> {
        for (row, query) in queries.iter().enumerate() {
            query.check(variables).map_err(|source| RowError::Cell { row, source })?;
        }
        let column = |(n, variable): (usize, &Variable)| {
            let mut column = BatchColumn::with_capacity(&variable.domain, queries.len());
            for query in queries {
                match &query.evidence()[n] {
                    Evidence::Value(x) => column.push(*x),
                    Evidence::Unknown => column.push(f64::NAN),
                    Evidence::In(part) => column.push_part(part.clone()),
                }
            }
            column
        };
        Ok(Self { columns: variables.iter().enumerate().map(column).collect(), len: queries.len() })
    }

    /// `count` rows without evidence.
    pub fn unknown(num_variables: usize, count: usize) -> Self {
        Self { columns: vec![BatchColumn::missing(count); num_variables], len: count }
    }

    /// A batch with these columns, each with `len` values.
    pub(crate) fn from_columns(columns: Vec<BatchColumn>, len: usize) -> Self {
        debug_assert!(columns.iter().all(|column| column.len() == len));
        Self { columns, len }
    }

    /// The given rows, in this order.
    ///
    /// # Panics
    /// If a row does not exist.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self { columns: self.columns.par_iter().map(|c| c.select(rows)).collect(), len: rows.len() }
    }

    /// Replaces the evidence about a variable with this domain in the rows for which `evidence`
    /// returns any.
    pub(crate) fn set_column(
        &mut self,
        variable: usize,
        domain: &Domain,
        evidence: impl Fn(usize) -> Option<Evidence>,
    ) {
        let old = &self.columns[variable];
        let mut column = BatchColumn::with_capacity(domain, self.len);
        for row in 0..self.len {
            match (evidence(row), old.part(row)) {
                (Some(Evidence::Value(x)), _) => column.push(x),
                (Some(Evidence::Unknown), _) => column.push(f64::NAN),
                (Some(Evidence::In(part)), _) => column.push_part(part),
                (None, Some(part)) => column.push_part(part.clone()),
                (None, None) => column.push(old.get(row)),
            }
        }
        self.columns[variable] = column;
    }

    /// A copy of the rows without any evidence about these variables.
    pub(crate) fn without(&self, variables: &[usize]) -> Self {
        let mut rest = self.clone();
        for &variable in variables {
            rest.columns[variable] = BatchColumn::missing(self.len);
        }
        rest
    }

    /// The evidence about a cell.
    pub(crate) fn evidence(&self, row: usize, variable: usize) -> Evidence {
        match self.part(row, variable) {
            Some(part) => Evidence::In(part.clone()),
            None if self.is_missing(row, variable) => Evidence::Unknown,
            None => Evidence::Value(self.value(row, variable)),
        }
    }

    /// The given rows with their values moved between variables: variable v of the nth row gets the
    /// value of variable `from(n, v)`, which must have the same domain.
    pub(crate) fn moved(
        &self,
        rows: &[usize],
        from: impl Fn(usize, usize) -> usize + Sync,
    ) -> Self {
        let column = |v: usize| {
            let mut column = self.columns[v].select(&[]);
            for (n, &row) in rows.iter().enumerate() {
                column.push(self.columns[from(n, v)].get(row));
            }
            column
        };
        let columns = (0..self.columns.len()).into_par_iter().map(column).collect();
        Self { columns, len: rows.len() }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of variables.
    pub fn num_variables(&self) -> usize {
        self.columns.len()
    }

    /// The value of a cell; NaN if it is missing.
    ///
    /// # Panics
    /// If the cell does not exist.
    pub fn value(&self, row: usize, variable: usize) -> f64 {
        self.columns[variable].get(row)
    }

    /// The values of one row; NaN for missing values.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn row(&self, row: usize) -> Vec<f64> {
        self.columns.iter().map(|column| column.get(row)).collect()
    }

    /// The values of all cells, row by row; NaN for missing values.
    pub fn to_rows(&self) -> Vec<f64> {
        (0..self.len).flat_map(|row| self.columns.iter().map(move |c| c.get(row))).collect()
    }

    /// The number of cells without a value.
    pub fn num_missing(&self) -> usize {
        self.columns.iter().map(|column| column.num_missing).sum()
    }

    /// Whether any cell has no value.
    pub(crate) fn has_missing(&self) -> bool {
        self.num_missing() > 0
    }

    /// Whether a cell has no value.
    pub(crate) fn is_missing(&self, row: usize, variable: usize) -> bool {
        self.columns[variable].is_missing(row)
    }

    /// The first variable of a row that has no value.
    pub(crate) fn first_missing(&self, row: usize) -> Option<usize> {
        self.columns.iter().position(|column| column.is_missing(row))
    }

    /// The kind of message that a cell gives.
    pub(crate) fn kind(&self, row: usize, variable: usize) -> Kind {
        if !self.is_missing(row, variable) {
            Kind::Pure
        } else if self.part(row, variable).is_some() {
            Kind::Mixed
        } else {
            Kind::Identity
        }
    }

    /// The part of the domain that a cell without a value is restricted to.
    pub(crate) fn part(&self, row: usize, variable: usize) -> Option<&Part> {
        self.columns[variable].part(row)
    }

    /// Writes the values of a variable in a range of rows; NaN for missing values.
    pub(crate) fn read(&self, variable: usize, rows: Range<usize>, out: &mut [f64]) {
        self.columns[variable].read(rows, out);
    }

    /// Writes the values of a variable in the given rows, in any order; NaN for missing values.
    pub(crate) fn gather(&self, variable: usize, rows: &[usize], out: &mut [f64]) {
        self.columns[variable].read(rows.iter().copied(), out);
    }

    /// The values of a variable that are not missing, in the order of the rows.
    pub(crate) fn known(&self, variable: usize) -> impl Iterator<Item = f64> + '_ {
        let column = &self.columns[variable];
        (0..self.len).map(|row| column.get(row)).filter(|x| !x.is_nan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_width_come_back() {
        let domains = [
            Domain::Finite(256),
            Domain::Finite(257),
            Domain::Finite(65_536),
            Domain::Finite(65_537),
            Domain::Real,
        ];
        let variables: Vec<Variable> = domains
            .iter()
            .enumerate()
            .map(|(n, d)| Variable::new(format!("v{n}"), d.clone()))
            .collect();
        let largest = [255.0, 256.0, 65_535.0, 65_536.0, 1e300];
        let mut values = Vec::new();
        for row in 0..130 {
            for (n, &x) in largest.iter().enumerate() {
                values.push(match (row * 5 + n) % 7 {
                    0 => f64::NAN,
                    1 => 0.0,
                    _ => x,
                });
            }
        }
        let batch = Batch::from_rows(&variables, &values).unwrap();
        let same = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
        };
        assert!(same(&batch.to_rows(), &values));
        assert_eq!(batch.num_missing(), values.iter().filter(|x| x.is_nan()).count());
        let rows = [129, 0, 64, 64, 7];
        let some = batch.select(&rows);
        for (n, &row) in rows.iter().enumerate() {
            assert!(same(&some.row(n), &values[row * 5..(row + 1) * 5]));
            let first = values[row * 5..(row + 1) * 5].iter().position(|x| x.is_nan());
            assert_eq!(batch.first_missing(row), first);
        }
        for variable in 0..5 {
            let mut out = [0.0; 5];
            batch.gather(variable, &rows, &mut out);
            assert!((0..5).all(|n| same(&out[n..=n], &[some.value(n, variable)])));
        }
        assert!(matches!(batch.columns[0].values, Values::U8(_)));
        assert!(matches!(batch.columns[2].values, Values::U16(_)));
        assert!(matches!(batch.columns[3].values, Values::U32(_)));
    }

    #[test]
    fn parts_stay_with_their_rows() {
        let variables = [Variable::new("x", Domain::Finite(3)), Variable::new("y", Domain::Real)];
        let mut queries = vec![Query::unknown(2); 4];
        queries[1].set(&variables, 0, Evidence::In(Part::Values(vec![0, 2]))).unwrap();
        queries[2].set(&variables, 0, Evidence::Value(1.0)).unwrap();
        queries[3]
            .set(&variables, 1, Evidence::In(Part::Interval { low: 0.0, high: 1.0 }))
            .unwrap();
        let batch = Batch::from_queries(&variables, &queries).unwrap();
        let parts = |batch: &Batch| -> Vec<(usize, usize)> {
            let cells = (0..batch.len()).flat_map(|row| [(row, 0), (row, 1)]);
            cells.filter(|&(row, v)| batch.part(row, v).is_some()).collect()
        };
        assert_eq!(parts(&batch), [(1, 0), (3, 1)]);
        assert_eq!(parts(&batch.select(&[3, 2, 1])), [(0, 1), (2, 0)]);
    }
}

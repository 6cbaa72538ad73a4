//! A batch of rows: what is known of every variable, row by row.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::basis::Part;
use crate::domain::Variable;
use crate::query::{Evidence, Query, QueryError};

/// What is known of every cell of a table: a value, nothing, or that it lies in a set or interval.
///
/// ```
/// use bornite::{Domain, Variable, engine::Rows};
///
/// let variables = [Variable::new("x", Domain::Finite(3)), Variable::new("y", Domain::Real)];
/// // Two rows; NaN is an unknown cell.
/// let rows = Rows::new(&variables, &[2.0, 0.5, f64::NAN, 1.5])?;
/// assert_eq!(rows.len(), 2);
/// # Ok::<(), bornite::engine::RowError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<'a> {
    values: Cow<'a, [f64]>,
    num_variables: usize,
    /// Cells known to lie in a part of their domain, by variable and row; their values are NaN.
    parts: BTreeMap<(usize, usize), Part>,
}

/// A cell that does not fit its variable.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RowError {
    /// A cell that cannot be.
    #[error("row {row}: {source}")]
    Cell {
        /// The row, counted from 0.
        row: usize,
        /// What is wrong with it.
        source: QueryError,
    },
    /// Values that are no whole number of rows.
    #[error("{found} values are no whole number of rows of {columns} variables")]
    Shape {
        /// The number of values.
        found: usize,
        /// The number of variables.
        columns: usize,
    },
}

impl<'a> Rows<'a> {
    /// The rows with these values, row after row; NaN is unknown.
    ///
    /// # Errors
    /// A value that is not in its variable's domain, by row and name.
    pub fn new(variables: &[Variable], values: &'a [f64]) -> Result<Self, RowError> {
        let columns = variables.len();
        if columns == 0 || !values.len().is_multiple_of(columns) {
            return Err(RowError::Shape { found: values.len(), columns });
        }
        for (row, cells) in values.chunks_exact(columns).enumerate() {
            for (variable, &value) in variables.iter().zip(cells) {
                if !value.is_nan() && !variable.domain.contains(value) {
                    let (variable, domain) = (variable.name.clone(), variable.domain);
                    let source = QueryError::OutOfDomain { variable, value, domain };
                    return Err(RowError::Cell { row, source });
                }
            }
        }
        Ok(Self { values: Cow::Borrowed(values), num_variables: columns, parts: BTreeMap::new() })
    }

    /// One row per query.
    ///
    /// # Errors
    /// A query that was made for other variables.
    pub fn from_queries(
        variables: &[Variable],
        queries: &[Query],
    ) -> Result<Rows<'static>, RowError> {
        let mut values = Vec::with_capacity(queries.len() * variables.len());
        let mut parts = BTreeMap::new();
        for (row, query) in queries.iter().enumerate() {
            query.check(variables).map_err(|source| RowError::Cell { row, source })?;
            for (variable, evidence) in query.evidence().iter().enumerate() {
                values.push(match evidence {
                    Evidence::Value(x) => *x,
                    Evidence::Unknown => f64::NAN,
                    Evidence::In(part) => {
                        parts.insert((variable, row), part.clone());
                        f64::NAN
                    }
                });
            }
        }
        Ok(Rows { values: Cow::Owned(values), num_variables: variables.len(), parts })
    }

    /// `count` rows of which nothing is known.
    pub fn unknown(num_variables: usize, count: usize) -> Rows<'static> {
        let values = Cow::Owned(vec![f64::NAN; num_variables * count]);
        Rows { values, num_variables, parts: BTreeMap::new() }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.num_variables.max(1)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The number of variables.
    pub fn num_variables(&self) -> usize {
        self.num_variables
    }

    /// The value of a cell; NaN where there is none.
    pub(crate) fn value(&self, row: usize, variable: usize) -> f64 {
        self.values[row * self.num_variables + variable]
    }

    /// The part of its domain that a cell without a value is known to lie in.
    pub(crate) fn part(&self, row: usize, variable: usize) -> Option<&Part> {
        if self.parts.is_empty() { None } else { self.parts.get(&(variable, row)) }
    }

    /// Whether there is a cell without a value.
    pub(crate) fn has_holes(&self) -> bool {
        self.values.iter().any(|x| x.is_nan())
    }

    /// The values of all cells, row after row; NaN where there is none.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// The cells of one row.
    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.num_variables..(row + 1) * self.num_variables]
    }
}

//! Schemas: the meaning of a table's columns, and the variables that encode them.

mod decode;
mod encode;
mod evidence;
mod findings;
mod infer;
mod memo;

use std::collections::BTreeSet;
use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::column::{BETWEEN, Cell, ColumnKind, OTHER, Optional, Outside, OutsideSet, Problem};
use super::table::check_names;
use super::{Cells, Column, DataError, NumberFormat};
use crate::basis::{Basis, BasisError};
use crate::domain::Variable;
use crate::names::nearest;
use crate::query::Evidence;

pub(crate) use encode::OutsideCell;
pub use encode::{EncodeOptions, Encoded, Mismatch, Unseen};
pub use evidence::Block;
pub use findings::{Finding, Findings, LeftOut};

/// Defines what each column of a table means and how its cells become values of variables.
///
/// | cells | kind | variables |
/// |---|---|---|
/// | text, or a few distinct numbers | [`Categorical`](ColumnKind::Categorical) | one finite |
/// | two labels such as `no` and `yes` | [`Boolean`](ColumnKind::Boolean) | one finite |
/// | whole numbers of a small range | [`Integer`](ColumnKind::Integer) | one finite |
/// | whole numbers of a wide range, and real ones | [`Number`](ColumnKind::Number) | one on [0, 1] with atoms |
/// | whole numbers, when declared or beyond 2⁵³ | [`Digits`](ColumnKind::Digits) | one finite per digit |
/// | real numbers, when declared | [`Continuous`](ColumnKind::Continuous) | one on [0, 1] |
/// | angles and the like, when declared | [`Periodic`](ColumnKind::Periodic) | one on the circle |
/// | text that is a date or time | [`DateTime`](ColumnKind::DateTime) | one finite per part |
/// | one of these, or missing, on request | [`Optional`](ColumnKind::Optional) | the same, with a value for missing cells |
///
/// A missing cell is unobserved, and encoded as NaN, unless missing is a value of its column. A schema can be
/// serialized to JSON with serde, and is validated when it is read.
///
/// ```
/// use bornite::data::{CsvOptions, InferOptions, Schema, Table};
///
/// let text = b"city,age\nBonn,30\nEssen,41\nBonn,\n";
/// let table = Table::from_csv_bytes(text, "people.csv", &CsvOptions::default())?;
/// let schema = Schema::infer(&table, &InferOptions::default())?;
/// let encoded = schema.encode(&table)?;
/// assert_eq!(encoded.row(1), [1.0, 11.0]);
/// assert!(encoded.row(2)[1].is_nan());
/// assert_eq!(schema.decode(&encoded.to_rows())?.to_csv(), text);
/// # Ok::<(), bornite::data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Schema {
    columns: Vec<ColumnSchema>,
    image: Option<[usize; 3]>,
    /// The index of each column's first variable, and the total number of variables.
    starts: Vec<usize>,
}

/// The serialized form of a schema.
#[derive(Serialize, Deserialize)]
struct Parts {
    columns: Vec<ColumnSchema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<[usize; 3]>,
}

impl From<Schema> for Parts {
    fn from(schema: Schema) -> Self {
        Self { columns: schema.columns, image: schema.image }
    }
}

impl TryFrom<Parts> for Schema {
    type Error = DataError;

    fn try_from(parts: Parts) -> Result<Self, DataError> {
        let schema = Self::new(parts.columns)?;
        match parts.image {
            Some(shape) => schema.with_image(shape),
            None => Ok(schema),
        }
    }
}

/// A column: its name, its kind, and the type of its cells in a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredColumn", into = "StoredColumn")]
pub struct ColumnSchema {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: ColumnKind,
    /// The type of decoded cells.
    pub storage: Storage,
    /// The expected fraction of cells outside the domain: labels that were never seen, numbers beyond the range, and, a
    /// tenth of the total, numbers between grid points.
    pub outside: f64,
}

/// The serialized form of a column.
#[derive(Serialize, Deserialize)]
struct StoredColumn {
    name: String,
    #[serde(flatten)]
    kind: ColumnKind,
    storage: Storage,
    #[serde(default, skip_serializing_if = "is_zero")]
    outside: f64,
    /// Whether missing is a value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    missing: bool,
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl From<ColumnSchema> for StoredColumn {
    fn from(column: ColumnSchema) -> Self {
        let ColumnSchema { name, kind, storage, outside } = column;
        let missing = kind.coding().missing().is_some();
        Self { name, kind: kind.of_known().clone(), storage, outside, missing }
    }
}

impl TryFrom<StoredColumn> for ColumnSchema {
    type Error = DataError;

    fn try_from(stored: StoredColumn) -> Result<Self, DataError> {
        let StoredColumn { name, kind, storage, outside, missing } = stored;
        let column = Self { name, kind, storage, outside };
        if missing { column.with_missing() } else { Ok(column) }
    }
}

impl ColumnSchema {
    /// Makes missing a value of the column.
    ///
    /// # Errors
    /// The kind cannot have such a value, or already has one.
    pub fn with_missing(self) -> Result<Self, DataError> {
        match Optional::new(self.kind) {
            Ok(kind) => Ok(Self { kind: kind.into(), ..self }),
            Err(problem) => Err(DataError::Schema { column: self.name, problem }),
        }
    }

    /// The cell as a set of cells outside the domain, if such cells have a probability.
    pub(crate) fn outside_cell(&self, cell: Cell<'_>) -> Option<OutsideSet> {
        let coding = self.kind.coding();
        let set = coding.outside_cell(self.storage, cell).filter(|_| self.outside > 0.0)?;
        (self.log_outside(&set) > f64::NEG_INFINITY).then_some(set)
    }

    /// Whether the cell is a number outside the domain.
    pub(crate) fn is_outside(&self, cell: Cell<'_>) -> bool {
        let coding = self.kind.coding();
        if !matches!(coding.spread(self.storage), Some(Outside::Numbers(_))) {
            return false;
        }
        let mut values = vec![f64::NAN; coding.domains().len()];
        match coding.encoder(self.storage)(cell, &mut values) {
            Err(Problem::OutOfRange { .. } | Problem::Beyond(_) | Problem::Between { .. }) => true,
            Err(Problem::Unseen) => cell.number().is_some(),
            Err(Problem::Type(_)) | Ok(_) => false,
        }
    }

    /// The log ratio of the probability of this set outside the domain to that of all cells inside. Log densities are
    /// relative to rows whose cells are all inside.
    pub(crate) fn log_outside(&self, set: &OutsideSet) -> f64 {
        let outside = self.kind.coding().outside(self.storage);
        outside.map_or(f64::NEG_INFINITY, |o| self.log_odds() + o.log_share(set))
    }

    /// The log ratio of the probability of numbers between grid points to that of numbers on the grid.
    pub(crate) fn log_between(&self) -> f64 {
        self.log_odds() + BETWEEN.ln()
    }

    fn log_odds(&self) -> f64 {
        self.outside.ln() - (-self.outside).ln_1p()
    }
}

/// The type of decoded cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// Real numbers, written in this format.
    Numbers(NumberFormat),
    /// Whole numbers.
    Integers,
    /// Text.
    Labels,
}

impl Storage {
    /// The first version of model files that can store it.
    pub(crate) fn format_version(self) -> u32 {
        match self {
            Self::Numbers(format) if format.is_grouped() => 7,
            Self::Numbers(format) if format.has_comma() => 6,
            Self::Numbers(_) | Self::Integers | Self::Labels => 1,
        }
    }

    /// The type of a column's cells.
    pub(crate) fn of(column: &Column) -> Self {
        match column.cells() {
            Cells::Numbers(c) => Self::Numbers(c.format()),
            Cells::Integers(_) => Self::Integers,
            Cells::Labels(_) => Self::Labels,
        }
    }

    /// The reason why a numeric kind cannot have this type, if there is one.
    pub(crate) fn problem_of_numbers(self) -> Option<&'static str> {
        (self == Self::Labels).then_some("its cells are text, but its kind is for numbers")
    }
}

impl Schema {
    /// A schema with these columns.
    ///
    /// # Errors
    /// There are no columns, two have the same name, or a column is inconsistent.
    pub fn new(columns: Vec<ColumnSchema>) -> Result<Self, DataError> {
        if columns.is_empty() {
            return Err(DataError::NoColumns);
        }
        check_names(columns.iter().map(|c| c.name.as_str()), "the schema")?;
        for c in &columns {
            if !(0.0..1.0).contains(&c.outside) {
                let problem = "its fraction of cells outside the domain is not in [0, 1)";
                return Err(DataError::Schema { column: c.name.clone(), problem });
            }
            if let Some(problem) = c.kind.coding().problem(c.storage) {
                return Err(DataError::Schema { column: c.name.clone(), problem });
            }
        }
        let mut starts = vec![0];
        for c in &columns {
            starts.push(starts[starts.len() - 1] + c.kind.coding().domains().len());
        }
        let schema = Self { columns, image: None, starts };
        check_names(schema.variables().iter().map(|v| v.name.as_str()), "the schema, in digits,")?;
        Ok(schema)
    }

    /// Declares that the rows are images with this height, width and number of channels.
    ///
    /// # Errors
    /// The number of columns does not match.
    pub fn with_image(mut self, shape: [usize; 3]) -> Result<Self, DataError> {
        let [height, width, channels] = shape;
        let columns = self.columns.len();
        if shape.iter().try_fold(1_usize, |n, &s| n.checked_mul(s)) != Some(columns) {
            return Err(DataError::ImageShape { height, width, channels, columns });
        }
        self.image = Some(shape);
        Ok(self)
    }

    /// The columns.
    pub fn columns(&self) -> &[ColumnSchema] {
        &self.columns
    }

    /// The schema without these columns. It is then no longer one of images.
    ///
    /// # Errors
    /// No column is left.
    pub fn without(&self, columns: &[&str]) -> Result<Self, DataError> {
        let columns: BTreeSet<&str> = columns.iter().copied().collect();
        let is_kept = |c: &&ColumnSchema| !columns.contains(c.name.as_str());
        Self::new(self.columns.iter().filter(is_kept).cloned().collect())
    }

    /// The height, width and number of channels, if the rows are images.
    pub fn image(&self) -> Option<[usize; 3]> {
        self.image
    }

    /// The position of a column.
    ///
    /// # Errors
    /// There is no such column; the error suggests the nearest name.
    pub fn find(&self, name: &str) -> Result<usize, DataError> {
        self.columns.iter().position(|c| c.name == name).ok_or_else(|| DataError::UnknownColumn {
            name: name.to_owned(),
            hint: nearest(self.columns.iter().map(|c| c.name.as_str()), name),
        })
    }

    /// The number of variables.
    pub fn num_variables(&self) -> usize {
        self.starts[self.columns.len()]
    }

    /// The positions of a column's variables.
    pub fn variables_of(&self, column: usize) -> Range<usize> {
        self.starts[column]..self.starts[column + 1]
    }

    /// The evidence about a column's first variable if a cell is not missing; `None` if there is none.
    pub(crate) fn present(&self, column: usize) -> Option<Evidence> {
        self.columns[column].kind.coding().present()
    }

    /// The variables of all columns, in order. Those of digits are `name[0]`, `name[1]`, …
    pub fn variables(&self) -> Vec<Variable> {
        let of = |c: &ColumnSchema| {
            let (name, coding) = (c.name.clone(), c.kind.coding());
            let variable =
                move |(place, domain)| Variable::new(name.clone() + &coding.suffix(place), domain);
            coding.domains().into_iter().enumerate().map(variable).collect::<Vec<_>>()
        };
        self.columns.iter().flat_map(of).collect()
    }

    /// Whether the order of each variable's values is meaningful.
    pub fn ordered(&self) -> Vec<bool> {
        let of = |c: &ColumnSchema| {
            let coding = c.kind.coding();
            std::iter::repeat_n(coding.is_ordered(c.storage), coding.domains().len())
        };
        self.columns.iter().flat_map(of).collect()
    }

    /// The number of columns of numbers on a grid, whose input functions are steps.
    pub(crate) fn num_grids(&self) -> usize {
        self.columns.iter().filter(|c| c.kind.coding().has_grid()).count()
    }

    /// The input functions of every variable: indicators if it is finite, otherwise this many Legendre or Fourier
    /// functions.
    ///
    /// # Errors
    /// `functions` is 0 or too large.
    pub fn bases(&self, functions: usize) -> Result<Vec<Basis>, BasisError> {
        let of_column = |n: usize| {
            let places = 0..self.variables_of(n).len();
            let basis = move |place| self.columns[n].kind.coding().basis(place, functions);
            places.into_par_iter().map(basis)
        };
        (0..self.columns.len()).into_par_iter().flat_map(of_column).collect()
    }
}

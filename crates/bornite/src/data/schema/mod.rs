//! What the columns of a table mean, and the variables that they become.

mod decode;
mod encode;
mod evidence;
mod findings;
mod infer;

use std::ops::Range;

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
/// A missing cell is unknown, NaN when encoded, unless that it is missing is a value of its column. A schema is written to and read from JSON by serde, and checked when read.
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
    /// Where each column's variables start; one more at the end.
    starts: Vec<usize>,
}

/// What of a schema is stored.
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

/// A column: its name, its kind, and what its cells are in a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredColumn", into = "StoredColumn")]
pub struct ColumnSchema {
    /// The name.
    pub name: String,
    /// What it means.
    pub kind: ColumnKind,
    /// What its cells are when it is decoded.
    pub storage: Storage,
    /// The share of cells that are expected outside of what the kind has a place for: labels that were never seen, numbers
    /// beyond the range or, a tenth of all, between those that it has a place for.
    pub outside: f64,
}

/// A column as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredColumn {
    name: String,
    #[serde(flatten)]
    kind: ColumnKind,
    storage: Storage,
    #[serde(default, skip_serializing_if = "is_zero")]
    outside: f64,
    /// Whether that a cell is missing is a value.
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
    /// The same column, in which that a cell is missing is a value of its own.
    ///
    /// # Errors
    /// The kind has no place for it, or has it already.
    pub fn with_missing(self) -> Result<Self, DataError> {
        match Optional::new(self.kind) {
            Ok(kind) => Ok(Self { kind: kind.into(), ..self }),
            Err(problem) => Err(DataError::Schema { column: self.name, problem }),
        }
    }

    /// The cell as one outside of what the kind has a place for, where those have a share.
    pub(crate) fn outside_cell(&self, cell: Cell<'_>) -> Option<OutsideSet> {
        let coding = self.kind.coding();
        let set = coding.outside_cell(self.storage, cell).filter(|_| self.outside > 0.0)?;
        (self.log_outside(&set) > f64::NEG_INFINITY).then_some(set)
    }

    /// Whether the cell is a number that the kind has no place for.
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

    /// ln of the share of cells that are outside and in this set, over the share of those that have a place: log densities
    /// are those of rows whose cells all have one, and other rows are held against them.
    pub(crate) fn log_outside(&self, set: &OutsideSet) -> f64 {
        let outside = self.kind.coding().outside(self.storage);
        outside.map_or(f64::NEG_INFINITY, |o| self.log_odds() + o.log_share(set))
    }

    /// ln of the share of numbers that lie between those with a place, over that of these.
    pub(crate) fn log_between(&self) -> f64 {
        self.log_odds() + BETWEEN.ln()
    }

    fn log_odds(&self) -> f64 {
        self.outside.ln() - (-self.outside).ln_1p()
    }
}

/// What a decoded cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// A real number, written in this form.
    Numbers(NumberFormat),
    /// A whole number.
    Integers,
    /// Text.
    Labels,
}

impl Storage {
    /// What the cells of a column are.
    pub(crate) fn of(column: &Column) -> Self {
        match column.cells() {
            Cells::Numbers(c) => Self::Numbers(c.format()),
            Cells::Integers(_) => Self::Integers,
            Cells::Labels(_) => Self::Labels,
        }
    }

    /// What is wrong with a kind of numbers that is stored so.
    pub(crate) fn problem_of_numbers(self) -> Option<&'static str> {
        (self == Self::Labels).then_some("its cells are text, but its kind is for numbers")
    }
}

impl Schema {
    /// The schema of these columns.
    ///
    /// # Errors
    /// There are none, two have one name, or the parts of one contradict each other.
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

    /// The same schema, whose rows are images of this height, width and number of channels.
    ///
    /// # Errors
    /// The number of columns is another.
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

    /// The schema without these columns, no longer one of images.
    ///
    /// # Errors
    /// No column is left.
    pub fn without(&self, columns: &[&str]) -> Result<Self, DataError> {
        let is_kept = |c: &&ColumnSchema| !columns.contains(&c.name.as_str());
        Self::new(self.columns.iter().filter(is_kept).cloned().collect())
    }

    /// Height, width and channels if the rows are images.
    pub fn image(&self) -> Option<[usize; 3]> {
        self.image
    }

    /// The position of the column of this name.
    ///
    /// # Errors
    /// There is none; the nearest name is given.
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

    /// The evidence about a column's first variable where a cell is not missing; `None` if nothing is.
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

    /// Whether the order of each variable's values means something.
    pub fn ordered(&self) -> Vec<bool> {
        let of = |c: &ColumnSchema| {
            let coding = c.kind.coding();
            std::iter::repeat_n(coding.is_ordered(c.storage), coding.domains().len())
        };
        self.columns.iter().flat_map(of).collect()
    }

    /// Input functions for every variable: indicators of finite ones, and so many Legendre or Fourier functions of others.
    ///
    /// # Errors
    /// `functions` is 0 or too large.
    pub fn bases(&self, functions: usize) -> Result<Vec<Basis>, BasisError> {
        let mut bases = Vec::with_capacity(self.num_variables());
        for (n, column) in self.columns.iter().enumerate() {
            for place in 0..self.variables_of(n).len() {
                bases.push(column.kind.coding().basis(place, functions)?);
            }
        }
        Ok(bases)
    }
}

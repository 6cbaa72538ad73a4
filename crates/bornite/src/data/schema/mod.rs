//! What the columns of a table mean, and the variables that they become.

mod decode;
mod encode;
mod evidence;
mod findings;
mod infer;

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::error::nearest;
use super::table::check_names;
use super::{DataError, NumberFormat, Warp};
use crate::basis::{Basis, BasisError, FourierForm};
use crate::domain::{Domain, Variable};

pub use encode::{Cell, EncodeOptions, Encoded, Mismatch};
pub use evidence::Block;
pub use findings::{Finding, Findings};
pub use infer::{InferOptions, KindHint, Other, WideIntegers};

/// The label that stands for all labels without a place of their own.
pub const OTHER: &str = "(other)";
/// The most values of one finite variable.
const MAX_VALUES: u64 = 1 << 20;

/// What each column of a table means, and how its cells become values of variables.
///
/// | cells | kind | variables |
/// |---|---|---|
/// | text, or a few distinct numbers | [`Categorical`](ColumnKind::Categorical) | one finite |
/// | two labels such as `no` and `yes` | [`Boolean`](ColumnKind::Boolean) | one finite |
/// | whole numbers of a small range | [`Integer`](ColumnKind::Integer) | one finite |
/// | whole numbers of a wide range | [`Digits`](ColumnKind::Digits) | one finite per digit |
/// | real numbers | [`Continuous`](ColumnKind::Continuous) | one on [0, 1] |
/// | angles and times, when declared | [`Periodic`](ColumnKind::Periodic) | one on the circle |
///
/// A missing cell is unknown, NaN when encoded. A schema is written to and read from JSON by serde, and checked when read.
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
pub struct ColumnSchema {
    /// The name.
    pub name: String,
    /// What it means.
    #[serde(flatten)]
    pub kind: ColumnKind,
    /// What its cells are when it is decoded.
    pub storage: Storage,
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

/// What a column means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ColumnKind {
    /// One of these labels; a finite variable. Where the cells are numbers, the labels are numbers in order.
    Categorical {
        /// The labels.
        labels: Vec<String>,
        /// Whether one more value stands for every other label.
        has_other: bool,
    },
    /// One of two labels, no before yes.
    Boolean {
        /// Both labels.
        labels: [String; 2],
    },
    /// A whole number from `min` to `max`; a finite variable.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// A whole number from `min` on, as digits in a mixed radix, the most significant first; a finite variable each.
    Digits {
        /// The smallest.
        min: i64,
        /// The number of values of each digit.
        radices: Vec<usize>,
    },
    /// A real number x, as u = F(x) in [0, 1].
    Continuous {
        /// F.
        warp: Warp,
    },
    /// A number that means the same a period later; on the circle of length 1.
    Periodic {
        /// The number that becomes 0.
        origin: f64,
        /// The period.
        period: f64,
    },
}

/// The name of a kind, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the kinds")]
pub enum KindName {
    Categorical,
    Boolean,
    Integer,
    Digits,
    Continuous,
    Periodic,
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KindName::Categorical => "categorical",
            KindName::Boolean => "Boolean",
            KindName::Integer => "an integer",
            KindName::Digits => "an integer in digits",
            KindName::Continuous => "continuous",
            KindName::Periodic => "periodic",
        })
    }
}

impl ColumnKind {
    /// The kind's name.
    pub fn name(&self) -> KindName {
        match self {
            ColumnKind::Categorical { .. } => KindName::Categorical,
            ColumnKind::Boolean { .. } => KindName::Boolean,
            ColumnKind::Integer { .. } => KindName::Integer,
            ColumnKind::Digits { .. } => KindName::Digits,
            ColumnKind::Continuous { .. } => KindName::Continuous,
            ColumnKind::Periodic { .. } => KindName::Periodic,
        }
    }

    /// The domains of its variables.
    fn domains(&self) -> Vec<Domain> {
        match self {
            ColumnKind::Categorical { labels, has_other } => {
                vec![Domain::Finite(labels.len() + usize::from(*has_other))]
            }
            ColumnKind::Boolean { .. } => vec![Domain::Finite(2)],
            ColumnKind::Integer { min, max } => {
                vec![Domain::Finite(max.abs_diff(*min) as usize + 1)]
            }
            ColumnKind::Digits { radices, .. } => {
                radices.iter().map(|&r| Domain::Finite(r)).collect()
            }
            ColumnKind::Continuous { .. } => vec![Domain::Interval(0.0, 1.0)],
            ColumnKind::Periodic { .. } => vec![Domain::Circle(1.0)],
        }
    }

    /// What is wrong with it, if anything.
    fn problem(&self, storage: Storage) -> Option<&'static str> {
        let fails = |condition: bool, problem| condition.then_some(problem);
        match self {
            ColumnKind::Categorical { labels, has_other } => fails(
                labels.is_empty() && !has_other || labels.len() as u64 >= MAX_VALUES,
                "it has no labels, or too many",
            )
            .or_else(|| {
                let mut sorted: Vec<&String> = labels.iter().collect();
                sorted.sort_unstable();
                fails(sorted.windows(2).any(|w| w[0] == w[1]), "a label is there twice")
            })
            .or_else(|| {
                let numbers = numeric_labels(labels);
                let in_order = numbers.is_some_and(|n| n.windows(2).all(|w| w[0] < w[1]));
                fails(storage != Storage::Labels && !in_order, "its labels are no numbers in order")
            }),
            ColumnKind::Boolean { labels } => {
                let numbers = storage == Storage::Labels || numeric_labels(labels).is_some();
                fails(
                    labels[0] == labels[1] || !numbers,
                    "its two labels are no two numbers or texts",
                )
            }
            ColumnKind::Integer { min, max } => fails(
                min > max || max.abs_diff(*min) >= MAX_VALUES,
                "its range is empty or too wide",
            ),
            ColumnKind::Digits { min, radices } => fails(
                radices.is_empty() || radices.iter().any(|&r| r == 0 || r as u64 > MAX_VALUES),
                "its radices are none, or not from 1 to 2^20",
            )
            .or_else(|| {
                let count = radices.iter().try_fold(1_i128, |n, &r| n.checked_mul(r as i128));
                let last = count.and_then(|n| n.checked_add(i128::from(*min) - 1));
                let fits = last.is_some_and(|l| l <= i128::from(i64::MAX));
                fails(!fits, "its largest number does not fit 64 bits")
            }),
            ColumnKind::Continuous { .. } => None,
            ColumnKind::Periodic { origin, period } => fails(
                !(origin.is_finite() && period.is_finite() && *period > 0.0),
                "its period is not positive",
            ),
        }
        .or_else(|| {
            let text = storage == Storage::Labels;
            let numeric =
                !matches!(self, ColumnKind::Categorical { .. } | ColumnKind::Boolean { .. });
            fails(text && numeric, "its cells are text, and its kind is of numbers")
        })
    }
}

/// The labels as numbers, where all are.
pub(crate) fn numeric_labels(labels: &[String]) -> Option<Vec<f64>> {
    labels.iter().map(|l| l.parse().ok().filter(|x: &f64| x.is_finite())).collect()
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
            if let Some(problem) = c.kind.problem(c.storage) {
                return Err(DataError::Schema { column: c.name.clone(), problem });
            }
        }
        let mut starts = vec![0];
        for c in &columns {
            starts.push(starts[starts.len() - 1] + c.kind.domains().len());
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

    /// Height, width and channels where the rows are images.
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

    /// The variables of all columns, in order. Those of digits are `name[0]`, `name[1]`, …
    pub fn variables(&self) -> Vec<Variable> {
        let of = |c: &ColumnSchema| match &c.kind.domains()[..] {
            [domain] if !matches!(c.kind, ColumnKind::Digits { .. }) => {
                vec![Variable::new(c.name.clone(), *domain)]
            }
            domains => {
                let digits = domains.iter().enumerate();
                digits.map(|(n, d)| Variable::new(format!("{}[{n}]", c.name), *d)).collect()
            }
        };
        self.columns.iter().flat_map(of).collect()
    }

    /// Whether the order of each variable's values means something.
    pub fn ordered(&self) -> Vec<bool> {
        let of = |c: &ColumnSchema| {
            let text =
                matches!(c.kind, ColumnKind::Categorical { .. }) && c.storage == Storage::Labels;
            std::iter::repeat_n(!text, c.kind.domains().len())
        };
        self.columns.iter().flat_map(of).collect()
    }

    /// Input functions for every variable: indicators of finite ones, and so many Legendre or Fourier functions of others.
    ///
    /// # Errors
    /// `functions` is 0 or too large.
    pub fn bases(&self, functions: usize) -> Result<Vec<Basis>, BasisError> {
        let basis = |variable: &Variable| match variable.domain {
            Domain::Finite(v) => Ok(Basis::indicator(v)),
            Domain::Circle(period) => Basis::fourier(functions, 0.0, period, FourierForm::Real),
            _ => Basis::legendre(functions, 0.0, 1.0),
        };
        self.variables().iter().map(basis).collect()
    }
}

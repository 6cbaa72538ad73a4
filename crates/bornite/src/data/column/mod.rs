//! The kinds of columns, one file each: what cells mean, and how they are encoded as values of variables and decoded.
//!
//! To add a kind, write a file with a type that implements [`Coding`], add a variant of [`ColumnKind`], and register it
//! in [`ColumnKind::coding`]. Everything else uses the trait.

mod boolean;
mod categorical;
mod cell;
mod continuous;
mod date_time;
mod digits;
mod facts;
mod infer;
mod integer;
mod interval;
mod number;
mod optional;
mod outside;
mod periodic;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Storage;
use crate::basis::{Basis, BasisError, FourierForm};
use crate::domain::Domain;
use crate::query::Evidence;
use outside::Tails;

pub use boolean::Boolean;
pub use categorical::Categorical;
pub use cell::Cell;
pub(crate) use cell::{Decoded, Problem};
pub use continuous::Continuous;
pub use date_time::{DateTime, TimePart, TimeUnit};
pub use digits::Digits;
pub(super) use facts::{Facts, KnownCells};
pub use infer::{InferOptions, KindHint, Other, WideIntegers};
pub use integer::Integer;
pub(crate) use interval::{End, Ends};
pub use number::Number;
pub use optional::Optional;
pub(crate) use outside::{BETWEEN, Outside, OutsideSet};
pub use periodic::Periodic;

/// The label of the catch-all value, which represents all labels that the column does not list.
pub const OTHER: &str = "(other)";
/// The maximum number of values of one finite variable.
const MAX_VALUES: u64 = 1 << 20;

/// What a column means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ColumnKind {
    /// One of a set of labels.
    Categorical(Categorical),
    /// One of two labels, no before yes.
    Boolean(Boolean),
    /// A whole number with a small range.
    Integer(Integer),
    /// A whole number with a wide range, as digits.
    Digits(Digits),
    /// A real number with a density.
    Continuous(Continuous),
    /// A number with atoms, or on a decimal grid.
    Number(Number),
    /// A number that repeats with a period, such as an angle.
    Periodic(Periodic),
    /// A date, a time of day, or both, split into parts.
    DateTime(DateTime),
    /// A cell of another kind, or a missing one as a value. It is stored as the other kind plus a flag.
    #[serde(skip)]
    Optional(Optional),
}

impl ColumnKind {
    /// The behavior of the kind. This is the only place that distinguishes kinds.
    pub(crate) fn coding(&self) -> &dyn Coding {
        match self {
            ColumnKind::Categorical(kind) => kind,
            ColumnKind::Boolean(kind) => kind,
            ColumnKind::Integer(kind) => kind,
            ColumnKind::Digits(kind) => kind,
            ColumnKind::Continuous(kind) => kind,
            ColumnKind::Number(kind) => kind,
            ColumnKind::Periodic(kind) => kind,
            ColumnKind::DateTime(kind) => kind,
            ColumnKind::Optional(kind) => kind,
        }
    }

    /// The kind of the cells that are not missing.
    pub fn of_known(&self) -> &Self {
        self.coding().of_known().unwrap_or(self)
    }

    /// The kind's name, as in "the column is *an integer*".
    pub fn name(&self) -> &'static str {
        self.coding().name()
    }

    /// A short description of the column's domain.
    pub fn summary(&self) -> String {
        self.coding().summary()
    }
}

/// Evidence about a column's variables, by their positions within the column. Variables that are not listed are
/// unobserved.
pub(crate) type Parts = Vec<(usize, Evidence)>;

/// Encodes a cell, and returns ln F′: the log of the derivative of the encoded value with respect to the cell, or 0 if
/// both are discrete. For a [`Between`](Problem::Between) problem, the nearest number is encoded.
pub(crate) type Encoder<'a> = Box<dyn Fn(Cell<'_>, &mut [f64]) -> Result<f64, Problem> + Sync + 'a>;

/// How the cells of one kind of column are encoded as values of variables, and what follows from that.
///
/// `values` are always those of the column's variables, in order and within their domains.
pub(crate) trait Coding: Sync {
    /// The name, as in "the column is *an integer*".
    fn name(&self) -> &'static str;

    /// A short description of the column's domain.
    fn summary(&self) -> String;

    /// The reason why the kind is invalid, if it is.
    fn problem(&self, storage: Storage) -> Option<&'static str>;

    /// The first version of model files that can store it.
    fn format_version(&self) -> u32 {
        1
    }

    /// The kind of the cells that are not missing; `None` if missing is not a value, so that all cells are of this kind.
    fn of_known(&self) -> Option<&ColumnKind> {
        None
    }

    /// The reason why missing cannot be a value of it, if it cannot.
    fn why_not_optional(&self) -> Option<&'static str> {
        None
    }

    /// The reason why atoms cannot be declared for it, if they cannot, given whether its cells are numbers.
    fn why_no_atoms(&self, _are_numbers: bool) -> Option<&'static str> {
        None
    }

    /// The domains of its variables.
    fn domains(&self) -> Vec<Domain>;

    /// The number of values of its first variable; `None` if that is continuous.
    fn num_values(&self) -> Option<usize> {
        self.domains().first().and_then(Domain::num_values)
    }

    /// The suffix that, after the column's name, names one of its variables.
    fn suffix(&self, _place: usize) -> String {
        String::new()
    }

    /// The input functions of one of its variables: indicators if it is finite, otherwise `functions` functions.
    fn basis(&self, place: usize, functions: usize) -> Result<Basis, BasisError> {
        match &self.domains()[place] {
            Domain::Finite(v) => Ok(Basis::indicator(*v)),
            Domain::Circle(period) => Basis::fourier(functions, 0.0, *period, FourierForm::Real),
            Domain::Real | Domain::Interval(..) | Domain::HalfLine(_) | Domain::Atoms(_) => {
                Basis::legendre(functions, 0.0, 1.0)
            }
        }
    }

    /// Whether its numbers are on a grid, so that its input functions are steps.
    fn has_grid(&self) -> bool {
        false
    }

    /// Whether its values are text rather than numbers.
    fn is_words(&self, _storage: Storage) -> bool {
        false
    }

    /// Whether the order of its values is meaningful.
    fn is_ordered(&self, _storage: Storage) -> bool {
        true
    }

    /// Returns a function that encodes cells.
    fn encoder(&self, storage: Storage) -> Encoder<'_>;

    /// Whether these bytes are already the values of its single variable.
    fn are_values(&self, _bytes: &Arc<Vec<u8>>) -> bool {
        false
    }

    /// Decodes a cell.
    fn decode(&self, values: &[f64]) -> Decoded<'_>;

    /// The value of its first variable in a missing cell; `None` if the variables of a missing cell are unobserved.
    fn missing(&self) -> Option<f64> {
        None
    }

    /// The evidence about its first variable if a cell is not missing; `None` if there is none.
    fn present(&self) -> Option<Evidence> {
        None
    }

    /// Its labels, if it has any.
    fn labels(&self) -> &[String] {
        &[]
    }

    /// The label that the column's name stands for where a condition is expected, if there is one.
    fn yes(&self) -> Option<&str> {
        None
    }

    /// Its two labels in the style of a table that contains this label, if they can be written differently.
    fn in_words_of(&self, _label: &str) -> Option<[String; 2]> {
        None
    }

    /// The catch-all value for other labels.
    fn other(&self) -> Option<usize> {
        None
    }

    /// The distribution of cells outside the domain; `None` if every cell of the right type is inside.
    fn outside(&self, _storage: Storage) -> Option<Outside> {
        None
    }

    /// The cell as a set of cells outside the domain; `None` if it has another type.
    fn outside_cell(&self, storage: Storage, cell: Cell<'_>) -> Option<OutsideSet> {
        self.outside(storage)?.cell(cell)
    }

    /// The distribution of cells that share the catch-all value or are outside the domain.
    fn spread(&self, storage: Storage) -> Option<Outside> {
        self.outside(storage)
    }

    /// The expected number of cells outside the domain among one more cell than were seen; `None` to estimate it from
    /// rare values.
    fn expected_outside(&self) -> Option<f64> {
        None
    }

    /// Whether it contains dates or times.
    fn is_time(&self) -> bool {
        false
    }

    /// The number for a text in an interval, in the order of the cells, if such texts are not numbers.
    fn read_number(&self, _text: &str) -> Option<f64> {
        None
    }

    /// The event that a part of the cell, such as the hour of a time, has one of these values; `None` if there is no
    /// such part or value.
    fn part(&self, _name: &str, _values: &[String]) -> Option<Vec<Parts>> {
        None
    }

    /// The numeric values of a part of the cell.
    fn part_values(&self, _name: &str) -> Option<Vec<i64>> {
        None
    }

    /// Whether these values have a density rather than a probability.
    fn has_density(&self, _values: &[f64]) -> bool {
        self.domains().iter().any(|domain| domain.num_values().is_none())
    }

    /// The event that the cell has these values.
    fn exactly(&self, values: &[f64]) -> Parts {
        values.iter().map(|&x| Evidence::Value(x)).enumerate().collect()
    }

    /// The variable, if there is one, in which several values may mean the same cell: see
    /// [`same_cell`](Self::same_cell).
    fn ambiguous(&self) -> Option<usize> {
        None
    }

    /// All values of the [`ambiguous`](Self::ambiguous) variable that, with these values of the other variables, mean
    /// the same cell, in increasing order; `None` if only its own value does, or if that is not known. Values may be
    /// NaN. Encoding gives the first of them.
    fn same_cell(&self, _values: &[f64]) -> Option<Vec<usize>> {
        None
    }

    /// The event that the cell is one of several, each given by its values, as mutually exclusive cases. `Err` is the
    /// reason why there is no such set.
    fn set(&self, values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str>;

    /// The event that the cell lies between two numbers, as mutually exclusive cases; no case if that is impossible.
    /// `Err` is the reason why there is no such interval.
    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str>;

    /// The contribution of the value `x` of one of its variables to the column's number; `None` if the number is not
    /// such a sum.
    fn term(&self, storage: Storage, place: usize, x: f64) -> Option<f64>;

    /// The constant that the contributions are added to.
    fn base(&self) -> f64 {
        0.0
    }

    /// The number that these values represent.
    fn number(&self, storage: Storage, values: &[f64]) -> Option<f64> {
        let terms = values.iter().enumerate().map(|(place, &x)| self.term(storage, place, x));
        terms.sum::<Option<f64>>().map(|sum| self.base() + sum)
    }

    /// The smallest float ≥ the number of these values. They differ if a whole number is larger than 2⁵³.
    fn number_above(&self, storage: Storage, values: &[f64]) -> Option<f64> {
        self.number(storage, values)
    }

    /// The position u of its continuous variable such that numbers < `x` have values < u. It may be outside the domain.
    fn position(&self, _x: f64) -> Option<f64> {
        None
    }

    /// The position u of its continuous variable such that numbers ≤ `x` have values < u.
    fn end(&self, x: f64) -> Option<f64> {
        self.position(x)
    }

    /// The values of the representable number nearest to `x`.
    fn nearest(&self, x: f64) -> Vec<f64>;

    /// The smallest and the largest plausible number.
    fn range(&self) -> (f64, f64);

    /// The log of the number of values, or of the interquartile range.
    fn log_spread(&self) -> f64 {
        let values = self.domains().into_iter().filter_map(|domain| domain.num_values());
        values.map(|n| (n as f64).ln()).sum()
    }

    /// A version with fewer digits, for compact storage; `None` if it is short already.
    fn shortened(&self) -> Option<ColumnKind> {
        None
    }
}

/// A set of values of a finite variable as evidence; no case if the set is empty.
fn values(set: Vec<usize>) -> Vec<Parts> {
    if set.is_empty() {
        return Vec::new();
    }
    vec![vec![(0, Evidence::In(crate::basis::Part::Values(set)))]]
}

/// The event that the single finite variable has one of these values.
fn finite_set(cells: &[Vec<f64>]) -> Vec<Parts> {
    let mut set: Vec<usize> = cells.iter().map(|v| v[0] as usize).collect();
    set.sort_unstable();
    set.dedup();
    values(set)
}

/// The labels as numbers, if all of them are.
pub(crate) fn numeric_labels(labels: &[String]) -> Option<Vec<f64>> {
    labels.iter().map(|l| l.parse().ok().filter(|x: &f64| x.is_finite())).collect()
}

/// The distribution of cells outside a set of labels.
fn outside_of_labels(labels: &[String], storage: Storage) -> Outside {
    let decimals = |label: &String| label.split_once('.').map_or(0, |(_, digits)| digits.len());
    match numeric_labels(labels).filter(|n| storage != Storage::Labels && !n.is_empty()) {
        Some(numbers) => {
            let most = labels.iter().map(decimals).max().unwrap_or(0);
            Outside::Numbers(Tails::of_numbers(&numbers, most))
        }
        None => Outside::Labels,
    }
}

/// The label whose number is nearest to x; the first label if none is a number.
fn nearest_label(labels: &[String], x: f64) -> f64 {
    let distance = |label: &String| label.parse().map_or(f64::INFINITY, |l: f64| (l - x).abs());
    let best = (0..labels.len())
        .fold(0, |b, n| if distance(&labels[n]) < distance(&labels[b]) { n } else { b });
    best as f64
}

/// The labels whose numbers are within an interval.
fn labels_within(labels: &[String], ends: &Ends) -> Result<Vec<Parts>, &'static str> {
    match numeric_labels(labels) {
        Some(numbers) if !numbers.is_empty() => {
            let within = numbers.iter().enumerate().filter(|(_, x)| ends.contains(**x));
            Ok(values(within.map(|(n, _)| n).collect()))
        }
        _ => Err("its labels are not numbers, so it has no intervals; ask for a set {a, b}"),
    }
}

/// The smallest and the largest label, if they are numbers.
fn label_range(labels: &[String]) -> (f64, f64) {
    let numbers = numeric_labels(labels).filter(|n| !n.is_empty()).unwrap_or(vec![0.0, 1.0]);
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    (low, numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

const NOT_NUMBERS: &str = "its cells are not numbers";
const ONLY_A_DENSITY: &str = "it is declared to have only a density; declare it as a number";
const NO_SET: &str = "a set of values has probability 0; ask for an interval [a, b)";

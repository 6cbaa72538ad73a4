//! The kinds of columns, one file each: what cells mean, and how they become values of variables and back.
//!
//! To add a kind: one file with a type that implements [`Coding`], one variant of [`ColumnKind`], and its line in
//! [`ColumnKind::coding`]. Everything else asks the trait.

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

/// The label that stands for all labels without a place of their own.
pub const OTHER: &str = "(other)";
/// The maximum number of values of one finite variable.
const MAX_VALUES: u64 = 1 << 20;

/// What a column means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ColumnKind {
    /// One of some labels.
    Categorical(Categorical),
    /// One of two labels, no before yes.
    Boolean(Boolean),
    /// A whole number of a small range.
    Integer(Integer),
    /// A whole number of a wide range, as digits.
    Digits(Digits),
    /// A real number.
    Continuous(Continuous),
    /// A number with atoms, or on a grid of decimals.
    Number(Number),
    /// A number that means the same a period later.
    Periodic(Periodic),
    /// A date, a time of day, or both, in parts.
    DateTime(DateTime),
    /// A cell of another kind, or a missing one, as a value of its own. It is stored as that kind, and a word beside it.
    #[serde(skip)]
    Optional(Optional),
}

impl ColumnKind {
    /// What the kind can do: the one place where kinds are told apart.
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

    /// The kind of cells that are not missing.
    pub fn of_known(&self) -> &Self {
        match self {
            ColumnKind::Optional(kind) => kind.of(),
            ColumnKind::Categorical(_)
            | ColumnKind::Boolean(_)
            | ColumnKind::Integer(_)
            | ColumnKind::Digits(_)
            | ColumnKind::Continuous(_)
            | ColumnKind::Number(_)
            | ColumnKind::Periodic(_)
            | ColumnKind::DateTime(_) => self,
        }
    }

    /// The kind's name, as in "the column is *an integer*".
    pub fn name(&self) -> &'static str {
        self.coding().name()
    }

    /// The values that the column can have, in a few words.
    pub fn summary(&self) -> String {
        self.coding().summary()
    }
}

/// The evidence about a column's variables, by their places within the column. Those that are not named are unknown.
pub(crate) type Parts = Vec<(usize, Evidence)>;

/// Writes the values of a cell and returns ln F′, the logarithm of the density of the values by that of the cells; 0 where
/// both are finite. Writes those of the nearest number also where the problem is one [`Between`](Problem::Between).
pub(crate) type Encoder<'a> = Box<dyn Fn(Cell<'_>, &mut [f64]) -> Result<f64, Problem> + Sync + 'a>;

/// How cells of one kind of column become values of variables and back, and what follows from it.
///
/// `values` are always those of the column's variables, in order and within their domains.
pub(crate) trait Coding: Sync {
    /// The name, as in "the column is *an integer*".
    fn name(&self) -> &'static str;

    /// The values that the column can have, in a few words.
    fn summary(&self) -> String;

    /// What is wrong with it, if anything.
    fn problem(&self, storage: Storage) -> Option<&'static str>;

    /// The domains of its variables.
    fn domains(&self) -> Vec<Domain>;

    /// What is added to the column's name to name one of its variables.
    fn suffix(&self, _place: usize) -> String {
        String::new()
    }

    /// Input functions of one of its variables: indicators if it is finite, else `functions` of them.
    fn basis(&self, place: usize, functions: usize) -> Result<Basis, BasisError> {
        match &self.domains()[place] {
            Domain::Finite(v) => Ok(Basis::indicator(*v)),
            Domain::Circle(period) => Basis::fourier(functions, 0.0, *period, FourierForm::Real),
            Domain::Real | Domain::Interval(..) | Domain::HalfLine(_) | Domain::Atoms(_) => {
                Basis::legendre(functions, 0.0, 1.0)
            }
        }
    }

    /// Whether its values are words rather than numbers.
    fn is_words(&self, _storage: Storage) -> bool {
        false
    }

    /// Whether the order of its values means something.
    fn is_ordered(&self, _storage: Storage) -> bool {
        true
    }

    /// How cells are encoded.
    fn encoder(&self, storage: Storage) -> Encoder<'_>;

    /// Whether these bytes are values of its one variable as they are.
    fn are_values(&self, _bytes: &Arc<Vec<u8>>) -> bool {
        false
    }

    /// The cell of these values.
    fn decode(&self, values: &[f64]) -> Decoded<'_>;

    /// The value of its first variable where a cell is missing; `None` if all of them are unknown then.
    fn missing(&self) -> Option<f64> {
        None
    }

    /// What is known of its first variable where a cell is not missing; `None` for nothing.
    fn present(&self) -> Option<Evidence> {
        None
    }

    /// Its labels, if it has some.
    fn labels(&self) -> &[String] {
        &[]
    }

    /// Its two labels in the words of a table that has this one, where those may be others.
    fn in_words_of(&self, _label: &str) -> Option<[String; 2]> {
        None
    }

    /// The value that stands for labels without a place of their own.
    fn other(&self) -> Option<usize> {
        None
    }

    /// What cells can lie outside of it; `None` if all that fit its type have a place.
    fn outside(&self, _storage: Storage) -> Option<Outside> {
        None
    }

    /// The cell as one outside; `None` if it is of another type.
    fn outside_cell(&self, storage: Storage, cell: Cell<'_>) -> Option<OutsideSet> {
        self.outside(storage)?.cell(cell)
    }

    /// How what has no place of its own is spread, in the place for others or outside.
    fn spread(&self, storage: Storage) -> Option<Outside> {
        self.outside(storage)
    }

    /// Whether it is of dates or times.
    fn is_time(&self) -> bool {
        false
    }

    /// The number, in the order of cells, that a text in an interval stands for, where such texts are not numbers.
    fn read_number(&self, _text: &str) -> Option<f64> {
        None
    }

    /// That a part of the cell, such as the hour of a time, has one of these values; `None` if there is no such part or
    /// value.
    fn part(&self, _name: &str, _values: &[String]) -> Option<Vec<Parts>> {
        None
    }

    /// The values of a part of the cell that are numbers.
    fn part_values(&self, _name: &str) -> Option<Vec<i64>> {
        None
    }

    /// Whether these values have a density rather than a probability.
    fn has_density(&self, _values: &[f64]) -> bool {
        self.domains().iter().any(|domain| domain.num_values().is_none())
    }

    /// That the cell has these values, as exact as can be.
    fn exactly(&self, values: &[f64]) -> Parts {
        values.iter().map(|&x| Evidence::Value(x)).enumerate().collect()
    }

    /// That the cell is one of several, each given by its values; the parts exclude each other. An error says why there is no
    /// such set.
    fn set(&self, values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str>;

    /// That the cell lies between two numbers; the parts exclude each other, and none means that it cannot. An error says why
    /// there is no such interval.
    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str>;

    /// What the value `x` of one of its variables adds to the column's number; `None` if there is no such sum.
    fn term(&self, storage: Storage, place: usize, x: f64) -> Option<f64>;

    /// The number that the terms are added to.
    fn base(&self) -> f64 {
        0.0
    }

    /// The number that these values stand for.
    fn number(&self, storage: Storage, values: &[f64]) -> Option<f64> {
        let terms = values.iter().enumerate().map(|(place, &x)| self.term(storage, place, x));
        terms.sum::<Option<f64>>().map(|sum| self.base() + sum)
    }

    /// The smallest float that is not below the number of these values: they differ where whole numbers are larger than 2⁵³.
    fn number_above(&self, storage: Storage, values: &[f64]) -> Option<f64> {
        self.number(storage, values)
    }

    /// The value of its one continuous variable below which numbers below `x` lie; may be outside the domain.
    fn position(&self, _x: f64) -> Option<f64> {
        None
    }

    /// The value of its one continuous variable below which all numbers up to `x` lie.
    fn end(&self, x: f64) -> Option<f64> {
        self.position(x)
    }

    /// The values of the number nearest to `x` that it can be.
    fn nearest(&self, x: f64) -> Vec<f64>;

    /// The smallest and the largest number that it is likely to be.
    fn range(&self) -> (f64, f64);

    /// ln of how many values it has, or of how wide its middle half is.
    fn log_spread(&self) -> f64 {
        let values = self.domains().into_iter().filter_map(|domain| domain.num_values());
        values.map(|n| (n as f64).ln()).sum()
    }

    /// Nearly the same, in fewer digits, for where it has to be stored; `None` if it is short already.
    fn shortened(&self) -> Option<ColumnKind> {
        None
    }
}

/// The values of a finite variable as evidence; nothing if there are none.
fn values(set: Vec<usize>) -> Vec<Parts> {
    if set.is_empty() {
        return Vec::new();
    }
    vec![vec![(0, Evidence::In(crate::basis::Part::Values(set)))]]
}

/// That the one finite variable has one of these values.
fn finite_set(cells: &[Vec<f64>]) -> Vec<Parts> {
    let mut set: Vec<usize> = cells.iter().map(|v| v[0] as usize).collect();
    set.sort_unstable();
    set.dedup();
    values(set)
}

/// The labels as numbers, if all are.
pub(crate) fn numeric_labels(labels: &[String]) -> Option<Vec<f64>> {
    labels.iter().map(|l| l.parse().ok().filter(|x: &f64| x.is_finite())).collect()
}

/// What lies outside of labels.
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

/// The label that is the number nearest to x; the first if none is a number.
fn nearest_label(labels: &[String], x: f64) -> f64 {
    let distance = |label: &String| label.parse().map_or(f64::INFINITY, |l: f64| (l - x).abs());
    let best = (0..labels.len())
        .fold(0, |b, n| if distance(&labels[n]) < distance(&labels[b]) { n } else { b });
    best as f64
}

/// The labels that are numbers within an interval.
fn labels_within(labels: &[String], ends: &Ends) -> Result<Vec<Parts>, &'static str> {
    match numeric_labels(labels) {
        Some(numbers) if !numbers.is_empty() => {
            let within = numbers.iter().enumerate().filter(|(_, x)| ends.contains(**x));
            Ok(values(within.map(|(n, _)| n).collect()))
        }
        _ => Err("its labels are not numbers, so it has no intervals; ask for a set {a, b}"),
    }
}

/// The least and the greatest of the labels, if they are numbers.
fn label_range(labels: &[String]) -> (f64, f64) {
    let numbers = numeric_labels(labels).filter(|n| !n.is_empty()).unwrap_or(vec![0.0, 1.0]);
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    (low, numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

const NO_SET: &str = "a set of values has probability 0; ask for an interval [a, b)";

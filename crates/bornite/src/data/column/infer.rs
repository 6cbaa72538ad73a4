//! Inference of a column's kind.

use std::collections::{BTreeMap, BTreeSet};

use super::date_time::Found;
use super::facts::{Facts, KnownCells};
use super::number::grid_places;
use super::{
    Boolean, Categorical, Coding, ColumnKind, Continuous, DateTime, Digits, Integer, Number,
    Periodic,
};
use crate::data::{DataError, Storage, Support, Warp, WarpError, WarpOptions};

/// Whole numbers with at least this range become numbers on a grid if there are fewer than `SPARSE_ROWS` rows per
/// number, or for half of the numbers in the range.
const SPARSE_RANGE: u64 = 20;
const SPARSE_ROWS: u64 = 10;
/// In a short list of whole numbers, at most one number in this many occurs only once.
const LISTED: usize = 10;

/// How to infer a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct InferOptions {
    /// Column kinds by name, instead of inferring them.
    pub kinds: BTreeMap<String, KindHint>,
    /// Columns in which missing is a value: see [`Optional`](super::Optional).
    pub missing_as_value: BTreeSet<String>,
    /// The widest range of whole numbers that becomes a single finite variable, if there are enough rows for it.
    pub max_range: usize,
    /// The maximum number of distinct numbers in a categorical column, which also needs 4 rows for each.
    pub max_distinct: usize,
    /// The maximum number of labels of a categorical column. The most common labels are kept (in alphabetical order if
    /// equally common), except those that occur only once; the rest become [`OTHER`](super::OTHER).
    pub max_labels: usize,
    /// Labels with fewer rows than this become [`OTHER`](super::OTHER).
    pub min_count: usize,
    /// Which categorical columns have a catch-all value for other labels.
    pub other: Other,
    /// How to represent whole numbers with a wide range.
    pub wide_integers: WideIntegers,
    /// Additional atoms by column. They have no effect in columns where every value already has its own probability.
    pub named_atoms: BTreeMap<String, Vec<f64>>,
    /// Whether to detect atoms, decimal grids and bounds of numbers. Otherwise numbers have a density on the real line.
    pub atoms: bool,
    /// How to fit the transforms of continuous columns.
    pub warp: WarpOptions,
}

impl Default for InferOptions {
    fn default() -> Self {
        Self {
            kinds: BTreeMap::new(),
            missing_as_value: BTreeSet::new(),
            max_range: 256,
            max_distinct: 30,
            max_labels: 256,
            min_count: 1,
            other: Other::default(),
            wide_integers: WideIntegers::default(),
            named_atoms: BTreeMap::new(),
            atoms: true,
            warp: WarpOptions::default(),
        }
    }
}

/// Which categorical columns have a catch-all value for other labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Other {
    /// Columns with merged labels, and constant columns.
    #[default]
    Auto,
    /// All categorical columns.
    Always,
    /// Columns with merged labels, and columns without any label.
    Never,
}

/// How to represent whole numbers with a wide range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WideIntegers {
    /// As digits, with a separate probability for every number.
    Digits,
    /// As numbers on a grid with atoms: queries are fast, and neighboring numbers have similar probabilities.
    #[default]
    Continuous,
}

/// The declared kind of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KindHint {
    /// Labels.
    Categorical,
    /// One of two labels.
    Boolean,
    /// Whole numbers, as one finite variable.
    Integer,
    /// Whole numbers, as digits.
    Digits,
    /// Real numbers within these bounds, with a density.
    Continuous(Support),
    /// Numbers with atoms, on a decimal grid if they have few decimals, so that every cell has a probability.
    Number {
        /// The smallest share of the rows that an atom can have, from 0 (no limit beyond the usual one) to 1.
        ///
        /// Atoms describe a column best, but each is learned separately. With few rows, a column is predicted better if
        /// only very frequent values are atoms.
        atoms_from: f64,
    },
    /// Numbers that repeat with a period, such as angles.
    Periodic {
        /// The period.
        period: f64,
    },
}

/// Whether this whole number and all closer to 0 are representable as floats.
fn is_exact(x: i64) -> bool {
    x.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS
}

impl Facts<'_> {
    /// The kind of the column, as declared or as inferred from its cells.
    pub(crate) fn kind(&self, hint: Option<KindHint>) -> Result<ColumnKind, DataError> {
        let kind = match hint {
            Some(hint) => self.declared(hint),
            None => self.inferred(),
        }?;
        self.check_atoms(&kind)?;
        Ok(kind)
    }

    /// Rejects atoms for columns that cannot have any.
    fn check_atoms(&self, kind: &ColumnKind) -> Result<(), DataError> {
        let atoms = self.named_atoms();
        if atoms.is_empty() {
            return Ok(());
        }
        let is_any_infinite = atoms.iter().any(|x| !x.is_finite());
        let problem = is_any_infinite.then_some("an atom is not a finite number");
        let are_numbers = self.cells.numbers().is_some();
        let Some(problem) = problem.or_else(|| kind.coding().why_no_atoms(are_numbers)) else {
            return Ok(());
        };
        let column = self.column.name().to_owned();
        Err(DataError::Kind { column, kind: "a number with atoms", problem })
    }

    fn named_atoms(&self) -> &[f64] {
        self.options.named_atoms.get(self.column.name()).map_or(&[], Vec::as_slice)
    }

    /// Whether no cell is observed.
    pub(crate) fn is_unobserved(&self) -> bool {
        matches!(self.cells, KnownCells::Nothing)
    }

    fn inferred(&self) -> Result<ColumnKind, DataError> {
        Ok(match &self.cells {
            KnownCells::Nothing => Categorical::unobserved().into(),
            KnownCells::Text => {
                let counts = self.counts();
                match DateTime::of(&counts.iter().map(|c| c.0.as_str())) {
                    Found::Dates(kind) => kind.into(),
                    Found::Impossible(text) => {
                        let column = self.column.name().to_owned();
                        return Err(DataError::Date { column, text });
                    }
                    Found::Nothing => match Boolean::of(self).filter(Boolean::is_usual) {
                        Some(kind) => kind.into(),
                        None => Categorical::of(self).into(),
                    },
                }
            }
            KnownCells::Whole { min: 0, max: 1, .. } => Boolean::binary().into(),
            KnownCells::Whole { min, max, .. } if min == max => Categorical::of(self).into(),
            KnownCells::Whole { min, max, values }
                if max.abs_diff(*min) < self.options.max_range as u64
                    && self.is_listed(&Rows::of(values, *min, *max)) =>
            {
                Categorical::of(self).into()
            }
            KnownCells::Whole { min, max, values }
                if max.abs_diff(*min) < self.options.max_range as u64
                    && !self.is_sparse(&Rows::of(values, *min, *max)) =>
            {
                Integer { min: *min, max: *max }.into()
            }
            KnownCells::Whole { min, max, values }
                if max.abs_diff(*min) >= self.options.max_range as u64
                    && self.is_coarse(values)
                    && is_exact(*min)
                    && is_exact(*max) =>
            {
                Categorical::of(self).into()
            }
            KnownCells::Whole { min, max, values } => {
                // Above 2⁵³, only digits are exact.
                let wanted = self.options.wide_integers == WideIntegers::Digits
                    || !is_exact(*min)
                    || !is_exact(*max);
                if wanted {
                    return Ok(Digits::of(*min, *max).into());
                }
                let values: Vec<f64> = values.iter().map(|&x| x as f64).collect();
                self.number(&values, 0.0)?
            }
            KnownCells::Real { values } => {
                let bits: Vec<u64> = values.iter().map(|x| x.to_bits()).collect();
                if self.is_coarse(&bits) && !self.is_sparse_on_grid(values) {
                    Categorical::of(self).into()
                } else {
                    self.number(values, 0.0)?
                }
            }
        })
    }

    fn declared(&self, hint: KindHint) -> Result<ColumnKind, DataError> {
        let fail = |kind, problem| {
            Err(DataError::Kind { column: self.column.name().to_owned(), kind, problem })
        };
        match (hint, &self.cells) {
            (KindHint::Categorical, _) => Ok(Categorical::of(self).into()),
            (KindHint::Boolean, KnownCells::Whole { min: 0.., max: ..=1, .. }) => {
                Ok(Boolean::binary().into())
            }
            (KindHint::Boolean, _) => match Boolean::of(self) {
                Some(kind) => Ok(kind.into()),
                None => fail("Boolean", "it does not have exactly two values"),
            },
            (KindHint::Integer, KnownCells::Whole { min, max, .. }) => {
                let kind = Integer { min: *min, max: *max };
                match kind.problem(Storage::Integers) {
                    Some(_) => fail("an integer", "its range is too wide; declare digits"),
                    None => Ok(kind.into()),
                }
            }
            (KindHint::Digits, KnownCells::Whole { min, max, .. }) => {
                Ok(Digits::of(*min, *max).into())
            }
            (KindHint::Integer, _) => fail("an integer", "its cells are not whole numbers"),
            (KindHint::Digits, _) => {
                fail("an integer in digits", "its cells are not whole numbers")
            }
            (KindHint::Continuous(support), cells) => match cells.numbers() {
                Some(numbers) => self.continuous(&numbers, support),
                None => fail("continuous", "its cells are not numbers"),
            },
            (KindHint::Number { atoms_from }, _) if !(0.0..=1.0).contains(&atoms_from) => {
                fail("a number", "the smallest share of rows of an atom must be from 0 to 1")
            }
            (KindHint::Number { atoms_from }, cells) => match cells.numbers() {
                Some(numbers) => self.number(&numbers, atoms_from),
                None => fail("a number", "its cells are not numbers"),
            },
            (KindHint::Periodic { period }, cells) => {
                let kind = Periodic { origin: 0.0, period };
                match (kind.problem(Storage::Integers), cells.numbers()) {
                    (None, Some(_)) => Ok(kind.into()),
                    (Some(_), _) => fail("periodic", "its period is not positive"),
                    (_, None) => fail("periodic", "its cells are not numbers"),
                }
            }
        }
    }

    /// Whether whole numbers come from a short list, such as 2, 4, 8, 16 and 32, so that other numbers are not to be
    /// expected: at least half of the range does not occur, few numbers occur only once, and there are 4 rows per number.
    fn is_listed(&self, rows: &Rows) -> bool {
        let distinct = rows.sorted.len() - rows.with(0);
        self.options.atoms
            && distinct <= self.options.max_distinct
            && distinct * 4 <= rows.total
            && distinct <= rows.with(0)
            && rows.with(1) * LISTED <= distinct
    }

    /// Whether a range of whole numbers has too few rows per number to estimate each separately, so that neighbors must
    /// share information. The median counts as well as the mean: a few large values can make the range wide.
    fn is_sparse(&self, rows: &Rows) -> bool {
        let range = rows.sorted.len() as u64 - 1;
        let median = rows.sorted[rows.sorted.len() / 2] as u64;
        self.options.atoms
            && range >= SPARSE_RANGE
            && ((rows.total as u64) < SPARSE_ROWS * range || median < SPARSE_ROWS)
    }

    /// The same for numbers with few decimals, in units of the last one, unless they come from a short list.
    fn is_sparse_on_grid(&self, values: &[f64]) -> bool {
        let Some(places) = grid_places(values) else { return false };
        let (Some(&min), Some(&max)) = (places.iter().min(), places.iter().max()) else {
            return false;
        };
        if max.abs_diff(min) >= self.options.max_range as u64 {
            return false;
        }
        let rows = Rows::of(&places, min, max);
        !self.is_listed(&rows) && self.is_sparse(&rows)
    }

    /// Infers a number with atoms, grid and bounds from its values. Atoms have at least this share of the rows.
    fn number(&self, values: &[f64], atoms_from: f64) -> Result<ColumnKind, DataError> {
        if !self.options.atoms {
            return self.continuous(values, Support::REAL);
        }
        let (named, options) = (self.named_atoms(), &self.options.warp);
        let kind = Number::with_frequent_atoms(values, named, atoms_from, Support::REAL, options);
        kind.map(ColumnKind::from).map_err(|source| self.warp_error(source))
    }

    fn continuous(&self, values: &[f64], support: Support) -> Result<ColumnKind, DataError> {
        let warp = Warp::fit(values, support, &self.options.warp);
        warp.map(|warp| Continuous { warp }.into()).map_err(|source| self.warp_error(source))
    }

    fn warp_error(&self, source: WarpError) -> DataError {
        DataError::Warp { column: self.column.name().to_owned(), source }
    }
}

/// How many rows each whole number of a small range has.
struct Rows {
    /// In increasing order.
    sorted: Vec<usize>,
    total: usize,
}

impl Rows {
    fn of(values: &[i64], min: i64, max: i64) -> Self {
        let mut sorted = vec![0; max.abs_diff(min) as usize + 1];
        for x in values {
            sorted[x.abs_diff(min) as usize] += 1;
        }
        sorted.sort_unstable();
        Self { sorted, total: values.len() }
    }

    /// How many numbers have this many rows.
    fn with(&self, rows: usize) -> usize {
        self.sorted.partition_point(|n| *n <= rows) - self.sorted.partition_point(|n| *n < rows)
    }
}

//! Inference of a column's kind.

use std::collections::{BTreeMap, BTreeSet};

use super::date_time::Found;
use super::facts::{Facts, KnownCells};
use super::{
    Boolean, Categorical, Coding, ColumnKind, Continuous, DateTime, Digits, Integer, Number,
    Periodic,
};
use crate::data::{DataError, Storage, Support, Warp, WarpError, WarpOptions};

/// Whole numbers of a range from this on are numbers on a grid where there are fewer rows than so many for each.
const SPARSE_RANGE: u64 = 20;
const SPARSE_ROWS: u64 = 10;

/// How to infer a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct InferOptions {
    /// Kinds of columns by name, for those that are not to be guessed.
    pub kinds: BTreeMap<String, KindHint>,
    /// Columns in which that a cell is missing is a value of its own: see [`Optional`](super::Optional).
    pub missing_as_value: BTreeSet<String>,
    /// The widest range of whole numbers that becomes one finite variable, if it is not too wide for so many rows.
    pub max_range: usize,
    /// The most distinct numbers of a column that is categorical; it also needs 4 rows for each.
    pub max_distinct: usize,
    /// The maximum number of labels of a categorical column. The most common stay (by name where equally common), but none that is
    /// there only once; the rest become [`OTHER`](super::OTHER).
    pub max_labels: usize,
    /// Labels with fewer rows than this become [`OTHER`](super::OTHER).
    pub min_count: usize,
    /// Which categorical columns have a place for other labels.
    pub other: Other,
    /// What whole numbers of a wide range become.
    pub wide_integers: WideIntegers,
    /// Numbers by column that are atoms, next to those that its values suggest. Where every value has a probability of its own
    /// already, they say nothing new.
    pub named_atoms: BTreeMap<String, Vec<f64>>,
    /// Whether numbers can have atoms, lie on grids of decimals and have the bounds that their values suggest. Otherwise they
    /// are densities on the real line.
    pub atoms: bool,
    /// How continuous columns are transformed.
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

/// Which categorical columns have a place for other labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Other {
    /// Those with merged labels, and constant ones.
    #[default]
    Auto,
    /// All.
    Always,
    /// Those with merged labels, and those without any label.
    Never,
}

/// What whole numbers of a wide range become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WideIntegers {
    /// Several digits: a place of its own for every number. Where the range is that of all 64-bit integers, a real number.
    Digits,
    /// Numbers on a grid, with atoms: answers are fast, and neighbors alike.
    #[default]
    Continuous,
}

/// What a column is declared to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KindHint {
    /// Labels.
    Categorical,
    /// Two labels.
    Boolean,
    /// Whole numbers, one finite variable.
    Integer,
    /// Whole numbers, in digits.
    Digits,
    /// Real numbers within these bounds, with a density.
    Continuous(Support),
    /// Numbers with atoms, on a grid of decimals if they have few, with a probability for every cell.
    Number,
    /// Numbers that mean the same a period later.
    Periodic {
        /// The period.
        period: f64,
    },
}

/// Whether this whole number, and all that are nearer to 0, are floats too.
fn is_exact(x: i64) -> bool {
    x.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS
}

impl Facts<'_> {
    /// What the column means, as declared or by its cells.
    pub(crate) fn kind(&self, hint: Option<KindHint>) -> Result<ColumnKind, DataError> {
        let kind = match hint {
            Some(hint) => self.declared(hint),
            None => self.guessed(),
        }?;
        self.check_atoms(&kind)?;
        Ok(kind)
    }

    /// Rejects atoms of columns that cannot have any.
    fn check_atoms(&self, kind: &ColumnKind) -> Result<(), DataError> {
        let atoms = self.named_atoms();
        let problem = match kind {
            _ if atoms.is_empty() => return Ok(()),
            _ if atoms.iter().any(|x| !x.is_finite()) => "an atom is not a finite number",
            ColumnKind::Categorical(_) | ColumnKind::Boolean(_)
                if self.cells.numbers().is_none() =>
            {
                "its cells are not numbers"
            }
            ColumnKind::Categorical(_)
            | ColumnKind::Boolean(_)
            | ColumnKind::Integer(_)
            | ColumnKind::Digits(_)
            | ColumnKind::Number(_) => return Ok(()),
            ColumnKind::Continuous(_) | ColumnKind::Periodic(_) | ColumnKind::Optional(_) => {
                "it is declared to have only a density; declare it as a number"
            }
            ColumnKind::DateTime(_) => "its cells are not numbers",
        };
        let column = self.column.name().to_owned();
        Err(DataError::Kind { column, kind: "a number with atoms", problem })
    }

    fn named_atoms(&self) -> &[f64] {
        self.options.named_atoms.get(self.column.name()).map_or(&[], Vec::as_slice)
    }

    /// Whether there is no known cell.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self.cells, KnownCells::Nothing)
    }

    fn guessed(&self) -> Result<ColumnKind, DataError> {
        Ok(match &self.cells {
            KnownCells::Nothing => Categorical::of_nothing().into(),
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
                    && !self.is_sparse(max.abs_diff(*min), values.len()) =>
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
                // Beyond 2⁵³ only digits are exact.
                let wanted = self.options.wide_integers == WideIntegers::Digits
                    || !is_exact(*min)
                    || !is_exact(*max);
                if let Some(kind) = Digits::of(*min, *max).filter(|_| wanted) {
                    return Ok(kind.into());
                }
                let values: Vec<f64> = values.iter().map(|&x| x as f64).collect();
                self.number(&values)?
            }
            KnownCells::Real { values } => {
                let bits: Vec<u64> = values.iter().map(|x| x.to_bits()).collect();
                if self.is_coarse(&bits) {
                    Categorical::of(self).into()
                } else {
                    self.number(values)?
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
                match Digits::of(*min, *max) {
                    Some(kind) => Ok(kind.into()),
                    None => fail(
                        "an integer in digits",
                        "its range covers all 64-bit integers; declare it continuous or text",
                    ),
                }
            }
            (KindHint::Integer, _) => fail("an integer", "its cells are not whole numbers"),
            (KindHint::Digits, _) => {
                fail("an integer in digits", "its cells are not whole numbers")
            }
            (KindHint::Continuous(support), cells) => match cells.numbers() {
                Some(numbers) => self.continuous(&numbers, support),
                None => fail("continuous", "its cells are not numbers"),
            },
            (KindHint::Number, cells) => match cells.numbers() {
                Some(numbers) => self.number(&numbers),
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

    /// Whether a range of whole numbers is so wide that a number has too few rows to be known by itself, and those near it have to
    /// tell.
    fn is_sparse(&self, range: u64, rows: usize) -> bool {
        self.options.atoms && range >= SPARSE_RANGE && (rows as u64) < SPARSE_ROWS * range
    }

    /// A number as its values suggest it.
    fn number(&self, values: &[f64]) -> Result<ColumnKind, DataError> {
        if !self.options.atoms {
            return self.continuous(values, Support::REAL);
        }
        let kind =
            Number::with_atoms(values, self.named_atoms(), Support::REAL, &self.options.warp);
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

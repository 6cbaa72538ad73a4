//! Inference of a column's kind.

use std::collections::{BTreeMap, BTreeSet};

use super::date_time::Found;
use super::facts::{Facts, KnownCells};
use super::{
    Boolean, Categorical, Coding, ColumnKind, Continuous, DateTime, Digits, Integer, Number,
    Periodic,
};
use crate::data::{DataError, Storage, Support, Warp, WarpError, WarpOptions};

/// Whole numbers with at least this range become numbers on a grid if there are fewer than `SPARSE_ROWS` rows per
/// number.
const SPARSE_RANGE: u64 = 20;
const SPARSE_ROWS: u64 = 10;

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
    /// As digits, with a separate probability for every number, or as a real number if the range is that of all 64-bit
    /// integers.
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
    Number,
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
                // Above 2⁵³, only digits are exact.
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

    /// Whether a range of whole numbers has too few rows per number to estimate each separately, so that neighbors must
    /// share information.
    fn is_sparse(&self, range: u64, rows: usize) -> bool {
        self.options.atoms && range >= SPARSE_RANGE && (rows as u64) < SPARSE_ROWS * range
    }

    /// Infers a number with atoms, grid and bounds from its values.
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

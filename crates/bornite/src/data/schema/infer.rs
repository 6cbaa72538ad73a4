//! Finding out what the columns of a table mean.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::{ColumnKind, ColumnSchema, KindName, Schema, Storage};
use crate::data::error::nearest;
use crate::data::{Cells, Column, DataError, Labels, Support, Table, Warp, WarpOptions};

/// The pairs of labels that are taken for no and yes.
const BOOLEANS: [[&str; 2]; 5] =
    [["false", "true"], ["no", "yes"], ["f", "t"], ["n", "y"], ["off", "on"]];
/// The largest whole number such that all smaller ones are floats too.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// The largest radix of a digit.
const MAX_RADIX: f64 = 64.0;

/// How to infer a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct InferOptions {
    /// Kinds of columns by name, for those that are not to be guessed.
    pub kinds: BTreeMap<String, KindHint>,
    /// The widest range of whole numbers that becomes one finite variable.
    pub max_range: usize,
    /// The most distinct numbers of a column that is categorical; it also needs 4 rows for each.
    pub max_distinct: usize,
    /// The most labels of a categorical column. The commonest stay (by name where equally common), but none that is
    /// there only once; the rest become [`OTHER`](super::OTHER).
    pub max_labels: usize,
    /// Labels with fewer rows than this become [`OTHER`](super::OTHER).
    pub min_count: usize,
    /// Which categorical columns have a place for other labels.
    pub other: Other,
    /// What whole numbers of a wide range become.
    pub wide_integers: WideIntegers,
    /// How continuous columns are transformed.
    pub warp: WarpOptions,
}

impl Default for InferOptions {
    fn default() -> Self {
        Self {
            kinds: BTreeMap::new(),
            max_range: 256,
            max_distinct: 30,
            max_labels: 256,
            min_count: 1,
            other: Other::default(),
            wide_integers: WideIntegers::default(),
            warp: WarpOptions::default(),
        }
    }
}

/// Which categorical columns have a place for other labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Other {
    /// Those with merged labels, and those where an unseen label is likely: constant columns, and where a label is there
    /// only once.
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
    /// Several digits: exact probabilities. Where the range is that of all 64-bit integers, a real number.
    #[default]
    Digits,
    /// A real number: a density.
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
    /// Real numbers within these bounds.
    Continuous(Support),
    /// Numbers that mean the same a period later.
    Periodic {
        /// The period.
        period: f64,
    },
}

impl Schema {
    /// Infers what the columns of a table mean.
    ///
    /// Text is categorical, or Boolean for pairs such as `no` and `yes`. Whole numbers (of either type of column) are Boolean
    /// for 0 and 1, integers up to a range of `max_range`, else digits; real numbers are continuous. Numbers of which few
    /// are distinct are categorical, and so are constant columns, with a place for other values. A column without any
    /// known cell has that one value alone. The columns of images are integers of one common range.
    ///
    /// # Errors
    /// There are no rows, a number is infinite, or a declared kind does not fit its column.
    pub fn infer(table: &Table, options: &InferOptions) -> Result<Self, DataError> {
        if table.num_rows() == 0 {
            return Err(DataError::NoRows);
        }
        for name in options.kinds.keys() {
            if table.columns().iter().all(|c| c.name() != name) {
                let hint = nearest(table.columns().iter().map(Column::name), name);
                return Err(DataError::UnknownColumn { name: name.clone(), hint });
            }
        }
        let pixels = table.image().and_then(|_| common_range(table.columns()));
        let columns = table
            .columns()
            .par_iter()
            .map(|column| {
                let hint = options.kinds.get(column.name()).copied();
                match (hint, pixels) {
                    (None, Some((min, max))) => {
                        let storage = storage(column);
                        let kind = ColumnKind::Integer { min, max };
                        Ok(ColumnSchema { name: column.name().to_owned(), kind, storage })
                    }
                    _ => Guess { column, options }.schema(hint),
                }
            })
            .collect::<Result<_, DataError>>()?;
        let schema = Self::new(columns)?;
        match table.image() {
            Some(shape) => schema.with_image(shape),
            None => Ok(schema),
        }
    }
}

fn storage(column: &Column) -> Storage {
    match column.cells() {
        Cells::Numbers(c) => Storage::Numbers(c.format()),
        Cells::Integers(_) => Storage::Integers,
        Cells::Labels(_) => Storage::Labels,
    }
}

/// The range of all pixels: from 0, and to 255 for more than 17 grey levels of a byte.
fn common_range(columns: &[Column]) -> Option<(i64, i64)> {
    let mut range = None;
    for column in columns {
        match Facts::of(column).ok()? {
            Facts::Whole { min, max, .. } => {
                let (low, high) = range.unwrap_or((min, max));
                range = Some((low.min(min), high.max(max)));
            }
            Facts::Nothing => {}
            _ => return None,
        }
    }
    match range? {
        (min, max @ 17..=255) if min >= 0 => Some((0, max.max(255))),
        (min, max @ 0..=16) if min >= 0 => Some((0, max.max(1))),
        (min, max) if max.abs_diff(min) < 256 => Some((min, max)),
        _ => None,
    }
}

/// What the known cells of a column are.
enum Facts {
    Nothing,
    Text,
    Whole { min: i64, max: i64, values: Vec<i64> },
    Real { values: Vec<f64> },
}

impl Facts {
    fn of(column: &Column) -> Result<Self, DataError> {
        Ok(match column.cells() {
            Cells::Labels(c) if c.codes().iter().all(|&c| c == Labels::MISSING) => Facts::Nothing,
            Cells::Labels(_) => Facts::Text,
            Cells::Integers(c) => Self::whole(c.iter().flatten().collect()),
            Cells::Numbers(c) => {
                let infinite = c.values().iter().position(|x| x.is_infinite());
                if let Some(row) = infinite {
                    return Err(DataError::Infinite {
                        place: format!("row {}", row + 1),
                        column: column.name().to_owned(),
                        text: c.values()[row].to_string(),
                    });
                }
                let known = || c.values().iter().copied().filter(|x| !x.is_nan());
                if known().all(|x| x.fract() == 0.0 && x.abs() <= EXACT) {
                    Self::whole(known().map(|x| x as i64).collect())
                } else {
                    Facts::Real { values: known().collect() }
                }
            }
        })
    }

    fn whole(values: Vec<i64>) -> Self {
        match (values.iter().min().copied(), values.iter().max().copied()) {
            (Some(min), Some(max)) => Facts::Whole { min, max, values },
            _ => Facts::Nothing,
        }
    }
}

/// One column to be guessed.
struct Guess<'a> {
    column: &'a Column,
    options: &'a InferOptions,
}

impl Guess<'_> {
    fn schema(&self, hint: Option<KindHint>) -> Result<ColumnSchema, DataError> {
        let facts = Facts::of(self.column)?;
        let kind = match hint {
            Some(hint) => self.declared(&facts, hint)?,
            None => self.guessed(&facts)?,
        };
        let (name, mut storage) = (self.column.name().to_owned(), storage(self.column));
        // Nothing is known of the cells of an empty column.
        if matches!(facts, Facts::Nothing) && hint.is_none() {
            storage = Storage::Labels;
        }
        Ok(ColumnSchema { name, kind, storage })
    }

    fn guessed(&self, facts: &Facts) -> Result<ColumnKind, DataError> {
        Ok(match facts {
            Facts::Nothing => ColumnKind::Categorical { labels: Vec::new(), has_other: true },
            Facts::Text => match self.boolean() {
                Some(kind) => kind,
                None => self.categorical(),
            },
            Facts::Whole { min: 0, max: 1, .. } => binary(),
            Facts::Whole { min, max, .. } if min == max => self.categorical(),
            Facts::Whole { min, max, .. } if max.abs_diff(*min) < self.options.max_range as u64 => {
                ColumnKind::Integer { min: *min, max: *max }
            }
            Facts::Whole { values, .. } if self.is_coarse(values) => self.categorical(),
            Facts::Whole { min, max, values } => {
                let wanted = self.options.wide_integers == WideIntegers::Digits;
                if let Some(kind) = digits(*min, *max).filter(|_| wanted) {
                    return Ok(kind);
                }
                let values: Vec<f64> = values.iter().map(|&x| x as f64).collect();
                self.continuous(&values, Support::REAL)?
            }
            Facts::Real { values } => {
                let bits: Vec<u64> = values.iter().map(|x| x.to_bits()).collect();
                if self.is_coarse(&bits) {
                    self.categorical()
                } else {
                    self.continuous(values, Support::REAL)?
                }
            }
        })
    }

    fn declared(&self, facts: &Facts, hint: KindHint) -> Result<ColumnKind, DataError> {
        let fail = |kind, problem| {
            Err(DataError::Kind { column: self.column.name().to_owned(), kind, problem })
        };
        let numbers = match facts {
            Facts::Whole { values, .. } => Some(values.iter().map(|&x| x as f64).collect()),
            Facts::Real { values } => Some(values.clone()),
            Facts::Nothing | Facts::Text => None,
        };
        match (hint, facts) {
            (KindHint::Categorical, _) => Ok(self.categorical()),
            (KindHint::Boolean, Facts::Whole { min: 0.., max: ..=1, .. }) => Ok(binary()),
            (KindHint::Boolean, _) => match self.two_labels() {
                Some(labels) => Ok(ColumnKind::Boolean { labels }),
                None => fail(KindName::Boolean, "it does not have exactly two values"),
            },
            (KindHint::Integer, Facts::Whole { min, max, .. }) => {
                let kind = ColumnKind::Integer { min: *min, max: *max };
                match kind.problem(Storage::Integers) {
                    Some(_) => fail(KindName::Integer, "its range is too wide; declare digits"),
                    None => Ok(kind),
                }
            }
            (KindHint::Digits, Facts::Whole { min, max, .. }) => self.digits(*min, *max),
            (KindHint::Integer, _) => fail(KindName::Integer, "its cells are not whole numbers"),
            (KindHint::Digits, _) => fail(KindName::Digits, "its cells are not whole numbers"),
            (KindHint::Continuous(support), _) => match numbers {
                Some(numbers) => self.continuous(&numbers, support),
                None => fail(KindName::Continuous, "its cells are not numbers"),
            },
            (KindHint::Periodic { period }, _) => {
                let kind = ColumnKind::Periodic { origin: 0.0, period };
                match (kind.problem(Storage::Integers), numbers) {
                    (None, Some(_)) => Ok(kind),
                    (Some(_), _) => fail(KindName::Periodic, "its period is not positive"),
                    (_, None) => fail(KindName::Periodic, "its cells are not numbers"),
                }
            }
        }
    }

    /// Whether few numbers are distinct: at most `max_distinct`, and 4 rows for each; or one alone.
    fn is_coarse<T: Ord + Copy>(&self, values: &[T]) -> bool {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let few = sorted.len() <= self.options.max_distinct && sorted.len() * 4 <= values.len();
        sorted.len() == 1 || few
    }

    /// The labels with the number of their rows, by the text of numbers where they are numbers.
    fn counts(&self) -> Vec<(String, usize)> {
        let mut counts = BTreeMap::<String, usize>::new();
        match self.column.cells() {
            Cells::Labels(c) => {
                let mut rows = vec![0; c.labels().len()];
                for &code in c.codes().iter().filter(|&&c| c != Labels::MISSING) {
                    rows[code as usize] += 1;
                }
                // Rows that were not selected leave labels without any.
                let used = c.labels().iter().cloned().zip(rows).filter(|(_, n)| *n > 0);
                counts.extend(used);
            }
            _ => {
                for row in 0..self.column.len() {
                    if let Some(text) = self.label_of_number(row) {
                        *counts.entry(text).or_default() += 1;
                    }
                }
            }
        }
        counts.into_iter().collect()
    }

    fn label_of_number(&self, row: usize) -> Option<String> {
        match self.column.cells() {
            Cells::Integers(c) => c.get(row).map(|x| x.to_string()),
            // + 0 makes −0 the number that it equals.
            Cells::Numbers(c) => {
                Some(c.values()[row] + 0.0).filter(|x| !x.is_nan()).map(|x| x.to_string())
            }
            Cells::Labels(_) => None,
        }
    }

    fn categorical(&self) -> ColumnKind {
        let mut counts = self.counts();
        let distinct = counts.len();
        let least = if distinct > self.options.max_labels { 2 } else { 1 };
        let once = counts.iter().any(|c| c.1 == 1);
        counts.retain(|c| c.1 >= self.options.min_count.max(least));
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counts.truncate(self.options.max_labels);
        let merged = counts.len() < distinct || counts.is_empty();
        let has_other = match self.options.other {
            Other::Auto => merged || once || distinct == 1,
            Other::Always => true,
            Other::Never => merged,
        };
        let mut labels: Vec<String> = counts.into_iter().map(|c| c.0).collect();
        labels.retain(|l| !has_other || l != super::OTHER);
        if matches!(self.column.cells(), Cells::Labels(_)) {
            labels.sort_unstable();
        } else {
            let number = |l: &String| l.parse().unwrap_or(f64::NAN);
            labels.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        ColumnKind::Categorical { labels, has_other }
    }

    fn boolean(&self) -> Option<ColumnKind> {
        let labels = self.two_labels()?;
        let lower = labels.clone().map(|l| l.to_lowercase());
        BOOLEANS.iter().any(|pair| lower == *pair).then_some(ColumnKind::Boolean { labels })
    }

    /// The labels where there are two, in order.
    fn two_labels(&self) -> Option<[String; 2]> {
        let counts = self.counts();
        let [(a, _), (b, _)] = &counts[..] else { return None };
        let swapped = match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a > b,
            _ => false,
        };
        Some(if swapped { [b.clone(), a.clone()] } else { [a.clone(), b.clone()] })
    }

    fn digits(&self, min: i64, max: i64) -> Result<ColumnKind, DataError> {
        digits(min, max).ok_or_else(|| DataError::Kind {
            column: self.column.name().to_owned(),
            kind: KindName::Digits,
            problem: "its range is that of all 64-bit integers; declare it continuous or text",
        })
    }

    fn continuous(&self, values: &[f64], support: Support) -> Result<ColumnKind, DataError> {
        let warp = Warp::fit(values, support, &self.options.warp);
        warp.map(|warp| ColumnKind::Continuous { warp })
            .map_err(|source| DataError::Warp { column: self.column.name().to_owned(), source })
    }
}

/// The fewest digits of radices up to 64, as equal as they can be, whose product covers the range; `None` where that is more
/// than 64 bits hold.
fn digits(min: i64, max: i64) -> Option<ColumnKind> {
    let (min, max) = (i128::from(min), i128::from(max));
    let mut rest = max - min + 1;
    let count = ((rest as f64).ln() / MAX_RADIX.ln()).ceil().max(1.0) as usize;
    let mut radices = Vec::with_capacity(count);
    for left in (1..=count).rev() {
        let radix = (rest as f64).powf(1.0 / left as f64).ceil().max(1.0) as i128;
        radices.push(radix as usize);
        rest = (rest + radix - 1) / radix;
    }
    // The product may go beyond the range, and then beyond 64 bits: start lower.
    let product: i128 = radices.iter().map(|&r| r as i128).product();
    let min = min.min(i128::from(i64::MAX) - product + 1);
    i64::try_from(min).ok().map(|min| ColumnKind::Digits { min, radices })
}

fn binary() -> ColumnKind {
    ColumnKind::Boolean { labels: ["0".to_owned(), "1".to_owned()] }
}

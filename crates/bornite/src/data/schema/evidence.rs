//! From what is known of a column to what is known of its variables.

use std::ops::Bound;

use super::encode::turns;
use super::{Cell, ColumnKind, Schema, numeric_labels};
use crate::basis::Part;
use crate::data::{DataError, Warp};
use crate::query::Evidence;

/// What is known of a column's variables, by their positions. Variables that are not named are unknown.
///
/// What is known of a column may be several blocks, of which one holds: their probabilities add up. It is more than one only
/// for digits and for intervals around the circle.
pub type Block = Vec<(usize, Evidence)>;

impl Schema {
    /// What it means for the variables that a column has this value.
    ///
    /// # Errors
    /// There is no such column, or the value does not fit it.
    pub fn evidence_value(&self, column: &str, cell: Cell<'_>) -> Result<Block, DataError> {
        let index = self.find(column)?;
        let (values, _) = self.encode_value(index, cell)?;
        Ok(self.variables_of(index).zip(values.into_iter().map(Evidence::Value)).collect())
    }

    /// What it means for the variables that a column has one of these values.
    ///
    /// # Errors
    /// There is no such column, a value does not fit it, or it is continuous.
    pub fn evidence_set(&self, column: &str, cells: &[Cell<'_>]) -> Result<Vec<Block>, DataError> {
        let index = self.find(column)?;
        let kind = &self.columns[index].kind;
        if matches!(kind, ColumnKind::Continuous { .. } | ColumnKind::Periodic { .. }) {
            let problem = "a set of values has probability 0 there; ask for an interval [a, b)";
            return Err(DataError::Evidence { column: column.to_owned(), problem });
        }
        let mut values = Vec::new();
        for &cell in cells {
            values.push(self.encode_value(index, cell)?.0);
        }
        let first = self.variables_of(index).start;
        if let ColumnKind::Digits { .. } = kind {
            values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            values.dedup();
            let block = |digits: &Vec<f64>| {
                digits.iter().enumerate().map(|(n, &x)| (first + n, Evidence::Value(x))).collect()
            };
            return Ok(values.iter().map(block).collect());
        }
        let mut set: Vec<usize> = values.iter().map(|v| v[0] as usize).collect();
        set.sort_unstable();
        set.dedup();
        Ok(vec![vec![(first, Evidence::In(Part::Values(set)))]])
    }

    /// What it means for the variables that a column lies between two numbers.
    ///
    /// An interval of a continuous column becomes that of u = F(x). Of labels that are numbers those within the interval are
    /// meant, and never the place for others. No block at all means that the probability is 0.
    ///
    /// # Errors
    /// There is no such column, its values are no numbers, or the ends are not in order.
    pub fn evidence_interval(
        &self,
        column: &str,
        low: Bound<f64>,
        high: Bound<f64>,
    ) -> Result<Vec<Block>, DataError> {
        let index = self.find(column)?;
        let first = self.variables_of(index).start;
        let schema = &self.columns[index];
        let ends = Ends { low, high };
        let (a, b) = ends.numbers();
        if a.is_nan() || b.is_nan() || a > b {
            return Err(DataError::Interval { column: column.to_owned(), low: a, high: b });
        }
        let values = |set: Vec<usize>| match set.len() {
            0 => Vec::new(),
            _ => vec![vec![(first, Evidence::In(Part::Values(set)))]],
        };
        let of_labels = |labels: &[String]| match numeric_labels(labels) {
            Some(numbers) if !numbers.is_empty() => {
                let within = numbers.iter().enumerate().filter(|(_, x)| ends.contains(**x));
                Ok(values(within.map(|(n, _)| n).collect()))
            }
            _ => Err(DataError::Evidence {
                column: column.to_owned(),
                problem: "its labels are no numbers, so there is no interval of them; ask for a set {a, b}",
            }),
        };
        Ok(match &schema.kind {
            ColumnKind::Categorical { labels, .. } => of_labels(labels)?,
            ColumnKind::Boolean { labels } => of_labels(labels)?,
            ColumnKind::Integer { min, max } => {
                match ends.whole(i128::from(*min), i128::from(*max)) {
                    Some((from, to)) => values((from as usize..=to as usize).collect()),
                    None => Vec::new(),
                }
            }
            ColumnKind::Digits { min, radices } => {
                let count: i128 = radices.iter().map(|&r| r as i128).product();
                let range = ends.whole(i128::from(*min), i128::from(*min) + count - 1);
                let mut blocks = Vec::new();
                if let Some((from, to)) = range {
                    digit_blocks(radices, from, to, (first, &mut Vec::new()), &mut blocks);
                }
                blocks
            }
            ColumnKind::Continuous { warp } => continuous(warp, first, a, b),
            ColumnKind::Periodic { origin, period } => circular(first, *origin, *period, a, b),
        })
    }
}

fn continuous(warp: &Warp, variable: usize, a: f64, b: f64) -> Vec<Block> {
    let (low, high) = (warp.distribution(a), warp.distribution(b));
    if low < high { vec![vec![(variable, interval(low, high))]] } else { Vec::new() }
}

fn interval(low: f64, high: f64) -> Evidence {
    Evidence::In(Part::Interval { low, high })
}

/// An interval of the circle, in two pieces where it runs over its origin.
fn circular(variable: usize, origin: f64, period: f64, a: f64, b: f64) -> Vec<Block> {
    if b - a >= period {
        return vec![Vec::new()];
    }
    if a >= b {
        return Vec::new();
    }
    let (low, high) = (turns(a, origin, period), turns(b, origin, period));
    let pieces = if low < high { vec![(low, high)] } else { vec![(low, 1.0), (0.0, high)] };
    let pieces = pieces.into_iter().filter(|(low, high)| low < high);
    pieces.map(|(low, high)| vec![(variable, interval(low, high))]).collect()
}

/// An interval of numbers.
struct Ends {
    low: Bound<f64>,
    high: Bound<f64>,
}

impl Ends {
    fn numbers(&self) -> (f64, f64) {
        let number = |bound: &Bound<f64>, otherwise| match bound {
            Bound::Included(x) | Bound::Excluded(x) => *x,
            Bound::Unbounded => otherwise,
        };
        (number(&self.low, f64::NEG_INFINITY), number(&self.high, f64::INFINITY))
    }

    fn contains(&self, x: f64) -> bool {
        let above = match self.low {
            Bound::Included(a) => x >= a,
            Bound::Excluded(a) => x > a,
            Bound::Unbounded => true,
        };
        let below = match self.high {
            Bound::Included(b) => x <= b,
            Bound::Excluded(b) => x < b,
            Bound::Unbounded => true,
        };
        above && below
    }

    /// The first and last whole number from `min` to `max` within, counted from `min`.
    fn whole(&self, min: i128, max: i128) -> Option<(i128, i128)> {
        // A float beyond 2⁶⁴ is beyond every 64-bit integer.
        let clamp = |x: f64| x.clamp(-2f64.powi(65), 2f64.powi(65)) as i128;
        let first = match self.low {
            Bound::Included(a) => clamp(a.ceil()),
            Bound::Excluded(a) => clamp(a.floor()) + 1,
            Bound::Unbounded => min,
        };
        let last = match self.high {
            Bound::Included(b) => clamp(b.floor()),
            Bound::Excluded(b) => clamp(b.ceil()) - 1,
            Bound::Unbounded => max,
        };
        let (first, last) = (first.max(min), last.min(max));
        (first <= last).then(|| (first - min, last - min))
    }
}

/// The numbers `from` to `to` in a mixed radix, as boxes of digits: at most two for each digit.
fn digit_blocks(
    radices: &[usize],
    from: i128,
    to: i128,
    (variable, fixed): (usize, &mut Block),
    blocks: &mut Vec<Block>,
) {
    let Some((&radix, rest)) = radices.split_first() else {
        blocks.push(fixed.clone());
        return;
    };
    let size: i128 = rest.iter().map(|&r| r as i128).product();
    let (mut first, mut last) = (from / size, to / size);
    let (head, tail) = (from % size, to % size);
    let mut within = |digit: i128, from: i128, to: i128, blocks: &mut Vec<Block>| {
        fixed.push((variable, Evidence::Value(digit as f64)));
        digit_blocks(rest, from, to, (variable + 1, fixed), blocks);
        fixed.pop();
    };
    if first == last && (head != 0 || tail != size - 1) {
        within(first, head, tail, blocks);
        return;
    }
    if head != 0 {
        within(first, head, size - 1, blocks);
        first += 1;
    }
    if tail != size - 1 {
        within(last, 0, tail, blocks);
        last -= 1;
    }
    if first <= last {
        let mut block = fixed.clone();
        if first == last {
            block.push((variable, Evidence::Value(first as f64)));
        } else if first > 0 || last < radix as i128 - 1 {
            let set = (first as usize..=last as usize).collect();
            block.push((variable, Evidence::In(Part::Values(set))));
        }
        blocks.push(block);
    }
}

//! Intervals of numbers.

use std::ops::Bound;

/// An end of an interval: a number, and its exact value if it is a whole number that a float may not represent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) number: f64,
    pub(crate) whole: Option<i128>,
}

impl From<f64> for End {
    fn from(number: f64) -> Self {
        Self { number, whole: None }
    }
}

impl End {
    /// The largest whole number ≤ this end.
    fn floor(self) -> i128 {
        self.whole.unwrap_or_else(|| clamp(self.number.floor()))
    }

    /// The smallest whole number ≥ this end.
    fn ceil(self) -> i128 {
        self.whole.unwrap_or_else(|| clamp(self.number.ceil()))
    }
}

/// Converts a float to an integer. Anything beyond 2⁶⁴ is beyond every 64-bit integer.
fn clamp(x: f64) -> i128 {
    x.clamp(-2f64.powi(65), 2f64.powi(65)) as i128
}

/// An interval of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    low: Bound<End>,
    high: Bound<End>,
}

impl Ends {
    /// The interval between two ends. `Err` contains both if they are not in order.
    pub(crate) fn new(low: Bound<f64>, high: Bound<f64>) -> Result<Self, (f64, f64)> {
        Self::exact(low.map(End::from), high.map(End::from))
    }

    /// The interval between two ends, which may be exact whole numbers. `Err` contains both if they are not in order.
    pub(crate) fn exact(low: Bound<End>, high: Bound<End>) -> Result<Self, (f64, f64)> {
        let ends = Self { low, high };
        let (a, b) = ends.numbers();
        if a.is_nan() || b.is_nan() || a > b { Err((a, b)) } else { Ok(ends) }
    }

    /// Both ends, infinite where the interval is unbounded.
    pub(crate) fn numbers(&self) -> (f64, f64) {
        let number = |bound: &Bound<End>, otherwise| match bound {
            Bound::Included(x) | Bound::Excluded(x) => x.number,
            Bound::Unbounded => otherwise,
        };
        (number(&self.low, f64::NEG_INFINITY), number(&self.high, f64::INFINITY))
    }

    /// Both ends as bounds.
    pub(crate) fn bounds(&self) -> (Bound<f64>, Bound<f64>) {
        (self.low.map(|end| end.number), self.high.map(|end| end.number))
    }

    /// Whether x is inside.
    pub(crate) fn contains(&self, x: f64) -> bool {
        let above = match self.low {
            Bound::Included(a) => x >= a.number,
            Bound::Excluded(a) => x > a.number,
            Bound::Unbounded => true,
        };
        let below = match self.high {
            Bound::Included(b) => x <= b.number,
            Bound::Excluded(b) => x < b.number,
            Bound::Unbounded => true,
        };
        above && below
    }

    /// Half a unit below the first and half a unit above the last number inside on the grid with this unit and origin.
    pub(crate) fn halfway(&self, unit: f64, origin: f64) -> (f64, f64) {
        let below = |end: End| ((end.number - origin) / unit).ceil() - 0.5;
        let above = |end: End| ((end.number - origin) / unit).floor() + 0.5;
        let at = |n: f64| n * unit + origin;
        let low = match self.low {
            Bound::Included(end) => at(below(end)),
            Bound::Excluded(end) => at(above(end)),
            Bound::Unbounded => f64::NEG_INFINITY,
        };
        let high = match self.high {
            Bound::Included(end) => at(above(end)),
            Bound::Excluded(end) => at(below(end)),
            Bound::Unbounded => f64::INFINITY,
        };
        (low, high)
    }

    /// The first and last whole number from `min` to `max` inside, as offsets from `min`.
    pub(crate) fn whole(&self, min: i128, max: i128) -> Option<(i128, i128)> {
        let first = match self.low {
            Bound::Included(a) => a.ceil(),
            Bound::Excluded(a) => a.floor() + 1,
            Bound::Unbounded => min,
        };
        let last = match self.high {
            Bound::Included(b) => b.floor(),
            Bound::Excluded(b) => b.ceil() - 1,
            Bound::Unbounded => max,
        };
        let (first, last) = (first.max(min), last.min(max));
        (first <= last).then(|| (first - min, last - min))
    }
}

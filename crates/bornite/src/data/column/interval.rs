//! Intervals of numbers.

use std::ops::Bound;

/// An interval of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    low: Bound<f64>,
    high: Bound<f64>,
}

impl Ends {
    /// The interval between two numbers; both where they are not in order.
    pub(crate) fn new(low: Bound<f64>, high: Bound<f64>) -> Result<Self, (f64, f64)> {
        let ends = Self { low, high };
        let (a, b) = ends.numbers();
        if a.is_nan() || b.is_nan() || a > b { Err((a, b)) } else { Ok(ends) }
    }

    /// Both ends, infinite where there is none.
    pub(crate) fn numbers(&self) -> (f64, f64) {
        let number = |bound: &Bound<f64>, otherwise| match bound {
            Bound::Included(x) | Bound::Excluded(x) => *x,
            Bound::Unbounded => otherwise,
        };
        (number(&self.low, f64::NEG_INFINITY), number(&self.high, f64::INFINITY))
    }

    /// Whether x is within.
    pub(crate) fn contains(&self, x: f64) -> bool {
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
    pub(crate) fn whole(&self, min: i128, max: i128) -> Option<(i128, i128)> {
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

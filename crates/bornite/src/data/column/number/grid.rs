//! Grids: numbers with few decimals, or multiples of a step.

/// The minimum number of distinct values from which the step of a grid is inferred.
const MIN_DISTINCT: usize = 10;
/// The maximum number of decimals of a grid.
pub(super) const MAX_DECIMALS: u8 = 9;
/// 2⁵³: whole numbers below it are exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A grid: the multiples of `step` / 10^`decimals`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grid {
    pub(super) decimals: u8,
    pub(super) step: u32,
}

impl Grid {
    /// The grid with this many decimals.
    pub(super) fn of(decimals: u8) -> Self {
        Self { decimals, step: 1 }
    }

    /// The coarsest grid that contains all of these sorted values; `None` if they have too many decimals.
    pub(super) fn find(sorted: &[f64]) -> Option<Self> {
        let grid = Self::of(decimals_of(sorted)?);
        let (mut step, mut distinct) = (0_u64, 0);
        for run in sorted.chunk_by(|a, b| a == b) {
            let n = grid.index(run[0]);
            (step, distinct) = (common_divisor(step, n.abs() as u64), distinct + 1);
        }
        let step = u32::try_from(step).ok().filter(|_| distinct >= MIN_DISTINCT);
        Some(Self { step: step.unwrap_or(1).max(1), ..grid })
    }

    /// The index of the nearest multiple.
    pub(super) fn index(self, x: f64) -> f64 {
        (x * power(self.decimals) / f64::from(self.step)).round()
    }

    /// The nth multiple.
    pub(super) fn at(self, n: f64) -> f64 {
        n * f64::from(self.step) / power(self.decimals) + 0.0
    }

    /// The distance between neighbors.
    pub(super) fn unit(self) -> f64 {
        self.at(1.0)
    }

    /// Whether x is on the grid, and small enough to be distinguished from its neighbors.
    pub(super) fn contains(self, x: f64) -> bool {
        self.is_fine(x) && self.at(self.index(x)) == x
    }

    /// Whether the index of x is exact.
    pub(super) fn is_fine(self, x: f64) -> bool {
        (x * power(self.decimals)).abs() < EXACT
    }
}

/// The greatest common divisor.
fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// 10ⁿ.
pub(super) fn power(n: u8) -> f64 {
    10f64.powi(i32::from(n))
}

/// Whether x has this many decimals, and is small enough to be distinguished from the next such number.
fn is_decimal(x: f64, decimals: u8) -> bool {
    let n = (x * power(decimals)).round();
    n.abs() < EXACT && n / power(decimals) == x
}

/// The smallest number of decimals that all values have; `None` if that is too many.
fn decimals_of(values: &[f64]) -> Option<u8> {
    let mut decimals = 0;
    for &x in values {
        while !is_decimal(x, decimals) {
            decimals += 1;
            if decimals > MAX_DECIMALS {
                return None;
            }
        }
    }
    Some(decimals)
}

//! Grids: numbers with few decimals, or a step apart.

/// The minimum number of distinct values from which the step of a grid is inferred.
const MIN_DISTINCT: usize = 10;
/// The maximum number of decimals of a grid.
pub(super) const MAX_DECIMALS: u8 = 9;
/// 2⁵³: whole numbers below it are exact.
pub(super) const EXACT: f64 = 9_007_199_254_740_992.0;

/// A grid: the numbers (`offset` + n · `step`) / 10^`decimals` for all whole n, where `offset` < `step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grid {
    pub(super) decimals: u8,
    pub(super) step: u32,
    pub(super) offset: u32,
}

impl Grid {
    /// The grid with this many decimals.
    pub(super) fn of(decimals: u8) -> Self {
        Self { decimals, step: 1, offset: 0 }
    }

    /// The coarsest grid that contains all of these sorted values; `None` if they have too many decimals.
    pub(super) fn find(sorted: &[f64]) -> Option<Self> {
        let grid = Self::of(decimals_of(sorted)?);
        let first = grid.index(*sorted.first()?) as i64;
        let (mut step, mut distinct) = (0, 0);
        for run in sorted.chunk_by(|a, b| a == b) {
            let n = grid.index(run[0]) as i64;
            (step, distinct) = (common_divisor(step, n.abs_diff(first)), distinct + 1);
        }
        let step = u32::try_from(step).ok().filter(|step| *step > 0 && distinct >= MIN_DISTINCT);
        let step = step.unwrap_or(1);
        let offset = first.rem_euclid(i64::from(step)) as u32;
        Some(Self { step, offset, ..grid })
    }

    /// The index of the nearest grid point.
    pub(super) fn index(self, x: f64) -> f64 {
        ((x * power(self.decimals) - f64::from(self.offset)) / f64::from(self.step)).round()
    }

    /// The nth grid point.
    pub(super) fn at(self, n: f64) -> f64 {
        (n * f64::from(self.step) + f64::from(self.offset)) / power(self.decimals) + 0.0
    }

    /// The distance between neighbors.
    pub(super) fn unit(self) -> f64 {
        f64::from(self.step) / power(self.decimals)
    }

    /// The smallest grid point that is not negative.
    pub(super) fn first(self) -> f64 {
        self.at(0.0)
    }

    /// The largest grid point that is not positive.
    pub(super) fn last(self) -> f64 {
        self.at(if self.offset == 0 { 0.0 } else { -1.0 })
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

/// The places of numbers on the coarsest grid that contains all of them, if they have few decimals.
pub(in crate::data::column) fn grid_places(values: &[f64]) -> Option<Vec<i64>> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let grid = Grid::find(&sorted)?;
    Some(values.iter().map(|&x| grid.index(x) as i64).collect())
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

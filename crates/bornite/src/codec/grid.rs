//! Grids: the real numbers that a column contains as consecutive integers, so that nothing between them is coded.

use serde::{Deserialize, Serialize};

/// A set of numbers, each with an ordinal that increases with the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Grid {
    /// Decimals with this many digits after the point: x = ordinal / 10^digits.
    Decimals(u8),
    /// All 32-bit floats, ordered by their bits.
    Float32,
    /// All 64-bit floats, ordered by their bits.
    Float64,
}

/// The maximum number of decimals.
const MAX_DECIMALS: u8 = 17;
/// 2⁵³: whole numbers below it are exact.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// The maximum percentage of cells that may be off the grid, since each of them is escaped.
const MAX_ESCAPED: usize = 1;

impl Grid {
    /// The coarsest grid that contains nearly all of these numbers; the others are escaped.
    pub(super) fn of(values: &[f64]) -> Self {
        let fits = |grid: Grid, allowed: usize| {
            let mut off = values.iter().filter(|&&x| grid.ordinal(x).is_none());
            off.nth(allowed).is_none()
        };
        let allowed = values.len() * MAX_ESCAPED / 100;
        (0..=MAX_DECIMALS)
            .map(Grid::Decimals)
            .find(|&grid| fits(grid, allowed))
            .or_else(|| fits(Grid::Float32, 0).then_some(Grid::Float32))
            .unwrap_or(Grid::Float64)
    }

    /// The ordinal of a number that is exactly on the grid.
    pub(super) fn ordinal(self, x: f64) -> Option<i64> {
        if !x.is_finite() {
            return None;
        }
        let n = match self {
            Grid::Decimals(digits) => {
                let n = (x * power(digits)).round_ties_even();
                (n.abs() < EXACT).then_some(n as i64)?
            }
            Grid::Float32 => {
                let bits = (x as f32).to_bits().cast_signed();
                i64::from(bits ^ ((bits >> 31) & i32::MAX))
            }
            Grid::Float64 => flip(x.to_bits().cast_signed()),
        };
        (self.value(n).to_bits() == x.to_bits()).then_some(n)
    }

    /// The number of an ordinal.
    pub(super) fn value(self, n: i64) -> f64 {
        match self {
            Grid::Decimals(digits) => n as f64 / power(digits),
            Grid::Float32 => {
                let n = n.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
                f64::from(f32::from_bits((n ^ ((n >> 31) & i32::MAX)).cast_unsigned()))
            }
            Grid::Float64 => f64::from_bits(flip(n).cast_unsigned()),
        }
    }

    /// The start of a number's cell: halfway from its predecessor.
    pub(super) fn edge(self, n: i64) -> f64 {
        0.5 * self.value(n.saturating_sub(1)) + 0.5 * self.value(n)
    }
}

/// Converts between the bits of a float and its ordinal: negative floats are reversed, and −0 comes right before 0.
fn flip(bits: i64) -> i64 {
    bits ^ ((bits >> 63) & i64::MAX)
}

/// 10^digits, exact up to 22.
fn power(digits: u8) -> f64 {
    (0..digits).fold(1.0, |p, _| p * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coarsest_grid_is_found() {
        let of = |texts: &[&str]| {
            Grid::of(&texts.iter().map(|t| t.parse().unwrap()).collect::<Vec<f64>>())
        };
        assert_eq!(of(&["3", "-70"]), Grid::Decimals(0));
        assert_eq!(of(&["3", "0.1", "2.75"]), Grid::Decimals(2));
        assert_eq!(of(&["1803446.6966", "0.00001"]), Grid::Decimals(5));
        assert_eq!(Grid::of(&[f64::from(0.1_f32), f64::from(1e-20_f32)]), Grid::Float32);
        assert_eq!(Grid::of(&[0.1 + 0.2, 1.0 / 3.0]), Grid::Float64);
        assert_eq!(Grid::of(&[1e-300, 0.5, -0.0]), Grid::Float64);
        let mut mostly: Vec<f64> = (0..1000).map(|n| f64::from(n) / 10.0).collect();
        mostly[7] = 1e-300;
        assert_eq!(Grid::of(&mostly), Grid::Decimals(1));
    }

    #[test]
    fn ordinals_are_in_order_and_lead_back() {
        let numbers =
            [f64::MIN, -1.5, -1e-310, -0.0, 0.0, f64::MIN_POSITIVE, 0.1, 1.0, 1e17, f64::MAX];
        for grid in [Grid::Decimals(0), Grid::Decimals(1), Grid::Float32, Grid::Float64] {
            let mut last = None;
            for x in numbers {
                let Some(n) = grid.ordinal(x) else {
                    assert_ne!(grid, Grid::Float64);
                    continue;
                };
                assert_eq!(grid.value(n).to_bits(), x.to_bits());
                assert!(last < Some(n), "{grid:?} {x}");
                assert!(grid.edge(n) <= x);
                last = Some(n);
            }
        }
        assert_eq!(Grid::Decimals(2).ordinal(-0.0), None);
        assert_eq!(Grid::Decimals(2).ordinal(0.005), None);
        assert_eq!(Grid::Float64.ordinal(f64::NAN), None);
    }
}

//! Inferring atoms, grid, bounds and transform from values.

use super::Number;
use super::grid::Grid;
use crate::data::{Support, Warp, WarpError, WarpOptions};
use crate::domain::find;

/// The maximum number of atoms of a column.
const MAX_ATOMS: usize = 256;
/// The minimum number of rows of an atom, or 1 in 2,000 rows if that is more.
const MIN_ROWS: usize = 8;
const MIN_SHARE: usize = 2000;
/// The minimum number of rows of an atom without a grid. A density never repeats a value, so fewer rows suffice.
const MIN_REPEATS: usize = 4;
/// The natural upper bounds of proportions and percentages, which apply if the largest value reaches them.
const WHOLES: [f64; 2] = [1.0, 100.0];
/// The minimum ratio of an atom's rows to those of nearby values.
const TIMES: f64 = 3.0;
/// The number of values on each side that count as nearby.
const NEAR: f64 = 8.0;

impl Number {
    /// Infers atoms, grid, bounds and the transform of all other numbers from the observed values.
    ///
    /// A value is an atom if it has at least three times as many rows as nearby values, and enough rows to rule out
    /// chance. If no value is negative, the domain has no negative numbers.
    ///
    /// # Errors
    /// There are no values, a value is not finite or outside the support, or the bounds are not in order.
    pub fn fit(values: &[f64], support: Support, options: &WarpOptions) -> Result<Self, WarpError> {
        Self::with_atoms(values, &[], support, options)
    }

    /// [`fit`](Self::fit), with these atoms in addition to the inferred ones.
    ///
    /// # Errors
    /// As for [`fit`](Self::fit); also, an atom is not finite or has more decimals than any value.
    pub fn with_atoms(
        values: &[f64],
        named: &[f64],
        support: Support,
        options: &WarpOptions,
    ) -> Result<Self, WarpError> {
        Self::with_frequent_atoms(values, named, 0.0, support, options)
    }

    /// Like [`with_atoms`](Self::with_atoms); atoms that are not named have at least this share of the rows.
    ///
    /// # Errors
    /// As for [`with_atoms`](Self::with_atoms).
    pub fn with_frequent_atoms(
        values: &[f64],
        named: &[f64],
        share: f64,
        support: Support,
        options: &WarpOptions,
    ) -> Result<Self, WarpError> {
        // Adding 0 turns −0 into 0.
        let mut sorted: Vec<f64> = values.iter().map(|x| x + 0.0).collect();
        if let Some(&x) = sorted.iter().find(|x| !x.is_finite()) {
            return Err(WarpError::NotFinite(x));
        }
        sorted.sort_unstable_by(f64::total_cmp);
        let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else {
            return Err(WarpError::NoValues);
        };
        let mut named: Vec<f64> = named.iter().map(|x| x + 0.0).collect();
        if let Some(&x) = named.iter().find(|x| !x.is_finite()) {
            return Err(WarpError::NotFinite(x));
        }
        // Declared atoms may lie between the grid points of a step.
        let is_off = |grid: Grid| named.iter().any(|x| !grid.contains(*x));
        let grid = Grid::find(&sorted)
            .map(|grid| if is_off(grid) { Grid::of(grid.decimals) } else { grid });
        if let Some(grid) = grid
            && let Some(&x) = named.iter().find(|x| !grid.contains(**x))
        {
            return Err(WarpError::Atom(x));
        }
        named.extend(find_atoms(&sorted, grid, share));
        named.sort_unstable_by(f64::total_cmp);
        named.dedup();
        let atoms = named;
        let rest: Vec<f64> =
            sorted.iter().copied().filter(|x| find(&atoms, *x).is_none()).collect();
        // The cell of the first or last number within the bounds must be complete.
        let half = grid.map_or(0.0, |grid| 0.5 * grid.unit());
        let (least, most) = grid.map_or((0.0, 0.0), |grid| (grid.first(), grid.last()));
        let whole = WHOLES.into_iter().find(|x| first >= 0.0 && last == *x);
        let high = if last <= 0.0 { Some(most) } else { whole };
        let support = Support {
            low: support.low.or((first >= 0.0).then_some(least - half)),
            high: support.high.or(high.map(|x| x + half)),
        };
        let warp = Warp::fit(if rest.is_empty() { &sorted } else { &rest }, support, options)?;
        Self::on_grid(warp, atoms, grid)
    }
}

/// The values with far more rows than nearby values, and at least this share of all rows.
fn find_atoms(sorted: &[f64], grid: Option<Grid>, share: f64) -> Vec<f64> {
    let runs: Vec<(f64, f64)> =
        sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as f64)).collect();
    let least = if grid.is_some() { MIN_ROWS } else { MIN_REPEATS };
    let least = (least.max(sorted.len() / MIN_SHARE) as f64).max(share * sorted.len() as f64);
    let step = grid.map(Grid::unit);
    let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
    // The mean number of rows of nearby values. Without a grid, values do not repeat by chance.
    let around = |n: usize| {
        let Some(step) = step else { return 0.0 };
        let (x, reach) = (runs[n].0, (NEAR + 0.5) * step);
        let near = |run: &&(f64, f64)| (run.0 - x).abs() <= reach;
        let below: f64 = runs[..n].iter().rev().take_while(near).map(|r| r.1).sum();
        let above: f64 = runs[n + 1..].iter().take_while(near).map(|r| r.1).sum();
        let values = ((x - first) / step).round().min(NEAR) + ((last - x) / step).round().min(NEAR);
        (below + above) / values.max(1.0)
    };
    let stands_out = |n: &usize| {
        let (count, near) = (runs[*n].1, around(*n));
        count >= least && count > TIMES * near + 5.0 * near.sqrt()
    };
    let mut found: Vec<usize> = (0..runs.len()).filter(stands_out).collect();
    found.sort_by(|&a, &b| runs[b].1.total_cmp(&runs[a].1).then(a.cmp(&b)));
    found.truncate(MAX_ATOMS);
    found.sort_unstable();
    found.into_iter().map(|n| runs[n].0).collect()
}

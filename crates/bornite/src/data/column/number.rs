//! Numeric columns with atoms, decimal grids and bounds.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::outside::Tails;
use super::{Coding, ColumnKind, Decoded, Encoder, Ends, Outside, Parts, Problem};
use crate::basis::{Basis, BasisError, MAX_STEP_FUNCTIONS, Part};
use crate::data::{Storage, Support, Warp, WarpError, WarpOptions};
use crate::domain::{Domain, find};
use crate::query::Evidence;

/// The maximum number of atoms of a column.
const MAX_ATOMS: usize = 256;
/// The minimum number of rows of an atom, or 1 in 2,000 rows if that is more.
const MIN_ROWS: usize = 8;
const MIN_SHARE: usize = 2000;
/// The minimum number of rows of an atom without a grid. A density never repeats a value, so fewer rows suffice.
const MIN_REPEATS: usize = 4;
/// The minimum number of distinct values from which the step of a grid is inferred.
const MIN_DISTINCT: usize = 10;
/// The natural upper bounds of proportions and percentages, which apply if the largest value reaches them.
const WHOLES: [f64; 2] = [1.0, 100.0];
/// The minimum ratio of an atom's rows to those of nearby values.
const TIMES: f64 = 3.0;
/// The number of values on each side that count as nearby.
const NEAR: f64 = 8.0;
/// The maximum number of decimals of a grid.
const MAX_DECIMALS: u8 = 9;
/// 2⁵³: whole numbers below it are exact.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// The number of steps of a fine grid is π times this.
const STEPS_PER_RADIAN: f64 = 96.0;
/// The shortest step that holds more than one cell.
const SHORTEST_STEP: f64 = 1.0 / 4096.0;
/// For cells with less probability than this, density times width is used.
const SMALL: f64 = 1e-9;

/// A number x: either an *atom*, a value that many rows share, or any other number, encoded as u = F(x) in [0, 1].
///
/// Atoms are points of the variable's domain with their own probability, placed among the u in the order of the
/// numbers. On a grid of decimals, or with a step, as 0.25, 0.5, 0.75, … or 7, 17, 27, …, every other number is an
/// interval of u, its *cell*, and has a probability rather than a density. If there are atoms between two cells, the
/// border is halfway between the cells, so that atoms take nothing away from the other numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Number {
    warp: Warp,
    atoms: Vec<f64>,
    grid: Option<Grid>,
    /// The positions of the atoms among the u.
    places: Vec<f64>,
}

/// A grid: the numbers (`offset` + n · `step`) / 10^`decimals` for all whole n, where `offset` < `step`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Grid {
    decimals: u8,
    step: u32,
    offset: u32,
}

impl Grid {
    /// The grid with this many decimals.
    fn of(decimals: u8) -> Self {
        Self { decimals, step: 1, offset: 0 }
    }

    /// The coarsest grid that contains all of these sorted values; `None` if they have too many decimals.
    fn find(sorted: &[f64]) -> Option<Self> {
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
    fn index(self, x: f64) -> f64 {
        ((x * power(self.decimals) - f64::from(self.offset)) / f64::from(self.step)).round()
    }

    /// The nth grid point.
    fn at(self, n: f64) -> f64 {
        (n * f64::from(self.step) + f64::from(self.offset)) / power(self.decimals) + 0.0
    }

    /// The distance between neighbors.
    fn unit(self) -> f64 {
        f64::from(self.step) / power(self.decimals)
    }

    /// The smallest grid point that is not negative.
    fn first(self) -> f64 {
        self.at(0.0)
    }

    /// The largest grid point that is not positive.
    fn last(self) -> f64 {
        self.at(if self.offset == 0 { 0.0 } else { -1.0 })
    }

    /// Whether x is on the grid, and small enough to be distinguished from its neighbors.
    fn contains(self, x: f64) -> bool {
        self.is_fine(x) && self.at(self.index(x)) == x
    }

    /// Whether the index of x is exact.
    fn is_fine(self, x: f64) -> bool {
        (x * power(self.decimals)).abs() < EXACT
    }
}

/// The greatest common divisor.
fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The serialized form of a number.
#[derive(Serialize, Deserialize)]
struct Stored {
    warp: Warp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    atoms: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decimals: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u32>,
}

impl From<Number> for Stored {
    fn from(number: Number) -> Self {
        let step = number.grid.map(|grid| grid.step).filter(|step| *step != 1);
        let offset = number.grid.map(|grid| grid.offset).filter(|offset| *offset != 0);
        Self { decimals: number.decimals(), step, offset, warp: number.warp, atoms: number.atoms }
    }
}

impl TryFrom<Stored> for Number {
    type Error = WarpError;

    fn try_from(stored: Stored) -> Result<Self, WarpError> {
        let (step, offset) = (stored.step.unwrap_or(1), stored.offset.unwrap_or(0));
        let grid = stored.decimals.map(|decimals| Grid { decimals, step, offset });
        Self::on_grid(stored.warp, stored.atoms, grid)
    }
}

impl From<Number> for ColumnKind {
    fn from(kind: Number) -> Self {
        ColumnKind::Number(kind)
    }
}

impl Number {
    /// A number with these atoms in ascending order. The other numbers have this many decimals, or any if `None`, and
    /// are transformed by `warp`.
    ///
    /// # Errors
    /// The atoms are not finite and in order, or there are too many decimals.
    pub fn new(warp: Warp, atoms: Vec<f64>, decimals: Option<u8>) -> Result<Self, WarpError> {
        Self::on_grid(warp, atoms, decimals.map(Grid::of))
    }

    fn on_grid(warp: Warp, atoms: Vec<f64>, grid: Option<Grid>) -> Result<Self, WarpError> {
        let in_order = atoms.windows(2).all(|w| w[0] < w[1]);
        if !in_order || atoms.iter().any(|x| !x.is_finite()) || atoms.len() > 1 << 12 {
            return Err(WarpError::Parameters("atoms"));
        }
        if grid.is_some_and(|grid| grid.decimals > MAX_DECIMALS || grid.offset >= grid.step) {
            return Err(WarpError::Parameters("decimals"));
        }
        if let Some(grid) = grid
            && let Some(&x) = atoms.iter().find(|x| !grid.contains(**x))
        {
            return Err(WarpError::Atom(x));
        }
        let mut number = Self { warp, atoms, grid, places: Vec::new() };
        let mut places: Vec<f64> = Vec::with_capacity(number.atoms.len());
        for &x in &number.atoms {
            let place = number.border(x);
            let before = places.last().copied();
            places.push(before.map_or(place, |before| place.max(before.next_up())));
        }
        number.places = places;
        Ok(number)
    }

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

    /// The transform of numbers that are not atoms.
    pub fn warp(&self) -> &Warp {
        &self.warp
    }

    /// The atoms, in ascending order.
    pub fn atoms(&self) -> &[f64] {
        &self.atoms
    }

    /// The number of decimals, if the column is on a grid.
    pub fn decimals(&self) -> Option<u8> {
        self.grid.map(|grid| grid.decimals)
    }

    /// The distance between neighbors on the grid.
    pub fn unit(&self) -> Option<f64> {
        self.grid.map(Grid::unit)
    }

    /// The smallest number on the grid that is not negative: 0 if its numbers are multiples of [`unit`](Self::unit).
    pub fn offset(&self) -> Option<f64> {
        self.grid.map(Grid::first)
    }

    /// Whether the grid is coarser than its decimals.
    pub(crate) fn has_step(&self) -> bool {
        self.grid.is_some_and(|grid| grid.step > 1)
    }

    /// Whether the numbers on the grid are not multiples of their distance.
    pub(crate) fn has_offset(&self) -> bool {
        self.grid.is_some_and(|grid| grid.offset > 0)
    }

    /// The nearest grid point.
    fn snapped(&self, x: f64) -> f64 {
        match self.grid {
            Some(grid) if grid.is_fine(x) => grid.at(grid.index(x)),
            _ => x,
        }
    }

    /// Whether x is a grid point up to rounding, including rounding to single precision.
    fn is_on_grid(&self, x: f64) -> bool {
        let Some(grid) = self.grid else { return true };
        let nearest = self.snapped(x);
        let rounding = 4.0 * f64::EPSILON * x.abs() + 1e-9 / power(grid.decimals);
        (x - nearest).abs() <= rounding || x == f64::from(nearest as f32)
    }

    /// The nearest grid point above (or below) x that is not an atom; `None` if there is none within the bounds. Where
    /// floats are further apart than grid points, it is the next float.
    fn free(&self, mut x: f64, sign: f64) -> Option<f64> {
        let grid = self.grid?;
        let (low, high) = self.warp.support().bounds();
        loop {
            let next = grid.at(grid.index(x) + sign);
            x = match sign * (next - x) > 0.0 {
                true => next,
                false if sign > 0.0 => x.next_up(),
                false => x.next_down(),
            };
            if find(&self.atoms, x).is_none() {
                break;
            }
        }
        Some(x).filter(|x| *x >= low && *x <= high)
    }

    /// The u that separates smaller from larger numbers at x, where x is an atom or, on a grid, the midpoint of two
    /// neighbors.
    fn border(&self, x: f64) -> f64 {
        if self.grid.is_none() {
            return self.warp.distribution(x);
        }
        match (self.free(x, -1.0), self.free(x, 1.0)) {
            (Some(a), Some(b)) => self.warp.distribution(0.5 * a + 0.5 * b),
            (None, _) => 0.0,
            (_, None) => 1.0,
        }
    }

    /// The interval of u for a grid point that is not an atom.
    fn cell(&self, x: f64) -> (f64, f64) {
        let middle = |y: f64| self.warp.distribution(0.5 * x + 0.5 * y);
        (self.free(x, -1.0).map_or(0.0, middle), self.free(x, 1.0).map_or(1.0, middle))
    }

    /// The edges of steps of u, each of which is one or more whole cells.
    ///
    /// A cell is a step of its own where cells are longer than [`resolution`]; shorter ones share steps of about that
    /// length.
    fn edges(&self) -> Vec<f64> {
        let (mut edges, mut edge) = (vec![0.0], 0.0_f64);
        while edge < 1.0 {
            let length = resolution(edge);
            let target = edge + length;
            if target >= 1.0 {
                break;
            }
            let (low, high) = self.cell(self.number_at(target));
            // The cell at the target is a step of its own if it is long.
            let is_apart = high > target + length && low > edge + SHORTEST_STEP;
            let next = if is_apart { low } else { high };
            // Rounding may have found a neighbor of the cell.
            edge = if next > edge + SHORTEST_STEP { next } else { target };
            if edge < 1.0 - SHORTEST_STEP {
                edges.push(edge);
            } else {
                break;
            }
        }
        edges.push(1.0);
        edges
    }

    /// The value of the variable at x, and the log ratio of the probability (or density) of x to that of the value;
    /// `None` outside the bounds.
    fn place(&self, x: f64) -> Option<(f64, f64)> {
        let x = self.snapped(x);
        if let Some(n) = find(&self.atoms, x) {
            return Some((self.places[n], 0.0));
        }
        let slope = self.warp.log_slope(x);
        let (u, slope) = match self.grid {
            None if slope == f64::NEG_INFINITY => return None,
            None => (self.warp.forward(x), slope),
            Some(grid) => {
                let (low, high) = self.warp.support().bounds();
                if x < low || x > high {
                    return None;
                }
                match self.cell(x) {
                    (a, b) if b - a > SMALL => (0.5 * a + 0.5 * b, (b - a).ln()),
                    _ if slope == f64::NEG_INFINITY => return None,
                    _ => (self.warp.forward(x), slope + grid.unit().ln()),
                }
            }
        };
        Some((self.beside_atoms(u), slope))
    }

    /// The nearest u ≥ this one that is not the position of an atom.
    fn beside_atoms(&self, mut u: f64) -> f64 {
        while find(&self.places, u).is_some() {
            u = if u < 0.5 { u.next_up() } else { u.next_down() };
        }
        u
    }

    /// The number at a value of the variable, on the grid if there is one.
    fn number_at(&self, u: f64) -> f64 {
        if let Some(n) = find(&self.places, u) {
            return self.atoms[n];
        }
        let x = self.warp.inverse(u);
        if self.grid.is_none() {
            return x;
        }
        let nearest = self.snapped(x);
        let (low, high) = self.warp.support().bounds();
        if find(&self.atoms, nearest).is_none() && nearest >= low && nearest <= high {
            return nearest;
        }
        // The cell of an atom belongs to its neighbors.
        match (self.free(nearest, -1.0), self.free(nearest, 1.0)) {
            (Some(a), Some(b)) => {
                if u < self.border(nearest) {
                    a
                } else {
                    b
                }
            }
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => nearest,
        }
    }

    /// The values of the variable between two numbers, as `low` ≤ u < `high`.
    fn between(&self, ends: &Ends) -> Option<(f64, f64)> {
        let (a, b) = ends.numbers();
        let inside = |x: &f64| ends.contains(*x);
        let first = self.atoms.iter().position(inside);
        let last = self.atoms.iter().rposition(inside);
        let rest = self.rest_between(ends);
        let (mut low, mut high) = match (first.zip(last), rest) {
            (Some((first, last)), None) => (self.places[first], self.places[last].next_up()),
            (None, Some((low, high))) => (low, high),
            (None, None) => return None,
            (Some((first, last)), Some((low, high))) => {
                (low.min(self.places[first]), high.max(self.places[last].next_up()))
            }
        };
        // Atoms outside must stay outside, even if rounding has moved a border.
        if let Some(n) = self.atoms.iter().rposition(|x| *x <= a && !inside(x)) {
            low = low.max(self.places[n].next_up());
        }
        if let Some(n) = self.atoms.iter().position(|x| *x >= b && !inside(x)) {
            high = high.min(self.places[n]);
        }
        if a == f64::NEG_INFINITY {
            low = a;
        }
        if b == f64::INFINITY {
            high = b;
        }
        (low < high).then_some((low, high))
    }

    /// The range of u of the numbers between two ends, excluding atoms.
    fn rest_between(&self, ends: &Ends) -> Option<(f64, f64)> {
        let (a, b) = ends.numbers();
        let (low, high) = if self.grid.is_none() {
            (self.warp.distribution(a), self.warp.distribution(b))
        } else {
            // The first and the last grid point inside.
            let within = |x: f64, sign: f64| {
                let near = Some(self.snapped(x)).filter(|x| find(&self.atoms, *x).is_none());
                let near = near.filter(|x| ends.contains(*x));
                near.or_else(|| self.free(self.snapped(x), sign).filter(|x| ends.contains(*x)))
            };
            let (least, most) = self.warp.support().bounds();
            if a > most || b < least {
                return None;
            }
            let first = if a < least { 0.0 } else { self.cell(within(a, 1.0)?).0 };
            let last = if b > most { 1.0 } else { self.cell(within(b, -1.0)?).1 };
            (first, last)
        };
        (low < high).then_some((low, high))
    }
}

/// The length of steps at u: shorter towards both ends of [0, 1], as for polynomials, whose zeros are closer together there.
fn resolution(u: f64) -> f64 {
    let u = u.min(1.0 - u).max(0.0);
    ((u * (1.0 - u)).sqrt() / STEPS_PER_RADIAN).max(SHORTEST_STEP)
}

/// 10ⁿ.
fn power(n: u8) -> f64 {
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

impl Coding for Number {
    fn name(&self) -> &'static str {
        "a number"
    }

    fn summary(&self) -> String {
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|u| {
            let x = self.warp.inverse(u);
            match self.grid {
                Some(grid) => format!("{:.*}", usize::from(grid.decimals.min(4)), self.snapped(x)),
                None => format!("{x:.4}"),
            }
        });
        let rest = format!("median {middle}, quartiles {low} to {high}");
        let shown: Vec<String> = self.atoms.iter().take(3).map(f64::to_string).collect();
        match self.atoms.len() {
            0 => rest,
            1 => format!("{}; others: {rest}", shown[0]),
            n @ 2..=3 => format!("{n} atoms ({}); others: {rest}", shown.join(", ")),
            n => format!("{n} atoms ({}, …); others: {rest}", shown.join(", ")),
        }
    }

    fn problem(&self, storage: Storage) -> Option<&'static str> {
        storage.problem_of_numbers()
    }

    fn domains(&self) -> Vec<Domain> {
        let rest = Domain::Interval(0.0, 1.0);
        vec![if self.atoms.is_empty() { rest } else { Domain::with_atoms(&self.places[..], rest) }]
    }

    /// On a grid, step functions, so that the density is constant on every cell: the probability of a cell is then its
    /// length times the density at its middle.
    fn basis(&self, _place: usize, functions: usize) -> Result<Basis, BasisError> {
        let rest = match self.grid {
            Some(_) => {
                let edges = self.edges();
                Basis::steps(functions.min(edges.len() - 1).min(MAX_STEP_FUNCTIONS), edges)?
            }
            None => Basis::legendre(functions, 0.0, 1.0)?,
        };
        if self.atoms.is_empty() { Ok(rest) } else { rest.with_atoms(&self.places[..]) }
    }

    fn encoder(&self, _storage: Storage) -> Encoder<'_> {
        Box::new(|cell, out| {
            let x = cell.number().ok_or(Problem::Type("a finite number"))?;
            let Some((u, slope)) = self.place(x) else {
                let (low, high) = self.warp.support().bounds();
                return Err(Problem::OutOfRange { low, high });
            };
            out[0] = u;
            let expected = match self.grid {
                Some(Grid { offset: 1.., .. }) => "a whole number of steps from those seen",
                Some(Grid { step: 2.., .. }) => "a multiple of the step of those seen",
                _ => "a number with no more decimals than those seen",
            };
            if self.is_on_grid(x) { Ok(slope) } else { Err(Problem::Between { slope, expected }) }
        })
    }

    fn decode(&self, values: &[f64]) -> Decoded<'_> {
        Decoded::Number(self.number_at(values[0]))
    }

    /// The distribution of numbers beyond the bounds and between grid points.
    fn outside(&self, _storage: Storage) -> Option<Outside> {
        let (low, high) = self.warp.support().bounds();
        if low == f64::NEG_INFINITY && high == f64::INFINITY && self.grid.is_none() {
            return None;
        }
        let [first, center, last] = [0.25, 0.5, 0.75].map(|u| self.warp.inverse(u));
        let grid = self.unit().zip(self.offset());
        Some(Outside::Numbers(Tails::beyond((low, high), (center, last - first), grid)))
    }

    fn has_density(&self, values: &[f64]) -> bool {
        self.grid.is_none() && find(&self.places, values[0]).is_none()
    }

    fn exactly(&self, values: &[f64]) -> Parts {
        let u = values[0];
        if self.has_density(values) || find(&self.places, u).is_some() {
            return vec![(0, Evidence::Value(u))];
        }
        let x = Bound::Included(self.number_at(u));
        match Ends::new(x, x).ok().and_then(|ends| self.between(&ends)) {
            Some((low, high)) => vec![(0, Evidence::In(Part::Interval { low, high }))],
            // So far out, the cell has no width. Its single float has a probability, whereas a value would have a
            // density.
            None => vec![(0, Evidence::In(Part::Interval { low: u, high: u.next_up() }))],
        }
    }

    fn set(&self, values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str> {
        if values.iter().any(|v| self.has_density(v)) {
            return Err(super::NO_SET);
        }
        let mut places: Vec<f64> = values.iter().map(|v| v[0]).collect();
        places.sort_unstable_by(f64::total_cmp);
        places.dedup();
        Ok(places.iter().map(|&u| self.exactly(&[u])).collect())
    }

    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str> {
        let part = |(low, high)| vec![(0, Evidence::In(Part::Interval { low, high }))];
        Ok(self.between(ends).map(part).into_iter().collect())
    }

    fn term(&self, _storage: Storage, _place: usize, u: f64) -> Option<f64> {
        let atom = find(&self.places, u).map(|n| self.atoms[n]);
        Some(atom.unwrap_or_else(|| self.warp.inverse(u)))
    }

    fn number(&self, _storage: Storage, values: &[f64]) -> Option<f64> {
        Some(self.number_at(values[0]))
    }

    fn position(&self, x: f64) -> Option<f64> {
        Some(match find(&self.atoms, x) {
            // Stay below 1, which is the same point as 0 on a circle.
            Some(n) => self.places[n].clamp(0.0, 1.0_f64.next_down()),
            None => self.warp.distribution(x),
        })
    }

    fn end(&self, x: f64) -> Option<f64> {
        let ends = Ends::new(Bound::Unbounded, Bound::Included(x)).ok()?;
        Some(self.between(&ends).map_or(f64::NEG_INFINITY, |(_, high)| high))
    }

    fn nearest(&self, x: f64) -> Vec<f64> {
        let (low, high) = self.warp.support().bounds();
        let x = if find(&self.atoms, self.snapped(x)).is_some() { x } else { x.clamp(low, high) };
        vec![self.place(x).map_or_else(|| self.beside_atoms(self.warp.forward(x)), |p| p.0)]
    }

    fn range(&self) -> (f64, f64) {
        let (low, high) = (self.warp.inverse(0.01), self.warp.inverse(0.99));
        self.atoms.iter().fold((low, high), |(low, high), x| (low.min(*x), high.max(*x)))
    }

    fn log_spread(&self) -> f64 {
        let width = self.warp.inverse(0.75) - self.warp.inverse(0.25);
        match self.grid {
            Some(grid) => (width / grid.unit()).max(1.0).ln(),
            None => width.ln(),
        }
    }

    fn shortened(&self) -> Option<ColumnKind> {
        let warp = self.warp.rounded()?;
        Some(Self::on_grid(warp, self.atoms.clone(), self.grid).ok()?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Cell;

    /// Every third value is 0, some are 5 or 2.5, one in thirty is 9999; the others are decimals from 0.1 to 12.
    fn values(n: u64) -> Vec<f64> {
        let value = |i: u64| match i % 30 {
            k if k % 3 == 0 => 0.0,
            1 | 2 => 5.0,
            4 => 2.5,
            5 => 9999.0,
            _ => ((i * 7919) % 120 + 1) as f64 / 10.0,
        };
        (0..n).map(value).collect()
    }

    fn fitted(values: &[f64]) -> Number {
        Number::fit(values, Support::REAL, &WarpOptions::default()).unwrap()
    }

    #[test]
    fn values_that_stand_out_are_atoms() {
        let number = fitted(&values(3000));
        assert_eq!(number.atoms(), [0.0, 2.5, 5.0, 9999.0]);
        assert_eq!(number.decimals(), Some(1));
        // No number is below 0, although 0 is an atom.
        assert!((1..1000).all(|n| number.number_at(f64::from(n) / 1000.0) > 0.0));
        // Evenly distributed counts have no atoms, however often each value occurs.
        let even: Vec<f64> = (0..30_000).map(|i| f64::from(i % 300)).collect();
        assert!(fitted(&even).atoms().is_empty());
        // Without a grid, four rows with the same value are enough.
        let mut real: Vec<f64> = (0..500).map(|i| (f64::from(i) * 0.618).sin()).collect();
        real.extend([0.25; 4]);
        let number = fitted(&real);
        assert_eq!((number.atoms(), number.decimals()), (&[0.25][..], None));
    }

    #[test]
    fn only_frequent_values_can_be_atoms() {
        // 0 has a third of the rows, 5 a fifteenth, 2.5 and 9999 a thirtieth each.
        for (share, atoms) in
            [(0.0, &[0.0, 2.5, 5.0, 9999.0][..]), (0.05, &[0.0, 5.0]), (0.1, &[0.0]), (0.5, &[])]
        {
            let options = WarpOptions::default();
            let number =
                Number::with_frequent_atoms(&values(3000), &[], share, Support::REAL, &options);
            let number = number.unwrap();
            assert_eq!(number.atoms(), atoms);
            // The grid and the bound stay.
            assert_eq!(number.decimals(), Some(1));
            assert!((0..1000).all(|n| number.number_at(f64::from(n) / 1000.0) >= 0.0));
        }
    }

    #[test]
    fn multiples_are_a_grid() {
        // Multiples of 0.25 from 1 to 40, and multiples of 50 from 0.
        let quarters: Vec<f64> = (0..400).map(|i| 1.0 + f64::from((i * 37) % 157) / 4.0).collect();
        let fifties: Vec<f64> = (0..400).map(|i| 50.0 * f64::from((i * i) % 97)).collect();
        for (values, unit) in [(quarters, 0.25), (fifties, 50.0)] {
            let number = fitted(&values);
            assert_eq!(number.unit(), Some(unit));
            let is_multiple = |x: f64| (x / unit).fract() == 0.0;
            assert!((1..1000).all(|n| is_multiple(number.number_at(f64::from(n) / 1000.0))));
            let mut out = [0.0];
            let encode = number.encoder(Storage::Integers);
            assert!(encode(Cell::Number(3.0 * unit), &mut out).is_ok());
            assert_eq!(number.decode(&out).number(), Some(3.0 * unit));
            let between = encode(Cell::Number(3.5 * unit), &mut out);
            assert!(matches!(between, Err(Problem::Between { .. })), "{between:?}");
            let slope = |n: u32| number.place(f64::from(n) * unit).map_or(0.0, |p| p.1.exp());
            let sum: f64 = (0..4000).map(slope).sum();
            assert!((sum - 1.0).abs() < 1e-6, "{sum}");
            let text = serde_json::to_string(&number).unwrap();
            assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number);
            // A declared atom may lie between multiples; then other numbers may too.
            let atom = 0.5 * unit;
            let named =
                Number::with_atoms(&values, &[atom], Support::REAL, &WarpOptions::default());
            assert!(unit < 1.0 || named.unwrap().unit() == Some(1.0));
        }
        // A handful of numbers does not determine a step.
        assert_eq!(fitted(&[100.0, 250.0, 400.0, 700.0]).unit(), Some(1.0));
    }

    /// Regression: half of the mass of 0.5, 1.5, 2.5, … went to the whole numbers.
    #[test]
    fn grids_may_have_an_offset() {
        let spread = |step: f64, first: f64| -> Vec<f64> {
            (0..600).map(|i| first + step * f64::from((i * 37) % 157)).collect()
        };
        let halves = spread(1.0, 0.5);
        let sevens = spread(10.0, 7.0);
        let prices: Vec<f64> =
            (0..600).map(|i| f64::from(499 + 500 * (i * i % 97)) / 100.0).collect();
        let negative: Vec<f64> = sevens.iter().map(|x| -x).collect();
        let around: Vec<f64> = sevens.iter().map(|x| x - 800.0).collect();
        let odd: Vec<f64> = spread(2.0, 9_007_199_254_740.0 * 101.0 + 1.0);
        for (values, unit, offset) in [
            (halves, 1.0, 0.5),
            (sevens, 10.0, 7.0),
            (prices, 5.0, 4.99),
            (negative, 10.0, 3.0),
            (around, 10.0, 7.0),
            (odd, 2.0, 1.0),
        ] {
            let number = fitted(&values);
            assert_eq!((number.unit(), number.offset()), (Some(unit), Some(offset)));
            let (low, high) =
                values.iter().fold((f64::MAX, f64::MIN), |(a, b), &x| (a.min(x), b.max(x)));
            let is_on_grid = |x: f64| {
                let n = (x - offset) / unit;
                (n - n.round()).abs() < 1e-9
                    && !(low >= 0.0 && x < 0.0)
                    && !(high <= 0.0 && x > 0.0)
            };
            assert!((0..=1000).all(|n| is_on_grid(number.number_at(f64::from(n) / 1000.0))));
            let mut out = [0.0];
            let encode = number.encoder(Storage::Integers);
            for &x in &values {
                assert!(encode(Cell::Number(x), &mut out).is_ok());
                assert_eq!(number.decode(&out).number(), Some(x));
            }
            // A multiple of the step is not on the grid.
            let between = encode(Cell::Number(values[3] - offset), &mut out);
            assert!(matches!(between, Err(Problem::Between { .. })), "{between:?}");
            // The cells fill the line, up to the bound at 0 if there is one.
            let slope = |n: i32| number.place(low + f64::from(n) * unit).map_or(0.0, |p| p.1.exp());
            let sum: f64 = (-20_000..20_000).map(slope).sum();
            assert!((sum - 1.0).abs() < 1e-6, "{sum}");
            let text = serde_json::to_string(&number).unwrap();
            assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number);
            let broken = text.replace("\"offset\":", "\"offset\":1000");
            assert!(serde_json::from_str::<Number>(&broken).is_err());
        }
    }

    #[test]
    fn shares_end_at_one() {
        let shares: Vec<f64> = (0..=300).map(|i| f64::from(i) / 300.0).collect();
        let percent: Vec<f64> = shares.iter().map(|x| (1000.0 * x).round() / 10.0).collect();
        for (values, most) in [(shares, 1.0), (percent, 100.0)] {
            let number = fitted(&values);
            let ends = [0.0, 1e-9, 0.5, 1.0 - 1e-9, 1.0].map(|u| number.number_at(u));
            assert!(ends.iter().all(|x| (0.0..=most).contains(x)), "{ends:?}");
        }
    }

    #[test]
    fn atoms_can_be_named() {
        let named = |atoms: &[f64]| {
            Number::with_atoms(&values(3000), atoms, Support::REAL, &WarpOptions::default())
        };
        let number = named(&[7.5, -1.0, 0.0]).unwrap();
        assert_eq!(number.atoms(), [-1.0, 0.0, 2.5, 5.0, 7.5, 9999.0]);
        for x in [-1.0, 7.5] {
            let (u, slope) = number.place(x).unwrap();
            assert!(slope == 0.0 && number.domains()[0].atom(u).is_some());
            assert_eq!(number.number_at(u), x);
        }
        assert!(matches!(named(&[0.25]), Err(WarpError::Atom(0.25))));
        assert!(matches!(named(&[f64::INFINITY]), Err(WarpError::NotFinite(_))));
    }

    #[test]
    fn atoms_alone_are_fine() {
        let number = fitted(&[vec![0.0; 50], vec![1.5; 20], vec![7.0; 30]].concat());
        assert_eq!(number.atoms(), [0.0, 1.5, 7.0]);
        let number = fitted(&[vec![0.0; 50], vec![3.25]].concat());
        assert_eq!(number.atoms(), [0.0]);
        assert_eq!(number.number_at(number.place(3.25).unwrap().0), 3.25);
    }

    #[test]
    fn cells_come_back_as_they_were() {
        for number in [fitted(&values(3000)), fitted(&[0.1, 0.2, 0.4, 7.5])] {
            let mut out = [0.0];
            let encode = number.encoder(Storage::Integers);
            for n in 0..200 {
                let x = f64::from(n) / 10.0;
                encode(Cell::Number(x), &mut out).unwrap();
                assert!(number.domains()[0].contains(out[0]));
                assert_eq!(number.decode(&out).number(), Some(x));
                // A number between grid points is encoded as the nearest one, but not equal to it.
                let slope = encode(Cell::Number(x), &mut out).unwrap();
                let between = encode(Cell::Number(x + 0.03), &mut out);
                assert!(matches!(between, Err(Problem::Between { slope: s, .. }) if s == slope));
                assert_eq!(number.decode(&out).number(), Some(x));
                // Rounding does not move a number off the grid.
                for same in [f64::from(x as f32), x + 0.1 - 0.1, x.next_up()] {
                    assert_eq!(encode(Cell::Number(same), &mut out), Ok(slope), "{same}");
                }
            }
            assert!(encode(Cell::Number(-1.0), &mut out).is_err());
        }
    }

    #[test]
    fn cells_fill_the_line() {
        let number = fitted(&values(3000));
        let cells: Vec<(f64, f64)> = (0..3000)
            .map(|n| f64::from(n) / 10.0)
            .filter(|x| find(number.atoms(), *x).is_none())
            .map(|x| number.cell(x))
            .collect();
        assert_eq!(cells[0].0, 0.0);
        assert!(cells.windows(2).all(|c| c[0].1 == c[1].0), "{cells:?}");
        assert!(cells[cells.len() - 1].1 > 1.0 - 1e-9);
        // Every u inside a cell decodes to its number.
        for n in 0..2000 {
            let u = (f64::from(n) + 0.5) / 2000.0;
            let (low, high) = number.cell(number.number_at(u));
            assert!(low <= u && u < high, "{u} in {low} to {high}");
        }
    }

    #[test]
    fn steps_are_whole_cells() {
        let wide: Vec<f64> = (0..2000).map(|i| f64::from(i * i % 1999) * 0.01).collect();
        let few: Vec<f64> = (0..400).map(|i| f64::from(i % 19) + 0.5).collect();
        for number in [fitted(&values(3000)), fitted(&wide), fitted(&few)] {
            let edges = number.edges();
            assert!(edges.windows(2).all(|e| e[1] - e[0] >= 0.9 * SHORTEST_STEP), "{edges:?}");
            assert!((edges[0], edges[edges.len() - 1]) == (0.0, 1.0) && edges.len() < 400);
            let basis = number.basis(0, 64).unwrap();
            assert!(basis.is_orthonormal() && basis.accepts(&number.domains()[0]));
            for n in 0..4000 {
                let u = (f64::from(n) + 0.5) / 4000.0;
                let (low, high) = number.cell(number.number_at(u));
                let inside = edges.iter().find(|e| **e > low + 1e-12 && **e < high - 1e-12);
                assert!(inside.is_none(), "{inside:?} in {low} to {high}");
                // Long cells are steps of their own.
                if high - low > 0.02 && low > 0.0 && high < 1.0 {
                    let nearest = edges.iter().map(|e| (e - low).abs()).fold(1.0, f64::min);
                    assert!(nearest <= SHORTEST_STEP, "{low} to {high}: {nearest}");
                }
            }
        }
    }

    #[test]
    fn intervals_hold_what_lies_in_them() {
        let numbers = [fitted(&values(3000)), fitted(&values(100)), fitted(&[1.5, 8.0, 12.5])];
        let mut real = values(900);
        real.extend((0..300).map(|i| (f64::from(i) * 0.618).fract() * 9.0));
        for number in numbers.iter().chain([&fitted(&real)]) {
            let cells: Vec<f64> = (0..130).map(|n| f64::from(n) / 10.0).chain([9999.0]).collect();
            let ends = [-1.0, 0.0, 0.04, 0.1, 1.0, 2.4, 2.5, 2.6, 4.9, 5.0, 5.1, 12.0, 9999.0, 1e5];
            for (i, &a) in ends.iter().enumerate() {
                for &b in &ends[i..] {
                    let bounds =
                        |x: f64| [Bound::Included(x), Bound::Excluded(x), Bound::Unbounded];
                    for (low, high) in bounds(a).into_iter().flat_map(|l| bounds(b).map(|h| (l, h)))
                    {
                        let Ok(ends) = Ends::new(low, high) else { continue };
                        let part = number.between(&ends);
                        for &x in &cells {
                            let (u, _) = number.place(x).unwrap();
                            // So far out, all positions coincide.
                            if u > 1.0 - 1e-12 && find(number.atoms(), x).is_none() {
                                continue;
                            }
                            let inside = part.is_some_and(|(low, high)| low <= u && u < high);
                            // Without a grid, the ends have probability 0.
                            if number.has_density(&[u]) && (x == a || x == b) {
                                continue;
                            }
                            assert_eq!(
                                inside,
                                ends.contains(x),
                                "{x} in {ends:?}: {u} in {part:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_far_out_have_a_probability() {
        let number = fitted(&[0.1, 0.2, 0.4, 7.5]);
        for x in [0.3, 5.0, 42.0, 62_600.0, 1e15] {
            let parts = number.exactly(&[number.place(x).unwrap().0]);
            let [(0, Evidence::In(Part::Interval { low, high }))] = parts[..] else {
                panic!("{x} is {parts:?}");
            };
            assert!(low < high && high <= 1.0, "{x}: {low} to {high}");
            assert!(x < 40.0 || high - low < 1e-10, "{x}: {low} to {high}");
        }
        // Regression: a grid point without neighbors made the search for one endless.
        let far = Number::new(number.warp().clone(), vec![1e300], Some(0));
        assert!(matches!(far, Err(WarpError::Atom(_))));
    }

    /// Regression: beyond 2⁵³, where a float has no neighbor at the distance of the grid, nothing was below, at or above it.
    #[test]
    fn numbers_beyond_whole_floats_have_sides() {
        let values: Vec<f64> = (0..12)
            .map(|n| if n == 0 { 7.0 } else { 9_007_199_254_740_000.0 + 23.0 * f64::from(n) })
            .collect();
        let number = fitted(&values);
        for x in [7.0, 9e15, EXACT - 1.0, EXACT, 9_009_057_704_033_400.0, 9.1e15, 1e17, 1e300] {
            let share = |low, high| {
                let ends = Ends::new(low, high).unwrap();
                number.between(&ends).map_or(0.0, |(low, high)| high.min(1.0) - low.max(0.0))
            };
            let sides = [
                share(Bound::Unbounded, Bound::Excluded(x)),
                share(Bound::Included(x), Bound::Included(x)),
                share(Bound::Excluded(x), Bound::Unbounded),
            ];
            assert!((sides.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{x}: {sides:?}");
        }
    }

    #[test]
    fn scores_are_probabilities_on_a_grid() {
        let number = fitted(&values(3000));
        let slope = |x: f64| number.place(x).unwrap().1.exp();
        let rest = (1..4000).map(|n| f64::from(n) / 10.0);
        let sum: f64 = rest.filter(|x| find(number.atoms(), *x).is_none()).map(slope).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        assert_eq!(slope(0.0), 1.0);
    }

    #[test]
    fn numbers_are_stored_and_read() {
        let number = fitted(&values(3000));
        let text = serde_json::to_string(&number).unwrap();
        assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number);
        let broken = text.replace("\"atoms\":[0.0,2.5", "\"atoms\":[2.5,2.5");
        assert!(serde_json::from_str::<Number>(&broken).is_err());
    }
}

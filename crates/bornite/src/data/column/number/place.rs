//! Where numbers are among the values u of the variable: atoms, cells, and what lies between.

use super::Number;
use super::grid::power;
use crate::data::column::Ends;
use crate::domain::find;

/// The number of steps of a fine grid is π times this.
const STEPS_PER_RADIAN: f64 = 96.0;
/// The shortest step that holds more than one cell.
pub(super) const SHORTEST_STEP: f64 = 1.0 / 4096.0;
/// For cells with less probability than this, density times width is used.
const SMALL: f64 = 1e-9;

impl Number {
    /// The nearest grid point.
    pub(super) fn snapped(&self, x: f64) -> f64 {
        match self.grid {
            Some(grid) if grid.is_fine(x) => grid.at(grid.index(x)),
            _ => x,
        }
    }

    /// Whether x is a grid point up to rounding, including rounding to single precision.
    pub(super) fn is_on_grid(&self, x: f64) -> bool {
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
    pub(super) fn border(&self, x: f64) -> f64 {
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
    pub(super) fn cell(&self, x: f64) -> (f64, f64) {
        let middle = |y: f64| self.warp.distribution(0.5 * x + 0.5 * y);
        (self.free(x, -1.0).map_or(0.0, middle), self.free(x, 1.0).map_or(1.0, middle))
    }

    /// The edges of steps of u, each of which is one or more whole cells.
    ///
    /// A cell is a step of its own where cells are longer than [`resolution`]; shorter ones share steps of about that
    /// length.
    pub(super) fn edges(&self) -> Vec<f64> {
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
    pub(super) fn place(&self, x: f64) -> Option<(f64, f64)> {
        let x = self.snapped(x);
        if let Some(n) = find(&self.atoms, x) {
            return Some((self.places[n], 0.0));
        }
        let (low, high) = self.warp.support().bounds();
        if x < low || x > high {
            return None;
        }
        let cell = self.grid.map(|_| self.cell(x)).filter(|(a, b)| b - a > SMALL);
        let (u, slope) = if let Some((a, b)) = cell {
            (0.5 * a + 0.5 * b, (b - a).ln())
        } else {
            let slope = self.warp.log_slope(x);
            if slope == f64::NEG_INFINITY {
                return None;
            }
            (self.warp.forward(x), slope + self.grid.map_or(0.0, |grid| grid.unit().ln()))
        };
        Some((self.beside_atoms(u), slope))
    }

    /// The nearest u ≥ this one that is not the position of an atom.
    pub(super) fn beside_atoms(&self, mut u: f64) -> f64 {
        while find(&self.places, u).is_some() {
            u = if u < 0.5 { u.next_up() } else { u.next_down() };
        }
        u
    }

    /// The number at a value of the variable, on the grid if there is one.
    pub(super) fn number_at(&self, u: f64) -> f64 {
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
    pub(super) fn between(&self, ends: &Ends) -> Option<(f64, f64)> {
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

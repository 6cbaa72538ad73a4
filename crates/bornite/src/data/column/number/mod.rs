//! Numeric columns with atoms, decimal grids and bounds.

mod fit;
mod grid;
mod place;
#[cfg(test)]
mod tests;

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::outside::Tails;
use super::{Coding, ColumnKind, Decoded, Encoder, Ends, Outside, Parts, Problem};
use crate::basis::{Basis, BasisError, MAX_STEP_FUNCTIONS, Part};
use crate::data::{Storage, Warp, WarpError};
use crate::domain::{Domain, find};
use crate::query::Evidence;
pub(super) use grid::grid_places;
use grid::{Grid, MAX_DECIMALS};

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

    fn format_version(&self) -> u32 {
        let of_grid = match self.grid {
            Some(Grid { offset: 1.., .. }) => 9,
            Some(Grid { step: 2.., .. }) => 5,
            Some(_) | None => 2,
        };
        self.warp.format_version().max(of_grid)
    }

    fn domains(&self) -> Vec<Domain> {
        let rest = Domain::Interval(0.0, 1.0);
        vec![if self.atoms.is_empty() { rest } else { Domain::with_atoms(&self.places[..], rest) }]
    }

    /// Without the domain, which would visit all atoms.
    fn num_values(&self) -> Option<usize> {
        None
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

    fn has_grid(&self) -> bool {
        self.grid.is_some()
    }

    /// The domain has a bound that no row has crossed.
    fn expected_outside(&self) -> Option<f64> {
        Some(0.5)
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

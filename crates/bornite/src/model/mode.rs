//! Searches for the most likely number of a column.

use super::Model;
use crate::data::Cell;

/// The number of grid points of the initial search for the mode of a density.
const GRID: usize = 512;
/// An atom is the mode if its probability exceeds that of the most likely interval of u whose length is 1 / `NEAR` of
/// the range.
const NEAR: f64 = 64.0;
/// The number of golden-section steps that refine the mode.
const NARROWINGS: usize = 60;
/// The maximum number of digit prefixes that the search for a mode expands before it goes depth-first.
const MAX_PREFIXES: usize = 4096;

/// A search for the most likely number of a column with a density.
pub(super) struct ModeSearch<'m> {
    pub(super) model: &'m Model,
    pub(super) column: usize,
    /// The range of u.
    pub(super) bounds: (f64, f64),
}

impl ModeSearch<'_> {
    fn grid_point(&self, n: f64) -> f64 {
        let (low, high) = self.bounds;
        low + (high - low) * (n + 0.5) / GRID as f64
    }

    /// The grid points where the search starts.
    pub(super) fn grid(&self) -> impl Iterator<Item = f64> + '_ {
        (0..GRID).map(|n| self.grid_point(n as f64))
    }

    /// ln F′, the log slope of the column's transform at u.
    pub(super) fn slope(&self, u: f64) -> f64 {
        let c = &self.model.schema.columns()[self.column];
        let x = c.kind.coding().number(c.storage, &[u]).unwrap_or(f64::NAN);
        let encoded = self.model.schema.encode_value(self.column, Cell::Number(x));
        encoded.map_or(f64::NEG_INFINITY, |(_, slope)| slope)
    }

    /// The log density in the units of the data.
    pub(super) fn log_density(&self, u: f64, density: f64) -> f64 {
        density.ln() + self.slope(u)
    }

    /// Finds the most likely u, or an atom, given the log densities at the grid points.
    pub(super) fn run(
        &self,
        log_densities: &[f64],
        atoms: impl Iterator<Item = (f64, f64)>,
        density: impl Fn(f64) -> f64,
    ) -> f64 {
        let best =
            (0..GRID).fold(0, |b, n| if log_densities[n] > log_densities[b] { n } else { b });
        let (low, high) = self.bounds;
        let mut a = self.grid_point(best as f64 - 1.0).max(low);
        let mut b = self.grid_point(best as f64 + 1.0).min(high);
        let log_density = |u: f64| self.log_density(u, density(u));
        for _ in 0..NARROWINGS {
            let (c, d) = (a + (b - a) * 0.382, a + (b - a) * 0.618);
            if log_density(c) > log_density(d) { b = d } else { a = c }
        }
        let rest = 0.5 * (a + b);
        let better = |a: (f64, f64), b: (f64, f64)| if b.1 > a.1 { b } else { a };
        match atoms.reduce(better) {
            Some((u, p)) if p * NEAR >= density(rest) => u,
            _ => rest,
        }
    }
}

/// A best-first search for the most likely digits. It is exact because a number is at most as likely as any of its
/// prefixes.
#[derive(Debug)]
pub(super) struct PrefixSearch {
    len: usize,
    open: Vec<(f64, Vec<f64>)>,
    /// The prefix being extended.
    current: (f64, Vec<f64>),
    num_expanded: usize,
}

impl PrefixSearch {
    /// A search for this many digits.
    pub(super) fn new(len: usize) -> Self {
        let open = vec![(1.0, Vec::new())];
        Self { len, open, current: (0.0, Vec::new()), num_expanded: 0 }
    }

    /// The next prefix to extend, or, at the end, the digits and their probability.
    pub(super) fn advance(&mut self) -> Result<Vec<f64>, (Vec<f64>, f64)> {
        // Go depth-first if the search takes too long. The result is then only approximately the best.
        let priority = |(p, prefix): &(f64, Vec<f64>)| {
            if self.num_expanded > MAX_PREFIXES { prefix.len() as f64 + p } else { *p }
        };
        let best = (0..self.open.len())
            .fold(0, |b, n| if priority(&self.open[n]) > priority(&self.open[b]) { n } else { b });
        if self.open.is_empty() {
            return Err((vec![f64::NAN; self.len], 0.0));
        }
        let (p, prefix) = self.open.swap_remove(best);
        if prefix.len() == self.len {
            return Err((prefix, p));
        }
        self.num_expanded += 1;
        self.current = (p, prefix.clone());
        Ok(prefix)
    }

    /// Extends the current prefix, given the probabilities of its next digit.
    pub(super) fn expand(&mut self, digits: &[f64]) {
        let (p, prefix) = &self.current;
        for (digit, q) in digits.iter().enumerate().filter(|(_, q)| **q > 0.0) {
            let mut longer = prefix.clone();
            longer.push(digit as f64);
            self.open.push((p * q, longer));
        }
    }
}

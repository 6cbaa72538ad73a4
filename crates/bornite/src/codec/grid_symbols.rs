//! Symbols for real numbers: divides the numbers of a column's grid among the bins of a continuous variable.

use super::grid::Grid;
use crate::engine::Cumulative;

/// The maximum number of numbers in a column such that each gets its own symbol.
const MAX_NUMBERS: u64 = 1024;
/// The number of symbols otherwise. The numbers of a symbol are told apart by uniform bits.
const PARTS: u64 = 512;
/// The number of bisection steps that find the start of a symbol.
const HALVINGS: usize = 40;

/// The symbols of one column: runs of consecutive grid numbers, and the positions of their cells among the bins.
///
/// The probability of a symbol is that of its cells: the difference of the conditional distribution function at both
/// ends, which is linear within a bin. All numbers of a symbol are equally likely.
#[derive(Clone, Debug)]
pub(super) struct GridSymbols {
    /// The first ordinal of each symbol.
    starts: Vec<i64>,
    last: i64,
    /// The position of the start of each symbol, and of the end of the last.
    marks: Vec<Mark>,
    /// The bin that represents each symbol.
    bins: Vec<u32>,
}

/// A position on the unit interval or circle: full turns, a bin, and the fraction of the bin below it.
#[derive(Clone, Copy, Debug)]
struct Mark {
    turns: f64,
    bin: u32,
    share: f64,
}

impl Mark {
    /// The position u, where `edges` are the edges of the bins, from 0 to 1.
    fn new(u: f64, edges: &[f64]) -> Self {
        let turns = u.floor();
        let u = u - turns;
        // An atom is a bin of length 0. Its cell starts at its position.
        let first = edges.partition_point(|&e| e < u);
        if edges.get(first + 1) == Some(&u) {
            return Self { turns, bin: first as u32, share: 0.0 };
        }
        let bin = edges.partition_point(|&e| e <= u).clamp(1, edges.len() - 1) - 1;
        let share = (u - edges[bin]) / (edges[bin + 1] - edges[bin]);
        Self { turns, bin: bin as u32, share: share.clamp(0.0, 1.0) }
    }

    /// The probability below it, which does not decrease from mark to mark.
    fn below(self, sums: Cumulative<'_>) -> f64 {
        let (low, high) = (sums.below(self.bin as usize), sums.below(self.bin as usize + 1));
        let within = (low + self.share * (high - low)).min(high);
        self.turns * sums.below(sums.num_values()) + within
    }
}

impl GridSymbols {
    /// The symbols for the ordinals `first` to `last`; `position` maps numbers to the unit interval, or to turns of the
    /// circle.
    pub(super) fn new(
        grid: Grid,
        [first, last]: [i64; 2],
        position: impl Fn(f64) -> f64,
        edges: &[f64],
    ) -> Self {
        let begin = |n: i64| position(grid.edge(n));
        let end = position(0.5 * grid.value(last) + 0.5 * grid.value(last.saturating_add(1)));
        let starts = if last.abs_diff(first) < MAX_NUMBERS {
            (first..=last).collect()
        } else {
            equal_parts([first, last], &begin, end)
        };
        let mut places: Vec<f64> = starts.iter().map(|&n| begin(n)).collect();
        places.push(end);
        // Rounding may swap two neighbors.
        for s in 1..places.len() {
            places[s] = places[s].max(places[s - 1]);
        }
        let marks = places.iter().map(|&u| Mark::new(u, edges)).collect();
        let bin = |s: usize| {
            let next = starts.get(s + 1).map_or(last, |&n| n - 1);
            let middle = i128::midpoint(i128::from(starts[s]), i128::from(next)) as i64;
            Mark::new(position(grid.value(middle)), edges).bin
        };
        let bins = (0..starts.len()).map(bin).collect();
        Self { starts, last, marks, bins }
    }

    /// The number of symbols.
    pub(super) fn num_symbols(&self) -> usize {
        self.starts.len()
    }

    /// The bin that represents a symbol.
    pub(super) fn bin(&self, symbol: usize) -> usize {
        self.bins[symbol] as usize
    }

    /// The probability of the preceding symbols, from the cumulative sums of the bins.
    pub(super) fn below(&self, sums: Cumulative<'_>, symbol: usize) -> f64 {
        self.marks[symbol].below(sums) - self.marks[0].below(sums)
    }

    /// The number of numbers in a symbol, minus one.
    pub(super) fn max_remainder(&self, symbol: usize) -> u64 {
        let next = self.starts.get(symbol + 1).map_or(self.last, |&n| n - 1);
        next.abs_diff(self.starts[symbol])
    }

    /// The symbol of an ordinal, and its index within the symbol.
    pub(super) fn split(&self, ordinal: i64) -> (usize, u64) {
        let symbol = self.starts.partition_point(|&n| n <= ordinal).saturating_sub(1);
        (symbol, ordinal.abs_diff(self.starts[symbol]))
    }

    /// The ordinal at an index within a symbol.
    pub(super) fn join(&self, symbol: usize, remainder: u64) -> i64 {
        self.starts[symbol].wrapping_add_unsigned(remainder)
    }
}

/// The first ordinals of equal parts of the unit interval; parts without a number are skipped.
fn equal_parts([first, last]: [i64; 2], begin: &impl Fn(i64) -> f64, end: f64) -> Vec<i64> {
    let start = begin(first);
    let mut starts = vec![first];
    let mut from = first;
    for part in 1..PARTS {
        let target = start + (end - start) * (part as f64 / PARTS as f64);
        // The first number that starts at or after the target, if there is one.
        let (mut low, mut high) = (i128::from(from), i128::from(last) + 1);
        for _ in 0..HALVINGS {
            if low >= high {
                break;
            }
            let middle = low + (high - low) / 2;
            if begin(middle as i64) < target {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low > i128::from(last) {
            break;
        }
        from = low as i64;
        if from > starts[starts.len() - 1] {
            starts.push(from);
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(bins: u32) -> Vec<f64> {
        (0..=bins).map(|b| f64::from(b) / f64::from(bins)).collect()
    }

    /// The cumulative sums of a linearly increasing density.
    fn rising(bins: u32) -> Vec<f64> {
        (1..=bins).map(|b| (f64::from(b) / f64::from(bins)).powi(2)).collect()
    }

    #[test]
    fn every_number_has_its_symbol_and_its_share() {
        let edges = edges(64);
        let sums = rising(64);
        let sums = Cumulative::new(&sums);
        for (last, symbols) in [(9, 10), (1023, 1024), (99_999, 512)] {
            let width = f64::from(last) + 1.0;
            let position = |x: f64| ((x + 0.5) / width).clamp(0.0, 1.0);
            let grid_symbols =
                GridSymbols::new(Grid::Decimals(0), [0, i64::from(last)], position, &edges);
            assert_eq!(grid_symbols.num_symbols(), symbols);
            for n in [0, 1, last / 2, last] {
                let (symbol, remainder) = grid_symbols.split(i64::from(n));
                assert!(remainder <= grid_symbols.max_remainder(symbol));
                assert_eq!(grid_symbols.join(symbol, remainder), i64::from(n));
                let share = grid_symbols.below(sums, symbol + 1) - grid_symbols.below(sums, symbol);
                let numbers = grid_symbols.max_remainder(symbol) as f64 + 1.0;
                let middle = (grid_symbols.starts[symbol] as f64 + 0.5 * numbers) / width;
                let density = share * width / numbers;
                assert!((density - 2.0 * middle).abs() < 0.05, "{n} of {last}: {density}");
            }
            let total = grid_symbols.below(sums, symbols);
            assert!((total - 1.0).abs() < 1e-14, "{total}");
        }
    }

    #[test]
    fn a_circle_goes_on_after_a_turn() {
        let sums = rising(8);
        let sums = Cumulative::new(&sums);
        // Two and a half turns of 10 numbers each.
        let grid_symbols =
            GridSymbols::new(Grid::Decimals(0), [0, 24], |x| (x + 0.5) / 10.0, &edges(8));
        let p = |s: usize| grid_symbols.below(sums, s + 1) - grid_symbols.below(sums, s);
        assert!((p(3) - p(13)).abs() < 1e-14 && (p(3) - p(23)).abs() < 1e-14);
        assert!((grid_symbols.below(sums, 25) - (2.0 + 0.25)).abs() < 1e-12);
    }

    #[test]
    fn the_widest_ranges_have_symbols() {
        let bounds = [Grid::Float64.ordinal(f64::MIN), Grid::Float64.ordinal(f64::MAX)];
        let grid_symbols = GridSymbols::new(
            Grid::Float64,
            bounds.map(Option::unwrap),
            |x| 0.5 + 0.5 * libm::tanh(x),
            &edges(256),
        );
        for x in [f64::MIN, -3.0, -0.0, 0.0, 1e-300, 0.1, f64::MAX] {
            let n = Grid::Float64.ordinal(x).unwrap();
            let (symbol, remainder) = grid_symbols.split(n);
            assert!(remainder <= grid_symbols.max_remainder(symbol));
            assert_eq!(grid_symbols.join(symbol, remainder), n);
        }
        let grid_symbols = GridSymbols::new(
            Grid::Decimals(0),
            [i64::MIN, i64::MAX],
            |x| x / 2e19 + 0.5,
            &edges(4),
        );
        for n in [i64::MIN, -1, 0, i64::MAX] {
            let (symbol, remainder) = grid_symbols.split(n);
            assert_eq!(grid_symbols.join(symbol, remainder), n);
        }
    }
}

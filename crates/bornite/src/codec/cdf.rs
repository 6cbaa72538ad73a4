//! Integer probabilities for the entropy coder, shared by encoder and decoder.

use std::borrow::Borrow;
use std::num::NonZeroU32;

use constriction::stream::model::{DecoderModel, EncoderModel, EntropyModel};

use super::grid_symbols::GridSymbols;
use crate::engine::Cumulative;

/// Integer probabilities are multiples of 2⁻²⁴.
pub(super) const PRECISION: usize = 24;

/// The integer that represents 1.
const ONE: u32 = 1 << PRECISION;

/// The maximum number of values of a variable, each of which has a probability of at least 2⁻²⁴.
pub(super) const MAX_VALUES: usize = 1 << 20;

/// The circuit is not conditioned on values with less probability than this, because the numbers would be meaningless.
const IMPOSSIBLE: f64 = 1.0 / (1_u64 << 40) as f64;

/// Sums outside this range are not probabilities: the model considers the row impossible, or rounding dominates.
const SUMS: std::ops::Range<f64> = 1e-250..1e250;

/// The conditional distribution of one cell over its symbols: the values of a finite variable, or grid cells over the
/// bins of a continuous one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbols<'a> {
    sums: Cumulative<'a>,
    grid_symbols: Option<&'a GridSymbols>,
}

impl<'a> Symbols<'a> {
    pub(super) fn new(sums: Cumulative<'a>, grid_symbols: Option<&'a GridSymbols>) -> Self {
        Self { sums, grid_symbols }
    }

    /// The number of symbols.
    pub(super) fn count(&self) -> usize {
        self.grid_symbols.map_or(self.sums.num_values(), GridSymbols::num_symbols)
    }

    /// Σ p over the symbols before this one.
    fn below(&self, symbol: usize) -> f64 {
        self.grid_symbols.map_or_else(
            || self.sums.below(symbol),
            |grid_symbols| grid_symbols.below(self.sums, symbol),
        )
    }

    /// The value that represents a symbol in the circuit, its probability, and the total probability.
    fn value(&self, symbol: usize) -> (usize, f64, f64) {
        let value = self.grid_symbols.map_or(symbol, |grid_symbols| grid_symbols.bin(symbol));
        let p = self.sums.below(value + 1) - self.sums.below(value);
        (value, p, self.sums.below(self.sums.num_values()))
    }
}

/// The integer cumulative distribution of one cell.
///
/// For v values with cumulative sums S(0) = 0 ≤ S(1) ≤ … ≤ S(v) = S, F(x) = x + ⌊S(x) · ((2²⁴ − v) / S)⌋ for x < v, and
/// F(v) = 2²⁴. Since S does not decrease, and neither does a rounded product with a positive number, F is strictly
/// increasing: every value is possible. If S is not a valid sum, F(x) = ⌊2²⁴ x / v⌋.
///
/// Only IEEE 754 additions, products and quotients are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntegerCdf<'a> {
    symbols: Symbols<'a>,
    /// (2²⁴ − v) / S; `None` for a uniform distribution.
    scale: Option<f64>,
}

impl<'a> IntegerCdf<'a> {
    /// Requires between 1 and [`MAX_VALUES`] values.
    pub(super) fn new(symbols: Symbols<'a>) -> Self {
        let count = symbols.count();
        let total = symbols.below(count);
        let room = f64::from(ONE - count as u32);
        Self { symbols, scale: SUMS.contains(&total).then(|| room / total) }
    }

    /// F(x).
    fn at(&self, value: usize) -> u32 {
        let count = self.symbols.count();
        match self.scale {
            _ if value >= count => ONE,
            Some(scale) => value as u32 + (self.symbols.below(value) * scale) as u32,
            None => ((value as u64 * u64::from(ONE)) / count as u64) as u32,
        }
    }

    /// The value that the circuit is conditioned on after a symbol. `None` if the symbol is so improbable that the rest
    /// of the row is coded as if the cell were missing.
    pub(super) fn learned(&self, symbol: usize) -> Option<usize> {
        let (value, p, total) = self.symbols.value(symbol);
        (self.scale.is_some() && p >= total * IMPOSSIBLE).then_some(value)
    }
}

impl EntropyModel<PRECISION> for IntegerCdf<'_> {
    type Symbol = usize;
    type Probability = u32;
}

impl EncoderModel<PRECISION> for IntegerCdf<'_> {
    fn left_cumulative_and_probability(
        &self,
        symbol: impl Borrow<usize>,
    ) -> Option<(u32, NonZeroU32)> {
        let value = *symbol.borrow();
        let left = self.at(value);
        Some((left, NonZeroU32::new(self.at(value + 1).checked_sub(left)?)?))
    }
}

impl DecoderModel<PRECISION> for IntegerCdf<'_> {
    fn quantile_function(&self, quantile: u32) -> (usize, u32, NonZeroU32) {
        // F(low) ≤ quantile < F(high)
        let (mut low, mut high) = (0, self.symbols.count());
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if self.at(middle) <= quantile {
                low = middle;
            } else {
                high = middle;
            }
        }
        let left = self.at(low);
        (low, left, NonZeroU32::new(self.at(low + 1) - left).unwrap_or(NonZeroU32::MIN))
    }
}

/// A bit that is 1 with probability `one` / 2²⁴.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bit {
    one: NonZeroU32,
}

impl Bit {
    /// A fair bit.
    pub(super) fn fair() -> Self {
        Self::new(1, 2)
    }

    /// A bit with probability `share` / `total` of being 1, but never 0 or 1.
    pub(super) fn new(share: u64, total: u64) -> Self {
        let one = share.saturating_mul(u64::from(ONE)) / total.max(1);
        let one = one.clamp(1, u64::from(ONE) - 1) as u32;
        Self { one: NonZeroU32::new(one).unwrap_or(NonZeroU32::MIN) }
    }

    fn zero(self) -> u32 {
        ONE - self.one.get()
    }
}

impl EntropyModel<PRECISION> for Bit {
    type Symbol = bool;
    type Probability = u32;
}

impl EncoderModel<PRECISION> for Bit {
    fn left_cumulative_and_probability(
        &self,
        symbol: impl Borrow<bool>,
    ) -> Option<(u32, NonZeroU32)> {
        if *symbol.borrow() {
            Some((self.zero(), self.one))
        } else {
            Some((0, NonZeroU32::new(self.zero())?))
        }
    }
}

impl DecoderModel<PRECISION> for Bit {
    fn quantile_function(&self, quantile: u32) -> (bool, u32, NonZeroU32) {
        if quantile >= self.zero() {
            (true, self.zero(), self.one)
        } else {
            (false, 0, NonZeroU32::new(self.zero()).unwrap_or(NonZeroU32::MIN))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cumulative sums of one row.
    fn sums(p: &[f64]) -> Vec<f64> {
        let mut sum = 0.0;
        let mut out = Vec::new();
        for x in p {
            sum += x;
            out.push(sum);
        }
        out
    }

    #[test]
    fn every_value_is_possible_and_all_of_them_fill_the_range() {
        let tiny = f64::MIN_POSITIVE;
        let rounding: Vec<f64> = (0..999).map(|n| 1.0 / (f64::from(n) + 0.3)).collect();
        for p in [
            &[1.0][..],
            &[0.0, 1.0],
            &[1.0, 0.0],
            &[0.0, 0.0, 0.0],
            &[1e-300, 1.0, 1e-300, 1e-300],
            &[tiny, tiny],
            &[f64::INFINITY, 1.0],
            &[f64::NAN, 1.0],
            &[1e200, 1e-200],
            &rounding,
            &vec![1e-3; MAX_VALUES],
        ] {
            let sums = sums(p);
            let cdf = IntegerCdf::new(Symbols::new(Cumulative::new(&sums), None));
            let mut at = 0;
            for value in 0..p.len() {
                let (left, probability) = cdf.left_cumulative_and_probability(value).unwrap();
                assert_eq!(left, at);
                at += probability.get();
                if value % 1000 < 10 {
                    for quantile in [left, at - 1] {
                        let found = cdf.quantile_function(quantile);
                        assert_eq!(found, (value, left, probability));
                    }
                }
            }
            assert_eq!(at, ONE, "{} values", p.len());
        }
    }

    #[test]
    fn integers_are_those_of_the_formula() {
        let sums = sums(&[0.5, 0.25, 0.125, 0.125]);
        let cdf = IntegerCdf::new(Symbols::new(Cumulative::new(&sums), None));
        let found: Vec<u32> = (0..=4).map(|x| cdf.at(x)).collect();
        assert_eq!(found, [0, 8_388_607, 12_582_911, 14_680_063, 1 << 24]);
        assert_eq!(cdf.learned(3), Some(3));
    }

    #[test]
    fn bits_are_never_certain() {
        for (share, total) in [(0, 5), (5, 5), (1, 3), (7, 0)] {
            let bit = Bit::new(share, total);
            let (left, p) = bit.left_cumulative_and_probability(true).unwrap();
            let (_, q) = bit.left_cumulative_and_probability(false).unwrap();
            assert_eq!((left, p.get() + q.get()), (q.get(), ONE));
            assert_eq!(bit.quantile_function(left), (true, left, p));
            assert_eq!(bit.quantile_function(left - 1), (false, 0, q));
        }
    }
}

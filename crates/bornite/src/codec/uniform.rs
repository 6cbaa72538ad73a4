//! Coding of uniformly distributed integers.

use std::borrow::Borrow;
use std::num::NonZeroU32;

use constriction::stream::model::{DecoderModel, EncoderModel, EntropyModel};
use constriction::stream::queue::{DefaultRangeDecoder, DefaultRangeEncoder};
use constriction::stream::{Decode, Encode};

use super::Broken;
use super::cdf::PRECISION;

/// Larger ranges are coded in pieces.
const LARGE: u64 = 1 << 20;
/// The number of bits in a piece.
const PIECE: u32 = 16;

/// Codes a number from 0 to `last`.
pub(super) fn encode(
    mut x: u64,
    mut last: u64,
    coder: &mut DefaultRangeEncoder,
) -> Result<(), Broken> {
    while last >= LARGE {
        let piece = x & ((1 << PIECE) - 1);
        coder.encode_symbol(piece as u32, Uniform(1 << PIECE)).map_err(|_| Broken)?;
        (x, last) = (x >> PIECE, last >> PIECE);
    }
    coder.encode_symbol(x as u32, Uniform(last as u32 + 1)).map_err(|_| Broken)
}

/// Reads a number from 0 to `last`.
pub(super) fn decode(mut last: u64, coder: &mut DefaultRangeDecoder) -> Result<u64, Broken> {
    let whole = last;
    let (mut x, mut shift) = (0, 0);
    while last >= LARGE {
        let piece = coder.decode_symbol(Uniform(1 << PIECE)).map_err(|_| Broken)?;
        x |= u64::from(piece) << shift;
        (shift, last) = (shift + PIECE, last >> PIECE);
    }
    let top = coder.decode_symbol(Uniform(last as u32 + 1)).map_err(|_| Broken)?;
    x |= u64::from(top) << shift;
    if x <= whole { Ok(x) } else { Err(Broken) }
}

/// A uniform distribution over this many numbers: F(x) = ⌊2²⁴ x / count⌋.
#[derive(Clone, Copy, Debug)]
struct Uniform(u32);

impl Uniform {
    fn at(self, x: u32) -> u32 {
        ((u64::from(x) << PRECISION) / u64::from(self.0)) as u32
    }
}

impl EntropyModel<PRECISION> for Uniform {
    type Symbol = u32;
    type Probability = u32;
}

impl EncoderModel<PRECISION> for Uniform {
    fn left_cumulative_and_probability(
        &self,
        symbol: impl Borrow<u32>,
    ) -> Option<(u32, NonZeroU32)> {
        let x = *symbol.borrow();
        let left = self.at(x);
        (x < self.0).then_some((left, NonZeroU32::new(self.at(x + 1) - left)?))
    }
}

impl DecoderModel<PRECISION> for Uniform {
    fn quantile_function(&self, quantile: u32) -> (u32, u32, NonZeroU32) {
        // The largest x with F(x) ≤ quantile, that is, 2²⁴ x / count < quantile + 1.
        let x = ((u64::from(quantile) + 1) * u64::from(self.0) - 1) >> PRECISION;
        let (x, left) = (x as u32, self.at(x as u32));
        (x, left, NonZeroU32::new(self.at(x + 1) - left).unwrap_or(NonZeroU32::MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_at_their_entropy() {
        for last in [0, 1, 2, 999, LARGE - 1, LARGE, 1 << 40, u64::MAX] {
            let numbers: Vec<u64> = (0..200_u64)
                .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7))
                .map(|n| if last == u64::MAX { n } else { n % (last + 1) })
                .chain([0, last])
                .collect();
            let mut coder = DefaultRangeEncoder::new();
            for &x in &numbers {
                encode(x, last, &mut coder).unwrap();
            }
            let words = coder.into_compressed().unwrap();
            let expected = numbers.len() as f64 * (last as f64 + 1.0).log2();
            let found = 32.0 * words.len() as f64;
            assert!(found < 1.07 * expected + 64.0, "{last}: {found} bits for {expected}");
            let mut coder = DefaultRangeDecoder::from_compressed(words).unwrap();
            for &x in &numbers {
                assert_eq!(decode(last, &mut coder).unwrap(), x);
            }
        }
    }

    #[test]
    fn quantiles_invert_the_distribution() {
        for count in [1, 3, 7, 1000, 1 << 20] {
            let model = Uniform(count);
            for x in [0, count / 2, count - 1] {
                let (left, p) = model.left_cumulative_and_probability(x).unwrap();
                for quantile in [left, left + p.get() - 1] {
                    assert_eq!(model.quantile_function(quantile), (x, left, p));
                }
            }
            assert!(model.left_cumulative_and_probability(count).is_none());
        }
    }
}

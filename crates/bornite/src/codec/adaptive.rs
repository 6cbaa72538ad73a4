//! Adaptive coding of small integers: the coder learns their distribution from the preceding ones.

use constriction::stream::queue::{DefaultRangeDecoder, DefaultRangeEncoder};
use constriction::stream::{Decode, Encode};

use super::cdf::Bit;
use super::{Broken, CodecError};

/// The maximum number of bits of an absolute value.
const MAX_BITS: usize = 24;

/// How often a bit was 0 and how often it was 1.
#[derive(Clone, Copy, Debug, Default)]
struct Counts([u64; 2]);

impl Counts {
    fn bit(self) -> Bit {
        Bit::new(2 * self.0[1] + 1, 2 * (self.0[0] + self.0[1]) + 2)
    }
}

/// An adaptive distribution of integers: of the bit length of their absolute value, one bit for each "is it longer?",
/// and of the bit below the highest. The remaining bits and the sign are uniform.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    more: [Counts; MAX_BITS],
    next: [Counts; MAX_BITS],
}

/// Codes single bits, in either direction.
trait Coder {
    /// Codes a bit, which an encoder is given and a decoder returns.
    fn bit(&mut self, bit: bool, model: Bit) -> Result<bool, Broken>;
}

impl Coder for DefaultRangeEncoder {
    fn bit(&mut self, bit: bool, model: Bit) -> Result<bool, Broken> {
        self.encode_symbol(bit, model).map_err(|_| Broken)?;
        Ok(bit)
    }
}

impl Coder for DefaultRangeDecoder {
    fn bit(&mut self, _: bool, model: Bit) -> Result<bool, Broken> {
        self.decode_symbol(model).map_err(|_| Broken)
    }
}

impl Numbers {
    /// Encodes integers, each with one of several distributions. Absolute values must be below 2²⁴.
    pub(crate) fn encode<'n>(
        numbers: impl IntoIterator<Item = (usize, &'n i32)>,
        distributions: usize,
    ) -> Vec<u8> {
        let mut coder = DefaultRangeEncoder::new();
        let mut models = vec![Self::default(); distributions];
        for (model, &x) in numbers {
            // Encoding to memory cannot fail.
            let _ = models[model].code(x, &mut coder);
        }
        let words = coder.into_compressed().unwrap_or_default();
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// Decodes integers with these distributions.
    pub(crate) fn decode(
        bytes: &[u8],
        models_of: impl IntoIterator<Item = usize>,
        distributions: usize,
    ) -> Result<Vec<i32>, CodecError> {
        let damaged = |_| CodecError::Damaged { what: "its model was altered" };
        let (words, _) = bytes.as_chunks();
        let words: Vec<u32> = words.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let mut coder = DefaultRangeDecoder::from_compressed(words).map_err(|_| damaged(Broken))?;
        let mut models = vec![Self::default(); distributions];
        models_of.into_iter().map(|m| models[m].code(0, &mut coder).map_err(damaged)).collect()
    }

    fn code(&mut self, x: i32, coder: &mut impl Coder) -> Result<i32, Broken> {
        let size = x.unsigned_abs();
        let bits = (u32::BITS - size.leading_zeros()) as usize;
        let mut found = 0;
        while found < MAX_BITS {
            let counts = &mut self.more[found];
            let more = coder.bit(bits > found, counts.bit())?;
            counts.0[usize::from(more)] += 1;
            if !more {
                break;
            }
            found += 1;
        }
        if found == 0 {
            return Ok(0);
        }
        let mut out = 1_u32;
        for place in (0..found - 1).rev() {
            let given = size >> place & 1 == 1;
            let bit = if place + 2 == found {
                let counts = &mut self.next[found - 1];
                let bit = coder.bit(given, counts.bit())?;
                counts.0[usize::from(bit)] += 1;
                bit
            } else {
                coder.bit(given, Bit::fair())?
            };
            out = out << 1 | u32::from(bit);
        }
        let out = out.cast_signed();
        Ok(if coder.bit(x < 0, Bit::fair())? { -out } else { out })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_near_their_entropy() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as i32
        };
        // Sums of uniform numbers are nearly normal.
        let mut numbers: Vec<i32> =
            (0..5000).map(|_| (0..4).map(|_| next() % 100 - 50).sum()).collect();
        let bytes = Numbers::encode(numbers.iter().map(|x| (0, x)), 1);
        let entropy =
            5000.0 * (57.7 * (2.0 * std::f64::consts::PI * std::f64::consts::E).sqrt()).log2();
        let found = 8.0 * bytes.len() as f64;
        assert!(found < 1.04 * entropy, "{found} bits for {entropy}");
        numbers.extend([0, 1, -1, (1 << 23) + 1, -(1 << 24) + 1]);
        let coded = numbers.iter().enumerate().map(|(n, x)| (n % 2, x));
        let bytes = Numbers::encode(coded, 2);
        let back = Numbers::decode(&bytes, (0..numbers.len()).map(|n| n % 2), 2).unwrap();
        assert_eq!(back, numbers);
    }
}

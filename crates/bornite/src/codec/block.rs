//! One block of rows to and from the words of one range coder.
//!
//! A block is coded in strips of rows, each of which is one traversal. Of a strip come first the mask, where the block
//! has missing cells, then the values, variable by variable in the order of the traversal and row by row within it.

use constriction::stream::queue::{DefaultRangeDecoder, DefaultRangeEncoder};
use constriction::stream::{Decode, Encode};

use super::Broken;
use super::cdf::{Bit, IntegerCdf};
use super::mask::MaskModel;
use crate::engine::{Choose, Cumulative, Engine, Traversal};

/// The coded bytes of some rows, which must fit the variables.
pub(super) fn encode(
    engine: &Engine,
    values: &[f64],
    strip_rows: usize,
    memory: &mut Traversal,
) -> Result<Vec<u8>, Broken> {
    let d = engine.variables().len();
    let mut coder = DefaultRangeEncoder::new();
    let has_mask = values.iter().any(|x| x.is_nan());
    coder.encode_symbol(has_mask, Bit::fair()).map_err(|_| Broken)?;
    let mut mask = MaskModel::new(d);
    for values in values.chunks(strip_rows * d) {
        if has_mask {
            mask.encode(values, &mut coder)?;
        }
        let mut choice = EncodeValues { values, d, coder: &mut coder, state: Ok(()) };
        engine.choose(values.len() / d, &mut choice, memory);
        choice.state?;
    }
    let words = coder.into_compressed().map_err(|_| Broken)?;
    Ok(words.into_iter().flat_map(u32::to_le_bytes).collect())
}

/// The rows whose coded bytes are these.
pub(super) fn decode(
    engine: &Engine,
    bytes: &[u8],
    rows: usize,
    strip_rows: usize,
    memory: &mut Traversal,
) -> Result<Vec<f64>, Broken> {
    let d = engine.variables().len();
    let (words, []) = bytes.as_chunks() else { return Err(Broken) };
    let words: Vec<u32> = words.iter().map(|&word| u32::from_le_bytes(word)).collect();
    let mut coder = DefaultRangeDecoder::from_compressed(words).map_err(|_| Broken)?;
    let has_mask = coder.decode_symbol(Bit::fair()).map_err(|_| Broken)?;
    let mut mask = MaskModel::new(d);
    let mut out = vec![0.0; rows * d];
    for values in out.chunks_mut(strip_rows * d) {
        if has_mask {
            mask.decode(values, &mut coder)?;
        }
        let count = values.len() / d;
        let mut choice = DecodeValues { values, d, coder: &mut coder, state: Ok(()) };
        engine.choose(count, &mut choice, memory);
        choice.state?;
    }
    if coder.maybe_exhausted() { Ok(out) } else { Err(Broken) }
}

/// What the traversal is told of a value: nothing where the model thought it impossible, so that the rest of the row
/// is coded as if the cell were missing.
fn learned(cdf: &IntegerCdf<'_>, value: usize) -> Option<usize> {
    (!cdf.is_impossible(value)).then_some(value)
}

struct EncodeValues<'a> {
    values: &'a [f64],
    d: usize,
    coder: &'a mut DefaultRangeEncoder,
    state: Result<(), Broken>,
}

impl Choose for EncodeValues<'_> {
    fn wants(&self, variable: usize, row: usize) -> bool {
        !self.values[row * self.d + variable].is_nan()
    }

    fn choose(&mut self, variable: usize, row: usize, sums: Cumulative<'_>) -> Option<usize> {
        let value = self.values[row * self.d + variable] as usize;
        if sums.num_values() == 1 {
            return Some(value);
        }
        let cdf = IntegerCdf::new(sums);
        if self.coder.encode_symbol(value, cdf).is_err() {
            self.state = Err(Broken);
        }
        learned(&cdf, value)
    }
}

struct DecodeValues<'a> {
    values: &'a mut [f64],
    d: usize,
    coder: &'a mut DefaultRangeDecoder,
    state: Result<(), Broken>,
}

impl Choose for DecodeValues<'_> {
    fn wants(&self, variable: usize, row: usize) -> bool {
        self.state.is_ok() && !self.values[row * self.d + variable].is_nan()
    }

    fn choose(&mut self, variable: usize, row: usize, sums: Cumulative<'_>) -> Option<usize> {
        if sums.num_values() == 1 {
            return Some(0);
        }
        let cdf = IntegerCdf::new(sums);
        let Ok(value) = self.coder.decode_symbol(cdf) else {
            self.state = Err(Broken);
            return None;
        };
        self.values[row * self.d + variable] = value as f64;
        learned(&cdf, value)
    }
}

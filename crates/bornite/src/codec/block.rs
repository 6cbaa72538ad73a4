//! One block of rows to and from the words of one range coder.
//!
//! A block is coded in strips of rows, each of which is one traversal. Of a strip come first the mask, where the block
//! has missing cells, then the values, variable by variable in the order of the traversal and row by row within it. Last
//! come the rests: which of the numbers of its symbol each real number is.

use constriction::stream::queue::{DefaultRangeDecoder, DefaultRangeEncoder};
use constriction::stream::{Decode, Encode};

use super::cdf::{Bit, IntegerCdf, Symbols};
use super::grid_symbols::GridSymbols;
use super::mask::MaskModel;
use super::{Broken, Codec, uniform};
use crate::engine::{Choose, Cumulative, Traversal};

/// Rows of symbols, and of the rests of those that have more than one number.
#[derive(Clone, Copy, Debug)]
pub(super) struct SymbolRows<'a> {
    /// A symbol for every variable, row by row; NaN is a missing cell.
    pub(super) values: &'a [f64],
    /// A rest for every variable with cuts, row by row; 0 if there is none.
    pub(super) rests: &'a [u64],
}

/// The coded bytes of some rows, which must fit the variables.
pub(super) fn encode(
    codec: &Codec,
    cells: SymbolRows<'_>,
    memory: &mut Traversal,
) -> Result<Vec<u8>, Broken> {
    let SymbolRows { values, rests } = cells;
    let strip_rows = codec.layout.strip_rows;
    let d = codec.variables.len();
    let mut coder = DefaultRangeEncoder::new();
    let has_mask = values.iter().any(|x| x.is_nan());
    coder.encode_symbol(has_mask, Bit::fair()).map_err(|_| Broken)?;
    let mut mask = MaskModel::new(d);
    for values in values.chunks(strip_rows * d) {
        if has_mask {
            mask.encode(values, &mut coder)?;
        }
        let cuts = &codec.cuts;
        let mut choice = EncodeValues { values, d, cuts, coder: &mut coder, state: Ok(()) };
        codec.engine.choose(values.len() / d, &mut choice, memory);
        choice.state?;
    }
    let width = codec.num_rests();
    for (n, (variable, cuts)) in with_cuts(&codec.cuts).enumerate() {
        for (row, values) in values.chunks_exact(d).enumerate() {
            if !values[variable].is_nan() {
                let last = cuts.rest(values[variable] as usize);
                uniform::encode(rests[row * width + n], last, &mut coder)?;
            }
        }
    }
    let words = coder.into_compressed().map_err(|_| Broken)?;
    Ok(words.into_iter().flat_map(u32::to_le_bytes).collect())
}

/// The rows whose coded bytes are these: symbols and rests.
pub(super) fn decode(
    codec: &Codec,
    bytes: &[u8],
    rows: usize,
    strip_rows: usize,
    memory: &mut Traversal,
) -> Result<(Vec<f64>, Vec<u64>), Broken> {
    let d = codec.variables.len();
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
        let cuts = &codec.cuts;
        let mut choice = DecodeValues { values, d, cuts, coder: &mut coder, state: Ok(()) };
        codec.engine.choose(count, &mut choice, memory);
        choice.state?;
    }
    let width = codec.num_rests();
    let mut rests = vec![0; rows * width];
    for (n, (variable, cuts)) in with_cuts(&codec.cuts).enumerate() {
        for (row, values) in out.chunks_exact(d).enumerate() {
            if !values[variable].is_nan() {
                let last = cuts.rest(values[variable] as usize);
                rests[row * width + n] = uniform::decode(last, &mut coder)?;
            }
        }
    }
    if coder.maybe_exhausted() { Ok((out, rests)) } else { Err(Broken) }
}

/// The variables that have cuts.
fn with_cuts(cuts: &[Option<GridSymbols>]) -> impl Iterator<Item = (usize, &GridSymbols)> {
    cuts.iter().enumerate().filter_map(|(variable, cuts)| Some((variable, cuts.as_ref()?)))
}

struct EncodeValues<'a> {
    values: &'a [f64],
    d: usize,
    cuts: &'a [Option<GridSymbols>],
    coder: &'a mut DefaultRangeEncoder,
    state: Result<(), Broken>,
}

impl Choose for EncodeValues<'_> {
    fn wants(&self, variable: usize, row: usize) -> bool {
        !self.values[row * self.d + variable].is_nan()
    }

    fn choose(&mut self, variable: usize, row: usize, sums: Cumulative<'_>) -> Option<usize> {
        let value = self.values[row * self.d + variable] as usize;
        let symbols = Symbols::new(sums, self.cuts[variable].as_ref());
        let cdf = IntegerCdf::new(symbols);
        if symbols.count() == 1 {
            return cdf.learned(value);
        }
        if self.coder.encode_symbol(value, cdf).is_err() {
            self.state = Err(Broken);
        }
        cdf.learned(value)
    }
}

struct DecodeValues<'a> {
    values: &'a mut [f64],
    d: usize,
    cuts: &'a [Option<GridSymbols>],
    coder: &'a mut DefaultRangeDecoder,
    state: Result<(), Broken>,
}

impl Choose for DecodeValues<'_> {
    fn wants(&self, variable: usize, row: usize) -> bool {
        self.state.is_ok() && !self.values[row * self.d + variable].is_nan()
    }

    fn choose(&mut self, variable: usize, row: usize, sums: Cumulative<'_>) -> Option<usize> {
        let symbols = Symbols::new(sums, self.cuts[variable].as_ref());
        let cdf = IntegerCdf::new(symbols);
        if symbols.count() == 1 {
            return cdf.learned(0);
        }
        let Ok(value) = self.coder.decode_symbol(cdf) else {
            self.state = Err(Broken);
            return None;
        };
        self.values[row * self.d + variable] = value as f64;
        cdf.learned(value)
    }
}

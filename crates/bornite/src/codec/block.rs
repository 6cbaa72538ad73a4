//! Coding of one block of rows with one range coder.
//!
//! A block is coded in strips of rows, each of which takes one traversal. A strip starts with the mask, if the block
//! has missing cells. Then come the symbols, variable by variable in the order of the traversal, and row by row within
//! a variable. After all strips come the remainders, which tell the numbers of a symbol apart.

use constriction::stream::queue::{DefaultRangeDecoder, DefaultRangeEncoder};
use constriction::stream::{Decode, Encode};

use super::cdf::{Bit, IntegerCdf, Symbols};
use super::grid_symbols::GridSymbols;
use super::mask::MaskModel;
use super::{Broken, Codec, uniform};
use crate::engine::{Choose, Cumulative, Traversal};

/// Rows of symbols, and of remainders for symbols with more than one number.
#[derive(Clone, Copy, Debug)]
pub(super) struct SymbolRows<'a> {
    /// A symbol for every variable, row by row; NaN if missing.
    pub(super) values: &'a [f64],
    /// A remainder for every variable with grid symbols, row by row; 0 if there is none.
    pub(super) remainders: &'a [u64],
}

/// Encodes rows, whose values must be in the variables' domains.
pub(super) fn encode(
    codec: &Codec,
    cells: SymbolRows<'_>,
    memory: &mut Traversal,
) -> Result<Vec<u8>, Broken> {
    let SymbolRows { values, remainders } = cells;
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
        let grid_symbols = &codec.grid_symbols;
        let mut choice = EncodeValues { values, d, grid_symbols, coder: &mut coder, state: Ok(()) };
        codec.engine.choose(values.len() / d, &mut choice, memory);
        choice.state?;
    }
    let width = codec.num_remainders();
    for (n, (variable, grid_symbols)) in with_grid_symbols(&codec.grid_symbols).enumerate() {
        for (row, values) in values.chunks_exact(d).enumerate() {
            if !values[variable].is_nan() {
                let last = grid_symbols.max_remainder(values[variable] as usize);
                uniform::encode(remainders[row * width + n], last, &mut coder)?;
            }
        }
    }
    let words = coder.into_compressed().map_err(|_| Broken)?;
    Ok(words.into_iter().flat_map(u32::to_le_bytes).collect())
}

/// Decodes rows: symbols and remainders.
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
        let grid_symbols = &codec.grid_symbols;
        let mut choice = DecodeValues { values, d, grid_symbols, coder: &mut coder, state: Ok(()) };
        codec.engine.choose(count, &mut choice, memory);
        choice.state?;
    }
    let width = codec.num_remainders();
    let mut remainders = vec![0; rows * width];
    for (n, (variable, grid_symbols)) in with_grid_symbols(&codec.grid_symbols).enumerate() {
        for (row, values) in out.chunks_exact(d).enumerate() {
            if !values[variable].is_nan() {
                let last = grid_symbols.max_remainder(values[variable] as usize);
                remainders[row * width + n] = uniform::decode(last, &mut coder)?;
            }
        }
    }
    if coder.maybe_exhausted() { Ok((out, remainders)) } else { Err(Broken) }
}

/// The variables with grid symbols.
fn with_grid_symbols(
    grid_symbols: &[Option<GridSymbols>],
) -> impl Iterator<Item = (usize, &GridSymbols)> {
    grid_symbols
        .iter()
        .enumerate()
        .filter_map(|(variable, grid_symbols)| Some((variable, grid_symbols.as_ref()?)))
}

struct EncodeValues<'a> {
    values: &'a [f64],
    d: usize,
    grid_symbols: &'a [Option<GridSymbols>],
    coder: &'a mut DefaultRangeEncoder,
    state: Result<(), Broken>,
}

impl Choose for EncodeValues<'_> {
    fn wants(&self, variable: usize, row: usize) -> bool {
        !self.values[row * self.d + variable].is_nan()
    }

    fn choose(&mut self, variable: usize, row: usize, sums: Cumulative<'_>) -> Option<usize> {
        let value = self.values[row * self.d + variable] as usize;
        let symbols = Symbols::new(sums, self.grid_symbols[variable].as_ref());
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
    grid_symbols: &'a [Option<GridSymbols>],
    coder: &'a mut DefaultRangeDecoder,
    state: Result<(), Broken>,
}

impl Choose for DecodeValues<'_> {
    fn wants(&self, variable: usize, row: usize) -> bool {
        self.state.is_ok() && !self.values[row * self.d + variable].is_nan()
    }

    fn choose(&mut self, variable: usize, row: usize, sums: Cumulative<'_>) -> Option<usize> {
        let symbols = Symbols::new(sums, self.grid_symbols[variable].as_ref());
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

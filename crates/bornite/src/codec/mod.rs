//! Lossless compression: the exact model as a codec.
//!
//! A [`Codec`] compresses rows of finite variables to little more than −log₂ p bits. Use [`Codec::compress`] and
//! [`Codec::decompress`] for rows in memory, [`Compressor`] and [`Decompressor`] for streams of any length, and
//! [`Archive`] for random access to blocks. `docs/FORMAT.md` describes the format.
//!
//! **Exact.** Encoder and decoder compute the same integers on every machine with IEEE 754 arithmetic: a row's
//! probabilities are a fixed order of fused multiply-adds, additions, products and quotients, independent of the number
//! of threads, the neighboring rows, the instruction set and the build profile. If a machine computes something else, a
//! checksum of the values turns it into an error.
//!
//! ```
//! use bornite::{codec::Codec, file, ops::orthonormalize};
//!
//! let circuit = file::from_json(
//!     r#"{"variables": [{"name": "coin{}", "count": 2, "domain": {"finite": 2}}],
//!         "layers": [{"kind": "input", "variable": "coin0"}, {"kind": "input", "variable": "coin1"},
//!                    {"kind": "kronecker", "inputs": [0, 1]},
//!                    {"kind": "sum", "input": 2, "weight": [[0.9, 0.1, 0.1, 0.4]]}],
//!         "output": 3}"#,
//! )?;
//! let codec = Codec::new(&orthonormalize(&circuit)?.circuit)?;
//! let rows = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, f64::NAN, 1.0];
//! let bytes = codec.compress(&rows)?;
//! let back = codec.decompress(&bytes)?;
//! assert_eq!((&back[..6], back[6].is_nan(), back[7]), (&rows[..6], true, 1.0));
//! # Ok::<(), bornite::Error>(())
//! ```

mod adaptive;
mod block;
mod cdf;
mod container;
mod digest;
mod discrete;
mod error;
mod grid;
mod grid_symbols;
mod mask;
mod read;
mod table;
mod uniform;
mod write;

pub(crate) use adaptive::Numbers;
pub use digest::Digest;
pub use error::CodecError;
pub use read::{Archive, Decompressor};
pub(crate) use table::{
    Segment, SegmentArchive, SegmentKind, SegmentReader, SegmentWriter, TableCodec, pack, unpack,
};
pub use write::Compressor;

use container::{Layout, MAX_STRIP_ROWS};
use error::Broken;
use grid_symbols::GridSymbols;

use std::sync::Arc;

use crate::circuit::{Circuit, Layer, LayerId, Orthonormal};
use crate::domain::{Domain, Variable};
use crate::engine::{Engine, SimdLevel};

/// The approximate number of cells in a block: large enough that its 30 bytes of overhead do not matter, small enough
/// that there are many blocks.
const BLOCK_CELLS: usize = 1 << 17;

/// Compresses rows with a model, and decompresses them.
#[derive(Debug)]
pub struct Codec {
    engine: Arc<Engine>,
    /// The variables of a row of symbols.
    variables: Vec<Variable>,
    /// The symbols of each variable that was continuous; `None` if the symbols are the values of the engine's variable.
    grid_symbols: Vec<Option<GridSymbols>>,
    digest: Digest,
    layout: Layout,
}

impl Codec {
    /// Prepares a circuit for coding.
    ///
    /// # Errors
    /// A variable is not finite, or has more than 2²⁰ values.
    pub fn new(circuit: &Orthonormal) -> Result<Self, CodecError> {
        Self::with_level(circuit, SimdLevel::Best)
    }

    /// Prepares a circuit for coding with an instruction set of at most `level`. The bytes are the same at every level.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_level(circuit: &Orthonormal, level: SimdLevel) -> Result<Self, CodecError> {
        for Variable { name, domain } in circuit.variables() {
            let variable = name.clone();
            match domain.num_values() {
                None => return Err(CodecError::NotFinite { variable, domain: domain.clone() }),
                Some(values) if values > cdf::MAX_VALUES => {
                    let limit = cdf::MAX_VALUES;
                    return Err(CodecError::TooManyValues { variable, values, limit });
                }
                Some(_) => {}
            }
        }
        let grid_symbols = circuit.variables().iter().map(|_| None).collect();
        let engine = Arc::new(Engine::of_circuit(circuit, level));
        Ok(Self::with_grid_symbols(&engine, circuit, grid_symbols, Digest::of(circuit)))
    }

    /// The codec of a circuit over finite variables, some of which are bins that grid symbols are made of.
    fn with_grid_symbols(
        engine: &Arc<Engine>,
        circuit: &Circuit,
        grid_symbols: Vec<Option<GridSymbols>>,
        digest: Digest,
    ) -> Self {
        let engine = Arc::clone(engine);
        let symbols = |(v, grid_symbols): (&Variable, &Option<GridSymbols>)| match grid_symbols {
            Some(grid_symbols) => {
                Variable::new(v.name.clone(), Domain::Finite(grid_symbols.num_symbols()))
            }
            None => v.clone(),
        };
        let variables = circuit.variables().iter().zip(&grid_symbols).map(symbols).collect();
        Self { engine, variables, grid_symbols, digest, layout: default_layout(circuit) }
    }

    /// The number of remainders in a row.
    fn num_remainders(&self) -> usize {
        self.grid_symbols.iter().flatten().count()
    }

    /// Sets the number of rows per block. Larger blocks have less overhead; smaller blocks allow finer random access
    /// and use more threads. By default, a block has about 2¹⁷ cells.
    ///
    /// # Errors
    /// There are no rows, or more than 2²⁴ cells.
    pub fn with_block_rows(mut self, rows: usize) -> Result<Self, CodecError> {
        let variables = self.variables().len();
        let limit = Layout::max_block_rows(variables);
        if !(1..=limit).contains(&rows) {
            return Err(CodecError::BlockRows { rows, variables, limit });
        }
        self.layout.block_rows = rows;
        Ok(self)
    }

    /// The variables of a row.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The digest of the model, which every stream carries.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Compresses rows, row by row; NaN is a missing cell.
    ///
    /// Cost: one traversal (see [`log_conditionals`](Engine::log_conditionals)), and the probabilities of all values.
    ///
    /// # Errors
    /// A value is outside its domain. The error gives the row and variable.
    pub fn compress(&self, rows: &[f64]) -> Result<Vec<u8>, CodecError> {
        let mut compressor = Compressor::new(self, Vec::new())?;
        compressor.push(rows)?;
        compressor.finish()
    }

    /// Restores the rows of a compressed stream; missing cells are NaN.
    ///
    /// # Errors
    /// The bytes are not a stream, are damaged, or belong to another model.
    pub fn decompress(&self, bytes: &[u8]) -> Result<Vec<f64>, CodecError> {
        Archive::new(self, bytes)?.rows()
    }

    /// Restores the rows of one block of a compressed stream.
    ///
    /// # Errors
    /// As for [`decompress`](Self::decompress), but only this block is checked; also, there is no such block.
    pub fn decompress_block(&self, bytes: &[u8], block: usize) -> Result<Vec<f64>, CodecError> {
        Archive::new(self, bytes)?.block(block)
    }
}

/// Strips whose messages fit into the cache, and blocks with enough of them.
fn default_layout(circuit: &Circuit) -> Layout {
    // A layer right below a sum is multiplied by the weight immediately.
    let below_sum = |id: LayerId| {
        circuit.consumer(id).is_some_and(|c| matches!(circuit.layer(c), Layer::Sum { .. }))
            && matches!(circuit.layer(id), Layer::Input { .. } | Layer::Kronecker { .. })
    };
    let widths = circuit.layer_ids().filter(|&id| !below_sum(id)).map(|id| circuit.width(id));
    let width = widths.max().unwrap_or(1);
    let strip_rows = ((1 << 16) / width.saturating_mul(width).max(1)).clamp(8, 256);
    let strip_rows = strip_rows.next_multiple_of(8).min(MAX_STRIP_ROWS);
    let d = circuit.num_variables().max(1);
    let block_rows = (BLOCK_CELLS / d).max(1).next_multiple_of(strip_rows);
    Layout { strip_rows, block_rows: block_rows.min(Layout::max_block_rows(d)) }
}

//! Compression of a stream of rows with bounded memory.

use std::io::Write;

use rayon::prelude::*;

use super::block::SymbolRows;
use super::container::{Frame, checksum, header, tail};
use super::{Broken, Codec, CodecError, block};
use crate::engine::{RowError, Traversal, check_rows};

/// Compresses a stream of rows. Memory is bounded by one block of rows per thread.
///
/// The bytes depend neither on how the rows are split over calls nor on the number of threads.
#[derive(Debug)]
pub struct Compressor<'a, W: Write> {
    codec: &'a Codec,
    out: W,
    /// Rows that are not written yet, and their remainders.
    pending: Vec<f64>,
    remainders: Vec<u64>,
    offsets: Vec<u64>,
    position: u64,
    num_rows: u64,
}

impl<'a, W: Write> Compressor<'a, W> {
    /// Starts a stream.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn new(codec: &'a Codec, out: W) -> Result<Self, CodecError> {
        let (pending, remainders, offsets) = (Vec::new(), Vec::new(), Vec::new());
        let mut compressor =
            Self { codec, out, pending, remainders, offsets, position: 0, num_rows: 0 };
        let variables = codec.variables().len();
        compressor.write(&header(variables, codec.digest, codec.layout))?;
        Ok(compressor)
    }

    /// Appends whole rows, row by row; NaN is a missing cell.
    ///
    /// # Errors
    /// A value is outside its domain, or the stream cannot be written.
    pub fn push(&mut self, values: &[f64]) -> Result<(), CodecError> {
        self.push_cells(SymbolRows { values, remainders: &[] })
    }

    /// Appends whole rows with the remainders of their symbols.
    pub(super) fn push_cells(&mut self, cells: SymbolRows<'_>) -> Result<(), CodecError> {
        let SymbolRows { values, remainders } = cells;
        let variables = self.codec.variables();
        check_rows(variables, values).map_err(|e| match e {
            RowError::Cell { row, source } => {
                RowError::Cell { row: row + self.num_rows as usize, source }
            }
            shape @ RowError::Shape { .. } => shape,
        })?;
        self.num_rows += (values.len() / variables.len()) as u64;
        let limit = self.block_cells() * rayon::current_num_threads().max(1);
        let (d, width) = (variables.len(), self.codec.num_remainders());
        let mut done = 0;
        while done < values.len() {
            let end = values.len().min(done + limit.saturating_sub(self.pending.len()));
            self.pending.extend_from_slice(&values[done..end]);
            self.remainders.extend_from_slice(&remainders[done / d * width..end / d * width]);
            done = end;
            if self.pending.len() >= limit {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes the remaining rows and the index, and returns the writer.
    ///
    /// # Errors
    /// The stream cannot be written.
    pub fn finish(mut self) -> Result<W, CodecError> {
        self.flush()?;
        let tail = tail(&self.offsets, self.num_rows);
        self.write(&tail)?;
        self.out.flush().map_err(failed)?;
        Ok(self.out)
    }

    fn block_cells(&self) -> usize {
        self.codec.layout.block_rows * self.codec.variables().len()
    }

    fn flush(&mut self) -> Result<(), CodecError> {
        let (codec, cells) = (self.codec, self.block_cells());
        let (width, all) = (codec.num_remainders(), &self.remainders);
        let remainders = |n: usize, values: &[f64]| {
            let start = n * codec.layout.block_rows * width;
            &all[start..start + values.len() / codec.variables.len() * width]
        };
        let blocks: Result<Vec<Vec<u8>>, Broken> = self
            .pending
            .par_chunks(cells)
            .enumerate()
            .map_init(Traversal::default, |memory, (n, values)| {
                frame(codec, SymbolRows { values, remainders: remainders(n, values) }, memory)
            })
            .collect();
        self.pending.clear();
        self.remainders.clear();
        // Coding in memory cannot fail, and every value has been checked.
        let blocks =
            blocks.map_err(|Broken| CodecError::Damaged { what: "a value has no code" })?;
        for block in blocks {
            self.offsets.push(self.position);
            self.write(&block)?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CodecError> {
        self.out.write_all(bytes).map_err(failed)?;
        self.position += bytes.len() as u64;
        Ok(())
    }
}

/// The bytes of one block.
fn frame(codec: &Codec, cells: SymbolRows<'_>, memory: &mut Traversal) -> Result<Vec<u8>, Broken> {
    let coded = block::encode(codec, cells, memory)?;
    let rows = cells.values.len() / codec.variables().len();
    let mut out = Vec::with_capacity(coded.len() + 16);
    let checksum = checksum(cells.values, cells.remainders);
    Frame { rows, checksum, coded: &coded }.write(&mut out);
    Ok(out)
}

fn failed(source: std::io::Error) -> CodecError {
    CodecError::Io { action: "write", source }
}

//! Compressing a stream of rows with bounded memory.

use std::io::Write;

use rayon::prelude::*;

use super::container::{Frame, checksum, header, tail};
use super::{Broken, Codec, CodecError, block};
use crate::engine::{RowError, Rows, Traversal};

/// Compresses rows as they come; memory is bounded by one block of rows for each thread.
///
/// The bytes do not depend on how the rows are handed over, nor on the number of threads.
#[derive(Debug)]
pub struct Compressor<'a, W: Write> {
    codec: &'a Codec,
    out: W,
    /// Rows that are not written yet.
    pending: Vec<f64>,
    offsets: Vec<u64>,
    position: u64,
    num_rows: u64,
}

impl<'a, W: Write> Compressor<'a, W> {
    /// Begins a stream.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn new(codec: &'a Codec, out: W) -> Result<Self, CodecError> {
        let mut compressor =
            Self { codec, out, pending: Vec::new(), offsets: Vec::new(), position: 0, num_rows: 0 };
        let variables = codec.variables().len();
        compressor.write(&header(variables, codec.digest, codec.layout))?;
        Ok(compressor)
    }

    /// Adds whole rows, row after row; NaN is a missing cell.
    ///
    /// # Errors
    /// Values that are not in their domains, and streams that cannot be written.
    pub fn push(&mut self, values: &[f64]) -> Result<(), CodecError> {
        let variables = self.codec.variables();
        Rows::new(variables, values).map_err(|e| match e {
            RowError::Cell { row, source } => {
                RowError::Cell { row: row + self.num_rows as usize, source }
            }
            shape @ RowError::Shape { .. } => shape,
        })?;
        self.num_rows += (values.len() / variables.len()) as u64;
        let limit = self.block_cells() * rayon::current_num_threads().max(1);
        let mut rest = values;
        while !rest.is_empty() {
            let (now, later) =
                rest.split_at(rest.len().min(limit.saturating_sub(self.pending.len())));
            self.pending.extend_from_slice(now);
            rest = later;
            if self.pending.len() >= limit {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes what is left and the index, and gives the writer back.
    ///
    /// # Errors
    /// Where it cannot be written.
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
        let blocks: Result<Vec<Vec<u8>>, Broken> = self
            .pending
            .par_chunks(cells)
            .map_init(Traversal::default, |memory, values| frame(codec, values, memory))
            .collect();
        self.pending.clear();
        // A coder in memory fails at nothing, and every value has been checked.
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
fn frame(codec: &Codec, values: &[f64], memory: &mut Traversal) -> Result<Vec<u8>, Broken> {
    let coded = block::encode(&codec.engine, values, codec.layout.strip_rows, memory)?;
    let rows = values.len() / codec.variables().len();
    let mut out = Vec::with_capacity(coded.len() + 16);
    Frame { rows, checksum: checksum(values), coded: &coded }.write(&mut out);
    Ok(out)
}

fn failed(source: std::io::Error) -> CodecError {
    CodecError::Io { action: "write", source }
}

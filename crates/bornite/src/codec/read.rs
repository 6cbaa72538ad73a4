//! Decompression: sequentially with bounded memory, or of any block of a stream in memory.

use std::collections::VecDeque;
use std::io::{self, Read};

use rayon::prelude::*;

use super::container::{
    FRAME, FRAME_END, Frame, HEADER, Index, Layout, checksum, read_header, read_tail, tail,
};
use super::{Broken, Codec, CodecError, block};
use crate::engine::Traversal;

/// The symbols of one block, and their remainders.
type BlockCells = (Vec<f64>, Vec<u64>);

/// Decodes the rows of one block from its frame.
fn rows_of(
    codec: &Codec,
    layout: Layout,
    bytes: &[u8],
    memory: &mut Traversal,
) -> Result<BlockCells, &'static str> {
    let frame = Frame::read(bytes, layout)?;
    let (values, remainders) =
        block::decode(codec, frame.coded, frame.rows, layout.strip_rows, memory)
            .map_err(|Broken| "it does not match what the model would write")?;
    if checksum(&values, &remainders) != frame.checksum {
        return Err("its values differ from those that were compressed");
    }
    Ok((values, remainders))
}

/// A compressed stream in memory, with random access to its blocks.
#[derive(Debug)]
pub struct Archive<'a> {
    codec: &'a Codec,
    bytes: &'a [u8],
    layout: Layout,
    index: Index,
}

impl<'a> Archive<'a> {
    /// Reads the header and the index.
    ///
    /// # Errors
    /// The bytes are not a stream, belong to another model, or are damaged there.
    pub fn new(codec: &'a Codec, bytes: &'a [u8]) -> Result<Self, CodecError> {
        let layout = read_header(bytes, codec.variables().len(), codec.digest)?;
        let index = read_tail(bytes)?;
        let (blocks, per_block) = (index.bounds.len() as u64 - 1, layout.block_rows as u64);
        if index.num_rows.div_ceil(per_block) != blocks {
            return Err(CodecError::Damaged { what: "its rows do not fill its blocks" });
        }
        Ok(Self { codec, bytes, layout, index })
    }

    /// The number of rows.
    pub fn num_rows(&self) -> u64 {
        self.index.num_rows
    }

    /// The number of rows in every block except the last, which may have fewer.
    pub fn block_rows(&self) -> usize {
        self.layout.block_rows
    }

    /// The number of blocks.
    pub fn num_blocks(&self) -> usize {
        self.index.bounds.len() - 1
    }

    /// The rows of one block, row by row.
    ///
    /// # Errors
    /// There is no such block, or it is damaged.
    pub fn block(&self, block: usize) -> Result<Vec<f64>, CodecError> {
        Ok(self.block_with(block, &mut Traversal::default())?.0)
    }

    /// All rows, row by row. Blocks are decoded in parallel.
    ///
    /// # Errors
    /// A block is damaged.
    pub fn rows(&self) -> Result<Vec<f64>, CodecError> {
        Ok(self.blocks()?.into_iter().flat_map(|(values, _)| values).collect())
    }

    /// Decodes all blocks.
    pub(super) fn blocks(&self) -> Result<Vec<BlockCells>, CodecError> {
        (0..self.num_blocks())
            .into_par_iter()
            .map_init(Traversal::default, |memory, block| self.block_with(block, memory))
            .collect()
    }

    fn block_with(&self, block: usize, memory: &mut Traversal) -> Result<BlockCells, CodecError> {
        let count = self.num_blocks();
        if block >= count {
            return Err(CodecError::NoBlock { block, count });
        }
        let bytes = &self.bytes[self.index.bounds[block]..self.index.bounds[block + 1]];
        let values = rows_of(self.codec, self.layout, bytes, memory);
        let (values, remainders) =
            values.map_err(|what| CodecError::DamagedBlock { block, what })?;
        let before = (block * self.layout.block_rows) as u64;
        let expected = (self.index.num_rows - before).min(self.layout.block_rows as u64);
        if (values.len() / self.codec.variables().len()) as u64 != expected {
            let what = "its number of rows differs from the index";
            return Err(CodecError::DamagedBlock { block, what });
        }
        Ok((values, remainders))
    }
}

/// Decompresses a stream block by block. Memory is bounded by one block of rows per thread.
///
/// The rows are fully checked only when the end is reached without an error.
#[derive(Debug)]
pub struct Decompressor<'a, R: Read> {
    codec: &'a Codec,
    input: R,
    layout: Layout,
    ready: VecDeque<Vec<f64>>,
    offsets: Vec<u64>,
    position: u64,
    num_rows: u64,
    is_done: bool,
}

impl<'a, R: Read> Decompressor<'a, R> {
    /// Reads the header.
    ///
    /// # Errors
    /// The bytes cannot be read, are not a stream, or belong to another model.
    pub fn new(codec: &'a Codec, mut input: R) -> Result<Self, CodecError> {
        let header = read_up_to(&mut input, HEADER)?;
        let layout = read_header(&header, codec.variables().len(), codec.digest)?;
        Ok(Self {
            codec,
            input,
            layout,
            ready: VecDeque::new(),
            offsets: Vec::new(),
            position: HEADER as u64,
            num_rows: 0,
            is_done: false,
        })
    }

    /// The next block of rows, row by row; `None` at the end.
    ///
    /// # Errors
    /// The bytes cannot be read, or are damaged.
    pub fn next_block(&mut self) -> Result<Option<Vec<f64>>, CodecError> {
        if self.ready.is_empty() && !self.is_done {
            self.read_blocks()?;
        }
        Ok(self.ready.pop_front())
    }

    /// Reads one block per thread.
    fn read_blocks(&mut self) -> Result<(), CodecError> {
        let first = self.offsets.len();
        let mut frames = Vec::new();
        while !self.is_done && frames.len() < rayon::current_num_threads().max(1) {
            match self.read_frame()? {
                Some(frame) => frames.push(frame),
                None => self.is_done = true,
            }
        }
        let (codec, layout) = (self.codec, self.layout);
        let blocks: Result<Vec<Vec<f64>>, CodecError> = frames
            .par_iter()
            .enumerate()
            .map_init(Traversal::default, |memory, (n, bytes)| {
                rows_of(codec, layout, bytes, memory)
                    .map(|(values, _)| values)
                    .map_err(|what| CodecError::DamagedBlock { block: first + n, what })
            })
            .collect();
        for (n, values) in blocks?.into_iter().enumerate() {
            // Only the last block may be shorter.
            if !self.num_rows.is_multiple_of(self.layout.block_rows as u64) {
                let what = "it follows one that is not full";
                return Err(CodecError::DamagedBlock { block: first + n, what });
            }
            self.num_rows += (values.len() / self.codec.variables().len()) as u64;
            self.ready.push_back(values);
        }
        if self.is_done { self.check_tail() } else { Ok(()) }
    }

    /// The bytes of the next block; `None` at the end mark.
    fn read_frame(&mut self) -> Result<Option<Vec<u8>>, CodecError> {
        let mut frame = read_up_to(&mut self.input, 4)?;
        if frame.len() == 4 && frame.iter().all(|&b| b == 0) {
            return Ok(None);
        }
        frame.extend(read_up_to(&mut self.input, FRAME - 4)?);
        if frame.len() == FRAME {
            let rest = Frame::coded_len(&frame) + FRAME_END;
            frame.extend(read_up_to(&mut self.input, rest)?);
        }
        self.offsets.push(self.position);
        self.position += frame.len() as u64;
        Ok(Some(frame))
    }

    /// Reads the rest of the stream, and checks that it is the tail for what has been read.
    fn check_tail(&mut self) -> Result<(), CodecError> {
        let tail = tail(&self.offsets, self.num_rows);
        // One more byte shows that nothing follows.
        if read_up_to(&mut self.input, tail.len() - 3)? != tail[4..] {
            return Err(CodecError::Damaged { what: "its index does not match its blocks" });
        }
        Ok(())
    }
}

/// Reads at most `length` bytes, fewer at the end of the input. Allocates no more memory than there are bytes.
pub(super) fn read_up_to(input: &mut impl Read, length: usize) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    let read: io::Result<usize> = input.take(length as u64).read_to_end(&mut bytes);
    read.map_err(|source| CodecError::Io { action: "read", source })?;
    Ok(bytes)
}

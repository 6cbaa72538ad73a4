//! The bytes around the coded blocks, as described in `docs/FORMAT.md`. All numbers are little-endian.

use super::{CodecError, Digest};

/// The first bytes of every stream. The first byte is not ASCII, and the line ends reveal a transfer in text mode.
pub(super) const MAGIC: [u8; 8] = *b"\x89brz\r\n\x1a\n";
/// The last bytes of every stream.
const END: [u8; 4] = *b"brz\x04";
pub(super) const VERSION: u16 = 1;
/// The content type for rows of finite variables.
const ROWS: u16 = 0;

/// The length of a header.
pub(super) const HEADER: usize = 44;
/// The length of a frame before its coded bytes.
pub(super) const FRAME: usize = 12;
/// The length of a frame after its coded bytes.
pub(super) const FRAME_END: usize = 4;
/// The length of a tail, without the 8 bytes per block.
const TAIL: usize = 28;

/// The maximum number of cells in a block: 128 MiB of values.
pub(super) const MAX_BLOCK_CELLS: usize = 1 << 24;
/// The maximum number of rows in one traversal.
pub(super) const MAX_STRIP_ROWS: usize = 1 << 12;

/// How rows are divided into strips and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The number of rows in one traversal.
    pub(super) strip_rows: usize,
    /// The number of rows per range coder.
    pub(super) block_rows: usize,
}

impl Layout {
    /// The maximum number of rows in a block.
    pub(super) fn max_block_rows(num_variables: usize) -> usize {
        (MAX_BLOCK_CELLS / num_variables.max(1)).max(1)
    }

    fn is_valid(self, num_variables: usize) -> bool {
        (1..=MAX_STRIP_ROWS).contains(&self.strip_rows)
            && (1..=Self::max_block_rows(num_variables)).contains(&self.block_rows)
    }
}

pub(super) fn crc(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_le_bytes()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |&b| u32::from_le_bytes(b))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |&b| u64::from_le_bytes(b))
}

/// The first bytes of a stream.
pub(super) fn header(num_variables: usize, digest: Digest, layout: Layout) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER);
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend(ROWS.to_le_bytes());
    out.extend((num_variables as u32).to_le_bytes());
    out.extend(digest.0);
    out.extend((layout.strip_rows as u32).to_le_bytes());
    out.extend((layout.block_rows as u32).to_le_bytes());
    out.extend(crc(&out));
    out
}

/// Checks the magic bytes and the checksum of a header.
fn check_header(bytes: &[u8]) -> Result<&[u8], CodecError> {
    if bytes.len() < MAGIC.len() || bytes[..MAGIC.len()] != MAGIC {
        return Err(CodecError::NotAStream);
    }
    let Some(bytes) = bytes.get(..HEADER) else {
        return Err(CodecError::Damaged { what: "its header is truncated" });
    };
    let found = u16::from_le_bytes([bytes[8], bytes[9]]);
    if found != VERSION {
        return Err(CodecError::Version { found, known: VERSION });
    }
    if bytes[HEADER - 4..] != crc(&bytes[..HEADER - 4]) {
        return Err(CodecError::Damaged { what: "its header was altered" });
    }
    let content = u16::from_le_bytes([bytes[10], bytes[11]]);
    if content != ROWS {
        return Err(CodecError::Content { found: content });
    }
    Ok(bytes)
}

/// Reads a header, which must belong to a stream of this model.
pub(super) fn read_header(
    bytes: &[u8],
    num_variables: usize,
    digest: Digest,
) -> Result<Layout, CodecError> {
    let bytes = check_header(bytes)?;
    let mut stored = Digest([0; 16]);
    stored.0.copy_from_slice(&bytes[16..32]);
    if stored != digest || u32_at(bytes, 12) as usize != num_variables {
        return Err(CodecError::WrongModel { expected: digest, found: stored });
    }
    let layout =
        Layout { strip_rows: u32_at(bytes, 32) as usize, block_rows: u32_at(bytes, 36) as usize };
    if !layout.is_valid(num_variables) {
        return Err(CodecError::Damaged { what: "its blocks have an impossible size" });
    }
    Ok(layout)
}

/// A block: its number of rows, the checksum of their values, and their coded bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) rows: usize,
    pub(super) checksum: u32,
    pub(super) coded: &'a [u8],
}

impl<'a> Frame<'a> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend((self.rows as u32).to_le_bytes());
        out.extend((self.coded.len() as u32).to_le_bytes());
        out.extend(self.checksum.to_le_bytes());
        out.extend(self.coded);
        out.extend(crc(&out[start..]));
    }

    /// The length of the coded bytes, from the start of a frame.
    pub(super) fn coded_len(start: &[u8]) -> usize {
        u32_at(start, 4) as usize
    }

    /// Checks a complete frame, and splits it into its start and the coded bytes.
    fn check(bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), &'static str> {
        if bytes.len() < FRAME + FRAME_END {
            return Err("it is truncated");
        }
        let (body, end) = bytes.split_at(bytes.len() - FRAME_END);
        if end != crc(body) {
            return Err("its bytes were altered");
        }
        Ok(body.split_at(FRAME))
    }

    /// Reads a complete frame.
    pub(super) fn read(bytes: &'a [u8], layout: Layout) -> Result<Self, &'static str> {
        let (start, coded) = Self::check(bytes)?;
        let rows = u32_at(start, 0) as usize;
        if Self::coded_len(start) != coded.len() || !(1..=layout.block_rows).contains(&rows) {
            return Err("it has an impossible size");
        }
        Ok(Self { rows, checksum: u32_at(start, 8), coded })
    }
}

/// The checksum of values, as 32-bit numbers row by row with all bits set for a missing cell, followed by the
/// remainders as 64-bit numbers.
pub(super) fn checksum(values: &[f64], remainders: &[u64]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = Vec::with_capacity(4 * values.len().min(4096));
    for values in values.chunks(4096) {
        bytes.clear();
        for x in values {
            let symbol = if x.is_nan() { u32::MAX } else { *x as u32 };
            bytes.extend(symbol.to_le_bytes());
        }
        hasher.update(&bytes);
    }
    for remainder in remainders {
        hasher.update(&remainder.to_le_bytes());
    }
    hasher.finalize()
}

/// The tail after the last block or segment: a mark, the offset of each, and the total number of rows or bytes.
pub(super) fn tail(offsets: &[u64], num_rows: u64) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
    out.extend((offsets.len() as u64).to_le_bytes());
    out.extend(num_rows.to_le_bytes());
    out.extend(crc(&out));
    out.extend(END);
    out
}

/// The content of a tail.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// The offset of each block, and the end of the last.
    pub(super) bounds: Vec<usize>,
    pub(super) num_rows: u64,
}

/// Reads the tail of a complete stream.
pub(super) fn read_tail(bytes: &[u8]) -> Result<Index, CodecError> {
    let damaged = |what| CodecError::Damaged { what };
    if bytes.len() < HEADER + TAIL || bytes[bytes.len() - END.len()..] != END {
        return Err(damaged("its end is missing"));
    }
    let counts = bytes.len() - 24;
    let (count, num_rows) = (u64_at(bytes, counts), u64_at(bytes, counts + 8));
    let length = usize::try_from(count).ok().and_then(|n| n.checked_mul(8)?.checked_add(TAIL));
    let Some(start) = length.and_then(|length| bytes.len().checked_sub(length)) else {
        return Err(damaged("its index was altered"));
    };
    let tail = &bytes[start..];
    let checked = tail.len() - 8;
    let offsets = tail[4..checked - 16].as_chunks().0.iter().map(|&b| u64::from_le_bytes(b));
    let mut bounds: Vec<usize> =
        offsets.map(|b| usize::try_from(b).unwrap_or(usize::MAX)).collect();
    bounds.push(start);
    let first = bounds[0] == HEADER;
    if tail[checked..checked + 4] != crc(&tail[..checked])
        || u32_at(tail, 0) != 0
        || !first
        || !bounds.is_sorted_by(|a, b| a < b)
    {
        return Err(damaged("its index was altered"));
    }
    Ok(Index { bounds, num_rows })
}

//! The bytes around the segments of a compressed file, as described in `docs/FORMAT.md`.

use std::io::{Read, Seek, SeekFrom, Write};

use crate::codec::CodecError;
use crate::codec::container::{MAGIC, VERSION, crc, tail};
use crate::codec::read::read_up_to;
use crate::memory;

/// The content type for segments of a file or of a table.
const SEGMENTS: u16 = 1;
/// The length of a head.
const HEAD: usize = 16;
/// The length of a segment before its body.
const FRAME: usize = 20;
/// The length of a checksum.
const SUM: usize = 4;
/// The maximum number of content bytes in one segment: four times the largest segment size, for arrays that are stored
/// by columns.
const MAX_CONTENT: u64 = 1 << 28;
/// Content beyond this size is compressed at a faster level.
const LARGE: u64 = 1 << 25;

/// The type of a segment's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// Rows of a table.
    Table = 1,
    /// Bytes, compressed with zstd.
    Stored = 2,
}

/// A piece of compressed content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) kind: SegmentKind,
    /// The number of content bytes; 0 for a table in memory.
    pub(crate) content: u64,
    pub(crate) body: Vec<u8>,
}

impl Segment {
    /// Compresses bytes with zstd; at a faster level if many bytes precede them.
    pub(crate) fn stored(bytes: &[u8], before: u64) -> Self {
        let body = pack_from(bytes, before);
        Self { kind: SegmentKind::Stored, content: bytes.len() as u64, body }
    }

    /// The content of a stored segment.
    pub(crate) fn unpack(&self) -> Result<Vec<u8>, CodecError> {
        unpack(&self.body, self.content)
    }

    /// The maximum size of a decompressed part of this segment: proportional to the content, if it is a file.
    pub(crate) fn max_part(&self) -> u64 {
        let allowance = memory::allowance(self.body.len() as u64);
        match self.content {
            0 => allowance,
            content => content.saturating_mul(32).saturating_add(1 << 20).min(allowance),
        }
    }

    fn frame(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FRAME + self.body.len() + SUM);
        out.extend((self.kind as u32).to_le_bytes());
        out.extend(self.content.to_le_bytes());
        out.extend((self.body.len() as u64).to_le_bytes());
        out.extend(&self.body);
        out.extend(crc(&out));
        out
    }
}

/// The offsets of segments, in the compressed file and in the content.
#[derive(Debug, Default)]
struct Index {
    starts: Vec<u64>,
    position: u64,
    content: u64,
}

impl Index {
    fn add(&mut self, frame: usize, content: u64) {
        self.starts.extend([self.position, self.content]);
        self.position += frame as u64;
        self.content = self.content.saturating_add(content);
    }

    fn tail(&self) -> Vec<u8> {
        tail(&self.starts, self.content)
    }
}

/// Writes a compressed file, segment by segment.
#[derive(Debug)]
pub(crate) struct SegmentWriter<W: Write> {
    out: W,
    index: Index,
}

impl<W: Write> SegmentWriter<W> {
    /// Starts a file with an embedded model; empty if readers must provide it.
    pub(crate) fn new(mut out: W, model: &[u8]) -> Result<Self, CodecError> {
        let mut start = MAGIC.to_vec();
        start.extend(VERSION.to_le_bytes());
        start.extend(SEGMENTS.to_le_bytes());
        start.extend(crc(&start));
        start.extend((model.len() as u64).to_le_bytes());
        start.extend(model);
        start.extend(crc(&start[HEAD..]));
        out.write_all(&start).map_err(failed)?;
        let index = Index { position: start.len() as u64, ..Index::default() };
        Ok(Self { out, index })
    }

    /// Appends a segment.
    pub(crate) fn push(&mut self, segment: &Segment) -> Result<(), CodecError> {
        let frame = segment.frame();
        self.out.write_all(&frame).map_err(failed)?;
        self.index.add(frame.len(), segment.content);
        Ok(())
    }

    /// Writes the index, and returns the total number of bytes.
    pub(crate) fn finish(mut self) -> Result<u64, CodecError> {
        let tail = self.index.tail();
        self.out.write_all(&tail).and_then(|()| self.out.flush()).map_err(failed)?;
        Ok(self.index.position + tail.len() as u64)
    }
}

fn failed(source: std::io::Error) -> CodecError {
    CodecError::Io { action: "write", source }
}

/// Reads a compressed file, segment by segment. A segment is returned only once it and what follows it, the next
/// segment or the index, have been checked.
#[derive(Debug)]
pub(crate) struct SegmentReader<R: Read> {
    input: R,
    model: Vec<u8>,
    index: Index,
    ahead: Option<Segment>,
}

impl<R: Read> SegmentReader<R> {
    /// Reads the start of the file, and the first segment.
    pub(crate) fn new(mut input: R) -> Result<Self, CodecError> {
        let model = read_start(&mut input)?;
        let position = (HEAD + 8 + model.len() + SUM) as u64;
        let index = Index { position, ..Index::default() };
        let mut reader = Self { input, model, index, ahead: None };
        reader.ahead = reader.read()?;
        Ok(reader)
    }

    /// The embedded model; empty if there is none.
    pub(crate) fn model(&self) -> &[u8] {
        &self.model
    }

    /// The number of bytes read; the size of the file after the last segment.
    pub(crate) fn position(&self) -> u64 {
        self.index.position
    }

    /// The next segment; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Segment>, CodecError> {
        let segment = self.ahead.take();
        if segment.is_some() {
            self.ahead = self.read()?;
        }
        Ok(segment)
    }

    /// Reads a segment; `None` at the end, where the index must match what has been read.
    fn read(&mut self) -> Result<Option<Segment>, CodecError> {
        let kind = read_up_to(&mut self.input, 4)?;
        if kind == [0; 4] {
            let tail = self.index.tail();
            // One more byte shows that nothing follows.
            if read_up_to(&mut self.input, tail.len() - 3)? != tail[4..] {
                return Err(damaged("its index does not match its segments"));
            }
            self.index.position += tail.len() as u64;
            return Ok(None);
        }
        let segment = read_segment(&mut (&kind[..]).chain(&mut self.input))?;
        self.index.add(FRAME + segment.body.len() + SUM, segment.content);
        Ok(Some(segment))
    }
}

/// A compressed file with random access to its segments.
#[derive(Debug)]
pub(crate) struct SegmentArchive<R: Read + Seek> {
    input: R,
    model: Vec<u8>,
    /// The offsets of each segment and of its content.
    starts: Vec<[u64; 2]>,
    content: u64,
}

impl<R: Read + Seek> SegmentArchive<R> {
    /// Reads the start of the file, and the index.
    pub(crate) fn new(mut input: R) -> Result<Self, CodecError> {
        let model = read_start(&mut input)?;
        let io = |source| CodecError::Io { action: "read", source };
        let missing = || damaged("its end is missing");
        let end = input.seek(SeekFrom::End(0)).map_err(io)?;
        input.seek(SeekFrom::Start(end.saturating_sub(24))).map_err(io)?;
        let counts = read_up_to(&mut input, 16)?;
        let count = number(&counts);
        let length = count.checked_mul(8).and_then(|n| n.checked_add(28)).ok_or_else(missing)?;
        let start = end.checked_sub(length).ok_or_else(missing)?;
        input.seek(SeekFrom::Start(start)).map_err(io)?;
        let found = read_up_to(&mut input, length as usize)?;
        let numbers = found.get(4..found.len().saturating_sub(24)).ok_or_else(missing)?;
        let numbers: Vec<u64> =
            numbers.as_chunks().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
        let (starts, content) = (numbers.as_chunks().0.to_vec(), number(&counts[8..]));
        if found != tail(&numbers, content) || starts.as_flattened() != numbers {
            return Err(damaged("its index was altered"));
        }
        Ok(Self { input, model, starts, content })
    }

    /// The embedded model; empty if there is none.
    pub(crate) fn model(&self) -> &[u8] {
        &self.model
    }

    /// The content offset of each segment.
    pub(crate) fn starts(&self) -> impl ExactSizeIterator<Item = u64> {
        self.starts.iter().map(|start| start[1])
    }

    /// The size of the content.
    pub(crate) fn content(&self) -> u64 {
        self.content
    }

    /// Reads one segment.
    pub(crate) fn segment(&mut self, n: usize) -> Result<Segment, CodecError> {
        let count = self.starts.len();
        let [start, _] = *self.starts.get(n).ok_or(CodecError::NoBlock { block: n, count })?;
        let io = |source| CodecError::Io { action: "read", source };
        self.input.seek(SeekFrom::Start(start)).map_err(io)?;
        read_segment(&mut self.input)
    }
}

/// Reads the header of a file and the model.
fn read_start(input: &mut impl Read) -> Result<Vec<u8>, CodecError> {
    check_head(&read_up_to(input, HEAD)?)?;
    Ok(part(input, 8)?.1)
}

fn read_segment(input: &mut impl Read) -> Result<Segment, CodecError> {
    let (frame, body) = part(input, FRAME)?;
    let kind = match frame[..4] {
        [1, 0, 0, 0] => SegmentKind::Table,
        [2, 0, 0, 0] => SegmentKind::Stored,
        _ => return Err(damaged("a segment is of an unknown kind")),
    };
    let content = number(&frame[4..]);
    if content > MAX_CONTENT {
        return Err(damaged("a segment claims too many bytes"));
    }
    Ok(Segment { kind, content, body })
}

/// Reads `before` bytes, of which the last 8 are a length; that many more bytes; and the checksum of both, which must
/// match.
fn part(input: &mut impl Read, before: usize) -> Result<(Vec<u8>, Vec<u8>), CodecError> {
    let short = || damaged("a part is truncated");
    let start = read_up_to(input, before)?;
    let length = if start.len() < before { 0 } else { number(&start[before - 8..]) };
    let length = usize::try_from(length).map_err(|_| short())?;
    let bytes = read_up_to(input, length)?;
    let sum = read_up_to(input, SUM)?;
    if start.len() < before || bytes.len() < length || sum.len() < SUM {
        return Err(short());
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&start);
    hasher.update(&bytes);
    if sum != hasher.finalize().to_le_bytes() {
        return Err(damaged("a part was altered"));
    }
    Ok((start, bytes))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |&b| u64::from_le_bytes(b))
}

fn damaged(what: &'static str) -> CodecError {
    CodecError::Damaged { what }
}

fn check_head(head: &[u8]) -> Result<(), CodecError> {
    if !head.starts_with(&MAGIC) {
        return Err(CodecError::NotAStream);
    }
    if head.len() < HEAD {
        return Err(damaged("its head is truncated"));
    }
    let found = u16::from_le_bytes([head[8], head[9]]);
    if found != VERSION {
        return Err(CodecError::Version { found, known: VERSION });
    }
    let found = u16::from_le_bytes([head[10], head[11]]);
    if found != SEGMENTS {
        return Err(CodecError::Content { found });
    }
    if head[HEAD - SUM..] != crc(&head[..HEAD - SUM]) {
        return Err(damaged("its head was altered"));
    }
    Ok(())
}

/// Compresses bytes with zstd. The result for no bytes is empty.
pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    pack_from(bytes, 0)
}

fn pack_from(bytes: &[u8], before: u64) -> Vec<u8> {
    let level = if before + bytes.len() as u64 > LARGE { 12 } else { 19 };
    if bytes.is_empty() {
        return Vec::new();
    }
    // Compression from memory to memory fails only if memory runs out.
    zstd::bulk::compress(bytes, level).unwrap_or_default()
}

/// Decompresses the result of [`pack`], up to `limit` bytes.
pub(crate) fn unpack(packed: &[u8], limit: u64) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    if packed.is_empty() {
        return Ok(bytes);
    }
    let failed = |_| damaged("a compressed part cannot be decompressed");
    let decoder = zstd::stream::read::Decoder::new(packed).map_err(failed)?;
    decoder.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(damaged("a compressed part is longer than it should be"));
    }
    Ok(bytes)
}

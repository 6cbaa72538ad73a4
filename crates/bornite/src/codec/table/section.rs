//! The bytes around the parts of a compressed table: `docs/FORMAT.md` describes each.

use std::io::Read;

use crate::codec::CodecError;
use crate::codec::container::{MAGIC, VERSION, check_stream, crc};

/// A table, a model and rows.
const TABLE: u16 = 1;
/// Bytes as they are.
const STORED: u16 = 2;
/// The length of a head.
const HEAD: usize = 16;
/// Bytes above this are packed faster.
const LARGE: usize = 1 << 25;

/// What a compressed file holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    /// The parts of a table.
    Table(Parts<'a>),
    /// Packed bytes.
    Stored(&'a [u8]),
}

/// The parts of a compressed table, all checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    /// How the table looks apart from its cells, packed.
    pub(super) form: &'a [u8],
    /// The model, in its own form; empty where it is not there.
    pub(crate) model: &'a [u8],
    /// Cells and texts that no model predicts, packed.
    pub(super) beside: &'a [u8],
    /// A stream of rows.
    pub(super) rows: &'a [u8],
}

impl Parts<'_> {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = head(TABLE);
        for part in [self.form, self.model, self.beside] {
            section(&mut out, part);
        }
        out.extend(self.rows);
        out
    }
}

/// The bytes of a file that is stored as it is.
pub(crate) fn store(bytes: &[u8]) -> Vec<u8> {
    let mut out = head(STORED);
    section(&mut out, &pack(bytes));
    out
}

fn head(content: u16) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    out.extend(content.to_le_bytes());
    out.extend(crc(&out));
    out
}

/// Its length, its bytes, and the checksum of both.
fn section(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
    out.extend(crc(&out[start..]));
}

/// Finds out what a compressed file holds, and checks every byte of it.
pub(crate) fn read_content(bytes: &[u8]) -> Result<Content<'_>, CodecError> {
    let damaged = |what| CodecError::Damaged { what };
    if !bytes.starts_with(&MAGIC) {
        return Err(CodecError::NotAStream);
    }
    let (head, mut rest) = bytes.split_at_checked(HEAD).ok_or(damaged("its head is cut short"))?;
    let found = u16::from_le_bytes([head[8], head[9]]);
    if found != VERSION {
        return Err(CodecError::Version { found, known: VERSION });
    }
    let content = u16::from_le_bytes([head[10], head[11]]);
    if !matches!(content, TABLE | STORED) {
        return Err(CodecError::Content { found: content });
    }
    if head[12..] != crc(&head[..12]) {
        return Err(damaged("its head has changed"));
    }
    if content == STORED {
        let stored = take_section(&mut rest)?;
        return if rest.is_empty() {
            Ok(Content::Stored(stored))
        } else {
            Err(damaged("there are bytes after its end"))
        };
    }
    let mut next = || take_section(&mut rest);
    let (form, model, beside) = (next()?, next()?, next()?);
    check_stream(rest)?;
    Ok(Content::Table(Parts { form, model, beside, rows: rest }))
}

fn take_section<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], CodecError> {
    let damaged = |what| CodecError::Damaged { what };
    let short = damaged("a part is cut short");
    let Some(length) = rest.first_chunk().map(|&b| u64::from_le_bytes(b)) else {
        return Err(short);
    };
    let split = usize::try_from(length)
        .ok()
        .and_then(|n| rest.split_at_checked(n.checked_add(8)?))
        .and_then(|(part, after)| Some((part, after.split_at_checked(4)?)));
    let Some((part, (sum, after))) = split else { return Err(short) };
    if sum != crc(part) {
        return Err(damaged("a part has changed"));
    }
    *rest = after;
    Ok(&part[8..])
}

/// Packs bytes by zstd; no bytes stay none.
pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    let level = if bytes.len() > LARGE { 12 } else { 19 };
    if bytes.is_empty() {
        return Vec::new();
    }
    // Packing from memory to memory fails where memory does.
    zstd::bulk::compress(bytes, level).unwrap_or_default()
}

/// Unpacks what [`pack`] packed.
pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    if packed.is_empty() {
        return Ok(bytes);
    }
    let failed = |_| CodecError::Damaged { what: "a packed part cannot be unpacked" };
    let mut decoder = zstd::stream::read::Decoder::new(packed).map_err(failed)?;
    decoder.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

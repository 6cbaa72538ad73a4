//! Just enough of the zip format to find the arrays in an NPZ file.

use std::io::Read;

use flate2::{Crc, read::DeflateDecoder};

use super::FormatProblem;

const END: [u8; 4] = *b"PK\x05\x06";
const END64: [u8; 4] = *b"PK\x06\x06";
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const LOCAL: [u8; 4] = *b"PK\x03\x04";
/// A size or offset that stands in the 64-bit extra field instead.
const ELSEWHERE: u64 = 0xffff_ffff;

/// A member of an archive.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    offset: u64,
}

/// The members of an archive, in its own order.
pub(super) fn members(bytes: &[u8]) -> Result<Vec<Member>, FormatProblem> {
    let end = rfind(bytes, END).ok_or(FormatProblem::Magic)?;
    let mut count = u64::from(u16_at(bytes, end + 10)?);
    let mut at = u64::from(u32_at(bytes, end + 16)?);
    if (count == 0xffff || at == ELSEWHERE)
        && let Some(end64) = rfind(&bytes[..end], END64)
    {
        count = u64_at(bytes, end64 + 32)?;
        at = u64_at(bytes, end64 + 48)?;
    }
    let mut members = Vec::new();
    let mut at = place(at)?;
    for _ in 0..count {
        if bytes.get(at..at.saturating_add(4)) != Some(&ENTRY) {
            return Err(FormatProblem::Header { field: "list of members" });
        }
        let [name, extra, comment] = [28, 30, 32].map(|n| u16_at(bytes, at + n));
        let (name, extra, comment) =
            (usize::from(name?), usize::from(extra?), usize::from(comment?));
        let mut member = Member {
            name: String::from_utf8_lossy(slice(bytes, at + 46, name)?).into_owned(),
            method: u16_at(bytes, at + 10)?,
            crc: u32_at(bytes, at + 16)?,
            packed: u64::from(u32_at(bytes, at + 20)?),
            size: u64::from(u32_at(bytes, at + 24)?),
            offset: u64::from(u32_at(bytes, at + 42)?),
        };
        read_extra(slice(bytes, at + 46 + name, extra)?, &mut member)?;
        members.push(member);
        at += 46 + name + extra + comment;
    }
    Ok(members)
}

/// The 64-bit sizes, in the order size, packed size, offset, for those that do not fit 32 bits.
fn read_extra(mut extra: &[u8], member: &mut Member) -> Result<(), FormatProblem> {
    while extra.len() >= 4 {
        let (id, length) = (u16_at(extra, 0)?, usize::from(u16_at(extra, 2)?));
        let field = slice(extra, 4, length)?;
        if id == 1 {
            let mut at = 0;
            for value in [&mut member.size, &mut member.packed, &mut member.offset] {
                if *value == ELSEWHERE {
                    *value = u64_at(field, at)?;
                    at += 8;
                }
            }
        }
        extra = &extra[4 + length..];
    }
    Ok(())
}

/// The content of a member, checked against its checksum.
pub(super) fn unpack(bytes: &[u8], member: &Member) -> Result<Vec<u8>, FormatProblem> {
    let at = place(member.offset)?;
    if bytes.get(at..at.saturating_add(4)) != Some(&LOCAL) {
        return Err(FormatProblem::Header { field: "member" });
    }
    let skip = usize::from(u16_at(bytes, at + 26)?) + usize::from(u16_at(bytes, at + 28)?);
    let packed = slice(bytes, at + 30 + skip, place(member.packed)?)?;
    let content = match member.method {
        0 => packed.to_vec(),
        8 => {
            let mut content = Vec::new();
            // One byte beyond the announced size, so that a bomb stops here.
            let limit = member.size.saturating_add(1);
            DeflateDecoder::new(packed)
                .take(limit)
                .read_to_end(&mut content)
                .map_err(|_| FormatProblem::Checksum(member.name.clone()))?;
            content
        }
        _ => return Err(FormatProblem::Packing(member.name.clone())),
    };
    let mut crc = Crc::new();
    crc.update(&content);
    if crc.sum() != member.crc || content.len() as u64 != member.size {
        return Err(FormatProblem::Checksum(member.name.clone()));
    }
    Ok(content)
}

fn rfind(bytes: &[u8], signature: [u8; 4]) -> Option<usize> {
    bytes.windows(4).rposition(|w| w == signature)
}

fn place(offset: u64) -> Result<usize, FormatProblem> {
    usize::try_from(offset).map_err(|_| FormatProblem::Header { field: "offset" })
}

fn slice(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], FormatProblem> {
    let end = at.checked_add(length).ok_or(FormatProblem::Header { field: "length" })?;
    let cut = FormatProblem::CutOff { expected: end as u128, found: bytes.len() };
    bytes.get(at..end).ok_or(cut)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], FormatProblem> {
    let mut out = [0; N];
    out.copy_from_slice(slice(bytes, at, N)?);
    Ok(out)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, FormatProblem> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, FormatProblem> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, FormatProblem> {
    array(bytes, at).map(u64::from_le_bytes)
}

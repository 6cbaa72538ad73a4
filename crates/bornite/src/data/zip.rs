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

/// Where the content of a member begins that these bytes begin with, if it is not packed.
pub(super) fn stored(bytes: &[u8]) -> Option<usize> {
    let (name, extra) = (u16_at(bytes, 26).ok()?, u16_at(bytes, 28).ok()?);
    let start = 30 + usize::from(name) + usize::from(extra);
    let is_stored = bytes.starts_with(&LOCAL) && u16_at(bytes, 8) == Ok(0);
    (is_stored && start <= bytes.len()).then_some(start)
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use flate2::{Compression, write::DeflateEncoder};
    use std::io::Write;

    /// An archive of these members; sizes in 64 bits where asked.
    pub(in crate::data) fn archive(contents: &[(&str, &[u8], bool)], wide: bool) -> Vec<u8> {
        let (mut bytes, mut list) = (Vec::new(), Vec::new());
        for (name, content, deflated) in contents {
            let packed = if *deflated {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            } else {
                content.to_vec()
            };
            let mut crc = Crc::new();
            crc.update(content);
            let offset = bytes.len() as u32;
            let method = if *deflated { 8_u16 } else { 0 };
            let sizes = [packed.len() as u32, content.len() as u32];
            bytes.extend(LOCAL);
            bytes.extend([0; 22]);
            bytes.extend((name.len() as u16).to_le_bytes());
            bytes.extend(0_u16.to_le_bytes());
            bytes.extend(name.bytes());
            bytes.extend(&packed);
            let mut extra = Vec::new();
            if wide {
                extra.extend([1, 0, 16, 0]);
                extra.extend(u64::from(sizes[1]).to_le_bytes());
                extra.extend(u64::from(sizes[0]).to_le_bytes());
            }
            list.extend(ENTRY);
            list.extend([0; 6]);
            list.extend(method.to_le_bytes());
            list.extend([0; 4]);
            list.extend(crc.sum().to_le_bytes());
            list.extend((if wide { u32::MAX } else { sizes[0] }).to_le_bytes());
            list.extend((if wide { u32::MAX } else { sizes[1] }).to_le_bytes());
            list.extend((name.len() as u16).to_le_bytes());
            list.extend((extra.len() as u16).to_le_bytes());
            list.extend([0; 10]);
            list.extend(offset.to_le_bytes());
            list.extend(name.bytes());
            list.extend(extra);
        }
        let start = bytes.len() as u32;
        bytes.extend(&list);
        bytes.extend(END);
        bytes.extend([0; 6]);
        bytes.extend((contents.len() as u16).to_le_bytes());
        bytes.extend((list.len() as u32).to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend([0; 2]);
        bytes
    }

    #[test]
    fn members_are_unpacked() {
        let long = [7; 5000];
        for wide in [false, true] {
            let bytes = archive(&[("a.npy", b"first", false), ("b.npy", &long, true)], wide);
            let members = members(&bytes).unwrap();
            assert_eq!(members[1].name, "b.npy");
            assert_eq!(unpack(&bytes, &members[0]).unwrap(), b"first");
            assert_eq!(unpack(&bytes, &members[1]).unwrap(), long);
        }
    }

    #[test]
    fn damage_is_found_and_never_panics() {
        let good = archive(&[("a.npy", b"first and only", true)], true);
        let read = |bytes: &[u8]| -> Result<Vec<u8>, FormatProblem> {
            let members = members(bytes)?;
            let member = members.first().ok_or(FormatProblem::Magic)?;
            unpack(bytes, member)
        };
        let content = read(&good).unwrap();
        for at in 0..good.len() {
            let cut = read(&good[..at]);
            assert!(cut.map_or(true, |found| found == content), "cut at {at}");
            for change in [1, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= change;
                // Bytes that are not looked at may change; others are found out.
                assert!(read(&bytes).map_or(true, |found| found == content), "changed at {at}");
            }
        }
    }
}

//! The outer layers of the formats, taken apart and put together with digests and checksums made right, so that changes
//! reach the parsers behind them.

use serde_json::Value;

/// A safetensors file: the header as JSON, and the tensors.
pub(crate) struct Safetensors {
    pub(crate) header: Value,
    pub(crate) data: Vec<u8>,
}

impl Safetensors {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let length = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
        let (header, data) = bytes[8..].split_at_checked(length)?;
        Some(Self { header: serde_json::from_slice(header).ok()?, data: data.to_vec() })
    }

    /// One of the texts in the metadata, as JSON.
    pub(crate) fn text(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.header.get("__metadata__")?.get(name)?.as_str()?).ok()
    }

    pub(crate) fn set_text(&mut self, name: &str, value: &Value) {
        self.header["__metadata__"][name] = Value::from(value.to_string());
    }

    /// The bytes, with the digest of both texts and the tensors made right.
    pub(crate) fn write(mut self) -> Vec<u8> {
        let text = |name: &str| self.header["__metadata__"][name].as_str().unwrap_or("").to_owned();
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        let texts = [text("bornite"), text("bornite.model")];
        let parts = [texts[0].as_bytes(), &[0], texts[1].as_bytes(), &[0], &self.data];
        for &byte in parts.into_iter().flatten() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if self.header["__metadata__"].get("bornite.digest").is_some() {
            self.header["__metadata__"]["bornite.digest"] = Value::from(format!("{digest:016x}"));
        }
        let header = self.header.to_string();
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes());
        bytes.extend(self.data);
        bytes
    }
}

/// A compressed file: the model in it, and its segments, each a kind, the length of its content, and a body.
pub(crate) struct Compressed {
    pub(crate) model: Vec<u8>,
    pub(crate) segments: Vec<(u32, u64, Vec<u8>)>,
}

const MAGIC: &[u8] = b"\x89brz\r\n\x1a\n\x01\x00\x01\x00";

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Compressed {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let length = usize::try_from(number(bytes, 16)?).ok()?;
        let model = bytes.get(24..24_usize.checked_add(length)?)?.to_vec();
        let mut at = 24 + length + 4;
        let mut segments = Vec::new();
        loop {
            let kind = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
            if kind == 0 {
                return Some(Self { model, segments });
            }
            let (content, length) = (number(bytes, at + 4)?, number(bytes, at + 12)?);
            let end = (at + 20).checked_add(usize::try_from(length).ok()?)?;
            segments.push((kind, content, bytes.get(at + 20..end)?.to_vec()));
            at = end + 4;
        }
    }

    /// The bytes, with checksums and the index made right.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        close(&mut out, 0);
        let start = out.len();
        out.extend((self.model.len() as u64).to_le_bytes());
        out.extend(&self.model);
        close(&mut out, start);
        let mut starts: Vec<u64> = Vec::new();
        let mut total = 0_u64;
        for (kind, content, body) in &self.segments {
            starts.extend([out.len() as u64, total]);
            total = total.saturating_add(*content);
            let start = out.len();
            out.extend(kind.to_le_bytes());
            out.extend(content.to_le_bytes());
            out.extend((body.len() as u64).to_le_bytes());
            out.extend(body);
            close(&mut out, start);
        }
        let start = out.len();
        out.extend([0; 4]);
        out.extend(starts.iter().flat_map(|n| n.to_le_bytes()));
        out.extend((starts.len() as u64).to_le_bytes());
        out.extend(total.to_le_bytes());
        close(&mut out, start);
        out.extend(*b"brz\x04");
        out
    }
}

/// Adds the checksum of what stands from `start` on.
fn close(out: &mut Vec<u8>, start: usize) {
    let sum = crc32fast::hash(&out[start..]);
    out.extend(sum.to_le_bytes());
}

/// A checkpoint with its checksum made right.
pub(crate) fn checkpoint(mut content: Vec<u8>) -> Vec<u8> {
    close(&mut content, 0);
    content
}

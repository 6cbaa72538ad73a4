//! The two hash functions of the file formats. Both detect damage and mistakes, not tampering.
//!
//! They answer different questions. The digest in a model file covers the bytes of that file, so that a damaged copy is
//! noticed. The digest in a compressed stream identifies the model that decodes it, however that model was stored: its
//! numbers count, but not its names or its file. Each format stores its function's values, so replacing one by the other
//! in new files would leave both in the code, and earlier versions could not read those files.

use std::fmt;
use std::io::{self, Write};

/// A 64-bit FNV-1a hash of bytes, for model files.
pub(crate) struct Checksum(u64);

impl Checksum {
    /// The hash of some texts. Bytes may follow.
    pub(crate) fn of_texts<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut sum = Self(0xcbf2_9ce4_8422_2325);
        for text in texts {
            sum.add(text.as_bytes());
            // A separator, so that no text can move from one entry to the other.
            sum.add(&[0]);
        }
        sum
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Write for Checksum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The hexadecimal digits of π after the point.
#[cfg(feature = "codec")]
const START: u128 = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344;
/// The digits that follow. They are odd, so multiplication is invertible.
#[cfg(feature = "codec")]
const FACTOR: u128 = 0xa409_3822_299f_31d0_082e_fa98_ec4e_6c89;

/// A 128-bit hash of 64-bit words, for compressed streams.
#[cfg(feature = "codec")]
pub(crate) struct Words(u128);

#[cfg(feature = "codec")]
impl Words {
    pub(crate) fn new() -> Self {
        Self(START)
    }

    /// The hash that continues after the words of an earlier one.
    pub(crate) fn continued(hash: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(hash))
    }

    /// h ← (h ⊕ w) · FACTOR, rotated by 64 bits.
    pub(crate) fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ u128::from(word)).wrapping_mul(FACTOR).rotate_left(64);
    }

    pub(crate) fn to_bytes(&self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
}

//! Members of NPZ files, which are zip archives.

use std::borrow::Cow;
use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::FormatProblem;
use crate::memory;

const LOCAL: [u8; 4] = *b"PK\x03\x04";

/// A zip archive in memory.
pub(super) struct Archive<'a>(ZipArchive<Cursor<&'a [u8]>>);

impl<'a> Archive<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, FormatProblem> {
        ZipArchive::new(Cursor::new(bytes)).map(Self).map_err(|_| FormatProblem::Magic)
    }

    /// The names of the members, in the order of the archive.
    pub(super) fn names(&self) -> Result<Vec<String>, FormatProblem> {
        let name = |name: Result<Cow<'_, str>, ZipError>| {
            name.map(Cow::into_owned)
                .map_err(|_| FormatProblem::Header { field: "list of members" })
        };
        self.0.file_names().map(name).collect()
    }

    /// Reads a member and checks its size and checksum. Also returns its compressed size.
    pub(super) fn read(
        &mut self,
        index: usize,
        name: &str,
    ) -> Result<(Vec<u8>, u64), FormatProblem> {
        let damaged = || FormatProblem::Checksum(name.to_owned());
        let member = self.0.by_index(index).map_err(|e| match e {
            ZipError::UnsupportedArchive(_) | ZipError::CompressionMethodNotSupported(_) => {
                FormatProblem::Packing(name.to_owned())
            }
            _ => damaged(),
        })?;
        let (size, file_bytes) = (member.size(), member.compressed_size());
        memory::check("an array", size.into(), file_bytes)?;
        let mut content = Vec::new();
        // Read one byte beyond the announced size, so that a zip bomb stops here.
        let read = member.take(size.saturating_add(1)).read_to_end(&mut content);
        if read.is_err() || content.len() as u64 != size {
            return Err(damaged());
        }
        Ok((content, file_bytes))
    }
}

/// The offset of the content of the member at the start of these bytes, if it is not compressed.
pub(super) fn stored(bytes: &[u8]) -> Option<usize> {
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    let start = 30 + usize::from(number(26)?) + usize::from(number(28)?);
    let is_stored = bytes.starts_with(&LOCAL) && number(8) == Some(0);
    (is_stored && start <= bytes.len()).then_some(start)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    /// An archive with these members, optionally with 64-bit sizes.
    pub(in crate::data) fn archive(contents: &[(&str, &[u8], bool)], wide: bool) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content, deflated) in contents {
            let method =
                if *deflated { CompressionMethod::Deflated } else { CompressionMethod::Stored };
            let options = SimpleFileOptions::default().compression_method(method).large_file(wide);
            writer.start_file(*name, options).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn members_are_unpacked() {
        let long = [7; 5000];
        for wide in [false, true] {
            let bytes = archive(&[("a.npy", b"first", false), ("b.npy", &long, true)], wide);
            let mut archive = Archive::new(&bytes).unwrap();
            assert_eq!(archive.names().unwrap(), ["a.npy", "b.npy"]);
            assert_eq!(archive.read(0, "a.npy").unwrap().0, b"first");
            assert_eq!(archive.read(1, "b.npy").unwrap().0, long);
            let start = stored(&bytes).unwrap();
            assert_eq!(&bytes[start..start + 5], b"first");
        }
    }

    #[test]
    fn damage_is_found_and_never_panics() {
        let good = archive(&[("a.npy", b"first and only", true)], true);
        let read = |bytes: &[u8]| Archive::new(bytes)?.read(0, "a.npy").map(|found| found.0);
        let content = read(&good).unwrap();
        for at in 0..good.len() {
            let cut = read(&good[..at]);
            assert!(cut.map_or(true, |found| found == content), "cut at {at}");
            for change in [1, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= change;
                // Some bytes are ignored; changes to all others are detected.
                assert!(read(&bytes).map_or(true, |found| found == content), "changed at {at}");
            }
        }
    }
}

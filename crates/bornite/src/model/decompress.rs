//! Decompression of files, all content in order or single segments.

use std::io::{Read, Seek, Write};

use super::compact::Compact;
use super::{Model, ModelError};
use crate::codec::{CodecError, Segment, SegmentArchive, SegmentKind, SegmentReader, TableCodec};
use crate::data::{FileForm, Table};

/// Restores the content of a file that [`compress_file`](super::compress_file) compressed, segment by segment, and
/// returns how many bytes were read and written. `model` is required if the file was compressed with a given model.
///
/// Memory is bounded, as when compressing. The output is fully checked only when this returns without an error, so
/// write to a temporary file that is renamed only then, as [`write_file`](crate::data::write_file) does.
///
/// # Errors
/// The bytes are not a compressed file, are damaged, or require another model, or the content cannot be written.
pub fn decompress_file(
    packed: impl Read,
    mut out: impl Write,
    model: Option<&Model>,
) -> Result<(u64, u64), ModelError> {
    let mut segments = SegmentReader::new(packed)?;
    let mut decoder = SegmentDecoder::new(model, segments.model());
    let mut written = 0;
    while let Some(segment) = segments.next()? {
        let bytes = decoder.bytes(&segment)?;
        let failed = |source| CodecError::Io { action: "write the content of", source };
        out.write_all(&bytes).map_err(failed)?;
        written += bytes.len() as u64;
    }
    Ok((segments.position(), written))
}

/// A compressed file with random access to its segments.
///
/// ```
/// use std::io::Cursor;
///
/// use bornite::learn::Control;
/// use bornite::model::{CompressOptions, FileArchive, compress_file};
///
/// let content = "not a table\n".repeat(3000);
/// let options = CompressOptions { segment_bytes: Some(16384), ..CompressOptions::default() };
/// let mut packed = Vec::new();
/// compress_file(content.as_bytes(), &mut packed, "notes", None, &options, &mut |_| Control::Continue)?;
///
/// let mut archive = FileArchive::new(Cursor::new(packed), None)?;
/// let middle = archive.segment_at(20_000).expect("a segment");
/// let start = archive.start(middle) as usize;
/// let bytes = archive.segment(middle)?;
/// assert_eq!(bytes, content.as_bytes()[start..start + bytes.len()]);
/// assert!((start..start + bytes.len()).contains(&20_000));
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Debug)]
pub struct FileArchive<'a, R: Read + Seek> {
    segments: SegmentArchive<R>,
    decoder: SegmentDecoder<'a>,
}

impl<'a, R: Read + Seek> FileArchive<'a, R> {
    /// Reads the header before the segments, and the index at the end.
    ///
    /// # Errors
    /// The bytes are not a compressed file, or are damaged there.
    pub fn new(packed: R, model: Option<&'a Model>) -> Result<Self, ModelError> {
        let segments = SegmentArchive::new(packed)?;
        let decoder = SegmentDecoder::new(model, segments.model());
        Ok(Self { segments, decoder })
    }

    /// The size of the content in bytes.
    pub fn num_bytes(&self) -> u64 {
        self.segments.content()
    }

    /// The number of segments.
    pub fn num_segments(&self) -> usize {
        self.segments.starts().len()
    }

    /// The offset of a segment's content, or the total size if there is no such segment.
    pub fn start(&self, segment: usize) -> u64 {
        self.segments.starts().nth(segment).unwrap_or(self.num_bytes())
    }

    /// The segment that contains this byte of the content.
    pub fn segment_at(&self, byte: u64) -> Option<usize> {
        let before = self.segments.starts().take_while(|&start| start <= byte).count();
        before.checked_sub(1).filter(|_| byte < self.num_bytes())
    }

    /// The content of one segment: whole rows, if the file is a table.
    ///
    /// # Errors
    /// There is no such segment, or it is damaged or requires another model.
    pub fn segment(&mut self, segment: usize) -> Result<Vec<u8>, ModelError> {
        self.decoder.bytes(&self.segments.segment(segment)?)
    }
}

/// Decodes segments into tables or bytes.
#[derive(Debug)]
pub(super) struct SegmentDecoder<'a> {
    model: Option<&'a Model>,
    /// The bytes of the model that is embedded in the file; empty if there is none.
    own: Vec<u8>,
    /// Created when a segment first needs them.
    codecs: Vec<TableCodec>,
}

impl<'a> SegmentDecoder<'a> {
    pub(super) fn new(model: Option<&'a Model>, own: &[u8]) -> Self {
        Self { model, own: own.to_vec(), codecs: Vec::new() }
    }

    /// Decodes a segment that contains a table in memory.
    pub(super) fn table(&mut self, segment: &Segment) -> Result<Table, ModelError> {
        match segment.kind {
            SegmentKind::Table => match self.decode(segment)? {
                (table, FileForm::Memory) => Ok(table),
                _ => Err(CodecError::IsFile.into()),
            },
            SegmentKind::Stored => Err(CodecError::IsFile.into()),
        }
    }

    /// Decodes a segment of a file.
    fn bytes(&mut self, segment: &Segment) -> Result<Vec<u8>, ModelError> {
        let bytes = match segment.kind {
            SegmentKind::Stored => Some(segment.unpack()?),
            SegmentKind::Table => match self.decode(segment)? {
                (_, FileForm::Memory) => return Err(CodecError::IsTable.into()),
                (table, form) => form.write(&table),
            },
        };
        let damaged = CodecError::Damaged { what: "a segment does not match its content" };
        let fits = |bytes: &Vec<u8>| bytes.len() as u64 == segment.content;
        Ok(bytes.filter(fits).ok_or(damaged)?)
    }

    fn decode(&mut self, segment: &Segment) -> Result<(Table, FileForm), ModelError> {
        if self.codecs.is_empty() {
            self.codecs = match self.model {
                _ if !self.own.is_empty() => Compact::read(&self.own)?.table_codecs()?,
                Some(model) => model.table_codecs()?,
                None => return Err(CodecError::NeedsModel.into()),
            };
        }
        let mut found = Err(CodecError::NeedsModel);
        for codec in &self.codecs {
            found = codec.decompress(segment);
            if !matches!(found, Err(CodecError::WrongModel { .. })) {
                break;
            }
        }
        Ok(found?)
    }
}

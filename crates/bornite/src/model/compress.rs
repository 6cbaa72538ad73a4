//! Lossless compression of tables, and of files that contain tables.

use std::io::{Read, Write};

use super::decompress::SegmentDecoder;
use super::{Model, ModelError, embedded};
use crate::codec::{CodecError, Segment, SegmentKind, SegmentReader, SegmentWriter, TableCodec};
use crate::data::{FileForm, Piece, Pieces, Table};
use crate::learn::{Control, Progress};

impl Model {
    /// Compresses a table to little more than −log₂ p bits per row. [`decompress`](Self::decompress) restores all of
    /// it: every cell bit for bit, missing cells, the original text of cells that were read from a file, and columns
    /// that the model does not have.
    ///
    /// If the model is a mixture, the circuit that compresses the table best is used. Labels and numbers outside the
    /// model's domain are escaped. The model's evidence is ignored. The bytes are the same on every machine, for any
    /// number of threads.
    ///
    /// # Errors
    /// A continuous variable is not on an interval or a circle.
    ///
    /// ```
    /// use bornite::Fit;
    /// use bornite::data::{CsvOptions, Table};
    ///
    /// let text = format!("sky,hours\n{}", "rain,1.5\nsun,8.0\nsun,7.5\n".repeat(60));
    /// let table = Table::from_csv_bytes(text.as_bytes(), "sky.csv", &CsvOptions::default())?;
    /// let model = Fit::new().run(&table)?;
    /// let bytes = model.compress(&table)?;
    /// assert!(bytes.len() < text.len() / 3);
    /// assert_eq!(model.decompress(&bytes)?.to_csv(), text.as_bytes());
    /// # Ok::<(), bornite::Error>(())
    /// ```
    pub fn compress(&self, table: &Table) -> Result<Vec<u8>, ModelError> {
        let segment = smallest(&self.table_codecs()?, table, &FileForm::Memory, 0)?;
        let segment = segment.ok_or(CodecError::NeedsModel)?;
        let mut bytes = Vec::new();
        let mut writer = SegmentWriter::new(&mut bytes, &[])?;
        writer.push(&segment)?;
        writer.finish()?;
        Ok(bytes)
    }

    /// Restores a table that this model compressed.
    ///
    /// # Errors
    /// The bytes are not a compressed table, are damaged, or come from another model.
    pub fn decompress(&self, bytes: &[u8]) -> Result<Table, ModelError> {
        let mut segments = SegmentReader::new(bytes)?;
        match (segments.next()?, segments.next()?) {
            (Some(segment), None) => SegmentDecoder::new(Some(self), &[]).table(&segment),
            _ => Err(CodecError::IsFile.into()),
        }
    }

    /// One codec per circuit. A table is compressed with the best one; digests in the stream identify it.
    pub(super) fn table_codecs(&self) -> Result<Vec<TableCodec>, CodecError> {
        self.mixture.circuits().map(|circuit| TableCodec::new(&self.schema, circuit)).collect()
    }
}

/// How to compress a file.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CompressOptions {
    /// The width K of inner layers of a fitted model. By default, it depends on the size of the data.
    pub width: Option<usize>,
    /// The maximum number of passes over the rows.
    pub epochs: Option<usize>,
    /// The random seed.
    pub seed: u64,
    /// The maximum size of a segment in bytes, from 16 KiB to 64 MiB; 8 MiB by default. Smaller segments take less
    /// memory, larger segments compress better.
    pub segment_bytes: Option<usize>,
    /// Whether the first line of a CSV file contains the column names; detected by default.
    pub header: Option<bool>,
}

impl CompressOptions {
    fn segment_bytes(&self) -> Result<usize, ModelError> {
        match self.segment_bytes {
            None => Ok(1 << 23),
            Some(bytes) if (1 << 14..=1 << 26).contains(&bytes) => Ok(bytes),
            Some(bytes) => Err(ModelError::Option {
                setting: "segment_bytes",
                value: bytes as f64,
                remedy: "give 16384 to 67108864",
            }),
        }
    }
}

/// The result of compressing a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Compressed {
    /// The number of bytes read.
    pub bytes_in: u64,
    /// The number of bytes written.
    pub bytes_out: u64,
    /// The number of segments.
    pub segments: usize,
    /// The number of segments that are compressed with zstd only.
    pub stored: usize,
    /// How the file was compressed.
    pub method: Method,
}

/// How a file was compressed.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// With the given model, which is required to decompress the file.
    Given,
    /// With a model that was fitted to the file and is part of it.
    Fitted {
        /// The size of the model in bytes.
        model_bytes: usize,
        /// The width of its inner layers.
        width: usize,
    },
    /// With zstd only.
    Stored {
        /// Why no model was used.
        why: String,
    },
}

/// An event while a file is compressed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum CompressEvent<'a> {
    /// A step of the fit ended. The answer can end the fit.
    Fit(&'a Progress),
    /// This many more rows were compressed and written. The answer is ignored.
    Rows(usize),
}

/// Compresses the content of a file. CSV, NPY, IDX and uncompressed NPZ files are compressed with the given model or
/// one that is fitted to the file. Everything else, and data that a model does not make smaller, is compressed with
/// zstd. [`decompress_file`](super::decompress_file) always restores the same bytes.
///
/// The content is read, compressed and written in segments of whole rows, of at most 8 MiB by default, so memory is
/// bounded for content of any length. Only an array that is stored by columns becomes a single segment, of at most four
/// times that size. Without a given model, one is fitted to the first segment. A gzip-compressed file must be
/// decompressed first, as [`open_file`](crate::data::open_file) does. `name` is used in messages.
///
/// The result is never longer than the content + 1 % + 1 KiB. `progress` is called after every step of a fit and can
/// end it. The same sequence of return values gives the same bytes, for any number of threads.
///
/// ```
/// use bornite::learn::Control;
/// use bornite::model::{CompressOptions, compress_file, decompress_file};
///
/// let text = format!("sky,hours\n{}", "rain,1.5\nsun,8.0\nsun,7.5\n".repeat(60));
/// let options = CompressOptions { epochs: Some(2), ..CompressOptions::default() };
/// let (mut packed, mut back) = (Vec::new(), Vec::new());
/// compress_file(text.as_bytes(), &mut packed, "sky.csv", None, &options, &mut |_| Control::Continue)?;
/// decompress_file(&packed[..], &mut back, None)?;
/// assert_eq!(back, text.as_bytes());
/// # Ok::<(), bornite::Error>(())
/// ```
///
/// # Errors
/// An option is out of range, the content cannot be read, or the output cannot be written.
pub fn compress_file(
    content: impl Read,
    out: impl Write,
    name: &str,
    model: Option<&Model>,
    options: &CompressOptions,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Compressed, ModelError> {
    compress_file_with(content, out, name, model, options, &mut |event| match event {
        CompressEvent::Fit(step) => progress(step),
        CompressEvent::Rows(_) => Control::Continue,
    })
}

/// [`compress_file`] with a callback for all events: the steps of the fit, and rows as they are written.
///
/// # Errors
/// As for [`compress_file`].
pub fn compress_file_with(
    content: impl Read,
    out: impl Write,
    name: &str,
    model: Option<&Model>,
    options: &CompressOptions,
    on_event: &mut dyn FnMut(CompressEvent<'_>) -> Control,
) -> Result<Compressed, ModelError> {
    let pieces = Pieces::new(content, name, options.segment_bytes()?).with_header(options.header);
    let mut coder = FileCoder { pieces, codecs: Vec::new(), bytes_in: 0 };
    if let Some(model) = model {
        coder.use_codecs(model.table_codecs()?);
    }
    let mut first = coder.next()?;
    let mut embedded = None;
    if let (None, Some(CodedPiece { piece, by_zstd, by_model })) = (model, &mut first)
        && let Some((table, _)) = &piece.table
        && let Some(fitted) = embedded::fit(table, by_zstd.body.len(), options, &mut |step| {
            on_event(CompressEvent::Fit(step))
        })?
    {
        coder.use_codecs(fitted.compact.model.table_codecs()?);
        *by_model = self::by_model(&coder.codecs, piece)?;
        embedded = Some(fitted);
    }
    let model_bytes = embedded.as_ref().map_or(0, |e| e.compact.bytes.len());
    let first = first.map(|coded| coded.smaller(model_bytes));
    let is_stored = first.as_ref().is_none_or(|(segment, _)| segment.kind == SegmentKind::Stored);
    if embedded.take_if(|_| is_stored).is_some() {
        coder.codecs.clear();
    }
    let mut writer = SegmentWriter::new(out, embedded.as_ref().map_or(&[], |e| &e.compact.bytes))?;
    let (mut segments, mut stored, mut next) = (0, 0, first);
    while let Some((segment, rows)) = next {
        segments += 1;
        stored += usize::from(segment.kind == SegmentKind::Stored);
        writer.push(&segment)?;
        let _ = on_event(CompressEvent::Rows(rows));
        next = coder.next()?.map(|coded| coded.smaller(0));
    }
    let method = match embedded {
        Some(fitted) => Method::Fitted { model_bytes, width: fitted.width },
        None if stored < segments => Method::Given,
        None => Method::Stored { why: coder.reason() },
    };
    let bytes_out = writer.finish()?;
    Ok(Compressed { bytes_in: coder.bytes_in, bytes_out, segments, stored, method })
}

/// A piece of a file, compressed both ways.
struct CodedPiece {
    piece: Piece,
    by_zstd: Segment,
    by_model: Option<Segment>,
}

impl CodedPiece {
    /// The segment compressed by the model if it is smaller than zstd's even with `overhead` bytes more, and the number
    /// of its rows.
    fn smaller(self, overhead: usize) -> (Segment, usize) {
        let rows = self.piece.table.as_ref().map_or(0, |(table, _)| table.num_rows());
        let pays = |s: &Segment| s.body.len() + overhead < self.by_zstd.body.len();
        (self.by_model.filter(pays).unwrap_or(self.by_zstd), rows)
    }
}

/// Turns the content of a file into segments.
struct FileCoder<R> {
    pieces: Pieces<R>,
    codecs: Vec<TableCodec>,
    bytes_in: u64,
}

impl<R: Read> FileCoder<R> {
    fn use_codecs(&mut self, codecs: Vec<TableCodec>) {
        if let Some(first) = codecs.first() {
            self.pieces.read_as_text(first.text_columns());
        }
        self.codecs = codecs;
    }

    /// The next piece, compressed both ways in parallel.
    fn next(&mut self) -> Result<Option<CodedPiece>, ModelError> {
        let Some(piece) = self.pieces.next()? else { return Ok(None) };
        let (codecs, before) = (&self.codecs, self.bytes_in);
        let by_zstd = || Segment::stored(&piece.bytes, before);
        let (by_zstd, by_model) = rayon::join(by_zstd, || by_model(codecs, &piece));
        self.bytes_in += by_zstd.content;
        Ok(Some(CodedPiece { by_model: by_model?, piece, by_zstd }))
    }

    fn reason(&self) -> String {
        match self.pieces.problem() {
            Some(problem) => problem.to_string(),
            None => "that is smaller than with a model".to_owned(),
        }
    }
}

/// Compresses a piece with a model, if there is one and the piece is a table.
fn by_model(codecs: &[TableCodec], piece: &Piece) -> Result<Option<Segment>, CodecError> {
    let Some((table, form)) = &piece.table else { return Ok(None) };
    smallest(codecs, table, form, piece.bytes.len() as u64)
}

/// Compresses a table with each of the codecs, and keeps the smallest result.
fn smallest(
    codecs: &[TableCodec],
    table: &Table,
    form: &FileForm,
    content: u64,
) -> Result<Option<Segment>, CodecError> {
    let mut best: Option<Segment> = None;
    for codec in codecs {
        let segment = codec.compress(table, form.clone(), content)?;
        if best.as_ref().is_none_or(|best| segment.body.len() < best.body.len()) {
            best = Some(segment);
        }
    }
    Ok(best)
}

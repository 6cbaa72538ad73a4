//! Lossless compression of tables and of the files that hold them.

use std::io::{Read, Write};

use super::decompress::SegmentDecoder;
use super::{Model, ModelError, embedded};
use crate::codec::{CodecError, Segment, SegmentKind, SegmentReader, SegmentWriter, TableCodec};
use crate::data::{FileForm, Piece, Pieces, Table};
use crate::learn::{Control, Progress};

impl Model {
    /// Compresses a table to little more than −log₂ p bits per row. [`decompress`](Self::decompress) restores it: every
    /// cell bit for bit, missing cells, the original text of cells that were read from a file, and columns that the
    /// model does not have.
    ///
    /// Of a mixture, the circuit that makes the table smallest is used. Labels and numbers that the model does not know are escaped. What the model is conditioned on is not used. The bytes
    /// are the same on every machine, whatever the number of threads.
    ///
    /// # Errors
    /// A continuous variable that is not on an interval or circle.
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

    /// One for each circuit: a table is compressed by the one that makes it smallest, and their digests tell them apart.
    pub(super) fn table_codecs(&self) -> Result<Vec<TableCodec>, CodecError> {
        self.mixture.circuits().map(|circuit| TableCodec::new(&self.schema, circuit)).collect()
    }
}

/// How a file is compressed.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CompressOptions {
    /// The width K of inner layers of a model that is fitted; from the size of the data if it is not given.
    pub width: Option<usize>,
    /// The most passes over the rows.
    pub epochs: Option<usize>,
    /// The seed of everything random.
    pub seed: u64,
    /// The maximum number of bytes of a segment, 16 KiB to 64 MiB: fewer take less memory, more are compressed better. 8 MiB if it is not
    /// given.
    pub segment_bytes: Option<usize>,
    /// Whether the first line of a CSV file names the columns; found by default.
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
    /// The bytes of its content.
    pub bytes_in: u64,
    /// The bytes that were written.
    pub bytes_out: u64,
    /// The segments that they are in.
    pub segments: usize,
    /// Those of them that zstd alone has packed.
    pub stored: usize,
    /// How they were made.
    pub method: Method,
}

/// How a file was compressed.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// By the model that was given, which is needed again.
    Given,
    /// By a model that was fitted for it and takes so many of the bytes.
    Fitted {
        /// The bytes of the model.
        model_bytes: usize,
        /// The width of its inner layers.
        width: usize,
    },
    /// By zstd alone, and why.
    Stored {
        /// Why no model was used.
        why: String,
    },
}

/// Compresses the content of a file. CSV, NPY, IDX and uncompressed NPZ files are compressed with a given model or one
/// fitted for the file; everything else, and data that a model does not make smaller, is compressed with zstd.
/// [`decompress_file`](super::decompress_file) always restores the same bytes.
///
/// The content is read, compressed and written in segments of at most 8 MiB of whole rows, so memory is bounded
/// whatever its length; only an array that is stored by columns is one segment, of at most four times that size. A
/// model without a given one is fitted to the first segment. A gzip-compressed file must be decompressed first, as
/// [`open_file`](crate::data::open_file) does. `name` is used in messages.
///
/// The result is never longer than the content + 1 % + 1 KiB. `progress` is asked after every step of a fit and can end it;
/// the same answers give the same bytes, whatever the number of threads.
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
/// Options that make no sense, content that cannot be read, and bytes that cannot be written.
pub fn compress_file(
    content: impl Read,
    out: impl Write,
    name: &str,
    model: Option<&Model>,
    options: &CompressOptions,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Compressed, ModelError> {
    let pieces = Pieces::new(content, name, options.segment_bytes()?).with_header(options.header);
    let mut coder = FileCoder { pieces, codecs: Vec::new(), bytes_in: 0 };
    if let Some(model) = model {
        coder.use_codecs(model.table_codecs()?);
    }
    let mut first = coder.next()?;
    let mut own = None;
    if let (None, Some(Coded { piece, by_zstd, by_model })) = (model, &mut first)
        && let Some((table, _)) = &piece.table
        && let Some(fitted) = embedded::fit(table, by_zstd.body.len(), options, progress)?
    {
        coder.use_codecs(fitted.compact.model.table_codecs()?);
        *by_model = self::by_model(&coder.codecs, piece)?;
        own = Some(fitted);
    }
    let model_bytes = own.as_ref().map_or(0, |own| own.compact.bytes.len());
    let first = first.map(|coded| coded.smaller(model_bytes));
    if own.take_if(|_| first.as_ref().is_none_or(|s| s.kind == SegmentKind::Stored)).is_some() {
        coder.codecs.clear();
    }
    let mut writer = SegmentWriter::new(out, own.as_ref().map_or(&[], |o| &o.compact.bytes))?;
    let (mut segments, mut stored, mut next) = (0, 0, first);
    while let Some(segment) = next {
        segments += 1;
        stored += usize::from(segment.kind == SegmentKind::Stored);
        writer.push(&segment)?;
        next = coder.next()?.map(|coded| coded.smaller(0));
    }
    let method = match own {
        Some(own) => Method::Fitted { model_bytes, width: own.width },
        None if stored < segments => Method::Given,
        None => Method::Stored { why: coder.why() },
    };
    let bytes_out = writer.finish()?;
    Ok(Compressed { bytes_in: coder.bytes_in, bytes_out, segments, stored, method })
}

/// A piece of a file as a segment, in both ways.
struct Coded {
    piece: Piece,
    by_zstd: Segment,
    by_model: Option<Segment>,
}

impl Coded {
    /// What the model makes of it if that, and so many bytes more, is less than what zstd does.
    fn smaller(self, more: usize) -> Segment {
        let pays = |s: &Segment| s.body.len() + more < self.by_zstd.body.len();
        self.by_model.filter(pays).unwrap_or(self.by_zstd)
    }
}

/// A file on its way into segments.
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

    /// The next piece, coded in both ways at once.
    fn next(&mut self) -> Result<Option<Coded>, ModelError> {
        let Some(piece) = self.pieces.next()? else { return Ok(None) };
        let (codecs, before) = (&self.codecs, self.bytes_in);
        let by_zstd = || Segment::stored(&piece.bytes, before);
        let (by_zstd, by_model) = rayon::join(by_zstd, || by_model(codecs, &piece));
        self.bytes_in += by_zstd.content;
        Ok(Some(Coded { by_model: by_model?, piece, by_zstd }))
    }

    fn why(&self) -> String {
        match self.pieces.problem() {
            Some(problem) => problem.to_string(),
            None => "that is smaller than with a model".to_owned(),
        }
    }
}

/// What a model makes of a piece, if there is a model and the piece is a table.
fn by_model(codecs: &[TableCodec], piece: &Piece) -> Result<Option<Segment>, CodecError> {
    let Some((table, form)) = &piece.table else { return Ok(None) };
    smallest(codecs, table, form, piece.bytes.len() as u64)
}

/// What the best of the codecs makes of a table, if there are any.
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

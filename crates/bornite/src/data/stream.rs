//! Reads a table piece by piece, in bounded memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use super::array::{self, ArrayLayout};
use super::buffered::Buffered;
use super::file::{FileReader, ReadShare};
#[cfg(feature = "parquet")]
use super::parquet::ParquetPieces;
use super::{
    Column, CsvOptions, DataError, FormatProblem, Schema, Storage, Table, TableFormat, csv, file,
    npy,
};
use crate::memory::{self, OverLimit};

/// How to read a table piece by piece.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Whether the first line of CSV contains the column names: see [`CsvOptions::header`].
    pub header: Option<bool>,
    /// Whether cells keep their original text in a CSV file. Reading is faster without it.
    pub keep_text: bool,
    /// The approximate size of a piece in bytes, of text or of numbers.
    pub piece: usize,
}

impl Default for StreamOptions {
    /// Pieces of 8 MiB that keep the original text.
    fn default() -> Self {
        Self { header: None, keep_text: true, piece: 8 << 20 }
    }
}

/// The fraction of the memory limit that one row of CSV may take is 1 / `ROW_SHARE`.
const ROW_SHARE: u64 = 8;

/// A table that is read piece by piece: CSV, NPY, IDX or Parquet depending on the file's name, plain or
/// gzip-compressed, or CSV from standard input.
///
/// A schema defines which columns contain numbers and which contain text, so that a cell means the same in every piece.
/// CSV columns that it does not have are text. Column-major arrays, NPZ files and gzip-compressed Parquet files are a
/// single piece.
///
/// ```
/// use bornite::data::{CsvOptions, InferOptions, Schema, StreamOptions, Table, TableStream};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("people.csv");
/// std::fs::write(&path, "city,age\nBonn,30\nEssen,41\nBonn,\n")?;
/// let table = Table::read_csv(&path, &CsvOptions::default())?;
/// let schema = Schema::infer(&table, &InferOptions::default())?;
/// let options = StreamOptions { piece: 20, ..StreamOptions::default() };
/// let mut rows = 0;
/// for piece in TableStream::open(&path, &schema, &options)? {
///     rows += schema.encode(&piece?)?.num_rows();
/// }
/// assert_eq!(rows, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TableStream {
    name: String,
    pieces: Pieces,
    share: Share,
    is_over: bool,
}

#[derive(Debug)]
enum Pieces {
    Csv(CsvPieces),
    Array(ArrayPieces),
    #[cfg(feature = "parquet")]
    Parquet(ParquetPieces),
    Whole(Option<Table>),
}

/// How much of a file has been read.
#[derive(Debug)]
enum Share {
    Bytes(ReadShare),
    Rows(f64),
}

impl TableStream {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be read, or is not a table.
    pub fn open(
        path: impl AsRef<Path>,
        schema: &Schema,
        options: &StreamOptions,
    ) -> Result<Self, DataError> {
        Self::open_with(path.as_ref(), schema, None, options)
    }

    /// Opens a file with one more column, which has the type of this one.
    pub(super) fn open_with(
        path: &Path,
        schema: &Schema,
        more: Option<&Column>,
        options: &StreamOptions,
    ) -> Result<Self, DataError> {
        let of_schema = schema.columns().iter().map(|c| (c.name.clone(), c.storage));
        let more = more.map(|column| (column.name().to_owned(), Storage::of(column)));
        Self::with_types(path, of_schema.chain(more).collect(), options)
    }

    /// Opens a file without a schema: all columns of CSV are text.
    pub(super) fn untyped(path: &Path, options: &StreamOptions) -> Result<Self, DataError> {
        Self::with_types(path, BTreeMap::new(), options)
    }

    fn with_types(
        path: &Path,
        types: BTreeMap<String, Storage>,
        options: &StreamOptions,
    ) -> Result<Self, DataError> {
        let is_standard = path == Path::new("-");
        let name = if is_standard { "standard input".to_owned() } else { file::name(path) };
        let io = |source| file::io_error(Path::new(&name), "read", source);
        let input = if is_standard { FileReader::standard_input() } else { FileReader::open(path) };
        let input = input.map_err(io)?;
        let share = Share::Bytes(input.share());
        let format = if is_standard { TableFormat::Csv } else { TableFormat::of(path) };
        let pieces = match format {
            TableFormat::Csv => {
                let input = Buffered::new(input, &name);
                Pieces::Csv(CsvPieces::new(input, types, options))
            }
            TableFormat::Npy | TableFormat::Idx => {
                let input = Buffered::new(input, &name);
                Pieces::Array(ArrayPieces::new(input, format, options.piece)?)
            }
            TableFormat::Npz => {
                Pieces::Whole(Some(npy::archived(&input.content(&name, "read")?, &name)?))
            }
            #[cfg(feature = "parquet")]
            TableFormat::Parquet if input.length().is_none_or(|n| n == 0) || input.is_gzip() => {
                let content = input.content(&name, "read")?;
                Pieces::Whole(Some(Table::from_parquet_content(content, &name)?))
            }
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => {
                let file = File::open(path).map_err(io)?;
                Pieces::Parquet(ParquetPieces::new(file, &name, options.piece)?)
            }
            #[cfg(not(feature = "parquet"))]
            TableFormat::Parquet => {
                let problem = FormatProblem::Magic;
                return Err(DataError::Format { file: name, format: "CSV", problem });
            }
        };
        Ok(Self { name, pieces, share, is_over: false })
    }

    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fraction of the file that has been read, if its length is known.
    pub fn share(&self) -> Option<f64> {
        match &self.share {
            Share::Bytes(share) => share.get(),
            Share::Rows(share) => Some(*share),
        }
    }

    fn read(&mut self) -> Result<Option<Table>, DataError> {
        match &mut self.pieces {
            Pieces::Csv(pieces) => pieces.next(),
            Pieces::Array(pieces) => pieces.next(),
            #[cfg(feature = "parquet")]
            Pieces::Parquet(pieces) => Ok(pieces.next()?.map(|(table, share)| {
                self.share = Share::Rows(share);
                table
            })),
            Pieces::Whole(table) => Ok(table.take()),
        }
    }
}

impl Iterator for TableStream {
    type Item = Result<Table, DataError>;

    /// The next piece, with at least one row. An error ends the stream.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let piece = self.read().transpose();
        self.is_over = !matches!(piece, Some(Ok(_)));
        piece
    }
}

/// Pieces of whole rows of CSV.
struct CsvPieces {
    input: Buffered<FileReader>,
    options: CsvOptions,
    types: BTreeMap<String, Storage>,
    names: Option<Vec<String>>,
    /// The number of lines before the next piece.
    lines: u64,
    piece: usize,
    drops_text: bool,
}

impl std::fmt::Debug for CsvPieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CsvPieces").field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl CsvPieces {
    fn new(
        input: Buffered<FileReader>,
        types: BTreeMap<String, Storage>,
        options: &StreamOptions,
    ) -> Self {
        Self {
            input,
            options: CsvOptions { header: options.header, ..CsvOptions::default() },
            types,
            names: None,
            lines: 0,
            piece: options.piece.max(1),
            drops_text: !options.keep_text,
        }
    }

    fn next(&mut self) -> Result<Option<Table>, DataError> {
        let mut length = self.piece;
        loop {
            self.input.fill(length)?;
            let is_open = !self.input.is_end;
            if self.input.bytes.is_empty() && self.names.is_some() {
                return Ok(None);
            }
            // If more text follows, the last line may be incomplete.
            let last = |bytes: &[u8]| bytes.iter().rposition(|&b| b == b'\n').map(|n| n + 1);
            let bytes = &self.input.bytes[..];
            let end = if is_open { last(bytes) } else { Some(bytes.len()) };
            let context = csv::Context {
                names: self.names.as_deref(),
                lines: self.lines,
                is_open,
                types: Some(&self.types),
                drops_text: self.drops_text,
                file_bytes: None,
            };
            let parse = |end| csv::parse(&bytes[..end], &self.input.name, &self.options, &context);
            match end.map(parse) {
                None => {}
                Some(Err(DataError::HeaderOnly { .. } | DataError::EmptyFile { .. }))
                    if is_open => {}
                Some(Err(error)) => return Err(error),
                Some(Ok(parsed)) => {
                    self.input.take(parsed.used);
                    self.lines = parsed.lines;
                    if self.names.is_none() {
                        let columns = parsed.table.columns().iter();
                        self.names = Some(columns.map(|c| c.name().to_owned()).collect());
                        self.options.delimiter = Some(parsed.table.layout().delimiter);
                    }
                    return Ok(Some(parsed.table));
                }
            }
            length = length.saturating_mul(2);
            self.check_row(length)?;
        }
    }

    /// Rejects a row that is too long.
    fn check_row(&self, length: usize) -> Result<(), DataError> {
        let allowed = memory::limit() / ROW_SHARE;
        if (length as u64) <= allowed {
            return Ok(());
        }
        let file = self.input.name.clone();
        if self.input.bytes.contains(&b'"') {
            return Err(DataError::UnclosedQuote { file, line: self.lines + 1 });
        }
        let source = OverLimit { what: "a row", needed: None, allowed };
        Err(DataError::Memory { file, source })
    }
}

/// Pieces of rows of an array.
struct ArrayPieces {
    input: Buffered<FileReader>,
    /// The layout of the remaining rows.
    layout: ArrayLayout,
    piece: usize,
    /// The number of rows before the next piece.
    rows: usize,
}

impl std::fmt::Debug for ArrayPieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrayPieces").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// The maximum number of bytes before the numbers of an array.
const HEAD: usize = 1 << 16;

impl ArrayPieces {
    fn new(
        mut input: Buffered<FileReader>,
        format: TableFormat,
        piece: usize,
    ) -> Result<Self, DataError> {
        input.fill(HEAD)?;
        let (layout, format) = if format == TableFormat::Npy {
            (npy::layout(&input.bytes), "NPY")
        } else {
            (array::layout(&input.bytes), "IDX")
        };
        let layout = layout
            .and_then(ArrayLayout::checked)
            .map_err(|problem| DataError::Format { file: input.name.clone(), format, problem })?;
        input.take(layout.start);
        Ok(Self { input, layout: ArrayLayout { start: 0, ..layout }, piece, rows: 0 })
    }

    fn next(&mut self) -> Result<Option<Table>, DataError> {
        let left = self.layout.shape[0];
        if left == 0 {
            return self.check_end().map(|()| None);
        }
        let most = (self.piece / self.layout.row_bytes()).max(1);
        let rows = if self.layout.by_columns { left } else { left.min(most) };
        let layout = ArrayLayout {
            shape: [&[rows], &self.layout.shape[1..]].concat(),
            ..self.layout.clone()
        };
        self.input.fill(layout.length())?;
        let name = &self.input.name;
        if self.input.bytes.len() < layout.length() {
            let before = self.rows as u128 * layout.row_bytes() as u128;
            let expected = before + self.layout.length() as u128;
            let found = before as usize + self.input.bytes.len();
            return Err(layout.problem(name, FormatProblem::CutOff { expected, found }));
        }
        let bytes = self.input.take(layout.length());
        let name = &self.input.name;
        let array = layout.array(&bytes).map_err(|problem| layout.problem(name, problem))?;
        let table = array.into_rows(name, layout.format, self.rows)?;
        self.rows += rows;
        self.layout.shape[0] = left - rows;
        Ok(Some(table))
    }

    fn check_end(&mut self) -> Result<(), DataError> {
        self.input.fill(1)?;
        match self.input.bytes.len() {
            0 => Ok(()),
            extra => {
                let problem = FormatProblem::TooLong { extra };
                Err(self.layout.problem(&self.input.name, problem))
            }
        }
    }
}

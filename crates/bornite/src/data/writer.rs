//! Writing of tables to a file piece by piece.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use ::csv::{QuoteStyle, Terminator, WriterBuilder};

#[cfg(feature = "parquet")]
use super::parquet::ParquetWriter;
use super::{Cells, Column, CsvLayout, DataError, Table, file, npy};

/// The format of a file, determined by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// CSV, the default.
    Csv,
    /// A NumPy array, `.npy`.
    Npy,
    /// An archive of NumPy arrays, `.npz`.
    Npz,
    /// Parquet, `.parquet`.
    Parquet,
    /// IDX, the format of MNIST: names that contain `idx` or end in `ubyte`.
    Idx,
}

impl TableFormat {
    /// The format of a file with this name, which may also end in `.gz`.
    ///
    /// ```
    /// use bornite::data::TableFormat;
    ///
    /// assert_eq!(TableFormat::of("rows.PARQUET"), TableFormat::Parquet);
    /// assert_eq!(TableFormat::of("t10k-images-idx3-ubyte.gz"), TableFormat::Idx);
    /// assert_eq!(TableFormat::of("people.txt"), TableFormat::Csv);
    /// ```
    pub fn of(path: impl AsRef<Path>) -> Self {
        let name = path.as_ref().file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let bare = name.strip_suffix(".gz").unwrap_or(&name);
        match bare.rsplit('.').next() {
            Some("npy") => Self::Npy,
            Some("npz") => Self::Npz,
            Some("parquet") => Self::Parquet,
            _ if bare.contains("idx") || bare.ends_with("ubyte") => Self::Idx,
            _ => Self::Csv,
        }
    }
}

/// Writes pieces of one table, one after another: as NPY or Parquet depending on the format, otherwise CSV.
///
/// The first piece determines the format of all; the others must have the same columns.
///
/// ```
/// use bornite::data::{Column, Table, TableFormat, TableWriter};
///
/// let mut out = Vec::new();
/// let mut writer = TableWriter::new(&mut out, TableFormat::Csv);
/// for piece in [vec![1.5, 2.0], vec![3.25]] {
///     writer.write(&Table::new(vec![Column::numbers("x", piece)])?)?;
/// }
/// writer.finish()?;
/// assert_eq!(out, b"x\n1.5\n2\n3.25\n");
/// # Ok::<(), bornite::data::DataError>(())
/// ```
#[derive(Debug)]
pub struct TableWriter<W> {
    out: W,
    /// The name of the file in messages.
    file: String,
    form: Form,
    names: Vec<String>,
    rows: usize,
}

#[derive(Debug)]
enum Form {
    Csv(CsvWriter),
    Npy(NpyWriter),
    #[cfg(feature = "parquet")]
    Parquet(ParquetWriter),
}

impl<W: Write> TableWriter<W> {
    /// Starts a table.
    pub fn new(out: W, format: TableFormat) -> Self {
        let form = match format {
            TableFormat::Npy => Form::Npy(NpyWriter::default()),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => Form::Parquet(ParquetWriter::default()),
            #[cfg(not(feature = "parquet"))]
            TableFormat::Parquet => Form::Csv(CsvWriter::default()),
            TableFormat::Csv | TableFormat::Npz | TableFormat::Idx => {
                Form::Csv(CsvWriter::default())
            }
        };
        Self { out, file: "the table".to_owned(), form, names: Vec::new(), rows: 0 }
    }

    /// Sets the name of the file in messages.
    #[must_use]
    pub fn named(mut self, file: impl Into<String>) -> Self {
        self.file = file.into();
        self
    }

    /// Appends the rows of a table.
    ///
    /// # Errors
    /// Its columns differ from the earlier ones in name or order, or do not fit the format, or it cannot be written.
    pub fn write(&mut self, piece: &Table) -> Result<(), DataError> {
        let names = piece.columns().iter().map(Column::name);
        if self.names.is_empty() {
            self.names = names.map(str::to_owned).collect();
        } else if !names.clone().eq(self.names.iter().map(String::as_str)) {
            let expected = self.names.join(", ");
            return Err(DataError::OtherColumns {
                expected,
                found: names.collect::<Vec<_>>().join(", "),
            });
        }
        let failed = |source| failed(&self.file, source);
        match &mut self.form {
            Form::Csv(csv) => csv.write(piece, &mut self.out).map_err(failed)?,
            Form::Npy(npy) => npy.write(piece, &self.file)?,
            #[cfg(feature = "parquet")]
            Form::Parquet(parquet) => {
                let bytes = parquet.write(piece)?;
                self.out.write_all(&bytes).map_err(failed)?;
            }
        }
        self.rows += piece.num_rows();
        Ok(())
    }

    /// The number of rows so far.
    pub fn num_rows(&self) -> usize {
        self.rows
    }

    /// Writes the end of the file.
    ///
    /// # Errors
    /// The end cannot be written, or there was no piece at all.
    pub fn finish(mut self) -> Result<(), DataError> {
        if self.names.is_empty() {
            return Err(DataError::NoColumns);
        }
        let failed = |source| failed(&self.file, source);
        match self.form {
            Form::Csv(csv) => csv.finish(&mut self.out).map_err(failed)?,
            Form::Npy(npy) => npy.finish(self.names.len(), &mut self.out).map_err(failed)?,
            #[cfg(feature = "parquet")]
            Form::Parquet(parquet) => self.out.write_all(&parquet.finish()?).map_err(failed)?,
        }
        self.out.flush().map_err(failed)
    }
}

fn failed(file: &str, source: io::Error) -> DataError {
    DataError::Io { file: file.to_owned(), action: "write", source }
}

/// Writes a table that comes in pieces to a file, completely or not at all: NPY or Parquet depending on the name,
/// otherwise CSV, gzip-compressed if it ends in `.gz`.
///
/// # Errors
/// `content` fails, or the file cannot be written. An existing file is then unchanged.
pub fn write_table<T, E: From<DataError>>(
    path: impl AsRef<Path>,
    content: impl FnOnce(&mut TableWriter<&mut dyn Write>) -> Result<T, E>,
) -> Result<T, E> {
    let path = path.as_ref();
    file::write_file(path, |out| {
        let mut writer = TableWriter::new(out, TableFormat::of(path)).named(file::name(path));
        let result = content(&mut writer)?;
        writer.finish()?;
        Ok(result)
    })
}

/// Writes pieces as one text in the layout of the first. The last piece determines whether the last line ends with a
/// line break.
#[derive(Debug, Default)]
pub(super) struct CsvWriter {
    layout: Option<CsvLayout>,
    /// The line break of the last line so far, which is held back.
    held: Option<&'static [u8]>,
    last_newline: bool,
}

impl CsvWriter {
    pub(super) fn write(&mut self, piece: &Table, mut out: &mut dyn Write) -> io::Result<()> {
        let is_first = self.layout.is_none();
        let layout = self.layout.get_or_insert_with(|| piece.layout().clone());
        self.last_newline = piece.layout().last_newline;
        if is_first && layout.mark {
            out.write_all(b"\xef\xbb\xbf")?;
        }
        if is_first && layout.names_delimiter {
            let end: &[u8] = if layout.crlf { b"\r\n" } else { b"\n" };
            out.write_all(&[b"sep=", &[layout.delimiter][..], end].concat())?;
        }
        let end = if layout.crlf { Terminator::CRLF } else { Terminator::Any(b'\n') };
        let mut writer = WriterBuilder::new()
            .delimiter(layout.delimiter)
            .quote_style(QuoteStyle::Necessary)
            .terminator(end)
            .from_writer(Trimmed { out: &mut out, held: self.held.take() });
        if is_first && layout.header {
            writer.write_record(piece.columns().iter().map(Column::heading))?;
        }
        for row in 0..piece.num_rows() {
            for column in piece.columns() {
                writer.write_field(column.text(row).as_bytes())?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        self.held = writer.into_inner().map_err(::csv::IntoInnerError::into_error)?.held;
        Ok(())
    }

    pub(super) fn finish(self, out: &mut dyn Write) -> io::Result<()> {
        match self.held.filter(|_| self.last_newline) {
            Some(end) => out.write_all(end),
            None => Ok(()),
        }
    }
}

/// A writer that holds back the last line break.
struct Trimmed<'a> {
    out: &'a mut dyn Write,
    held: Option<&'static [u8]>,
}

impl Write for Trimmed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.held == Some(b"\r") && bytes == b"\n" {
            self.held = Some(b"\r\n");
            return Ok(1);
        }
        if let Some(held) = self.held.take() {
            self.out.write_all(held)?;
        }
        let (body, held): (_, Option<&'static [u8]>) = if let Some(b) = bytes.strip_suffix(b"\r\n")
        {
            (b, Some(b"\r\n"))
        } else if let Some(b) = bytes.strip_suffix(b"\n") {
            (b, Some(b"\n"))
        } else if let Some(b) = bytes.strip_suffix(b"\r") {
            (b, Some(b"\r"))
        } else {
            (bytes, None)
        };
        self.out.write_all(body)?;
        self.held = held;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes pieces as one array. The header contains the number of rows and the type, which are known only at the end, so
/// the numbers are first written to an anonymous file.
#[derive(Debug, Default)]
pub(super) struct NpyWriter {
    rows: usize,
    waiting: Option<BufWriter<File>>,
    /// Whether the numbers so far are 64-bit floats instead of integers.
    are_real: bool,
}

impl NpyWriter {
    fn write(&mut self, piece: &Table, file: &str) -> Result<(), DataError> {
        let is_text = |c: &&Column| matches!(c.cells(), Cells::Labels(_));
        if let Some(c) = piece.columns().iter().find(is_text) {
            let (column, text) = (c.name().to_owned(), c.text(0).into_owned());
            let row = self.rows + 1;
            return Err(DataError::WrongType { row, column, text, expected: "a number" });
        }
        self.put(piece).map_err(|source| failed(file, source))?;
        self.rows += piece.num_rows();
        Ok(())
    }

    fn put(&mut self, piece: &Table) -> io::Result<()> {
        let is_whole =
            |c: &Column| matches!(c.cells(), Cells::Integers(i) if i.iter().all(|x| x.is_some()));
        if !self.are_real && !piece.columns().iter().all(is_whole) {
            self.are_real = true;
            if let Some(waiting) = self.waiting.take() {
                self.waiting = Some(as_reals(waiting)?);
            }
        }
        let mut out = match self.waiting.take() {
            Some(out) => out,
            None => BufWriter::new(tempfile::tempfile()?),
        };
        for row in 0..piece.num_rows() {
            for column in piece.columns() {
                match column.cells() {
                    Cells::Integers(i) if !self.are_real => {
                        out.write_all(&i.get(row).unwrap_or(0).to_le_bytes())?;
                    }
                    Cells::Numbers(_) | Cells::Integers(_) | Cells::Labels(_) => {
                        let x = column.number(row).unwrap_or(f64::NAN);
                        out.write_all(&x.to_le_bytes())?;
                    }
                }
            }
        }
        self.waiting = Some(out);
        Ok(())
    }

    fn finish(self, columns: usize, out: &mut dyn Write) -> io::Result<()> {
        let kind = if self.are_real { "<f8" } else { "<i8" };
        out.write_all(&npy::header(kind, self.rows, columns))?;
        if let Some(waiting) = self.waiting {
            io::copy(&mut rewound(waiting)?, out)?;
        }
        Ok(())
    }
}

/// Rewinds the file.
fn rewound(written: BufWriter<File>) -> io::Result<BufReader<File>> {
    let mut file = written.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(BufReader::new(file))
}

/// Converts integers to floats.
fn as_reals(integers: BufWriter<File>) -> io::Result<BufWriter<File>> {
    let mut from = rewound(integers)?;
    let mut out = BufWriter::new(tempfile::tempfile()?);
    let mut bytes = [0; 8];
    loop {
        match from.read_exact(&mut bytes) {
            Ok(()) => out.write_all(&(i64::from_le_bytes(bytes) as f64).to_le_bytes())?,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(out),
            Err(e) => return Err(e),
        }
    }
}

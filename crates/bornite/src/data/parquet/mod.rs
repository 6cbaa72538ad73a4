//! Parquet files with flat columns.

mod origin;
mod read;
mod time;
mod write;

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use parquet::file::reader::ChunkReader;

use super::file::{self, Content};
use super::{DataError, FormatProblem, Table};

/// The name of the thread that reads. The Parquet library panics on some damaged files. These panics become errors; a
/// panic hook may ignore those of this thread.
pub const PARQUET_THREAD: &str = "bornite-parquet";

pub(crate) use origin::{Origin, Source};
use read::Reader;
pub(super) use write::ParquetWriter;

const FORMAT: &str = "Parquet";

impl Table {
    /// Reads a Parquet file with flat columns: numbers of all kinds, Booleans as `false` and `true`, text with or
    /// without a dictionary, decimals, and dates and times as text. Null and NaN are missing cells. Pages may be
    /// compressed with snappy, zstd, gzip or lz4. Columns keep their original types for [`Table::write_parquet`].
    ///
    /// # Errors
    /// The file cannot be read or is damaged, or a column contains lists, structs or bytes.
    pub fn read_parquet(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        Self::from_parquet_content(file::read(path)?, &file::name(path))
    }

    /// Reads a Parquet file from memory; `name` is its name in messages. See [`Table::read_parquet`].
    ///
    /// ```
    /// use bornite::data::{Column, Table};
    ///
    /// let city = Column::labels("city", [Some("Bonn"), None, Some("Ulm")]);
    /// let table = Table::new(vec![city, Column::integers("age", [Some(30), Some(41), None])])?;
    /// assert_eq!(Table::from_parquet_bytes(table.to_parquet_bytes()?, "people.parquet")?, table);
    /// # Ok::<(), bornite::data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Table::read_parquet`].
    pub fn from_parquet_bytes(bytes: Vec<u8>, name: &str) -> Result<Self, DataError> {
        let file_bytes = bytes.len() as u64;
        Self::from_parquet_content(Content { bytes, file_bytes }, name)
    }

    pub(super) fn from_parquet_content(content: Content, name: &str) -> Result<Self, DataError> {
        let Content { bytes, file_bytes } = content;
        if bytes.is_empty() {
            return Err(DataError::EmptyFile { file: name.to_owned() });
        }
        let reader = thread::Builder::new().name(PARQUET_THREAD.to_owned());
        let table = thread::scope(|scope| {
            let reading = reader.spawn_scoped(scope, || {
                let mut reader = Reader::new(Bytes::from(bytes), name, file_bytes, None)?;
                reader.read(reader.rows_left())
            });
            let reading =
                reading.map_err(|source| file::io_error(Path::new(name), "read", source))?;
            reading.join().map_err(|_| contradiction(name))?
        })?;
        match table.num_rows() {
            0 => Err(DataError::HeaderOnly { file: name.to_owned() }),
            _ => Ok(table),
        }
    }
}

/// A file that a separate thread reads, one piece ahead.
#[derive(Debug)]
pub(super) struct ParquetPieces {
    name: String,
    /// The pieces, each with the fraction of all rows up to its end.
    pieces: Option<Receiver<Result<(Table, f64), DataError>>>,
    thread: Option<JoinHandle<()>>,
}

impl ParquetPieces {
    /// Reads in pieces of about this many bytes of numbers.
    pub(super) fn new(
        file: impl ChunkReader + 'static,
        name: &str,
        piece: usize,
    ) -> Result<Self, DataError> {
        let (sender, pieces) = sync_channel(1);
        let own = name.to_owned();
        let read = move || {
            let file_bytes = file.len();
            let mut reader = match Reader::new(file, &own, file_bytes, Some(piece)) {
                Ok(reader) => reader,
                Err(error) => return drop(sender.send(Err(error))),
            };
            if reader.rows_left() == 0 {
                return drop(sender.send(Err(DataError::HeaderOnly { file: own })));
            }
            let most = (piece / (size_of::<f64>() * reader.num_columns().max(1))).max(1);
            while reader.rows_left() > 0 {
                let found = reader.read(most.min(reader.rows_left()));
                let is_over = found.is_err();
                // The receiver may be gone.
                if sender.send(found.map(|table| (table, reader.share()))).is_err() || is_over {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name(PARQUET_THREAD.to_owned()).spawn(read);
        let thread = thread.map_err(|source| file::io_error(Path::new(name), "read", source))?;
        Ok(Self { name: name.to_owned(), pieces: Some(pieces), thread: Some(thread) })
    }

    /// The next piece; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(Table, f64)>, DataError> {
        if let Some(Ok(piece)) = self.pieces.as_ref().map(Receiver::recv) {
            return piece.map(Some);
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(contradiction(&self.name)),
            Some(Ok(())) | None => Ok(None),
        }
    }
}

impl Drop for ParquetPieces {
    fn drop(&mut self) {
        // The thread ends when it fails to send the next piece.
        self.pieces = None;
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// The error for a file that makes the Parquet library panic.
fn contradiction(name: &str) -> DataError {
    problem(name, FormatProblem::Parquet("its pages contradict each other".to_owned()))
}

fn problem(file: &str, problem: FormatProblem) -> DataError {
    DataError::Format { file: file.to_owned(), format: FORMAT, problem }
}

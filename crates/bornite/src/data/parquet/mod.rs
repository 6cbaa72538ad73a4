//! Parquet files, plain columns only.

mod origin;
mod read;
mod time;
mod write;

use std::path::Path;
use std::thread;

use super::file;
use super::{DataError, FormatProblem, Table};

/// The name of the thread that reads. The reader of pages ends in a panic on some damaged files; whoever prints panics may
/// leave out those of this thread, which become errors.
pub const PARQUET_THREAD: &str = "bornite-parquet";

pub(crate) use origin::{Origin, Source};

const FORMAT: &str = "Parquet";

impl Table {
    /// Reads a Parquet file of plain columns: numbers of all kinds, Booleans as `false` and `true`, text, with a dictionary or
    /// without, decimals, and dates and times as text. Null and NaN are missing cells. Pages may be packed by snappy, zstd,
    /// gzip or lz4. Columns keep the types that they had, for [`Table::write_parquet`].
    ///
    /// # Errors
    /// The file cannot be read or is damaged; a column holds lists, structs or bytes.
    pub fn read_parquet(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        Self::from_parquet_bytes(file::read(path)?, &file::name(path))
    }

    /// Reads the bytes of a Parquet file; messages name it so. See [`Table::read_parquet`].
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
    /// As [`Table::read_parquet`].
    pub fn from_parquet_bytes(bytes: Vec<u8>, name: &str) -> Result<Self, DataError> {
        if bytes.is_empty() {
            return Err(DataError::EmptyFile { file: name.to_owned() });
        }
        let reader = thread::Builder::new().name(PARQUET_THREAD.to_owned());
        let table = thread::scope(|scope| {
            let reading = reader.spawn_scoped(scope, || read::table(bytes, name));
            let reading =
                reading.map_err(|source| file::io_error(Path::new(name), "read", source))?;
            let damaged = |_| {
                problem(name, FormatProblem::Parquet("its pages contradict each other".to_owned()))
            };
            reading.join().map_err(damaged)?
        })?;
        match table.num_rows() {
            0 => Err(DataError::HeaderOnly { file: name.to_owned() }),
            _ => Ok(table),
        }
    }
}

fn problem(file: &str, problem: FormatProblem) -> DataError {
    DataError::Format { file: file.to_owned(), format: FORMAT, problem }
}

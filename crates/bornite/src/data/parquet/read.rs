//! Reading of tables from Parquet files.

use std::sync::Arc;

use half::f16;
use parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type, Int96Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use super::{Origin, problem, time};
use crate::data::{Column, DataError, FormatProblem, NumberFormat, Table};
use crate::memory;

/// The number of rows that are read at once.
const BATCH: usize = 1 << 14;

/// A file whose rows are read sequentially.
pub(super) struct Reader<R: ChunkReader + 'static> {
    name: String,
    file: SerializedFileReader<R>,
    columns: Vec<ColumnSource>,
    /// The metadata of the file.
    metadata: Arc<Vec<KeyValue>>,
    /// The total number of rows, and the number of rows read so far.
    rows: usize,
    done: usize,
}

impl<R: ChunkReader + 'static> Reader<R> {
    /// Opens a file. At most `at_once` bytes of cells are read at once; `file_bytes` is the size of the file before
    /// decompression.
    pub(super) fn new(
        file: R,
        name: &str,
        file_bytes: u64,
        at_once: Option<usize>,
    ) -> Result<Self, DataError> {
        let damaged = |e| problem(name, FormatProblem::Parquet(words(&e)));
        let size = file.len();
        let file = SerializedFileReader::new(file).map_err(damaged)?;
        check(&file, (size, file_bytes), at_once).map_err(|p| problem(name, p))?;
        let about = file.metadata().file_metadata();
        let metadata = Arc::new(about.key_value_metadata().cloned().unwrap_or_default());
        let descriptors = about.schema_descr().columns().iter().enumerate();
        let columns = descriptors.map(|(index, descriptor)| ColumnSource::new(index, descriptor));
        let columns = columns.collect();
        let counts = file.metadata().row_groups().iter().map(RowGroupMetaData::num_rows);
        let rows = counts.map(|n| usize::try_from(n).unwrap_or(0)).sum();
        Ok(Self { name: name.to_owned(), columns, metadata, rows, done: 0, file })
    }

    /// The number of remaining rows.
    pub(super) fn rows_left(&self) -> usize {
        self.rows - self.done
    }

    /// The fraction of the rows that have been read.
    pub(super) fn share(&self) -> f64 {
        self.done as f64 / self.rows.max(1) as f64
    }

    pub(super) fn num_columns(&self) -> usize {
        self.columns.len()
    }

    /// Reads the next rows.
    pub(super) fn read(&mut self, rows: usize) -> Result<Table, DataError> {
        let (count, first) = (self.columns.len(), self.done);
        let mut columns = Vec::with_capacity(count);
        for (index, source) in self.columns.iter_mut().enumerate() {
            let mut next = NextCells { file: &self.file, name: &self.name, source, first, rows };
            let column = next.column()?;
            let origin =
                Origin::new(source.descriptor.clone(), (index, count), self.metadata.clone());
            columns.push(column.with_origin(origin));
        }
        self.done += rows;
        Table::new(columns)
    }
}

/// The message of the Parquet library, without its prefix.
fn words(error: &ParquetError) -> String {
    match error {
        ParquetError::General(text) | ParquetError::EOF(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The memory per cell while a column is read.
const BYTES_PER_CELL: u128 = 32;

/// Rejects pages that lie outside the file or use an unsupported compression, and files that would take too much memory
/// for their size.
fn check<R: ChunkReader + 'static>(
    file: &SerializedFileReader<R>,
    (size, file_bytes): (u64, u64),
    at_once: Option<usize>,
) -> Result<(), FormatProblem> {
    let groups = file.metadata().row_groups();
    let decompressed =
        |g: &RowGroupMetaData| u64::try_from(g.total_byte_size()).unwrap_or(u64::MAX);
    let rows = |g: &RowGroupMetaData| u64::try_from(g.num_rows()).unwrap_or(u64::MAX);
    let pages: u128 = groups.iter().map(|g| u128::from(decompressed(g))).sum();
    memory::check("a column", pages, file_bytes)?;
    let rows: u128 = groups.iter().map(|g| u128::from(rows(g))).sum();
    let columns = file.metadata().file_metadata().schema_descr().num_columns() as u128;
    if at_once.is_none() {
        memory::check("a table", rows.saturating_mul(columns * BYTES_PER_CELL), file_bytes)?;
    }
    for column in file.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let end = start.checked_add(column.compressed_size());
        let is_within = |end: i64| u64::try_from(end).is_ok_and(|end| end <= size);
        if start < 0 || column.compressed_size() < 0 || !end.is_some_and(is_within) {
            let text = "a column lies outside the file, which is truncated or damaged";
            return Err(FormatProblem::Parquet(text.to_owned()));
        }
        if let Compression::BROTLI(_) | Compression::LZO = column.compression() {
            return Err(FormatProblem::Packed);
        }
    }
    Ok(())
}

/// The meaning of a column's numbers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Meaning {
    /// Plain numbers.
    Plain,
    Unsigned,
    /// Decimals with this scale.
    Decimal(i32),
    /// Days.
    Date,
    /// Fractions of a second, with this many per second.
    Time(i64),
    Timestamp(i64),
    Half,
    /// Unsupported bytes.
    Bytes,
}

fn parts(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    }
}

pub(super) fn meaning(descriptor: &ColumnDescriptor) -> Meaning {
    match descriptor.logical_type_ref() {
        Some(LogicalType::Integer(kind)) if !kind.is_signed => return Meaning::Unsigned,
        Some(LogicalType::Decimal(kind)) => return Meaning::Decimal(kind.scale),
        Some(LogicalType::Date) => return Meaning::Date,
        Some(LogicalType::Time(kind)) => return Meaning::Time(parts(&kind.unit)),
        Some(LogicalType::Timestamp(kind)) => return Meaning::Timestamp(parts(&kind.unit)),
        Some(LogicalType::Float16) => return Meaning::Half,
        Some(LogicalType::Bson | LogicalType::Uuid) => return Meaning::Bytes,
        Some(_) => return Meaning::Plain,
        None => {}
    }
    match descriptor.converted_type() {
        ConvertedType::UINT_8
        | ConvertedType::UINT_16
        | ConvertedType::UINT_32
        | ConvertedType::UINT_64 => Meaning::Unsigned,
        ConvertedType::DECIMAL => Meaning::Decimal(descriptor.type_scale()),
        ConvertedType::DATE => Meaning::Date,
        ConvertedType::TIME_MILLIS => Meaning::Time(1_000),
        ConvertedType::TIME_MICROS => Meaning::Time(1_000_000),
        ConvertedType::TIMESTAMP_MILLIS => Meaning::Timestamp(1_000),
        ConvertedType::TIMESTAMP_MICROS => Meaning::Timestamp(1_000_000),
        ConvertedType::BSON | ConvertedType::INTERVAL => Meaning::Bytes,
        _ => Meaning::Plain,
    }
}

/// The reading position in one column of a file.
struct ColumnSource {
    index: usize,
    descriptor: ColumnDescPtr,
    /// The reader of a row group, and the number of its remaining rows.
    current: Option<(ColumnReader, usize)>,
    next_group: usize,
}

impl ColumnSource {
    fn new(index: usize, descriptor: &ColumnDescPtr) -> Self {
        Self { index, descriptor: descriptor.clone(), current: None, next_group: 0 }
    }
}

/// A physical type, and its reader.
trait Readable: DataType {
    fn reader(reader: &mut ColumnReader) -> Option<&mut ColumnReaderImpl<Self>>
    where
        Self: Sized;
}

macro_rules! readable {
    ($($kind:ident: $reader:ident),*) => {$(
        impl Readable for $kind {
            fn reader(reader: &mut ColumnReader) -> Option<&mut ColumnReaderImpl<Self>> {
                if let ColumnReader::$reader(reader) = reader { Some(reader) } else { None }
            }
        }
    )*};
}

readable!(
    BoolType: BoolColumnReader, Int32Type: Int32ColumnReader, Int64Type: Int64ColumnReader,
    Int96Type: Int96ColumnReader, FloatType: FloatColumnReader, DoubleType: DoubleColumnReader,
    ByteArrayType: ByteArrayColumnReader, FixedLenByteArrayType: FixedLenByteArrayColumnReader
);

/// Reads the next cells of one column.
struct NextCells<'a, R: ChunkReader + 'static> {
    file: &'a SerializedFileReader<R>,
    name: &'a str,
    source: &'a mut ColumnSource,
    /// The row of the first cell.
    first: usize,
    rows: usize,
}

impl<R: ChunkReader + 'static> NextCells<'_, R> {
    fn column_name(&self) -> &str {
        self.source.descriptor.path().parts().first().map_or("", String::as_str)
    }

    fn refuse(&self, what: &'static str) -> DataError {
        DataError::ColumnType {
            file: self.name.to_owned(),
            column: self.column_name().to_owned(),
            what,
        }
    }

    fn damaged(&self, text: &str) -> DataError {
        let text = format!("column '{}': {text}", self.column_name());
        problem(self.name, FormatProblem::Parquet(text))
    }

    fn column(&mut self) -> Result<Column, DataError> {
        let descriptor = self.source.descriptor.clone();
        if descriptor.path().parts().len() > 1 || descriptor.max_rep_level() > 0 {
            return Err(self.refuse("lists and structs"));
        }
        let meaning = meaning(&descriptor);
        match descriptor.physical_type() {
            Type::BOOLEAN => {
                let word = |truth: bool| if truth { "true" } else { "false" };
                let cells = self.cells::<BoolType>()?;
                Ok(Column::labels(self.column_name(), cells.into_iter().map(|c| c.map(word))))
            }
            Type::INT32 => {
                let is_unsigned = meaning == Meaning::Unsigned;
                let bits =
                    |x: i32| if is_unsigned { i64::from(x.cast_unsigned()) } else { i64::from(x) };
                let cells = self.cells::<Int32Type>()?;
                self.whole(meaning, cells.into_iter().map(|c| c.map(bits)).collect())
            }
            Type::INT64 => {
                let cells = self.cells::<Int64Type>()?;
                self.whole(meaning, cells)
            }
            Type::INT96 => {
                let cells = self.cells::<Int96Type>()?;
                let cells = cells.into_iter().map(|c| c.map(|x| x.to_nanos())).collect();
                self.whole(Meaning::Timestamp(1_000_000_000), cells)
            }
            Type::FLOAT => {
                let cells = self.cells::<FloatType>()?;
                self.numbers(cells.into_iter().map(|c| c.map(f64::from)).collect())
            }
            Type::DOUBLE => {
                let cells = self.cells::<DoubleType>()?;
                self.numbers(cells)
            }
            Type::BYTE_ARRAY => {
                let cells = self.cells::<ByteArrayType>()?;
                self.bytes(meaning, &cells)
            }
            Type::FIXED_LEN_BYTE_ARRAY => match meaning {
                Meaning::Decimal(_) | Meaning::Half => {
                    let cells = self.cells::<FixedLenByteArrayType>()?;
                    self.bytes(meaning, &cells)
                }
                Meaning::Plain
                | Meaning::Unsigned
                | Meaning::Date
                | Meaning::Time(_)
                | Meaning::Timestamp(_)
                | Meaning::Bytes => Err(self.refuse("bytes")),
            },
        }
    }

    /// Reads the cells, which may span several row groups.
    fn cells<T: Readable>(&mut self) -> Result<Vec<Option<T::T>>, DataError> {
        let mut cells = Vec::with_capacity(self.rows);
        while cells.len() < self.rows {
            let Some((mut reader, left)) = self.group()? else {
                return Err(self.damaged("a row group is missing"));
            };
            let typed = T::reader(&mut reader);
            let typed = typed.ok_or_else(|| self.damaged("its types contradict each other"))?;
            let asked = left.min(self.rows - cells.len());
            let known = self.source.descriptor.max_def_level();
            let read = read_exactly(typed, known, asked, &mut cells);
            let read = read.map_err(|e| self.damaged(&words(&e)))?;
            let mut extra = 0;
            if read == left {
                let rest = read_exactly(typed, known, 1, &mut Vec::new());
                extra = rest.map_err(|e| self.damaged(&words(&e)))?;
            }
            if read != asked || extra > 0 {
                let (place, sign) =
                    (self.first + cells.len(), if extra > 0 { "more" } else { "no more" });
                let text = format!("{sign} rows than expected after row {place}");
                return Err(self.damaged(&text));
            }
            self.source.current = Some((reader, left - read));
        }
        Ok(cells)
    }

    /// The reader of the row group with the next cells, and the number of its remaining rows.
    fn group(&mut self) -> Result<Option<(ColumnReader, usize)>, DataError> {
        if let Some(current) = self.source.current.take().filter(|(_, left)| *left > 0) {
            return Ok(Some(current));
        }
        while self.source.next_group < self.file.num_row_groups() {
            let group = self.file.get_row_group(self.source.next_group);
            self.source.next_group += 1;
            let group = group.map_err(|e| self.damaged(&words(&e)))?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let reader = group.get_column_reader(self.source.index);
            let reader = reader.map_err(|e| self.damaged(&words(&e)))?;
            if rows > 0 {
                return Ok(Some((reader, rows)));
            }
        }
        Ok(None)
    }

    fn whole(&self, meaning: Meaning, cells: Vec<Option<i64>>) -> Result<Column, DataError> {
        let text = |write: &dyn Fn(i64) -> String| {
            let texts: Vec<Option<String>> = cells.iter().map(|c| c.map(write)).collect();
            Column::labels(self.column_name(), texts.iter().map(Option::as_deref))
        };
        Ok(match meaning {
            Meaning::Decimal(scale) => {
                return self.decimals(cells.iter().map(|c| c.map(i128::from)), scale);
            }
            Meaning::Date => text(&time::date),
            Meaning::Time(parts) => text(&|x| time::time(x, parts)),
            Meaning::Timestamp(parts) => text(&|x| time::timestamp(x, parts)),
            Meaning::Unsigned if cells.iter().flatten().any(|&x| x < 0) => {
                return Err(self.refuse("whole numbers above 2^63 - 1"));
            }
            Meaning::Plain | Meaning::Unsigned | Meaning::Half | Meaning::Bytes => {
                Column::integers(self.column_name(), cells)
            }
        })
    }

    fn numbers(&self, cells: Vec<Option<f64>>) -> Result<Column, DataError> {
        if let Some(row) = cells.iter().position(|c| c.is_some_and(f64::is_infinite)) {
            return Err(DataError::Infinite {
                place: format!("'{}', row {}", self.name, self.first + row + 1),
                column: self.column_name().to_owned(),
                text: cells[row].unwrap_or_default().to_string(),
            });
        }
        let cells = cells.into_iter().map(|c| c.unwrap_or(f64::NAN)).collect();
        Ok(Column::numbers(self.column_name(), cells))
    }

    fn decimals(
        &self,
        cells: impl Iterator<Item = Option<i128>>,
        scale: i32,
    ) -> Result<Column, DataError> {
        let number = |x: i128| x as f64 / 10_f64.powi(scale);
        let column = self.numbers(cells.map(|c| c.map(number)).collect())?;
        Ok(match u8::try_from(scale) {
            Ok(scale) if scale > 0 => column.with_format(NumberFormat::Decimals(scale)),
            _ => column,
        })
    }

    fn bytes<B: AsRef<[u8]>>(
        &self,
        meaning: Meaning,
        cells: &[Option<B>],
    ) -> Result<Column, DataError> {
        let bytes = cells.iter().map(|c| c.as_ref().map(AsRef::as_ref));
        match meaning {
            Meaning::Decimal(scale) => {
                if bytes.clone().flatten().any(|b| b.len() > size_of::<i128>()) {
                    return Err(self.refuse("decimals of more than 38 digits"));
                }
                self.decimals(bytes.map(|b| b.map(big_endian)), scale)
            }
            Meaning::Half => {
                let number =
                    |b: &[u8]| b.try_into().map_or(f64::NAN, |b| f16::from_le_bytes(b).to_f64());
                self.numbers(bytes.map(|b| b.map(number)).collect())
            }
            Meaning::Bytes => Err(self.refuse("bytes")),
            Meaning::Plain
            | Meaning::Unsigned
            | Meaning::Date
            | Meaning::Time(_)
            | Meaning::Timestamp(_) => {
                let texts = bytes.map(|b| b.map(std::str::from_utf8).transpose());
                let texts: Result<Vec<_>, _> = texts.collect();
                let texts = texts.map_err(|_| self.refuse("bytes that are not UTF-8 text"))?;
                Ok(Column::labels(self.column_name(), texts))
            }
        }
    }
}

/// Reads exactly this many cells, unless there are fewer.
fn read_exactly<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    known: i16,
    rows: usize,
    cells: &mut Vec<Option<T::T>>,
) -> Result<usize, ParquetError> {
    let (mut done, mut levels, mut values) = (0, Vec::new(), Vec::new());
    while done < rows {
        levels.clear();
        values.clear();
        let asked = (known > 0).then_some(&mut levels);
        let (read, ..) = reader.read_records(BATCH.min(rows - done), asked, None, &mut values)?;
        if read == 0 {
            break;
        }
        done += read;
        let mut values = values.drain(..);
        if known == 0 {
            cells.extend(values.map(Some));
        } else {
            cells.extend(levels.iter().map(|&l| if l == known { values.next() } else { None }));
        }
    }
    Ok(done)
}

/// A whole number in big-endian two's complement.
fn big_endian(bytes: &[u8]) -> i128 {
    let sign = if bytes.first().is_some_and(|b| b & 0x80 != 0) { -1 } else { 0 };
    bytes.iter().fold(sign, |x, &b| (x << 8) | i128::from(b))
}

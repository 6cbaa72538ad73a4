//! From the bytes of a Parquet file to a table.

use std::sync::Arc;

use bytes::Bytes;
use half::f16;
use parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit, Type};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type, Int96Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::{Origin, problem, time};
use crate::data::{Column, DataError, FormatProblem, NumberFormat, Table};
use crate::memory;

/// Rows that are read at once.
const BATCH: usize = 1 << 14;

pub(super) fn table(bytes: Vec<u8>, name: &str) -> Result<Table, DataError> {
    let damaged = |e| problem(name, FormatProblem::Parquet(words(&e)));
    let size = bytes.len() as u64;
    let file = SerializedFileReader::new(Bytes::from(bytes)).map_err(damaged)?;
    check(&file, size).map_err(|p| problem(name, p))?;
    let groups = (0..file.num_row_groups()).map(|g| file.get_row_group(g));
    let groups: Vec<_> = groups.collect::<Result<_, _>>().map_err(damaged)?;
    let schema = file.metadata().file_metadata().schema_descr();
    let mut columns = Vec::with_capacity(schema.num_columns());
    let metadata = file.metadata().file_metadata().key_value_metadata();
    let metadata = Arc::new(metadata.cloned().unwrap_or_default());
    for (index, descriptor) in schema.columns().iter().enumerate() {
        let source = ColumnReader { file: name, groups: &groups, index, descriptor };
        let place = (index, schema.num_columns());
        let origin = Origin::new(descriptor.clone(), place, metadata.clone());
        columns.push(source.column()?.with_origin(origin));
    }
    Table::new(columns)
}

/// The words of the reader, without its name.
fn words(error: &ParquetError) -> String {
    match error {
        ParquetError::General(text) | ParquetError::EOF(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The memory that a cell takes while a column is read.
const BYTES_PER_CELL: u128 = 32;

/// Refuses pages that lie outside the file or are packed by what is not read, and what a short file has no right to.
fn check(file: &SerializedFileReader<Bytes>, size: u64) -> Result<(), FormatProblem> {
    let groups = file.metadata().row_groups();
    let unpacked = |g: &RowGroupMetaData| u64::try_from(g.total_byte_size()).unwrap_or(u64::MAX);
    let rows = |g: &RowGroupMetaData| u64::try_from(g.num_rows()).unwrap_or(u64::MAX);
    let pages: u128 = groups.iter().map(|g| u128::from(unpacked(g))).sum();
    memory::check("a column", pages, size)?;
    let rows: u128 = groups.iter().map(|g| u128::from(rows(g))).sum();
    let columns = file.metadata().file_metadata().schema_descr().num_columns() as u128;
    memory::check("a table", rows.saturating_mul(columns * BYTES_PER_CELL), size)?;
    for column in file.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let end = start.checked_add(column.compressed_size());
        let is_within = |end: i64| u64::try_from(end).is_ok_and(|end| end <= size);
        if start < 0 || column.compressed_size() < 0 || !end.is_some_and(is_within) {
            let text = "a column lies outside the file, which is cut off or damaged";
            return Err(FormatProblem::Parquet(text.to_owned()));
        }
        if let Compression::BROTLI(_) | Compression::LZO = column.compression() {
            return Err(FormatProblem::Packed);
        }
    }
    Ok(())
}

/// What the numbers of a column stand for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Meaning {
    /// Themselves.
    Plain,
    Unsigned,
    /// With so many decimals.
    Decimal(i32),
    /// Days.
    Date,
    /// Parts of a second, so many of them.
    Time(i64),
    Timestamp(i64),
    Half,
    /// Bytes of no use here.
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

/// One column of a file.
struct ColumnReader<'a> {
    file: &'a str,
    groups: &'a [Box<dyn RowGroupReader + 'a>],
    index: usize,
    descriptor: &'a ColumnDescriptor,
}

impl ColumnReader<'_> {
    fn name(&self) -> &str {
        self.descriptor.path().parts().first().map_or("", String::as_str)
    }

    fn refuse(&self, what: &'static str) -> DataError {
        DataError::ColumnType { file: self.file.to_owned(), column: self.name().to_owned(), what }
    }

    fn damaged(&self, text: &str) -> DataError {
        let text = format!("column '{}': {text}", self.name());
        problem(self.file, FormatProblem::Parquet(text))
    }

    fn column(&self) -> Result<Column, DataError> {
        if self.descriptor.path().parts().len() > 1 || self.descriptor.max_rep_level() > 0 {
            return Err(self.refuse("lists and structs"));
        }
        let meaning = meaning(self.descriptor);
        match self.descriptor.physical_type() {
            Type::BOOLEAN => {
                let word = |truth: bool| if truth { "true" } else { "false" };
                let cells = self.cells::<BoolType>()?;
                Ok(Column::labels(self.name(), cells.into_iter().map(|c| c.map(word))))
            }
            Type::INT32 => {
                let bits = |x: i32| match meaning {
                    Meaning::Unsigned => i64::from(x.cast_unsigned()),
                    Meaning::Plain
                    | Meaning::Decimal(_)
                    | Meaning::Date
                    | Meaning::Time(_)
                    | Meaning::Timestamp(_)
                    | Meaning::Half
                    | Meaning::Bytes => i64::from(x),
                };
                let cells = self.cells::<Int32Type>()?;
                self.whole(meaning, cells.into_iter().map(|c| c.map(bits)).collect())
            }
            Type::INT64 => self.whole(meaning, self.cells::<Int64Type>()?),
            Type::INT96 => {
                let cells = self.cells::<Int96Type>()?;
                let cells = cells.into_iter().map(|c| c.map(|x| x.to_nanos())).collect();
                self.whole(Meaning::Timestamp(1_000_000_000), cells)
            }
            Type::FLOAT => {
                let cells = self.cells::<FloatType>()?;
                self.numbers(cells.into_iter().map(|c| c.map(f64::from)).collect())
            }
            Type::DOUBLE => self.numbers(self.cells::<DoubleType>()?),
            Type::BYTE_ARRAY => self.bytes(meaning, &self.cells::<ByteArrayType>()?),
            Type::FIXED_LEN_BYTE_ARRAY => match meaning {
                Meaning::Decimal(_) | Meaning::Half => {
                    self.bytes(meaning, &self.cells::<FixedLenByteArrayType>()?)
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

    /// All cells, of all groups of rows.
    fn cells<T: DataType>(&self) -> Result<Vec<Option<T::T>>, DataError> {
        let mut cells = Vec::new();
        for group in self.groups {
            let reader = group.get_column_reader(self.index);
            let announced = group.metadata().num_rows();
            let limit = usize::try_from(announced).unwrap_or(usize::MAX);
            let read =
                reader.and_then(|r| self.group(get_typed_column_reader::<T>(r), limit, &mut cells));
            let rows = read.map_err(|e| self.damaged(&words(&e)))?;
            if i64::try_from(rows) != Ok(announced) {
                let text = format!("{announced} rows are announced and {rows} are there");
                return Err(self.damaged(&text));
            }
        }
        Ok(cells)
    }

    /// The cells of one group of rows, and how many they are; ends after more than `limit`.
    fn group<T: DataType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        limit: usize,
        cells: &mut Vec<Option<T::T>>,
    ) -> Result<usize, ParquetError> {
        let known = self.descriptor.max_def_level();
        let (mut rows, mut levels, mut values) = (0, Vec::new(), Vec::new());
        loop {
            levels.clear();
            values.clear();
            let asked = (known > 0).then_some(&mut levels);
            let (read, ..) = reader.read_records(BATCH, asked, None, &mut values)?;
            rows += read;
            if read == 0 || rows > limit {
                return Ok(rows);
            }
            let mut values = values.drain(..);
            if known == 0 {
                cells.extend(values.map(Some));
            } else {
                cells.extend(levels.iter().map(|&l| if l == known { values.next() } else { None }));
            }
        }
    }

    fn whole(&self, meaning: Meaning, cells: Vec<Option<i64>>) -> Result<Column, DataError> {
        let text = |write: &dyn Fn(i64) -> String| {
            let texts: Vec<Option<String>> = cells.iter().map(|c| c.map(write)).collect();
            Column::labels(self.name(), texts.iter().map(Option::as_deref))
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
                Column::integers(self.name(), cells)
            }
        })
    }

    fn numbers(&self, cells: Vec<Option<f64>>) -> Result<Column, DataError> {
        if let Some(row) = cells.iter().position(|c| c.is_some_and(f64::is_infinite)) {
            return Err(DataError::Infinite {
                place: format!("'{}', row {}", self.file, row + 1),
                column: self.name().to_owned(),
                text: cells[row].unwrap_or_default().to_string(),
            });
        }
        let cells = cells.into_iter().map(|c| c.unwrap_or(f64::NAN)).collect();
        Ok(Column::numbers(self.name(), cells))
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
                let texts = texts.map_err(|_| self.refuse("bytes that are no UTF-8 text"))?;
                Ok(Column::labels(self.name(), texts))
            }
        }
    }
}

/// A whole number in two's complement, its highest byte first.
fn big_endian(bytes: &[u8]) -> i128 {
    let sign = if bytes.first().is_some_and(|b| b & 0x80 != 0) { -1 } else { 0 };
    bytes.iter().fold(sign, |x, &b| (x << 8) | i128::from(b))
}

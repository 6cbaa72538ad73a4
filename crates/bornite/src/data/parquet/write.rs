//! From a table to the bytes of a Parquet file.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::problem;
use crate::data::{Cells, Column, DataError, FormatProblem, Table, file};

/// The most rows of a group.
const GROUP: usize = 1 << 20;

impl Table {
    /// Writes the table as a Parquet file: columns of 64-bit floats, 64-bit integers and text, null for missing cells.
    ///
    /// # Errors
    /// The file cannot be written. What was there before then stays.
    pub fn write_parquet(&self, path: impl AsRef<Path>) -> Result<(), DataError> {
        let path = path.as_ref();
        let bytes = self.to_parquet_bytes()?;
        file::write(path, |out| out.write_all(&bytes))
    }

    /// The bytes of a Parquet file of the table. See [`Table::write_parquet`].
    ///
    /// # Errors
    /// A column is too large for the format.
    pub fn to_parquet_bytes(&self) -> Result<Vec<u8>, DataError> {
        bytes(self).map_err(|e| problem("the table", FormatProblem::Parquet(e.to_string())))
    }
}

fn bytes(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let fields: Vec<TypePtr> = table.columns().iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
    let settings = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema.into(), Arc::new(settings))?;
    for start in (0..table.num_rows()).step_by(GROUP) {
        let rows = start..(start + GROUP).min(table.num_rows());
        let mut group = writer.next_row_group()?;
        for column in table.columns() {
            if let Some(mut out) = group.next_column()? {
                write(column, rows.clone(), &mut out)?;
                out.close()?;
            }
        }
        group.close()?;
    }
    writer.into_inner()
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.cells() {
        Cells::Numbers(_) => (Physical::DOUBLE, None),
        Cells::Integers(_) => (Physical::INT64, None),
        Cells::Labels(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let builder = Type::primitive_type_builder(column.name(), physical);
    let builder = builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
    builder.build().map(Arc::new)
}

fn write(
    column: &Column,
    rows: Range<usize>,
    out: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    match column.cells() {
        Cells::Numbers(c) => {
            put::<DoubleType>(rows.map(|r| Some(c.values()[r]).filter(|x| !x.is_nan())), out)
        }
        Cells::Integers(c) => put::<Int64Type>(rows.map(|r| c.get(r)), out),
        Cells::Labels(c) => put::<ByteArrayType>(rows.map(|r| c.get(r).map(ByteArray::from)), out),
    }
}

fn put<T: DataType>(
    cells: impl Iterator<Item = Option<T::T>>,
    out: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    out.typed::<T>().write_batch(&values, Some(&levels), None).map(drop)
}

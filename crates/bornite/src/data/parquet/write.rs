//! Writing of tables as Parquet files.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::{Origin, problem};
use crate::data::{Cells, Column, DataError, FormatProblem, Table, file};

/// The maximum number of rows in a row group.
const GROUP: usize = 1 << 20;

impl Table {
    /// Writes the table as a Parquet file with columns of 64-bit floats, 64-bit integers and text, and null for missing
    /// cells. Columns that were read from a Parquet file keep their types if all cells fit.
    ///
    /// # Errors
    /// The file cannot be written. An existing file is then unchanged.
    pub fn write_parquet(&self, path: impl AsRef<Path>) -> Result<(), DataError> {
        let path = path.as_ref();
        let bytes = self.to_parquet_bytes()?;
        file::write(path, |out| out.write_all(&bytes))
    }

    /// The table as the bytes of a Parquet file. See [`Table::write_parquet`].
    ///
    /// # Errors
    /// A column is too large for the format.
    pub fn to_parquet_bytes(&self) -> Result<Vec<u8>, DataError> {
        let mut writer = ParquetWriter::default();
        let mut bytes = writer.write(self)?;
        bytes.extend(writer.finish()?);
        Ok(bytes)
    }
}

/// Writes pieces of one table; the first piece determines the types of the columns.
#[derive(Default)]
pub(crate) struct ParquetWriter {
    open: Option<SerializedFileWriter<Vec<u8>>>,
    kinds: Vec<TypePtr>,
    rows: usize,
}

impl fmt::Debug for ParquetWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetWriter").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl ParquetWriter {
    /// The bytes of the rows of a table.
    pub(crate) fn write(&mut self, table: &Table) -> Result<Vec<u8>, DataError> {
        let mut columns = Vec::with_capacity(table.num_columns());
        for (n, column) in table.columns().iter().enumerate() {
            columns.push(match self.kinds.get(n) {
                None => typed(column).map_err(|e| failed(&e))?,
                Some(kind) => {
                    let values = values_of(column, kind).ok_or_else(|| {
                        let (column, row) = (column.name().to_owned(), self.rows + 1);
                        DataError::ChangedType { column, row }
                    })?;
                    (kind.clone(), values)
                }
            });
        }
        self.rows += table.num_rows();
        self.put(table, &columns).map_err(|e| failed(&e))
    }

    fn put(
        &mut self,
        table: &Table,
        columns: &[(TypePtr, Values)],
    ) -> Result<Vec<u8>, ParquetError> {
        let writer = if let Some(writer) = &mut self.open {
            writer
        } else {
            self.kinds = columns.iter().map(|(kind, _)| kind.clone()).collect();
            self.open.insert(open(table, columns)?)
        };
        for start in (0..table.num_rows()).step_by(GROUP) {
            let rows = start..(start + GROUP).min(table.num_rows());
            let mut group = writer.next_row_group()?;
            for (kind, values) in columns {
                if let Some(mut out) = group.next_column()? {
                    values.write(rows.clone(), kind.is_optional(), &mut out)?;
                    out.close()?;
                }
            }
            group.close()?;
        }
        writer.flush()?;
        Ok(std::mem::take(writer.inner_mut()))
    }

    /// The bytes after the last row.
    pub(crate) fn finish(self) -> Result<Vec<u8>, DataError> {
        self.open.map_or(Ok(Vec::new()), |writer| writer.into_inner().map_err(|e| failed(&e)))
    }
}

fn failed(error: &ParquetError) -> DataError {
    problem("the table", FormatProblem::Parquet(error.to_string()))
}

/// Starts a file with columns of these types.
fn open(
    table: &Table,
    columns: &[(TypePtr, Values)],
) -> Result<SerializedFileWriter<Vec<u8>>, ParquetError> {
    // The original metadata remains valid only if all columns have their original types.
    let is_same = |(column, (kind, _)): (&Column, &(TypePtr, Values))| {
        column.origin().is_some_and(|origin| origin.descriptor().self_type() == &**kind)
    };
    let metadata = Origin::metadata(table.columns())
        .filter(|_| table.columns().iter().zip(columns).all(is_same));
    let fields: Vec<TypePtr> = columns.iter().map(|(kind, _)| kind.clone()).collect();
    let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
    let settings = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(metadata.filter(|m| !m.is_empty()).cloned())
        .build();
    SerializedFileWriter::new(Vec::new(), schema.into(), Arc::new(settings))
}

/// The cells of a column in a type; `None` if a cell does not fit it.
fn values_of(column: &Column, kind: &TypePtr) -> Option<Values> {
    let origin = column.origin().filter(|o| o.descriptor().self_type() == &**kind);
    if let Some(origin) = origin {
        return origin.values(column);
    }
    let rows = 0..column.len();
    let is_text = matches!(column.cells(), Cells::Labels(_));
    let number = |row: usize| match column.number(row) {
        None if is_text && !column.is_missing(row) => None,
        x => Some(x),
    };
    match kind.get_physical_type() {
        Physical::DOUBLE => Some(Values::Doubles(rows.map(number).collect::<Option<_>>()?)),
        Physical::INT64 => {
            let whole = |row: usize| match (column.cells(), number(row)?) {
                (Cells::Integers(c), _) => Some(c.get(row)),
                (_, None) => Some(None),
                (_, Some(x)) => {
                    (x.fract() == 0.0 && x.abs() <= 2f64.powi(53)).then_some(Some(x as i64))
                }
            };
            Some(Values::Wide(rows.map(whole).collect::<Option<_>>()?))
        }
        Physical::BYTE_ARRAY => {
            let text =
                |row: usize| (!column.is_missing(row)).then(|| ByteArray::from(&*column.text(row)));
            Some(Values::Bytes(rows.map(text).collect()))
        }
        Physical::BOOLEAN
        | Physical::INT32
        | Physical::INT96
        | Physical::FLOAT
        | Physical::FIXED_LEN_BYTE_ARRAY => None,
    }
}

/// The type of a column and its cells: the original type if all cells fit.
fn typed(column: &Column) -> Result<(TypePtr, Values), ParquetError> {
    if let Some(origin) = column.origin()
        && let Some(values) = origin.values(column)
    {
        return Ok((origin.descriptor().self_type_ptr(), values));
    }
    let rows = 0..column.len();
    let (physical, logical, values) = match column.cells() {
        Cells::Numbers(c) => {
            let values = rows.map(|r| Some(c.values()[r]).filter(|x| !x.is_nan())).collect();
            (Physical::DOUBLE, None, Values::Doubles(values))
        }
        Cells::Integers(c) => (Physical::INT64, None, Values::Wide(c.iter().collect())),
        Cells::Labels(c) => {
            let values = rows.map(|r| c.get(r).map(ByteArray::from)).collect();
            (Physical::BYTE_ARRAY, Some(LogicalType::String), Values::Bytes(values))
        }
    };
    let builder = Type::primitive_type_builder(column.name(), physical);
    let builder = builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
    Ok((Arc::new(builder.build()?), values))
}

/// The cells of a column, in a physical type; `None` for missing cells.
pub(super) enum Values {
    Booleans(Vec<Option<bool>>),
    Narrow(Vec<Option<i32>>),
    Wide(Vec<Option<i64>>),
    Days(Vec<Option<Int96>>),
    Singles(Vec<Option<f32>>),
    Doubles(Vec<Option<f64>>),
    Bytes(Vec<Option<ByteArray>>),
    Fixed(Vec<Option<FixedLenByteArray>>),
}

impl Values {
    /// Whether no cell is missing.
    pub(super) fn are_all_there(&self) -> bool {
        match self {
            Values::Booleans(cells) => cells.iter().all(Option::is_some),
            Values::Narrow(cells) => cells.iter().all(Option::is_some),
            Values::Wide(cells) => cells.iter().all(Option::is_some),
            Values::Days(cells) => cells.iter().all(Option::is_some),
            Values::Singles(cells) => cells.iter().all(Option::is_some),
            Values::Doubles(cells) => cells.iter().all(Option::is_some),
            Values::Bytes(cells) => cells.iter().all(Option::is_some),
            Values::Fixed(cells) => cells.iter().all(Option::is_some),
        }
    }

    fn write(
        &self,
        rows: Range<usize>,
        is_optional: bool,
        out: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        match self {
            Values::Booleans(cells) => put::<BoolType>(&cells[rows], is_optional, out),
            Values::Narrow(cells) => put::<Int32Type>(&cells[rows], is_optional, out),
            Values::Wide(cells) => put::<Int64Type>(&cells[rows], is_optional, out),
            Values::Days(cells) => put::<Int96Type>(&cells[rows], is_optional, out),
            Values::Singles(cells) => put::<FloatType>(&cells[rows], is_optional, out),
            Values::Doubles(cells) => put::<DoubleType>(&cells[rows], is_optional, out),
            Values::Bytes(cells) => put::<ByteArrayType>(&cells[rows], is_optional, out),
            Values::Fixed(cells) => put::<FixedLenByteArrayType>(&cells[rows], is_optional, out),
        }
    }
}

fn put<T: DataType>(
    cells: &[Option<T::T>],
    is_optional: bool,
    out: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.iter().flatten().cloned().collect();
    out.typed::<T>().write_batch(&values, is_optional.then_some(&levels[..]), None).map(drop)
}

//! The original types of columns that were read from a Parquet file, so that they can be written with the same types.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::metadata::KeyValue;
use parquet::schema::types::ColumnDescPtr;

use super::read::{Meaning, meaning};
use super::{time, write::Values};
use crate::data::{Cells, Column};

/// The Julian day number of January 1, 1970.
const JULIAN_DAYS: i64 = 2_440_588;
const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// The column of a file that a column was read from, if any. It does not affect equality.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source(Option<Origin>);

impl From<Origin> for Source {
    fn from(origin: Origin) -> Self {
        Self(Some(origin))
    }
}

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Source {
    pub(crate) fn get(&self) -> Option<&Origin> {
        self.0.as_ref()
    }
}

/// A column of a file.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    descriptor: ColumnDescPtr,
    /// The position of the column, and the number of columns.
    place: (usize, usize),
    /// The metadata of the file, such as Arrow types.
    metadata: Arc<Vec<KeyValue>>,
}

impl Origin {
    pub(super) fn new(
        descriptor: ColumnDescPtr,
        place: (usize, usize),
        metadata: Arc<Vec<KeyValue>>,
    ) -> Self {
        Self { descriptor, place, metadata }
    }

    pub(super) fn descriptor(&self) -> &ColumnDescPtr {
        &self.descriptor
    }

    /// The metadata of the file, if all columns come from one file, in order.
    pub(super) fn metadata(columns: &[Column]) -> Option<&Vec<KeyValue>> {
        let first = columns.first()?.origin()?;
        let is_same = |(n, column): (usize, &Column)| {
            column.origin().is_some_and(|origin| {
                origin.place == (n, columns.len()) && origin.metadata == first.metadata
            })
        };
        columns.iter().enumerate().all(is_same).then_some(&*first.metadata)
    }

    /// The cells in the original type; `None` if a cell does not fit it.
    pub(super) fn values(&self, column: &Column) -> Option<Values> {
        let meaning = meaning(&self.descriptor);
        let length = usize::try_from(self.descriptor.type_length()).unwrap_or(0);
        let whole = |row| whole(column, row, meaning);
        let is_required = self.descriptor.max_def_level() == 0;
        let real = |row| {
            let missing = is_required.then_some(f64::NAN);
            column.number(row).or(missing.filter(|_| column.is_missing(row)))
        };
        let values = match self.descriptor.physical_type() {
            Physical::BOOLEAN => Values::Booleans(cells(column, |row| match &*column.text(row) {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            })?),
            Physical::INT32 => {
                let narrow = |row| {
                    let x = whole(row).filter(|x| self.has_place_for(*x, 32))?;
                    if meaning == Meaning::Unsigned {
                        u32::try_from(x).ok().map(u32::cast_signed)
                    } else {
                        i32::try_from(x).ok()
                    }
                };
                Values::Narrow(cells(column, narrow)?)
            }
            Physical::INT64 => Values::Wide(cells(column, whole)?),
            Physical::INT96 => Values::Days(cells(column, |row| {
                time::parse_timestamp(&column.text(row), 1_000_000_000).and_then(julian)
            })?),
            Physical::FLOAT => Values::Singles(all(column, |row| real(row).map(|x| x as f32))?),
            Physical::DOUBLE => Values::Doubles(all(column, real)?),
            Physical::BYTE_ARRAY => Values::Bytes(cells(column, |row| {
                Some(match meaning {
                    Meaning::Decimal(_) => {
                        ByteArray::from(big_endian(decimal(column, row, meaning)?, 16)?)
                    }
                    Meaning::Plain
                    | Meaning::Unsigned
                    | Meaning::Date
                    | Meaning::Time(_)
                    | Meaning::Timestamp(_)
                    | Meaning::Half
                    | Meaning::Bytes => ByteArray::from(column.text(row).as_bytes().to_vec()),
                })
            })?),
            Physical::FIXED_LEN_BYTE_ARRAY => Values::Fixed(cells(column, |row| {
                let bytes = match meaning {
                    Meaning::Half => {
                        half::f16::from_f64(column.number(row)?).to_le_bytes().to_vec()
                    }
                    Meaning::Decimal(_) => big_endian(decimal(column, row, meaning)?, length)?,
                    Meaning::Plain
                    | Meaning::Unsigned
                    | Meaning::Date
                    | Meaning::Time(_)
                    | Meaning::Timestamp(_)
                    | Meaning::Bytes => return None,
                };
                Some(FixedLenByteArray::from(bytes))
            })?),
        };
        (!is_required || values.are_all_there()).then_some(values)
    }

    /// Whether a whole number fits the number of bits of the type.
    fn has_place_for(&self, x: i64, most: u32) -> bool {
        let (bits, is_signed) = match self.descriptor.logical_type_ref() {
            Some(LogicalType::Integer(kind)) => {
                (u32::try_from(kind.bit_width).unwrap_or(most), kind.is_signed)
            }
            _ => match self.descriptor.converted_type() {
                ConvertedType::INT_8 => (8, true),
                ConvertedType::INT_16 => (16, true),
                ConvertedType::UINT_8 => (8, false),
                ConvertedType::UINT_16 => (16, false),
                ConvertedType::UINT_32 => (32, false),
                _ => (most, true),
            },
        };
        let (x, end) = (i128::from(x), 1_i128 << bits.min(most));
        if is_signed { (-end / 2..end / 2).contains(&x) } else { (0..end).contains(&x) }
    }
}

/// The cells; `None` for each missing one.
fn cells<T>(column: &Column, cell: impl Fn(usize) -> Option<T>) -> Option<Vec<Option<T>>> {
    let of = |row| if column.is_missing(row) { Some(None) } else { cell(row).map(Some) };
    (0..column.len()).map(of).collect()
}

/// The cells as numbers; `None` if a cell is not one.
fn all<T>(column: &Column, number: impl Fn(usize) -> Option<T>) -> Option<Vec<Option<T>>> {
    if matches!(column.cells(), Cells::Labels(_)) && column.num_missing() < column.len() {
        return None;
    }
    Some((0..column.len()).map(number).collect())
}

fn whole(column: &Column, row: usize, meaning: Meaning) -> Option<i64> {
    match meaning {
        Meaning::Decimal(_) => i64::try_from(decimal(column, row, meaning)?).ok(),
        Meaning::Date => time::parse_date(&column.text(row)),
        Meaning::Time(parts) => time::parse_time(&column.text(row), parts),
        Meaning::Timestamp(parts) => time::parse_timestamp(&column.text(row), parts),
        Meaning::Plain | Meaning::Unsigned => match column.cells() {
            Cells::Integers(c) => c.get(row),
            Cells::Numbers(_) | Cells::Labels(_) => {
                let x = column.number(row)?;
                (x.fract() == 0.0 && x.abs() < 2f64.powi(53)).then_some(x as i64)
            }
        },
        Meaning::Half | Meaning::Bytes => None,
    }
}

fn decimal(column: &Column, row: usize, meaning: Meaning) -> Option<i128> {
    let Meaning::Decimal(scale) = meaning else { return None };
    let x = (column.number(row)? * 10_f64.powi(scale)).round();
    (x.abs() < 2f64.powi(126)).then_some(x as i128)
}

/// A number in big-endian two's complement with this many bytes.
fn big_endian(x: i128, length: usize) -> Option<Vec<u8>> {
    let bytes = x.to_be_bytes();
    let fill = if x < 0 { 0xff } else { 0 };
    let Some(start) = bytes.len().checked_sub(length) else {
        let mut longer = vec![fill; length - bytes.len()];
        longer.extend(bytes);
        return Some(longer);
    };
    let is_same_sign = bytes.get(start).is_some_and(|b| (b & 0x80 != 0) == (x < 0));
    let fits = bytes[..start].iter().all(|&b| b == fill) && is_same_sign;
    fits.then(|| bytes[start..].to_vec())
}

/// Nanoseconds since 1970 as a Julian day and the nanoseconds within it.
fn julian(nanos: i64) -> Option<Int96> {
    let day = u32::try_from(nanos.div_euclid(NANOS_PER_DAY) + JULIAN_DAYS).ok()?;
    let rest = nanos.rem_euclid(NANOS_PER_DAY).cast_unsigned();
    let mut found = Int96::new();
    found.set_data((rest & 0xffff_ffff) as u32, (rest >> 32) as u32, day);
    Some(found)
}

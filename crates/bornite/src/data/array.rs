//! Arrays of numbers from binary files: IDX, the format of MNIST, and packed bits.

use std::path::Path;

use half::f16;

use super::file::{self, Content, check_length};
use super::{Column, DataError, FormatProblem, Table};
use crate::memory;

/// The numbers of an array, whole or real.
#[derive(Debug)]
pub(super) enum Values {
    Bytes(Vec<u8>),
    Integers(Vec<i64>),
    Reals(Vec<f64>),
}

/// An array in row-major order.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) values: Values,
}

/// The layout of an array in a file.
#[derive(Clone, Debug)]
pub(super) struct ArrayLayout {
    /// The number of bytes before the numbers.
    pub(super) start: usize,
    /// The type of the numbers, by its NumPy name without byte order.
    pub(super) kind: String,
    /// The number of bytes per number.
    pub(super) size: usize,
    /// Whether the numbers are big-endian.
    pub(super) big: bool,
    /// Whether the first index varies fastest.
    pub(super) by_columns: bool,
    pub(super) shape: Vec<usize>,
    /// The format of the file.
    pub(super) format: &'static str,
}

impl ArrayLayout {
    /// Reads the array of a complete file, which must have exactly the announced size.
    pub(super) fn array(&self, bytes: &[u8]) -> Result<Array, FormatProblem> {
        let data = bytes.get(self.start..).unwrap_or_default();
        let numbers = self.shape.iter().try_fold(1_u128, |n, &s| n.checked_mul(s as u128));
        check_length(data.len(), numbers.and_then(|n| n.checked_mul(self.size as u128)))?;
        let unsupported = || FormatProblem::Type { name: self.name() };
        let values = Values::decode(data, &self.kind, self.big).ok_or_else(unsupported)?;
        let array = Array { shape: self.shape.clone(), values };
        Ok(if self.by_columns { array.transposed() } else { array })
    }

    /// Rejects an array that would take more memory than a file of this size allows.
    pub(super) fn check_memory(&self, file_bytes: u64) -> Result<(), FormatProblem> {
        // The array and the column hold each number at the same time, in 8 bytes unless they are bytes.
        let each = 2 * if matches!(&self.kind[..], "u1" | "b1") { 1 } else { 8 };
        let numbers = self.shape.iter().fold(each, |n: u128, &s| n.saturating_mul(s as u128));
        Ok(memory::check("a table", numbers, file_bytes)?)
    }

    fn name(&self) -> String {
        format!("{}{}", if self.big { '>' } else { '<' }, self.kind)
    }

    /// Checks that the numbers can be read and that rows are not empty.
    pub(super) fn checked(self) -> Result<Self, FormatProblem> {
        if Values::decode(&[], &self.kind, self.big).is_none() {
            return Err(FormatProblem::Type { name: self.name() });
        }
        let length = self.shape.iter().try_fold(self.size, |n, &s| n.checked_mul(s));
        if length.is_none_or(|n| n == 0 || n.checked_add(self.start).is_none())
            || self.shape.is_empty()
        {
            return Err(FormatProblem::EmptyArray(self.shape));
        }
        Ok(self)
    }

    /// The number of bytes per row; not 0 after [`checked`](Self::checked).
    pub(super) fn row_bytes(&self) -> usize {
        self.shape.iter().skip(1).product::<usize>() * self.size
    }

    /// The number of bytes of all rows and of everything before them.
    pub(super) fn length(&self) -> usize {
        self.start + self.shape[0] * self.row_bytes()
    }

    pub(super) fn problem(&self, file: &str, problem: FormatProblem) -> DataError {
        DataError::Format { file: file.to_owned(), format: self.format, problem }
    }
}

impl Values {
    /// Reads numbers of a type, given by its NumPy name without byte order; `None` if it is not supported.
    pub(super) fn decode(bytes: &[u8], kind: &str, big: bool) -> Option<Self> {
        fn each<const N: usize, T>(bytes: &[u8], big: bool, f: impl Fn([u8; N]) -> T) -> Vec<T> {
            let one = |chunk: &[u8]| {
                let mut item = [0; N];
                item.copy_from_slice(chunk);
                if big {
                    item.reverse();
                }
                f(item)
            };
            bytes.chunks_exact(N).map(one).collect()
        }
        Some(match kind {
            "u1" => Values::Bytes(bytes.to_vec()),
            "b1" => Values::Bytes(bytes.iter().map(|&b| u8::from(b != 0)).collect()),
            "i1" => {
                Values::Integers(each(bytes, big, |b: [u8; 1]| i64::from(i8::from_le_bytes(b))))
            }
            "i2" => Values::Integers(each(bytes, big, |b| i64::from(i16::from_le_bytes(b)))),
            "i4" => Values::Integers(each(bytes, big, |b| i64::from(i32::from_le_bytes(b)))),
            "i8" => Values::Integers(each(bytes, big, i64::from_le_bytes)),
            "u2" => Values::Integers(each(bytes, big, |b| i64::from(u16::from_le_bytes(b)))),
            "u4" => Values::Integers(each(bytes, big, |b| i64::from(u32::from_le_bytes(b)))),
            "u8" => Self::unsigned(&each(bytes, big, u64::from_le_bytes)),
            "f2" => Values::Reals(each(bytes, big, |b| f16::from_le_bytes(b).to_f64())),
            "f4" => Values::Reals(each(bytes, big, |b| f64::from(f32::from_le_bytes(b)))),
            "f8" => Values::Reals(each(bytes, big, f64::from_le_bytes)),
            _ => return None,
        })
    }

    /// Appends the bytes of one number, the inverse of [`decode`](Self::decode): `integer` for a whole type, `number`
    /// for a real one. `None` if the type is not supported.
    pub(super) fn encode(
        integer: i64,
        number: f64,
        kind: &str,
        big: bool,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let start = out.len();
        match kind {
            "f2" => out.extend(to_half(number)?.to_le_bytes()),
            "f4" => out.extend((number as f32).to_le_bytes()),
            "f8" => out.extend(number.to_le_bytes()),
            // Whole numbers are truncated to the size of the type.
            _ => {
                let size = ["1", "2", "4", "8"].iter().position(|s| kind.ends_with(s))?;
                out.extend(&integer.to_le_bytes()[..1 << size]);
            }
        }
        if big {
            out[start..].reverse();
        }
        Some(())
    }

    /// Whole numbers if all fit 63 bits, real numbers otherwise.
    fn unsigned(values: &[u64]) -> Self {
        let signed: Result<Vec<i64>, _> = values.iter().map(|&x| i64::try_from(x)).collect();
        signed.map_or_else(
            |_| Values::Reals(values.iter().map(|&x| x as f64).collect()),
            Values::Integers,
        )
    }

    fn pick(&self, indices: impl Iterator<Item = usize>) -> Self {
        match self {
            Values::Bytes(v) => Values::Bytes(indices.map(|i| v[i]).collect()),
            Values::Integers(v) => Values::Integers(indices.map(|i| v[i]).collect()),
            Values::Reals(v) => Values::Reals(indices.map(|i| v[i]).collect()),
        }
    }
}

/// Converts to a half-precision float; `None` if that is not exact.
fn to_half(x: f64) -> Option<f16> {
    if x.is_nan() {
        return Some(f16::NAN);
    }
    let half = f16::from_f64(x);
    (half.to_f64() == x).then_some(half)
}

impl Array {
    /// Converts column-major values to row-major order.
    pub(super) fn transposed(self) -> Self {
        let total: usize = self.shape.iter().product();
        let from = |index: usize| {
            let (mut rest, mut at, mut stride) = (index, 0, total);
            for &size in self.shape.iter().rev() {
                stride /= size;
                at += (rest % size) * stride;
                rest /= size;
            }
            at
        };
        let values = self.values.pick((0..total).map(from));
        Self { values, shape: self.shape }
    }

    pub(super) fn into_table(self, name: &str, format: &'static str) -> Result<Table, DataError> {
        self.into_rows(name, format, 0)
    }

    /// Converts the array to a table of rows that follow `before` others in the file.
    pub(super) fn into_rows(
        self,
        name: &str,
        format: &'static str,
        before: usize,
    ) -> Result<Table, DataError> {
        let problem = |problem| DataError::Format { file: name.to_owned(), format, problem };
        let (rows, image) = match self.shape[..] {
            [rows] | [rows, _] => (rows, None),
            [rows, h, w] => (rows, Some([h, w, 1])),
            [rows, h, w, c] => (rows, Some([h, w, c])),
            _ => return Err(problem(FormatProblem::Dimensions(self.shape.len()))),
        };
        let width: usize = self.shape[1..].iter().product();
        if rows == 0 || width == 0 {
            return Err(problem(FormatProblem::EmptyArray(self.shape)));
        }
        if let Values::Reals(v) = &self.values
            && let Some(at) = v.iter().position(|x| x.is_infinite())
        {
            let place = format!("'{name}', row {}", before + at / width + 1);
            let column = column_name(at % width, image);
            return Err(DataError::Infinite { place, column, text: v[at].to_string() });
        }
        let column = |j: usize| {
            let name = column_name(j, image);
            match self.values.pick((0..rows).map(|i| i * width + j)) {
                Values::Bytes(v) => Column::bytes(name, v),
                Values::Integers(v) => Column::integers(name, v.into_iter().map(Some)),
                Values::Reals(v) => Column::numbers(name, v),
            }
        };
        let table = Table::new((0..width).map(column).collect())?;
        match image {
            Some(shape) => table.with_image(shape),
            None => Ok(table),
        }
    }
}

/// `x3`, or `p2_5` for the pixel in row 2 and column 5, or `p2_5_0` with channels.
fn column_name(index: usize, image: Option<[usize; 3]>) -> String {
    match image {
        None => format!("x{index}"),
        Some([_, width, 1]) => format!("p{}_{}", index / width, index % width),
        Some([_, width, channels]) => {
            let pixel = index / channels;
            format!("p{}_{}_{}", pixel / width, pixel % width, index % channels)
        }
    }
}

impl Table {
    /// Reads an IDX file, which may be gzip-compressed. Depending on the number of dimensions, it is a column, a table,
    /// or images.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or has another format.
    pub fn read_idx(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let name = file::name(path);
        let content = file::read(path)?;
        let array = layout(&content.bytes).and_then(|layout| {
            layout.check_memory(content.file_bytes)?;
            layout.array(&content.bytes)
        });
        let format = |problem| DataError::Format { file: name.clone(), format: "IDX", problem };
        array.map_err(format)?.into_table(&name, "IDX")
    }
}

/// The layout of a file, from its first bytes.
pub(super) fn layout(bytes: &[u8]) -> Result<ArrayLayout, FormatProblem> {
    let (kind, size, dimensions) = match bytes {
        [0, 0, 0x08, n, ..] => ("u1", 1, *n),
        [0, 0, 0x09, n, ..] => ("i1", 1, *n),
        [0, 0, 0x0b, n, ..] => ("i2", 2, *n),
        [0, 0, 0x0c, n, ..] => ("i4", 4, *n),
        [0, 0, 0x0d, n, ..] => ("f4", 4, *n),
        [0, 0, 0x0e, n, ..] => ("f8", 8, *n),
        _ => return Err(FormatProblem::Magic),
    };
    let start = 4 + 4 * usize::from(dimensions);
    let cut = FormatProblem::CutOff { expected: start as u128, found: bytes.len() };
    let sizes = bytes.get(4..start).ok_or(cut)?;
    let shape = sizes
        .chunks_exact(4)
        .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize)
        .collect();
    let kind = kind.to_owned();
    Ok(ArrayLayout { start, kind, size, big: true, by_columns: false, shape, format: "IDX" })
}

/// Tables for training, validation and testing.
#[derive(Clone, Debug, PartialEq)]
pub struct Splits {
    /// The training rows.
    pub train: Table,
    /// The validation rows.
    pub valid: Table,
    /// The test rows.
    pub test: Table,
}

/// Reads packed bits: `BITM`, then little-endian u32 for the number of columns and of rows in train, valid and test,
/// then the rows in that order, each in whole bytes with the first variable in the highest bit. The file may be
/// gzip-compressed.
///
/// # Errors
/// The file cannot be read, is damaged, or has another format.
pub fn read_bits(path: impl AsRef<Path>) -> Result<Splits, DataError> {
    let path = path.as_ref();
    let name = file::name(path);
    let format = |problem| DataError::Format { file: name.clone(), format: "packed bits", problem };
    let Content { bytes, file_bytes } = file::read(path)?;
    let (header, data) = bytes.split_at_checked(20).ok_or(format(FormatProblem::Magic))?;
    if !header.starts_with(b"BITM") {
        return Err(format(FormatProblem::Magic));
    }
    let number = |i: usize| {
        let b = &header[4 * i..4 * i + 4];
        u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize
    };
    let (columns, rows) = (number(1), [number(2), number(3), number(4)]);
    if columns == 0 {
        return Err(format(FormatProblem::EmptyArray(vec![rows[0], 0])));
    }
    let width = columns.div_ceil(8);
    let total = rows.iter().map(|&n| n as u128).sum::<u128>() * width as u128;
    check_length(data.len(), Some(total)).map_err(format)?;
    memory::check("a table", 8 * total, file_bytes).map_err(|e| format(e.into()))?;
    let split = |first: usize, count: usize| {
        let data = &data[first * width..(first + count) * width];
        let bit = |row: &[u8], j: usize| row[j / 8] >> (7 - j % 8) & 1;
        let column = |j| {
            let bits = data.chunks_exact(width).map(|row| bit(row, j)).collect();
            Column::bytes(format!("x{j}"), bits)
        };
        Table::new((0..columns).map(column).collect())
    };
    Ok(Splits {
        train: split(0, rows[0])?,
        valid: split(rows[0], rows[1])?,
        test: split(rows[0] + rows[1], rows[2])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_idx(bytes: &[u8]) -> Result<Array, FormatProblem> {
        layout(bytes)?.array(bytes)
    }

    #[test]
    fn images_are_read_by_rows_columns_and_channels() {
        let mut bytes = vec![0, 0, 8, 4];
        for n in [2u32, 1, 2, 3] {
            bytes.extend(n.to_be_bytes());
        }
        bytes.extend(0..12u8);
        let table = parse_idx(&bytes).unwrap().into_table("t", "IDX").unwrap();
        assert_eq!(table.image(), Some([1, 2, 3]));
        assert_eq!(table.column("p0_1_2").unwrap().number(1), Some(11.0));
        for end in 0..bytes.len() {
            assert!(parse_idx(&bytes[..end]).is_err(), "cut at {end}");
        }
        bytes.push(0);
        assert_eq!(parse_idx(&bytes).unwrap_err(), FormatProblem::TooLong { extra: 1 });
    }
}

//! NumPy arrays: NPY files, and NPZ archives of them.

use std::path::Path;

use super::archive::Archive;
use super::array::{Array, ArrayLayout};
use super::file::{self, Content};
use super::{DataError, FormatProblem, Table, TableFormat, TableWriter};

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

impl Table {
    /// Reads an NPY file: an array of rows × columns, a one-dimensional array (a single column), or images (3 or 4
    /// dimensions).
    ///
    /// The numbers are integers, Booleans or floats of any size and byte order; NaN is a missing cell. Columns are
    /// called `x0`, `x1`, …, and pixels `p0_0`, `p0_1`, … by row and column, then channel.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or has another format.
    pub fn read_npy(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let name = file::name(path);
        let content = file::read(path)?;
        let array = parse_within(&content.bytes, content.file_bytes);
        let array = array.map_err(|e| problem(&name, "NPY", e))?;
        array.into_table(&name, "NPY")
    }

    /// Reads an array from an NPZ file: the one with this name, or the only one. See [`Table::read_npy`].
    ///
    /// # Errors
    /// As for [`Table::read_npy`]; also, there are several arrays and no name is given.
    pub fn read_npz(path: impl AsRef<Path>, array: Option<&str>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let name = file::name(path);
        let content = file::read(path)?;
        let array = choose(&content, array).map_err(|e| problem(&name, "NPZ", e))?;
        array.into_table(&name, "NPZ")
    }

    /// Writes the table as an NPY file of rows × columns: 64-bit integers if all columns are whole and complete,
    /// otherwise floats with NaN for missing cells.
    ///
    /// # Errors
    /// A column contains text, or the file cannot be written.
    pub fn write_npy(&self, path: impl AsRef<Path>) -> Result<(), DataError> {
        let path = path.as_ref();
        file::write_file(path, |out| {
            let mut writer = TableWriter::new(out, TableFormat::Npy).named(file::name(path));
            writer.write(self)?;
            writer.finish()
        })
    }
}

fn problem(file: &str, format: &'static str, problem: FormatProblem) -> DataError {
    DataError::Format { file: file.to_owned(), format, problem }
}

/// Reads the only array of an archive.
pub(super) fn archived(content: &Content, name: &str) -> Result<Table, DataError> {
    choose(content, None).map_err(|e| problem(name, "NPZ", e))?.into_table(name, "NPZ")
}

fn choose(content: &Content, wanted: Option<&str>) -> Result<Array, FormatProblem> {
    let mut archive = Archive::new(&content.bytes)?;
    let members = archive.names()?;
    let arrays = members.iter().enumerate();
    let (places, names): (Vec<usize>, Vec<&str>) =
        arrays.filter_map(|(n, name)| Some((n, name.strip_suffix(".npy")?))).unzip();
    let list = || names.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ");
    let index = match wanted {
        Some(name) => names
            .iter()
            .position(|n| *n == name)
            .ok_or_else(|| FormatProblem::NoArray { name: name.to_owned(), found: list() })?,
        None if names.len() == 1 => 0,
        None => return Err(FormatProblem::Choose(list())),
    };
    let (array, file_bytes) = archive.read(places[index], names[index])?;
    parse_within(&array, file_bytes.min(content.file_bytes))
}

pub(super) fn header(kind: &str, rows: usize, columns: usize) -> Vec<u8> {
    let mut text =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // Align the data to 64 bytes.
    while !(MAGIC.len() + 4 + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.bytes());
    bytes
}

/// The layout of a file, from its first bytes.
pub(super) fn layout(bytes: &[u8]) -> Result<ArrayLayout, FormatProblem> {
    let (text, data) = split(bytes)?;
    let (kind, by_columns, shape) = parse_header(text)?;
    let unsupported = || FormatProblem::Type { name: kind.to_owned() };
    let (order, kind_of) = kind.split_at_checked(1).ok_or_else(unsupported)?;
    let big = match order {
        "<" | "|" | "=" => false,
        ">" => true,
        _ => return Err(unsupported()),
    };
    let size = kind_of.get(1..).and_then(|s| s.parse().ok()).ok_or_else(unsupported)?;
    let (start, kind) = (bytes.len() - data.len(), kind_of.to_owned());
    Ok(ArrayLayout { start, kind, size, big, by_columns, shape, format: "NPY" })
}

/// Reads an array. `file_bytes` is the size of its file before decompression.
fn parse_within(bytes: &[u8], file_bytes: u64) -> Result<Array, FormatProblem> {
    let layout = layout(bytes)?;
    layout.check_memory(file_bytes)?;
    layout.array(bytes)
}

/// Splits off the header text from the data.
fn split(bytes: &[u8]) -> Result<(&str, &[u8]), FormatProblem> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(FormatProblem::Magic)?;
    let field = |field| FormatProblem::Header { field };
    let (length, start) = match rest {
        [1, _, a, b, ..] => (u32::from(u16::from_le_bytes([*a, *b])), 4),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]), 6),
        _ => return Err(field("version")),
    };
    let end = start + length as usize;
    let text =
        rest.get(start..end).and_then(|t| std::str::from_utf8(t).ok()).ok_or(field("length"))?;
    Ok((text, &rest[end..]))
}

/// Parses the type, the order and the shape from the text of a Python dictionary.
fn parse_header(text: &str) -> Result<(&str, bool, Vec<usize>), FormatProblem> {
    let after = |key: &str| {
        let at = text.find(&format!("'{key}'"))?;
        text[at + key.len() + 2..].trim_start().strip_prefix(':').map(str::trim_start)
    };
    let bad = |field| FormatProblem::Header { field };
    let kind = after("descr").ok_or(bad("type"))?;
    let Some((kind, _)) = kind.strip_prefix('\'').and_then(|k| k.split_once('\'')) else {
        return Err(FormatProblem::Type { name: "record".to_owned() });
    };
    let order = after("fortran_order").ok_or(bad("order"))?;
    let by_columns = match order {
        o if o.starts_with("True") => true,
        o if o.starts_with("False") => false,
        _ => return Err(bad("order")),
    };
    let shape =
        after("shape").and_then(|s| s.strip_prefix('(')?.split_once(')')).ok_or(bad("shape"))?;
    let numbers = shape.0.split(',').map(str::trim).filter(|s| !s.is_empty());
    let shape = numbers.map(|n| n.trim_end_matches('L').parse().map_err(|_| bad("shape")));
    Ok((kind, by_columns, shape.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::super::archive::tests::archive;
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Array, FormatProblem> {
        layout(bytes)?.array(bytes)
    }

    fn file(kind: &str, shape: &str, order: &str, data: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn every_type_and_order_is_read() {
        let table = |b: &[u8]| parse(b).unwrap().into_table("t", "NPY").unwrap();
        let number = |t: &Table, row, column: usize| t.columns()[column].number(row);
        let t = table(&file("|u1", "(2, 3)", "False", &[1, 2, 3, 4, 5, 6]));
        assert_eq!((number(&t, 0, 1), number(&t, 1, 0)), (Some(2.0), Some(4.0)));
        let t = table(&file("|u1", "(2, 3)", "True", &[1, 2, 3, 4, 5, 6]));
        assert_eq!((number(&t, 0, 1), number(&t, 1, 0)), (Some(3.0), Some(2.0)));
        let t = table(&file(">i2", "(2,)", "False", &[0xff, 0xfe, 1, 0]));
        assert_eq!((number(&t, 0, 0), number(&t, 1, 0)), (Some(-2.0), Some(256.0)));
        let t = table(&file("<f4", "(1, 1)", "False", &1.5f32.to_le_bytes()));
        assert_eq!(number(&t, 0, 0), Some(1.5));
        let t = table(&file("<f2", "(4, 1)", "False", &[0, 0x3c, 1, 0, 0, 0xc0, 0, 0x7e]));
        assert_eq!(number(&t, 0, 0), Some(1.0));
        assert_eq!(number(&t, 1, 0), Some(2f64.powi(-24)));
        assert_eq!(number(&t, 2, 0), Some(-2.0));
        assert!(t.columns()[0].is_missing(3));
        let t = table(&file("<u8", "(1, 1)", "False", &[255; 8]));
        assert_eq!(number(&t, 0, 0), Some(u64::MAX as f64));
        let t = table(&file("|b1", "(2, 2, 1)", "False", &[0, 1, 1, 0]));
        assert_eq!(t.image(), Some([2, 1, 1]));
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = file("<f8", "(2, 1)", "False", &[0; 16]);
        assert!(parse(&good).is_ok());
        for end in 0..good.len() {
            assert!(parse(&good[..end]).is_err(), "cut at {end}");
        }
        for (bytes, part) in [
            (file("<f8", "(2, 1)", "False", &[0; 17]), "1 bytes follow"),
            (file("<U3", "(1, 1)", "False", &[0; 3]), "type <U3"),
            (file("<c16", "(1, 1)", "False", &[0; 16]), "type <c16"),
            (file("<f8", "(99999999999999999, 99999999999999999)", "False", &[]), "expected "),
            (file("<f8", "(-1, 1)", "False", &[]), "shape"),
            (file("<f8", "(2, 1)", "Maybe", &[0; 16]), "order"),
        ] {
            let message = parse(&bytes).map(|_| ()).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let empty = parse(&file("<f8", "(0, 3)", "False", &[])).unwrap();
        assert!(empty.into_table("t", "NPY").unwrap_err().to_string().contains("empty"));
        let deep = parse(&file("|u1", "(1, 1, 1, 1, 1)", "False", &[0])).unwrap();
        assert!(deep.into_table("t", "NPY").unwrap_err().to_string().contains("5 dimensions"));
    }

    #[test]
    fn an_archive_needs_a_choice() {
        let (x, y) = (file("|u1", "(1, 2)", "False", &[1, 2]), file("|u1", "(1,)", "False", &[3]));
        let two = archive(&[("x.npy", &x, true), ("y.npy", &y, false)], true);
        let read = |bytes: &[u8], name| {
            choose(&Content { bytes: bytes.to_vec(), file_bytes: bytes.len() as u64 }, name)
                .and_then(|a| a.into_table("t", "NPZ").map_err(|_| FormatProblem::Magic))
        };
        assert_eq!(read(&two, Some("x")).unwrap().to_csv(), b"x0,x1\n1,2\n");
        assert_eq!(read(&two, Some("y")).unwrap().to_csv(), b"x0\n3\n");
        let message = read(&two, None).unwrap_err().to_string();
        assert_eq!(message, "it contains the arrays 'x', 'y'; name one of them");
        assert!(
            read(&two, Some("z")).unwrap_err().to_string().contains("not contain an array 'z'")
        );
        let one = archive(&[("y.npy", &y, false), ("notes.txt", b"", false)], false);
        assert!(read(&one, None).is_ok());
    }
}

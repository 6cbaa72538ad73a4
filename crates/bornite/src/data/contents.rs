//! What a file of a table holds, read and written back byte for byte.

use serde::{Deserialize, Serialize};

use super::idx::{Values, parse_idx};
use super::{Cells, CsvOptions, DataError, Table, npy};

/// What a file is, apart from its table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileForm {
    /// No file: a table in memory.
    Memory,
    /// CSV, in the table's layout.
    Csv,
    /// An array of numbers.
    Array {
        /// The bytes before the numbers.
        head: Vec<u8>,
        /// Their type, by its NumPy name without byte order.
        kind: String,
        /// Whether their highest byte comes first.
        big: bool,
    },
}

impl FileForm {
    /// Reads a file, CSV, NPY or IDX by its content, so that [`write`](Self::write) gives the same bytes back.
    ///
    /// # Errors
    /// It is no table, or is not written by this program as it is.
    pub(crate) fn read(bytes: &[u8], name: &str) -> Result<(Table, Self), DataError> {
        let array =
            |format| move |problem| DataError::Format { file: name.to_owned(), format, problem };
        let (table, form) = if bytes.starts_with(npy::MAGIC) {
            let (kind, big, head) = npy::layout(bytes).map_err(array("NPY"))?;
            let table = npy::parse(bytes).map_err(array("NPY"))?.into_table(name, "NPY")?;
            (table, Self::Array { head: head.to_vec(), kind: kind.to_owned(), big })
        } else if bytes.starts_with(&[0, 0]) {
            let (array_of, kind, start) = parse_idx(bytes).map_err(array("IDX"))?;
            let (head, kind) = (bytes[..start].to_vec(), kind.to_owned());
            (array_of.into_table(name, "IDX")?, Self::Array { head, kind, big: true })
        } else {
            (Table::from_csv_bytes(bytes, name, &CsvOptions::default())?, Self::Csv)
        };
        if form.write(&table).as_deref() == Some(bytes) {
            Ok((table, form))
        } else {
            Err(DataError::NotWrittenBack { file: name.to_owned() })
        }
    }

    /// The bytes of a file with this table; `None` where its cells are no such numbers.
    pub(crate) fn write(&self, table: &Table) -> Option<Vec<u8>> {
        let Self::Array { head, kind, big } = self else { return Some(table.to_csv()) };
        let mut out = head.clone();
        for row in 0..table.num_rows() {
            for column in table.columns() {
                let (integer, number) = match column.cells() {
                    Cells::Integers(c) => (c.get(row)?, 0.0),
                    Cells::Numbers(c) => (0, c.values()[row]),
                    Cells::Labels(_) => return None,
                };
                Values::encode(integer, number, kind, *big, &mut out)?;
            }
        }
        Some(out)
    }
}

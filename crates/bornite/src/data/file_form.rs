//! The format of a piece of a file, from which the piece can be restored byte for byte.

use serde::{Deserialize, Serialize};

use super::array::Values;
use super::{Cells, Table};

/// The format of a piece of a file, apart from its table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileForm {
    /// Not a file: a table in memory.
    Memory,
    /// CSV, in the table's layout.
    Csv,
    /// Rows of an array of numbers.
    Array {
        /// The bytes before the numbers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        head: Vec<u8>,
        /// The type of the numbers, by its NumPy name without byte order.
        kind: String,
        /// Whether the numbers are big-endian.
        big: bool,
        /// Whether the first index varies fastest.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_columns: bool,
    },
}

impl FileForm {
    /// Writes a table in this format; `None` if its cells do not fit the type.
    pub(crate) fn write(&self, table: &Table) -> Option<Vec<u8>> {
        let Self::Array { head, kind, big, by_columns } = self else { return Some(table.to_csv()) };
        let mut out = head.clone();
        let columns = table.columns();
        let mut put = |row: usize, column: usize| {
            let (integer, number) = match columns[column].cells() {
                Cells::Integers(c) => (c.get(row)?, 0.0),
                Cells::Numbers(c) => (0, c.values()[row]),
                Cells::Labels(_) => return None,
            };
            Values::encode(integer, number, kind, *big, &mut out)
        };
        if *by_columns {
            for column in first_index_fastest(table) {
                (0..table.num_rows()).try_for_each(|row| put(row, column))?;
            }
        } else {
            for row in 0..table.num_rows() {
                (0..columns.len()).try_for_each(|column| put(row, column))?;
            }
        }
        Some(out)
    }
}

/// The columns of a table in the order of an array whose first index varies fastest.
fn first_index_fastest(table: &Table) -> impl Iterator<Item = usize> {
    let [height, width, channels] = table.image().unwrap_or([table.num_columns(), 1, 1]);
    (0..channels).flat_map(move |c| {
        (0..width).flat_map(move |x| (0..height).map(move |y| (y * width + x) * channels + c))
    })
}

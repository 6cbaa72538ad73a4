//! Coding of one column: its cells as symbols of variables, and the data that no variable can represent.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::bytes::{Reader, damaged, put, put_rows, put_text};
use crate::codec::CodecError;
use crate::codec::grid::Grid;
use crate::codec::grid_symbols::GridSymbols;
use crate::data::{Cells, Column, ColumnKind, Integers, Schema, Storage};

/// How the cells of a column are coded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CellCoding {
    /// With a column of the model.
    Model(usize),
    /// With a continuous column of the model: the ordinals `first` to `last` of a grid.
    Grid {
        /// The column of the model.
        column: usize,
        /// The possible numbers.
        grid: Grid,
        /// The smallest and the largest ordinal.
        bounds: [i64; 2],
    },
    /// Without the model, beside the rows.
    Beside,
}

/// A column as symbols.
#[derive(Debug)]
pub(super) struct Coded {
    pub(super) way: CellCoding,
    /// The symbols of the column's variables, row by row.
    pub(super) values: Vec<f64>,
    /// Remainders, if there are grid symbols.
    pub(super) remainders: Vec<u64>,
    pub(super) grid_symbols: Option<GridSymbols>,
}

/// A cell that is not missing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item<'a> {
    Number(f64),
    Integer(i64),
    Text(Cow<'a, str>),
}

impl Item<'_> {
    /// Whether both are identical, bit for bit.
    fn is(&self, other: &Item<'_>) -> bool {
        match (self, other) {
            (Item::Number(a), Item::Number(b)) => a.to_bits() == b.to_bits(),
            (Item::Number(_) | Item::Integer(_) | Item::Text(_), _) => self == other,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Item::Number(x) => out.extend(x.to_le_bytes()),
            Item::Integer(x) => put(out, ((x << 1) ^ (x >> 63)).cast_unsigned()),
            Item::Text(text) => put_text(out, text),
        }
    }

    fn read<'a>(storage: Storage, from: &mut Reader<'a>) -> Result<Item<'a>, CodecError> {
        Ok(match storage {
            Storage::Numbers(_) => {
                let bytes = from.bytes(8)?.first_chunk().ok_or_else(damaged)?;
                Item::Number(f64::from_le_bytes(*bytes))
            }
            Storage::Integers => {
                let n = from.number()?;
                Item::Integer((n >> 1).cast_signed() ^ -(n & 1).cast_signed())
            }
            Storage::Labels => Item::Text(Cow::Borrowed(from.text()?)),
        })
    }
}

/// The cell of a row, converted to the type of a column; `None` if it is missing.
fn item(column: &Column, row: usize, storage: Storage) -> Option<Item<'_>> {
    let whole = |x: f64| (x.fract() == 0.0 && x.abs() < 2f64.powi(53)).then_some(x as i64);
    match (storage, column.cells()) {
        (Storage::Labels, Cells::Labels(c)) => c.get(row).map(|t| Item::Text(Cow::Borrowed(t))),
        (Storage::Integers, Cells::Integers(c)) => c.get(row).map(Item::Integer),
        (Storage::Integers, _) => column.number(row).and_then(whole).map(Item::Integer),
        (Storage::Numbers(_), _) => column.number(row).map(Item::Number),
        (Storage::Labels, _) => None,
    }
}

/// Encodes a column with column `n` of the schema. `edges` are the edges of its bins if it is continuous. Cells that
/// cannot be represented are added to `uncoded`.
pub(super) fn encode(
    schema: &Schema,
    n: usize,
    column: &Column,
    edges: Option<&[f64]>,
    uncoded: &mut Vec<u8>,
) -> Coded {
    let own = schema.columns()[n].storage;
    if (own == Storage::Labels) != (Storage::of(column) == Storage::Labels) {
        return store_uncoded(column, uncoded);
    }
    match edges {
        Some(edges) => on_grid(schema, n, column, edges, uncoded),
        None => by_values(schema, n, column, uncoded),
    }
}

/// Stores a column beside the rows.
pub(super) fn store_uncoded(column: &Column, uncoded: &mut Vec<u8>) -> Coded {
    let kind = Storage::of(column);
    let cells: Vec<_> =
        (0..column.len()).filter_map(|row| Some((row, item(column, row, kind)?))).collect();
    put_rows(uncoded, &cells, |out, item| item.put(out));
    Coded {
        way: CellCoding::Beside,
        values: Vec::new(),
        remainders: Vec::new(),
        grid_symbols: None,
    }
}

/// Encodes cells as values of finite variables. Cells that would decode differently are escaped.
fn by_values(schema: &Schema, n: usize, column: &Column, uncoded: &mut Vec<u8>) -> Coded {
    let mut values = schema.encode_column(n, column);
    let Ok(decoded) = schema.decode_column(n, &values) else {
        return store_uncoded(column, uncoded);
    };
    let (kind, width) = (Storage::of(column), schema.variables_of(n).len());
    let other = schema.columns()[n].kind.coding().other().map(|other| other as f64);
    let mut escaped = Vec::new();
    for row in 0..column.len() {
        let Some(cell) = item(column, row, kind) else { continue };
        let values = &mut values[row * width..(row + 1) * width];
        if other == Some(values[0]) {
            cell.put(uncoded);
        } else if !item(&decoded, row, kind).is_some_and(|d| d.is(&cell)) {
            values.fill(f64::NAN);
            escaped.push((row, cell));
        }
    }
    put_rows(uncoded, &escaped, |out, cell| cell.put(out));
    Coded { way: CellCoding::Model(n), values, remainders: Vec::new(), grid_symbols: None }
}

/// Encodes cells as ordinals of a grid. Cells off the grid are escaped.
fn on_grid(
    schema: &Schema,
    n: usize,
    column: &Column,
    edges: &[f64],
    uncoded: &mut Vec<u8>,
) -> Coded {
    let kind = Storage::of(column);
    let rows = 0..column.len();
    let (grid, ordinals): (Grid, Vec<Option<i64>>) = if let Cells::Integers(c) = column.cells() {
        (Grid::Decimals(0), c.iter().collect())
    } else {
        let known: Vec<f64> = rows.clone().filter_map(|row| column.number(row)).collect();
        let grid = Grid::of(&known);
        (grid, rows.clone().map(|row| grid.ordinal(column.number(row)?)).collect())
    };
    let known = || ordinals.iter().flatten().copied();
    let bounds = [known().min().unwrap_or(0), known().max().unwrap_or(0)];
    let grid_symbols = grid_symbols_of(&schema.columns()[n].kind, grid, bounds, edges);
    let mut escaped = Vec::new();
    let (mut values, mut remainders) = (vec![f64::NAN; column.len()], vec![0; column.len()]);
    for row in rows {
        match (ordinals[row], item(column, row, kind)) {
            (Some(ordinal), _) => {
                let (symbol, remainder) = grid_symbols.split(ordinal);
                (values[row], remainders[row]) = (symbol as f64, remainder);
            }
            (None, Some(cell)) => escaped.push((row, cell)),
            (None, None) => {}
        }
    }
    put_rows(uncoded, &escaped, |out, cell| cell.put(out));
    Coded {
        way: CellCoding::Grid { column: n, grid, bounds },
        values,
        remainders,
        grid_symbols: Some(grid_symbols),
    }
}

/// The grid symbols of a continuous column of the model.
pub(super) fn grid_symbols_of(
    kind: &ColumnKind,
    grid: Grid,
    bounds: [i64; 2],
    edges: &[f64],
) -> GridSymbols {
    // Finite columns have no grid symbols.
    GridSymbols::new(grid, bounds, |x| kind.coding().position(x).unwrap_or(0.0), edges)
}

/// Decodes the cells of a column from its symbols and the data beside them.
pub(super) fn decode<'a>(
    schema: &Schema,
    way: &CellCoding,
    kind: Storage,
    symbols: &ColumnSymbols<'_>,
    uncoded: &mut Reader<'a>,
) -> Result<Vec<Option<Item<'a>>>, CodecError> {
    let rows = symbols.num_rows;
    let mut items = match way {
        CellCoding::Beside => vec![None; rows],
        CellCoding::Model(n) => {
            let decoded = schema.decode_column(*n, symbols.values)?;
            let other = schema.columns()[*n].kind.coding().other().map(|other| other as f64);
            let width = schema.variables_of(*n).len();
            let mut items = Vec::with_capacity(rows);
            for row in 0..rows {
                items.push(if other == Some(symbols.values[row * width]) {
                    Some(Item::read(kind, uncoded)?)
                } else {
                    item(&decoded, row, kind).map(into_owned)
                });
            }
            items
        }
        CellCoding::Grid { grid, .. } => {
            let Some(grid_symbols) = symbols.grid_symbols else { return Err(damaged()) };
            let cell = |(value, remainder): (&f64, &u64)| {
                let ordinal =
                    (!value.is_nan()).then(|| grid_symbols.join(*value as usize, *remainder))?;
                Some(match kind {
                    Storage::Integers => Item::Integer(ordinal),
                    Storage::Numbers(_) | Storage::Labels => Item::Number(grid.value(ordinal)),
                })
            };
            symbols.values.iter().zip(symbols.remainders).map(cell).collect()
        }
    };
    for (row, cell) in uncoded.rows(rows, |from| Item::read(kind, from))? {
        items[row] = Some(cell);
    }
    Ok(items)
}

/// The symbols of one column.
#[derive(Debug)]
pub(super) struct ColumnSymbols<'a> {
    pub(super) num_rows: usize,
    pub(super) values: &'a [f64],
    pub(super) remainders: &'a [u64],
    pub(super) grid_symbols: Option<&'a GridSymbols>,
}

fn into_owned<'a>(item: Item<'_>) -> Item<'a> {
    match item {
        Item::Number(x) => Item::Number(x),
        Item::Integer(x) => Item::Integer(x),
        Item::Text(text) => Item::Text(Cow::Owned(text.into_owned())),
    }
}

/// Builds a column from decoded cells.
pub(super) fn column(name: &str, kind: Storage, items: &[Option<Item<'_>>]) -> Column {
    let number = |item: &Option<Item<'_>>| match item {
        Some(Item::Number(x)) => *x,
        Some(Item::Integer(_) | Item::Text(_)) | None => f64::NAN,
    };
    let integer = |item: &Option<Item<'_>>| match item {
        Some(Item::Integer(x)) => Some(*x),
        Some(Item::Number(_) | Item::Text(_)) | None => None,
    };
    match kind {
        Storage::Numbers(format) => {
            Column::numbers(name, items.iter().map(number).collect()).with_format(format)
        }
        Storage::Integers => {
            Column::new(name, Cells::Integers(items.iter().map(integer).collect::<Integers>()))
        }
        Storage::Labels => Column::labels(
            name,
            items.iter().map(|item| match item {
                Some(Item::Text(text)) => Some(&**text),
                Some(Item::Number(_) | Item::Integer(_)) | None => None,
            }),
        ),
    }
}

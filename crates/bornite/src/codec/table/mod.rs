//! Compression of tables: cells as symbols of a circuit's variables, with everything else beside them.
//!
//! Compression is lossless: cells that the model's columns cannot represent bit for bit are escaped, and columns that
//! the model does not have are stored unchanged. The rows themselves go through [`Compressor`](super::Compressor).

mod bytes;
mod column;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::block::SymbolRows;
use super::container::read_header;
use super::discrete::{Discrete, discretize};
use super::grid_symbols::GridSymbols;
use super::{Archive, Codec, CodecError, Compressor, Digest};
use crate::circuit::Circuit;
use crate::data::{Column, ColumnSchema, CsvLayout, FileForm, Schema, Storage, Table, TextForm};
use crate::engine::{Engine, SimdLevel};
use crate::memory;
use bytes::{Reader, damaged, put_bytes, put_rows, put_text};
use column::{CellCoding, Coded, ColumnSymbols};
pub(crate) use segment::{
    Segment, SegmentArchive, SegmentKind, SegmentReader, SegmentWriter, pack, unpack,
};

/// The number of rows that are passed to the coder at once.
const CHUNK: usize = 1 << 14;
/// The memory per cell while a table is decompressed, for each of its variables and once for the cell itself.
const BYTES_PER_CELL: u128 = 16;
/// The maximum number of cells in a table.
const MAX_CELLS: u64 = 1 << 40;

/// A schema and a circuit over its variables, prepared for compressing tables.
#[derive(Debug)]
pub(crate) struct TableCodec {
    schema: Schema,
    discrete: Discrete,
    engine: Arc<Engine>,
    digest: Digest,
    block_rows: Option<usize>,
}

/// The form of a table, apart from its cells.
#[derive(Debug, Serialize, Deserialize)]
struct Form {
    rows: u64,
    /// The columns; empty if they are those of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<ColumnForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<[usize; 3]>,
    #[serde(default, skip_serializing_if = "is_default")]
    layout: CsvLayout,
    file: FileForm,
}

fn is_default(layout: &CsvLayout) -> bool {
    *layout == CsvLayout::default()
}

/// The form of a column, apart from its cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ColumnForm {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heading: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    missing: String,
    cells: Storage,
    by: CellCoding,
}

impl ColumnForm {
    fn of(column: &Column, by: CellCoding) -> Self {
        let TextForm { heading, missing, .. } = column.form().clone();
        let cells = Storage::of(column);
        Self { name: column.name().to_owned(), heading, missing, cells, by }
    }

    /// The form of a column as in the model.
    fn plain(n: usize, column: &ColumnSchema) -> Self {
        let (name, cells) = (column.name.clone(), column.storage);
        Self { name, heading: None, missing: String::new(), cells, by: CellCoding::Model(n) }
    }
}

impl TableCodec {
    /// Prepares a circuit by discretizing its continuous variables.
    pub(crate) fn new(schema: &Schema, circuit: &Circuit) -> Result<Self, CodecError> {
        let discrete = discretize(circuit)?;
        let text = serde_json::to_string(schema).map_err(|_| damaged())?;
        let digest = Digest::of(&discrete.circuit).with_text(&text);
        let engine = Arc::new(Engine::of_circuit(&discrete.circuit, SimdLevel::Best));
        Ok(Self { schema: schema.clone(), discrete, engine, digest, block_rows: None })
    }

    /// Sets the maximum instruction set and the block size.
    #[cfg(test)]
    fn with(mut self, level: SimdLevel, block_rows: Option<usize>) -> Self {
        self.engine = Arc::new(Engine::of_circuit(&self.discrete.circuit, level));
        self.block_rows = block_rows;
        self
    }

    /// The text columns of the model.
    pub(crate) fn text_columns(&self) -> Vec<String> {
        let texts = self.schema.columns().iter().filter(|c| c.storage == Storage::Labels);
        texts.map(|c| c.name.clone()).collect()
    }

    /// Compresses a table to a segment for this many bytes of a file.
    pub(crate) fn compress(
        &self,
        table: &Table,
        file: FileForm,
        content: u64,
    ) -> Result<Segment, CodecError> {
        let mut uncoded = Vec::new();
        let mut columns = Vec::with_capacity(table.num_columns());
        let mut coded: BTreeMap<usize, Coded> = BTreeMap::new();
        for column in table.columns() {
            let by = match self.schema.find(column.name()) {
                Ok(n) => {
                    let edges = self.edges(n);
                    let one = column::encode(&self.schema, n, column, edges, &mut uncoded);
                    let way = one.way.clone();
                    coded.insert(n, one);
                    way
                }
                Err(_) => column::store_uncoded(column, &mut uncoded).way,
            };
            let exceptions: Vec<_> =
                column.form().exceptions.iter().map(|(row, text)| (*row, text)).collect();
            put_rows(&mut uncoded, &exceptions, |out, text| put_text(out, text));
            columns.push(ColumnForm::of(column, by));
        }
        let plain = self.schema.columns().iter().enumerate().map(|(n, c)| ColumnForm::plain(n, c));
        if columns.iter().cloned().eq(plain) {
            columns.clear();
        }
        let (rows, layout) = (table.num_rows() as u64, table.layout().clone());
        let form = Form { rows, columns, image: table.image(), layout, file };
        let form = serde_json::to_vec(&form).map_err(|_| damaged())?;
        let mut body = Vec::new();
        put_bytes(&mut body, &pack(&form));
        put_bytes(&mut body, &pack(&uncoded));
        body.extend(self.compress_rows(table.num_rows(), coded)?);
        Ok(Segment { kind: SegmentKind::Table, content, body })
    }

    /// The edges of a column's bins, if it is continuous.
    fn edges(&self, column: usize) -> Option<&[f64]> {
        self.discrete.edges[self.schema.variables_of(column).start].as_deref()
    }

    fn codec(&self, grid_symbols: Vec<Option<GridSymbols>>) -> Result<Codec, CodecError> {
        let codec = Codec::with_grid_symbols(
            &self.engine,
            &self.discrete.circuit,
            grid_symbols,
            self.digest,
        );
        match self.block_rows {
            Some(rows) => codec.with_block_rows(rows),
            None => Ok(codec),
        }
    }

    fn compress_rows(
        &self,
        num_rows: usize,
        mut coded: BTreeMap<usize, Coded>,
    ) -> Result<Vec<u8>, CodecError> {
        let d = self.schema.num_variables();
        let mut grid_symbols: Vec<Option<GridSymbols>> = vec![None; d];
        for (n, one) in &mut coded {
            grid_symbols[self.schema.variables_of(*n).start] = one.grid_symbols.take();
        }
        // A continuous variable without grid symbols uses its bins: it is missing in all rows.
        let codec = self.codec(grid_symbols)?;
        let mut compressor = Compressor::new(&codec, Vec::new())?;
        for first in (0..num_rows).step_by(CHUNK) {
            let chunk = first..num_rows.min(first + CHUNK);
            let mut values = vec![f64::NAN; chunk.len() * d];
            let mut remainders = Vec::with_capacity(chunk.len() * codec.num_remainders());
            for (row, values) in chunk.zip(values.chunks_exact_mut(d)) {
                for (n, one) in &coded {
                    let range = self.schema.variables_of(*n);
                    let width = range.len();
                    if let Some(from) = one.values.get(row * width..(row + 1) * width) {
                        values[range].copy_from_slice(from);
                    }
                    remainders.extend(one.remainders.get(row));
                }
            }
            compressor.push_cells(SymbolRows { values: &values, remainders: &remainders })?;
        }
        compressor.finish()
    }

    /// Restores the table of a segment, and the form of its piece of a file.
    pub(crate) fn decompress(&self, segment: &Segment) -> Result<(Table, FileForm), CodecError> {
        let (limit, mut body) = (segment.max_part(), Reader(&segment.body));
        let (form, uncoded) = (unpack(body.sized()?, limit)?, unpack(body.sized()?, limit)?);
        // Check the model first: the columns of another model would look damaged.
        read_header(body.0, self.schema.num_variables(), self.digest)?;
        let form: Form = serde_json::from_slice(&form).map_err(|_| damaged())?;
        let columns = self.columns_of(form.columns)?;
        let codec = self.codec(self.grid_symbols_of(&columns))?;
        let archive = Archive::new(&codec, body.0)?;
        let d = self.schema.num_variables();
        if archive.num_rows() != form.rows || form.rows.saturating_mul(d as u64) > MAX_CELLS {
            return Err(damaged());
        }
        let cells = BYTES_PER_CELL * (d + codec.num_remainders() + columns.len()) as u128;
        let length = segment.body.len() as u64;
        memory::check("a compressed table", u128::from(form.rows) * cells, length)?;
        let rows = AllCells::of(archive.blocks()?, d, codec.num_remainders());
        let mut uncoded = Reader(&uncoded);
        let mut table = Vec::with_capacity(columns.len());
        for column in &columns {
            table.push(self.column(column, &codec, &rows, &mut uncoded)?);
        }
        if !uncoded.0.is_empty() {
            return Err(damaged());
        }
        let table = Table::new(table)?.with_layout(form.layout);
        match form.image {
            Some(shape) => Ok((table.with_image(shape)?, form.file)),
            None => Ok((table, form.file)),
        }
    }

    /// The columns of a form, which must belong to this schema, each at most once.
    fn columns_of(&self, columns: Vec<ColumnForm>) -> Result<Vec<ColumnForm>, CodecError> {
        if columns.is_empty() {
            let plain = self.schema.columns().iter().enumerate();
            return Ok(plain.map(|(n, c)| ColumnForm::plain(n, c)).collect());
        }
        let mut seen = vec![false; self.schema.columns().len()];
        for column in &columns {
            let (n, on_grid) = match column.by {
                CellCoding::Model(n) => (n, false),
                CellCoding::Grid { column: n, bounds, .. } if bounds[0] <= bounds[1] => (n, true),
                CellCoding::Grid { .. } => return Err(damaged()),
                CellCoding::Beside => continue,
            };
            let known = seen.get_mut(n).is_some_and(|seen| !std::mem::replace(seen, true));
            if !known || self.edges(n).is_some() != on_grid {
                return Err(damaged());
            }
        }
        Ok(columns)
    }

    fn grid_symbols_of(&self, columns: &[ColumnForm]) -> Vec<Option<GridSymbols>> {
        let mut grid_symbols: Vec<Option<GridSymbols>> = vec![None; self.schema.num_variables()];
        for form in columns {
            if let CellCoding::Grid { column, grid, bounds } = form.by
                && let Some(edges) = self.edges(column)
            {
                let kind = &self.schema.columns()[column].kind;
                let variable = self.schema.variables_of(column).start;
                grid_symbols[variable] = Some(column::grid_symbols_of(kind, grid, bounds, edges));
            }
        }
        grid_symbols
    }

    fn column(
        &self,
        form: &ColumnForm,
        codec: &Codec,
        rows: &AllCells,
        uncoded: &mut Reader<'_>,
    ) -> Result<Column, CodecError> {
        let range = match form.by {
            CellCoding::Model(n) | CellCoding::Grid { column: n, .. } => {
                self.schema.variables_of(n)
            }
            CellCoding::Beside => 0..0,
        };
        let grid_symbols = codec.grid_symbols.get(range.start).and_then(Option::as_ref);
        let place = codec.grid_symbols[..range.start].iter().flatten().count();
        let has_rests = matches!(form.by, CellCoding::Grid { .. });
        let symbols = ColumnSymbols {
            num_rows: rows.num_rows,
            values: &rows.values_of(range),
            remainders: &if has_rests { rows.remainders_of(place) } else { Vec::new() },
            grid_symbols,
        };
        let items = column::decode(&self.schema, &form.by, form.cells, &symbols, uncoded)?;
        let column = column::column(&form.name, form.cells, &items);
        let exceptions = uncoded.rows(rows.num_rows, |from| Ok(from.text()?.to_owned()))?;
        let exceptions = exceptions.into_iter().collect();
        let (heading, missing) = (form.heading.clone(), form.missing.clone());
        Ok(column.with_form(TextForm::of_text(heading, missing, exceptions)))
    }
}

/// All rows of a table as symbols.
struct AllCells {
    blocks: Vec<(Vec<f64>, Vec<u64>)>,
    num_rows: usize,
    num_variables: usize,
    num_remainders: usize,
}

impl AllCells {
    fn of(blocks: Vec<(Vec<f64>, Vec<u64>)>, num_variables: usize, num_remainders: usize) -> Self {
        let cells: usize = blocks.iter().map(|(values, _)| values.len()).sum();
        Self { blocks, num_rows: cells / num_variables, num_variables, num_remainders }
    }

    /// The symbols of some variables, row by row.
    fn values_of(&self, variables: std::ops::Range<usize>) -> Vec<f64> {
        let rows = self.blocks.iter().flat_map(|(v, _)| v.chunks_exact(self.num_variables));
        rows.flat_map(|row| &row[variables.clone()]).copied().collect()
    }

    /// The remainders of one variable, row by row.
    fn remainders_of(&self, place: usize) -> Vec<u64> {
        let rows = self.blocks.iter().flat_map(|(_, r)| r.chunks_exact(self.num_remainders));
        rows.map(|row| row[place]).collect()
    }
}

//! Splits a file into pieces of whole rows, each of which is read as a table.
//!
//! A file may be cut anywhere: a piece counts as a table only if writing it back gives the same bytes; otherwise it is
//! just bytes.

use std::io::Read;

use super::array::{self, ArrayLayout};
use super::buffered::Buffered;
use super::{CsvOptions, DataError, FileForm, FormatProblem, Table, archive, csv, npy};

/// The factor by which a column-major array, which is a single piece, may exceed the size limit.
const BY_COLUMNS: usize = 4;

/// Consecutive bytes of a file.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// The table that is written back as these bytes, if there is one.
    pub(crate) table: Option<(Table, FileForm)>,
}

/// A file that is read piece by piece: CSV, NPY arrays, uncompressed arrays of NPZ, IDX, or anything else.
#[derive(Debug)]
pub(crate) struct Pieces<R> {
    input: Buffered<R>,
    limit: usize,
    next: Next,
    texts: Vec<String>,
    header: Option<bool>,
    problem: Option<DataError>,
}

/// What the next bytes are.
#[derive(Debug)]
enum Next {
    /// The start of the file, or what follows an array.
    Unknown { is_first: bool },
    /// CSV, with its delimiter and column names once they are known.
    Csv(Option<(u8, Vec<String>)>),
    /// The remaining rows of an array.
    Rows(ArrayLayout),
    /// Not a table.
    Bytes,
}

/// The table of a piece, if the piece was parsed as one.
type Found = Option<Result<(Table, FileForm), DataError>>;

impl<R: Read> Pieces<R> {
    /// Splits into pieces of at most `limit` bytes; `name` is the name in messages.
    pub(crate) fn new(input: R, name: &str, limit: usize) -> Self {
        let input = Buffered::new(input, name);
        let next = Next::Unknown { is_first: true };
        Self { input, limit, next, texts: Vec::new(), header: None, problem: None }
    }

    /// Sets whether the first line contains the column names.
    pub(crate) fn with_header(mut self, header: Option<bool>) -> Self {
        self.header = header;
        self
    }

    /// From now on, reads these columns as text if they exist.
    pub(crate) fn read_as_text(&mut self, columns: Vec<String>) {
        self.texts = columns;
    }

    /// Why the first piece that is not a table is not one.
    pub(crate) fn problem(&self) -> Option<&DataError> {
        self.problem.as_ref()
    }

    /// The next piece; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>, DataError> {
        // One more byte shows whether this is the end.
        self.input.fill(self.limit.saturating_add(1))?;
        if self.input.bytes.is_empty() {
            return Ok(None);
        }
        if let Next::Unknown { is_first } = self.next {
            self.next = self.look(is_first)?;
        }
        let (bytes, found) = match std::mem::replace(&mut self.next, Next::Bytes) {
            Next::Csv(known) => self.csv(known),
            Next::Rows(layout) => self.rows(layout),
            Next::Unknown { .. } | Next::Bytes => (self.input.take(self.limit), None),
        };
        let table = match found {
            Some(Ok((table, form))) if form.write(&table).as_ref() == Some(&bytes) => {
                Some((table, form))
            }
            Some(Ok(_)) => self.keep(DataError::NotWrittenBack { file: self.input.name.clone() }),
            Some(Err(problem)) => self.keep(problem),
            None => None,
        };
        Ok(Some(Piece { bytes, table }))
    }

    /// Remembers the first problem.
    fn keep<T>(&mut self, problem: DataError) -> Option<T> {
        self.problem.get_or_insert(problem);
        None
    }

    /// Detects what the next bytes are.
    fn look(&mut self, is_first: bool) -> Result<Next, DataError> {
        let skipped = archive::stored(&self.input.bytes).unwrap_or(0);
        let bytes = &self.input.bytes[skipped..];
        let layout = if bytes.starts_with(npy::MAGIC) {
            npy::layout(bytes)
        } else if is_first && bytes.starts_with(&[0, 0]) {
            array::layout(bytes)
        } else {
            return Ok(if is_first { Next::Csv(None) } else { Next::Bytes });
        };
        Ok(match layout.and_then(ArrayLayout::checked) {
            Ok(mut layout) => {
                layout.start += skipped;
                if layout.by_columns {
                    self.input.fill(layout.length().min(BY_COLUMNS * self.limit))?;
                }
                Next::Rows(layout)
            }
            Err(problem) => {
                let file = self.input.name.clone();
                self.keep::<()>(DataError::Format { file, format: "array", problem });
                Next::Bytes
            }
        })
    }

    /// As many rows of an array as fit.
    fn rows(&mut self, mut layout: ArrayLayout) -> (Vec<u8>, Found) {
        let limit = if layout.by_columns { BY_COLUMNS * self.limit } else { self.limit };
        let room = limit.min(self.input.bytes.len()).saturating_sub(layout.start);
        let rows = layout.shape[0].min(room / layout.row_bytes());
        if rows == 0 || layout.by_columns && rows < layout.shape[0] {
            let (expected, found) = (layout.length() as u128, self.input.bytes.len());
            let problem = if found < limit {
                FormatProblem::CutOff { expected, found }
            } else {
                FormatProblem::TooLarge(limit)
            };
            return (
                self.input.take(self.limit),
                Some(Err(layout.problem(&self.input.name, problem))),
            );
        }
        let left = layout.shape[0] - rows;
        layout.shape[0] = rows;
        let bytes = self.input.take(layout.length());
        let table = layout
            .array(&bytes)
            .map_err(|problem| layout.problem(&self.input.name, problem))
            .and_then(|array| array.into_table(&self.input.name, layout.format));
        let form = FileForm::Array {
            head: bytes[..layout.start].to_vec(),
            kind: layout.kind.clone(),
            big: layout.big,
            by_columns: layout.by_columns,
        };
        (layout.shape[0], layout.start) = (left, 0);
        self.next = if left > 0 { Next::Rows(layout) } else { Next::Unknown { is_first: false } };
        (bytes, Some(table.map(|table| (table, form))))
    }

    /// Rows of CSV. A column of numbers with invalid cells is read as text.
    fn csv(&mut self, known: Option<(u8, Vec<String>)>) -> (Vec<u8>, Found) {
        let end = self.row_end();
        let bytes = self.input.take(end);
        let delimiter = known.as_ref().map(|(delimiter, _)| *delimiter);
        let names = known.as_ref().map(|(_, names)| &names[..]);
        let text_columns = self.texts.clone();
        let header = self.header;
        let mut options = CsvOptions { delimiter, header, text_columns, ..CsvOptions::default() };
        let table = loop {
            let context = csv::Context { names, ..csv::Context::default() };
            match csv::parse(&bytes, &self.input.name, &options, &context)
                .map(|parsed| parsed.table)
            {
                Err(DataError::NotANumber { column, .. } | DataError::Infinite { column, .. })
                    if !options.text_columns.contains(&column) =>
                {
                    options.text_columns.push(column);
                }
                table => break table,
            }
        };
        let found = |table: &Table| {
            let names = table.columns().iter().map(|c| c.name().to_owned()).collect();
            (table.layout().delimiter, names)
        };
        if let Some(known) = known.or_else(|| table.as_ref().ok().map(found)) {
            self.next = Next::Csv(Some(known));
        }
        (bytes, Some(table.map(|table| (table, FileForm::Csv))))
    }

    /// The end of the last complete row.
    fn row_end(&self) -> usize {
        if self.input.is_end && self.input.bytes.len() <= self.limit {
            return self.input.bytes.len();
        }
        let (mut end, mut is_quoted) = (0, false);
        for (at, byte) in self.input.bytes.iter().take(self.limit).enumerate() {
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'\n' if !is_quoted => end = at + 1,
                _ => {}
            }
        }
        if end == 0 { self.limit } else { end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(content: &[u8], limit: usize) -> Vec<Piece> {
        let mut pieces = Pieces::new(content, "t", limit);
        let all: Vec<Piece> = std::iter::from_fn(|| pieces.next().unwrap()).collect();
        let bytes: Vec<u8> = all.iter().flat_map(|piece| piece.bytes.clone()).collect();
        assert_eq!(bytes, content);
        all
    }

    #[test]
    fn csv_is_cut_at_the_ends_of_rows_wherever_it_can_be() {
        let text = b"a;b\n1;x\n2;\"y\nz\"\n3;x\n4;x";
        for limit in 8..40 {
            for piece in pieces(text, limit) {
                let (table, form) = piece.table.unwrap();
                assert_eq!(form, FileForm::Csv);
                let names: Vec<&str> =
                    table.columns().iter().map(crate::data::Column::name).collect();
                assert_eq!(names, ["a", "b"], "at most {limit} bytes");
            }
        }
        for limit in 1..8 {
            pieces(text, limit);
        }
        assert_eq!(pieces(b"", 4).len(), 0);
    }

    #[test]
    fn columns_of_text_stay_text() {
        let mut pieces = Pieces::new(&b"id,n\nx,1\n7,2\n8,3\n"[..], "t", 10);
        pieces.read_as_text(vec!["id".to_owned(), "none".to_owned()]);
        while let Some(piece) = pieces.next().unwrap() {
            let (table, _) = piece.table.unwrap();
            assert_eq!(table.column("id").unwrap().number(0), None);
            assert!(table.column("n").unwrap().number(0).is_some());
        }
    }

    #[test]
    fn images_by_columns_are_one_piece() {
        let head = "{'descr': '|u1', 'fortran_order': True, 'shape': (5, 2, 3, 2), }\n";
        let mut file = npy::MAGIC.to_vec();
        file.extend([1, 0, head.len() as u8, 0]);
        file.extend(head.bytes().chain(0..60));
        let all = pieces(&file, 100);
        let [Piece { table: Some((table, _)), .. }] = &all[..] else { panic!("{all:?}") };
        assert_eq!(table.column("p1_2_1").unwrap().number(4), Some(59.0));
        assert_eq!(table.column("p1_0_0").unwrap().number(0), Some(5.0));
        assert!(pieces(&file, 32).iter().all(|piece| piece.table.is_none()), "too large");
    }
}

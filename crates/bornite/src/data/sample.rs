//! Samples of the rows of files that do not fit into memory.

use std::fs;
use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    Cells, Column, CsvLayout, CsvOptions, DataError, Schema, StreamOptions, Table, TableFormat,
    TableStream, file,
};
use crate::memory;

/// The memory per cell of a sample in bytes, as text and as a number.
const BYTES_PER_CELL: u64 = 64;
/// The maximum number of rows in a sample of a large table.
const MOST: u64 = 1 << 20;
/// Files larger than one part in this many of the memory are large.
const LARGE: u64 = 4;
/// The factor by which the size of a compressed file counts.
const PACKED: u64 = 8;

/// How to draw a [`Sample`].
#[derive(Clone, Debug)]
pub struct SampleOptions {
    /// Whether the first line of CSV contains the column names: see [`CsvOptions::header`].
    pub header: Option<bool>,
    /// The approximate memory for the rows, in bytes. Files of at most a quarter of this size are used whole; the size
    /// of Parquet and gzip files counts eight times. From larger files, at most a million rows are drawn.
    pub memory: u64,
    /// The random seed.
    pub seed: u64,
}

impl Default for SampleOptions {
    /// 4 GiB.
    fn default() -> Self {
        Self { header: None, memory: 4 << 30, seed: 0 }
    }
}

impl SampleOptions {
    /// Whether the tables in these files are too large to be used whole.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn are_large(&self, files: &[PathBuf]) -> Result<bool, DataError> {
        let mut total = 0_u64;
        for path in files {
            let is_packed = TableFormat::of(path) == TableFormat::Parquet
                || path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
            let bytes = length(path)?.saturating_mul(if is_packed { PACKED } else { 1 });
            total = total.saturating_add(bytes);
        }
        Ok(total > self.memory / LARGE)
    }

    /// The maximum number of rows to draw from a large table with this many columns.
    fn most(&self, columns: usize) -> usize {
        let row = BYTES_PER_CELL * columns.max(1) as u64;
        (self.memory / row).clamp(1, MOST) as usize
    }

    /// The random generator, which gives one number per row.
    fn rng(&self) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(4);
        rng
    }
}

/// The size of a file.
fn length(path: &Path) -> Result<u64, DataError> {
    let found = fs::metadata(path).map_err(|e| file::io_error(path, "read", e))?;
    Ok(found.len())
}

fn total_bytes(files: &[PathBuf]) -> Result<u64, DataError> {
    files.iter().try_fold(0_u64, |sum, path| Ok(sum.saturating_add(length(path)?)))
}

/// A sample of the rows of some files. [`Fit::run_sample`](crate::Fit::run_sample) infers the column types and the
/// initial weights from it, and learns from all rows of the files.
///
/// The rows of a large table are drawn at random, without replacement, and are in the order of the files. A table that
/// fits into memory is used whole. All files need the same columns.
#[derive(Debug)]
pub struct Sample {
    table: Table,
    /// The positions of the rows among all rows.
    places: Vec<u64>,
    num_rows: u64,
    files: Vec<PathBuf>,
    header: Option<bool>,
}

impl Sample {
    /// Draws rows from all files in one pass. `on_rows` is called for every piece, with its file, its rows, and the
    /// fraction of the file that has been read.
    ///
    /// # Errors
    /// A file cannot be read, has no rows, or has other columns than the files before it.
    pub fn draw(
        files: &[PathBuf],
        options: &SampleOptions,
        on_rows: &mut dyn FnMut(&Path, usize, Option<f64>),
    ) -> Result<Self, DataError> {
        let (is_large, bytes) = (options.are_large(files)?, total_bytes(files)?);
        let stream =
            StreamOptions { header: options.header, keep_text: false, ..StreamOptions::default() };
        let mut rng = options.rng();
        let (mut drawn, mut num_rows, mut first) = (Drawn::new(), 0, None);
        for path in files {
            let mut stream = TableStream::untyped(path, &stream)?;
            while let Some(piece) = stream.next() {
                let mut piece = piece?;
                let first = first.get_or_insert_with(|| piece.select_rows(&[]));
                if is_large {
                    drawn.most = options.most(first.num_columns());
                }
                piece = piece.arranged_as(first).map_err(|e| in_file(path, 0, e))?;
                drawn.add(&piece, num_rows, &mut rng);
                num_rows += piece.num_rows() as u64;
                if !is_large {
                    // A few bytes of gzip or Parquet can contain many rows.
                    let cells = u128::from(num_rows) * first.num_columns() as u128;
                    let checked =
                        memory::check("a table", cells * u128::from(BYTES_PER_CELL), bytes);
                    let file = file::name(path);
                    checked.map_err(|source| DataError::Memory { file, source })?;
                }
                on_rows(path, piece.num_rows(), stream.share());
            }
        }
        let (mut table, places) = drawn.finish().ok_or(DataError::NoRows)?;
        if files.iter().all(|path| TableFormat::of(path) == TableFormat::Csv) {
            // Infer the types from the sampled rows, as from a file with only these rows.
            let delimiter = table.layout().delimiter;
            let csv = CsvOptions {
                delimiter: Some(delimiter),
                header: Some(true),
                ..CsvOptions::default()
            };
            table = table.with_layout(CsvLayout { delimiter, ..CsvLayout::default() });
            let name = match files {
                [only] => file::name(only),
                _ => format!("{} and others", file::name(&files[0])),
            };
            table = Table::from_csv_bytes(&table.to_csv(), &name, &csv)?;
        }
        Ok(Self { table, places, num_rows, files: files.to_vec(), header: options.header })
    }

    /// A sample that consists of a whole table in memory.
    pub fn whole(table: Table) -> Self {
        let num_rows = table.num_rows() as u64;
        Self { table, places: (0..num_rows).collect(), num_rows, files: Vec::new(), header: None }
    }

    /// The positions of the rows that [`draw`](Self::draw) takes from a large table with this many rows and columns, in
    /// ascending order.
    pub fn places_in(num_rows: u64, num_columns: usize, options: &SampleOptions) -> Vec<u64> {
        let (most, mut rng) = (options.most(num_columns), options.rng());
        let (mut rows, mut limit) = (Vec::new(), u64::MAX);
        for place in 0..num_rows {
            let number = rng.random();
            if number <= limit {
                rows.push(Row { place, number });
            }
            if rows.len() > 2 * most || (place + 1 == num_rows && rows.len() > most) {
                limit = rows.select_nth_unstable_by_key(most - 1, |row| row.number).1.number;
                rows.retain(|row| row.number <= limit);
            }
        }
        let mut places: Vec<u64> = rows.into_iter().map(|row| row.place).collect();
        places.sort_unstable();
        places
    }

    /// A sample of a table that is held elsewhere, with the rows at [`places_in`](Self::places_in), for
    /// [`Fit::workers`](crate::Fit::workers).
    ///
    /// # Panics
    /// If there is not one position per row, in ascending order and below the number of rows.
    pub fn of_places(table: Table, places: Vec<u64>, num_rows: u64) -> Self {
        assert_eq!(table.num_rows(), places.len(), "one place for each row");
        let is_sorted = places.is_sorted_by(|a, b| a < b);
        assert!(is_sorted && places.last().is_none_or(|&last| last < num_rows), "places in order");
        Self { table, places, num_rows, files: Vec::new(), header: None }
    }

    /// The sampled rows.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Replaces the table of the sample, for example by one without some columns.
    ///
    /// # Errors
    /// `change` fails.
    ///
    /// # Panics
    /// If the number of rows changes.
    pub fn with_table<E>(self, change: impl FnOnce(Table) -> Result<Table, E>) -> Result<Self, E> {
        let table = change(self.table)?;
        assert_eq!(table.num_rows(), self.places.len(), "a table of the same rows");
        Ok(Self { table, ..self })
    }

    /// Whether these are all rows of the files.
    pub fn is_whole(&self) -> bool {
        self.places.len() as u64 == self.num_rows
    }

    /// The total number of rows in the files.
    pub fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// The positions of the rows among all rows of the files.
    pub(crate) fn places(&self) -> &[u64] {
        &self.places
    }

    /// Reads all rows of the files in pieces, each with the number of preceding rows. `weights` is a column with numbers
    /// that the schema does not have.
    pub(crate) fn read_all<E: From<DataError>>(
        &self,
        schema: &Schema,
        weights: Option<&str>,
        on_rows: &mut dyn FnMut(&Path, usize, Option<f64>),
        work: &mut dyn FnMut(&Table, u64) -> Result<(), E>,
        in_place: impl Fn(&Path, usize, E) -> E,
    ) -> Result<(), E> {
        let stream =
            StreamOptions { header: self.header, keep_text: false, ..StreamOptions::default() };
        let weights = weights.map(|name| self.table.column(name)).transpose()?;
        let mut before = 0;
        for path in &self.files {
            let mut rows = 0;
            let mut stream = TableStream::open_with(path, schema, weights, &stream)?;
            while let Some(piece) = stream.next() {
                let piece = piece?;
                work(&piece, before).map_err(|e| in_place(path, rows, e))?;
                rows += piece.num_rows();
                before += piece.num_rows() as u64;
                on_rows(path, piece.num_rows(), stream.share());
            }
        }
        Ok(())
    }
}

/// Adds the file to an error about rows that follow `rows` others.
pub(crate) fn in_file(path: &Path, rows: usize, error: DataError) -> DataError {
    DataError::InFile { file: file::name(path), source: Box::new(error.after(rows)) }
}

/// A running sample: of all rows so far, those with the smallest random numbers.
struct Drawn {
    parts: Vec<(Table, Vec<Row>)>,
    rows: usize,
    most: usize,
    /// Rows with larger random numbers are not in the sample.
    limit: u64,
}

/// The position of a row, and its random number.
#[derive(Clone, Copy)]
struct Row {
    place: u64,
    number: u64,
}

impl Drawn {
    fn new() -> Self {
        Self { parts: Vec::new(), rows: 0, most: usize::MAX, limit: u64::MAX }
    }

    /// Adds rows, preceded by `before` others.
    fn add(&mut self, table: &Table, before: u64, rng: &mut ChaCha8Rng) {
        let rows =
            (0..table.num_rows() as u64).map(|n| Row { place: before + n, number: rng.random() });
        self.parts.push(chosen(table, &rows.collect::<Vec<_>>(), self.limit));
        self.rows += self.parts.last().map_or(0, |(_, rows)| rows.len());
        if self.rows > self.most.saturating_add(self.most / 2) {
            self.shrink();
        }
    }

    /// Drops excess rows, and merges the rest into one table.
    fn shrink(&mut self) {
        if self.rows > self.most {
            let mut numbers: Vec<u64> =
                self.parts.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.number)).collect();
            self.limit = *numbers.select_nth_unstable(self.most - 1).1;
        }
        let parts: Vec<_> =
            self.parts.iter().map(|(t, rows)| chosen(t, rows, self.limit)).collect();
        let all: Vec<Vec<usize>> =
            parts.iter().map(|(_, rows)| (0..rows.len()).collect()).collect();
        let tables: Vec<(&Table, &[usize])> =
            parts.iter().zip(&all).map(|((table, _), all)| (table, &all[..])).collect();
        let Some(table) = Table::gathered(&tables) else { return };
        let rows: Vec<Row> = parts.iter().flat_map(|(_, rows)| rows.iter().copied()).collect();
        self.rows = rows.len();
        self.parts = vec![(table, rows)];
    }

    /// The sampled rows, and their positions.
    fn finish(mut self) -> Option<(Table, Vec<u64>)> {
        self.shrink();
        let (table, rows) = self.parts.pop()?;
        Some((table, rows.iter().map(|row| row.place).collect()))
    }
}

/// The rows of a table whose random numbers are at most the limit.
fn chosen(table: &Table, rows: &[Row], limit: u64) -> (Table, Vec<Row>) {
    let own: Vec<usize> = (0..rows.len()).filter(|&n| rows[n].number <= limit).collect();
    let table = Table::gathered(&[(table, &own[..])]).unwrap_or_else(|| table.select_rows(&own));
    (table, own.iter().map(|&n| rows[n]).collect())
}

impl Table {
    /// Reorders the columns to match those of another table, which must be the same.
    fn arranged_as(self, other: &Self) -> Result<Self, DataError> {
        let is_same = |(a, b): (&Column, &Column)| a.name() == b.name() && are_alike(a, b);
        if self.num_columns() == other.num_columns()
            && self.columns().iter().zip(other.columns()).all(is_same)
        {
            return Ok(self);
        }
        let names = |t: &Self| t.columns().iter().map(|c| c.name().to_owned()).collect::<Vec<_>>();
        let (expected, found) = (names(other), names(&self));
        let mut sorted = [expected.clone(), found.clone()];
        for names in &mut sorted {
            names.sort_unstable();
        }
        if sorted[0] != sorted[1] {
            let [expected, found] = [expected, found].map(|names| names.join(", "));
            return Err(DataError::UnlikeColumns { expected, found });
        }
        let mut columns = Vec::with_capacity(expected.len());
        for (name, like) in expected.into_iter().zip(other.columns()) {
            let column = self.column(&name)?;
            if !are_alike(column, like) {
                let [found, expected] = [column, like].map(words);
                return Err(DataError::UnlikeCells { column: name, expected, found });
            }
            columns.push(column.clone());
        }
        self.with_columns(columns)
    }
}

/// Whether both columns contain text, or both contain numbers.
fn are_alike(a: &Column, b: &Column) -> bool {
    matches!(a.cells(), Cells::Labels(_)) == matches!(b.cells(), Cells::Labels(_))
}

fn words(column: &Column) -> &'static str {
    match column.cells() {
        Cells::Numbers(_) | Cells::Integers(_) => "numbers",
        Cells::Labels(_) => "text",
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn draw(files: &[PathBuf], options: &SampleOptions) -> Result<Sample, DataError> {
        Sample::draw(files, options, &mut |_, _, _| {})
    }

    /// Writes row numbers, their halves, and words to files with this many rows.
    fn written(folder: &Path, sizes: &[usize]) -> Vec<PathBuf> {
        let mut n = 0;
        let mut files = Vec::new();
        for (k, size) in sizes.iter().enumerate() {
            // Columns may have any order.
            let mut text = String::from(if k % 2 == 0 { "n,half,word\n" } else { "word,half,n\n" });
            for _ in 0..*size {
                let (half, word) = (f64::from(n) / 2.0, ["a", "b\"c", "NA", "d,e"][n as usize % 4]);
                let word = format!("\"{}\"", word.replace('"', "\"\""));
                let _ = if k % 2 == 0 {
                    writeln!(text, "{n},{half},{word}")
                } else {
                    writeln!(text, "{word},{half},{n}")
                };
                n += 1;
            }
            files.push(folder.join(format!("{k}.csv")));
            fs::write(&files[k], text).unwrap();
        }
        files
    }

    #[test]
    fn small_files_are_one_table() {
        let folder = tempfile::tempdir().unwrap();
        let files = written(folder.path(), &[30, 1, 20]);
        let sample = draw(&files, &SampleOptions::default()).unwrap();
        assert!(sample.is_whole() && sample.num_rows() == 51);
        let first = Table::read_csv(&files[0], &CsvOptions::default()).unwrap();
        let rows: Vec<usize> = (0..30).collect();
        let taken = sample.table().select_rows(&rows);
        for name in ["n", "half", "word"] {
            let [a, b] = [&taken, &first].map(|t| t.column(name).unwrap());
            assert!((0..30).all(|row| a.text(row) == b.text(row) || a.is_missing(row) && b.is_missing(row)));
        }
        assert_eq!(sample.table().column("n").unwrap().number(50), Some(50.0));
    }

    #[test]
    fn samples_are_rows_drawn_alike_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let files = written(folder.path(), &[4000, 3000, 3000]);
        let mut counts = [0; 10];
        for seed in 0..40 {
            // With 3 columns, that is 500 rows.
            let options = SampleOptions {
                memory: 500 * 3 * BYTES_PER_CELL,
                seed,
                ..SampleOptions::default()
            };
            let sample = draw(&files, &options).unwrap();
            assert_eq!((sample.table().num_rows(), sample.num_rows()), (500, 10_000));
            let column = sample.table().column("n").unwrap();
            for (row, &place) in sample.places().iter().enumerate() {
                assert_eq!(column.number(row), Some(place as f64));
                counts[place as usize / 1000] += 1;
            }
            assert!(sample.places().windows(2).all(|pair| pair[0] < pair[1]));
            if seed == 0 {
                let again = draw(&files, &options).unwrap();
                assert_eq!(again.table(), sample.table());
                assert_eq!(Sample::places_in(10_000, 3, &options), sample.places());
                assert!(Sample::places_in(300, 3, &options).into_iter().eq(0..300));
            }
        }
        // 2000 each, ± 42.
        assert!(counts.iter().all(|count: &i32| (count - 2000).abs() < 250), "{counts:?}");
    }

    #[test]
    fn files_that_do_not_go_together_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = written(folder.path(), &[9, 9]);
        let words =
            |files: &[PathBuf]| draw(files, &SampleOptions::default()).unwrap_err().to_string();
        fs::write(&files[1], "n,half,other\n1,2,3\n").unwrap();
        let text = words(&files);
        assert!(text.contains("1.csv': its columns are n, half, other"), "{text}");
        fs::write(&files[1], "").unwrap();
        assert!(words(&files).contains("1.csv' is empty"));
        files[1] = folder.path().join("none.csv");
        assert!(words(&files).contains("none.csv"));
        #[cfg(feature = "parquet")]
        {
            let path = |name: &str| folder.path().join(name);
            let table = |column: Column| Table::new(vec![column]).unwrap();
            table(Column::numbers("x", vec![1.0])).write_parquet(path("a.parquet")).unwrap();
            table(Column::integers("x", [Some(2)])).write_parquet(path("b.parquet")).unwrap();
            table(Column::labels("x", [Some("c")])).write_parquet(path("c.parquet")).unwrap();
            let sample =
                draw(&[path("a.parquet"), path("b.parquet")], &SampleOptions::default()).unwrap();
            assert_eq!(sample.table().column("x").unwrap().number(1), Some(2.0));
            let text = words(&[path("a.parquet"), path("c.parquet")]);
            assert!(text.contains("c.parquet': column 'x' contains text"), "{text}");
        }
    }
}

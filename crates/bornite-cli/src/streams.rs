//! Reads, processes and writes tables piece by piece, in bounded memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow, bail};
use bornite::Model;
use bornite::data::{
    Column, DataError, StreamOptions, Table, TableFormat, TableStream, TableWriter, write_table,
};
use bornite::model::ModelError;
use serde_json::Value;

use crate::output::{json_cell, plural, printable};
use crate::progress::RowsBar;
use crate::tables::{self, Reading};

/// The bytes of a piece, of one where rows take much memory, and of one for a device that is fast with many rows.
///
/// Every thread has its own heap, and which of them holds a column of a piece is a matter of chance. So in the end, each
/// of them has grown to the size of a whole piece: the memory of a stream is several times that of its largest piece.
const PIECE: usize = 1 << 19;
const SMALL_PIECE: usize = 1 << 18;
const LARGE_PIECE: usize = 1 << 23;

/// The tables that a command reads, as arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Inputs {
    /// The tables: files, or quoted patterns such as 'part-*.parquet'; - is standard input.
    #[arg(value_name = "TABLE", required = true)]
    pub(crate) tables: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

impl Inputs {
    /// Whether there is exactly one file.
    pub(crate) fn is_one(&self) -> bool {
        matches!(&self.tables[..], [only] if only.exists() || only == Path::new("-"))
    }
}

/// The flags for where a command writes a table.
#[derive(Debug, clap::Args)]
pub(crate) struct Outputs {
    /// The file to write; - is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write one output file per table into this folder, with the same name.
    #[arg(long, value_name = "FOLDER", conflicts_with = "output")]
    pub(crate) out_dir: Option<PathBuf>,
    /// Keep the output files that are already in the folder, and continue with the others.
    #[arg(long, requires = "out_dir", conflicts_with = "force")]
    resume: bool,
    /// Overwrite inputs and existing output files.
    #[arg(long)]
    force: bool,
}

/// The destination of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    Standard { json: bool },
    File(&'a Path),
    Folder(&'a Path),
    Nothing,
}

impl<'a> Target<'a> {
    /// The file or folder; `None` for standard output and nothing.
    pub(crate) fn path(self) -> Option<&'a Path> {
        match self {
            Target::File(path) | Target::Folder(path) => Some(path),
            Target::Standard { .. } | Target::Nothing => None,
        }
    }
}

impl Outputs {
    /// The destination: standard output by default.
    pub(crate) fn target(&self, json: bool) -> Target<'_> {
        match (&self.out_dir, self.output.as_deref()) {
            (Some(folder), _) => Target::Folder(folder),
            (None, Some(path)) if path != Path::new("-") => Target::File(path),
            (None, _) => Target::Standard { json },
        }
    }

    /// Rejects an output that cannot be written, or that is one of these inputs.
    pub(crate) fn check(&self, path: &Path, inputs: &[&Path]) -> Result<()> {
        tables::check_target(path, inputs, self.force)
    }

    /// The paths of the parts with these names. Creates the folder if it does not exist.
    pub(crate) fn parts(
        &self,
        folder: &Path,
        names: &[String],
        inputs: &[&Path],
    ) -> Result<Vec<PathBuf>> {
        fs::create_dir_all(folder).map_err(|e| {
            anyhow!("{}: cannot create the folder: {e}; choose another name", folder.display())
        })?;
        let parts: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        for part in &parts {
            self.check(part, inputs)?;
            if part.exists() && !self.resume && !self.force {
                bail!(
                    "{}: this file already exists; --resume keeps it and continues with the others, --force overwrites it",
                    part.display()
                );
            }
        }
        Ok(parts)
    }

    /// Whether an existing part is kept.
    pub(crate) fn keeps(&self, part: &Path) -> bool {
        self.resume && part.exists()
    }
}

/// Adds the number of finished parts to an error.
pub(crate) fn with_parts(error: Error, finished: usize) -> Error {
    if finished == 0 {
        return error;
    }
    let text = error.to_string();
    let finished = plural(finished, "part");
    error.context(format!("{text}\nhint: {finished} finished; --resume continues"))
}

/// Rows of a table to process.
pub(crate) struct Piece<'a> {
    pub(crate) table: &'a Table,
    /// The number of output rows that precede them, and the seed of the output.
    pub(crate) start: u64,
    pub(crate) seed: u64,
    /// The file that they come from, and the number of its rows that precede them.
    pub(crate) file: &'a Path,
    pub(crate) file_rows: usize,
}

/// The result of processing tables.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The number of rows read.
    pub(crate) rows: usize,
    /// For an output in parts, the number of parts written and the number that existed already.
    pub(crate) parts: Option<(usize, usize)>,
}

impl Done {
    /// Prints `wrote full.csv: 3 rows`, followed by `more`.
    pub(crate) fn say(&self, target: Target<'_>, more: &str, out: &mut dyn Write) -> Result<()> {
        let rows = plural(self.rows, "row");
        match (target, self.parts) {
            (Target::File(path), _) => writeln!(out, "wrote {}: {rows}{more}", path.display())?,
            (Target::Folder(path), Some((written, kept))) => {
                let parts = plural(written, "part");
                let kept = match kept {
                    0 => String::new(),
                    n => format!("; {} already done", plural(n, "part")),
                };
                writeln!(out, "wrote {parts} to {}: {rows}{more}{kept}", path.display())?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// What to write, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing<'a> {
    /// The model, which must not be overwritten.
    pub(crate) model: &'a Path,
    pub(crate) outputs: &'a Outputs,
    pub(crate) target: Target<'a>,
    pub(crate) seed: u64,
}

/// Processes tables piece by piece.
pub(crate) struct Stream<'a> {
    model: &'a Model,
    files: Vec<PathBuf>,
    options: StreamOptions,
    words: &'static str,
    /// Whether notes about the first file have been printed.
    noted: RefCell<bool>,
}

/// Computes output rows from the rows of a table.
type Work<'w> = dyn FnMut(&Piece<'_>) -> Result<Option<Table>> + 'w;
/// Fields of a JSON object after its rows.
pub(crate) type Tail<'t> = dyn Fn() -> Vec<(&'static str, Value)> + 't;

impl<'a> Stream<'a> {
    pub(crate) fn new(
        model: &'a Model,
        patterns: &[PathBuf],
        reading: &Reading,
        words: &'static str,
    ) -> Result<Self> {
        let files = expand(patterns)?;
        let options =
            StreamOptions { header: reading.header(), piece: PIECE, ..StreamOptions::default() };
        Ok(Self { model, files, options, words, noted: RefCell::new(false) })
    }

    /// For processing that needs much memory per row: smaller pieces.
    pub(crate) fn in_small_pieces(mut self) -> Self {
        self.options.piece = SMALL_PIECE;
        self
    }

    /// For processing on a device: larger pieces.
    pub(crate) fn in_large_pieces(mut self) -> Self {
        self.options.piece = LARGE_PIECE;
        self
    }

    /// For processing that does not need the text of cells.
    pub(crate) fn without_text(mut self) -> Self {
        self.options.keep_text = false;
        self
    }

    /// Reads all tables.
    pub(crate) fn read(&self, work: &mut Work<'_>) -> Result<Done> {
        let mut bar = RowsBar::new(self.words, self.files.len());
        self.all(&mut bar, 0, work, &mut |_| Ok(()))
    }

    /// Reads all tables and writes the results.
    pub(crate) fn write(
        &self,
        writing: Writing<'_>,
        out: &mut dyn Write,
        tail: &Tail<'_>,
        work: &mut Work<'_>,
    ) -> Result<Done> {
        let mut bar = RowsBar::new(self.words, self.files.len());
        let seed = writing.seed;
        match writing.target {
            Target::Nothing => self.all(&mut bar, seed, work, &mut |_| Ok(())),
            Target::Standard { json } => {
                let mut sink = Sink::new(out, json);
                let done = self.all(&mut bar, seed, work, &mut |table| sink.write(table))?;
                sink.finish(&tail())?;
                Ok(done)
            }
            Target::File(path) => {
                tables::check_target(path, &self.inputs(writing.model), writing.outputs.force)?;
                write_table(path, |writer| {
                    let mut put = |table: &Table| Ok(writer.write(table)?);
                    self.all(&mut bar, seed, work, &mut put).map_err(Failed)
                })
                .map_err(|Failed(error)| error)
            }
            Target::Folder(folder) => self.parts(&mut bar, folder, writing, work),
        }
    }

    /// The files that must not be overwritten.
    fn inputs<'p>(&'p self, model: &'p Path) -> Vec<&'p Path> {
        std::iter::once(model).chain(self.files.iter().map(PathBuf::as_path)).collect()
    }

    /// One part for each table.
    fn parts(
        &self,
        bar: &mut RowsBar,
        folder: &Path,
        Writing { model, outputs, seed, .. }: Writing<'_>,
        work: &mut Work<'_>,
    ) -> Result<Done> {
        let names = part_names(&self.files)?;
        let parts = outputs.parts(folder, &names, &self.inputs(model))?;
        let (mut rows, mut written, mut kept) = (0, 0, 0);
        for ((file, part), name) in self.files.iter().zip(&parts).zip(&names) {
            if outputs.keeps(part) {
                kept += 1;
                bar.end_file();
                continue;
            }
            let result = write_table(part, |writer| {
                let (mut start, seed) = (0, part_seed(seed, name));
                let mut put = |table: &Table| Ok(writer.write(table)?);
                self.file(bar, file, &mut start, seed, work, &mut put).map_err(Failed)
            });
            rows += result.map_err(|Failed(error)| with_parts(error, written + kept))?;
            written += 1;
        }
        Ok(Done { rows, parts: Some((written, kept)) })
    }

    /// Processes all tables in sequence.
    fn all(
        &self,
        bar: &mut RowsBar,
        seed: u64,
        work: &mut Work<'_>,
        put: &mut dyn FnMut(&Table) -> Result<()>,
    ) -> Result<Done> {
        let (mut start, mut rows) = (0, 0);
        for file in &self.files {
            rows += self.file(bar, file, &mut start, seed, work, put)?;
        }
        Ok(Done { rows, parts: None })
    }

    /// Processes one table and returns its number of rows.
    fn file(
        &self,
        bar: &mut RowsBar,
        file: &Path,
        start: &mut u64,
        seed: u64,
        work: &mut Work<'_>,
        put: &mut dyn FnMut(&Table) -> Result<()>,
    ) -> Result<usize> {
        let mut stream = TableStream::open(file, self.model.schema(), &self.options)?;
        let mut rows = 0;
        while let Some(table) = stream.next() {
            let table = table?;
            if rows == 0 {
                self.note(file, &table);
            }
            let piece = Piece { table: &table, start: *start, seed, file, file_rows: rows };
            let made = work(&piece).map_err(|error| located(error, stream.name(), rows))?;
            if let Some(made) = made {
                put(&made).map_err(|error| located(error, stream.name(), rows))?;
            }
            rows += table.num_rows();
            *start += table.num_rows() as u64;
            bar.add(table.num_rows(), stream.share());
        }
        if rows == 0 {
            bail!("{}: the table has no rows", stream.name());
        }
        bar.end_file();
        Ok(rows)
    }

    /// Prints how a CSV file was interpreted if that is not obvious.
    fn note(&self, file: &Path, table: &Table) {
        let is_csv = TableFormat::of(file) == TableFormat::Csv;
        if is_csv && !self.noted.replace(true) {
            tables::print_csv_notes(file, table, self.options.header.is_none());
        }
    }
}

/// An error from processing or from the file system.
pub(crate) struct Failed(pub(crate) Error);

impl From<DataError> for Failed {
    fn from(error: DataError) -> Self {
        Self(error.into())
    }
}

/// An error that names the file and its row.
fn located(error: Error, file: &str, rows: usize) -> Error {
    if error.is::<io::Error>() {
        // From standard output.
        return error;
    }
    let error = match error.downcast::<ModelError>() {
        Ok(error) => error.after(rows).into(),
        Err(error) => match error.downcast::<DataError>() {
            Ok(error) => error.after(rows).into(),
            Err(error) => error,
        },
    };
    let text = error.to_string();
    if text.contains(file) { error } else { error.context(format!("{file}: {text}")) }
}

/// Expands names and patterns into files; the files of a pattern are sorted.
pub(crate) fn expand(patterns: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for pattern in patterns {
        let text = pattern.to_string_lossy();
        if pattern == Path::new("-") {
            if files.contains(pattern) {
                bail!("-: standard input can be read only once");
            }
            files.push(pattern.clone());
            continue;
        }
        if pattern.exists() || !text.contains(['*', '?', '[']) {
            // Find out now whether it can be read, not after hours of work.
            let found = fs::File::open(pattern).and_then(|file| file.metadata());
            let found = found.map_err(|e| anyhow!("cannot read '{}': {e}", pattern.display()))?;
            if found.is_dir() {
                bail!(
                    "{}: this is a folder; name its files, such as '{}'",
                    pattern.display(),
                    pattern.join("*.parquet").display()
                );
            }
            files.push(pattern.clone());
            continue;
        }
        let found = glob::glob(&text).map_err(|e| anyhow!("{text}: {e}"))?;
        let mut found: Vec<PathBuf> = found.collect::<Result<_, _>>()?;
        found.retain(|path| path.is_file());
        if found.is_empty() {
            bail!("{text}: no such file");
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

/// The names of the output files: those of the tables, with `.csv` appended if their format cannot be written.
fn part_names(files: &[PathBuf]) -> Result<Vec<String>> {
    distinct_names(files, |file| match TableFormat::of(file) {
        TableFormat::Npz | TableFormat::Idx => ".csv",
        TableFormat::Csv | TableFormat::Npy | TableFormat::Parquet => "",
    })
}

/// The names of the files, each with a suffix. They must all be different.
pub(crate) fn distinct_names(
    files: &[PathBuf],
    suffix: impl Fn(&Path) -> &'static str,
) -> Result<Vec<String>> {
    let mut names = Vec::with_capacity(files.len());
    let mut taken: BTreeMap<String, &Path> = BTreeMap::new();
    for file in files {
        let Some(name) = file.file_name().filter(|_| file != Path::new("-")) else {
            bail!("{}: there is no name for the output file; use -o", file.display());
        };
        let name = name.to_string_lossy().into_owned() + suffix(file);
        if let Some(first) = taken.insert(name.clone(), file) {
            bail!(
                "{} and {} would both become {name}; write them to separate folders",
                first.display(),
                file.display()
            );
        }
        names.push(name);
    }
    Ok(names)
}

/// The seed of a part. It depends on the part's name but not on the other parts.
fn part_seed(seed: u64, name: &str) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    seed ^ name.bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

/// Rows on standard output.
pub(crate) enum Sink<'o> {
    Csv(Box<TableWriter<&'o mut dyn Write>>),
    Json { out: &'o mut dyn Write, is_first: bool },
}

impl<'o> Sink<'o> {
    pub(crate) fn new(out: &'o mut dyn Write, json: bool) -> Self {
        if json {
            Self::Json { out, is_first: true }
        } else {
            Self::Csv(Box::new(TableWriter::new(out, TableFormat::Csv)))
        }
    }

    pub(crate) fn write(&mut self, table: &Table) -> Result<()> {
        match self {
            Self::Csv(writer) => writer.write(table).map_err(of_output),
            Self::Json { out, is_first } => {
                let mut text = String::new();
                if std::mem::take(is_first) {
                    let names: Vec<&str> = table.columns().iter().map(Column::name).collect();
                    text = format!("{{\"columns\":{},\"rows\":[", serde_json::to_string(&names)?);
                } else {
                    text.push(',');
                }
                for row in 0..table.num_rows() {
                    let cells = table.columns().iter().map(|column| json_cell(column, row));
                    let cells: Vec<Value> = cells.collect();
                    text.push_str(if row > 0 { "," } else { "" });
                    text.push_str(&serde_json::to_string(&cells)?);
                }
                Ok(out.write_all(text.as_bytes())?)
            }
        }
    }

    pub(crate) fn finish(self, tail: &[(&'static str, Value)]) -> Result<()> {
        match self {
            Self::Csv(writer) => writer.finish().map_err(of_output),
            Self::Json { out, .. } => {
                write!(out, "]")?;
                for (name, value) in tail {
                    write!(out, ",\"{name}\":{}", serde_json::to_string(value)?)?;
                }
                Ok(writeln!(out, "}}")?)
            }
        }
    }
}

/// An error from standard output.
fn of_output(error: DataError) -> Error {
    match error {
        DataError::Io { source, .. } => source.into(),
        other => other.into(),
    }
}

/// Prints on standard error which columns the tables do not have.
pub(crate) fn note_absent(names: &[String]) {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let _ = writeln!(
        io::stderr(),
        "note: the table has no {} {}: treated as missing in every row",
        if names.len() == 1 { "column" } else { "columns" },
        printable(&quoted.join(", "))
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_names_and_seeds_of_their_own() {
        let names = |files: &[&str]| {
            part_names(&files.iter().map(PathBuf::from).collect::<Vec<_>>())
                .map_err(|e| e.to_string())
        };
        let found = names(&["a/x.csv.gz", "b/y.parquet", "c/images-idx3-ubyte.gz"]).unwrap();
        assert_eq!(found, ["x.csv.gz", "y.parquet", "images-idx3-ubyte.gz.csv"]);
        assert!(names(&["a/x.csv", "b/x.csv"]).unwrap_err().contains("b/x.csv"));
        assert!(names(&["-"]).is_err());
        assert_ne!(part_seed(0, "x"), part_seed(0, "y"));
        assert_ne!(part_seed(0, "x"), part_seed(1, "x"));
    }
}

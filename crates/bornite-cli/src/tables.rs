//! Reading and writing tables and models.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use bornite::Model;
use bornite::data::{Cells, Column, CsvOptions, Table, TableFormat};

use crate::output::printable;

/// The flags for reading CSV, shared by every command that reads a table.
#[derive(Debug, clap::Args)]
pub(crate) struct Reading {
    /// Treat the first line of CSV files as the header. By default this is detected.
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// Treat the first line of CSV files as a row; the columns are named x0, x1, …
    #[arg(long)]
    no_header: bool,
}

impl Reading {
    /// Whether the first line is a header, if a flag says so.
    pub(crate) fn header(&self) -> Option<bool> {
        (self.header || self.no_header).then_some(self.header)
    }

    /// Reads a table: NPY, NPZ, Parquet or IDX, depending on its name; otherwise CSV.
    pub(crate) fn table(&self, path: &Path) -> Result<Table> {
        Ok(match TableFormat::of(path) {
            TableFormat::Npy => Table::read_npy(path)?,
            TableFormat::Npz => Table::read_npz(path, None)?,
            TableFormat::Parquet => Table::read_parquet(path)?,
            TableFormat::Idx => Table::read_idx(path)?,
            TableFormat::Csv => self.csv(path)?,
        })
    }

    /// Reads CSV, and prints how its first line was interpreted if that is not obvious.
    fn csv(&self, path: &Path) -> Result<Table> {
        let options = CsvOptions { header: self.header(), ..CsvOptions::default() };
        let table = if path == Path::new("-") {
            Table::read_csv_from(io::stdin().lock(), "standard input", &options)?
        } else {
            Table::read_csv(path, &options)?
        };
        print_csv_notes(path, &table, self.header().is_none());
        Ok(table)
    }
}

/// Prints on standard error how a CSV file was interpreted if that is not obvious: its numbers, and its first line unless
/// a flag says what that is.
pub(crate) fn print_csv_notes(path: &Path, table: &Table, is_detected: bool) {
    let on_header = if is_detected { header_note(table) } else { None };
    for words in [comma_note(table), thousands_note(table), on_header].into_iter().flatten() {
        let note = printable(&format!("note: {}: {words}", path.display()));
        let _ = writeln!(io::stderr(), "{note}");
    }
}

/// A note that numbers have decimal commas, if they do.
fn comma_note(table: &Table) -> Option<String> {
    let has_comma = |c: &&Column| matches!(c.cells(), Cells::Numbers(n) if n.format().has_comma());
    let column = table.columns().iter().find(has_comma)?;
    Some(format!("numbers are read with decimal commas, as in column '{}'", column.name()))
}

/// A note that numbers have separators between thousands, if they do.
fn thousands_note(table: &Table) -> Option<String> {
    let format = |c: &Column| match c.cells() {
        Cells::Numbers(n) => Some(n.format()).filter(|format| format.is_grouped()),
        Cells::Integers(_) | Cells::Labels(_) => None,
    };
    let (column, format) = table.columns().iter().find_map(|c| Some((c, format(c)?)))?;
    let (name, written) = (column.name(), format.write(12345.0));
    Some(format!(
        "numbers are read with thousands separators, as in column '{name}': {written} is 12345"
    ))
}

/// How the first line of a table was interpreted, if there is no header or if it contains numbers.
fn header_note(table: &Table) -> Option<String> {
    let names: Vec<&str> = table.columns().iter().map(Column::name).collect();
    if !table.layout().header {
        let last = names.len() - 1;
        let named = if last == 0 { "is x0".to_owned() } else { format!("are x0 to x{last}") };
        return Some(format!(
            "the first line is read as a row, and the columns {named}; use --header if it is a header"
        ));
    }
    let number = names.iter().find(|name| name.parse::<f64>().is_ok_and(f64::is_finite))?;
    Some(format!(
        "the first line is read as the header, including '{number}'; use --no-header if it is a row"
    ))
}

/// The columns of a table that are listed in `texts`, each one name or several separated by commas.
pub(crate) fn named(table: &Table, texts: &[String]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for text in texts {
        if table.column(text).is_ok() {
            names.insert(text.clone());
            continue;
        }
        for name in text.split(',').map(str::trim) {
            table.column(name)?;
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

/// A table without these columns; each text is one name or several separated by commas.
pub(crate) fn without(table: Table, columns: &[String]) -> Result<Table> {
    let dropped = named(&table, columns)?;
    if dropped.is_empty() {
        return Ok(table);
    }
    let is_kept = |c: &&Column| !dropped.contains(c.name());
    let kept: Vec<Column> = table.columns().iter().filter(is_kept).cloned().collect();
    if kept.is_empty() {
        bail!("--drop leaves no column; keep at least two");
    }
    Ok(table.with_columns(kept)?)
}

/// Writes a table, completely or not at all: NPY or Parquet depending on the name, otherwise CSV.
pub(crate) fn write(table: &Table, path: &Path) -> Result<()> {
    let is = |kind: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(kind));
    if is("npy") {
        table.write_npy(path)?;
    } else if is("parquet") {
        table.write_parquet(path)?;
    } else {
        table.write_csv(path)?;
    }
    Ok(())
}

/// Reads a model file.
pub(crate) fn model(path: &Path) -> Result<Model> {
    Model::load(path).map_err(|e| match e {
        e if e.is_not_a_model() => {
            anyhow!("{e}; fit a model with 'bornite fit', or use 'bornite circuit'")
        }
        e => e.into(),
    })
}

/// Rejects an output that cannot be written, before any work is done, or that is also an input.
pub(crate) fn check_target(path: &Path, inputs: &[&Path], force: bool) -> Result<()> {
    let found = std::fs::metadata(path).ok();
    if found.as_ref().is_some_and(std::fs::Metadata::is_dir) {
        bail!("{}: this is a folder; give the name of a file", path.display());
    }
    if found.as_ref().is_some_and(|f| !f.is_file()) {
        // A device or a pipe exists already.
        return Ok(());
    }
    if !force && inputs.iter().any(|input| is_same_file(path, input)) {
        bail!("{}: this would overwrite an input; give another name, or --force", path.display());
    }
    let linked = std::fs::read_link(path).map(|to| path.parent().unwrap_or(path).join(to));
    let folder = match linked.as_deref().unwrap_or(path).parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let probe = tempfile::Builder::new().prefix(".bornite-").tempfile_in(folder);
    probe.map(drop).map_err(|e| {
        let e = e.to_string();
        // Without the name of the probe.
        let e = e.rsplit_once(" at path ").map_or(&e[..], |(reason, _)| reason);
        anyhow!(
            "{}: cannot write the file: {e}; does the folder exist, and can you write to it?",
            path.display()
        )
    })
}

/// Whether two names refer to the same file, through links of either kind, or will once it exists.
fn is_same_file(a: &Path, b: &Path) -> bool {
    if !a.exists() || !b.exists() {
        // Such as an output and a checkpoint of one name.
        return a.exists() == b.exists() && place(a).is_some_and(|a| Some(a) == place(b));
    }
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (std::fs::metadata(a), std::fs::metadata(b)) {
        use std::os::unix::fs::MetadataExt;
        return a.dev() == b.dev() && a.ino() == b.ino();
    }
    match (std::fs::canonicalize(a), std::fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// The folder and the name of a file that does not exist yet.
fn place(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = std::fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
    Some(folder.join(path.file_name()?))
}

/// The output flags, shared by every command that writes a file.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Overwrite inputs.
    #[arg(long)]
    pub(crate) force: bool,
}

impl Output {
    /// Rejects an output that cannot be written or is one of these inputs.
    pub(crate) fn check<'a>(&self, inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
        let inputs: Vec<&Path> = inputs.into_iter().map(PathBuf::as_path).collect();
        check_target(&self.output, &inputs, self.force)
    }
}

/// Reads `4G`, `512M`, `100K` or a number of bytes.
pub(crate) fn parse_bytes(text: &str) -> Result<u64> {
    let text = text.trim();
    let (digits, shift) = match text.chars().last().map(|c| c.to_ascii_uppercase()) {
        Some('K') => (&text[..text.len() - 1], 10),
        Some('M') => (&text[..text.len() - 1], 20),
        Some('G') => (&text[..text.len() - 1], 30),
        Some('T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    match digits.trim().parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => bail!("'{text}' is not an amount of memory; give one such as 512M or 16G"),
    }
}

/// Reads `90`, `90s`, `15m` or `2h`.
pub(crate) fn parse_time(text: &str) -> Result<Duration> {
    let text = text.trim();
    let (digits, factor) = match text.chars().last() {
        Some('s') => (&text[..text.len() - 1], 1.0),
        Some('m') => (&text[..text.len() - 1], 60.0),
        Some('h') => (&text[..text.len() - 1], 3600.0),
        _ => (text, 1.0),
    };
    match digits.trim().parse::<f64>() {
        Ok(x) if x > 0.0 && x * factor < 1e9 => Ok(Duration::from_secs_f64(x * factor)),
        _ => bail!(
            "'{text}' is not a duration; give seconds, minutes or hours, such as 60s, 15m or 2h"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_read() {
        assert_eq!(parse_bytes("512").unwrap(), 512);
        assert_eq!(parse_bytes("16G").unwrap(), 16 << 30);
        assert_eq!(parse_bytes("2m").unwrap(), 2 << 20);
        for bad in ["", "G", "-1", "0", "1.5G", "99999999T", "é"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_read() {
        assert_eq!(parse_time("90").unwrap(), Duration::from_secs(90));
        assert_eq!(parse_time("0.5h").unwrap(), Duration::from_secs(1800));
        assert_eq!(parse_time("2m").unwrap(), Duration::from_secs(120));
        for bad in ["", "s", "-1", "0", "1d", "1e99h", "é"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bornite::report::{self, circuit_html};
use clap::Args;
use serde::Serialize;

use crate::files::{self, Loaded};
use crate::output;
use crate::progress::busy;
use crate::tables;

/// Write an HTML report with all plots of a model and its interactive circuit.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite report people.model --data test.csv -o report.html
  bornite report digits.model --data t10k-images-idx3-ubyte.gz -o digits.html

The report is a single self-contained file. Marginals are compared with the rows of --data, and
calibration and anomalies are shown for them: use held-out rows. For a circuit file, the report
contains only the interactive circuit. With --json, prints {output, bytes}.")]
pub(crate) struct Report {
    /// The model or circuit file.
    model: PathBuf,
    #[command(flatten)]
    output: tables::Output,
    /// The table to show.
    #[arg(long, value_name = "TABLE")]
    data: Option<PathBuf>,
    /// The title of the page [default: the file name].
    #[arg(long)]
    title: Option<String>,
    /// The random seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    reading: tables::Reading,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    output: &'a Path,
    bytes: usize,
}

impl Report {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = &self.output.output;
        self.output.check([&self.model].into_iter().chain(&self.data))?;
        let name = self.model.file_stem().unwrap_or_default().to_string_lossy();
        let title = self.title.as_deref().unwrap_or(&name);
        let page = match files::load_any(&self.model)? {
            Loaded::Model(model) => {
                let data = self.data.as_deref().map(|path| self.reading.table(path)).transpose()?;
                let report = report::Report::new(&model, data.as_ref(), self.seed)?;
                busy("drawing", || report.html(title))?
            }
            Loaded::Circuit(_) if self.data.is_some() => {
                bail!(
                    "{}: this is a circuit, which has no columns; remove --data",
                    self.model.display()
                )
            }
            Loaded::Circuit(circuit) => circuit_html(&files::into_orthonormal(circuit)?, title),
        };
        files::write_bytes(path, page.as_bytes())?;
        if self.json {
            return output::json(out, &Answer { output: path, bytes: page.len() });
        }
        let size = page.len().div_ceil(1000) as u128;
        writeln!(out, "wrote {}: {} kB", path.display(), output::grouped(size))?;
        Ok(())
    }
}

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bornite::model::Known;
use clap::Args;

use crate::output::plural;
use crate::tables;

/// Draw rows from a model, exactly.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite sample people.model -n 1000 -o new.csv
  bornite sample people.model -n 20 --given \"sex='F', age in [30, 40)\" --seed 7 -o women.csv
  bornite sample people.model -n 5

Writes CSV, or NPY where the name ends in .npy; without -o, or with -o -, CSV to the standard output.
The same seed gives the same rows.")]
pub(crate) struct Sample {
    /// The model file.
    model: PathBuf,
    /// The number of rows.
    #[arg(short = 'n', long = "number", value_name = "N", default_value_t = 1)]
    number: usize,
    /// What is known of the rows: column=value, column in [a, b), column in {a, b}, joined by commas.
    #[arg(long, value_name = "QUERY", default_value = "")]
    given: String,
    /// The seed of everything random.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The file to write; - is the standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// The most cells that are drawn at once.
const MAX_CELLS: usize = 1 << 30;

impl Sample {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = Some(&self.output).filter(|p| **p != Path::new("-"));
        if let Some(path) = path {
            tables::check_target(path)?;
        }
        let model = tables::model(&self.model)?;
        let columns = model.schema().columns().len();
        if self.number.checked_mul(columns).is_none_or(|cells| cells > MAX_CELLS) {
            bail!(
                "--number {}: rows of {columns} columns have more than {MAX_CELLS} cells; draw fewer at a time, with \
                 several seeds",
                self.number
            );
        }
        let known = Known::parse(model.schema(), &self.given)?;
        let rows = if self.given.trim().is_empty() {
            model.sample(self.number, self.seed)?
        } else {
            model.sample_given(&known, self.number, self.seed)?
        };
        let Some(path) = path else {
            out.write_all(&rows.to_csv())?;
            return Ok(());
        };
        tables::write(&rows, path)?;
        writeln!(out, "wrote {}: {}", path.display(), plural(self.number, "row"))?;
        Ok(())
    }
}

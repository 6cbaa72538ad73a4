use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use bornite::model::Imputation;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::output::{self, plural};
use crate::progress::busy;
use crate::tables;

/// Impute the missing values of a table.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite impute people.model people.csv -o full.csv
  bornite impute people.model people.csv --with sample --seed 7 -o draw7.csv

Each missing value is imputed given the observed cells of its row. Observed cells keep their text, and
columns unknown to the model are unchanged. For multiple imputation, use --with sample with several seeds.
With --json, prints {output, rows, cells}.")]
pub(crate) struct Impute {
    /// The model file.
    model: PathBuf,
    /// The table; empty cells, NA, NaN, null and ? are missing.
    table: PathBuf,
    #[command(flatten)]
    output: tables::Output,
    /// How to impute; text columns use the mode instead of a mean or median.
    #[arg(long, value_enum, default_value_t)]
    with: With,
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
struct Report<'a> {
    output: &'a Path,
    rows: usize,
    cells: usize,
}

/// What stands for a distribution.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum With {
    /// The mean, rounded to a valid value of the column.
    Mean,
    /// The most likely value.
    Mode,
    /// The median.
    #[default]
    Median,
    /// A joint sample of the missing values of a row.
    Sample,
}

impl From<With> for Imputation {
    fn from(with: With) -> Self {
        match with {
            With::Mean => Imputation::Mean,
            With::Mode => Imputation::Mode,
            With::Median => Imputation::Median,
            With::Sample => Imputation::Sample,
        }
    }
}

impl Impute {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = &self.output.output;
        self.output.check([&self.model, &self.table])?;
        let model = tables::model(&self.model)?;
        let table = self.reading.table(&self.table)?;
        let filled = busy("filling", || model.impute(&table, self.with.into(), self.seed))?;
        let missing = |t: &bornite::data::Table| {
            t.columns().iter().map(bornite::data::Column::num_missing).sum::<usize>()
        };
        let cells = missing(&table) - missing(&filled);
        tables::write(&filled, path)?;
        if self.json {
            return output::json(out, &Report { output: path, rows: table.num_rows(), cells });
        }
        writeln!(
            out,
            "wrote {}: {}, {} filled",
            path.display(),
            plural(table.num_rows(), "row"),
            plural(cells, "cell")
        )?;
        Ok(())
    }
}

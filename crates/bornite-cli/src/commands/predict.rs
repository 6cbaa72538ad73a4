use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bornite::data::{Column, Table};
use bornite::model::Predictions;
use clap::Args;
use serde::Serialize;

use super::impute::With;
use crate::output::{self, plural};
use crate::progress::busy;
use crate::tables;

/// Predict a column of a table from the other columns.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite predict houses.model new.csv --column price
  bornite predict houses.model new.csv --column price --interval 0.9 -o prices.csv
  bornite predict people.model new.csv --column income --proba -o income.csv

Writes one row for each row of the table: the median of a column of numbers, or the most likely
label, given the other cells. Missing values and missing columns are integrated out; cells of the
predicted column are ignored. With --interval, adds the ends of a central interval of this
probability, and with --proba the probability of every value. Writes CSV, or NPY or Parquet if the
name ends in .npy or .parquet. Without -o, or with -o -, prints CSV. With --json, prints {absent,
columns, rows: [[cell]]}, and with -o too {absent, output, rows}.")]
pub(crate) struct Predict {
    /// The model file.
    model: PathBuf,
    /// The table.
    table: PathBuf,
    /// The column to predict; by default the target that the model was fitted for.
    #[arg(short, long)]
    column: Option<String>,
    /// Add the ends of the central interval of this probability.
    #[arg(long, value_name = "SHARE")]
    interval: Option<f64>,
    /// Add the probability of every value.
    #[arg(long)]
    proba: bool,
    /// What to predict; text columns use the mode instead of a mean or median.
    #[arg(long, value_enum, default_value_t)]
    with: With,
    /// The random seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The file to write; - is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Write even over an input.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reading: tables::Reading,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a, T> {
    absent: &'a [String],
    #[serde(flatten)]
    rows: T,
}

#[derive(Debug, Serialize)]
struct Written<'a> {
    output: &'a Path,
    rows: usize,
}

impl Predict {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = Some(&self.output).filter(|p| **p != Path::new("-"));
        if let Some(path) = path {
            tables::check_target(path, &[&self.model, &self.table], self.force)?;
        }
        if let Some(share) = self.interval.filter(|share| !(0.0..=1.0).contains(share)) {
            bail!("--interval {share}: give a probability from 0 to 1, such as 0.9");
        }
        let model = tables::model(&self.model)?;
        let table = self.reading.table(&self.table)?;
        let Some(column) = self.column.as_ref().or(model.info().target.as_ref()) else {
            bail!(
                "the model was fitted without a target: name the column to predict with --column"
            );
        };
        let predictions = model.predict(&table, column)?;
        if !predictions.absent().is_empty() && !self.json {
            let names: Vec<String> =
                predictions.absent().iter().map(|name| format!("'{name}'")).collect();
            let _ = writeln!(
                std::io::stderr(),
                "note: the table has no {} {}: unknown in every row",
                if names.len() == 1 { "column" } else { "columns" },
                output::printable(&names.join(", "))
            );
        }
        let found = busy("predicting", || self.columns(column, &predictions))?;
        let (found, absent) = (Table::new(found)?, predictions.absent());
        let Some(path) = path else {
            if self.json {
                return output::json(out, &Report { absent, rows: tables::listed(&found) });
            }
            out.write_all(&found.to_csv())?;
            return Ok(());
        };
        tables::write(&found, path)?;
        let rows = found.num_rows();
        if self.json {
            return output::json(out, &Report { absent, rows: Written { output: path, rows } });
        }
        writeln!(out, "wrote {}: {}", path.display(), plural(rows, "row"))?;
        Ok(())
    }

    /// The prediction, the ends of the interval, and the probabilities.
    fn columns(&self, name: &str, predictions: &Predictions<'_>) -> Result<Vec<Column>> {
        let mut columns = vec![predictions.values_by(self.with.into(), self.seed)?];
        if let Some(share) = self.interval {
            let ends = predictions.quantiles(&[0.5 - 0.5 * share, 0.5 + 0.5 * share])?;
            for (n, end) in ["low", "high"].into_iter().enumerate() {
                let values = ends.iter().copied().skip(n).step_by(2).collect();
                columns.push(Column::numbers(format!("{name} {end}"), values));
            }
        }
        if self.proba {
            let found = predictions.probabilities()?;
            for (n, label) in found.labels.iter().enumerate() {
                let of_label = found.probabilities.iter().copied().skip(n);
                let values = of_label.step_by(found.labels.len()).collect();
                columns.push(Column::numbers(format!("{name}={label}"), values));
            }
        }
        Ok(columns)
    }
}

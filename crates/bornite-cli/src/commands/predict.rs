use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bornite::data::{Column, Table};
use bornite::model::{ModelError, Predictions};
use clap::Args;
use serde::Serialize;

use super::impute::With;
use crate::output;
use crate::streams::{Inputs, Outputs, Piece, Stream, Writing, note_absent};
use crate::tables;

/// Predict a column of a table from the other columns.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite predict houses.model new.csv --column price
  bornite predict houses.model new.csv --column price --interval 0.9 -o prices.csv
  bornite predict people.model new.csv --column income --proba -o income.csv
  bornite predict people.model 'days/*.parquet' --column income --out-dir incomes

Writes one row for each row of the table: the median of a numeric column, or the most likely
label, given the other cells. Missing values and missing columns are integrated out; cells of the
predicted column are ignored. With --interval, adds the ends of a central interval with this
probability, and with --proba the probability of every value. Writes CSV, or NPY or Parquet if the
name ends in .npy or .parquet. Without -o, or with -o -, prints CSV. Tables are read and written
in pieces; with --out-dir, each table gets its own output file, and --resume continues after an
interruption. With --json, prints {absent, columns, rows: [[cell]]}, with -o {absent, output,
rows}, and with --out-dir also {parts, kept}.")]
pub(crate) struct Predict {
    /// The model file.
    model: PathBuf,
    #[command(flatten)]
    inputs: Inputs,
    /// The column to predict [default: the target that the model was fitted for].
    #[arg(short, long)]
    column: Option<String>,
    /// Add the ends of the central interval with this probability.
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
    #[command(flatten)]
    outputs: Outputs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    absent: &'a [String],
    output: &'a Path,
    rows: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<usize>,
}

impl Predict {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        if let Some(share) = self.interval.filter(|share| !(0.0..=1.0).contains(share)) {
            bail!("--interval {share}: give a probability from 0 to 1, such as 0.9");
        }
        let model = tables::model(&self.model)?;
        let Some(column) = self.column.as_ref().or(model.info().target.as_ref()) else {
            bail!(
                "the model was fitted without a target: name the column to predict with --column"
            );
        };
        let stream = Stream::new(&model, &self.inputs.tables, &self.inputs.reading, "predicting")?;
        let target = self.outputs.target(self.json);
        let (outputs, seed) = (&self.outputs, self.seed);
        let absent: RefCell<Vec<String>> = RefCell::default();
        let done = stream.without_text().write(
            Writing { model: &self.model, outputs, target, seed },
            out,
            &|| vec![("absent", absent.borrow().clone().into())],
            &mut |piece| {
                let predictions = model.predict(piece.table, column)?;
                let missing = predictions.absent();
                if *missing != absent.borrow()[..] {
                    if !missing.is_empty() && !self.json {
                        note_absent(missing);
                    }
                    absent.replace(missing.to_vec());
                }
                Ok(Some(Table::new(self.columns(column, &predictions, piece)?)?))
            },
        )?;
        let Some(path) = target.path() else { return Ok(()) };
        if self.json {
            let (parts, kept) = (done.parts.map(|p| p.0), done.parts.map(|p| p.1));
            let (absent, rows) = (&*absent.borrow(), done.rows);
            return output::json(out, &Report { absent, output: path, rows, parts, kept });
        }
        done.say(target, "", out)
    }

    /// The prediction, the ends of the interval, and the probabilities.
    fn columns(
        &self,
        name: &str,
        predictions: &Predictions<'_>,
        piece: &Piece<'_>,
    ) -> Result<Vec<Column>, ModelError> {
        let values = predictions.values_from(piece.start, self.with.into(), piece.seed)?;
        let mut columns = vec![values];
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

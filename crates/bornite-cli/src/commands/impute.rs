use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use bornite::data::{Column, Table};
use bornite::model::Imputation;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::output::{self, plural};
use crate::streams::{Inputs, Outputs, Stream, Writing};
use crate::tables;

/// Impute the missing values of a table.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite impute people.model people.csv -o full.csv
  bornite impute people.model people.csv --with sample --seed 7 -o draw7.csv
  bornite impute people.model 'days/*.parquet' --out-dir full
  zcat people.csv.gz | bornite impute people.model - > full.csv

Each missing value is imputed given the observed cells of its row. Observed cells keep their text,
and columns unknown to the model are unchanged; from CSV to Parquet these become text. For
multiple imputation, use --with sample with several seeds. Tables are read and written in pieces,
so they may be larger than memory. With --out-dir, each table gets its own output file, written
completely or not at all; after an interruption, --resume continues. Without -o, prints CSV. With
--json, prints {output, rows, cells} for a file, also {parts, kept} for a folder, and
{columns, rows: [[cell]], cells} without -o.")]
pub(crate) struct Impute {
    /// The model file.
    model: PathBuf,
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    outputs: Outputs,
    /// How to impute; text columns use the mode instead of a mean or median.
    #[arg(long, value_enum, default_value_t)]
    with: With,
    /// The random seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    output: &'a Path,
    rows: usize,
    cells: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<usize>,
}

/// How to summarize the distribution of a missing value.
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
        let model = tables::model(&self.model)?;
        let stream = Stream::new(&model, &self.inputs.tables, &self.inputs.reading, "filling")?;
        let stream = stream.in_small_pieces();
        let target = self.outputs.target(self.json);
        let (outputs, seed) = (&self.outputs, self.seed);
        let cells = std::cell::Cell::new(0);
        let missing = |t: &Table| t.columns().iter().map(Column::num_missing).sum::<usize>();
        let done = stream.write(
            Writing { model: &self.model, outputs, target, seed },
            out,
            &|| vec![("cells", cells.get().into())],
            &mut |piece| {
                let with = self.with.into();
                let filled = model.impute_from(piece.start, piece.table, with, piece.seed)?;
                cells.set(cells.get() + missing(piece.table) - missing(&filled));
                Ok(Some(filled))
            },
        )?;
        let Some(path) = target.path() else { return Ok(()) };
        if self.json {
            let (parts, kept) = (done.parts.map(|p| p.0), done.parts.map(|p| p.1));
            let (rows, cells) = (done.rows, cells.get());
            return output::json(out, &Report { output: path, rows, cells, parts, kept });
        }
        done.say(target, &format!(", {} imputed", plural(cells.get(), "cell")), out)
    }
}

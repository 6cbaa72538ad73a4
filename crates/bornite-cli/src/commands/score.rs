use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use bornite::Model;
use bornite::data::{Column, EncodeOptions, Mismatch, Table, Unseen};
use bornite::model::{Anomaly, AnomalyCriterion};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::device::{Device, with_flag_hint};
use crate::output::{self, grouped, number, shown};
use crate::streams::{Inputs, Outputs, Piece, Stream, Target, Writing};
use crate::tables;

/// Score the rows of a table: mean log-likelihood and bits per dimension.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite score people.model test.csv
  bornite score people.model test.csv --anomalies 5
  bornite score people.model test.csv --anomalies 5 --by either
  bornite score people.model test.csv --rows > log_densities.txt
  bornite score people.model 'days/*.parquet' --out-dir scores
  bornite score digits.model t10k-images-idx3-ubyte.gz --device cuda
  zcat people.csv.gz | bornite score people.model -

Missing values are integrated out. Unseen labels, and numbers out of range or between grid points
(9.5 among whole numbers), get a small probability that the fit estimates, and are counted.
Tables are read in pieces, so they may be larger than memory. With -o, writes a table with the
column log_density: CSV, or NPY or Parquet, depending on the file name. With --out-dir, each table
gets its own output file, written completely or not at all; after an interruption, --resume
continues with the others, and the printed results refer to those. With --json, prints {rows,
outside, mean_log_likelihood, bits_per_dimension}, with --rows also log_densities, with --out-dir
also {parts, kept}, and with --anomalies also anomalies: [{file, row, log_density, anomaly_score,
cells: [{column, cell, log_conditional}]}], without file if there is only one and without
anomaly_score for --by density; null means log 0. Rows are numbered from 1.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Score {
    /// The model file.
    model: PathBuf,
    #[command(flatten)]
    inputs: Inputs,
    /// Print the log density of every row, one per line.
    #[arg(long, conflicts_with_all = ["output", "out_dir"])]
    rows: bool,
    /// Show the most anomalous rows and their most surprising cells.
    #[arg(long, value_name = "N", conflicts_with = "rows")]
    anomalies: Option<usize>,
    /// What makes a row anomalous.
    #[arg(long, value_enum, default_value_t, requires = "anomalies")]
    by: By,
    /// Treat unseen labels, and numbers out of range or off the grid, as missing.
    #[arg(long, conflicts_with = "strict")]
    lenient: bool,
    /// Reject unseen labels, and numbers out of range or off the grid.
    #[arg(long)]
    strict: bool,
    /// Where to compute log densities, in double precision.
    #[arg(long, value_enum, default_value_t)]
    device: Device,
    #[command(flatten)]
    outputs: Outputs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// A low log density: the row is unlikely as a whole.
    #[default]
    Density,
    /// A cell that does not fit the others, even among many columns. Takes two passes over the table for each column.
    Cells,
    /// Either of these. Takes as long as cells.
    Either,
}

impl From<By> for AnomalyCriterion {
    fn from(by: By) -> Self {
        match by {
            By::Density => Self::Density,
            By::Cells => Self::Cells,
            By::Either => Self::Either,
        }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    rows: usize,
    outside: usize,
    mean_log_likelihood: f64,
    bits_per_dimension: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anomalies: Option<Vec<AnomalousRow>>,
}

#[derive(Debug, Serialize)]
struct AnomalousRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    row: usize,
    log_density: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    anomaly_score: Option<f64>,
    /// The sort key of rows: the lowest is the most anomalous.
    #[serde(skip)]
    rank: f64,
    cells: Vec<Surprise>,
}

#[derive(Debug, Serialize)]
struct Surprise {
    column: String,
    cell: String,
    log_conditional: f64,
}

/// The number of cells shown for an anomalous row.
const SHOWN: usize = 3;

/// The results collected while reading the rows.
#[derive(Debug, Default)]
struct Found {
    outside: usize,
    sum: f64,
    anomalies: Vec<AnomalousRow>,
}

impl Score {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        if self.lenient && self.by == By::Cells {
            bail!("--lenient works only with --by density: --by cells looks for unseen values");
        }
        let model = tables::model(&self.model)?;
        let stream = Stream::new(&model, &self.inputs.tables, &self.inputs.reading, "scoring")?;
        let stream = if self.anomalies.is_some() { stream } else { stream.without_text() };
        let stream = match self.device {
            Device::Cpu => stream,
            Device::Cuda | Device::Auto => stream.in_large_pieces(),
        };
        let (seed, outputs) = (0, &self.outputs);
        let target = match outputs.target(false) {
            Target::Standard { .. } if outputs.output.is_none() => Target::Nothing,
            target @ (Target::Standard { .. }
            | Target::File(_)
            | Target::Folder(_)
            | Target::Nothing) => target,
        };
        let mut found = Found::default();
        // Printed rows are written at once; a table has the output to itself.
        let mut printed = Vec::new();
        let mut lines = Lines { json: self.json, count: 0 };
        let writing = Writing { model: &self.model, outputs, target, seed };
        let done = if self.rows {
            stream.read(&mut |piece| {
                let scores = self.score(&model, piece, &mut found)?;
                printed.clear();
                lines.add(&scores, &mut printed)?;
                out.write_all(&printed)?;
                Ok(None)
            })?
        } else {
            stream.write(writing, out, &Vec::new, &mut |piece| {
                let scores = self.score(&model, piece, &mut found)?;
                Ok(Some(Table::new(vec![Column::numbers("log_density", scores)])?))
            })?
        };
        if self.rows && !self.json || matches!(target, Target::Standard { .. }) {
            return Ok(());
        }
        let mean = found.sum / done.rows as f64;
        let report = Report {
            rows: done.rows,
            outside: found.outside,
            mean_log_likelihood: mean,
            bits_per_dimension: model.bits_per_dimension(mean),
            parts: done.parts.map(|p| p.0),
            kept: done.parts.map(|p| p.1),
            anomalies: self.anomalies.map(|_| found.anomalies),
        };
        if self.json {
            let text = serde_json::to_string(&report)?;
            // The totals come after the rows.
            let text = if self.rows { format!("],{}", &text[1..]) } else { text };
            return Ok(writeln!(out, "{text}")?);
        }
        done.say(target, "", out)?;
        let mut pairs = vec![
            ("rows", grouped(report.rows as u128)),
            ("mean log-likelihood", format!("{:.4} nats", report.mean_log_likelihood)),
            ("bits per dimension", format!("{:.4}", report.bits_per_dimension)),
        ];
        if report.outside > 0 {
            pairs.insert(1, ("unseen values", grouped(report.outside as u128)));
        }
        if done.rows > 0 {
            output::pairs(out, &pairs)?;
        }
        if let Some(rows) = &report.anomalies {
            writeln!(out)?;
            show(rows, out)?;
        }
        Ok(())
    }

    /// The log densities of some rows.
    fn score(&self, model: &Model, piece: &Piece<'_>, found: &mut Found) -> Result<Vec<f64>> {
        let unseen = match (self.lenient, self.strict) {
            (true, _) => Unseen::Missing,
            (false, true) => Unseen::Refuse,
            (false, false) => Unseen::Score,
        };
        let options = EncodeOptions { unseen, absent: Mismatch::Error };
        let encoded = model.schema().encode_with(piece.table, options)?;
        let scores = model.score_on(&encoded, self.device.into()).map_err(with_flag_hint)?;
        found.outside += encoded.outside().len();
        found.sum = scores.iter().fold(found.sum, |sum, score| sum + score);
        if let Some(count) = self.anomalies {
            let ranks = match self.by {
                By::Density => scores.clone(),
                By::Cells | By::Either => model.anomaly_scores(piece.table, self.by.into())?,
            };
            let sign = if self.by == By::Density { 1.0 } else { -1.0 };
            let mut lowest: Vec<(usize, f64)> =
                ranks.iter().map(|rank| sign * rank).enumerate().collect();
            lowest.sort_by(|a, b| a.1.total_cmp(&b.1));
            let worst = found.anomalies.get(count.wrapping_sub(1)).map(|a| a.rank);
            for (row, rank) in lowest.into_iter().take(count) {
                // Ties are broken by the row number.
                if worst.is_none_or(|worst| rank < worst) {
                    let anomaly = model.anomaly(piece.table, &encoded, row, scores[row])?;
                    let anomaly_score = (self.by != By::Density).then_some(ranks[row]);
                    let shown = anomalous_row(anomaly, piece, self.inputs.is_one());
                    found.anomalies.push(AnomalousRow { anomaly_score, rank, ..shown });
                }
            }
            found.anomalies.sort_by(|a, b| a.rank.total_cmp(&b.rank));
            found.anomalies.truncate(count);
        }
        Ok(scores)
    }
}

/// Prints log densities: one per line, or as the beginning of a JSON object.
struct Lines {
    json: bool,
    count: usize,
}

impl Lines {
    fn add(&mut self, scores: &[f64], out: &mut Vec<u8>) -> Result<()> {
        for &score in scores {
            if self.json {
                let before = if self.count == 0 { "{\"log_densities\":[" } else { "," };
                write!(out, "{before}{}", serde_json::to_string(&score)?)?;
            } else {
                writeln!(out, "{}", number(score))?;
            }
            self.count += 1;
        }
        Ok(())
    }
}

fn anomalous_row(anomaly: Anomaly, piece: &Piece<'_>, is_one: bool) -> AnomalousRow {
    let cells = anomaly.contributions.into_iter().map(|c| Surprise {
        column: c.column,
        cell: c.cell,
        log_conditional: c.log_conditional,
    });
    AnomalousRow {
        file: (!is_one).then(|| piece.file.display().to_string()),
        row: piece.file_rows + anomaly.row + 1,
        log_density: anomaly.log_density,
        anomaly_score: None,
        rank: anomaly.log_density,
        cells: cells.collect(),
    }
}

fn show(rows: &[AnomalousRow], out: &mut dyn Write) -> Result<()> {
    let mut head = vec!["row", "log density", "most surprising cells first"];
    let has_scores = rows.iter().any(|row| row.anomaly_score.is_some());
    if has_scores {
        head.insert(2, "score");
    }
    let has_files = rows.iter().any(|row| row.file.is_some());
    if has_files {
        head.insert(0, "file");
    }
    let mut table = output::Table::new(usize::from(has_files), &head);
    for row in rows {
        let cells: Vec<String> = row
            .cells
            .iter()
            .take(SHOWN)
            .map(|c| shown(&c.column) + "=" + &shown(&c.cell))
            .collect();
        let mut line = row.file.iter().cloned().collect::<Vec<_>>();
        line.extend([row.row.to_string(), format!("{:.3}", row.log_density)]);
        line.extend(row.anomaly_score.map(|score| format!("{score:.3}")));
        line.push(cells.join(", "));
        table.row(line);
    }
    Ok(table.write(out)?)
}

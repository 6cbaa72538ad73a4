use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use bornite::data::{EncodeOptions, Mismatch, Unseen};
use bornite::model::Anomaly;
use clap::Args;
use serde::Serialize;

use crate::output::{self, grouped, number};
use crate::tables;

/// Score the rows of a table: mean log-likelihood and bits per dimension.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite score people.model test.csv
  bornite score people.model test.csv --anomalies 5
  bornite score people.model test.csv --rows > log_densities.txt

Missing values are integrated out. Unseen labels, and numbers out of range or between those of a grid
(9.5 among whole numbers), get a small probability that the fit estimates, and are counted. With --json, prints {rows, outside, mean_log_likelihood,
bits_per_dimension}, with --rows also log_densities and with --anomalies also
anomalies: [{row, log_density, cells: [{column, cell, log_conditional}]}]; null means log 0.
Rows are numbered from 1.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Score {
    /// The model file.
    model: PathBuf,
    /// The table.
    table: PathBuf,
    /// Print the log density of every row, one per line.
    #[arg(long)]
    rows: bool,
    /// Show the rows with the lowest log density and their most surprising cells.
    #[arg(long, value_name = "N", conflicts_with = "rows")]
    anomalies: Option<usize>,
    /// Treat unseen labels, and numbers out of range or off the grid, as missing.
    #[arg(long, conflicts_with = "strict")]
    lenient: bool,
    /// Refuse labels that the model has not seen, and numbers out of range or off the grid.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    reading: tables::Reading,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    rows: usize,
    outside: usize,
    mean_log_likelihood: f64,
    bits_per_dimension: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_densities: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anomalies: Option<Vec<Unlikely>>,
}

#[derive(Debug, Serialize)]
struct Unlikely {
    row: usize,
    log_density: f64,
    cells: Vec<Surprise>,
}

#[derive(Debug, Serialize)]
struct Surprise {
    column: String,
    cell: String,
    log_conditional: f64,
}

/// Cells of an unlikely row that are shown.
const SHOWN: usize = 3;

impl Score {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let model = tables::model(&self.model)?;
        let table = self.reading.table(&self.table)?;
        let unseen = match (self.lenient, self.strict) {
            (true, _) => Unseen::Missing,
            (false, true) => Unseen::Refuse,
            (false, false) => Unseen::Score,
        };
        let options = EncodeOptions { unseen, absent: Mismatch::Error };
        let encoded = model.schema().encode_with(&table, options)?;
        let scores = model.score_encoded(&encoded)?;
        if scores.is_empty() {
            bail!("{}: the table has no rows", self.table.display());
        }
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        let anomalies = match self.anomalies {
            Some(count) => Some(model.anomalies_encoded(&table, &encoded, count)?),
            None => None,
        };
        if self.rows && !self.json {
            for score in &scores {
                writeln!(out, "{}", number(*score))?;
            }
            return Ok(());
        }
        let report = Report {
            rows: scores.len(),
            outside: encoded.outside().len(),
            mean_log_likelihood: mean,
            bits_per_dimension: model.bits_per_dimension(mean),
            log_densities: self.rows.then_some(scores),
            anomalies: anomalies.map(|list| list.into_iter().map(row).collect()),
        };
        if self.json {
            return output::json(out, &report);
        }
        let mut pairs = vec![
            ("rows", grouped(report.rows as u128)),
            ("mean log-likelihood", format!("{:.4} nats", report.mean_log_likelihood)),
            ("bits per dimension", format!("{:.4}", report.bits_per_dimension)),
        ];
        if report.outside > 0 {
            pairs.insert(1, ("values outside what was seen", grouped(report.outside as u128)));
        }
        output::pairs(out, &pairs)?;
        if let Some(rows) = &report.anomalies {
            writeln!(out)?;
            show(rows, out)?;
        }
        Ok(())
    }
}

fn row(anomaly: Anomaly) -> Unlikely {
    let cells = anomaly.contributions.into_iter().map(|c| Surprise {
        column: c.column,
        cell: c.cell,
        log_conditional: c.log_conditional,
    });
    Unlikely { row: anomaly.row + 1, log_density: anomaly.log_density, cells: cells.collect() }
}

fn show(rows: &[Unlikely], out: &mut dyn Write) -> Result<()> {
    let mut table = output::Table::new(0, &["row", "log density", "most surprising cells first"]);
    for row in rows {
        let cells: Vec<String> =
            row.cells.iter().take(SHOWN).map(|c| format!("{}={}", c.column, c.cell)).collect();
        table.row([row.row.to_string(), format!("{:.3}", row.log_density), cells.join(", ")]);
    }
    Ok(table.write(out)?)
}

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use bornite::Model;
use bornite::data::ColumnSchema;
use clap::Args;
use serde::Serialize;

use crate::output::{self, grouped, plural};
use crate::tables;

/// Show the columns and the circuit of a model, and how it was fitted.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite info people.model

With --json, prints {columns: [{name, kind, values}], variables, circuits: [weight], layers,
parameters, info, given}.")]
pub(crate) struct Info {
    /// The model file.
    model: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    columns: Vec<Column>,
    variables: usize,
    /// The weights of the circuits.
    circuits: Vec<f64>,
    layers: usize,
    parameters: usize,
    info: &'a bornite::model::Info,
    given: &'a [String],
}

#[derive(Debug, Serialize)]
struct Column {
    name: String,
    kind: String,
    values: String,
}

impl Info {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let model = tables::model(&self.model)?;
        let mixture = model.mixture();
        let report = Report {
            columns: model.schema().columns().iter().map(column).collect(),
            variables: mixture.variables().len(),
            circuits: mixture.weights(),
            layers: mixture.circuits().map(|circuit| circuit.num_layers()).sum(),
            parameters: mixture.num_parameters(),
            info: model.info(),
            given: model.given(),
        };
        if self.json {
            return output::json(out, &report);
        }
        show(&model, &report, out)
    }
}

/// The maximum number of columns listed.
const LISTED: usize = 40;

fn show(model: &Model, report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    let info = report.info;
    let mut pairs = vec![
        ("columns", grouped(report.columns.len() as u128)),
        (
            "circuits",
            format!(
                "{}; {}, {}, {}",
                output::circuits(&report.circuits),
                plural(report.variables, "variable"),
                plural(report.layers, "layer"),
                plural(report.parameters, "parameter")
            ),
        ),
        ("structure, width", format!("{}, {}", info.structure, info.width)),
        (
            "fitted to",
            format!(
                "{}, {} for validation, {}, seed {}",
                plural(info.rows, "row"),
                grouped(info.valid_rows as u128),
                plural(info.history.len(), "epoch"),
                info.seed
            ),
        ),
        ("log-likelihood of validation rows", format!("{:.4} nats", info.valid)),
        ("with independent columns", format!("{:.4} nats", info.baseline)),
        ("bits per dimension", format!("{:.4}", model.bits_per_dimension(info.valid))),
    ];
    if let Some(before) = info.truncated {
        let text = format!(
            "from width {}, to which these figures refer; Hellinger distance at most {:.3e}",
            before.width, before.bound
        );
        pairs.push(("truncated", text));
    }
    for given in report.given {
        pairs.push(("conditioned on", given.clone()));
    }
    if let Some([height, width, channels]) = model.schema().image() {
        pairs.push(("images", format!("{height} × {width} × {channels}")));
    }
    output::pairs(out, &pairs)?;
    writeln!(out)?;
    let mut table = output::Table::new(3, &["column", "kind", "values"]);
    for column in report.columns.iter().take(LISTED) {
        table.row([column.name.clone(), column.kind.clone(), column.values.clone()]);
    }
    table.write(out)?;
    if report.columns.len() > LISTED {
        writeln!(out, "  … and {} more", report.columns.len() - LISTED)?;
    }
    Ok(())
}

fn column(column: &ColumnSchema) -> Column {
    let kind = column.kind.name().trim_start_matches("an ").trim_start_matches("a ").to_owned();
    Column { name: column.name.clone(), kind, values: column.kind.summary() }
}

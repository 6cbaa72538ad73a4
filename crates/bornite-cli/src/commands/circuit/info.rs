use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use bornite::circuit::Layer;
use bornite::{Basis, Circuit};
use clap::Args;
use serde::Serialize;

use crate::files;
use crate::output::{self, Table, grouped};

/// Show variables, layers, widths, sizes and parameters.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite circuit info c.json")]
pub(crate) struct Info {
    /// The circuit file.
    file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Summary {
    variables: Vec<VariableSummary>,
    layers: BTreeMap<&'static str, KindSummary>,
    num_layers: usize,
    output_width: usize,
    max_size: u128,
    weights: usize,
    parameters: usize,
    real: bool,
}

#[derive(Debug, PartialEq, Serialize)]
struct VariableSummary {
    name: String,
    domain: String,
    basis: &'static str,
    functions: usize,
}

#[derive(Debug, Default, Serialize)]
struct KindSummary {
    count: usize,
    min_width: usize,
    max_width: usize,
    size: u128,
}

impl Info {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let circuit = files::load(&self.file)?;
        let summary = summarize(&circuit);
        if self.json {
            return output::json(out, &summary);
        }
        write_variables(out, &summary)?;
        writeln!(out)?;
        let mut table = Table::new(1, &["layers", "count", "widths", "size"]);
        for kind in ["input", "hadamard", "kronecker", "sum"] {
            if let Some(of_kind) = summary.layers.get(kind) {
                let (least, most) = (of_kind.min_width, of_kind.max_width);
                let widths = if least == most {
                    grouped(least as u128)
                } else {
                    format!("{least} to {most}")
                };
                table.row([
                    kind.to_owned(),
                    grouped(of_kind.count as u128),
                    widths,
                    grouped(of_kind.size),
                ]);
            }
        }
        table.write(out)?;
        writeln!(out)?;
        output::pairs(
            out,
            &[
                ("layers", grouped(summary.num_layers as u128)),
                ("output width", grouped(summary.output_width as u128)),
                ("largest size", grouped(summary.max_size)),
                ("weights", grouped(summary.weights as u128)),
                ("parameters", grouped(summary.parameters as u128)),
                ("numbers", if summary.real { "real" } else { "complex" }.to_owned()),
            ],
        )?;
        Ok(())
    }
}

fn summarize(circuit: &Circuit) -> Summary {
    let mut layers: BTreeMap<&'static str, KindSummary> = BTreeMap::new();
    let mut bases = vec![("", 0); circuit.num_variables()];
    for id in circuit.layer_ids() {
        let (layer, width) = (circuit.layer(id), circuit.width(id));
        if let Layer::Input { variable, basis } = layer {
            bases[variable.index()] = (family(basis), width);
        }
        let of_kind = layers
            .entry(layer.kind())
            .or_insert(KindSummary { min_width: width, ..KindSummary::default() });
        of_kind.count += 1;
        of_kind.min_width = of_kind.min_width.min(width);
        of_kind.max_width = of_kind.max_width.max(width);
        of_kind.size = of_kind.size.saturating_add(circuit.size(id));
    }
    let variable = |(v, &(basis, functions)): (&bornite::Variable, &(&'static str, usize))| {
        VariableSummary { name: v.name.clone(), domain: v.domain.to_string(), basis, functions }
    };
    Summary {
        variables: circuit.variables().iter().zip(&bases).map(variable).collect(),
        layers,
        num_layers: circuit.num_layers(),
        output_width: circuit.width(circuit.output()),
        max_size: circuit.max_size(),
        weights: circuit.weights().len(),
        parameters: circuit.num_parameters(),
        real: circuit.is_real(),
    }
}

/// The name of a basis family in circuit files.
fn family(basis: &Basis) -> &'static str {
    match basis {
        Basis::Indicator(_) => "indicator",
        Basis::Fourier(_) => "fourier",
        Basis::Legendre(_) => "legendre",
        Basis::Laguerre(_) => "laguerre",
        Basis::Hermite(_) => "hermite",
        Basis::Table(_) => "table",
        Basis::Gaussian(_) => "gaussian",
        Basis::BSpline(_) => "bspline",
        Basis::Transformed(_) => "transformed",
        Basis::Squared(_) => "squared",
        Basis::Atoms(_) => "atoms",
        Basis::Steps(_) => "steps",
    }
}

/// Consecutive variables that differ only in their names share a line.
fn write_variables(out: &mut dyn Write, summary: &Summary) -> Result<()> {
    const MAX_LINES: usize = 40;
    let same = |a: &VariableSummary, b: &VariableSummary| {
        a.domain == b.domain && a.basis == b.basis && a.functions == b.functions
    };
    let runs: Vec<&[VariableSummary]> = summary.variables.chunk_by(same).collect();
    let mut table = Table::new(3, &["variables", "values", "basis", "functions"]);
    for run in runs.iter().take(MAX_LINES) {
        let names = match run {
            [one] => one.name.clone(),
            [first, last] => format!("{}, {}", first.name, last.name),
            [first, .., last] => format!("{} … {} ({})", first.name, last.name, run.len()),
            [] => continue,
        };
        table.row([
            names,
            run[0].domain.clone(),
            run[0].basis.to_owned(),
            grouped(run[0].functions as u128),
        ]);
    }
    table.write(out)?;
    if runs.len() > MAX_LINES {
        let shown: usize = runs.iter().take(MAX_LINES).map(|r| r.len()).sum();
        writeln!(
            out,
            "  … and {} more; --json lists all",
            grouped((summary.variables.len() - shown) as u128)
        )?;
    }
    Ok(())
}

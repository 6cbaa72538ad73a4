use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use bornite::model::Truncation;
use bornite::ops::Budget;
use clap::Args;
use serde::Serialize;

use crate::output::{self, grouped};
use crate::progress::busy;
use crate::tables;

/// Write a smaller model, with a bound on the error.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite truncate people.model --error 0.01 -o small.model
  bornite truncate people.model --width 8 -o narrow.model

Errors are Hellinger distances, sqrt(1 - the integral of sqrt(p q)), between 0 and 1; no
probability changes by more than sqrt(2) times the distance. The bound always holds; the distance
itself is also shown if all rows can be enumerated. With --json, prints {output, bound, distance,
width, parameters, before}.")]
pub(crate) struct Truncate {
    /// The model file.
    model: PathBuf,
    #[command(flatten)]
    output: tables::Output,
    #[command(flatten)]
    budget: BudgetFlags,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct BudgetFlags {
    /// The maximum Hellinger distance, between 0 and 1.
    #[arg(long, value_name = "H")]
    error: Option<f64>,
    /// The maximum width.
    #[arg(long, value_name = "K")]
    width: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Report {
    output: PathBuf,
    bound: f64,
    distance: Option<f64>,
    width: usize,
    parameters: usize,
    before: Before,
}

#[derive(Debug, Serialize)]
struct Before {
    width: usize,
    parameters: usize,
}

impl Truncate {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = &self.output.output;
        self.output.check([&self.model])?;
        let budget = match (self.budget.error, self.budget.width) {
            (Some(error), _) if !(0.0..=1.0).contains(&error) => {
                bail!("--error {error}: give a Hellinger distance from 0 to 1, as in 0.01")
            }
            (Some(error), _) => Budget::Error(error),
            (None, Some(width @ 1..)) => Budget::Width(width),
            (None, _) => bail!("--width 0: give a width of at least 1"),
        };
        let model = tables::model(&self.model)?;
        let Truncation { model: smaller, bound, distance } =
            busy("truncating", || model.truncate(budget))?;
        smaller.save(path)?;
        let report = Report {
            output: path.clone(),
            bound,
            distance,
            width: smaller.info().width,
            parameters: smaller.mixture().num_parameters(),
            before: Before {
                width: model.info().width,
                parameters: model.mixture().num_parameters(),
            },
        };
        if self.json {
            return output::json(out, &report);
        }
        let count = |n: usize| grouped(n as u128);
        let before = &report.before;
        writeln!(out, "wrote {}\n", path.display())?;
        let mut pairs = vec![
            ("width", format!("{}, was {}", report.width, before.width)),
            (
                "parameters",
                format!("{}, were {}", count(report.parameters), count(before.parameters)),
            ),
            ("Hellinger distance, at most", format!("{:.3e}", report.bound)),
        ];
        if let Some(distance) = report.distance {
            pairs.push(("exact distance", format!("{distance:.3e}")));
        }
        Ok(output::pairs(out, &pairs)?)
    }
}

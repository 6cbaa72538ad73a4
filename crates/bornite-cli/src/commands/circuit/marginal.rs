use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use bornite::ops::{self, marginalize};
use clap::Args;
use serde::Serialize;

use crate::counts::{Layers, MultiplyAdds};
use crate::files;
use crate::output::{self, grouped, plural};

/// Compute the log probability of evidence, marginalizing everything else (Algorithm 2).
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite circuit marginal c.json \"x0=1, x1=?, x2 in {0, 1}, x3 in [0.5, 2)\"

Variables that are not mentioned are marginalized. The probability (or density, for continuous variables
with a value) is that of the normalized p(x) = ‖c(x)‖² / Z: a circuit that is not orthonormal is
orthonormalized first, and the counts refer to the orthonormal circuit. With --json, prints {log_marginal,
layers: {kept, marginalized, mixed}, multiply_adds: {ours, paper_bound, squaring}}; a log_marginal of
null means log 0.")]
pub(crate) struct Marginal {
    /// The circuit file.
    file: PathBuf,
    /// The evidence: name=value, name=?, name in [a, b), name in {a, b}, separated by commas.
    #[arg(default_value = "")]
    query: String,
    /// Square the whole circuit instead: the slow baseline, for comparison.
    #[arg(long)]
    square: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    log_marginal: f64,
    layers: Layers,
    multiply_adds: MultiplyAdds,
}

impl Marginal {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let circuit = files::load(&self.file)?;
        let query = files::parse_query(&circuit, &self.query)?;
        let by_squaring = if self.square {
            let squared = ops::square(&circuit)?;
            Some(squared.log_unnormalized_marginal(&query)? - squared.log_partition())
        } else {
            None
        };
        let orthonormal = files::into_orthonormal(circuit)?;
        let marginal = marginalize(&orthonormal, &query)?;
        let answer = Answer {
            log_marginal: by_squaring.unwrap_or(marginal.log_marginal),
            layers: marginal.layers.into(),
            multiply_adds: marginal.multiply_adds.into(),
        };
        if self.json {
            return output::json(out, &answer);
        }
        let (layers, work) = (&answer.layers, &answer.multiply_adds);
        output::pairs(
            out,
            &[
                ("log p", output::number(answer.log_marginal)),
                ("p", output::exp(answer.log_marginal)),
                ("", String::new()),
                ("φ_Y, kept", plural(layers.kept, "layer")),
                ("φ_Z, marginalized", plural(layers.marginalized, "layer")),
                ("φ_YZ, mixed", plural(layers.mixed, "layer")),
                ("", String::new()),
                ("multiply-adds, ours", grouped(work.ours)),
                ("the paper's bound", grouped(work.paper_bound)),
                ("squaring the circuit", grouped(work.squaring)),
            ],
        )?;
        Ok(())
    }
}

//! `bornite circuit`: commands on circuit files.

mod check;
mod evaluate;
mod info;
mod marginal;
mod new;
mod orthonormalize;
mod plot;
mod square;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use bornite::Circuit;
use clap::Subcommand;
use serde::Serialize;

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a circuit with random weights.
    New(new::New),
    /// Check the paper's properties: smooth, decomposable, structured-decomposable, orthonormal, log Z.
    Check(check::Check),
    /// Show variables, layers, widths, sizes and parameters.
    Info(info::Info),
    /// Write the circuit c² that computes ‖c(x)‖², as the paper's appendix builds it.
    Square(square::Square),
    /// Make the circuit orthonormal, so that its square is a normalized distribution (Algorithm 1).
    Orthonormalize(orthonormalize::Orthonormalize),
    /// Compute c(x) and log ‖c(x)‖².
    Evaluate(evaluate::Evaluate),
    /// Compute the log probability of evidence, marginalizing everything else (Algorithm 2).
    Marginal(marginal::Marginal),
    /// Draw the circuit as SVG, colored by what a query keeps, marginalizes and mixes.
    Plot(plot::Plot),
}

impl Command {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<ExitCode> {
        match self {
            Command::New(command) => command.run(out),
            Command::Check(command) => return command.run(out),
            Command::Info(command) => command.run(out),
            Command::Square(command) => command.run(out),
            Command::Orthonormalize(command) => command.run(out),
            Command::Evaluate(command) => command.run(out),
            Command::Marginal(command) => command.run(out),
            Command::Plot(command) => command.run(out),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

/// The report of a command that writes a circuit.
#[derive(Debug, Serialize)]
struct Written<'a> {
    output: PathBuf,
    variables: usize,
    layers: usize,
    parameters: usize,
    #[serde(skip)]
    verb: &'a str,
}

impl<'a> Written<'a> {
    fn new(verb: &'a str, circuit: &Circuit, output: &Path) -> Self {
        Self {
            output: output.to_owned(),
            variables: circuit.num_variables(),
            layers: circuit.num_layers(),
            parameters: circuit.num_parameters(),
            verb,
        }
    }

    fn write(&self, out: &mut dyn Write, json: bool) -> Result<()> {
        if json {
            return output::json(out, self);
        }
        writeln!(
            out,
            "{} {}: {}, {}, {}",
            self.verb,
            self.output.display(),
            output::plural(self.variables, "variable"),
            output::plural(self.layers, "layer"),
            output::plural(self.parameters, "parameter"),
        )?;
        Ok(())
    }
}

//! The commands, one per file.

mod bench;
mod circuit;
mod completions;
mod compress;
mod condition;
mod decompress;
mod demo;
mod fit;
mod impute;
mod info;
mod plot;
mod predict;
mod query;
mod report;
mod sample;
mod score;
mod truncate;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::tables::parse_bytes;

/// Exact density models of tables and images, with squared orthonormal circuits.
#[derive(Debug, Parser)]
#[command(name = "bornite", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The maximum memory that a short file may request, such as 512M or 16G [default: 2G]. Raise it only for files
    /// that you trust.
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_bytes)]
    max_memory: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  bornite demo
  bornite fit people.csv -o people.model
  bornite query people.model \"P(income='>50K' | age in [30, 40))\"
  bornite report people.model --data test.csv -o report.html
  bornite circuit new --tree balanced --variables 4 --domain finite:2 -o c.json
  bornite circuit marginal c.json \"x0=1, x1 in {0, 1}\"

Exit codes: 0 success, 1 a circuit fails its check, 2 an error.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Fit a model to a table.
    Fit(Box<fit::Fit>),
    /// Score the rows of a table: mean log-likelihood and bits per dimension.
    Score(score::Score),
    /// Show the columns and the circuit of a model, and how it was fitted.
    Info(info::Info),
    /// Ask a model for probabilities, means, quantiles or most likely values.
    Query(query::Query),
    /// Sample rows from a model, exactly.
    Sample(sample::Sample),
    /// Impute the missing values of a table.
    Impute(impute::Impute),
    /// Predict a column of a table from the other columns.
    Predict(predict::Predict),
    /// Write the exact conditional model, given evidence.
    Condition(condition::Condition),
    /// Compress a table or images losslessly with a learned model.
    Compress(compress::Compress),
    /// Restore a compressed file, byte for byte.
    Decompress(decompress::Decompress),
    /// Write a smaller model, with a bound on the error.
    Truncate(truncate::Truncate),
    /// Plot a model or a circuit.
    Plot(plot::Plot),
    /// Write an HTML report with all plots of a model and its interactive circuit.
    Report(report::Report),
    /// Create, check, transform and query circuit files.
    #[command(subcommand)]
    Circuit(circuit::Command),
    /// Demonstrate squared orthonormal circuits on generated data.
    Demo(demo::Demo),
    /// Run benchmarks.
    #[command(subcommand)]
    Bench(bench::Command),
    /// Print shell completions.
    Completions(completions::Completions),
}

impl Cli {
    /// Sets the limits of the whole process.
    pub(crate) fn set_limits(&self) {
        if let Some(bytes) = self.max_memory {
            bornite::memory::set_limit(bytes);
        }
    }

    /// Runs the command and returns its exit code.
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<ExitCode> {
        match &self.command {
            Command::Fit(command) => command.run(out),
            Command::Score(command) => command.run(out),
            Command::Info(command) => command.run(out),
            Command::Query(command) => command.run(out),
            Command::Sample(command) => command.run(out),
            Command::Impute(command) => command.run(out),
            Command::Predict(command) => command.run(out),
            Command::Condition(command) => command.run(out),
            Command::Compress(command) => command.run(out),
            Command::Decompress(command) => command.run(out),
            Command::Truncate(command) => command.run(out),
            Command::Plot(command) => command.run(out),
            Command::Report(command) => command.run(out),
            Command::Circuit(command) => return command.run(out),
            Command::Demo(command) => return command.run(out),
            Command::Bench(command) => return command.run(out),
            Command::Completions(command) => command.run(out),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}

//! The commands, one a file.

mod bench;
mod circuit;
mod demo;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Squared orthonormal circuits: exact marginals and range queries.
#[derive(Debug, Parser)]
#[command(name = "bornite", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  bornite demo
  bornite circuit new --tree balanced --variables 4 --domain finite:2 -o c.json
  bornite circuit marginal c.json \"x0=1, x1 in {0, 1}\"

Exit codes: 0 done, 1 the circuit fails the check, 2 bad input.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Make, check, change and query circuit files.
    #[command(subcommand)]
    Circuit(circuit::Command),
    /// Show what a squared orthonormal circuit does, on one that is built here.
    Demo(demo::Demo),
    /// Measure.
    #[command(subcommand)]
    Bench(bench::Command),
}

impl Cli {
    /// Runs the command and answers with its exit code.
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<ExitCode> {
        match &self.command {
            Command::Circuit(command) => command.run(out),
            Command::Demo(command) => command.run(out),
            Command::Bench(command) => command.run(out),
        }
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

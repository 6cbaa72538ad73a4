//! `bornite bench`: benchmarks, with results in docs/benchmarks/.

mod case;
mod circuits;
mod engine;
mod machine;
mod page;
mod paper;
mod stopwatch;
mod timing;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The paper's example: the marginal of half an image, by squaring and by Algorithm 2.
    Paper(paper::Paper),
    /// The batched engine, compared with the machine's peak throughput and its own operation counts.
    Engine(engine::Engine),
    /// One operation on one circuit, for comparisons with other libraries.
    Case(case::Case),
}

impl Command {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<ExitCode> {
        match self {
            Command::Paper(command) => command.run(out),
            Command::Engine(command) => command.run(out),
            Command::Case(command) => command.run(out),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

//! `bornite bench`: measurements, each kept in docs/benchmarks/.

mod machine;
mod paper;
mod timing;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The paper's example: the marginal of half an image, by squaring and by Algorithm 2.
    Paper(paper::Paper),
}

impl Command {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<ExitCode> {
        match self {
            Command::Paper(command) => command.run(out),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

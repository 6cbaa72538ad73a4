use std::io::Write;

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print shell completions.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite completions bash > ~/.local/share/bash-completion/completions/bornite")]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        // Written to memory first, because the generator panics if it cannot write.
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "bornite", &mut text);
        Ok(out.write_all(&text)?)
    }
}

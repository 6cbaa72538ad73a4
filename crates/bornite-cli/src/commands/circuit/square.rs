use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use bornite::ops;
use clap::Args;

use super::Written;
use crate::files;
use crate::tables;

/// Write the circuit c² that computes ‖c(x)‖², as the paper's appendix builds it.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite circuit square c.json -o squared.safetensors

With --json, prints {output, variables, layers, parameters} of c².")]
pub(crate) struct Square {
    /// The circuit file.
    file: PathBuf,
    /// The file to write: JSON if the name ends in .json, safetensors otherwise.
    #[arg(short, long)]
    output: PathBuf,
    /// Overwrite inputs.
    #[arg(long)]
    force: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Square {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        tables::check_target(&self.output, &[&self.file], self.force)?;
        let circuit = files::load(&self.file)?;
        let squared = ops::square(&circuit)?.into_circuit();
        files::save(&squared, &self.output)?;
        Written::new("wrote the square to", &squared, &self.output).write(out, self.json)
    }
}

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use bornite::ops;
use clap::Args;
use serde::Serialize;

use super::Written;
use crate::files;
use crate::output;
use crate::tables;

/// Make the circuit orthonormal, so that its square is a normalized distribution (Algorithm 1).
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite circuit orthonormalize c.json -o orthonormal.safetensors

With --json, prints {log_partition}: the log of Z = ∫ ‖c(x)‖² dx of the input circuit. That of the
output is 0.")]
pub(crate) struct Orthonormalize {
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

#[derive(Debug, Serialize)]
struct Answer {
    log_partition: f64,
}

impl Orthonormalize {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        tables::check_target(&self.output, &[&self.file], self.force)?;
        let circuit = files::load(&self.file)?;
        let result = ops::orthonormalize(&circuit)?;
        files::save(&result.circuit, &self.output)?;
        if self.json {
            return output::json(out, &Answer { log_partition: result.log_partition });
        }
        writeln!(out, "log Z  {}", output::number(result.log_partition))?;
        Written::new("wrote the orthonormal circuit to", &result.circuit, &self.output)
            .write(out, false)
    }
}

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::output::{self, number};
use crate::tables;

/// Write the exact conditional model, given evidence.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite condition people.model \"sex='F', age in [30, 40)\" -o women.model
  bornite query women.model \"P(income='>50K')\"

The new file contains the same circuit and the evidence; every answer is conditioned on it.
With --json, prints {output, log_probability}.")]
pub(crate) struct Condition {
    /// The model file.
    model: PathBuf,
    /// The evidence: column=value, column in [a, b), column in {a, b}, separated by commas.
    query: String,
    #[command(flatten)]
    output: tables::Output,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    output: &'a Path,
    log_probability: f64,
}

impl Condition {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = &self.output.output;
        self.output.check([&self.model])?;
        let model = tables::model(&self.model)?;
        let event = bornite::model::Event::parse(model.schema(), &self.query)?;
        let log = model.log_probability(&event)?;
        model.condition(&self.query)?.save(path)?;
        if self.json {
            return output::json(out, &Report { output: path, log_probability: log });
        }
        writeln!(
            out,
            "wrote {}: the log probability of the evidence is {}",
            path.display(),
            number(log)
        )?;
        Ok(())
    }
}

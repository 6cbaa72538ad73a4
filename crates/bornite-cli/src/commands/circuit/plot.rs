use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use bornite::draw::circuit_svg;
use clap::Args;
use serde::Serialize;

use crate::files;
use crate::output;
use crate::tables;

/// Draw the circuit as SVG, colored by what a query keeps, marginalizes and mixes.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite circuit plot c.json \"x0=1, x1=0\" -o c.svg

As in the paper's first figure, layers that depend only on observed variables (φ_Y) are red, only on
unobserved variables (φ_Z) blue, and on both (φ_YZ) green. With --json, prints {output}.")]
pub(crate) struct Plot {
    /// The circuit file.
    file: PathBuf,
    /// The evidence, as for marginal. Without it nothing is colored.
    query: Option<String>,
    /// The file to write.
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
struct Answer<'a> {
    output: &'a PathBuf,
}

impl Plot {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        tables::check_target(&self.output, &[&self.file], self.force)?;
        let circuit = files::load(&self.file)?;
        let query = match &self.query {
            Some(text) => Some(files::parse_query(&circuit, text)?),
            None => None,
        };
        files::write_text(&self.output, &circuit_svg(&circuit, query.as_ref())?)?;
        if self.json {
            return output::json(out, &Answer { output: &self.output });
        }
        writeln!(out, "drew {}", self.output.display())?;
        Ok(())
    }
}

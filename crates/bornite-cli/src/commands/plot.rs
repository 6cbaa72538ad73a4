use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bornite::draw::circuit_svg;
use bornite::report::{Picture, Report, structure_svg};
use bornite::{Circuit, Model};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::files::{self, Loaded};
use crate::{output, tables};

/// Draw a model or a circuit.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite plot people.model --what structure -o structure.svg
  bornite plot people.model --what marginals --data test.csv -o marginals.svg
  bornite plot people.model --what pairs --columns age,income,sex -o pairs.svg
  bornite plot digits.model --what samples -o samples.png
  bornite plot c.json --what circuit --query \"x0=1, x1=0\" -o c.svg

Pictures are SVG, drawn here; of samples, which are grids of pixels, also PNG. Calibration and
anomalies are of the rows of --data, best such that the model did not learn from; structure and pairs
compare columns by these rows, or by exact samples of the model where there are none. A circuit file has
a circuit and a structure. With --json prints {output, what}.")]
pub(crate) struct Plot {
    /// The model or circuit file.
    file: PathBuf,
    #[command(flatten)]
    output: tables::Output,
    /// The picture.
    #[arg(long, value_enum)]
    what: What,
    /// The table whose rows are shown.
    #[arg(long, value_name = "TABLE")]
    data: Option<PathBuf>,
    /// The columns to show in marginals and pairs; the first 60, and the most dependent, without it.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// What is known, for the colors of a circuit: variable=value, joined by commas.
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,
    /// The seed of everything random.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum What {
    /// The circuit, colored by what a query keeps, marginalizes and mixes.
    Circuit,
    /// The tree of regions, with mutual information at every merge.
    Structure,
    /// Log-likelihoods and the residual of orthonormality by epoch.
    Training,
    /// The marginals of columns over the data's histograms.
    Marginals,
    /// Heat maps of pairs of columns.
    Pairs,
    /// Whether conditionals are right.
    Calibration,
    /// The least likely rows and their most surprising cells.
    Anomalies,
    /// Samples and completions of images.
    Samples,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    output: &'a Path,
    what: What,
}

impl Plot {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = &self.output.output;
        let is_png = has_extension(path, "png");
        if !is_png && !has_extension(path, "svg") {
            bail!(
                "{}: pictures are SVG or PNG; give a name that ends in .svg or .png",
                path.display()
            );
        }
        if is_png && self.what != What::Samples {
            bail!(
                "{}: only samples, which are pixels, are drawn as PNG; give a name that ends in .svg",
                path.display()
            );
        }
        if self.query.is_some() && self.what != What::Circuit {
            bail!("--query colors a circuit; leave it out, or ask for --what circuit");
        }
        tables::check_target(path)?;
        let bytes = match self.what {
            What::Circuit => self.circuit(&files::load(&self.file)?)?.into_bytes(),
            What::Structure => match files::load_any(&self.file)? {
                Loaded::Model(model) => self.model(&model, is_png)?,
                Loaded::Circuit(c) => structure_svg(&files::into_orthonormal(c)?).into_bytes(),
            },
            _ => self.model(&tables::model(&self.file)?, is_png)?,
        };
        files::write_bytes(path, &bytes)?;
        if self.json {
            return output::json(out, &Answer { output: path, what: self.what });
        }
        writeln!(out, "drew {}", path.display())?;
        Ok(())
    }

    fn circuit(&self, circuit: &Circuit) -> Result<String> {
        let query = match &self.query {
            Some(text) => Some(files::parse_query(circuit, text)?),
            None => None,
        };
        Ok(circuit_svg(circuit, query.as_ref())?)
    }

    fn model(&self, model: &Model, is_png: bool) -> Result<Vec<u8>> {
        let data = self.data.as_deref().map(tables::read).transpose()?;
        let mut report = Report::new(model, data.as_ref(), self.seed)?;
        if !self.columns.is_empty() {
            report = report.columns(&self.columns)?;
        }
        if is_png {
            return Ok(report.samples_png()?);
        }
        let picture = match self.what {
            What::Structure => Picture::Structure,
            What::Training => Picture::Training,
            What::Marginals => Picture::Marginals,
            What::Pairs => Picture::Pairs,
            What::Calibration => Picture::Calibration,
            What::Anomalies => Picture::Anomalies,
            What::Circuit | What::Samples => Picture::Samples,
        };
        Ok(report.svg(picture)?.into_bytes())
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bornite::Model;
use bornite::draw::circuit_svg;
use bornite::report::{Picture, Report, structure_svg};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::files::{self, Loaded};
use crate::progress::busy;
use crate::{output, tables};

/// Plot a model or a circuit.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite plot people.model --what structure -o structure.svg
  bornite plot people.model --what marginals --data test.csv -o marginals.svg
  bornite plot people.model --what pairs --columns age,income,sex -o pairs.svg
  bornite plot digits.model --what samples -o samples.png
  bornite plot c.json --what circuit --query \"x0=1, x1=0\" -o c.svg

Plots are written as SVG; samples, which are pixel grids, also as PNG. Calibration and anomalies show the
rows of --data, which should be held-out rows. Structure and pairs compare columns on these rows, or on
samples from the model without --data. Of a mixture, circuit shows the circuit with the largest weight.
For a circuit file, only circuit and structure are available.
With --json, prints {output, what}.")]
pub(crate) struct Plot {
    /// The model or circuit file.
    file: PathBuf,
    #[command(flatten)]
    output: tables::Output,
    /// What to plot.
    #[arg(long, value_enum)]
    what: What,
    /// The table to show.
    #[arg(long, value_name = "TABLE")]
    data: Option<PathBuf>,
    /// The columns to show in marginals and pairs. By default the first 60, and the most dependent ones.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// The evidence that colors the circuit, such as "sex='F', age in [30, 40)".
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,
    /// The random seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    reading: tables::Reading,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum What {
    /// The circuit, colored by what a query keeps, marginalizes and mixes.
    Circuit,
    /// The region tree, with the mutual information at every merge.
    Structure,
    /// Log-likelihoods and the orthonormality residual by epoch.
    Training,
    /// The marginals of columns over histograms of the data.
    Marginals,
    /// Heat maps of pairs of columns.
    Pairs,
    /// How well conditional distributions are calibrated.
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
                "{}: plots are SVG or PNG; give a name that ends in .svg or .png",
                path.display()
            );
        }
        if is_png && self.what != What::Samples {
            bail!(
                "{}: only samples, which are pixels, can be PNG; give a name that ends in .svg",
                path.display()
            );
        }
        if self.query.is_some() && self.what != What::Circuit {
            bail!("--query only applies to --what circuit; remove it, or add --what circuit");
        }
        self.output.check([&self.file].into_iter().chain(&self.data))?;
        let bytes = match self.what {
            What::Circuit => match files::load_any(&self.file)? {
                Loaded::Model(model) => {
                    let query = self.query.as_deref().map(|text| model.circuit_query(text));
                    circuit_svg(model.circuit(), query.transpose()?.as_ref())?.into_bytes()
                }
                Loaded::Circuit(circuit) => {
                    let query = self.query.as_deref().map(|q| files::parse_query(&circuit, q));
                    circuit_svg(&circuit, query.transpose()?.as_ref())?.into_bytes()
                }
            },
            What::Structure => match files::load_any(&self.file)? {
                Loaded::Model(model) => self.model(&model, is_png)?,
                Loaded::Circuit(c) => structure_svg(&files::into_orthonormal(c)?).into_bytes(),
            },
            What::Training
            | What::Marginals
            | What::Pairs
            | What::Calibration
            | What::Anomalies
            | What::Samples => self.model(&tables::model(&self.file)?, is_png)?,
        };
        files::write_bytes(path, &bytes)?;
        if self.json {
            return output::json(out, &Answer { output: path, what: self.what });
        }
        writeln!(out, "drew {}", path.display())?;
        Ok(())
    }

    fn model(&self, model: &Model, is_png: bool) -> Result<Vec<u8>> {
        let data = self.data.as_deref().map(|path| self.reading.table(path)).transpose()?;
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
        Ok(busy("drawing", || report.svg(picture))?.into_bytes())
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use bornite::Model;
use bornite::model::{ModelOptions, StructureKind};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::image::ImageSize;
use crate::output::{self, grouped, plural, time};
use crate::progress::FitBar;
use crate::tables::{self, parse_time};

/// Fit a model to a table.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite fit people.csv -o people.model
  bornite fit train.csv --valid valid.csv --time 60s -o m.model
  bornite fit train-images-idx3-ubyte.gz --width 16 -o digits.model

Reads CSV, NPY, NPZ and IDX files, plain or packed by gzip. Without --valid, a seeded tenth of the
rows is held out. Ctrl-C ends the fit and keeps the best model so far. Log-likelihoods are in nats per
row and the units of the data. With --json prints {output, rows, valid_rows, columns, parameters,
width, structure, epochs, seconds, mean_log_likelihood, bits_per_dimension, baseline}.")]
pub(crate) struct Fit {
    /// The table to learn from.
    table: PathBuf,
    #[command(flatten)]
    output: tables::Output,
    /// The table to choose the best epoch by.
    #[arg(long, value_name = "TABLE")]
    valid: Option<PathBuf>,
    /// The longest time to take, as in 60s, 15m or 2h.
    #[arg(long, value_parser = parse_time)]
    time: Option<Duration>,
    /// The width K of inner layers; from the size of the data where it is not given.
    #[arg(long, value_name = "K")]
    width: Option<usize>,
    /// The number of squares that are summed.
    #[arg(long, value_name = "R", default_value_t = 1)]
    output_width: usize,
    /// The number of input functions of a continuous column.
    #[arg(long, value_name = "N")]
    functions: Option<usize>,
    /// The most passes over the rows.
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Rows to a step.
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// The largest step of a parameter.
    #[arg(long)]
    rate: Option<f64>,
    /// How the columns are split into regions.
    #[arg(long, value_enum, default_value_t)]
    structure: Structure,
    /// Take the columns for the pixels of images of this size.
    #[arg(long, value_name = "HxW")]
    image: Option<ImageSize>,
    /// The seed of everything random.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Structure {
    /// Image cuts for images, else learned.
    #[default]
    Auto,
    /// By the columns' mutual information.
    Learned,
    /// Halves of images.
    Image,
    /// One column after the other.
    Linear,
    /// Halves of halves, in the order of the columns.
    Balanced,
    /// Halves of halves of a random order.
    Random,
}

#[derive(Debug, Serialize)]
struct Report {
    output: PathBuf,
    rows: usize,
    valid_rows: usize,
    columns: usize,
    parameters: usize,
    width: usize,
    structure: String,
    epochs: usize,
    seconds: f64,
    mean_log_likelihood: f64,
    bits_per_dimension: f64,
    baseline: f64,
}

impl Fit {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = &self.output.output;
        tables::check_target(path)?;
        let mut table = tables::read(&self.table)?;
        if let Some(ImageSize { height, width, channels }) = self.image {
            table = table.with_image([height, width, channels])?;
        }
        let valid = self.valid.as_deref().map(tables::read).transpose()?;
        let mut bar = FitBar::new(self.time);
        let model = Model::fit(&table, valid.as_ref(), &self.options(), &mut |p| bar.step(p));
        let took = bar.finish();
        let model = model?;
        model.save(path)?;
        self.report(&model, took, out)
    }

    fn options(&self) -> ModelOptions {
        ModelOptions {
            structure: match self.structure {
                Structure::Auto => StructureKind::Auto,
                Structure::Learned => StructureKind::Learned,
                Structure::Image => StructureKind::Image,
                Structure::Linear => StructureKind::Linear,
                Structure::Balanced => StructureKind::Balanced,
                Structure::Random => StructureKind::Random,
            },
            width: self.width,
            output_width: self.output_width,
            functions: self.functions,
            epochs: self.epochs,
            batch: self.batch,
            rate: self.rate,
            seed: self.seed,
            ..ModelOptions::default()
        }
    }

    fn report(&self, model: &Model, took: Duration, out: &mut dyn Write) -> Result<()> {
        let info = model.info();
        let report = Report {
            output: self.output.output.clone(),
            rows: info.rows,
            valid_rows: info.valid_rows,
            columns: model.schema().columns().len(),
            parameters: model.circuit().num_parameters(),
            width: info.width,
            structure: info.structure.clone(),
            epochs: info.history.len(),
            seconds: took.as_secs_f64(),
            mean_log_likelihood: info.valid,
            bits_per_dimension: model.bits_per_dimension(info.valid),
            baseline: info.baseline,
        };
        if self.json {
            return output::json(out, &report);
        }
        writeln!(
            out,
            "fitted {}: {}, {}, {} in {}\n",
            report.output.display(),
            plural(report.columns, "column"),
            plural(report.parameters, "parameter"),
            plural(report.epochs, "epoch"),
            time(took),
        )?;
        output::pairs(
            out,
            &[
                ("rows learned from", grouped(report.rows as u128)),
                ("rows of validation", grouped(report.valid_rows as u128)),
                ("structure, width", format!("{}, {}", report.structure, report.width)),
                ("", String::new()),
                ("log-likelihood of validation rows", format!("{:.4} nats", info.valid)),
                ("the same, columns independent", format!("{:.4} nats", info.baseline)),
                ("bits per dimension", format!("{:.4}", report.bits_per_dimension)),
            ],
        )?;
        Ok(())
    }
}

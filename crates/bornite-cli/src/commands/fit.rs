use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bornite::Model;
use bornite::data::Finding;
use bornite::learn::{self, Control, Snapshot, used_budget};
use bornite::model::{ModelError, ModelOptions, StructureKind};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::files;
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
  bornite fit people.csv --drop id,comment -o people.model

Reads CSV, Parquet, NPY, NPZ and IDX files, plain or packed by gzip. Without --valid, a seeded
tenth of the rows is held out. A table is refused where it has one row or one column, rows or
columns without a known cell, columns with one value alone, or columns of which most labels are
too rare to be learned: leave columns out with --drop, or fit the table with --as-is. Ctrl-C ends
the fit and keeps the best model so far. With --checkpoint the state of the fit is written too;
--resume goes on from there to the very model that an uninterrupted fit gives (of a fit with
--time, to one like it). Log-likelihoods are in nats per row and the units of the data. With
--json prints {output, rows, valid_rows, columns, parameters, width, structure, epochs, seconds,
mean_log_likelihood, bits_per_dimension, baseline}.")]
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
    /// The width K of inner layers. Without it several are tried on small tables, until validation says stop.
    #[arg(long, value_name = "K")]
    width: Option<usize>,
    /// The number of squares that are summed; the width where it is not given.
    #[arg(long, value_name = "R")]
    output_width: Option<usize>,
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
    /// Stop after so many epochs without a better validation likelihood.
    #[arg(long, value_name = "N")]
    patience: Option<usize>,
    /// How gradients become steps.
    #[arg(long, value_enum, default_value_t)]
    optimizer: Optimizer,
    /// How the size of steps changes over the fit.
    #[arg(long, value_enum, default_value_t)]
    schedule: Schedule,
    /// The largest norm of a step's gradient; longer ones are shortened.
    #[arg(long, value_name = "NORM")]
    clip: Option<f64>,
    /// Draw the weights of neighbouring values together, for columns of ordered values such as grey levels; 0 for not at
    /// all. Small sets of images have it.
    #[arg(long, value_name = "S")]
    smoothing: Option<f64>,
    /// Write the state of the fit here now and then and at Ctrl-C, for --resume.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The time between two checkpoints.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    checkpoint_every: Duration,
    /// Go on from a checkpoint of the same table and options.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// How the columns are split into regions.
    #[arg(long, value_enum, default_value_t)]
    structure: Structure,
    /// Take the columns for the pixels of images of this size.
    #[arg(long, value_name = "HxW")]
    image: Option<ImageSize>,
    /// Leave these columns out.
    #[arg(long, value_name = "COLUMNS")]
    drop: Vec<String>,
    /// Fit a table that has one row or column, or rows or columns that teach nothing.
    #[arg(long)]
    as_is: bool,
    /// The seed of everything random.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Structure {
    /// Image cuts for images, else the better of the next two in a short trial.
    #[default]
    Auto,
    /// The tree of the strongest mutual information of columns, from its middle out.
    ChowLiu,
    /// Columns that tell most of each other first.
    Linkage,
    /// Halves of images.
    Image,
    /// One column after the other.
    Linear,
    /// Halves of halves, in the order of the columns.
    Balanced,
    /// Halves of halves of a random order.
    Random,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Optimizer {
    /// Each number by the size of its own gradients.
    #[default]
    Adam,
    /// Stochastic gradients with momentum.
    Momentum,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Schedule {
    /// Half a cosine, down to almost nothing.
    #[default]
    Cosine,
    /// Halved after every epoch in vain.
    Plateau,
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
        let mut table = tables::without(tables::read(&self.table)?, &self.drop)?;
        if let Some(ImageSize { height, width, channels }) = self.image {
            table = table.with_image([height, width, channels])?;
        }
        let valid = self.valid.as_deref().map(tables::read).transpose()?;
        let resume = self.resume.as_deref().map(read_checkpoint).transpose()?;
        let used = resume.as_deref().map(used_budget).transpose()?.unwrap_or_default();
        let mut bar = FitBar::new(self.time).after(used);
        let mut saver = Saver {
            path: self.checkpoint.as_deref(),
            last: Instant::now(),
            every: self.checkpoint_every,
            failed: None,
        };
        let model = bornite::Fit::with(self.options())
            .validation(valid.as_ref())
            .resume(resume.as_deref())
            .on_step(|progress, snapshot| {
                let control = bar.step(progress);
                saver.step(control, snapshot)
            })
            .run(&table);
        let took = bar.finish();
        let model = model.map_err(in_words_of_flags)?;
        model.save(path)?;
        let found = model.schema().findings(&table);
        self.report(&model, found.as_ref().map_or(&[], |f| f.list()), took, out)?;
        saver.failed.map_or(Ok(()), |e| Err(e.context("the model is whole, its checkpoint is not")))
    }

    fn options(&self) -> ModelOptions {
        ModelOptions {
            structure: match self.structure {
                Structure::Auto => StructureKind::Auto,
                Structure::ChowLiu => StructureKind::ChowLiu,
                Structure::Linkage => StructureKind::Linkage,
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
            patience: self.patience,
            optimizer: match self.optimizer {
                Optimizer::Adam => learn::Optimizer::Adam,
                Optimizer::Momentum => learn::Optimizer::Momentum,
            },
            schedule: match self.schedule {
                Schedule::Cosine => learn::Schedule::Cosine,
                Schedule::Plateau => learn::Schedule::Plateau,
            },
            clip: self.clip,
            smoothing: self.smoothing,
            as_is: self.as_is,
            seed: self.seed,
            ..ModelOptions::default()
        }
    }

    fn report(
        &self,
        model: &Model,
        found: &[Finding],
        took: Duration,
        out: &mut dyn Write,
    ) -> Result<()> {
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
        for (n, finding) in found.iter().enumerate() {
            writeln!(out, "{}note: {finding}", if n == 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

/// What of a table teaches nothing is told with the flags that help.
fn in_words_of_flags(error: ModelError) -> anyhow::Error {
    let drop = |names: &[&str]| match names {
        all if all.iter().any(|c| c.contains([',', ' ', '\'', '"'])) => {
            all.iter().map(|c| format!("--drop \"{c}\"")).collect::<Vec<_>>().join(" ")
        }
        all => format!("--drop {}", all.join(",")),
    };
    match error {
        ModelError::LittleToLearn(found) => anyhow!(found.explain(drop, "--as-is")),
        other => other.into(),
    }
}

fn read_checkpoint(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|e| anyhow!("{}: cannot read the checkpoint: {e}; is it there?", path.display()))
}

/// Writes checkpoints now and then.
#[derive(Debug)]
struct Saver<'a> {
    path: Option<&'a Path>,
    last: Instant,
    every: Duration,
    /// Why the last one could not be written.
    failed: Option<anyhow::Error>,
}

impl Saver<'_> {
    fn step(&mut self, control: Control, snapshot: &Snapshot<'_>) -> Control {
        if let Some(path) = self.path
            && (control == Control::Stop || self.last.elapsed() >= self.every)
        {
            self.failed = files::write_bytes(path, &snapshot.to_bytes()).err();
            self.last = Instant::now();
        }
        control
    }
}

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use bornite::Model;
use bornite::data::{InferOptions, LeftOut, Sample, SampleOptions, Table};
use bornite::learn::{self, Control, LearnError, Snapshot, used_budget};
use bornite::model::{ModelError, ModelOptions, StructureKind};
use bornite::structure::Widths;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::files;
use crate::image::ImageSize;
use crate::output::{self, grouped, plural, time};
use crate::progress::{FitBar, RowsBar};
use crate::streams::expand;
use crate::tables::{self, parse_bytes, parse_time};

/// Fit a model to a table.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite fit people.csv -o people.model
  bornite fit people.csv --effort fast -o people.model
  bornite fit train.csv --valid valid.csv --time 60s -o m.model
  bornite fit train-images-idx3-ubyte.gz --width 16 -o digits.model
  bornite fit people.csv --drop id,comment -o people.model
  bornite fit people.csv --missing-as-value age,pay -o people.model
  bornite fit 'days/*.parquet' --memory 8G -o days.model
  bornite fit monday.csv --from people.model -o monday.model

Reads CSV, Parquet, NPY, NPZ and IDX files, plain or gzip-compressed. Several files form one table.
A table that is too large for --memory is fitted in pieces: the columns are inferred from a random
sample of a million rows, and all rows are written to a temporary file in the folder named by
TMPDIR. Every epoch reads them from there in random order.

Without --valid, a random tenth of the rows is held out for validation. Columns that cannot be
learned are dropped and listed: constant and empty columns, row numbers and free text. --strict
rejects a table with such columns, and --as-is fits all of them.

Ctrl-C ends the fit and keeps the best model so far; before the first training step it ends the
command, without a model. --checkpoint saves the state of the fit;
--resume continues from it and reaches the same model as an uninterrupted fit, unless --time is
used. --from continues from a model with other rows: it keeps the model's columns and circuits
and starts from its weights.

Log-likelihoods are in nats per row, in the units of the data. With --json, prints {output, rows,
valid_rows, columns, circuits: [weight], parameters, width, structure, epochs, seconds,
mean_log_likelihood, bits_per_dimension, baseline, left_out: [{column, reason}]}.")]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct Fit {
    /// The tables to fit: files, or quoted patterns such as 'part-*.parquet'; - is standard input.
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<PathBuf>,
    #[command(flatten)]
    output: tables::Output,
    /// Continue from this model: keep its columns, circuit and target, and start from its weights.
    #[arg(long, value_name = "MODEL")]
    from: Option<PathBuf>,
    /// The table to choose the best epoch with.
    #[arg(long, value_name = "TABLE")]
    valid: Option<PathBuf>,
    /// Weight the rows by this column, which does not become part of the model; rows with weight 0 are dropped.
    #[arg(long, value_name = "COLUMN")]
    weights: Option<String>,
    /// Approximate memory for the rows. Tables with files larger than a quarter of it are fitted in pieces; Parquet and
    /// gzip files count eight times.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, default_value = "4G")]
    memory: u64,
    /// The time limit, such as 60s, 15m or 2h, from the start of the command. Reading the table, comparing its columns
    /// and the first step always run to the end.
    #[arg(long, value_parser = parse_time)]
    time: Option<Duration>,
    /// How much to try.
    #[arg(long, value_enum, default_value_t)]
    effort: Effort,
    /// The maximum number of circuits in the model; with several, the model is a mixture. Models of small tables average
    /// circuits that are fitted independently: by default 5 with up to 50,000 cells and 3 with up to 150,000. On larger
    /// tables, a circuit is kept only if it improves the validation likelihood, by default up to 2, or 4 with --effort
    /// best or --time. Only 1 if --structure or --width is given. Without this option, tables of more than 48 columns,
    /// all of them finite, can get 64 additional narrow circuits.
    #[arg(long, value_name = "N")]
    circuits: Option<usize>,
    /// The width K of inner layers, or widths by the number of columns in a region, such as 1:12,2:16,32:24. By default several
    /// widths are tried on small tables.
    #[arg(long, value_name = "K")]
    width: Option<Widths>,
    /// Share a codebook of this many functions among all columns with more values than that, such as pixels; 0 turns this
    /// off.
    #[arg(long, value_name = "M")]
    codebook: Option<usize>,
    /// Share weights among regions of the same shape with at most this many pixels or columns; 0 turns this off. On by
    /// default for large image data sets.
    #[arg(long, value_name = "N")]
    share: Option<usize>,
    /// The number of squares in the sum.
    #[arg(long, value_name = "R")]
    output_width: Option<usize>,
    /// The number of input functions per continuous column.
    #[arg(long, value_name = "N")]
    functions: Option<usize>,
    /// The maximum number of passes over the rows.
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// The number of rows per step.
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// The learning rate.
    #[arg(long)]
    rate: Option<f64>,
    /// Stop after this many epochs without improvement on the validation rows.
    #[arg(long, value_name = "N")]
    patience: Option<usize>,
    /// The optimizer.
    #[arg(long, value_enum, default_value_t)]
    optimizer: Optimizer,
    /// The learning rate schedule.
    #[arg(long, value_enum, default_value_t)]
    schedule: Schedule,
    /// Clip gradients to this norm.
    #[arg(long, value_name = "NORM")]
    clip: Option<f64>,
    /// Penalize differences between the weights of neighboring values of ordered columns, such as gray levels; 0 turns this
    /// off. On by default for small image data sets.
    #[arg(long, value_name = "S")]
    smoothing: Option<f64>,
    /// Also learn from images shifted by one pixel, in half of every batch.
    #[arg(long)]
    shifts: bool,
    /// The column to predict: the fit gives more weight to its probability given the other columns, and `bornite
    /// predict` predicts it by default. The model still answers every other question.
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// How much more weight the target gets: the fit maximizes log p(x, y) + L log p(y | x). The default is 5.
    #[arg(long, value_name = "L", requires = "target")]
    emphasis: Option<f64>,
    /// Save the state of the fit to this file regularly and on Ctrl-C, for --resume.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The time between checkpoints.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    checkpoint_every: Duration,
    /// Continue from a checkpoint of the same table and options.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// How the columns are split into regions.
    #[arg(long, value_enum, default_value_t)]
    structure: Structure,
    /// Treat the columns as the pixels of images of this size.
    #[arg(long, value_name = "HxW")]
    image: Option<ImageSize>,
    /// Drop these columns.
    #[arg(long, value_name = "COLUMNS")]
    drop: Vec<String>,
    /// In these columns, treat missing as a value that can be asked about (`P(age is missing | …)`), conditioned on and
    /// sampled.
    #[arg(long, value_name = "COLUMNS")]
    missing_as_value: Vec<String>,
    /// Give these numbers in a column their own probability, in addition to those that the fit finds, such as
    /// pay=0,99999.
    #[arg(long, value_name = "COLUMN=X,…")]
    atoms: Vec<Atoms>,
    /// Fit all rows and columns, even those that cannot be learned.
    #[arg(long, conflicts_with = "strict")]
    as_is: bool,
    /// Reject a table with rows or columns that cannot be learned.
    #[arg(long)]
    strict: bool,
    /// Where to train. A GPU needs rows without missing values.
    #[arg(long, value_enum, default_value_t)]
    device: Device,
    /// The random seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    reading: tables::Reading,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Numbers of a column that have a probability of their own.
#[derive(Clone, Debug)]
struct Atoms {
    column: String,
    numbers: Vec<f64>,
}

impl FromStr for Atoms {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (column, numbers) = text
            .rsplit_once('=')
            .ok_or_else(|| anyhow!("expected COLUMN=X,… as in pay=0,99999"))?;
        let number = |word: &str| {
            let found = word.trim().parse().ok().filter(|x: &f64| x.is_finite());
            found.ok_or_else(|| anyhow!("'{word}' is not a finite number"))
        };
        let numbers = numbers.split(',').map(number).collect::<Result<_>>()?;
        Ok(Self { column: column.to_owned(), numbers })
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Effort {
    /// Small circuits: a usable model in seconds.
    Fast,
    /// Several circuits, as long as they improve.
    #[default]
    Balanced,
    /// Larger circuits and longer fits, until nothing improves; best combined with --time.
    Best,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Structure {
    /// Image splits for images; otherwise the better of the next two in a short trial.
    #[default]
    Auto,
    /// The Chow–Liu tree of the columns, split from its center.
    ChowLiu,
    /// Average linkage: merge the most dependent columns first.
    Linkage,
    /// Halves of images, recursively.
    Image,
    /// One column at a time.
    Linear,
    /// Halves, recursively, in column order.
    Balanced,
    /// Halves, recursively, in random order.
    Random,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Optimizer {
    /// Adam.
    #[default]
    Adam,
    /// Stochastic gradient descent with momentum.
    Momentum,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Schedule {
    /// Cosine decay to nearly zero.
    #[default]
    Cosine,
    /// Halve the rate after every epoch without improvement.
    Plateau,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// An NVIDIA GPU with TF32 products: faster for wide circuits, less precise.
    CudaTf32,
    /// An NVIDIA GPU with bfloat16 products: the fastest for wide circuits, the least precise.
    CudaBf16,
    /// An NVIDIA GPU that can learn this table, if there is one; otherwise the CPU.
    Auto,
}

/// The maximum number of dropped columns that are listed.
const SHOWN: usize = 12;

#[derive(Debug, Serialize)]
struct Report {
    output: PathBuf,
    rows: usize,
    valid_rows: usize,
    columns: usize,
    /// The weights of the circuits.
    circuits: Vec<f64>,
    parameters: usize,
    width: usize,
    structure: String,
    epochs: usize,
    seconds: f64,
    mean_log_likelihood: f64,
    bits_per_dimension: f64,
    baseline: f64,
    left_out: Vec<LeftOut>,
}

impl Fit {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = &self.output.output;
        let files = expand(&self.tables)?;
        let more = [self.valid.as_ref(), self.resume.as_ref(), self.from.as_ref()];
        self.output.check(files.iter().chain(more.into_iter().flatten()))?;
        if let Some(checkpoint) = &self.checkpoint {
            // --resume is not checked: a fit may continue in the checkpoint that it came from.
            let more = [self.valid.as_ref(), Some(path), self.from.as_ref()];
            let given = files.iter().chain(more.into_iter().flatten());
            let given: Vec<&Path> = given.map(PathBuf::as_path).collect();
            tables::check_target(checkpoint, &given, self.output.force)?;
        }
        let mut infer = InferOptions::default();
        let sample = self.sample(&files)?.with_table(|table| {
            infer = self.infer_options(&table)?;
            let table = tables::without(table, &self.drop)?;
            anyhow::Ok(match self.image {
                Some(ImageSize { height, width, channels }) => {
                    table.with_image([height, width, channels])?
                }
                None => table,
            })
        })?;
        let valid = self.valid.as_deref().map(|path| self.reading.table(path)).transpose()?;
        let start = self.from.as_deref().map(tables::model).transpose()?;
        let resume = self.resume.as_deref().map(read_checkpoint).transpose()?;
        let used = resume.as_deref().map(used_budget).transpose();
        let used = used.map_err(|e| match &self.resume {
            Some(path) => anyhow!("{}: {e}", path.display()),
            None => e.into(),
        })?;
        let used = used.unwrap_or_default();
        let mut bar = FitBar::new(self.time).counting_from_start().after(used);
        let mut saver = Saver {
            path: self.checkpoint.as_deref(),
            last: Instant::now(),
            every: self.checkpoint_every,
            failed: None,
        };
        let model = bornite::Fit::with(self.options(infer))
            .start(start.as_ref())
            .validation(valid.as_ref())
            .resume(resume.as_deref())
            .quota(bar.quota())
            .on_rows(bar.reading(files.len()))
            .on_step(|progress, snapshot| {
                let control = bar.step(progress);
                if let Some(warning) = saver.step(control, snapshot) {
                    bar.say(&warning);
                }
                control
            })
            .run_sample(&sample);
        let took = bar.finish();
        let model = model.map_err(with_flag_hint)?;
        model.save(path)?;
        self.report(&model, took, out)?;
        match saver.failed {
            Some(reason) => bail!("the model was saved, but its last checkpoint was not: {reason}"),
            None => Ok(()),
        }
    }

    /// The rows of the files, or a sample of them.
    fn sample(&self, files: &[PathBuf]) -> Result<Sample> {
        let is_standard = |file: &PathBuf| file == Path::new("-");
        if let [only] = files
            && is_standard(only)
        {
            return Ok(Sample::whole(self.reading.table(only)?));
        }
        if files.iter().any(is_standard) {
            bail!(
                "-: standard input cannot be combined with other tables; give file names instead"
            );
        }
        let (header, memory, seed) = (self.reading.header(), self.memory, self.seed);
        let options = SampleOptions { header, memory, seed };
        if let [only] = files
            && !options.are_large(files)?
        {
            return Ok(Sample::whole(self.reading.table(only)?));
        }
        let mut bar = RowsBar::new("drawing a sample", files.len());
        Ok(Sample::draw(files, &options, &mut |file, rows, share| bar.add_of(file, rows, share))?)
    }

    /// The settings for columns.
    fn infer_options(&self, table: &Table) -> Result<InferOptions> {
        let mut infer = InferOptions {
            missing_as_value: tables::named(table, &self.missing_as_value)?,
            ..InferOptions::default()
        };
        for Atoms { column, numbers } in &self.atoms {
            infer.named_atoms.entry(column.clone()).or_default().extend(numbers);
        }
        Ok(infer)
    }

    fn options(&self, infer: InferOptions) -> ModelOptions {
        ModelOptions {
            infer,
            weights: self.weights.clone(),
            effort: match self.effort {
                Effort::Fast => learn::Effort::Fast,
                Effort::Balanced => learn::Effort::Balanced,
                Effort::Best => learn::Effort::Best,
            },
            structure: match self.structure {
                Structure::Auto => StructureKind::Auto,
                Structure::ChowLiu => StructureKind::ChowLiu,
                Structure::Linkage => StructureKind::Linkage,
                Structure::Image => StructureKind::Image,
                Structure::Linear => StructureKind::Linear,
                Structure::Balanced => StructureKind::Balanced,
                Structure::Random => StructureKind::Random,
            },
            circuits: self.circuits,
            width: self.width.as_ref().and_then(Widths::uniform),
            widths: self.width.clone().filter(|w| w.uniform().is_none()),
            codebook: self.codebook,
            share: self.share,
            time: self.time,
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
            shifts: self.shifts.then_some(true),
            target: self.target.clone(),
            emphasis: self.emphasis,
            as_is: self.as_is,
            strict: self.strict,
            seed: self.seed,
            device: match self.device {
                Device::Cpu => learn::Device::Cpu,
                Device::Cuda => learn::Device::Cuda,
                Device::CudaTf32 => learn::Device::CudaTf32,
                Device::CudaBf16 => learn::Device::CudaBf16,
                Device::Auto => learn::Device::Auto,
            },
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
            circuits: model.mixture().weights(),
            parameters: model.mixture().num_parameters(),
            width: info.width,
            structure: info.structure.clone(),
            epochs: info.history.len(),
            seconds: took.as_secs_f64(),
            mean_log_likelihood: info.valid,
            bits_per_dimension: model.bits_per_dimension(info.valid),
            baseline: info.baseline,
            left_out: info.left_out.clone(),
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
                ("training rows", grouped(report.rows as u128)),
                ("validation rows", grouped(report.valid_rows as u128)),
                ("structure, width", format!("{}, {}", report.structure, report.width)),
                ("circuits", output::circuits(&report.circuits)),
                ("", String::new()),
                ("log-likelihood of validation rows", format!("{:.4} nats", info.valid)),
                ("with independent columns", format!("{:.4} nats", info.baseline)),
                ("bits per dimension", format!("{:.4}", report.bits_per_dimension)),
            ],
        )?;
        if !report.left_out.is_empty() {
            writeln!(out, "\ndropped: {}", left_out(&report.left_out))?;
        }
        Ok(())
    }
}

/// The first few dropped columns, each with its reason, and the number of the others.
fn left_out(columns: &[LeftOut]) -> String {
    let shown = columns.iter().take(SHOWN).map(|c| format!("{} ({})", c.column, c.reason));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match columns.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Words the suggestions of an error as flags.
fn with_flag_hint(error: ModelError) -> anyhow::Error {
    let drop = |names: &[&str]| match names {
        all if all.iter().any(|c| c.contains([',', ' ', '\'', '"'])) => {
            all.iter().map(|c| format!("--drop \"{c}\"")).collect::<Vec<_>>().join(" ")
        }
        all => format!("--drop {}", all.join(",")),
    };
    match error {
        ModelError::Learn(LearnError::Device { .. }) => {
            anyhow!("{error}; --device auto uses the CPU instead")
        }
        ModelError::TooLarge { needed, .. } => {
            let enough = needed.div_ceil(1 << 30);
            anyhow!("{error} (--drop, --max-memory {enough}G)")
        }
        ModelError::LittleToLearn(found) => anyhow!(found.explain(drop, "--as-is")),
        other => other.into(),
    }
}

fn read_checkpoint(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| anyhow!("{}: cannot read the checkpoint: {e}", path.display()))
}

/// Writes checkpoints at regular intervals.
#[derive(Debug)]
struct Saver<'a> {
    path: Option<&'a Path>,
    last: Instant,
    every: Duration,
    /// Why the last checkpoint could not be written.
    failed: Option<anyhow::Error>,
}

impl Saver<'_> {
    /// Writes a checkpoint if it is time for one. Returns a warning to print for the first of several failures, since a
    /// fit that cannot be resumed may run for hours.
    fn step(&mut self, control: Control, snapshot: &Snapshot<'_>) -> Option<String> {
        let path = self.path?;
        if control != Control::Stop && self.last.elapsed() < self.every {
            return None;
        }
        let before = self.failed.take();
        self.failed = files::write_bytes(path, &snapshot.to_bytes()).err();
        self.last = Instant::now();
        let reason = self.failed.as_ref().filter(|_| before.is_none())?;
        Some(format!("cannot save the checkpoint: {reason}; the fit continues and will try again"))
    }
}

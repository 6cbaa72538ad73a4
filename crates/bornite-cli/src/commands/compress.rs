use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use bornite::data;
use bornite::model::{CompressOptions, Compressed, Method, compress_file};
use clap::Args;
use serde::Serialize;

use crate::output::{self, grouped, time};
use crate::progress::FitBar;
use crate::tables::{self, parse_time};

/// Compress a table or images losslessly with a learned model.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite compress people.csv -o people.brz
  bornite compress people.csv -o people.brz --time 10m
  bornite compress t10k-images-idx3-ubyte.gz --model digits.model -o digits.brz

Compresses CSV, NPY, IDX and uncompressed NPZ files, plain or gzip-compressed; decompress restores
their uncompressed content byte for byte. Without --model, a small model is fitted to the first 8
MiB and stored with the rows, so decompress needs no other file. Data that a model does not
make smaller, and all other files, are compressed with zstd. Files are processed in segments of 8
MiB, so memory is bounded. Ctrl-C ends the fit and continues with the best model so far. The same
seed and number of epochs give the same bytes. With --json, prints {output, method, bytes_in,
bytes_out, ratio, segments, stored, model_bytes, width, seconds, why}, where stored is the number
of segments compressed with zstd.")]
pub(crate) struct Compress {
    /// The file to compress.
    table: PathBuf,
    #[command(flatten)]
    output: tables::Output,
    /// The model to compress with; decompress needs it too.
    #[arg(long, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// The time limit for fitting a model.
    #[arg(long, value_parser = parse_time, default_value = "60s", conflicts_with = "model")]
    time: Duration,
    /// The width K of the inner layers of the fitted model. By default it depends on the size of the data.
    #[arg(long, value_name = "K", conflicts_with = "model")]
    width: Option<usize>,
    /// The maximum number of passes over the rows.
    #[arg(long, value_name = "N", conflicts_with = "model")]
    epochs: Option<usize>,
    /// The random seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    reading: tables::Reading,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    output: PathBuf,
    method: &'static str,
    bytes_in: u64,
    bytes_out: u64,
    ratio: f64,
    segments: usize,
    stored: usize,
    model_bytes: Option<usize>,
    width: Option<usize>,
    seconds: f64,
    why: Option<String>,
}

impl Compress {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = &self.output.output;
        self.output.check([&self.table].into_iter().chain(&self.model))?;
        let model = self.model.as_deref().map(tables::model).transpose()?;
        let content = data::open_file(&self.table)?;
        let start = Instant::now();
        let options = CompressOptions {
            width: self.width,
            epochs: self.epochs,
            seed: self.seed,
            header: self.reading.header(),
            ..CompressOptions::default()
        };
        let mut bar = FitBar::new(Some(self.time));
        let name = self.table.display().to_string();
        let packed = data::write_file(path, |out| {
            compress_file(content, out, &name, model.as_ref(), &options, &mut |p| bar.step(p))
        });
        bar.finish();
        self.report(&packed?, start.elapsed(), out)
    }

    fn report(&self, packed: &Compressed, took: Duration, out: &mut dyn Write) -> Result<()> {
        let (method, model_bytes, width, why) = match &packed.method {
            Method::Given => ("given model", None, None, None),
            Method::Fitted { model_bytes, width } => {
                ("fitted model", Some(*model_bytes), Some(*width), None)
            }
            Method::Stored { why } => ("zstd", None, None, Some(why.clone())),
        };
        let report = Report {
            output: self.output.output.clone(),
            method,
            bytes_in: packed.bytes_in,
            bytes_out: packed.bytes_out,
            ratio: packed.bytes_in as f64 / packed.bytes_out as f64,
            segments: packed.segments,
            stored: packed.stored,
            model_bytes,
            width,
            seconds: took.as_secs_f64(),
            why,
        };
        if self.json {
            return output::json(out, &report);
        }
        writeln!(
            out,
            "wrote {}: {} of {} bytes, {:.2} times smaller, in {}",
            report.output.display(),
            grouped(report.bytes_out.into()),
            grouped(report.bytes_in.into()),
            report.ratio,
            time(took),
        )?;
        match (&packed.method, &report.why) {
            (_, Some(why)) => writeln!(out, "compressed with zstd: {why}")?,
            (Method::Fitted { model_bytes, width }, _) => writeln!(
                out,
                "of these, {} are the fitted model of width {width}",
                grouped(*model_bytes as u128)
            )?,
            _ => writeln!(out, "decompress it with the same --model")?,
        }
        if report.why.is_none() && report.stored > 0 {
            writeln!(
                out,
                "{} of {} segments are compressed with zstd",
                report.stored, report.segments
            )?;
        }
        Ok(())
    }
}

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bornite::Model;
use bornite::data;
use bornite::learn::Control;
use bornite::model::{CompressEvent, CompressOptions, Compressed, Method, compress_file_with};
use clap::Args;
use serde::Serialize;

use crate::output::{self, grouped, plural, time};
use crate::progress::{FitBar, RowsBar};
use crate::signals;
use crate::streams::{Failed, Outputs, Target, distinct_names, expand, with_parts};
use crate::tables::{self, parse_time};

/// Compress a table or images losslessly with a learned model.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite compress people.csv -o people.brz
  bornite compress people.csv -o people.brz --time 10m
  bornite compress t10k-images-idx3-ubyte.gz --model digits.model -o digits.brz
  bornite compress 'days/*.csv' --out-dir packed
  bornite compress 'days/*.csv' --out-dir packed --resume

Compresses CSV, NPY, IDX and uncompressed NPZ files, plain or gzip-compressed; decompress restores
their uncompressed content byte for byte. Without --model, a small model is fitted to the first 8
MiB and stored with the rows, so decompress needs no other file. Data that a model does not
make smaller, and all other files, are compressed with zstd. Files are processed in segments of 8
MiB, so memory is bounded, and a terminal shows the rows done. Ctrl-C ends the fit and continues
with the best model so far. The same seed and number of epochs give the same bytes.

With --out-dir, each file is compressed to a file of its own, with .brz added to its name, written
completely or not at all. --resume continues after an interruption. Ctrl-C ends the command after
the current file.

With --json, prints {output, method, bytes_in, bytes_out, ratio, segments, stored, model_bytes,
width, seconds, why}, where stored is the number of segments compressed with zstd; with --out-dir,
{output, parts: [one such object per file], kept}, where kept is the number of files kept.")]
pub(crate) struct Compress {
    /// The files to compress: names, or quoted patterns such as 'part-*.csv'; - is standard input.
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
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

#[derive(Debug, Serialize)]
struct Written<'a> {
    output: &'a Path,
    parts: Vec<Report>,
    kept: usize,
}

impl Compress {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let files = expand(&self.tables)?;
        let mut inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        inputs.extend(self.model.as_deref());
        let target = match (&self.outputs.output, &self.outputs.out_dir) {
            (None, None) => bail!("give the file to write with -o, or a folder with --out-dir"),
            _ => self.outputs.target(self.json),
        };
        let only = match (&files[..], target) {
            (_, Target::Folder(folder)) => return self.parts(&files, folder, &inputs, out),
            ([only], _) => only,
            _ => bail!("each file gets its own output; give a folder with --out-dir"),
        };
        if let Target::File(path) = target {
            self.outputs.check(path, &inputs)?;
        }
        let model = self.model.as_deref().map(tables::model).transpose()?;
        match target {
            Target::File(path) => {
                let report = self.file(only, path, model.as_ref())?;
                if self.json { output::json(out, &report) } else { report.say(out) }
            }
            Target::Standard { json: true } => {
                bail!("standard output contains the compressed bytes; remove --json")
            }
            Target::Standard { json: false } | Target::Folder(_) | Target::Nothing => {
                self.compress(only, out, model.as_ref())?;
                Ok(out.flush()?)
            }
        }
    }

    /// Compresses each file to a part of its own.
    fn parts(
        &self,
        files: &[PathBuf],
        folder: &Path,
        inputs: &[&Path],
        out: &mut dyn Write,
    ) -> Result<()> {
        let names = distinct_names(files, |_| ".brz")?;
        let parts = self.outputs.parts(folder, &names, inputs)?;
        let model = self.model.as_deref().map(tables::model).transpose()?;
        let mut reports = Vec::new();
        let mut kept = 0;
        for (file, part) in files.iter().zip(&parts) {
            if self.outputs.keeps(part) {
                kept += 1;
                continue;
            }
            let finished = reports.len() + kept;
            if signals::stopped() {
                bail!("interrupted after {}; --resume continues", plural(finished, "part"));
            }
            let report = self.file(file, part, model.as_ref());
            let report = report.map_err(|error| with_parts(error, finished))?;
            if !self.json {
                report.say(out)?;
                out.flush()?;
            }
            reports.push(report);
        }
        if self.json {
            return output::json(out, &Written { output: folder, parts: reports, kept });
        }
        if kept > 0 {
            writeln!(out, "{} already done", plural(kept, "part"))?;
        }
        Ok(())
    }

    /// Compresses one file to another, completely or not at all.
    fn file(&self, file: &Path, path: &Path, model: Option<&Model>) -> Result<Report> {
        let start = Instant::now();
        let packed = data::write_file(path, |out| self.compress(file, out, model).map_err(Failed));
        Ok(Report::new(path, packed.map_err(|Failed(error)| error)?, start.elapsed()))
    }

    fn compress(
        &self,
        file: &Path,
        out: &mut dyn Write,
        model: Option<&Model>,
    ) -> Result<Compressed> {
        let content = data::open_file(file)?;
        let name = file.display().to_string();
        let options = CompressOptions {
            width: self.width,
            epochs: self.epochs,
            seed: self.seed,
            header: self.reading.header(),
            ..CompressOptions::default()
        };
        let share = content.share();
        let new_bar = || RowsBar::new("compressing", 1);
        let (mut fit, mut rows) = match model {
            Some(_) => (None, Some(new_bar())),
            None => (Some(FitBar::new(Some(self.time))), None),
        };
        let out = AfterFit(out);
        let packed =
            compress_file_with(content, out, &name, model, &options, &mut |event| match event {
                CompressEvent::Fit(step) => {
                    fit.as_mut().map_or(Control::Stop, |bar| bar.step(step))
                }
                CompressEvent::Rows(count) => {
                    if let Some(bar) = fit.take() {
                        bar.finish();
                    }
                    rows.get_or_insert_with(new_bar).add(count, share.get());
                    Control::Continue
                }
                _ => Control::Continue,
            });
        signals::stop_at_once();
        if let Some(bar) = fit.take() {
            bar.finish();
        }
        Ok(packed?)
    }
}

/// Receives the output, which starts after the fit. From then on, a signal ends the command at once.
struct AfterFit<'a>(&'a mut dyn Write);

impl Write for AfterFit<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        signals::stop_at_once();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Report {
    fn new(path: &Path, packed: Compressed, took: Duration) -> Self {
        let (method, model_bytes, width, why) = match packed.method {
            Method::Given => ("given model", None, None, None),
            Method::Fitted { model_bytes, width } => {
                ("fitted model", Some(model_bytes), Some(width), None)
            }
            Method::Stored { why } => ("zstd", None, None, Some(why)),
        };
        Self {
            output: path.to_owned(),
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
        }
    }

    fn say(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(
            out,
            "wrote {}: {} of {} bytes, {:.2} times smaller, in {}",
            self.output.display(),
            grouped(self.bytes_out.into()),
            grouped(self.bytes_in.into()),
            self.ratio,
            time(Duration::from_secs_f64(self.seconds)),
        )?;
        match (&self.why, self.model_bytes, self.width) {
            (Some(why), ..) => writeln!(out, "compressed with zstd: {why}")?,
            (None, Some(bytes), Some(width)) => writeln!(
                out,
                "of these, {} are the fitted model of width {width}",
                grouped(bytes as u128)
            )?,
            _ => writeln!(out, "decompress it with the same --model")?,
        }
        if self.why.is_none() && self.stored > 0 {
            writeln!(
                out,
                "{} of {} segments are compressed with zstd",
                self.stored, self.segments
            )?;
        }
        Ok(())
    }
}

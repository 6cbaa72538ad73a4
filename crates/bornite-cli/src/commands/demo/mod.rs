//! `bornite demo`: a tour of the library, one step per file.

mod claim;
mod images;
mod pack;
mod table;
mod weather;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use bornite::data::Table;
use bornite::report::Report;
use bornite::{Fit, Model};
use clap::Args;

use crate::files;
use crate::progress::FitBar;
use crate::tables::parse_time;

/// Demonstrate squared orthonormal circuits on generated data.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite demo

Takes about a minute and writes to bornite-demo/: report.html and images.html with all plots of
two models and their interactive circuits, the models, samples, compressed images, and single plots.")]
pub(crate) struct Demo {
    /// The output folder.
    #[arg(short, long, default_value = "bornite-demo")]
    output: PathBuf,
    /// The random seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The time limit for each of the two fits.
    #[arg(long, default_value = "15s", value_parser = parse_time)]
    time: Duration,
}

/// The context of every step.
struct Stage<'a> {
    out: &'a mut dyn Write,
    folder: &'a Path,
    seed: u64,
    time: Duration,
}

impl Stage<'_> {
    /// Fits a model within the time limit, and returns how long it took.
    fn fit(&self, table: &Table) -> Result<(Model, Duration)> {
        let mut bar = FitBar::new(Some(self.time));
        let fit = Fit::new().seed(self.seed).quota(bar.quota());
        let model = fit.on_step(|p, _| bar.step(p)).run(table);
        let took = bar.finish();
        Ok((model?, took))
    }

    /// Writes the report of a model, with held-out rows.
    fn report(&mut self, model: &Model, fresh: &Table, name: &str, title: &str) -> Result<()> {
        let path = self.folder.join(name);
        let page = Report::new(model, Some(fresh), self.seed)?.html(title)?;
        files::write_text(&path, &page)?;
        writeln!(
            self.out,
            "\n  A page with all plots and the interactive circuit: {}",
            path.display()
        )?;
        Ok(())
    }
}

/// One step, which explains what it shows.
type Step = fn(&mut Stage<'_>) -> Result<()>;

const STEPS: &[Step] = &[claim::run, table::run, images::run];

impl Demo {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<ExitCode> {
        std::fs::create_dir_all(&self.output).map_err(|e| {
            anyhow!(
                "{}: cannot create the folder: {e}; choose another one with --output",
                self.output.display()
            )
        })?;
        let mut stage = Stage { out, folder: &self.output, seed: self.seed, time: self.time };
        for step in STEPS {
            step(&mut stage)?;
            stage.out.flush()?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

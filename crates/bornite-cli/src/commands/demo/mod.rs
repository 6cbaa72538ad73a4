//! `bornite demo`: what the library does, one step a file.

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
use bornite::Model;
use bornite::data::Table;
use bornite::report::Report;
use clap::Args;

use crate::files;
use crate::tables::parse_time;

/// Show what squared orthonormal circuits do, on data that are made here.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite demo

Takes about a minute and writes to bornite-demo/: report.html and images.html with all pictures of
two models and their live circuits, the models, samples, compressed images, and single pictures.")]
pub(crate) struct Demo {
    /// The folder for what the demo writes.
    #[arg(short, long, default_value = "bornite-demo")]
    output: PathBuf,
    /// The seed of everything random.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The longest time of each of the two fits.
    #[arg(long, default_value = "15s", value_parser = parse_time)]
    time: Duration,
}

/// What every step has.
struct Stage<'a> {
    out: &'a mut dyn Write,
    folder: &'a Path,
    seed: u64,
    time: Duration,
}

impl Stage<'_> {
    /// Writes the page of a model, with rows that it did not learn from.
    fn report(&mut self, model: &Model, fresh: &Table, name: &str, title: &str) -> Result<()> {
        let path = self.folder.join(name);
        let page = Report::new(model, Some(fresh), self.seed)?.html(title)?;
        files::write_text(&path, &page)?;
        writeln!(
            self.out,
            "\n  All pictures, and the live circuit, on one page: {}",
            path.display()
        )?;
        Ok(())
    }
}

/// One step: it tells what it shows, and shows it.
type Step = fn(&mut Stage<'_>) -> Result<()>;

const STEPS: &[Step] = &[claim::run, table::run, images::run];

impl Demo {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<ExitCode> {
        std::fs::create_dir_all(&self.output).map_err(|e| {
            anyhow!(
                "{}: cannot make the folder: {e}; give another with --output",
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

//! `bornite demo`: what the library does, one step a file.

mod claim;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Args;

/// Show what a squared orthonormal circuit does, on one that is built here.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite demo

Takes a few seconds and writes its pictures to bornite-demo/.")]
pub(crate) struct Demo {
    /// The folder for what the demo writes.
    #[arg(short, long, default_value = "bornite-demo")]
    output: PathBuf,
    /// The seed of everything random.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// What every step has.
struct Stage<'a> {
    out: &'a mut dyn Write,
    folder: &'a Path,
    seed: u64,
}

/// One step: it tells what it shows, and shows it.
type Step = fn(&mut Stage<'_>) -> Result<()>;

const STEPS: &[Step] = &[claim::run];

impl Demo {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<ExitCode> {
        std::fs::create_dir_all(&self.output).map_err(|e| {
            anyhow!(
                "{}: cannot make the folder: {e}; give another with --output",
                self.output.display()
            )
        })?;
        let mut stage = Stage { out, folder: &self.output, seed: self.seed };
        for step in STEPS {
            step(&mut stage)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

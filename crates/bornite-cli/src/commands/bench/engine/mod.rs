//! `bornite bench engine`: the batched engine, compared with the machine's peak throughput and its own operation
//! counts.

mod image;
mod report;
mod scaling;
mod single;

use std::io::{IsTerminal, Write};

use anyhow::{Result, bail};
use clap::Args;

use super::machine::{Machine, load, peak_memory_mib};
use super::stopwatch::Peak;
use crate::image::ImageSize;
use crate::output;
use report::Report;

/// The batched engine, compared with the machine's peak throughput and its own operation counts.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite bench engine --markdown > docs/benchmarks/engine.md")]
pub(crate) struct Engine {
    /// Use fewer widths, rows and repetitions: a minute instead of many.
    #[arg(long)]
    quick: bool,
    /// The maximum width: measures those of 8, 16 and 32 that do not exceed it.
    #[arg(long)]
    max_width: Option<usize>,
    /// The size of the image.
    #[arg(long, default_value = "28x28")]
    image: ImageSize,
    /// The seed of weights, values and missing cells.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown.
    #[arg(long)]
    markdown: bool,
}

const WIDTHS: [usize; 3] = [8, 16, 32];

/// How much to measure.
#[derive(Clone, Copy, Debug)]
struct Effort {
    quick: bool,
    /// The minimum number of repetitions, which continue until `seconds` have passed.
    repetitions: usize,
    seconds: f64,
}

impl Engine {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let max_width = self.max_width.unwrap_or(if self.quick { 16 } else { 32 });
        if max_width < WIDTHS[0] {
            bail!("--max-width {max_width}: the smallest width that is measured is {}", WIDTHS[0]);
        }
        // Before the measurement adds to the load.
        let machine = Machine::here();
        let effort = if self.quick {
            Effort { quick: true, repetitions: 2, seconds: 0.5 }
        } else {
            Effort { quick: false, repetitions: 4, seconds: 10.0 }
        };
        let mut peak = Peak::new();
        progress("scaling");
        // Measured first, while the process is small: its peak memory never decreases.
        let scaling = scaling::measure(self.seed, effort, &mut peak)?;
        let chosen: Vec<usize> = WIDTHS.into_iter().filter(|&k| k <= max_width).collect();
        progress("single answers");
        let single = single::measure(self.image, &chosen, self.seed, effort, &mut peak)?;
        let mut widths = Vec::new();
        for width in chosen {
            progress(&format!("image tree, K = {width}"));
            widths.push(image::measure(self.image, width, self.seed, effort, &mut peak)?);
        }
        let report = Report::new(report::Facts {
            machine,
            load_after: load(),
            threads: rayon::current_num_threads(),
            instruction_set: peak.level(),
            image: self.image,
            seed: self.seed,
            quick: self.quick,
            peak_memory_mib: peak_memory_mib(),
            peak_gflops: peak.rate() * 1e-9,
            peak_gflops_of_one_core: peak.cpu_rate().map(|r| r * 1e-9),
            widths,
            scaling,
            single,
        });
        if self.json { output::json(out, &report) } else { report.write(out, self.markdown) }
    }
}

/// Prints what is being measured if standard error is a terminal.
fn progress(what: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = writeln!(err, "measuring {what} …");
    }
}

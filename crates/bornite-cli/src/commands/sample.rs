use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bornite::data::{Table, write_table};
use bornite::model::Event;
use clap::Args;
use serde::Serialize;

use crate::device::{Device, with_flag_hint};
use crate::output::{self, plural};
use crate::progress::RowsBar;
use crate::streams::{Failed, Sink};
use crate::tables;

/// Sample rows from a model, exactly.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite sample people.model -n 1000 -o new.csv
  bornite sample people.model -n 20 --given \"sex='F', age in [30, 40)\" --seed 7 -o women.csv
  bornite sample people.model -n 5
  bornite sample digits.model -n 1000 --device cuda -o digits.npy

Writes CSV, or NPY or Parquet if the name ends in .npy or .parquet. Without -o, or with -o -,
prints CSV. Rows are drawn and written in pieces, so they need not fit into memory. The same seed
gives the same rows, and a larger number of rows starts with the same ones. With --json, prints
{columns, rows: [[cell]]}, and with -o also {output, number}.")]
pub(crate) struct Sample {
    /// The model file.
    model: PathBuf,
    /// The number of rows.
    #[arg(short = 'n', long = "number", value_name = "N", default_value_t = 1)]
    number: usize,
    /// The evidence: column=value, column in [a, b), column in {a, b}, separated by commas.
    #[arg(long, value_name = "QUERY", default_value = "")]
    given: String,
    /// The random seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where to sample. A GPU supports finite columns, such as images, without evidence.
    #[arg(long, value_enum, default_value_t)]
    device: Device,
    /// The file to write; - is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Overwrite the output even if it is the model.
    #[arg(long)]
    force: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Written<'a> {
    output: &'a Path,
    number: usize,
}

/// More cells than anybody can store.
const MAX_CELLS: usize = 1 << 44;
/// The cells that are drawn at once, and on a device that is fast with many rows.
const PIECE: usize = 1 << 18;
const LARGE_PIECE: usize = 1 << 20;

impl Sample {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = Some(&self.output).filter(|p| **p != Path::new("-"));
        if let Some(path) = path {
            tables::check_target(path, &[&self.model], self.force)?;
        }
        let model = tables::model(&self.model)?;
        let columns = model.schema().columns().len();
        if self.number.checked_mul(columns).is_none_or(|cells| cells > MAX_CELLS) {
            bail!(
                "--number {}: rows of {columns} columns have more than {MAX_CELLS} cells; sample fewer",
                self.number
            );
        }
        let event = Event::parse(model.schema(), &self.given)?;
        let event = Some(&event).filter(|_| !self.given.trim().is_empty());
        if event.is_some() && self.device == Device::Cuda {
            bail!("--device cuda does not support --given; --device auto uses the CPU instead");
        }
        let mut bar = RowsBar::new("sampling", 1);
        let mut draw = |put: &mut dyn FnMut(&Table) -> Result<()>| {
            let piece = if self.device == Device::Cpu { PIECE } else { LARGE_PIECE };
            let (most, mut done) = ((piece / columns).max(1), 0);
            // No rows are still a table.
            while done < self.number || done == 0 {
                let count = most.min(self.number - done);
                put(&match event {
                    Some(_) => model.sample_from(done as u64, event, count, self.seed)?,
                    None => model
                        .sample_on(done as u64, count, self.seed, self.device.into())
                        .map_err(with_flag_hint)?,
                })?;
                done += count;
                bar.add(count, Some(done as f64 / self.number.max(1) as f64));
                if count == 0 {
                    break;
                }
            }
            Ok(())
        };
        let Some(path) = path else {
            let mut sink = Sink::new(out, self.json);
            draw(&mut |rows| sink.write(rows))?;
            return sink.finish(&[]);
        };
        write_table(path, |writer| draw(&mut |rows| Ok(writer.write(rows)?)).map_err(Failed))
            .map_err(|Failed(error)| error)?;
        if self.json {
            return output::json(out, &Written { output: path, number: self.number });
        }
        writeln!(out, "wrote {}: {}", path.display(), plural(self.number, "row"))?;
        Ok(())
    }
}

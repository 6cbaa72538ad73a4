use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use bornite::data;
use bornite::model::decompress_file;
use clap::Args;
use serde::Serialize;

use crate::output::{self, grouped, time};
use crate::tables;

/// Restore a compressed file, byte for byte.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite decompress people.brz -o people.csv
  bornite decompress digits.brz --model digits.model -o t10k-images-idx3-ubyte

Needs --model if the file was compressed with --model. If the file is damaged or the model is the
wrong one, no file is written. Memory is bounded whatever the length of the file. If the output
name ends in .gz, the output is gzip-compressed; -o - is standard output. With --json, prints
{output, bytes_in, bytes_out, seconds}.")]
pub(crate) struct Decompress {
    /// The compressed file; - is standard input.
    file: PathBuf,
    #[command(flatten)]
    output: tables::Output,
    /// The model that the file was compressed with.
    #[arg(long, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    output: PathBuf,
    bytes_in: u64,
    bytes_out: u64,
    seconds: f64,
}

impl Decompress {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let path = &self.output.output;
        let is_standard = path == Path::new("-");
        if is_standard && self.json {
            bail!("standard output contains the restored bytes; remove --json");
        }
        if !is_standard {
            self.output.check([&self.file].into_iter().chain(&self.model))?;
        }
        let model = self.model.as_deref().map(tables::model).transpose()?;
        let packed = data::open_file(&self.file)?;
        let start = Instant::now();
        let name = self.file.display();
        if is_standard {
            decompress_file(packed, &mut *out, model.as_ref())
                .map_err(|e| anyhow!("{name}: {e}"))?;
            return Ok(out.flush()?);
        }
        let (bytes_in, bytes_out) =
            data::write_file(path, |out| decompress_file(packed, out, model.as_ref()))
                .map_err(|e| anyhow!("{name}: {e}"))?;
        let took = start.elapsed();
        let seconds = took.as_secs_f64();
        let report = Report { output: path.clone(), bytes_in, bytes_out, seconds };
        if self.json {
            return output::json(out, &report);
        }
        writeln!(
            out,
            "wrote {}: {} bytes from {} in {}",
            path.display(),
            grouped(bytes_out.into()),
            grouped(bytes_in.into()),
            time(took)
        )?;
        Ok(())
    }
}

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use bornite::Circuit;
use bornite::circuit::{CircuitError, check_orthonormality};
use bornite::file::{self, FileError};
use bornite::ops::log_partition;
use clap::Args;
use serde::Serialize;

use crate::files;
use crate::output::{self, yes_no};

/// Check the paper's properties: smooth, decomposable, structured-decomposable, orthonormal, log Z.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite circuit check c.json

Prints yes or no, or with --json {smooth, decomposable, structured_decomposable, orthonormal,
log_partition}. A log_partition of null means log 0, or that the circuit is itself a square.
The exit code is 1 if a product layer is not decomposable.")]
pub(crate) struct Check {
    /// The circuit file.
    file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an answer of its own")]
struct Properties {
    smooth: bool,
    decomposable: bool,
    structured_decomposable: bool,
    orthonormal: bool,
    log_partition: Option<f64>,
}

impl Check {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<ExitCode> {
        match file::load(&self.file) {
            Ok(circuit) => self.check(out, &circuit).map(|()| ExitCode::SUCCESS),
            Err(error) if overlaps(&error) => {
                // Every sum layer has one input, so its inputs cannot differ in scope.
                let properties = Properties {
                    smooth: true,
                    decomposable: false,
                    structured_decomposable: false,
                    orthonormal: false,
                    log_partition: None,
                };
                self.write(out, &properties, "", "not defined")?;
                out.flush()?;
                let _ = writeln!(std::io::stderr(), "not decomposable: {error}");
                Ok(ExitCode::from(1))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn check(&self, out: &mut dyn Write, circuit: &Circuit) -> Result<()> {
        let mut properties = Properties {
            smooth: true,
            decomposable: true,
            structured_decomposable: true,
            orthonormal: false,
            log_partition: None,
        };
        if files::is_squared(circuit) {
            return self.write(out, &properties, "  it is a square", "not defined: it is a square");
        }
        let report = check_orthonormality(circuit);
        let log_z = log_partition(circuit)?;
        properties.orthonormal = report.holds();
        properties.log_partition = Some(log_z);
        let residual =
            format!("  layer {} has the largest residual, {:.1e}", report.worst, report.residual);
        self.write(out, &properties, &residual, &output::number(log_z))
    }

    fn write(
        &self,
        out: &mut dyn Write,
        properties: &Properties,
        residual: &str,
        log_partition: &str,
    ) -> Result<()> {
        if self.json {
            return output::json(out, properties);
        }
        let orthonormal = format!("{:<3}{residual}", yes_no(properties.orthonormal));
        output::pairs(
            out,
            &[
                ("smooth", yes_no(properties.smooth).to_owned()),
                ("decomposable", yes_no(properties.decomposable).to_owned()),
                ("structured-decomposable", yes_no(properties.structured_decomposable).to_owned()),
                ("orthonormal", orthonormal.trim_end().to_owned()),
                ("log Z", log_partition.to_owned()),
            ],
        )?;
        Ok(())
    }
}

/// Whether the only problem of a file is that a product's inputs share a variable.
fn overlaps(error: &FileError) -> bool {
    match error {
        FileError::InFile { source, .. } => overlaps(source),
        FileError::Circuit { source, .. } => {
            matches!(source, CircuitError::OverlappingScopes { .. })
        }
        _ => false,
    }
}

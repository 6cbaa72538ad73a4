use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use bornite::{Circuit, Evidence, ops};
use clap::Args;
use serde::Serialize;

use crate::files;
use crate::output;

/// Compute c(x) and log ‖c(x)‖².
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite circuit evaluate c.json \"x0=1, x1=0.3\"

With --json, prints {amplitude, log_abs_squared}, where amplitude is a list of [re, im], one per output.
Its entries lose precision, or become 0 or null, outside the range of a 64-bit float;
log_abs_squared does not. A log_abs_squared of null means log 0.")]
pub(crate) struct Evaluate {
    /// The circuit file.
    file: PathBuf,
    /// A value for every variable.
    values: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    amplitude: Vec<[f64; 2]>,
    log_abs_squared: f64,
}

impl Evaluate {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let circuit = files::load(&self.file)?;
        let values = self.values(&circuit)?;
        let amplitude = ops::evaluate(&circuit, &values)?;
        let answer = Answer {
            amplitude: amplitude.to_values().iter().map(|z| [z.re, z.im]).collect(),
            log_abs_squared: amplitude.log_abs_squared(),
        };
        if self.json {
            return output::json(out, &answer);
        }
        let entry = |[re, im]: [f64; 2]| match im {
            0.0 => output::number(re),
            im if im < 0.0 => format!("{re:?} − {:?}i", -im),
            im => format!("{re:?} + {im:?}i"),
        };
        let mut pairs: Vec<(&str, String)> =
            answer.amplitude.iter().map(|&z| ("", entry(z))).collect();
        if let Some(first) = pairs.first_mut() {
            first.0 = "c(x)";
        }
        pairs.push(("log ‖c(x)‖²", output::number(answer.log_abs_squared)));
        output::pairs(out, &pairs)?;
        Ok(())
    }

    fn values(&self, circuit: &Circuit) -> Result<Vec<f64>> {
        let query = files::parse_query(circuit, &self.values)?;
        let mut values = Vec::with_capacity(circuit.num_variables());
        for (variable, evidence) in circuit.variables().iter().zip(query.evidence()) {
            let Evidence::Value(x) = evidence else {
                let name = &variable.name;
                bail!(
                    "variable '{name}' has no value: give every variable one, as in {name}=0, or use marginal"
                );
            };
            values.push(*x);
        }
        Ok(values)
    }
}

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use bornite::model::AnswerValue;
use clap::Args;

use crate::output::{self, number};
use crate::tables;

/// Ask a model for probabilities, means, quantiles or most likely values.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite query people.model \"P(income='>50K', age in [30, 40) | sex='F')\"
  bornite query people.model \"E[age | sex='F', city in {Bonn, Essen}]\"
  bornite query people.model \"quantile(age, 0.9 | income='>50K')\"
  bornite query people.model \"argmax(city | age < 30)\"

Evidence is column = value, column != value, column < number (<=, >, >=), column in [a, b), column in
{a, b}, separated by commas; quote names and values with spaces or punctuation. P is a density if a
continuous column is given a single value. With --json, prints {kind, value}, plus log for
probabilities and densities, and probability for argmax; a log of null means log 0.")]
pub(crate) struct Query {
    /// The model file.
    model: PathBuf,
    /// The question: P(…), E[…], median(…), quantile(…, p) or argmax(…).
    question: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Query {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let answer = tables::model(&self.model)?.ask(&self.question)?;
        if self.json {
            return output::json(out, &answer);
        }
        let value = match &answer.value {
            AnswerValue::Number(x) => number(*x),
            AnswerValue::Label(text) => text.clone(),
        };
        let mut pairs = vec![(answer.kind, value)];
        if let Some(log) = answer.log {
            pairs.push(("log", number(log)));
        }
        if let Some(p) = answer.probability {
            pairs.push(("probability", number(p)));
        }
        Ok(output::pairs(out, &pairs)?)
    }
}

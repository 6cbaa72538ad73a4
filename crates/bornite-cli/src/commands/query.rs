use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bornite::Model;
use bornite::data::Table;
use bornite::model::{Answer, AnswerValue, Question, Support};
use clap::Args;
use serde::Serialize;

use crate::output::{self, grouped, number, printable};
use crate::streams::{Outputs, Stream, Writing};
use crate::tables;

/// Ask a model for probabilities, means, quantiles or most likely values.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite query people.model \"P(income='>50K', age in [30, 40) | sex='F')\"
  bornite query people.model \"P(age < 30 or not owner | 2 <= rooms < 5)\" --data people.csv
  bornite query people.model \"E[age | sex='F', city in {Bonn, Essen}]\"
  bornite query people.model \"quantile(age, 0.9 | income='>50K')\"
  bornite query people.model \"argmax(city, sex | age < 30)\"
  bornite query people.model \"MI(city; income | age > 50)\"
  bornite query people.model \"P(income='>50K')\" --each 'days/*.parquet' --out-dir answers

Questions: P(…), E[…], std(…), var(…), corr(x, y), median(…), quantile(x, p), argmax(x, …), the entropy
H(x, …) and the mutual information MI(x, …; y, …) in nats, each with evidence after a |. Evidence is
column = value (or ==), column != value, column < number (<=, >, >=), 1 < column < 2, column in [a, b),
column in {a, b}, column not in {a, b}, joined by and, or, not, parentheses and commas; quote names and
values with spaces or punctuation. P is a density if a continuous column is given a single value. argmax of
several columns, and of wide integers in digits, is exact unless a bound is printed. H and MI are exact for
finite columns with few values, and averages over exact samples with a standard error otherwise. With --json,
prints {kind, value}, plus log for probabilities and densities, probability and bound for argmax, error for
H and MI, notes about values that were never seen, and rows {given, event} with --data; a log of null
means log 0.

Questions are restricted to the values in the model's domain: unseen values have probability 0, and a note
says so. Only scores give them a small probability.

With --each, P(…), E[…], median, quantile and argmax of one column are answered for every row of the tables,
given the row's cells in the columns that are not asked about. The result is a table with one column, as CSV,
NPY or Parquet. Tables are read and written in pieces; with --out-dir, each table gets its own output file,
and --resume continues after an interruption. With --json, prints {columns, rows: [[cell]]}, or
{output, rows} with -o.")]
pub(crate) struct Query {
    /// The model file.
    model: PathBuf,
    /// The question, such as P(…), E[…], std(…), corr(x, y), quantile(x, p), argmax(…), H(…) or MI(x; y).
    question: String,
    /// Also count the rows of these tables in which the evidence and the event hold.
    #[arg(long, value_name = "TABLE", num_args = 1..)]
    data: Vec<PathBuf>,
    /// Answer for every row of these tables, given its cells.
    #[arg(long, value_name = "TABLE", num_args = 1.., conflicts_with = "data")]
    each: Vec<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
    #[command(flatten)]
    reading: tables::Reading,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Support>,
}

impl Query {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let model = tables::model(&self.model)?;
        let question = Question::parse(model.schema(), &self.question)?;
        if !self.each.is_empty() {
            return self.each_row(&model, &question, out);
        }
        if self.outputs.output.is_some() || self.outputs.out_dir.is_some() {
            bail!("-o and --out-dir write one answer per row; give the tables with --each");
        }
        let answer = model.answer(&question)?;
        let rows = if self.data.is_empty() { None } else { Some(self.support(&model, &question)?) };
        if self.json {
            return output::json(out, &Report { answer: &answer, rows });
        }
        let mut pairs: Vec<(&str, String)> = match &answer.value {
            AnswerValue::Row(cells) => cells.iter().map(|(k, v)| (k.as_str(), text(v))).collect(),
            AnswerValue::Number(x) if is_information(&answer) => {
                vec![(answer.kind, format!("{} nats", number(*x)))]
            }
            value @ (AnswerValue::Number(_) | AnswerValue::Whole(_) | AnswerValue::Label(_)) => {
                vec![(answer.kind, text(value))]
            }
        };
        if let Some(error) = answer.error {
            pairs.push(("standard error", number(error)));
        }
        if let Some(log) = answer.log {
            pairs.push(("log", number(log)));
        }
        if let Some(p) = answer.probability {
            pairs.push(("probability", number(p)));
        }
        if let Some(bound) = answer.bound {
            pairs.push(("not exact", format!("no probability exceeds {}", number(bound))));
        }
        if let Some(rows) = rows {
            pairs.push(("rows with this evidence", grouped(rows.given as u128)));
            pairs.extend(rows.event.map(|n| ("rows with the event", grouped(n as u128))));
        }
        pairs.extend(answer.notes.iter().map(|note| ("note", note.clone())));
        Ok(output::pairs(out, &pairs)?)
    }
}

impl Query {
    /// The rows in which the evidence and the event hold.
    fn support(&self, model: &Model, question: &Question) -> Result<Support> {
        let mut sum = Support { given: 0, event: None };
        let stream = Stream::new(model, &self.data, &self.reading, "counting")?.without_text();
        stream.read(&mut |piece| {
            let found = model.support(question, piece.table)?;
            sum.given += found.given;
            sum.event = found.event.map(|n| n + sum.event.unwrap_or(0));
            Ok(None)
        })?;
        Ok(sum)
    }

    /// The answers for all rows.
    fn each_row(&self, model: &Model, question: &Question, out: &mut dyn Write) -> Result<()> {
        let answers = model.for_each_row(question)?;
        for note in model.notes(question) {
            let _ = writeln!(io::stderr(), "note: {}", printable(&note));
        }
        let stream = Stream::new(model, &self.each, &self.reading, "asking")?.without_text();
        let target = self.outputs.target(self.json);
        let writing = Writing { model: &self.model, outputs: &self.outputs, target, seed: 0 };
        let done = stream.write(writing, out, &Vec::new, &mut |piece| {
            Ok(Some(Table::new(vec![answers.answer(piece.table)?])?))
        })?;
        let Some(path) = target.path() else { return Ok(()) };
        if self.json {
            return output::json(out, &Written { output: path, rows: done.rows });
        }
        done.say(target, "", out)
    }
}

#[derive(Debug, Serialize)]
struct Written<'a> {
    output: &'a Path,
    rows: usize,
}

fn is_information(answer: &Answer) -> bool {
    answer.kind.ends_with("entropy") || answer.kind.ends_with("information")
}

fn text(value: &AnswerValue) -> String {
    match value {
        AnswerValue::Number(x) => number(*x),
        AnswerValue::Whole(_) | AnswerValue::Label(_) | AnswerValue::Row(_) => value.to_string(),
    }
}

//! One question, answered for every row of a table.

use super::cells::impossible_row;
use super::event::intersect;
use super::{Event, Imputation, Model, ModelError, Question};
use crate::data::{Column, EncodeOptions, Encoded, Mismatch, Table, Unseen};
use crate::engine::Batch;
use crate::mixture::log_sum;

/// The answers to a question for rows of tables, each given the evidence about the row.
///
/// Cells of the columns in question are ignored; missing cells and columns are integrated out.
///
/// ```
/// use bornite::Fit;
/// use bornite::data::{Column, Table};
/// use bornite::model::Question;
///
/// let pairs = [("rain", "yes"), ("rain", "yes"), ("rain", "no"), ("sun", "no"), ("sun", "no")].repeat(40);
/// let table = Table::new(vec![
///     Column::labels("sky", pairs.iter().map(|p| Some(p.0))),
///     Column::labels("umbrella", pairs.iter().map(|p| Some(p.1))),
/// ])?;
/// let model = Fit::new().run(&table)?;
/// let question = Question::parse(model.schema(), "P(umbrella='yes')")?;
/// let answers = model.for_each_row(&question)?.answer(&table)?;
/// let direct = model.ask("P(umbrella='yes' | sky='sun')")?.number().unwrap();
/// assert!((answers.number(3).unwrap() - direct).abs() < 1e-12);
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Debug)]
pub struct RowAnswers<'a> {
    model: &'a Model,
    question: &'a Question,
    /// The model conditioned on the question's evidence, if there is any.
    given: Option<Model>,
}

impl Model {
    /// Prepares to answer a question for every row of tables.
    ///
    /// # Errors
    /// The question is about several columns at once, or its evidence has probability 0.
    pub fn for_each_row<'a>(
        &'a self,
        question: &'a Question,
    ) -> Result<RowAnswers<'a>, ModelError> {
        let given = match question {
            Question::Probability { .. } => None,
            Question::Mean { given, .. } | Question::Quantile { given, .. } => Some(given),
            Question::Mode { columns, given } if columns.len() == 1 => Some(given),
            Question::Mode { .. }
            | Question::Variance { .. }
            | Question::Deviation { .. }
            | Question::Correlation { .. }
            | Question::Entropy { .. }
            | Question::Information { .. } => return Err(ModelError::NotForRows),
        };
        let given = given.filter(|given| !given.is_certain()).map(|given| self.under(given));
        Ok(RowAnswers { model: self, question, given: given.transpose()? })
    }

    /// log p(event, row) for every row, without the row's own transform slopes.
    fn log_with(&self, rows: &Encoded, known: &Event) -> Result<Vec<f64>, ModelError> {
        let variables = self.mixture.variables();
        let known = known.and(&self.schema, &self.given)?;
        let shares: Vec<f64> = known.log_shares(&self.schema).collect();
        let (mut queries, mut places) = (Vec::new(), Vec::new());
        for row in 0..rows.num_rows() {
            let own = self.schema.evidence_row(variables, &rows.row(row))?;
            for (case, share) in known.cases().iter().zip(&shares) {
                if let Some(query) = intersect(variables, case, &own) {
                    queries.push(query);
                    places.push((row, *share));
                }
            }
        }
        let mut logs = vec![Vec::new(); rows.num_rows()];
        if !queries.is_empty() {
            let found = self.mixture.log_marginals(&Batch::from_queries(variables, &queries)?)?;
            for ((row, share), log) in places.into_iter().zip(found) {
                logs[row].push(log + share);
            }
        }
        Ok(logs.iter().map(|logs| log_sum(logs) + known.log_slope()).collect())
    }
}

impl RowAnswers<'_> {
    /// Answers the question for every row of a table. The column is named after the kind of answer.
    ///
    /// # Errors
    /// A cell does not fit its column, or the evidence in a row has probability 0.
    pub fn answer(&self, table: &Table) -> Result<Column, ModelError> {
        let model = self.given.as_ref().unwrap_or(self.model);
        let name = |column: usize| model.schema.columns()[column].name.as_str();
        match self.question {
            Question::Probability { event, given } => self.probabilities(table, event, given),
            Question::Mean { column, .. } => {
                Ok(Column::numbers("mean", model.predict(table, name(*column))?.mean()?))
            }
            Question::Quantile { column, level, .. } => {
                let found = model.predict(table, name(*column))?.quantiles(&[*level])?;
                Ok(Column::numbers("quantile", found))
            }
            Question::Mode { columns, .. } => match columns[..] {
                [column] => {
                    let found = model.predict(table, name(column))?;
                    Ok(found.values_by(Imputation::Mode, 0)?.renamed("mode"))
                }
                _ => Err(ModelError::NotForRows),
            },
            Question::Variance { .. }
            | Question::Deviation { .. }
            | Question::Correlation { .. }
            | Question::Entropy { .. }
            | Question::Information { .. } => Err(ModelError::NotForRows),
        }
    }

    fn probabilities(
        &self,
        table: &Table,
        event: &Event,
        given: &Event,
    ) -> Result<Column, ModelError> {
        let schema = &self.model.schema;
        let is_asked = |c: &Column| schema.find(c.name()).is_ok_and(|n| event.is_about(schema, n));
        let mut kept: Vec<Column> =
            table.columns().iter().filter(|c| !is_asked(c)).cloned().collect();
        if kept.is_empty() {
            // A table with only the columns in question still has rows.
            kept.push(Column::unknown(table.columns()[0].name(), table.num_rows()));
        }
        let options = EncodeOptions { unseen: Unseen::Score, absent: Mismatch::Unknown };
        let rows = schema.encode_with(&table.with_columns(kept)?, options)?;
        let below = self.model.log_with(&rows, given)?;
        let above = self.model.log_with(&rows, &event.and(schema, given)?)?;
        if let Some(row) = below.iter().position(|log| *log == f64::NEG_INFINITY) {
            return Err(impossible_row(row));
        }
        let is_density = event.is_density();
        let value = |(above, below): (&f64, &f64)| {
            let log = above - below;
            if is_density { log.exp() } else { log.min(0.0).exp() }
        };
        let values = above.iter().zip(&below).map(value).collect();
        Ok(Column::numbers(if is_density { "density" } else { "probability" }, values))
    }
}

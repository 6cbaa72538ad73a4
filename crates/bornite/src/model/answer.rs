//! Answers to questions.

use std::fmt;

use serde::{Serialize, Serializer};

use super::{Event, Model, ModelError, Question};
use crate::data::{Cells, DataError, EncodeOptions, Mismatch, Storage, Table, Unseen};
use crate::linalg::Matrix;

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The kind of answer: `probability`, `density`, `mean`, `variance`, `standard deviation`, `correlation`,
    /// `quantile`, `mode`, `entropy`, `differential entropy` or `mutual information`.
    pub kind: &'static str,
    /// The answer itself.
    pub value: AnswerValue,
    /// The log of a probability or density; `null` in JSON for the log of 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<f64>,
    /// The probability of the most likely value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// An upper bound on the probability of any value, if the search ended before it could prove that its own value is
    /// the most likely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// The standard error of an estimate from samples. Answers without it are exact up to rounding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Notes, one sentence each, about values in the question that are outside the model's domain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A number, a label, or a value for each of several columns.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerValue {
    /// A number.
    Number(f64),
    /// A whole number.
    Whole(i64),
    /// A label.
    Label(String),
    /// Columns and their values.
    Row(Vec<(String, AnswerValue)>),
}

impl Serialize for AnswerValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AnswerValue::Number(x) => x.serialize(serializer),
            AnswerValue::Whole(x) => x.serialize(serializer),
            AnswerValue::Label(label) => label.serialize(serializer),
            AnswerValue::Row(cells) => serializer.collect_map(cells.iter().map(|(k, v)| (k, v))),
        }
    }
}

impl fmt::Display for AnswerValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerValue::Number(x) => x.fmt(f),
            AnswerValue::Whole(x) => x.fmt(f),
            AnswerValue::Label(label) => label.fmt(f),
            AnswerValue::Row(cells) => {
                let cells = cells.iter().map(|(name, value)| format!("{name}={value}"));
                cells.collect::<Vec<_>>().join(", ").fmt(f)
            }
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl Answer {
    /// The answer, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match &self.value {
            AnswerValue::Number(x) => Some(*x),
            AnswerValue::Whole(x) => Some(*x as f64),
            AnswerValue::Label(_) | AnswerValue::Row(_) => None,
        }
    }

    fn of(kind: &'static str, value: AnswerValue) -> Self {
        let notes = Vec::new();
        Self { kind, value, log: None, probability: None, bound: None, error: None, notes }
    }

    fn number_of(kind: &'static str, x: f64) -> Self {
        Self::of(kind, AnswerValue::Number(x))
    }
}

/// How many rows of a table an answer is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Support {
    /// The number of rows that satisfy the evidence.
    pub given: usize,
    /// The number of those rows that also satisfy the event, if the question asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<usize>,
}

impl Model {
    /// Answers a question in the [language of questions](Question).
    ///
    /// # Errors
    /// The text is not a question, or the evidence has probability 0.
    pub fn ask(&self, text: &str) -> Result<Answer, ModelError> {
        self.answer(&Question::parse(&self.schema, text)?)
    }

    /// Answers a question.
    ///
    /// # Errors
    /// The evidence has probability 0, or a numeric question is about a text column.
    pub fn answer(&self, question: &Question) -> Result<Answer, ModelError> {
        match self.answer_itself(question) {
            Ok(answer) => Ok(Answer { notes: self.notes(question), ..answer }),
            Err(ModelError::Impossible { what }) => Err(self.impossible(&what, question.given())),
            Err(error) => Err(error),
        }
    }

    fn answer_itself(&self, question: &Question) -> Result<Answer, ModelError> {
        let name = |column: usize| self.schema.columns()[column].name.as_str();
        match question {
            Question::Probability { event, given } => {
                let log_given = self.log_probability(given)?;
                if log_given == f64::NEG_INFINITY {
                    return Err(ModelError::Impossible { what: "the evidence".to_owned() });
                }
                let joint = event.and(&self.schema, given)?;
                let is_density = event.is_density();
                let mut log = self.log_probability(&joint)? - log_given;
                if !is_density {
                    log = log.min(0.0);
                }
                let kind = if is_density { "density" } else { "probability" };
                Ok(Answer { log: Some(log), ..Answer::number_of(kind, log.exp()) })
            }
            Question::Mean { column, given } => {
                let distribution = self.distribution(name(*column), given)?;
                Ok(Answer::number_of("mean", distribution.mean()?))
            }
            Question::Variance { column, given } => {
                Ok(Answer::number_of("variance", self.covariances(&[*column], given)?[(0, 0)]))
            }
            Question::Deviation { column, given } => {
                let variance = self.covariances(&[*column], given)?[(0, 0)];
                Ok(Answer::number_of("standard deviation", variance.sqrt()))
            }
            Question::Correlation { columns, given } => {
                let c = self.covariances(columns, given)?;
                if let Some(n) = (0..2).find(|&n| c[(n, n)] <= 0.0) {
                    let (column, what) = (name(columns[n]).to_owned(), "correlation");
                    return Err(ModelError::Constant { column, what });
                }
                let scale = c[(0, 0)].sqrt() * c[(1, 1)].sqrt();
                Ok(Answer::number_of("correlation", (c[(0, 1)] / scale).clamp(-1.0, 1.0)))
            }
            Question::Quantile { column, level, given } => {
                let distribution = self.distribution(name(*column), given)?;
                let values = distribution.quantile_values(*level)?;
                // Fails for text, which has no order.
                distribution.quantile(*level)?;
                Ok(Answer::of("quantile", self.answer_number(*column, &values)?))
            }
            Question::Mode { columns, given } => self.mode(columns, given),
            Question::Entropy { columns, given } => {
                let (value, error) = self.entropy(columns, given)?;
                let is_density = self.have_density(columns);
                let kind = if is_density { "differential entropy" } else { "entropy" };
                Ok(Answer { error, ..Answer::number_of(kind, value) })
            }
            Question::Information { first, second, given } => {
                let (value, error) = self.information_between(first, second, given)?;
                Ok(Answer { error, ..Answer::number_of("mutual information", value) })
            }
        }
    }

    /// Counts the rows of a table that a question is about: those that satisfy the evidence, and those that also
    /// satisfy the event.
    ///
    /// A row does not count if the outcome depends on a missing value.
    ///
    /// # Errors
    /// The table lacks a column of the model, or a cell has another type.
    pub fn support(&self, question: &Question, table: &Table) -> Result<Support, ModelError> {
        let options = EncodeOptions { unseen: Unseen::Missing, absent: Mismatch::Unknown };
        let rows = self.schema.encode_with(table, options)?;
        let given = question.given().and(&self.schema, &self.given)?;
        let joint = match question {
            Question::Probability { event, .. } => Some(event.and(&self.schema, &given)?),
            Question::Mean { .. }
            | Question::Variance { .. }
            | Question::Deviation { .. }
            | Question::Correlation { .. }
            | Question::Quantile { .. }
            | Question::Mode { .. }
            | Question::Entropy { .. }
            | Question::Information { .. } => None,
        };
        let variables = self.mixture.variables();
        let mut support = Support { given: 0, event: joint.as_ref().map(|_| 0) };
        for row in 0..rows.num_rows() {
            let values = rows.row(row);
            support.given += usize::from(given.holds_in(variables, &values));
            if let (Some(joint), Some(count)) = (&joint, &mut support.event) {
                *count += usize::from(joint.holds_in(variables, &values));
            }
        }
        Ok(support)
    }

    fn covariances(&self, columns: &[usize], given: &Event) -> Result<Matrix<f64>, ModelError> {
        let given = given.and(&self.schema, &self.given)?;
        Ok(self.covariance_within(columns, given.cases())?.1)
    }

    /// The most likely value of one column, or the most likely combination of values of several.
    fn mode(&self, columns: &[usize], given: &Event) -> Result<Answer, ModelError> {
        let variables: Vec<usize> =
            columns.iter().flat_map(|&column| self.schema.variables_of(column)).collect();
        if let ([column], [_]) = (columns, &variables[..]) {
            let name = &self.schema.columns()[*column].name;
            let (values, probability) = self.distribution(name, given)?.mode_values()?;
            let value = self.answer_cell(*column, &values)?;
            return Ok(Answer { probability, ..Answer::of("mode", value) });
        }
        let is_endless = |column: &&usize| {
            let mut variables = self.schema.variables_of(**column);
            variables.any(|v| self.mixture.variables()[v].domain.num_values().is_none())
        };
        if let Some(&column) = columns.iter().find(is_endless) {
            let problem =
                "argmax of several columns needs finite columns; ask for this one by itself";
            let column = self.schema.columns()[column].name.clone();
            return Err(DataError::Evidence { column, problem }.into());
        }
        let mut given = given.and(&self.schema, &self.given)?;
        for &column in columns.iter().filter(|&&column| self.schema.present(column).is_some()) {
            let name = &self.schema.columns()[column].name;
            given = given.and(&self.schema, &Event::known(&self.schema, name)?)?;
        }
        let found = self.most_likely(columns, given.cases())?;
        let (mut cells, mut start) = (Vec::new(), 0);
        for &column in columns {
            let end = start + self.schema.variables_of(column).len();
            let name = self.schema.columns()[column].name.clone();
            cells.push((name, self.answer_cell(column, &found.values[start..end])?));
            start = end;
        }
        let value = match (columns, cells.pop()) {
            ([_], Some((_, only))) => only,
            (_, last) => {
                cells.extend(last);
                AnswerValue::Row(cells)
            }
        };
        let (probability, bound) = (Some(found.probability), found.bound);
        Ok(Answer { probability, bound, ..Answer::of("mode", value) })
    }

    /// Decodes a cell: text for a text column, a number otherwise.
    fn answer_cell(&self, column: usize, values: &[f64]) -> Result<AnswerValue, ModelError> {
        if self.schema.columns()[column].storage == Storage::Labels {
            let cells = self.schema.decode_column(column, values)?;
            return Ok(AnswerValue::Label(cells.text(0).into_owned()));
        }
        self.answer_number(column, values)
    }

    /// Decodes a number; dates, times and values without a number become text.
    fn answer_number(&self, column: usize, values: &[f64]) -> Result<AnswerValue, ModelError> {
        let c = &self.schema.columns()[column];
        let number = c.kind.coding().number(c.storage, values);
        let cells = self.schema.decode_column(column, values)?;
        Ok(match (number.filter(|_| !c.kind.coding().is_time()), cells.cells()) {
            (None, _) => AnswerValue::Label(cells.text(0).into_owned()),
            (Some(x), Cells::Integers(cells)) => {
                cells.get(0).map_or(AnswerValue::Number(x), AnswerValue::Whole)
            }
            (Some(x), Cells::Numbers(_) | Cells::Labels(_)) => AnswerValue::Number(x),
        })
    }
}

//! Questions answered.

use std::fmt;

use serde::Serialize;

use super::{Model, ModelError, Question};

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// What it is: `probability`, `density`, `mean`, `quantile` or `mode`.
    pub kind: &'static str,
    /// The answer itself.
    pub value: AnswerValue,
    /// The log of a probability or density; `null` in JSON for the log of 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<f64>,
    /// The probability of the most likely value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

/// A number or a label.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AnswerValue {
    /// A number.
    Number(f64),
    /// A label.
    Label(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            AnswerValue::Number(x) => x.fmt(f),
            AnswerValue::Label(label) => label.fmt(f),
        }
    }
}

impl Answer {
    /// The answer, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match &self.value {
            AnswerValue::Number(x) => Some(*x),
            AnswerValue::Label(_) => None,
        }
    }

    fn number_of(kind: &'static str, x: f64) -> Self {
        Self { kind, value: AnswerValue::Number(x), log: None, probability: None }
    }
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
        let name = |column: usize| self.schema.columns()[column].name.as_str();
        match question {
            Question::Probability { event, given } => {
                let log_given = self.log_probability(given)?;
                if log_given == f64::NEG_INFINITY {
                    return Err(ModelError::Impossible { what: "what is given".to_owned() });
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
            Question::Quantile { column, level, given } => {
                let distribution = self.distribution(name(*column), given)?;
                let mut answer = Answer::number_of("quantile", distribution.quantile(*level)?);
                if self.schema.columns()[*column].kind.coding().is_time() {
                    let values = distribution.quantile_values(*level)?;
                    answer.value = AnswerValue::Label(distribution.text(&values)?);
                }
                Ok(answer)
            }
            Question::Mode { column, given } => {
                let distribution = self.distribution(name(*column), given)?;
                let (values, probability) = distribution.mode_values()?;
                let value = match distribution.number(&values) {
                    Some(x) if self.is_numeric(*column) => AnswerValue::Number(x),
                    _ => AnswerValue::Label(distribution.text(&values)?),
                };
                Ok(Answer { kind: "mode", value, log: None, probability })
            }
        }
    }

    fn is_numeric(&self, column: usize) -> bool {
        self.schema.columns()[column].storage != crate::data::Storage::Labels
    }
}

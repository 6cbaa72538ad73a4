//! The language of questions over columns.

mod parser;

use super::{Event, ModelError};
use crate::data::Schema;
use crate::names::shown;
use crate::query::parse::Parser;
use parser::{QuestionParser, STOPS};

/// A question to a model.
///
/// | question | answer |
/// |---|---|
/// | `P(income='>50K', age in [30, 40) \| sex='F')` | a probability; a density where a continuous column has a value |
/// | `E[age \| sex='F']`, `std(age \| …)`, `var(age \| …)` | the mean, standard deviation or variance of a numeric column |
/// | `corr(age, pay \| …)` | the correlation of two columns of numbers |
/// | `median(age \| …)`, `quantile(age, 0.9 \| …)` | the smallest number with at least this share below it |
/// | `argmax(city \| …)`, `argmax(city, age \| …)` | the most likely value, or values together |
/// | `H(city \| …)`, `MI(city; age, pay \| …)` | the entropy or mutual information of columns, in nats |
///
/// Events and evidence are: `column = value` (or `==`), `column != value`, `column < number` (or `<=`, `>`, `>=`), `1 <
/// column <= 2`, `column in [a, b)` with a square bracket for an included end, `column in {a, b}`, `column not in {a,
/// b}`, `column = ?` for no information, `column is missing` and `column is not missing` if missing is a value, and a
/// Boolean column by itself for its second label. They are combined with `and`, `or`, `not` and parentheses. A comma
/// also means *and*, with the lowest precedence. Names and values with spaces or punctuation are quoted with either
/// kind of quotes; a doubled quote stands for itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// P(event | given).
    Probability {
        /// The event.
        event: Event,
        /// The evidence.
        given: Event,
    },
    /// E[column | given].
    Mean {
        /// The column.
        column: usize,
        /// The evidence.
        given: Event,
    },
    /// The variance of a column.
    Variance {
        /// The column.
        column: usize,
        /// The evidence.
        given: Event,
    },
    /// The standard deviation of a column.
    Deviation {
        /// The column.
        column: usize,
        /// The evidence.
        given: Event,
    },
    /// The correlation of two columns.
    Correlation {
        /// The columns.
        columns: [usize; 2],
        /// The evidence.
        given: Event,
    },
    /// The quantile of a column.
    Quantile {
        /// The column.
        column: usize,
        /// The level, between 0 and 1.
        level: f64,
        /// The evidence.
        given: Event,
    },
    /// The most likely values of columns.
    Mode {
        /// The columns.
        columns: Vec<usize>,
        /// The evidence.
        given: Event,
    },
    /// The entropy of columns.
    Entropy {
        /// The columns.
        columns: Vec<usize>,
        /// The evidence.
        given: Event,
    },
    /// The mutual information of two groups of columns.
    Information {
        /// The first group.
        first: Vec<usize>,
        /// The second group.
        second: Vec<usize>,
        /// The evidence.
        given: Event,
    },
}

const FORMS: &str = "expected P(…), E[…], std(…), var(…), corr(…, …), median(…), quantile(…, p), argmax(…), H(…) or MI(…; …)";

impl Question {
    /// Parses a question.
    ///
    /// # Errors
    /// The text cannot be parsed. The error points at the offending character, and suggests the nearest name for an
    /// unknown column or label.
    pub fn parse(schema: &Schema, text: &str) -> Result<Self, ModelError> {
        let mut p = QuestionParser { cursor: Parser::new(text), schema, depth: 0 };
        let start = p.start();
        let head = p.cursor.word(STOPS, FORMS)?;
        let close = if p.cursor.take('(') {
            ')'
        } else if p.cursor.take('[') {
            ']'
        } else {
            return Err(p.cursor.error("expected '(' after the question's name").into());
        };
        let question = match head.to_lowercase().as_str() {
            "p" => {
                let event = p.conditions()?;
                Self::Probability { event, given: p.given()? }
            }
            "e" | "mean" => Self::Mean { column: p.column()?, given: p.given()? },
            "var" | "variance" => Self::Variance { column: p.column()?, given: p.given()? },
            "std" | "sd" => Self::Deviation { column: p.column()?, given: p.given()? },
            "corr" => {
                let first = p.column()?;
                p.cursor.expect(',', "expected ',' and another column, as in corr(x, y)")?;
                Self::Correlation { columns: [first, p.column()?], given: p.given()? }
            }
            "median" => Self::Quantile { column: p.column()?, level: 0.5, given: p.given()? },
            "quantile" => p.quantile()?,
            "argmax" | "mode" => Self::Mode { columns: p.columns()?, given: p.given()? },
            "h" | "entropy" => Self::Entropy { columns: p.columns()?, given: p.given()? },
            "mi" => {
                let first = p.columns()?;
                p.cursor.expect(';', "expected ';' between the columns, as in MI(x; y)")?;
                Self::Information { first, second: p.columns()?, given: p.given()? }
            }
            _ => {
                return Err(p
                    .cursor
                    .error_at(start, format!("{FORMS}, found '{}'", shown(&head)))
                    .into());
            }
        };
        if !p.cursor.take(close) {
            return Err(p.cursor.error(format!("expected ',', '|' or '{close}'")).into());
        }
        p.cursor.skip_space();
        if !p.cursor.is_done() {
            return Err(p.cursor.error("the question ends before this; remove the rest").into());
        }
        Ok(question)
    }

    /// The evidence of the question.
    pub(super) fn given(&self) -> &Event {
        match self {
            Self::Probability { given, .. }
            | Self::Mean { given, .. }
            | Self::Variance { given, .. }
            | Self::Deviation { given, .. }
            | Self::Correlation { given, .. }
            | Self::Quantile { given, .. }
            | Self::Mode { given, .. }
            | Self::Entropy { given, .. }
            | Self::Information { given, .. } => given,
        }
    }
}

impl Event {
    /// Parses evidence: what follows the `|` of a [`Question`].
    ///
    /// # Errors
    /// The text cannot be parsed. The error points at the offending character, and suggests the nearest name for an
    /// unknown column or label.
    pub fn parse(schema: &Schema, text: &str) -> Result<Self, ModelError> {
        let mut p = QuestionParser { cursor: Parser::new(text), schema, depth: 0 };
        p.cursor.skip_space();
        if p.cursor.is_done() {
            return Ok(Event::certain(schema.num_variables()));
        }
        let known = p.conditions()?;
        p.cursor.skip_space();
        if !p.cursor.is_done() {
            return Err(p.cursor.error("expected ',' between pieces of evidence").into());
        }
        Ok(known)
    }
}

//! Conditional models.

use std::sync::Arc;

use super::{Event, Model, ModelError};
use crate::query::Query;

impl Model {
    /// Conditions the model exactly on evidence in the language of [questions](super::Question), such as `sex='F', age
    /// in [30, 40)`.
    ///
    /// The circuits are unchanged. The evidence is stored with them, and every answer is divided by its probability.
    /// Columns with a given value remain columns of the model.
    ///
    /// # Errors
    /// The text cannot be parsed, or the evidence has probability 0.
    pub fn condition(&self, evidence: &str) -> Result<Self, ModelError> {
        let mut texts = self.given_texts.clone();
        texts.push(evidence.trim().to_owned());
        let copy = Self::new(self.schema.clone(), Arc::clone(&self.mixture), self.info.clone());
        copy.with_given(texts)
    }

    /// Translates the model's evidence and more evidence into a query on the circuit's variables, for operations on
    /// [`circuit`](Self::circuit) and for drawing it. If the evidence consists of several cases, such as `age < 30 or
    /// age > 60`, the query is the first of them.
    ///
    /// # Errors
    /// As for [`condition`](Self::condition).
    pub fn circuit_query(&self, evidence: &str) -> Result<Query, ModelError> {
        let given = self.condition(evidence)?.given;
        let unknown = || Query::unknown(self.schema.num_variables());
        Ok(given.cases().first().cloned().unwrap_or_else(unknown))
    }

    /// Conditions the model on an event.
    pub(super) fn under(&self, event: &Event) -> Result<Self, ModelError> {
        let mut copy = Self::new(self.schema.clone(), Arc::clone(&self.mixture), self.info.clone());
        let given = self.given.and(&self.schema, event)?;
        let log_given = copy.log_unconditional(&given)?;
        if log_given == f64::NEG_INFINITY {
            return Err(self.impossible("the evidence", &given));
        }
        (copy.given, copy.log_given, copy.given_texts) =
            (given, log_given, self.given_texts.clone());
        Ok(copy)
    }

    /// Conditions the model on several texts, one after another.
    pub(super) fn with_given(mut self, texts: Vec<String>) -> Result<Self, ModelError> {
        let mut given = self.given.clone();
        for text in &texts {
            given = given.and(&self.schema, &Event::parse(&self.schema, text)?)?;
        }
        let log_given = self.log_unconditional(&given)?;
        if log_given == f64::NEG_INFINITY {
            return Err(self.impossible(&format!("'{}'", texts.join(", ")), &given));
        }
        (self.given, self.log_given, self.given_texts) = (given, log_given, texts);
        Ok(self)
    }
}

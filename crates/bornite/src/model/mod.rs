//! Models of tables: fitted to rows, then queried by column name.
//!
//! A [`Model`] is a [`Schema`] and an orthonormal circuit over its variables, or a [`Mixture`] of several circuits. All
//! answers are exact for the model: scores with missing cells, probabilities of sets and intervals, conditional
//! samples, conditional models. Log densities are in nats per row, in the units of the data: they include the slope of
//! every continuous column's transform.
//!
//! ```
//! use bornite::Fit;
//! use bornite::data::{Column, Table};
//!
//! // Umbrellas follow the rain.
//! let pairs = [("rain", "yes"), ("rain", "yes"), ("rain", "no"), ("sun", "no"), ("sun", "no")].repeat(40);
//! let table = Table::new(vec![
//!     Column::labels("sky", pairs.iter().map(|p| Some(p.0))),
//!     Column::labels("umbrella", pairs.iter().map(|p| Some(p.1))),
//! ])?;
//! let model = Fit::new().run(&table)?;
//! let answer = model.ask("P(umbrella='yes' | sky='rain')")?;
//! assert!((answer.number().unwrap() - 2.0 / 3.0).abs() < 0.1);
//! # Ok::<(), bornite::Error>(())
//! ```

mod anomaly;
mod answer;
mod argmax;
mod baseline;
mod builder;
mod cells;
#[cfg(feature = "codec")]
mod compact;
#[cfg(feature = "codec")]
mod compress;
mod condition;
mod covariance;
#[cfg(feature = "codec")]
mod decompress;
mod distribution;
mod each;
#[cfg(feature = "codec")]
mod embedded;
mod error;
mod event;
mod file;
mod fit;
mod impute;
mod information;
mod large;
#[cfg(test)]
mod optional_tests;
mod options;
mod posterior;
mod predict;
mod question;
mod sample;
mod score;
mod start;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_mixtures;
mod truncate;
mod unseen;
mod weights;
mod worker;

use serde::{Deserialize, Deserializer, Serialize};

pub use anomaly::{Anomaly, Contribution, Strange};
pub use answer::{Answer, AnswerValue, Support};
pub use builder::Fit;
#[cfg(feature = "codec")]
pub use compress::{CompressOptions, Compressed, Method, compress_file};
#[cfg(feature = "codec")]
pub use decompress::{FileArchive, decompress_file};
pub use distribution::ColumnDistribution;
pub use each::RowAnswers;
pub use error::ModelError;
pub use event::Event;
pub use impute::Imputation;
pub use options::{ModelOptions, StructureKind};
pub(crate) use posterior::Posterior;
pub use predict::{Predictions, ValueProbabilities};
pub use question::Question;
pub use truncate::Truncation;
pub use worker::Worker;

use std::sync::Arc;

use crate::circuit::Orthonormal;
use crate::data::{LeftOut, Schema};
use crate::mixture::Mixture;

/// A distribution over the rows of a table.
#[derive(Debug)]
pub struct Model {
    schema: Schema,
    mixture: Arc<Mixture>,
    info: Info,
    /// What the model is conditioned on, as texts.
    given_texts: Vec<String>,
    given: Event,
    /// log p(given), in the units of the data.
    log_given: f64,
}

/// How a model was fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// The seed of everything random.
    pub seed: u64,
    /// The rows that were learned from.
    pub rows: usize,
    /// The rows that the best epoch was chosen by.
    pub valid_rows: usize,
    /// The mean log-likelihood of the validation rows, in nats and the units of the data.
    #[serde(deserialize_with = "number_or_null")]
    pub valid: f64,
    /// The same of the model in which all columns are independent.
    #[serde(deserialize_with = "number_or_null")]
    pub baseline: f64,
    /// The kind of structure.
    pub structure: String,
    /// The width of inner layers.
    pub width: usize,
    /// One entry an epoch.
    pub history: Vec<EpochInfo>,
    /// The model that this one was truncated from, where it was: all but the width is about the fit of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// The columns of the table that could not be learned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What was noted of the table, see [`Model::with_note`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The column that it was fitted to predict, if there is one. Its epochs then have the values of the objective
    /// log p(x, y) + λ log p(y | x) instead of log-likelihoods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// The model that a model was truncated from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truncated {
    /// The width of the model that was fitted.
    pub width: usize,
    /// The most that the two are apart in Hellinger distance.
    pub bound: f64,
}

impl Info {
    /// Of a model whose history was not kept.
    fn unknown() -> Self {
        Self {
            seed: 0,
            rows: 0,
            valid_rows: 0,
            valid: f64::NEG_INFINITY,
            baseline: f64::NEG_INFINITY,
            structure: String::new(),
            width: 0,
            history: Vec::new(),
            truncated: None,
            left_out: Vec::new(),
            note: None,
            target: None,
        }
    }
}

/// The results of an epoch, in nats per row and the units of the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochInfo {
    /// The mean log-likelihood of its batches, each before its step.
    #[serde(deserialize_with = "number_or_null")]
    pub train: f64,
    /// The mean log-likelihood of the validation rows after it.
    #[serde(deserialize_with = "number_or_null")]
    pub valid: f64,
    /// The largest entry of W Wᴴ − I of any inner weight.
    pub residual: f64,
}

/// JSON has no infinities: the log of 0 is written as `null`.
fn number_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NEG_INFINITY))
}

impl Model {
    /// The unconditional model of circuits over the variables of a schema.
    fn new(schema: Schema, mixture: impl Into<Arc<Mixture>>, info: Info) -> Self {
        let given = Event::nothing(schema.num_variables());
        let mixture = mixture.into();
        Self { schema, mixture, info, given_texts: Vec::new(), given, log_given: 0.0 }
    }

    /// The schema: what each column means.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The circuits and their weights, without the model's evidence.
    pub fn mixture(&self) -> &Mixture {
        &self.mixture
    }

    /// The circuit, without the model's evidence; of several the one of the greatest weight.
    pub fn circuit(&self) -> &Orthonormal {
        match self.mixture.circuits().next() {
            Some(first) => first,
            None => unreachable!("a mixture has a circuit"),
        }
    }

    /// How the model came about.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The same model with a note in its [`Info`], which its file preserves and nothing interprets, such as the column
    /// types of the original table.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<Option<String>>) -> Self {
        self.info.note = note.into();
        self
    }

    /// The evidence that the model is conditioned on, as text for [`Model::condition`].
    pub fn given(&self) -> &[String] {
        &self.given_texts
    }
}

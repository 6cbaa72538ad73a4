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

mod allowance;
mod anomaly;
mod answer;
mod argmax;
mod baseline;
mod builder;
mod cells;
#[cfg(feature = "codec")]
mod compact;
mod compound;
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
mod folds;
mod impute;
mod information;
mod large;
mod mode;
mod nodes;
mod options;
mod posterior;
mod predict;
mod question;
mod rows;
mod sample;
mod score;
mod start;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_dates;
#[cfg(test)]
mod tests_of_missing_values;
#[cfg(test)]
mod tests_of_mixtures;
#[cfg(feature = "report")]
mod transforms;
mod truncate;
mod unseen;
mod weights;
mod worker;

use serde::{Deserialize, Deserializer, Serialize};

pub use anomaly::{Anomaly, AnomalyCriterion, Contribution};
pub use answer::{Answer, AnswerValue, Support};
pub use builder::Fit;
#[cfg(feature = "codec")]
pub use compress::{
    CompressEvent, CompressOptions, Compressed, Method, compress_file, compress_file_with,
};
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

use std::sync::{Arc, OnceLock};

use crate::circuit::Orthonormal;
use crate::data::{LeftOut, Schema};
use crate::mixture::Mixture;

/// A distribution over the rows of a table.
#[derive(Debug)]
pub struct Model {
    schema: Schema,
    mixture: Arc<Mixture>,
    info: Info,
    /// The evidence, in the order in which it was given.
    given_texts: Vec<String>,
    given: Event,
    /// log p(given), in the units of the data.
    log_given: f64,
    /// How the densities of every variable vary, computed on demand.
    shapes: OnceLock<Vec<nodes::Shape>>,
}

/// How a model was fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// The random seed.
    pub seed: u64,
    /// The number of training rows, of each circuit if there are several.
    pub rows: usize,
    /// The number of validation rows, which determined the best epoch. In models of small tables, every circuit has
    /// other validation rows.
    pub valid_rows: usize,
    /// The mean log-likelihood of the validation rows, in nats and the units of the data. If circuits have
    /// different validation rows, the mean over the circuits, each with its own.
    #[serde(deserialize_with = "number_or_null")]
    pub valid: f64,
    /// The mean log-likelihood of the validation rows under a model with independent columns.
    #[serde(deserialize_with = "number_or_null")]
    pub baseline: f64,
    /// The kind of structure.
    pub structure: String,
    /// The width of inner layers.
    pub width: usize,
    /// The results of every epoch.
    pub history: Vec<EpochInfo>,
    /// The original model, if this one was truncated. Everything here except the width then describes the fit of the
    /// original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// The columns of the table that were not learned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// A note about the table: see [`Model::with_note`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The column that the model was fitted to predict, if any. The epochs then contain the values of the objective log
    /// p(x, y) + λ log p(y | x) instead of log-likelihoods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// The original of a truncated model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truncated {
    /// The width of the original model.
    pub width: usize,
    /// An upper bound on the Hellinger distance to the original model.
    pub bound: f64,
}

impl Info {
    /// The record of a model whose history was not kept.
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
    /// The mean log-likelihood of the batches, each evaluated before its step.
    #[serde(deserialize_with = "number_or_null")]
    pub train: f64,
    /// The mean log-likelihood of the validation rows after the epoch.
    #[serde(deserialize_with = "number_or_null")]
    pub valid: f64,
    /// The largest entry of W Wᴴ − I over all inner weights.
    pub residual: f64,
}

/// Reads a number. JSON has no infinities, so the log of 0 is written as `null`.
fn number_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NEG_INFINITY))
}

impl Model {
    /// An unconditional model.
    fn new(schema: Schema, mixture: impl Into<Arc<Mixture>>, info: Info) -> Self {
        let given = Event::certain(schema.num_variables());
        let mixture = mixture.into();
        Self {
            schema,
            mixture,
            info,
            given_texts: Vec::new(),
            given,
            log_given: 0.0,
            shapes: OnceLock::new(),
        }
    }

    /// The schema: what each column means.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The circuits and their weights, without the model's evidence.
    pub fn mixture(&self) -> &Mixture {
        &self.mixture
    }

    /// The circuit, without the model's evidence. If there are several, the one with the largest weight.
    pub fn circuit(&self) -> &Orthonormal {
        match self.mixture.circuits().next() {
            Some(first) => first,
            None => unreachable!("a mixture has a circuit"),
        }
    }

    /// How the model was fitted.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Adds a note to the model's [`Info`], such as the column types of the original table. The model's file preserves
    /// the note, and nothing interprets it.
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

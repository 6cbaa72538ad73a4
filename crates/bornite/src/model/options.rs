use std::fmt;

use crate::data::{InferOptions, Schema};

/// How a model is fitted. What is `None` follows from the size of the data: see [`Defaults`].
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOptions {
    /// What the columns mean; inferred where it is not given.
    pub schema: Option<Schema>,
    /// How it is inferred.
    pub infer: InferOptions,
    /// How the columns are split into regions.
    pub structure: StructureKind,
    /// The width K of inner layers.
    pub width: Option<usize>,
    /// The number r of squares that are summed.
    pub output_width: usize,
    /// The number of input functions of a continuous variable.
    pub functions: Option<usize>,
    /// The most passes over the rows.
    pub epochs: Option<usize>,
    /// Rows to a step.
    pub batch: Option<usize>,
    /// The largest step of a parameter.
    pub rate: Option<f64>,
    /// Stop after so many epochs without a better validation likelihood.
    pub patience: usize,
    /// The share of rows that are held out where no validation table is given.
    pub valid_share: f64,
    /// The seed of everything random.
    pub seed: u64,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            schema: None,
            infer: InferOptions::default(),
            structure: StructureKind::default(),
            width: None,
            output_width: 1,
            functions: None,
            epochs: None,
            batch: None,
            rate: None,
            patience: 15,
            valid_share: 0.1,
            seed: 0,
        }
    }
}

/// How the columns are split into regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StructureKind {
    /// Image cuts where the table is one of images, else learned.
    #[default]
    Auto,
    /// Average linkage of the columns' mutual information.
    Learned,
    /// Left and right halves, then upper and lower ones, and so on.
    Image,
    /// One column after the other.
    Linear,
    /// Halves of halves, in the order of the columns.
    Balanced,
    /// Halves of halves of a random order.
    Random,
}

impl fmt::Display for StructureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StructureKind::Auto => "auto",
            StructureKind::Learned => "learned",
            StructureKind::Image => "image",
            StructureKind::Linear => "linear",
            StructureKind::Balanced => "balanced",
            StructureKind::Random => "random",
        })
    }
}

/// Settings that need no tuning, from the number n of rows and d of variables.
///
/// | setting | value |
/// |---|---|
/// | width | ⁴√(n d) / 2, from 4 to 16: more cells can tell more apart |
/// | functions | 8, 12 from 1,000 and 16 from 10,000 rows on |
/// | batch | n / 50, from 32 to 512 |
/// | rate | 0.02, and 0.01 from 20,000 rows on |
/// | epochs | 4,000 steps in all, from 10 to 150 epochs; early stopping ends most fits before |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    /// The width K of inner layers.
    pub width: usize,
    /// The number of input functions of a continuous variable.
    pub functions: usize,
    /// Rows to a step.
    pub batch: usize,
    /// The largest step of a parameter.
    pub rate: f64,
    /// The most passes over the rows.
    pub epochs: usize,
}

impl Defaults {
    /// The settings for so many rows of so many variables.
    pub fn of(rows: usize, variables: usize) -> Self {
        let cells = rows as f64 * variables as f64;
        let batch = (rows / 50).clamp(32, 512).min(rows.max(1));
        Self {
            width: ((cells.powf(0.25) / 2.0).round() as usize).clamp(4, 16),
            functions: if rows < 1_000 { 8 } else { 12 + 4 * usize::from(rows >= 10_000) },
            batch,
            rate: if rows < 20_000 { 0.02 } else { 0.01 },
            epochs: (4_000 * batch / rows.max(1)).clamp(10, 150),
        }
    }
}

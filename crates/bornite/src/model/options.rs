use std::fmt;

use crate::data::{InferOptions, Schema};
use crate::learn::{Defaults, FitOptions, Optimizer, Parameterization, Schedule};

/// How a model is fitted. What is `None` follows from the size of the data: see [`Defaults`](crate::learn::Defaults).
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOptions {
    /// What the columns mean; inferred where it is not given.
    pub schema: Option<Schema>,
    /// How it is inferred.
    pub infer: InferOptions,
    /// How the columns are split into regions.
    pub structure: StructureKind,
    /// The width K of inner layers. Without one, several are tried where the table is small.
    pub width: Option<usize>,
    /// The number r of squares that are summed.
    pub output_width: Option<usize>,
    /// The number of input functions of a continuous variable.
    pub functions: Option<usize>,
    /// The most passes over the rows.
    pub epochs: Option<usize>,
    /// Rows to a step.
    pub batch: Option<usize>,
    /// The largest step of a parameter.
    pub rate: Option<f64>,
    /// Stop after so many epochs without a better validation likelihood.
    pub patience: Option<usize>,
    /// The share of the average of past weights that one step keeps.
    pub averaging: Option<f64>,
    /// How weights are kept normalized.
    pub parameterization: Parameterization,
    /// How gradients become steps.
    pub optimizer: Optimizer,
    /// How the size of steps changes over the fit.
    pub schedule: Schedule,
    /// The largest norm of a step's gradient.
    pub clip: Option<f64>,
    /// How strongly the input weights of finite columns of ordered values are drawn towards smooth ones: see
    /// [`FitOptions::smoothing`].
    pub smoothing: Option<f64>,
    /// The share of rows that are held out where no validation table is given.
    pub valid_share: f64,
    /// Fit all rows and columns. Otherwise columns that cannot be learned, such as identifiers, are left out: see
    /// [`Schema::findings`] and [`Info::left_out`](super::Info::left_out).
    pub as_is: bool,
    /// Refuse a table with anything that cannot be learned, instead of leaving columns out.
    pub strict: bool,
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
            output_width: None,
            functions: None,
            epochs: None,
            batch: None,
            rate: None,
            patience: None,
            averaging: None,
            parameterization: Parameterization::default(),
            optimizer: Optimizer::default(),
            schedule: Schedule::default(),
            clip: None,
            smoothing: None,
            valid_share: 0.1,
            as_is: false,
            strict: false,
            seed: 0,
        }
    }
}

impl ModelOptions {
    /// The settings of each fit that is to be tried, the narrowest first.
    pub(super) fn candidates(&self, defaults: &Defaults, schema: &Schema) -> Vec<FitOptions> {
        let default = if schema.image().is_some() { defaults.image_smoothing() } else { 0.0 };
        let smoothing = self.smoothing.unwrap_or(default);
        let is_smooth = |&ordered: &bool| if ordered { smoothing } else { 0.0 };
        let smoothing: Vec<f64> = schema.ordered().iter().map(is_smooth).collect();
        let given = self.width.as_ref().map(std::slice::from_ref);
        let widths = given.unwrap_or_else(|| defaults.widths());
        let options = |&width: &usize| {
            let default = defaults.options(width);
            FitOptions {
                squares: self.output_width.unwrap_or(default.squares),
                epochs: self.epochs.unwrap_or(default.epochs),
                batch: self.batch.unwrap_or(default.batch),
                rate: self.rate.unwrap_or(default.rate),
                patience: self.patience.unwrap_or(default.patience),
                averaging: self.averaging.unwrap_or(default.averaging),
                parameterization: self.parameterization,
                optimizer: self.optimizer,
                schedule: self.schedule,
                clip: self.clip,
                smoothing: smoothing.clone(),
                seed: self.seed,
                ..default
            }
        };
        widths.iter().map(options).collect()
    }
}

/// How the columns are split into regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StructureKind {
    /// Image cuts where the table is one of images, else Chow and Liu's tree or average linkage, whichever learns better in a
    /// short trial.
    #[default]
    Auto,
    /// Chow and Liu's tree of the columns' mutual information, from its middle out.
    ChowLiu,
    /// Average linkage of the columns' mutual information.
    Linkage,
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
            StructureKind::ChowLiu => "chow-liu",
            StructureKind::Linkage => "linkage",
            StructureKind::Image => "image",
            StructureKind::Linear => "linear",
            StructureKind::Balanced => "balanced",
            StructureKind::Random => "random",
        })
    }
}

use std::fmt;
use std::time::Duration;

use super::ModelError;
use crate::data::{InferOptions, Schema};
use crate::learn::{Device, Effort, FitOptions, Optimizer, Parameterization, Schedule};
use crate::structure::Widths;

/// How to fit a model. Options that are `None` depend on the size of the data: see
/// [`Defaults`](crate::learn::Defaults).
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOptions {
    /// The schema of the columns; inferred by default.
    pub schema: Option<Schema>,
    /// How to infer the schema.
    pub infer: InferOptions,
    /// The column with the row weights: positive numbers, or 0 to drop a row. It does not become part of the model. By
    /// default, and in a validation table without this column, all rows have the same weight.
    ///
    /// Rows are used in proportion to their weights, to the nearest quarter of the mean weight. The schema is inferred
    /// from all rows equally.
    pub weights: Option<String>,
    /// How much effort to spend.
    pub effort: Effort,
    /// How the columns are split into regions.
    pub structure: StructureKind,
    /// The maximum number of circuits in the model, which is a mixture if there are several.
    ///
    /// Models of small tables average circuits that are fitted independently, each with other validation rows unless the
    /// caller has some: by default 5 with up to 50,000 cells (3 with [`Effort::Fast`], 8 with [`Effort::Best`], at most 3 if they learn from a mixture
    /// of normal distributions) and 3 with up to 150,000 (1 and 5). On larger tables, a circuit is kept if it improves the validation likelihood: by default up to 2, or 4 with
    /// [`Effort::Best`] or a time limit, and 1 with [`Effort::Fast`]. Only 1 for images, and if the structure or a width
    /// is given.
    ///
    /// If none of this is given, and all of more than 48 columns are finite, a model can also have the 64 narrow circuits of
    /// a decoder, a mixture of products whose components share their parameters, if these improve the validation
    /// likelihood. A number given here leaves them out.
    pub circuits: Option<usize>,
    /// The width K of inner layers. By default, several widths are tried if the table is small.
    pub width: Option<usize>,
    /// Widths by the number of a region's variables, instead of one width for all.
    pub widths: Option<Widths>,
    /// The size of the codebook that finite columns with the same domain share; 0 for none.
    pub codebook: Option<usize>,
    /// The maximum size of regions that share weights, in pixels for images and in columns otherwise; 0 for none.
    pub share: Option<usize>,
    /// The number r of squares in the sum.
    pub output_width: Option<usize>,
    /// The number of input functions of a continuous variable.
    pub functions: Option<usize>,
    /// The maximum number of passes over the rows.
    pub epochs: Option<usize>,
    /// The number of rows per step.
    pub batch: Option<usize>,
    /// The learning rate, which bounds the step of a parameter.
    pub rate: Option<f64>,
    /// Stop after this many epochs without a better validation likelihood.
    pub patience: Option<usize>,
    /// The decay of the running average of weights per step.
    pub averaging: Option<f64>,
    /// How weights are kept normalized.
    pub parameterization: Parameterization,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The learning rate schedule.
    pub schedule: Schedule,
    /// The maximum norm of a step's gradient.
    pub clip: Option<f64>,
    /// The penalty on differences between the input weights of neighboring values of ordered finite columns: see
    /// [`FitOptions::smoothing`].
    pub smoothing: Option<f64>,
    /// Also learn from images shifted by a pixel, if all pixels have the same domain.
    pub shifts: Option<bool>,
    /// The column to predict: the fit gives more weight to log p(target | the rest). The result is still a model of all
    /// columns.
    pub target: Option<String>,
    /// The weight of the target: the factor λ of [`FitOptions::emphasis`]; 5 by default.
    pub emphasis: Option<f64>,
    /// How long the fit may take: with many images, longer fits train larger circuits. This option does not end the
    /// fit; the caller does.
    pub time: Option<Duration>,
    /// The fraction of rows to hold out if no validation table is given.
    pub valid_share: f64,
    /// Fit all rows and columns. By default, columns that cannot be learned, such as identifiers, are dropped: see
    /// [`Schema::findings`] and [`Info::left_out`](super::Info::left_out).
    pub as_is: bool,
    /// Reject a table with anything that cannot be learned, instead of dropping columns.
    pub strict: bool,
    /// The random seed.
    pub seed: u64,
    /// The device that runs the fit.
    pub device: Device,
}

/// The default factor λ of log p(target | the rest). With a large factor, a circuit overfits the conditional distribution.
const EMPHASIS: f64 = 5.0;

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            schema: None,
            infer: InferOptions::default(),
            weights: None,
            effort: Effort::default(),
            structure: StructureKind::default(),
            circuits: None,
            width: None,
            widths: None,
            codebook: None,
            share: None,
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
            shifts: None,
            target: None,
            emphasis: None,
            time: None,
            valid_share: 0.1,
            as_is: false,
            strict: false,
            seed: 0,
            device: Device::default(),
        }
    }
}

impl ModelOptions {
    /// Overrides default settings with the given options.
    pub(super) fn over(&self, default: FitOptions, schema: &Schema) -> FitOptions {
        let channels = schema.image().map_or(1, |[_, _, channels]| channels);
        let target = self.target.as_deref().and_then(|name| schema.find(name).ok());
        let target = target.map_or(0..0, |column| schema.variables_of(column));
        FitOptions {
            width: match &self.widths {
                Some(widths) => widths.largest(),
                None => self.width.unwrap_or(default.width),
            },
            widths: self.widths.clone().or(default.widths.filter(|_| self.width.is_none())),
            codebook: self.codebook.or(default.codebook).filter(|&size| size > 0),
            share: channels * self.share.unwrap_or(default.share),
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
            smoothing: match self.smoothing {
                Some(s) => schema.ordered().iter().map(|&is| if is { s } else { 0.0 }).collect(),
                None => default.smoothing,
            },
            shifts: match (self.shifts, schema.image()) {
                (Some(true), image) if has_one_domain(schema) => image,
                (Some(_), _) => None,
                (None, _) => default.shifts,
            },
            emphasis: if target.is_empty() { 0.0 } else { self.emphasis.unwrap_or(EMPHASIS) },
            target: target.collect(),
            seed: self.seed,
            device: self.device,
            ..default
        }
    }

    /// Checks that numbers are in their ranges.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        let positive = [
            ("width", self.width),
            ("circuits", self.circuits),
            ("output width", self.output_width),
            ("functions", self.functions),
            ("epochs", self.epochs),
            ("batch", self.batch),
            ("patience", self.patience),
        ];
        for (setting, value) in positive {
            if value == Some(0) {
                return Err(ModelError::Option { setting, value: 0.0, remedy: "give at least 1" });
            }
        }
        if let Some(rate) = self.rate.filter(|r| !(*r > 0.0 && *r <= 1.0)) {
            let remedy = "give a number above 0 and at most 1, such as 0.01";
            return Err(ModelError::Option { setting: "rate", value: rate, remedy });
        }
        if let Some(clip) = self.clip.filter(|c| !(*c > 0.0 && c.is_finite())) {
            let remedy = "give a number above 0, such as 1";
            return Err(ModelError::Option { setting: "clip", value: clip, remedy });
        }
        if let Some(smoothing) = self.smoothing.filter(|s| !(*s >= 0.0 && *s <= 100.0)) {
            let remedy = "give a number from 0 to 100, such as 0.1";
            return Err(ModelError::Option { setting: "smoothing", value: smoothing, remedy });
        }
        if let Some(averaging) = self.averaging.filter(|a| !(*a >= 0.0 && *a < 1.0)) {
            let remedy = "give a number from 0 to below 1, such as 0.99";
            return Err(ModelError::Option { setting: "averaging", value: averaging, remedy });
        }
        if let Some(emphasis) = self.emphasis.filter(|e| !(*e >= 0.0 && *e <= 1e6)) {
            let remedy = "give a number from 0 to 1e6, such as 10";
            return Err(ModelError::Option { setting: "emphasis", value: emphasis, remedy });
        }
        let share = self.valid_share;
        if !(share > 0.0 && share < 1.0) {
            let remedy = "give a fraction between 0 and 1, such as 0.1";
            return Err(ModelError::Option { setting: "valid share", value: share, remedy });
        }
        Ok(())
    }
}

fn has_one_domain(schema: &Schema) -> bool {
    schema.variables().windows(2).all(|pair| pair[0].domain == pair[1].domain)
}

/// How the columns are split into regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StructureKind {
    /// Image cuts for a table of images, otherwise the Chow–Liu tree or average linkage, whichever does better in a
    /// short trial.
    #[default]
    Auto,
    /// The Chow–Liu tree of the columns' mutual information, split from its center outward.
    ChowLiu,
    /// Average linkage of the columns' mutual information.
    Linkage,
    /// Alternating upper and lower, then left and right halves of the square around the image whose side is a power of
    /// two.
    Image,
    /// One column at a time.
    Linear,
    /// Recursive halves, in column order.
    Balanced,
    /// Recursive halves of a random order.
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

use std::fmt;
use std::time::Duration;

use crate::data::{InferOptions, Schema};
use crate::learn::{Device, Effort, FitOptions, Optimizer, Parameterization, Schedule};
use crate::structure::Widths;

/// How to fit a model. Options that are `None` depend on the size of the data: see
/// [`Defaults`](crate::learn::Defaults).
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOptions {
    /// What the columns mean; inferred if it is not given.
    pub schema: Option<Schema>,
    /// How it is inferred.
    pub infer: InferOptions,
    /// The column that says what each row counts for: positive numbers, or 0 for rows that are left out. It is no column of the
    /// model. All rows count alike if it is not given, and in a validation table that does not have it.
    ///
    /// Rows are learned from as often as their weights say, to the nearest quarter of a mean weight. What the columns mean
    /// is inferred from all rows alike.
    pub weights: Option<String>,
    /// How much is tried.
    pub effort: Effort,
    /// How the columns are split into regions.
    pub structure: StructureKind,
    /// The maximum number of circuits of the model, which is a mixture of them if there are several: each is kept if the validation rows are likelier
    /// with it. Without a number it is 2, or 4 with [`Effort::Best`] or a time, and 1 with [`Effort::Fast`], for images, and where the structure
    /// or a width is given.
    pub circuits: Option<usize>,
    /// The width K of inner layers. Without one, several are tried where the table is small.
    pub width: Option<usize>,
    /// Widths by the number of a region's variables, instead of one for all.
    pub widths: Option<Widths>,
    /// The size of the codebook that finite columns of one domain share; 0 for none.
    pub codebook: Option<usize>,
    /// The maximum number of pixels of regions of images, or else columns of regions, that share weights; 0 for none.
    pub share: Option<usize>,
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
    /// Learn images moved by a pixel as well, where their pixels have one domain.
    pub shifts: Option<bool>,
    /// The column that is to be predicted: the fit takes more account of log p(target | the rest). It is still a model of all columns.
    pub target: Option<String>,
    /// How much more: the factor λ of [`FitOptions::emphasis`].
    pub emphasis: Option<f64>,
    /// How long the fit may take: of many images, longer fits learn larger circuits. It ends nothing; the caller does.
    pub time: Option<Duration>,
    /// The share of rows that are held out where no validation table is given.
    pub valid_share: f64,
    /// Fit all rows and columns. Otherwise columns that cannot be learned, such as identifiers, are left out: see
    /// [`Schema::findings`] and [`Info::left_out`](super::Info::left_out).
    pub as_is: bool,
    /// Refuse a table with anything that cannot be learned, instead of leaving columns out.
    pub strict: bool,
    /// The seed of everything random.
    pub seed: u64,
    /// Where the fit is computed.
    pub device: Device,
}

/// The factor of log p(target | the rest).
const EMPHASIS: f64 = 10.0;

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
    /// Default settings, with what is given instead.
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
}

fn has_one_domain(schema: &Schema) -> bool {
    schema.variables().windows(2).all(|pair| pair[0].domain == pair[1].domain)
}

/// How the columns are split into regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StructureKind {
    /// Image cuts where the table is one of images, else the Chow–Liu tree or average linkage, whichever learns better in a
    /// short trial.
    #[default]
    Auto,
    /// the Chow–Liu tree of the columns' mutual information, from its middle out.
    ChowLiu,
    /// Average linkage of the columns' mutual information.
    Linkage,
    /// Upper and lower halves, then left and right ones, and so on, of the square around the image whose side is a power of two.
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

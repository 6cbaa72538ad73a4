//! From a table to a model.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::baseline::Independent;
use super::{EpochInfo, Info, Model, ModelError, ModelOptions, StructureKind};
use crate::circuit::{Circuit, Weights};
use crate::data::{Encoded, LeftOut, Schema, Table};
use crate::engine::Batch;
use crate::learn::{
    self, BestFit, Control, Defaults, FitOptions, Progress, Snapshot, fit_best, most_promising,
};
use crate::structure::{
    InformationOptions, MutualInformation, RegionTree, Structure, average_linkage, chow_liu_tree,
    mutual_information, root_edges,
};

/// The most variables whose structure is learned: all pairs are compared.
const MAX_LEARNED: usize = 4096;
/// The width of circuits that choose between trees.
const TRIAL_WIDTH: usize = 4;

impl Model {
    /// Fits a model to the rows of a table: see [`Fit`](super::Fit).
    pub(super) fn fit_from(
        table: &Table,
        valid: Option<&Table>,
        options: &ModelOptions,
        checkpoint: Option<&[u8]>,
        progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
    ) -> Result<Self, ModelError> {
        check(table, valid, options)?;
        let schema = match &options.schema {
            Some(schema) => schema.clone(),
            None => Schema::infer(table, &options.infer)?,
        };
        let (schema, left_out) = learnable(schema, table, options)?;
        let (train, valid) = split(&schema, table, valid, options)?;
        let (train_rows, valid_rows) = (train.batch(), valid.batch());
        let defaults = Defaults::of(train.num_rows(), schema.num_variables())
            .with_holes(train_rows.has_missing());
        let fits = Candidates { schema: &schema, options, defaults };
        let (kind, tree) = fits.structure(train_rows, valid_rows)?;
        let candidates = fits.over(&tree, &options.candidates(&defaults, &schema))?;
        let best = fit_best(&candidates, train_rows, valid_rows, checkpoint, progress)?;
        let Some(BestFit { index, fit, .. }) = best else {
            unreachable!("there is a width to try")
        };
        let mean = |encoded: &Encoded| {
            encoded.log_jacobian().iter().sum::<f64>() / encoded.num_rows().max(1) as f64
        };
        let (train_slope, valid_slope) = (mean(&train), mean(&valid));
        let epoch = |e: &learn::Epoch| EpochInfo {
            train: e.train + train_slope,
            valid: e.valid + valid_slope,
            residual: e.residual,
        };
        let info = Info {
            seed: options.seed,
            rows: train.num_rows(),
            valid_rows: valid.num_rows(),
            valid: learn::mean_log_likelihood(&fit.circuit, valid_rows) + valid_slope,
            baseline: Independent::fit(&schema, &train).mean_log_likelihood(&schema, &valid),
            structure: kind.to_string(),
            width: candidates[index].1.width,
            history: fit.history.iter().map(epoch).collect(),
            truncated: None,
            left_out,
        };
        Ok(Self::new(schema, fit.circuit, info))
    }
}

/// The schema of the columns that can be learned, and those that were left out.
fn learnable(
    schema: Schema,
    table: &Table,
    options: &ModelOptions,
) -> Result<(Schema, Vec<LeftOut>), ModelError> {
    let Some(found) = schema.findings(table).filter(|_| !options.as_is) else {
        return Ok((schema, Vec::new()));
    };
    if options.strict || found.is_hopeless() {
        return Err(ModelError::LittleToLearn(found));
    }
    let schema =
        if found.columns().is_empty() { schema } else { schema.without(&found.columns())? };
    Ok((schema, found.left_out()))
}

fn check(table: &Table, valid: Option<&Table>, options: &ModelOptions) -> Result<(), ModelError> {
    if table.num_rows() == 0 {
        return Err(ModelError::NoRows { which: "the table" });
    }
    if valid.is_some_and(|v| v.num_rows() == 0) {
        return Err(ModelError::NoRows { which: "the validation table" });
    }
    let positive = [
        ("width", options.width),
        ("output width", options.output_width),
        ("functions", options.functions),
        ("epochs", options.epochs),
        ("batch", options.batch),
        ("patience", options.patience),
    ];
    for (setting, value) in positive {
        if value == Some(0) {
            return Err(ModelError::Option { setting, value: 0.0, remedy: "give 1 or more" });
        }
    }
    if let Some(rate) = options.rate.filter(|r| !(*r > 0.0 && *r <= 1.0)) {
        let remedy = "give a number above 0 and at most 1, such as 0.01";
        return Err(ModelError::Option { setting: "rate", value: rate, remedy });
    }
    if let Some(clip) = options.clip.filter(|c| !(*c > 0.0 && c.is_finite())) {
        let remedy = "give a number above 0, such as 1";
        return Err(ModelError::Option { setting: "clip", value: clip, remedy });
    }
    if let Some(smoothing) = options.smoothing.filter(|s| !(*s >= 0.0 && *s <= 100.0)) {
        let remedy = "give a number from 0 to 100, such as 0.1";
        return Err(ModelError::Option { setting: "smoothing", value: smoothing, remedy });
    }
    if let Some(averaging) = options.averaging.filter(|a| !(*a >= 0.0 && *a < 1.0)) {
        let remedy = "give a number from 0 to below 1, such as 0.99";
        return Err(ModelError::Option { setting: "averaging", value: averaging, remedy });
    }
    let share = options.valid_share;
    if !(share > 0.0 && share < 1.0) {
        let remedy = "give a share between 0 and 1, such as 0.1";
        return Err(ModelError::Option { setting: "valid share", value: share, remedy });
    }
    Ok(())
}

/// The rows to learn from and those to choose by.
fn split(
    schema: &Schema,
    table: &Table,
    valid: Option<&Table>,
    options: &ModelOptions,
) -> Result<(Encoded, Encoded), ModelError> {
    if let Some(valid) = valid {
        return Ok((schema.encode(table)?, schema.encode(valid)?));
    }
    let n = table.num_rows();
    let rows = schema.encode(table)?;
    if n == 1 {
        return Ok((rows.clone(), rows));
    }
    let mut order: Vec<usize> = (0..n).collect();
    // A stream of its own: other choices of the seed's random numbers do not change the split.
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    rng.set_stream(1);
    order.shuffle(&mut rng);
    let held = ((n as f64 * options.valid_share).round() as usize).clamp(1, n - 1);
    let (valid, train) = order.split_at_mut(held);
    valid.sort_unstable();
    train.sort_unstable();
    Ok((rows.select(train), rows.select(valid)))
}

/// What the circuits that are to be fitted are made of.
struct Candidates<'a> {
    schema: &'a Schema,
    options: &'a ModelOptions,
    defaults: Defaults,
}

impl Candidates<'_> {
    /// The structure, and the kind that it is of: of several that come into question the most promising.
    fn structure(
        &self,
        train: &Batch,
        valid: &Batch,
    ) -> Result<(StructureKind, RegionTree), ModelError> {
        let information = self.information(train)?;
        let mut trees = Vec::new();
        for &kind in self.kinds() {
            trees.push((kind, self.tree(kind, information.as_ref())?));
        }
        let mut short = Vec::new();
        if trees.len() > 1 {
            let one = ModelOptions { width: Some(TRIAL_WIDTH), ..self.options.clone() };
            let settings = one.candidates(&self.defaults, self.schema);
            for (_, tree) in &trees {
                short.extend(self.over(tree, &settings)?);
            }
        }
        Ok(trees.swap_remove(most_promising(&short, train, valid)?))
    }

    fn kinds(&self) -> &[StructureKind] {
        match &self.options.structure {
            StructureKind::Auto if self.schema.image().is_some() => &[StructureKind::Image],
            StructureKind::Auto if self.schema.num_variables() > MAX_LEARNED => {
                &[StructureKind::Balanced]
            }
            // Over fewer variables all trees are alike.
            StructureKind::Auto if self.schema.num_variables() < 4 => &[StructureKind::ChowLiu],
            StructureKind::Auto => &[StructureKind::ChowLiu, StructureKind::Linkage],
            kind => std::slice::from_ref(kind),
        }
    }

    /// What the columns tell of each other, where a tree is to be made of it.
    fn information(&self, train: &Batch) -> Result<Option<MutualInformation>, ModelError> {
        let is_learned = |k: &_| matches!(k, StructureKind::ChowLiu | StructureKind::Linkage);
        if !self.kinds().iter().any(is_learned) {
            return Ok(None);
        }
        let ordered = self.schema.ordered();
        let how = InformationOptions { ordered, ..InformationOptions::default() };
        Ok(Some(mutual_information(train, &self.schema.variables(), &how)?))
    }

    fn tree(
        &self,
        kind: StructureKind,
        information: Option<&MutualInformation>,
    ) -> Result<RegionTree, ModelError> {
        let (schema, d) = (self.schema, self.schema.num_variables());
        Ok(match (kind, information) {
            (StructureKind::ChowLiu, Some(information)) => {
                root_edges(d, &chow_liu_tree(information))
            }
            (StructureKind::Linkage, Some(information)) => average_linkage(information),
            (StructureKind::Image, _) => match schema.image() {
                Some([height, width, channels]) if d == height * width * channels => {
                    RegionTree::image(height, width, channels)
                }
                _ => return Err(ModelError::NotImages),
            },
            (StructureKind::Linear, _) => RegionTree::linear(d),
            (StructureKind::Balanced, _) => RegionTree::balanced(d),
            (StructureKind::Random, _) => RegionTree::random(d, &mut self.rng()),
            (StructureKind::Auto | StructureKind::ChowLiu | StructureKind::Linkage, _) => {
                unreachable!("kinds are settled, and learned ones have the information")
            }
        })
    }

    /// A circuit for each of these fits.
    fn over(
        &self,
        tree: &RegionTree,
        settings: &[FitOptions],
    ) -> Result<Vec<(Circuit, FitOptions)>, ModelError> {
        let functions = self.options.functions.unwrap_or(self.defaults.functions());
        let (bases, variables) = (self.schema.bases(functions)?, self.schema.variables());
        let mut rng = self.rng();
        let mut candidates = Vec::new();
        for settings in settings {
            let leaf = |v: usize| (variables[v].clone(), bases[v].clone());
            let structure = Structure::new(tree.clone(), leaf)
                .width(settings.width)
                .output_width(settings.squares);
            candidates.push((structure.build(Weights::Gaussian, &mut rng)?, settings.clone()));
        }
        Ok(candidates)
    }

    fn rng(&self) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.options.seed);
        rng.set_stream(2);
        rng
    }
}

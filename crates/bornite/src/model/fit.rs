//! Fits a model to a table.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::allowance::Allowance;
use super::baseline::Independent;
use super::large::Spilled;
use super::rows::{FitData, FitInput, Split};
use super::{EpochInfo, Info, Model, ModelError, ModelOptions, StructureKind};
use crate::basis::Basis;
use crate::circuit::{Layer, Orthonormal, Skeleton};
use crate::data::{ColumnSchema, Schema};
use crate::domain::{Domain, Variable};
use crate::engine::{Batch, Engine};
use crate::learn::{
    self, BestFit, Control, Defaults, Effort, FitOptions, Fitted, Found, Further, LESSON_ROWS,
    Lesson, Partners, Progress, Quota, Rows, Snapshot, Starts, Teacher, Unit, exceed_chance,
    largest_width, most_promising, search, share_of_second,
};
use crate::mixture::{Mixture, log_sum};
use crate::structure::{
    InformationOptions, MutualInformation, RegionTree, Structure, average_linkage, chow_liu_tree,
    mutual_information, root_edges,
};

/// The maximum number of variables for which a tree is learned, since all pairs are compared.
const MAX_LEARNED_VARIABLES: usize = 4096;
/// The default number of circuits in a model, by effort.
const BALANCED_CIRCUITS: usize = 2;
const BEST_CIRCUITS: usize = 4;
/// The width of the circuits that compare trees.
const TRIAL_WIDTH: usize = 4;
/// The index of the default image settings, used without a time limit.
const DEFAULT_IMAGE_SETTINGS: usize = 2;
/// The maximum number of passes over images with a time limit.
const MAX_TIMED_EPOCHS: usize = 200;
/// The minimum number of passes that must be affordable to choose a larger circuit for images.
const MIN_IMAGE_EPOCHS: f64 = 6.0;
/// The width of the circuit of independent columns, narrower than all others.
pub(super) const INDEPENDENT_WIDTH: usize = 1;
/// The width and the number of squares of the circuits of a decoder.
const DECODER_WIDTH: usize = 4;
const DECODER_SQUARES: usize = 16;
/// The fraction of the budget after which there are no circuits of a decoder.
const LATEST_DECODER: f64 = 0.8;
/// The number of standard errors by which a circuit has to be better than independent columns on the validation rows.
const INDEPENDENT_ERRORS: f64 = 0.5;
/// The fraction of the budget after which no teacher is fitted.
const LATEST_TEACHER: f64 = 0.6;
/// The fraction of the budget after which trees are not compared.
const LATEST_TRIAL: f64 = 0.5;
/// The fraction of the budget after which only the narrowest circuit is tried.
const LATEST_SEARCH: f64 = 0.75;
/// The fraction of the time limit for comparing columns, and the number of 64-bit words compared per second: an
/// estimate for one thread, so that a fit can continue from a checkpoint of another machine.
const INFORMATION_TIME_SHARE: f64 = 0.1;
const WORDS_PER_SECOND: f64 = 1e9;
/// The multiply-adds of forward passes per second and thread during a fit, including everything else that a step does:
/// an estimate.
const MULTIPLY_ADDS_PER_SECOND: f64 = 2.4e9;

/// A model, and how it was fitted.
#[derive(Debug)]
pub(super) struct FittedModel {
    pub(super) model: Model,
    /// The number of input functions that the validation rows prefer; `None` if a teacher determined it.
    pub(super) functions: Option<usize>,
    /// Whether the fit was to learn from a teacher that is better than the model, and has not.
    pub(super) lacks_lesson: bool,
}

impl Model {
    /// Fits a model to the rows of a table: see [`Fit`](super::Fit).
    pub(super) fn fit_from(
        given: &FitInput<'_>,
        options: &ModelOptions,
        quota: &Quota,
        on_rows: &mut dyn FnMut(&Path, usize, Option<f64>),
        progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
    ) -> Result<FittedModel, ModelError> {
        let &FitInput { start, checkpoint, .. } = given;
        let data = FitData::new(given, options, quota, on_rows)?;
        let (schema, split) = (&data.schema, &data.split);
        let Split { train, valid, num_rows, num_valid, .. } = split;
        let both @ [train_rows, valid_rows] = [train.batch(), valid.batch()];
        let pieces = data.spilled.as_ref().map(Spilled::pieces);
        let fits = data.candidates(options, given.fold.count);
        let circuits = start.map(|model| model.mixture.circuits().map(|c| (**c).clone()).collect());
        let learned = circuits.unwrap_or_default();
        let (starts, mut stopped) = (&mut Starts::within(quota).with_learned(learned), false);
        let [train_slope, valid_slope] = data.slopes();
        let in_data_units = |p: &Progress| in_data_units(p, [train_slope, valid_slope]);
        let choice = match (start, checkpoint) {
            (Some(model), _) => Some(fits.continue_from(model)),
            (None, Some(bytes)) => fits.resume_from(bytes, train_rows)?,
            (None, None) => None,
        };
        let Choice { kind, tree, circuits: mut candidates } = match choice {
            Some(choice) => choice,
            None => fits.choose(both, starts, &mut |p| {
                let control = progress(&in_data_units(p), &Snapshot::empty());
                stopped |= control == Control::Stop;
                control
            })?,
        };
        // If the caller stops the trial, the fit ends after its first step.
        let progress = &mut |p: &Progress, s: &Snapshot<'_>| {
            let control = progress(&in_data_units(p), s);
            if stopped { Control::Stop } else { control }
        };
        let rows = Rows { train: train_rows, valid: valid_rows, pieces };
        let is_taught = given.fold.is_taught;
        if is_taught {
            // It does not matter what the teacher is better than.
            candidates.truncate(1);
        }
        let num_ordinary = candidates.len();
        let taught_tree = tree.clone().filter(|_| fits.may_use_teacher(&candidates[0].0));
        if let Some(tree) = &taught_tree {
            candidates.extend(fits.circuits_over(tree, &fits.lesson_settings())?);
        }
        let teach = || fits.teach(&candidates[0].0, both, quota);
        let teach = taught_tree.is_some().then_some(&teach as &dyn Fn() -> Option<Lesson>);
        let partner = |settings: &FitOptions, n: usize| match start {
            Some(model) => continued_circuit(model, settings, n + 1),
            None => fits.partner(&kind, train_rows, settings, n),
        };
        let most = start.map_or_else(|| fits.num_circuits(), |m| m.mixture.circuits().len());
        let may_widen = start.is_none() && !is_taught;
        let is_affordable = |circuit: &Skeleton| may_widen && fits.is_affordable(circuit);
        let partners = Some(Partners { most: most - 1, of: &partner });
        let further = Further { is_affordable: Some(&is_affordable), teach, partners };
        // Before the search, which takes all the time there is.
        let decoded = fits.circuits_of_decoder(tree.as_ref(), rows, starts)?;
        let found = search(&candidates, rows, &further, checkpoint, starts, progress)?;
        let Some(Found { best: BestFit { index, fit, tried }, partners, weights, teacher }) = found
        else {
            unreachable!("there is a width to try")
        };
        let width = fits.width_of(&fit.circuit, &candidates[index].1);
        let functions = (index < num_ordinary).then_some(candidates[index].1.functions);
        let had_lesson = tried.iter().any(|(n, _)| *n >= num_ordinary);
        let lacks_lesson =
            is_taught && !had_lesson && teacher.is_none_or(|valid| valid > fit.valid);
        let found = mixture(fit.circuit, partners, &weights);
        let (mixture, width, logs) = fits.finish((found, width), decoded, tree.as_ref(), both)?;
        let info = Info {
            seed: options.seed,
            rows: data.spilled.as_ref().map_or(*num_rows, |spilled| spilled.num_rows),
            valid_rows: *num_valid,
            valid: logs.iter().sum::<f64>() / logs.len().max(1) as f64 + valid_slope,
            baseline: Independent::fit(schema, train).mean_log_likelihood(schema, valid),
            structure: kind,
            width,
            history: epochs(&fit.history, [train_slope, valid_slope]),
            truncated: None,
            left_out: data.left_out.clone(),
            note: start.and_then(|model| model.info.note.clone()),
            target: options.target.clone(),
        };
        let model = Self::new(schema.clone(), mixture, info);
        Ok(FittedModel { model, functions, lacks_lesson })
    }
}

impl FitData<'_> {
    /// The circuits to fit to these rows.
    fn candidates<'b>(&'b self, options: &'b ModelOptions, count: usize) -> Candidates<'b> {
        let (schema, train) = (&self.schema, &self.split.train);
        let learned_from = |spilled: &Spilled<'_>| spilled.pieces().layout().num_rows();
        let rows = self.spilled.as_ref().map_or(train.num_rows(), learned_from);
        let defaults = Defaults::of(rows, schema.num_variables())
            .with_missing(train.batch().num_missing())
            .with_effort(options.effort);
        let functions = options.functions.unwrap_or_else(|| defaults.first_functions());
        let defaults = defaults.with_values(num_values(schema, functions));
        let (allowance, information, bases) = (self.allowance, OnceCell::new(), RefCell::default());
        Candidates { schema, options, defaults, rows, count, allowance, information, bases }
    }
}

/// A step's progress in the units of the data.
fn in_data_units(p: &Progress, [train, valid]: [f64; 2]) -> Progress {
    Progress {
        train: p.train + train,
        valid: p.valid.map(|p| p + valid),
        best: p.best.map(|best| best + valid),
        ..*p
    }
}

/// The training history in the units of the data.
fn epochs(history: &[learn::Epoch], [train, valid]: [f64; 2]) -> Vec<EpochInfo> {
    let epoch = |e: &learn::Epoch| EpochInfo {
        train: e.train + train,
        valid: e.valid + valid,
        residual: e.residual,
    };
    history.iter().map(epoch).collect()
}

/// The nth circuit of a model, with settings to continue its training.
fn continued_circuit(
    model: &Model,
    settings: &FitOptions,
    n: usize,
) -> Option<(Skeleton, FitOptions)> {
    let circuit: &Skeleton = model.mixture.circuits().nth(n)?;
    let squares = circuit.width(circuit.output());
    let seed = settings.seed.wrapping_add(n as u64);
    Some((circuit.clone(), FitOptions { squares, seed, ..settings.clone() }))
}

/// The mixture of a circuit and its partners.
fn mixture(first: Orthonormal, partners: Vec<Fitted>, weights: &[f64]) -> Mixture {
    let circuits = std::iter::once(first).chain(partners.into_iter().map(|fit| fit.circuit));
    mixture_of(circuits.collect(), weights)
}

/// A mixture and log p of the validation rows.
pub(super) type Scored = (Mixture, Vec<f64>);

/// A mixture, with the circuits of a decoder if these improve the likelihood of the validation rows by more than chance.
pub(super) fn with_decoder((found, own): Scored, decoded: Option<Scored>) -> Scored {
    let Some((decoded, other)) = decoded else { return (found, own) };
    let Some(share) = share_of_second(&own, &other) else { return (found, own) };
    let scaled = |of: &Mixture, share: f64| of.weights().into_iter().map(move |w| share * w);
    let weights: Vec<f64> = scaled(&found, 1.0 - share).chain(scaled(&decoded, share)).collect();
    let logs = own.iter().zip(&other);
    let logs = logs.map(|(a, b)| log_sum(&[a + (1.0 - share).ln(), b + share.ln()])).collect();
    let circuits = found.circuits().chain(decoded.circuits()).cloned().collect();
    (mixture_of(circuits, &weights), logs)
}

/// The mixture of circuits over the variables of one schema.
pub(super) fn mixture_of(circuits: Vec<Orthonormal>, weights: &[f64]) -> Mixture {
    match Mixture::new(circuits, weights) {
        Ok(mixture) => mixture,
        Err(_) => unreachable!("circuits over the variables of one schema, and their weights"),
    }
}

/// Circuits to fit, with their settings.
type Circuits = Vec<(Skeleton, FitOptions)>;

/// The circuits to fit, the kind of their structure, and their tree unless it comes from a model.
struct Choice {
    kind: String,
    tree: Option<RegionTree>,
    circuits: Circuits,
}

/// Constructs the circuits to fit.
struct Candidates<'a> {
    schema: &'a Schema,
    options: &'a ModelOptions,
    defaults: Defaults,
    /// The number of training rows.
    rows: usize,
    /// The number of independent fits.
    count: usize,
    allowance: Allowance,
    /// The mutual information of the columns, computed on demand.
    information: OnceCell<Option<MutualInformation>>,
    /// The input functions of all variables, by their number: the same for all circuits.
    bases: RefCell<BTreeMap<usize, Arc<[Basis]>>>,
}

impl Candidates<'_> {
    /// Chooses the most promising tree, and constructs the circuits to fit over it.
    fn choose(
        &self,
        [train, valid]: [&Batch; 2],
        starts: &mut Starts,
        progress: &mut dyn FnMut(&Progress) -> Control,
    ) -> Result<Choice, ModelError> {
        let mut trees = self.trees(train)?;
        if starts.is_stopped() {
            return Err(ModelError::Stopped);
        }
        if starts.used() > LATEST_TRIAL {
            trees.truncate(1);
        }
        let mut short = Vec::new();
        if trees.len() > 1 {
            let functions = self.options.functions.unwrap_or(self.defaults.first_functions());
            for (_, tree) in &trees {
                let narrow =
                    FitOptions { widths: None, ..self.settings_of_size(TRIAL_WIDTH, functions) };
                short.extend(self.circuits_over(tree, &[narrow])?);
            }
        }
        let best = most_promising(&short, train, valid, starts, progress)?;
        let (kind, tree) = trees.swap_remove(best);
        let mut settings = self.settings(&tree);
        if starts.used() > LATEST_SEARCH {
            // There is no time left for other circuits, and even to construct those of many columns takes long.
            settings.truncate(1);
        }
        let settings = self.within_memory(&tree, settings)?;
        let circuits = self.circuits_over(&tree, &settings)?;
        Ok(Choice { kind: kind.to_string(), tree: Some(tree), circuits })
    }

    /// The first circuit of a model, to continue its training.
    fn continue_from(&self, model: &Model) -> Choice {
        let info = model.info();
        let options = match self.images().into_iter().next() {
            Some(options) => options,
            None => self.settings_of_size(info.width.max(1), self.defaults.first_functions()),
        };
        let options = FitOptions { width: info.width, ..options };
        let circuits = continued_circuit(model, &options, 0).into_iter().collect();
        Choice { kind: info.structure.clone(), tree: None, circuits }
    }

    /// The circuits that a checkpoint belongs to, without new trials. If it belongs to none of them, returns the last
    /// candidates, which the fit then rejects; `None` if the checkpoint was taken before any candidate was trained.
    fn resume_from(&self, bytes: &[u8], train: &Batch) -> Result<Option<Choice>, ModelError> {
        let mut last = None;
        for (kind, tree) in self.trees(train)? {
            let images = self.images().into_iter().map(|settings| vec![settings]);
            let all = self.within_memory(&tree, self.settings(&tree))?;
            // If little time was left, only this one was tried.
            let narrowest = (all.len() > 1).then(|| all[..1].to_vec());
            for settings in images.chain([all]).chain(narrowest) {
                let circuits = self.circuits_over(&tree, &settings)?;
                let Some(is_of) = learn::has_candidates(bytes, &circuits)? else { return Ok(None) };
                last = Some(Choice { kind: kind.to_string(), tree: Some(tree.clone()), circuits });
                if is_of {
                    return Ok(last);
                }
            }
        }
        Ok(last)
    }

    /// Whether circuits may become wider than the given or default widths.
    fn may_widen(&self) -> bool {
        let is_given = self.options.width.is_some() || self.options.widths.is_some();
        !is_given && self.options.effort != Effort::Fast && self.schema.image().is_none()
    }

    /// Whether there are time and memory for a wider circuit. A time limit needs no estimate.
    fn is_affordable(&self, circuit: &Skeleton) -> bool {
        let (width, parameters) = (largest_width(circuit), circuit.num_parameters() as u128);
        let functions = circuit.layers().iter().map(|layer| match layer {
            Layer::Input { basis, .. } => basis.width(),
            Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => 0,
        });
        let functions = functions.max().unwrap_or(0);
        let is_within_memory = self.allowance.check(width, functions, parameters).is_ok();
        // With a target, a step goes through its rows twice.
        let count = if self.options.target.is_some() { 2 * self.count } else { self.count };
        let is_quick = self.options.time.is_some() || self.defaults.is_affordable(circuit, count);
        self.may_widen() && is_within_memory && is_quick
    }

    /// The width that is reported for a fitted circuit.
    fn width_of(&self, circuit: &Skeleton, settings: &FitOptions) -> usize {
        let widest = if self.may_widen() { largest_width(circuit) } else { 0 };
        settings.width.max(widest)
    }

    /// Whether a teacher may help.
    fn may_use_teacher(&self, first: &Skeleton) -> bool {
        let is_given = self.options.width.is_some() || self.options.widths.is_some();
        let is_quick = self.options.effort == Effort::Fast;
        !is_given && !is_quick && self.schema.image().is_none() && Teacher::is_for(first, self.rows)
    }

    /// Fits teachers, with and without the units of columns, and samples rows from the better one.
    fn teach(&self, first: &Skeleton, rows: [&Batch; 2], quota: &Quota) -> Option<Lesson> {
        if quota.used() > LATEST_TEACHER {
            return None;
        }
        let seed = self.options.seed;
        let (units, none) = (self.units(), vec![None; first.variables().len()]);
        let teachers = [&none[..], &units].into_iter();
        let teachers = teachers.filter_map(|units| Teacher::fit(first, units, rows, seed, quota));
        let (teacher, mut valid) = teachers.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let [FitOptions { target, emphasis, .. }, _] = self.lesson_settings();
        if !target.is_empty() {
            valid += emphasis * teacher.mean_of_target(rows[1], &target, valid);
        }
        Some(Lesson { rows: teacher.sample(LESSON_ROWS, seed)?, valid })
    }

    /// The units of the variables, of columns of numbers.
    fn units(&self) -> Vec<Option<Unit>> {
        let unit = |column: &ColumnSchema| {
            let coding = column.kind.coding();
            coding.position(0.0)?;
            // Not its number, which may be rounded.
            Unit::new(|u| coding.term(column.storage, 0, u).unwrap_or(f64::NAN))
        };
        let of_column = |n: usize| {
            let variables = self.schema.variables_of(n);
            let unit = (variables.len() == 1).then(|| unit(&self.schema.columns()[n])).flatten();
            std::iter::repeat_n(unit, variables.len())
        };
        (0..self.schema.columns().len()).flat_map(of_column).collect()
    }

    /// The model's mixture: that of a search, perhaps with the circuits of a decoder, or the circuit of independent columns;
    /// with its width and the log-likelihoods of the validation rows.
    fn finish(
        &self,
        (found, width): (Mixture, usize),
        decoded: Option<Scored>,
        tree: Option<&RegionTree>,
        both: [&Batch; 2],
    ) -> Result<(Mixture, usize, Vec<f64>), ModelError> {
        let logs = found.log_marginals(both[1])?;
        let (found, logs) = with_decoder((found, logs), decoded);
        self.or_independent((found, width, logs), tree, both)
    }

    /// A mixture and its width, or the circuit of independent columns if the mixture is not better than that by more than
    /// chance; and the log-likelihoods of the validation rows.
    fn or_independent(
        &self,
        (found, width, logs): (Mixture, usize, Vec<f64>),
        tree: Option<&RegionTree>,
        [train, valid]: [&Batch; 2],
    ) -> Result<(Mixture, usize, Vec<f64>), ModelError> {
        let Some(independent) = tree.and_then(|tree| self.independent(tree, train)) else {
            return Ok((found, width, logs));
        };
        let own = Engine::new(&independent).log_marginals(valid)?;
        let gains: Vec<f64> = logs.iter().zip(&own).map(|(log, own)| log - own).collect();
        if exceed_chance(&gains, INDEPENDENT_ERRORS) {
            return Ok((found, width, logs));
        }
        Ok((mixture(independent, Vec::new(), &[1.0]), INDEPENDENT_WIDTH, own))
    }

    /// The product of independent columns as a circuit, which a fit falls back to if the best circuit is not better. `None`
    /// if a width or a target is given.
    fn independent(&self, tree: &RegionTree, train: &Batch) -> Option<Orthonormal> {
        let is_given = self.options.width.is_some() || self.options.widths.is_some();
        if is_given || self.options.target.is_some() || self.schema.image().is_some() {
            return None;
        }
        let settings = self.settings_of_size(1, self.defaults.first_functions());
        let settings = FitOptions { squares: 1, ..settings };
        let skeleton = self.structure_over(tree, &settings).ok()?.skeleton().ok()?;
        Orthonormal::verify(learn::product(&skeleton, train)?).ok()
    }

    /// The settings for training on a lesson, and on the real rows after it.
    fn lesson_settings(&self) -> [FitOptions; 2] {
        self.defaults.lessons().map(|default| {
            let functions = self.options.functions.unwrap_or(default.functions);
            FitOptions { functions, ..self.options.over(default, self.schema) }
        })
    }

    /// The mixture of a decoder's circuits over a tree, with log p of the validation rows, if there is a decoder for the rows and the caller leaves the number
    /// of circuits open.
    fn circuits_of_decoder(
        &self,
        tree: Option<&RegionTree>,
        rows: Rows<'_>,
        starts: &Starts,
    ) -> Result<Option<Scored>, ModelError> {
        let Some(tree) = tree else { return Ok(None) };
        let is_given = self.options.circuits.is_some() || self.options.target.is_some();
        let is_quick = self.options.effort == Effort::Fast || starts.used() > LATEST_DECODER;
        if is_given || is_quick || !self.is_free() {
            return Ok(None);
        }
        let settings = self.settings_of_size(DECODER_WIDTH, self.defaults.first_functions());
        let settings = FitOptions { squares: DECODER_SQUARES, ..settings };
        let circuit = self.structure_over(tree, &settings)?.skeleton()?;
        let circuits = starts.circuits_of_decoder(&circuit, rows);
        if circuits.is_empty() {
            return Ok(None);
        }
        let weights = vec![1.0; circuits.len()];
        let mixture = mixture_of(circuits, &weights);
        let logs = mixture.log_marginals(rows.valid)?;
        Ok(Some((mixture, logs)))
    }

    /// Whether the caller leaves the tree and the widths open.
    fn is_free(&self) -> bool {
        self.options.structure == StructureKind::Auto
            && self.options.width.is_none()
            && self.options.widths.is_none()
            && self.schema.image().is_none()
    }

    /// The maximum number of circuits in the model.
    fn num_circuits(&self) -> usize {
        let is_free = self.is_free();
        let default = match self.options.effort {
            Effort::Balanced if is_free && self.options.time.is_none() => BALANCED_CIRCUITS,
            Effort::Balanced | Effort::Best if is_free => BEST_CIRCUITS,
            Effort::Fast | Effort::Balanced | Effort::Best => 1,
        };
        self.options.circuits.unwrap_or(default)
    }

    /// The nth additional circuit of the mixture, with settings like those of the first: over another tree, if trees
    /// are learned, and with other random numbers.
    fn partner(
        &self,
        kind: &str,
        train: &Batch,
        settings: &FitOptions,
        n: usize,
    ) -> Option<(Skeleton, FitOptions)> {
        // Alternate between the two kinds of trees, if there are two.
        let is_same = |k: &&StructureKind| (k.to_string() == kind) == (n % 2 == 1);
        let kind = *self.kinds().iter().find(is_same).unwrap_or(&self.kinds()[0]);
        let seed = settings.seed.wrapping_add(1 + n as u64);
        // The first additional circuit uses the other kind of tree for the same rows; the next ones use trees of
        // bootstrap samples.
        let drawn;
        let information = if n == 0 {
            self.information(train).ok()?
        } else {
            let rng = &mut rng(seed);
            let rows: Vec<usize> =
                (0..train.len()).map(|_| rng.random_range(0..train.len())).collect();
            drawn = self.compute_information(&train.select(&rows)).ok()?;
            drawn.as_ref()
        };
        let tree = self.tree(kind, information, seed).ok()?;
        let circuit = self.structure_over(&tree, settings).ok()?.skeleton().ok()?;
        Some((circuit, FitOptions { seed, ..settings.clone() }))
    }

    fn trees(&self, train: &Batch) -> Result<Vec<(StructureKind, RegionTree)>, ModelError> {
        let information = self.information(train)?;
        let tree = |&kind| Ok((kind, self.tree(kind, information, self.options.seed)?));
        self.kinds().iter().map(tree).collect()
    }

    fn kinds(&self) -> &[StructureKind] {
        match &self.options.structure {
            StructureKind::Auto if self.schema.image().is_some() => &[StructureKind::Image],
            StructureKind::Auto if self.is_wide() => &[StructureKind::Balanced],
            // With so few variables, all trees are equivalent.
            StructureKind::Auto if self.schema.num_variables() < 4 => &[StructureKind::ChowLiu],
            StructureKind::Auto if self.options.effort == Effort::Fast => &[StructureKind::ChowLiu],
            StructureKind::Auto => &[StructureKind::ChowLiu, StructureKind::Linkage],
            kind => std::slice::from_ref(kind),
        }
    }

    /// Whether there are too many variables for a learned tree.
    fn is_wide(&self) -> bool {
        self.schema.num_variables() > MAX_LEARNED_VARIABLES
    }

    /// Those settings whose circuits memory allows, at least one.
    fn within_memory(
        &self,
        tree: &RegionTree,
        settings: Vec<FitOptions>,
    ) -> Result<Vec<FitOptions>, ModelError> {
        let (mut kept, mut refused) = (Vec::new(), None);
        for settings in settings {
            // The input functions alone may be too large.
            let (width, functions) = (settings.width, settings.functions);
            let checked = self.allowance.check(width, functions, 0).and_then(|()| {
                let parameters = self.structure_over(tree, &settings)?.num_parameters();
                self.allowance.check(width, functions, parameters)
            });
            match checked {
                Ok(()) => kept.push(settings),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match refused {
            Some(error) if kept.is_empty() => Err(error),
            _ => Ok(kept),
        }
    }

    /// The mutual information of the columns in the training rows, computed once.
    fn information(&self, train: &Batch) -> Result<Option<&MutualInformation>, ModelError> {
        if self.information.get().is_none() {
            let _ = self.information.set(self.compute_information(train)?);
        }
        Ok(self.information.get().and_then(Option::as_ref))
    }

    /// Computes the mutual information of the columns, if a tree is learned from it.
    fn compute_information(&self, rows: &Batch) -> Result<Option<MutualInformation>, ModelError> {
        let is_learned = |k: &_| matches!(k, StructureKind::ChowLiu | StructureKind::Linkage);
        if !self.kinds().iter().any(is_learned) {
            return Ok(None);
        }
        let ordered = self.schema.ordered();
        let how = InformationOptions { ordered, ..InformationOptions::default() };
        let max_rows = self.options.time.map_or(how.max_rows, |time| {
            how.rows_of_work(
                self.schema.num_variables(),
                INFORMATION_TIME_SHARE * time.as_secs_f64() * WORDS_PER_SECOND,
            )
        });
        let how = InformationOptions { max_rows, ..how };
        Ok(Some(mutual_information(rows, &self.schema.variables(), &how)?))
    }

    fn tree(
        &self,
        kind: StructureKind,
        information: Option<&MutualInformation>,
        seed: u64,
    ) -> Result<RegionTree, ModelError> {
        let (schema, d) = (self.schema, self.schema.num_variables());
        Ok(match (kind, information) {
            (StructureKind::ChowLiu, Some(information)) => {
                root_edges(d, &chow_liu_tree(information))
            }
            (StructureKind::Linkage, Some(information)) => average_linkage(information),
            (StructureKind::Image, _) => match schema.image() {
                Some([height, width, channels]) if d == height * width * channels => {
                    RegionTree::aligned_image(height, width, channels)
                }
                _ => return Err(ModelError::NotImages),
            },
            (StructureKind::Linear, _) => RegionTree::linear(d),
            (StructureKind::Balanced, _) => RegionTree::balanced(d),
            (StructureKind::Random, _) => RegionTree::random(d, &mut rng(seed)),
            (StructureKind::Auto | StructureKind::ChowLiu | StructureKind::Linkage, _) => {
                unreachable!("kinds are settled, and learned ones have the information")
            }
        })
    }

    /// The settings to try, the narrowest circuit first.
    fn settings(&self, tree: &RegionTree) -> Vec<FitOptions> {
        let mut images = self.images();
        if !images.is_empty() {
            let affordable = self.affordable(tree, &images);
            return vec![images.swap_remove(affordable)];
        }
        let given = match &self.options.widths {
            Some(widths) => Some(widths.largest()),
            None => self.options.width,
        };
        let widths = given.as_ref().map(std::slice::from_ref);
        let widths = widths.unwrap_or_else(|| self.widths());
        let functions = match self.options.functions {
            Some(given) => vec![given],
            None if self.has_functions() => self.defaults.functions(),
            None => vec![self.defaults.first_functions()],
        };
        let sizes = widths.iter().flat_map(|w| functions.iter().map(move |f| (*w, *f)));
        sizes.map(|(width, functions)| self.settings_of_size(width, functions)).collect()
    }

    /// The widths to try by default. With a time limit, or for images, those of all sizes.
    fn widths(&self) -> &'static [usize] {
        let all = self.defaults.widths();
        let has_all = self.options.time.is_some() || self.schema.image().is_some();
        let is_quick = |width: &&usize| has_all || self.defaults.is_quick(**width, self.count);
        &all[..all.iter().take_while(is_quick).count().max(1)]
    }

    /// Whether some variable is not finite, so that its number of functions is a choice.
    fn has_functions(&self) -> bool {
        let is_finite = |v: &Variable| matches!(v.domain, Domain::Finite(_));
        !self.schema.variables().iter().all(is_finite)
    }

    fn settings_of_size(&self, width: usize, functions: usize) -> FitOptions {
        FitOptions { width, ..self.settings_from(self.defaults.options(width), functions) }
    }

    /// Default settings for the columns of the table, overridden by the given options.
    fn settings_from(&self, default: FitOptions, functions: usize) -> FitOptions {
        let smoothing = match self.schema.image() {
            Some(_) => self.defaults.image_smoothing(),
            None => self.defaults.table_smoothing(),
        };
        // Digits and parts of dates are not smoothed: neighboring values there need not be neighbors in the column.
        let columns = 0..self.schema.columns().len();
        let is_whole = columns.flat_map(|c| {
            let variables = self.schema.variables_of(c);
            std::iter::repeat_n(variables.len() == 1, variables.len())
        });
        let ordered = self.schema.ordered().into_iter().zip(is_whole);
        let smoothing = ordered.map(|(is, one)| if is && one { smoothing } else { 0.0 }).collect();
        let default = FitOptions { smoothing, ..default };
        FitOptions { functions, ..self.options.over(default, self.schema) }
    }

    /// The settings for large image sets, the cheapest first; empty for other tables.
    fn images(&self) -> Vec<FitOptions> {
        if self.schema.image().is_none() {
            return Vec::new();
        }
        let mut all = self.defaults.images();
        for settings in &mut all {
            if self.options.time.is_some() {
                // The learning rate decays as time runs out, so the number of epochs must not be the limit.
                settings.epochs = MAX_TIMED_EPOCHS;
            }
            settings.functions = self.options.functions.unwrap_or(self.defaults.first_functions());
            *settings = self.options.over(std::mem::take(settings), self.schema);
        }
        all
    }

    /// The index of the most expensive settings that the time limit allows.
    fn affordable(&self, tree: &RegionTree, all: &[FitOptions]) -> usize {
        let Some(time) = self.options.time else {
            return match self.options.effort {
                Effort::Fast => 0,
                Effort::Balanced => DEFAULT_IMAGE_SETTINGS.min(all.len() - 1),
                Effort::Best => all.len() - 1,
            };
        };
        let work =
            time.as_secs_f64() * MULTIPLY_ADDS_PER_SECOND * rayon::current_num_threads() as f64;
        let is_affordable = |settings: &FitOptions| {
            let once = self.structure_over(tree, settings).map(|s| s.multiply_adds() as f64);
            once.is_ok_and(|once| once * self.rows as f64 * MIN_IMAGE_EPOCHS <= work)
        };
        all.iter().rposition(is_affordable).unwrap_or(0)
    }

    /// Constructs a circuit for each of these settings.
    fn circuits_over(
        &self,
        tree: &RegionTree,
        settings: &[FitOptions],
    ) -> Result<Circuits, ModelError> {
        let mut candidates = Vec::new();
        for settings in settings {
            let skeleton = self.structure_over(tree, settings)?.skeleton()?;
            candidates.push((skeleton, settings.clone()));
        }
        Ok(candidates)
    }

    /// The input functions of all variables.
    fn bases(&self, functions: usize) -> Result<Arc<[Basis]>, ModelError> {
        if let Some(known) = self.bases.borrow().get(&functions) {
            return Ok(known.clone());
        }
        let bases: Arc<[Basis]> = self.schema.bases(functions)?.into();
        self.bases.borrow_mut().insert(functions, bases.clone());
        Ok(bases)
    }

    fn structure_over(
        &self,
        tree: &RegionTree,
        settings: &FitOptions,
    ) -> Result<Structure, ModelError> {
        let (bases, variables) = (self.bases(settings.functions)?, self.schema.variables());
        let leaf = |v: usize| (variables[v].clone(), bases[v].clone());
        Ok(Structure::new(tree.clone(), leaf)
            .widths(|size| settings.width_of(size))
            .codebook(settings.codebook)
            .share(settings.share)
            .output_width(settings.squares))
    }
}

/// The number of values of all variables together, where continuous ones count with their functions.
fn num_values(schema: &Schema, functions: usize) -> usize {
    let values = |variable: &Variable| match variable.domain {
        Domain::Finite(values) => values,
        Domain::Real
        | Domain::Interval(..)
        | Domain::HalfLine(_)
        | Domain::Circle(_)
        | Domain::Atoms(_) => functions,
    };
    schema.variables().iter().map(values).sum()
}

/// The random generator for trees.
fn rng(seed: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(2);
    rng
}

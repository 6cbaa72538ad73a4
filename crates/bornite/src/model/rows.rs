//! The rows of a fit: what is given, the schema, and the split into training and validation rows.

use std::path::Path;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::allowance::Allowance;
use super::large::Spilled;
use super::weights::{MAX_GROWTH, WeightedTable};
use super::{Model, ModelError, ModelOptions};
use crate::data::{Encoded, InferOptions, LeftOut, Sample, Schema, Table};
use crate::learn::{Defaults, Layout, Quota, Workers};

/// The fraction of the time limit for fitting transforms, and the seconds per squared number of components: an
/// estimate.
const TRANSFORM_TIME_SHARE: f64 = 0.1;
const TRANSFORM_SECONDS: f64 = 5e-4;
/// The data of a fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct FitInput<'a> {
    pub(super) table: &'a Table,
    /// The sample that the table was taken from, if all rows of its files are used.
    pub(super) sample: Option<&'a Sample>,
    /// The workers that hold the rows, if they are not read from files.
    pub(super) workers: Option<&'a dyn Workers>,
    pub(super) validation: Option<&'a Table>,
    /// The model to continue from.
    pub(super) start: Option<&'a Model>,
    pub(super) checkpoint: Option<&'a [u8]>,
    pub(super) fold: Fold,
}

/// Which rows of a table are held out for validation, if there is no validation table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold {
    /// The number of earlier folds, whose rows are not held out again.
    pub(super) index: usize,
    /// The number of folds, which share the time for wide circuits.
    pub(super) count: usize,
    /// The seed of the order of rows.
    pub(super) seed: u64,
    /// Whether the first fold learned from a teacher, so that the others do too without other candidates.
    pub(super) is_taught: bool,
}

/// The encoded rows of a fit.
pub(super) struct FitData<'a> {
    pub(super) schema: Schema,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) split: Split,
    /// All training rows, if those of the split are only a sample.
    pub(super) spilled: Option<Spilled<'a>>,
    pub(super) allowance: Allowance,
}

impl<'a> FitData<'a> {
    pub(super) fn new(
        given: &FitInput<'a>,
        options: &ModelOptions,
        quota: &Quota,
        on_rows: &mut dyn FnMut(&Path, usize, Option<f64>),
    ) -> Result<Self, ModelError> {
        let &FitInput { table, sample, validation: valid, start, .. } = given;
        if table.num_rows() == 0 {
            return Err(ModelError::NoRows { which: "the table" });
        }
        if valid.is_some_and(|v| v.num_rows() == 0) {
            return Err(ModelError::NoRows { which: "the validation table" });
        }
        options.check()?;
        let weighted = WeightedTable::new(table, options.weights.as_deref())?;
        let has_weights = |valid: &Table, name: &&str| valid.column(name).is_ok();
        let weigh_valid = |valid| {
            WeightedTable::new(
                valid,
                options.weights.as_deref().filter(|name| has_weights(valid, name)),
            )
        };
        let valid = valid.map(weigh_valid).transpose()?;
        let table = &*weighted.table;
        let schema = match &options.schema {
            Some(schema) => schema.clone(),
            None => Schema::infer(table, &infer_options(table, options))?,
        };
        go_on(quota)?;
        let (schema, left_out) = match start {
            Some(model) => (schema, model.info.left_out.clone()),
            None => learnable(schema, table, options)?,
        };
        go_on(quota)?;
        let allowance = Allowance::of(&schema, table, options);
        if start.is_none() {
            allowance.check_columns()?;
        }
        if let Some(target) = &options.target {
            schema.find(target)?;
        }
        let split = split(&schema, &weighted, valid.as_ref(), options.valid_share, given.fold)?;
        go_on(quota)?;
        let spill = |sample: &Sample| {
            let place = |&row: &usize| sample.places()[weighted.place(row)];
            let held: Vec<u64> = split.held_out.iter().map(place).collect();
            let rows = usize::try_from(sample.num_rows()).unwrap_or(usize::MAX) - held.len();
            let batch = Defaults::of(rows, schema.num_variables()).batch();
            let (at_hand, batch) = (table.num_rows(), options.batch.unwrap_or(batch));
            let weights = weighted.of_all();
            // Repeated rows take more memory.
            let growth = if weights.is_some() { MAX_GROWTH } else { 1 };
            let mut layout = Layout::new(sample.num_rows(), held, at_hand.div_ceil(growth), batch);
            if let Some(weights) = &weights {
                layout = layout.with_weights(weights.unit);
            }
            match given.workers {
                Some(workers) => Spilled::to_workers(workers, &schema, (layout, weights)),
                None => Spilled::to_file(sample, &schema, (layout, weights.as_ref()), on_rows),
            }
        };
        let spilled = sample.map(spill).transpose()?;
        Ok(Self { schema, left_out, split, spilled, allowance })
    }

    /// The mean log slope of the transforms on the training rows and on the validation rows, which converts
    /// log-likelihoods to the units of the data.
    pub(super) fn slopes(&self) -> [f64; 2] {
        let mean = |encoded: &Encoded| {
            encoded.log_jacobian().iter().sum::<f64>() / encoded.num_rows().max(1) as f64
        };
        let Split { train, valid, .. } = &self.split;
        [self.spilled.as_ref().map_or_else(|| mean(train), |spilled| spilled.slope), mean(valid)]
    }
}

/// Ends a fit that is to stop while there is nothing to keep.
fn go_on(quota: &Quota) -> Result<(), ModelError> {
    if quota.is_stopped() { Err(ModelError::Stopped) } else { Ok(()) }
}

/// The options for inferring a schema. With a time limit and many columns, transforms are simpler.
fn infer_options(table: &Table, options: &ModelOptions) -> InferOptions {
    let mut infer = options.infer.clone();
    if let Some(time) = options.time {
        let each = TRANSFORM_TIME_SHARE * time.as_secs_f64() / table.num_columns().max(1) as f64;
        let most = (each / TRANSFORM_SECONDS).sqrt() as usize;
        infer.warp.max_components = infer.warp.max_components.min(most.max(1));
    }
    infer
}

/// Drops the columns that cannot be learned, and lists them.
fn learnable(
    schema: Schema,
    table: &Table,
    options: &ModelOptions,
) -> Result<(Schema, Vec<LeftOut>), ModelError> {
    let Some(found) = schema.findings(table).filter(|_| !options.as_is) else {
        return Ok((schema, Vec::new()));
    };
    let is_target = |column: &&str| options.target.as_deref() == Some(*column);
    if options.strict || found.is_hopeless() || found.columns().iter().any(is_target) {
        return Err(ModelError::LittleToLearn(found));
    }
    let schema =
        if found.columns().is_empty() { schema } else { schema.without(&found.columns())? };
    Ok((schema, found.left_out()))
}

/// Training and validation rows, repeated according to their weights.
pub(super) struct Split {
    pub(super) train: Encoded,
    pub(super) valid: Encoded,
    /// The number of rows before they are repeated.
    pub(super) num_rows: usize,
    pub(super) num_valid: usize,
    /// The rows of the table that are held out for validation.
    pub(super) held_out: Vec<usize>,
}

/// Splits the rows of a table, unless there are validation rows already.
pub(super) fn split(
    schema: &Schema,
    table: &WeightedTable<'_>,
    valid: Option<&WeightedTable<'_>>,
    valid_share: f64,
    fold: Fold,
) -> Result<Split, ModelError> {
    let n = table.table.num_rows();
    let rows = schema.encode(&table.table)?;
    let all = |of: &WeightedTable<'_>, rows: Encoded| {
        let once: Vec<usize> = (0..rows.num_rows()).collect();
        let often = of.repeated(&once);
        if often == once { rows } else { rows.select(&often) }
    };
    if let Some(valid) = valid {
        let held = schema.encode(&valid.table)?;
        let num_valid = held.num_rows();
        let (train, valid) = (all(table, rows), all(valid, held));
        return Ok(Split { train, valid, num_rows: n, num_valid, held_out: Vec::new() });
    }
    if n == 1 {
        let (train, valid) = (rows.clone(), rows);
        return Ok(Split { train, valid, num_rows: 1, num_valid: 1, held_out: Vec::new() });
    }
    let mut order: Vec<usize> = (0..n).collect();
    // Use a separate stream, so that other random choices with the same seed do not change the split.
    let mut rng = ChaCha8Rng::seed_from_u64(fold.seed);
    rng.set_stream(1);
    order.shuffle(&mut rng);
    let held = ((n as f64 * valid_share).round() as usize).clamp(1, n - 1);
    order.rotate_left(fold.index * held % n);
    let (valid, train) = order.split_at_mut(held);
    valid.sort_unstable();
    train.sort_unstable();
    let often = |part: &[usize]| rows.select(&table.repeated(part));
    Ok(Split {
        train: often(train),
        valid: often(valid),
        num_rows: train.len(),
        num_valid: valid.len(),
        held_out: valid.to_vec(),
    })
}

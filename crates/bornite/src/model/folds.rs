//! Fits of small tables: several circuits, each with other validation rows, averaged.
//!
//! With few rows, their noise limits a fit more than its circuit does, and so does the chance in the few rows that
//! choose the circuit and the epoch. A mixture of independent fits averages out both. The validation rows of its
//! circuits are disjoint, so every row is a training row of all circuits but one.

use std::path::Path;

use super::fit::{FitInput, FittedModel, Fold, mixture_of};
use super::{Info, Model, ModelError, ModelOptions, StructureKind};
use crate::learn::{Control, Effort, Folds, Progress, Quota, Snapshot};

/// The number of circuits for tables with at most this many cells, by effort: fast, balanced and best.
const COUNTS: [(usize, [usize; 3]); 2] = [(50_000, [1, 5, 8]), (150_000, [1, 3, 5])];

/// Fits a model: of several circuits if the table is small, and the caller leaves that open.
pub(super) fn fit(
    given: &FitInput<'_>,
    options: &ModelOptions,
    quota: &Quota,
    on_rows: &mut dyn FnMut(&Path, usize, Option<f64>),
    progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
) -> Result<Model, ModelError> {
    let count = count(given, options);
    if count < 2 {
        return Ok(Model::fit_from(given, options, quota, on_rows, progress)?.model);
    }
    let (mut folds, mut current) = match given.checkpoint.map(|bytes| (bytes, Folds::read(bytes))) {
        Some((_, Some(checkpoint))) => {
            let (folds, current) = checkpoint?;
            (folds, Some(current))
        }
        Some((bytes, None)) => (Folds::default(), Some(bytes.to_vec())),
        None => (Folds::default(), None),
    };
    let stored = folds.models.iter().map(|bytes| Model::from_bytes(bytes));
    let mut models = stored.collect::<Result<Vec<_>, _>>()?;
    while models.len() < count {
        // The rest of the budget is divided evenly.
        let (index, begun) = (models.len(), folds.begun);
        let share = (1.0 - begun).max(f64::MIN_POSITIVE) / (count - index) as f64;
        let within = move |used: f64| ((used - begun) / share).max(0.0);
        let settings = settings_of(options, index, models.first(), folds.functions);
        let mut is_stopped = false;
        let mut step = |p: &Progress, s: &Snapshot<'_>| {
            let control = progress(p, &s.after(&folds));
            match control {
                Control::Continue => control,
                Control::Used(now) => {
                    folds.used = now;
                    Control::Used(within(now))
                }
                Control::Stop => {
                    is_stopped = true;
                    control
                }
            }
        };
        let whole = quota.clone();
        let quota_of_fold = Quota::new(move || within(whole.used()));
        let from = current.take();
        let fold = Fold { index, seed: options.seed };
        let input = FitInput { checkpoint: from.as_deref(), fold, ..*given };
        let fit = Model::fit_from(&input, &settings, &quota_of_fold, on_rows, &mut step);
        let FittedModel { model, functions } = match fit {
            // An unfinished circuit would count as much as the others.
            Ok(_) | Err(ModelError::Stopped) if is_stopped && index > 0 => break,
            Err(ModelError::Stopped) if index > 0 => break,
            fit => fit?,
        };
        folds.functions = folds.functions.or(functions);
        folds.models.push(model.to_bytes()?);
        models.push(model);
        folds.used = folds.used.max(quota.used());
        folds.begun = folds.used;
        if is_stopped || folds.used >= 1.0 {
            break;
        }
    }
    Ok(average(models))
}

/// The number of circuits to fit; 1 if the caller determines how to fit it.
fn count(given: &FitInput<'_>, options: &ModelOptions) -> usize {
    let FitInput { table, sample, workers, validation, start, .. } = given;
    let has_other_rows = sample.is_some() || workers.is_some() || validation.is_some();
    let has_structure = options.structure != StructureKind::Auto || table.image().is_some();
    let has_width = options.width.is_some() || options.widths.is_some();
    if has_other_rows || has_structure || has_width || start.is_some() {
        return 1;
    }
    let effort = match options.effort {
        Effort::Fast => 0,
        Effort::Balanced => 1,
        Effort::Best => 2,
    };
    let cells = table.num_rows().saturating_mul(table.num_columns());
    let Some((_, counts)) = COUNTS.iter().find(|(most, _)| cells <= *most) else { return 1 };
    // Validation rows are disjoint.
    let most = (1.0 / options.valid_share).min(table.num_rows() as f64) as usize;
    options.circuits.unwrap_or(counts[effort]).min(most)
}

/// The settings of a fit, which chooses a width of its own. The first one also determines the columns and the number of
/// functions.
fn settings_of(
    options: &ModelOptions,
    index: usize,
    first: Option<&Model>,
    functions: Option<usize>,
) -> ModelOptions {
    ModelOptions {
        circuits: Some(1),
        seed: options.seed.wrapping_add(index as u64),
        schema: first.map(|model| model.schema.clone()).or_else(|| options.schema.clone()),
        functions: options.functions.or(functions),
        ..options.clone()
    }
}

/// The mixture of models that were fitted to different parts of the same table.
fn average(mut models: Vec<Model>) -> Model {
    if models.len() == 1
        && let Some(model) = models.pop()
    {
        return model;
    }
    let count = models.len() as f64;
    let mean =
        |value: &dyn Fn(&Info) -> f64| models.iter().map(|m| value(&m.info)).sum::<f64>() / count;
    let info = Info {
        rows: models[0].info.rows + models[0].info.valid_rows,
        valid_rows: models.iter().map(|m| m.info.valid_rows).sum(),
        valid: mean(&|info| info.valid),
        baseline: mean(&|info| info.baseline),
        ..models[0].info.clone()
    };
    let weights = models.iter().flat_map(|m| m.mixture.weights());
    let weights: Vec<f64> = weights.map(|weight| weight / count).collect();
    let circuits = models.iter().flat_map(|m| m.mixture.circuits().cloned());
    let mixture = mixture_of(circuits.collect(), &weights);
    Model::new(models[0].schema.clone(), mixture, info)
}

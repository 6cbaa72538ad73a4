//! Fits of small tables: several circuits, each with other validation rows, averaged.
//!
//! With few rows, their noise limits a fit more than its circuit does, and so does the chance in the few rows that
//! choose the circuit and the epoch. A mixture of independent fits averages out both. The validation rows of its
//! circuits are disjoint, so every row is a training row of all circuits, or of all but one. If the caller has validation
//! rows, these are the same for all circuits.

use std::path::Path;

use super::fit::{FittedModel, INDEPENDENT_WIDTH, mixture_of};
use super::rows::{FitInput, Fold};
use super::{Info, Model, ModelError, ModelOptions, StructureKind};
use crate::learn::{Control, Effort, Folds, Progress, Quota, Snapshot};

/// The number of circuits for tables with at most this many cells, by effort: fast, balanced and best.
const COUNTS: [(usize, [usize; 3]); 2] = [(50_000, [3, 5, 8]), (150_000, [1, 3, 5])];
/// The maximum number of circuits if the first one learns from a teacher, which takes long and gains less from averaging.
const MAX_TAUGHT: usize = 3;

/// Fits a model: of several circuits if the table is small, and the caller leaves that open.
pub(super) fn fit(
    given: &FitInput<'_>,
    options: &ModelOptions,
    quota: &Quota,
    on_rows: &mut dyn FnMut(&Path, usize, Option<f64>),
    progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
) -> Result<Model, ModelError> {
    let mut count = count(given, options);
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
        let is_taught = index > 0 && folds.functions.is_none();
        let fold = Fold { index, count, seed: options.seed, is_taught };
        let settings = settings_of(options, index, models.first(), folds.functions);
        let mut is_stopped = false;
        let mut step = |p: &Progress, s: &Snapshot<'_>| {
            let p = &Progress { fold: index, folds: count, ..*p };
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
        let input = FitInput { checkpoint: from.as_deref(), fold, ..*given };
        let fit = Model::fit_from(&input, &settings, &quota_of_fold, on_rows, &mut step);
        let FittedModel { model, functions, lacks_lesson } = match fit {
            // An unfinished circuit would count as much as the others.
            Ok(_) | Err(ModelError::Stopped) if is_stopped && index > 0 => break,
            Err(ModelError::Stopped) if index > 0 => break,
            fit => fit?,
        };
        if lacks_lesson {
            // There was no time for it. The model is much worse than the first one, but would count as much.
            break;
        }
        if index == 0 {
            folds.functions = functions;
        }
        if folds.functions.is_none() {
            count = count.min(MAX_TAUGHT);
        }
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
    let has_other_rows = sample.is_some() || workers.is_some();
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
    let count = options.circuits.unwrap_or(counts[effort]);
    if validation.is_some() {
        return count;
    }
    // Validation rows are disjoint.
    count.min((1.0 / options.valid_share).min(table.num_rows() as f64) as usize)
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

/// The mixture of models that were fitted to different parts of the same table. If most of them have independent
/// columns, one of these.
fn average(mut models: Vec<Model>) -> Model {
    let are_independent = |m: &Model| m.info.width == INDEPENDENT_WIDTH;
    let independent = models.iter().position(are_independent);
    if let Some(index) = independent
        && 2 * models.iter().filter(|m| are_independent(m)).count() > models.len()
    {
        return models.swap_remove(index);
    }
    if models.len() == 1 {
        return models.swap_remove(0);
    }
    let count = models.len() as f64;
    let mean =
        |value: &dyn Fn(&Info) -> f64| models.iter().map(|m| value(&m.info)).sum::<f64>() / count;
    let info = Info {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::Fit;
    use super::*;
    use crate::circuit::Orthonormal;
    use crate::data::{Column, Schema, Table};
    use crate::model::rows::split;
    use crate::model::weights::WeightedTable;

    /// Two numbers that depend on each other, and a label.
    fn table(rows: usize, seed: u64) -> Table {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let x: Vec<f64> = (0..rows).map(|_| rng.random()).collect();
        let y = x.iter().map(|x| x * x + 0.1 * rng.random::<f64>());
        let label = x.iter().map(|x| Some(if *x > 0.5 { "high" } else { "low" }));
        let columns = vec![
            Column::numbers("y", y.collect()),
            Column::labels("label", label),
            Column::numbers("x", x.clone()),
        ];
        Table::new(columns).unwrap()
    }

    fn quick<'a>() -> Fit<'a> {
        Fit::new().epochs(6).effort(Effort::Fast)
    }

    #[test]
    fn small_tables_have_circuits_of_equal_weight_that_are_better_together() {
        let (rows, test) = (table(80, 1), table(1000, 2));
        let model = Fit::new().effort(Effort::Fast).circuits(4).run(&rows).unwrap();
        assert_eq!(model.mixture().weights(), [0.25; 4]);
        assert_eq!((model.info().rows, model.info().valid_rows), (72, 8));
        let of = |model: &Model| model.mean_log_likelihood(&test).unwrap();
        let alone = |circuit: &Orthonormal| {
            let mixture = mixture_of(vec![circuit.clone()], &[1.0]);
            of(&Model::new(model.schema.clone(), mixture, model.info.clone()))
        };
        let mean = model.mixture().circuits().map(alone).sum::<f64>() / 4.0;
        assert!(of(&model) > mean + 0.02, "{} and {mean}", of(&model));
        // A given width leaves nothing to average, and validation rows of the caller are those of all circuits.
        assert_eq!(quick().width(2).run(&rows).unwrap().mixture().circuits().len(), 1);
        let model = quick().validation(&test).run(&rows).unwrap();
        assert_eq!(model.mixture().weights(), [1.0 / 3.0; 3]);
        assert_eq!((model.info().rows, model.info().valid_rows), (80, 1000));
    }

    #[test]
    fn validation_rows_are_disjoint() {
        let rows = table(43, 1);
        let schema = Schema::infer(&rows, &ModelOptions::default().infer).unwrap();
        let weighted = WeightedTable::new(&rows, None).unwrap();
        let mut seen = BTreeSet::new();
        for index in 0..10 {
            let fold = Fold { index, count: 10, seed: 7, is_taught: false };
            let held = split(&schema, &weighted, None, 0.1, fold).unwrap().held_out;
            assert_eq!(held.len(), 4);
            seen.extend(held);
        }
        assert_eq!(seen.len(), 40);
    }

    #[test]
    fn a_fit_continues_from_every_circuit() {
        let rows = table(60, 3);
        let fit = || quick().circuits(3);
        let mut snapshots = Vec::new();
        let model = fit().on_step(|p, snapshot| {
            if p.rows > 0 && p.epoch == 2 && snapshots.len() == p.fold {
                assert_eq!(p.folds, 3);
                snapshots.push(snapshot.to_bytes());
            }
            Control::Continue
        });
        let model = model.run(&rows).unwrap().to_bytes().unwrap();
        assert_eq!(snapshots.len(), 3);
        for bytes in &snapshots {
            let again = fit().resume(&bytes[..]).run(&rows).unwrap();
            assert_eq!(again.to_bytes().unwrap(), model);
        }
        let mut cut = snapshots.swap_remove(2);
        cut.truncate(cut.len() / 2);
        assert!(fit().resume(&cut[..]).run(&rows).is_err());
    }

    #[test]
    fn a_stopped_fit_keeps_the_finished_circuits() {
        let rows = table(60, 3);
        let stop_in = |fold: usize| {
            let fit = quick().circuits(3).on_step(move |p, _| {
                if p.fold == fold && p.epoch == 1 { Control::Stop } else { Control::Continue }
            });
            fit.run(&rows).unwrap().mixture().circuits().len()
        };
        assert_eq!([0, 1, 2].map(stop_in), [1, 1, 2]);
        // The budget is divided evenly, and used up.
        let mut used = vec![0.0; 2];
        let options = ModelOptions {
            circuits: Some(2),
            epochs: Some(1000),
            patience: Some(1000),
            effort: Effort::Fast,
            ..ModelOptions::default()
        };
        let fit = Fit::with(options).on_step(|p, _| {
            used[p.fold] += 1.0;
            Control::Used(used.iter().sum::<f64>() / 32.0)
        });
        assert_eq!(fit.run(&rows).unwrap().mixture().circuits().len(), 2);
        assert_eq!(used, [16.0; 2]);
    }

    /// Regression: the lesson was skipped, because the first circuit of such a fold, of width 2, predicted that it takes
    /// too long; and that circuit counted as much as the one that had its lesson.
    #[test]
    fn a_circuit_without_its_lesson_does_not_count() {
        let rng = &mut ChaCha8Rng::seed_from_u64(8);
        let x: Vec<f64> = (0..90).map(|_| rng.random()).collect();
        let y = x.iter().map(|x| x + 0.002 * rng.random::<f64>());
        let columns = vec![Column::numbers("y", y.collect()), Column::numbers("x", x.clone())];
        let rows = Table::new(columns).unwrap();
        // The fraction of the budget that circuits after the first one take at once.
        let count = |taken: f64| {
            let fit =
                Fit::new().on_step(|p, _| Control::Used(if p.fold > 0 { taken } else { 0.0 }));
            fit.run(&rows).unwrap().mixture().circuits().len()
        };
        assert_eq!([count(1e-4), count(0.4)], [MAX_TAUGHT, 1]);
    }

    #[test]
    fn noise_has_independent_columns() {
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        let mut noise = || (0..300).map(|_| rng.random::<f64>()).collect();
        let columns = ["a", "b", "c"].map(|name| Column::numbers(name, noise()));
        let model = Fit::new().epochs(4).run(&Table::new(columns.into()).unwrap()).unwrap();
        assert_eq!(model.mixture().circuits().len(), 1);
        assert_eq!(model.info().width, INDEPENDENT_WIDTH);
    }
}

//! A small model for a table that is to be compressed with it.

use super::compact::Compact;
use super::{CompressOptions, Fit, Model, ModelError, ModelOptions};
use crate::data::{DataError, InferOptions, Schema, Table, WideIntegers};
use crate::learn::{Control, Progress};

/// Input functions of a continuous variable.
const FUNCTIONS: usize = 12;
/// Widths that are tried.
const WIDTHS: [usize; 9] = [2, 3, 4, 5, 6, 8, 10, 12, 16];
/// The digits after the binary point that weights may have.
const BITS: [u8; 7] = [4, 5, 6, 7, 8, 9, 11];
/// Epochs without a better likelihood after which a fit ends.
const PATIENCE: usize = 40;
/// The rows that decide on them.
const SELECTION_ROWS: usize = 4096;

/// A model that was fitted for a table.
#[derive(Debug)]
pub(super) struct EmbeddedModel {
    pub(super) compact: Compact,
    /// The width of inner layers.
    pub(super) width: usize,
}

/// A model of a table. `None` if there is nothing to learn. `stored` is the size of the table by zstd.
pub(super) fn fit(
    table: &Table,
    stored: usize,
    options: &CompressOptions,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Option<EmbeddedModel>, ModelError> {
    let plain = InferOptions {
        atoms: false,
        wide_integers: WideIntegers::Digits,
        ..InferOptions::default()
    };
    let Ok(schema) = Schema::infer(table, &plain) else { return Ok(None) };
    let schema = rounded(&schema)?;
    let width = options.width.unwrap_or_else(|| width(&schema, stored));
    let settings = ModelOptions {
        schema: Some(schema),
        width: Some(width),
        // Every weight is stored for each place where it is used.
        codebook: Some(0),
        share: Some(0),
        // Every function is stored.
        functions: Some(FUNCTIONS),
        epochs: options.epochs,
        seed: options.seed,
        // The rows to be judged by are those to be coded: what is learned by heart is gained.
        patience: Some(PATIENCE),
        smoothing: Some(0.0),
        // Any table can be compressed.
        as_is: true,
        ..ModelOptions::default()
    };
    let selection = selection(table);
    let fit = Fit::with(settings).validation(&selection).on_step(|p, _| progress(p));
    let model = match fit.run(table) {
        Ok(model) => model,
        Err(problem @ ModelError::Option { .. }) => return Err(problem),
        // A table that cannot be learned from can still be stored.
        Err(_) => return Ok(None),
    };
    let compact = smallest(&model, &selection, table.num_rows())?;
    Ok(compact.map(|compact| EmbeddedModel { compact, width }))
}

/// Rows from all over a table.
fn selection(table: &Table) -> Table {
    let n = table.num_rows();
    let step = n.div_ceil(SELECTION_ROWS).max(1);
    table.select_rows(&(0..n).step_by(step).collect::<Vec<_>>())
}

/// The widest circuit whose weights take no more than an eighth of what zstd makes of the file, at a byte each.
fn width(schema: &Schema, stored: usize) -> usize {
    let variables = schema.variables();
    let bytes = |k: usize| -> usize {
        let leaf = |v: usize| 2 * k.min(v) * v;
        let leaves: usize =
            variables.iter().map(|v| leaf(v.domain.num_values().unwrap_or(FUNCTIONS))).sum();
        leaves + 2 * k.pow(3) * variables.len().saturating_sub(1)
    };
    WIDTHS.into_iter().rev().find(|&k| bytes(k) <= stored / 8).unwrap_or(WIDTHS[0])
}

/// The weights to so many digits that model and rows together are the smallest.
fn smallest(model: &Model, selection: &Table, rows: usize) -> Result<Option<Compact>, ModelError> {
    let mut best: Option<(f64, Compact)> = None;
    for bits in BITS {
        let compact = match Compact::new(model, bits) {
            Ok(Some(compact)) => compact,
            Ok(None) => return Ok(None),
            // So few digits that nothing is left of a weight.
            Err(_) => continue,
        };
        let nats = compact.model.mean_log_likelihood(selection)?;
        let size = 8.0 * compact.bytes.len() as f64 - nats / std::f64::consts::LN_2 * rows as f64;
        if best.as_ref().is_none_or(|(least, _)| size < *least) {
            best = Some((size, compact));
        }
    }
    Ok(best.map(|(_, compact)| compact))
}

/// The schema with the parameters of its transforms to few digits, since they have to be stored.
fn rounded(schema: &Schema) -> Result<Schema, DataError> {
    let mut columns = schema.columns().to_vec();
    for column in &mut columns {
        if let Some(short) = column.kind.coding().shortened() {
            column.kind = short;
        }
        // Every cell of the table has a place.
        column.outside = 0.0;
    }
    let short = Schema::new(columns)?;
    match schema.image() {
        Some(shape) => short.with_image(shape),
        None => Ok(short),
    }
}

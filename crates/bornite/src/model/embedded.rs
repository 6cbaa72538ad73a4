//! Small models that are fitted to a table and embedded in its compressed file.

use super::compact::Compact;
use super::{CompressOptions, Fit, Model, ModelError, ModelOptions};
use crate::data::{DataError, InferOptions, Schema, Table, WideIntegers};
use crate::learn::{Control, Progress};

/// The number of input functions of a continuous variable.
const FUNCTIONS: usize = 12;
/// The widths to choose from.
const WIDTHS: [usize; 9] = [2, 3, 4, 5, 6, 8, 10, 12, 16];
/// The precisions to choose from, in bits after the binary point of a weight.
const BITS: [u8; 7] = [4, 5, 6, 7, 8, 9, 11];
/// The number of epochs without improvement after which a fit ends.
const PATIENCE: usize = 40;
/// The number of rows that decide on the precision.
const SELECTION_ROWS: usize = 4096;

/// A model that was fitted to a table.
#[derive(Debug)]
pub(super) struct EmbeddedModel {
    pub(super) compact: Compact,
    /// The width of inner layers.
    pub(super) width: usize,
}

/// Fits a model to a table. `None` if there is nothing to learn. `stored` is the size of the table when compressed with
/// zstd.
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
        // A shared weight would be stored once for every place that uses it.
        codebook: Some(0),
        share: Some(0),
        // Every function costs bytes.
        functions: Some(FUNCTIONS),
        epochs: options.epochs,
        seed: options.seed,
        // Validate on the rows to be compressed: overfitting to them is a gain.
        patience: Some(PATIENCE),
        smoothing: Some(0.0),
        // Every table can be compressed.
        as_is: true,
        ..ModelOptions::default()
    };
    let selection = selection(table);
    let fit = Fit::with(settings).validation(&selection).on_step(|p, _| progress(p));
    let model = match fit.run(table) {
        Ok(model) => model,
        Err(problem @ ModelError::Option { .. }) => return Err(problem),
        // A table that cannot be learned can still be compressed with zstd.
        Err(_) => return Ok(None),
    };
    let compact = smallest(&model, &selection, table.num_rows())?;
    Ok(compact.map(|compact| EmbeddedModel { compact, width }))
}

/// Picks rows from all over a table.
fn selection(table: &Table) -> Table {
    let n = table.num_rows();
    let step = n.div_ceil(SELECTION_ROWS).max(1);
    table.select_rows(&(0..n).step_by(step).collect::<Vec<_>>())
}

/// The widest circuit whose weights take at most an eighth of the size of the zstd-compressed file, at one byte per
/// weight.
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

/// Chooses the precision of the weights that minimizes the total size of the model and the rows.
fn smallest(model: &Model, selection: &Table, rows: usize) -> Result<Option<Compact>, ModelError> {
    let mut best: Option<(f64, Compact)> = None;
    for bits in BITS {
        let compact = match Compact::new(model, bits) {
            Ok(Some(compact)) => compact,
            Ok(None) => return Ok(None),
            // The precision is so low that a weight is all zeros.
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

/// Rounds the parameters of the schema's transforms, because they have to be stored.
fn rounded(schema: &Schema) -> Result<Schema, DataError> {
    let mut columns = schema.columns().to_vec();
    for column in &mut columns {
        if let Some(short) = column.kind.coding().shortened() {
            column.kind = short;
        }
        // Every cell of this table is inside the domain.
        column.outside = 0.0;
    }
    let short = Schema::new(columns)?;
    match schema.image() {
        Some(shape) => short.with_image(shape),
        None => Ok(short),
    }
}

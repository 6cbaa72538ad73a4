//! Lossless compression of tables and of the files that hold them.

use super::compact::Compact;
use super::{Model, ModelError, ModelOptions};
use crate::codec::{CodecError, Content, Parts, TableCodec, read_content, store, unpack};
use crate::data::{ColumnKind, DataError, FileForm, InferOptions, Schema, Table};
use crate::learn::{Control, Progress};

/// Widths that are tried.
const WIDTHS: [usize; 9] = [2, 3, 4, 5, 6, 8, 10, 12, 16];
/// The digits after the binary point that weights may have.
const BITS: [u8; 7] = [4, 5, 6, 7, 8, 9, 11];
/// Epochs without a better likelihood after which a fit ends.
const PATIENCE: usize = 40;
/// The rows that decide on them.
const JUDGES: usize = 4096;

impl Model {
    /// Compresses a table to little more than −log₂ p bits a row. [`decompress`](Self::decompress) gives it back: every cell bit
    /// for bit, missing ones, the texts of those that were read from a file, and columns that the model does not have.
    ///
    /// Labels and numbers that the model does not know are escaped. What the model is conditioned on is not used. The bytes
    /// are the same on every machine, whatever the number of threads.
    ///
    /// # Errors
    /// A continuous variable that is not on an interval or circle.
    ///
    /// ```
    /// use bornite::data::{CsvOptions, Table};
    /// use bornite::learn::Control;
    /// use bornite::model::{Model, ModelOptions};
    ///
    /// let text = format!("sky,hours\n{}", "rain,1.5\nsun,8.0\nsun,7.5\n".repeat(60));
    /// let table = Table::from_csv_bytes(text.as_bytes(), "sky.csv", &CsvOptions::default())?;
    /// let model = Model::fit(&table, None, &ModelOptions::default(), &mut |_| Control::Continue)?;
    /// let bytes = model.compress(&table)?;
    /// assert!(bytes.len() < text.len() / 3);
    /// assert_eq!(model.decompress(&bytes)?.to_csv(), text.as_bytes());
    /// # Ok::<(), bornite::Error>(())
    /// ```
    pub fn compress(&self, table: &Table) -> Result<Vec<u8>, ModelError> {
        Ok(self.table_codec()?.compress(table, FileForm::Memory, &[])?)
    }

    /// Gives back a table that this model, or one that the bytes hold, has compressed.
    ///
    /// # Errors
    /// Bytes that are no compressed table, are damaged, or were made with another model.
    pub fn decompress(&self, bytes: &[u8]) -> Result<Table, ModelError> {
        match read_content(bytes)? {
            Content::Table(parts) => Ok(read_table(&parts, Some(self))?.0),
            Content::Stored(_) => Err(CodecError::Content { found: 2 }.into()),
        }
    }

    fn table_codec(&self) -> Result<TableCodec<'_>, CodecError> {
        TableCodec::new(&self.schema, &self.circuit)
    }
}

fn read_table(parts: &Parts<'_>, model: Option<&Model>) -> Result<(Table, FileForm), ModelError> {
    if !parts.model.is_empty() {
        let model = Compact::read(parts.model)?;
        return Ok(model.table_codec()?.decompress(parts)?);
    }
    let model = model.ok_or(CodecError::NeedsModel)?;
    Ok(model.table_codec()?.decompress(parts)?)
}

/// How a file is compressed.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CompressOptions {
    /// The width K of inner layers of a model that is fitted; from the size of the data where it is not given.
    pub width: Option<usize>,
    /// The most passes over the rows.
    pub epochs: Option<usize>,
    /// The seed of everything random.
    pub seed: u64,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Compressed {
    /// The compressed bytes.
    pub bytes: Vec<u8>,
    /// How they were made.
    pub method: Method,
}

/// How a file was compressed.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// By the model that was given, which is needed again.
    Given,
    /// By a model that was fitted for it and takes so many of the bytes.
    Fitted {
        /// The bytes of the model.
        model_bytes: usize,
        /// The width of its inner layers.
        width: usize,
    },
    /// By zstd alone, and why.
    Stored {
        /// Why no model was used.
        why: String,
    },
}

/// Compresses the content of a file: CSV, NPY or IDX, by a model that is given or fitted for it; anything else, and what a
/// model makes no smaller, by zstd. [`decompress_file`] gives the same bytes back, always.
///
/// A file packed by gzip is to be unpacked before. `name` stands for it in messages. The result is never longer than the
/// content + 1 % + 1 KiB. `progress` is asked after every step of a fit and can end it; the same answers give the same bytes.
///
/// ```
/// use bornite::learn::Control;
/// use bornite::model::{CompressOptions, compress_file, decompress_file};
///
/// let text = format!("sky,hours\n{}", "rain,1.5\nsun,8.0\nsun,7.5\n".repeat(60));
/// let options = CompressOptions { epochs: Some(2), ..CompressOptions::default() };
/// let packed = compress_file(text.as_bytes(), "sky.csv", None, &options, &mut |_| Control::Continue)?;
/// assert_eq!(decompress_file(&packed.bytes, None)?, text.as_bytes());
/// # Ok::<(), bornite::Error>(())
/// ```
///
/// # Errors
/// Options that make no sense.
pub fn compress_file(
    content: &[u8],
    name: &str,
    model: Option<&Model>,
    options: &CompressOptions,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Compressed, ModelError> {
    let stored = |why: String| Compressed { bytes: store(content), method: Method::Stored { why } };
    let (table, form) = match FileForm::read(content, name) {
        Ok(read) => read,
        Err(problem) => return Ok(stored(problem.to_string())),
    };
    let smallest = stored("that is smaller than what a model makes of it".to_owned());
    let coded = match model {
        Some(model) => Compressed {
            bytes: model.table_codec()?.compress(&table, form, &[])?,
            method: Method::Given,
        },
        None => match fitted(&table, form, smallest.bytes.len(), options, progress)? {
            Some(coded) => coded,
            None => return Ok(smallest),
        },
    };
    Ok(if coded.bytes.len() < smallest.bytes.len() { coded } else { smallest })
}

/// Gives back the content of a file that [`compress_file`] compressed; `model` is needed where one was given.
///
/// # Errors
/// Bytes that are not compressed, are damaged, or need another model.
pub fn decompress_file(bytes: &[u8], model: Option<&Model>) -> Result<Vec<u8>, ModelError> {
    match read_content(bytes)? {
        Content::Stored(packed) => Ok(unpack(packed)?),
        Content::Table(parts) => {
            let (table, form) = read_table(&parts, model)?;
            let damaged = CodecError::Damaged { what: "its cells are not those of its file" };
            Ok(form.write(&table).ok_or(damaged)?)
        }
    }
}

/// A table with a model of its own. `None` where there is nothing to learn.
fn fitted(
    table: &Table,
    form: FileForm,
    stored: usize,
    options: &CompressOptions,
    progress: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Option<Compressed>, ModelError> {
    let Ok(schema) = Schema::infer(table, &InferOptions::default()) else { return Ok(None) };
    let schema = rounded(&schema)?;
    let width = options.width.unwrap_or_else(|| width(&schema, stored));
    let settings = ModelOptions {
        schema: Some(schema),
        width: Some(width),
        epochs: options.epochs,
        seed: options.seed,
        // The rows to be judged by are those to be coded: what is learned by heart is gained.
        patience: Some(PATIENCE),
        // Any table can be compressed.
        as_is: true,
        ..ModelOptions::default()
    };
    let judges = judges(table);
    let model = match Model::fit(table, Some(&judges), &settings, progress) {
        Ok(model) => model,
        Err(problem @ ModelError::Option { .. }) => return Err(problem),
        // A table that cannot be learned from can still be stored.
        Err(_) => return Ok(None),
    };
    let Some(compact) = smallest(&model, &judges, table.num_rows())? else { return Ok(None) };
    let bytes = compact.model.table_codec()?.compress(table, form, &compact.bytes)?;
    let method = Method::Fitted { model_bytes: compact.bytes.len(), width };
    Ok(Some(Compressed { bytes, method }))
}

/// Rows from all over a table.
fn judges(table: &Table) -> Table {
    let n = table.num_rows();
    let step = n.div_ceil(JUDGES).max(1);
    table.select_rows(&(0..n).step_by(step).collect::<Vec<_>>())
}

/// The widest circuit whose weights take no more than an eighth of what zstd makes of the file, at a byte each.
fn width(schema: &Schema, stored: usize) -> usize {
    let variables = schema.variables();
    let bytes = |k: usize| -> usize {
        let leaf = |v: usize| 2 * k.min(v) * v;
        let leaves: usize =
            variables.iter().map(|v| leaf(v.domain.num_values().unwrap_or(12))).sum();
        leaves + 2 * k.pow(3) * variables.len().saturating_sub(1)
    };
    WIDTHS.into_iter().rev().find(|&k| bytes(k) <= stored / 8).unwrap_or(WIDTHS[0])
}

/// The weights to so many digits that model and rows together are the smallest.
fn smallest(model: &Model, judges: &Table, rows: usize) -> Result<Option<Compact>, ModelError> {
    let mut best: Option<(f64, Compact)> = None;
    for bits in BITS {
        let compact = match Compact::new(model, bits) {
            Ok(Some(compact)) => compact,
            Ok(None) => return Ok(None),
            // So few digits that nothing is left of a weight.
            Err(_) => continue,
        };
        let nats = compact.model.mean_log_likelihood(judges)?;
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
        if let ColumnKind::Continuous { warp } = &mut column.kind
            && let Some(short) = warp.rounded()
        {
            *warp = short;
        }
    }
    let short = Schema::new(columns)?;
    match schema.image() {
        Some(shape) => short.with_image(shape),
        None => Ok(short),
    }
}

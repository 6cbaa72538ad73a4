//! New rows, compressed by the model and given back.

use anyhow::{Result, bail};
use bornite::Model;
use bornite::data::{self, Table};
use bornite::learn::Control;
use bornite::model::{CompressOptions, compress_file, decompress_file};

use super::Stage;
use crate::output::grouped;

/// Compresses rows that the model did not learn from, and compares what comes back.
pub(super) fn run(stage: &mut Stage<'_>, model: &Model, fresh: &Table, name: &str) -> Result<()> {
    let content = fresh.to_csv();
    let options = CompressOptions { seed: stage.seed, ..CompressOptions::default() };
    let packed = compress_file(&content, name, Some(model), &options, &mut |_| Control::Continue)?;
    if decompress_file(&packed.bytes, Some(model))? != content {
        bail!("{name} did not come back as it was: this is a mistake of the program");
    }
    let path = stage.folder.join(name);
    data::write_file(&path, &packed.bytes)?;
    let ideal: f64 = model.score(fresh)?.iter().map(|log| -log / (8.0 * 2_f64.ln())).sum();
    writeln!(
        stage.out,
        "\n  The new images as text are {} bytes; without loss, by the model, {} bytes in {} (ideal: {ideal:.0}).",
        grouped(content.len() as u128),
        grouped(packed.bytes.len() as u128),
        path.display()
    )?;
    Ok(())
}

//! New rows, compressed with the model and restored.

use anyhow::{Result, bail};
use bornite::Model;
use bornite::data::Table;
use bornite::learn::Control;
use bornite::model::{CompressOptions, compress_file, decompress_file};

use super::Stage;
use crate::files;
use crate::output::grouped;

/// Compresses held-out rows, restores them and compares.
pub(super) fn run(stage: &mut Stage<'_>, model: &Model, fresh: &Table, name: &str) -> Result<()> {
    let content = fresh.to_csv();
    let options = CompressOptions { seed: stage.seed, ..CompressOptions::default() };
    let (mut packed, mut back) = (Vec::new(), Vec::new());
    let go_on = &mut |_: &_| Control::Continue;
    compress_file(&content[..], &mut packed, name, Some(model), &options, go_on)?;
    decompress_file(&packed[..], &mut back, Some(model))?;
    if back != content {
        bail!("{name} was not restored exactly; this is a bug");
    }
    let path = stage.folder.join(name);
    files::write_bytes(&path, &packed)?;
    let ideal: f64 = model.score(fresh)?.iter().map(|log| -log / (8.0 * 2_f64.ln())).sum();
    writeln!(
        stage.out,
        "\n  The new images are {} bytes of text; losslessly compressed with the model, {} bytes in {} (ideal: {ideal:.0}).",
        grouped(content.len() as u128),
        grouped(packed.len() as u128),
        path.display()
    )?;
    Ok(())
}

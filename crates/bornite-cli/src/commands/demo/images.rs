//! Small images: fitted, then completed from their left halves.

use anyhow::Result;
use bornite::data::{Column, DataError, Table};
use bornite::report::{Picture, Report};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Stage, pack};
use crate::files;
use crate::output::time;

const SIDE: usize = 8;
const LEVELS: i64 = 4;
const ROWS: usize = 3000;
/// New images; some are masked and completed.
const FRESH: usize = 200;

pub(super) fn run(stage: &mut Stage<'_>) -> Result<()> {
    let rng = &mut ChaCha8Rng::seed_from_u64(stage.seed);
    let table = images(ROWS, rng)?;
    let fresh = images(FRESH, rng)?;
    writeln!(stage.out, "\nSmall images, completed from their left halves\n")?;
    let (model, took) = stage.fit(&table)?;
    let info = model.info();
    writeln!(
        stage.out,
        "  {ROWS} images of {SIDE} × {SIDE} pixels and {LEVELS} gray levels, disks and crosses, fitted in {}.\n  \
         Held-out images: {:.3} bits per pixel; {:.3} if all pixels were independent.",
        time(took),
        model.bits_per_dimension(info.valid),
        model.bits_per_dimension(info.baseline)
    )?;
    let path = stage.folder.join("images.model");
    model.save(&path)?;
    let path = stage.folder.join("images.svg");
    let report = Report::new(&model, Some(&fresh), stage.seed)?;
    files::write_text(&path, &report.svg(Picture::Samples)?)?;
    writeln!(
        stage.out,
        "\n  Samples, and exact completions of new images from their left halves: {}",
        path.display()
    )?;
    pack::run(stage, &model, &fresh, "images.brz")?;
    stage.report(&model, &fresh, "images.html", "Disks and crosses")
}

/// Disks and crosses of all sizes at random positions.
fn images(count: usize, rng: &mut impl Rng) -> Result<Table, DataError> {
    let mut pixels = vec![Vec::new(); SIDE * SIDE];
    for _ in 0..count {
        let (cx, cy) = (rng.random_range(2.0..5.0_f64), rng.random_range(2.0..5.0_f64));
        let size = rng.random_range(1.5..3.0_f64);
        let is_disk = rng.random::<bool>();
        for (n, pixel) in pixels.iter_mut().enumerate() {
            let (dx, dy) = ((n % SIDE) as f64 - cx, (n / SIDE) as f64 - cy);
            let depth = if is_disk {
                size - dx.hypot(dy)
            } else {
                (0.9 - dx.abs().min(dy.abs())).min(size + 1.0 - dx.abs().max(dy.abs()))
            };
            let level = (2.0 * depth + 1.0).round().clamp(0.0, (LEVELS - 1) as f64);
            pixel.push(Some(level as i64));
        }
    }
    let name = |n: usize| format!("p{}_{}", n / SIDE, n % SIDE);
    let column = |(n, cells): (usize, Vec<Option<i64>>)| Column::integers(name(n), cells);
    Table::new(pixels.into_iter().enumerate().map(column).collect())?.with_image([SIDE, SIDE, 1])
}

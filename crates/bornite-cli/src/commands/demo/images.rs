//! Small images: fitted, then completed from their left halves.

use std::fmt::Write as _;

use anyhow::Result;
use bornite::Model;
use bornite::data::{Column, DataError, Table};
use bornite::model::{Imputation, ModelOptions};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Stage;
use crate::files;
use crate::output::time;
use crate::progress::FitBar;

const SIDE: usize = 8;
const LEVELS: i64 = 4;
const ROWS: usize = 3000;
/// Images that are completed, and samples of each.
const SHOWN: usize = 10;
const DRAWS: usize = 4;

pub(super) fn run(stage: &mut Stage<'_>) -> Result<()> {
    let rng = &mut ChaCha8Rng::seed_from_u64(stage.seed);
    let table = images(ROWS, rng)?;
    let fresh = images(SHOWN, rng)?;
    writeln!(stage.out, "\nSmall images, completed from their left halves\n")?;
    let options = ModelOptions { seed: stage.seed, ..ModelOptions::default() };
    let mut bar = FitBar::new(Some(stage.time));
    let model = Model::fit(&table, None, &options, &mut |p| bar.step(p));
    let took = bar.finish();
    let model = model?;
    let info = model.info();
    writeln!(
        stage.out,
        "  {ROWS} images of {SIDE} × {SIDE} pixels and {LEVELS} grey levels, disks and crosses, fitted in {}.\n  \
         Held-out images: {:.3} bits per pixel; {:.3} if all pixels were independent.",
        time(took),
        model.bits_per_dimension(info.valid),
        model.bits_per_dimension(info.baseline)
    )?;
    let covered = cover(&fresh)?;
    let mut rows = vec![("new", fresh), ("covered", covered.clone())];
    for draw in 0..DRAWS {
        let seed = stage.seed.wrapping_add(draw as u64);
        rows.push(("completed", model.impute(&covered, Imputation::Sample, seed)?));
    }
    rows.push(("samples", model.sample(SHOWN, stage.seed)?));
    let path = stage.folder.join("images.svg");
    files::write_text(&path, &svg(&rows))?;
    writeln!(
        stage.out,
        "\n  New images, their left halves, {DRAWS} exact completions of each, and samples: {}",
        path.display()
    )?;
    Ok(())
}

/// Disks and crosses of all sizes, somewhere.
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

/// The right halves missing.
fn cover(images: &Table) -> Result<Table, DataError> {
    let column = |(n, c): (usize, &Column)| {
        let known = |row| c.number(row).filter(|_| n % SIDE < SIDE / 2).map(|x| x as i64);
        Column::integers(c.name(), (0..images.num_rows()).map(known))
    };
    images.with_columns(images.columns().iter().enumerate().map(column).collect())
}

/// A grid of images, a row of them for each table.
fn svg(rows: &[(&str, Table)]) -> String {
    const PIXEL: usize = 8;
    const STEP: usize = (SIDE + 1) * PIXEL;
    const LABEL: usize = 84;
    let (width, height) = (LABEL + SHOWN * STEP, rows.len() * STEP + PIXEL);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" shape-rendering=\"crispEdges\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (line, (label, images)) in rows.iter().enumerate() {
        let top = PIXEL + line * STEP;
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "<text x=\"8\" y=\"{}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">{label}</text>",
            top + SIDE * PIXEL / 2 + 4
        );
        for image in 0..images.num_rows() {
            for (n, column) in images.columns().iter().enumerate() {
                let (x, y) = (LABEL + image * STEP + n % SIDE * PIXEL, top + n / SIDE * PIXEL);
                let fill = match column.number(image) {
                    None => "#cfe3f5".to_owned(),
                    Some(level) => {
                        let grey = 255.0 - 225.0 * level / (LEVELS - 1) as f64;
                        let grey = grey.clamp(0.0, 255.0) as u8;
                        format!("#{grey:02x}{grey:02x}{grey:02x}")
                    }
                };
                let _ = writeln!(
                    text,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{PIXEL}\" height=\"{PIXEL}\" fill=\"{fill}\"/>"
                );
            }
        }
    }
    text.push_str("</svg>\n");
    text
}

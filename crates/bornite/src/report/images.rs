//! Grids of images: samples, completions and means.

use super::Report;
use super::canvas::{Anchor, Canvas};
use super::raster::Raster;
use crate::data::{Encoded, Table};
use crate::engine::Batch;
use crate::model::{Imputation, Model, ModelError};

/// The number of images in a row.
const ACROSS: usize = 10;
const SAMPLE_ROWS: usize = 4;
const DRAWS: usize = 3;
/// The colors of missing pixels, and of the space between images.
const HOLE: [u8; 3] = [188, 214, 240];
const GAP: [u8; 3] = [255, 255, 255];
const LABEL: f64 = 96.0;

/// A row of images with a label.
pub(super) struct Strip {
    label: &'static str,
    images: Table,
}

/// The samples and completions of a model of images; `None` for other models.
pub(super) fn strips(report: &Report<'_>) -> Result<Option<Vec<Strip>>, ModelError> {
    let model = report.model;
    let Some([_, width, channels]) = model.schema().image() else { return Ok(None) };
    let samples = model.sample(ACROSS * SAMPLE_ROWS, report.seed)?;
    let mut strips = Vec::new();
    for n in 0..SAMPLE_ROWS {
        let rows: Vec<usize> = (n * ACROSS..(n + 1) * ACROSS).collect();
        let label = if n == 0 { "samples" } else { "" };
        strips.push(Strip { label, images: samples.select_rows(&rows) });
    }
    let (label, shown) = originals(report)?;
    let d = model.schema().num_variables();
    let covered: Vec<f64> = shown
        .iter()
        .enumerate()
        .map(|(n, &x)| if n % d / channels % width >= width / 2 { f64::NAN } else { x })
        .collect();
    let holes = model.schema().decode(&covered)?;
    strips.push(Strip { label, images: model.schema().decode(&shown)? });
    strips.push(Strip { label: "left halves", images: holes.clone() });
    strips.push(Strip { label: "mean", images: means(model, &covered)? });
    for draw in 0..DRAWS {
        let seed = report.seed.wrapping_add(1 + draw as u64);
        let images = model.impute(&holes, Imputation::Sample, seed)?;
        strips.push(Strip { label: if draw == 0 { "completions" } else { "" }, images });
    }
    Ok(Some(strips))
}

/// The mean of every pixel, given the observed pixels of its image.
fn means(model: &Model, values: &[f64]) -> Result<Table, ModelError> {
    let schema = model.schema();
    let means = model.means_of_rows(&Batch::from_rows(&schema.variables(), values)?)?;
    let names: Vec<&str> = schema.columns().iter().map(|c| c.name.as_str()).collect();
    Ok(Table::from_rows(&names, &means)?)
}

/// The images to complete: rows of the data at regular intervals, or samples.
fn originals(report: &Report<'_>) -> Result<(&'static str, Vec<f64>), ModelError> {
    let schema = report.model.schema();
    if let Some(rows) = report.rows.as_ref().filter(|r| r.num_rows() > 0) {
        let step = (rows.num_rows() / ACROSS).max(1);
        let chosen = (0..rows.num_rows()).step_by(step).take(ACROSS);
        return Ok(("data", chosen.flat_map(|row| rows.row(row)).collect()));
    }
    let samples = report.model.sample(ACROSS, report.seed.wrapping_add(0x5eed))?;
    Ok(("more samples", schema.encode(&samples)?.to_rows()))
}

/// The smallest and the largest number that a pixel can have.
fn levels(model: &Model) -> (f64, f64) {
    let columns = model.schema().columns().iter().map(|c| c.kind.coding().range());
    let (low, high) =
        columns.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (c, d)| (a.min(c), b.max(d)));
    if high > low { (low, high) } else { (low, low + 1.0) }
}

/// All strips in one raster, without labels.
pub(super) fn raster(model: &Model, strips: &[Strip]) -> Raster {
    let [height, width, _] = model.schema().image().unwrap_or([1, 1, 1]);
    let gap = gap(width);
    let across = strips.iter().map(|s| s.images.num_rows()).max().unwrap_or(0);
    let mut raster =
        Raster::new(across * (width + gap) + gap, strips.len() * (height + gap) + gap, GAP);
    let levels = levels(model);
    for (line, strip) in strips.iter().enumerate() {
        for image in 0..strip.images.num_rows() {
            let corner = (gap + image * (width + gap), gap + line * (height + gap));
            paint(model, &strip.images, image, levels, corner, &mut raster);
        }
    }
    raster
}

fn gap(width: usize) -> usize {
    width.div_ceil(14).max(1)
}

fn paint(
    model: &Model,
    images: &Table,
    row: usize,
    (low, high): (f64, f64),
    (left, top): (usize, usize),
    raster: &mut Raster,
) {
    let [height, width, channels] = model.schema().image().unwrap_or([1, 1, 1]);
    let columns = images.columns();
    for y in 0..height {
        for x in 0..width {
            let level = |c: usize| {
                let column = &columns[(y * width + x) * channels + c.min(channels - 1)];
                let number = column.number(row).or_else(|| {
                    (!column.is_missing(row)).then(|| f64::from(u8::from(column.text(row) == "1")))
                })?;
                Some((255.0 * (number - low) / (high - low)).clamp(0.0, 255.0).round() as u8)
            };
            let color = match (level(0), level(1), level(2)) {
                (Some(r), Some(g), Some(b)) => [r, g, b],
                _ => HOLE,
            };
            raster.set(left + x, top + y, color);
        }
    }
}

/// Draws the strips with their labels.
pub(super) fn draw(model: &Model, strips: &[Strip]) -> Canvas {
    let [height, width, _] = model.schema().image().unwrap_or([1, 1, 1]);
    let raster = raster(model, strips);
    let scale = (800.0 / raster.width as f64).min(8.0);
    let (w, h) = (raster.width as f64 * scale, raster.height as f64 * scale);
    let title = "Samples of the model, and completions of half-masked images";
    let mut canvas = Canvas::new(LABEL + w + 8.0, h + 8.0, title);
    canvas.image([LABEL, 4.0, w, h], &raster.png(), title);
    let step = (height + gap(width)) as f64 * scale;
    for (n, strip) in strips.iter().enumerate() {
        let at =
            (LABEL - 8.0, 4.0 + step * (n as f64 + 0.5) + gap(width) as f64 * scale / 2.0 + 4.0);
        canvas.text("", Anchor::End, at, 12.0, strip.label);
    }
    canvas
}

/// Draws the least likely images with their log densities.
pub(super) fn draw_unlikely(
    model: &Model,
    rows: &Encoded,
    unlikely: &[(usize, f64)],
) -> Result<Canvas, ModelError> {
    let values: Vec<f64> = unlikely.iter().flat_map(|(row, _)| rows.row(*row)).collect();
    let images = model.schema().decode(&values)?;
    let [_, width, _] = model.schema().image().unwrap_or([1, 1, 1]);
    let strip = [Strip { label: "", images }];
    let raster = raster(model, &strip);
    let scale = (860.0 / raster.width as f64).min(10.0);
    let (w, h) = (raster.width as f64 * scale, raster.height as f64 * scale);
    let title = format!("The {} least likely images", unlikely.len());
    let mut canvas = Canvas::new(w + 16.0, h + 44.0, title.clone());
    canvas.image([8.0, 4.0, w, h], &raster.png(), &title);
    let step = (width + gap(width)) as f64 * scale;
    for (n, (row, log)) in unlikely.iter().enumerate() {
        let x = 8.0 + step * (n as f64 + 0.5);
        canvas.text("bold", Anchor::Middle, (x, h + 18.0), 11.0, &format!("row {}", row + 1));
        let log = format!("{log:.1}").replace('-', "−");
        canvas.text("mute", Anchor::Middle, (x, h + 33.0), 10.5, &log);
    }
    Ok(canvas)
}

/// Draws the mean of every pixel, for the model and for the data.
pub(super) fn draw_means(report: &Report<'_>) -> Result<Option<Canvas>, ModelError> {
    let model = report.model;
    let Some([height, width, channels]) = model.schema().image() else { return Ok(None) };
    let columns: Vec<usize> = (0..model.schema().columns().len()).collect();
    let distributions = model.distributions(&columns)?;
    let means: Vec<f64> = distributions.iter().map(|d| d.mean().unwrap_or(f64::NAN)).collect();
    let mut pictures = vec![("model", means)];
    if let Some(table) = report.data {
        let mean = |&c: &usize| {
            let column = table.column(&model.schema().columns()[c].name).ok()?;
            let numbers: Vec<f64> = (0..column.len()).filter_map(|r| column.number(r)).collect();
            (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
        };
        pictures.push(("data", columns.iter().map(|c| mean(c).unwrap_or(f64::NAN)).collect()));
    }
    let (low, high) = levels(model);
    let side = 200.0 / height.max(width) as f64;
    let (w, h) = (width as f64 * side, height as f64 * side);
    let mut canvas = Canvas::new((w + 24.0) * 2.0, h + 34.0, "The mean of every pixel");
    for (n, (label, means)) in pictures.iter().enumerate() {
        let mut raster = Raster::new(width, height, HOLE);
        for pixel in 0..width * height {
            let level = |c: usize| {
                let x = means[pixel * channels + c.min(channels - 1)];
                (255.0 * (x - low) / (high - low)).clamp(0.0, 255.0) as u8
            };
            raster.set(pixel % width, pixel / width, [level(0), level(1), level(2)]);
        }
        let left = 8.0 + (w + 24.0) * n as f64;
        canvas.text("", Anchor::Start, (left, 16.0), 12.0, label);
        canvas.image([left, 24.0, w, h], &raster.png(), &format!("the mean image of the {label}"));
        canvas.rect("frame", [left, 24.0, w, h]);
    }
    Ok(Some(canvas))
}

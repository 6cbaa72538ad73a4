//! Calibration of the model's conditionals: the probability integral transform of held-out cells.
//!
//! For a cell x of a column, given all other cells of its row, F(x) is uniform on [0, 1] if the model is right. If
//! values have their own probabilities, F(x) is drawn uniformly within the step of F, with a fixed seed.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::axis::{Frame, short};
use super::canvas::{Anchor, Canvas};
use crate::circuit::{Layer, Orthonormal};
use crate::data::Encoded;
use crate::draw::fit;
use crate::model::{Model, ModelError};

/// The maximum number of rows to use, and the maximum number of multiply-adds they may take.
const MAX_ROWS: usize = 1000;
const MIN_ROWS: usize = 24;
const BUDGET: f64 = 3e10;
/// The maximum number of small panels.
const SHOWN: usize = 24;
const IN_A_ROW: usize = 6;
const PANEL: (f64, f64) = (156.0, 104.0);
const BINS: usize = 20;
const SMALL_BINS: usize = 10;
const TOP: f64 = 236.0;

/// F of the observed cells, by column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Transforms {
    pub(super) columns: Vec<Vec<f64>>,
    pub(super) rows: usize,
}

/// The transforms of all observed cells in rows at regular intervals; `None` if the model is conditioned on several
/// cases.
pub(super) fn transforms(
    model: &Model,
    rows: &Encoded,
    seed: u64,
) -> Result<Option<Transforms>, ModelError> {
    let most = ((BUDGET / cost(model)) as usize).clamp(MIN_ROWS, MAX_ROWS);
    let step = rows.num_rows().div_ceil(most).max(1);
    let chosen: Vec<usize> = (0..rows.num_rows()).step_by(step).collect();
    let num_columns = model.schema().columns().len();
    let mut spreads = Vec::with_capacity(chosen.len() * num_columns);
    for &row in &chosen {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(row as u64);
        spreads.extend((0..num_columns).map(|_| rng.random::<f64>()));
    }
    let rows = rows.select(&chosen);
    let spread = |row: usize, column: usize| spreads[row * num_columns + column];
    let columns = model.integral_transforms(rows.batch(), &spread)?;
    Ok(columns.map(|columns| Transforms { columns, rows: chosen.len() }))
}

/// The approximate number of multiply-adds of both passes for a row.
fn cost(model: &Model) -> f64 {
    let of_layer = |circuit: &Orthonormal, id| match circuit.layer(id) {
        Layer::Sum { .. } => 6.0 * circuit.size(id) as f64 * circuit.width(id) as f64,
        Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } => 0.0,
    };
    let of_circuit = |c: &Orthonormal| c.layer_ids().map(|id| of_layer(c, id)).sum::<f64>();
    model.mixture().circuits().map(of_circuit).sum::<f64>().max(1.0)
}

/// The largest distance between the empirical and the uniform distribution.
pub(super) fn distance(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len().max(1) as f64;
    let apart =
        |(i, u): (usize, &f64)| (u - i as f64 / n).abs().max((u - (i + 1) as f64 / n).abs());
    sorted.iter().enumerate().map(apart).fold(0.0, f64::max)
}

pub(super) fn draw(model: &Model, transforms: &Transforms) -> Canvas {
    let mut order: Vec<usize> =
        (0..transforms.columns.len()).filter(|&c| transforms.columns[c].len() >= 2).collect();
    let far = |c: usize| distance(&transforms.columns[c]);
    let is_image = model.schema().image().is_some();
    let shown = if is_image { 0 } else { order.len().min(SHOWN) };
    if order.len() > SHOWN {
        order.sort_by(|&a, &b| far(b).total_cmp(&far(a)).then(a.cmp(&b)));
    }
    let rows = shown.div_ceil(IN_A_ROW);
    let mut canvas = Canvas::new(
        PANEL.0 * IN_A_ROW as f64 + 16.0,
        TOP + if rows > 0 { 22.0 + PANEL.1 * rows as f64 } else { 0.0 },
        format!("Calibration of conditionals on {} rows", transforms.rows),
    );
    overall(&mut canvas, transforms);
    if rows > 0 {
        let words = if order.len() > SHOWN {
            format!(
                "the {SHOWN} of {} columns that are furthest from uniform, D = the largest distance",
                order.len()
            )
        } else {
            "by column, D = the largest distance of the distribution from uniform".to_owned()
        };
        canvas.text("mute", Anchor::Start, (10.0, TOP + 8.0), 11.0, &words);
    }
    for (n, &column) in order.iter().take(shown).enumerate() {
        let (left, top) =
            (10.0 + PANEL.0 * (n % IN_A_ROW) as f64, TOP + 22.0 + PANEL.1 * (n / IN_A_ROW) as f64);
        let name = fit(&model.schema().columns()[column].name, 7.4);
        canvas.text("bold", Anchor::Start, (left, top + 12.0), 10.5, &name);
        let right = left + PANEL.0 - 22.0;
        let d = format!("D = {}", short((1000.0 * far(column)).round() / 1000.0));
        canvas.text("mute", Anchor::End, (right, top + 12.0), 9.5, &d);
        let frame = histogram_frame((left, top + 20.0), (PANEL.0 - 22.0, PANEL.1 - 34.0));
        histogram(&mut canvas, &transforms.columns[column], SMALL_BINS, frame);
    }
    canvas
}

fn histogram_frame((left, top): (f64, f64), (width, height): (f64, f64)) -> Frame {
    Frame { left, top, width, height, x: (0.0, 1.0), y: (0.0, 2.2) }
}

/// Draws all cells together: the histogram, and quantiles against uniform ones.
fn overall(canvas: &mut Canvas, transforms: &Transforms) {
    let all: Vec<f64> = transforms.columns.iter().flatten().copied().collect();
    let words = format!(
        "all {} cells of {} rows, D = {}",
        all.len(),
        transforms.rows,
        short((1000.0 * distance(&all)).round() / 1000.0)
    );
    canvas.text("bold", Anchor::Start, (10.0, 18.0), 12.0, &words);
    let frame = histogram_frame((38.0, 34.0), (420.0, 150.0));
    frame.y_axis(canvas, 4);
    histogram(canvas, &all, BINS, frame);
    frame.x_axis(canvas, 5);
    let words = "F(cell | the others): bars at 1 are ideal";
    canvas.text("mute", Anchor::Middle, (248.0, 216.0), 10.5, words);
    let mut sorted = all;
    sorted.sort_by(f64::total_cmp);
    let frame =
        Frame { left: 540.0, top: 34.0, width: 150.0, height: 150.0, x: (0.0, 1.0), y: (0.0, 1.0) };
    canvas.rect("cell", [frame.left, frame.top, frame.width, frame.height]);
    canvas.line("dashed", [frame.left, frame.bottom(), frame.right(), frame.top]);
    let points = (0..=100).filter_map(|n| {
        let share = f64::from(n) / 100.0;
        let at = (share * (sorted.len().checked_sub(1)?) as f64).round() as usize;
        Some((frame.x(share), frame.y(sorted[at])))
    });
    canvas.curve("model", points.collect::<Vec<_>>());
    canvas.text("mute", Anchor::Middle, (615.0, 202.0), 10.5, "quantiles against uniform ones:");
    canvas.text("mute", Anchor::Middle, (615.0, 216.0), 10.5, "the diagonal is ideal");
}

/// Draws bars, which have height 1 if values are uniform, with a band that contains 95 of 100 bars by chance.
fn histogram(canvas: &mut Canvas, values: &[f64], bins: usize, frame: Frame) {
    let n = values.len().max(1) as f64;
    let mut counts = vec![0.0; bins];
    for u in values {
        counts[((u * bins as f64) as usize).min(bins - 1)] += 1.0;
    }
    let step = frame.width / bins as f64;
    for (bin, count) in counts.iter().enumerate() {
        let height = count / n * bins as f64;
        let y = frame.y(height.min(frame.y.1));
        let words = format!("{count} of {n} cells, {} times even", short(height));
        let x = frame.left + step * bin as f64;
        canvas.told_rect("data", [x + 0.5, y, step - 1.0, frame.bottom() - y], &words);
    }
    let p = 1.0 / bins as f64;
    let band = 1.96 * (p * (1.0 - p) / n).sqrt() * bins as f64;
    let (top, bottom) = (frame.y((1.0 + band).min(frame.y.1)), frame.y((1.0 - band).max(0.0)));
    canvas.rect("band", [frame.left, top, frame.width, bottom - top]);
    canvas.line("model", [frame.left, frame.y(1.0), frame.right(), frame.y(1.0)]);
    canvas.line("axis", [frame.left, frame.bottom(), frame.right(), frame.bottom()]);
}

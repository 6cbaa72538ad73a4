//! Heat maps of pairs of columns, for the data and for the model.

use super::Report;
use super::axis::{Frame, short};
use super::bins::Bins;
use super::canvas::{Anchor, Canvas};
use super::raster::{Raster, heat};
use crate::draw::fit;
use crate::model::{ColumnDistribution, ModelError};

const SIDE: f64 = 172.0;
const LABELS: f64 = 62.0;
const TOP: f64 = 34.0;
const BINS: usize = 24;
const WORDS: usize = 8;

/// A pair of columns, and their mutual information in nats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) columns: [usize; 2],
    pub(super) information: f64,
}

/// Draws pairs of columns, one row each: the data and the model.
pub(super) fn draw(report: &Report<'_>, pairs: &[Pair]) -> Result<Canvas, ModelError> {
    let panels = if report.rows.is_some() { 2.0 } else { 1.0 };
    let block = LABELS + panels * (SIDE + 12.0) + 14.0;
    let in_a_row = if panels > 1.0 { 2 } else { 3 };
    let line = SIDE + 74.0;
    let rows = pairs.len().div_ceil(in_a_row).max(1);
    let width = block * pairs.len().clamp(1, in_a_row) as f64 + 8.0;
    let mut canvas = Canvas::new(
        width,
        line * rows as f64 + 6.0,
        format!("The joint distributions of {} pairs of columns", pairs.len()),
    );
    for (n, pair) in pairs.iter().enumerate() {
        let left = 4.0 + block * (n % in_a_row) as f64;
        one(report, &mut canvas, *pair, (left, line * (n / in_a_row) as f64))?;
    }
    Ok(canvas)
}

fn one(
    report: &Report<'_>,
    canvas: &mut Canvas,
    pair: Pair,
    (left, top): (f64, f64),
) -> Result<(), ModelError> {
    let model = report.model;
    let name = |c: usize| model.schema().columns()[c].name.as_str();
    let [a, b] = pair.columns;
    let bits = pair.information / std::f64::consts::LN_2;
    let words = format!("{} over {}: {} bits", fit(name(b), 13.0), fit(name(a), 13.0), short(bits));
    canvas.text("bold", Anchor::Start, (left + LABELS, top + 14.0), 12.0, &words);
    let distributions = model.distributions(&pair.columns)?;
    let bins_of = |column: usize, d: &ColumnDistribution<'_>| {
        Bins::new(model, column, d, if report.is_words(column) { WORDS } else { BINS })
    };
    let (x, y) = (bins_of(a, &distributions[0])?, bins_of(b, &distributions[1])?);
    let mut tables = Vec::new();
    if let Some(rows) = &report.rows {
        let mut table = vec![0.0; x.len() * y.len()];
        for row in 0..rows.num_rows() {
            let cells = &rows.row(row);
            if let (Some(i), Some(j)) = (x.of_row(model, cells), y.of_row(model, cells)) {
                table[j * x.len() + i] += 1.0;
            }
        }
        tables.push(("data", table));
    }
    tables.push(("model", joint(report, &x, &y)?));
    for (n, (title, table)) in tables.iter().enumerate() {
        let frame = Frame {
            left: left + LABELS + (SIDE + 12.0) * n as f64,
            top: top + TOP,
            width: SIDE,
            height: SIDE,
            x: x.range().unwrap_or((0.0, x.len() as f64)),
            y: y.range().unwrap_or((0.0, y.len() as f64)),
        };
        canvas.text("mute", Anchor::End, (frame.right(), frame.top - 5.0), 10.0, title);
        let words = format!("{}: {} and {}", title, name(a), name(b));
        let picture = raster(table, x.len(), y.len());
        canvas.image([frame.left, frame.top, SIDE, SIDE], &picture.png(), &words);
        canvas.rect("frame", [frame.left, frame.top, SIDE, SIDE]);
        below(canvas, &x, frame);
        if n == 0 {
            side_histogram(canvas, &y, frame);
        }
    }
    Ok(())
}

/// The model's probability of every pair of bins, with x varying fastest.
fn joint(report: &Report<'_>, x: &Bins, y: &Bins) -> Result<Vec<f64>, ModelError> {
    let model = report.model;
    let columns = (0..x.len()).map(|i| x.known(model, i)).collect::<Result<Vec<_>, _>>()?;
    let mut cells = Vec::with_capacity(x.len() * y.len());
    for j in 0..y.len() {
        let row = y.known(model, j)?;
        for column in &columns {
            cells.push(row.and(model.schema(), column)?);
        }
    }
    Ok(model.log_probabilities(&cells)?.into_iter().map(f64::exp).collect())
}

/// A raster whose darkness is the square root of the probability, so that rare values are visible too. y points upward.
fn raster(table: &[f64], width: usize, height: usize) -> Raster {
    let most = table.iter().copied().fold(1e-300, f64::max);
    let mut raster = Raster::new(width, height, [255; 3]);
    for (n, value) in table.iter().enumerate() {
        raster.set(n % width, height - 1 - n / width, heat((value / most).sqrt()));
    }
    raster
}

fn below(canvas: &mut Canvas, bins: &Bins, frame: Frame) {
    if bins.range().is_some() {
        return frame.x_axis(canvas, 4);
    }
    let step = frame.width / bins.len() as f64;
    let every = (26.0 / step).ceil().max(1.0) as usize;
    for bin in (0..bins.len()).step_by(every) {
        let at = (frame.left + step * (bin as f64 + 0.5), frame.bottom() + 13.0);
        let room = (step * every as f64 - 3.0) / 9.5;
        canvas.text("mute", Anchor::Middle, at, 9.5, &fit(&bins.label(bin), room));
    }
}

fn side_histogram(canvas: &mut Canvas, bins: &Bins, frame: Frame) {
    if bins.range().is_some() {
        for tick in super::axis::ticks(frame.y, 4) {
            let at = (frame.left - 5.0, frame.y(tick) + 3.0);
            canvas.text("mute", Anchor::End, at, 9.5, &short(tick));
        }
        return;
    }
    let step = frame.height / bins.len() as f64;
    let every = (13.0 / step).ceil().max(1.0) as usize;
    for bin in (0..bins.len()).step_by(every) {
        let at = (frame.left - 5.0, frame.bottom() - step * (bin as f64 + 0.5) + 3.0);
        canvas.text("mute", Anchor::End, at, 9.5, &fit(&bins.label(bin), 5.8));
    }
}

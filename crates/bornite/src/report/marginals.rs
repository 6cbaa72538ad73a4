//! Marginals of columns over histograms of the data.

use super::Report;
use super::axis::{Frame, short};
use super::bins::{BinKind, Bins};
use super::canvas::{Anchor, Canvas};
use crate::draw::{ems, fit};
use crate::model::{ColumnDistribution, ModelError};

const PANEL: (f64, f64) = (236.0, 158.0);
const IN_A_ROW: usize = 4;
const TOP: f64 = 40.0;
/// The number of bins for numbers, and for labels.
const BINS: usize = 28;
const LABELS: usize = 7;

/// Draws the marginals of these columns.
pub(super) fn draw(report: &Report<'_>, columns: &[usize]) -> Result<Canvas, ModelError> {
    let rows = columns.len().div_ceil(IN_A_ROW).max(1);
    let width = PANEL.0 * columns.len().clamp(2, IN_A_ROW) as f64 + 16.0;
    let title = format!("The marginal distributions of {} columns", columns.len());
    let mut canvas = Canvas::new(width, TOP + PANEL.1 * rows as f64, title);
    legend(&mut canvas, report.rows.is_some());
    let distributions = report.model.distributions(columns)?;
    for (n, (&column, distribution)) in columns.iter().zip(&distributions).enumerate() {
        let left = 8.0 + PANEL.0 * (n % IN_A_ROW) as f64;
        let top = TOP + PANEL.1 * (n / IN_A_ROW) as f64;
        panel(report, &mut canvas, column, distribution, (left, top))?;
    }
    Ok(canvas)
}

fn legend(canvas: &mut Canvas, has_data: bool) {
    canvas.line("model", [10.0, 16.0, 32.0, 16.0]);
    canvas.text("", Anchor::Start, (38.0, 20.0), 11.5, "model");
    if has_data {
        canvas.rect("data", [92.0, 10.0, 16.0, 12.0]);
        canvas.text("", Anchor::Start, (114.0, 20.0), 11.5, "data");
    }
}

fn panel(
    report: &Report<'_>,
    canvas: &mut Canvas,
    column: usize,
    distribution: &ColumnDistribution<'_>,
    (left, top): (f64, f64),
) -> Result<(), ModelError> {
    let model = report.model;
    let name = &model.schema().columns()[column].name;
    canvas.text("bold", Anchor::Start, (left + 4.0, top + 14.0), 12.0, &fit(name, 17.0));
    let is_words = report.is_words(column);
    let bins = Bins::new(model, column, distribution, if is_words { LABELS } else { BINS })?;
    let masses = bins.masses(distribution)?;
    let counts = report.rows.as_ref().map(|rows| {
        let mut counts = vec![0.0; bins.len()];
        let mut known = 0.0_f64;
        for row in 0..rows.num_rows() {
            let cells = &rows.row(row);
            if !cells[model.schema().variables_of(column).start].is_nan() {
                known += 1.0;
            }
            if let Some(bin) = bins.of_row(model, cells) {
                counts[bin] += 1.0;
            }
        }
        counts.iter().map(|c| c / known.max(1.0)).collect::<Vec<f64>>()
    });
    let most = masses.iter().chain(counts.iter().flatten()).copied().fold(1e-9, f64::max);
    let frame = Frame {
        left: left + 4.0,
        top: top + 24.0,
        width: PANEL.0 - 24.0,
        height: PANEL.1 - 54.0,
        x: bins.range().unwrap_or((0.0, bins.len() as f64)),
        y: (0.0, 1.08 * most),
    };
    if is_words {
        return {
            lying(canvas, &bins, &masses, counts.as_deref(), frame, most);
            Ok(())
        };
    }
    standing(canvas, &bins, &masses, counts.as_deref(), frame);
    if let BinKind::Edges { numbers, .. } = &bins.kind {
        let step = numbers[1] - numbers[0];
        let points = (0..=180).map(|n| {
            let x = frame.x.0 + (frame.x.1 - frame.x.0) * f64::from(n) / 180.0;
            let y = distribution.density(x).unwrap_or(0.0) * step;
            (frame.x(x), frame.y(y).max(frame.top - 4.0))
        });
        canvas.curve("model", points.collect::<Vec<_>>());
    }
    Ok(())
}

/// Vertical bars, for numbers.
fn standing(
    canvas: &mut Canvas,
    bins: &Bins,
    masses: &[f64],
    counts: Option<&[f64]>,
    frame: Frame,
) {
    let step = frame.width / bins.len() as f64;
    let is_smooth = matches!(bins.kind, BinKind::Edges { .. });
    for bin in 0..bins.len() {
        let x = frame.left + step * bin as f64;
        let told = told(bins, bin, masses[bin], counts);
        if let Some(counts) = counts {
            let y = frame.y(counts[bin]);
            let gap = if step > 4.0 { 0.6 } else { 0.0 };
            canvas.told_rect("data", [x + gap, y, step - 2.0 * gap, frame.bottom() - y], &told);
        }
        if !is_smooth {
            let y = frame.y(masses[bin]);
            canvas.told_rect("soft", [x, y, step, frame.bottom() - y], &told);
            canvas.line("model", [x + 0.5, y, x + step - 0.5, y]);
        }
    }
    if bins.range().is_some() {
        frame.x_axis(canvas, 4);
        return;
    }
    canvas.line("axis", [frame.left, frame.bottom(), frame.right(), frame.bottom()]);
    // As many labels as fit side by side.
    let widest = (0..bins.len()).map(|b| ems(&bins.label(b))).fold(1.0, f64::max).min(8.0);
    let every = ((widest * 9.5 + 5.0) / step).ceil().max(1.0) as usize;
    for bin in (0..bins.len()).step_by(every) {
        let at = (frame.left + step * (bin as f64 + 0.5), frame.bottom() + 13.0);
        canvas.text("mute", Anchor::Middle, at, 9.5, &fit(&bins.label(bin), 8.0));
    }
}

/// Horizontal bars, for text.
fn lying(
    canvas: &mut Canvas,
    bins: &Bins,
    masses: &[f64],
    counts: Option<&[f64]>,
    frame: Frame,
    most: f64,
) {
    let words =
        10.0 * (0..bins.len()).map(|b| ems(&bins.label(b)).min(8.5)).fold(1.0, f64::max) + 6.0;
    let step = ((frame.height + 14.0) / bins.len() as f64).min(24.0);
    let (left, width) = (frame.left + words, frame.width - words - 30.0);
    for bin in 0..bins.len() {
        let y = frame.top + step * bin as f64;
        let told = told(bins, bin, masses[bin], counts);
        let at = (left - 5.0, y + 0.5 * step + 3.5);
        canvas.text("mute", Anchor::End, at, 10.0, &fit(&bins.label(bin), 8.5));
        if let Some(counts) = counts {
            canvas.told_rect(
                "data",
                [left, y + 2.0, width * counts[bin] / most, step - 4.0],
                &told,
            );
        }
        let x = left + width * masses[bin] / most;
        canvas.told_rect("soft", [left, y + 2.0, x - left, step - 4.0], &told);
        canvas.line("model", [x, y + 2.0, x, y + step - 2.0]);
        let share = format!("{}%", short((1000.0 * masses[bin]).round() / 10.0));
        let data = counts.map_or(0.0, |c| c[bin]);
        let end = left + width * masses[bin].max(data) / most;
        canvas.text("mute", Anchor::Start, (end + 5.0, at.1), 9.5, &share);
    }
}

fn told(bins: &Bins, bin: usize, mass: f64, counts: Option<&[f64]>) -> String {
    let percent = |p: f64| format!("{:.2}%", 100.0 * p);
    let data = counts.map_or(String::new(), |c| format!(", data {}", percent(c[bin])));
    format!("{}: model {}{data}", bins.label(bin), percent(mass))
}

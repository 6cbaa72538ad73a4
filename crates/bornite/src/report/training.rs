//! The training history: log-likelihoods by epoch, and the deviation of the weights from semi-unitary.

use super::axis::{Frame, short, ticks};
use super::canvas::{Anchor, Canvas};
use crate::model::Info;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 320.0;

pub(super) fn draw(info: &Info) -> Canvas {
    let mut canvas = Canvas::new(
        WIDTH,
        HEIGHT,
        format!(
            "Training: {} epochs, validation log-likelihood {} nats per row",
            info.history.len(),
            short(info.valid)
        ),
    );
    let history = &info.history;
    if history.is_empty() {
        let words = "This model has no record of a fit.";
        canvas.text("mute", Anchor::Middle, (WIDTH / 2.0, HEIGHT / 2.0), 13.0, words);
        return canvas;
    }
    let last = history.len() as f64;
    let frame = Frame {
        left: 62.0,
        top: 44.0,
        width: WIDTH - 62.0 - 66.0,
        height: HEIGHT - 44.0 - 46.0,
        x: (if last > 1.0 { 1.0 } else { 0.5 }, last.max(1.5)),
        y: range(info),
    };
    frame.y_axis(&mut canvas, 5);
    frame.x_axis(&mut canvas, 8);
    canvas.text(
        "mute",
        Anchor::Middle,
        (frame.left + frame.width / 2.0, HEIGHT - 8.0),
        11.0,
        "epoch",
    );
    canvas.text("mute", Anchor::Start, (8.0, 34.0), 10.0, "nats a row");
    residuals(&mut canvas, info, frame);
    if info.baseline.is_finite() && (frame.y.0..=frame.y.1).contains(&info.baseline) {
        let y = frame.y(info.baseline);
        canvas.line("dashed", [frame.left, y, frame.right(), y]);
        let at = (frame.right() - 4.0, y - 4.0);
        canvas.text("mute", Anchor::End, at, 10.0, "independent columns");
    }
    let clip = |y: f64| if y < frame.y.0 { f64::NAN } else { frame.y(y) };
    let points = |of: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
        (0..history.len()).map(|n| (frame.x(n as f64 + 1.0), clip(of(n)))).collect()
    };
    canvas.curve("dataline", points(&|n| history[n].train));
    canvas.curve("model", points(&|n| history[n].valid));
    let best = (0..history.len()).max_by(|&a, &b| history[a].valid.total_cmp(&history[b].valid));
    if let Some(best) = best.filter(|&b| clip(history[b].valid).is_finite()) {
        let (x, y) = (frame.x(best as f64 + 1.0), frame.y(history[best].valid));
        let words = format!("best epoch {}: {:.4} nats", best + 1, history[best].valid);
        canvas.dot("modelfill", x, y, 3.6, &words);
    }
    legend(&mut canvas);
    canvas
}

/// Starts well below what most epochs reached, so that the first steps do not compress the rest.
fn range(info: &Info) -> (f64, f64) {
    let late = info.history.iter().skip(info.history.len() / 12);
    let values: Vec<f64> =
        late.flat_map(|e| [e.train, e.valid]).filter(|x| x.is_finite()).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !low.is_finite() {
        return (-1.0, 0.0);
    }
    // Include the baseline, unless it is far away.
    let base = info.baseline;
    let with_base =
        if base.is_finite() && base > low - 2.0 * (high - low) { low.min(base) } else { low };
    let room = (0.06 * (high - with_base)).max(1e-6);
    (with_base - room, high + room)
}

/// Draws residuals on a logarithmic scale on the right.
fn residuals(canvas: &mut Canvas, info: &Info, frame: Frame) {
    let logs: Vec<f64> = info.history.iter().map(|e| e.residual.max(1e-18).log10()).collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor() - 1.0;
    let high = (logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil()).max(low + 4.0);
    // Use the lower third: the residual is small, and should look so.
    let axis = Frame { y: (low, high + 2.0 * (high - low)), ..frame };
    for tick in ticks((low, high), 2) {
        let at = (axis.right() + 6.0, axis.y(tick) + 3.0);
        canvas.text("mute", Anchor::Start, at, 9.5, &format!("1e{tick}").replace('-', "−"));
    }
    let points = logs.iter().enumerate().map(|(n, &y)| (axis.x(n as f64 + 1.0), axis.y(y)));
    canvas.curve("greenline", points);
}

fn legend(canvas: &mut Canvas) {
    let entries = [
        ("dataline", "training rows"),
        ("model", "validation rows"),
        ("greenline", "residual of orthonormality, right axis"),
    ];
    let mut x = 62.0;
    for (class, words) in entries {
        canvas.line(class, [x, 16.0, x + 22.0, 16.0]);
        canvas.text("", Anchor::Start, (x + 28.0, 20.0), 11.5, words);
        x += 52.0 + 5.9 * words.len() as f64;
    }
}

//! Scales, ticks and short numbers.

use super::canvas::{Anchor, Canvas};

/// A rectangle of a plot, and the numbers along its sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
}

impl Frame {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.width * share(value, self.x)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - share(value, self.y))
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Draws the x axis with about `count` numbers.
    pub(super) fn x_axis(&self, canvas: &mut Canvas, count: usize) {
        canvas.line("axis", [self.left, self.bottom(), self.right(), self.bottom()]);
        for tick in ticks(self.x, count) {
            let x = self.x(tick);
            canvas.line("axis", [x, self.bottom(), x, self.bottom() + 3.0]);
            let at = (x, self.bottom() + 13.0);
            canvas.text("mute", Anchor::Middle, at, 9.5, &short(tick));
        }
    }

    /// Draws horizontal grid lines with numbers on the left.
    pub(super) fn y_axis(&self, canvas: &mut Canvas, count: usize) {
        for tick in ticks(self.y, count) {
            let y = self.y(tick);
            canvas.line("grid", [self.left, y, self.right(), y]);
            canvas.text("mute", Anchor::End, (self.left - 6.0, y + 3.0), 9.5, &short(tick));
        }
    }
}

/// The relative position of a value between two ends.
fn share(value: f64, (low, high): (f64, f64)) -> f64 {
    if high > low { (value - low) / (high - low) } else { 0.5 }
}

/// Round numbers within a range, at most `count` + 1.
pub(super) fn ticks((low, high): (f64, f64), count: usize) -> Vec<f64> {
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return vec![low];
    }
    let rough = span / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil();
    (0..=count)
        .map(|n| (first + n as f64) * step)
        .take_while(|t| *t <= high + 1e-9 * span)
        .map(|t| if t.abs() < 1e-9 * step { 0.0 } else { t })
        .collect()
}

/// Formats a number with few characters.
pub(super) fn short(x: f64) -> String {
    let magnitude = x.abs();
    let trim = |text: String| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    };
    let text = match magnitude {
        _ if x == 0.0 => "0".to_owned(),
        m if !m.is_finite() => return if x > 0.0 { "∞" } else { "−∞" }.to_owned(),
        m if !(1e-4..1e9).contains(&m) => {
            let text = format!("{x:.1e}");
            text.replace(".0e", "e")
        }
        m if m >= 1e6 => trim(format!("{:.2}", x / 1e6)) + "M",
        m if m >= 1e4 => trim(format!("{:.1}", x / 1e3)) + "k",
        m if m >= 100.0 => trim(format!("{x:.0}")),
        m if m >= 1.0 => trim(format!("{x:.2}")),
        _ => trim(format!("{x:.4}")),
    };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks((0.0, 10.0), 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks((3.0, 3.0), 5), [3.0]);
        for (low, high) in [(-7.3, 12.9), (1e-7, 3e-7), (-1e9, 1e12), (0.0, 0.001)] {
            let found = ticks((low, high), 4);
            assert!((2..=5).contains(&found.len()), "{found:?}");
            assert!(found.iter().all(|t| (low..=high).contains(t)), "{found:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        for (x, text) in [
            (0.0, "0"),
            (-12.5, "−12.5"),
            (1234.0, "1234"),
            (25_000.0, "25k"),
            (3.2e6, "3.2M"),
            (1e12, "1e12"),
            (0.125, "0.125"),
            (2e-6, "2e−6"),
        ] {
            assert_eq!(short(x), text);
        }
    }
}

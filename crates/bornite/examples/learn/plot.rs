//! Lines over epochs, as SVG.

use std::fmt::Write;

#[derive(Debug)]
pub(super) struct Plot {
    pub(super) title: String,
    pub(super) across: String,
    pub(super) lines: Vec<Line>,
}

/// One value per epoch.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) values: Vec<f64>,
}

const COLORS: [&str; 4] = ["#1f6feb", "#d1242f", "#1a7f37", "#9a6700"];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 44.0;
const RIGHT: f64 = 130.0;

impl Plot {
    pub(super) fn svg(&self) -> String {
        let all = || self.lines.iter().flat_map(|l| &l.values).copied().filter(|y| y.is_finite());
        let most = self.lines.iter().map(|l| l.values.len()).max().unwrap_or(1).max(2);
        let (low, high) = range(all());
        let x = |n: usize| LEFT + n as f64 / (most - 1) as f64 * (WIDTH - LEFT - RIGHT);
        let y = |v: f64| HEIGHT - BOTTOM - (v - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        let mut text = |x: f64, y: f64, anchor: &str, words: &str| {
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
            );
        };
        text(LEFT, 22.0, "start", &self.title);
        text((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0, "middle", &self.across);
        for n in 0..=4 {
            let v = low + (high - low) * f64::from(n) / 4.0;
            text(LEFT - 6.0, y(v) + 4.0, "end", &format!("{v:.2}"));
        }
        for n in [0, (most - 1) / 2, most - 1] {
            text(x(n), HEIGHT - BOTTOM + 18.0, "middle", &format!("{}", n + 1));
        }
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {TOP}V{:.1}H{:.1}\" fill=\"none\" stroke=\"#888\"/>",
            HEIGHT - BOTTOM,
            WIDTH - RIGHT
        );
        for (at, line, color) in self.labels(|v| y(v.clamp(low, high))) {
            let x = x(line.values.len().max(1) - 1) + 6.0;
            let name = &line.name;
            let _ =
                writeln!(out, "<text x=\"{x:.1}\" y=\"{at:.1}\" fill=\"{color}\">{name}</text>");
        }
        for (line, color) in self.colored() {
            let points: Vec<String> = (line.values.iter().enumerate())
                .map(|(n, &v)| format!("{:.1},{:.1}", x(n), y(v.clamp(low, high))))
                .collect();
            let _ = writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.6\"/>",
                points.join(" ")
            );
        }
        out.push_str("</svg>\n");
        out
    }

    fn colored(&self) -> impl Iterator<Item = (&Line, &'static str)> {
        self.lines.iter().zip(COLORS.iter().copied().cycle())
    }

    /// The names next to the ends of their lines, from top to bottom, moved apart if they overlap.
    fn labels(&self, y: impl Fn(f64) -> f64) -> Vec<(f64, &Line, &'static str)> {
        const APART: f64 = 14.0;
        let end = |line: &Line| y(line.values.last().copied().unwrap_or_default()) + 4.0;
        let mut labels: Vec<_> =
            self.colored().map(|(line, color)| (end(line), line, color)).collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lowest = HEIGHT - BOTTOM - APART * labels.len().saturating_sub(1) as f64;
        let mut free = f64::NEG_INFINITY;
        for (n, label) in labels.iter_mut().enumerate() {
            label.0 = label.0.min(lowest + APART * n as f64).max(free);
            free = label.0 + APART;
        }
        labels
    }
}

/// The range without the lowest tenth of the values, because the first epochs are far below the rest.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let (Some(&low), Some(&high)) = (sorted.get(sorted.len() / 10), sorted.last()) else {
        return (0.0, 1.0);
    };
    if high - low > 1e-12 { (low, high) } else { (low - 1.0, high + 1.0) }
}

//! The least likely rows, and their most surprising cells.

use super::axis::short;
use super::canvas::{Anchor, Canvas};
use crate::draw::fit;
use crate::model::Anomaly;

const LINE: f64 = 46.0;
const TOP: f64 = 34.0;
const CELLS: usize = 5;
const CHIP: f64 = 154.0;

pub(super) fn draw(anomalies: &[Anomaly]) -> Canvas {
    let width = 150.0 + CHIP * CELLS as f64;
    let title = format!("The {} least likely rows", anomalies.len());
    let mut canvas = Canvas::new(width, TOP + LINE * anomalies.len() as f64 + 8.0, title);
    canvas.text("mute", Anchor::Start, (12.0, 18.0), 11.0, "row");
    canvas.text("mute", Anchor::End, (132.0, 18.0), 11.0, "log density");
    let words = "most surprising cells first; the bar shows how much less likely each is than under a uniform distribution, in nats";
    canvas.text("mute", Anchor::Start, (150.0, 18.0), 11.0, words);
    let most = anomalies
        .iter()
        .flat_map(|a| a.contributions.iter().take(CELLS))
        .map(|c| surprise(c.log_standardized))
        .filter(|s| s.is_finite())
        .fold(1.0, f64::max);
    for (n, anomaly) in anomalies.iter().enumerate() {
        let top = TOP + LINE * n as f64;
        canvas.line("grid", [8.0, top - 4.0, width - 8.0, top - 4.0]);
        let row = (anomaly.row + 1).to_string();
        canvas.text("bold", Anchor::Start, (12.0, top + 20.0), 12.5, &row);
        let log = if anomaly.log_density.is_finite() {
            format!("{:.2}", anomaly.log_density).replace('-', "−")
        } else {
            "−∞".to_owned()
        };
        canvas.text("", Anchor::End, (132.0, top + 20.0), 12.0, &log);
        for (m, c) in anomaly.contributions.iter().take(CELLS).enumerate() {
            let left = 150.0 + CHIP * m as f64;
            let value = surprise(c.log_standardized);
            canvas.text("bold", Anchor::Start, (left, top + 12.0), 11.0, &fit(&c.column, 12.0));
            canvas.text("mute", Anchor::Start, (left, top + 25.0), 11.0, &fit(&c.cell, 13.0));
            let words = format!(
                "log p({} = {} | the others) = {}",
                c.column,
                c.cell,
                short(c.log_conditional)
            );
            canvas.rect("cell", [left, top + 30.0, CHIP - 16.0, 5.0]);
            let share = (value / most).clamp(0.0, 1.0);
            canvas.told_rect("modelfill", [left, top + 30.0, (CHIP - 16.0) * share, 5.0], &words);
        }
    }
    canvas
}

fn surprise(log_standardized: f64) -> f64 {
    (-log_standardized).max(0.0)
}

//! The legend above a drawing: the number of layers in each set and of each kind.

use std::fmt::Write;

use super::glyph::Glyph;
use super::svg::{Drawing, class, px};
use super::text;
use crate::circuit::Layer;
use crate::query::Dependence;

const FONT: f64 = 12.0;
const LINE: f64 = 24.0;
const SWATCH: f64 = 15.0;

/// One entry: a swatch and its text.
struct Entry {
    class: &'static str,
    glyph: Option<Glyph>,
    /// The subscript of φ.
    subscript: &'static str,
    words: String,
}

impl Entry {
    fn width(&self) -> f64 {
        let symbol =
            if self.subscript.is_empty() { 0.0 } else { 1.0 + 0.5 * self.subscript.len() as f64 };
        SWATCH + 7.0 + FONT * (symbol + text::ems(&self.words)) + 18.0
    }
}

/// The legend and its height, for a drawing of this width.
pub(super) fn legend(drawing: &Drawing<'_>, width: f64, out: &mut String) -> f64 {
    let margin = drawing.layout.scale.margin;
    let mut y = margin + SWATCH / 2.0;
    for entries in [sets(drawing), kinds(drawing)] {
        if entries.is_empty() {
            continue;
        }
        let mut x = margin;
        for entry in &entries {
            if x > margin && x + entry.width() > width - margin + 18.0 {
                x = margin;
                y += LINE;
            }
            write_entry(entry, x, y, out);
            x += entry.width();
        }
        y += LINE;
    }
    y
}

fn write_entry(entry: &Entry, x: f64, y: f64, out: &mut String) {
    let _ = write!(
        out,
        r#"<rect class="{}" x="{}" y="{}" width="{SWATCH}" height="{SWATCH}" rx="3"/>"#,
        entry.class,
        px(x),
        px(y - SWATCH / 2.0)
    );
    if let Some(glyph) = entry.glyph {
        let path = glyph.path(x + SWATCH / 2.0, y, SWATCH);
        let _ = write!(out, r#"<path class="g" stroke-width="1.3" d="{path}"/>"#);
    }
    let symbol = if entry.subscript.is_empty() {
        String::new()
    } else {
        let subscript = entry.subscript;
        format!(
            r#"<tspan class="phi">φ</tspan><tspan class="phi" font-size="9" dy="3">{subscript}</tspan><tspan dy="-3"> </tspan>"#
        )
    };
    let _ = writeln!(
        out,
        r#"<text class="l" font-size="{FONT}" x="{}" y="{}">{symbol}{}</text>"#,
        px(x + SWATCH + 7.0),
        px(y + 4.0),
        entry.words
    );
}

fn sets(drawing: &Drawing<'_>) -> Vec<Entry> {
    let Some(dependences) = &drawing.dependences else { return Vec::new() };
    [
        (Dependence::Kept, "Y", "kept"),
        (Dependence::Marginalized, "Z", "marginalized"),
        (Dependence::Mixed, "Y,Z", "mixed"),
    ]
    .map(|(dependence, subscript, word)| {
        let count = dependences.iter().filter(|&&d| d == dependence).count();
        let words = format!("{word}: {}", layers(count));
        Entry { class: class(Some(dependence)), glyph: None, subscript, words }
    })
    .into()
}

fn kinds(drawing: &Drawing<'_>) -> Vec<Entry> {
    let circuit = drawing.circuit;
    let count = |kind: &str| circuit.layers().iter().filter(|l| l.kind() == kind).count();
    let input = circuit.layers().iter().find_map(|layer| match layer {
        Layer::Input { variable, .. } => {
            Some(Glyph::of(layer, Some(&circuit.variable(*variable).domain)))
        }
        Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => None,
    });
    [
        (input, "input", "input"),
        (Some(Glyph::Hadamard), "hadamard", "Hadamard"),
        (Some(Glyph::Kronecker), "kronecker", "Kronecker"),
        (Some(Glyph::Sum), "sum", "sum"),
    ]
    .into_iter()
    .filter(|(_, kind, _)| count(kind) > 0)
    .map(|(glyph, kind, word)| Entry {
        class: class(None),
        glyph,
        subscript: "",
        words: format!("{word}: {}", layers(count(kind))),
    })
    .collect()
}

fn layers(count: usize) -> String {
    format!("{count} layer{}", if count == 1 { "" } else { "s" })
}

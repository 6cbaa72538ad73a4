//! Writing of a layout as SVG.

use std::fmt::Write;

use super::glyph::Glyph;
use super::layout::{Detail, LabelSide, Layout, Place};
use super::text::{InputLabel, escape, fit};
use super::{groups, legend};
use crate::circuit::{Circuit, Layer, LayerId, VariableId};
use crate::query::Dependence;

/// Everything that a drawing shows.
pub(super) struct Drawing<'a> {
    pub(super) circuit: &'a Circuit,
    pub(super) layout: Layout,
    /// The dependence of each layer; `None` without a query.
    pub(super) dependences: Option<Vec<Dependence>>,
    /// The label of each variable.
    pub(super) labels: Vec<InputLabel>,
}

const STYLE: &str = "\
.bc text{font-family:Inter,'Helvetica Neue',Helvetica,Arial,sans-serif;fill:#22262e}.bc .bg{fill:#fff}\
.bc .k{fill:#d9694f}.bc .z{fill:#4a7db8}.bc .m{fill:#5f9457}.bc .n{fill:#77808f}\
.bc .g{fill:none;stroke:#fff;stroke-linecap:round;stroke-linejoin:round}\
.bc .r{opacity:.26;stroke-width:.8}.bc .e{fill:none;opacity:.55}\
.bc .e.k,.bc .d.k,.bc .o.k,.bc .r.k{stroke:#d9694f}.bc .e.z,.bc .d.z,.bc .o.z,.bc .r.z{stroke:#4a7db8}\
.bc .e.m,.bc .d.m,.bc .o.m,.bc .r.m{stroke:#5f9457}.bc .e.n,.bc .d.n,.bc .r.n{stroke:#77808f}\
.bc .d,.bc .e{fill:none;stroke-linecap:round}\
.bc .o{fill:none;stroke-width:2;stroke-dasharray:.1 5;stroke-linecap:round}\
.bc text.w{fill:#69707d}.bc .phi{font-family:Georgia,'Times New Roman',serif;font-style:italic}\
.bc .b:hover{opacity:.8}\
@media (prefers-color-scheme:dark){.bc text{fill:#e7e9ee}.bc text.w{fill:#9aa4b3}.bc .bg{fill:#15181d}}";

/// The minimum width of a drawing, so that the legend fits.
const MIN_WIDTH: f64 = 520.0;

pub(super) fn render(drawing: &Drawing<'_>) -> String {
    let layout = &drawing.layout;
    let width = layout.width.max(MIN_WIDTH);
    let mut head = String::new();
    let top = legend::legend(drawing, width, &mut head) + 14.0;
    let height = top + layout.height + layout.scale.margin;
    let mut out = String::new();
    let (w, h) = (px(width), px(height));
    let _ = write!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" class="bc" viewBox="0 0 {w} {h}" role="img">"#
    );
    let _ =
        write!(out, "\n<title>{}</title>\n<style>{STYLE}</style>\n", description(drawing.circuit));
    let _ = writeln!(out, r#"<rect class="bg" width="{w}" height="{h}"/>"#);
    out.push_str(&head);
    let left = (width - layout.width) / 2.0;
    let _ = writeln!(out, r#"<g transform="translate({} {})">"#, px(left), px(top));
    if layout.scale.detail == Detail::Dots {
        write_dots(drawing, &mut out);
    } else {
        write_outlines(drawing, &mut out);
        for id in drawing.circuit.layer_ids() {
            write_edge(drawing, id, &mut out);
        }
        for id in drawing.circuit.layer_ids() {
            write_box(drawing, id, &mut out);
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// A length with at most one decimal.
pub(crate) fn px(x: f64) -> String {
    let text = format!("{x:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// The CSS class of a dependence, which determines its color.
pub(super) fn class(dependence: Option<Dependence>) -> &'static str {
    match dependence {
        Some(Dependence::Kept) => "k",
        Some(Dependence::Marginalized) => "z",
        Some(Dependence::Mixed) => "m",
        None => "n",
    }
}

impl Drawing<'_> {
    fn class_of(&self, id: LayerId) -> &'static str {
        class(self.dependences.as_ref().map(|d| d[id.index()]))
    }
}

fn description(circuit: &Circuit) -> String {
    let (d, layers) = (circuit.num_variables(), circuit.num_layers());
    format!("A circuit of {layers} layers over {d} variables")
}

/// Writes the edge from a layer to its consumer: a ribbon from its right side to its share of the consumer's left side.
fn write_edge(drawing: &Drawing<'_>, id: LayerId, out: &mut String) {
    let Some(consumer) = drawing.circuit.consumer(id) else { return };
    let (from, to) = (drawing.layout.place(id), drawing.layout.place(consumer));
    let class = drawing.class_of(id);
    let inputs = drawing.circuit.layer(consumer).inputs();
    let position = inputs.iter().position(|&i| i == id).unwrap_or(0) as f64;
    if from.line != to.line {
        let path = around(from, to, 4.0 * position, &drawing.layout);
        let _ = writeln!(
            out,
            r#"<path class="e {class}" data-l="{id}" stroke-width="2.5" d="{path}"/>"#
        );
        return;
    }
    let share = to.height / inputs.len() as f64;
    let (top, bottom) = (to.top() + position * share, to.top() + (position + 1.0) * share);
    let (x0, x1) = (from.right(), to.left());
    let bend = ((x1 - x0) / 2.0).min(60.0);
    // A long edge stays in its input's row and bends next to the consumer.
    let (c0, c1) = (px(x1 - bend), px(x1 - bend));
    let (start, turn, end) = (px(x0), px(x1 - 2.0 * bend), px(x1));
    let _ = writeln!(
        out,
        r#"<path class="r {class}" data-l="{id}" d="M{start} {t0}H{turn}C{c0} {t0} {c1} {t1} {end} {t1}V{b1}C{c1} {b1} {c0} {b0} {turn} {b0}H{start}Z"/>"#,
        t0 = px(from.top()),
        b0 = px(from.bottom()),
        t1 = px(top),
        b1 = px(bottom),
    );
}

/// The path from the end of one line of a folded drawing through the gutter to the start of the next. `aside` keeps two
/// such edges apart.
fn around(from: &Place, to: &Place, aside: f64, layout: &Layout) -> String {
    let gutter = to.line as f64 * layout.line_height - 12.0 - aside;
    let r = 7.0_f64.min(layout.scale.row / 2.0);
    let margin = layout.scale.margin / 2.0 + aside;
    let (right, left) = (layout.width - margin, margin);
    format!(
        "M{} {}H{}q{r} 0 {r} {r}V{}q0 {r} -{r} {r}H{}q-{r} 0 -{r} {r}V{}q0 {r} {r} {r}H{}",
        px(from.right()),
        px(from.y),
        px(right - r),
        px(gutter - r),
        px(left + r),
        px(to.y + aside - r),
        px(to.left()),
    )
}

fn write_box(drawing: &Drawing<'_>, id: LayerId, out: &mut String) {
    let (circuit, layout) = (drawing.circuit, &drawing.layout);
    let place = layout.place(id);
    let layer = circuit.layer(id);
    let domain = match layer {
        Layer::Input { variable, .. } => Some(&circuit.variable(*variable).domain),
        Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => None,
    };
    let side = place.width.min(place.height);
    let _ = write!(
        out,
        r#"<g class="b" data-l="{id}"><title>{}</title><rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="{}"/><path class="g" stroke-width="{}" d="{}"/></g>"#,
        tooltip(drawing, id),
        drawing.class_of(id),
        px(place.left()),
        px(place.top()),
        px(place.width),
        px(place.height),
        px(0.14 * side),
        px((0.07 * side).max(1.1)),
        Glyph::of(layer, domain).path(place.x, place.y, side),
    );
    out.push('\n');
    if let Layer::Input { variable, .. } = layer {
        write_input_label(drawing, place, *variable, out);
    }
    if layout.scale.detail == Detail::Full {
        write_width(circuit, layout, id, out);
    }
}

fn write_input_label(drawing: &Drawing<'_>, place: &Place, variable: VariableId, out: &mut String) {
    let (layout, v) = (&drawing.layout, variable.index());
    let label = &drawing.labels[v];
    let font = layout.scale.font;
    // The width of a text is only estimated. A text that was measured to fit must not be truncated.
    let ems = layout.label_ems + 0.01;
    match layout.label_side {
        LabelSide::Left => {
            let _ = writeln!(
                out,
                r#"<text data-v="{v}" font-size="{font}" text-anchor="end" x="{}" y="{}">{}</text>"#,
                px(place.left() - layout.scale.label_gap() + 2.0),
                px(place.y + 0.35 * font),
                escape(&fit(&label.line(), ems)),
            );
        }
        LabelSide::Below => {
            for (n, words) in [&label.name, &label.evidence].into_iter().enumerate() {
                let _ = writeln!(
                    out,
                    r#"<text data-v="{v}"{} font-size="{font}" text-anchor="middle" x="{}" y="{}">{}</text>"#,
                    if n == 0 { "" } else { r#" class="w""# },
                    px(place.x),
                    px(place.bottom() + (n as f64 + 1.05) * 1.1 * font),
                    escape(&fit(words, ems)),
                );
            }
        }
    }
}

/// Writes the width below a box, and the shape of a sum's weight above it.
fn write_width(circuit: &Circuit, layout: &Layout, id: LayerId, out: &mut String) {
    let place = layout.place(id);
    let _ = writeln!(
        out,
        r#"<text class="w" font-size="9.5" text-anchor="middle" x="{}" y="{}">K = {}</text>"#,
        px(place.x),
        px(place.bottom() + 11.0),
        circuit.width(id),
    );
    if let Layer::Sum { input, weight } = circuit.layer(id) {
        let w = circuit.weight(*weight);
        let before = layout.place(*input);
        let _ = writeln!(
            out,
            r#"<text class="w" font-size="9.5" text-anchor="middle" x="{}" y="{}"><tspan class="phi" font-size="11">W</tspan> {}×{}</text>"#,
            px(f64::midpoint(before.right(), place.left())),
            px(before.top() - 5.0),
            w.rows(),
            w.cols(),
        );
    }
}

fn tooltip(drawing: &Drawing<'_>, id: LayerId) -> String {
    let circuit = drawing.circuit;
    let layer = circuit.layer(id);
    let mut words = format!(
        "layer {id}: {}, width {}, size {}",
        layer.kind(),
        circuit.width(id),
        circuit.size(id)
    );
    if let Layer::Input { variable, .. } = layer {
        let _ = write!(words, "\n{}", escape(&drawing.labels[variable.index()].line()));
    } else {
        let scope = circuit.scope(id);
        let names: Vec<&str> =
            scope.iter().take(8).map(|&v| circuit.variable(v).name.as_str()).collect();
        let rest = if scope.len() > 8 { ", …" } else { "" };
        let names = escape(&names.join(", "));
        let _ = write!(words, "\nof {} variables: {names}{rest}", scope.len());
    }
    if let Some(dependences) = &drawing.dependences {
        words.push_str(match dependences[id.index()] {
            Dependence::Kept => "\nkept: in φ_Y",
            Dependence::Marginalized => "\nmarginalized: in φ_Z",
            Dependence::Mixed => "\nmixed: in φ_YZ",
        });
    }
    words
}

fn write_outlines(drawing: &Drawing<'_>, out: &mut String) {
    let Some(dependences) = &drawing.dependences else { return };
    let layout = &drawing.layout;
    let is_full = layout.scale.detail == Detail::Full;
    let pad = if is_full { 15.0 } else { 5.0 };
    for group in groups::outlines(drawing.circuit, layout, dependences) {
        let class = class(Some(group.dependence));
        let (left, top) = (group.left - pad, group.top - pad);
        let (width, height) =
            (group.right - group.left + 2.0 * pad, group.bottom - group.top + 2.0 * pad);
        let _ = writeln!(
            out,
            r#"<rect class="o {class}" x="{}" y="{}" width="{}" height="{}" rx="{}"/>"#,
            px(left),
            px(top),
            px(width),
            px(height),
            px(pad.min(9.0)),
        );
        if is_full {
            let subscript = match group.dependence {
                Dependence::Kept => "Y",
                Dependence::Marginalized => "Z",
                Dependence::Mixed => "Y,Z",
            };
            // Inside if there is space, otherwise above.
            let is_high = height > 1.5 * layout.scale.row;
            let _ = writeln!(
                out,
                r#"<text class="phi {class}" font-size="19" text-anchor="end" x="{}" y="{}">φ<tspan font-size="12" dy="4">{subscript}</tspan></text>"#,
                px(left + width - 6.0),
                px(if is_high { top + 20.0 } else { top - 10.0 }),
            );
        }
    }
}

/// Writes one path of edges and one of dots for each dependence.
fn write_dots(drawing: &Drawing<'_>, out: &mut String) {
    let layout = &drawing.layout;
    let all =
        [Some(Dependence::Marginalized), Some(Dependence::Mixed), Some(Dependence::Kept), None];
    for dependence in all {
        let class = class(dependence);
        let (mut edges, mut dots) = (String::new(), String::new());
        for id in drawing.circuit.layer_ids().filter(|&id| drawing.class_of(id) == class) {
            let place = layout.place(id);
            let _ = write!(dots, "M{:.2} {:.2}h.01", place.x, place.y);
            if let Some(consumer) = drawing.circuit.consumer(id) {
                let to = layout.place(consumer);
                if to.line == place.line {
                    let bend = (to.x - place.x) / 2.0;
                    let (x0, y0, x1, y1) = (place.x, place.y, to.x, to.y);
                    let _ = write!(
                        edges,
                        "M{x0:.2} {y0:.2}H{:.2}C{:.2} {y0:.2} {:.2} {y1:.2} {x1:.2} {y1:.2}",
                        x1 - bend.min(60.0) * 2.0,
                        x1 - bend.min(60.0),
                        x1 - bend.min(60.0),
                    );
                } else {
                    edges.push_str(&around(place, to, 0.0, layout));
                }
            }
        }
        if dots.is_empty() {
            continue;
        }
        let side = layout.scale.side;
        let _ = writeln!(
            out,
            r#"<path class="e {class}" stroke-width="{:.2}" d="{edges}"/>"#,
            side / 3.0
        );
        let _ = writeln!(out, r#"<path class="d {class}" stroke-width="{side:.2}" d="{dots}"/>"#);
    }
}

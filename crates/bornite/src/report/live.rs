//! The interactive circuit of a page: click on variables to see which layers a query keeps, and what it costs.

use std::fmt::Write;

use serde::Serialize;

use crate::algebra::Table;
use crate::circuit::{Circuit, Layer};
use crate::draw::{CellTree, circuit_drawing};

/// Circuits with more variables are drawn by region.
const MAX_BOXES: usize = 128;
const SCRIPT: &str = include_str!("live.js");

/// The data for the script.
#[derive(Serialize)]
struct Data<'a> {
    names: Vec<&'a str>,
    /// The variables in an order in which every scope is an interval.
    order: Vec<usize>,
    layers: Vec<LayerData>,
    /// The top layer and the depth of every region, if the circuit is drawn by region.
    regions: Vec<(usize, usize)>,
    image: Option<[usize; 3]>,
    /// The table of message kinds and their costs.
    rules: Table,
}

/// Kind, width, inputs, size, size of the square, first and last position of the scope, and whether the sum above
/// absorbs it.
#[derive(Serialize)]
struct LayerData(u8, usize, Vec<usize>, String, String, usize, usize, bool);

fn layers(circuit: &Circuit) -> Vec<LayerData> {
    let one = |id| {
        let layer = circuit.layer(id);
        let kind = match layer {
            Layer::Input { .. } => 0,
            Layer::Hadamard { .. } => 1,
            Layer::Kronecker { .. } => 2,
            Layer::Sum { .. } => 3,
        };
        let inputs = layer.inputs().iter().map(|i| i.index()).collect();
        let (start, end) = circuit.span(id);
        // Written as text, since they may exceed the precision of the script's numbers.
        let (size, squared) = (circuit.size(id).to_string(), circuit.squared_size(id).to_string());
        LayerData(kind, circuit.width(id), inputs, size, squared, start, end, circuit.is_fused(id))
    };
    circuit.layer_ids().map(one).collect()
}

/// The section of a page, including the script.
pub(super) fn section(circuit: &Circuit, image: Option<[usize; 3]>) -> String {
    let is_small = circuit.num_variables() <= MAX_BOXES && image.is_none();
    let cells = CellTree::new(circuit);
    let regions = if is_small {
        Vec::new()
    } else {
        let depths = cells.depths();
        let top = |c: usize| cells.list()[c].layers.last().map_or(0, |id| id.index());
        (0..cells.list().len()).map(|c| (top(c), depths[c])).collect()
    };
    let data = Data {
        names: circuit.variables().iter().map(|v| v.name.as_str()).collect(),
        order: circuit.variable_order().iter().map(|v| v.index()).collect(),
        layers: layers(circuit),
        regions,
        image,
        rules: Table::new(),
    };
    // Serialization cannot fail, since every field is a number or a list.
    let json = serde_json::to_string(&data).unwrap_or_default().replace('<', "\\u003c");
    let mut out = String::new();
    out.push_str(&presets(image));
    out.push_str(COUNTERS);
    out.push_str("<div id=\"bn-stage\">\n");
    if image.is_some() {
        let [height, width, _] = image.unwrap_or([1, 1, 1]);
        let _ = writeln!(
            out,
            "<figure><svg id=\"bn-board\" class=\"bc\" role=\"group\" aria-label=\"The pixels: paint those that are kept\" \
             viewBox=\"0 0 {width} {height}\"></svg><figcaption>Paint on the image: red pixels are kept, blue ones \
             marginalized.</figcaption></figure>"
        );
    }
    if is_small {
        let _ = writeln!(out, "<div class=\"scroll\">{}</div>", circuit_drawing(circuit));
    } else {
        out.push_str(
            "<figure><svg id=\"bn-regions\" class=\"bc\" role=\"img\" aria-label=\"The regions of the circuit\" \
             viewBox=\"0 0 920 600\"></svg><figcaption>One rectangle a region, its variables from top to bottom, \
             single variables at the left and the output at the right. Click on one to keep or marginalize all of its \
             variables.</figcaption></figure>\n",
        );
    }
    let _ = write!(
        out,
        "</div>\n<script type=\"application/json\" id=\"bn-circuit\">{json}</script>\n<script>\n{SCRIPT}</script>\n"
    );
    out
}

fn presets(image: Option<[usize; 3]>) -> String {
    let mut list = vec![("all", "keep all"), ("none", "keep none")];
    if image.is_some() {
        let halves = [
            ("left", "left half"),
            ("right", "right half"),
            ("top", "top half"),
            ("bottom", "bottom half"),
        ];
        list.extend(halves);
    } else {
        list.push(("half", "first half"));
    }
    list.push(("other", "every other"));
    let button = |(id, words): &(&str, &str)| {
        format!("<button type=\"button\" data-preset=\"{id}\">{words}</button>")
    };
    let buttons: Vec<String> = list.iter().map(button).collect();
    format!(
        "<div class=\"presets\">{} <span id=\"bn-variables\" aria-live=\"polite\"></span></div>\n",
        buttons.concat()
    )
}

const COUNTERS: &str = r#"<div class="counters">
<div><h3>Layers</h3>
<p><b id="bn-evaluated"></b> of <b id="bn-layers"></b> are evaluated</p>
<ul class="sets">
<li><i class="sw k"></i> φ<sub>Y</sub>, only kept variables: <b id="bn-kept"></b>, one vector each</li>
<li><i class="sw z"></i> φ<sub>Z</sub>, only marginalized variables: <b id="bn-marginalized"></b>, skipped</li>
<li><i class="sw m"></i> φ<sub>Y,Z</sub>, both: <b id="bn-mixed"></b>, one matrix each</li>
</ul></div>
<div><h3>Multiply-adds <small>bars in powers of ten</small></h3>
<table>
<tr><th>Algorithm 2, here</th><td><b id="bn-ours"></b></td><td class="bars"><i id="bn-ours-bar" class="m"></i></td></tr>
<tr><th>the paper’s bound</th><td><b id="bn-bound"></b></td><td class="bars"><i id="bn-bound-bar" class="z"></i></td></tr>
<tr><th>squaring the circuit</th><td><b id="bn-squaring"></b></td><td class="bars"><i id="bn-squaring-bar" class="n"></i></td></tr>
</table><p id="bn-ratio" class="hint"></p></div>
</div>
"#;

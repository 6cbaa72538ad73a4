//! The region tree, with the mutual information between the two sides of every merge.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::axis::short;
use super::canvas::{Anchor, Canvas};
use crate::circuit::{Circuit, Layer, Orthonormal};
use crate::draw::{CellTree, ems, fit, px};
use crate::mixture::Mixture;
use crate::structure::MutualInformation;

/// The maximum number of leaves to draw; larger trees are drawn by region.
const MAX_LEAVES: usize = 64;
const ROW: f64 = 19.0;
const TOP: f64 = 58.0;

/// A drawn region: a cell of the circuit, or a collapsed subtree.
struct Drawn {
    cell: usize,
    inputs: Vec<usize>,
    y: f64,
    height: usize,
}

/// A tree of one or more circuits of a mixture.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    /// The heaviest of its circuits.
    pub(super) circuit: &'a Orthonormal,
    /// The number of its circuits, and their total weight.
    pub(super) count: usize,
    pub(super) weight: f64,
}

/// The different trees of a mixture, the heaviest first.
pub(super) fn trees(mixture: &Mixture) -> Vec<Tree<'_>> {
    // A number for each region: that of its variable, or one for each set of regions that are merged.
    let mut numbers: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    let mut found: Vec<(usize, Tree<'_>)> = Vec::new();
    for (circuit, weight) in mixture.circuits().zip(mixture.weights()) {
        let mut regions: Vec<usize> = Vec::with_capacity(circuit.num_layers());
        for layer in circuit.layers() {
            regions.push(match layer {
                Layer::Input { variable, .. } => variable.index(),
                Layer::Sum { input, .. } => regions[input.index()],
                Layer::Hadamard { inputs } | Layer::Kronecker { inputs } => {
                    let mut merged: Vec<usize> =
                        inputs.iter().map(|i| regions[i.index()]).collect();
                    merged.sort_unstable();
                    let next = circuit.num_variables() + numbers.len();
                    *numbers.entry(merged).or_insert(next)
                }
            });
        }
        let root = regions[circuit.output().index()];
        match found.iter_mut().find(|(known, _)| *known == root) {
            Some((_, tree)) => {
                tree.count += 1;
                tree.weight += weight;
            }
            None => found.push((root, Tree { circuit, count: 1, weight })),
        }
    }
    let mut trees: Vec<Tree<'_>> = found.into_iter().map(|(_, tree)| tree).collect();
    trees.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    trees
}

pub(super) fn draw(
    circuit: &Circuit,
    information: Option<&MutualInformation>,
    image: Option<[usize; 3]>,
) -> Canvas {
    let cells = CellTree::new(circuit);
    let open = opened(&cells);
    let mut drawn = Vec::new();
    let mut leaves = 0.0;
    if let Some(root) = cells.list().len().checked_sub(1) {
        place(&cells, &open, root, &mut drawn, &mut leaves);
    }
    let labels: Vec<String> = drawn
        .iter()
        .map(|d| {
            if d.inputs.is_empty() { label(circuit, &cells, d.cell, image) } else { String::new() }
        })
        .collect();
    let label_width = 11.0 * labels.iter().map(|l| ems(l).min(26.0)).fold(0.0, f64::max) + 8.0;
    let height = drawn.last().map_or(0, |d| d.height);
    let step = (520.0 / height.max(1) as f64).clamp(11.0, 74.0);
    let left = 24.0 + label_width;
    let width = (left + step * height as f64 + 70.0).max(560.0);
    let values: Vec<Option<f64>> =
        drawn.iter().map(|d| between(circuit, &cells, d.cell, information)).collect();
    let most = values.iter().flatten().copied().fold(1e-12, f64::max);
    let mut canvas = Canvas::new(
        width,
        TOP + ROW * leaves + 20.0,
        format!(
            "The learned structure: a tree of regions over {} variables",
            circuit.num_variables()
        ),
    );
    head(&mut canvas, information.is_some(), leaves as usize, circuit.num_variables());
    let x = |d: &Drawn| left + step * d.height as f64;
    for (n, d) in drawn.iter().enumerate() {
        let value = values[n];
        let strength = value.map_or(0.3, |v| (v / most).clamp(0.0, 1.0));
        for &input in &d.inputs {
            let from = &drawn[input];
            let mut path = String::new();
            let _ = write!(path, "M{} {}H{}V{}", px(x(from)), px(from.y), px(x(d)), px(d.y));
            canvas.path("blueline", &path, 1.1 + 4.4 * strength);
        }
    }
    for (n, d) in drawn.iter().enumerate() {
        if d.inputs.is_empty() {
            let at = (left - 7.0, d.y + 4.0);
            canvas.text("", Anchor::End, at, 11.0, &fit(&labels[n], 26.0));
        } else if let Some(value) = values[n] {
            let bits = value / std::f64::consts::LN_2;
            let words = format!(
                "{} bits per pair, between {}",
                short(bits),
                sides(circuit, &cells, d.cell)
            );
            let r = 2.2 + 2.4 * (value / most).clamp(0.0, 1.0);
            canvas.dot("blue", x(d), d.y, r, &words);
            if step > 30.0 || leaves <= 40.0 {
                canvas.text(
                    "mute",
                    Anchor::Start,
                    (x(d) + 6.0, d.y - 3.5),
                    9.0,
                    &format!("{bits:.2}"),
                );
            }
        }
    }
    canvas
}

fn head(canvas: &mut Canvas, has_information: bool, leaves: usize, variables: usize) {
    canvas.text("bold", Anchor::Start, (20.0, 22.0), 13.0, "Structure");
    let mut words = if has_information {
        "The number at a merge is the average mutual information of a pair of columns, one from each side, in bits.".to_owned()
    } else {
        "Regions of variables that are merged in a layer of the circuit.".to_owned()
    };
    if leaves < variables {
        let _ = write!(words, " {variables} variables, drawn as {leaves} regions.");
    }
    canvas.text("mute", Anchor::Start, (20.0, 40.0), 10.5, &words);
}

/// The cells that are drawn with their inputs: the largest first, until there are enough leaves.
fn opened(cells: &CellTree) -> Vec<bool> {
    let list = cells.list();
    let mut open = vec![false; list.len()];
    let mut leaves: Vec<usize> = list.len().checked_sub(1).into_iter().collect();
    loop {
        let largest = (0..leaves.len())
            .filter(|&n| !list[leaves[n]].inputs.is_empty())
            .max_by_key(|&n| (list[leaves[n]].num_variables, leaves[n]));
        let Some(n) = largest else { return open };
        let cell = leaves[n];
        if leaves.len() + list[cell].inputs.len() - 1 > MAX_LEAVES && leaves.len() > 1 {
            return open;
        }
        open[cell] = true;
        leaves.swap_remove(n);
        leaves.extend(&list[cell].inputs);
    }
}

/// Places a region below the previous ones, and returns its index among the drawn regions.
fn place(
    cells: &CellTree,
    open: &[bool],
    root: usize,
    drawn: &mut Vec<Drawn>,
    leaves: &mut f64,
) -> usize {
    // A tree may be as deep as it has variables, so use an explicit stack.
    let list = cells.list();
    let mut stack = vec![(root, false)];
    let mut done: Vec<usize> = Vec::new();
    while let Some((cell, is_ready)) = stack.pop() {
        if !open[cell] {
            let y = TOP + ROW * (*leaves + 0.5);
            *leaves += 1.0;
            done.push(drawn.len());
            drawn.push(Drawn { cell, inputs: Vec::new(), y, height: 0 });
        } else if is_ready {
            let inputs = done.split_off(done.len() - list[cell].inputs.len());
            let ys = inputs.iter().map(|&i: &usize| drawn[i].y);
            let (low, high) = ys.fold((f64::INFINITY, 0.0_f64), |(a, b), y| (a.min(y), b.max(y)));
            let height = inputs.iter().map(|&i| drawn[i].height + 1).max().unwrap_or(0);
            done.push(drawn.len());
            drawn.push(Drawn { cell, inputs, y: f64::midpoint(low, high), height });
        } else {
            stack.push((cell, true));
            stack.extend(list[cell].inputs.iter().rev().map(|&i| (i, false)));
        }
    }
    drawn.len().saturating_sub(1)
}

fn label(circuit: &Circuit, cells: &CellTree, cell: usize, image: Option<[usize; 3]>) -> String {
    let cell = &cells.list()[cell];
    let order = &circuit.variable_order()[cell.start..cell.start + cell.num_variables];
    let name = |n: usize| circuit.variable(order[n]).name.as_str();
    match (order.len(), image) {
        (1, _) => name(0).to_owned(),
        (_, Some([_, width, channels])) => {
            let rows = order.iter().map(|v| v.index() / channels / width);
            let columns = order.iter().map(|v| v.index() / channels % width);
            let span = |values: Vec<usize>| {
                let (low, high) = (values.iter().min(), values.iter().max());
                match (low, high) {
                    (Some(a), Some(b)) if a < b => format!("{a}–{b}"),
                    (Some(a), _) => a.to_string(),
                    _ => String::new(),
                }
            };
            format!("rows {}, columns {}", span(rows.collect()), span(columns.collect()))
        }
        (n, None) => format!("{} … {} ({n})", name(0), name(n - 1)),
    }
}

/// The mean mutual information of pairs of variables from different inputs of a cell.
fn between(
    circuit: &Circuit,
    cells: &CellTree,
    cell: usize,
    information: Option<&MutualInformation>,
) -> Option<f64> {
    let (information, list) = (information?, cells.list());
    let order = circuit.variable_order();
    let span = |c: usize| &order[list[c].start..list[c].start + list[c].num_variables];
    let (mut sum, mut count) = (0.0, 0.0);
    let inputs = &list[cell].inputs;
    for (n, &a) in inputs.iter().enumerate() {
        for &b in &inputs[n + 1..] {
            for x in span(a) {
                for y in span(b) {
                    sum += information.get(x.index(), y.index()).max(0.0);
                    count += 1.0;
                }
            }
        }
    }
    (count > 0.0).then(|| sum / count)
}

fn sides(circuit: &Circuit, cells: &CellTree, cell: usize) -> String {
    let list = cells.list();
    let side = |&c: &usize| {
        let cell = &list[c];
        let names: Vec<&str> = circuit.variable_order()[cell.start..]
            .iter()
            .take(cell.num_variables.min(4))
            .map(|&v| circuit.variable(v).name.as_str())
            .collect();
        let rest = if cell.num_variables > 4 { ", …" } else { "" };
        format!("{}{rest}", names.join(", "))
    };
    list[cell].inputs.iter().map(side).collect::<Vec<_>>().join(" and ")
}

//! Quadrature: nodes that integrate the numbers of a continuous column with its density.

use std::sync::OnceLock;

use super::Model;
use crate::basis::Basis;
use crate::basis::quadrature::gauss_legendre;
use crate::circuit::Layer;
use crate::ops::FunctionNode;

/// The shortest quadrature panel of a mean has the length 2^−`PANELS`.
const PANELS: i32 = 30;
/// The number of nodes per panel, before the additional nodes for densities with many functions.
const PANEL_NODES: usize = 6;
/// The number of nodes on a step.
const STEP_NODES: usize = 4;

impl Model {
    /// The numbers of a continuous column between two values of its variable, excluding atoms, as nodes and weights that
    /// integrate them with the densities of all circuits.
    ///
    /// Numbers may be infinite at both ends of [0, 1], so nodes are dense there. Elsewhere on a step, numbers vary little,
    /// and a step that is a single cell of a grid has a single number.
    pub(super) fn number_nodes(&self, column: usize, low: f64, high: f64) -> Vec<FunctionNode> {
        let variable = self.schema.variables_of(column).start;
        let shape = &self.shapes.get_or_init(|| self.find_shapes())[variable];
        let node = |x: f64, weight: f64| FunctionNode { x, weight, value: self.term(column, x) };
        let mut nodes = Vec::new();
        if shape.edges.is_empty() {
            nodes.extend(mapped(panels(shape.functions), low, high).map(|(x, w)| node(x, w)));
            return nodes;
        }
        let number = |x: f64| {
            let c = &self.schema.columns()[column];
            c.kind.coding().number(c.storage, &[x])
        };
        let few = gauss_legendre(STEP_NODES + shape.functions.min(PANEL_NODES));
        let few: Vec<(f64, f64)> = few.iter().map(|(t, w)| (0.5 + 0.5 * t, 0.5 * w)).collect();
        for step in shape.edges.windows(2) {
            let (a, b) = (step[0].max(low), step[1].min(high));
            if a >= b {
                continue;
            }
            let inside = |share: f64| number(a + share * (b - a));
            match (inside(1e-6), inside(1.0 - 1e-6)) {
                (Some(first), Some(last)) if first == last && shape.functions == 0 => {
                    nodes.push(FunctionNode { x: 0.5 * (a + b), weight: b - a, value: first });
                }
                _ => {
                    let is_end = step[0] <= 0.0 || step[1] >= 1.0;
                    let rule = if is_end { panels(1) } else { &few[..] };
                    nodes.extend(mapped(rule, a, b).map(|(x, w)| node(x, w)));
                }
            }
        }
        nodes
    }

    fn find_shapes(&self) -> Vec<Shape> {
        let mut shapes = vec![Shape::default(); self.schema.num_variables()];
        for layer in self.mixture.circuits().flat_map(|circuit| circuit.layers()) {
            match layer {
                Layer::Input { variable, basis } => shapes[variable.index()].add(basis),
                Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => {}
            }
        }
        for shape in &mut shapes {
            shape.edges.sort_by(f64::total_cmp);
            shape.edges.dedup();
        }
        shapes
    }
}

/// How densities of a continuous variable vary, in all circuits.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    /// The maximum number of smooth functions.
    functions: usize,
    /// The edges of steps.
    edges: Vec<f64>,
}

impl Shape {
    fn add(&mut self, basis: &Basis) {
        let basis = basis.plain();
        match basis.as_steps() {
            Some(steps) => self.edges.extend(steps.edges()),
            None => self.functions = self.functions.max(basis.width()),
        }
    }
}

/// A rule on [0, 1], mapped to another interval.
fn mapped(rule: &[(f64, f64)], low: f64, high: f64) -> impl Iterator<Item = (f64, f64)> + '_ {
    rule.iter().map(move |&(v, w)| (low + (high - low) * v, (high - low) * w))
}

/// Quadrature nodes and weights on [0, 1], dense towards both ends, where numbers may be infinite, and fine enough for
/// the squared sum of this many functions.
///
/// The square of a sum of n Legendre functions has about n oscillations in the angle θ with u = (1 − cos θ) / 2, of
/// which about n 2^(−k/2) / 5 fall into the panel from 2⁻ᵏ⁻¹ to 2⁻ᵏ. A Gauss rule needs about two nodes for each.
pub(super) fn panels(functions: usize) -> &'static [(f64, f64)] {
    // One rule per power of two; most models use a single one.
    static RULES: [OnceLock<Vec<(f64, f64)>>; 16] = [const { OnceLock::new() }; 16];
    let power = (functions.max(64).next_power_of_two().ilog2() as usize).min(RULES.len() - 1);
    RULES[power].get_or_init(|| {
        let waves = 0.5 * f64::from(1_u32 << power);
        let mut nodes = Vec::new();
        for k in 1..=PANELS {
            let high = 0.5f64.powi(k);
            let low = if k == PANELS { 0.0 } else { 0.5 * high };
            let more = (waves * high.sqrt()).ceil() as usize;
            for (t, w) in gauss_legendre(PANEL_NODES + more) {
                let half = 0.5 * (high - low);
                let u = low + half * (1.0 + t);
                nodes.push((u, half * w));
                nodes.push((1.0 - u, half * w));
            }
        }
        nodes
    })
}

//! The best tree of pairs, and a region tree of it.

use super::MutualInformation;
use crate::structure::RegionTree;
use crate::structure::tree::TreeBuilder;

/// An edge of a tree of variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The end nearer to variable 0.
    pub parent: usize,
    /// The other end.
    pub child: usize,
    /// The information that the two have of each other, in nats.
    pub information: f64,
}

/// The spanning tree of the largest total information: Chow and Liu's, by Prim's algorithm from variable 0.
///
/// Every variable but 0 is the child of one edge, and the parent is 0 or the child of an earlier one. Of equal edges the one to
/// the variable with the smallest position is taken.
///
/// Cost: d².
pub fn chow_liu_tree(information: &MutualInformation) -> Vec<Edge> {
    let size = information.size();
    let mut best: Vec<Edge> =
        (0..size).map(|child| Edge { parent: 0, child, information: f64::NEG_INFINITY }).collect();
    let mut is_in = vec![false; size];
    let mut edges = Vec::with_capacity(size.saturating_sub(1));
    let mut newest = 0;
    while edges.len() + 1 < size {
        is_in[newest] = true;
        let mut next: Option<Edge> = None;
        for child in (0..size).filter(|&c| !is_in[c]) {
            let value = information.get(newest, child);
            if value > best[child].information {
                best[child] = Edge { parent: newest, child, information: value };
            }
            if next.is_none_or(|e| best[child].information > e.information) {
                next = Some(best[child]);
            }
        }
        let Some(edge) = next else { break };
        newest = edge.child;
        edges.push(edge);
    }
    edges
}

/// The region tree of a tree of variables: cut at the edge that leaves the most equal halves, then each half likewise.
///
/// Every region is connected in the tree. Of equally good cuts the one with the least information is taken, then that with the
/// smallest child.
///
/// Cost: d × depth.
///
/// # Panics
/// If there are no variables, or the edges are not those of a tree over all of them.
pub fn cut_edges(num_variables: usize, edges: &[Edge]) -> RegionTree {
    assert_eq!(edges.len() + 1, num_variables, "a tree has one edge less than variables");
    let mut neighbors: Vec<Vec<usize>> = vec![Vec::new(); num_variables];
    for (n, e) in edges.iter().enumerate() {
        neighbors[e.parent].push(n);
        neighbors[e.child].push(n);
    }
    let mut forest = Forest {
        edges,
        neighbors,
        is_cut: vec![false; edges.len()],
        sizes: vec![0; num_variables],
    };
    let mut builder = TreeBuilder::default();
    let mut done: Vec<usize> = Vec::new();
    let mut steps = vec![Step::Cut(0)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Join => {
                let right = done.pop().expect("two parts before a join");
                let left = done.pop().expect("two parts before a join");
                done.push(builder.split(vec![left, right]));
            }
            Step::Cut(v) => match forest.cut(v) {
                None => done.push(builder.variable(v)),
                Some((a, b)) => steps.extend([Step::Join, Step::Cut(b), Step::Cut(a)]),
            },
        }
    }
    assert_eq!(builder.num_variables(), num_variables, "the edges join all variables");
    builder.finish(num_variables)
}

enum Step {
    /// Split the part that holds this variable.
    Cut(usize),
    /// Join the last two parts.
    Join,
}

struct Forest<'a> {
    edges: &'a [Edge],
    /// The edges at each variable.
    neighbors: Vec<Vec<usize>>,
    is_cut: Vec<bool>,
    /// The number of variables below each, seen from where the part was entered.
    sizes: Vec<usize>,
}

impl Forest<'_> {
    /// Cuts the part that holds `start`, and names a variable of each half, the one with `start` first.
    fn cut(&mut self, start: usize) -> Option<(usize, usize)> {
        // Variables before what is below them, each with the edge to the one above.
        let mut order = vec![(start, usize::MAX)];
        let mut at = 0;
        while at < order.len() {
            let (v, above) = order[at];
            for &edge in self.neighbors[v].iter().filter(|&&e| e != above && !self.is_cut[e]) {
                order.push((self.other_end(edge, v), edge));
            }
            at += 1;
            assert!(order.len() <= self.neighbors.len(), "the edges have no cycle");
        }
        for &(v, _) in &order {
            self.sizes[v] = 1;
        }
        let total = order.len();
        let mut best: Option<((usize, f64, usize), usize, usize)> = None;
        for &(v, above) in order[1..].iter().rev() {
            let upper = self.other_end(above, v);
            self.sizes[upper] += self.sizes[v];
            let edge = &self.edges[above];
            let key = ((2 * self.sizes[v]).abs_diff(total), edge.information, edge.child);
            if best.is_none_or(|(b, ..)| key < b) {
                best = Some((key, above, v));
            }
        }
        let (_, edge, below) = best?;
        self.is_cut[edge] = true;
        Some((start, below))
    }

    fn other_end(&self, edge: usize, v: usize) -> usize {
        let Edge { parent, child, .. } = self.edges[edge];
        if parent == v { child } else { parent }
    }
}

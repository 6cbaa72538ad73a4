//! The best tree of pairs, and the region tree that follows from it.

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
    /// The mutual information of the two variables, in nats.
    pub information: f64,
}

impl Edge {
    fn other_end(&self, v: usize) -> usize {
        if self.parent == v { self.child } else { self.parent }
    }
}

/// The Chow–Liu tree, which is the spanning tree with the largest total information, by Prim's
/// algorithm starting at variable 0.
///
/// Every variable except 0 is the child of one edge, and each parent is 0 or the child of an
/// earlier edge. Ties go to the variable with the smallest position.
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

/// Builds the region tree of a tree of variables: each variable is joined with the parts below its
/// children, one at a time.
///
/// The root is the variable that leaves the smallest parts. Then a region communicates with the
/// rest through the value of one variable, so the density of the Chow–Liu tree needs a circuit no
/// wider than the number of values of a variable. Parts with the most information come first.
///
/// Cost: d.
///
/// # Panics
/// If there are no variables, or the edges do not form a tree over all of them.
pub fn root_edges(num_variables: usize, edges: &[Edge]) -> RegionTree {
    assert_eq!(edges.len() + 1, num_variables, "a tree has one edge less than variables");
    let mut neighbors: Vec<Vec<usize>> = vec![Vec::new(); num_variables];
    for (n, e) in edges.iter().enumerate() {
        neighbors[e.parent].push(n);
        neighbors[e.child].push(n);
    }
    let mut builder = TreeBuilder::default();
    let mut regions: Vec<Option<usize>> = vec![None; num_variables];
    let order = order(edges, &neighbors, middle(edges, &neighbors));
    for &(v, above) in order.iter().rev() {
        let below = neighbors[v].iter().copied().filter(|&edge| Some(edge) != above);
        let mut below: Vec<&Edge> = below.map(|edge| &edges[edge]).collect();
        below.sort_by(|a, b| {
            b.information.total_cmp(&a.information).then(a.other_end(v).cmp(&b.other_end(v)))
        });
        let variable = builder.variable(v);
        let parts = below.iter().filter_map(|edge| regions[edge.other_end(v)].take());
        let region = parts.fold(variable, |region, part| builder.split(vec![region, part]));
        regions[v] = Some(region);
    }
    builder.finish(num_variables)
}

/// The variable whose removal leaves the smallest largest part; the first one in case of a tie.
fn middle(edges: &[Edge], neighbors: &[Vec<usize>]) -> usize {
    let total = neighbors.len();
    let (mut sizes, mut largest) = (vec![1; total], vec![0; total]);
    for &(v, above) in order(edges, neighbors, 0).iter().rev() {
        largest[v] = largest[v].max(total - sizes[v]);
        if let Some(edge) = above {
            let upper = edges[edge].other_end(v);
            sizes[upper] += sizes[v];
            largest[upper] = largest[upper].max(sizes[v]);
        }
    }
    (0..total).min_by_key(|&v| largest[v]).unwrap_or_default()
}

/// The variables, starting at `start`, each before those below it and with the edge to the one
/// above.
fn order(edges: &[Edge], neighbors: &[Vec<usize>], start: usize) -> Vec<(usize, Option<usize>)> {
    let mut order = vec![(start, None)];
    let mut at = 0;
    while at < order.len() {
        let (v, above) = order[at];
        let below = neighbors[v].iter().filter(|&&edge| Some(edge) != above);
        order.extend(below.map(|&edge| (edges[edge].other_end(v), Some(edge))));
        at += 1;
        assert!(order.len() <= neighbors.len(), "the edges have no cycle");
    }
    assert_eq!(order.len(), neighbors.len(), "the edges join all variables");
    order
}

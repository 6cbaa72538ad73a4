//! Agglomerative clustering of variables.

use super::MutualInformation;
use crate::structure::RegionTree;
use crate::structure::tree::TreeBuilder;

/// Builds a region tree by repeatedly joining the two regions with the highest average mutual
/// information over all pairs of their variables.
///
/// Nearest-neighbor chains give the same tree as searching for the best pair in every round. Ties
/// go to the smaller region, then to the one with the smallest variable. Of two parts, the one with
/// the smallest variable comes first.
///
/// Cost: d² time and memory.
///
/// ```
/// use bornite::structure::{MutualInformation, average_linkage};
///
/// let near = |i, j| if (i, j) == (0, 2) || (i, j) == (1, 3) { 0.5 } else { 0.01 };
/// let tree = average_linkage(&MutualInformation::from_fn(4, near));
/// assert_eq!(tree.to_string(), "[[0, 2], [1, 3]]");
/// ```
///
/// # Panics
/// If there are no variables.
pub fn average_linkage(information: &MutualInformation) -> RegionTree {
    let size = information.size();
    let mut builder = TreeBuilder::default();
    let regions = (0..size).map(|v| builder.variable(v)).collect();
    let values = (0..size).flat_map(|i| information.row(i).iter().copied()).collect();
    let mut clusters = Clusters { size, values, counts: vec![1; size], regions };
    let mut chain: Vec<usize> = Vec::new();
    for _ in 1..size {
        let (a, b) = clusters.next_pair(&mut chain);
        clusters.join(a, b, &mut builder);
    }
    builder.finish(size)
}

/// Clusters, each identified by its smallest variable.
struct Clusters {
    size: usize,
    /// The average information between any two clusters.
    values: Vec<f64>,
    /// The number of variables; 0 if the cluster is part of another.
    counts: Vec<usize>,
    regions: Vec<usize>,
}

impl Clusters {
    /// Two clusters that are each other's nearest. Follows nearest neighbors from the end of the
    /// chain until the chain turns back.
    fn next_pair(&self, chain: &mut Vec<usize>) -> (usize, usize) {
        loop {
            let Some(&last) = chain.last() else {
                // Start with one of the smallest, so that equal information gives a balanced tree.
                let left = (0..self.size).filter(|&c| self.counts[c] > 0);
                chain.extend(left.min_by_key(|&c| self.counts[c]));
                continue;
            };
            let before = chain.len().checked_sub(2).map(|n| chain[n]);
            let nearest = self.nearest(last, before);
            // It is the previous one. Only rounding of averages can make it an even earlier one.
            match chain.iter().position(|&c| c == nearest) {
                Some(at) => {
                    chain.truncate(at);
                    return (last.min(nearest), last.max(nearest));
                }
                None => chain.push(nearest),
            }
        }
    }

    /// The nearest other cluster. Ties go to `preferred`, so that the chain ends.
    fn nearest(&self, cluster: usize, preferred: Option<usize>) -> usize {
        let row = &self.values[cluster * self.size..(cluster + 1) * self.size];
        let mut best = preferred;
        for c in (0..self.size).filter(|&c| c != cluster && self.counts[c] > 0) {
            let is_better = match best {
                None => true,
                Some(b) if row[c] == row[b] => {
                    preferred != Some(b) && self.counts[c] < self.counts[b]
                }
                Some(b) => row[c] > row[b],
            };
            if is_better {
                best = Some(c);
            }
        }
        best.expect("two clusters are left")
    }

    /// Merges b into a.
    fn join(&mut self, a: usize, b: usize, builder: &mut TreeBuilder) {
        let (n, m) = (self.counts[a] as f64, self.counts[b] as f64);
        for c in (0..self.size).filter(|&c| c != a && c != b && self.counts[c] > 0) {
            let value =
                (n * self.values[a * self.size + c] + m * self.values[b * self.size + c]) / (n + m);
            self.values[a * self.size + c] = value;
            self.values[c * self.size + a] = value;
        }
        self.counts[a] += self.counts[b];
        self.counts[b] = 0;
        self.regions[a] = builder.split(vec![self.regions[a], self.regions[b]]);
    }
}

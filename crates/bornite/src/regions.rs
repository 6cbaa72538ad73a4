//! Disjoint regions of a tree that threads process in parallel.

/// Regions per thread. Several, because some take more work than others.
pub(crate) const SHARE: usize = 4;

/// Cuts a tree into regions of about the same work, and returns their topmost nodes in increasing
/// order.
///
/// `inputs` gives the inputs of each node, and `work` the total work at and below it. The result is
/// empty if there is only one thread, or if the tree is too uneven.
pub(crate) fn cut<I: IntoIterator<Item = usize>>(
    root: usize,
    work: &[u128],
    inputs: impl Fn(usize) -> I,
) -> Vec<usize> {
    let threads = rayon::current_num_threads();
    let mut tops = vec![root];
    while tops.len() < SHARE * threads {
        let Some(largest) = (0..tops.len()).max_by_key(|&n| work[tops[n]]) else { break };
        let mut below = inputs(tops[largest]).into_iter().peekable();
        if below.peek().is_none() {
            break;
        }
        tops.swap_remove(largest);
        tops.extend(below);
    }
    let is_fair = |&top: &usize| {
        work[top].saturating_mul(4 * threads as u128) <= work[root].saturating_mul(5)
    };
    if threads < 2 || !tops.iter().all(is_fair) {
        return Vec::new();
    }
    tops.sort_unstable();
    tops
}

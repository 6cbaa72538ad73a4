//! Disjoint regions of a circuit that threads process in parallel.

use super::marginalize::received;
use crate::circuit::{Circuit, LayerId};
use crate::regions::cut;

/// The least work that is worth a thread, as a sum of layer sizes. This understates the work of
/// matrix messages.
const GRAIN: u128 = 1 << 14;

/// The layers of a circuit, in order, divided into regions.
#[derive(Debug)]
pub(super) struct Regions {
    /// The layers of each region, which take no messages from outside it.
    pub(super) regions: Vec<Vec<LayerId>>,
    /// The layers outside all regions, which are processed last.
    pub(super) above: Vec<LayerId>,
}

/// Cuts a circuit into regions of about the same work, given the work of each layer. There are no
/// regions if there is too little work, or if the circuit is too uneven.
pub(super) fn regions(circuit: &Circuit, work: impl Fn(LayerId) -> u128) -> Regions {
    let tops = tops(circuit, work);
    let mut region_of: Vec<Option<usize>> = vec![None; circuit.num_layers()];
    for (region, top) in tops.iter().enumerate() {
        region_of[top.index()] = Some(region);
    }
    for id in circuit.layer_ids().rev() {
        if region_of[id.index()].is_some() {
            for input in received(circuit, id) {
                region_of[input.index()] = region_of[id.index()];
            }
        }
    }
    let mut shares = Regions { regions: vec![Vec::new(); tops.len()], above: Vec::new() };
    for id in circuit.layer_ids() {
        match region_of[id.index()] {
            Some(region) => shares.regions[region].push(id),
            None => shares.above.push(id),
        }
    }
    shares
}

/// The topmost layer of each region.
fn tops(circuit: &Circuit, work: impl Fn(LayerId) -> u128) -> Vec<LayerId> {
    let mut total = vec![0_u128; circuit.num_layers()];
    for id in circuit.layer_ids() {
        let below = received(circuit, id).iter().map(|i| total[i.index()]);
        total[id.index()] = below.fold(work(id), u128::saturating_add);
    }
    let root = circuit.output().index();
    if total[root] < GRAIN * rayon::current_num_threads() as u128 {
        return Vec::new();
    }
    let inputs = |n: usize| received(circuit, LayerId::new(n)).iter().map(|i| i.index());
    cut(root, &total, inputs).into_iter().map(LayerId::new).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::circuit::Weights;
    use crate::regions::SHARE;
    use crate::structure::{RegionTree, Structure};
    use crate::{Basis, Domain, Query, Variable, ops};

    fn circuit(tree: RegionTree) -> Circuit {
        let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(16)), Basis::indicator(16));
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        Structure::new(tree, leaf).width(16).build(Weights::Gaussian, rng).unwrap()
    }

    #[test]
    fn threads_share_even_trees_and_change_no_bit() {
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let circuit = circuit(RegionTree::balanced(60));
        let size = |id| circuit.size(id);
        assert!(pool(1).install(|| regions(&circuit, size).regions).is_empty());
        let alone = pool(1).install(|| ops::log_partition(&circuit)).unwrap();
        let query = Query::parse(circuit.variables(), "x1=2, x40=0, x41 in {0, 2}").unwrap();
        let marginal = || ops::log_unnormalized_marginal(&circuit, &query).unwrap();
        for threads in [2, 3] {
            let pool = pool(threads);
            let found = pool.install(|| regions(&circuit, size).regions);
            assert!(found.len() >= SHARE * threads, "{found:?}");
            let mut layers: Vec<LayerId> = found.concat();
            layers.sort_unstable();
            layers.dedup();
            assert_eq!(layers.len(), found.iter().map(Vec::len).sum::<usize>());
            let shared = pool.install(|| ops::log_partition(&circuit)).unwrap();
            assert_eq!(alone.to_bits(), shared.to_bits());
            assert_eq!(marginal().to_bits(), pool.install(marginal).to_bits());
        }
    }

    #[test]
    fn chains_and_small_circuits_are_not_shared() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for tree in [RegionTree::linear(60), RegionTree::balanced(2)] {
            let circuit = circuit(tree);
            assert!(pool.install(|| regions(&circuit, |id| circuit.size(id)).regions).is_empty());
        }
    }
}

//! Disjoint regions of a circuit that threads process in parallel if there are too few rows to
//! share.

use std::ops::Range;

use super::lanes::Real;
use super::plan::Plan;
use super::upward::BLOCK;
use crate::program::Step;
use crate::regions::cut;

/// The least number of multiply-adds that is worth a thread.
const GRAIN: usize = 1 << 17;

impl<F: Real, const C: bool> Plan<F, C> {
    /// The ranges of steps of all regions, in order, for this many rows. Empty if threads should
    /// share the rows instead.
    pub(super) fn regions(&self, rows: usize) -> Vec<Range<usize>> {
        let threads = rayon::current_num_threads();
        if threads < 2 || rows >= threads * BLOCK || self.multiply_adds(rows) < threads * GRAIN {
            return Vec::new();
        }
        let steps = self.program.steps();
        let work: Vec<u128> = steps.iter().map(|step| step.num_variables() as u128).collect();
        let tops = cut(self.program.root(), &work, |step| steps[step].inputs().iter().copied());
        tops.into_iter().map(|step| self.program.first_below(step)..step + 1).collect()
    }

    /// The approximate number of multiply-adds for complete rows, in whole tiles.
    fn multiply_adds(&self, rows: usize) -> usize {
        let products =
            |step: &Step| step.inputs().iter().fold(step.width, |n, &i| n * self.program.width(i));
        rows.next_multiple_of(F::LANES) * self.program.steps().iter().map(products).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::circuit::Weights;
    use crate::engine::{Batch, Engine, SimdLevel};
    use crate::regions::SHARE;
    use crate::structure::{RegionTree, Structure};
    use crate::{Basis, Domain, Orthonormal, Variable};

    const VARIABLES: usize = 60;

    fn circuit(tree: RegionTree) -> Orthonormal {
        let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(3)), Basis::indicator(3));
        let structure = Structure::new(tree, leaf).width(8);
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        Orthonormal::verify(structure.build(Weights::Haar, rng).unwrap()).unwrap()
    }

    /// Groups of four, three of which form a group of their own, in a tree of pairs.
    fn n_ary() -> RegionTree {
        let group = |first: usize, len: usize| {
            let list: Vec<String> = (first..first + len).map(|v| v.to_string()).collect();
            format!("[{}]", list.join(", "))
        };
        let groups: Vec<String> = (0..15).map(|g| group(4 * g, 4)).collect();
        let pairs: Vec<String> = groups.chunks(3).map(|c| format!("[{}]", c.join(", "))).collect();
        let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|n| pairs[n].clone());
        RegionTree::parse(&format!("[[[{a}, {b}], {c}], [{d}, {e}]]")).unwrap()
    }

    #[test]
    fn regions_share_the_work_and_leave_every_bit() {
        let rng = &mut ChaCha8Rng::seed_from_u64(4);
        let mut cell =
            || if rng.random_bool(0.2) { f64::NAN } else { f64::from(rng.random_range(0..3)) };
        let values: Vec<f64> = (0..70 * VARIABLES).map(|_| cell()).collect();
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        for (name, tree) in [
            ("balanced", RegionTree::balanced(VARIABLES)),
            ("image", RegionTree::image(10, 6, 1)),
            ("n-ary", n_ary()),
        ] {
            let circuit = circuit(tree);
            let engine = Engine::new(&circuit);
            let plan = Plan::<f64, true>::new(&circuit, SimdLevel::default());
            let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
            let alone = pool(1).install(|| engine.log_marginals(&rows)).unwrap();
            assert!(pool(1).install(|| plan.regions(70)).is_empty());
            for threads in [2, 3] {
                let pool = pool(threads);
                let regions = pool.install(|| plan.regions(70));
                assert!(regions.len() >= SHARE * threads, "{name}: {regions:?}");
                assert!(regions.windows(2).all(|r| r[0].end <= r[1].start), "{name}: {regions:?}");
                let logs = pool.install(|| engine.log_marginals(&rows)).unwrap();
                for (a, b) in alone.iter().zip(&logs) {
                    assert_eq!(a.to_bits(), b.to_bits(), "{name}, {threads} threads");
                }
            }
        }
    }

    #[test]
    fn rows_are_shared_where_there_are_many_or_the_tree_is_uneven() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let regions = |tree, rows| {
            let plan = Plan::<f64, true>::new(&circuit(tree), SimdLevel::default());
            pool.install(|| plan.regions(rows))
        };
        assert!(regions(RegionTree::balanced(VARIABLES), 2 * BLOCK).is_empty());
        assert!(regions(RegionTree::linear(VARIABLES), 70).is_empty());
        assert!(regions(RegionTree::balanced(2), 1).is_empty());
    }
}

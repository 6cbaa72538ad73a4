//! The number of multiply-adds of a pass: the lower bound that its time is compared with.

use super::plan::Plan;
use super::{AnyPlan, Batch, Engine, Real};
use crate::algebra::{Form, Kind, Work, contraction, hadamard};
use crate::program::StepKind;
use crate::schedule::{Grouping, Planner, Schedule};

impl<F: Real> Engine<F> {
    /// Counts the multiply-adds of [`log_marginals`](Self::log_marginals) on these rows, by the
    /// kinds of their messages.
    ///
    /// # Panics
    /// If the rows were created for a different number of variables.
    pub fn marginal_work(&self, rows: &Batch) -> Work {
        assert_eq!(rows.num_variables(), self.variables().len(), "variables of the rows");
        match &self.plan {
            AnyPlan::Real(plan) => plan.marginal_work(rows),
            AnyPlan::Complex(plan) => plan.marginal_work(rows),
        }
    }

    /// Counts the multiply-adds of [`log_conditionals`](Self::log_conditionals) for one row.
    pub fn prefix_work(&self) -> Work {
        match &self.plan {
            AnyPlan::Real(plan) => plan.traversal_work(Visit::Score),
            AnyPlan::Complex(plan) => plan.traversal_work(Visit::Score),
        }
    }

    /// Counts the multiply-adds of coding one complete row: those of
    /// [`prefix_work`](Self::prefix_work), with the probabilities of all values at every variable.
    pub fn coding_work(&self) -> Work {
        match &self.plan {
            AnyPlan::Real(plan) => plan.traversal_work(Visit::Code),
            AnyPlan::Complex(plan) => plan.traversal_work(Visit::Code),
        }
    }

    /// Counts the multiply-adds of one sample without evidence: the probabilities of all values at
    /// every finite variable, and the products of vectors that keep the environments vectors.
    pub fn sample_work(&self) -> Work {
        match &self.plan {
            AnyPlan::Real(plan) => plan.traversal_work(Visit::Draw),
            AnyPlan::Complex(plan) => plan.traversal_work(Visit::Draw),
        }
    }
}

/// What the traversal computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    /// The density of one value at each leaf.
    Score,
    /// The densities of all values.
    Code,
    /// The densities of all values, with vectors as environments.
    Draw,
}

/// The kind and work of W (a ⊗ b), where W is k × k₁ × k₂.
fn product([k, k1, k2]: [usize; 3], a: Kind, b: Kind) -> (Kind, Work) {
    (a.times(b), contraction(k, &[(a.into(), k1), (b.into(), k2)]))
}

/// The kind and work of a ⊙ b.
fn elementwise(k: usize, a: Kind, b: Kind) -> (Kind, Work) {
    (a.times(b), hadamard(k, &[a, b].map(Form::from)))
}

/// The work of W a, where W is k × k₁.
fn sum(k: usize, k1: usize, a: Kind) -> Work {
    contraction(k, &[(a.into(), k1)])
}

impl<F: Real, const C: bool> Plan<F, C> {
    fn width(&self, step: usize) -> usize {
        self.program.width(step)
    }

    fn marginal_work(&self, rows: &Batch) -> Work {
        let mut work = Work::default();
        let mut planner = Planner::new(Grouping::ByKind, F::LANES);
        planner.begin(rows.len());
        let schedule =
            Schedule::new(&self.program, &mut planner, |row, variable| rows.kind(row, variable));
        for (index, step) in self.program.steps().iter().enumerate() {
            for tile in schedule.at(index).tiles() {
                let [first, second] = tile.kinds;
                let of_row = match &step.kind {
                    StepKind::Leaf { .. } => {
                        let leaf = self.leaf(step.leaves.start);
                        let is_product = tile.is_pure() && leaf.packed.is_some();
                        let inner = if is_product { leaf.basis.width() } else { 0 };
                        Work::full((step.width * inner) as u128)
                    }
                    StepKind::Kronecker { inputs: [a, b], .. } => {
                        product([step.width, self.width(*a), self.width(*b)], first, second).1
                    }
                    StepKind::Hadamard { .. } => elementwise(step.width, first, second).1,
                    StepKind::Sum { input, .. } => sum(step.width, self.width(*input), first),
                };
                work += of_row * tile.rows.len();
            }
        }
        work
    }

    /// The work of [`traverse`](Self::traverse) for one row without evidence: the environment of
    /// the first input with an identity, that of the second input with the vector of the first, and
    /// the way back up if another input needs the message.
    fn traversal_work(&self, visit: Visit) -> Work {
        let mut work = Work::default();
        // An environment that is drawn from its matrix is a vector.
        let entered = |kind: Kind| match (visit, kind) {
            (Visit::Draw, Kind::Mixed) => Kind::Pure,
            (Visit::Score | Visit::Code | Visit::Draw, kind) => kind,
        };
        let outermost =
            if self.width(self.program.root()) > 1 { Kind::Identity } else { Kind::Pure };
        let mut stack = vec![(self.program.root(), outermost, false)];
        while let Some((index, environment, needed)) = stack.pop() {
            let step = &self.program.steps()[index];
            match &step.kind {
                StepKind::Leaf { .. } => {
                    let leaf = self.leaf(step.leaves.start);
                    let values = leaf.basis.natural_domain().num_values();
                    let times = if visit == Visit::Score { 1 } else { values.unwrap_or(1) };
                    work += density_work(step.width, environment, C) * times;
                    if needed && leaf.packed.is_some() {
                        work += Work::full((step.width * leaf.basis.width()) as u128);
                    }
                }
                StepKind::Sum { input, .. } => {
                    let k1 = self.width(*input);
                    // On the way down, the weight is not semi-unitary, so an identity does not
                    // remain one.
                    let below =
                        if environment == Kind::Identity { Kind::Mixed } else { environment };
                    work += sum(k1, step.width, environment);
                    if needed {
                        work += sum(step.width, k1, Kind::Pure);
                    }
                    stack.push((*input, entered(below), needed));
                }
                StepKind::Kronecker { inputs, .. } => {
                    let first = self.program.first_side(*inputs);
                    let (ka, kb) = (self.width(inputs[first]), self.width(inputs[1 - first]));
                    let (of_first, down) =
                        product([ka, step.width, kb], environment, Kind::Identity);
                    let (of_second, across) =
                        product([kb, step.width, ka], environment, Kind::Pure);
                    let of_first = if of_first == Kind::Identity { Kind::Mixed } else { of_first };
                    work += down + across;
                    if needed {
                        work += product([step.width, ka, kb], Kind::Pure, Kind::Pure).1;
                    }
                    stack.push((inputs[first], entered(of_first), true));
                    stack.push((inputs[1 - first], entered(of_second), needed));
                }
                StepKind::Hadamard { inputs } => {
                    let first = self.program.first_side(*inputs);
                    let (of_first, down) = elementwise(step.width, environment, Kind::Identity);
                    let (of_second, across) = elementwise(step.width, environment, Kind::Pure);
                    work += down + across;
                    if needed {
                        work += Work::full(step.width as u128);
                    }
                    stack.push((inputs[first], entered(of_first), true));
                    stack.push((inputs[1 - first], entered(of_second), needed));
                }
            }
        }
        work
    }
}

/// The work of the density of one value.
fn density_work(k: usize, environment: Kind, complex: bool) -> Work {
    match environment {
        Kind::Identity | Kind::Pure => Work::full(k as u128),
        // For a Hermitian E, Σ E[k,l] fₖ fₗ* is real. So a pair of entries takes a quarter of two
        // complex multiply-adds, once fₖ fₗ* is known.
        Kind::Mixed => {
            let (k, half) = (k as u128, (k * (k + 1) / 2) as u128);
            let hermitian = if complex { half.div_ceil(2) } else { half };
            Work { table: k * k + k, hermitian }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::{Orthonormal, Weights};
    use crate::structure::{RegionTree, Structure};
    use crate::{Basis, Domain, Evidence, Query, Variable, ops};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn circuit(tree: RegionTree) -> Orthonormal {
        let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(3)), Basis::indicator(3));
        let structure = Structure::new(tree, leaf).width(3);
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        Orthonormal::verify(structure.build(Weights::Haar, rng).unwrap()).unwrap()
    }

    #[test]
    fn one_row_counts_as_the_single_row_pass_does() {
        let circuit = circuit(RegionTree::balanced(8));
        let engine = Engine::new(&circuit);
        for unknown in [vec![], vec![0], vec![0, 1, 2, 3], vec![1, 4, 5], vec![0, 2, 5, 7]] {
            let mut query = Query::unknown(8);
            for v in (0..8).filter(|v| !unknown.contains(v)) {
                query.set(circuit.variables(), v, Evidence::Value(1.0)).unwrap();
            }
            let single = ops::marginalize(&circuit, &query).unwrap().multiply_adds.ours;
            let rows = Batch::from_queries(circuit.variables(), &[query]).unwrap();
            let Work { table, hermitian } = engine.marginal_work(&rows);
            // The single-row pass also counts the functions of its inputs.
            assert_eq!(single, table + 3 * (8 - unknown.len() as u128), "{unknown:?}");
            assert!(hermitian <= table && 2 * hermitian >= table);
        }
    }

    #[test]
    fn a_traversal_is_quadratic_in_the_width_on_a_linear_tree() {
        let engine = Engine::new(&circuit(RegionTree::linear(3)));
        // Weights [1; 3, 3], then [3; 3, 3]. The leaf is visited first. Down 3·1·3 + 9·3, across
        // 3·1·3 + 3·1; then down 3·3·3 + 9·3, across 3·3·3 + 3·3. Two leaves have matrices (9 + 3),
        // the last one a vector (3).
        let expected = (9 + 27 + 12) + (27 + 27 + 36) + 12 + 12 + 3;
        assert_eq!(engine.prefix_work().table, expected);
        assert_eq!(engine.coding_work().table, expected + 2 * (12 + 12 + 3));
        // A sample has vectors at all three leaves.
        assert_eq!(engine.sample_work().table, expected - 12 - 12 + 3 + 3 + 2 * (3 + 3 + 3));
    }

    #[test]
    fn a_traversal_of_an_inner_node_takes_two_fourth_powers_and_four_cubes() {
        let engine = Engine::new(&circuit(RegionTree::balanced(8)));
        let other = Engine::new(&circuit(RegionTree::balanced(16)));
        // The left half of the larger tree is like the smaller tree, with a matrix as the
        // environment of every node.
        let (k, nodes, leaves) = (3_u128, 7, 8);
        let inner = nodes * (2 * k.pow(4) + 4 * k.pow(3) + k * k) + leaves * (k * k + k);
        let root = k * k + k.pow(3) + k * k + k;
        let right = other.prefix_work().table - inner - root;
        // The right half has a vector. It is like the smaller tree, except that its output has
        // three rows instead of one.
        let top = |k0: u128| (k0 * k * k + k.pow(3)) + k0 * k * k + k0 * k;
        assert_eq!(right, engine.prefix_work().table - top(1) + top(k));
    }

    #[test]
    fn a_sample_takes_four_cubes_at_an_inner_node() {
        let [small, large] = [8, 16].map(|d| {
            let engine = Engine::new(&circuit(RegionTree::balanced(d)));
            engine.sample_work().table
        });
        // The left half of the larger tree is like the smaller tree, except that all of its
        // messages are needed on the way up and its root has three outputs. In the right half, only
        // the last messages are not needed. All widths and numbers of values are 3.
        let (k, leaves) = (3_u128, 8);
        let node = 2 * (k.pow(3) + k * k) + 2 * k.pow(3);
        let left = 7 * node + leaves * k * k;
        let root = k * k + k.pow(3) + k * k + k;
        let right = large - left - root;
        let top = |k0: u128| (k0 * k * k + k.pow(3)) + k0 * k * k + k0 * k;
        assert_eq!(right, small - top(1) + top(k));
    }
}

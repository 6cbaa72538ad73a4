//! How many multiply-adds a pass takes: the floor that its time is compared with.

use std::ops::{Add, AddAssign, Mul};

use super::message::Kind;
use super::plan::{Plan, StepKind};
use super::{AnyPlan, Batch, Engine, Real};

/// The multiply-adds of a pass over some rows, of complex numbers (8 floating-point operations each) in a complex
/// circuit and of real ones (2) in a real circuit.
///
/// Counted are the products of the message table; not counted are rescaling, copies and the values of input functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// As the message table has them: every entry of every product.
    pub table: u128,
    /// With one half of each matrix that is known to be Hermitian left out: what cannot be avoided.
    pub hermitian: u128,
}

impl Work {
    fn full(count: usize) -> Self {
        Self { table: count as u128, hermitian: count as u128 }
    }

    /// A K × K Hermitian result whose every entry takes `len` multiply-adds.
    fn hermitian(k: usize, len: usize) -> Self {
        Self { table: (k * k * len) as u128, hermitian: (k * (k + 1) / 2 * len) as u128 }
    }

    /// Σ E[k,l] fₖ fₗ* of a Hermitian E: a real number, so that a pair of entries takes a quarter of two complex
    /// multiply-adds once fₖ fₗ* is known.
    fn quadratic_form(k: usize, complex: bool) -> Self {
        let half = k * (k + 1) / 2;
        let hermitian = if complex { half.div_ceil(2) } else { half };
        Self { table: (k * k + k) as u128, hermitian: hermitian as u128 }
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { table: self.table + other.table, hermitian: self.hermitian + other.hermitian }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<usize> for Work {
    type Output = Self;

    fn mul(self, times: usize) -> Self {
        let times = times as u128;
        Self { table: self.table * times, hermitian: self.hermitian * times }
    }
}

impl<F: Real> Engine<F> {
    /// The multiply-adds of [`log_marginals`](Self::log_marginals) on these rows, by the kinds of their messages.
    ///
    /// # Panics
    /// If the rows are made for another number of variables.
    pub fn marginal_work(&self, rows: &Batch) -> Work {
        assert_eq!(rows.num_variables(), self.variables().len(), "variables of the rows");
        match &self.plan {
            AnyPlan::Real(plan) => plan.marginal_work(rows),
            AnyPlan::Complex(plan) => plan.marginal_work(rows),
        }
    }

    /// The multiply-adds of [`log_conditionals`](Self::log_conditionals) for one row.
    pub fn prefix_work(&self) -> Work {
        match &self.plan {
            AnyPlan::Real(plan) => plan.traversal_work(Visit::Value),
            AnyPlan::Complex(plan) => plan.traversal_work(Visit::Value),
        }
    }

    /// The multiply-adds of one sample without evidence: those of the traversal, and at every variable of a finite
    /// domain the probabilities of all its values.
    pub fn sample_work(&self) -> Work {
        match &self.plan {
            AnyPlan::Real(plan) => plan.traversal_work(Visit::AllValues),
            AnyPlan::Complex(plan) => plan.traversal_work(Visit::AllValues),
        }
    }
}

/// At how many values of its variable a leaf's density is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Value,
    AllValues,
}

/// The message table of W (a ⊗ b), W of k × k₁ × k₂; what two identities make is known beforehand.
fn contraction([k, k1, k2]: [usize; 3], a: Kind, b: Kind) -> (Kind, Work) {
    use Kind::{Identity, Mixed, Pure};
    let size = k * k1 * k2;
    match (a, b) {
        (Identity, Identity) => (Identity, Work::default()),
        (Pure, Pure) => (Pure, Work::full(size)),
        (Pure, Identity) => (Mixed, Work::full(size) + Work::hermitian(k, k2)),
        (Identity, Pure) => (Mixed, Work::full(size) + Work::hermitian(k, k1)),
        (Pure, Mixed) => (Mixed, Work::full(size + k * k2 * k2) + Work::hermitian(k, k2)),
        (Mixed, Pure) => (Mixed, Work::full(size + k * k1 * k1) + Work::hermitian(k, k1)),
        (Mixed, Identity) => (Mixed, Work::full(size * k1) + Work::hermitian(k, k1 * k2)),
        (Identity, Mixed) => (Mixed, Work::full(size * k2) + Work::hermitian(k, k1 * k2)),
        (Mixed, Mixed) => (Mixed, Work::full(size * (k1 + k2)) + Work::hermitian(k, k1 * k2)),
    }
}

/// The message table of a ⊙ b.
fn elementwise(k: usize, a: Kind, b: Kind) -> (Kind, Work) {
    use Kind::{Identity, Mixed, Pure};
    match (a, b) {
        (Identity, Identity) => (Identity, Work::default()),
        (Pure, Pure) => (Pure, Work::full(k)),
        (Pure, Identity) | (Identity, Pure) => (Mixed, Work::full(k)),
        (Mixed, Identity) | (Identity, Mixed) => (Mixed, Work::default()),
        (Pure, Mixed) | (Mixed, Pure) => (Mixed, Work::hermitian(k, 2)),
        (Mixed, Mixed) => (Mixed, Work::hermitian(k, 1)),
    }
}

/// W a, W of k × k₁.
fn sum(k: usize, k1: usize, a: Kind) -> Work {
    match a {
        Kind::Identity => Work::default(),
        Kind::Pure => Work::full(k * k1),
        Kind::Mixed => Work::full(k * k1 * k1) + Work::hermitian(k, k1),
    }
}

impl<F: Real, const C: bool> Plan<F, C> {
    fn width(&self, step: usize) -> usize {
        self.steps[step].width
    }

    fn marginal_work(&self, rows: &Batch) -> Work {
        let mut work = Work::default();
        let mut kinds = vec![Kind::Identity; self.steps.len()];
        for row in 0..rows.len() {
            for (index, step) in self.steps.iter().enumerate() {
                let (kind, added) = match &step.kind {
                    StepKind::Leaf(leaf) => {
                        let variable = leaf.variable.index();
                        let inner = leaf.packed.as_ref().map_or(0, |_| leaf.basis.width());
                        if !rows.is_missing(row, variable) {
                            (Kind::Pure, Work::full(step.width * inner))
                        } else if rows.part(row, variable).is_some() {
                            (Kind::Mixed, Work::default())
                        } else {
                            (Kind::Identity, Work::default())
                        }
                    }
                    StepKind::Kronecker { inputs: [a, b], .. } => {
                        let shape = [step.width, self.width(*a), self.width(*b)];
                        contraction(shape, kinds[*a], kinds[*b])
                    }
                    StepKind::Hadamard { inputs: [a, b] } => {
                        elementwise(step.width, kinds[*a], kinds[*b])
                    }
                    StepKind::Sum { input, .. } => {
                        (kinds[*input], sum(step.width, self.width(*input), kinds[*input]))
                    }
                };
                kinds[index] = kind;
                work += added;
            }
        }
        work
    }

    /// One row of [`traverse`](Self::traverse) without evidence: the first input's environment against an identity, the
    /// second's against the first's vector, and the way back up where another input waits for it.
    fn traversal_work(&self, visit: Visit) -> Work {
        let mut work = Work::default();
        let outermost = if self.width(self.root()) > 1 { Kind::Identity } else { Kind::Pure };
        let mut stack = vec![(self.root(), outermost, false)];
        while let Some((index, environment, needed)) = stack.pop() {
            let step = &self.steps[index];
            match &step.kind {
                StepKind::Leaf(leaf) => {
                    let values = leaf.basis.natural_domain().num_values();
                    let times = if visit == Visit::Value { 1 } else { values.unwrap_or(1) };
                    work += at_leaf(step.width, environment, C) * times;
                    if needed && leaf.packed.is_some() {
                        work += Work::full(step.width * leaf.basis.width());
                    }
                }
                StepKind::Sum { input, .. } => {
                    let k1 = self.width(*input);
                    // Down by a weight that is not semi-unitary in this direction: an identity does not stay one.
                    let below =
                        if environment == Kind::Identity { Kind::Mixed } else { environment };
                    work += sum(k1, step.width, environment);
                    if needed {
                        work += sum(step.width, k1, Kind::Pure);
                    }
                    stack.push((*input, below, needed));
                }
                StepKind::Kronecker { inputs, .. } => {
                    let first = self.first_side(*inputs);
                    let (ka, kb) = (self.width(inputs[first]), self.width(inputs[1 - first]));
                    let (of_first, down) =
                        contraction([ka, step.width, kb], environment, Kind::Identity);
                    let (of_second, across) =
                        contraction([kb, step.width, ka], environment, Kind::Pure);
                    let of_first = if of_first == Kind::Identity { Kind::Mixed } else { of_first };
                    work += down + across;
                    if needed {
                        work += contraction([step.width, ka, kb], Kind::Pure, Kind::Pure).1;
                    }
                    stack.push((inputs[first], of_first, true));
                    stack.push((inputs[1 - first], of_second, needed));
                }
                StepKind::Hadamard { inputs } => {
                    let first = self.first_side(*inputs);
                    let (of_first, down) = elementwise(step.width, environment, Kind::Identity);
                    let (of_second, across) = elementwise(step.width, environment, Kind::Pure);
                    work += down + across;
                    if needed {
                        work += Work::full(step.width);
                    }
                    stack.push((inputs[first], of_first, true));
                    stack.push((inputs[1 - first], of_second, needed));
                }
            }
        }
        work
    }
}

/// The density of one value.
fn at_leaf(k: usize, environment: Kind, complex: bool) -> Work {
    match environment {
        Kind::Identity | Kind::Pure => Work::full(k),
        Kind::Mixed => Work::quadratic_form(k, complex),
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
            // The single row pass counts lower powers too: K² at each product, K at each input.
            let lower = 7 * 9 + 8 * 3;
            assert!(table <= single && single <= table + lower, "{unknown:?}: {table}, {single}");
            assert!(hermitian <= table && 2 * hermitian >= table);
        }
    }

    #[test]
    fn a_traversal_is_quadratic_in_the_width_on_a_linear_tree() {
        let engine = Engine::new(&circuit(RegionTree::linear(3)));
        // Outputs [1; 3, 3] then [3; 3, 3]. The leaf comes first: down 3·1·3 + 9·3, across 3·1·3; then down
        // 3·3·3 + 9·3, across 3·3·3. Two leaves have matrices (9 + 3), the last a vector (3).
        let expected = (9 + 27 + 9) + (27 + 27 + 27) + 12 + 12 + 3;
        assert_eq!(engine.prefix_work().table, expected);
        assert_eq!(engine.sample_work().table, expected + 2 * (12 + 12 + 3));
    }

    #[test]
    fn a_traversal_of_an_inner_node_takes_two_fourth_powers_and_four_cubes() {
        let engine = Engine::new(&circuit(RegionTree::balanced(8)));
        let other = Engine::new(&circuit(RegionTree::balanced(16)));
        // The left half of the larger tree is the smaller one with a matrix for an environment, at every node.
        let (k, nodes, leaves) = (3_u128, 7, 8);
        let inner = nodes * (2 * k.pow(4) + 4 * k.pow(3)) + leaves * (k * k + k);
        let root = k * k + k.pow(3) + k * k;
        let right = other.prefix_work().table - inner - root;
        // The right half has a vector: as the smaller tree, but that its output has three rows in place of one.
        let top = |k0: u128| (k0 * k * k + k.pow(3)) + k0 * k * k;
        assert_eq!(right, engine.prefix_work().table - top(1) + top(k));
    }
}

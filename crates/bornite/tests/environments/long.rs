//! Thousands of variables: no underflow, no recursion.

use bornite::circuit::Weights;
use bornite::ops::{
    Budget, Environments, Factor, expectation, log_marginal, orthonormalize, overlap, truncate,
};
use bornite::structure::{RegionTree, Structure};
use bornite::{Basis, Domain, Orthonormal, Query, Variable, VariableId};

use crate::world::{assert_close, rng};

fn circuit(tree: RegionTree, seed: u64) -> Orthonormal {
    let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(3)), Basis::indicator(3));
    let structure = Structure::new(tree, leaf).width(4);
    orthonormalize(&structure.build(Weights::Gaussian, &mut rng(seed)).unwrap()).unwrap().circuit
}

fn check(c: &Orthonormal) {
    let d = c.num_variables();
    let variables = c.variables();
    let row: Vec<f64> =
        (0..d).map(|v| if v % 7 == 3 { f64::NAN } else { (v % 3) as f64 }).collect();
    let query = Query::row(variables, &row).unwrap();
    let given = Environments::given(c, &query).unwrap();
    let log = log_marginal(c, &query).unwrap();
    assert!(log < -1000.0 && log.is_finite());
    assert_close(given.log_evidence(), log, 1e-12, "evidence");
    for v in [3, 10, d / 2 / 7 * 7 + 3] {
        let p = given.marginal(VariableId::new(v));
        for x in 0..3 {
            let mut row = row.clone();
            row[v] = f64::from(x);
            let both = log_marginal(c, &Query::row(variables, &row).unwrap()).unwrap();
            assert_close(p.density(f64::from(x)), (both - log).exp(), 1e-9, "posterior");
        }
    }
    let (a, b) = (VariableId::new(3), VariableId::new(10));
    let table = given.pairwise(a, b).unwrap();
    assert_close(table.data().iter().sum(), 1.0, 1e-12, "pair");
    let both = [(a, Factor::Power(1)), (b, Factor::Power(1))];
    let product = expectation(c, &both, &query).unwrap();
    let covariance = product - given.mean(a) * given.mean(b);
    assert_close(given.covariance(a, b), covariance, 1e-9, "covariance");

    let all = Environments::new(c);
    for layer in c.layer_ids() {
        if !matches!(c.layer(layer), bornite::circuit::Layer::Kronecker { .. }) {
            assert_close(all.spectrum(layer).unwrap().iter().sum(), 1.0, 1e-11, "spectrum");
        }
    }
    let few = Query::unknown(d).with_value(variables, "x0", 1.0).unwrap();
    let few = few.with_value(variables, "x1", 2.0).unwrap();
    let answer = all.marginalize(&few).unwrap();
    assert_close(answer.log_marginal, log_marginal(c, &few).unwrap(), 1e-9, "few");
    assert!(answer.layers_touched <= 5);
}

#[test]
fn three_thousand_variables_in_a_line() {
    check(&circuit(RegionTree::linear(3000), 1));
}

#[test]
fn three_thousand_variables_in_halves() {
    check(&circuit(RegionTree::balanced(3000), 2));
}

#[test]
fn ten_thousand_variables_overlap_and_shrink() {
    let (a, b) = (circuit(RegionTree::linear(10_000), 3), circuit(RegionTree::linear(10_000), 4));
    let x = overlap(&a, &b).unwrap();
    assert!(x.log_magnitude() < -1000.0 && x.log_magnitude().is_finite());
    assert_close(overlap(&a, &a).unwrap().log_magnitude(), 0.0, 1e-9, "itself");
    let t = truncate(&a, Budget::Error(0.05)).unwrap();
    assert!(t.bound <= 0.05 && overlap(&a, &t.circuit).unwrap().amplitude_distance() <= t.bound);
}

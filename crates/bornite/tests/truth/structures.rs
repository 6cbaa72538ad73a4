//! Circuits made over region trees.

use bornite::circuit::{CircuitError, Layer, Weights, check_orthonormality};
use bornite::ops::orthonormalize;
use bornite::structure::{Product, RegionTree, Structure};
use bornite::{Basis, Circuit, Domain, Variable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::world::{Tally, layer_steps};

fn leaf(n: usize) -> (Variable, Basis) {
    let (domain, basis) = match n % 3 {
        0 => (Domain::Finite(2), Basis::indicator(2)),
        1 => (Domain::Real, Basis::hermite(3, 0.0, 1.0).unwrap()),
        _ => (Domain::Finite(5), Basis::indicator(5)),
    };
    (Variable::new(format!("x{n}"), domain), basis)
}

fn trees(rng: &mut ChaCha8Rng) -> Vec<RegionTree> {
    vec![
        RegionTree::linear(1),
        RegionTree::linear(7),
        RegionTree::balanced(8),
        RegionTree::random(9, rng),
        RegionTree::image(3, 2, 2),
        RegionTree::parse("[[0, 3, 1], [2, [4, 5, 7, 6]], 8]").unwrap(),
    ]
}

/// Every sum has at most as many outputs as inputs, and the widths asked for are kept.
fn check_widths(c: &Circuit, width: usize, output_width: usize, what: &str) {
    for id in c.layer_ids() {
        if let Layer::Sum { input, .. } = c.layer(id) {
            if id == c.output() {
                assert_eq!(c.width(id), output_width, "{what}");
            } else {
                assert!(c.width(id) <= c.width(*input), "{what}: layer {id}");
                assert!(c.width(id) <= width, "{what}: layer {id}");
            }
        }
    }
}

#[test]
fn structures_keep_the_conditions_of_the_paper_and_haar_weights_make_them_orthonormal() {
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let mut tally = Tally::new("orthonormal structures stay");
    for tree in trees(rng) {
        for width in [1, 3, 8] {
            for (r, weights) in [(1, Weights::Haar), (3, Weights::RealHaar), (2, Weights::Gaussian)]
            {
                let regions = tree.regions().len();
                let hadamard: Vec<bool> = (0..regions).map(|_| rng.random()).collect();
                let choose =
                    |n: usize| if hadamard[n] { Product::Hadamard } else { Product::Kronecker };
                let structure = Structure::new(tree.clone(), leaf).width(width).output_width(r);
                let c = structure.products(choose).build(weights, rng).unwrap();
                let what = format!("{tree}, {width}, {weights:?}, Hadamard {hadamard:?}");
                check_widths(&c, width, r, &what);
                let report = check_orthonormality(&c);
                assert_eq!(report.holds(), weights.is_semi_unitary(), "{what}: {report:?}");
                if weights.is_semi_unitary() {
                    check_unchanged(&c, &what, &mut tally);
                }
            }
        }
    }
}

/// A circuit that is orthonormal already is left as it is, up to the rounding of its output's norm.
fn check_unchanged(c: &Circuit, what: &str, tally: &mut Tally) {
    let result = orthonormalize(c).unwrap();
    assert_eq!(result.circuit.layers(), c.layers(), "{what}");
    let inner = c.weights().len() - 1;
    assert_eq!(result.circuit.weights()[..inner], c.weights()[..inner], "{what}");
    tally.check((result.log_partition, 0.0), (layer_steps(c), 1.0), || what.to_owned());
}

#[test]
fn structures_that_cannot_be_built_are_an_error() {
    let rng = &mut ChaCha8Rng::seed_from_u64(2);
    for weights in [Weights::Gaussian, Weights::RealGaussian, Weights::Haar, Weights::RealHaar] {
        let structure = Structure::new(RegionTree::balanced(4), leaf);
        let zero = structure.clone().width(0).build(weights, rng).unwrap_err();
        assert!(matches!(zero, CircuitError::ZeroWidth { .. }), "{zero}");
        let zero = structure.output_width(0).build(weights, rng).unwrap_err();
        assert!(matches!(zero, CircuitError::ZeroWidth { .. }), "{zero}");
        let words = |n: usize| {
            (Variable::new(format!("x{n}"), Domain::Finite(20_000)), Basis::indicator(20_000))
        };
        let wide = Structure::new(RegionTree::linear(3), words).width(1 << 20);
        let error = wide.build(weights, rng).unwrap_err();
        // Two inputs, their product, and the sum over it.
        assert!(
            matches!(error, CircuitError::TooLarge { layer, .. } if layer.index() == 3),
            "{error}"
        );
        let nested: Vec<String> = (0..64).map(|n| n.to_string()).collect();
        let flat = RegionTree::parse(&format!("[{}]", nested.join(","))).unwrap();
        let error = Structure::new(flat, leaf).build(weights, rng).unwrap_err();
        assert!(matches!(error, CircuitError::TooLarge { .. }), "{error}");
    }
    let wrong = |n: usize| (Variable::new(format!("x{n}"), Domain::Real), Basis::indicator(2));
    let error = Structure::new(RegionTree::linear(2), wrong).build(Weights::Haar, rng).unwrap_err();
    assert!(matches!(error, CircuitError::BasisDomain { .. }), "{error}");
}

use bornite::circuit::Weights;
use bornite::linalg::{Complex64, Matrix};
use bornite::ops::{Budget, OperationError, orthonormalize, overlap, truncate};
use bornite::structure::{Product, RegionTree, Structure};
use bornite::{Basis, Circuit, Domain, Orthonormal, Variable};

use crate::world::{Truth, assert_close, finite_circuits, normalize_output, rng, singular_values};

fn circuit(tree: &str, width: usize, r: usize, weights: Weights, seed: u64) -> Circuit {
    let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(3)), Basis::indicator(3));
    let structure = Structure::new(RegionTree::parse(tree).unwrap(), leaf);
    let product = if seed.is_multiple_of(2) { Product::Kronecker } else { Product::Hadamard };
    let structure = structure.width(width).output_width(r).product(product);
    structure.build(weights, &mut rng(seed)).unwrap()
}

/// X of two circuits, and Bhattacharyya's coefficient, by enumeration.
fn enumerated(a: &Orthonormal, b: &Orthonormal) -> (Matrix<Complex64>, f64) {
    let (s, t) = (Truth::new(a), Truth::new(b));
    let mut x = Matrix::<Complex64>::zeros(a.width(a.output()), b.width(b.output()));
    let mut coefficient = 0.0;
    for n in 0..s.p.len() {
        coefficient += (s.p[n] * t.p[n]).sqrt();
        for (k, u) in s.amplitudes[n].iter().enumerate() {
            for (l, v) in t.amplitudes[n].iter().enumerate() {
                x[(k, l)] += u.conj() * v;
            }
        }
    }
    (x, coefficient)
}

fn check(a: &Orthonormal, b: &Orthonormal, what: &str) {
    let (x, coefficient) = enumerated(a, b);
    let found = overlap(a, b).unwrap();
    let magnitude: f64 = singular_values(&x).iter().sum();
    assert_close(found.magnitude(), magnitude, 1e-11, what);
    assert_close(found.fidelity(), magnitude * magnitude, 1e-11, what);
    assert!(found.magnitude() <= coefficient + 1e-12, "{what}");
    let hellinger = (1.0 - coefficient).max(0.0).sqrt();
    assert!(found.amplitude_distance() >= hellinger - 1e-7, "{what}");
    match found.inner_product() {
        Some(z) => {
            let trace: Complex64 = (0..x.rows()).map(|k| x[(k, k)]).sum();
            assert!((z - trace).norm() < 1e-11, "{what}: {z} {trace}");
        }
        None => assert_ne!(x.rows(), x.cols()),
    }
}

#[test]
fn overlaps_match_enumeration_for_any_widths_and_products() {
    // A Hadamard product of three becomes two products of two when it is made orthonormal: another tree.
    let tree = "[[0, 1], [[2, 3], 4]]";
    let mut circuits = Vec::new();
    for (n, (width, r)) in [(2, 1), (4, 1), (3, 3), (5, 2)].into_iter().enumerate() {
        for weights in [Weights::Haar, Weights::RealHaar] {
            for odd in 0..2 {
                let c = circuit(tree, width, r, weights, 2 * n as u64 + odd);
                circuits.push(normalize_output(&c));
                circuits.push(orthonormalize(&c).unwrap().circuit);
            }
        }
    }
    for (i, a) in circuits.iter().enumerate() {
        for (j, b) in circuits.iter().enumerate() {
            check(a, b, &format!("{i} and {j}"));
        }
    }
}

#[test]
fn products_of_three_compare() {
    let made = |width, r, seed| {
        normalize_output(&circuit("[[0, 1], [2, 3, 4]]", width, r, Weights::Haar, seed))
    };
    let circuits = [made(2, 1, 0), made(3, 1, 1), made(4, 2, 2), made(3, 2, 3)];
    for a in &circuits {
        for b in &circuits {
            check(a, b, "three");
        }
    }
}

#[test]
fn a_circuit_overlaps_itself_in_full() {
    for (name, c) in finite_circuits() {
        let x = overlap(&c, &c).unwrap();
        assert_close(x.fidelity(), 1.0, 1e-12, &name);
        assert!(x.amplitude_distance() < 1e-6, "{name}");
        let z = x.inner_product().unwrap();
        assert!((z - 1.0).norm() < 1e-12, "{name}");
    }
}

#[test]
fn a_truncated_circuit_still_compares() {
    for (name, c) in finite_circuits() {
        let smaller = truncate(&c, Budget::Width(2)).unwrap();
        check(&c, &smaller.circuit, &name);
        assert!(
            overlap(&c, &smaller.circuit).unwrap().amplitude_distance() <= smaller.bound + 1e-7
        );
    }
}

#[test]
fn other_structures_are_named() {
    let kron = |tree: &str| orthonormalize(&circuit(tree, 2, 1, Weights::Haar, 0)).unwrap().circuit;
    let a = kron("[[0, 1], 2]");
    let error = overlap(&a, &kron("[0, [1, 2]]")).unwrap_err();
    assert!(matches!(error, OperationError::StructuresDiffer { .. }), "{error}");
    let error = overlap(&a, &kron("[0, 1, 2]")).unwrap_err();
    assert!(error.to_string().contains("layer"), "{error}");
    assert_eq!(
        overlap(&a, &kron("[0, 1]")).unwrap_err(),
        OperationError::VariablesDiffer { variable: 2 }
    );
}

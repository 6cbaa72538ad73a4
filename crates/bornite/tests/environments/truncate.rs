use bornite::circuit::{Layer, Weights, check_orthonormality};
use bornite::linalg::{Complex64, Matrix};
use bornite::ops::{Budget, Environments, OperationError, orthonormalize, truncate};
use bornite::structure::{RegionTree, Structure};
use bornite::{Basis, CircuitBuilder, Domain, LayerId, Orthonormal, Variable};

use crate::world::{Truth, assert_close, continuous_circuit, finite_circuits, rng};

/// What is left of √(1 − 1) after a sum over all points.
const ROUNDING: f64 = 1e-7;

fn hellinger(a: &Orthonormal, b: &Orthonormal) -> f64 {
    let (s, t) = (Truth::new(a), Truth::new(b));
    let coefficient: f64 = s.p.iter().zip(&t.p).map(|(p, q)| (p * q).sqrt()).sum();
    (1.0 - coefficient).max(0.0).sqrt()
}

#[test]
fn the_true_error_is_below_the_bound_and_the_bound_below_the_budget() {
    let mut cut = 0;
    for (name, c) in finite_circuits() {
        for error in [0.0, 1e-6, 0.01, 0.1, 0.3, 0.7, 1.0] {
            let t = truncate(&c, Budget::Error(error)).unwrap();
            assert!(t.bound <= error * (1.0 + 1e-12), "{name}: {} of {error}", t.bound);
            let found = hellinger(&c, &t.circuit);
            assert!(found <= t.bound + ROUNDING, "{name} at {error}: {found} of {}", t.bound);
            assert!(check_orthonormality(&t.circuit).holds());
            assert_eq!(t.circuit.is_real(), c.is_real());
            cut += usize::from(t.widths.iter().any(|w| w.after < w.before));
        }
        for width in 1..5 {
            let t = truncate(&c, Budget::Width(width)).unwrap();
            let found = hellinger(&c, &t.circuit);
            assert!(found <= t.bound + ROUNDING, "{name} at {width}: {found} of {}", t.bound);
            assert!(t.widths.iter().all(|w| w.after <= width && w.after <= w.before), "{name}");
        }
    }
    assert!(cut > 100, "{cut}");
}

#[test]
fn nothing_discarded_is_exact() {
    for (name, c) in finite_circuits() {
        for budget in [Budget::Error(0.0), Budget::Width(100), Budget::Widths(&|_| 64)] {
            let t = truncate(&c, budget).unwrap();
            assert_eq!(t.circuit, c, "{name}, {budget:?}");
            assert_eq!((t.bound, t.loss), (0.0, 0.0));
        }
    }
}

#[test]
fn more_budget_means_smaller_circuits() {
    for (name, c) in finite_circuits() {
        let mut last: Option<(f64, usize)> = None;
        for error in [1e-3, 0.05, 0.1, 0.2, 0.4, 0.8] {
            let t = truncate(&c, Budget::Error(error)).unwrap();
            let kept: usize = t.widths.iter().map(|w| w.after).sum();
            if let Some((loss, before)) = last {
                assert!(t.loss >= loss && kept <= before, "{name} at {error}");
            }
            last = Some((t.loss, kept));
        }
        let mut last = 0.0;
        for width in [8, 4, 3, 2, 1] {
            let t = truncate(&c, Budget::Width(width)).unwrap();
            assert!(t.loss >= last, "{name} at {width}");
            last = t.loss;
        }
    }
}

#[test]
fn one_cut_loses_exactly_the_discarded_eigenvalues() {
    for (name, c) in finite_circuits() {
        let all = Environments::new(&c);
        for change in truncate(&c, Budget::Width(100)).unwrap().widths {
            let width = |id: LayerId| if id == change.layer { 1 } else { usize::MAX };
            let t = truncate(&c, Budget::Widths(&width)).unwrap();
            if matches!(c.layer(change.layer), Layer::Hadamard { .. }) {
                continue;
            }
            let spectrum = all.spectrum(change.layer).unwrap();
            assert_close(t.loss, 1.0 - spectrum[0], 1e-12, &name);
            let x = bornite::ops::overlap(&c, &t.circuit).unwrap();
            // A single projection keeps n² = ⟨c|ĉ⟩.
            assert_close(x.fidelity(), spectrum[0], 1e-11, &name);
            assert_close(t.bound, x.amplitude_distance(), 1e-6, &name);
        }
    }
}

#[test]
fn independent_variables_shrink_to_width_one() {
    let mut b = CircuitBuilder::new();
    let (x, y) = (b.variable("x", Domain::Finite(2)), b.variable("y", Domain::Finite(2)));
    let (f, g) = (b.input(x, Basis::indicator(2)), b.input(y, Basis::indicator(2)));
    let product = b.kronecker([f, g]);
    let output = b.sum(product, Matrix::from_rows(&[[0.36, 0.48, 0.48, 0.64]]));
    let c = Orthonormal::verify(b.build(output).unwrap()).unwrap();
    let t = truncate(&c, Budget::Error(1e-6)).unwrap();
    assert!(t.widths.iter().all(|w| w.after == 1), "{:?}", t.widths);
    let (p, q) = (Truth::new(&c).p, Truth::new(&t.circuit).p);
    assert!(p.iter().zip(&q).all(|(p, q)| (p - q).abs() < 1e-14));
    assert!(t.bound < 1e-6);
}

#[test]
fn a_wide_model_of_a_nearly_narrow_state_becomes_narrow() {
    // Row k of every inner weight is 0.02ᵏ of the first, so that the later functions hardly matter.
    let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(3)), Basis::indicator(3));
    let structure = Structure::new(RegionTree::linear(6), leaf).width(9);
    let random = structure.build(Weights::Gaussian, &mut rng(1)).unwrap();
    let mut b = CircuitBuilder::new();
    for v in random.variables() {
        b.variable(v.name.clone(), v.domain.clone());
    }
    for id in random.layer_ids() {
        match random.layer(id) {
            Layer::Sum { input, weight } => {
                let w = random.weight(*weight).to_matrix::<Complex64>();
                let fade = |i: usize| 0.02_f64.powi(i32::try_from(i).unwrap());
                b.sum(*input, Matrix::from_fn(w.rows(), w.cols(), |i, j| w[(i, j)] * fade(i)))
            }
            layer => b.push(layer.clone()),
        };
    }
    let wide = orthonormalize(&b.build(random.output()).unwrap()).unwrap().circuit;
    let t = truncate(&wide, Budget::Error(1e-2)).unwrap();
    assert!(4 * t.circuit.num_parameters() < wide.num_parameters());
    let inner = t.widths.iter().filter(|w| w.before == 9);
    assert!(inner.clone().count() > 2 && inner.clone().all(|w| w.after <= 2), "{:?}", t.widths);
    let found = hellinger(&wide, &t.circuit);
    assert!(found > 0.0 && found <= t.bound && t.bound <= 1e-2, "{found} of {}", t.bound);
}

#[test]
fn continuous_circuits_shrink_too() {
    let c = continuous_circuit(3, 41);
    let t = truncate(&c, Budget::Error(0.3)).unwrap();
    assert!(t.circuit.num_parameters() < c.num_parameters());
    let x = bornite::ops::overlap(&c, &t.circuit).unwrap();
    assert!(x.amplitude_distance() <= t.bound + 1e-7 && t.bound <= 0.3);
}

#[test]
fn budgets_that_mean_nothing_are_refused() {
    let c = continuous_circuit(1, 43);
    for budget in [
        Budget::Error(-0.1),
        Budget::Error(1.5),
        Budget::Error(f64::NAN),
        Budget::Width(0),
        Budget::Widths(&|_| 0),
    ] {
        assert_eq!(truncate(&c, budget).unwrap_err(), OperationError::InvalidBudget);
    }
}

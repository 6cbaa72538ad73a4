//! Small random circuits, and all their values.

use bornite::basis::{Basis, FourierForm};
use bornite::circuit::{Layer, Weight, Weights, random_weight};
use bornite::linalg::{Complex64, Matrix};
use bornite::ops::{evaluate, orthonormalize};
use bornite::structure::{Product, RegionTree, Structure};
use bornite::{Circuit, CircuitBuilder, Domain, Evidence, LayerId, Orthonormal, Query, Variable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

pub(crate) fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let allowed = tolerance * expected.abs().max(1.0);
    assert!((found - expected).abs() <= allowed, "{what}: {found:e}, expected {expected:e}");
}

/// Scales the output weight of a circuit whose inner layers are orthonormal.
pub(crate) fn normalize_output(circuit: &Circuit) -> Orthonormal {
    let mut b = CircuitBuilder::new();
    for v in circuit.variables() {
        b.variable(v.name.clone(), v.domain.clone());
    }
    for id in circuit.layer_ids() {
        match circuit.layer(id) {
            Layer::Sum { input, weight } if id == circuit.output() => {
                let w = circuit.weight(*weight).to_matrix::<Complex64>().into_owned();
                let scale = w.norm2().sqrt().recip();
                let w = match circuit.weight(*weight) {
                    Weight::Real(m) => Weight::Real(m.scaled(scale)),
                    Weight::Complex(m) => Weight::Complex(m.scaled(scale)),
                };
                b.sum(*input, w)
            }
            Layer::Sum { input, weight } => b.sum(*input, circuit.weight(*weight).clone()),
            layer => b.push(layer.clone()),
        };
    }
    Orthonormal::verify(b.build(circuit.output()).unwrap()).unwrap()
}

fn leaf(values: usize) -> impl Fn(usize) -> (Variable, Basis) {
    move |v| {
        let v_values = values + v % 2;
        (Variable::new(format!("x{v}"), Domain::Finite(v_values)), Basis::indicator(v_values))
    }
}

/// Layers made by hand: products of three, products of products, tables, sums of sums, inputs without a sum.
fn by_hand(weights: Weights, r: usize, seed: u64) -> Orthonormal {
    let rng = &mut rng(seed);
    let mut b = CircuitBuilder::new();
    let ids: Vec<_> =
        (0..6).map(|v| b.variable(format!("x{v}"), Domain::Finite(2 + v % 3))).collect();
    let table = |functions, values, rng: &mut ChaCha8Rng| {
        let w = random_weight(functions, values, weights, rng);
        Basis::table(w.to_matrix::<Complex64>().into_owned()).unwrap()
    };
    let x0 = b.input(ids[0], Basis::indicator(2));
    let x1 = b.input(ids[1], table(2, 3, rng));
    let x2 = b.input(ids[2], Basis::indicator(4));
    let x3 = b.input(ids[3], Basis::indicator(2));
    let x4 = b.input(ids[4], table(3, 3, rng));
    let x5 = b.input(ids[5], table(4, 4, rng));
    // (x0 ⊗ x1 ⊗ x2) → 4 → 3
    let three = b.kronecker([x0, x1, x2]);
    let sum = b.sum(three, random_weight(4, 16, weights, rng));
    let left = b.sum(sum, random_weight(3, 4, weights, rng));
    // (x3 ⊗ (x4 as 2)) ⊙ x5, then a product of products.
    let x4 = b.sum(x4, random_weight(2, 3, weights, rng));
    let pair = b.kronecker([x3, x4]);
    let had = b.hadamard([pair, x5]);
    let nested = b.kronecker([left, had]);
    let output = b.sum(nested, random_weight(r, 12, weights, rng));
    normalize_output(&b.build(output).unwrap())
}

/// A product that no sum contracts, below another.
fn nested(r: usize, seed: u64) -> Orthonormal {
    let rng = &mut rng(seed);
    let mut b = CircuitBuilder::new();
    let inputs: Vec<LayerId> = (0..4)
        .map(|v| {
            let id = b.variable(format!("x{v}"), Domain::Finite(3));
            let f = b.input(id, Basis::indicator(3));
            b.sum(f, random_weight(2, 3, Weights::Haar, rng))
        })
        .collect();
    let inner = b.kronecker([inputs[0], inputs[1], inputs[2]]);
    let outer = b.kronecker([inner, inputs[3]]);
    let output = b.sum(outer, random_weight(r, 16, Weights::Haar, rng));
    normalize_output(&b.build(output).unwrap())
}

/// Orthonormal circuits of every shape over a few finite variables.
pub(crate) fn finite_circuits() -> Vec<(String, Orthonormal)> {
    let mut circuits = Vec::new();
    let trees = [
        ("balanced", RegionTree::balanced(5)),
        ("linear", RegionTree::linear(5)),
        ("wide", RegionTree::parse("[[0, 1, 2], [3, 4]]").unwrap()),
    ];
    for (t, (name, tree)) in trees.iter().enumerate() {
        for r in [1, 3] {
            let structure = Structure::new(tree.clone(), leaf(2)).width(4).output_width(r);
            for weights in [Weights::Gaussian, Weights::RealGaussian] {
                let built = structure.build(weights, &mut rng(10 * t as u64 + r as u64)).unwrap();
                let c = orthonormalize(&built).unwrap().circuit;
                circuits.push((format!("{name} {weights:?} r = {r}"), c));
            }
            for weights in [Weights::Haar, Weights::RealHaar] {
                for (kind, choose) in [("hadamard", 2), ("alternating", 3)] {
                    let products = |n: usize| match n % choose {
                        2 => Product::Kronecker,
                        _ => Product::Hadamard,
                    };
                    let s = structure.clone().products(products);
                    let built = s.build(weights, &mut rng(7 + t as u64)).unwrap();
                    let c = normalize_output(&built);
                    circuits.push((format!("{name} {kind} {weights:?} r = {r}"), c));
                }
            }
        }
    }
    for r in [1, 3] {
        circuits.push((format!("by hand r = {r}"), by_hand(Weights::Haar, r, 3)));
        circuits.push((format!("by hand, real, r = {r}"), by_hand(Weights::RealHaar, r, 4)));
        circuits.push((format!("nested r = {r}"), nested(r, 5)));
    }
    circuits
}

/// Every point of a finite circuit with its amplitude.
pub(crate) struct Truth {
    pub(crate) points: Vec<Vec<usize>>,
    pub(crate) amplitudes: Vec<Vec<Complex64>>,
    pub(crate) p: Vec<f64>,
}

impl Truth {
    pub(crate) fn new(circuit: &Circuit) -> Self {
        let sizes: Vec<usize> =
            circuit.variables().iter().map(|v| v.domain.num_values().unwrap()).collect();
        let count: usize = sizes.iter().product();
        let mut truth = Truth { points: Vec::new(), amplitudes: Vec::new(), p: Vec::new() };
        for mut n in 0..count {
            let mut point = Vec::new();
            for &v in &sizes {
                point.push(n % v);
                n /= v;
            }
            let x: Vec<f64> = point.iter().map(|&x| x as f64).collect();
            let a = evaluate(circuit, &x).unwrap().to_values();
            truth.p.push(a.iter().map(Complex64::norm_sqr).sum());
            truth.amplitudes.push(a);
            truth.points.push(point);
        }
        truth
    }

    /// Σ p(x) g(x) over the points that the evidence allows, but for variable `except`.
    pub(crate) fn sum(&self, query: &Query, except: &[usize], g: impl Fn(&[usize]) -> f64) -> f64 {
        let allows = |x: &[usize]| {
            query.evidence().iter().enumerate().all(|(v, e)| {
                except.contains(&v)
                    || match e {
                        Evidence::Unknown => true,
                        Evidence::Value(y) => x[v] as f64 == *y,
                        Evidence::In(bornite::basis::Part::Values(values)) => {
                            values.contains(&x[v])
                        }
                        Evidence::In(_) => unreachable!("finite domains have sets"),
                    }
            })
        };
        self.points.iter().zip(&self.p).filter(|(x, _)| allows(x)).map(|(x, p)| p * g(x)).sum()
    }
}

/// Random evidence about some variables of a finite circuit.
pub(crate) fn random_query(circuit: &Circuit, known: f64, seed: u64) -> Query {
    let rng = &mut rng(seed);
    let mut query = Query::unknown(circuit.num_variables());
    for (index, variable) in circuit.variables().iter().enumerate() {
        let v = variable.domain.num_values().unwrap();
        if rng.random::<f64>() >= known {
            continue;
        }
        let evidence = if rng.random::<bool>() {
            Evidence::Value(rng.random_range(0..v) as f64)
        } else {
            Evidence::In(bornite::basis::Part::Values(vec![0, v - 1]))
        };
        query.set(circuit.variables(), index, evidence).unwrap();
    }
    query
}

/// A circuit over one variable of every continuous family, and a finite one.
pub(crate) fn continuous_circuit(r: usize, seed: u64) -> Orthonormal {
    let variable = |v: usize| -> (Variable, Basis) {
        let (domain, basis) = match v {
            0 => (Domain::Real, Basis::hermite(4, 1.5, 0.7).unwrap()),
            1 => (Domain::Interval(-1.0, 3.0), Basis::legendre(5, -1.0, 3.0).unwrap()),
            2 => (Domain::HalfLine(2.0), Basis::laguerre(4, 2.0, 0.5).unwrap()),
            3 => (Domain::Circle(6.0), Basis::fourier(5, 0.0, 6.0, FourierForm::Complex).unwrap()),
            4 => (Domain::Real, Basis::gaussian(vec![(0.0, 1.0), (3.0, 0.5), (5.0, 2.0)]).unwrap()),
            5 => (
                Domain::Interval(0.0, 4.0),
                Basis::bspline(2, vec![0.0, 0.0, 0.0, 1.0, 2.5, 4.0, 4.0, 4.0]).unwrap(),
            ),
            _ => (Domain::Finite(3), Basis::indicator(3)),
        };
        (Variable::new(format!("x{v}"), domain), basis)
    };
    let tree = RegionTree::parse("[[0, 1, 2], [[3, 4], [5, 6]]]").unwrap();
    let structure = Structure::new(tree, variable).width(4).output_width(r);
    orthonormalize(&structure.build(Weights::Gaussian, &mut rng(seed)).unwrap()).unwrap().circuit
}

/// Composite Simpson on 2n panels.
pub(crate) fn simpson(low: f64, high: f64, n: usize, f: impl Fn(f64) -> f64) -> f64 {
    let h = (high - low) / (2 * n) as f64;
    let at = |i: usize| f(low + i as f64 * h);
    let odd: f64 = (0..n).map(|i| at(2 * i + 1)).sum();
    let even: f64 = (1..n).map(|i| at(2 * i)).sum();
    h / 3.0 * (at(0) + 4.0 * odd + 2.0 * even + at(2 * n))
}

/// The singular values of a matrix.
pub(crate) fn singular_values(m: &Matrix<Complex64>) -> Vec<f64> {
    bornite::linalg::row_svd(m).unwrap().values
}

//! Circuits at the limits: thousands of variables, numbers beyond the range of `f64`, shapes without a middle.

use bornite::circuit::{Weights, check_orthonormality, random_weight};
use bornite::linalg::{Complex64, Matrix};
use bornite::ops::{
    OperationError, evaluate, log_partition, log_unnormalized_marginal, marginalize,
    orthonormalize, square,
};
use bornite::structure::{Product, RegionTree, Structure};
use bornite::{
    Basis, Circuit, CircuitBuilder, Domain, LayerId, Orthonormal, Query, Variable, VariableId,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::world::{Recipe, Tally, World, layer_steps};

const MANY: usize = 10_000;

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn binary(n: usize) -> (Variable, Basis) {
    (Variable::new(format!("x{n}"), Domain::Finite(2)), Basis::indicator(2))
}

/// A vector, and the power of two that it is to be multiplied with.
struct Logged(Vec<Complex64>, i32);

impl Logged {
    fn new(v: &[Complex64], exponent: i32) -> Self {
        let norm = v.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
        let taken = norm.log2().floor() as i32;
        Self(v.iter().map(|z| z * 2_f64.powi(-taken)).collect(), exponent + taken)
    }
}

/// log ‖c(x)‖² layer by layer, from the definition, for circuits too deep for recursion and too small for `f64`.
fn log_density(circuit: &Circuit, x: &[f64]) -> f64 {
    use bornite::circuit::Layer;
    let mut values: Vec<Logged> = Vec::new();
    for layer in circuit.layers() {
        let value = match layer {
            Layer::Input { variable, basis } => {
                let one = |k: usize| f64::from(u8::from(x[variable.index()] == k as f64)).into();
                Logged((0..basis.width()).map(one).collect(), 0)
            }
            Layer::Sum { input, weight } => {
                let (w, v) =
                    (circuit.weight(*weight).to_matrix::<Complex64>(), &values[input.index()]);
                let row = |i: usize| (0..w.cols()).map(|j| w[(i, j)] * v.0[j]).sum();
                Logged::new(&(0..w.rows()).map(row).collect::<Vec<_>>(), v.1)
            }
            Layer::Hadamard { inputs } | Layer::Kronecker { inputs } => {
                let is_hadamard = layer.kind() == "hadamard";
                let mut product =
                    Logged(values[inputs[0].index()].0.clone(), values[inputs[0].index()].1);
                for next in inputs[1..].iter().map(|i| &values[i.index()]) {
                    let entries: Vec<Complex64> = if is_hadamard {
                        product.0.iter().zip(&next.0).map(|(a, b)| a * b).collect()
                    } else {
                        product.0.iter().flat_map(|a| next.0.iter().map(move |b| a * b)).collect()
                    };
                    product = Logged::new(&entries, product.1 + next.1);
                }
                product
            }
        };
        values.push(value);
    }
    let Logged(v, exponent) = &values[circuit.output().index()];
    let norm2: f64 = v.iter().map(Complex64::norm_sqr).sum();
    norm2.ln() + 2.0 * f64::from(*exponent) * std::f64::consts::LN_2
}

#[test]
fn ten_thousand_variables_do_not_underflow() {
    let mut tally = Tally::new("10,000 variables");
    for tree in [RegionTree::linear(MANY), RegionTree::balanced(MANY)] {
        for product in [Product::Kronecker, Product::Hadamard] {
            let structure = Structure::new(tree.clone(), binary).width(3).product(product);
            let c = structure.build(Weights::Gaussian, &mut rng(1)).unwrap();
            let x: Vec<f64> = (0..MANY).map(|n| f64::from(u8::from(n % 3 == 0))).collect();
            let amplitude = evaluate(&c, &x).unwrap();
            let log = amplitude.log_abs_squared();
            assert!(log.is_finite() && log < -1000.0, "{log}");
            let steps = layer_steps(&c);
            tally.check((log, log_density(&c, &x)), (steps, 1.0), || format!("{product:?}"));
            let orthonormal = orthonormalize(&c).unwrap();
            let log_z = log_partition(&c).unwrap();
            tally
                .check((orthonormal.log_partition, log_z), (steps, 1.0), || format!("{product:?}"));
            let query = Query::row(c.variables(), &x).unwrap();
            let marginal = marginalize(&orthonormal.circuit, &query).unwrap().log_marginal;
            tally.check((marginal, log - log_z), (steps, 1.0), || format!("{product:?}"));
        }
    }
}

/// One product layer over many inputs: the rank-K form of a tensor.
fn flat(d: usize, k: usize, product: Product) -> Circuit {
    let mut b = CircuitBuilder::new();
    let rng = &mut rng(2);
    let inputs: Vec<LayerId> = (0..d)
        .map(|n| {
            let x = b.variable(format!("x{n}"), Domain::Finite(2));
            let input = b.input(x, Basis::indicator(2));
            b.sum(input, random_weight(k, 2, Weights::Gaussian, rng))
        })
        .collect();
    let layer = match product {
        Product::Hadamard => b.hadamard(inputs),
        Product::Kronecker => b.kronecker(inputs),
    };
    let output = b.sum(layer, random_weight(1, k, Weights::Gaussian, rng));
    b.build(output).unwrap()
}

/// The most likely values under the component of the largest norm. Elsewhere the answer is ill-conditioned: a density is
/// accurate relative to what is typical.
fn likely(c: &Circuit, d: usize, k: usize) -> Vec<f64> {
    let size =
        |n: usize, i: usize, x: usize| c.weights()[n].to_matrix::<Complex64>()[(i, x)].norm_sqr();
    let log_norm = |i: usize| (0..d).map(|n| (size(n, i, 0) + size(n, i, 1)).ln()).sum::<f64>();
    let best = (0..k).max_by(|&a, &b| log_norm(a).total_cmp(&log_norm(b))).unwrap();
    (0..d).map(|n| f64::from(u8::from(size(n, best, 1) > size(n, best, 0)))).collect()
}

#[test]
fn one_product_of_thousands_of_inputs_does_not_underflow() {
    let mut tally = Tally::new("one product of thousands");
    for (product, k) in [(Product::Hadamard, 3), (Product::Kronecker, 1), (Product::Hadamard, 1)] {
        for d in [1100, 4000] {
            let c = flat(d, k, product);
            let x = likely(&c, d, k);
            let steps = layer_steps(&c);
            let log = evaluate(&c, &x).unwrap().log_abs_squared();
            let about = || format!("{product:?} of {d}, width {k}");
            tally.check((log, log_density(&c, &x)), (steps, 1.0), about);
            let log_z = log_partition(&c).unwrap();
            let orthonormal = orthonormalize(&c).unwrap();
            tally.check((orthonormal.log_partition, log_z), (steps, 1.0), about);
            let half: Vec<f64> =
                x.iter().enumerate().map(|(n, &x)| if n < d / 2 { x } else { f64::NAN }).collect();
            let query = Query::row(c.variables(), &half).unwrap();
            let marginal = marginalize(&orthonormal.circuit, &query).unwrap().log_marginal;
            let gram = log_unnormalized_marginal(&c, &query).unwrap() - log_z;
            tally.check((marginal, gram), (steps, 1.0), about);
        }
    }
}

#[test]
fn components_that_are_large_at_different_inputs_survive_a_product() {
    // c = Σₖ ∏ₙ f(k, n): one component is 10^-500 after the first half, the other catches up in the second.
    let d = 1000;
    let mut b = CircuitBuilder::new();
    let inputs: Vec<LayerId> = (0..d)
        .map(|n| {
            let x = b.variable(format!("x{n}"), Domain::Finite(1));
            let input = b.input(x, Basis::indicator(1));
            let column = if n < d / 2 { [[1.0], [0.1]] } else { [[0.1], [1.0]] };
            b.sum(input, Matrix::from_rows(&column))
        })
        .collect();
    let product = b.hadamard(inputs);
    let output = b.sum(product, Matrix::from_rows(&[[1.0, 1.0]]));
    let c = b.build(output).unwrap();
    let expected = 2.0 * (2.0_f64.ln() - 500.0 * 10.0_f64.ln());
    let mut tally = Tally::new("components of unlike growth");
    let log = evaluate(&c, &vec![0.0; d]).unwrap().log_abs_squared();
    tally.check((log, expected), (layer_steps(&c), 1.0), String::new);
    let log = log_partition(&c).unwrap();
    tally.check((log, expected), (layer_steps(&c), 1.0), String::new);
}

/// The world with every weight times a power of ten, and the log of what that does to ‖c‖².
fn scaled(recipe: Recipe, powers: [i32; 2]) -> (World, f64) {
    let mut world = recipe.make();
    for (n, w) in world.weights.iter_mut().enumerate() {
        w.data.iter_mut().for_each(|z| *z *= 10_f64.powi(powers[n % 2]));
    }
    let mut uses = 0.0;
    crate::world::visit(&world.root, &mut |node, _: &[()]| {
        if let crate::world::Node::Sum { weight, .. } = node {
            uses += f64::from(powers[weight % 2]);
        }
    });
    (world, 2.0 * uses * 10_f64.ln())
}

#[test]
fn weights_of_any_size_shift_the_logs() {
    let mut tally = Tally::new("weights of 1e±200");
    for powers in [[200, 200], [-200, -200], [200, -200], [-300, -10], [300, 290]] {
        for seed in 0..25 {
            let recipe = Recipe { output: 1 + seed as usize % 2, ..Recipe::finite(seed, 5) };
            let (plain, large) = (recipe.make().circuit(), scaled(recipe, powers));
            let (circuit, shift) = (large.0.circuit(), large.1);
            let Ok(expected) = orthonormalize(&plain) else { continue };
            let steps = layer_steps(&plain);
            // The shift itself is rounded, and so is every scaled weight.
            let condition = recipe.make().condition(expected.log_partition);
            let tolerance = (steps, condition + shift.abs());
            let log_z = expected.log_partition + shift;
            let about = || format!("{powers:?}\n{}", large.0);
            let actual = orthonormalize(&circuit).unwrap();
            tally.check((actual.log_partition, log_z), tolerance, about);
            tally.check((log_partition(&circuit).unwrap(), log_z), tolerance, about);
            tally.check((square(&circuit).unwrap().log_partition(), log_z), tolerance, about);
            assert!(check_orthonormality(&actual.circuit).holds());
            let x = vec![0.0; 5];
            let logs = [&plain, &circuit].map(|c| evaluate(c, &x).unwrap().log_abs_squared());
            if logs[0] > expected.log_partition - 20.0 {
                tally.check((logs[1], logs[0] + shift), (steps, tolerance.1 * 1e4), about);
            }
        }
    }
}

#[test]
fn graded_weights_keep_their_digits() {
    // Rows from 1 down to 1e-60, which the next layer brings back to one size.
    let mut tally = Tally::new("graded weights");
    let mut b = CircuitBuilder::new();
    let rng = &mut rng(3);
    let grades = [1.0, 1e-20, 1e-40, 1e-60];
    let mut layers = Vec::new();
    for n in 0..2 {
        let x = b.variable(format!("x{n}"), Domain::Finite(5));
        let input = b.input(x, Basis::indicator(5));
        let w = random_weight(4, 5, Weights::Gaussian, rng).to_matrix::<Complex64>().into_owned();
        layers.push(b.sum(input, Matrix::from_fn(4, 5, |i, j| w[(i, j)] * grades[i])));
    }
    let product = b.kronecker(layers);
    let w = random_weight(1, 16, Weights::Gaussian, rng).to_matrix::<Complex64>().into_owned();
    let weight = Matrix::from_fn(1, 16, |_, j| w[(0, j)] / (grades[j / 4] * grades[j % 4]));
    let output = b.sum(product, weight);
    let c = b.build(output).unwrap();
    let mut total = 0.0;
    for x in 0..25 {
        let x = [f64::from(x / 5), f64::from(x % 5)];
        total += log_density(&c, &x).exp();
    }
    let orthonormal = orthonormalize(&c).unwrap();
    let (steps, scale) = (layer_steps(&c), 100.0);
    tally.check((orthonormal.log_partition, total.ln()), (steps, scale), String::new);
    tally.check((log_partition(&c).unwrap(), total.ln()), (steps, scale), String::new);
}

#[test]
fn a_zero_circuit_is_an_error_that_names_its_layer() {
    let mut b = CircuitBuilder::new();
    let x = b.variable("x", Domain::Finite(2));
    let y = b.variable("y", Domain::Finite(2));
    let (f, g) = (b.input(x, Basis::indicator(2)), b.input(y, Basis::indicator(2)));
    let zero = b.sum(f, Matrix::from_rows(&[[0.0, 0.0], [0.0, 0.0]]));
    let product = b.hadamard([zero, g]);
    let output = b.sum(product, Matrix::from_rows(&[[1.0, 1.0]]));
    let c = b.clone().build(output).unwrap();
    assert_eq!(orthonormalize(&c).unwrap_err(), OperationError::ZeroCircuit { layer: zero });
    assert_eq!(log_partition(&c).unwrap(), f64::NEG_INFINITY);
    assert_eq!(square(&c).unwrap().log_partition(), f64::NEG_INFINITY);
    assert_eq!(evaluate(&c, &[1.0, 0.0]).unwrap().log_abs_squared(), f64::NEG_INFINITY);

    // No layer is zero, but the output is: (1, 1) times (1, −1) of equal functions.
    let mut b = CircuitBuilder::new();
    let x = b.variable("x", Domain::Finite(3));
    let f = b.input(x, Basis::indicator(3));
    let twice = b.sum(f, Matrix::from_rows(&[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]));
    let output = b.sum(twice, Matrix::from_rows(&[[1.0, -1.0]]));
    let c = b.build(output).unwrap();
    assert_eq!(orthonormalize(&c).unwrap_err(), OperationError::ZeroCircuit { layer: output });
}

#[test]
fn rank_deficient_weights_shrink_their_layer() {
    let mut b = CircuitBuilder::new();
    let rng = &mut rng(4);
    let x = b.variable("x", Domain::Finite(6));
    let y = b.variable("y", Domain::Finite(3));
    let (f, g) = (b.input(x, Basis::indicator(6)), b.input(y, Basis::indicator(3)));
    let draw = |rows, cols, rng: &mut ChaCha8Rng| {
        random_weight(rows, cols, Weights::Gaussian, rng).to_matrix::<Complex64>().into_owned()
    };
    // Rank 2 by a product, and 5 outputs of 3 functions.
    let left = b.sum(f, draw(5, 2, rng).times(&draw(2, 6, rng)));
    let right = b.sum(g, draw(5, 3, rng));
    let product = b.hadamard([left, right]);
    let output = b.sum(product, draw(2, 5, rng));
    let c = b.build(output).unwrap();
    let orthonormal = orthonormalize(&c).unwrap();
    assert_eq!(orthonormal.circuit.width(left), 2);
    assert_eq!(orthonormal.circuit.width(right), 3);
    assert_eq!(orthonormal.circuit.layer(product).kind(), "kronecker");
    let mut tally = Tally::new("rank-deficient weights");
    let root = (orthonormal.log_partition / 2.0).exp();
    for n in 0..18 {
        let x = [f64::from(n / 3), f64::from(n % 3)];
        let pair = [&c, &*orthonormal.circuit].map(|c| evaluate(c, &x).unwrap().to_values());
        for (a, b) in pair[0].iter().zip(&pair[1]) {
            let about = || format!("{a} {b}");
            tally.check(((a - b * root).norm(), 0.0), (layer_steps(&c), root * 10.0), about);
        }
    }
}

#[test]
fn nearly_dependent_functions_are_kept() {
    // Two functions that differ by 2^-40, and a sum that takes their difference: c(x) = δ₁ₓ.
    let tiny = 2_f64.powi(-40);
    let mut b = CircuitBuilder::new();
    let x = b.variable("x", Domain::Finite(2));
    let f = b.input(x, Basis::indicator(2));
    let near = b.sum(f, Matrix::from_rows(&[[1.0, 0.0], [1.0, tiny]]));
    let output = b.sum(near, Matrix::from_rows(&[[-1.0 / tiny, 1.0 / tiny]]));
    let c = b.build(output).unwrap();
    let orthonormal = orthonormalize(&c).unwrap();
    assert_eq!(orthonormal.circuit.width(near), 2);
    let mut tally = Tally::new("nearly dependent functions");
    let tolerance = (layer_steps(&c), 1.0 / tiny);
    tally.check((orthonormal.log_partition, 0.0), tolerance, String::new);
    for (x, expected) in [(0.0, 0.0), (1.0, 1.0)] {
        let value = evaluate(&orthonormal.circuit, &[x]).unwrap().to_values()[0].norm();
        tally.check((value, expected), tolerance, || format!("x = {x}"));
    }
}

#[test]
fn the_output_may_be_any_kind_of_layer() {
    let input = |b: &mut CircuitBuilder, n: usize, k: usize| {
        let x: VariableId = b.variable(format!("x{n}"), Domain::Finite(k));
        b.input(x, Basis::indicator(k))
    };
    let mut tally = Tally::new("outputs of any kind");
    for kind in 0..4 {
        let mut b = CircuitBuilder::new();
        let (output, z, r) = match kind {
            0 => (input(&mut b, 0, 3), 3.0, 3),
            1 => (input(&mut b, 0, 1), 1.0, 1),
            2 => {
                let inputs = [input(&mut b, 0, 2), input(&mut b, 1, 2)];
                // f ⊙ g has one entry 1 where both values agree: two points of four.
                (b.hadamard(inputs), 2.0, 2)
            }
            _ => {
                let inputs = [input(&mut b, 0, 2), input(&mut b, 1, 3)];
                (b.kronecker(inputs), 6.0, 6)
            }
        };
        let c = b.build(output).unwrap();
        let about = || format!("kind {kind}");
        let log_z = f64::ln(z);
        tally.check((log_partition(&c).unwrap(), log_z), (layer_steps(&c), 1.0), about);
        let literal = square(&c).unwrap().log_partition();
        tally.check((literal, log_z), (layer_steps(&c), 1.0), about);
        let orthonormal = orthonormalize(&c).unwrap();
        tally.check((orthonormal.log_partition, log_z), (layer_steps(&c), 1.0), about);
        assert_eq!(orthonormal.circuit.width(orthonormal.circuit.output()), r);
        assert_eq!(Orthonormal::verify(c).is_ok(), r == 1, "kind {kind}");
    }
}

#[test]
fn an_output_without_a_weight_is_orthonormal_only_if_it_has_width_1() {
    // B-splines of degree 0 on unit knots are orthonormal, though their family is not; Z is their number.
    let mut b = CircuitBuilder::new();
    let x = b.variable("x", Domain::Interval(0.0, 3.0));
    let output = b.input(x, Basis::bspline(0, vec![0.0, 1.0, 2.0, 3.0]).unwrap());
    let c = b.build(output).unwrap();
    let report = Orthonormal::verify(c).unwrap_err().report;
    assert_eq!((report.worst, report.residual), (output, 2.0));
}

#[test]
fn large_domains_take_no_matrix_of_their_own() {
    let v = 30_000;
    let mut b = CircuitBuilder::new();
    let rng = &mut rng(5);
    let words: Vec<LayerId> = (0..2)
        .map(|n| {
            let x = b.variable(format!("x{n}"), Domain::Finite(v));
            let input = b.input(x, Basis::indicator(v));
            b.sum(input, random_weight(2, v, Weights::Gaussian, rng))
        })
        .collect();
    let product = b.hadamard(words);
    let output = b.sum(product, random_weight(1, 2, Weights::Gaussian, rng));
    let c = b.build(output).unwrap();
    let orthonormal = orthonormalize(&c).unwrap();
    let set = |from: usize, to: usize| {
        let values: Vec<usize> = (from..to).collect();
        let query = Query::unknown(2).with_values(c.variables(), "x1", &values).unwrap();
        marginalize(&orthonormal.circuit, &query).unwrap().log_marginal.exp()
    };
    let mut tally = Tally::new("large domains");
    let sum = set(0, 7) + set(7, v);
    tally.check((sum, 1.0), (layer_steps(&c), 1.0), String::new);
}

#[test]
fn products_too_wide_to_square_are_an_error() {
    let mut b = CircuitBuilder::new();
    let inputs: Vec<LayerId> = (0..20)
        .map(|n| {
            let x = b.variable(format!("x{n}"), Domain::Finite(2));
            b.input(x, Basis::indicator(2))
        })
        .collect();
    let output = b.kronecker(inputs);
    let c = b.build(output).unwrap();
    let is_too_large =
        |e: OperationError| matches!(e, OperationError::TooLarge { layer, .. } if layer == output);
    assert!(is_too_large(orthonormalize(&c).unwrap_err()));
    assert!(is_too_large(square(&c).unwrap_err()));
    let some = Query::unknown(20).with_value(c.variables(), "x3", 1.0).unwrap();
    assert!(is_too_large(log_unnormalized_marginal(&c, &some).unwrap_err()));
}

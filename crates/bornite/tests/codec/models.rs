//! Models to compress with, and rows.

use bornite::circuit::Weights;
use bornite::engine::Engine;
use bornite::linalg::{Complex64, Matrix};
use bornite::ops::orthonormalize;
use bornite::structure::{Product, RegionTree, Structure};
use bornite::{Basis, CircuitBuilder, Domain, LayerId, Orthonormal, Variable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Finite variables of 1 to 9 values.
fn leaf(v: usize) -> (Variable, Basis) {
    let count = [2, 3, 9, 1, 5][v % 5];
    (Variable::new(format!("x{v}"), Domain::Finite(count)), Basis::indicator(count))
}

pub(crate) fn random(
    tree: RegionTree,
    product: Product,
    weights: Weights,
    width: usize,
    r: usize,
) -> Orthonormal {
    let rng = &mut ChaCha8Rng::seed_from_u64(11);
    let structure = Structure::new(tree, leaf).product(product).width(width).output_width(r);
    orthonormalize(&structure.build(weights, rng).unwrap()).unwrap().circuit
}

/// Linear, balanced and image trees, real and complex, one square and three.
pub(crate) fn all() -> Vec<(String, Orthonormal)> {
    let trees = [
        ("one variable", RegionTree::parse("0").unwrap()),
        ("linear", RegionTree::linear(7)),
        ("balanced", RegionTree::balanced(11)),
        ("image", RegionTree::image(4, 3, 1)),
        ("three inputs", RegionTree::parse("[[0, 1, 2], [3, 4], [[5, 6], 7]]").unwrap()),
    ];
    let mut all = Vec::new();
    for (name, tree) in trees {
        for (product, weights, width, r) in [
            (Product::Kronecker, Weights::Gaussian, 5, 1),
            (Product::Kronecker, Weights::RealGaussian, 4, 3),
            (Product::Kronecker, Weights::Gaussian, 4, 3),
            (Product::Hadamard, Weights::RealGaussian, 4, 1),
        ] {
            let name = format!("{name} {product:?} {weights:?} K={width} r={r}");
            all.push((name, random(tree.clone(), product, weights, width, r)));
        }
    }
    all
}

/// An image of grey levels.
pub(crate) fn image(side: usize, levels: usize, width: usize) -> Orthonormal {
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let pixel = |v: usize| {
        (Variable::new(format!("p{v}"), Domain::Finite(levels)), Basis::indicator(levels))
    };
    let structure = Structure::new(RegionTree::image(side, side, 1), pixel).width(width);
    orthonormalize(&structure.build(Weights::Gaussian, rng).unwrap()).unwrap().circuit
}

pub(crate) fn samples(circuit: &Orthonormal, count: usize) -> Vec<f64> {
    Engine::new(circuit).sample(count, 3)
}

/// Values that the model does not expect.
pub(crate) fn noise(circuit: &Orthonormal, count: usize) -> Vec<f64> {
    let rng = &mut ChaCha8Rng::seed_from_u64(4);
    let mut rows = Vec::new();
    for _ in 0..count {
        for variable in circuit.variables() {
            rows.push(rng.random_range(0..variable.domain.num_values().unwrap()) as f64);
        }
    }
    rows
}

/// Takes cells away.
pub(crate) fn with_holes(mut rows: Vec<f64>, share: f64) -> Vec<f64> {
    let rng = &mut ChaCha8Rng::seed_from_u64(6);
    for x in &mut rows {
        if rng.random_bool(share) {
            *x = f64::NAN;
        }
    }
    rows
}

/// The same rows, with all missing cells alike.
pub(crate) fn bits(rows: &[f64]) -> Vec<u64> {
    rows.iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
}

/// A complex circuit of 16 variables of 4 values whose weights are the same on every machine: plane rotations by
/// angles of Pythagorean triangles, with columns turned in the complex plane.
pub(crate) fn fixed(r: usize) -> Orthonormal {
    let mut builder = CircuitBuilder::new();
    let mut layers: Vec<LayerId> = Vec::new();
    for v in 0..16 {
        let variable = builder.variable(format!("x{v}"), Domain::Finite(4));
        let input = builder.input(variable, Basis::indicator(4));
        layers.push(builder.sum(input, unitary(v)));
    }
    while layers.len() > 1 {
        let half = layers.len() / 2;
        let pairs: Vec<[LayerId; 2]> = (0..half).map(|n| [layers[n], layers[n + half]]).collect();
        layers.clear();
        for (n, pair) in pairs.into_iter().enumerate() {
            let product = builder.kronecker(pair);
            // Entries of one size, or four unitary matrices over two side by side.
            let weight = if half == 1 {
                let size = if r == 1 { 0.25 } else { 0.125 };
                Matrix::from_fn(r, 16, |k, c| turned(size, k * c + c / 3))
            } else {
                let parts: Vec<Matrix<Complex64>> = (0..4).map(|m| unitary(5 * n + m)).collect();
                Matrix::from_fn(4, 16, |k, c| parts[c / 4][(k, c % 4)] * 0.5)
            };
            layers.push(builder.sum(product, weight));
        }
    }
    Orthonormal::verify(builder.build(layers[0]).unwrap()).unwrap()
}

/// One of many 4 × 4 unitary matrices.
fn unitary(n: usize) -> Matrix<Complex64> {
    let mut m = Matrix::from_fn(4, 4, |i, j| if i == j { 1.0 } else { 0.0 });
    for (step, [i, j]) in [[0, 1], [2, 3], [1, 2], [0, 3], [0, 2], [1, 3]].into_iter().enumerate() {
        let [c, s] = [[0.6, 0.8], [0.28, 0.96], [0.8, -0.6]][(n + step * (n + 1)) % 3];
        for k in 0..4 {
            let (x, y) = (m[(i, k)], m[(j, k)]);
            m[(i, k)] = c * x - s * y;
            m[(j, k)] = s * x + c * y;
        }
    }
    Matrix::from_fn(4, 4, |i, j| turned(m[(i, j)], n + j * j))
}

/// x (0.6 + 0.8i)ⁿ, n taken modulo 3.
fn turned(x: f64, n: usize) -> Complex64 {
    let turn = [Complex64::new(1.0, 0.0), Complex64::new(0.6, 0.8), Complex64::new(-0.28, 0.96)];
    turn[n % 3] * x
}

/// Rows from a plain generator of numbers.
pub(crate) fn fixed_rows(count: usize, with_holes: bool) -> Vec<f64> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..16 * count)
        .map(|_| {
            let x = (next() % 4) as f64;
            if with_holes && next() % 10 == 0 { f64::NAN } else { x }
        })
        .collect()
}

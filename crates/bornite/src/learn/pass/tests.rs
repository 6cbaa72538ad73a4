use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::block::{Block, Completeness};
use crate::basis::Basis;
use crate::circuit::{Circuit, Weight, Weights, random_weight};
use crate::engine::{Batch, Engine, Real};
use crate::learn::error::program_of;
use crate::learn::objective::Objective;
use crate::learn::optimizer::Optimizer;
use crate::learn::parameter::{Parameter, Parameterization};
use crate::learn::partition::Partition;
use crate::learn::pass::{Memory, Workspace};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::ops::log_unnormalized_marginal;
use crate::program::Program;
use crate::query::{Evidence, Query};
use crate::structure::{Product, RegionTree, Structure};
use crate::{Domain, Variable};

const ROWS: usize = 150;

fn circuit(product: Product, weights: Weights) -> Circuit {
    let leaf = |v: usize| match v % 3 {
        0 => (Variable::new(format!("x{v}"), Domain::Finite(3)), Basis::indicator(3)),
        1 => (Variable::new(format!("x{v}"), Domain::Real), Basis::hermite(5, 0.0, 1.0).unwrap()),
        _ => (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2)),
    };
    let structure = Structure::new(RegionTree::balanced(9), leaf).width(5).product(product);
    structure.output_width(2).build(weights, &mut ChaCha8Rng::seed_from_u64(4)).unwrap()
}

/// Rows that are complete, without any values, without some columns, and with few and many missing
/// values, in turn.
fn values(circuit: &Circuit) -> Vec<f64> {
    let rng = &mut ChaCha8Rng::seed_from_u64(9);
    let mut values = Vec::new();
    for row in 0..ROWS {
        for (n, variable) in circuit.variables().iter().enumerate() {
            let x = match variable.domain {
                Domain::Finite(n) => rng.random_range(0..n) as f64,
                _ => rng.random_range(-1.5..1.5),
            };
            let is_missing = match row % 5 {
                0 => false,
                1 => row % 2 == 0,
                2 => [0, 4, 5].contains(&n),
                3 => rng.random_bool(0.2),
                _ => rng.random_bool(0.7),
            };
            values.push(if is_missing { f64::NAN } else { x });
        }
    }
    values
}

/// The mean log-likelihood, and its gradient by every weight.
fn gradient<F: Real, T: Scalar, const C: bool>(
    program: &Program,
    weights: &[Matrix<T>],
    rows: &Batch,
    parameterization: Parameterization,
) -> (f64, Vec<Matrix<T>>) {
    let weights: Vec<&Matrix<T>> = weights.iter().collect();
    let memory = &mut Memory::default();
    let workspace = Workspace::<F>::new(program, &weights, true);
    let objective = Objective::new(program, weights.clone(), parameterization);
    // The second pass reuses the memory of the first.
    let first: Vec<usize> = (0..rows.len() / 2).collect();
    objective.reverse::<F, C>(rows, &first, 1.0, &workspace, memory);
    let all: Vec<usize> = (0..rows.len()).collect();
    let (value, others) =
        objective.reverse::<F, C>(rows, &all, 1.0 / all.len() as f64, &workspace, memory);
    let mean = objective.mean::<F, C>(rows, &all, &workspace);
    assert!((value - mean).abs() < 1e-6, "{value} with gradients, {mean} without");
    let sum = |(n, (w, other)): (usize, (&&Matrix<T>, Matrix<T>))| {
        let mut g = memory.weight_gradient::<T, C>(program, n, [w.rows(), w.cols()]);
        g.data_mut().iter_mut().zip(other.data()).for_each(|(g, &x)| *g += x);
        g
    };
    let gradients = weights.iter().zip(others.unwrap()).enumerate().map(sum).collect();
    (value, gradients)
}

/// Re⟨a, b⟩ of lists of matrices.
fn dot<T: Scalar>(a: &[Matrix<T>], b: &[Matrix<T>]) -> f64 {
    let parts = |m: &[Matrix<T>]| -> Vec<f64> {
        m.iter().flat_map(|m| T::parts(m.data()).to_vec()).collect()
    };
    parts(a).iter().zip(parts(b)).map(|(a, b)| a * b).sum()
}

/// Compares derivatives along random directions with central differences, single with double
/// precision, and one thread with three, on several blocks of rows with all patterns.
fn check<T: Scalar, const C: bool>(product: Product, parameterization: Parameterization) {
    let kind = if C { Weights::Gaussian } else { Weights::RealGaussian };
    let circuit = circuit(product, kind);
    let values = values(&circuit);
    let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
    let program = program_of(&circuit).unwrap();
    let parameter = |(n, w): (usize, &Weight)| {
        let is_output = n + 1 == circuit.weights().len();
        Parameter::new(&w.to_matrix::<T>(), is_output, parameterization, Optimizer::Adam)
    };
    let parameters: Vec<Parameter<T>> =
        circuit.weights().iter().enumerate().map(parameter).collect();
    let weights: Vec<Matrix<T>> = parameters.iter().map(|p| p.w.clone()).collect();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let double = gradient::<f64, T, C>(&program, &weights, &rows, parameterization);
            (double, gradient::<f32, T, C>(&program, &weights, &rows, parameterization))
        })
    };
    let (double, single) = on(1);
    assert_eq!((double.clone(), single.clone()), on(3), "for any number of threads");
    let size = dot(&double.1, &double.1).sqrt();
    assert!((double.0 - single.0).abs() < 1e-4, "{} for {}", single.0, double.0);
    for (single, double) in single.1.iter().zip(&double.1) {
        let error = T::parts(single.data()).iter().zip(T::parts(double.data()));
        let worst = error.map(|(s, d)| (s - d).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-4 * size, "{worst} of {size}");
    }
    let pulled: Vec<Matrix<T>> =
        parameters.iter().zip(double.1).map(|(p, g)| p.pull_back(g)).collect();
    let rng = &mut ChaCha8Rng::seed_from_u64(7);
    for _ in 0..3 {
        let random = |p: &Parameter<T>, rng: &mut ChaCha8Rng| {
            let any =
                random_weight(p.w.rows(), p.w.cols(), kind, rng).to_matrix::<T>().into_owned();
            // On the Stiefel manifold, the gradient is a tangent, so only tangents can be compared.
            if parameterization == Parameterization::Stiefel { p.pull_back(any) } else { any }
        };
        let direction: Vec<Matrix<T>> = parameters.iter().map(|p| random(p, rng)).collect();
        let moved = |step: f64| {
            let moved = parameters.iter().zip(&direction).map(|(p, d)| {
                let mut w = p.w.clone();
                w.data_mut().iter_mut().zip(d.data()).for_each(|(w, d)| *w += d.scale_by(step));
                p.on_manifold(w)
            });
            gradient::<f64, T, C>(&program, &moved.collect::<Vec<_>>(), &rows, parameterization).0
        };
        let numeric = (moved(1e-6) - moved(-1e-6)) / 2e-6;
        let exact = dot(&pulled, &direction);
        assert!((numeric - exact).abs() < 1e-6 * exact.abs().max(1.0), "{exact} for {numeric}");
    }
}

#[test]
fn blocks_of_all_patterns_have_the_right_gradients() {
    for product in [Product::Kronecker, Product::Hadamard] {
        for parameterization in
            [Parameterization::Cholesky, Parameterization::Stiefel, Parameterization::Unconstrained]
        {
            check::<Complex64, true>(product, parameterization);
            check::<f64, false>(product, parameterization);
        }
    }
}

/// The state Σₐ |a a a a⟩ with a small part of everything else, in rotated bases. If the evidence is
/// nearly impossible, single precision has no digits left.
#[test]
fn improbable_rows_keep_their_digits() {
    let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let tree = RegionTree::parse("[[0, 1], [2, 3]]").unwrap();
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let plain = Structure::new(tree, bit).width(2).build(Weights::Haar, rng).unwrap();
    let mut unitary =
        || random_weight(2, 2, Weights::Haar, rng).to_matrix::<Complex64>().into_owned();
    for epsilon in [1e-3, 1e-5, 1e-6] {
        let rotations = [unitary(), unitary()];
        let copy = Matrix::from_fn(2, 4, |a, n| Complex64::from(f64::from(n == 3 * a)));
        let state = Matrix::from_fn(1, 4, |_, n| {
            Complex64::from(if n % 3 == 0 { 0.5_f64.sqrt() } else { epsilon })
        });
        let both = Matrix::from_fn(4, 4, |r, c| {
            rotations[0][(r / 2, c / 2)] * rotations[1][(r % 2, c % 2)]
        });
        let mut pairs = 0;
        let weights = plain.weights().iter().map(|w| {
            Weight::from_matrix(&match (w.rows(), w.cols()) {
                (1, 4) => state.times_adjoint(&both),
                (2, 4) => {
                    pairs += 1;
                    rotations[pairs - 1].times(&copy)
                }
                _ => Matrix::identity(2),
            })
        });
        let circuit = plain.with_weights(weights.collect::<Vec<_>>()).unwrap();
        assert_eq!(pairs, 2);
        let values = [0.0, f64::NAN, 1.0, f64::NAN].repeat(3);
        let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
        let program = program_of(&circuit).unwrap();
        let weights: Vec<Matrix<Complex64>> =
            circuit.weights().iter().map(|w| w.to_matrix().into_owned()).collect();
        let kind = Parameterization::Cholesky;
        let (single, g) = gradient::<f32, _, true>(&program, &weights, &rows, kind);
        let (double, exact) = gradient::<f64, _, true>(&program, &weights, &rows, kind);
        let mut query = Query::unknown(4);
        for (variable, value) in [(0, 0.0), (2, 1.0)] {
            query.set(circuit.variables(), variable, Evidence::Value(value)).unwrap();
        }
        let expected = log_unnormalized_marginal(&circuit, &query).unwrap();
        assert!((double - expected).abs() < 1e-3, "{double} for {expected}");
        assert!((single - expected).abs() < 2e-3, "{single} for {expected}");
        let cosine = dot(&g, &exact) / (dot(&g, &g) * dot(&exact, &exact)).sqrt();
        assert!(cosine > 0.999, "{cosine}");
    }
}

/// Typical rows are rarely so improbable that they are repeated in double precision.
#[test]
fn few_rows_need_more_digits() {
    let circuit = crate::ops::orthonormalize(&circuit(Product::Kronecker, Weights::Gaussian));
    let circuit = circuit.unwrap().circuit;
    let mut values = Engine::new(&circuit).sample(2000, 5);
    let rng = &mut ChaCha8Rng::seed_from_u64(2);
    values.iter_mut().filter(|_| rng.random_bool(0.3)).for_each(|x| *x = f64::NAN);
    let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
    let program = program_of(&circuit).unwrap();
    let weights: Vec<Matrix<Complex64>> =
        circuit.weights().iter().map(|w| w.to_matrix().into_owned()).collect();
    let weights: Vec<&Matrix<Complex64>> = weights.iter().collect();
    let workspace = Workspace::<f32>::new(&program, &weights, true);
    let partition = Partition::new(&program, weights, true);
    let pass = super::Pass::<f32, _, true>::new(&partition, &workspace.packed);
    let mut block = Block::default();
    let all: Vec<usize> = (0..rows.len()).collect();
    block.load(&pass, &rows, &all, Completeness::Any, false);
    block.forward(&pass, &rows);
    let share = block.imprecise().count() as f64 / rows.len() as f64;
    assert!(share < 0.01, "{share}");
}

use std::cell::RefCell;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::error::program_of;
use super::objective::{Emphasis, Objective};
use super::optimizer::{Optimizer, Update};
use super::parameter::{Parameter, Parameterization, normalized};
use super::partition::Partition;
use super::partners::Partners;
use super::pass::{Memory, Workspace};
use super::pieces::Rows;
use super::progress::{Progress, Snapshot};
use super::search::{Found, Further, search};
use super::{
    Control, Defaults, Effort, FitOptions, LearnError, Schedule, Starts, fit, fit_best,
    mean_log_likelihood,
};
use crate::basis::{Basis, Part};
use crate::circuit::{Circuit, Layer, Skeleton, Weight, Weights, random_weight};
use crate::engine::{Batch, Engine};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::ops::{log_partition, log_unnormalized_marginal};
use crate::program::Program;
use crate::query::{Evidence, Query};
use crate::structure::{Product, RegionTree, Structure};
use crate::{Domain, Variable};

fn circuit(product: Product, weights: Weights, r: usize) -> Circuit {
    let leaf = |v: usize| match v % 3 {
        0 => (Variable::new(format!("x{v}"), Domain::Finite(5)), Basis::indicator(5)),
        1 => (Variable::new(format!("x{v}"), Domain::Real), Basis::hermite(4, 0.0, 1.0).unwrap()),
        _ => (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2)),
    };
    let tree = RegionTree::parse("[[[0, 1], [2, 3]], 4]").unwrap();
    let structure = Structure::new(tree, leaf).width(3).product(product).output_width(r);
    structure.build(weights, &mut ChaCha8Rng::seed_from_u64(4)).unwrap()
}

/// A circuit for images of 2 × 3 pixels with 5 values, with a codebook and shared weights.
fn shared(weights: Weights) -> Circuit {
    let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(5)), Basis::indicator(5));
    let structure = Structure::new(RegionTree::aligned_image(2, 3, 1), leaf)
        .widths(|size| 2 + size.min(2))
        .codebook(Some(4))
        .share(2)
        .output_width(3);
    structure.build(weights, &mut ChaCha8Rng::seed_from_u64(4)).unwrap()
}

fn rows(circuit: &Circuit, count: usize) -> Vec<f64> {
    let rng = &mut ChaCha8Rng::seed_from_u64(9);
    let mut values = Vec::new();
    for _ in 0..count {
        values.extend(circuit.variables().iter().map(|v| match v.domain {
            Domain::Finite(n) => rng.random_range(0..n) as f64,
            _ => rng.random_range(-1.5..1.5),
        }));
    }
    values
}

/// The gradient by every weight after a pass.
fn all_gradients<T: Scalar, const C: bool>(
    program: &Program,
    weights: &[Matrix<T>],
    memory: &Memory<f64>,
) -> Vec<Matrix<T>> {
    let shapes = weights.iter().map(|w| [w.rows(), w.cols()]).enumerate();
    shapes.map(|(n, shape)| memory.weight_gradient::<T, C>(program, n, shape)).collect()
}

/// Compares every entry of every weight's gradient with central differences.
fn check_gradient<T: Scalar, const C: bool>(circuit: &Circuit) -> f64 {
    let values = rows(circuit, 37);
    let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
    let indices: Vec<usize> = (0..37).rev().collect();
    let program = program_of(circuit).unwrap();
    let weights: Vec<Matrix<T>> =
        circuit.weights().iter().map(|w| w.to_matrix::<T>().into_owned()).collect();
    let borrowed: Vec<&Matrix<T>> = weights.iter().collect();
    let memory = &mut Memory::default();
    let workspace = Workspace::<f64>::new(&program, &borrowed, true);
    let partition = Partition::new(&program, borrowed, true);
    // The second pass reuses the memory of the first.
    workspace.reverse::<T, C>(&partition, &rows, &indices[..20], 0.25, memory);
    let logs = workspace.reverse::<T, C>(&partition, &rows, &indices, 0.5, memory);
    let gradients = all_gradients::<T, C>(&program, &weights, memory);
    assert_eq!(logs, workspace.logs::<T, C>(&partition, &rows, &indices));
    for (log, &index) in logs.iter().zip(&indices) {
        let row = &values[index * circuit.num_variables()..][..circuit.num_variables()];
        let plain = crate::ops::evaluate(circuit, row).unwrap().log_abs_squared();
        assert!((log - plain).abs() < 1e-11, "{log} for {plain}");
    }
    let total = |weights: &[Matrix<T>]| -> f64 {
        let weights: Vec<&Matrix<T>> = weights.iter().collect();
        let workspace = Workspace::<f64>::new(&program, &weights, true);
        let partition = Partition::new(&program, weights, true);
        workspace.logs::<T, C>(&partition, &rows, &indices).iter().sum::<f64>() * 0.5
    };
    let (h, mut worst) = (1e-6, 0.0_f64);
    for w in 0..weights.len() {
        for n in 0..weights[w].data().len() {
            let parts = if C { vec![Complex64::ONE, Complex64::I] } else { vec![Complex64::ONE] };
            for direction in parts {
                let moved = |step: f64| {
                    let mut weights = weights.clone();
                    weights[w].data_mut()[n] += T::from_complex(direction * step);
                    total(&weights)
                };
                let numeric = (moved(h) - moved(-h)) / (2.0 * h);
                let exact = (gradients[w].data()[n].to_complex() * direction.conj()).re;
                let error = (numeric - exact).abs() / exact.abs().max(1.0);
                assert!(error < 1e-6, "weight {w} entry {n}: {exact} for {numeric}");
                worst = worst.max(error);
            }
        }
    }
    worst
}

#[test]
fn gradients_equal_central_differences() {
    let mut worst: f64 = 0.0;
    for r in [1, 3] {
        worst = worst.max(check_gradient::<Complex64, true>(&circuit(
            Product::Kronecker,
            Weights::Gaussian,
            r,
        )));
        worst = worst.max(check_gradient::<Complex64, true>(&circuit(
            Product::Hadamard,
            Weights::Gaussian,
            r,
        )));
        worst = worst.max(check_gradient::<f64, false>(&circuit(
            Product::Kronecker,
            Weights::RealGaussian,
            r,
        )));
        worst = worst.max(check_gradient::<f64, false>(&circuit(
            Product::Hadamard,
            Weights::RealGaussian,
            r,
        )));
    }
    worst = worst.max(check_gradient::<Complex64, true>(&shared(Weights::Gaussian)));
    worst = worst.max(check_gradient::<f64, false>(&shared(Weights::RealGaussian)));
    println!("largest relative error of a gradient: {worst:.1e}, allowed 1e-6");
}

/// Queries with values, missing values, sets and intervals. The first has a value for every variable
/// and the last for none.
fn queries(circuit: &Circuit) -> Vec<Query> {
    let rng = &mut ChaCha8Rng::seed_from_u64(12);
    let values = rows(circuit, 14);
    let evidence = |row: usize, variable: usize, x: f64, rng: &mut ChaCha8Rng| match row {
        0 => Evidence::Value(x),
        13 => Evidence::Unknown,
        _ => match (rng.random_range(0..5), &circuit.variables()[variable].domain) {
            (0, Domain::Finite(n)) => Evidence::In(Part::Values(vec![0, n - 1])),
            (0, _) => Evidence::In(Part::Interval { low: -0.5, high: x.max(0.0) }),
            (1 | 2, _) => Evidence::Unknown,
            _ => Evidence::Value(x),
        },
    };
    let row = |(row, cells): (usize, &[f64])| {
        let mut query = Query::unknown(cells.len());
        for (variable, &x) in cells.iter().enumerate() {
            let evidence = evidence(row, variable, x, rng);
            query.set(circuit.variables(), variable, evidence).unwrap();
        }
        query
    };
    values.chunks_exact(circuit.num_variables()).enumerate().map(row).collect()
}

/// Compares the gradient by V of the mean log-likelihood of rows with missing values, where W = W(V)
/// is the parameterization, with central differences.
fn check_missing<T: Scalar, const C: bool>(circuit: &Circuit, parameterization: Parameterization) {
    check_objective::<T, C>(circuit, parameterization, 0.0);
}

/// The same, with a target of the second and third variable.
fn check_objective<T: Scalar, const C: bool>(
    circuit: &Circuit,
    parameterization: Parameterization,
    factor: f64,
) {
    let orthonormal = parameterization != Parameterization::Unconstrained;
    let queries = queries(circuit);
    let rows = Batch::from_queries(circuit.variables(), &queries).unwrap();
    let target = [1, 2];
    let rest = rows.without(&target);
    let emphasis = (factor > 0.0).then_some(Emphasis { rest: &rest, factor });
    let indices: Vec<usize> = (0..queries.len()).collect();
    let program = program_of(circuit).unwrap();
    let parameters: Vec<Parameter<T>> = (circuit.weights().iter().enumerate())
        .map(|(n, w)| {
            let is_output = n + 1 == circuit.weights().len();
            let mut parameter =
                Parameter::new(&w.to_matrix::<T>(), is_output, parameterization, Optimizer::Adam);
            if !orthonormal {
                parameter.w = w.to_matrix::<T>().into_owned();
            }
            parameter
        })
        .collect();
    let weights: Vec<Matrix<T>> = parameters.iter().map(|p| p.w.clone()).collect();
    let mean = |weights: &[Matrix<T>]| {
        let weights: Vec<&Matrix<T>> = weights.iter().collect();
        let workspace = Workspace::<f64>::new(&program, &weights, true);
        Objective::new(&program, weights, parameterization)
            .emphasizing(emphasis)
            .mean::<f64, C>(&rows, &indices, &workspace)
    };
    let borrowed: Vec<&Matrix<T>> = weights.iter().collect();
    let memory = &mut Memory::default();
    let workspace = Workspace::<f64>::new(&program, &borrowed, true);
    let objective = Objective::new(&program, borrowed, parameterization).emphasizing(emphasis);
    let (value, others) = objective.reverse::<f64, C>(
        &rows,
        &indices,
        1.0 / indices.len() as f64,
        &workspace,
        memory,
    );
    let mut gradients = all_gradients::<T, C>(&program, &weights, memory);
    for (sum, other) in gradients.iter_mut().zip(others.unwrap()) {
        sum.data_mut().iter_mut().zip(other.data()).for_each(|(sum, &x)| *sum += x);
    }
    assert!((value - mean(&weights)).abs() < 1e-12 * (1.0 + factor));
    let plain = with_weights(circuit, &weights);
    let log = |query: &Query| log_unnormalized_marginal(&plain, query).unwrap();
    let of_target = |query: &Query| {
        let mut rest = query.clone();
        for v in target {
            rest.set(circuit.variables(), v, Evidence::Unknown).unwrap();
        }
        log(query) - log(&rest)
    };
    let of_row = |query| log(query) + factor * of_target(query);
    let expected = queries.iter().map(of_row).sum::<f64>() / queries.len() as f64;
    let expected = expected - log_partition(&plain).unwrap();
    assert!((value - expected).abs() < 1e-10, "{value} for {expected}");
    for (w, parameter) in parameters.iter().enumerate() {
        let gradient = parameter.pull_back(gradients[w].clone());
        for n in 0..gradient.data().len() {
            let parts = if C { vec![Complex64::ONE, Complex64::I] } else { vec![Complex64::ONE] };
            for direction in parts {
                let moved = |step: f64| {
                    let mut weights = weights.clone();
                    weights[w].data_mut()[n] += T::from_complex(direction * step);
                    weights[w] = parameter.on_manifold(weights[w].clone());
                    mean(&weights)
                };
                let numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let exact = (gradient.data()[n].to_complex() * direction.conj()).re;
                let error = (numeric - exact).abs() / exact.abs().max(1.0);
                assert!(error < 1e-7, "weight {w} entry {n}: {exact} for {numeric}");
            }
        }
    }
}

#[test]
fn gradients_with_a_target_equal_central_differences() {
    for parameterization in [Parameterization::Unconstrained, Parameterization::Cholesky] {
        let complex = circuit(Product::Kronecker, Weights::Gaussian, 3);
        check_objective::<Complex64, true>(&complex, parameterization, 2.5);
        let real = circuit(Product::Hadamard, Weights::RealGaussian, 1);
        check_objective::<f64, false>(&real, parameterization, 0.5);
    }
}

#[test]
fn a_target_is_one_of_the_variables() {
    let circuit = circuit(Product::Kronecker, Weights::Haar, 1);
    let rows = Batch::from_rows(circuit.variables(), &rows(&circuit, 10)).unwrap();
    let fit = |target, parameterization| {
        let options = FitOptions {
            target,
            parameterization,
            emphasis: 1.0,
            epochs: 1,
            ..FitOptions::default()
        };
        fit(&circuit, &rows, &rows, &options, &mut |_| Control::Continue).map(|_| ())
    };
    assert_eq!(fit(vec![0], Parameterization::Cholesky), Ok(()));
    assert_eq!(
        fit(vec![circuit.num_variables()], Parameterization::Cholesky),
        Err(LearnError::Target)
    );
    let options = FitOptions { target: vec![0], epochs: 1, ..FitOptions::default() };
    let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let circuit = Structure::new(RegionTree::balanced(2), bit).skeleton().unwrap();
    let rows = Batch::from_rows(circuit.variables(), &[0.0, 1.0, 1.0, 1.0]).unwrap();
    let found = super::monotonic::fit(&circuit, &rows, &rows, &options, &mut |_| Control::Continue);
    assert_eq!(found.map(|_| ()), Err(LearnError::Target));
}

fn with_weights<T: Scalar>(circuit: &Circuit, weights: &[Matrix<T>]) -> Circuit {
    circuit.with_weights(weights.iter().map(Weight::from_matrix)).unwrap()
}

#[test]
fn gradients_with_missing_values_equal_central_differences() {
    for parameterization in [Parameterization::Unconstrained, Parameterization::Cholesky] {
        check_missing::<Complex64, true>(&shared(Weights::Gaussian), parameterization);
    }
    for product in [Product::Kronecker, Product::Hadamard] {
        for r in [1, 3] {
            for parameterization in [Parameterization::Unconstrained, Parameterization::Cholesky] {
                let complex = circuit(product, Weights::Gaussian, r);
                check_missing::<Complex64, true>(&complex, parameterization);
                let real = circuit(product, Weights::RealGaussian, r);
                check_missing::<f64, false>(&real, parameterization);
            }
        }
    }
}

/// Compares d⟨A, W(V)⟩ along the direction of a parameter's step with the gradient that it follows,
/// for a linear objective A.
#[test]
fn steps_follow_the_gradient_through_the_factorization() {
    let rng = &mut ChaCha8Rng::seed_from_u64(2);
    let matrix = |rng: &mut ChaCha8Rng| match random_weight(4, 9, Weights::Gaussian, rng) {
        Weight::Complex(m) => m,
        Weight::Real(_) => unreachable!(),
    };
    let objective = matrix(rng);
    let value = |w: &Matrix<Complex64>| -> f64 {
        w.data().iter().zip(objective.data()).map(|(w, a)| (w.conj() * a).re).sum()
    };
    for is_output in [false, true] {
        let (v, kind) = (matrix(rng), Parameterization::Cholesky);
        let start = Parameter::new(&v, is_output, kind, Optimizer::Adam);
        // The first Adam step moves every part by the rate, in the direction of its gradient's sign.
        // To first order, the gain is rate · Σ |gradient|. Compare it with the numeric derivative
        // along this direction.
        let mut moved = start.clone();
        let update =
            Update { optimizer: Optimizer::Adam, rate: 1e-7, number: 1, scale: 1.0, keep: 0.0 };
        moved.step(&start.pull_back(objective.clone()), &update);
        let gain = (value(&moved.w) - value(&start.w)) / 1e-7;
        let mut numeric = 0.0;
        for n in 0..start.w.data().len() {
            for direction in [Complex64::ONE, Complex64::I] {
                let at = |h: f64| {
                    let mut v = start.w.clone();
                    v.data_mut()[n] += direction * h;
                    value(&normalized(v, is_output))
                };
                numeric += ((at(1e-6) - at(-1e-6)) / 2e-6).abs();
            }
        }
        assert!((gain - numeric).abs() < 1e-4 * numeric, "{gain} for {numeric}");
    }
}

fn toy() -> Vec<f64> {
    // x3 = x0 xor x1, x2 copies x0 in nine of ten cases, and x4 is a coin.
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let mut values = Vec::new();
    for _ in 0..600 {
        let (a, b, c): (bool, bool, bool) = (rng.random(), rng.random_bool(0.3), rng.random());
        let copy = if rng.random_bool(0.9) { a } else { !a };
        values.extend([a, b, copy, a ^ b, c].map(|x| f64::from(u8::from(x))));
    }
    values
}

/// A circuit for the toy.
fn toy_circuit() -> Circuit {
    let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let tree = RegionTree::parse("[[[0, 1], [2, 3]], 4]").unwrap();
    let structure = Structure::new(tree, bit).width(4);
    structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(1)).unwrap()
}

/// Fits the toy after removing this fraction of the training cells.
fn toy_fit(parameterization: Parameterization, missing: f64, threads: usize) -> (Circuit, f64) {
    let mut values = toy();
    let rng = &mut ChaCha8Rng::seed_from_u64(8);
    for cell in &mut values[..2500] {
        if rng.random_bool(missing) {
            *cell = f64::NAN;
        }
    }
    let circuit = toy_circuit();
    let train = Batch::from_rows(circuit.variables(), &values[..2500]).unwrap();
    let valid = Batch::from_rows(circuit.variables(), &values[2500..]).unwrap();
    let options = FitOptions { epochs: 60, batch: 50, parameterization, ..FitOptions::default() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let fit = pool
        .install(|| fit(&circuit, &train, &valid, &options, &mut |_| Control::Continue))
        .unwrap();
    if parameterization != Parameterization::Unconstrained {
        assert!(fit.history.iter().all(|e| e.residual < 1e-13));
    }
    let valid = mean_log_likelihood(&fit.circuit, &valid);
    assert!((valid - fit.valid).abs() < 1e-4, "{valid} in f64, {} in f32", fit.valid);
    (fit.circuit.into_circuit(), valid)
}

/// The best possible likelihood is the negative entropy, which is that of two fair coins, a biased
/// coin and the noise of the copy.
#[test]
fn a_known_distribution_is_learned_to_its_entropy() {
    let h = |p: f64| -p * p.ln() - (1.0 - p) * (1.0 - p).ln();
    let entropy = 2.0 * h(0.5) + h(0.3) + h(0.1);
    for parameterization in
        [Parameterization::Cholesky, Parameterization::Stiefel, Parameterization::Unconstrained]
    {
        let (_, valid) = toy_fit(parameterization, 0.0, 2);
        assert!((valid + entropy).abs() < 0.1, "{parameterization:?}: {valid} for {}", -entropy);
    }
    for parameterization in [Parameterization::Cholesky, Parameterization::Unconstrained] {
        let (_, valid) = toy_fit(parameterization, 0.3, 2);
        println!("{parameterization:?}, 30 % missing: {valid} for {}", -entropy);
        assert!((valid + entropy).abs() < 0.15, "{parameterization:?}: {valid} for {}", -entropy);
    }
}

#[test]
fn a_fit_is_the_same_for_any_number_of_threads() {
    for missing in [0.0, 0.1] {
        let [one, three] = [1, 3].map(|n| toy_fit(Parameterization::Cholesky, missing, n));
        assert_eq!(one, three);
    }
}

/// Shared weights stay shared and orthonormal, and the fitted circuit has the reported likelihood.
#[test]
fn shared_weights_are_learned_as_one() {
    let circuit = shared(Weights::Haar);
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let mut values = Vec::new();
    for _ in 0..800 {
        // Both rows have the same level, or the lower one has the next level.
        let level = rng.random_range(0..3_u8);
        let below = (level + rng.random_range(0..2_u8)) % 3;
        values.extend((0..6).map(|n| f64::from(if n < 3 { level } else { below })));
    }
    let train = Batch::from_rows(circuit.variables(), &values[..3600]).unwrap();
    let valid = Batch::from_rows(circuit.variables(), &values[3600..]).unwrap();
    let options = FitOptions { epochs: 60, batch: 50, by_columns: true, ..FitOptions::default() };
    let [one, three] = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let fit = || fit(&circuit, &train, &valid, &options, &mut |_| Control::Continue);
        pool.install(fit).unwrap()
    });
    assert_eq!(one.circuit, three.circuit);
    assert_eq!(one.circuit.weights().len(), circuit.weights().len());
    assert!(one.history.iter().all(|e| e.residual < 1e-13));
    let valid = mean_log_likelihood(&one.circuit, &valid);
    assert!((valid - one.valid).abs() < 1e-4, "{valid} in f64, {} in f32", one.valid);
    // Independent pixels with three levels have -6 ln 3 = -6.6, six equally likely images have
    // -ln 6 = -1.8.
    assert!(valid > -4.0, "{valid}");
}

#[test]
fn a_stopped_fit_keeps_its_best_model() {
    let values = toy();
    let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let structure = Structure::new(RegionTree::balanced(5), bit).width(4);
    let circuit = structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
    let mut steps = 0;
    let fit = fit(&circuit, &rows, &rows, &FitOptions::default(), &mut |p| {
        steps += 1;
        if p.epoch == 2 { Control::Stop } else { Control::Continue }
    })
    .unwrap();
    assert!(fit.history.len() <= 3 && steps <= 12, "{} epochs, {steps} steps", fit.history.len());
    let engine = Engine::new(&fit.circuit);
    assert!(engine.log_marginals(&rows).unwrap().iter().all(|l| l.is_finite()));
}

#[test]
fn a_search_stops_where_validation_does_and_keeps_the_best() {
    let values = toy();
    let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let tree = RegionTree::parse("[[[0, 1], [2, 3]], 4]").unwrap();
    let candidates: Vec<_> = [1, 2, 4, 6]
        .map(|width| {
            let structure = Structure::new(tree.clone(), bit).width(width);
            let options = FitOptions { epochs: 15, ..Defaults::of(500, 5).options(width) };
            (structure.skeleton().unwrap(), options)
        })
        .into();
    let variables = candidates[0].0.variables().to_vec();
    let train = Batch::from_rows(&variables, &values[..2500]).unwrap();
    let valid = Batch::from_rows(&variables, &values[2500..]).unwrap();
    let best = fit_best(&candidates, &train, &valid, None, &mut Starts::default(), &mut |_, _| {
        Control::Continue
    });
    let best = best.unwrap().unwrap();
    assert!(best.index > 0 && best.tried.len() >= 2, "{:?}", best.tried);
    assert!(best.tried.iter().all(|&(_, valid)| valid <= best.fit.valid));
    assert!(best.tried.contains(&(best.index, best.fit.valid)));
    // If the remaining budget is too small for one epoch of the next candidate, it is not started.
    let patient = |(circuit, options): &(Skeleton, FitOptions)| {
        (circuit.clone(), FitOptions { patience: 100, ..options.clone() })
    };
    let patient: Vec<_> = candidates.iter().map(patient).collect();
    let short = fit_best(&patient, &train, &valid, None, &mut Starts::default(), &mut |p, _| {
        let within = if p.epoch_ended { 0.0 } else { p.rows as f64 / p.epoch_rows as f64 };
        Control::Used(0.95 * (p.epoch as f64 + within) / p.epochs as f64)
    });
    let short = short.unwrap().unwrap();
    assert_eq!((short.tried.len(), short.fit.history.len()), (1, 15));
    let none =
        fit_best(&[], &train, &valid, None, &mut Starts::default(), &mut |_, _| Control::Stop)
            .unwrap();
    assert!(none.is_none());
}

#[test]
fn other_bases_are_rejected_or_learned_without_constraint() {
    let variable = |v: usize| {
        let basis = Basis::gaussian(vec![(-1.0, 1.0), (0.0, 0.7), (1.0, 1.0)]).unwrap();
        (Variable::new(format!("x{v}"), Domain::Real), basis)
    };
    let structure = Structure::new(RegionTree::balanced(2), variable).width(3);
    let circuit = structure.build(Weights::Gaussian, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    let rng = &mut ChaCha8Rng::seed_from_u64(6);
    let mut values: Vec<f64> = Vec::new();
    for _ in 0..200 {
        let x: f64 = rng.random_range(-1.0..1.0);
        values.extend([x, if rng.random_bool(0.2) { f64::NAN } else { -x }]);
    }
    let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
    let mut options = FitOptions { epochs: 10, ..Defaults::of(200, 2).options(3) };
    let refused = fit(&circuit, &rows, &rows, &options, &mut |_| Control::Continue);
    assert!(matches!(refused, Err(LearnError::Basis { .. })));
    (options.parameterization, options.rate) = (Parameterization::Unconstrained, 0.02);
    let fit = fit(&circuit, &rows, &rows, &options, &mut |_| Control::Continue).unwrap();
    assert!(fit.valid > fit.history[0].train + 0.1, "{:?}", fit.history);
    let exact = mean_log_likelihood(&fit.circuit, &rows);
    assert!((fit.valid - exact).abs() < 1e-4, "{} for {exact}", fit.valid);
}

/// A search goes up from the third candidate as long as that is better, first by two; otherwise, down.
#[test]
fn a_search_climbs_from_the_middle() {
    let order = |values: &[f64], margin: f64| {
        let mut tried = Vec::new();
        let sizes: Vec<[usize; 2]> = (0..values.len()).map(|n| [n, 1]).collect();
        while let Some(n) = super::search::next(&tried, &sizes, margin) {
            tried.push((n, values[n]));
        }
        tried.into_iter().map(|(n, _)| n).collect::<Vec<_>>()
    };
    assert_eq!(order(&[1.0, 2.0, 3.0, 9.0, 4.0, 5.0, 4.5, 9.0], 0.0), [2, 4, 5, 6]);
    assert_eq!(order(&[1.0, 2.0, 3.0, 4.0, 2.0, 9.0], 0.0), [2, 4, 3]);
    assert_eq!(order(&[5.0, 4.0, 3.0, 2.0, 1.0, 9.0], 0.0), [2, 4, 3, 1, 0]);
    // Differences that are explained by chance do not count.
    assert_eq!(order(&[9.0, 3.2, 3.0, 2.0, 3.1, 9.0], 0.3), [2, 4, 3, 1]);
    assert_eq!(order(&[1.0, 2.0, 3.0, 4.0], 0.0), [2, 3]);
    assert_eq!(order(&[1.0, 0.5], 0.0), [1, 0]);
    assert_eq!(order(&[1.0], 0.0), [0]);
    assert_eq!(order(&[], 0.0), [0; 0]);
}

#[test]
fn a_search_tries_more_or_fewer_functions_and_wider_circuits() {
    let order = |values: [[f64; 3]; 4]| {
        let sizes: Vec<[usize; 2]> =
            (0..4).flat_map(|w| (0..3).map(move |f| [2 << w, 8 << f])).collect();
        let mut tried = Vec::new();
        while let Some(n) = super::search::next(&tried, &sizes, 0.0) {
            tried.push((n, values[n / 3][n % 3]));
        }
        tried.into_iter().map(|(n, _)| [n / 3, n % 3]).collect::<Vec<_>>()
    };
    let worse = [0.0; 3];
    assert_eq!(
        order([worse, worse, [1.0, 2.0, 1.0], [9.0, 3.0, 9.0]]),
        [[2, 1], [2, 2], [2, 0], [3, 1]]
    );
    assert_eq!(
        order([worse, [4.0, 0.0, 0.0], [3.0, 1.0, 0.5], worse]),
        [[2, 1], [2, 2], [2, 0], [3, 0], [1, 0], [0, 0]]
    );
    assert_eq!(order([worse, worse, [9.0, 2.0, 3.0], worse]), [[2, 1], [2, 2], [3, 2], [1, 2]]);
}

#[test]
fn widths_are_limited_by_the_work() {
    assert_eq!(Defaults::of(100, 49).widths(), [2, 4, 8, 12, 16, 24, 32]);
    // Few variables: circuits grow where they are full.
    assert_eq!(Defaults::of(100, 48).widths(), [2, 4, 8, 16]);
    assert_eq!(Defaults::of(100, 48).with_effort(Effort::Best).widths(), [2, 4, 8, 16]);
    assert_eq!(Defaults::of(400_000, 20).widths(), [2, 4, 8]);
    assert_eq!(Defaults::of(2_000, 1_058).widths(), [2, 4, 8, 12, 16]);
    assert_eq!(Defaults::of(2_000, 1_058).with_missing(2_000).widths(), [2, 4, 8]);
    assert_eq!(Defaults::of(60_000, 784).widths(), [16]);
    // Few rows take many epochs, in which the weights are updated as often.
    let quick = |rows, variables, count| {
        let defaults = Defaults::of(rows, variables);
        defaults.widths().iter().rfind(|w| defaults.is_quick(**w, count)).copied()
    };
    assert_eq!([quick(135, 160, 5), quick(135, 160, 1)], [Some(16), Some(32)]);
    assert_eq!([quick(2_000, 1_058, 1), quick(100, 48, 5)], [Some(8), Some(16)]);
    assert_eq!(Defaults::of(60_000, 784).with_missing(1).widths(), [8]);
    let fast = |rows, variables| Defaults::of(rows, variables).with_effort(Effort::Fast);
    assert_eq!(fast(7_999, 10).widths(), [8]);
    assert_eq!(fast(8_000, 10).widths(), [12]);
    assert_eq!(fast(16_000, 10).widths(), [16]);
    assert_eq!(fast(16_000, 10).with_missing(16_000).widths(), [8]);
    assert_eq!(fast(16_000, 100).widths(), [12]);
    assert_eq!(fast(16_000, 500).widths(), [8]);
    assert_eq!(fast(60_000, 784).widths(), [16]);
}

#[test]
fn several_circuits_share_the_work_of_wide_ones() {
    let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(64)), Basis::indicator(64));
    let of_width = |w| Structure::new(RegionTree::balanced(16), leaf).width(w).skeleton().unwrap();
    let defaults = Defaults::of(1_000, 16);
    let largest = |count: usize| (1..64).rfind(|w| defaults.is_affordable(&of_width(*w), count));
    let [alone, shared] = [1, 5].map(largest);
    assert!(alone < Some(63) && shared > Some(8) && shared < alone, "{shared:?} of {alone:?}");
    let best = defaults.with_effort(Effort::Best);
    assert!(best.is_affordable(&of_width(63), 5));
}

#[test]
fn few_variables_with_many_values_have_a_higher_rate() {
    let rate = |variables, values| {
        Defaults::of(19_200, variables).with_values(values).options(8).rate * 8.0
    };
    assert!((rate(24, 192) - 0.025).abs() < 1e-12);
    for (variables, values) in [(24, 191), (25, 1000), (24, 0)] {
        assert!((rate(variables, values) - 0.01).abs() < 1e-12);
    }
}

/// The first partner is a single square, which does not help. The second is as good as the best
/// candidate and has another tree.
#[test]
fn a_poor_partner_is_not_the_last_one() {
    let values = toy();
    let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let over = |tree: &str, width, seed| {
        let structure = Structure::new(RegionTree::parse(tree).unwrap(), bit).width(width);
        let options = FitOptions { epochs: 4, seed, ..Defaults::of(500, 5).options(width) };
        let options = FitOptions { squares: width, ..options };
        (structure.output_width(width).skeleton().unwrap(), options)
    };
    let best = [over("[[[0, 2], 4], [1, 3]]", 2, 0)];
    let asked = RefCell::new(Vec::new());
    let of = |_: &FitOptions, n: usize| {
        asked.borrow_mut().push(n);
        let tree = if n == 0 { "[0, [1, [2, [3, 4]]]]" } else { "[[[0, 1], [2, 3]], 4]" };
        Some(over(tree, if n == 0 { 1 } else { 4 }, n as u64 + 1))
    };
    let variables = best[0].0.variables().to_vec();
    let train = Batch::from_rows(&variables, &values[..2500]).unwrap();
    let valid = Batch::from_rows(&variables, &values[2500..]).unwrap();
    let found = |most: usize, from: Option<&[u8]>, go: &mut dyn FnMut(&Snapshot<'_>) -> Control| {
        let partners = Some(Partners { most, of: &of });
        let further = Further { partners, ..Further::default() };
        let progress = &mut |_: &Progress, s: &Snapshot<'_>| go(s);
        let (rows, starts) = (Rows::new(&train, &valid), &mut Starts::default());
        search(&best, rows, &further, from, starts, progress).unwrap().unwrap()
    };
    let mut count = 0;
    let whole = found(2, None, &mut |_| {
        count += 1;
        Control::Continue
    });
    assert_eq!(asked.take(), [0, 1, 2], "the third is requested, because the second is kept");
    assert!(!whole.partners.is_empty());
    // With at most one partner, one is fitted.
    assert!(found(1, None, &mut |_| Control::Continue).partners.is_empty());
    assert_eq!(asked.take(), [0]);
    // A continued search has the same partners, wherever it was stopped.
    for stop in (1..=count).step_by(3) {
        let (mut bytes, mut step) = (Vec::new(), 0);
        found(2, None, &mut |snapshot| {
            step += 1;
            if step < stop {
                return Control::Continue;
            }
            bytes = snapshot.to_bytes();
            Control::Stop
        });
        let rest = found(2, Some(&bytes), &mut |_| Control::Continue);
        assert_eq!(rest.weights, whole.weights, "stopped at {stop} of {count}");
        let weights = |found: &Found| found.partners[0].circuit.weights().to_vec();
        assert_eq!(weights(&rest), weights(&whole), "stopped at {stop} of {count}");
    }
}

/// Stops a search at many of its steps, and continues from the bytes of the checkpoint.
#[test]
fn a_continued_search_ends_in_the_same_circuit() {
    let mut values = toy();
    values[7] = f64::NAN;
    let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let candidate = |width| {
        let structure = Structure::new(RegionTree::balanced(5), bit).width(width);
        let options = FitOptions { epochs: 4, batch: 60, ..Defaults::of(400, 5).options(width) };
        (structure.skeleton().unwrap(), options)
    };
    let mut candidates = [1, 2, 3].map(candidate);
    let variables = candidates[0].0.variables().to_vec();
    let train = Batch::from_rows(&variables, &values[..2000]).unwrap();
    let valid = Batch::from_rows(&variables, &values[2000..]).unwrap();
    let mut count = 0;
    let whole = fit_best(&candidates, &train, &valid, None, &mut Starts::default(), &mut |_, _| {
        count += 1;
        Control::Continue
    });
    let whole = whole.unwrap().unwrap();
    let mut bytes = Vec::new();
    for stop in (1..=count).step_by(5).chain([count]) {
        let mut step = 0;
        fit_best(&candidates, &train, &valid, None, &mut Starts::default(), &mut |_, snapshot| {
            step += 1;
            if step < stop {
                return Control::Continue;
            }
            bytes = snapshot.to_bytes();
            Control::Stop
        })
        .unwrap();
        let rest = fit_best(
            &candidates,
            &train,
            &valid,
            Some(&bytes),
            &mut Starts::default(),
            &mut |_, _| {
                step += 1;
                Control::Continue
            },
        );
        let rest = rest.unwrap().unwrap();
        assert_eq!(step, count, "stopped at {stop}");
        assert_eq!((rest.index, &rest.tried), (whole.index, &whole.tried));
        let plain = |best: &super::BestFit| best.fit.circuit.clone().into_circuit();
        assert_eq!(plain(&rest), plain(&whole));
        assert_eq!(rest.fit.history, whole.fit.history);
    }
    let refused = |candidates: &[_], train, valid, bytes: &[u8]| {
        let go_on = &mut |_: &_, _: &super::Snapshot<'_>| Control::Continue;
        fit_best(candidates, train, valid, Some(bytes), &mut Starts::default(), go_on).unwrap_err()
    };
    let error = refused(&candidates, &valid, &valid, &bytes);
    assert_eq!(error, LearnError::OtherFit { what: "training rows" });
    let error = refused(&candidates, &train, &train, &bytes);
    assert_eq!(error, LearnError::OtherFit { what: "validation rows" });
    assert_eq!(refused(&candidates, &train, &valid, &bytes[..99]), LearnError::Damaged);
    assert_eq!(refused(&candidates, &train, &valid, b"PAR1"), LearnError::NoCheckpoint);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    assert_eq!(refused(&candidates, &train, &valid, &bytes), LearnError::Damaged);
    bytes[middle] ^= 1;
    candidates[2].1.rate *= 2.0;
    let error = refused(&candidates, &train, &valid, &bytes);
    assert_eq!(error, LearnError::OtherFit { what: "structure or options" });
}

/// A narrow circuit over two equal halves, and rows. It is full: it needs one output for each value of a half.
fn full_circuit() -> ([(Skeleton, FitOptions); 1], [Batch; 2]) {
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let half = (0..400).map(|_| [0, 1, 2].map(|_| f64::from(rng.random_range(0..2_u32))));
    let values: Vec<f64> = half.flat_map(|h| h.into_iter().chain(h).chain([0.0])).collect();
    let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let tree = RegionTree::parse("[[[[0, 1], 2], [[3, 4], 5]], 6]").unwrap();
    let structure = Structure::new(tree, leaf).width(2).output_width(4);
    let options = FitOptions { epochs: 30, batch: 50, ..Defaults::of(400, 7).options(2) };
    let candidates = [(structure.skeleton().unwrap(), options)];
    let batch = |values| Batch::from_rows(candidates[0].0.variables(), values).unwrap();
    let rows = [&values[..2100], &values[2100..]].map(batch);
    (candidates, rows)
}

/// A partner of a circuit that has become much better than it ends early, and a partner of a circuit
/// that could not become wider does not.
#[test]
fn a_hopeless_partner_ends_early() {
    let (candidates, [train, valid]) = full_circuit();
    let (circuit, settings) = &candidates[0];
    let epochs_of_partner = |may_widen: bool| {
        let is_affordable = |_: &Skeleton| may_widen;
        let settings = FitOptions { epochs: 20, patience: 20, seed: 1, ..settings.clone() };
        let of = |_: &FitOptions, _| Some((circuit.clone(), settings.clone()));
        let partners = Some(Partners { most: 1, of: &of });
        let is_affordable = Some(&is_affordable as &dyn Fn(&Skeleton) -> bool);
        let further = Further { is_affordable, partners, ..Further::default() };
        let (rows, starts) = (Rows::new(&train, &valid), &mut Starts::default());
        let mut last = 0.0_f64;
        let found = search(&candidates, rows, &further, None, starts, &mut |p, _| {
            if p.candidate == candidates.len() {
                last = p.epochs_done();
            }
            Control::Continue
        });
        assert!(found.unwrap().is_some());
        last
    };
    let (early, late) = (epochs_of_partner(true), epochs_of_partner(false));
    assert!((5.0..6.0).contains(&early), "{early}");
    assert!(late > 19.0, "{late}");
}

/// A search widens a circuit where it is full, as long as that is better. A search that was stopped
/// anywhere has the same result.
#[test]
fn a_search_widens_circuits_where_they_are_full() {
    let (candidates, [train, valid]) = full_circuit();
    let found = |limit: usize,
                 from: Option<&[u8]>,
                 go: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control| {
        let is_affordable = |circuit: &Skeleton| circuit.num_parameters() <= limit;
        let further = Further { is_affordable: Some(&is_affordable), ..Further::default() };
        let (rows, starts) = (Rows::new(&train, &valid), &mut Starts::default());
        search(&candidates, rows, &further, from, starts, go).unwrap().unwrap().best
    };
    let narrow = found(0, None, &mut |_, _| Control::Continue);
    let mut count = 0;
    let whole = found(usize::MAX, None, &mut |_, _| {
        count += 1;
        Control::Continue
    });
    assert!(whole.fit.valid > narrow.fit.valid + 0.5, "{} {}", whole.fit.valid, narrow.fit.valid);
    let circuit = &whole.fit.circuit;
    let widths = |size: usize| {
        let of_size = circuit.layer_ids().filter(|id| circuit.scope(*id).len() == size);
        let sums = of_size.filter(|id| matches!(circuit.layer(*id), Layer::Sum { .. }));
        sums.map(|id| circuit.width(id)).collect::<Vec<_>>()
    };
    // The halves are full, and the whole is not: the last variable is constant.
    assert_eq!(widths(3), [8, 8]);
    assert!(widths(6)[0] < 8, "{:?}", widths(6));
    for stop in (1..=count).step_by(count / 7).chain([count]) {
        let (mut bytes, mut step) = (Vec::new(), 0);
        found(usize::MAX, None, &mut |_, snapshot| {
            step += 1;
            if step < stop {
                return Control::Continue;
            }
            bytes = snapshot.to_bytes();
            Control::Stop
        });
        let rest = found(usize::MAX, Some(&bytes), &mut |_, _| Control::Continue);
        assert_eq!(rest.fit.circuit.weights(), circuit.weights(), "stopped at {stop} of {count}");
    }
}

/// If the budget is too small for a wider circuit, it is left out for a partner of the first, but not
/// if there can be no partners.
#[test]
fn a_search_leaves_out_circuits_that_it_cannot_finish() {
    let rng = &mut ChaCha8Rng::seed_from_u64(7);
    let values: Vec<f64> =
        (0..100 * 60).map(|_| f64::from(u8::from(rng.random_bool(0.5)))).collect();
    let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let candidate = |width: usize| {
        let structure = Structure::new(RegionTree::balanced(60), leaf).width(width).output_width(4);
        let options =
            FitOptions { epochs: 20, patience: 20, ..Defaults::of(60, 60).options(width) };
        (structure.skeleton().unwrap(), options)
    };
    let candidates = [2, 4, 16, 32].map(candidate);
    let variables = candidates[0].0.variables().to_vec();
    let train = Batch::from_rows(&variables, &values[..60 * 60]).unwrap();
    let valid = Batch::from_rows(&variables, &values[60 * 60..]).unwrap();
    let found = |most: usize| {
        let partner = |settings: &FitOptions, n: usize| {
            (n == 0).then(|| (candidates[0].0.clone(), settings.clone()))
        };
        let partners = Some(Partners { most, of: &partner });
        let further = Further { partners, ..Further::default() };
        let (rows, starts) = (Rows::new(&train, &valid), &mut Starts::default());
        let mut fitted = Vec::new();
        let best = search(&candidates, rows, &further, None, starts, &mut |p, _| {
            fitted.push(p.candidate);
            // The first circuit takes half of the budget.
            let done = p.epochs_done() / p.epochs as f64;
            Control::Used(if p.candidate == 2 { 0.5 * done } else { 0.5 + 0.01 * done })
        });
        fitted.dedup();
        (fitted, best.unwrap().unwrap().best.tried)
    };
    let (fitted, tried) = found(1);
    assert!(!fitted.contains(&3), "{fitted:?}");
    assert!(fitted.contains(&candidates.len()), "{fitted:?}");
    assert!(tried.iter().all(|(n, valid)| *n <= 2 && valid.is_finite()), "{tried:?}");
    assert!(found(0).0.contains(&3));
}

/// The likelihood of the toy is about −3.2 for independent columns, and −2.3 at its entropy.
#[test]
fn every_optimizer_and_schedule_learns() {
    let values = toy();
    let circuit = toy_circuit();
    let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
    let learned = |options: FitOptions| {
        fit(&circuit, &rows, &rows, &options, &mut |_| Control::Continue).unwrap().valid
    };
    let base = FitOptions { epochs: 20, batch: 50, ..FitOptions::default() };
    let momentum =
        FitOptions { optimizer: Optimizer::Momentum, rate: 0.02, clip: Some(2.0), ..base.clone() };
    for options in [
        FitOptions { schedule: Schedule::Plateau, ..base.clone() },
        FitOptions { clip: Some(0.5), ..base.clone() },
        FitOptions { smoothing: vec![1e-3; 5], ..base },
        momentum,
    ] {
        let valid = learned(options.clone());
        assert!(valid > -2.6, "{valid} with {options:?}");
    }
}

/// Checks the gradients of a monotonic circuit by V, with and without missing values, and the sum of
/// its probabilities over all rows.
#[test]
fn monotonic_circuits_are_normalized_and_their_gradients_exact() {
    use super::monotonic;
    let kind = Parameterization::Monotonic;
    let leaf = |v: usize| {
        let n = 2 + v % 3;
        (Variable::new(format!("x{v}"), Domain::Finite(n)), Basis::indicator(n))
    };
    for product in [Product::Kronecker, Product::Hadamard] {
        let tree = RegionTree::parse("[[0, 1], [2, 3]]").unwrap();
        let structure = Structure::new(tree, leaf).width(3).product(product);
        let rng = &mut ChaCha8Rng::seed_from_u64(4);
        let circuit = structure.build(Weights::RealGaussian, rng).unwrap();
        let program = program_of(&circuit).unwrap();
        let parameters: Vec<Parameter<f64>> = (circuit.weights().iter())
            .map(|w| {
                let w = super::parameter::softmax(&w.to_matrix::<f64>());
                Parameter::new(&w, false, kind, Optimizer::Adam)
            })
            .collect();
        let weights: Vec<Matrix<f64>> = parameters.iter().map(|p| p.w.clone()).collect();
        let normal = with_weights(&circuit, &weights);
        // All 2 · 3 · 4 · 2 rows, and some with missing values.
        let mut values: Vec<f64> = Vec::new();
        for n in 0..48 {
            values.extend([n % 2, n / 2 % 3, n / 6 % 4, n / 24].map(f64::from));
        }
        let logs = |values: &[f64]| {
            let rows = Batch::from_rows(circuit.variables(), values).unwrap();
            monotonic::mean_log_likelihood(&normal, &rows).unwrap()
        };
        let total: f64 = values.chunks_exact(4).map(|row| logs(row).exp()).sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
        let third: f64 =
            values.chunks_exact(4).filter(|r| r[1] == 2.0).map(|r| logs(r).exp()).sum();
        let marginal = logs(&[f64::NAN, 2.0, f64::NAN, f64::NAN]).exp();
        assert!((third - marginal).abs() < 1e-12, "{marginal} for {third}");
        values.iter_mut().step_by(7).for_each(|x| *x = f64::NAN);
        let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
        let all: Vec<usize> = (0..rows.len()).collect();
        let mean = |weights: &[Matrix<f64>]| {
            let weights: Vec<&Matrix<f64>> = weights.iter().collect();
            let workspace = Workspace::<f64>::new(&program, &weights, true);
            Objective::new(&program, weights, kind).mean::<f64, false>(&rows, &all, &workspace)
        };
        let borrowed: Vec<&Matrix<f64>> = weights.iter().collect();
        let memory = &mut Memory::default();
        let workspace = Workspace::<f64>::new(&program, &borrowed, true);
        let objective = Objective::new(&program, borrowed, kind);
        let (value, _) = objective.reverse::<f64, false>(
            &rows,
            &all,
            1.0 / all.len() as f64,
            &workspace,
            memory,
        );
        assert!((value - mean(&weights)).abs() < 1e-12);
        let gradients = all_gradients::<f64, false>(&program, &weights, memory);
        for (w, parameter) in parameters.iter().enumerate() {
            let gradient = parameter.pull_back(gradients[w].clone());
            for n in 0..gradient.data().len() {
                let moved = |step: f64| {
                    let mut v = weights[w].map(f64::ln);
                    v.data_mut()[n] += step;
                    let mut weights = weights.clone();
                    weights[w] = super::parameter::softmax(&v);
                    mean(&weights)
                };
                let (numeric, exact) = ((moved(1e-5) - moved(-1e-5)) / 2e-5, gradient.data()[n]);
                assert!(
                    (numeric - exact).abs() < 1e-8,
                    "weight {w} entry {n}: {exact} for {numeric}"
                );
            }
        }
    }
}

#[test]
fn a_monotonic_circuit_learns_the_toy() {
    use super::monotonic;
    let values = toy();
    let circuit = toy_circuit();
    let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
    let options = FitOptions { epochs: 40, batch: 50, rate: 0.05, ..FitOptions::default() };
    let fit = monotonic::fit(&circuit, &rows, &rows, &options, &mut |_| Control::Continue).unwrap();
    let valid = monotonic::mean_log_likelihood(&fit.circuit, &rows).unwrap();
    assert!((valid - fit.valid).abs() < 1e-4, "{valid} in f64, {} in f32", fit.valid);
    assert!(valid > -2.6 && fit.history.iter().all(|e| e.residual < 1e-12), "{valid}");
    assert_eq!(monotonic::binned(&[0.0, 0.49, 1.0, 0.5], 2), [0.0, 0.0, 1.0, 1.0]);
}

//! The contract of all backends.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Backend, Numbers, Selection, start};
use crate::basis::Basis;
use crate::circuit::{Circuit, Orthonormal, Weights};
use crate::engine::Batch;
use crate::learn::error::LearnError;
use crate::learn::mean_log_likelihood;
use crate::learn::optimizer::{Optimizer, Update};
use crate::learn::options::{Device, FitOptions};
use crate::learn::parameter::Parameterization;
use crate::learn::pieces::Rows;
use crate::learn::trainer::draw_shifts;
use crate::structure::{Product, RegionTree, Structure};
use crate::{Domain, Variable};

type Start =
    for<'a> fn(&Circuit, Rows<'a>, &'a FitOptions) -> Result<Box<dyn Backend + 'a>, LearnError>;

const ROWS: usize = 150;

/// A circuit, rows for it, and settings.
struct Case {
    circuit: Circuit,
    rows: Batch,
    options: FitOptions,
}

/// Both kinds of products, real and complex weights, shared weights, and finite and continuous
/// variables.
fn cases() -> Vec<Case> {
    let finite =
        |v: usize| (Variable::new(format!("x{v}"), Domain::Finite(5)), Basis::indicator(5));
    let mixed = |v: usize| match v % 3 {
        1 => (Variable::new(format!("x{v}"), Domain::Real), Basis::hermite(4, 0.0, 1.0).unwrap()),
        _ => finite(v),
    };
    let image = || Structure::new(RegionTree::image(3, 4, 1), finite);
    let structures = [
        (Structure::new(RegionTree::balanced(9), mixed).width(5).output_width(2), Weights::Haar),
        (image().width(3).product(Product::Hadamard), Weights::RealHaar),
        (image().width(6).codebook(Some(4)), Weights::Haar),
        (image().width(17).share(4), Weights::RealHaar),
    ];
    let options = FitOptions { batch: 70, by_columns: true, ..FitOptions::default() };
    let options = [
        FitOptions { roughness: 1e-3, ..options.clone() },
        FitOptions {
            parameterization: Parameterization::Stiefel,
            clip: Some(0.5),
            ..options.clone()
        },
        FitOptions { shifts: Some([3, 4, 1]), ..options.clone() },
        FitOptions { smoothing: vec![1e-3; 12], ..options },
    ];
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let cases = structures.into_iter().zip(options);
    cases
        .map(|((structure, weights), options)| {
            let circuit = structure.build(weights, rng).unwrap();
            let value = |variable: &Variable, rng: &mut ChaCha8Rng| match variable.domain {
                Domain::Finite(n) => rng.random_range(0..n * 2).min(n - 1) as f64,
                _ => rng.random_range(-1.0..1.5),
            };
            let rows = (0..ROWS).flat_map(|_| circuit.variables());
            let values: Vec<f64> = rows.map(|v| value(v, rng)).collect();
            let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
            Case { circuit, rows, options }
        })
        .collect()
}

fn update(optimizer: Optimizer, rate: f64, number: u32, keep: f64) -> Update {
    Update { optimizer, rate, number, scale: 1.0, keep }
}

/// Takes some steps, alternating between full batches and smaller ones, with shifted images if the
/// settings ask for them.
fn learn(backend: &mut dyn Backend, case: &Case, steps: std::ops::Range<u32>, update: Update) {
    for n in steps {
        let rows: Vec<usize> = (0..ROWS).filter(|row| row % 3 == n as usize % 3).collect();
        let rng = &mut ChaCha8Rng::seed_from_u64(n.into());
        let shifts = case.options.shifts.map(|image| draw_shifts(image, rows.len(), rng));
        let rows = if n % 2 == 0 { &rows } else { &rows[..33] };
        let selection = Selection { rows, shifts: shifts.as_ref() };
        backend.step(&selection, Update { number: n + 1, ..update }).unwrap();
    }
}

fn contract(start: Start) {
    for (n, case) in cases().iter().enumerate() {
        let rows = Rows::new(&case.rows, &case.rows);
        let all: Vec<usize> = (0..ROWS).collect();
        let begin = |options| start(&case.circuit, rows, options).unwrap();

        // A step and a score return the mean log-likelihood.
        let truth = Orthonormal::verify(case.circuit.clone()).unwrap();
        let truth = mean_log_likelihood(&truth, &case.rows);
        let plain = FitOptions {
            optimizer: Optimizer::Momentum,
            batch: ROWS,
            clip: None,
            by_columns: false,
            smoothing: Vec::new(),
            roughness: 0.0,
            ..case.options.clone()
        };
        let mut backend = begin(&plain);
        let score = backend.score().unwrap();
        assert!((score - truth).abs() < 1e-4, "case {n}: {score} for {truth}");
        let selection = Selection { rows: &all, shifts: None };
        let still = update(Optimizer::Momentum, 0.0, 1, 0.0);
        let mean = backend.step(&selection, still).unwrap();
        assert!((mean - truth).abs() < 1e-4, "case {n}: {mean} for {truth}");

        // The first moment is the gradient, so a short step along it gains its squared norm.
        let gradient = backend.parameters().unwrap();
        let norm2: f64 = gradient.iter().flat_map(|p| &p.mean).map(|&g| f64::from(g).powi(2)).sum();
        let rate = 3e-3 / norm2;
        let mut backend = begin(&plain);
        backend.step(&selection, Update { rate, ..still }).unwrap();
        let gain = backend.score().unwrap() - score;
        assert!((gain / 3e-3 - 1.0).abs() < 0.1, "case {n}: gained {gain}");

        // Weights stay normalized.
        let adam = update(Optimizer::Adam, 0.02, 1, 0.5);
        let mut backend = begin(&case.options);
        learn(&mut *backend, case, 0..4, adam);
        let residual = backend.residual().unwrap();
        assert!(residual < 1e-5, "case {n}: {residual}");

        // The same steps give the same bits, also in a continued fit.
        let mut again = begin(&case.options);
        learn(&mut *again, case, 0..2, adam);
        let saved = again.parameters().unwrap();
        learn(&mut *again, case, 2..4, adam);
        assert_eq!(backend.parameters().unwrap(), again.parameters().unwrap(), "case {n}");
        let mut continued = begin(&case.options);
        continued.set_parameters(&saved).unwrap();
        learn(&mut *continued, case, 2..4, adam);
        assert_eq!(backend.parameters().unwrap(), continued.parameters().unwrap(), "case {n}");
        assert_eq!(backend.score().unwrap(), continued.score().unwrap(), "case {n}");
        let averages: Vec<Vec<f32>> =
            backend.parameters().unwrap().into_iter().map(|p| p.average).collect();
        assert_ne!(backend.kept().unwrap(), averages, "case {n}");
        let learned = backend.score().unwrap();
        backend.keep().unwrap();
        assert_eq!(backend.kept().unwrap(), averages, "case {n}");
        learn(&mut *backend, case, 0..1, adam);
        assert_eq!(backend.kept().unwrap(), averages, "case {n}");
        continued.set_kept(averages.clone()).unwrap();
        assert_eq!(continued.kept().unwrap(), averages, "case {n}");
        assert!(continued.set_kept(averages[1..].to_vec()).is_err());
        assert!(continued.set_parameters(&saved[1..]).is_err());
        let cut: Vec<Numbers> = saved.iter().map(|_| Numbers::default()).collect();
        assert!(continued.set_parameters(&cut).is_err());

        // Every backend follows the same gradient as the CPU, with penalties, clipping and shifted
        // images. Real densities have zeros, near which long steps diverge; complex ones agree.
        let options = FitOptions { optimizer: Optimizer::Momentum, ..case.options.clone() };
        let [own, processor] = [start, super::on_processor as Start].map(|start| {
            let mut backend = start(&case.circuit, rows, &options).unwrap();
            learn(&mut *backend, case, 0..2, update(Optimizer::Momentum, 1e-4, 1, 0.5));
            let parameters = backend.parameters().unwrap();
            parameters.into_iter().flat_map(|p| p.mean).map(f64::from).collect::<Vec<f64>>()
        });
        let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
        let apart = norm(&mut own.iter().zip(&processor).map(|(a, b)| a - b));
        let length = norm(&mut processor.iter().copied());
        assert!(apart < 0.02 * length, "case {n}: {apart} of {length}");
        if !case.circuit.is_real() {
            let mut processor = super::on_processor(&case.circuit, rows, &case.options).unwrap();
            learn(&mut *processor, case, 0..4, adam);
            let scores = [learned, processor.score().unwrap()];
            assert!((scores[0] - scores[1]).abs() < 5e-3, "case {n}: {scores:?}");
            assert!(scores[0] > truth, "case {n}: nothing learned, {scores:?} from {truth}");
        }
    }
}

#[test]
fn the_processor_keeps_the_contract() {
    contract(super::on_processor);
}

#[cfg(feature = "cuda")]
#[test]
fn the_device_keeps_the_contract() {
    if let Err(error) = bornite_cuda::Device::open() {
        eprintln!("skipped: {error}");
        return;
    }
    contract(super::on_cuda);
}

/// Without a device, asking for one fails, and the automatic choice is the CPU.
#[test]
fn without_a_device_auto_is_the_cpu() {
    #[cfg(feature = "cuda")]
    if bornite_cuda::Device::open().is_ok() {
        return;
    }
    let Case { circuit, rows, options } = cases().remove(0);
    let on = |device| {
        start(&circuit, Rows::new(&rows, &rows), &FitOptions { device, ..options.clone() }).err()
    };
    assert!(matches!(on(Device::Cuda), Some(LearnError::Device { .. })));
    assert_eq!(on(Device::Auto), None);
}

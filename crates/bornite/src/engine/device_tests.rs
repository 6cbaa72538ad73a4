//! The contract of log densities and samples on every device.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::tests::{circuits, queries};
use super::{Batch, Device, Engine};
use crate::circuit::{Orthonormal, Weights};
use crate::ops::log_marginal;
use crate::query::{Evidence, Query, QueryError};
use crate::structure::{Product, RegionTree, Structure};
use crate::{Basis, Domain, Variable};

/// Products of both kinds and with many inputs, real and complex weights, separate and shared
/// weights and a codebook, finite and continuous variables, and widths around those of tiles.
fn cases() -> Vec<(String, Orthonormal)> {
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let finite =
        |v: usize| (Variable::new(format!("x{v}"), Domain::Finite(5)), Basis::indicator(5));
    let image = || Structure::new(RegionTree::image(3, 4, 1), finite);
    let mut cases = circuits();
    for (name, structure, weights) in [
        ("Hadamard", image().width(3).product(Product::Hadamard), Weights::RealHaar),
        ("codebook", image().width(6).codebook(Some(4)), Weights::Haar),
        ("shared", image().width(17).share(4), Weights::RealHaar),
        ("wide", image().width(34).output_width(3), Weights::Haar),
    ] {
        let circuit = structure.build(weights, rng).unwrap();
        cases.push((name.to_owned(), Orthonormal::verify(circuit).unwrap()));
    }
    cases
}

/// Rows that are complete, and rows with half of the values missing, with scattered missing values,
/// and with none; with sets and intervals; and with impossible evidence.
fn rows(circuit: &Orthonormal, rng: &mut ChaCha8Rng) -> Vec<Query> {
    let d = circuit.num_variables();
    let mut all = queries(circuit, 40, [0.0, 0.0], rng);
    for mut query in queries(circuit, 40, [0.0, 0.0], rng) {
        for v in 0..d / 2 {
            query.set(circuit.variables(), v, Evidence::Unknown).unwrap();
        }
        all.push(query);
    }
    for (count, shares) in [(40, [0.4, 0.0]), (40, [0.3, 0.3]), (3, [1.0, 0.0])] {
        all.extend(queries(circuit, count, shares, rng));
    }
    all
}

fn contract(device: Device) {
    for (name, circuit) in cases() {
        let rng = &mut ChaCha8Rng::seed_from_u64(9);
        let (double, single) = (Engine::new(&circuit), Engine::single(&circuit));
        let queries = rows(&circuit, rng);
        let batch = Batch::from_queries(circuit.variables(), &queries).unwrap();
        let logs = double.log_marginals_on(&batch, device).unwrap();
        let roughly = single.log_marginals_on(&batch, device).unwrap();
        for (row, query) in queries.iter().enumerate() {
            let expected = log_marginal(&circuit, query).unwrap();
            if expected == f64::NEG_INFINITY {
                assert_eq!(logs[row], expected, "{name}, row {row}");
                continue;
            }
            let within = |log: f64, digits: f64| {
                let apart = (log - expected).abs();
                assert!(
                    apart <= digits * expected.abs().max(1.0),
                    "{name}, row {row}: {log} for {expected}"
                );
            };
            within(logs[row], 1e-9);
            // A matrix has half the digits of the vectors that it is made of, which is not enough
            // for very unlikely rows.
            if expected > -25.0 {
                within(roughly[row], 1e-2);
            }
        }

        // Again, for the same bits.
        let again = double.log_marginals_on(&batch, device).unwrap();
        let bits = |logs: &[f64]| logs.iter().map(|l| l.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&logs), bits(&again), "{name}");

        // Only complete rows, and no rows.
        let complete = batch.select(&(0..40).collect::<Vec<_>>());
        let alone = double.log_marginals_on(&complete, device).unwrap();
        for (a, b) in alone.iter().zip(&logs) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{name}: {a} for {b}");
        }
        assert!(double.log_marginals_on(&batch.select(&[]), device).unwrap().is_empty());
        let other = Batch::unknown(circuit.num_variables() + 1, 2);
        assert!(matches!(double.log_marginals_on(&other, device), Err(QueryError::Count { .. })));
    }
}

/// Samples follow the circuit's distribution. They are the same in any pieces, and for any number
/// of samples.
fn contract_of_samples(device: Device) {
    let rng = &mut ChaCha8Rng::seed_from_u64(6);
    let finite =
        |v: usize| (Variable::new(format!("x{v}"), Domain::Finite(5)), Basis::indicator(5));
    let of = |tree: RegionTree| Structure::new(tree, finite);
    for (name, structure, weights) in [
        ("one variable", of(RegionTree::balanced(1)).output_width(2), Weights::Haar),
        ("linear", of(RegionTree::linear(7)).width(5), Weights::RealHaar),
        ("image", of(RegionTree::image(3, 4, 1)).width(18), Weights::Haar),
        ("outputs", of(RegionTree::image(3, 3, 1)).width(6).output_width(3), Weights::RealHaar),
        (
            "Hadamard",
            of(RegionTree::balanced(9)).width(3).product(Product::Hadamard),
            Weights::Haar,
        ),
    ] {
        let circuit = Orthonormal::verify(structure.build(weights, rng).unwrap()).unwrap();
        let engine = Engine::new(&circuit);
        let samples = engine.sample_from_on(3, 300, 7, device).unwrap();
        assert_eq!(samples, engine.sample_from_on(3, 300, 7, device).unwrap(), "{name}");
        for v in 0..circuit.num_variables() {
            for x in 0..5 {
                let mut query = Query::unknown(circuit.num_variables());
                query.set(circuit.variables(), v, Evidence::Value(f64::from(x))).unwrap();
                let p = log_marginal(&circuit, &query).unwrap().exp();
                let rows = samples.chunks_exact(circuit.num_variables());
                let found = rows.filter(|row| row[v] == f64::from(x)).count() as f64;
                let (expected, deviation) = (300.0 * p, (300.0 * p * (1.0 - p)).sqrt());
                let limit = 5.0 * deviation + 1.0;
                assert!((found - expected).abs() < limit, "{name}: {found} for {expected}");
            }
        }
        let piece = engine.sample_from_on(13, 20, 7, device).unwrap();
        let d = circuit.num_variables();
        assert_eq!(piece, samples[10 * d..30 * d], "{name}");
        assert!(engine.sample_from_on(0, 0, 7, device).unwrap().is_empty());
    }
}

#[test]
fn the_processor_keeps_the_contract() {
    contract(Device::Cpu);
    contract_of_samples(Device::Cpu);
}

#[cfg(feature = "cuda")]
#[test]
fn the_device_keeps_the_contract() {
    if let Err(error) = bornite_cuda::Device::open() {
        eprintln!("skipped: {error}");
        return;
    }
    contract(Device::Cuda);
    contract_of_samples(Device::Cuda);
    let continuous = circuits().remove(0).1;
    let error = Engine::new(&continuous).sample_from_on(0, 5, 7, Device::Cuda).unwrap_err();
    assert!(error.to_string().contains("finite variables"), "{error}");
}

/// Without a device, `Cuda` is an error and `Auto` uses the CPU.
#[test]
fn a_device_is_used_where_there_is_one() {
    #[cfg(feature = "cuda")]
    if bornite_cuda::Device::open().is_ok() {
        return;
    }
    let (_, circuit) = circuits().remove(0);
    let engine = Engine::new(&circuit);
    let rows = Batch::unknown(circuit.num_variables(), 2);
    let error = engine.log_marginals_on(&rows, Device::Cuda).unwrap_err();
    assert!(matches!(error, QueryError::Device { .. }), "{error}");
    assert_eq!(engine.log_marginals_on(&rows, Device::Auto).unwrap(), [0.0, 0.0]);
    assert!(matches!(engine.sample_from_on(0, 3, 7, Device::Cuda), Err(QueryError::Device { .. })));
    assert_eq!(engine.sample_from_on(0, 3, 7, Device::Auto).unwrap(), engine.sample(3, 7));
}

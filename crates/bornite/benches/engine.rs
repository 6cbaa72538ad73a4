//! The engine's queries on the image tree of 28 × 28 pixels, complex f64, Kronecker products:
//!
//! ```sh
//! cargo bench -p bornite --bench engine -- evaluate/8
//! ```
//!
//! These times are for comparing one change with another on one machine; `bornite bench engine` compares them with the
//! machine's peak.

#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;

use bornite::circuit::Weights;
use bornite::engine::{Batch, Engine};
use bornite::structure::{RegionTree, Structure};
use bornite::{Basis, Domain, Orthonormal, Variable};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SIDE: usize = 28;
const STATES: usize = 256;

/// Whether a cell is unknown, by its column and a coin.
type Unknown = fn(usize, bool) -> bool;

fn engine(width: usize) -> Engine {
    let leaf =
        |v| (Variable::new(format!("x{v}"), Domain::Finite(STATES)), Basis::indicator(STATES));
    let structure = Structure::new(RegionTree::image(SIDE, SIDE, 1), leaf).width(width);
    let circuit = match structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(0)) {
        Ok(circuit) => circuit,
        Err(error) => panic!("the structure is whole: {error}"),
    };
    match Orthonormal::verify(circuit) {
        Ok(circuit) => Engine::new(&circuit),
        Err(error) => panic!("Haar weights are semi-unitary: {error}"),
    }
}

/// Random pixels, some unknown.
fn pixels(count: usize, unknown: Unknown) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut cell = |n: usize| {
        let (value, coin) = (rng.random_range(0..STATES) as f64, rng.random());
        if unknown(n % SIDE, coin) { f64::NAN } else { value }
    };
    (0..count * SIDE * SIDE).map(&mut cell).collect()
}

fn rows(engine: &Engine, values: &[f64]) -> Batch {
    match Batch::from_rows(engine.variables(), values) {
        Ok(rows) => rows,
        Err(error) => panic!("pixels are in their domain: {error}"),
    }
}

fn marginals(c: &mut Criterion) {
    let queries: [(&str, usize, Unknown); 3] = [
        ("evaluate", 256, |_, _| false),
        ("half_marginal", 256, |column, _| column < SIDE / 2),
        ("scattered", 32, |_, coin| coin),
    ];
    for (name, count, unknown) in queries {
        let mut group = c.benchmark_group(name);
        group.sample_size(10).throughput(Throughput::Elements(count as u64));
        for width in [8, 16, 32] {
            let engine = engine(width);
            let values = pixels(count, unknown);
            let rows = rows(&engine, &values);
            group.bench_function(BenchmarkId::from_parameter(width), |b| {
                b.iter(|| black_box(engine.log_marginals(black_box(&rows))));
            });
        }
    }
}

fn traversals(c: &mut Criterion) {
    const COUNT: usize = 16;
    let values = pixels(COUNT, |_, _| false);
    let mut group = c.benchmark_group("prefix");
    group.sample_size(10).throughput(Throughput::Elements(COUNT as u64));
    for width in [8, 16] {
        let engine = engine(width);
        let rows = rows(&engine, &values);
        group.bench_function(BenchmarkId::from_parameter(width), |b| {
            b.iter(|| black_box(engine.log_conditionals(black_box(&rows))));
        });
    }
    group.finish();
    let mut group = c.benchmark_group("sample");
    group.sample_size(10).throughput(Throughput::Elements(COUNT as u64));
    for width in [8, 16] {
        let engine = engine(width);
        group.bench_function(BenchmarkId::from_parameter(width), |b| {
            b.iter(|| black_box(engine.sample(COUNT, 0)));
        });
    }
}

criterion_group!(benches, marginals, traversals);
criterion_main!(benches);

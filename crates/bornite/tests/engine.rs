//! The batched engine against the plain operations, row by row.

#![expect(clippy::unwrap_used, reason = "a test")]

use bornite::basis::{FourierForm, Part};
use bornite::circuit::Weights;
use bornite::engine::{Batch, Engine, SimdLevel};
use bornite::ops::{log_marginal, orthonormalize};
use bornite::structure::{Product, RegionTree, Structure};
use bornite::{Basis, Circuit, Domain, Evidence, Orthonormal, Query, Variable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Every kind of variable in turn.
fn leaf(v: usize) -> (Variable, Basis) {
    let (domain, basis) = match v % 8 {
        0 => (Domain::Finite(3), Basis::indicator(3)),
        1 => (Domain::Real, Basis::hermite(5, 0.5, 2.0).unwrap()),
        2 => (Domain::Finite(9), Basis::indicator(9)),
        3 => (Domain::Interval(-1.0, 2.0), Basis::legendre(4, -1.0, 2.0).unwrap()),
        4 => (Domain::Circle(2.0), Basis::fourier(5, 0.0, 2.0, FourierForm::Real).unwrap()),
        5 => (Domain::HalfLine(1.0), Basis::laguerre(4, 1.0, 0.7).unwrap()),
        6 => {
            let basis = Basis::legendre(3, 0.0, 2.0).unwrap().with_atoms(vec![-1.0, 0.0, 0.5]);
            (Domain::with_atoms(vec![-1.0, 0.0, 0.5], Domain::Interval(0.0, 2.0)), basis.unwrap())
        }
        _ => (Domain::Finite(2), Basis::indicator(2)),
    };
    (Variable::new(format!("x{v}"), domain), basis)
}

fn value(domain: &Domain, rng: &mut ChaCha8Rng) -> f64 {
    match *domain {
        Domain::Finite(v) => rng.random_range(0..v) as f64,
        Domain::Real => rng.random_range(-3.0..4.0),
        Domain::Interval(a, b) => rng.random_range(a..b),
        Domain::HalfLine(a) => a + rng.random_range(0.0..4.0),
        Domain::Circle(p) => rng.random_range(0.0..p),
        Domain::Atoms(ref parts) => {
            if rng.random_bool(0.5) {
                parts.points[rng.random_range(0..parts.points.len())]
            } else {
                value(&parts.rest, rng)
            }
        }
    }
}

fn part(domain: &Domain, rng: &mut ChaCha8Rng) -> Part {
    if let Domain::Finite(v) = *domain {
        return Part::Values((0..v).filter(|_| rng.random_bool(0.6)).collect());
    }
    let (a, b) = (value(domain, rng), value(domain, rng));
    Part::Interval { low: a.min(b), high: a.max(b) }
}

/// Queries with these shares of cells that are unknown, and that lie in a part.
fn queries(c: &Circuit, count: usize, shares: (f64, f64), rng: &mut ChaCha8Rng) -> Vec<Query> {
    (0..count)
        .map(|_| {
            let mut q = Query::unknown(c.num_variables());
            for (index, v) in c.variables().iter().enumerate() {
                let evidence = match rng.random::<f64>() {
                    u if u < shares.0 => continue,
                    u if u < shares.0 + shares.1 => Evidence::In(part(&v.domain, rng)),
                    _ => Evidence::Value(value(&v.domain, rng)),
                };
                q.set(c.variables(), index, evidence).unwrap();
            }
            q
        })
        .collect()
}

fn circuits() -> Vec<(String, Orthonormal)> {
    let rng = &mut ChaCha8Rng::seed_from_u64(11);
    let trees = [
        "0",
        "[0, 1]",
        "[[[0, 1], 2], 3]",
        "[[0, 1, 2], [3, 4], [[5, 6], 7]]",
        "[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]",
    ];
    let mut all = Vec::new();
    for tree in trees {
        for (product, weights, width, r) in [
            (Product::Kronecker, Weights::Gaussian, 5, 1),
            (Product::Kronecker, Weights::RealGaussian, 4, 3),
            (Product::Hadamard, Weights::Gaussian, 3, 2),
            (Product::Hadamard, Weights::RealGaussian, 4, 1),
        ] {
            let structure = Structure::new(RegionTree::parse(tree).unwrap(), leaf);
            let structure = structure.width(width).product(product).output_width(r);
            let circuit = structure.build(weights, rng).unwrap();
            let name = format!("{tree} {product:?} {weights:?} K={width} r={r}");
            all.push((name, orthonormalize(&circuit).unwrap().circuit));
        }
    }
    // Hadamard layers that stay: all sums semi-unitary.
    let structure =
        Structure::new(RegionTree::balanced(6), leaf).product(Product::Hadamard).width(2);
    let circuit = structure.build(Weights::Haar, rng).unwrap();
    all.push(("Hadamard layers kept".into(), Orthonormal::verify(circuit).unwrap()));
    all
}

#[test]
fn batches_with_holes_equal_single_rows() {
    let mut worst: f64 = 0.0;
    for (name, c) in circuits() {
        let engine = Engine::new(&c);
        let single = Engine::single(&c);
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        for shares in [(0.0, 0.0), (0.5, 0.0), (0.3, 0.4), (1.0, 0.0)] {
            let queries = queries(&c, 37, shares, rng);
            let rows = Batch::from_queries(c.variables(), &queries).unwrap();
            let logs = engine.log_marginals(&rows).unwrap();
            let logs32 = single.log_marginals(&rows).unwrap();
            for (n, query) in queries.iter().enumerate() {
                let expected = log_marginal(&c, query).unwrap();
                if expected == f64::NEG_INFINITY {
                    assert_eq!(logs[n], expected, "{name}\n{query:?}");
                    continue;
                }
                let error = (logs[n] - expected).abs();
                assert!(error < 1e-10, "{name}: {} for {expected}\n{query:?}", logs[n]);
                worst = worst.max(error);
                // An improbable row keeps few digits in single precision.
                if expected > -10.0 {
                    assert!(
                        (logs32[n] - expected).abs() < 2e-2,
                        "{name}: f32 {} for {expected}",
                        logs32[n]
                    );
                }
            }
        }
    }
    println!("largest difference of a log marginal: {worst:.1e}, allowed 1e-10");
}

#[test]
fn bits_do_not_depend_on_neighbours_threads_or_simd_level() {
    let (_, c) = &circuits()[12];
    let rng = &mut ChaCha8Rng::seed_from_u64(6);
    let queries: Vec<Query> = queries(c, 61, (0.3, 0.2), rng)
        .into_iter()
        .filter(|q| log_marginal(c, q).unwrap().is_finite())
        .collect();
    let rows = Batch::from_queries(c.variables(), &queries).unwrap();
    let engine = Engine::new(c);
    let all = engine.log_marginals(&rows).unwrap();
    let samples = engine.sample_given(&rows, 3).unwrap();
    for level in [SimdLevel::Scalar, SimdLevel::Avx2, SimdLevel::Avx512] {
        let other = Engine::<f64>::with_level(c, level);
        assert_eq!(bits(&all), bits(&other.log_marginals(&rows).unwrap()), "{level:?}");
    }
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let other = pool.install(|| engine.log_marginals(&rows).unwrap());
        assert_eq!(bits(&all), bits(&other), "{threads} threads");
        let other = pool.install(|| engine.sample_given(&rows, 3).unwrap());
        assert_eq!(bits(&samples), bits(&other), "{threads} threads");
    }
    for (n, query) in queries.iter().enumerate() {
        let row = Batch::from_queries(c.variables(), std::slice::from_ref(query)).unwrap();
        assert_eq!(engine.log_marginals(&row).unwrap()[0].to_bits(), all[n].to_bits());
    }
}

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn conditionals_of_one_traversal_obey_the_chain_rule() {
    for (name, c) in circuits() {
        let engine = Engine::new(&c);
        let rng = &mut ChaCha8Rng::seed_from_u64(7);
        let queries = queries(&c, 19, (0.0, 0.0), rng);
        let rows = Batch::from_queries(c.variables(), &queries).unwrap();
        let logs = engine.log_marginals(&rows).unwrap();
        let conditionals = engine.log_conditionals(&rows).unwrap();
        let order = engine.traversal_order();
        for (n, query) in queries.iter().enumerate() {
            let row = &conditionals[n * order.len()..(n + 1) * order.len()];
            let sum: f64 = row.iter().sum();
            let error = (sum - logs[n]).abs();
            assert!(error < 1e-7 * logs[n].abs().max(1.0), "{name}: {sum} for {}", logs[n]);
            // Each conditional is a ratio of two marginals.
            let mut prefix = Query::unknown(order.len());
            let mut before = 0.0;
            for v in &order {
                let evidence = query.evidence()[v.index()].clone();
                prefix.set(c.variables(), v.index(), evidence).unwrap();
                let after = log_marginal(&c, &prefix).unwrap();
                let (found, expected) = (row[v.index()], after - before);
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{name}: variable {v}: {found} for {expected}"
                );
                before = after;
            }
        }
    }
}

/// Whether a value is possible under a piece of evidence about a finite variable.
fn fits(evidence: &Evidence, x: usize) -> bool {
    match evidence {
        Evidence::Unknown => true,
        Evidence::Value(v) => *v == x as f64,
        Evidence::In(Part::Values(values)) => values.contains(&x),
        Evidence::In(_) => false,
    }
}

/// χ² of samples against exact joint probabilities, by enumeration; the statistic is about normal for this many cells.
#[test]
fn joint_samples_match_enumeration() {
    let rng = &mut ChaCha8Rng::seed_from_u64(8);
    let finite = |v: usize| {
        let count = 2 + v % 2;
        (Variable::new(format!("x{v}"), Domain::Finite(count)), Basis::indicator(count))
    };
    for (tree, r, product) in [
        ("[[0, 1], [2, 3]]", 1, Product::Kronecker),
        ("[[0, 1], [2, 3]]", 5, Product::Kronecker),
        ("[[[0, 1], 2], 3]", 1, Product::Kronecker),
        ("[[0, 1, 2], 3]", 3, Product::Kronecker),
        ("[[0, 1], [2, 3]]", 2, Product::Hadamard),
    ] {
        let structure = Structure::new(RegionTree::parse(tree).unwrap(), finite).product(product);
        let structure = structure.width(4).output_width(r);
        let circuit = structure.build(Weights::Gaussian, rng).unwrap();
        let c = orthonormalize(&circuit).unwrap().circuit;
        let engine = Engine::new(&c);
        let count = 40_000;
        for evidence in [
            "",
            "x1=2",
            "x3 in {0, 2}, x0=1",
            "x1 in {0, 2}",
            "x1 in {1, 2}, x2=1",
            "x1 in {1, 2}, x3 in {0, 1}",
        ] {
            let query = Query::parse(c.variables(), evidence).unwrap();
            let rows = Batch::from_queries(c.variables(), &vec![query.clone(); count]).unwrap();
            let samples = engine.sample_given(&rows, 9).unwrap();
            let mut seen = std::collections::BTreeMap::new();
            for row in samples.chunks_exact(4) {
                let x: Vec<usize> = row.iter().map(|&x| x as usize).collect();
                *seen.entry(x).or_insert(0.0) += 1.0;
            }
            let total = log_marginal(&c, &query).unwrap();
            let (mut chi2, mut cells, mut mass) = (0.0, 0.0, 0.0);
            for n in 0..2 * 3 * 2 * 3 {
                let x = vec![n % 2, n / 2 % 3, n / 6 % 2, n / 12];
                if !query.evidence().iter().zip(&x).all(|(e, &x)| fits(e, x)) {
                    assert!(!seen.contains_key(&x), "{tree} {evidence}: {x:?}");
                    continue;
                }
                let values: Vec<f64> = x.iter().map(|&x| x as f64).collect();
                let q = Query::row(c.variables(), &values).unwrap();
                let p = (log_marginal(&c, &q).unwrap() - total).exp();
                mass += p;
                let expected = p * count as f64;
                if expected > 5.0 {
                    chi2 += (seen.get(&x).copied().unwrap_or(0.0) - expected).powi(2) / expected;
                    cells += 1.0;
                }
            }
            assert!((mass - 1.0).abs() < 1e-10);
            let z = (chi2 - (cells - 1.0)) / (2.0_f64 * (cells - 1.0)).sqrt();
            assert!(z < 4.0, "{tree} given '{evidence}': χ² = {chi2} on {cells} cells");
        }
    }
}

/// Kolmogorov and Smirnov's distance of continuous samples from the exact conditional.
#[test]
fn continuous_samples_match_their_cdf() {
    for (name, c) in circuits().into_iter().filter(|(n, _)| n.starts_with("[[[0, 1], 2], 3]")) {
        let engine = Engine::new(&c);
        let count = 4000;
        for (evidence, variable, low) in [
            ("x0=1", 1, f64::NEG_INFINITY),
            ("x1 in [0, 3), x2=4", 3, -1.0),
            ("x1 in [0, 3)", 1, 0.0),
        ] {
            let query = Query::parse(c.variables(), evidence).unwrap();
            let rows = Batch::from_queries(c.variables(), &vec![query.clone(); count]).unwrap();
            let samples = engine.sample_given(&rows, 21).unwrap();
            let mut x: Vec<f64> = samples.chunks_exact(4).map(|row| row[variable]).collect();
            x.sort_by(f64::total_cmp);
            let total = log_marginal(&c, &query).unwrap();
            let mut distance: f64 = 0.0;
            for n in (0..count).step_by(97) {
                let mut below = query.clone();
                let interval = Evidence::In(Part::Interval { low, high: x[n] });
                below.set(c.variables(), variable, interval).unwrap();
                let cdf = (log_marginal(&c, &below).unwrap() - total).exp();
                distance = distance.max((cdf - n as f64 / count as f64).abs());
            }
            let limit = 1.95 / (count as f64).sqrt();
            assert!(distance < limit, "{name} given '{evidence}': {distance} over {limit}");
        }
    }
}

#[test]
fn ten_thousand_variables_do_not_underflow() {
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let d = 10_000;
    let bit = |v: usize| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    for tree in [RegionTree::linear(d), RegionTree::balanced(d)] {
        let circuit = Structure::new(tree, bit).width(4).build(Weights::Haar, rng).unwrap();
        let c = orthonormalize(&circuit).unwrap().circuit;
        let engine = Engine::new(&c);
        let samples = engine.sample(9, 1);
        let rows = Batch::from_rows(c.variables(), &samples).unwrap();
        let logs = engine.log_marginals(&rows).unwrap();
        for (row, log) in samples.chunks_exact(d).zip(&logs) {
            let query = Query::row(c.variables(), row).unwrap();
            let expected = log_marginal(&c, &query).unwrap();
            assert!((log - expected).abs() < 1e-9 * expected.abs(), "{log} for {expected}");
            assert!(*log < -1000.0 && *log > -10_000.0);
        }
        let conditionals = engine.log_conditionals(&rows).unwrap();
        for (row, log) in conditionals.chunks_exact(d).zip(&logs) {
            let sum: f64 = row.iter().sum();
            assert!((sum - log).abs() < 1e-6 * log.abs(), "{sum} for {log}");
        }
    }
}

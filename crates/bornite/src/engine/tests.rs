//! Posteriors of many rows, compared with the environments of single rows.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Batch, CellDistribution, CellRequest, Engine, SimdLevel};
use crate::basis::{FourierForm, Part};
use crate::circuit::{Orthonormal, VariableId, Weights};
use crate::ops::{Environments, Univariate, orthonormalize};
use crate::structure::{Product, RegionTree, Structure};
use crate::{Basis, Domain, Evidence, Query, Variable};

const KINDS: usize = 9;

/// A variable for every family of functions that tables use, and for those without pieces.
fn leaf(v: usize) -> (Variable, Basis) {
    let points = vec![-0.5, 0.0, 0.3, 0.300_001, 1.0];
    let basis = match v % KINDS {
        0 => Basis::legendre(24, 0.0, 1.0).unwrap(),
        1 => Basis::indicator(4),
        2 => Basis::legendre(9, 0.0, 1.0).unwrap().with_atoms(points).unwrap(),
        3 => Basis::fourier(7, 0.0, 1.0, FourierForm::Real).unwrap(),
        4 => Basis::hermite(5, 0.5, 2.0).unwrap(),
        5 => Basis::fourier(6, 0.0, 2.0, FourierForm::Complex).unwrap(),
        6 => {
            let knots = vec![-1.0, -0.7, 0.1, 0.2, 2.0];
            let splines = Basis::bspline(3, knots).unwrap();
            splines.orthonormalized().0
        }
        7 => Basis::legendre(48, 0.0, 1.0).unwrap(),
        _ => Basis::laguerre(4, 1.0, 0.7).unwrap(),
    };
    (Variable::new(format!("x{v}"), basis.natural_domain()), basis)
}

fn value(domain: &Domain, rng: &mut ChaCha8Rng) -> f64 {
    match domain {
        Domain::Finite(v) => rng.random_range(0..*v) as f64,
        Domain::Atoms(parts) if rng.random_bool(0.5) => {
            parts.points[rng.random_range(0..parts.points.len())]
        }
        Domain::Atoms(parts) => value(&parts.rest, rng),
        Domain::Real | Domain::Interval(..) | Domain::HalfLine(_) | Domain::Circle(_) => {
            let (low, high) = domain.bounds();
            rng.random_range(low.max(-2.0)..high.min(3.0))
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

pub(super) fn queries(
    c: &Orthonormal,
    count: usize,
    shares: [f64; 2],
    rng: &mut ChaCha8Rng,
) -> Vec<Query> {
    let mut all = Vec::new();
    for _ in 0..count {
        let mut query = Query::unknown(c.num_variables());
        for (index, v) in c.variables().iter().enumerate() {
            let evidence = match rng.random::<f64>() {
                u if u < shares[0] => continue,
                u if u < shares[0] + shares[1] => Evidence::In(part(&v.domain, rng)),
                _ => Evidence::Value(value(&v.domain, rng)),
            };
            query.set(c.variables(), index, evidence).unwrap();
        }
        all.push(query);
    }
    all
}

pub(super) fn circuits() -> Vec<(String, Orthonormal)> {
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let mut all = Vec::new();
    let large = "[[0, 1, 2], [[3, 4], 5], [6, [7, 8]]]";
    for (tree, first) in [("0", 0), ("0", 2), ("[0, 1]", 2), (large, 0)] {
        for (product, weights, width, r) in [
            (Product::Kronecker, Weights::Gaussian, 3, 1),
            (Product::Kronecker, Weights::RealGaussian, 4, 2),
            (Product::Hadamard, Weights::RealGaussian, 4, 1),
        ] {
            let parsed = RegionTree::parse(tree).unwrap();
            let structure = Structure::new(parsed, |v| leaf(first + v)).width(width);
            let structure = structure.product(product);
            let circuit = structure.output_width(r).build(weights, rng).unwrap();
            let name = format!("{tree} {first} {product:?} {weights:?} r={r}");
            all.push((name, orthonormalize(&circuit).unwrap().circuit));
        }
    }
    let structure = Structure::new(RegionTree::balanced(6), leaf).product(Product::Hadamard);
    let circuit = structure.width(2).build(Weights::Haar, rng).unwrap();
    all.push(("Hadamard layers kept".into(), Orthonormal::verify(circuit).unwrap()));
    all
}

/// The distribution as numbers: probabilities; or quantiles, values of the distribution function,
/// and functionals.
fn numbers(distribution: &CellDistribution<'_>) -> Vec<f64> {
    const LEVELS: [f64; 6] = [0.0, 1e-3, 0.31, 0.5, 0.97, 1.0];
    match distribution {
        CellDistribution::Finite(p) => p.clone(),
        CellDistribution::Piecewise(p) => {
            let mut out: Vec<f64> = LEVELS.iter().map(|l| p.quantile(*l)).collect();
            out.extend(POINTS.iter().map(|x| p.cdf(*x)));
            out.extend(POINTS.iter().map(|x| p.density(*x)));
            out.extend(p.atoms().map(|(_, p)| p));
            out.extend(p.functionals());
            out
        }
        CellDistribution::Exact(p) => vec![p[0].1.quantile(0.5).unwrap(), p[0].1.cdf(0.5)],
    }
}

const POINTS: [f64; 4] = [0.05, 0.299_9, 0.31, 0.9];

fn functionals(_: usize) -> Vec<Vec<(f64, f64)>> {
    vec![vec![(0.25, 1.0)], vec![(0.25, -0.5), (0.75, 2.0)]]
}

/// Row, variable and numbers of each cell, and log p of each row.
type Answers = (Vec<(usize, usize, Vec<f64>)>, Vec<f64>);

fn answers(engine: &Engine, rows: &Batch) -> Answers {
    let wanted = CellRequest {
        cells: &|row, v| rows.is_missing(row, v) || row % 3 == 0,
        functionals: &functionals,
    };
    let (found, logs) =
        engine.answer_cells(rows, &wanted, &|_, _, distribution| numbers(&distribution)).unwrap();
    (found.into_iter().map(|cell| (cell.row, cell.variable, cell.answer)).collect(), logs)
}

fn check(distribution: &CellDistribution<'_>, expected: &Univariate, name: &str) {
    let near = |a: f64, b: f64, what: &str| {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{name}, {what}: {a} for {b}");
    };
    match distribution {
        CellDistribution::Finite(p) => {
            for (x, p) in p.iter().enumerate() {
                near(*p, expected.density(x as f64), "probability");
            }
        }
        CellDistribution::Piecewise(p) => {
            let rest: f64 = 1.0 - expected.atoms().iter().map(|a| a.1).sum::<f64>();
            for x in POINTS {
                near(p.cdf(x), expected.cdf(x), "cdf");
                near(p.density(x), expected.density(x), "density");
            }
            for ((x, p), (y, q)) in p.atoms().zip(expected.atoms()) {
                assert_eq!(x, *y);
                near(p, *q, "atom");
            }
            for level in [0.0, 1e-6, 0.1, 0.5, 0.77, 0.999, 1.0] {
                let x = p.quantile(level);
                // The point may be far off where the density is small, but not its probability.
                if level > 0.0 && level < 1.0 {
                    assert!(expected.cdf(x) >= level - 1e-9, "{name}: {x} for level {level}");
                    let before =
                        expected.probability(&Part::Interval { low: f64::NEG_INFINITY, high: x });
                    assert!(before <= level + 1e-9, "{name}: {x} for level {level}");
                } else if rest > 1e-6 {
                    near(x, expected.quantile(level).unwrap(), "end");
                }
            }
            let density = |x: f64| expected.density(x);
            near(p.functionals()[0], density(0.25), "functional");
            near(p.functionals()[1], 2.0 * density(0.75) - 0.5 * density(0.25), "functional");
        }
        CellDistribution::Exact(p) => near(p[0].1.cdf(0.7), expected.cdf(0.7), "exact"),
    }
}

#[test]
fn many_posteriors_equal_the_environments_of_single_rows() {
    let mut seen = [0; 3];
    for (name, c) in circuits() {
        let engine = Engine::new(&c);
        let rng = &mut ChaCha8Rng::seed_from_u64(17);
        for shares in [[0.0, 0.0], [0.4, 0.0], [0.3, 0.3], [1.0, 0.0]] {
            let queries = queries(&c, 19, shares, rng);
            let rows = Batch::from_queries(c.variables(), &queries).unwrap();
            let all: Vec<VariableId> = (0..c.num_variables()).map(VariableId::new).collect();
            let posteriors = engine.posteriors(&rows, &all).unwrap();
            for (row, query) in queries.iter().enumerate() {
                let log = posteriors.log_evidence(row);
                let Ok(environments) = Environments::given(&c, query) else {
                    assert_eq!(log, f64::NEG_INFINITY, "{name}");
                    assert!(posteriors.marginal(row, 0).is_none());
                    continue;
                };
                assert!((log - environments.log_evidence()).abs() < 1e-9, "{name}");
                for &v in &all {
                    let expected = environments.marginal(v);
                    let found = posteriors.marginal(row, v.index()).unwrap();
                    for x in [0.0, 0.2, 0.3, 1.0, 1.5] {
                        let (a, b) = (found.density(x), expected.density(x));
                        assert!((a - b).abs() < 1e-9 * b.max(1.0), "{name} {v}: {a} for {b}");
                    }
                }
            }
            let wanted = CellRequest { cells: &|_, _| true, functionals: &functionals };
            let shapes = engine.answer_cells(&rows, &wanted, &|row, v, distribution| {
                let environments = Environments::given(&c, &queries[row]).unwrap();
                let marginal = environments.marginal(VariableId::new(v));
                let expected = match &queries[row].evidence()[v] {
                    Evidence::In(part) => marginal.within(part).unwrap(),
                    Evidence::Value(_) | Evidence::Unknown => marginal,
                };
                check(&distribution, &expected, &format!("{name} row {row} variable {v}"));
                match distribution {
                    CellDistribution::Finite(_) => 0,
                    CellDistribution::Piecewise(_) => 1,
                    CellDistribution::Exact(_) => 2,
                }
            });
            shapes.unwrap().0.iter().for_each(|cell| seen[cell.answer] += 1);
        }
    }
    assert!(seen.iter().all(|&n| n > 100), "{seen:?}");
}

#[test]
fn bits_of_posteriors_depend_neither_on_neighbors_nor_on_threads() {
    for (name, c) in circuits() {
        let rng = &mut ChaCha8Rng::seed_from_u64(23);
        let engine = Engine::new(&c);
        let queries = queries(&c, 45, [0.4, 0.2], rng);
        let rows = Batch::from_queries(c.variables(), &queries).unwrap();
        let bits = |(cells, logs): Answers| {
            let numbers = |x: Vec<f64>| x.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            let cells: Vec<_> = cells.into_iter().map(|(r, v, x)| (r, v, numbers(x))).collect();
            (cells, numbers(logs))
        };
        let all = bits(answers(&engine, &rows));
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(|| bits(answers(&engine, &rows))) == all, "{name}: {threads}");
        }
        let scalar = Engine::with_level(&c, SimdLevel::Scalar);
        assert!(bits(answers(&scalar, &rows)) == all, "{name}: without SIMD");
        for row in [0, 7, 33] {
            // Row 0 of a batch requests all cells, like every third row.
            let alone = bits(answers(&engine, &rows.select(&[row])));
            for (_, v, x) in &alone.0 {
                let same = all.0.iter().find(|cell| cell.0 == row && cell.1 == *v);
                assert!(same.is_none_or(|cell| cell.2 == *x), "{name}: row {row} variable {v}");
            }
            assert_eq!(alone.1[0], all.1[row]);
        }
    }
}

//! Tests of mixtures.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Mixture, MixtureError};
use crate::basis::Part;
use crate::circuit::{Orthonormal, VariableId, Weights};
use crate::engine::{Batch, CellDistribution, CellRequest, SampleError};
use crate::ops::{self, Budget, Environments};
use crate::query::{Evidence, Query};
use crate::structure::{RegionTree, Structure};
use crate::{Basis, Domain, Variable};

const WEIGHTS: [f64; 3] = [0.5, 0.3, 0.2];

/// Finite variables, and every third one continuous where `mixed`.
fn circuit(tree: RegionTree, seed: u64, mixed: bool) -> Orthonormal {
    let leaf = |v: usize| {
        let name = format!("x{v}");
        if mixed && v % 3 == 1 {
            let basis = Basis::legendre(4, 0.0, 1.0).unwrap();
            (Variable::new(name, Domain::Interval(0.0, 1.0)), basis)
        } else {
            (Variable::new(name, Domain::Finite(3)), Basis::indicator(3))
        }
    };
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let structure = Structure::new(tree, leaf).width(3).output_width(2);
    ops::orthonormalize(&structure.build(Weights::Haar, rng).unwrap()).unwrap().circuit
}

fn mixture(mixed: bool) -> Mixture {
    let trees = [RegionTree::balanced(5), RegionTree::linear(5), RegionTree::balanced(5)];
    let circuits = trees.into_iter().zip(1..).map(|(tree, seed)| circuit(tree, seed, mixed));
    Mixture::new(circuits.collect(), &WEIGHTS).unwrap()
}

fn queries(variables: &[Variable], count: usize) -> Vec<Query> {
    let rng = &mut ChaCha8Rng::seed_from_u64(9);
    let evidence = |variable: &Variable, rng: &mut ChaCha8Rng| {
        let is_finite = variable.domain.num_values().is_some();
        match (rng.random_range(0..3), is_finite) {
            (0, true) => Evidence::Value(rng.random_range(0..3).into()),
            (0, false) => Evidence::Value(rng.random_range(0.0..1.0)),
            (1, true) => Evidence::In(Part::Values(vec![0, 2])),
            (1, false) => Evidence::In(Part::Interval { low: 0.2, high: 0.7 }),
            _ => Evidence::Unknown,
        }
    };
    let query = |_| {
        let mut query = Query::unknown(variables.len());
        for (v, variable) in variables.iter().enumerate() {
            query.set(variables, v, evidence(variable, rng)).unwrap();
        }
        query
    };
    (0..count).map(query).collect()
}

fn exact(mixture: &Mixture, query: &Query) -> f64 {
    let parts = mixture.circuits().zip(mixture.weights());
    parts.map(|(c, w)| w * ops::log_marginal(c, query).unwrap().exp()).sum()
}

#[test]
fn marginals_are_means_of_the_circuits() {
    let mixture = mixture(true);
    let queries = queries(mixture.variables(), 300);
    let rows = Batch::from_queries(mixture.variables(), &queries).unwrap();
    for (query, log) in queries.iter().zip(mixture.log_marginals(&rows).unwrap()) {
        let truth = exact(&mixture, query);
        assert!((log.exp() - truth).abs() < 1e-11 * (1.0 + truth), "{} for {truth}", log.exp());
    }
}

/// The distributions of cells are those of the circuits, each by its weight given the rest of
/// the row.
#[test]
fn cells_follow_the_weights_given_the_row() {
    for shares_functions in [true, false] {
        let mut mixture = mixture(true);
        mixture.shares_functions = shares_functions;
        let variables = mixture.variables();
        let queries = queries(variables, 300);
        let rows = Batch::from_queries(variables, &queries).unwrap();
        let middle = |_: usize| vec![vec![(0.25, 1.0), (0.5, 2.0)]];
        let wanted = CellRequest { cells: &|_, _| true, functionals: &middle };
        let numbers = |_, _, p: CellDistribution<'_>| match p {
            CellDistribution::Finite(p) => (p, None),
            CellDistribution::Piecewise(p) => {
                let u = p.quantile(0.3);
                (vec![p.cdf(0.4), p.density(0.6)], Some((u, p.cdf(u), p.functionals()[0])))
            }
            CellDistribution::Exact(p) => {
                let sum = |of: &dyn Fn(&ops::Univariate) -> f64| {
                    p.iter().map(|(w, p)| w * of(p)).sum::<f64>()
                };
                (vec![sum(&|p| p.cdf(0.4)), sum(&|p| p.density(0.6))], None)
            }
        };
        let (answers, logs) = mixture.answer_cells(&rows, &wanted, &numbers).unwrap();
        let (mut checked, mut piecewise) = (0, 0);
        for cell in &answers {
            let query = &queries[cell.row];
            let evidence = &query.evidence()[cell.variable];
            if let Evidence::Value(_) = evidence {
                continue;
            }
            let of = |f: &dyn Fn(&ops::Univariate) -> f64| {
                let parts = mixture.parts().map(|(log_weight, circuit)| {
                    let id = VariableId::new(cell.variable);
                    let environments = Environments::given(circuit, query).unwrap();
                    let share = log_weight + environments.log_evidence() - logs[cell.row];
                    let marginal = environments.marginal(id);
                    let marginal = match evidence {
                        Evidence::In(part) => marginal.within(part).unwrap(),
                        Evidence::Unknown | Evidence::Value(_) => marginal,
                    };
                    share.exp() * f(&marginal)
                });
                parts.sum::<f64>()
            };
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} for {b}");
            let (values, extra) = &cell.answer;
            if variables[cell.variable].domain.num_values().is_some() {
                for (x, p) in values.iter().enumerate() {
                    near(*p, of(&|u| u.probabilities().unwrap()[x]));
                }
            } else {
                near(values[0], of(&|u| u.cdf(0.4)));
                near(values[1], of(&|u| u.density(0.6)));
            }
            if let Some((u, level, functional)) = extra {
                near(*level, 0.3);
                near(of(&|p| p.cdf(*u)), 0.3);
                near(*functional, of(&|p| p.density(0.25) + 2.0 * p.density(0.5)));
                piecewise += 1;
            }
            checked += 1;
        }
        assert!(checked > 500 && (piecewise > 50) == shares_functions, "{checked}, {piecewise}");
    }
}

#[test]
fn samples_are_by_the_weights_and_the_same_in_pieces() {
    let mixture = mixture(false);
    let variables = mixture.variables();
    let samples = mixture.sample(20_000, 3);
    let pieces = [mixture.sample_from(0, 777, 3), mixture.sample_from(777, 19_223, 3)];
    assert_eq!(samples, pieces.concat());
    for query in queries(variables, 20) {
        let holds = |row: &&[f64]| {
            row.iter().zip(query.evidence()).all(|(x, e)| match e {
                Evidence::Value(v) => x == v,
                Evidence::In(Part::Values(values)) => values.contains(&(*x as usize)),
                Evidence::In(Part::Interval { .. }) | Evidence::Unknown => true,
            })
        };
        let share = samples.chunks_exact(5).filter(holds).count() as f64 / 20_000.0;
        let p = exact(&mixture, &query);
        let error = (p * (1.0 - p) / 20_000.0).sqrt();
        assert!((share - p).abs() < 4.5 * error + 1e-9, "{share} for {p}");

        // Given the query, samples keep to it, in the proportions of the next variable.
        let rows = Batch::from_queries(variables, &vec![query.clone(); 2000]).unwrap();
        let given = mixture.sample_given_from(0, &rows, 5).unwrap();
        assert!(given.chunks_exact(5).all(|row| holds(&row)));
        let mut first = query.clone();
        let Ok(()) = first.set(variables, 0, Evidence::Value(2.0)) else { continue };
        if query.evidence()[0] == Evidence::Unknown {
            let share = given.chunks_exact(5).filter(|row| row[0] == 2.0).count() as f64 / 2e3;
            let p = exact(&mixture, &first) / p;
            let error = (p * (1.0 - p) / 2e3).sqrt();
            assert!((share - p).abs() < 4.5 * error + 1e-9, "{share} for {p}");
        }
    }
    let mut nothing = Query::unknown(5);
    nothing.set(variables, 0, Evidence::In(Part::Values(Vec::new()))).unwrap();
    let rows = Batch::from_queries(variables, &[nothing]).unwrap();
    let error = mixture.sample_given_from(0, &rows, 5).unwrap_err();
    assert!(matches!(error, SampleError::Impossible { row: 0 }));
}

#[test]
fn truncating_keeps_its_bound() {
    let mixture = mixture(false);
    let smaller = mixture.truncate(Budget::Width(2)).unwrap();
    assert_eq!(smaller.width, Some(2));
    let count = 3_usize.pow(5);
    let digit = |n: usize, v: u32| (n / 3_usize.pow(v) % 3) as f64;
    let values: Vec<f64> = (0..count).flat_map(|n| (0..5).map(move |v| digit(n, v))).collect();
    let rows = Batch::from_rows(mixture.variables(), &values).unwrap();
    let [p, q] = [&mixture, &smaller.mixture].map(|m| m.log_marginals(&rows).unwrap());
    let overlap: f64 = p.iter().zip(&q).map(|(p, q)| (0.5 * (p + q)).exp()).sum();
    let distance = (1.0 - overlap).max(0.0).sqrt();
    assert!(distance > 1e-3 && distance <= smaller.bound, "{distance}, {}", smaller.bound);
}

#[test]
fn circuits_and_weights_must_fit() {
    let one = || circuit(RegionTree::balanced(5), 1, false);
    let other = || circuit(RegionTree::balanced(4), 1, false);
    let error = |circuits, weights: &[f64]| Mixture::new(circuits, weights).unwrap_err();
    assert_eq!(error(vec![], &[]), MixtureError::Count { circuits: 0, weights: 0 });
    assert_eq!(error(vec![one()], &[0.5, 0.5]), MixtureError::Count { circuits: 1, weights: 2 });
    let weight = error(vec![one(), one()], &[1.0, 0.0]);
    assert_eq!(weight, MixtureError::Weight { index: 1, weight: 0.0 });
    assert!(matches!(error(vec![one()], &[f64::NAN]), MixtureError::Weight { .. }));
    let variables = error(vec![one(), other()], &[1.0, 1.0]);
    assert_eq!(variables, MixtureError::Variables { index: 1 });
    let sorted = Mixture::new(vec![one(), one()], &[1.0, 3.0]).unwrap();
    assert_eq!(sorted.weights(), [0.75, 0.25]);
    for n in 1..50 {
        let weights = [1.0 + f64::from(n) / 7.0, 1.0, 0.3];
        let first = Mixture::new(vec![one(), one(), one()], &weights).unwrap().weights();
        let again = Mixture::new(vec![one(), one(), one()], &first).unwrap().weights();
        assert_eq!(again, first);
    }
}

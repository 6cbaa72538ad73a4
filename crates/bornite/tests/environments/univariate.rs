use bornite::basis::{Basis, Part};
use bornite::ops::{Environments, OperationError, Univariate};
use bornite::{CircuitBuilder, Domain, Orthonormal, Query, VariableId, linalg::Matrix};

use crate::world::{assert_close, continuous_circuit, simpson};

/// Where all but rounding of a continuous variable of the test circuit lies.
fn bounds(v: usize) -> (f64, f64) {
    match v {
        0 => (-6.0, 9.0),
        1 => (-1.0, 3.0),
        2 => (2.0, 30.0),
        3 => (0.0, 6.0),
        4 => (-20.0, 30.0),
        _ => (0.0, 4.0),
    }
}

fn check(p: &Univariate, (low, high): (f64, f64), what: &str) {
    let at = |x: f64| if x >= high { p.density(high - 1e-13) } else { p.density(x) };
    let grid = |g: &dyn Fn(f64) -> f64| simpson(low, high, 4000, |x| at(x) * g(x));
    assert_close(grid(&|_| 1.0), 1.0, 1e-8, what);
    let mean = grid(&|x| x);
    assert_close(p.mean(), mean, 1e-8, what);
    assert_close(p.variance(), grid(&|x| (x - mean).powi(2)), 1e-8, what);
    for level in [1e-6, 0.01, 0.25, 0.5, 0.9, 0.999] {
        let q = p.quantile(level).unwrap();
        assert!((p.cdf(q) - level).abs() < 1e-12, "{what}: {level} at {q}: {}", p.cdf(q));
    }
    let (a, b) = p.interval(0.8).unwrap();
    assert_close(p.probability(&Part::Interval { low: a, high: b }), 0.8, 1e-12, what);
    let middle = 0.5 * (a + b);
    assert_close(p.cdf(middle), simpson(low, middle, 4000, at), 1e-8, what);
}

#[test]
fn moments_and_quantiles_match_a_fine_grid() {
    for r in [1, 3] {
        let circuit = continuous_circuit(r, 17);
        let all = Environments::new(&circuit);
        let query = Query::parse(circuit.variables(), "x6=1").unwrap();
        let given = Environments::given(&circuit, &query).unwrap();
        for v in 0..6 {
            for environments in [&all, &given] {
                let p = environments.marginal(VariableId::new(v));
                check(&p, bounds(v), &format!("x{v}"));
                assert_close(environments.mean(VariableId::new(v)), p.mean(), 1e-12, "mean");
                let variance = environments.variance(VariableId::new(v));
                assert_close(variance, p.variance(), 1e-11, "variance");
                assert!(p.mode().is_none() && p.probabilities().is_none() && p.matrix().is_some());
            }
        }
    }
}

#[test]
fn parts_of_a_domain_have_moments_and_quantiles_too() {
    let circuit = continuous_circuit(1, 23);
    let all = Environments::new(&circuit);
    for v in 0..6 {
        let (low, high) = bounds(v);
        let whole = all.marginal(VariableId::new(v));
        let cut = whole.quantile(0.3).unwrap();
        for (a, b) in [(f64::NEG_INFINITY, cut), (cut, f64::INFINITY), (cut, cut + 1.0)] {
            let part = whole.within(&Part::Interval { low: a, high: b }).unwrap();
            check(&part, (a.max(low), b.min(high)), &format!("x{v} from {a} to {b}"));
            assert_eq!(part.density(cut - 2.0 * (high - low)), 0.0);
            // As evidence of its own it gives the same mean.
            let variables = circuit.variables();
            let name = &variables[v].name;
            let query = Query::unknown(variables.len()).with_interval(variables, name, a, b);
            let given = Environments::given(&circuit, &query.unwrap()).unwrap();
            assert_close(given.mean(VariableId::new(v)), part.mean(), 1e-10, name);
            assert_close(given.variance(VariableId::new(v)), part.variance(), 1e-9, name);
        }
        let nothing = whole.within(&Part::Interval { low: 1.0, high: 1.0 });
        assert_eq!(nothing.unwrap_err(), OperationError::ImpossibleEvidence);
    }
}

#[test]
fn variables_far_from_zero_keep_their_variance() {
    // A time in seconds: |h₀|² has variance scale² / 2.
    let location = 1.7e9;
    let mut b = CircuitBuilder::new();
    let x = b.variable("time", Domain::Real);
    let y = b.variable("other", Domain::Real);
    let f = b.input(x, Basis::hermite(2, location, 10.0).unwrap());
    let g = b.input(y, Basis::hermite(2, -location, 3.0).unwrap());
    let product = b.kronecker([f, g]);
    let output = b.sum(product, Matrix::from_rows(&[[0.6, 0.0, 0.0, 0.8]]));
    let circuit = Orthonormal::verify(b.build(output).unwrap()).unwrap();
    let all = Environments::new(&circuit);
    // 1/2 with h₀ and 3/2 with h₁.
    let expected = 100.0 * (0.5 * 0.36 + 1.5 * 0.64);
    assert_close(all.marginal(x).variance(), expected, 1e-12, "variance");
    assert_close(all.variance(x), expected, 1e-12, "variance");
    // ⟨h₀|t|h₁⟩ = 1/√2 for both.
    let covariance = 2.0 * 0.48 * 0.5 * 30.0;
    assert_close(all.covariance(x, y), covariance, 1e-12, "covariance");
    assert_close(all.covariance_matrix()[(1, 0)], covariance, 1e-12, "covariance");
    let median = all.marginal(x).quantile(0.5).unwrap();
    assert_close(median, location, 1e-12, "median");
}

fn table(row: &[f64]) -> Univariate {
    let mut b = CircuitBuilder::new();
    let x = b.variable("x", Domain::Finite(row.len()));
    let f = b.input(x, Basis::indicator(row.len()));
    let roots: Vec<f64> = row.iter().map(|p| p.sqrt()).collect();
    let output = b.sum(f, Matrix::new(1, row.len(), roots));
    let circuit = Orthonormal::verify(b.build(output).unwrap()).unwrap();
    Environments::new(&circuit).marginal(x)
}

#[test]
fn finite_distributions_by_hand() {
    let p = table(&[0.0, 0.25, 0.0, 0.5, 0.25, 0.0]);
    assert_eq!(p.mode(), Some(3.0));
    for (level, value) in [
        (0.0, 1.0),
        (0.2, 1.0),
        (0.25 - 1e-9, 1.0),
        (0.26, 3.0),
        (0.75, 3.0),
        (0.8, 4.0),
        (1.0, 4.0),
    ] {
        assert_eq!(p.quantile(level).unwrap(), value, "{level}");
    }
    assert_close(p.cdf(3.7), 0.75, 1e-15, "cdf");
    assert_eq!((p.cdf(-1.0), p.density(2.5), p.density(9.0)), (0.0, 0.0, 0.0));
    assert_close(p.mean(), 2.75, 1e-15, "mean");
    assert_close(p.variance(), 0.25 * 3.0625 + 0.5 * 0.0625 + 0.25 * 1.5625, 1e-15, "variance");
    assert_close(p.probability(&Part::Values(vec![0, 3])), 0.5, 1e-15, "set");
    // With the lower end and without the upper one, as in queries.
    let interval = |low, high| p.probability(&Part::Interval { low, high });
    assert_close(interval(1.0, 3.0), 0.25, 1e-15, "interval");
    assert_close(interval(1.5, 4.0), 0.5, 1e-15, "interval");
    assert_eq!((interval(2.0, 3.0), interval(3.0, 3.0), p.cdf(f64::INFINITY)), (0.0, 0.0, 1.0));
    let part = p.within(&Part::Values(vec![1, 3])).unwrap();
    assert_close(part.density(1.0), 1.0 / 3.0, 1e-15, "part");
    assert!(p.within(&Part::Values(vec![0, 2])).is_err());
    for level in [-0.1, 1.1, f64::NAN] {
        assert!(matches!(p.quantile(level), Err(OperationError::Level { .. })));
        assert!(p.interval(level).is_err());
    }
}

#[test]
fn a_hundred_thousand_indicators_take_no_square() {
    let v = 100_000;
    let p = table(&vec![1.0 / v as f64; v]);
    assert_close(p.mean(), (v as f64 - 1.0) / 2.0, 1e-10, "mean");
    assert_close(p.variance(), ((v * v) as f64 - 1.0) / 12.0, 1e-10, "variance");
    assert_close(p.quantile(0.5).unwrap(), 49_999.0, 1e-4, "median");
    let all = {
        let mut b = CircuitBuilder::new();
        let x = b.variable("x", Domain::Finite(v));
        let y = b.variable("y", Domain::Finite(2));
        let f = b.input(x, Basis::indicator(v));
        let s = b.sum(f, Matrix::from_fn(2, v, |i, x| f64::from(u8::from(x == 7 * (i + 1)))));
        let g = b.input(y, Basis::indicator(2));
        let k = b.kronecker([s, g]);
        let output = b.sum(k, Matrix::from_rows(&[[0.6, 0.0, 0.0, 0.8]]));
        Orthonormal::verify(b.build(output).unwrap()).unwrap()
    };
    let environments = Environments::new(&all);
    let (x, y) = (VariableId::new(0), VariableId::new(1));
    assert_close(environments.mean(x), 7.0 * 0.36 + 14.0 * 0.64, 1e-14, "mean");
    assert_close(environments.covariance(x, y), 7.0 * 0.36 * 0.64, 1e-14, "covariance");
    let table = environments.pairwise(x, y).unwrap();
    assert_close(table[(14, 1)], 0.64, 1e-15, "pair");
    let input = all.layer_ids().next().unwrap();
    assert!(matches!(environments.spectrum(input), Err(OperationError::TooLarge { .. })));
}

/// A random circuit of an atom-ridden variable and a finite one, and the atoms.
fn with_atoms() -> (Orthonormal, [f64; 3]) {
    let atoms = [0.0, 0.75, 4.0];
    let mut b = CircuitBuilder::new();
    let x = b.variable("x", Domain::with_atoms(atoms.to_vec(), Domain::Interval(-1.0, 2.0)));
    let y = b.variable("y", Domain::Finite(3));
    let legendre = Basis::legendre(4, -1.0, 2.0).unwrap();
    let f = b.input(x, legendre.with_atoms(atoms.to_vec()).unwrap());
    let g = b.input(y, Basis::indicator(3));
    let f = b.sum(f, Matrix::from_fn(3, 7, |i, j| ((3 * i + 5 * j + 1) as f64).sin()));
    let product = b.kronecker([f, g]);
    let output = b.sum(product, Matrix::from_fn(2, 9, |i, j| ((7 * i + 2 * j) as f64).cos()));
    let circuit = bornite::ops::orthonormalize(&b.build(output).unwrap()).unwrap();
    (circuit.circuit, atoms)
}

#[test]
fn atoms_jump_and_the_rest_is_a_density() {
    let (circuit, atoms) = with_atoms();
    let x = VariableId::new(0);
    for text in ["", "y=1"] {
        let query = Query::parse(circuit.variables(), text).unwrap();
        let environments = Environments::given(&circuit, &query).unwrap();
        let p = environments.marginal(x);
        // By enumeration of the atoms and Simpson's rule between them.
        let sum = |g: &dyn Fn(f64) -> f64, below: f64| {
            let density =
                |x: f64| if atoms.contains(&x) { p.density(x + 1e-12) } else { p.density(x) };
            let end = below.clamp(-1.0, 2.0);
            let rest = simpson(-1.0, end, 4000, |x| g(x) * density(x));
            rest + atoms.iter().filter(|a| **a <= below).map(|&a| g(a) * p.density(a)).sum::<f64>()
        };
        assert_close(sum(&|_| 1.0, 9.0), 1.0, 1e-9, "mass");
        let mean = sum(&|x| x, 9.0);
        assert_close(p.mean(), mean, 1e-9, "mean");
        assert_close(environments.mean(x), mean, 1e-9, "mean");
        let variance = sum(&|x| (x - mean).powi(2), 9.0);
        assert_close(p.variance(), variance, 1e-8, "variance");
        assert_close(environments.variance(x), variance, 1e-8, "variance");
        for at in [-0.5, 0.0, 0.3, 0.75, 1.9, 3.0, 4.0] {
            assert_close(p.cdf(at), sum(&|_| 1.0, at), 1e-8, "cdf");
        }
        for &a in &atoms {
            let below = p.probability(&Part::Interval { low: f64::NEG_INFINITY, high: a });
            assert_close(p.cdf(a) - below, p.density(a), 1e-12, "jump");
            // Every level within the jump is reached at the atom.
            let level = below + 0.5 * p.density(a);
            assert_eq!(p.quantile(level).unwrap(), a);
            let question = Query::unknown(2).with_value(circuit.variables(), "x", a).unwrap();
            let joint = environments.log_marginal(&question).unwrap();
            assert_close(joint.exp(), p.density(a), 1e-12, "P(x = a)");
        }
        for level in [0.001, 0.1, 0.35, 0.6, 0.8, 0.95, 0.999] {
            let q = p.quantile(level).unwrap();
            let before = p.probability(&Part::Interval { low: f64::NEG_INFINITY, high: q });
            assert!(before <= level + 1e-11 && level <= p.cdf(q) + 1e-11, "{level}: {q}");
        }
        for (low, high) in [(0.0, 0.75), (0.0_f64.next_up(), 0.75_f64.next_up()), (3.0, 5.0)] {
            let part = Part::Interval { low, high };
            let within = p.within(&part).unwrap();
            assert_close(within.probability(&part), 1.0, 1e-12, "all of it");
            assert_eq!(within.density(-0.5), 0.0);
            let variables = circuit.variables();
            let also = query.clone().with_interval(variables, "x", low, high).unwrap();
            let given = Environments::given(&circuit, &also).unwrap();
            assert_close(given.mean(x), within.mean(), 1e-9, "mean");
        }
        let only = p.within(&Part::Values(vec![0, 2])).unwrap();
        assert_close(only.density(0.0) + only.density(4.0), 1.0, 1e-12, "atoms alone");
        assert_eq!(only.quantile(1.0).unwrap(), 4.0);
    }
}

#[test]
fn samples_are_as_often_at_atoms_as_they_should_be() {
    let (circuit, atoms) = with_atoms();
    let p = Environments::new(&circuit).marginal(VariableId::new(0));
    let count = 20_000;
    let samples = bornite::engine::Engine::new(&circuit).sample(count, 3);
    let share = |inside: &dyn Fn(f64) -> bool| {
        samples.chunks_exact(2).filter(|row| inside(row[0])).count() as f64 / count as f64
    };
    for &a in &atoms {
        // Four deviations.
        assert_close(share(&|x| x == a), p.density(a), 0.015, "share of an atom");
    }
    let part = Part::Interval { low: 0.25, high: 0.5 };
    assert_close(share(&|x| (0.25..0.5).contains(&x)), p.probability(&part), 0.015, "the rest");
}

use bornite::basis::Part;
use bornite::linalg::{Complex64, Matrix};
use bornite::ops::{Environments, Factor, OperationError, expectation, log_marginal};
use bornite::{Query, VariableId};
use rand::RngExt;

use crate::world::{
    Truth, assert_close, continuous_circuit, finite_circuits, random_query, rng, simpson,
};

#[test]
fn products_of_functions_match_enumeration() {
    for (name, circuit) in finite_circuits() {
        let truth = Truth::new(&circuit);
        for seed in 0..4 {
            let query = random_query(&circuit, 0.2 * seed as f64, 80 + seed);
            let total = truth.sum(&query, &[], |_| 1.0);
            if total < 1e-6 {
                continue;
            }
            let rng = &mut rng(seed);
            let mut factors = Vec::new();
            let mut tables: Vec<Option<Vec<f64>>> = vec![None; circuit.num_variables()];
            for (v, variable) in circuit.variables().iter().enumerate() {
                let values = variable.domain.num_values().unwrap();
                let (factor, table) = match rng.random_range(0..4) {
                    0 => {
                        let part = Part::Interval { low: 1.0, high: 9.0 };
                        let table = (0..values).map(|x| f64::from(u8::from(x >= 1))).collect();
                        (Factor::Indicator(part), table)
                    }
                    1 => (Factor::Power(3), (0..values).map(|x| (x as f64).powi(3)).collect()),
                    2 => {
                        let table: Vec<f64> =
                            (0..values).map(|_| 2.0 * rng.random::<f64>() - 1.0).collect();
                        (Factor::Values(table.clone()), table)
                    }
                    _ => continue,
                };
                factors.push((VariableId::new(v), factor));
                tables[v] = Some(table);
            }
            let g = |x: &[usize]| -> f64 {
                tables.iter().zip(x).map(|(t, &x)| t.as_ref().map_or(1.0, |t| t[x])).product()
            };
            let expected = truth.sum(&query, &[], g) / total;
            let found = expectation(&circuit, &factors, &query).unwrap();
            assert_close(found, expected, 1e-10, &name);
        }
    }
}

#[test]
fn continuous_functions_match_their_integrals() {
    let circuit = continuous_circuit(3, 31);
    let variables = circuit.variables();
    let all = Query::unknown(variables.len());
    let id = VariableId::new;
    let environments = Environments::new(&circuit);
    let part = Part::Interval { low: 0.5, high: 2.0 };
    // An indicator is an interval query.
    let factors =
        [(id(1), Factor::Indicator(part.clone())), (id(6), Factor::Values(vec![0.0, 1.0, 0.0]))];
    let query = Query::parse(variables, "x1 in [0.5, 2), x6=1").unwrap();
    let p = log_marginal(&circuit, &query).unwrap().exp();
    assert_close(expectation(&circuit, &factors, &all).unwrap(), p, 1e-12, "indicator");
    // Powers and covariances.
    for (a, b) in [(0, 1), (2, 3), (4, 5), (0, 6)] {
        let power =
            |v: usize, p: u32| expectation(&circuit, &[(id(v), Factor::Power(p))], &all).unwrap();
        let both = [(id(a), Factor::Power(1)), (id(b), Factor::Power(1))];
        let product = expectation(&circuit, &both, &all).unwrap();
        let covariance = environments.covariance(id(a), id(b));
        assert_close(covariance, product - power(a, 1) * power(b, 1), 1e-11, "covariance");
        assert_close(environments.covariance_matrix()[(b, a)], covariance, 1e-11, "matrix");
        let variance = power(a, 2) - power(a, 1).powi(2);
        assert_close(environments.variance(id(a)), variance, 1e-10, "variance");
    }
    // Under evidence about the same variable, against a grid of the conditional density.
    let given = Query::parse(variables, "x1 in [0.5, 2), x3=2.5, x6 in {0, 2}").unwrap();
    let found =
        expectation(&circuit, &[(id(1), Factor::Power(2)), (id(3), Factor::Power(1))], &given);
    let p = Environments::given(&circuit, &given).unwrap().marginal(id(1)).within(&part).unwrap();
    let expected = 2.5 * simpson(0.5, 2.0, 2000, |x| x * x * p.density(x));
    assert_close(found.unwrap(), expected, 1e-9, "part");
    let other = Part::Interval { low: 1.0, high: 9.0 };
    let found = expectation(&circuit, &[(id(1), Factor::Indicator(other.clone()))], &given);
    assert_close(found.unwrap(), p.probability(&other), 1e-11, "indicator in a part");
}

#[test]
fn matrices_of_operators_may_be_complex() {
    let circuit = continuous_circuit(1, 33);
    let all = Query::unknown(circuit.num_variables());
    let width = |v: usize| {
        let environments = Environments::new(&circuit);
        let marginal = environments.marginal(VariableId::new(v));
        marginal.matrix().map(|(basis, m)| (basis.clone(), m.clone())).unwrap()
    };
    let (basis, rho) = width(3);
    let k = basis.width();
    let a = Matrix::from_fn(k, k, |i, j| Complex64::new((i + j) as f64, i as f64 - j as f64));
    let expected: Complex64 = rho.data().iter().zip(a.data()).map(|(x, y)| x * y).sum();
    let factors = [(VariableId::new(3), Factor::Matrix(a))];
    let found = expectation(&circuit, &factors, &all).unwrap();
    assert_close(found, expected.re, 1e-11, "operator");
    // The matrix of x itself.
    let x = basis.moments::<Complex64>(1).unwrap();
    let factors = [(VariableId::new(3), Factor::Matrix(x))];
    let power = [(VariableId::new(3), Factor::Power(1))];
    let (a, b) = (expectation(&circuit, &factors, &all), expectation(&circuit, &power, &all));
    assert_close(a.unwrap(), b.unwrap(), 1e-12, "power");
}

#[test]
fn factors_that_do_not_fit_are_refused() {
    let circuit = continuous_circuit(1, 35);
    let id = VariableId::new;
    let all = Query::unknown(circuit.num_variables());
    let known = Query::parse(circuit.variables(), "x3=1").unwrap();
    let eye = |k| Matrix::<Complex64>::identity(k);
    let skew = Matrix::from_fn(5, 5, |i, j| Complex64::new(i as f64 - j as f64, 0.0));
    let fails = |v: usize, factor: Factor, query: &Query, part: &str| {
        let error = expectation(&circuit, &[(id(v), factor)], query).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    };
    fails(0, Factor::Power(3), &all, "power 3");
    fails(0, Factor::Values(vec![1.0]), &all, "not finite");
    fails(0, Factor::Indicator(Part::Values(vec![1])), &all, "not finite");
    fails(6, Factor::Values(vec![1.0]), &all, "1x1; give 1x3");
    fails(6, Factor::Values(vec![1.0, f64::NAN, 0.0]), &all, "not finite");
    fails(3, Factor::Matrix(eye(2)), &all, "2x2; give 5x5");
    fails(3, Factor::Matrix(skew), &all, "not Hermitian");
    fails(3, Factor::Matrix(eye(5)), &known, "must be unknown");
    let twice = [(id(0), Factor::Power(1)), (id(0), Factor::Power(1))];
    let error = expectation(&circuit, &twice, &all).unwrap_err();
    assert!(matches!(error, OperationError::RepeatedFactor { .. }));
}

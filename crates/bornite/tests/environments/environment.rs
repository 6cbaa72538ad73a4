use bornite::linalg::{Complex64, Matrix};
use bornite::ops::{Environments, OperationError, evaluate, log_marginal, marginalize};
use bornite::{CircuitBuilder, Domain, Evidence, Orthonormal, Query, VariableId};

use crate::world::{
    Truth, assert_close, continuous_circuit, finite_circuits, random_query, singular_values,
};

#[test]
fn all_posterior_marginals_match_enumeration() {
    for (name, circuit) in finite_circuits() {
        let truth = Truth::new(&circuit);
        for seed in 0..4 {
            let query = random_query(&circuit, 0.25 * seed as f64, seed);
            let environments = match Environments::given(&circuit, &query) {
                Ok(environments) => environments,
                Err(error) => {
                    assert!(truth.sum(&query, &[], |_| 1.0) < 1e-14, "{name}: {error}");
                    continue;
                }
            };
            let evidence = truth.sum(&query, &[], |_| 1.0);
            assert_close(environments.log_evidence(), evidence.ln(), 1e-11, &name);
            for (v, marginal) in environments.marginals().into_iter().enumerate() {
                let total = truth.sum(&query, &[v], |_| 1.0);
                let p = marginal.probabilities().unwrap();
                for (x, &p) in p.iter().enumerate() {
                    let mass = truth.sum(&query, &[v], |y| f64::from(u8::from(y[v] == x)));
                    assert_close(p, mass / total, 1e-11, &format!("{name}, {query:?}, {v} = {x}"));
                    assert_eq!(p, marginal.density(x as f64));
                }
            }
        }
    }
}

#[test]
fn spectra_are_those_of_the_amplitudes_cut_in_two() {
    for (name, circuit) in finite_circuits() {
        let truth = Truth::new(&circuit);
        let environments = Environments::new(&circuit);
        let r = circuit.width(circuit.output());
        for id in circuit.layer_ids().filter(|&id| id != circuit.output()) {
            // c as a matrix: the scope's values by those of the other variables and the squares.
            let scope: Vec<usize> = circuit.scope(id).iter().map(|v| v.index()).collect();
            let sizes: Vec<usize> =
                circuit.variables().iter().map(|v| v.domain.num_values().unwrap()).collect();
            let place = |x: &[usize], inside: bool| {
                let kept = (0..x.len()).filter(|v| scope.contains(v) == inside);
                kept.fold(0, |n, v| n * sizes[v] + x[v])
            };
            let count = |inside: bool| {
                let kept = (0..sizes.len()).filter(|v| scope.contains(v) == inside);
                kept.map(|v| sizes[v]).product::<usize>()
            };
            let mut cut = Matrix::<Complex64>::zeros(count(true), count(false) * r);
            for (x, a) in truth.points.iter().zip(&truth.amplitudes) {
                for (k, &z) in a.iter().enumerate() {
                    cut[(place(x, true), place(x, false) * r + k)] = z;
                }
            }
            let expected = singular_values(&cut);
            let spectrum = environments.spectrum(id).unwrap();
            assert_eq!(spectrum.len(), circuit.width(id));
            assert_close(spectrum.iter().sum(), 1.0, 1e-12, &name);
            for k in 0..spectrum.len().max(expected.len()) {
                let found = spectrum.get(k).copied().unwrap_or(0.0);
                let value = expected.get(k).map_or(0.0, |s| s * s);
                assert_close(found, value, 1e-11, &format!("{name}, layer {id}, value {k}"));
            }
            let rho = environments.reduced_density(id).unwrap();
            let trace: Complex64 = (0..rho.rows()).map(|k| rho[(k, k)]).sum();
            assert_close(trace.re, 1.0, 1e-12, &name);
            assert!((rho.norm2() - spectrum.iter().map(|s| s * s).sum::<f64>()).abs() < 1e-11);
        }
        let heads = environments.spectrum(circuit.output()).unwrap();
        assert_eq!(heads.len(), r);
        assert_close(heads.iter().sum(), 1.0, 1e-12, &name);
    }
}

#[test]
fn marginals_of_a_few_variables_stop_at_the_layer_over_them() {
    let mut stopped = 0;
    for (name, circuit) in finite_circuits() {
        let all = Environments::new(&circuit);
        for seed in 0..8 {
            let query = random_query(&circuit, 0.4, 100 + seed);
            let answer = all.marginalize(&query).unwrap();
            let whole = marginalize(&circuit, &query).unwrap();
            if whole.log_marginal > -25.0 {
                assert_close(answer.log_marginal, whole.log_marginal, 1e-10, &name);
            }
            let counts = whole.layers;
            assert!(answer.layers_touched <= counts.kept + counts.mixed, "{name}");
            let known: Vec<usize> = (0..circuit.num_variables())
                .filter(|&v| query.evidence()[v] != Evidence::Unknown)
                .collect();
            let scope = circuit.scope(answer.closed_at);
            assert!(known.iter().all(|&v| scope.contains(&VariableId::new(v))));
            stopped += usize::from(scope.len() < circuit.num_variables());
        }
        let nothing = all.marginalize(&Query::unknown(circuit.num_variables())).unwrap();
        assert_eq!((nothing.log_marginal, nothing.layers_touched), (0.0, 0));
    }
    assert!(stopped > 50);
}

#[test]
fn one_known_variable_touches_one_layer() {
    for (_, circuit) in finite_circuits() {
        let all = Environments::new(&circuit);
        for variable in circuit.variables() {
            let query = Query::unknown(circuit.num_variables());
            let query = query.with_value(circuit.variables(), &variable.name, 1.0).unwrap();
            let answer = all.marginalize(&query).unwrap();
            assert_eq!(answer.layers_touched, 1);
            assert_close(answer.log_marginal, log_marginal(&circuit, &query).unwrap(), 1e-10, "");
        }
    }
}

#[test]
fn queries_under_evidence_are_conditionals() {
    for (name, circuit) in finite_circuits() {
        let variables = circuit.variables();
        let d = variables.len();
        let given = Query::unknown(d).with_values(variables, "x1", &[0, 2]).unwrap();
        let given = given.with_value(variables, "x3", 1.0).unwrap();
        let Ok(environments) = Environments::given(&circuit, &given) else { continue };
        let asked = Query::unknown(d).with_value(variables, "x0", 1.0).unwrap();
        let asked = asked.with_value(variables, "x2", 0.0).unwrap();
        let both = given.clone().with_value(variables, "x0", 1.0).unwrap();
        let both = both.with_value(variables, "x2", 0.0).unwrap();
        let expected =
            log_marginal(&circuit, &both).unwrap() - log_marginal(&circuit, &given).unwrap();
        let found = environments.log_marginal(&asked).unwrap();
        assert!((found.exp() - expected.exp()).abs() < 1e-11, "{name}: {found} {expected}");
        let error = environments.log_marginal(&given).unwrap_err();
        assert!(error.to_string().contains("'x1' is already part of the evidence"), "{error}");
    }
}

#[test]
fn pairs_means_and_covariances_match_enumeration() {
    for (name, circuit) in finite_circuits() {
        let truth = Truth::new(&circuit);
        let d = circuit.num_variables();
        for seed in 0..3 {
            let query = random_query(&circuit, 0.2 * seed as f64, 50 + seed);
            let Ok(environments) = Environments::given(&circuit, &query) else { continue };
            let total = truth.sum(&query, &[], |_| 1.0);
            let mean = |v: usize| truth.sum(&query, &[], |x| x[v] as f64) / total;
            let matrix = environments.covariance_matrix();
            for v in 0..d {
                let id = VariableId::new(v);
                assert_close(environments.mean(id), mean(v), 1e-11, &name);
                for w in 0..d {
                    let other = VariableId::new(w);
                    let (a, b) = (mean(v), mean(w));
                    let expected =
                        truth.sum(&query, &[], |x| (x[v] as f64 - a) * (x[w] as f64 - b)) / total;
                    let what = format!("{name}: covariance of {v} and {w}");
                    assert_close(environments.covariance(id, other), expected, 1e-10, &what);
                    assert_close(matrix[(v, w)], expected, 1e-10, &what);
                    let table = environments.pairwise(id, other).unwrap();
                    let sum = truth.sum(&query, &[v, w], |_| 1.0);
                    for i in 0..table.rows() {
                        for j in 0..table.cols() {
                            let mass = truth.sum(&query, &[v, w], |x| {
                                f64::from(u8::from(x[v] == i && x[w] == j))
                            });
                            let what = format!("{name}: x{v} = {i}, x{w} = {j}");
                            assert_close(table[(i, j)], mass / sum, 1e-10, &what);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn posteriors_of_continuous_variables_are_ratios_of_marginals() {
    for r in [1, 3] {
        let circuit = continuous_circuit(r, 5);
        let variables = circuit.variables();
        let query =
            Query::parse(variables, "x0=1.2, x2 in [2.1, 3.5), x4 in [-1, 4), x6 in {0, 2}");
        let query = query.unwrap();
        let environments = Environments::given(&circuit, &query).unwrap();
        let below = log_marginal(&circuit, &query).unwrap();
        assert_close(environments.log_evidence(), below, 1e-12, "evidence");
        for (name, x) in [("x1", 0.4), ("x3", 5.1), ("x5", 3.2)] {
            let both = query.clone().with_value(variables, name, x).unwrap();
            let expected = (log_marginal(&circuit, &both).unwrap() - below).exp();
            let v = circuit.find_variable(name).unwrap();
            let marginal = environments.marginal(v);
            assert_close(marginal.density(x), expected, 1e-11, name);
            let both = query.clone().with_interval(variables, name, x - 1.0, x).unwrap();
            let expected = (log_marginal(&circuit, &both).unwrap() - below).exp();
            assert_close(marginal.cdf(x) - marginal.cdf(x - 1.0), expected, 1e-11, name);
        }
        // A variable that is known itself: what the others say of it.
        let mut others = query.clone();
        others.set(variables, 2, Evidence::Unknown).unwrap();
        let without = log_marginal(&circuit, &others).unwrap();
        let v = VariableId::new(2);
        let both = others.with_value(variables, "x2", 2.7).unwrap();
        let expected = (log_marginal(&circuit, &both).unwrap() - without).exp();
        assert_close(environments.marginal(v).density(2.7), expected, 1e-11, "leave one out");
    }
}

#[test]
fn impossible_evidence_is_refused() {
    let mut b = CircuitBuilder::new();
    let x = b.variable("x", Domain::Finite(2));
    let f = b.input(x, bornite::Basis::indicator(2));
    let output = b.sum(f, Matrix::from_rows(&[[1.0, 0.0]]));
    let circuit = Orthonormal::verify(b.build(output).unwrap()).unwrap();
    let query = Query::parse(circuit.variables(), "x=1").unwrap();
    let error = Environments::given(&circuit, &query).unwrap_err();
    assert!(matches!(error, OperationError::ImpossibleEvidence));
    let all = Environments::new(&circuit);
    assert_eq!(all.log_marginal(&query).unwrap(), f64::NEG_INFINITY);
    assert_eq!(evaluate(&circuit, &[1.0]).unwrap().log_abs_squared(), f64::NEG_INFINITY);
    assert!(Environments::given(&circuit, &Query::unknown(2)).is_err());
}

#[test]
fn a_circuit_can_be_shared_with_its_environments() {
    let circuit = std::sync::Arc::new(continuous_circuit(1, 9));
    let environments = Environments::new(circuit.clone());
    drop(circuit);
    assert_close(environments.spectrum(environments.circuit().output()).unwrap()[0], 1.0, 0.0, "");
}

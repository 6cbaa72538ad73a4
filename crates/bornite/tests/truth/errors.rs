//! Everything that builders, queries and operations refuse, and what they name.

use bornite::basis::{BasisError, Part};
use bornite::circuit::{CircuitError, Layer};
use bornite::linalg::{Complex64, Matrix};
use bornite::ops::{OperationError, evaluate, log_marginal, log_partition, orthonormalize, square};
use bornite::query::QueryError;
use bornite::{
    Basis, Circuit, CircuitBuilder, Domain, Evidence, LayerId, Orthonormal, Query, VariableId,
    WeightId,
};

/// Two input layers, of widths 2 and 3: layers 0 and 1.
fn two() -> (CircuitBuilder, LayerId, LayerId) {
    let mut b = CircuitBuilder::new();
    let (x, y) = (b.variable("x", Domain::Finite(2)), b.variable("y", Domain::Finite(3)));
    let (f, g) = (b.input(x, Basis::indicator(2)), b.input(y, Basis::indicator(3)));
    (b, f, g)
}

fn refused(b: CircuitBuilder, output: LayerId) -> CircuitError {
    let error = b.build(output).unwrap_err();
    assert!(!error.to_string().is_empty());
    error
}

fn ones(rows: usize, cols: usize) -> Matrix<f64> {
    Matrix::from_fn(rows, cols, |_, _| 1.0)
}

#[test]
fn a_circuit_without_layers() {
    assert_eq!(refused(CircuitBuilder::new(), LayerId::new(0)), CircuitError::Empty);
}

#[test]
fn domains_that_are_none() {
    for domain in [
        Domain::Finite(0),
        Domain::Interval(1.0, 1.0),
        Domain::Interval(2.0, 1.0),
        Domain::Interval(0.0, f64::INFINITY),
        Domain::HalfLine(f64::NEG_INFINITY),
        Domain::Circle(0.0),
        Domain::Circle(f64::INFINITY),
    ] {
        let (mut b, f, _) = two();
        b.variable("z", domain.clone());
        let variable = "z".to_owned();
        assert_eq!(refused(b, f), CircuitError::InvalidDomain { variable, domain });
    }
    let (mut b, f, _) = two();
    b.variable("z", Domain::Circle(f64::NAN));
    assert!(
        matches!(refused(b, f), CircuitError::InvalidDomain { variable, .. } if variable == "z")
    );
}

#[test]
fn two_variables_of_one_name() {
    let (mut b, f, _) = two();
    b.variable("x", Domain::Real);
    assert_eq!(refused(b, f), CircuitError::DuplicateVariable { name: "x".into() });
}

#[test]
fn a_variable_that_is_not_there() {
    let (mut b, ..) = two();
    let layer = b.input(VariableId::new(7), Basis::indicator(2));
    assert_eq!(refused(b, layer), CircuitError::UnknownVariable { layer, variable: 7, count: 2 });
}

#[test]
fn functions_of_another_domain() {
    let (mut b, ..) = two();
    let x = VariableId::new(0);
    let layer = b.input(x, Basis::indicator(5));
    let (domain, basis) = (Domain::Finite(2), Domain::Finite(5));
    let error = CircuitError::BasisDomain { layer, variable: "x".into(), domain, basis };
    assert_eq!(refused(b, layer), error);
    let (mut b, ..) = two();
    let layer = b.input(x, Basis::hermite(2, 0.0, 1.0).unwrap());
    assert!(matches!(refused(b, layer), CircuitError::BasisDomain { layer: l, .. } if l == layer));
}

#[test]
fn functions_that_cannot_be_made() {
    let source = Basis::legendre(0, 0.0, 1.0).unwrap_err();
    let error = CircuitError::Basis { layer: LayerId::new(4), source: source.clone() };
    assert_eq!(error.to_string(), format!("layer 4: {source}"));
    assert!(matches!(Basis::hermite(2, 0.0, 0.0), Err(BasisError::Scale { .. })));
}

#[test]
fn an_input_that_does_not_come_before() {
    for input in [2, 9] {
        let (mut b, f, _) = two();
        let layer = b.kronecker([f, LayerId::new(input)]);
        assert_eq!(refused(b, layer), CircuitError::UnknownInput { layer, input });
    }
}

#[test]
fn products_of_fewer_than_two() {
    for found in [0, 1] {
        let (mut b, f, _) = two();
        let layer = b.kronecker(vec![f; found]);
        assert_eq!(refused(b, layer), CircuitError::TooFewInputs { layer, found });
        let (mut b, f, _) = two();
        let layer = b.hadamard(vec![f; found]);
        assert_eq!(refused(b, layer), CircuitError::TooFewInputs { layer, found });
    }
}

#[test]
fn inputs_that_share_a_variable() {
    let overlap = |layer, variable: &str| CircuitError::OverlappingScopes {
        layer,
        variable: variable.to_owned(),
    };
    // The same layer twice.
    let (mut b, f, _) = two();
    let layer = b.hadamard([f, f]);
    assert_eq!(refused(b, layer), overlap(layer, "x"));
    // Two layers of one variable, deep below, and a sound product above the other one.
    let (mut b, f, g) = two();
    let again = b.input(VariableId::new(1), Basis::indicator(3));
    let left = b.kronecker([f, g]);
    let sum = b.sum(left, ones(3, 6));
    let layer = b.hadamard([sum, again]);
    let above = b.sum(layer, ones(1, 3));
    assert_eq!(refused(b, above), overlap(layer, "y"));
    // A layer that two others receive.
    let (mut b, f, g) = two();
    let sums = [b.sum(g, ones(2, 3)), b.sum(g, ones(2, 3))];
    let left = b.kronecker([f, sums[0]]);
    let layer = b.kronecker([left, sums[1]]);
    assert_eq!(refused(b, layer), overlap(layer, "y"));
}

#[test]
fn overlaps_in_a_long_chain_take_no_quadratic_memory() {
    let mut b = CircuitBuilder::new();
    let d = 50_000;
    let input = |b: &mut CircuitBuilder, n: usize| {
        let x = b.variable(format!("x{n}"), Domain::Finite(1));
        b.input(x, Basis::indicator(1))
    };
    let first = input(&mut b, 0);
    let mut layer = first;
    for n in 1..d {
        let next = input(&mut b, n);
        layer = b.kronecker([layer, next]);
    }
    let output = b.kronecker([layer, first]);
    let variable = "x0".to_owned();
    assert_eq!(refused(b, output), CircuitError::OverlappingScopes { layer: output, variable });
}

#[test]
fn hadamard_inputs_of_two_widths() {
    let (mut b, f, g) = two();
    let layer = b.hadamard([f, g]);
    let error = CircuitError::WidthMismatch { layer, input: g, expected: 2, found: 3 };
    assert_eq!(refused(b, layer), error);
}

#[test]
fn weights_that_are_not_there_or_not_used() {
    let (mut b, f, _) = two();
    let weight = WeightId::new(3);
    let layer = b.shared_sum(f, weight);
    assert_eq!(refused(b, layer), CircuitError::UnknownWeight { layer, weight });
    let (mut b, f, g) = two();
    let weight = b.weight(ones(1, 1));
    let output = b.kronecker([f, g]);
    assert_eq!(refused(b, output), CircuitError::UnusedWeight { weight });
}

#[test]
fn a_weight_of_the_wrong_shape() {
    let (mut b, _, g) = two();
    let layer = b.sum(g, ones(2, 4));
    let error = CircuitError::WeightShape { layer, input: g, rows: 2, cols: 4, expected: 3 };
    assert_eq!(refused(b, layer), error);
}

#[test]
fn weights_that_are_not_finite() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (mut b, _, g) = two();
        let mut w = ones(2, 3);
        w[(1, 2)] = bad;
        let layer = b.sum(g, w);
        assert_eq!(refused(b, layer), CircuitError::NotFinite { layer, row: 1, col: 2 });
        let (mut b, _, g) = two();
        let mut w = ones(2, 3).map(Complex64::from);
        w[(0, 1)].im = bad;
        let layer = b.sum(g, w);
        assert_eq!(refused(b, layer), CircuitError::NotFinite { layer, row: 0, col: 1 });
    }
}

#[test]
fn layers_of_width_0() {
    let (mut b, f, _) = two();
    let layer = b.sum(f, Matrix::<f64>::zeros(0, 2));
    assert_eq!(refused(b, layer), CircuitError::ZeroWidth { layer });
}

#[test]
fn products_too_wide() {
    let mut b = CircuitBuilder::new();
    let inputs: Vec<LayerId> = (0..70)
        .map(|n| {
            let x = b.variable(format!("x{n}"), Domain::Finite(2));
            b.input(x, Basis::indicator(2))
        })
        .collect();
    let layer = b.push(Layer::Kronecker { inputs });
    assert!(matches!(refused(b, layer), CircuitError::TooLarge { layer: l, .. } if l == layer));
}

#[test]
fn an_output_that_is_no_layer() {
    let (b, ..) = two();
    let error = CircuitError::UnknownOutput { output: 5, count: 2 };
    assert_eq!(refused(b, LayerId::new(5)), error);
}

#[test]
fn a_layer_that_the_output_does_not_reach() {
    let (b, f, g) = two();
    assert_eq!(refused(b, f), CircuitError::NotReached { layer: g });
}

#[test]
fn a_variable_that_no_layer_has() {
    let (mut b, f, g) = two();
    b.variable("z", Domain::Real);
    let output = b.kronecker([f, g]);
    assert_eq!(refused(b, output), CircuitError::UnusedVariable { variable: "z".into() });
}

fn circuit() -> Circuit {
    let (mut b, f, g) = two();
    let z = b.variable("z", Domain::Circle(2.0));
    let h = b.input(z, Basis::fourier(3, 0.0, 2.0, bornite::basis::FourierForm::Real).unwrap());
    let product = b.kronecker([f, g, h]);
    let output = b.sum(product, ones(1, 18));
    b.build(output).unwrap()
}

#[test]
fn values_outside_their_domain_name_the_variable_and_the_value() {
    let c = circuit();
    let orthonormal = orthonormalize(&c).unwrap().circuit;
    for (x, variable, value) in [
        ([2.0, 0.0, 0.0], "x", 2.0),
        ([0.5, 0.0, 0.0], "x", 0.5),
        ([0.0, -1.0, 0.0], "y", -1.0),
        ([0.0, f64::INFINITY, 0.0], "y", f64::INFINITY),
        ([0.0, 0.0, 2.0], "z", 2.0),
        ([0.0, 0.0, -1e-300], "z", -1e-300),
    ] {
        let error = evaluate(&c, &x).unwrap_err();
        let domain = c.variable(c.find_variable(variable).unwrap()).domain.clone();
        let variable = variable.to_owned();
        assert_eq!(error, QueryError::OutOfDomain { variable, value, domain });
        assert_eq!(Query::row(c.variables(), &x).unwrap_err(), error);
    }
    // Unknown to a query, no value to evaluate.
    let x = [0.0, f64::NAN, 0.0];
    match evaluate(&c, &x).unwrap_err() {
        QueryError::OutOfDomain { variable, value, .. } => {
            assert!(variable == "y" && value.is_nan());
        }
        other => panic!("{other}"),
    }
    assert!(log_marginal(&orthonormal, &Query::row(c.variables(), &x).unwrap()).is_ok());
}

#[test]
fn queries_that_do_not_fit() {
    let c = circuit();
    let variables = c.variables();
    let count = |found| QueryError::Count { expected: 3, found };
    assert_eq!(evaluate(&c, &[0.0]).unwrap_err(), count(1));
    let mut query = Query::unknown(3);
    let far = query.set(variables, usize::MAX, Evidence::Unknown).unwrap_err();
    assert_eq!(far, count(usize::MAX));
    let error = Query::unknown(3).with_interval(variables, "z", 1.0, 0.5).unwrap_err();
    assert!(
        matches!(error, QueryError::Interval { variable, low: 1.0, high: 0.5 } if variable == "z")
    );
    let error = Query::unknown(3).with_interval(variables, "z", f64::NAN, 0.5).unwrap_err();
    assert!(matches!(error, QueryError::Interval { .. }));
    let error = Query::unknown(3).with_values(variables, "z", &[0]).unwrap_err();
    assert!(matches!(error, QueryError::SetOfContinuous { variable, .. } if variable == "z"));
    let error = Query::unknown(3).with_values(variables, "y", &[0, 3]).unwrap_err();
    assert!(
        matches!(error, QueryError::OutOfDomain { variable, value: 3.0, .. } if variable == "y")
    );
    let error = Query::unknown(3).with_value(variables, "zz", 0.0).unwrap_err();
    let hint = Some("z".to_owned());
    assert_eq!(error, QueryError::UnknownVariable { name: "zz".into(), hint });
    let error = Query::parse(variables, "x=0, y in [0, --inf)").unwrap_err();
    assert!(matches!(error, QueryError::Syntax { position: 15, .. }), "{error:?}");
}

#[test]
fn a_query_for_another_circuit() {
    let c = circuit();
    let orthonormal = orthonormalize(&c).unwrap().circuit;
    let other = [
        bornite::Variable::new("x", Domain::Finite(2)),
        bornite::Variable::new("y", Domain::Finite(9)),
        bornite::Variable::new("z", Domain::Circle(2.0)),
    ];
    let query = Query::unknown(3).with_value(&other, "y", 7.0).unwrap();
    let error = QueryError::OtherVariables { variable: "y".into() };
    assert_eq!(log_marginal(&orthonormal, &query).unwrap_err(), error);
    let query = Query::unknown(3).with_values(&other, "y", &[1, 7]).unwrap();
    assert_eq!(log_marginal(&orthonormal, &query).unwrap_err(), error);
    let error = QueryError::Count { expected: 3, found: 2 };
    assert_eq!(log_marginal(&orthonormal, &Query::unknown(2)).unwrap_err(), error);
}

#[test]
fn parts_at_the_edges_of_a_domain() {
    let c = circuit();
    let orthonormal = orthonormalize(&c).unwrap().circuit;
    let log = |low: f64, high: f64| {
        let query = Query::unknown(3).with_interval(c.variables(), "z", low, high).unwrap();
        (query.evidence()[2].clone(), log_marginal(&orthonormal, &query).unwrap())
    };
    // The whole circle, touched or overshot, is nothing known.
    assert_eq!(log(0.0, 2.0), (Evidence::Unknown, 0.0));
    assert_eq!(log(-5.0, f64::INFINITY), (Evidence::Unknown, 0.0));
    // Beyond the domain, and without length: impossible.
    for (low, high) in [(2.0, 3.0), (-2.0, 0.0), (1.0, 1.0), (f64::INFINITY, f64::INFINITY)] {
        assert_eq!(log(low, high).1, f64::NEG_INFINITY, "{low} {high}");
    }
    // Clipped to the domain.
    assert_eq!(log(-9.0, 0.7).1, log(0.0, 0.7).1);
    assert_eq!(log(0.7, 9.0).1, log(0.7, 2.0).1);
    // Sets: none, all, one.
    let set = |values: &[usize]| {
        let query = Query::unknown(3).with_values(c.variables(), "y", values).unwrap();
        (query.evidence()[1].clone(), log_marginal(&orthonormal, &query).unwrap())
    };
    assert_eq!(set(&[]), (Evidence::In(Part::Values(vec![])), f64::NEG_INFINITY));
    assert_eq!(set(&[2, 0, 1, 2]), (Evidence::Unknown, 0.0));
    assert_eq!(set(&[1, 1]).0, Evidence::Value(1.0));
    // An interval of a finite domain holds its lower end and not its upper one.
    let whole = |low: f64, high: f64| {
        let query = Query::unknown(3).with_interval(c.variables(), "y", low, high).unwrap();
        query.evidence()[1].clone()
    };
    assert_eq!(whole(0.5, 1.5), Evidence::Value(1.0));
    assert_eq!(whole(0.0, 1.5), Evidence::In(Part::Values(vec![0, 1])));
    assert_eq!(whole(1.0, 2.0), Evidence::Value(1.0));
    assert_eq!(whole(-3.0, 2.5), Evidence::Unknown);
    assert_eq!(whole(0.1, 0.9), Evidence::In(Part::Values(vec![])));
    assert_eq!(whole(7.0, f64::INFINITY), Evidence::In(Part::Values(vec![])));
}

#[test]
fn a_square_is_not_squared_again() {
    let c = square(&circuit()).unwrap().into_circuit();
    let first = LayerId::new(0);
    let error = OperationError::AlreadySquared { layer: first };
    assert_eq!(square(&c).unwrap_err(), error);
    assert_eq!(log_partition(&c).unwrap_err(), error);
    assert_eq!(orthonormalize(&c).unwrap_err(), error);
    assert!(!Orthonormal::verify(c).unwrap_err().report.holds());
}

#[test]
fn a_circuit_that_is_not_orthonormal_is_given_back() {
    let c = circuit();
    let output = c.output();
    let refused = Orthonormal::verify(c.clone()).unwrap_err();
    assert_eq!((refused.report.worst, refused.report.residual), (output, 17.0));
    assert_eq!(refused.circuit, c);
}

use super::OperationError;
use super::marginalize::{check_query, input_message};
use super::message::Message;
use super::pass::upward_with;
use super::scaled::Scaled;
use crate::basis::{Basis, Part};
use crate::circuit::{Orthonormal, VariableId};
use crate::domain::Variable;
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::query::{Evidence, Query};

/// The largest difference between the two halves of a Hermitian matrix, relative to its largest
/// entry.
const HERMITIAN: f64 = 1e-12;

/// A function g of one variable, as a factor of the product that is averaged.
#[derive(Clone, Debug, PartialEq)]
pub enum Factor {
    /// 1 within a part of the domain, and 0 outside.
    Indicator(Part),
    /// xᵖ: any power on a finite domain; 0, 1 or 2 elsewhere.
    Power(u32),
    /// A function, or any Hermitian operator, given as the matrix ∫ g f fᴴ over the input functions
    /// f of the variable.
    Matrix(Matrix<Complex64>),
    /// A function on a finite domain, given by its values at 0, 1, …, v − 1.
    Values(Vec<f64>),
}

/// Computes the mean of ∏ gᵢ(xᵢ) given evidence, exactly, for functions gᵢ of single variables.
///
/// ```math
/// \mathbb{E}\Big[\prod_i g_i(x_i) \,\Big|\, \text{evidence}\Big]
///   = \frac{\int_{\text{evidence}} \prod_i g_i(x_i) \, \|c(x)\|^2 \, dx}{\int_{\text{evidence}} \|c(x)\|^2 \, dx}
/// ```
///
/// A factor replaces the input message of its variable by ∫ g f fᴴ over the evidence about the
/// variable. This matrix may have eigenvalues of either sign, and the result may be negative.
///
/// Requires: an orthonormal circuit, and at most one factor per variable.
///
/// Cost: two passes of [`marginalize`](super::marginalize()), the first of which counts the
/// variables with factors as restricted to a part of their domains.
///
/// ```
/// use bornite::{Basis, CircuitBuilder, Domain, Orthonormal, Query};
/// use bornite::{linalg::Matrix, ops::{Factor, expectation}};
///
/// // p(x, y) = 0.36 at (0, 0) and 0.64 at (1, 1).
/// let mut b = CircuitBuilder::new();
/// let (x, y) = (b.variable("x", Domain::Finite(2)), b.variable("y", Domain::Finite(2)));
/// let (f, g) = (b.input(x, Basis::indicator(2)), b.input(y, Basis::indicator(2)));
/// let product = b.kronecker([f, g]);
/// let output = b.sum(product, Matrix::from_rows(&[[0.6, 0.0, 0.0, 0.8]]));
/// let circuit = Orthonormal::verify(b.build(output)?)?;
///
/// let factors = [(x, Factor::Power(1)), (y, Factor::Values(vec![5.0, -2.0]))];
/// let mean = expectation(&circuit, &factors, &Query::unknown(2))?;
/// assert!((mean + 2.0 * 0.64).abs() < 1e-15);
/// # Ok::<(), bornite::Error>(())
/// ```
///
/// # Errors
/// The query was created for different variables, its evidence has probability 0, or a factor does
/// not match its variable.
pub fn expectation(
    circuit: &Orthonormal,
    factors: &[(VariableId, Factor)],
    query: &Query,
) -> Result<f64, OperationError> {
    check_query(circuit, query)?;
    let mut by_variable: Vec<Option<&Factor>> = vec![None; circuit.num_variables()];
    for (v, factor) in factors {
        let variable = &circuit.variables()[v.index()];
        if by_variable[v.index()].replace(factor).is_some() {
            let variable = variable.name.clone();
            return Err(OperationError::RepeatedFactor { variable });
        }
        check_factor(variable, factor, &query.evidence()[v.index()])?;
    }
    let is_real = |f: &Factor| match f {
        Factor::Matrix(m) => m.data().iter().all(|z| z.im == 0.0),
        Factor::Indicator(_) | Factor::Power(_) | Factor::Values(_) => true,
    };
    if circuit.is_real() && factors.iter().all(|f| is_real(&f.1)) {
        run::<f64>(circuit, &by_variable, query)
    } else {
        run::<Complex64>(circuit, &by_variable, query)
    }
}

/// Checks a factor as far as possible without the input functions.
fn check_factor(
    variable: &Variable,
    factor: &Factor,
    evidence: &Evidence,
) -> Result<(), OperationError> {
    let name = || variable.name.clone();
    let finite = variable.domain.num_values();
    match factor {
        Factor::Indicator(Part::Values(_)) if finite.is_none() => {
            Err(OperationError::NotFinite { variable: name() })
        }
        Factor::Power(power) if finite.is_none() && *power > 2 => {
            Err(OperationError::FactorPower { variable: name(), power: *power })
        }
        Factor::Values(values) => match finite {
            None => Err(OperationError::NotFinite { variable: name() }),
            Some(v) if v != values.len() => Err(OperationError::FactorShape {
                variable: name(),
                rows: 1,
                cols: values.len(),
                expected: 1,
                expected_cols: v,
            }),
            Some(_) if values.iter().any(|x| !x.is_finite()) => {
                Err(OperationError::FactorEntries { variable: name() })
            }
            Some(_) => Ok(()),
        },
        Factor::Matrix(_) if *evidence != Evidence::Unknown => {
            Err(OperationError::FactorEvidence { variable: name() })
        }
        Factor::Indicator(_) | Factor::Power(_) | Factor::Matrix(_) => Ok(()),
    }
}

fn run<T: Scalar>(
    circuit: &Orthonormal,
    factors: &[Option<&Factor>],
    query: &Query,
) -> Result<f64, OperationError> {
    let width = circuit.width(circuit.output());
    let evidence = |v: VariableId| &query.evidence()[v.index()];
    let nothing = query.evidence().iter().all(|e| *e == Evidence::Unknown);
    let below = if nothing {
        Scaled { value: 1.0, exponent: 0 }
    } else {
        upward_with::<T>(circuit, |v, basis| input_message(basis, evidence(v))).trace(width)
    };
    if below.value <= 0.0 {
        return Err(OperationError::ImpossibleEvidence);
    }
    // If the variable has a value, its factor is a number, which may be negative.
    let mut number = 1.0;
    let mut failure = None;
    let above = upward_with::<T>(circuit, |v, basis| {
        let Some(factor) = factors[v.index()] else { return input_message(basis, evidence(v)) };
        if let Evidence::Value(x) = evidence(v) {
            number *= value(factor, *x);
            return input_message(basis, evidence(v));
        }
        match factor_message(circuit.variable(v), basis, evidence(v), factor) {
            Ok(message) => message,
            Err(error) => {
                failure.get_or_insert(error);
                Message::Identity
            }
        }
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(number * above.trace(width).over(&below)),
    }
}

/// g(x).
fn value(factor: &Factor, x: f64) -> f64 {
    match factor {
        Factor::Indicator(Part::Values(values)) => {
            f64::from(u8::from(values.contains(&(x as usize))))
        }
        Factor::Indicator(Part::Interval { low, high }) => {
            f64::from(u8::from((*low..*high).contains(&x)))
        }
        Factor::Power(p) => x.powi((*p).min(i32::MAX.cast_unsigned()).cast_signed()),
        Factor::Values(values) => values[x as usize],
        Factor::Matrix(_) => unreachable!("checked: the variable is unknown"),
    }
}

/// ∫ g f fᴴ over the evidence about the variable.
fn factor_message<T: Scalar>(
    variable: &Variable,
    basis: &Basis,
    evidence: &Evidence,
    factor: &Factor,
) -> Result<Message<T>, OperationError> {
    let whole = Part::Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
    let part = match evidence {
        Evidence::In(part) => part,
        Evidence::Unknown | Evidence::Value(_) => &whole,
    };
    if let Factor::Matrix(m) = factor {
        check_matrix(variable, basis, m)?;
        return Ok(Message::mixed(T::matrix_from_complex(m).into_owned(), 0));
    }
    if let Some(v) = variable.domain.num_values() {
        let mut weights = vec![0.0; v];
        for x in part.values(v) {
            weights[x] = value(factor, x as f64);
        }
        return Ok(weighted(basis, weights));
    }
    let (power, part) = match (factor, part) {
        (Factor::Indicator(Part::Interval { low, high }), Part::Interval { low: a, high: b }) => {
            // Not `f64::max`, which would drop a NaN.
            let low = if low < a { *a } else { *low };
            let high = if high > b { *b } else { *high };
            (0, Part::Interval { low, high })
        }
        (Factor::Indicator(Part::Interval { low, high }), Part::Values(atoms)) => {
            let points = variable.domain.atoms();
            let inside = |n: &usize| points.get(*n).is_some_and(|x| (*low..*high).contains(x));
            (0, Part::Values(atoms.iter().copied().filter(inside).collect()))
        }
        (Factor::Power(p), part) => (*p, part.clone()),
        (Factor::Indicator(Part::Values(_)) | Factor::Values(_) | Factor::Matrix(_), _) => {
            unreachable!("checked: sets and tables belong to finite domains")
        }
    };
    match basis.moments_about(0.0, power, &part) {
        Some(moments) => Ok(Message::mixed(moments, 0)),
        None => Err(OperationError::FactorPower { variable: variable.name.clone(), power }),
    }
}

/// Σ w(x) f(x) f(x)ᴴ over the values of a finite domain.
fn weighted<T: Scalar>(basis: &Basis, weights: Vec<f64>) -> Message<T> {
    if matches!(basis, Basis::Indicator(_)) {
        return Message::diagonal(weights, 0);
    }
    let xs: Vec<f64> = (0..weights.len()).map(|x| x as f64).collect();
    let f = basis.evaluate_batch::<T>(&xs).transpose();
    let scaled = Matrix::from_fn(f.rows(), f.cols(), |i, x| f[(i, x)].scale_by(weights[x]));
    Message::mixed(scaled.times_adjoint(&f).hermitian_part(), 0)
}

fn check_matrix(
    variable: &Variable,
    basis: &Basis,
    m: &Matrix<Complex64>,
) -> Result<(), OperationError> {
    let (rows, cols, expected) = (m.rows(), m.cols(), basis.width());
    let name = variable.name.clone();
    if rows != expected || cols != expected {
        let expected_cols = expected;
        return Err(OperationError::FactorShape {
            variable: name,
            rows,
            cols,
            expected,
            expected_cols,
        });
    }
    let largest = m.max_part();
    let apart = (0..rows).flat_map(|i| (0..=i).map(move |j| (i, j))).any(|(i, j)| {
        // A NaN counts as apart.
        let distance = (m[(i, j)] - m[(j, i)].conj()).norm();
        distance.is_nan() || distance > HERMITIAN * largest
    });
    if apart || !largest.is_finite() {
        return Err(OperationError::FactorEntries { variable: name });
    }
    Ok(())
}

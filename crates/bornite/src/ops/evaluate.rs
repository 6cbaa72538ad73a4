use super::marginalize::{check_query, upward};
use super::message::Message;
use super::scaled::ldexp;
use crate::circuit::Circuit;
use crate::domain::Variable;
use crate::linalg::{Complex64, Scalar};
use crate::query::{Evidence, Query, QueryError};

/// c(x) ∈ ℂʳ as `values` · 2^`exponent`, which can neither underflow nor overflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Amplitude {
    /// The r entries, scaled so that the largest part is between 1 and 2; all zero if c(x) = 0.
    pub values: Vec<Complex64>,
    /// The exponent of the power of two to multiply by.
    pub exponent: i64,
}

impl Amplitude {
    /// c(x) itself. Entries beyond the range of `f64` become 0 or infinite.
    pub fn to_values(&self) -> Vec<Complex64> {
        self.values.iter().map(|&z| ldexp(z, self.exponent)).collect()
    }

    /// log ‖c(x)‖²; −∞ if c(x) = 0.
    pub fn log_abs_squared(&self) -> f64 {
        let norm2: f64 = self.values.iter().map(Complex64::norm_sqr).sum();
        norm2.ln() + 2.0 * self.exponent as f64 * std::f64::consts::LN_2
    }
}

/// Evaluates c(x) for any circuit.
///
/// Cost: the sum of the layers' sizes, O(L S).
///
/// ```
/// use bornite::{Basis, CircuitBuilder, Domain, linalg::Matrix, ops::evaluate};
///
/// let mut b = CircuitBuilder::new();
/// let x = b.variable("x", Domain::Finite(3));
/// let f = b.input(x, Basis::indicator(3));
/// let output = b.sum(f, Matrix::from_rows(&[[5.0, 6.0, 7.0]]));
/// let c = b.build(output)?;
/// assert_eq!(evaluate(&c, &[2.0])?.to_values()[0].re, 7.0);
/// # Ok::<(), bornite::Error>(())
/// ```
///
/// # Errors
/// A value is not in its variable's domain, the number of values is wrong, or a layer is too wide
/// to be formed.
///
/// Paper: `defn:tensorized-circuit`.
pub fn evaluate(circuit: &Circuit, x: &[f64]) -> Result<Amplitude, QueryError> {
    let query = Query::row(circuit.variables(), x)?;
    // In a query, NaN means an unknown value. Here, every value must be known.
    if let Some(index) = query.evidence().iter().position(|e| matches!(e, Evidence::Unknown)) {
        let Variable { name, domain } = circuit.variables()[index].clone();
        return Err(QueryError::OutOfDomain { variable: name, value: f64::NAN, domain });
    }
    let forms = check_query(circuit, &query)?;
    Ok(if circuit.is_real() {
        amplitude(&upward::<f64>(circuit, &query, &forms))
    } else {
        amplitude(&upward::<Complex64>(circuit, &query, &forms))
    })
}

fn amplitude<T: Scalar>(output: &Message<T>) -> Amplitude {
    match output {
        Message::Pure(v) => {
            let values = v.value.iter().map(|x| x.to_complex()).collect();
            Amplitude { values, exponent: v.exponent }
        }
        Message::Identity | Message::Diagonal(_) | Message::Mixed(_) => {
            unreachable!("every variable has a value")
        }
    }
}

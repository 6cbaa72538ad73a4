//! Variables and the sets that they take their values from.

use std::fmt;

/// The set of values of a variable. Every value is an `f64`; those of a finite domain are 0, 1, …, v − 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// The v values 0, 1, …, v − 1.
    Finite(usize),
    /// The real line.
    Real,
    /// The bounded interval [a, b].
    Interval(f64, f64),
    /// The half-line [a, ∞).
    HalfLine(f64),
    /// The circle [0, period), on which 0 and the period are the same point.
    Circle(f64),
}

impl Domain {
    /// Whether `x` is a value of this domain.
    pub fn contains(&self, x: f64) -> bool {
        match *self {
            Domain::Finite(v) => x >= 0.0 && x < v as f64 && x.fract() == 0.0,
            Domain::Real => x.is_finite(),
            Domain::Interval(a, b) => x >= a && x <= b,
            Domain::HalfLine(a) => x >= a && x.is_finite(),
            Domain::Circle(period) => x >= 0.0 && x < period,
        }
    }

    /// Whether the domain itself makes sense: not empty, bounds finite and in order.
    pub fn is_valid(&self) -> bool {
        match *self {
            Domain::Finite(v) => v >= 1,
            Domain::Real => true,
            Domain::Interval(a, b) => {
                a.is_finite() && b.is_finite() && a < b && (b - a).is_finite()
            }
            Domain::HalfLine(a) => a.is_finite(),
            Domain::Circle(period) => period.is_finite() && period > 0.0,
        }
    }

    /// The number of values of a finite domain.
    pub fn num_values(&self) -> Option<usize> {
        match *self {
            Domain::Finite(v) => Some(v),
            _ => None,
        }
    }

    /// The smallest and largest value, infinite where there is none.
    pub fn bounds(&self) -> (f64, f64) {
        match *self {
            Domain::Finite(v) => (0.0, v as f64 - 1.0),
            Domain::Real => (f64::NEG_INFINITY, f64::INFINITY),
            Domain::Interval(a, b) => (a, b),
            Domain::HalfLine(a) => (a, f64::INFINITY),
            Domain::Circle(period) => (0.0, period),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Domain::Finite(v) => write!(f, "the whole numbers 0 to {}", v.saturating_sub(1)),
            Domain::Real => write!(f, "the finite real numbers"),
            Domain::Interval(a, b) => write!(f, "the interval [{a}, {b}]"),
            Domain::HalfLine(a) => write!(f, "the half-line [{a}, ∞)"),
            Domain::Circle(period) => write!(f, "the circle [0, {period})"),
        }
    }
}

/// A variable: a name and a domain.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The name, unique in its circuit.
    pub name: String,
    /// The set of its values.
    pub domain: Domain,
}

impl Variable {
    /// The variable with this name and domain.
    pub fn new(name: impl Into<String>, domain: Domain) -> Self {
        Self { name: name.into(), domain }
    }
}

//! Variables and their domains.

use std::fmt;
use std::sync::Arc;

/// The set of values of a variable. Every value is an `f64`; the values of a finite domain are 0,
/// 1, …, v − 1.
#[derive(Clone, Debug, PartialEq)]
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
    /// Points of positive probability next to, or within, a continuous domain; created by
    /// [`Domain::with_atoms`].
    ///
    /// The measure of a set is the number of its atoms plus the length of the rest.
    Atoms(Arc<WithAtoms>),
}

/// The parts of a domain with atoms.
#[derive(Clone, Debug, PartialEq)]
pub struct WithAtoms {
    /// The atoms, in increasing order.
    pub points: Vec<f64>,
    /// The continuous domain.
    pub rest: Domain,
}

impl Domain {
    /// A domain with the atoms `points`, in increasing order, and a continuous domain.
    ///
    /// ```
    /// use bornite::Domain;
    ///
    /// // Rain: many days have none at all, and the others any amount.
    /// let rain = Domain::with_atoms(vec![0.0], Domain::HalfLine(0.0));
    /// assert!(rain.is_valid() && rain.contains(0.0) && rain.contains(2.5));
    /// assert_eq!(rain.atom(0.0), Some(0));
    /// assert_eq!(rain.atom(2.5), None);
    /// ```
    pub fn with_atoms(points: impl Into<Vec<f64>>, rest: Domain) -> Self {
        Domain::Atoms(Arc::new(WithAtoms { points: points.into(), rest }))
    }

    /// The atoms, in increasing order; empty for a domain without atoms.
    pub fn atoms(&self) -> &[f64] {
        match self {
            Domain::Atoms(parts) => &parts.points,
            Domain::Finite(_)
            | Domain::Real
            | Domain::Interval(..)
            | Domain::HalfLine(_)
            | Domain::Circle(_) => &[],
        }
    }

    /// The domain without its atoms; the domain itself if it has none.
    pub fn rest(&self) -> &Domain {
        match self {
            Domain::Atoms(parts) => &parts.rest,
            Domain::Finite(_)
            | Domain::Real
            | Domain::Interval(..)
            | Domain::HalfLine(_)
            | Domain::Circle(_) => self,
        }
    }

    /// The index of the atom at `x`, if there is one.
    pub fn atom(&self, x: f64) -> Option<usize> {
        find(self.atoms(), x)
    }

    /// Whether `x` is a value of this domain.
    pub fn contains(&self, x: f64) -> bool {
        match self {
            Domain::Finite(v) => x >= 0.0 && x < *v as f64 && x.fract() == 0.0,
            Domain::Real => x.is_finite(),
            Domain::Interval(a, b) => x >= *a && x <= *b,
            Domain::HalfLine(a) => x >= *a && x.is_finite(),
            Domain::Circle(period) => x >= 0.0 && x < *period,
            Domain::Atoms(parts) => parts.rest.contains(x) || self.atom(x).is_some(),
        }
    }

    /// Whether the domain is well-formed: not empty, with finite bounds in order.
    pub fn is_valid(&self) -> bool {
        match self {
            Domain::Finite(v) => *v >= 1,
            Domain::Real => true,
            Domain::Interval(a, b) => {
                a.is_finite() && b.is_finite() && a < b && (b - a).is_finite()
            }
            Domain::HalfLine(a) => a.is_finite(),
            Domain::Circle(period) => period.is_finite() && *period > 0.0,
            Domain::Atoms(parts) => {
                let WithAtoms { points, rest } = &**parts;
                let is_continuous = match rest {
                    Domain::Finite(_) | Domain::Atoms(_) => false,
                    Domain::Circle(period) => points.iter().all(|x| (0.0..*period).contains(x)),
                    Domain::Real | Domain::Interval(..) | Domain::HalfLine(_) => true,
                };
                let in_order = points.windows(2).all(|w| w[0] < w[1]);
                let finite = points.iter().all(|x| x.is_finite());
                !points.is_empty() && finite && in_order && is_continuous && rest.is_valid()
            }
        }
    }

    /// The number of values of a finite domain.
    pub fn num_values(&self) -> Option<usize> {
        match self {
            Domain::Finite(v) => Some(*v),
            Domain::Real
            | Domain::Interval(..)
            | Domain::HalfLine(_)
            | Domain::Circle(_)
            | Domain::Atoms(_) => None,
        }
    }

    /// The smallest and the largest value, or ±∞ if there is none.
    pub fn bounds(&self) -> (f64, f64) {
        match self {
            Domain::Finite(v) => (0.0, *v as f64 - 1.0),
            Domain::Real => (f64::NEG_INFINITY, f64::INFINITY),
            Domain::Interval(a, b) => (*a, *b),
            Domain::HalfLine(a) => (*a, f64::INFINITY),
            Domain::Circle(period) => (0.0, *period),
            Domain::Atoms(parts) => {
                let (low, high) = parts.rest.bounds();
                parts.points.iter().fold((low, high), |(low, high), &x| (low.min(x), high.max(x)))
            }
        }
    }
}

/// The index of `x` in a sorted list; 0 and −0 are equal.
pub(crate) fn find(points: &[f64], x: f64) -> Option<usize> {
    let n = points.partition_point(|&p| p < x);
    (points.get(n) == Some(&x)).then_some(n)
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Finite(v) => write!(f, "the whole numbers 0 to {}", v.saturating_sub(1)),
            Domain::Real => write!(f, "the finite real numbers"),
            Domain::Interval(a, b) => write!(f, "the interval [{a}, {b}]"),
            Domain::HalfLine(a) => write!(f, "the half-line [{a}, ∞)"),
            Domain::Circle(period) => write!(f, "the circle [0, {period})"),
            Domain::Atoms(parts) => match (&parts.points[..], &parts.rest) {
                ([only], rest) => write!(f, "the atom {only} and {rest}"),
                (points, rest) if points.len() <= 4 => {
                    let points: Vec<String> = points.iter().map(f64::to_string).collect();
                    write!(f, "the atoms {} and {rest}", points.join(", "))
                }
                (points, rest) => write!(f, "{} atoms and {rest}", points.len()),
            },
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

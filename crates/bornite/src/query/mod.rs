//! Queries: the evidence about each variable.

pub(crate) mod parse;

use crate::algebra::Kind;
use crate::basis::Part;
use crate::circuit::LayerId;
use crate::domain::{Domain, Variable};
use crate::names::{did_you_mean, nearest, pointed_at, shown};

/// The evidence about one variable.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Evidence {
    /// Nothing: the variable is marginalized.
    #[default]
    Unknown,
    /// The variable has this value.
    Value(f64),
    /// The variable lies in a part of its domain.
    In(Part),
}

impl Evidence {
    /// The kind of message that this evidence gives for the functions of its variable.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Unknown => Kind::Identity,
            Self::Value(_) => Kind::Pure,
            Self::In(_) => Kind::Mixed,
        }
    }
}

/// How a layer depends on the variables of a query: the sets φ_Y, φ_Z and φ_YZ of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// Only on variables with values: φ_Y.
    Kept,
    /// Only on unobserved variables: φ_Z.
    Marginalized,
    /// On both, or on a variable restricted to a set or interval: φ_YZ.
    Mixed,
}

impl From<Kind> for Dependence {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Pure => Self::Kept,
            Kind::Identity => Self::Marginalized,
            Kind::Mixed => Self::Mixed,
        }
    }
}

/// One piece of evidence per variable, checked against the domains.
///
/// ```
/// use bornite::{Domain, Query, Variable};
///
/// let variables = [Variable::new("age", Domain::Finite(100)), Variable::new("height", Domain::Real)];
/// let query = Query::parse(&variables, "age in [30, 40), height=?")?;
/// assert_eq!(query, Query::unknown(2).with_interval(&variables, "age", 30.0, 40.0)?);
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    evidence: Vec<Evidence>,
}

impl Query {
    /// A query without any evidence.
    pub fn unknown(num_variables: usize) -> Self {
        Self { evidence: vec![Evidence::Unknown; num_variables] }
    }

    /// A query with a value for every variable. NaN means unobserved.
    ///
    /// # Errors
    /// A value is not in its variable's domain, or the number of values is wrong.
    pub fn row(variables: &[Variable], values: &[f64]) -> Result<Self, QueryError> {
        check_count(variables, values.len())?;
        let mut query = Self::unknown(variables.len());
        for (index, &x) in values.iter().enumerate() {
            if !x.is_nan() {
                query.set(variables, index, Evidence::Value(x))?;
            }
        }
        Ok(query)
    }

    /// Parses a query such as `x0=1, x1=?, x2 in [0.5, 2), x3 in {0, 2}`. Variables that are not
    /// mentioned are unknown.
    ///
    /// # Errors
    /// The text is not a query. The error points to the character, and suggests the closest name
    /// for an unknown variable.
    pub fn parse(variables: &[Variable], text: &str) -> Result<Self, QueryError> {
        parse::parse(variables, text)
    }

    /// Adds the value of a variable.
    ///
    /// # Errors
    /// The variable does not exist, or the value is not in its domain.
    pub fn with_value(
        mut self,
        variables: &[Variable],
        name: &str,
        value: f64,
    ) -> Result<Self, QueryError> {
        self.set(variables, find(variables, name)?, Evidence::Value(value))?;
        Ok(self)
    }

    /// Restricts a variable to [low, high). An atom at `high` is not included; pass
    /// `high.next_up()` to include it.
    ///
    /// # Errors
    /// The variable does not exist, or `low > high`.
    pub fn with_interval(
        mut self,
        variables: &[Variable],
        name: &str,
        low: f64,
        high: f64,
    ) -> Result<Self, QueryError> {
        let index = find(variables, name)?;
        self.set(variables, index, Evidence::In(Part::Interval { low, high }))?;
        Ok(self)
    }

    /// Restricts a variable to a set of values, or of atoms given by their indices.
    ///
    /// # Errors
    /// The variable does not exist, or a value is not in its domain.
    pub fn with_values(
        mut self,
        variables: &[Variable],
        name: &str,
        values: &[usize],
    ) -> Result<Self, QueryError> {
        let index = find(variables, name)?;
        self.set(variables, index, Evidence::In(Part::Values(values.to_vec())))?;
        Ok(self)
    }

    /// Sets the evidence about the variable at a position.
    ///
    /// On a finite domain, an interval [low, high) means the values that it contains. A part that
    /// covers the whole domain means unknown.
    ///
    /// # Errors
    /// The evidence does not match the variable's domain.
    pub fn set(
        &mut self,
        variables: &[Variable],
        index: usize,
        evidence: Evidence,
    ) -> Result<(), QueryError> {
        check_count(variables, self.evidence.len())?;
        let Some(variable) = variables.get(index) else {
            let found = index.saturating_add(1);
            return Err(QueryError::Count { expected: variables.len(), found });
        };
        self.evidence[index] = normalize(variable, evidence)?;
        Ok(())
    }

    /// The evidence about each variable.
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Checks that this query matches a circuit with these variables.
    ///
    /// # Errors
    /// The query was created for different variables.
    pub fn check(&self, variables: &[Variable]) -> Result<(), QueryError> {
        check_count(variables, self.evidence.len())?;
        for (variable, evidence) in variables.iter().zip(&self.evidence) {
            let domain = &variable.domain;
            let fits = match evidence {
                Evidence::Unknown => true,
                Evidence::Value(x) => domain.contains(*x),
                Evidence::In(Part::Values(values)) => {
                    let count = domain.num_values().unwrap_or(domain.atoms().len());
                    values.last().map_or(count > 0, |&m| m < count)
                }
                Evidence::In(Part::Interval { .. }) => domain.num_values().is_none(),
            };
            if !fits {
                return Err(QueryError::OtherVariables { variable: variable.name.clone() });
            }
        }
        Ok(())
    }
}

fn check_count(variables: &[Variable], found: usize) -> Result<(), QueryError> {
    if variables.len() == found {
        Ok(())
    } else {
        Err(QueryError::Count { expected: variables.len(), found })
    }
}

fn find(variables: &[Variable], name: &str) -> Result<usize, QueryError> {
    variables.iter().position(|v| v.name == name).ok_or_else(|| QueryError::UnknownVariable {
        name: name.to_owned(),
        hint: nearest(variables.iter().map(|v| v.name.as_str()), name),
    })
}

/// Checks evidence against a domain and simplifies it: intervals of finite domains become sets,
/// sets of one value become values, and parts that cover the domain become unknown.
fn normalize(variable: &Variable, evidence: Evidence) -> Result<Evidence, QueryError> {
    let Variable { name, domain } = variable;
    let outside = |value: f64| {
        Err(QueryError::OutOfDomain { variable: name.clone(), value, domain: domain.clone() })
    };
    match (evidence, domain) {
        (Evidence::Unknown, _) => Ok(Evidence::Unknown),
        (Evidence::Value(x), _) if domain.contains(x) => Ok(Evidence::Value(x)),
        (Evidence::Value(value), _) => outside(value),
        (Evidence::In(Part::Values(mut values)), Domain::Finite(v)) => {
            values.sort_unstable();
            values.dedup();
            if let Some(&x) = values.last().filter(|&&x| x >= *v) {
                return outside(x as f64);
            }
            Ok(match values[..] {
                [x] => Evidence::Value(x as f64),
                _ if values.len() == *v => Evidence::Unknown,
                _ => Evidence::In(Part::Values(values)),
            })
        }
        (Evidence::In(Part::Values(mut values)), Domain::Atoms(parts)) => {
            let points = &parts.points;
            values.sort_unstable();
            values.dedup();
            if values.last().is_some_and(|&n| n >= points.len()) {
                return Err(QueryError::Atom { variable: name.clone(), domain: domain.clone() });
            }
            Ok(match values[..] {
                [n] => Evidence::Value(points[n]),
                _ => Evidence::In(Part::Values(values)),
            })
        }
        (
            Evidence::In(Part::Values(_)),
            Domain::Real | Domain::Interval(..) | Domain::HalfLine(_) | Domain::Circle(_),
        ) => Err(QueryError::SetOfContinuous { variable: name.clone(), domain: domain.clone() }),
        (Evidence::In(Part::Interval { low, high }), _)
            if low.is_nan() || high.is_nan() || low > high =>
        {
            Err(QueryError::Interval { variable: name.clone(), low, high })
        }
        (Evidence::In(Part::Interval { low, high }), Domain::Finite(v)) => {
            let first = low.ceil().max(0.0) as usize;
            let end = high.ceil().clamp(0.0, *v as f64) as usize;
            normalize(variable, Evidence::In(Part::Values((first..end).collect())))
        }
        (Evidence::In(part @ Part::Interval { .. }), _) => {
            Ok(if part.covers(domain) { Evidence::Unknown } else { Evidence::In(part) })
        }
    }
}

/// Why a query does not make sense for its variables.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// A value outside the domain of its variable.
    #[error("variable '{variable}' cannot be {value}: its values are {domain}")]
    OutOfDomain {
        /// The variable.
        variable: String,
        /// The value.
        value: f64,
        /// The variable's domain.
        domain: Domain,
    },
    /// An interval whose ends are not in increasing order.
    #[error(
        "variable '{variable}': the interval from {low} to {high} is not in order; give the smaller end first"
    )]
    Interval {
        /// The variable.
        variable: String,
        /// The end given first.
        low: f64,
        /// The second end.
        high: f64,
    },
    /// A set of values for a variable that is not finite.
    #[error(
        "variable '{variable}': a set of values has probability 0 on {domain}; ask for an interval [a, b)"
    )]
    SetOfContinuous {
        /// The variable.
        variable: String,
        /// Its domain.
        domain: Domain,
    },
    /// The index of an atom that does not exist.
    #[error(
        "variable '{variable}': a set can only contain atoms, and the domain is {domain}; ask for an interval [a, b)"
    )]
    Atom {
        /// The variable.
        variable: String,
        /// Its domain.
        domain: Domain,
    },
    /// A variable that does not exist.
    #[error("there is no variable '{}'{}", shown(name), did_you_mean(hint.as_deref()))]
    UnknownVariable {
        /// The name.
        name: String,
        /// The closest existing name, if there is one.
        hint: Option<String>,
    },
    /// The wrong number of values.
    #[error("expected {expected} values, one per variable, and found {found}")]
    Count {
        /// The number of variables.
        expected: usize,
        /// The number of values given.
        found: usize,
    },
    /// A query that was created for different variables.
    #[error(
        "the query does not match variable '{variable}': it was created for a different circuit"
    )]
    OtherVariables {
        /// The first variable that does not match.
        variable: String,
    },
    /// An intermediate matrix is too large.
    #[error(
        "layer {layer}: the query needs a matrix of {entries} entries, more than the limit of {limit}; \
             use smaller widths"
    )]
    TooLarge {
        /// The layer.
        layer: LayerId,
        /// The number of entries that the matrix would have.
        entries: u128,
        /// The maximum number of entries.
        limit: u128,
    },
    /// A device that is missing or has too little memory for the circuit.
    #[error("the query cannot use a CUDA device: {reason}")]
    Device {
        /// The reason.
        reason: String,
    },
    /// Text that is not a query.
    #[error("{message}, at character {position}:\n{}", pointed_at(text, *position))]
    Syntax {
        /// What was expected.
        message: String,
        /// The character, counted from 1.
        position: usize,
        /// The whole text.
        text: String,
    },
}

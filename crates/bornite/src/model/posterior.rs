//! The exact distribution of one variable given boxes of evidence.

use crate::basis::Part;
use crate::basis::quadrature::gauss_legendre;
use crate::circuit::{Layer, VariableId};
use crate::domain::Domain;
use crate::engine::Rows;
use crate::query::{Evidence, Query};

use super::{Model, ModelError};

/// Nodes for a variable on the circle, whose density is no polynomial: enough for rounding at 16 functions.
const CIRCLE_NODES: usize = 64;
/// Halvings of an interval that a quantile takes.
const HALVINGS: usize = 60;

/// The distribution of one variable.
#[derive(Clone, Debug)]
pub(super) enum Posterior {
    /// The probability of every value.
    Finite(Vec<f64>),
    /// A density on [0, 1].
    Density(Density),
    /// One value.
    Point(f64),
}

/// A density on [0, 1] in pieces, which may overlap and then add up.
#[derive(Clone, Debug)]
pub(super) struct Density {
    pieces: Vec<Piece>,
    total: f64,
}

/// Legendre coefficients of a density that is 0 outside of [low, high].
#[derive(Clone, Debug)]
struct Piece {
    low: f64,
    high: f64,
    coefficients: Vec<f64>,
}

impl Model {
    /// The distribution of a variable given that one of the boxes holds.
    pub(super) fn posterior(
        &self,
        variable: usize,
        boxes: &[Query],
    ) -> Result<Posterior, ModelError> {
        if let [only] = boxes
            && let Evidence::Value(x) = only.evidence()[variable]
        {
            return Ok(Posterior::Point(x));
        }
        match self.engine.variables()[variable].domain {
            Domain::Finite(values) => self.finite_posterior(variable, values, boxes),
            domain => self.density_posterior(variable, domain, boxes),
        }
    }

    fn finite_posterior(
        &self,
        variable: usize,
        values: usize,
        boxes: &[Query],
    ) -> Result<Posterior, ModelError> {
        let mut at: Vec<usize> = Vec::new();
        let mut queries = Vec::new();
        for query in boxes {
            let allowed: Vec<usize> = match &query.evidence()[variable] {
                Evidence::Unknown => (0..values).collect(),
                Evidence::Value(x) => vec![*x as usize],
                Evidence::In(Part::Values(set)) => set.clone(),
                Evidence::In(Part::Interval { .. }) => Vec::new(),
            };
            for value in allowed {
                at.push(value);
                queries.push(self.with_value(query, variable, value as f64)?);
            }
        }
        let weights = scaled(&self.log_queries(&queries)?)?;
        let mut p = vec![0.0; values];
        for (value, weight) in at.into_iter().zip(weights) {
            p[value] += weight;
        }
        let total: f64 = p.iter().sum();
        for x in &mut p {
            *x /= total;
        }
        Ok(Posterior::Finite(p))
    }

    fn density_posterior(
        &self,
        variable: usize,
        domain: Domain,
        boxes: &[Query],
    ) -> Result<Posterior, ModelError> {
        let id = VariableId::new(variable);
        let width = self.circuit.layers().iter().find_map(|layer| match layer {
            Layer::Input { variable, basis } if *variable == id => Some(basis.width()),
            _ => None,
        });
        // A square of polynomials of degree K − 1 has degree 2 K − 2, and its coefficients are found by so many nodes.
        let nodes = match domain {
            Domain::Circle(_) => CIRCLE_NODES,
            _ => 2 * width.unwrap_or(CIRCLE_NODES) - 1,
        };
        let rule = gauss_legendre(nodes);
        let mut queries = Vec::with_capacity(boxes.len() * nodes);
        for query in boxes {
            for (t, _) in &rule {
                queries.push(self.with_value(query, variable, 0.5 * (1.0 + t))?);
            }
        }
        let weights = scaled(&self.log_queries(&queries)?)?;
        let pieces = boxes.iter().zip(weights.chunks_exact(nodes)).map(|(query, p)| {
            let (low, high) = match query.evidence()[variable] {
                Evidence::In(Part::Interval { low, high }) => (low.max(0.0), high.min(1.0)),
                _ => (0.0, 1.0),
            };
            Piece { low, high, coefficients: coefficients(&rule, p) }
        });
        let mut density = Density { pieces: pieces.collect(), total: 1.0 };
        density.total = density.cdf(1.0);
        if density.total > 0.0 { Ok(Posterior::Density(density)) } else { Err(impossible()) }
    }

    fn with_value(&self, query: &Query, variable: usize, x: f64) -> Result<Query, ModelError> {
        let mut query = query.clone();
        query.set(self.engine.variables(), variable, Evidence::Value(x))?;
        Ok(query)
    }

    fn log_queries(&self, queries: &[Query]) -> Result<Vec<f64>, ModelError> {
        if queries.is_empty() {
            return Err(impossible());
        }
        let rows = Rows::from_queries(self.engine.variables(), queries)?;
        Ok(self.engine.log_marginals(&rows)?)
    }
}

fn impossible() -> ModelError {
    ModelError::Impossible { what: "what is given".to_owned() }
}

/// e^(l − the largest).
fn scaled(logs: &[f64]) -> Result<Vec<f64>, ModelError> {
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return Err(impossible());
    }
    Ok(logs.iter().map(|l| (l - max).exp()).collect())
}

/// cₖ = (2k + 1) / 2 ∫ p Pₖ over [−1, 1], exact for polynomials.
fn coefficients(rule: &[(f64, f64)], p: &[f64]) -> Vec<f64> {
    let mut c = vec![0.0; rule.len()];
    for (&(t, w), &p) in rule.iter().zip(p) {
        let values = legendre(t, rule.len());
        for (k, (c, value)) in c.iter_mut().zip(values).enumerate() {
            *c += (k as f64 + 0.5) * w * p * value;
        }
    }
    c
}

/// P₀(t), P₁(t), …
fn legendre(t: f64, count: usize) -> Vec<f64> {
    let mut values = Vec::with_capacity(count);
    let (mut last, mut p) = (0.0, 1.0);
    for k in 0..count {
        values.push(p);
        let k = k as f64;
        (last, p) = (p, ((2.0 * k + 1.0) * t * p - k * last) / (k + 1.0));
    }
    values
}

impl Piece {
    fn density(&self, u: f64) -> f64 {
        if u < self.low || u > self.high {
            return 0.0;
        }
        let values = legendre(2.0 * u - 1.0, self.coefficients.len());
        values.iter().zip(&self.coefficients).map(|(p, c)| p * c).sum::<f64>().max(0.0)
    }

    /// ∫ over [0, u], as if the piece had no bounds: ∫ Pₖ = (Pₖ₊₁ − Pₖ₋₁) / (2k + 1), and du = dt / 2.
    fn integral(&self, u: f64) -> f64 {
        let t = 2.0 * u - 1.0;
        let values = legendre(t, self.coefficients.len() + 1);
        let mut sum = self.coefficients[0] * (t + 1.0);
        for (k, c) in self.coefficients.iter().enumerate().skip(1) {
            sum += c * (values[k + 1] - values[k - 1]) / (2 * k + 1) as f64;
        }
        0.5 * sum
    }

    fn mass_below(&self, u: f64) -> f64 {
        let high = u.clamp(self.low, self.high);
        (self.integral(high) - self.integral(self.low)).max(0.0)
    }
}

impl Density {
    /// p(u).
    pub(super) fn density(&self, u: f64) -> f64 {
        self.pieces.iter().map(|p| p.density(u)).sum::<f64>() / self.total
    }

    fn cdf(&self, u: f64) -> f64 {
        self.pieces.iter().map(|p| p.mass_below(u)).sum::<f64>() / self.total
    }

    /// The u below which this share lies.
    pub(super) fn quantile(&self, level: f64) -> f64 {
        let (mut low, mut high) = self.bounds();
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.cdf(middle) < level { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    /// Where u can lie.
    pub(super) fn bounds(&self) -> (f64, f64) {
        let low = self.pieces.iter().map(|p| p.low).fold(1.0, f64::min);
        let high = self.pieces.iter().map(|p| p.high).fold(0.0, f64::max);
        (low, high)
    }

    /// The pieces' bounds.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.pieces.iter().map(|p| (p.low, p.high))
    }

    /// p(u) of one piece's part.
    pub(super) fn piece_density(&self, piece: usize, u: f64) -> f64 {
        self.pieces[piece].density(u) / self.total
    }
}

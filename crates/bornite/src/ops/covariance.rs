//! Means, covariances and joint tables of pairs, computed from the environments.

use std::ops::Deref;

use super::OperationError;
use super::environment::{Environments, Pass, Passes, lowest_over, with_pass};
use super::marginalize::received;
use super::message::Message;
use super::pass::{Environment, basis_of, combine, descend, receiver};
use super::scaled::{Scaled, ldexp};
use super::univariate::value_weights;
use crate::basis::{Basis, Part};
use crate::circuit::{Layer, LayerId, Orthonormal, VariableId};
use crate::linalg::{Matrix, Scalar};
use crate::query::Evidence;

impl<C: Deref<Target = Orthonormal>> Environments<C> {
    /// The mean μ = ∫ x p(x | evidence) dx of a variable, including the evidence about the variable
    /// itself. If it has a value, the mean is that value.
    ///
    /// Cost: K², or the number of values.
    pub fn mean(&self, variable: VariableId) -> f64 {
        with_pass!(self.passes(), pass => self.moment(pass, variable, 0.0, 1))
    }

    /// The variance ∫ (x − μ)² p(x | evidence) dx of a variable; 0 if it has a value.
    ///
    /// Cost: K², or the number of values.
    pub fn variance(&self, variable: VariableId) -> f64 {
        with_pass!(self.passes(), pass => self.spread(pass, variable))
    }

    /// The covariance ∫ (x − μ) (y − ν) p(x, y | evidence) dx dy of two variables with means μ and
    /// ν; the variance if both are the same variable.
    ///
    /// The message ∫ (x − μ) f fᴴ of the first variable goes up to the lowest layer above both, and
    /// from there down to the second.
    ///
    /// Cost: at most 3 K⁴ multiply-adds at each sum over a Kronecker product on the path between
    /// the two.
    pub fn covariance(&self, a: VariableId, b: VariableId) -> f64 {
        if a == b {
            return self.variance(a);
        }
        with_pass!(self.passes(), pass => {
            let (Some(left), Some(right)) = (self.deviation(pass, a), self.deviation(pass, b))
            else {
                return 0.0;
            };
            let (from, to) = (self.input_of(a), self.input_of(b));
            let environment = self.across(pass, from, left, to);
            environment.close(&right, self.circuit().width(to)).over(pass.evidence())
        })
    }

    /// The d × d matrix of covariances of all variables, given the evidence.
    ///
    /// The message of every variable goes up through all layers above it. Where two of them meet,
    /// they give an entry.
    ///
    /// Cost: at most 6 K⁴ multiply-adds per variable and per sum over a Kronecker product above it,
    /// and K² per pair.
    pub fn covariance_matrix(&self) -> Matrix<f64> {
        with_pass!(self.passes(), pass => self.all_covariances(
            pass,
            |v| self.deviation(pass, v),
            |v| self.spread(pass, v),
        ))
    }

    /// The joint distribution of two finite variables, given the evidence about the *others*: entry
    /// (x, y) is p(a = x, b = y). If both are the same variable, the matrix is diagonal.
    ///
    /// Cost: that of [`covariance`](Self::covariance), times the smaller number of values.
    ///
    /// # Errors
    /// A variable is not finite.
    pub fn pairwise(&self, a: VariableId, b: VariableId) -> Result<Matrix<f64>, OperationError> {
        let values = |v: VariableId| {
            let variable = self.circuit().variable(v);
            let not_finite = || OperationError::NotFinite { variable: variable.name.clone() };
            variable.domain.num_values().ok_or_else(not_finite)
        };
        let (rows, cols) = (values(a)?, values(b)?);
        if a == b {
            let marginal = self.marginal(a);
            let p = marginal.probabilities().unwrap_or_default();
            return Ok(Matrix::from_fn(rows, rows, |i, j| if i == j { p[i] } else { 0.0 }));
        }
        if rows > cols {
            return Ok(self.pairwise(b, a)?.transpose());
        }
        Ok(with_pass!(self.passes(), pass => self.table(pass, a, b, rows)))
    }

    pub(super) fn evidence_of(&self, variable: VariableId) -> &Evidence {
        &self.query().evidence()[variable.index()]
    }

    /// The mean of (x − center)ᵖ.
    fn moment<T: Scalar>(&self, pass: &Pass<T>, v: VariableId, center: f64, power: u32) -> f64 {
        let id = self.input_of(v);
        let evidence = self.evidence_of(v);
        if let Evidence::Value(x) = evidence {
            return (x - center).powi(power.cast_signed());
        }
        let message = centered(basis_of(self.circuit(), id), evidence, center, power);
        pass.environment(id).close(&message, self.circuit().width(id)).over(pass.evidence())
    }

    fn spread<T: Scalar>(&self, pass: &Pass<T>, v: VariableId) -> f64 {
        match self.evidence_of(v) {
            Evidence::Value(_) => 0.0,
            Evidence::Unknown | Evidence::In(_) => {
                self.moment(pass, v, self.moment(pass, v, 0.0, 1), 2).max(0.0)
            }
        }
    }

    /// ∫ (x − μ) f fᴴ over the evidence about a variable; `None` if it has a value.
    fn deviation<T: Scalar>(&self, pass: &Pass<T>, v: VariableId) -> Option<Message<T>> {
        let evidence = self.evidence_of(v);
        let mean = self.moment(pass, v, 0.0, 1);
        let basis = basis_of(self.circuit(), self.input_of(v));
        (!matches!(evidence, Evidence::Value(_))).then(|| centered(basis, evidence, mean, 1))
    }

    /// The environment of the input layer `to`, if the input layer `from` sends this message
    /// instead of its own.
    fn across<T: Scalar>(
        &self,
        pass: &Pass<T>,
        from: LayerId,
        message: Message<T>,
        to: LayerId,
    ) -> Environment<T> {
        let circuit = self.circuit();
        let top = lowest_over(circuit, &[from, to]).unwrap_or(circuit.output());
        // The layers from below `top` down to `to`, in reverse.
        let mut down = Vec::new();
        let mut id = to;
        while id != top {
            down.push(id);
            id = receiver(circuit, id).unwrap_or(top);
        }
        let (mut id, mut message) = (from, message);
        loop {
            let next = receiver(circuit, id).unwrap_or(top);
            if next == top {
                break;
            }
            message = combine(circuit, next, |i| if i == id { &message } else { pass.message(i) });
            id = next;
        }
        let mut environment = pass.environment(top).clone();
        let mut at = top;
        while let Some(next) = down.pop() {
            let target = received(circuit, at).iter().position(|&i| i == next).unwrap_or(0);
            environment = descend(circuit, at, environment.full(), target, |i| {
                if i == id { &message } else { pass.message(i) }
            });
            at = next;
        }
        environment
    }

    fn table<T: Scalar>(
        &self,
        pass: &Pass<T>,
        a: VariableId,
        b: VariableId,
        values: usize,
    ) -> Matrix<f64> {
        let (from, to) = (self.input_of(a), self.input_of(b));
        let (basis, other) = (basis_of(self.circuit(), from), basis_of(self.circuit(), to));
        let rows: Vec<Scaled<Vec<f64>>> = (0..values)
            .map(|x| {
                let mut f = vec![T::ZERO; basis.width()];
                basis.evaluate(x as f64, &mut f);
                value_weights(other, &self.across(pass, from, Message::pure(f, 0), to))
            })
            .collect();
        let positive = rows.iter().filter(|r| r.value.iter().any(|&p| p > 0.0));
        let largest = positive.map(|r| r.exponent).max().unwrap_or(0);
        let cols = rows.first().map_or(0, |r| r.value.len());
        let table = Matrix::from_fn(values, cols, |x, y| {
            // A row of zeros may have any exponent.
            ldexp(rows[x].value[y].max(0.0), (rows[x].exponent - largest).min(0))
        });
        let total: f64 = table.data().iter().sum();
        table.scaled(total.recip())
    }

    /// The covariances of functions g of single variables, given their deviations ∫ (g − mean) f
    /// fᴴ, which are `None` for constants, and their variances.
    pub(super) fn all_covariances<T: Scalar>(
        &self,
        pass: &Pass<T>,
        deviation: impl Fn(VariableId) -> Option<Message<T>>,
        spread: impl Fn(VariableId) -> f64,
    ) -> Matrix<f64> {
        let circuit = self.circuit();
        let d = circuit.num_variables();
        let mut covariances = Matrix::zeros(d, d);
        // For every layer, the messages of the deviations of the variables below it.
        let mut carried: Vec<Vec<(VariableId, Message<T>)>> =
            vec![Vec::new(); circuit.num_layers()];
        for id in circuit.layer_ids().filter(|&id| !circuit.is_fused(id)) {
            if let Layer::Input { variable, .. } = circuit.layer(id) {
                covariances[(variable.index(), variable.index())] = spread(*variable);
                let deviation = deviation(*variable);
                carried[id.index()] = deviation.map(|m| (*variable, m)).into_iter().collect();
                continue;
            }
            let inputs = received(circuit, id);
            let below: Vec<Vec<(VariableId, Message<T>)>> =
                inputs.iter().map(|i| std::mem::take(&mut carried[i.index()])).collect();
            for p in 0..inputs.len() {
                for q in p + 1..inputs.len() {
                    let (few, many) =
                        if below[p].len() <= below[q].len() { (p, q) } else { (q, p) };
                    for (a, left) in &below[few] {
                        let e = pass.environment(id).full();
                        let environment = descend(circuit, id, e, many, |i| {
                            if i == inputs[few] { left } else { pass.message(i) }
                        });
                        for (b, right) in &below[many] {
                            let closed = environment.close(right, circuit.width(inputs[many]));
                            let value = closed.over(pass.evidence());
                            covariances[(a.index(), b.index())] = value;
                            covariances[(b.index(), a.index())] = value;
                        }
                    }
                }
            }
            if id != circuit.output() {
                for (p, messages) in below.into_iter().enumerate() {
                    for (a, m) in messages {
                        let up =
                            combine(
                                circuit,
                                id,
                                |i| {
                                    if i == inputs[p] { &m } else { pass.message(i) }
                                },
                            );
                        carried[id.index()].push((a, up));
                    }
                }
            }
        }
        covariances
    }
}

/// ∫ (x − center)ᵖ f fᴴ over the evidence about a variable, for p = 1 or 2.
fn centered<T: Scalar>(basis: &Basis, evidence: &Evidence, center: f64, power: u32) -> Message<T> {
    let whole = Part::Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
    let part = match evidence {
        Evidence::In(part) => part,
        Evidence::Unknown | Evidence::Value(_) => &whole,
    };
    if let Basis::Indicator(b) = basis {
        let mut weights = vec![0.0; b.width()];
        for x in part.values(b.width()) {
            weights[x] = (x as f64 - center).powi(power.cast_signed());
        }
        return Message::diagonal(weights, 0);
    }
    match basis.moments_about(center, power, part) {
        Some(moments) => Message::mixed(moments, 0),
        None => unreachable!("every basis but large indicators has its first two moments"),
    }
}

use std::ops::Deref;

use super::environment::{Environments, Pass, Passes, with_pass};
use super::message::Message;
use super::pass::basis_of;
use crate::basis::Basis;
use crate::circuit::{Orthonormal, VariableId};
use crate::linalg::{Matrix, Scalar};
use crate::query::Evidence;

/// A node of a quadrature rule for a function g of one variable: ∫ g(x) q(x) dx = Σ weight · value
/// · q(x).
///
/// For a finite variable, the nodes are its values, with weight 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FunctionNode {
    /// A value of the variable.
    pub x: f64,
    /// The weight of the node.
    pub weight: f64,
    /// g(x).
    pub value: f64,
}

impl<C: Deref<Target = Orthonormal>> Environments<C> {
    /// Computes the means and covariances of functions of single variables, given the evidence.
    ///
    /// There is one function per variable, given by its nodes, which must lie within the evidence.
    /// A variable without nodes is left out: its entries are 0.
    ///
    /// The result is exact up to rounding if the rules are exact for the function times products of
    /// two input functions.
    ///
    /// Cost: K² per node, plus the cost of [`covariance_matrix`](Self::covariance_matrix) for the
    /// variables with nodes.
    ///
    /// ```
    /// use bornite::{Basis, CircuitBuilder, Domain, Orthonormal, linalg::Matrix};
    /// use bornite::ops::{Environments, FunctionNode};
    ///
    /// // p(x, y) = 0.36 at (0, 0) and 0.64 at (1, 1).
    /// let mut b = CircuitBuilder::new();
    /// let (x, y) = (b.variable("x", Domain::Finite(2)), b.variable("y", Domain::Finite(2)));
    /// let (f, g) = (b.input(x, Basis::indicator(2)), b.input(y, Basis::indicator(2)));
    /// let product = b.kronecker([f, g]);
    /// let output = b.sum(product, Matrix::from_rows(&[[0.6, 0.0, 0.0, 0.8]]));
    /// let circuit = Orthonormal::verify(b.build(output)?)?;
    ///
    /// let values = |a: f64, b: f64| {
    ///     let node = |x, value| FunctionNode { x, weight: 1.0, value };
    ///     vec![node(0.0, a), node(1.0, b)]
    /// };
    /// let (mean, covariance) = Environments::new(&circuit).function_moments(&[values(2.0, 3.0), values(5.0, -5.0)]);
    /// assert!((mean[0] - 2.64).abs() < 1e-14 && (mean[1] + 1.4).abs() < 1e-14);
    /// assert!((covariance[(0, 1)] + 10.0 * 0.36 * 0.64).abs() < 1e-14);
    /// # Ok::<(), bornite::Error>(())
    /// ```
    pub fn function_moments(&self, functions: &[Vec<FunctionNode>]) -> (Vec<f64>, Matrix<f64>) {
        with_pass!(self.passes(), pass => self.moments_of(pass, functions))
    }

    fn moments_of<T: Scalar>(
        &self,
        pass: &Pass<T>,
        functions: &[Vec<FunctionNode>],
    ) -> (Vec<f64>, Matrix<f64>) {
        let is_value = |v: VariableId| matches!(self.evidence_of(v), Evidence::Value(_));
        let integral = |v: VariableId, g: &dyn Fn(f64) -> f64| -> Message<T> {
            let basis = basis_of(self.circuit(), self.input_of(v));
            integral(basis, &functions[v.index()], g)
        };
        let mean_of = |v: VariableId, g: &dyn Fn(f64) -> f64| {
            let id = self.input_of(v);
            let closed = pass.environment(id).close(&integral(v, g), self.circuit().width(id));
            closed.over(pass.evidence())
        };
        let means: Vec<f64> = (0..self.circuit().num_variables())
            .map(|index| {
                let v = VariableId::new(index);
                match functions[index].first() {
                    None => 0.0,
                    Some(node) if is_value(v) => node.value,
                    Some(_) => mean_of(v, &|g| g),
                }
            })
            .collect();
        let varies = |v: VariableId| !functions[v.index()].is_empty() && !is_value(v);
        let deviation = |v: VariableId| {
            let mean = means[v.index()];
            varies(v).then(|| integral(v, &|g| g - mean))
        };
        let spread = |v: VariableId| {
            let mean = means[v.index()];
            if varies(v) { mean_of(v, &|g| (g - mean).powi(2)).max(0.0) } else { 0.0 }
        };
        let covariances = self.all_covariances(pass, deviation, spread);
        (means, covariances)
    }
}

/// Σ weight · g(value) · f(x) f(x)ᴴ.
fn integral<T: Scalar>(
    basis: &Basis,
    nodes: &[FunctionNode],
    g: &dyn Fn(f64) -> f64,
) -> Message<T> {
    if let Basis::Indicator(b) = basis {
        let mut weights = vec![0.0; b.width()];
        for node in nodes {
            weights[node.x as usize] += node.weight * g(node.value);
        }
        return Message::diagonal(weights, 0);
    }
    let width = basis.width();
    let mut sum = Matrix::<T>::zeros(width, width);
    let mut f = vec![T::ZERO; width];
    for node in nodes {
        basis.evaluate(node.x, &mut f);
        let factor = node.weight * g(node.value);
        // The functions of atoms are 0 everywhere else, and all other functions are 0 at an atom.
        let there: Vec<usize> = (0..width).filter(|&i| f[i] != T::ZERO).collect();
        for &i in &there {
            let row = f[i].scale_by(factor);
            for &j in &there {
                sum[(i, j)] += row * f[j].conjugate();
            }
        }
    }
    Message::mixed(sum, 0)
}

//! stub
#![allow(missing_docs)]
use crate::{Domain, linalg::*};
use std::sync::Arc;
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    Indicator(usize),
    Squared(Squared),
}
#[derive(Clone, Debug, PartialEq)]
pub struct Squared(Arc<Basis>);
impl Squared {
    pub fn base(&self) -> &Basis {
        &self.0
    }
}
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Values(Vec<usize>),
    Interval { low: f64, high: f64 },
}
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BasisError {
    #[error("x")]
    X,
}
impl Basis {
    pub fn indicator(v: usize) -> Self {
        Basis::Indicator(v)
    }
    pub fn squared(b: Arc<Basis>) -> Self {
        Basis::Squared(Squared(b))
    }
    pub fn width(&self) -> usize {
        match self {
            Basis::Indicator(v) => *v,
            Basis::Squared(b) => b.0.width().pow(2),
        }
    }
    pub fn accepts(&self, _d: &Domain) -> bool {
        true
    }
    pub fn natural_domain(&self) -> Domain {
        Domain::Real
    }
    pub fn is_real(&self) -> bool {
        true
    }
    pub fn is_orthonormal(&self) -> bool {
        matches!(self, Basis::Indicator(_))
    }
    pub fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        match self {
            Basis::Indicator(_) => {
                out.fill(T::ZERO);
                out[x as usize] = T::ONE
            }
            Basis::Squared(b) => {
                let w = b.0.width();
                let mut v = vec![T::ZERO; w];
                b.0.evaluate(x, &mut v);
                for i in 0..w {
                    for j in 0..w {
                        out[i * w + j] = v[i] * v[j].conjugate()
                    }
                }
            }
        }
    }
    pub fn evaluate_batch<T: Scalar>(&self, xs: &[f64]) -> Matrix<T> {
        let mut m = Matrix::zeros(xs.len(), self.width());
        for (i, x) in xs.iter().enumerate() {
            self.evaluate(*x, m.row_mut(i))
        }
        m
    }
    pub fn gram<T: Scalar>(&self) -> Matrix<T> {
        Matrix::identity(self.width())
    }
    pub fn gram_over<T: Scalar>(&self, p: &Part) -> Matrix<T> {
        match p {
            Part::Values(v) => Matrix::from_fn(self.width(), self.width(), |i, j| {
                if i == j && v.contains(&i) { T::ONE } else { T::ZERO }
            }),
            _ => panic!(),
        }
    }
    pub fn orthonormalized(&self) -> (Basis, Matrix<Complex64>) {
        (self.clone(), Matrix::identity(self.width()))
    }
}

//! The free parameters V of weights: W = L⁻¹ V with L Lᴴ = V Vᴴ, or W = V.

use serde::{Deserialize, Serialize};

use super::optimizer::{Moments, Optimizer, Update};
use crate::linalg::{Matrix, Scalar, cholesky, largest};

/// How the circuit is kept normalized while it is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Parameterization {
    /// Inner weights are W = L⁻¹ V with the Cholesky factor L of V Vᴴ. V is free, and gradients go
    /// through the factorization.
    #[default]
    Cholesky,
    /// Inner weights stay on the Stiefel manifold: a step along the tangent part of the gradient,
    /// followed by the retraction L⁻¹ V.
    Stiefel,
    /// Weights are free and log Z is subtracted; the circuit is orthonormalized at the end.
    Unconstrained,
    /// Weights are non-negative and their rows sum to 1: W = exp V / Σ exp V. Only for
    /// [`monotonic`](super::monotonic) circuits, which are not squared.
    Monotonic,
}

/// One weight: its value on the manifold, and the moments of its gradient.
#[derive(Clone, Debug)]
pub(crate) struct Parameter<T> {
    pub(crate) w: Matrix<T>,
    /// Whether this is the weight of the output, which has unit Frobenius norm and need not be
    /// semi-unitary.
    is_output: bool,
    parameterization: Parameterization,
    /// V, if it does not follow from the weight.
    v: Option<Matrix<T>>,
    pub(super) moments: Moments,
}

impl<T: Scalar> Parameter<T> {
    /// A parameter whose weight is the normalized v.
    pub(crate) fn new(
        v: &Matrix<T>,
        is_output: bool,
        parameterization: Parameterization,
        optimizer: Optimizer,
    ) -> Self {
        let is_monotonic = parameterization == Parameterization::Monotonic;
        let w = if is_monotonic { v.clone() } else { normalized(v.clone(), is_output) };
        let log = |x: T| T::from_real(x.to_complex().re.max(f64::MIN_POSITIVE).ln());
        let v = is_monotonic.then(|| w.map(log));
        let moments = Moments::new(optimizer, T::parts(w.data()));
        Self { w, is_output, parameterization, v, moments }
    }

    /// Takes one step *up* the gradient by V.
    pub(super) fn step(&mut self, gradient: &Matrix<T>, update: &Update) {
        let gradient = T::parts(gradient.data());
        if let Some(v) = &mut self.v {
            self.moments.advance(update, T::parts_mut(v.data_mut()), gradient);
            self.w = softmax(v);
        } else {
            let mut v = std::mem::replace(&mut self.w, Matrix::zeros(0, 0));
            self.moments.advance(update, T::parts_mut(v.data_mut()), gradient);
            self.w = self.on_manifold(v);
        }
        self.moments.average(update.keep, T::parts(self.w.data()));
    }

    /// The averaged weight, normalized.
    pub(super) fn averaged(&self) -> Matrix<T> {
        let mut w = Matrix::zeros(self.w.rows(), self.w.cols());
        for (x, &a) in T::parts_mut(w.data_mut()).iter_mut().zip(&self.moments.average) {
            *x = f64::from(a);
        }
        self.on_manifold(w)
    }

    /// The weight itself if it is free; otherwise, its normalized version.
    pub(crate) fn on_manifold(&self, v: Matrix<T>) -> Matrix<T> {
        match self.parameterization {
            Parameterization::Unconstrained => v,
            Parameterization::Monotonic => row_normalized(v),
            Parameterization::Cholesky | Parameterization::Stiefel => normalized(v, self.is_output),
        }
    }

    /// The deviation of the weight from a normalized one: the largest entry of W Wᴴ − I, or the
    /// largest |Σ w − 1| of a row; 0 for the output.
    pub(super) fn residual(&self) -> f64 {
        if self.parameterization == Parameterization::Monotonic {
            let sum = |k| self.w.row(k).iter().map(|x| x.to_complex().re).sum::<f64>();
            return largest((0..self.w.rows()).map(|k| (sum(k) - 1.0).abs()));
        }
        if self.is_output { 0.0 } else { self.w.semi_unitary_residual() }
    }

    /// The gradient by V, given the gradient by W, at V = W, where L = I; for a monotonic weight, at
    /// W = W(V).
    ///
    /// With X = dV, dW = X − Φ(X Wᴴ + W Xᴴ) W, where Φ keeps the lower triangle and half of the
    /// diagonal. The adjoint maps G to G − (P + Pᴴ) W with P = Φ(G Wᴴ). On the Stiefel manifold, P is
    /// half of G Wᴴ instead.
    pub(super) fn pull_back(&self, mut g: Matrix<T>) -> Matrix<T> {
        if self.parameterization == Parameterization::Unconstrained {
            return g;
        }
        if self.parameterization == Parameterization::Monotonic {
            // dW = W (X − Σ W X), row by row.
            for k in 0..g.rows() {
                let pairs = g.row(k).iter().zip(self.w.row(k));
                let mean = pairs.fold(T::ZERO, |sum, (&g, &w)| sum + g * w);
                for (g, &w) in g.row_mut(k).iter_mut().zip(self.w.row(k)) {
                    *g = w * (*g - mean);
                }
            }
            return g;
        }
        if self.is_output {
            // dW = X − W Re⟨W, X⟩.
            let (w, parts) = (T::parts(self.w.data()), T::parts_mut(g.data_mut()));
            let dot: f64 = w.iter().zip(&*parts).map(|(w, g)| w * g).sum();
            for (g, w) in parts.iter_mut().zip(w) {
                *g -= dot * w;
            }
            return g;
        }
        let inner = g.times_adjoint(&self.w);
        let n = inner.rows();
        let symmetric = match self.parameterization {
            Parameterization::Cholesky => Matrix::from_fn(n, n, |i, j| match i.cmp(&j) {
                std::cmp::Ordering::Greater => inner[(i, j)],
                std::cmp::Ordering::Less => inner[(j, i)].conjugate(),
                std::cmp::Ordering::Equal => T::from_real(inner[(i, i)].to_complex().re),
            }),
            Parameterization::Stiefel => inner.hermitian_part(),
            Parameterization::Unconstrained | Parameterization::Monotonic => {
                unreachable!("returned above")
            }
        };
        g.subtract_product(&symmetric, &self.w);
        g
    }
}

/// exp V / Σ exp V, row by row.
pub(super) fn softmax<T: Scalar>(v: &Matrix<T>) -> Matrix<T> {
    let mut w = v.clone();
    for k in 0..w.rows() {
        let row = w.row_mut(k);
        let max = row.iter().fold(f64::NEG_INFINITY, |max, x| max.max(x.to_complex().re));
        for x in row {
            *x = T::from_real((x.to_complex().re - max).exp());
        }
    }
    row_normalized(w)
}

/// L⁻¹ V with L Lᴴ = V Vᴴ; V / ‖V‖ for the output. If V Vᴴ is far from I, this is done twice, against
/// rounding errors.
pub(crate) fn normalized<T: Scalar>(v: Matrix<T>, is_output: bool) -> Matrix<T> {
    if is_output {
        return v.scaled(v.norm2().sqrt().recip());
    }
    let mut w = v;
    for _ in 0..2 {
        let gram = w.times_adjoint(&w);
        let Some(l) = cholesky(&gram) else {
            // The rows are linearly dependent.
            return crate::linalg::row_orthonormalize(&w).q;
        };
        w = inverse(&l).times(&w);
        if is_near_identity(&gram) {
            break;
        }
    }
    w
}

/// Whether all eigenvalues of a Hermitian matrix are between 1/2 and 3/2, according to the sums of
/// its rows.
fn is_near_identity<T: Scalar>(gram: &Matrix<T>) -> bool {
    (0..gram.rows()).all(|i| {
        let off = |(j, x): (usize, &T)| if i == j { *x - T::ONE } else { *x }.abs2().sqrt();
        gram.row(i).iter().enumerate().map(off).sum::<f64>() < 0.5
    })
}

/// The inverse of a lower triangular matrix.
fn inverse<T: Scalar>(l: &Matrix<T>) -> Matrix<T> {
    let n = l.rows();
    let mut inverse = Matrix::<T>::identity(n);
    for i in 0..n {
        let (done, rest) = inverse.data_mut().split_at_mut(i * n);
        let row = &mut rest[..n];
        for (j, other) in done.chunks_exact(n).enumerate() {
            let factor = -l[(i, j)];
            for (x, &y) in row[..=j].iter_mut().zip(other) {
                *x += factor * y;
            }
        }
        let scale = l[(i, i)].to_complex().re.recip();
        for x in &mut row[..=i] {
            *x = x.scale_by(scale);
        }
    }
    inverse
}

/// Divides every row by its sum.
pub(super) fn row_normalized<T: Scalar>(mut w: Matrix<T>) -> Matrix<T> {
    for k in 0..w.rows() {
        let sum: f64 = w.row(k).iter().map(|x| x.to_complex().re).sum();
        for x in w.row_mut(k) {
            *x = x.scale_by(sum.recip());
        }
    }
    w
}

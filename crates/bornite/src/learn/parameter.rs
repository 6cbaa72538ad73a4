//! Free parameters behind the weights: W = L⁻¹ V with L Lᴴ = V Vᴴ, or W = V, and V stepped by Adam.

use crate::linalg::{Matrix, Scalar, cholesky};

/// How the circuit is kept normalized while it is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Parameterization {
    /// Inner weights are W = L⁻¹ V with the Cholesky factor L of V Vᴴ, differentiated through; V is free.
    #[default]
    Cholesky,
    /// Inner weights stay on the Stiefel manifold: a step along the gradient's tangent part, then L⁻¹ V brings it back.
    Stiefel,
    /// Weights are free and log Z is subtracted; the circuit is orthonormalized at the end.
    Unconstrained,
}

/// The settings of Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Adam {
    pub(crate) beta1: f64,
    pub(crate) beta2: f64,
    pub(crate) epsilon: f64,
}

impl Default for Adam {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.99, epsilon: 1e-12 }
    }
}

/// One weight: its value on the manifold, and the moments of its gradient.
#[derive(Clone, Debug)]
pub(crate) struct Parameter<T> {
    pub(crate) w: Matrix<T>,
    /// A weight of the output has unit Frobenius norm and need not be semi-unitary.
    is_output: bool,
    parameterization: Parameterization,
    mean: Matrix<T>,
    /// Of the squares of the real and imaginary parts.
    square: Vec<[f64; 2]>,
}

impl<T: Scalar> Parameter<T> {
    /// A parameter at the nearest weight that is normalized.
    pub(crate) fn new(v: &Matrix<T>, is_output: bool, parameterization: Parameterization) -> Self {
        let (rows, cols) = (v.rows(), v.cols());
        Self {
            w: normalized(v, is_output),
            is_output,
            parameterization,
            mean: Matrix::zeros(rows, cols),
            square: vec![[0.0; 2]; rows * cols],
        }
    }

    pub(crate) fn is_output(&self) -> bool {
        self.is_output
    }

    /// One step *up* the gradient by W, with bias corrections for step number `step`, counted from 1.
    pub(crate) fn step(&mut self, gradient: &Matrix<T>, rate: f64, step: u32, adam: &Adam) {
        let g = self.pull_back(gradient);
        let (c1, c2) =
            (1.0 - adam.beta1.powf(f64::from(step)), 1.0 - adam.beta2.powf(f64::from(step)));
        let mut v = self.w.clone();
        let moments = self.mean.data_mut().iter_mut().zip(&mut self.square);
        for ((v, &g), (mean, square)) in v.data_mut().iter_mut().zip(g.data()).zip(moments) {
            *mean = mean.scale_by(adam.beta1) + g.scale_by(1.0 - adam.beta1);
            let (z, m) = (g.to_complex(), mean.to_complex());
            for (s, part) in square.iter_mut().zip([z.re, z.im]) {
                *s = adam.beta2 * *s + (1.0 - adam.beta2) * part * part;
            }
            let move_by = |m: f64, s: f64| rate * (m / c1) / ((s / c2).sqrt() + adam.epsilon);
            let delta =
                num_complex::Complex64::new(move_by(m.re, square[0]), move_by(m.im, square[1]));
            *v += T::from_complex(delta);
        }
        self.w = self.on_manifold(&v);
    }

    /// The weight itself where it is free, and otherwise the normalized one next to it.
    pub(crate) fn on_manifold(&self, v: &Matrix<T>) -> Matrix<T> {
        match self.parameterization {
            Parameterization::Unconstrained => v.clone(),
            _ => normalized(v, self.is_output),
        }
    }

    /// The gradient by V at V = W, where L = I.
    ///
    /// With X = dV, dW = X − Φ(X Wᴴ + W Xᴴ) W, where Φ keeps the lower triangle and half of the diagonal. Its adjoint
    /// takes G to G − (P + Pᴴ) W with P = Φ(G Wᴴ). On the Stiefel manifold P is half of G Wᴴ instead.
    pub(super) fn pull_back(&self, g: &Matrix<T>) -> Matrix<T> {
        if self.parameterization == Parameterization::Unconstrained {
            return g.clone();
        }
        if self.is_output {
            // dW = X − W Re⟨W, X⟩.
            let dot: f64 = self
                .w
                .data()
                .iter()
                .zip(g.data())
                .map(|(w, g)| (w.conjugate() * *g).to_complex().re)
                .sum();
            return combine(g, &self.w, -dot);
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
            Parameterization::Unconstrained => unreachable!("returned above"),
        };
        combine(g, &symmetric.times(&self.w), -1.0)
    }
}

/// a + s b.
fn combine<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>, s: f64) -> Matrix<T> {
    let data = a.data().iter().zip(b.data()).map(|(&a, &b)| a + b.scale_by(s)).collect();
    Matrix::new(a.rows(), a.cols(), data)
}

/// L⁻¹ V with L Lᴴ = V Vᴴ, twice so that rounding does not show; V / ‖V‖ for an output.
pub(crate) fn normalized<T: Scalar>(v: &Matrix<T>, is_output: bool) -> Matrix<T> {
    if is_output {
        return v.scaled(v.norm2().sqrt().recip());
    }
    let mut w = v.clone();
    for _ in 0..2 {
        let gram = w.times_adjoint(&w);
        match cholesky(&gram) {
            Some(l) => forward_substitute(&l, &mut w),
            // Rows that depend on each other: the factorization finds what rows there are.
            None => return crate::linalg::row_orthonormalize(&w).q,
        }
    }
    w
}

/// w ← L⁻¹ w.
fn forward_substitute<T: Scalar>(l: &Matrix<T>, w: &mut Matrix<T>) {
    let cols = w.cols();
    for i in 0..l.rows() {
        let (done, rest) = w.data_mut().split_at_mut(i * cols);
        let row = &mut rest[..cols];
        for (j, other) in done.chunks_exact(cols).enumerate() {
            let factor = -l[(i, j)];
            for (x, &y) in row.iter_mut().zip(other) {
                *x += factor * y;
            }
        }
        let scale = l[(i, i)].to_complex().re.recip();
        for x in row {
            *x = x.scale_by(scale);
        }
    }
}

use num_complex::Complex64;

use super::Basis;
use super::error::{BasisError, TRANSFORM_TOLERANCE};
use super::part::Part;
use crate::linalg::{Matrix, Scalar, largest, row_orthonormalize};

/// A function is dropped from f′ if its distance to the span of earlier functions is below this,
/// relative to its norm.
///
/// This bounds the error of f = L f′ for such a function. ε divided by it bounds the error of the
/// orthonormality of f′.
const DROP: f64 = 1e-7;

/// The number of quadrature nodes that are processed together.
const CHUNK: usize = 512;

/// Orthonormal functions f′ = T f, which are combinations of those of another basis.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformed {
    base: Box<Basis>,
    transform: Matrix<Complex64>,
}

impl Transformed {
    pub(super) fn new(base: Basis, transform: Matrix<Complex64>) -> Result<Self, BasisError> {
        if matches!(
            base,
            Basis::Indicator(_) | Basis::Table(_) | Basis::Transformed(_) | Basis::Atoms(_)
        ) {
            return Err(BasisError::TransformBase { family: base.family() });
        }
        let (rows, cols, width) = (transform.rows(), transform.cols(), base.width());
        if cols != width || rows == 0 || rows > width {
            return Err(BasisError::TransformShape { rows, cols, width });
        }
        let bad = |z: &Complex64| !z.is_finite();
        if let Some(n) = transform.data().iter().position(bad) {
            return Err(BasisError::TransformEntry { row: n / cols, col: n % cols });
        }
        let made = Self { base: Box::new(base), transform };
        let residual = made.residual();
        // This also rejects NaN, which comes from entries that overflow.
        if residual <= TRANSFORM_TOLERANCE {
            Ok(made)
        } else {
            Err(BasisError::NotOrthonormal { residual })
        }
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.transform.rows()
    }

    /// The basis that is transformed.
    pub fn base(&self) -> &Basis {
        &self.base
    }

    /// The matrix T of f′ = T f.
    pub fn transform(&self) -> &Matrix<Complex64> {
        &self.transform
    }

    pub(super) fn is_real(&self) -> bool {
        self.base.is_real() && self.transform.data().iter().all(|z| z.im == 0.0)
    }

    /// The largest entry of T G Tᴴ − I.
    pub(super) fn residual(&self) -> f64 {
        let (low, high) = self.base.natural_domain().bounds();
        let gram = self.weighted::<Complex64>(low, high, |_| 1.0);
        let gram = gram.unwrap_or_else(|| self.conjugated(&self.base.gram()));
        let target = |n: usize| if n.is_multiple_of(self.width() + 1) { 1.0 } else { 0.0 };
        let distances = gram.data().iter().enumerate().map(|(n, z)| (z - target(n)).norm());
        largest(distances)
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        let mut f = vec![T::ZERO; self.base.width()];
        self.base.evaluate(x, &mut f);
        for (i, value) in out.iter_mut().enumerate() {
            let terms = self.transform.row(i).iter().zip(&f);
            *value = terms.fold(T::ZERO, |sum, (&t, &y)| sum + T::from_complex(t) * y);
        }
    }

    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        part.integrate(&self.base.natural_domain(), self.width(), |low, high| {
            self.weighted(low, high, |_| 1.0)
                .unwrap_or_else(|| self.conjugated(&self.base.gram_over(part)))
        })
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        let exponent = i32::try_from(power).ok().filter(|&p| p <= 2)?;
        let (low, high) = self.base.natural_domain().bounds();
        self.weighted(low, high, |x| x.powi(exponent))
            .or_else(|| Some(self.conjugated(&self.base.moments(power)?)))
    }

    /// T M Tᴴ.
    pub(super) fn conjugated<T: Scalar>(&self, m: &Matrix<T>) -> Matrix<T> {
        let t = T::matrix_from_complex(&self.transform);
        t.times(m).times_adjoint(&t).hermitian_part()
    }

    /// ∫ w f′ f′ᴴ as a sum over the nodes of the base; `None` if the base is orthonormal and so has
    /// no nodes.
    ///
    /// T G Tᴴ, computed from the Gram matrix, would lose as many digits as κ(T)² has. This sum
    /// loses those of κ(T).
    pub(super) fn weighted<T: Scalar>(
        &self,
        low: f64,
        high: f64,
        weight: impl Fn(f64) -> f64,
    ) -> Option<Matrix<T>> {
        let nodes = self.base.nodes_over(low, high)?;
        let k = self.width();
        let mut sum = Matrix::<T>::zeros(k, k);
        for chunk in nodes.chunks(CHUNK) {
            let mut plain = Matrix::<T>::zeros(chunk.len(), k);
            for (n, &(x, _)) in chunk.iter().enumerate() {
                self.evaluate(x, plain.row_mut(n));
            }
            let plain = plain.transpose();
            let weighted = Matrix::from_fn(k, chunk.len(), |i, n| {
                let (x, w) = chunk[n];
                plain[(i, n)].scale_by(w * weight(x))
            });
            for (total, &x) in sum.data_mut().iter_mut().zip(weighted.times_adjoint(&plain).data())
            {
                *total += x;
            }
        }
        Some(sum.hermitian_part())
    }
}

/// (f′, L) with f = L f′, for the real functions of a base with quadrature nodes.
///
/// The functions at the nodes, times the roots of the weights, form a matrix V with V Vᵀ = G. Its
/// factorization V = L Q, one chunk after another, gives the Cholesky factor of G with digits that
/// G itself no longer has.
pub(super) fn orthonormalize(
    base: &Basis,
    nodes: &[(f64, f64)],
) -> (Transformed, Matrix<Complex64>) {
    let k = base.width();
    let mut l = Matrix::<f64>::zeros(k, 0);
    for chunk in nodes.chunks(CHUNK.max(k)) {
        let xs: Vec<f64> = chunk.iter().map(|node| node.0).collect();
        let values = base.evaluate_batch::<f64>(&xs);
        let kept = l.cols();
        let stacked = Matrix::from_fn(k, kept + chunk.len(), |i, n| match n.checked_sub(kept) {
            None => l[(i, n)],
            Some(n) => values[(n, i)] * chunk[n].1.sqrt(),
        });
        l = row_orthonormalize(&stacked).l;
    }
    let transform = left_inverse(&l);
    let l = Matrix::from_fn(k, transform.rows(), |i, j| l[(i, j)].to_complex());
    let transform = transform.map(Scalar::to_complex);
    (Transformed { base: Box::new(base.clone()), transform }, l)
}

/// T with T L = I on the leading columns of L. In pivot order, the rows of L are lower trapezoidal.
///
/// Stops at the first column whose pivot is below [`DROP`] times the norm of its row.
fn left_inverse(l: &Matrix<f64>) -> Matrix<f64> {
    let (k, rank) = (l.rows(), l.cols());
    let last_nonzero = |i: usize| l.row(i).iter().rposition(|&x| x != 0.0);
    let last: Vec<Option<usize>> = (0..k).map(last_nonzero).collect();
    let norm = |i: usize| l.row(i).iter().fold(0.0, |sum: f64, x| sum.hypot(*x));
    let share: Vec<f64> =
        (0..k).map(|i| last[i].map_or(0.0, |j| l[(i, j)].abs() / norm(i))).collect();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for j in 0..rank {
        let candidates = (0..k).filter(|&i| last[i] == Some(j));
        let pivot = candidates.max_by(|&a, &b| share[a].total_cmp(&share[b]));
        let Some(pivot) = pivot.filter(|&i| share[i] > DROP) else { break };
        let mut row = vec![0.0; k];
        row[pivot] = 1.0;
        for (n, before) in rows.iter().enumerate() {
            for (x, &y) in row.iter_mut().zip(before) {
                *x -= l[(pivot, n)] * y;
            }
        }
        for x in &mut row {
            *x /= l[(pivot, j)];
        }
        rows.push(row);
    }
    Matrix::new(rows.len(), k, rows.concat())
}

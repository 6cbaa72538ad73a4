use faer::Side;

use super::{Matrix, Scalar, largest};

/// The factorization V = L Q, where the rows of Q are orthonormal: Q Qᴴ = I.
#[derive(Clone, Debug)]
pub struct RowFactor<T> {
    /// L, with as many columns as the numerical rank of V.
    pub l: Matrix<T>,
    /// Q.
    pub q: Matrix<T>,
}

/// Factors V = L Q with Q Qᴴ = I, dropping directions beyond the numerical rank of V.
///
/// The rows are first scaled to similar norms by powers of two, so that a row of size 10⁻²⁰⁰ next
/// to one of size 1 keeps its digits. Q is empty if V = 0.
///
/// Cost: a pivoted Householder QR of Vᴴ.
pub fn row_orthonormalize<T: Scalar>(v: &Matrix<T>) -> RowFactor<T> {
    let (m, n) = (v.rows(), v.cols());
    let mut balanced = v.clone();
    let scales: Vec<f64> = (0..m)
        .map(|i| {
            let max = largest(v.row(i).iter().map(|x| x.max_part()));
            let scale = power_of_two_near(max);
            for x in balanced.row_mut(i) {
                *x = x.scale_by(1.0 / scale);
            }
            scale
        })
        .collect();
    let qr = balanced.adjoint().as_ref().col_piv_qr();
    let r = Matrix::from_faer(qr.thin_R());
    let leading = if r.rows() == 0 { 0.0 } else { r[(0, 0)].abs2().sqrt() };
    let tolerance = leading * f64::EPSILON * (m.max(n)) as f64;
    let rank = (0..r.rows()).take_while(|&i| r[(i, i)].abs2().sqrt() > tolerance).count();
    let thin_q = qr.compute_thin_Q();
    let q = Matrix::from_fn(rank, n, |i, j| thin_q[(j, i)].conjugate());
    let (forward, _) = qr.P().arrays();
    // Column k of R belongs to row forward[k] of V.
    let mut l = Matrix::zeros(m, rank);
    for (k, &row) in forward.iter().enumerate() {
        for i in 0..rank {
            l[(row, i)] = r[(i, k)].conjugate().scale_by(scales[row]);
        }
    }
    RowFactor { l, q }
}

/// The largest power of two at most x, clamped to the normal range; 1 if x is 0.
pub(crate) fn power_of_two_near(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let exponent = ((x.to_bits() >> 52) & 0x7ff).clamp(2, 2044);
    f64::from_bits(exponent << 52)
}

/// The lower triangular L with L Lᴴ = G, or `None` if G is not positive definite.
pub fn cholesky<T: Scalar>(g: &Matrix<T>) -> Option<Matrix<T>> {
    let llt = g.as_ref().llt(Side::Lower).ok()?;
    Some(Matrix::from_faer(llt.L()))
}

/// The eigenvalues, largest first, and the eigenvectors as the *columns* of `vectors`.
#[derive(Clone, Debug)]
pub struct Eigen<T> {
    /// The eigenvalues, largest first.
    pub values: Vec<f64>,
    /// The eigenvectors, one per column.
    pub vectors: Matrix<T>,
}

/// Computes the eigenvalues and eigenvectors of a Hermitian matrix, largest eigenvalue first.
///
/// Returns `None` if the iteration does not converge, which means that the matrix contains a NaN.
pub fn eigh<T: Scalar>(m: &Matrix<T>) -> Option<Eigen<T>> {
    let n = m.rows();
    let eigen = m.as_ref().self_adjoint_eigen(Side::Lower).ok()?;
    let (u, s) = (eigen.U(), eigen.S());
    let values = (0..n).rev().map(|i| s.column_vector()[i].to_complex().re).collect();
    Some(Eigen { values, vectors: Matrix::from_fn(n, n, |i, j| u[(i, n - 1 - j)]) })
}

/// Computes the singular values of M, largest first, with the left singular vectors as columns.
///
/// Returns `None` if the iteration does not converge, which means that the matrix contains a NaN.
pub fn row_svd<T: Scalar>(m: &Matrix<T>) -> Option<Eigen<T>> {
    let svd = m.as_ref().thin_svd().ok()?;
    let s = svd.S().column_vector();
    let values = (0..s.nrows()).map(|i| s[i].to_complex().re).collect();
    Some(Eigen { values, vectors: Matrix::from_faer(svd.U()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex64;

    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        }
    }

    fn random(rows: usize, cols: usize, seed: u64) -> Matrix<Complex64> {
        let mut next = noise(seed);
        Matrix::from_fn(rows, cols, |_, _| Complex64::new(next(), next()))
    }

    fn distance(a: &Matrix<Complex64>, b: &Matrix<Complex64>) -> f64 {
        a.data().iter().zip(b.data()).fold(0.0, |m: f64, (x, y)| m.max((x - y).norm()))
    }

    #[test]
    fn row_factor_restores_any_shape_and_rank() {
        for (rows, cols) in [(1, 1), (3, 7), (7, 3), (16, 16), (40, 300), (300, 40)] {
            let v = random(rows, cols, 7);
            let f = row_orthonormalize(&v);
            assert_eq!(f.q.rows(), rows.min(cols));
            assert!(f.q.semi_unitary_residual() < 1e-13);
            assert!(distance(&f.l.times(&f.q), &v) < 1e-13);
        }
        let deficient = random(9, 2, 1).times(&random(2, 12, 2));
        let f = row_orthonormalize(&deficient);
        assert_eq!(f.q.rows(), 2);
        assert!(distance(&f.l.times(&f.q), &deficient) < 1e-13);
        assert_eq!(row_orthonormalize(&Matrix::<f64>::zeros(3, 4)).q.rows(), 0);
    }

    #[test]
    fn row_factor_keeps_graded_rows() {
        let mut v = random(3, 5, 3);
        for (i, scale) in [1e-200, 1.0, 1e200].into_iter().enumerate() {
            for x in v.row_mut(i) {
                *x = x.scale_by(scale);
            }
        }
        let f = row_orthonormalize(&v);
        let back = f.l.times(&f.q);
        for i in 0..3 {
            let size = v.row(i).iter().fold(0.0, |m: f64, x| m.max(x.norm()));
            let error = (0..5).fold(0.0, |m: f64, j| m.max((back[(i, j)] - v[(i, j)]).norm()));
            assert!(error < 1e-14 * size, "row {i}: {error:e} of {size:e}");
        }
    }

    #[test]
    fn large_products_match_the_definition() {
        // Products of older back ends were wrong only for larger sizes.
        let (a, b) = (random(130, 257, 4), random(257, 67, 5));
        let c = a.times(&b);
        for (i, j) in [(0, 0), (129, 66), (64, 33), (127, 1)] {
            let sum: Complex64 = (0..257).map(|k| a[(i, k)] * b[(k, j)]).sum();
            assert!((c[(i, j)] - sum).norm() < 1e-13 * 257.0);
        }
        assert!(distance(&a.times_adjoint(&a), &a.times(&a.adjoint())) < 1e-12);
    }

    #[test]
    fn eigen_and_cholesky_restore() {
        let a = random(20, 30, 6);
        let g = a.times_adjoint(&a);
        let l = cholesky(&g).unwrap();
        assert!(distance(&l.times_adjoint(&l), &g) < 1e-12);
        let e = eigh(&g).unwrap();
        assert!(e.values.windows(2).all(|w| w[0] >= w[1]));
        let scaled = Matrix::from_fn(20, 20, |i, j| e.vectors[(i, j)] * e.values[j]);
        assert!(distance(&scaled.times_adjoint(&e.vectors), &g) < 1e-12);
        let s = row_svd(&a).unwrap();
        assert!((s.values[0].powi(2) - e.values[0]).abs() < 1e-10);
    }
}

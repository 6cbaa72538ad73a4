//! A weight K × K₁K₂ as a tensor K × K₁ × K₂, with one of its last two modes multiplied or summed over.

use crate::linalg::{Matrix, Scalar};

/// Σᵢ W[k; i, j] a[i] as a matrix K × K₂.
pub(super) fn contract_first<T: Scalar>(
    w: &Matrix<T>,
    [k, _, k2]: [usize; 3],
    a: &[T],
) -> Matrix<T> {
    let mut out = Matrix::zeros(k, k2);
    for k in 0..k {
        for (slab, &a) in w.row(k).chunks_exact(k2).zip(a) {
            for (out, &w) in out.row_mut(k).iter_mut().zip(slab) {
                *out += w * a;
            }
        }
    }
    out
}

/// Σᵢ W[k; i, j] M[i, i′]; none is the identity.
pub(super) fn multiply_first<T: Scalar>(
    w: &Matrix<T>,
    [k, k1, k2]: [usize; 3],
    m: Option<&Matrix<T>>,
) -> Matrix<T> {
    let Some(m) = m else { return w.clone() };
    let mut out = Matrix::zeros(k, k1 * k2);
    if k1.min(k2) >= WIDE {
        for k in 0..k {
            let mut slab = Matrix::zeros(k1, k2);
            slab.add_transposed_products(m.data(), w.row(k), k1);
            out.row_mut(k).copy_from_slice(slab.data());
        }
        return out;
    }
    for k in 0..k {
        for (i, slab) in w.row(k).chunks_exact(k2).enumerate() {
            for (out, &m) in out.row_mut(k).chunks_exact_mut(k2).zip(m.row(i)) {
                for (out, &w) in out.iter_mut().zip(slab) {
                    *out += w * m;
                }
            }
        }
    }
    out
}

/// Σⱼ W[k; i, j] M[j, j′]; none is the identity.
pub(super) fn multiply_last<T: Scalar>(
    w: &Matrix<T>,
    [k, k1, k2]: [usize; 3],
    m: Option<&Matrix<T>>,
) -> Matrix<T> {
    match m {
        Some(m) => w.clone().reshaped(k * k1, k2).times(m).reshaped(k, k1 * k2),
        None => w.clone(),
    }
}

/// The least K for which the products of the linear-algebra crate are faster than plain loops.
const WIDE: usize = 6;

/// Σ A[k; i, j] B*[k; i′, j] over k and j.
pub(super) fn gram_first<T: Scalar>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    [k, k1, k2]: [usize; 3],
) -> Matrix<T> {
    let mut out = Matrix::zeros(k1, k1);
    if k1.min(k2) >= WIDE {
        out.add_adjoint_products(a.data(), b.data(), k2);
        return out;
    }
    for k in 0..k {
        for (i, a) in a.row(k).chunks_exact(k2).enumerate() {
            for (out, b) in out.row_mut(i).iter_mut().zip(b.row(k).chunks_exact(k2)) {
                let terms = a.iter().zip(b);
                *out += terms.fold(T::ZERO, |sum, (&a, b)| sum + a * b.conjugate());
            }
        }
    }
    out
}

/// Σ A[…, j] B*[…, j′] over all but the last mode, which has this size.
pub(super) fn gram_last<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>, size: usize) -> Matrix<T> {
    let mut out = Matrix::zeros(size, size);
    if size >= WIDE {
        let rows = a.data().len() / size;
        let b = b.map(Scalar::conjugate);
        out.add_transposed_products(a.data(), b.data(), rows);
        return out;
    }
    for (a, b) in a.data().chunks_exact(size).zip(b.data().chunks_exact(size)) {
        for (j, &a) in a.iter().enumerate() {
            for (out, b) in out.row_mut(j).iter_mut().zip(b) {
                *out += a * b.conjugate();
            }
        }
    }
    out
}

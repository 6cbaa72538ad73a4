//! Products over one mode of a weight K × K₁K₂, seen as a tensor K × K₁ × K₂.

use crate::linalg::{Matrix, Scalar};

/// Σᵢ W[k; i, j] M[i, i′].
pub(super) fn multiply_first<T: Scalar>(
    w: &Matrix<T>,
    [k, k1, k2]: [usize; 3],
    m: &Matrix<T>,
) -> Matrix<T> {
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

/// Σⱼ W[k; i, j] M[j, j′].
pub(super) fn multiply_last<T: Scalar>(
    w: &Matrix<T>,
    [k, k1, k2]: [usize; 3],
    m: &Matrix<T>,
) -> Matrix<T> {
    w.clone().reshaped(k * k1, k2).times(m).reshaped(k, k1 * k2)
}

/// The smallest width at which the linear-algebra crate is faster than plain loops.
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

/// Σ A[…, j] B*[…, j′] over all modes except the last, which has this size.
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

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::circuit::{Weights, random_weight};
    use crate::linalg::Complex64;

    /// Compares with plain sums, below and above the width at which the linear-algebra crate is used.
    #[test]
    fn tensors_are_multiplied_as_defined() {
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        let mut random = |rows: usize, cols: usize| {
            let weight = random_weight(rows, cols, Weights::Gaussian, rng);
            weight.to_matrix::<Complex64>().into_owned()
        };
        for dims in [[3, 2, 4], [5, 7, 6], [4, 6, 9]] {
            let [k, k1, k2] = dims;
            let (a, b) = (random(k, k1 * k2), random(k, k1 * k2));
            let (m1, m2) = (random(k1, k1), random(k2, k2));
            let at = |w: &Matrix<Complex64>, k: usize, i: usize, j: usize| w[(k, i * k2 + j)];
            let same = |x: Complex64, y: Complex64| assert!((x - y).norm() < 1e-12, "{x} for {y}");
            let first = multiply_first(&a, dims, &m1);
            let last = multiply_last(&a, dims, &m2);
            let (gram1, gram2) = (gram_first(&a, &b, dims), gram_last(&a, &b, k2));
            for k in 0..k {
                for (i, j) in (0..k1).flat_map(|i| (0..k2).map(move |j| (i, j))) {
                    let sum = (0..k1).map(|n| at(&a, k, n, j) * m1[(n, i)]).sum();
                    same(at(&first, k, i, j), sum);
                    same(at(&last, k, i, j), (0..k2).map(|n| at(&a, k, i, n) * m2[(n, j)]).sum());
                }
            }
            let pairs = |n: usize| (0..k).flat_map(move |k| (0..n).map(move |x| (k, x)));
            for (i, n) in (0..k1).flat_map(|i| (0..k1).map(move |n| (i, n))) {
                let term = |(k, j)| at(&a, k, i, j) * at(&b, k, n, j).conj();
                same(gram1[(i, n)], pairs(k2).map(term).sum());
            }
            for (j, n) in (0..k2).flat_map(|j| (0..k2).map(move |n| (j, n))) {
                let term = |(k, i)| at(&a, k, i, j) * at(&b, k, i, n).conj();
                same(gram2[(j, n)], pairs(k1).map(term).sum());
            }
        }
    }
}

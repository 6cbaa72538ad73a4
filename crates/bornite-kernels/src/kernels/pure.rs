//! Kernels for pure messages: vectors in, vectors or matrices out.

use super::block::{Part, load, matrix_times, mul_add, store, zero};
use crate::lanes::{Real, planes};
use crate::vector::Vectors;
use crate::weight::Panels;

/// out[k] = Σⱼ (Σᵢ w[k,i,j] a[i]) b[j]. The Kronecker product is never formed.
#[inline(always)]
pub(crate) fn kron_sum<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: &Panels<F>,
    [a, b]: [&[F]; 2],
    out: &mut [F],
) {
    for at in (0..F::LANES).step_by(t.width()) {
        for (k, out) in out.chunks_exact_mut(planes(C) * F::LANES).enumerate() {
            let mut acc = zero::<T, F>(t);
            matrix_times::<T, F, C, false>(
                t,
                Part::all(w, k),
                a,
                at,
                #[inline(always)]
                |j, z| acc = mul_add::<T, F, C>(t, z, load::<T, F, C>(t, b, j, at), acc),
            );
            store::<T, F, C>(t, out, 0, at, acc);
        }
    }
}

/// out[k, m] = Σₙ w[k][m, n] a[n].
#[inline(always)]
pub(crate) fn contract<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: &Panels<F>,
    a: &[F],
    out: &mut [F],
) {
    for at in (0..F::LANES).step_by(t.width()) {
        for (k, out) in out.chunks_exact_mut(w.rows * planes(C) * F::LANES).enumerate() {
            matrix_times::<T, F, C, false>(
                t,
                Part::all(w, k),
                a,
                at,
                #[inline(always)]
                |m, z| store::<T, F, C>(t, out, m, at, z),
            );
        }
    }
}

/// out[n] = a[n] b[n].
#[inline(always)]
pub(crate) fn hadamard<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    a: &[F],
    b: &[F],
    out: &mut [F],
) {
    let step = planes(C) * F::LANES;
    let inputs = a.chunks_exact(step).zip(b.chunks_exact(step));
    for ((a, b), out) in inputs.zip(out.chunks_exact_mut(step)) {
        for at in (0..F::LANES).step_by(t.width()) {
            let (a, b) = (load::<T, F, C>(t, a, 0, at), load::<T, F, C>(t, b, 0, at));
            store::<T, F, C>(t, out, 0, at, mul_add::<T, F, C>(t, a, b, zero::<T, F>(t)));
        }
    }
}

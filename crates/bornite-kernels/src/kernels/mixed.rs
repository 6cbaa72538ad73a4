//! Kernels for mixed messages: Hermitian matrices out.
//!
//! Only the half on and below the diagonal of a result is computed. The other half is mirrored, so
//! that the result is exactly Hermitian. The inputs must be Hermitian too: M[i,i'] is read as
//! conj(M[i',i]), so that all inner loops run along rows.

use super::block::{
    Num, Part, conj, inner_products, load, matrix_times, mul_add, mul_conj_add, store, zero,
};
use crate::lanes::{Real, planes};
use crate::vector::Vectors;
use crate::weight::{PackedWeight, Panels};

/// The maximum number of numbers of a temporary that should stay in the first-level cache.
const CHUNK: usize = 128;

/// The number of rows i' of the temporaries W ×₁ M₁ (K₁×K₂) that are processed at a time.
pub(crate) fn chunk_rows(k1: usize, k2: usize) -> usize {
    let rows = CHUNK / k2.max(1);
    (rows & !1).clamp(2, k1.max(2))
}

/// Mirrors the half on and below the diagonal, and makes the diagonal real.
#[inline(always)]
pub(crate) fn mirror<T: Vectors<F>, F: Real, const C: bool>(t: T, k: usize, out: &mut [F]) {
    for at in (0..F::LANES).step_by(t.width()) {
        for i in 0..k {
            for j in 0..i {
                let z = load::<T, F, C>(t, out, i * k + j, at);
                store::<T, F, C>(t, out, j * k + i, at, conj::<T, F, C>(t, z));
            }
            let (re, _) = load::<T, F, C>(t, out, i * k + i, at);
            store::<T, F, C>(t, out, i * k + i, at, (re, t.splat(F::ZERO)));
        }
    }
}

/// out = B Bᴴ, where B is k × `len`.
#[inline(always)]
pub(crate) fn outer_self<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    [k, len]: [usize; 2],
    b: &[F],
    out: &mut [F],
) {
    half_product::<T, F, C>(t, [k, len], b, b, out);
}

/// out = X Yᴴ, which must be Hermitian, where X and Y are k × `len`.
#[inline(always)]
fn half_product<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    [k, len]: [usize; 2],
    x: &[F],
    y: &[F],
    out: &mut [F],
) {
    let s = t.single();
    inner_products::<_, F, C, true>(
        s,
        [k, k, len],
        x,
        y,
        #[inline(always)]
        |i, j, at, z| store::<_, F, C>(s, out, i * k + j, at, z),
    );
    mirror::<T, F, C>(t, k, out);
}

/// out = B M Bᴴ, where B is k × `len`; `scratch` has k × `len` numbers.
#[inline(always)]
pub(crate) fn sandwich<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    [k, len]: [usize; 2],
    [b, m]: [&[F]; 2],
    scratch: &mut [F],
    out: &mut [F],
) {
    let s = t.single();
    inner_products::<_, F, C, false>(
        s,
        [k, len, len],
        b,
        m,
        #[inline(always)]
        |i, j, at, z| store::<_, F, C>(s, scratch, i * len + j, at, z),
    );
    half_product::<T, F, C>(t, [k, len], scratch, b, out);
}

/// out[row, k'] (+)= Σₙ u[n] conj(w[k', first_col + n]) for k' ≤ row; adds if `first_col` > 0.
#[inline(always)]
fn half_row<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    flat: &Panels<F>,
    [row, first_col]: [usize; 2],
    u: &[F],
    out: &mut [F],
) {
    let k = flat.rows;
    let part = Part { panels: flat, batch: 0, rows: row + 1, first_col };
    for at in (0..F::LANES).step_by(t.width()) {
        matrix_times::<T, F, C, true>(
            t,
            part,
            u,
            at,
            #[inline(always)]
            |other, z| {
                let n = row * k + other;
                let sum = if first_col == 0 { z } else { sum_of::<T, F, C>(t, out, n, at, z) };
                store::<T, F, C>(t, out, n, at, sum);
            },
        );
    }
}

/// Number `n` of a tile, plus z.
#[inline(always)]
fn sum_of<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    tile: &[F],
    n: usize,
    at: usize,
    z: Num<T::V>,
) -> Num<T::V> {
    let old = load::<T, F, C>(t, tile, n, at);
    (t.add(old.0, z.0), if C { t.add(old.1, z.1) } else { z.1 })
}

/// to[place(n, m)] = Σᵢ w[k][m,i] M[i,n] for rows n of the Hermitian M.
#[inline(always)]
fn weight_times_hermitian<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    part: Part<'_, F>,
    m: &[F],
    to: &mut [F],
    place: impl Fn(usize, usize) -> usize,
) {
    let size = part.panels.cols * planes(C) * F::LANES;
    for at in (0..F::LANES).step_by(t.width()) {
        for (n, row) in m.chunks_exact(size).enumerate() {
            matrix_times::<T, F, C, true>(
                t,
                part,
                row,
                at,
                #[inline(always)]
                |m, z| store::<T, F, C>(t, to, place(n, m), at, conj::<T, F, C>(t, z)),
            );
        }
    }
}

/// out[k,k'] = Σ w[k,i,j] M₁[i,i'] M₂[j,j'] conj(w[k',i',j']). If there is no M₂, it is the
/// identity.
#[inline(always)]
pub(crate) fn mixed_left<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: &PackedWeight<F>,
    m1: &[F],
    m2: Option<&[F]>,
    scratch: &mut [F],
    out: &mut [F],
) {
    let [k, k1, k2] = w.shape();
    let number = planes(C) * F::LANES;
    let rows = chunk_rows(k1, k2);
    let (first, second) = scratch.split_at_mut(rows * k2 * number);
    let s = t.single();
    for row in 0..k {
        for i in (0..k1).step_by(rows) {
            let rows = rows.min(k1 - i);
            let left = &mut first[..rows * k2 * number];
            let m1 = &m1[i * k1 * number..][..rows * k1 * number];
            weight_times_hermitian::<T, F, C>(
                t,
                Part::all(&w.left, row),
                m1,
                left,
                #[inline(always)]
                |n, j| n * k2 + j,
            );
            let u = if let Some(m2) = m2 {
                let both = &mut second[..rows * k2 * number];
                inner_products::<_, F, C, false>(
                    s,
                    [rows, k2, k2],
                    left,
                    m2,
                    #[inline(always)]
                    |n, j, at, z| store::<_, F, C>(s, both, n * k2 + j, at, z),
                );
                both
            } else {
                left
            };
            half_row::<T, F, C>(t, &w.flat, [row, i * k2], u, out);
        }
    }
    mirror::<T, F, C>(t, k, out);
}

/// out[k,k'] = Σ w[k,i,j] M₂[j,j'] conj(w[k',i,j']); `scratch` has K₁ × K₂ numbers.
#[inline(always)]
pub(crate) fn mixed_right<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: &PackedWeight<F>,
    m2: &[F],
    scratch: &mut [F],
    out: &mut [F],
) {
    let [k, _, k2] = w.shape();
    for row in 0..k {
        weight_times_hermitian::<T, F, C>(
            t,
            Part::all(&w.right, row),
            m2,
            scratch,
            #[inline(always)]
            |n, i| i * k2 + n,
        );
        half_row::<T, F, C>(t, &w.flat, [row, 0], scratch, out);
    }
    mirror::<T, F, C>(t, k, out);
}

/// out = W M Wᴴ, where W is K × K₁; `scratch` has K × K₁ numbers.
#[inline(always)]
pub(crate) fn congruence<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: &PackedWeight<F>,
    m: &[F],
    scratch: &mut [F],
    out: &mut [F],
) {
    let [k, k1, _] = w.shape();
    weight_times_hermitian::<T, F, C>(
        t,
        Part::all(&w.flat, 0),
        m,
        scratch,
        #[inline(always)]
        |n, k| k * k1 + n,
    );
    for (row, u) in scratch.chunks_exact(k1 * planes(C) * F::LANES).enumerate() {
        half_row::<T, F, C>(t, &w.flat, [row, 0], u, out);
    }
    mirror::<T, F, C>(t, k, out);
}

/// out[i,j] = v[i] conj(v[j]) M[i,j].
#[inline(always)]
pub(crate) fn hadamard_pure_mixed<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    v: &[F],
    m: &[F],
    out: &mut [F],
) {
    let k = v.len() / (planes(C) * F::LANES);
    for at in (0..F::LANES).step_by(t.width()) {
        for i in 0..k {
            let x = load::<T, F, C>(t, v, i, at);
            for j in 0..=i {
                let y = load::<T, F, C>(t, v, j, at);
                let xy = mul_conj_add::<T, F, C>(t, x, y, zero::<T, F>(t));
                let m = load::<T, F, C>(t, m, i * k + j, at);
                let z = mul_add::<T, F, C>(t, xy, m, zero::<T, F>(t));
                store::<T, F, C>(t, out, i * k + j, at, z);
            }
        }
    }
    mirror::<T, F, C>(t, k, out);
}

/// out = the diagonal matrix of |v[i]|² for a vector v, or of M[i,i] for a matrix M.
#[inline(always)]
pub(crate) fn hadamard_identity<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    k: usize,
    input: &[F],
    vector: bool,
    out: &mut [F],
) {
    out.fill(F::ZERO);
    for at in (0..F::LANES).step_by(t.width()) {
        for i in 0..k {
            let re = if vector {
                let x = load::<T, F, C>(t, input, i, at);
                mul_conj_add::<T, F, C>(t, x, x, zero::<T, F>(t)).0
            } else {
                load::<T, F, C>(t, input, i * k + i, at).0
            };
            store::<T, F, C>(t, out, i * k + i, at, (re, t.splat(F::ZERO)));
        }
    }
}

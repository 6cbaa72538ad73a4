//! The reverse pass: gradients of inputs and of weights.

use super::block::{Part, broadcast_mul_add, load, matrix_times, mul_conj_add, store, zero};
use crate::gradient::padded;
use crate::lanes::{Real, planes};
use crate::vector::Vectors;
use crate::weight::Panels;

/// The number of tiles that are added to a weight gradient at a time, so that their transposes stay
/// in the first-level cache.
pub(crate) const TILES: usize = 4;

/// ga[n] += g[n] conj(b[n]).
#[inline(always)]
pub(crate) fn hadamard_input<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    g: &[F],
    b: &[F],
    ga: &mut [F],
) {
    for at in (0..F::LANES).step_by(t.width()) {
        for n in 0..ga.len() / (planes(C) * F::LANES) {
            let (g, b) = (load::<T, F, C>(t, g, n, at), load::<T, F, C>(t, b, n, at));
            let sum = mul_conj_add::<T, F, C>(t, g, b, load::<T, F, C>(t, ga, n, at));
            store::<T, F, C>(t, ga, n, at, sum);
        }
    }
}

/// ga[i] += Σⱼ h[i,j] conj(b[j]) and gb[j] += Σᵢ h[i,j] conj(a[i]), where h[i,j] = Σₖ
/// conj(w[k,i,j]) g[k].
#[inline(always)]
pub(crate) fn kron_inputs<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: &Panels<F>,
    g: &[F],
    [a, b]: [&[F]; 2],
    [ga, gb]: [&mut [F]; 2],
) {
    let k2 = b.len() / (planes(C) * F::LANES);
    for at in (0..F::LANES).step_by(t.width()) {
        let (mut i, mut j) = (0, 0);
        matrix_times::<T, F, C, true>(
            t,
            Part::all(w, 0),
            g,
            at,
            #[inline(always)]
            |_, h| {
                let left = load::<T, F, C>(t, ga, i, at);
                let left = mul_conj_add::<T, F, C>(t, h, load::<T, F, C>(t, b, j, at), left);
                store::<T, F, C>(t, ga, i, at, left);
                let right = load::<T, F, C>(t, gb, j, at);
                let right = mul_conj_add::<T, F, C>(t, h, load::<T, F, C>(t, a, i, at), right);
                store::<T, F, C>(t, gb, j, at, right);
                j += 1;
                if j == k2 {
                    (i, j) = (i + 1, 0);
                }
            },
        );
    }
}

/// ga[i] += Σₖ conj(w[k,i]) g[k] for a part of the rows i of w.
#[inline(always)]
pub(crate) fn sum_input<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: Part<'_, F>,
    g: &[F],
    ga: &mut [F],
) {
    for at in (0..F::LANES).step_by(t.width()) {
        matrix_times::<T, F, C, true>(
            t,
            w,
            g,
            at,
            #[inline(always)]
            |i, h| {
                let (re, im) = load::<T, F, C>(t, ga, i, at);
                let sum = (t.add(re, h.0), if C { t.add(im, h.1) } else { im });
                store::<T, F, C>(t, ga, i, at, sum);
            },
        );
    }
}

/// grad[k,i,j] += Σ g[k] conj(a[i]) conj(b[j]) over the rows of all tiles.
#[inline(always)]
pub(crate) fn kron_weight<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    [k, k1, k2]: [usize; 3],
    [g, a, b]: [&[F]; 3],
    scratch: &mut [F],
    grad: &mut [F],
) {
    let number = planes(C) * F::LANES;
    let (bt, left) = scratch.split_at_mut(TILES * number * padded::<F>(k2));
    let groups = b.chunks(TILES * k2 * number).zip(a.chunks(TILES * k1 * number));
    for ((b, a), g) in groups.zip(g.chunks(TILES * k * number)) {
        let bt = transpose::<F, C, true>(k2, b, bt);
        let rows = grad.chunks_exact_mut(k1 * planes(C) * padded::<F>(k2));
        for (row, grad) in rows.enumerate() {
            for at in (0..F::LANES).step_by(t.width()) {
                for (n, (a, left)) in
                    a.chunks_exact(number).zip(left.chunks_exact_mut(number)).enumerate()
                {
                    let x = load::<T, F, C>(t, g, n / k1 * k + row, at);
                    let y = load::<T, F, C>(t, a, 0, at);
                    let z = mul_conj_add::<T, F, C>(t, x, y, zero::<T, F>(t));
                    store::<T, F, C>(t, left, 0, at, z);
                }
            }
            accumulate::<T, F, C>(t, [k1, k2], &left[..a.len()], bt, grad);
        }
    }
}

/// grad[k,i] += Σ g[k] conj(a[i]) over the rows of all tiles.
#[inline(always)]
pub(crate) fn sum_weight<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    [k, k1]: [usize; 2],
    [g, a]: [&[F]; 2],
    scratch: &mut [F],
    grad: &mut [F],
) {
    let number = planes(C) * F::LANES;
    for (a, g) in a.chunks(TILES * k1 * number).zip(g.chunks(TILES * k * number)) {
        let at = transpose::<F, C, true>(k1, a, scratch);
        accumulate::<T, F, C>(t, [k, k1], g, at, grad);
    }
}

/// Transposes tiles of `len` numbers to `[rows][planes][padded len]`; conjugated if `CONJ`.
#[inline(always)]
pub(crate) fn transpose<'a, F: Real, const C: bool, const CONJ: bool>(
    len: usize,
    tiles: &[F],
    out: &'a mut [F],
) -> &'a [F] {
    let stride = padded::<F>(len);
    let number = planes(C) * F::LANES;
    let count = tiles.len() / (len * number);
    let out = &mut out[..count * number * stride];
    out.fill(F::ZERO);
    let pairs = tiles.chunks_exact(len * number).zip(out.chunks_exact_mut(number * stride));
    for (tile, out) in pairs {
        for (n, z) in tile.chunks_exact(number).enumerate() {
            for lane in 0..F::LANES {
                let row = &mut out[lane * planes(C) * stride..][..planes(C) * stride];
                row[n] = z[lane];
                if C {
                    let im = z[F::LANES + lane];
                    row[stride + n] = if CONJ { im.negated() } else { im };
                }
            }
        }
    }
    out
}

/// out[m, n] += Σ x[m] y[n] over rows, where x contains tiles of numbers m, y is the transpose of
/// tiles of numbers n, and out is `[rows][planes][padded cols]`.
#[inline(always)]
pub(crate) fn accumulate<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    [rows, cols]: [usize; 2],
    x: &[F],
    y: &[F],
    out: &mut [F],
) {
    let stride = padded::<F>(cols);
    let half = F::LANES / 2;
    let mut first = 0;
    while first + F::LANES <= stride {
        for at in (first..first + F::LANES).step_by(t.width()) {
            accumulate_lanes::<T, F, C>(t, [rows, stride, at], x, y, out);
        }
        first += F::LANES;
    }
    if first < stride {
        let h = t.half();
        for at in (first..first + half).step_by(h.width()) {
            accumulate_lanes::<T::Half, F, C>(h, [rows, stride, at], x, y, out);
        }
    }
}

/// [`accumulate`] for the lanes starting at `at`.
#[inline(always)]
fn accumulate_lanes<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    [rows, stride, at]: [usize; 3],
    x: &[F],
    y: &[F],
    out: &mut [F],
) {
    let mut m = 0;
    if t.four_rows() {
        while m + 4 <= rows {
            accumulate_block::<T, F, C, 4>(t, [rows, stride, at], m, x, y, out);
            m += 4;
        }
    }
    while m + 2 <= rows {
        accumulate_block::<T, F, C, 2>(t, [rows, stride, at], m, x, y, out);
        m += 2;
    }
    if m < rows {
        accumulate_block::<T, F, C, 1>(t, [rows, stride, at], m, x, y, out);
    }
}

/// [`accumulate_lanes`] for `M` numbers, starting with number `first`.
#[inline(always)]
fn accumulate_block<T: Vectors<F>, F: Real, const C: bool, const M: usize>(
    t: T,
    [rows, stride, at]: [usize; 3],
    first: usize,
    x: &[F],
    y: &[F],
    out: &mut [F],
) {
    let number = planes(C) * F::LANES;
    let out = &mut out[first * planes(C) * stride..][..M * planes(C) * stride];
    let mut acc = [zero::<T, F>(t); M];
    for (acc, out) in acc.iter_mut().zip(out.chunks_exact(planes(C) * stride)) {
        acc.0 = t.load(&out[at..]);
        if C {
            acc.1 = t.load(&out[stride + at..]);
        }
    }
    let tiles = x.chunks_exact(rows * number).zip(y.chunks_exact(number * stride));
    for (x, y) in tiles {
        let x = &x[first * number..][..M * number];
        for (lane, y) in y.chunks_exact(planes(C) * stride).enumerate().take(F::LANES) {
            let re = t.load(&y[at..]);
            let y = (re, if C { t.load(&y[stride + at..]) } else { re });
            broadcast_mul_add::<T, F, C, false, M>(
                t,
                #[inline(always)]
                |m| {
                    let x = &x[m * number..][..number];
                    (x[lane], if C { x[F::LANES + lane] } else { F::ZERO })
                },
                y,
                &mut acc,
            );
        }
    }
    for (acc, out) in acc.into_iter().zip(out.chunks_exact_mut(planes(C) * stride)) {
        t.store(&mut out[at..], acc.0);
        if C {
            t.store(&mut out[stride + at..], acc.1);
        }
    }
}

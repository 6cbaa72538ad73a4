//! The reverse of the kernels for mixed messages.
//!
//! The reverse pass gives each matrix M its environment E, which is defined by dℓ = ½ Σ E[k,k']
//! dM[k,k'] for a real loss ℓ. It is Hermitian. If M = v vᴴ, the gradient with respect to v is E*
//! v. If M = B N Bᴴ, the gradient with respect to B is E* B N, and the environment of N is Bᵀ E B*.

use super::Kernels;
use super::block::{Part, conj, inner_products, matrix_times, store};
use super::entry::enter;
use super::mixed::mirror;
use super::reverse::{accumulate, sum_input, transpose};
use crate::gradient::{WeightGradient, padded};
use crate::lanes::{Real, planes};
use crate::vector::Vectors;
use crate::weight::{PackedWeight, Panels};

impl<F: Real, const C: bool> Kernels<F, C> {
    /// The scratch for [`block_reverse`](Self::block_reverse) with a B of k × `len`.
    pub fn block_reverse_scratch([k, len]: [usize; 2]) -> usize {
        3 * k * len
    }

    /// The reverse of [`outer_self`](Self::outer_self) or, with an M, of
    /// [`sandwich`](Self::sandwich). Given the environment of B M Bᴴ, computes the gradient with
    /// respect to B, which is k × `len`, and the environment of M if requested.
    pub fn block_reverse(
        &self,
        [k, len]: [usize; 2],
        [e, b]: [&[F]; 2],
        m: Option<&[F]>,
        scratch: &mut [F],
        gb: &mut [F],
        em: Option<&mut [F]>,
    ) {
        Self::check([(e.len(), k * k), (b.len(), k * len), (gb.len(), k * len)]);
        Self::check_matrices(len, m, em.as_deref());
        let scratch = Self::scratch(scratch, Self::block_reverse_scratch([k, len]));
        enter!(self.simd, block_reverse, [k, len], [e, b], m, scratch, gb, em);
    }

    /// The reverse of [`kron_left`](Self::kron_left) for its input: `ga[i] += Σₖⱼ conj(W[k,i,j])
    /// g[k,j]`.
    pub fn kron_left_reverse(&self, w: &PackedWeight<F>, g: &[F], ga: &mut [F]) {
        let [k, k1, k2] = Self::shape(w, &w.right);
        Self::check([(g.len(), k * k2), (ga.len(), k1)]);
        enter!(self.simd, batch_input, &w.right, g, ga);
    }

    /// The reverse of [`kron_right`](Self::kron_right) for its input: `gb[j] += Σₖᵢ conj(W[k,i,j])
    /// g[k,i]`.
    pub fn kron_right_reverse(&self, w: &PackedWeight<F>, g: &[F], gb: &mut [F]) {
        let [k, k1, k2] = Self::shape(w, &w.left);
        Self::check([(g.len(), k * k1), (gb.len(), k2)]);
        enter!(self.simd, batch_input, &w.left, g, gb);
    }

    /// `grad[k,i,j] += Σ g[k,i] conj(b[j])` over all rows of a tile. For
    /// [`kron_left`](Self::kron_left), pass a gradient whose last two indices are swapped.
    pub fn kron_right_gradient(
        &self,
        g: &[F],
        b: &[F],
        scratch: &mut [F],
        grad: &mut WeightGradient<F>,
    ) {
        let [k, k1, k2] = grad.shape();
        assert_eq!((grad.is_complex(), grad.cols), (C, k2), "the gradient of a Kronecker weight");
        Self::check([(g.len(), k * k1), (b.len(), k2)]);
        let scratch = Self::scratch(scratch, Self::gradient_scratch(grad.shape()));
        let grad = &mut grad.data[..];
        enter!(self.simd, sum_weight, [k * k1, k2], [g, b], scratch, grad);
    }

    /// The scratch for [`mixed_reverse`](Self::mixed_reverse) with a weight of shape `[K, K₁, K₂]`.
    pub fn mixed_reverse_scratch([_, k1, k2]: [usize; 3]) -> usize {
        4 * k1 * k2 + k2 * padded::<F>(k2)
    }

    /// The reverse of [`mixed_mixed`](Self::mixed_mixed), where `None` stands for the identity.
    /// Given the environment E of W (M₁ ⊗ M₂) Wᴴ, computes those of M₁ and M₂ if requested, and
    /// `grad += Σ E* W (M₁ ⊗ M₂)` over all rows.
    pub fn mixed_reverse(
        &self,
        w: &PackedWeight<F>,
        e: &[F],
        m: [Option<&[F]>; 2],
        to: [Option<&mut [F]>; 2],
        scratch: &mut [F],
        grad: &mut WeightGradient<F>,
    ) {
        let shape = Self::shape(w, &w.reverse);
        for panels in [&w.left, &w.right] {
            Self::shape(w, panels);
        }
        assert_eq!((grad.is_complex(), grad.shape()), (C, shape), "the gradient of the weight");
        Self::check([(e.len(), shape[0] * shape[0])]);
        for ((m, to), len) in m.iter().zip(&to).zip([shape[1], shape[2]]) {
            Self::check_matrices(len, *m, to.as_deref());
        }
        let scratch = Self::scratch(scratch, Self::mixed_reverse_scratch(shape));
        let grad = &mut grad.data[..];
        enter!(self.simd, mixed_reverse, w, e, m, to, scratch, grad);
    }

    /// The scratch for [`congruence_reverse`](Self::congruence_reverse) with a K × K₁ weight.
    pub fn congruence_reverse_scratch([k, k1, _]: [usize; 3]) -> usize {
        k * k1 + k1 * padded::<F>(k1)
    }

    /// The reverse of [`congruence`](Self::congruence). Given the environment E of W M Wᴴ, computes
    /// that of M if requested, and `grad += Σ E* W M` over all rows.
    pub fn congruence_reverse(
        &self,
        w: &PackedWeight<F>,
        [e, m]: [&[F]; 2],
        to: Option<&mut [F]>,
        scratch: &mut [F],
        grad: &mut WeightGradient<F>,
    ) {
        let [k, k1, k2] = Self::shape(w, &w.reverse);
        assert_eq!((grad.is_complex(), grad.shape()), (C, [k, k1, k2]), "the weight's gradient");
        Self::check([(e.len(), k * k)]);
        Self::check_matrices(k1, Some(m), to.as_deref());
        let scratch = Self::scratch(scratch, Self::congruence_reverse_scratch([k, k1, k2]));
        let grad = &mut grad.data[..];
        enter!(self.simd, congruence_reverse, &w.reverse, [e, m], to, scratch, grad);
    }

    fn check_matrices(len: usize, m: Option<&[F]>, to: Option<&[F]>) {
        for matrix in [m, to].into_iter().flatten() {
            Self::check([(matrix.len(), len * len)]);
        }
    }
}

/// H = E* B, then gb = H M, and em[j,j'] = Σₖ B[k,j] conj(H[k,j']).
#[inline(always)]
pub(crate) fn block_reverse<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    [k, len]: [usize; 2],
    [e, b]: [&[F]; 2],
    m: Option<&[F]>,
    scratch: &mut [F],
    gb: &mut [F],
    em: Option<&mut [F]>,
) {
    let number = planes(C) * F::LANES;
    let (bt, rest) = scratch.split_at_mut(k * len * number);
    let (h, ht) = rest.split_at_mut(k * len * number);
    for row in 0..k {
        for n in 0..len {
            let from = &b[(row * len + n) * number..][..number];
            bt[(n * k + row) * number..][..number].copy_from_slice(from);
        }
    }
    let s = t.single();
    inner_products::<_, F, C, false>(
        s,
        [len, k, k],
        bt,
        e,
        #[inline(always)]
        |n, k_, at, z| {
            store::<_, F, C>(s, h, k_ * len + n, at, z);
            store::<_, F, C>(s, ht, n * k + k_, at, z);
        },
    );
    if let Some(m) = m {
        inner_products::<_, F, C, false>(
            s,
            [k, len, len],
            h,
            m,
            #[inline(always)]
            |k, n, at, z| store::<_, F, C>(s, gb, k * len + n, at, z),
        );
    } else {
        gb.copy_from_slice(h);
    }
    if let Some(em) = em {
        inner_products::<_, F, C, true>(
            s,
            [len, len, k],
            bt,
            ht,
            #[inline(always)]
            |i, j, at, z| store::<_, F, C>(s, em, i * len + j, at, z),
        );
        mirror::<T, F, C>(t, len, em);
    }
}

/// out[m] += Σ conj(w[b][m,n]) x[b,n] over a batch of matrices.
#[inline(always)]
pub(crate) fn batch_input<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: &Panels<F>,
    x: &[F],
    out: &mut [F],
) {
    for (batch, x) in x.chunks_exact(w.cols * planes(C) * F::LANES).enumerate() {
        sum_input::<T, F, C>(t, Part::all(w, batch), x, out);
    }
}

/// The part on and below the diagonal of e[n,m] += Σ conj(w[batch][m,i]) x[n,i].
#[inline(always)]
fn add_half<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    panels: &Panels<F>,
    batch: usize,
    x: &[F],
    e: &mut [F],
) {
    let number = planes(C) * F::LANES;
    let rows = x.chunks_exact(panels.cols * number).zip(e.chunks_exact_mut(panels.rows * number));
    for (n, (x, e)) in rows.enumerate() {
        sum_input::<T, F, C>(t, Part { panels, batch, rows: n + 1, first_col: 0 }, x, e);
    }
}

/// For each k: H[i,j] = Σₗ conj(e[k,l]) w[l,i,j], U[j,i'] = Σᵢ H[i,j] M₁[i,i'] and V[i,j'] = Σⱼ
/// H[i,j] M₂[j,j']. Then grad[k,i',j'] += Σⱼ U[j,i'] M₂[j,j'], e₁[i',i] += Σⱼ conj(w[k,i,j])
/// V[i',j] and e₂[j',j] += Σᵢ conj(w[k,i,j]) U[j',i].
#[inline(always)]
pub(crate) fn mixed_reverse<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: &PackedWeight<F>,
    e: &[F],
    [m1, m2]: [Option<&[F]>; 2],
    [mut e1, mut e2]: [Option<&mut [F]>; 2],
    scratch: &mut [F],
    grad: &mut [F],
) {
    let [k, k1, k2] = w.shape();
    let number = planes(C) * F::LANES;
    let size = k1 * k2 * number;
    let (h, rest) = scratch.split_at_mut(size);
    let (ht, rest) = rest.split_at_mut(size);
    let (u, rest) = rest.split_at_mut(size);
    let (v, right) = rest.split_at_mut(size);
    let right = match m2 {
        Some(m2) => transpose::<F, C, false>(k2, m2, right),
        None => identities::<F, C>(k2, right),
    };
    for e in [&mut e1, &mut e2].into_iter().flatten() {
        e.fill(F::ZERO);
    }
    let s = t.single();
    let rows = grad.chunks_exact_mut(k1 * planes(C) * padded::<F>(k2));
    for ((row, grad), e) in rows.enumerate().zip(e.chunks_exact(k * number)) {
        environment_times_weight::<T, F, C>(t, &w.reverse, [k1, k2], e, [h, ht]);
        let u = if let Some(m1) = m1 {
            inner_products::<_, F, C, false>(
                s,
                [k2, k1, k1],
                ht,
                m1,
                #[inline(always)]
                |j, i, at, z| store::<_, F, C>(s, u, j * k1 + i, at, z),
            );
            &*u
        } else {
            &*ht
        };
        accumulate::<T, F, C>(t, [k1, k2], u, right, grad);
        if let Some(e2) = &mut e2 {
            add_half::<T, F, C>(t, &w.left, row, u, e2);
        }
        let Some(e1) = &mut e1 else { continue };
        let v = if let Some(m2) = m2 {
            inner_products::<_, F, C, false>(
                s,
                [k1, k2, k2],
                h,
                m2,
                #[inline(always)]
                |i, j, at, z| store::<_, F, C>(s, v, i * k2 + j, at, z),
            );
            &*v
        } else {
            &*h
        };
        add_half::<T, F, C>(t, &w.right, row, v, e1);
    }
    for (e, len) in [(e1, k1), (e2, k2)] {
        if let Some(e) = e {
            mirror::<T, F, C>(t, len, e);
        }
    }
}

/// h[i,j] = Σₗ conj(e[l]) w[l,i,j] for a row e of an environment, and its transpose ht[j,i].
#[inline(always)]
fn environment_times_weight<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: &Panels<F>,
    [k1, k2]: [usize; 2],
    e: &[F],
    [h, ht]: [&mut [F]; 2],
) {
    for at in (0..F::LANES).step_by(t.width()) {
        let (mut i, mut j) = (0, 0);
        matrix_times::<T, F, C, true>(
            t,
            Part::all(w, 0),
            e,
            at,
            #[inline(always)]
            |n, z| {
                let z = conj::<T, F, C>(t, z);
                store::<T, F, C>(t, h, n, at, z);
                store::<T, F, C>(t, ht, j * k1 + i, at, z);
                j += 1;
                if j == k2 {
                    (i, j) = (i + 1, 0);
                }
            },
        );
    }
}

/// H[k,i] = Σₗ conj(e[k,l]) w[l,i]; then grad[k,i'] += Σᵢ H[k,i] M[i,i'] and to[i',i] = Σₖ
/// conj(w[k,i]) H[k,i'].
#[inline(always)]
pub(crate) fn congruence_reverse<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    w: &Panels<F>,
    [e, m]: [&[F]; 2],
    to: Option<&mut [F]>,
    scratch: &mut [F],
    grad: &mut [F],
) {
    let (k1, k) = (w.rows, w.cols);
    let number = planes(C) * F::LANES;
    let (ht, right) = scratch.split_at_mut(k * k1 * number);
    for (row, e) in e.chunks_exact(k * number).enumerate() {
        for at in (0..F::LANES).step_by(t.width()) {
            matrix_times::<T, F, C, true>(
                t,
                Part::all(w, 0),
                e,
                at,
                #[inline(always)]
                |i, z| store::<T, F, C>(t, ht, i * k + row, at, conj::<T, F, C>(t, z)),
            );
        }
    }
    accumulate::<T, F, C>(t, [k, k1], ht, transpose::<F, C, false>(k1, m, right), grad);
    if let Some(to) = to {
        to.fill(F::ZERO);
        add_half::<T, F, C>(t, w, 0, ht, to);
        mirror::<T, F, C>(t, k1, to);
    }
}

/// What [`transpose`] returns for an identity in every lane.
#[inline(always)]
fn identities<F: Real, const C: bool>(len: usize, out: &mut [F]) -> &[F] {
    let stride = padded::<F>(len);
    let out = &mut out[..len * planes(C) * F::LANES * stride];
    out.fill(F::ZERO);
    for (n, tile) in out.chunks_exact_mut(planes(C) * F::LANES * stride).enumerate() {
        for row in tile.chunks_exact_mut(planes(C) * stride) {
            row[n] = F::ONE;
        }
    }
    out
}

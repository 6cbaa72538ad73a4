//! The kernels: all hot loops.
//!
//! Each of them works on one tile (see [`lanes`](crate::lanes)), except those for weight gradients,
//! which take any number of consecutive tiles. The caller provides scratch memory; the
//! documentation gives its length in *numbers*, in the sense of [`tile_len`].
//!
//! Within a lane, each output is a fixed order of fused multiply-adds, the same at every
//! [`SimdLevel`](crate::SimdLevel). Lanes do not affect each other.

mod block;
pub(crate) mod entry;
mod gather;
mod mixed;
mod mixed_reverse;
mod pure;
mod reverse;
mod scale;

use std::marker::PhantomData;

use block::Part;
use entry::enter;

use crate::gradient::{WeightGradient, padded};
use crate::lanes::{Real, planes, tile_len};
use crate::weight::Panels;
use crate::{PackedWeight, Simd};

/// The kernels for real (`C` = false) or complex circuits, at one SIMD level.
///
/// In the formulas, W is the weight, a and b are vectors, and M₁ and M₂ are Hermitian matrices.
/// Every method panics if the length of a tile does not match the shape of the weight, or if the
/// weight is not packed for this use (see [`Uses`](crate::Uses)).
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernels<F, const C: bool> {
    simd: Simd,
    real: PhantomData<F>,
}

impl<F: Real, const C: bool> Kernels<F, C> {
    /// The kernels at the level of `simd`.
    pub fn new(simd: Simd) -> Self {
        Self { simd, real: PhantomData }
    }

    /// The instruction set in use.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// `out[n] = columns[at][n]`, with a separate `at` for each lane. The columns are stored one
    /// after another.
    pub fn gather(&self, columns: &[F], at: &[usize], out: &mut [F]) {
        assert_eq!(at.len(), F::LANES, "one column per lane");
        Self::check([(out.len(), out.len() / tile_len::<F>(C, 1))]);
        enter!(self.simd, gather, columns, at, out);
    }

    /// `out[k] = Σᵢ W[k,i] a[i]`.
    pub fn sum(&self, w: &PackedWeight<F>, a: &[F], out: &mut [F]) {
        let [k, k1, _] = Self::shape(w, &w.flat);
        Self::check([(a.len(), k1), (out.len(), k)]);
        enter!(self.simd, contract, &w.flat, a, out);
    }

    /// `out[k] = Σᵢⱼ W[k,i,j] a[i] b[j]`: Pure × Pure.
    pub fn kron_sum(&self, w: &PackedWeight<F>, a: &[F], b: &[F], out: &mut [F]) {
        let [k, k1, k2] = Self::shape(w, &w.left);
        Self::check([(a.len(), k1), (b.len(), k2), (out.len(), k)]);
        enter!(self.simd, kron_sum, &w.left, [a, b], out);
    }

    /// `out[n] = a[n] b[n]`, for vectors and for matrices (Mixed ∘ Mixed).
    pub fn hadamard(&self, a: &[F], b: &[F], out: &mut [F]) {
        let n = out.len() / tile_len::<F>(C, 1);
        Self::check([(a.len(), n), (b.len(), n), (out.len(), n)]);
        enter!(self.simd, hadamard, a, b, out);
    }

    /// `out[k,j] = Σᵢ W[k,i,j] a[i]`, a K×K₂ matrix: Pure on the left, anything on the right.
    pub fn kron_left(&self, w: &PackedWeight<F>, a: &[F], out: &mut [F]) {
        let [k, k1, k2] = Self::shape(w, &w.left);
        Self::check([(a.len(), k1), (out.len(), k * k2)]);
        enter!(self.simd, contract, &w.left, a, out);
    }

    /// `out[k,i] = Σⱼ W[k,i,j] b[j]`, a K×K₁ matrix: anything on the left, Pure on the right.
    pub fn kron_right(&self, w: &PackedWeight<F>, b: &[F], out: &mut [F]) {
        let [k, k1, k2] = Self::shape(w, &w.right);
        Self::check([(b.len(), k2), (out.len(), k * k1)]);
        enter!(self.simd, contract, &w.right, b, out);
    }

    /// out = B Bᴴ, where B is k × `len`.
    pub fn outer_self(&self, [k, len]: [usize; 2], b: &[F], out: &mut [F]) {
        Self::check([(b.len(), k * len), (out.len(), k * k)]);
        enter!(self.simd, outer_self, [k, len], b, out);
    }

    /// out = B M Bᴴ, where B is k × `len`; scratch: k · `len`.
    pub fn sandwich(
        &self,
        [k, len]: [usize; 2],
        [b, m]: [&[F]; 2],
        scratch: &mut [F],
        out: &mut [F],
    ) {
        Self::check([(b.len(), k * len), (m.len(), len * len), (out.len(), k * k)]);
        let scratch = Self::scratch(scratch, k * len);
        enter!(self.simd, sandwich, [k, len], [b, m], scratch, out);
    }

    /// The scratch for [`mixed_identity`](Self::mixed_identity),
    /// [`identity_mixed`](Self::identity_mixed) and [`mixed_mixed`](Self::mixed_mixed) with a
    /// weight of shape `[K, K₁, K₂]`.
    pub fn mixed_scratch([_, k1, k2]: [usize; 3]) -> usize {
        (k1 * k2).max(2 * mixed::chunk_rows(k1, k2) * k2)
    }

    /// `out[k,k'] = Σ W[k,i,j] M₁[i,i'] conj(W[k',i',j])`: Mixed × Identity.
    pub fn mixed_identity(&self, w: &PackedWeight<F>, m1: &[F], scratch: &mut [F], out: &mut [F]) {
        let [k, k1, _] = Self::shape(w, &w.left);
        Self::shape(w, &w.flat);
        Self::check([(m1.len(), k1 * k1), (out.len(), k * k)]);
        let scratch = Self::scratch(scratch, Self::mixed_scratch(w.shape()));
        enter!(self.simd, mixed_left, w, m1, None, scratch, out);
    }

    /// `out[k,k'] = Σ W[k,i,j] M₂[j,j'] conj(W[k',i,j'])`: Identity × Mixed.
    pub fn identity_mixed(&self, w: &PackedWeight<F>, m2: &[F], scratch: &mut [F], out: &mut [F]) {
        let [k, k1, k2] = Self::shape(w, &w.right);
        Self::shape(w, &w.flat);
        Self::check([(m2.len(), k2 * k2), (out.len(), k * k)]);
        let scratch = Self::scratch(scratch, k1 * k2);
        enter!(self.simd, mixed_right, w, m2, scratch, out);
    }

    /// `out[k,k'] = Σ W[k,i,j] M₁[i,i'] M₂[j,j'] conj(W[k',i',j'])`: Mixed × Mixed.
    pub fn mixed_mixed(
        &self,
        w: &PackedWeight<F>,
        [m1, m2]: [&[F]; 2],
        scratch: &mut [F],
        out: &mut [F],
    ) {
        let [k, k1, k2] = Self::shape(w, &w.left);
        Self::shape(w, &w.flat);
        Self::check([(m1.len(), k1 * k1), (m2.len(), k2 * k2), (out.len(), k * k)]);
        let scratch = Self::scratch(scratch, Self::mixed_scratch(w.shape()));
        enter!(self.simd, mixed_left, w, m1, Some(m2), scratch, out);
    }

    /// out = W M Wᴴ for a weight over one input; scratch: K · K₁.
    pub fn congruence(&self, w: &PackedWeight<F>, m: &[F], scratch: &mut [F], out: &mut [F]) {
        let [k, k1, _] = Self::shape(w, &w.flat);
        Self::check([(m.len(), k1 * k1), (out.len(), k * k)]);
        let scratch = Self::scratch(scratch, k * k1);
        enter!(self.simd, congruence, w, m, scratch, out);
    }

    /// `out[i,j] = v[i] conj(v[j]) M[i,j]`: Pure ∘ Mixed.
    pub fn hadamard_pure_mixed(&self, v: &[F], m: &[F], out: &mut [F]) {
        let k = v.len() / tile_len::<F>(C, 1);
        Self::check([(v.len(), k), (m.len(), k * k), (out.len(), k * k)]);
        enter!(self.simd, hadamard_pure_mixed, v, m, out);
    }

    /// `out = diag(|v[i]|²)`: Pure ∘ Identity.
    pub fn hadamard_pure_identity(&self, v: &[F], out: &mut [F]) {
        let k = v.len() / tile_len::<F>(C, 1);
        Self::check([(v.len(), k), (out.len(), k * k)]);
        enter!(self.simd, hadamard_identity, k, v, true, out);
    }

    /// `out = diag(M[i,i])` for a k × k matrix: Mixed ∘ Identity.
    pub fn hadamard_mixed_identity(&self, k: usize, m: &[F], out: &mut [F]) {
        Self::check([(m.len(), k * k), (out.len(), k * k)]);
        enter!(self.simd, hadamard_identity, k, m, false, out);
    }

    /// Multiplies each row by the power of two that scales its largest |re| or |im| to [1, 2), and
    /// adds the exponent that was removed to `log2_scale`, one per lane. Rows of zeros are
    /// unchanged.
    ///
    /// Numbers must be finite. If the largest part of a row is subnormal, the row is only scaled
    /// toward [1, 2).
    pub fn rescale(&self, tile: &mut [F], log2_scale: &mut [i64]) {
        self.rescale_some(tile, log2_scale, false);
    }

    /// Rescales only those rows whose largest part is beyond 2^±30: see [`rescale`](Self::rescale).
    /// Returns whether there were any.
    pub fn rescale_extreme(&self, tile: &mut [F], log2_scale: &mut [i64]) -> bool {
        self.rescale_some(tile, log2_scale, true)
    }

    fn rescale_some(&self, tile: &mut [F], log2_scale: &mut [i64], leave_moderate: bool) -> bool {
        Self::check([(tile.len(), tile.len() / tile_len::<F>(C, 1))]);
        assert_eq!(log2_scale.len(), F::LANES, "one scale per lane");
        enter!(self.simd, rescale, tile, log2_scale, leave_moderate)
    }

    /// Multiplies each row by its own factor, one per lane.
    pub fn scale(&self, tile: &mut [F], factors: &[F]) {
        Self::check([(tile.len(), tile.len() / tile_len::<F>(C, 1))]);
        assert_eq!(factors.len(), F::LANES, "one factor per lane");
        enter!(self.simd, scale, tile, factors);
    }

    /// The reverse of [`sum`](Self::sum) for its input: `ga[i] += Σₖ conj(W[k,i]) g[k]`.
    ///
    /// Gradients of a real loss ℓ are ∂ℓ/∂re + i ∂ℓ/∂im.
    pub fn sum_reverse(&self, w: &PackedWeight<F>, g: &[F], ga: &mut [F]) {
        let [k, k1, _] = Self::shape(w, &w.reverse);
        Self::check([(g.len(), k), (ga.len(), k1)]);
        let all = Part::all(&w.reverse, 0);
        enter!(self.simd, sum_input, all, g, ga);
    }

    /// The reverse of [`kron_sum`](Self::kron_sum) for its inputs: `ga[i] += Σₖⱼ conj(W[k,i,j]
    /// b[j]) g[k]` and `gb[j] += Σₖᵢ conj(W[k,i,j] a[i]) g[k]`.
    pub fn kron_sum_reverse(
        &self,
        w: &PackedWeight<F>,
        g: &[F],
        [a, b]: [&[F]; 2],
        [ga, gb]: [&mut [F]; 2],
    ) {
        let [k, k1, k2] = Self::shape(w, &w.reverse);
        Self::check([(g.len(), k), (a.len(), k1), (b.len(), k2), (ga.len(), k1), (gb.len(), k2)]);
        enter!(self.simd, kron_inputs, &w.reverse, g, [a, b], [ga, gb]);
    }

    /// The reverse of [`hadamard`](Self::hadamard) for one input: `ga[n] += g[n] conj(b[n])`.
    pub fn hadamard_reverse(&self, g: &[F], b: &[F], ga: &mut [F]) {
        let n = ga.len() / tile_len::<F>(C, 1);
        Self::check([(g.len(), n), (b.len(), n), (ga.len(), n)]);
        enter!(self.simd, hadamard_input, g, b, ga);
    }

    /// The scratch for the weight gradients of a weight of shape `[K, K₁, K₂]`.
    pub fn gradient_scratch([_, k1, k2]: [usize; 3]) -> usize {
        reverse::TILES * (padded::<F>(k1) + padded::<F>(k2))
    }

    /// `grad[k,i] += Σ g[k] conj(a[i])` over all rows of any number of tiles, which are stored one
    /// after another in `g` and `a`.
    ///
    /// Lanes without a row must contain zeros in `g` and finite numbers elsewhere.
    pub fn sum_gradient(&self, g: &[F], a: &[F], scratch: &mut [F], grad: &mut WeightGradient<F>) {
        let [k, k1, k2] = grad.shape();
        assert!(k2 == 1 && grad.cols == k1, "the gradient of a plain weight");
        let tiles = Self::tiles(g, k, grad.is_complex());
        Self::check([(a.len(), tiles * k1)]);
        let scratch = Self::scratch(scratch, Self::gradient_scratch(grad.shape()));
        let grad = &mut grad.data[..];
        enter!(self.simd, sum_weight, [k, k1], [g, a], scratch, grad);
    }

    /// `grad[k,i,j] += Σ g[k] conj(a[i] b[j])` over all rows of any number of tiles, which are
    /// stored one after another in `g`, `a` and `b`.
    ///
    /// Lanes without a row must contain zeros in `g` and finite numbers elsewhere. Up to four
    /// tiles, more tiles take less time per tile.
    pub fn kron_sum_gradient(
        &self,
        g: &[F],
        [a, b]: [&[F]; 2],
        scratch: &mut [F],
        grad: &mut WeightGradient<F>,
    ) {
        let [k, k1, k2] = grad.shape();
        assert_eq!(grad.cols, k2, "the gradient of a weight over a Kronecker product");
        let tiles = Self::tiles(g, k, grad.is_complex());
        Self::check([(a.len(), tiles * k1), (b.len(), tiles * k2)]);
        let scratch = Self::scratch(scratch, Self::gradient_scratch(grad.shape()));
        let shape = [k, k1, k2];
        let grad = &mut grad.data[..];
        enter!(self.simd, kron_weight, shape, [g, a, b], scratch, grad);
    }

    /// The shape of a weight, which must be packed for this use.
    fn shape(w: &PackedWeight<F>, panels: &Panels<F>) -> [usize; 3] {
        assert_eq!(w.is_complex(), C, "the weight and the kernels are both real or both complex");
        assert!(panels.is_packed(), "the weight is packed for this use");
        w.shape()
    }

    /// Checks that tiles contain the expected numbers.
    fn check<const N: usize>(tiles: [(usize, usize); N]) {
        for (len, numbers) in tiles {
            assert_eq!(len, tile_len::<F>(C, numbers), "length of a tile of {numbers} numbers");
        }
    }

    /// The number of tiles of `k` numbers.
    fn tiles(g: &[F], k: usize, complex: bool) -> usize {
        assert_eq!(complex, C, "the gradient and the kernels are both real or both complex");
        let tiles = g.len() / tile_len::<F>(C, k).max(planes(C));
        Self::check([(g.len(), tiles * k)]);
        tiles
    }

    /// The first `numbers` numbers of the scratch memory.
    fn scratch(scratch: &mut [F], numbers: usize) -> &mut [F] {
        let len = tile_len::<F>(C, numbers);
        assert!(scratch.len() >= len, "scratch of {numbers} numbers");
        &mut scratch[..len]
    }
}

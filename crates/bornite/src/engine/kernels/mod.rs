//! kernels

mod block;
mod pure;

use std::marker::PhantomData;

use super::lanes::{Real, tile_len};
use super::simd::dispatch;
use super::{PackedWeight, Simd};

/// The kernels
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernels<F, const C: bool> {
    simd: Simd,
    real: PhantomData<F>,
}

impl<F: Real, const C: bool> Kernels<F, C> {
    /// new
    pub fn new(simd: Simd) -> Self {
        Self { simd, real: PhantomData }
    }
    /// kron_sum
    pub fn kron_sum(&self, w: &PackedWeight<F>, a: &[F], b: &[F], out: &mut [F]) {
        let _ = tile_len::<F>(C, 1);
        dispatch!(self.simd, pure::kron_sum, [F, C], &w.left, [a, b], out);
    }
}

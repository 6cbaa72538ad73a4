//! A loop of nothing but fused multiply-adds: the upper limit that kernels are compared with.

use crate::kernels::entry::Entries;
use crate::vector::Vectors;
use crate::{Real, Simd};

/// The number of independent chains, enough to hide the latency of a multiply-add.
const CHAINS: usize = 10;

/// Runs `rounds` rounds of fused multiply-adds in registers. Returns how many it ran, each of which
/// is two floating-point operations, and a number that depends on all of them.
///
/// Time the call to measure the peak rate of one core.
pub fn fused_multiply_adds<F: Real>(simd: Simd, rounds: u64) -> (u64, f64) {
    <F as Entries<false>>::chains(simd, rounds)
}

#[inline(always)]
pub(crate) fn chains<T: Vectors<F>, F: Real, const C: bool>(token: T, rounds: u64) -> (u64, f64) {
    let t = token.single();
    let mut acc = [t.splat(F::ONE); CHAINS];
    let x = t.splat(std::hint::black_box(F::from_f64(0.999_999)));
    let y = t.splat(std::hint::black_box(F::from_f64(1e-6)));
    for _ in 0..rounds {
        for chain in &mut acc {
            *chain = t.fma(*chain, x, y);
        }
    }
    let mut lanes = [F::ZERO; 16];
    t.store(&mut lanes, acc.into_iter().fold(t.splat(F::ZERO), |sum, chain| t.add(sum, chain)));
    (rounds * (CHAINS * t.width()) as u64, lanes.iter().map(|x| x.to_f64()).sum())
}

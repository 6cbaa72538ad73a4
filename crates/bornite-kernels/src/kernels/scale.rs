//! Kernels that scale all numbers of a message.

use crate::lanes::{MAX_LANES, Real};
use crate::vector::Vectors;

/// Multiplies each lane, or only those whose largest part is not moderate, by a power of two that
/// scales it to [1, 2), and adds the exponent to `log2_scale`. Returns whether any lane was scaled.
#[inline(always)]
pub(crate) fn rescale<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    tile: &mut [F],
    log2_scale: &mut [i64],
    leave_moderate: bool,
) -> bool {
    let mut power = [F::ZERO; MAX_LANES];
    for at in (0..F::LANES).step_by(t.width()) {
        // Two chains hide the latency of a maximum.
        let mut max = [t.splat(F::ZERO); 2];
        for pair in tile.chunks(2 * F::LANES) {
            for (max, plane) in max.iter_mut().zip(pair.chunks_exact(F::LANES)) {
                *max = t.max(*max, t.abs(t.load(&plane[at..])));
            }
        }
        t.store(&mut power[at..], t.max(max[0], max[1]));
    }
    if leave_moderate && power.iter().all(|max| max.is_moderate()) {
        return false;
    }
    for (power, log2_scale) in power.iter_mut().zip(log2_scale.iter_mut()) {
        let is_left = leave_moderate && power.is_moderate();
        let (exponent, factor) = if is_left { (0, F::ONE) } else { power.exponent() };
        *power = factor;
        *log2_scale += i64::from(exponent);
    }
    scale::<T, F, C>(t, tile, &power);
    true
}

/// Multiplies each lane by its own factor.
#[inline(always)]
pub(crate) fn scale<T: Vectors<F>, F: Real, const C: bool>(t: T, tile: &mut [F], factors: &[F]) {
    for at in (0..F::LANES).step_by(t.width()) {
        let factor = t.load(&factors[at..]);
        for plane in tile.chunks_exact_mut(F::LANES) {
            let scaled = t.mul(t.load(&plane[at..]), factor);
            t.store(&mut plane[at..], scaled);
        }
    }
}

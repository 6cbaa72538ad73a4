//! Copies columns of a table into the lanes of a tile.

use crate::lanes::Real;
use crate::vector::Vectors;

/// tile[n][lane] = columns[at[lane]][n], where the columns are stored one after another.
#[inline(always)]
pub(crate) fn gather<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    columns: &[F],
    at: &[usize],
    tile: &mut [F],
) {
    let len = tile.len() / F::LANES;
    let column = |lane: usize| &columns[at[lane] * len..(at[lane] + 1) * len];
    let mut done = 0;
    for square in tile.chunks_exact_mut(F::LANES * F::LANES) {
        t.transpose(|lane| &column(lane)[done..], square);
        done += F::LANES;
    }
    let rest = &mut tile[done * F::LANES..];
    if !rest.is_empty() {
        for lane in 0..F::LANES {
            for (to, &x) in rest.chunks_exact_mut(F::LANES).zip(&column(lane)[done..]) {
                to[lane] = x;
            }
        }
    }
}

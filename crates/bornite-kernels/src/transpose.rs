//! Transposes of square blocks: as many rows of reals as a tile has lanes.

use pulp::Scalar;

/// The number of lanes of a tile of `f64`.
pub(crate) const F64: usize = 8;
/// The number of lanes of a tile of `f32`.
pub(crate) const F32: usize = 16;

/// `to[n][lane] = from[lane][n]`.
pub trait Transpose: Copy {
    #[inline(always)]
    fn transpose_f64(self, from: [&[f64; F64]; F64], to: &mut [[f64; F64]]) {
        plain(from, to);
    }
    #[inline(always)]
    fn transpose_f32(self, from: [&[f32; F32]; F32], to: &mut [[f32; F32]]) {
        plain(from, to);
    }
}

#[inline(always)]
fn plain<F: Copy, const N: usize>(from: [&[F; N]; N], to: &mut [[F; N]]) {
    for (lane, row) in from.into_iter().enumerate() {
        for (to, &x) in to.iter_mut().zip(row) {
            to[lane] = x;
        }
    }
}

impl Transpose for Scalar {}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Transpose for pulp::x86::V3 {}

/// Without `map` on arrays, because its closures are not compiled for the instruction set.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod avx512 {
    #[cfg(target_arch = "x86")]
    use std::arch::x86::{__m512, __m512d};
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64::{__m512, __m512d};

    use pulp::x86::V4;

    use super::{F32, F64, Transpose};

    impl Transpose for V4 {
        #[inline(always)]
        fn transpose_f64(self, from: [&[f64; F64]; F64], to: &mut [[f64; F64]]) {
            let [a, b, c, d] = [
                pairs(self, from[0], from[1]),
                pairs(self, from[2], from[3]),
                pairs(self, from[4], from[5]),
                pairs(self, from[6], from[7]),
            ];
            let even = quarters(self, [a[0], b[0], c[0], d[0]]);
            let odd = quarters(self, [a[1], b[1], c[1], d[1]]);
            for (n, to) in to.iter_mut().enumerate().take(F64) {
                *to = pulp::cast(if n % 2 == 0 { even[n / 2] } else { odd[n / 2] });
            }
        }

        #[inline(always)]
        fn transpose_f32(self, from: [&[f32; F32]; F32], to: &mut [[f32; F32]]) {
            let [a, b, c, d] = [
                fours(self, [from[0], from[1], from[2], from[3]]),
                fours(self, [from[4], from[5], from[6], from[7]]),
                fours(self, [from[8], from[9], from[10], from[11]]),
                fours(self, [from[12], from[13], from[14], from[15]]),
            ];
            for n in 0..4 {
                let columns = quarters(self, [a[n], b[n], c[n], d[n]]);
                for (to, column) in to.iter_mut().skip(n).step_by(4).zip(columns) {
                    *to = pulp::cast(column);
                }
            }
        }
    }

    /// Interleaves two rows: their even columns, and their odd columns.
    #[inline(always)]
    fn pairs(set: V4, a: &[f64; F64], b: &[f64; F64]) -> [__m512d; 2] {
        let (a, b): (__m512d, __m512d) = (pulp::cast(*a), pulp::cast(*b));
        [set.avx512f._mm512_unpacklo_pd(a, b), set.avx512f._mm512_unpackhi_pd(a, b)]
    }

    /// Interleaves four rows: for each n, column n of each quarter of the rows.
    #[inline(always)]
    fn fours(set: V4, [a, b, c, d]: [&[f32; F32]; 4]) -> [__m512d; 4] {
        let avx = set.avx512f;
        let (a, b): (__m512, __m512) = (pulp::cast(*a), pulp::cast(*b));
        let (c, d): (__m512, __m512) = (pulp::cast(*c), pulp::cast(*d));
        let ab: __m512d = pulp::cast(avx._mm512_unpacklo_ps(a, b));
        let cd: __m512d = pulp::cast(avx._mm512_unpacklo_ps(c, d));
        let ab_high: __m512d = pulp::cast(avx._mm512_unpackhi_ps(a, b));
        let cd_high: __m512d = pulp::cast(avx._mm512_unpackhi_ps(c, d));
        [
            avx._mm512_unpacklo_pd(ab, cd),
            avx._mm512_unpackhi_pd(ab, cd),
            avx._mm512_unpacklo_pd(ab_high, cd_high),
            avx._mm512_unpackhi_pd(ab_high, cd_high),
        ]
    }

    /// Transposes the 4 × 4 matrix of the quarters of four registers.
    #[inline(always)]
    fn quarters(set: V4, [a, b, c, d]: [__m512d; 4]) -> [__m512d; 4] {
        const LOW: i32 = 0b01_00_01_00;
        const HIGH: i32 = 0b11_10_11_10;
        const EVEN: i32 = 0b10_00_10_00;
        const ODD: i32 = 0b11_01_11_01;
        let avx = set.avx512f;
        let ab = avx._mm512_shuffle_f64x2::<LOW>(a, b);
        let cd = avx._mm512_shuffle_f64x2::<LOW>(c, d);
        let ab_high = avx._mm512_shuffle_f64x2::<HIGH>(a, b);
        let cd_high = avx._mm512_shuffle_f64x2::<HIGH>(c, d);
        [
            avx._mm512_shuffle_f64x2::<EVEN>(ab, cd),
            avx._mm512_shuffle_f64x2::<ODD>(ab, cd),
            avx._mm512_shuffle_f64x2::<EVEN>(ab_high, cd_high),
            avx._mm512_shuffle_f64x2::<ODD>(ab_high, cd_high),
        ]
    }
}

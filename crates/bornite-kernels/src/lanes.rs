//! Tiles: the layout of activations.
//!
//! A tile holds one message of [`Real::LANES`] rows of a batch. A vector of K numbers is
//! `[K][planes][LANES]` reals, where a real circuit has one plane and a complex circuit two (all
//! real parts of a number, then all its imaginary parts). A K×J matrix is K·J such numbers, row by
//! row: entry (i, j) is number i·J + j.

use std::fmt::Debug;

use bytemuck::Pod;
use num_complex::Complex64;

use crate::kernels::entry::Entries;
use crate::transpose::{F32, F64};
use crate::vector::Registers;

/// The type of the real numbers in the lanes: `f32` or `f64`.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialEq
    + PartialOrd
    + Send
    + Sync
    + Registers
    + Entries<false>
    + Entries<true>
    + Pod
    + 'static
{
    /// The number of rows in a tile: 8 or 16, the same on every machine.
    const LANES: usize;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// −self.
    #[must_use]
    fn negated(self) -> Self;
    /// The nearest number of this type.
    fn from_f64(x: f64) -> Self;
    /// Converts to `f64`, which is exact.
    fn to_f64(self) -> f64;
    /// For a finite `self` > 0, the exponent e and the power of two p = 2⁻ᵉ such that self · p is
    /// in [1, 2); (0, 1) for zero.
    ///
    /// Subnormal numbers count as the smallest normal one, and the power is clamped to the normal
    /// range. So such numbers are scaled toward [1, 2), but not into it.
    fn exponent(self) -> (i32, Self);
    /// Whether a non-negative number is zero or between 2⁻³⁰ and 2³⁰, so that products of a few
    /// such numbers keep their digits in either precision.
    #[inline(always)]
    fn is_moderate(self) -> bool {
        self == Self::ZERO
            || (self >= Self::from_f64(1.0 / MODERATE) && self <= Self::from_f64(MODERATE))
    }
}

/// 2³⁰.
const MODERATE: f64 = (1 << 30) as f64;

impl Real for f64 {
    const LANES: usize = F64;
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    #[inline(always)]
    fn negated(self) -> Self {
        -self
    }
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn exponent(self) -> (i32, Self) {
        // Zero gets the exponent of one. The clamp keeps 2⁻ᵉ normal.
        let biased =
            if self == 0.0 { 1023 } else { ((self.to_bits() >> 52) & 0x7ff).clamp(1, 2045) };
        (biased as i32 - 1023, f64::from_bits((2046 - biased) << 52))
    }
}

impl Real for f32 {
    const LANES: usize = F32;
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    #[inline(always)]
    fn negated(self) -> Self {
        -self
    }
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn exponent(self) -> (i32, Self) {
        let biased = if self == 0.0 { 127 } else { ((self.to_bits() >> 23) & 0xff).clamp(1, 253) };
        (biased.cast_signed() - 127, f32::from_bits((254 - biased) << 23))
    }
}

/// The largest number of lanes of any type.
pub const MAX_LANES: usize = F32;

/// The number of planes: 2 for complex numbers, otherwise 1.
pub const fn planes(complex: bool) -> usize {
    if complex { 2 } else { 1 }
}

/// The length of a tile of `numbers` numbers: K for a vector, K·J for a matrix.
pub const fn tile_len<F: Real>(complex: bool, numbers: usize) -> usize {
    numbers * planes(complex) * F::LANES
}

/// Sets number `n` of row `lane` of a tile. A real tile drops the imaginary part.
///
/// # Panics
/// If the tile has no such number or lane.
pub fn set<F: Real>(complex: bool, tile: &mut [F], n: usize, lane: usize, z: Complex64) {
    assert!(lane < F::LANES, "lane {lane} of {}", F::LANES);
    let at = n * planes(complex) * F::LANES + lane;
    tile[at] = F::from_f64(z.re);
    if complex {
        tile[at + F::LANES] = F::from_f64(z.im);
    }
}

/// Number `n` of row `lane` of a tile.
///
/// # Panics
/// If the tile has no such number or lane.
pub fn get<F: Real>(complex: bool, tile: &[F], n: usize, lane: usize) -> Complex64 {
    assert!(lane < F::LANES, "lane {lane} of {}", F::LANES);
    let at = n * planes(complex) * F::LANES + lane;
    let im = if complex { tile[at + F::LANES].to_f64() } else { 0.0 };
    Complex64::new(tile[at].to_f64(), im)
}

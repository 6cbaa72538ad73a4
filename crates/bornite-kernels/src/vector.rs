//! Registers, the abstraction that the inner loops are written in.
//!
//! A token stands for an instruction set and a number of lanes. [`One`] uses one register at a
//! time, [`Pair`] two. With sixteen registers of half a tile, the best block for weights times a
//! tile is two rows by a whole tile, and the best block for tiles times tiles is two by two of half
//! a tile.

use pulp::{Scalar, Simd};

use crate::lanes::Real;
use crate::transpose::{F32, F64, Transpose};

/// Operations on [`Vectors::width`] neighboring lanes. Each of them rounds once per lane.
pub(crate) trait Vectors<F: Real>: Copy {
    /// `width` reals.
    type V: Copy;
    /// The token for one register.
    type Single: Vectors<F>;
    /// The token for at most half a tile.
    type Half: Vectors<F>;

    /// The number of lanes processed at a time, which divides [`Real::LANES`].
    fn width(self) -> usize;
    /// Whether a block of four rows by `width` lanes fits into the registers; otherwise, blocks
    /// have two rows.
    fn four_rows(self) -> bool;
    fn single(self) -> Self::Single;
    fn half(self) -> Self::Half;
    fn splat(self, x: F) -> Self::V;
    fn load(self, from: &[F]) -> Self::V;
    fn store(self, to: &mut [F], v: Self::V);
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn neg(self, a: Self::V) -> Self::V;
    fn abs(self, a: Self::V) -> Self::V;
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// a b + c
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// c − a b
    fn fnma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `to[n][lane] = from(lane)[n]`, for as many n as a tile has lanes.
    fn transpose<'a>(self, from: impl Fn(usize) -> &'a [F], to: &mut [F])
    where
        F: 'a;
}

/// An instruction set, and the one to use for at most half a tile.
pub trait Halve: Simd + Transpose {
    /// The smaller instruction set, or the same one.
    type Half: Halve;
    fn halve(self) -> Self::Half;
}

impl Halve for Scalar {
    type Half = Self;
    #[inline(always)]
    fn halve(self) -> Self {
        self
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Halve for pulp::x86::V3 {
    type Half = Self;
    #[inline(always)]
    fn halve(self) -> Self {
        self
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Halve for pulp::x86::V4 {
    type Half = pulp::x86::V3;
    #[inline(always)]
    fn halve(self) -> Self::Half {
        *self
    }
}

/// The registers of an instruction set for this type of real number.
pub trait Registers: Sized {
    /// One register.
    type Reg<S: Halve>: Copy;

    fn lanes<S: Halve>() -> usize;
    fn load<S: Halve>(from: &[Self]) -> Self::Reg<S>;
    fn store<S: Halve>(to: &mut [Self], v: Self::Reg<S>);
    fn splat<S: Halve>(s: S, x: Self) -> Self::Reg<S>;
    fn add<S: Halve>(s: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Reg<S>;
    fn mul<S: Halve>(s: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Reg<S>;
    fn neg<S: Halve>(s: S, a: Self::Reg<S>) -> Self::Reg<S>;
    fn abs<S: Halve>(s: S, a: Self::Reg<S>) -> Self::Reg<S>;
    fn max<S: Halve>(s: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Reg<S>;
    fn fma<S: Halve>(s: S, a: Self::Reg<S>, b: Self::Reg<S>, c: Self::Reg<S>) -> Self::Reg<S>;
    fn fnma<S: Halve>(s: S, a: Self::Reg<S>, b: Self::Reg<S>, c: Self::Reg<S>) -> Self::Reg<S>;
    fn transpose<'a, S: Halve>(s: S, from: impl Fn(usize) -> &'a [Self], to: &mut [Self])
    where
        Self: 'a;
}

macro_rules! registers {
    (
        $real:ty, $v:ident, $lanes:ident, $load:ident, $store:ident, $splat:ident,
        [$($unary:ident $unary_of:ident)*] [$($binary:ident $binary_of:ident)*]
        [$($ternary:ident $ternary_of:ident)*] $transpose:ident $tile:ident
    ) => {
        impl Registers for $real {
            type Reg<S: Halve> = S::$v;

            #[inline(always)]
            fn lanes<S: Halve>() -> usize {
                S::$lanes
            }
            #[inline(always)]
            fn load<S: Halve>(from: &[Self]) -> S::$v {
                S::$load(&from[..S::$lanes]).0[0]
            }
            #[inline(always)]
            fn store<S: Halve>(to: &mut [Self], v: S::$v) {
                S::$store(&mut to[..S::$lanes]).0[0] = v;
            }
            #[inline(always)]
            fn splat<S: Halve>(s: S, x: Self) -> S::$v {
                s.$splat(x)
            }
            $(
                #[inline(always)]
                fn $unary<S: Halve>(s: S, a: S::$v) -> S::$v {
                    s.$unary_of(a)
                }
            )*
            $(
                #[inline(always)]
                fn $binary<S: Halve>(s: S, a: S::$v, b: S::$v) -> S::$v {
                    s.$binary_of(a, b)
                }
            )*
            $(
                #[inline(always)]
                fn $ternary<S: Halve>(s: S, a: S::$v, b: S::$v, c: S::$v) -> S::$v {
                    s.$ternary_of(a, b, c)
                }
            )*
            #[inline(always)]
            fn transpose<'a, S: Halve>(s: S, from: impl Fn(usize) -> &'a [Self], to: &mut [Self]) {
                let mut rows = [&[0.0; $tile]; $tile];
                for (lane, row) in rows.iter_mut().enumerate() {
                    *row = match from(lane).first_chunk() {
                        Some(row) => row,
                        None => unreachable!("as many numbers as lanes"),
                    };
                }
                s.$transpose(rows, to.as_chunks_mut::<$tile>().0);
            }
        }
    };
}

registers!(
    f64, f64s, F64_LANES, as_simd_f64s, as_mut_simd_f64s, splat_f64s,
    [neg neg_f64s abs abs_f64s] [add add_f64s mul mul_f64s max max_f64s]
    [fma mul_add_f64s fnma negate_mul_add_f64s] transpose_f64 F64
);
registers!(
    f32, f32s, F32_LANES, as_simd_f32s, as_mut_simd_f32s, splat_f32s,
    [neg neg_f32s abs abs_f32s] [add add_f32s mul mul_f32s max max_f32s]
    [fma mul_add_f32s fnma negate_mul_add_f32s] transpose_f32 F32
);

/// One register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct One<S>(pub(crate) S);

/// Two registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<S>(pub(crate) S);

impl<F: Real, S: Halve> Vectors<F> for One<S> {
    type V = F::Reg<S>;
    type Single = Self;
    type Half = One<S::Half>;

    #[inline(always)]
    fn width(self) -> usize {
        F::lanes::<S>()
    }
    #[inline(always)]
    fn four_rows(self) -> bool {
        true
    }
    #[inline(always)]
    fn single(self) -> Self {
        self
    }
    #[inline(always)]
    fn half(self) -> One<S::Half> {
        One(self.0.halve())
    }
    #[inline(always)]
    fn splat(self, x: F) -> Self::V {
        F::splat(self.0, x)
    }
    #[inline(always)]
    fn load(self, from: &[F]) -> Self::V {
        F::load::<S>(from)
    }
    #[inline(always)]
    fn store(self, to: &mut [F], v: Self::V) {
        F::store::<S>(to, v);
    }
    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        F::add(self.0, a, b)
    }
    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        F::mul(self.0, a, b)
    }
    #[inline(always)]
    fn neg(self, a: Self::V) -> Self::V {
        F::neg(self.0, a)
    }
    #[inline(always)]
    fn abs(self, a: Self::V) -> Self::V {
        F::abs(self.0, a)
    }
    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        F::max(self.0, a, b)
    }
    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        F::fma(self.0, a, b, c)
    }
    #[inline(always)]
    fn fnma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        F::fnma(self.0, a, b, c)
    }
    #[inline(always)]
    fn transpose<'a>(self, from: impl Fn(usize) -> &'a [F], to: &mut [F])
    where
        F: 'a,
    {
        F::transpose(self.0, from, to);
    }
}

impl<F: Real, S: Halve> Vectors<F> for Pair<S> {
    type V = [F::Reg<S>; 2];
    type Single = One<S>;
    type Half = One<S::Half>;

    #[inline(always)]
    fn width(self) -> usize {
        2 * F::lanes::<S>()
    }
    #[inline(always)]
    fn four_rows(self) -> bool {
        false
    }

    #[inline(always)]
    fn single(self) -> One<S> {
        One(self.0)
    }
    #[inline(always)]
    fn half(self) -> Self::Half {
        One(self.0.halve())
    }
    #[inline(always)]
    fn splat(self, x: F) -> Self::V {
        [F::splat(self.0, x); 2]
    }
    #[inline(always)]
    fn load(self, from: &[F]) -> Self::V {
        [F::load::<S>(from), F::load::<S>(&from[F::lanes::<S>()..])]
    }
    #[inline(always)]
    fn store(self, to: &mut [F], v: Self::V) {
        F::store::<S>(to, v[0]);
        F::store::<S>(&mut to[F::lanes::<S>()..], v[1]);
    }
    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        [F::add(self.0, a[0], b[0]), F::add(self.0, a[1], b[1])]
    }
    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        [F::mul(self.0, a[0], b[0]), F::mul(self.0, a[1], b[1])]
    }
    #[inline(always)]
    fn neg(self, a: Self::V) -> Self::V {
        [F::neg(self.0, a[0]), F::neg(self.0, a[1])]
    }
    #[inline(always)]
    fn abs(self, a: Self::V) -> Self::V {
        [F::abs(self.0, a[0]), F::abs(self.0, a[1])]
    }
    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        [F::max(self.0, a[0], b[0]), F::max(self.0, a[1], b[1])]
    }
    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        [F::fma(self.0, a[0], b[0], c[0]), F::fma(self.0, a[1], b[1], c[1])]
    }
    #[inline(always)]
    fn fnma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        [F::fnma(self.0, a[0], b[0], c[0]), F::fnma(self.0, a[1], b[1], c[1])]
    }
    #[inline(always)]
    fn transpose<'a>(self, from: impl Fn(usize) -> &'a [F], to: &mut [F])
    where
        F: 'a,
    {
        F::transpose(self.0, from, to);
    }
}

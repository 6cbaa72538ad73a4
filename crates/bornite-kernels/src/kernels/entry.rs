//! The entry points: a separate plain function for every loop and every type of number.
//!
//! They are neither generic nor inlined, so that their code is only in this crate.

use super::block::Part;
use super::{gather, mixed, mixed_reverse, pure, reverse, scale};
use crate::peak;
use crate::simd::{Simd, dispatch};
use crate::weight::{PackedWeight, Panels};

/// Declares the trait, and implements it for both precisions, real (`false`) and complex (`true`).
macro_rules! entries {
    (@trait $(fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $body:path;)*) => {
        /// The loops for one type of number; `C` is whether it is complex.
        pub trait Entries<const C: bool>: Sized {
            $(
                #[doc(hidden)]
                fn $name(simd: Simd, $($arg: $type),*) $(-> $result)?;
            )*
        }
    };
    (@implement $real:ty, $complex:literal,
        $(fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $body:path;)*) => {
        impl Entries<$complex> for $real {
            $(
                #[inline(never)]
                fn $name(simd: Simd, $($arg: $type),*) $(-> $result)? {
                    dispatch!(simd, $body, [$real, $complex], $($arg),*)
                }
            )*
        }
    };
    ($($all:tt)*) => {
        entries!(@trait $($all)*);
        entries!(@implement f32, false, $($all)*);
        entries!(@implement f32, true, $($all)*);
        entries!(@implement f64, false, $($all)*);
        entries!(@implement f64, true, $($all)*);
    };
}

entries! {
    fn gather(columns: &[Self], at: &[usize], out: &mut [Self]) = gather::gather;
    fn contract(w: &Panels<Self>, a: &[Self], out: &mut [Self]) = pure::contract;
    fn kron_sum(w: &Panels<Self>, inputs: [&[Self]; 2], out: &mut [Self]) = pure::kron_sum;
    fn hadamard(a: &[Self], b: &[Self], out: &mut [Self]) = pure::hadamard;
    fn outer_self(shape: [usize; 2], b: &[Self], out: &mut [Self]) = mixed::outer_self;
    fn sandwich(
        shape: [usize; 2],
        factors: [&[Self]; 2],
        scratch: &mut [Self],
        out: &mut [Self],
    ) = mixed::sandwich;
    fn mixed_left(
        w: &PackedWeight<Self>,
        m1: &[Self],
        m2: Option<&[Self]>,
        scratch: &mut [Self],
        out: &mut [Self],
    ) = mixed::mixed_left;
    fn mixed_right(
        w: &PackedWeight<Self>,
        m2: &[Self],
        scratch: &mut [Self],
        out: &mut [Self],
    ) = mixed::mixed_right;
    fn congruence(
        w: &PackedWeight<Self>,
        m: &[Self],
        scratch: &mut [Self],
        out: &mut [Self],
    ) = mixed::congruence;
    fn hadamard_pure_mixed(v: &[Self], m: &[Self], out: &mut [Self]) = mixed::hadamard_pure_mixed;
    fn hadamard_identity(
        k: usize,
        input: &[Self],
        is_vector: bool,
        out: &mut [Self],
    ) = mixed::hadamard_identity;
    fn rescale(
        tile: &mut [Self],
        log2_scale: &mut [i64],
        leave_moderate: bool,
    ) -> bool = scale::rescale;
    fn scale(tile: &mut [Self], factors: &[Self]) = scale::scale;
    fn sum_input(w: Part<'_, Self>, g: &[Self], ga: &mut [Self]) = reverse::sum_input;
    fn kron_inputs(
        w: &Panels<Self>,
        g: &[Self],
        inputs: [&[Self]; 2],
        gradients: [&mut [Self]; 2],
    ) = reverse::kron_inputs;
    fn hadamard_input(g: &[Self], b: &[Self], ga: &mut [Self]) = reverse::hadamard_input;
    fn sum_weight(
        shape: [usize; 2],
        tiles: [&[Self]; 2],
        scratch: &mut [Self],
        grad: &mut [Self],
    ) = reverse::sum_weight;
    fn kron_weight(
        shape: [usize; 3],
        tiles: [&[Self]; 3],
        scratch: &mut [Self],
        grad: &mut [Self],
    ) = reverse::kron_weight;
    fn block_reverse(
        shape: [usize; 2],
        factors: [&[Self]; 2],
        m: Option<&[Self]>,
        scratch: &mut [Self],
        gb: &mut [Self],
        em: Option<&mut [Self]>,
    ) = mixed_reverse::block_reverse;
    fn batch_input(w: &Panels<Self>, x: &[Self], out: &mut [Self]) = mixed_reverse::batch_input;
    fn mixed_reverse(
        w: &PackedWeight<Self>,
        e: &[Self],
        m: [Option<&[Self]>; 2],
        to: [Option<&mut [Self]>; 2],
        scratch: &mut [Self],
        grad: &mut [Self],
    ) = mixed_reverse::mixed_reverse;
    fn congruence_reverse(
        w: &Panels<Self>,
        factors: [&[Self]; 2],
        to: Option<&mut [Self]>,
        scratch: &mut [Self],
        grad: &mut [Self],
    ) = mixed_reverse::congruence_reverse;
    fn chains(rounds: u64) -> (u64, f64) = peak::chains;
}

/// Calls an entry point, real or complex depending on the constant `C` in scope.
macro_rules! enter {
    ($simd:expr, $name:ident, $($arg:expr),* $(,)?) => {{
        use $crate::kernels::entry::Entries;
        if C {
            <F as Entries<true>>::$name($simd, $($arg),*)
        } else {
            <F as Entries<false>>::$name($simd, $($arg),*)
        }
    }};
}
pub(crate) use enter;

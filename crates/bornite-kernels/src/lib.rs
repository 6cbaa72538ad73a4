//! The hot loops of [bornite](https://docs.rs/bornite): products of weights with the rows of a
//! batch, in SIMD lanes.
//!
//! This crate is an implementation detail of `bornite` and follows its version. It exists so that
//! the loops are compiled once for both precisions, real and complex, and every instruction set,
//! instead of again in every program and test.
//!
//! Activations are stored in *tiles* ([`lanes`]): the same number of a few rows side by side, with
//! separate real and imaginary parts. Weights are packed once ([`PackedWeight`]) and broadcast over
//! the lanes. All arithmetic is a fixed order of fused multiply-adds per lane ([`Kernels`]), so the
//! bits of a row depend neither on its neighbors nor on the SIMD level ([`Simd`]).

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched function is compiled for its instruction set"
)]

mod buffer;
mod gradient;
pub mod kernels;
mod kind;
pub mod lanes;
pub mod peak;
mod simd;
mod transpose;
mod vector;
mod weight;

pub use buffer::Buffer;
pub use gradient::WeightGradient;
pub use kernels::Kernels;
pub use kind::Kind;
pub use lanes::Real;
pub use num_complex::Complex64;
pub use simd::{Simd, SimdLevel};
pub use weight::{Dense, PackedWeight, Uses};

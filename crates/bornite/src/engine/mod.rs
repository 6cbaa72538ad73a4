//! The batched engine: rows of a batch in SIMD lanes.
//!
//! Activations live in *tiles* ([`lanes`]): the same number of a few rows side by side, real and
//! imaginary parts apart. Weights are packed once ([`PackedWeight`]) and broadcast over the lanes. All
//! arithmetic is a fixed order of fused multiply-adds per lane ([`Kernels`]), so that the bits of a
//! row depend neither on its neighbours nor on the batch size nor on the SIMD level ([`Simd`]).

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched function is compiled for its instruction set"
)]

mod buffer;
mod gradient;
pub mod kernels;
pub mod lanes;
pub mod peak;
mod simd;
mod vector;
mod weight;

pub use buffer::Buffer;
pub use gradient::WeightGradient;
pub use kernels::Kernels;
pub use lanes::Real;
pub use simd::{Simd, SimdLevel};
pub use weight::{PackedWeight, Uses};

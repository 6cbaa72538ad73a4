//! The kernels, compared with plain references.

mod buffer;
mod dense;
mod forward;
mod mixed_reverse;

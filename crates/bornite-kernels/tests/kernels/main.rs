//! The kernels against plain references.

mod buffer;
mod dense;
mod forward;
mod mixed_reverse;

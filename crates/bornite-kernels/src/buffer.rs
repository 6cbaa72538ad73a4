//! Memory for tiles.

use std::ops::{Deref, DerefMut};

use crate::lanes::Real;

/// The number of bytes in a cache line, which one plane of a tile fills exactly.
const LINE: usize = 64;

/// Reals that start at a cache line, so that no plane of a tile spans two lines.
///
/// Kernels accept any slice, but are up to a fifth faster on such a buffer.
#[derive(Debug)]
pub struct Buffer<F> {
    data: Vec<F>,
    start: usize,
    len: usize,
}

impl<F: Real> Buffer<F> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let data = vec![F::ZERO; len + LINE / size_of::<F>()];
        // If the alignment is impossible, the start is still in range.
        let start = data.as_ptr().align_offset(LINE).min(LINE / size_of::<F>());
        Self { data, start, len }
    }

    /// Grows to `len` reals if there are fewer. Existing numbers are kept.
    pub fn grow(&mut self, len: usize) {
        if self.len < len {
            let mut larger = Self::zeros(len);
            larger[..self.len].copy_from_slice(self);
            *self = larger;
        }
    }
}

impl<F: Real> Clone for Buffer<F> {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl<F> Deref for Buffer<F> {
    type Target = [F];

    fn deref(&self) -> &[F] {
        &self.data[self.start..self.start + self.len]
    }
}

impl<F> DerefMut for Buffer<F> {
    fn deref_mut(&mut self) -> &mut [F] {
        &mut self.data[self.start..self.start + self.len]
    }
}

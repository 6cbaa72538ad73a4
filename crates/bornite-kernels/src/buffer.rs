//! Memory for tiles.

use std::ops::{Deref, DerefMut};

use crate::lanes::Real;

/// Bytes in a cache line: a plane of a tile fills exactly one.
const LINE: usize = 64;

/// Reals that begin at a cache line, so that no plane of a tile lies across two.
///
/// Kernels take any slice; those in such a buffer are faster by up to a fifth.
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
        // Where no alignment can be promised the start is still in range.
        let start = data.as_ptr().align_offset(LINE).min(LINE / size_of::<F>());
        Self { data, start, len }
    }

    /// Makes room for `len` reals if there is less; what was there stays.
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

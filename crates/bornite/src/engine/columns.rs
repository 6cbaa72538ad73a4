//! The outputs of all input layers at every value, in one piece of memory.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::Buffer;
use super::lanes::Real;

/// The outputs of one input layer at every value of a finite domain: `[value][K][planes]`.
#[derive(Clone, Debug)]
pub(crate) struct Columns<F> {
    memory: Arc<Memory<F>>,
    range: Range<usize>,
}

/// Columns are most of the memory of a circuit with large domains, and are read in random order.
/// Pages of 2 MiB, if the system has them, save the time of looking up small pages.
#[derive(Debug)]
enum Memory<F> {
    Buffer(Buffer<F>),
    #[cfg(target_os = "linux")]
    Pages(memmap2::MmapMut),
}

/// The least number of bytes for which large pages are requested.
#[cfg(target_os = "linux")]
const MIN_LARGE_BYTES: usize = 1 << 22;

impl<F: Real> Memory<F> {
    fn zeros(len: usize) -> Self {
        #[cfg(target_os = "linux")]
        if len * size_of::<F>() >= MIN_LARGE_BYTES
            && let Ok(pages) = memmap2::MmapMut::map_anon(len * size_of::<F>())
        {
            // Small pages work too, if there are no large ones.
            let _ = pages.advise(memmap2::Advice::HugePage);
            return Self::Pages(pages);
        }
        Self::Buffer(Buffer::zeros(len))
    }

    fn as_slice(&self) -> &[F] {
        match self {
            Self::Buffer(buffer) => buffer,
            #[cfg(target_os = "linux")]
            Self::Pages(pages) => bytemuck::cast_slice(pages),
        }
    }

    fn as_mut_slice(&mut self) -> &mut [F] {
        match self {
            Self::Buffer(buffer) => buffer,
            #[cfg(target_os = "linux")]
            Self::Pages(pages) => bytemuck::cast_slice_mut(pages),
        }
    }
}

impl<F: Real> Columns<F> {
    /// The columns of one layer.
    pub(crate) fn new(numbers: &[F]) -> Self {
        let mut memory = Memory::zeros(numbers.len());
        memory.as_mut_slice().copy_from_slice(numbers);
        Self { memory: Arc::new(memory), range: 0..numbers.len() }
    }

    /// Moves the columns of all layers into one piece of memory, one after another.
    pub(crate) fn join<'a>(all: impl IntoIterator<Item = &'a mut Self>)
    where
        F: 'a,
    {
        let all: Vec<&mut Self> = all.into_iter().collect();
        let place = |columns: &Self| columns.len().next_multiple_of(F::LANES);
        let mut memory = Memory::zeros(all.iter().map(|columns| place(columns)).sum());
        let mut rest = memory.as_mut_slice();
        for columns in &all {
            let (to, after) = rest.split_at_mut(place(columns));
            to[..columns.len()].copy_from_slice(columns);
            rest = after;
        }
        let memory = Arc::new(memory);
        let mut start = 0;
        for columns in all {
            let range = start..start + columns.len();
            start += place(columns);
            *columns = Self { memory: memory.clone(), range };
        }
    }
}

impl<F: Real> Deref for Columns<F> {
    type Target = [F];

    fn deref(&self) -> &[F] {
        &self.memory.as_slice()[self.range.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_same_in_one_piece() {
        // A small size, and one for which large pages are requested.
        for len in [3, 300_000] {
            let numbers =
                |seed: usize| -> Vec<f64> { (seed..seed + len).map(|x| x as f64).collect() };
            let mut all: Vec<Columns<f64>> = (0..3).map(|n| Columns::new(&numbers(n))).collect();
            Columns::join(&mut all);
            for (n, columns) in all.iter().enumerate() {
                assert_eq!(**columns, *numbers(n));
                assert_eq!(columns.as_ptr() as usize % 64, 0);
            }
        }
        Columns::<f64>::join([]);
    }
}

//! The gradient of a step as a sum over chunks of rows, in an order that does not depend on who
//! holds them.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::Shifts;
use super::processor::{emphasis, row_gradient, shifted};
use crate::engine::Batch;
use crate::learn::objective::Objective;
use crate::learn::options::FitOptions;
use crate::learn::pass::{Memory, Workspace};
use crate::linalg::{Matrix, Scalar};
use crate::program::Program;

/// The part of some rows in the mean objective of a step, and in its gradient by every weight.
#[derive(Debug)]
pub(in crate::learn) struct Sum<T> {
    pub(in crate::learn) mean: f64,
    pub(in crate::learn) gradients: Vec<Matrix<T>>,
}

impl<T: Scalar> Sum<T> {
    fn plus(mut self, other: &Self) -> Self {
        self.mean += other.mean;
        for (sum, other) in self.gradients.iter_mut().zip(&other.gradients) {
            sum.data_mut().iter_mut().zip(other.data()).for_each(|(sum, &x)| *sum += x);
        }
        self
    }
}

/// The sum over some shards: the known one, or the sum of both halves. So ranges of shards that are
/// nodes of this binary tree can be summed by whoever holds all of them. `None` if the shards have
/// no rows in the step.
pub(in crate::learn) fn total<T: Scalar>(
    shards: Range<usize>,
    known: &(impl Fn(&Range<usize>) -> Option<Option<Sum<T>>> + Sync),
) -> Option<Sum<T>> {
    if let Some(sum) = known(&shards) {
        return sum;
    }
    let middle = shards.start + shards.len() / 2;
    let first = || total(shards.start..middle, known);
    match rayon::join(first, || total(middle..shards.end, known)) {
        (Some(a), Some(b)) => Some(a.plus(&b)),
        (a, b) => a.or(b),
    }
}

/// The rows of a step from one shard.
#[derive(Clone, Debug, Default)]
pub(in crate::learn) struct Chunk {
    /// The indices of the rows in memory.
    pub(in crate::learn) rows: Vec<usize>,
    /// The positions that they move to, for shifted images: see [`Shifts`].
    pub(in crate::learn) places: Vec<usize>,
}

/// Everything that is needed to sum chunks.
#[derive(Debug)]
pub(in crate::learn) struct SumContext<'a, T> {
    pub(in crate::learn) program: &'a Program,
    pub(in crate::learn) weights: &'a [&'a Matrix<T>],
    pub(in crate::learn) workspace: &'a Workspace<f32>,
    /// The memory of finished passes, for reuse.
    pub(in crate::learn) memories: &'a Mutex<Vec<Memory<f32>>>,
    pub(in crate::learn) options: &'a FitOptions,
    /// The weight of a row.
    pub(in crate::learn) weight: f64,
}

impl<T: Scalar> SumContext<'_, T> {
    /// The sum over the rows of a chunk; `None` if there are none.
    pub(in crate::learn) fn sum<const C: bool>(
        &self,
        rows: &Batch,
        chunk: &Chunk,
    ) -> Option<Sum<T>> {
        if chunk.rows.is_empty() {
            return None;
        }
        let options = self.options;
        let rows = match options.shifts {
            Some(image) => {
                shifted(rows, &chunk.rows, &Shifts { image, places: chunk.places.clone() })
            }
            None => rows.select(&chunk.rows),
        };
        let all: Vec<usize> = (0..rows.len()).collect();
        let rest = (!options.target.is_empty()).then(|| rows.without(&options.target));
        let memories = || self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        let mut memory = memories().pop().unwrap_or_default();
        let (mean, others) =
            Objective::new(self.program, self.weights.to_vec(), options.parameterization)
                .emphasizing(emphasis(rest.as_ref(), options))
                .reverse::<f32, C>(&rows, &all, self.weight, self.workspace, &mut memory);
        let gradient = |(n, w): (usize, &&Matrix<T>)| {
            let shape = [w.rows(), w.cols()];
            row_gradient::<T, C>(self.program, &memory, others.as_deref(), n, shape)
        };
        let gradients = self.weights.iter().enumerate().map(gradient).collect();
        memories().push(memory);
        Some(Sum { mean, gradients })
    }
}

//! The gradient of a step as a sum over chunks of its rows, in an order that does not depend on who holds them.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::Shifts;
use super::processor::{emphasis, moved, of_rows};
use crate::engine::Batch;
use crate::learn::objective::Objective;
use crate::learn::options::FitOptions;
use crate::learn::pass::{Memory, Workspace};
use crate::linalg::{Matrix, Scalar};
use crate::program::Program;

/// What some rows give to the objective of a step, and to its gradient by every weight.
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

/// The sum over some shards: that of the first half and that of the second, as long as it is not given. Neighbors, as many as a power of
/// two, are added up by whoever holds all of them. `None` if none of them has a row in the step.
pub(in crate::learn) fn total<T: Scalar>(
    shards: Range<usize>,
    given: &(impl Fn(&Range<usize>) -> Option<Option<Sum<T>>> + Sync),
) -> Option<Sum<T>> {
    if let Some(sum) = given(&shards) {
        return sum;
    }
    let middle = shards.start + shards.len() / 2;
    let first = || total(shards.start..middle, given);
    match rayon::join(first, || total(middle..shards.end, given)) {
        (Some(a), Some(b)) => Some(a.plus(&b)),
        (a, b) => a.or(b),
    }
}

/// The rows of a step that are of one shard.
#[derive(Clone, Debug, Default)]
pub(in crate::learn) struct Chunk {
    /// Their places among the rows at hand.
    pub(in crate::learn) rows: Vec<usize>,
    /// Where each of them moves to, if they are images that move.
    pub(in crate::learn) places: Vec<usize>,
}

/// What chunks are summed with.
#[derive(Debug)]
pub(in crate::learn) struct Summing<'a, T> {
    pub(in crate::learn) program: &'a Program,
    pub(in crate::learn) weights: &'a [&'a Matrix<T>],
    pub(in crate::learn) workspace: &'a Workspace<f32>,
    /// Of passes that are over.
    pub(in crate::learn) memories: &'a Mutex<Vec<Memory<f32>>>,
    pub(in crate::learn) options: &'a FitOptions,
    /// What a row counts for.
    pub(in crate::learn) weight: f64,
}

impl<T: Scalar> Summing<'_, T> {
    /// What these rows give.
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
                moved(rows, &chunk.rows, &Shifts { image, places: chunk.places.clone() })
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
            of_rows::<T, C>(self.program, &memory, others.as_deref(), n, shape)
        };
        let gradients = self.weights.iter().enumerate().map(gradient).collect();
        memories().push(memory);
        Some(Sum { mean, gradients })
    }
}

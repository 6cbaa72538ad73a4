//! The upward pass on blocks of rows: log p(evidence) of every row.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::batch::Batch;
use super::combine::{Contraction, Direction, contract, hadamard};
use super::lanes::Real;
use super::message::{Message, trace};
use super::plan::Plan;
use super::workspace::Workspace;
use crate::program::StepKind;
use crate::schedule::{Places, Schedule};

/// The maximum number of rows in a block.
pub(super) const BLOCK: usize = 256;

/// The steps of a region, its message, and log₂ of the factor that has been divided out of each
/// row's p.
type RegionMessage<F> = (Range<usize>, Message<F>, Vec<i64>);

/// Rows of a batch that are processed together.
#[derive(Debug)]
pub(super) struct Block<'a> {
    rows: &'a Batch,
    first: usize,
    len: usize,
    schedule: Schedule,
}

impl<F: Real, const C: bool> Plan<F, C> {
    /// Computes log p(evidence) of every row; −∞ if it is impossible.
    ///
    /// Threads share the rows or, if there are few, the regions of the circuit. The bits of a row
    /// depend on neither.
    pub(crate) fn log_marginals(&self, rows: &Batch) -> Vec<f64> {
        let mut out = vec![0.0; rows.len()];
        let regions = self.regions(rows.len());
        let all = 0..self.program.steps().len();
        if regions.is_empty() {
            let len = block_len::<F>(rows.len());
            let blocks = out.par_chunks_mut(len).enumerate();
            blocks.for_each_init(
                || self.pool.lend(),
                |ws, (n, out)| {
                    let block = self.block(rows, (n * len, out.len()), ws);
                    let root = self.climb(all.clone(), Vec::new(), &block, ws);
                    Self::log_traces(&root, out, &ws.log2);
                    ws.give(root);
                },
            );
        } else {
            let mut ws = self.pool.lend();
            for (n, out) in out.chunks_mut(BLOCK).enumerate() {
                let block = self.block(rows, (n * BLOCK, out.len()), &mut ws);
                // The messages of regions are returned to the workspace of the output, so their
                // memory comes from there too.
                let memory: Vec<_> = regions.iter().map(|_| ws.spare()).collect();
                let parts = regions.par_iter().zip(memory).map_init(
                    || self.pool.lend(),
                    |ws, (steps, memory)| {
                        ws.give(memory);
                        let message = self.climb(steps.clone(), Vec::new(), &block, ws);
                        (steps.clone(), message, std::mem::take(&mut ws.log2))
                    },
                );
                let parts = parts.collect();
                let root = self.climb(all.clone(), parts, &block, &mut ws);
                Self::log_traces(&root, out, &ws.log2);
                ws.give(root);
            }
        }
        out
    }

    /// Schedules `len` rows, starting with row `first`.
    pub(super) fn block<'a>(
        &self,
        rows: &'a Batch,
        (first, len): (usize, usize),
        ws: &mut Workspace<F>,
    ) -> Block<'a> {
        ws.begin(len);
        let schedule = if rows.has_missing() {
            let cell = |row: usize, variable: usize| rows.kind(first + row, variable);
            Schedule::new(&self.program, &mut ws.planner, cell)
        } else {
            Schedule::complete(&mut ws.planner)
        };
        Block { rows, first, len, schedule }
    }

    /// Computes the message of the last of these steps, which must include everything below it.
    /// `parts` contains the messages of regions that have already been computed.
    fn climb(
        &self,
        steps: Range<usize>,
        parts: Vec<RegionMessage<F>>,
        block: &Block<'_>,
        ws: &mut Workspace<F>,
    ) -> Message<F> {
        ws.begin(block.len);
        let mut parts = parts.into_iter().peekable();
        let mut messages: Vec<Option<Message<F>>> = Vec::with_capacity(steps.len());
        while steps.start + messages.len() < steps.end {
            let index = steps.start + messages.len();
            if let Some((region, message, log2)) = parts.next_if(|part| part.0.start == index) {
                ws.log2.iter_mut().zip(log2).for_each(|(sum, log2)| *sum += log2);
                messages.resize_with(region.end - steps.start - 1, || None);
                messages.push(Some(message));
                continue;
            }
            let input = |n: usize| &messages[n - steps.start];
            let message = self.step_message(index, block, input, ws);
            for &input in self.program.steps()[index].inputs() {
                if let Some(message) = messages[input - steps.start].take() {
                    ws.give(message);
                }
            }
            messages.push(Some(message));
        }
        match messages.pop().flatten() {
            Some(root) => root,
            None => unreachable!("the last step has a message"),
        }
    }

    /// Computes the message of a step, given those of its inputs.
    pub(super) fn step_message<'a>(
        &self,
        index: usize,
        block: &Block<'_>,
        messages: impl Fn(usize) -> &'a Option<Message<F>>,
        ws: &mut Workspace<F>,
    ) -> Message<F>
    where
        F: 'a,
    {
        let step = &self.program.steps()[index];
        let places = block.schedule.at(index);
        let StepKind::Leaf { variable, .. } = step.kind else {
            return self.inner_message(index, places, messages, ws);
        };
        let Block { rows, first, len, .. } = *block;
        let mut cells = std::mem::take(&mut ws.cells);
        cells.resize(len, 0.0);
        rows.read(variable, first..first + len, &mut cells);
        let part = |row: u32| rows.part(first + row as usize, variable);
        let message = self.leaf(step.leaves.start).message(&self.kernels, places, &cells, part, ws);
        ws.cells = cells;
        message
    }

    /// Computes the message of a step that is not a leaf, with its rows in these places.
    pub(super) fn inner_message<'a>(
        &self,
        index: usize,
        places: &Arc<Places>,
        messages: impl Fn(usize) -> &'a Option<Message<F>>,
        ws: &mut Workspace<F>,
    ) -> Message<F>
    where
        F: 'a,
    {
        let input = |n: usize| match messages(n) {
            Some(message) => message,
            None => unreachable!("inputs come first and are received once"),
        };
        let by = || Contraction { weight: self.weight(index), direction: Direction::Up };
        match &self.program.steps()[index].kind {
            StepKind::Leaf { .. } => unreachable!("a leaf has no inputs"),
            StepKind::Kronecker { inputs: [a, b], .. } => {
                contract(&self.kernels, &by(), places, (input(*a), Some(input(*b))), ws)
            }
            StepKind::Hadamard { inputs: [a, b] } => {
                hadamard(&self.kernels, places, [input(*a), input(*b)], ws)
            }
            StepKind::Sum { input: a, .. } => {
                contract(&self.kernels, &by(), places, (input(*a), None), ws)
            }
        }
    }

    /// The logarithm of the trace of each row's message at the output.
    pub(super) fn log_traces(root: &Message<F>, out: &mut [f64], log2: &[i64]) {
        for row in 0..root.len() {
            let p = trace(C, root.kind(row), root.width, root.place(C, row));
            out[row] = p.ln() + log2[row] as f64 * std::f64::consts::LN_2;
        }
    }
}

/// The number of rows in a block: few enough that all threads have work, in whole tiles.
pub(crate) fn block_len<F: Real>(rows: usize) -> usize {
    let share = rows.div_ceil(rayon::current_num_threads().max(1));
    share.next_multiple_of(F::LANES).clamp(F::LANES, BLOCK)
}

//! The upward pass on blocks of rows: log p(evidence) of every row.

use std::ops::Range;

use rayon::prelude::*;

use super::batch::Batch;
use super::combine::{Contraction, Direction, contract, hadamard};
use super::lanes::Real;
use super::message::Message;
use super::plan::Plan;
use super::workspace::Workspace;
use crate::algebra::Kind;
use crate::program::StepKind;

/// The most rows that are worked on together.
pub(super) const BLOCK: usize = 256;

/// The steps of a region, its message, and log₂ of what has been divided out of each row's p there.
type RegionMessage<F> = (Range<usize>, Message<F>, Vec<i64>);

impl<F: Real, const C: bool> Plan<F, C> {
    /// log p(evidence) of every row; −∞ where it is impossible.
    ///
    /// Threads share the rows, or, where these are few, the regions of the circuit. A row's bits depend on neither.
    pub(crate) fn log_marginals(&self, rows: &Batch) -> Vec<f64> {
        let mut out = vec![0.0; rows.len()];
        let regions = self.regions(rows.len());
        if regions.is_empty() {
            let block = block_len::<F>(rows.len());
            let blocks = out.par_chunks_mut(block).enumerate();
            blocks.for_each_init(
                || self.pool.lend(),
                |ws, (n, out)| {
                    let root = self.climb(
                        0..self.program.steps().len(),
                        Vec::new(),
                        rows,
                        n * block,
                        out.len(),
                        ws,
                    );
                    Self::close(&root, out, &ws.log2);
                    ws.give(root);
                },
            );
        } else {
            let mut ws = self.pool.lend();
            for (n, out) in out.chunks_mut(BLOCK).enumerate() {
                let range = (n * BLOCK, out.len());
                // A region's message stays with the output's workspace: its memory comes from there.
                let memory: Vec<_> = regions.iter().map(|_| ws.spare()).collect();
                let parts = regions.par_iter().zip(memory).map_init(
                    || self.pool.lend(),
                    |ws, (steps, memory)| {
                        ws.give(memory);
                        let message =
                            self.climb(steps.clone(), Vec::new(), rows, range.0, range.1, ws);
                        (steps.clone(), message, std::mem::take(&mut ws.log2))
                    },
                );
                let parts = parts.collect();
                let root = self.climb(
                    0..self.program.steps().len(),
                    parts,
                    rows,
                    range.0,
                    range.1,
                    &mut ws,
                );
                Self::close(&root, out, &ws.log2);
                ws.give(root);
            }
        }
        out
    }

    /// The message of the last of these steps, which must be all those below it. Of `parts` the messages are there already.
    fn climb(
        &self,
        steps: Range<usize>,
        parts: Vec<RegionMessage<F>>,
        rows: &Batch,
        first: usize,
        count: usize,
        ws: &mut Workspace<F>,
    ) -> Message<F> {
        ws.begin(count);
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
            let message = self.step_message(index, rows, (first, count), input, ws);
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

    /// The message of one step, from those of its inputs.
    pub(crate) fn step_message<'a>(
        &self,
        index: usize,
        rows: &Batch,
        range: (usize, usize),
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
        let step = &self.program.steps()[index];
        match &step.kind {
            StepKind::Leaf { variable, .. } => {
                let place = step.leaves.start;
                let mut cells = std::mem::take(&mut ws.cells);
                cells.resize(range.1, 0.0);
                rows.read(*variable, range.0..range.0 + range.1, &mut cells);
                let part = |row| rows.part(range.0 + row, *variable);
                let message = self.leaf(place).message(&self.kernels, &cells, part, ws);
                ws.cells = cells;
                message
            }
            StepKind::Kronecker { inputs: [a, b], .. } => {
                let (weight, direction) = (self.weight(index), Direction::Up);
                let by = Contraction { weight, direction, wanted: None };
                contract(&self.kernels, &by, input(*a), input(*b), ws)
            }
            StepKind::Hadamard { inputs: [a, b] } => {
                hadamard(&self.kernels, [input(*a), input(*b)], None, ws)
            }
            StepKind::Sum { input: a, .. } => {
                let (weight, direction) = (self.weight(index), Direction::Up);
                self.unary(&Contraction { weight, direction, wanted: None }, input(*a), ws)
            }
        }
    }

    /// W ℓ: a contraction with a second input of one output that is one.
    pub(crate) fn unary(
        &self,
        by: &Contraction<'_, F>,
        input: &Message<F>,
        ws: &mut Workspace<F>,
    ) -> Message<F> {
        // On the way up an identity stays one under a semi-unitary weight.
        let stays = |row: &u32| {
            by.direction == Direction::Up && input.kind(*row as usize) == Kind::Identity
        };
        let (identities, others): (Vec<u32>, Vec<u32>) = (0..input.len() as u32).partition(stays);
        let mut one = match (identities.len(), others.len()) {
            (0, _) => ws.take_uniform(1, input.len(), Kind::Pure),
            (_, 0) => ws.take_uniform(1, input.len(), Kind::Identity),
            _ => ws.take(1, input.len()),
        };
        one.set_identities(&identities);
        for chunk in others.chunks(F::LANES) {
            let tile = one.push_tile(C, Kind::Pure, chunk);
            tile.fill(F::ZERO);
            tile[..F::LANES].fill(F::ONE);
        }
        let out = contract(&self.kernels, by, input, &one, ws);
        ws.give(one);
        out
    }

    /// log of the trace of each row's message at the output.
    pub(super) fn close(root: &Message<F>, out: &mut [f64], log2: &[i64]) {
        for row in 0..root.len() {
            let (tile, lane) = root.place(C, row);
            let width = root.width;
            let number = |n: usize| super::lanes::get(C, tile, n, lane);
            let p: f64 = match root.kind(row) {
                Kind::Identity => 1.0,
                Kind::Pure => (0..width).map(|k| number(k).norm_sqr()).sum(),
                Kind::Mixed => (0..width).map(|k| number(k * width + k).re).sum::<f64>().max(0.0),
            };
            out[row] = p.ln() + log2[row] as f64 * std::f64::consts::LN_2;
        }
    }
}

/// Rows to a block: so many that all threads have work, and whole tiles.
pub(crate) fn block_len<F: Real>(rows: usize) -> usize {
    let share = rows.div_ceil(rayon::current_num_threads().max(1));
    share.next_multiple_of(F::LANES).clamp(F::LANES, BLOCK)
}

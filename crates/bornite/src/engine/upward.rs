//! The upward pass on blocks of rows: log p(evidence) of every row.

use rayon::prelude::*;

use super::combine::{Contraction, Way, contract, hadamard};
use super::lanes::Real;
use super::message::{Kind, Message, Workspace};
use super::plan::{Plan, StepKind};
use super::rows::Rows;

/// The most rows that are worked on together.
const BLOCK: usize = 256;

impl<F: Real, const C: bool> Plan<F, C> {
    /// log p(evidence) of every row; −∞ where it is impossible.
    pub(crate) fn log_marginals(&self, rows: &Rows<'_>) -> Vec<f64> {
        let mut out = vec![0.0; rows.len()];
        let block = block_len::<F>(rows.len());
        out.par_chunks_mut(block).enumerate().for_each_init(Workspace::default, |ws, (n, out)| {
            self.block_log_marginals(rows, n * block, out, ws);
        });
        out
    }

    fn block_log_marginals(
        &self,
        rows: &Rows<'_>,
        first: usize,
        out: &mut [f64],
        ws: &mut Workspace<F>,
    ) {
        ws.log2.clear();
        ws.log2.resize(out.len(), 0);
        let mut messages: Vec<Option<Message<F>>> = Vec::with_capacity(self.steps.len());
        for index in 0..self.steps.len() {
            let message = self.step_message(index, rows, (first, out.len()), &messages, ws);
            for &input in self.steps[index].kind.inputs() {
                if let Some(message) = messages[input].take() {
                    ws.give(message);
                }
            }
            messages.push(Some(message));
        }
        let Some(root) = messages[self.root()].take() else {
            unreachable!("the root is the last step")
        };
        Self::close(&root, out, &ws.log2);
        ws.give(root);
    }

    /// The message of one step, from those of its inputs.
    pub(crate) fn step_message(
        &self,
        index: usize,
        rows: &Rows<'_>,
        range: (usize, usize),
        messages: &[Option<Message<F>>],
        ws: &mut Workspace<F>,
    ) -> Message<F> {
        let input = |n: usize| match &messages[n] {
            Some(message) => message,
            None => unreachable!("inputs come first and are received once"),
        };
        match &self.steps[index].kind {
            StepKind::Leaf(leaf) => leaf.message(&self.kernels, rows, range, ws),
            StepKind::Kronecker { inputs: [a, b], weight } => {
                let by = Contraction { weight, way: Way::Up };
                contract(&self.kernels, &by, input(*a), input(*b), ws)
            }
            StepKind::Hadamard { inputs: [a, b] } => {
                hadamard(&self.kernels, input(*a), input(*b), ws)
            }
            StepKind::Sum { input: a, weight } => self.unary(weight, Way::Up, input(*a), ws),
        }
    }

    /// W ℓ: a contraction with a second input of one output that is one.
    pub(crate) fn unary(
        &self,
        weight: &super::plan::NodeWeight<F>,
        way: Way,
        input: &Message<F>,
        ws: &mut Workspace<F>,
    ) -> Message<F> {
        let mut one = ws.take(1, input.len());
        let rows: Vec<u32> = (0..input.len() as u32).collect();
        for chunk in rows.chunks(F::LANES) {
            let tile = one.push_tile(C, Kind::Pure, chunk);
            tile.fill(F::ZERO);
            tile[..F::LANES].fill(F::ONE);
        }
        if way == Way::Up {
            // An identity stays one under a semi-unitary weight.
            for row in 0..input.len() {
                if input.kind(row) == Kind::Identity {
                    one.set_identity(row);
                }
            }
        }
        let by = Contraction { weight, way };
        let out = contract(&self.kernels, &by, input, &one, ws);
        ws.give(one);
        out
    }

    /// log of the trace of each row's message at the output.
    fn close(root: &Message<F>, out: &mut [f64], log2: &[i64]) {
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

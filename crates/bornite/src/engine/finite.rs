//! The traversal of circuits with only finite variables. At every variable, a caller chooses each
//! row's value from its exact conditional, given as running sums over the values.

use super::Engine;
use super::lanes::Real;
use super::message::Message;
use super::traverse::{LeafVisit, Visit};
use super::workspace::Workspace;

/// Chooses the values of rows.
pub(crate) trait Choose {
    /// Whether the value of a row's variable is to be chosen; otherwise, it stays unknown.
    fn wants(&self, variable: usize, row: usize) -> bool;

    /// Chooses the value of one row. Within a variable, rows come in order. `None` leaves the value
    /// unknown: later variables are not conditioned on it.
    fn choose(
        &mut self,
        variable: usize,
        row: usize,
        probabilities: Cumulative<'_>,
    ) -> Option<usize>;
}

/// The running sums p(0), p(0) + p(1), … of one row's unnormalized conditional.
///
/// They come from a fixed order of operations, so their bits do not depend on the machine or on
/// other rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cumulative<'a> {
    /// Entry x is the sum up to and including value x.
    sums: &'a [f64],
}

impl<'a> Cumulative<'a> {
    /// The view of these sums.
    pub(crate) fn new(sums: &'a [f64]) -> Self {
        Self { sums }
    }

    /// The number of values.
    pub(crate) fn num_values(&self) -> usize {
        self.sums.len()
    }

    /// Σ p(x) over x < `value`.
    pub(crate) fn below(&self, value: usize) -> f64 {
        if value == 0 { 0.0 } else { self.sums[value - 1] }
    }
}

/// The memory of a traversal, which can be reused by the next.
#[derive(Debug, Default)]
pub(crate) struct Traversal {
    workspace: Workspace<f64>,
    sums: Vec<f64>,
}

impl Engine<f64> {
    /// Visits all variables of `count` rows.
    ///
    /// Requires: all variables are finite.
    pub(crate) fn choose(&self, count: usize, choice: &mut impl Choose, memory: &mut Traversal) {
        let Traversal { workspace, sums } = memory;
        let visit = &mut Visit::Code(Code { choice, sums });
        match &self.plan {
            super::AnyPlan::Real(plan) => plan.traverse(None, (0, count), visit, workspace),
            super::AnyPlan::Complex(plan) => plan.traverse(None, (0, count), visit, workspace),
        }
    }
}

/// Lets a coder choose the values, given their exact conditionals.
pub(super) struct Code<'a> {
    choice: &'a mut dyn Choose,
    sums: &'a mut Vec<f64>,
}

impl Code<'_> {
    pub(super) fn visit<F: Real, const C: bool>(
        &mut self,
        &LeafVisit { kernels, leaf, variable }: &LeafVisit<'_, F, C>,
        environment: &Message<F>,
        values: &mut [f64],
        ws: &mut Workspace<F>,
    ) {
        let count = leaf.basis.natural_domain().num_values().unwrap_or(0);
        let rows: Vec<u32> = (0..values.len() as u32)
            .filter(|&row| self.choice.wants(variable, row as usize))
            .collect();
        self.sums.resize(values.len() * count, 0.0);
        leaf.probabilities(kernels, environment, &rows, ws, |row, probabilities| {
            let sums = &mut self.sums[row as usize * count..][..count];
            let mut sum = 0.0;
            for (out, p) in sums.iter_mut().zip(probabilities) {
                sum += p;
                *out = sum;
            }
        });
        for row in rows {
            let row = row as usize;
            let sums = Cumulative::new(&self.sums[row * count..][..count]);
            values[row] = self.choice.choose(variable, row, sums).map_or(f64::NAN, |x| x as f64);
        }
    }
}

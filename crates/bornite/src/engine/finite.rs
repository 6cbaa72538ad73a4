//! The traversal of circuits whose variables are all finite: at every variable each row's exact conditional, as
//! running sums over the values, from which a caller chooses the row's value.

use super::Engine;
use super::lanes::Real;
use super::message::Message;
use super::traverse::{At, Visit};
use super::workspace::Workspace;

/// What chooses the values.
pub(crate) trait Choose {
    /// Whether a row's value of a variable is to be chosen at all, or stays unknown.
    fn wants(&self, variable: usize, row: usize) -> bool;

    /// The value of one row, in order of the rows within a variable. `None` leaves it unknown: the variables that
    /// come later are not conditioned on it.
    fn choose(
        &mut self,
        variable: usize,
        row: usize,
        probabilities: Cumulative<'_>,
    ) -> Option<usize>;
}

/// The running sums p(0), p(0) + p(1), … of one row's unnormalized conditional.
///
/// The bits are those of a fixed order of operations, whatever the machine and the rows around.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cumulative<'a> {
    /// From the sum up to and including the first value on.
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

/// The memory of a traversal, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Traversal {
    workspace: Workspace<f64>,
    sums: Vec<f64>,
}

impl Engine<f64> {
    /// Visits all variables of `count` rows.
    ///
    /// Requires finite variables.
    pub(crate) fn choose(&self, count: usize, choice: &mut impl Choose, memory: &mut Traversal) {
        let Traversal { workspace, sums } = memory;
        let visit = &mut Visit::Code(Code { choice, sums });
        match &self.plan {
            super::AnyPlan::Real(plan) => plan.traverse(None, (0, count), visit, workspace),
            super::AnyPlan::Complex(plan) => plan.traverse(None, (0, count), visit, workspace),
        }
    }
}

/// Values that a coder chooses from their exact conditionals.
pub(super) struct Code<'a> {
    choice: &'a mut dyn Choose,
    sums: &'a mut Vec<f64>,
}

impl Code<'_> {
    pub(super) fn visit<F: Real, const C: bool>(
        &mut self,
        &At { kernels, leaf, variable }: &At<'_, F, C>,
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

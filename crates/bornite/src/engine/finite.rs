//! The traversal of circuits whose variables are all finite: at every variable each row's exact conditional, as
//! running sums over the values, from which a caller chooses the row's value.

use super::Engine;
use super::lanes::Real;
use super::message::{Kind, Message, Workspace};
use super::plan::Leaf;
use super::traverse::Visitor;

/// Rows side by side.
const LANES: usize = <f64 as Real>::LANES;

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
    /// `[value][LANES]`, from the sum up to and including the first value on.
    sums: &'a [f64],
    lane: usize,
}

impl<'a> Cumulative<'a> {
    /// The view of one lane of `[value][LANES]` sums.
    pub(crate) fn new(sums: &'a [f64], lane: usize) -> Self {
        Self { sums, lane }
    }

    /// The number of values.
    pub(crate) fn num_values(&self) -> usize {
        self.sums.len() / LANES
    }

    /// Σ p(x) over x < `value`.
    pub(crate) fn below(&self, value: usize) -> f64 {
        if value == 0 { 0.0 } else { self.sums[(value - 1) * LANES + self.lane] }
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
        match &self.plan {
            super::AnyPlan::Real(plan) => {
                let mut visitor = Chooser::<_, false> { choice, sums };
                plan.traverse(None, (0, count), &mut visitor, workspace);
            }
            super::AnyPlan::Complex(plan) => {
                let mut visitor = Chooser::<_, true> { choice, sums };
                plan.traverse(None, (0, count), &mut visitor, workspace);
            }
        }
    }
}

struct Chooser<'a, T, const C: bool> {
    choice: &'a mut T,
    sums: &'a mut Vec<f64>,
}

impl<T: Choose, const C: bool> Visitor<f64> for Chooser<'_, T, C> {
    fn visit(
        &mut self,
        leaf: &Leaf<f64>,
        environment: &Message<f64>,
        values: &mut [f64],
        ws: &mut Workspace<f64>,
    ) {
        let variable = leaf.variable.index();
        let count = leaf.basis.natural_domain().num_values().unwrap_or(0);
        let rows: Vec<u32> = (0..values.len() as u32).collect();
        self.sums.resize(count * LANES, 0.0);
        ws.grow_scratch((leaf.width() * leaf.width() * 2).max(count) * LANES);
        for rows in rows.chunks(LANES) {
            if !rows.iter().any(|&row| self.choice.wants(variable, row as usize)) {
                continue;
            }
            self.sum(leaf, environment, rows, ws);
            for (lane, &row) in rows.iter().enumerate() {
                let row = row as usize;
                if self.choice.wants(variable, row) {
                    let chosen =
                        self.choice.choose(variable, row, Cumulative::new(self.sums, lane));
                    values[row] = chosen.map_or(f64::NAN, |x| x as f64);
                }
            }
        }
    }
}

impl<T: Choose, const C: bool> Chooser<'_, T, C> {
    /// The running sums of at most as many neighboring rows as there are lanes, whatever their kinds.
    fn sum(
        &mut self,
        leaf: &Leaf<f64>,
        environment: &Message<f64>,
        rows: &[u32],
        ws: &mut Workspace<f64>,
    ) {
        let [scratch, probabilities, ..] = &mut ws.scratch;
        let probabilities = &mut probabilities[..self.sums.len()];
        for kind in [Kind::Identity, Kind::Pure, Kind::Mixed] {
            let (mut of_kind, mut lanes, mut len) = ([0; LANES], [0; LANES], 0);
            for (lane, &row) in rows.iter().enumerate() {
                if environment.kind(row as usize) == kind {
                    (of_kind[len], lanes[len]) = (row, lane);
                    len += 1;
                }
            }
            if len == 0 {
                continue;
            }
            let tile = environment.tile(C, kind, &of_kind[..len], scratch);
            leaf.probabilities::<C>(kind, tile, probabilities);
            if len == rows.len() {
                add_up(probabilities, self.sums);
                return;
            }
            for (from, &to) in lanes[..len].iter().enumerate() {
                let mut sum = 0.0;
                let sums = self.sums.chunks_exact_mut(LANES);
                for (p, out) in probabilities.chunks_exact(LANES).zip(sums) {
                    sum += p[from];
                    out[to] = sum;
                }
            }
        }
    }
}

/// Running sums in all lanes at once.
fn add_up(probabilities: &[f64], out: &mut [f64]) {
    let mut sum = [0.0; LANES];
    for (p, out) in probabilities.chunks_exact(LANES).zip(out.chunks_exact_mut(LANES)) {
        for (sum, p) in sum.iter_mut().zip(p) {
            *sum += p;
        }
        out.copy_from_slice(&sum);
    }
}

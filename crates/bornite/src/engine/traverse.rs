//! A traversal of the tree that visits one variable after another, with its exact conditional given
//! those before it.
//!
//! On the way down, each step has its *environment*: the message of everything outside it, in which
//! variables already visited have their values, and later ones their evidence. The environment of a
//! step and the message of one input give the environment of the other input. This is the same
//! contraction as in the upward pass, with the indices of the weight permuted.

use super::Kernels;
use super::batch::Batch;
use super::combine::{Contraction, Direction, contract, hadamard};
use super::conditional::{Draw, Score};
use super::finite::Code;
use super::lanes::Real;
use super::message::Message;
use super::plan::{Leaf, Plan};
use super::unravel::unravel;
use super::workspace::Workspace;
use crate::algebra::Kind;
use crate::program::StepKind;

/// What a traversal does at each variable. It assigns a value to every row, given the variable's
/// environment. If it leaves NaN, the row has no value, and later variables are not conditioned on
/// this one.
pub(crate) enum Visit<'a, F> {
    /// Computes log p of given values.
    Score(Score<'a>),
    /// Draws random values.
    Draw(Draw<'a, F>),
    /// Lets a coder choose the values.
    Code(Code<'a>),
}

impl<F: Real> Visit<'_, F> {
    /// The environment of a step in the simplest form that serves the visit, given the evidence
    /// about the variables below it.
    fn simplify<const C: bool>(
        &mut self,
        environment: Message<F>,
        evidence: Option<&Message<F>>,
        ws: &mut Workspace<F>,
    ) -> Message<F> {
        match self {
            // These need the conditionals themselves.
            Visit::Score(_) | Visit::Code(_) => environment,
            Visit::Draw(draw) => unravel::<F, C>(environment, evidence, &mut draw.rngs, ws),
        }
    }
}

/// The leaf that a traversal visits.
pub(super) struct LeafVisit<'a, F, const C: bool> {
    pub(super) kernels: &'a Kernels<F, C>,
    pub(super) leaf: &'a Leaf<F>,
    pub(super) variable: usize,
}

/// What remains to be done at a step.
enum Task {
    /// Go down to the first input, or visit a leaf.
    Enter(usize),
    /// Go down to the second input of a product, once the first has its message.
    Second(usize),
    /// Compute the message from those of the inputs.
    Leave(usize),
}

struct State<F> {
    environments: Vec<Option<Message<F>>>,
    /// The message of a step's values once it has been visited; before that, the message of its
    /// evidence.
    messages: Vec<Option<Message<F>>>,
}

impl<F: Real, const C: bool> Plan<F, C> {
    /// Visits the variables of `count` rows one after another, starting with row `first`. All of
    /// them are conditioned on the evidence.
    pub(crate) fn traverse(
        &self,
        evidence: Option<&Batch>,
        (first, count): (usize, usize),
        visit: &mut Visit<'_, F>,
        ws: &mut Workspace<F>,
    ) {
        let mut state = State {
            environments: (0..self.program.steps().len()).map(|_| None).collect(),
            messages: self.evidence_messages(evidence, (first, count), ws),
        };
        state.environments[self.program.root()] = Some(self.output_environment(ws));
        let unknown = ws.planner.uniform(Kind::Identity);
        let mut tasks = vec![(Task::Enter(self.program.root()), false)];
        while let Some((task, needed)) = tasks.pop() {
            match task {
                Task::Enter(step) => self.enter(step, needed, &mut state, &mut tasks, visit, ws),
                Task::Second(step) => self.second(step, needed, &mut state, visit, ws),
                Task::Leave(step) => {
                    let messages = &state.messages;
                    let places = ws.planner.up(&self.program.steps()[step], |n| {
                        messages[n].as_ref().map_or(&unknown, |message| message.places())
                    });
                    let message = self.inner_message(step, &places, |n| &messages[n], ws);
                    replace(&mut state.messages[step], message, ws);
                    for &input in self.program.steps()[step].inputs() {
                        release(&mut state.messages[input], ws);
                    }
                }
            }
        }
        for message in state.messages.into_iter().chain(state.environments).flatten() {
            ws.give(message);
        }
    }

    /// The upward messages of all steps, given the evidence. Without evidence, there are none,
    /// which stands for identities.
    pub(super) fn evidence_messages(
        &self,
        evidence: Option<&Batch>,
        range: (usize, usize),
        ws: &mut Workspace<F>,
    ) -> Vec<Option<Message<F>>> {
        let Some(rows) = evidence else {
            ws.begin(range.1);
            return (0..self.program.steps().len()).map(|_| None).collect();
        };
        let block = self.block(rows, range, ws);
        let mut messages = Vec::with_capacity(self.program.steps().len());
        for index in 0..self.program.steps().len() {
            let message = self.step_message(index, &block, |n| &messages[n], ws);
            messages.push(Some(message));
        }
        messages
    }

    /// The environment of the output: the number 1 for one square, the identity for a sum of
    /// squares.
    pub(super) fn output_environment(&self, ws: &mut Workspace<F>) -> Message<F> {
        let width = self.program.width(self.program.root());
        let places = ws.planner.uniform(if width > 1 { Kind::Identity } else { Kind::Pure });
        let mut message = ws.take(C, width, &places);
        for tile in places.tiles() {
            let numbers = message.tile_mut(C, &tile);
            numbers.fill(F::ZERO);
            numbers[..F::LANES].fill(F::ONE);
        }
        message
    }

    fn enter(
        &self,
        step: usize,
        needed: bool,
        state: &mut State<F>,
        tasks: &mut Vec<(Task, bool)>,
        visit: &mut Visit<'_, F>,
        ws: &mut Workspace<F>,
    ) {
        match &self.program.steps()[step].kind {
            StepKind::Leaf { variable, .. } => {
                let leaf = self.leaf(self.program.steps()[step].leaves.start);
                let Some(environment) = state.environments[step].take() else {
                    unreachable!("a step is entered with its environment")
                };
                let mut values = vec![f64::NAN; environment.len()];
                let at = LeafVisit { kernels: &self.kernels, leaf, variable: *variable };
                match visit {
                    Visit::Score(score) => score.visit(&at, &environment, &mut values),
                    Visit::Draw(draw) => draw.visit(&at, &environment, &mut values, ws),
                    Visit::Code(code) => code.visit(&at, &environment, &mut values, ws),
                }
                if needed {
                    let message = self.value_message(leaf, &values, ws);
                    replace(&mut state.messages[step], message, ws);
                }
                ws.give(environment);
            }
            StepKind::Sum { input, .. } => {
                let environment = take(&mut state.environments[step]);
                let below = self.environment_of(step, 0, (&environment, None), None, ws);
                ws.give(environment);
                let below = visit.simplify::<C>(below, state.messages[*input].as_ref(), ws);
                state.environments[*input] = Some(below);
                if needed {
                    tasks.push((Task::Leave(step), false));
                }
                tasks.push((Task::Enter(*input), needed));
            }
            StepKind::Kronecker { inputs, .. } | StepKind::Hadamard { inputs } => {
                let first = self.program.first_side(*inputs);
                self.descend(step, *inputs, first, state, visit, ws);
                if needed {
                    tasks.push((Task::Leave(step), false));
                }
                tasks.push((Task::Enter(inputs[1 - first]), needed));
                tasks.push((Task::Second(step), needed));
                tasks.push((Task::Enter(inputs[first]), true));
            }
        }
    }

    /// The message of the values that a visit assigned. A row without a value sends the identity.
    fn value_message(&self, leaf: &Leaf<F>, values: &[f64], ws: &mut Workspace<F>) -> Message<F> {
        let kind = |row: usize| if values[row].is_nan() { Kind::Identity } else { Kind::Pure };
        let places = ws.planner.leaf(kind);
        leaf.message(&self.kernels, &places, values, |_| None, ws)
    }

    fn second(
        &self,
        step: usize,
        needed: bool,
        state: &mut State<F>,
        visit: &mut Visit<'_, F>,
        ws: &mut Workspace<F>,
    ) {
        let (StepKind::Kronecker { inputs, .. } | StepKind::Hadamard { inputs }) =
            &self.program.steps()[step].kind
        else {
            unreachable!("only a product has a second input")
        };
        let first = self.program.first_side(*inputs);
        self.descend(step, *inputs, 1 - first, state, visit, ws);
        release(&mut state.environments[step], ws);
        // If no one needs the message of this step, no one needs that of its first input any more.
        if !needed {
            release(&mut state.messages[inputs[first]], ws);
        }
    }

    /// Computes the environment of one input, given the step's environment and the message of the
    /// other input.
    fn descend(
        &self,
        step: usize,
        inputs: [usize; 2],
        side: usize,
        state: &mut State<F>,
        visit: &mut Visit<'_, F>,
        ws: &mut Workspace<F>,
    ) {
        let environment = take(&mut state.environments[step]);
        let other = inputs[1 - side];
        let unknown = state.messages[other].is_none().then(|| {
            let places = ws.planner.uniform(Kind::Identity);
            ws.take(C, self.program.width(other), &places)
        });
        let message = state.messages[other].as_ref().or(unknown.as_ref());
        let below = self.environment_of(step, side, (&environment, message), None, ws);
        if let Some(message) = unknown {
            ws.give(message);
        }
        state.environments[step] = Some(environment);
        let below = visit.simplify::<C>(below, state.messages[inputs[side]].as_ref(), ws);
        replace(&mut state.environments[inputs[side]], below, ws);
    }
}

impl<F: Real, const C: bool> Plan<F, C> {
    /// The environment of one input of a step, given the step's environment and the message of the
    /// other input, if there is one; for all rows, or only for the wanted ones.
    pub(super) fn environment_of(
        &self,
        step: usize,
        side: usize,
        (environment, other): (&Message<F>, Option<&Message<F>>),
        wanted: Option<&[bool]>,
        ws: &mut Workspace<F>,
    ) -> Message<F> {
        let of = &self.program.steps()[step];
        let others = other.map(|message| &**message.places());
        let places = ws.planner.down(of, environment.places(), others, wanted);
        match (&of.kind, other) {
            (StepKind::Hadamard { .. }, Some(other)) => {
                hadamard(&self.kernels, &places, [environment, other], ws)
            }
            (StepKind::Kronecker { .. } | StepKind::Sum { .. }, other) => {
                let by =
                    Contraction { weight: self.weight(step), direction: Direction::Down(side) };
                contract(&self.kernels, &by, &places, (environment, other), ws)
            }
            (StepKind::Hadamard { .. }, None) | (StepKind::Leaf { .. }, _) => {
                unreachable!("a product has two inputs, a leaf has none")
            }
        }
    }
}

fn take<F>(slot: &mut Option<Message<F>>) -> Message<F> {
    match slot.take() {
        Some(message) => message,
        None => unreachable!("a step is entered with its environment"),
    }
}

fn replace<F: Real>(slot: &mut Option<Message<F>>, message: Message<F>, ws: &mut Workspace<F>) {
    if let Some(old) = slot.replace(message) {
        ws.give(old);
    }
}

fn release<F: Real>(slot: &mut Option<Message<F>>, ws: &mut Workspace<F>) {
    if let Some(message) = slot.take() {
        ws.give(message);
    }
}

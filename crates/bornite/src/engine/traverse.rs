//! One traversal of the tree that visits every variable in turn, with its exact conditional given those before it.
//!
//! Going down, each step carries its *environment*: the message of everything outside it, in which the variables
//! already visited have their values, and those to come their evidence. A node's environment and the message of one
//! input make the environment of the other by the same contraction as the upward pass, with the weight's indices
//! permuted.

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

/// What a traversal is for. At every variable it gives each row a value from the variable's environment; a row that is
/// left at NaN has none, and what comes after it is not conditioned on this variable.
pub(crate) enum Visit<'a, F> {
    /// log p of given values.
    Score(Score<'a>),
    /// Values at random.
    Draw(Draw<'a, F>),
    /// Values from a coder, or for it.
    Code(Code<'a>),
}

impl<F: Real> Visit<'_, F> {
    /// The environment of a step whose variables have this evidence, in the simplest form that serves the visit.
    fn simplify<const C: bool>(
        &mut self,
        environment: Message<F>,
        evidence: Option<&Message<F>>,
        ws: &mut Workspace<F>,
    ) -> Message<F> {
        match self {
            // The conditionals themselves are wanted.
            Visit::Score(_) | Visit::Code(_) => environment,
            Visit::Draw(draw) => unravel::<F, C>(environment, evidence, &mut draw.rngs, ws),
        }
    }
}

/// The leaf that is visited.
pub(super) struct At<'a, F, const C: bool> {
    pub(super) kernels: &'a Kernels<F, C>,
    pub(super) leaf: &'a Leaf<F>,
    pub(super) variable: usize,
}

enum Task {
    Enter(usize),
    Second(usize),
    Leave(usize),
}

struct State<F> {
    environments: Vec<Option<Message<F>>>,
    /// Of a step that has been visited: its value's message. Before that: the message of its evidence.
    messages: Vec<Option<Message<F>>>,
}

impl<F: Real, const C: bool> Plan<F, C> {
    /// Visits the variables of the rows `first`, `first + 1`, … in turn. What is known of them beforehand conditions
    /// every one.
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
        state.environments[self.program.root()] = Some(self.outermost(ws));
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
                    let message = self.joined(step, &places, |n| &messages[n], ws);
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

    /// The upward messages of the evidence, all kept; without evidence there are none, which stands for identities.
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

    /// The environment of the output: one number for a single square, the identity for a sum of squares.
    pub(super) fn outermost(&self, ws: &mut Workspace<F>) -> Message<F> {
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
                let at = At { kernels: &self.kernels, leaf, variable: *variable };
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

    /// The message of the values of a visit; a row without one stays unknown.
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
        // Nobody asks for the step's own message, so nobody for its first input's either.
        if !needed {
            release(&mut state.messages[inputs[first]], ws);
        }
    }

    /// Makes the environment of one input from the step's own and the other input's message.
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
    /// The environment of one input of a step, from the step's own and the message of the other input, if there is one; of all
    /// rows, or of those that are wanted.
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

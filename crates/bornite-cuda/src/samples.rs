//! Sampling: a traversal of the tree that visits one leaf after another and draws its value given
//! those before it.
//!
//! There is no evidence, so the messages of all rows have the same kinds.

use std::borrow::Cow;

use bornite_kernels::Kind;

use crate::error::CudaError;
use crate::plan::Step;
use crate::script::{Input, Op, Script, Shape, Writer, plain};
use crate::tasks::{Codes, Draw, Elementwise, Messages, Permute, Product};

/// The script of samples.
pub(crate) struct Samples<'a> {
    pub(crate) script: Script<'a>,
    /// The variables, in the order in which they are visited.
    pub(crate) variables: Vec<usize>,
    /// The position of the codes of the first variable in the script's lists. Those of the others
    /// follow.
    pub(crate) codes: usize,
}

/// The messages or environments of all rows, in order.
#[derive(Clone, Copy)]
struct Message {
    kind: Kind,
    width: usize,
    at: usize,
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

struct Traversal<'a, 's> {
    writer: Writer<'a, 's>,
    /// For every step, the positions of the copies of its weight with permuted modes.
    down: &'s [[usize; 2]],
    /// The number of leaves below every step.
    leaves: Vec<usize>,
    environments: Vec<Option<Message>>,
    /// The messages of steps that have been visited.
    messages: Vec<Option<Message>>,
    variables: Vec<usize>,
    codes: usize,
}

impl Shape {
    /// The variables of all leaves. Every leaf must have codes, and the variables must be a
    /// permutation.
    pub(crate) fn leaves(&self) -> Result<Vec<usize>, CudaError> {
        let mut variables = Vec::new();
        for step in &self.steps {
            match *step {
                Step::Codes { variable, .. } => variables.push(variable),
                Step::Functions { .. } => return Err(CudaError::Continuous),
                Step::Kronecker { .. } | Step::Hadamard { .. } | Step::Sum { .. } => {}
            }
        }
        let mut seen = vec![false; variables.len()];
        for &variable in &variables {
            match seen.get_mut(variable) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(CudaError::Shape),
            }
        }
        Ok(variables)
    }

    /// The copies of weights with permuted modes, which are stored after all weights. Returns how
    /// to make them, their positions for every step, and the total length of all weights.
    pub(crate) fn permuted(&self) -> (Vec<Permute>, Vec<[usize; 2]>, usize) {
        let mut total = self.weights.iter().map(|[at, rows, columns]| at + rows * columns).max();
        let total = total.get_or_insert(0);
        let (mut tasks, mut places): (Vec<Permute>, Vec<[usize; 2]>) = (Vec::new(), Vec::new());
        for step in &self.steps {
            let (weight, [k1, k2], sides) = match *step {
                Step::Kronecker { inputs, weight } => (weight, inputs.map(|n| self.widths[n]), 2),
                Step::Sum { input, weight } => (weight, [self.widths[input], 1], 1),
                Step::Codes { .. } | Step::Functions { .. } | Step::Hadamard { .. } => {
                    places.push([0; 2]);
                    continue;
                }
            };
            let [from, k, _] = self.weights[weight];
            let mut copies = [0; 2];
            for (side, place) in copies.iter_mut().enumerate().take(sides) {
                let [from, k, k1, k2] = [from, k, k1, k2].map(|n| n as i64);
                let task = Permute {
                    from,
                    to: *total as i64,
                    k: k as i32,
                    k1: k1 as i32,
                    k2: k2 as i32,
                    side: side as i32,
                };
                let same = |known: &&Permute| {
                    (known.from, known.k1, known.k2, known.side)
                        == (from, task.k1, task.k2, task.side)
                };
                // Steps that share a weight are often neighbors.
                *place = if let Some(known) = tasks.iter().rev().find(same) {
                    known.to as usize
                } else {
                    tasks.push(task);
                    *total += (k * k1 * k2) as usize;
                    task.to as usize
                };
            }
            places.push(copies);
        }
        (tasks, places, *total)
    }
}

impl Samples<'_> {
    /// Writes the script of this many samples of a circuit. All of its leaves must have codes.
    pub(crate) fn new(shape: &Shape, down: &[[usize; 2]], rows: usize, scratch: usize) -> Self {
        let mut leaves: Vec<usize> = Vec::with_capacity(shape.steps.len());
        for step in &shape.steps {
            let below = step.inputs().iter().map(|&input| leaves[input]).sum();
            leaves.push(if step.inputs().is_empty() { 1 } else { below });
        }
        let mut writer = Writer::new(shape, rows, scratch);
        let codes = writer.script.index.len();
        let root = shape.steps.len() - 1;
        writer.script.index.resize(codes + rows * leaves[root], 0);
        let none = || vec![None; shape.steps.len()];
        let (environments, messages) = (none(), none());
        let variables = Vec::new();
        let mut traversal =
            Traversal { writer, down, leaves, environments, messages, variables, codes };
        traversal.run(root);
        let Traversal { writer, variables, .. } = traversal;
        let script = Script { memory: writer.arena.most(), ..writer.script };
        Samples { script, variables, codes }
    }
}

impl Traversal<'_, '_> {
    fn run(&mut self, root: usize) {
        // The number 1 for one square, the identity for a sum of squares.
        let width = self.writer.shape.widths[root];
        let environment = if width > 1 {
            Message { kind: Kind::Identity, width, at: 0 }
        } else {
            let out = self.take(Kind::Pure, width);
            let one: &[f64] = if self.writer.shape.complex { &[1.0, 0.0] } else { &[1.0] };
            let numbers = Cow::Owned(one.repeat(self.writer.len));
            self.writer.script.ops.push(Op::Upload { at: out.at, numbers });
            out
        };
        self.environments[root] = Some(environment);
        let mut tasks = vec![(Task::Enter(root), false)];
        while let Some((task, needed)) = tasks.pop() {
            match task {
                Task::Enter(step) => self.enter(step, needed, &mut tasks),
                Task::Second(step) => self.second(step, needed),
                Task::Leave(step) => self.leave(step),
            }
        }
    }

    fn take(&mut self, kind: Kind, width: usize) -> Message {
        let at = self.writer.arena.take(self.writer.len * kind.numbers(width));
        Message { kind, width, at }
    }

    fn give(&mut self, message: Option<Message>) {
        if let Some(Message { kind, width, at }) = message {
            self.writer.arena.give(at, self.writer.len * kind.numbers(width));
        }
    }

    fn settle(&mut self, message: Message) {
        self.writer.script.ops.push(Op::Settle(Messages {
            at: message.at as i64,
            rows: 0,
            count: self.writer.len as i32,
            width: message.width as i32,
            is_pure: i32::from(message.kind == Kind::Pure),
        }));
    }

    fn first_side(&self, [a, b]: [usize; 2]) -> usize {
        usize::from(self.leaves[b] < self.leaves[a])
    }

    fn enter(&mut self, step: usize, needed: bool, tasks: &mut Vec<(Task, bool)>) {
        let Some(environment) = self.environments[step].take() else {
            unreachable!("a step is entered with its environment")
        };
        match self.writer.shape.steps[step] {
            Step::Codes { variable, weight } => {
                self.visit(environment, variable, weight);
                if needed {
                    self.messages[step] = Some(self.value(weight));
                }
            }
            Step::Functions { .. } => unreachable!("all leaves have codes"),
            Step::Sum { input, .. } => {
                self.environments[input] = Some(self.below(step, 0, environment));
                if needed {
                    tasks.push((Task::Leave(step), false));
                }
                tasks.push((Task::Enter(input), needed));
            }
            Step::Kronecker { inputs, .. } | Step::Hadamard { inputs } => {
                let first = self.first_side(inputs);
                self.environments[inputs[first]] = Some(self.below(step, first, environment));
                self.environments[step] = Some(environment);
                if needed {
                    tasks.push((Task::Leave(step), false));
                }
                tasks.push((Task::Enter(inputs[1 - first]), needed));
                tasks.push((Task::Second(step), needed));
                tasks.push((Task::Enter(inputs[first]), true));
                return;
            }
        }
        self.give(Some(environment));
    }

    fn second(&mut self, step: usize, needed: bool) {
        let (Step::Kronecker { inputs, .. } | Step::Hadamard { inputs }) =
            self.writer.shape.steps[step]
        else {
            unreachable!("only a product has a second input")
        };
        let Some(environment) = self.environments[step].take() else {
            unreachable!("a product keeps its environment for its second input")
        };
        let first = self.first_side(inputs);
        self.environments[inputs[1 - first]] = Some(self.below(step, 1 - first, environment));
        self.give(Some(environment));
        // If no one needs the message of this step, no one needs that of its first input any more.
        if !needed {
            let message = self.messages[inputs[first]].take();
            self.give(message);
        }
    }

    /// Computes the vectors of a step whose leaves have all been visited.
    fn leave(&mut self, step: usize) {
        let out = self.take(Kind::Pure, self.writer.shape.widths[step]);
        let shape = self.writer.shape;
        let input = |n: usize| match self.messages[n] {
            Some(message) => message,
            None => unreachable!("what is below has been visited"),
        };
        let to = (out.at, self.writer.len);
        match shape.steps[step] {
            Step::Kronecker { inputs, weight } => {
                let [a, b] = inputs.map(input);
                let ([w, k, _], vectors) = (shape.weights[weight], [a, b].map(Message::input));
                self.writer.kronecker((w, [k, a.width, b.width]), [Kind::Pure; 2], vectors, to);
            }
            Step::Hadamard { inputs } => {
                let pair = inputs.map(input);
                self.hadamard(pair, out);
            }
            Step::Sum { input: n, weight } => {
                let (a, [w, k, _]) = (input(n), shape.weights[weight]);
                self.writer.sum((w, [k, a.width]), Kind::Pure, a.input(), to);
            }
            Step::Codes { .. } | Step::Functions { .. } => unreachable!("a leaf has no inputs"),
        }
        self.settle(out);
        for &input in shape.steps[step].inputs() {
            let message = self.messages[input].take();
            self.give(message);
        }
        self.messages[step] = Some(out);
    }

    /// Computes the environment of one input of a step.
    fn below(&mut self, step: usize, side: usize, environment: Message) -> Message {
        let (shape, count) = (self.writer.shape, self.writer.len);
        let (w, k) = (self.down[step][side], environment.width);
        let inputs = shape.steps[step].inputs();
        let width = shape.widths[inputs[side]];
        let other = inputs.get(1 - side).filter(|_| inputs.len() > 1).map(|&other| {
            let unknown = Message { kind: Kind::Identity, width: shape.widths[other], at: 0 };
            self.messages[other].unwrap_or(unknown)
        });
        let kind = other.map_or(environment.kind, |other| environment.kind.times(other.kind));
        if let (Step::Hadamard { .. }, Some(other)) = (shape.steps[step], other) {
            let out = self.take(kind, width);
            if kind != Kind::Identity {
                self.hadamard([environment, other], out);
                self.settle(out);
            }
            return out;
        }
        if kind == Kind::Identity {
            // A weight that is semi-unitary on the way up is not semi-unitary on the way down:
            // compute W Wᴴ.
            let out = self.take(Kind::Mixed, width);
            let len = k * other.map_or(1, |other| other.width);
            let product = Product {
                a: w as i64,
                a_is_weight: 1,
                am: len as i32,
                aq: 1,
                conjugates: 1,
                c: out.at as i64,
                c1: (width * width) as i32,
                m: width as i32,
                ..plain().by_weight(w, width, len)
            };
            self.writer.product(product, count);
            self.settle(out);
            return out;
        }
        let out = self.take(kind, width);
        let to = (out.at, count);
        match other {
            Some(other) => {
                let (kinds, inputs) = ([environment.kind, other.kind], [environment, other]);
                let inputs = inputs.map(Message::input);
                self.writer.kronecker((w, [width, k, other.width]), kinds, inputs, to);
            }
            None => self.writer.sum((w, [width, k]), kind, environment.input(), to),
        }
        self.settle(out);
        out
    }

    fn hadamard(&mut self, [a, b]: [Message; 2], out: Message) {
        self.writer.script.ops.push(Op::Hadamard(Elementwise {
            a: a.at as i64,
            b: b.at as i64,
            out: out.at as i64,
            a_slots: 0,
            b_slots: 0,
            a_kind: a.kind as i32,
            b_kind: b.kind as i32,
            width: out.width as i32,
            count: self.writer.len as i32,
        }));
    }

    /// Draws the values of a leaf.
    fn visit(&mut self, environment: Message, variable: usize, weight: usize) {
        let Message { kind, width, at } = environment;
        let [w, _, values] = self.writer.shape.weights[weight];
        let first_place = self.variables.len() * self.writer.len;
        self.variables.push(variable);
        let each = if kind == Kind::Mixed { width * values } else { values };
        let rows = (self.writer.scratch / each).clamp(1, self.writer.len);
        for first in (0..self.writer.len).step_by(rows) {
            let count = rows.min(self.writer.len - first);
            let from = self.writer.arena.take(count * each);
            let p = self.writer.arena.take(count * values);
            let place = at + first * kind.numbers(width);
            let by = Product {
                a: place as i64,
                am: width as i32,
                aq: 1,
                b: w as i64,
                b_is_weight: 1,
                bq: values as i32,
                bn: 1,
                c: from as i64,
                cm: values as i32,
                n: values as i32,
                q: width as i32,
                ..plain()
            };
            match kind {
                Kind::Identity => {}
                Kind::Pure => self.writer.product(Product { m: count as i32, ..by }, 1),
                Kind::Mixed => {
                    let (a1, c1, m) = ((width * width) as i32, each as i32, width as i32);
                    self.writer.product(Product { a1, c1, m, conjugates: 1, ..by }, count);
                }
            }
            self.writer.script.ops.push(Op::Draw(Draw {
                from: from as i64,
                table: w as i64,
                p: p as i64,
                at: (self.codes + first_place + first) as i32,
                draws: (first_place + first) as i32,
                count: count as i32,
                width: width as i32,
                values: values as i32,
                kind: kind as i32,
            }));
            self.writer.arena.give(from, count * each);
            self.writer.arena.give(p, count * values);
        }
    }

    /// The vectors of the leaf that was visited last, given its values.
    fn value(&mut self, weight: usize) -> Message {
        let [w, width, values] = self.writer.shape.weights[weight];
        let out = self.take(Kind::Pure, width);
        let at = self.codes + (self.variables.len() - 1) * self.writer.len;
        self.writer.script.ops.push(Op::Codes(Codes {
            w: w as i64,
            out: out.at as i64,
            at: at as i32,
            columns: values as i32,
            width: width as i32,
            count: self.writer.len as i32,
        }));
        self.settle(out);
        out
    }
}

impl Message {
    /// The messages of all rows, in order.
    fn input(self) -> Input {
        Input { at: self.at, slots: 0 }
    }
}

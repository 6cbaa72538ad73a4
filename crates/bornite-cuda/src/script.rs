//! The script of a block of rows: which kernels to launch, in which order, on which numbers.
//!
//! It depends only on the kinds of the rows' messages, so it is known before any arithmetic.

use std::borrow::Cow;

use bornite_kernels::Kind;

use crate::arena::Arena;
use crate::error::CudaError;
use crate::plan::Step;
use crate::tasks::{Codes, Draw, Elementwise, Messages, Product};

/// Rows that take the same kinds of messages from the inputs of a step.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The kinds of messages that they take. Both are the same at leaves and sums.
    pub kinds: [Kind; 2],
    /// The rows, as positions in the block.
    pub rows: &'a [u32],
}

/// The values of a leaf's variable in the rows that have one, in the order of their group.
#[derive(Clone, Debug, Default)]
pub enum Cells {
    /// No values, at other steps.
    #[default]
    None,
    /// The codes of [`Step::Codes`].
    Codes(Vec<u32>),
    /// The real parts of the numbers of [`Step::Functions`], row by row.
    Functions(Vec<f64>),
}

/// The rows of a block at one step.
#[derive(Clone, Debug, Default)]
pub struct StepRows<'a> {
    /// All rows except those with identities; at most one group for each pair of kinds.
    pub groups: Vec<Group<'a>>,
    /// The values of a leaf.
    pub cells: Cells,
    /// The matrices of a leaf for the rows without a value that are not identities, as real parts.
    pub grams: Vec<f64>,
}

/// Rows that are evaluated together.
#[derive(Clone, Debug, Default)]
pub struct Block<'a> {
    /// The number of rows.
    pub len: usize,
    /// The rows at every step.
    pub steps: Vec<StepRows<'a>>,
}

/// A circuit without its numbers.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) complex: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) widths: Vec<usize>,
    /// The position, the number of rows and the number of columns of every weight.
    pub(crate) weights: Vec<[usize; 3]>,
}

/// A kernel or a copy.
#[derive(Clone, Debug)]
pub(crate) enum Op<'a> {
    /// Copies numbers from the host, as real parts.
    Upload {
        at: usize,
        numbers: Cow<'a, [f64]>,
    },
    Codes(Codes),
    /// Launches this many products, each of which consists of `inner` products.
    Product(Product, usize),
    Hadamard(Elementwise),
    Settle(Messages),
    Close(Messages),
    Draw(Draw),
}

/// The kernels of a block.
#[derive(Clone, Debug)]
pub(crate) struct Script<'a> {
    pub(crate) ops: Vec<Op<'a>>,
    /// Lists of rows, positions and codes. It starts with 0, 1, 2, …, one number per row.
    pub(crate) index: Vec<u32>,
    /// The amount of memory that the kernels work in, in numbers.
    pub(crate) memory: usize,
}

/// The messages of a step.
struct StepMessages {
    /// The positions and lengths of the vectors and of the matrices.
    places: [(usize, usize); 2],
    slots: Slots,
}

/// The position of each row among a step's vectors or matrices.
enum Slots {
    /// All rows have one kind, and are in order.
    InOrder(Kind),
    /// The kind and the position of every row.
    Listed(Vec<(Kind, u32)>),
}

/// The position of the messages of one kind, and of the list of the rows' positions among them.
#[derive(Clone, Copy)]
pub(crate) struct Input {
    pub(crate) at: usize,
    pub(crate) slots: usize,
}

/// Writes a script.
pub(crate) struct Writer<'a, 's> {
    pub(crate) shape: &'s Shape,
    /// The maximum number of numbers of an intermediate product.
    pub(crate) scratch: usize,
    pub(crate) arena: Arena,
    pub(crate) script: Script<'a>,
    pub(crate) len: usize,
}

impl Shape {
    /// The largest number of message entries that a row needs at a time, if all messages have one
    /// kind.
    pub(crate) fn numbers_of_a_row(&self, kind: Kind) -> usize {
        let mut arena = Arena::default();
        let numbers = |n: usize| kind.numbers(self.widths[n]);
        let mut places = Vec::with_capacity(self.steps.len());
        for (n, step) in self.steps.iter().enumerate() {
            places.push(arena.take(numbers(n)));
            step.inputs().iter().for_each(|&input| arena.give(places[input], numbers(input)));
        }
        arena.most()
    }
}

impl<'a> Script<'a> {
    /// Writes the kernels of a block. Intermediate products have at most `scratch` numbers, or one
    /// row.
    pub(crate) fn new(
        shape: &Shape,
        block: &'a Block<'a>,
        scratch: usize,
    ) -> Result<Self, CudaError> {
        if block.steps.len() != shape.steps.len() {
            return Err(CudaError::Shape);
        }
        let mut writer = Writer::new(shape, block.len, scratch);
        let mut sent = Vec::with_capacity(block.steps.len());
        for (n, rows) in block.steps.iter().enumerate() {
            let messages = writer.step(n, rows, &sent)?;
            sent.push(messages);
            for &input in shape.steps[n].inputs() {
                sent[input].places.iter().for_each(|&(at, len)| writer.arena.give(at, len));
            }
        }
        Ok(Self { memory: writer.arena.most(), ..writer.script })
    }
}

impl<'s> Writer<'_, 's> {
    pub(crate) fn new(shape: &'s Shape, len: usize, scratch: usize) -> Self {
        let index = (0..len as u32).collect();
        let script = Script { ops: Vec::new(), index, memory: 0 };
        Self { shape, scratch, arena: Arena::default(), script, len }
    }
}

impl<'a> Writer<'a, '_> {
    /// Writes one step, given the messages of its inputs.
    fn step(
        &mut self,
        n: usize,
        step_rows: &'a StepRows<'a>,
        sent: &[StepMessages],
    ) -> Result<StepMessages, CudaError> {
        let (step, width) = (self.shape.steps[n], self.shape.widths[n]);
        let mut counts = [0; 2];
        for group in &step_rows.groups {
            counts[storage_of(group)?] += group.rows.len();
        }
        let kinds = [Kind::Pure, Kind::Mixed];
        let mut places = [(0, 0); 2];
        for which in 0..2 {
            let len = counts[which] * kinds[which].numbers(width);
            places[which] = (self.arena.take(len), len);
        }
        let messages_out = StepMessages { places, slots: self.slots(step_rows)? };
        let mut first = [0; 2];
        for group in &step_rows.groups {
            let (which, count) = (storage_of(group)?, group.rows.len());
            let out = places[which].0 + first[which] * kinds[which].numbers(width);
            first[which] += count;
            let rows = self.list(group.rows);
            let input = |writer: &mut Self, input: usize, side: usize| {
                writer.input(&sent[input], group.kinds[side], group.rows, rows)
            };
            match step {
                Step::Codes { .. } | Step::Functions { .. } => {
                    self.leaf(step, width, (group.kinds, count), step_rows, out)?;
                }
                Step::Kronecker { inputs: [a, b], weight } => {
                    let inputs = [input(self, a, 0)?, input(self, b, 1)?];
                    let [w, k, columns] = self.shape.weights[weight];
                    let [k1, k2] = [a, b].map(|input| self.shape.widths[input]);
                    if columns != k1 * k2 {
                        return Err(CudaError::Shape);
                    }
                    self.kronecker((w, [k, k1, k2]), group.kinds, inputs, (out, count));
                }
                Step::Hadamard { inputs: [a, b] } => {
                    let [x, y] = [input(self, a, 0)?, input(self, b, 1)?];
                    if [a, b].iter().any(|&input| self.shape.widths[input] != width) {
                        return Err(CudaError::Shape);
                    }
                    self.script.ops.push(Op::Hadamard(Elementwise {
                        a: x.at as i64,
                        b: y.at as i64,
                        out: out as i64,
                        a_slots: x.slots as i32,
                        b_slots: y.slots as i32,
                        a_kind: group.kinds[0] as i32,
                        b_kind: group.kinds[1] as i32,
                        width: width as i32,
                        count: count as i32,
                    }));
                }
                Step::Sum { input: a, weight } => {
                    let x = input(self, a, 0)?;
                    let [w, k, columns] = self.shape.weights[weight];
                    if columns != self.shape.widths[a] || group.kinds[0] != group.kinds[1] {
                        return Err(CudaError::Shape);
                    }
                    self.sum((w, [k, columns]), group.kinds[0], x, (out, count));
                }
            }
            let messages = Messages {
                at: out as i64,
                rows: rows as i32,
                count: count as i32,
                width: width as i32,
                is_pure: i32::from(which == 0),
            };
            self.script.ops.push(Op::Settle(messages));
            if n + 1 == self.shape.steps.len() {
                self.script.ops.push(Op::Close(messages));
            }
        }
        Ok(messages_out)
    }

    /// The positions of the rows of all groups. No row may be in two groups.
    fn slots(&self, step_rows: &StepRows<'_>) -> Result<Slots, CudaError> {
        match &step_rows.groups[..] {
            [] => return Ok(Slots::InOrder(Kind::Identity)),
            [only] if is_range(only.rows, 0) && only.rows.len() == self.len => {
                return Ok(Slots::InOrder(only.kinds[0].times(only.kinds[1])));
            }
            _ => {}
        }
        let mut slots = vec![(Kind::Identity, 0); self.len];
        let mut next = [0; 2];
        for group in &step_rows.groups {
            let which = storage_of(group)?;
            let kind = [Kind::Pure, Kind::Mixed][which];
            for &row in group.rows {
                match slots.get_mut(row as usize) {
                    Some(slot) if slot.0 == Kind::Identity => *slot = (kind, next[which]),
                    _ => return Err(CudaError::Shape),
                }
                next[which] += 1;
            }
        }
        Ok(Slots::Listed(slots))
    }

    /// The messages of one kind of these rows, whose list is at `listed`.
    fn input(
        &mut self,
        sent: &StepMessages,
        kind: Kind,
        rows: &[u32],
        listed: usize,
    ) -> Result<Input, CudaError> {
        let at = match kind {
            Kind::Identity => 0,
            Kind::Pure => sent.places[0].0,
            Kind::Mixed => sent.places[1].0,
        };
        let slots = match &sent.slots {
            Slots::InOrder(found) if *found == kind => listed,
            Slots::InOrder(_) => return Err(CudaError::Shape),
            Slots::Listed(slots) => {
                let slot = |&row: &u32| match slots[row as usize] {
                    (found, slot) if found == kind => Ok(slot),
                    _ => Err(CudaError::Shape),
                };
                let slots: Vec<u32> = rows.iter().map(slot).collect::<Result<_, _>>()?;
                if kind == Kind::Identity { listed } else { self.list(&slots) }
            }
        };
        Ok(Input { at, slots })
    }

    /// The position of a list, which is added unless it is a range of rows.
    fn list(&mut self, numbers: &[u32]) -> usize {
        let first = numbers.first().map_or(0, |&n| n as usize);
        if is_range(numbers, first) && first + numbers.len() <= self.len {
            return first;
        }
        let at = self.script.index.len();
        self.script.index.extend_from_slice(numbers);
        at
    }

    fn leaf(
        &mut self,
        step: Step,
        width: usize,
        (kinds, count): ([Kind; 2], usize),
        step_rows: &'a StepRows<'a>,
        out: usize,
    ) -> Result<(), CudaError> {
        let parts = if self.shape.complex { 2 } else { 1 };
        let op = match (step, kinds, &step_rows.cells) {
            (_, [Kind::Mixed, Kind::Mixed], _)
                if step_rows.grams.len() == count * width * width * parts =>
            {
                Op::Upload { at: out, numbers: Cow::Borrowed(&step_rows.grams) }
            }
            (Step::Functions { .. }, [Kind::Pure, Kind::Pure], Cells::Functions(numbers))
                if numbers.len() == count * width * parts =>
            {
                Op::Upload { at: out, numbers: Cow::Borrowed(numbers) }
            }
            (Step::Codes { weight, .. }, [Kind::Pure, Kind::Pure], Cells::Codes(codes)) => {
                let [w, rows, columns] = self.shape.weights[weight];
                let is_in = |&code: &u32| (code as usize) < columns;
                if rows != width || codes.len() != count || !codes.iter().all(is_in) {
                    return Err(CudaError::Shape);
                }
                let at = self.script.index.len();
                self.script.index.extend_from_slice(codes);
                Op::Codes(Codes {
                    w: w as i64,
                    out: out as i64,
                    at: at as i32,
                    columns: columns as i32,
                    width: width as i32,
                    count: count as i32,
                })
            }
            _ => return Err(CudaError::Shape),
        };
        self.script.ops.push(op);
        Ok(())
    }

    pub(crate) fn product(&mut self, product: Product, outer: usize) {
        self.script.ops.push(Op::Product(product, outer));
    }

    /// W a.
    pub(crate) fn sum(
        &mut self,
        (w, [k, k1]): (usize, [usize; 2]),
        kind: Kind,
        a: Input,
        to: (usize, usize),
    ) {
        if kind == Kind::Mixed {
            // As a product with a function that is 1, whose message is the identity.
            let inputs = [Input { at: 0, slots: 0 }, a];
            return self.kronecker((w, [k, 1, k1]), [Kind::Identity, Kind::Mixed], inputs, to);
        }
        let (c, m) = (to.0 as i64, to.1 as i32);
        self.product(Product { c, m, ..vectors(a, k1).by_weight(w, k, k1) }, 1);
    }

    /// W (a ⊗ b), for every entry of the message table.
    pub(crate) fn kronecker(
        &mut self,
        (w, [k, k1, k2]): (usize, [usize; 3]),
        kinds: [Kind; 2],
        [a, b]: [Input; 2],
        (out, count): (usize, usize),
    ) {
        // A vector leaves a matrix B with k rows for every row of the block; otherwise, the whole
        // weight is left.
        let left = match kinds {
            [Kind::Pure, Kind::Pure] => {
                let product = Product {
                    second: b.at as i64,
                    second_rows: b.slots as i32,
                    width: k2 as i32,
                    c: out as i64,
                    m: count as i32,
                    ..vectors(a, k1).by_weight(w, k, k1 * k2)
                };
                return self.product(product, 1);
            }
            [Kind::Pure, _] => k2,
            [_, Kind::Pure] => k1,
            [Kind::Identity | Kind::Mixed, Kind::Identity | Kind::Mixed] => k1 * k2,
        };
        let rows = (self.scratch / (k * left)).clamp(1, count.max(1));
        for first in (0..count).step_by(rows) {
            let n = rows.min(count - first);
            let inputs = [a, b].map(|input| Input { slots: input.slots + first, ..input });
            let out = out + first * k * k;
            if kinds.contains(&Kind::Pure) {
                self.with_vectors((w, [k, k1, k2]), kinds, inputs, (out, n));
            } else {
                self.with_matrices((w, [k, k1, k2]), kinds, inputs, (out, n));
            }
        }
    }

    /// B M Bᴴ, where B is what a vector leaves of the weight.
    fn with_vectors(
        &mut self,
        (w, [k, k1, k2]): (usize, [usize; 3]),
        kinds: [Kind; 2],
        [a, b]: [Input; 2],
        (out, n): (usize, usize),
    ) {
        let is_left = kinds[0] == Kind::Pure;
        let (left, matrices, other) = if is_left { (k2, b, kinds[1]) } else { (k1, a, kinds[0]) };
        let (each, len) = (k * left, n * k * left);
        let whole = self.arena.take(len);
        let product = if is_left {
            // B[k, j] = Σ W[k, i, j] a[i], for every k.
            Product {
                b2: (k1 * k2) as i32,
                bq: k2 as i32,
                bn: 1,
                c2: k2 as i32,
                n: k2 as i32,
                q: k1 as i32,
                inner: k as i32,
                ..vectors(a, k1)
            }
        } else {
            // B[k, i] = Σ W[k, i, j] b[j].
            let (n, q) = ((k * k1) as i32, k2 as i32);
            Product { bq: 1, bn: q, n, q, ..vectors(b, k2) }
        };
        let (b, c, cm, m) = (w as i64, whole as i64, each as i32, n as i32);
        self.product(Product { b, b_is_weight: 1, c, cm, m, ..product }, 1);
        let half = if other == Kind::Mixed {
            let half = self.arena.take(len);
            self.product(by_matrices((whole, false, each), [k, left], matrices, half), n);
            half
        } else {
            whole
        };
        let product = Product {
            a: half as i64,
            am: left as i32,
            aq: 1,
            a1: each as i32,
            b: whole as i64,
            bq: 1,
            bn: left as i32,
            b1: each as i32,
            conjugates: 1,
            c: out as i64,
            c1: (k * k) as i32,
            cm: k as i32,
            m: k as i32,
            n: k as i32,
            q: left as i32,
            ..plain()
        };
        self.product(product, n);
        self.arena.give(whole, len);
        if half != whole {
            self.arena.give(half, len);
        }
    }

    /// The weight times the matrices of its inputs, times Wᴴ.
    fn with_matrices(
        &mut self,
        (w, [k, k1, k2]): (usize, [usize; 3]),
        kinds: [Kind; 2],
        [a, b]: [Input; 2],
        (out, n): (usize, usize),
    ) {
        let (each, len) = (k * k1 * k2, n * k * k1 * k2);
        let mut tensor = (w, true, 0);
        if kinds[0] == Kind::Mixed {
            // T[k, i', j] = Σ A[i, i'] W[k, i, j], for every k.
            let to = self.arena.take(len);
            let product = Product {
                a: a.at as i64,
                am: 1,
                aq: k1 as i32,
                a1: (k1 * k1) as i32,
                a_each: a.slots as i32,
                b: w as i64,
                b_is_weight: 1,
                b2: (k1 * k2) as i32,
                bq: k2 as i32,
                bn: 1,
                c: to as i64,
                c1: each as i32,
                c2: (k1 * k2) as i32,
                cm: k2 as i32,
                m: k1 as i32,
                n: k2 as i32,
                q: k1 as i32,
                inner: k as i32,
                ..plain()
            };
            self.product(product, n);
            tensor = (to, false, each);
        }
        if kinds[1] == Kind::Mixed {
            let to = self.arena.take(len);
            self.product(by_matrices(tensor, [k * k1, k2], b, to), n);
            if kinds[0] == Kind::Mixed {
                self.arena.give(tensor.0, len);
            }
            tensor = (to, false, each);
        }
        // The rows of all tensors at once.
        let left = k1 * k2;
        let all = Product { a: tensor.0 as i64, am: left as i32, aq: 1, ..plain() };
        let (c, m) = (out as i64, (n * k) as i32);
        self.product(Product { c, m, conjugates: 1, ..all.by_weight(w, k, left) }, 1);
        self.arena.give(tensor.0, len);
    }
}

/// A product without lists.
pub(crate) fn plain() -> Product {
    Product { inner: 1, a_rows: -1, second_rows: -1, a_each: -1, b_each: -1, ..Product::default() }
}

/// A product with the vectors of rows on the left.
fn vectors(input: Input, width: usize) -> Product {
    let (a, am, a_rows) = (input.at as i64, width as i32, input.slots as i32);
    Product { a, am, aq: 1, a_rows, ..plain() }
}

impl Product {
    /// Adds the transpose of a weight with this many rows and columns on the right.
    pub(crate) fn by_weight(self, w: usize, rows: usize, columns: usize) -> Self {
        let (n, q) = (rows as i32, columns as i32);
        Self { b: w as i64, b_is_weight: 1, bq: 1, bn: q, cm: n, n, q, ..self }
    }
}

/// A tensor with rows of this width, which is the weight or differs between the rows of the block,
/// times the matrices of an input.
fn by_matrices(
    (from, is_weight, step): (usize, bool, usize),
    [rows, width]: [usize; 2],
    matrices: Input,
    to: usize,
) -> Product {
    Product {
        a: from as i64,
        a_is_weight: i32::from(is_weight),
        am: width as i32,
        aq: 1,
        a1: step as i32,
        b: matrices.at as i64,
        b_each: matrices.slots as i32,
        b1: (width * width) as i32,
        bq: width as i32,
        bn: 1,
        c: to as i64,
        c1: (rows * width) as i32,
        cm: width as i32,
        m: rows as i32,
        n: width as i32,
        q: width as i32,
        ..plain()
    }
}

/// Whether a group sends vectors (0) or matrices (1).
fn storage_of(group: &Group<'_>) -> Result<usize, CudaError> {
    match group.kinds[0].times(group.kinds[1]) {
        Kind::Identity => Err(CudaError::Shape),
        Kind::Pure => Ok(0),
        Kind::Mixed => Ok(1),
    }
}

/// Whether these are consecutive numbers, starting with `first`.
fn is_range(numbers: &[u32], first: usize) -> bool {
    numbers.iter().zip(first as u32..).all(|(&n, at)| n == at)
}

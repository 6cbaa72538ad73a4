//! The forward and reverse pass of learning on rows with holes: log ∫ ‖c(y, z)‖² dz and its gradient by every weight.
//!
//! Every step sends M = ∫ ℓ ℓᴴ over its unknown variables, and receives the E with p = Σ E[k, k′] M[k, k′]. From
//! M = W N Wᴴ the gradient by W is 2 Eᵀ W N / p. Where all variables of a step have values M = v vᴴ: then v is sent and its
//! gradient 2 Eᵀ v / p received, as on complete rows.
//!
//! Where no variable has a value, M does not depend on the row. It is I if the weights are semi-unitary, and no change
//! that keeps them so changes it: nothing is sent down. Otherwise the rows' E are summed, and sent down once.

use rayon::prelude::*;

use super::network::{Kind, Network};
use super::tensor::{contract_first, gram_first, gram_last, multiply_first, multiply_last};
use crate::basis::{Basis, Part};
use crate::engine::Rows;
use crate::linalg::{Matrix, Scalar};

/// Rows to a task, whose gradients are summed before those of all tasks are, in order.
const ROWS: usize = 8;

/// What a step sends, without the power of two taken out.
#[derive(Clone, Debug)]
enum Message<T> {
    /// No variable has a value.
    Unknown,
    /// All have.
    Pure(Vec<T>),
    Mixed(Matrix<T>),
}

#[derive(Clone, Debug)]
struct Node<T> {
    message: Message<T>,
    /// What was taken out of M here and below: 2^exponent.
    exponent: i64,
    /// What v or M was multiplied with here.
    factor: f64,
}

/// What a step receives: the gradient by v, or E / p.
#[derive(Clone, Debug)]
enum Received<T> {
    Vector(Vec<T>),
    Matrix(Matrix<T>),
}

/// What a row knows of a variable.
enum Cell<'a> {
    Value(f64),
    Part(&'a Part),
    Unknown,
    /// Unknown, where the integral is not the identity.
    Whole,
}

/// The passes for one set of weights.
#[derive(Debug)]
pub(super) struct Marginals<'a, T> {
    network: &'a Network,
    weights: Vec<&'a Matrix<T>>,
    /// What every step sends where nothing is known, unless it is the identity.
    unknown: Option<Vec<Node<T>>>,
}

/// Gradients by the weights, and what was received by steps of which nothing is known.
struct Sums<T> {
    logs: Vec<f64>,
    gradients: Vec<Matrix<T>>,
    unknown: Vec<Option<Received<T>>>,
}

impl<'a, T: Scalar> Marginals<'a, T> {
    /// With `orthonormal` the weights and the inputs are taken to be so; without, all integrals are computed.
    pub(super) fn new(
        network: &'a Network,
        weights: Vec<&'a Matrix<T>>,
        orthonormal: bool,
    ) -> Self {
        let mut this = Self { network, weights, unknown: None };
        if !orthonormal {
            this.unknown = Some(this.forward(|_| Cell::Whole));
        }
        this
    }

    /// log Z; 0 where all is orthonormal.
    pub(super) fn log_partition(&self) -> f64 {
        self.unknown.as_ref().map_or(0.0, |nodes| self.log_trace(nodes).0)
    }

    /// log ∫ ‖c‖² of every row named.
    pub(super) fn logs(&self, rows: &Rows<'_>, indices: &[usize]) -> Vec<f64> {
        let log = |&row: &usize| self.log_trace(&self.forward(|v| cell(rows, row, v))).0;
        indices.par_iter().map(log).collect()
    }

    /// log ∫ ‖c‖² of every row named, and the gradient of `row_weight` Σ log ∫ ‖c‖² − `partition_weight` log Z by every
    /// weight: ∂/∂re + i ∂/∂im.
    pub(super) fn gradient(
        &self,
        rows: &Rows<'_>,
        indices: &[usize],
        row_weight: f64,
        partition_weight: f64,
    ) -> (Vec<f64>, Vec<Matrix<T>>) {
        let chunks: Vec<Sums<T>> = indices
            .par_chunks(ROWS)
            .map(|indices| {
                let mut sums = self.zeros();
                for &row in indices {
                    self.add_row(rows, row, row_weight, &mut sums);
                }
                sums
            })
            .collect();
        let mut sums = self.zeros();
        for chunk in chunks {
            sums.logs.extend(chunk.logs);
            for (sum, g) in sums.gradients.iter_mut().zip(&chunk.gradients) {
                add(sum.data_mut(), g.data(), 1.0);
            }
            for (step, received) in chunk.unknown.into_iter().enumerate() {
                if let Some(received) = received {
                    give(&mut sums.unknown, step, received);
                }
            }
        }
        if let Some(nodes) = &self.unknown {
            let output = self.network.steps.len() - 1;
            let (_, trace) = self.log_trace(nodes);
            let width = self.network.steps[output].width;
            let identity = Matrix::identity(width).scaled(-partition_weight / trace);
            let mut received = std::mem::take(&mut sums.unknown);
            give(&mut received, output, Received::Matrix(identity));
            self.backward(|_| Cell::Whole, nodes, received, &mut sums);
        }
        (sums.logs, sums.gradients)
    }

    fn zeros(&self) -> Sums<T> {
        Sums {
            logs: Vec::new(),
            gradients: self.weights.iter().map(|w| Matrix::zeros(w.rows(), w.cols())).collect(),
            unknown: vec![None; self.network.steps.len()],
        }
    }

    /// A row of density 0 has no gradient.
    fn add_row(&self, rows: &Rows<'_>, row: usize, row_weight: f64, sums: &mut Sums<T>) {
        let nodes = self.forward(|v| cell(rows, row, v));
        let (log, trace) = self.log_trace(&nodes);
        sums.logs.push(log);
        let output = self.network.steps.len() - 1;
        let first = match &nodes[output].message {
            _ if trace <= 0.0 => return,
            Message::Pure(v) => {
                let scale = 2.0 * row_weight / trace;
                Received::Vector(v.iter().map(|x| x.scale_by(scale)).collect())
            }
            Message::Mixed(m) => {
                Received::Matrix(Matrix::identity(m.rows()).scaled(row_weight / trace))
            }
            Message::Unknown if self.unknown.is_none() => return,
            Message::Unknown => {
                let width = self.network.steps[output].width;
                Received::Matrix(Matrix::identity(width).scaled(row_weight / trace))
            }
        };
        let mut received = vec![None; self.network.steps.len()];
        received[output] = Some(first);
        self.backward(|v| cell(rows, row, v), &nodes, received, sums);
    }

    fn forward<'b>(&self, cell: impl Fn(usize) -> Cell<'b>) -> Vec<Node<T>> {
        let mut nodes: Vec<Node<T>> = Vec::with_capacity(self.network.steps.len());
        for step in &self.network.steps {
            let (message, below) = match &step.kind {
                Kind::Leaf { variable, basis, weight } => {
                    (self.leaf(basis, *weight, &cell(*variable)), 0)
                }
                Kind::Kronecker { inputs: [a, b], weight } => (
                    self.kronecker(&nodes, [*a, *b], self.weights[*weight]),
                    nodes[*a].exponent + nodes[*b].exponent,
                ),
                Kind::Hadamard { inputs: [a, b] } => (
                    self.hadamard(&nodes, [*a, *b], step.width),
                    nodes[*a].exponent + nodes[*b].exponent,
                ),
                Kind::Sum { input, weight } => {
                    let w = self.weights[*weight];
                    let message = match &nodes[*input].message {
                        Message::Unknown => Message::Unknown,
                        Message::Pure(v) => Message::Pure(w.times_vector(v)),
                        Message::Mixed(m) => Message::Mixed(w.times(m).times_adjoint(w)),
                    };
                    (message, nodes[*input].exponent)
                }
            };
            nodes.push(self.node(nodes.len(), message, below));
        }
        nodes
    }

    /// log p at the output, and the trace there without the power of two.
    fn log_trace(&self, nodes: &[Node<T>]) -> (f64, f64) {
        let Some(output) = nodes.last() else { unreachable!("a circuit has layers") };
        let trace = match (&output.message, &self.unknown) {
            (Message::Unknown, Some(unknown)) => return self.log_trace(unknown),
            (Message::Unknown, None) => 1.0,
            (Message::Pure(v), _) => v.iter().map(|x| x.abs2()).sum(),
            (Message::Mixed(m), _) => (0..m.rows()).map(|i| m[(i, i)].to_complex().re).sum::<f64>(),
        };
        (trace.max(0.0).ln() + output.exponent as f64 * std::f64::consts::LN_2, trace)
    }

    /// Takes a power of two out of a message.
    fn node(&self, step: usize, mut message: Message<T>, below: i64) -> Node<T> {
        let (exponent, factor) = match &mut message {
            Message::Unknown => {
                let exponent = self.unknown.as_ref().map_or(0, |u| u[step].exponent);
                return Node { message, exponent, factor: 1.0 };
            }
            Message::Pure(v) => {
                let e = rescale(v);
                (2 * e, 2_f64.powi(-e as i32))
            }
            Message::Mixed(m) => {
                *m = m.hermitian_part();
                let e = rescale(m.data_mut());
                (e, 2_f64.powi(-e as i32))
            }
        };
        Node { message, exponent: below + exponent, factor }
    }

    fn leaf(&self, basis: &Basis, weight: Option<usize>, cell: &Cell<'_>) -> Message<T> {
        let w = weight.map(|w| self.weights[w]);
        let gram = match cell {
            Cell::Value(x) => {
                let f = functions(basis, *x);
                return Message::Pure(w.map_or(f.clone(), |w| w.times_vector(&f)));
            }
            Cell::Unknown => return Message::Unknown,
            Cell::Part(part) => basis.gram_over(part),
            Cell::Whole => basis.gram(),
        };
        Message::Mixed(w.map_or(gram.clone(), |w| w.times(&gram).times_adjoint(w)))
    }

    fn kronecker(&self, nodes: &[Node<T>], [a, b]: [usize; 2], w: &Matrix<T>) -> Message<T> {
        let dims = self.dims(w, [a, b]);
        let (b_matrix, n) = match (&nodes[a].message, &nodes[b].message) {
            (Message::Unknown, Message::Unknown) => return Message::Unknown,
            (Message::Pure(a), Message::Pure(b)) => {
                return Message::Pure(contract_first(w, dims, a).times_vector(b));
            }
            (Message::Pure(v), _) => (contract_first(w, dims, v), self.matrix(nodes, b)),
            (_, Message::Pure(v)) => (contract_last(w, dims, v), self.matrix(nodes, a)),
            _ => {
                let t = multiply_first(w, dims, self.matrix(nodes, a));
                let t = multiply_last(&t, dims, self.matrix(nodes, b));
                return Message::Mixed(t.times_adjoint(w));
            }
        };
        Message::Mixed(times(&b_matrix, n).times_adjoint(&b_matrix))
    }

    fn hadamard(&self, nodes: &[Node<T>], [a, b]: [usize; 2], width: usize) -> Message<T> {
        match (&nodes[a].message, &nodes[b].message) {
            (Message::Unknown, Message::Unknown) => Message::Unknown,
            (Message::Pure(a), Message::Pure(b)) => {
                Message::Pure(a.iter().zip(b).map(|(&a, &b)| a * b).collect())
            }
            _ => Message::Mixed(entrywise(
                &self.to_matrix(nodes, a, width),
                &self.to_matrix(nodes, b, width),
            )),
        }
    }

    fn dims(&self, w: &Matrix<T>, inputs: [usize; 2]) -> [usize; 3] {
        let [k1, k2] = inputs.map(|i| self.network.steps[i].width);
        [w.rows(), k1, k2]
    }

    /// M of a step that is not pure; `None` for the identity.
    fn matrix<'b>(&'b self, nodes: &'b [Node<T>], step: usize) -> Option<&'b Matrix<T>> {
        match &nodes[step].message {
            Message::Mixed(m) => Some(m),
            Message::Unknown => self.unknown.as_ref().and_then(|u| self.matrix(u, step)),
            Message::Pure(_) => unreachable!("a vector is never made a matrix here"),
        }
    }

    /// M of any step.
    fn to_matrix(&self, nodes: &[Node<T>], step: usize, width: usize) -> Matrix<T> {
        match &nodes[step].message {
            Message::Pure(v) => Matrix::from_fn(width, width, |i, j| v[i] * v[j].conjugate()),
            _ => self.matrix(nodes, step).cloned().unwrap_or_else(|| Matrix::identity(width)),
        }
    }

    /// Whether a step has use for what it receives.
    fn receives(&self, nodes: &[Node<T>], step: usize) -> bool {
        self.unknown.is_some() || !matches!(nodes[step].message, Message::Unknown)
    }

    fn backward<'b>(
        &self,
        cell: impl Fn(usize) -> Cell<'b>,
        nodes: &[Node<T>],
        mut received: Vec<Option<Received<T>>>,
        sums: &mut Sums<T>,
    ) {
        for (index, step) in self.network.steps.iter().enumerate().rev() {
            let Some(mut own) = received[index].take() else { continue };
            if matches!(nodes[index].message, Message::Unknown) {
                if self.unknown.is_some() {
                    give(&mut sums.unknown, index, own);
                }
                continue;
            }
            own.scale(nodes[index].factor);
            match &step.kind {
                Kind::Leaf { variable, basis, weight } => {
                    if let Some(w) = weight {
                        let out = &mut sums.gradients[*w];
                        leaf_gradient(basis, &cell(*variable), &own, self.weights[*w], out);
                    }
                }
                Kind::Kronecker { inputs, weight } => {
                    let out = &mut sums.gradients[*weight];
                    self.kronecker_back(nodes, *inputs, *weight, &own, &mut received, out);
                }
                Kind::Hadamard { inputs } => {
                    self.hadamard_back(nodes, *inputs, step.width, &own, &mut received);
                }
                Kind::Sum { input, weight } => {
                    let (w, out) = (self.weights[*weight], &mut sums.gradients[*weight]);
                    match &own {
                        Received::Vector(g) => {
                            let Message::Pure(v) = &nodes[*input].message else {
                                unreachable!("a vector is made of vectors")
                            };
                            add_outer(out, g, v);
                            let g = w.adjoint().times_vector(g);
                            give(&mut received, *input, Received::Vector(g));
                        }
                        Received::Matrix(e) => {
                            let h = e.transpose().times(w);
                            add(out.data_mut(), times(&h, self.matrix(nodes, *input)).data(), 2.0);
                            let e = gram_last(w, &h, w.cols());
                            give(&mut received, *input, Received::Matrix(e));
                        }
                    }
                }
            }
        }
    }

    fn kronecker_back(
        &self,
        nodes: &[Node<T>],
        [a, b]: [usize; 2],
        weight: usize,
        own: &Received<T>,
        received: &mut [Option<Received<T>>],
        out: &mut Matrix<T>,
    ) {
        let w = self.weights[weight];
        let dims = self.dims(w, [a, b]);
        let [k, k1, k2] = dims;
        match (&nodes[a].message, &nodes[b].message, own) {
            (Message::Pure(va), Message::Pure(vb), Received::Vector(g)) => {
                // B = W (a ⊗ ·): its gradient is g bᴴ.
                let gb = Matrix::from_fn(k, k2, |k, j| g[k] * vb[j].conjugate());
                give(received, a, Received::Vector(first_gradient(w, dims, &gb, va, out)));
                let g = contract_first(w, dims, va).adjoint().times_vector(g);
                give(received, b, Received::Vector(g));
            }
            (Message::Pure(v), _, Received::Matrix(e)) => {
                let block = contract_first(w, dims, v);
                let h = e.transpose().times(&block);
                let g = times(&h, self.matrix(nodes, b)).scaled(2.0);
                give(received, a, Received::Vector(first_gradient(w, dims, &g, v, out)));
                if self.receives(nodes, b) {
                    give(received, b, Received::Matrix(gram_last(&block, &h, k2)));
                }
            }
            (_, Message::Pure(v), Received::Matrix(e)) => {
                let block = contract_last(w, dims, v);
                let h = e.transpose().times(&block);
                let g = times(&h, self.matrix(nodes, a)).scaled(2.0);
                give(received, b, Received::Vector(last_gradient(w, dims, &g, v, out)));
                if self.receives(nodes, a) {
                    give(received, a, Received::Matrix(gram_last(&block, &h, k1)));
                }
            }
            (_, _, Received::Matrix(e)) => {
                let (ma, mb) = (self.matrix(nodes, a), self.matrix(nodes, b));
                let h = e.transpose().times(w);
                let g = multiply_last(&multiply_first(&h, dims, ma), dims, mb);
                add(out.data_mut(), g.data(), 2.0);
                if self.receives(nodes, a) {
                    let e = gram_first(&multiply_last(w, dims, mb), &h, dims);
                    give(received, a, Received::Matrix(e));
                }
                if self.receives(nodes, b) {
                    let e = gram_last(&multiply_first(w, dims, ma), &h, k2);
                    give(received, b, Received::Matrix(e));
                }
            }
            _ => unreachable!("a vector is made of vectors"),
        }
    }

    fn hadamard_back(
        &self,
        nodes: &[Node<T>],
        [a, b]: [usize; 2],
        width: usize,
        own: &Received<T>,
        received: &mut [Option<Received<T>>],
    ) {
        for (to, other) in [(a, b), (b, a)] {
            let sent = match (own, &nodes[to].message, &nodes[other].message) {
                (Received::Vector(g), _, Message::Pure(v)) => {
                    let terms = g.iter().zip(v);
                    Received::Vector(terms.map(|(&g, v)| g * v.conjugate()).collect())
                }
                (Received::Matrix(e), message, _) => {
                    let e = entrywise(e, &self.to_matrix(nodes, other, width));
                    match message {
                        Message::Pure(v) => {
                            Received::Vector(e.transpose().scaled(2.0).times_vector(v))
                        }
                        _ => Received::Matrix(e),
                    }
                }
                _ => unreachable!("a vector is made of vectors"),
            };
            if self.receives(nodes, to) {
                give(received, to, sent);
            }
        }
    }
}

impl<T: Scalar> Received<T> {
    fn data_mut(&mut self) -> &mut [T] {
        match self {
            Received::Vector(v) => v,
            Received::Matrix(m) => m.data_mut(),
        }
    }

    fn scale(&mut self, factor: f64) {
        for x in self.data_mut() {
            *x = x.scale_by(factor);
        }
    }
}

fn cell<'a>(rows: &'a Rows<'_>, row: usize, variable: usize) -> Cell<'a> {
    let x = rows.value(row, variable);
    if !x.is_nan() {
        return Cell::Value(x);
    }
    rows.part(row, variable).map_or(Cell::Unknown, Cell::Part)
}

fn functions<T: Scalar>(basis: &Basis, x: f64) -> Vec<T> {
    let mut f = vec![T::ZERO; basis.width()];
    basis.evaluate(x, &mut f);
    f
}

fn leaf_gradient<T: Scalar>(
    basis: &Basis,
    cell: &Cell<'_>,
    own: &Received<T>,
    w: &Matrix<T>,
    out: &mut Matrix<T>,
) {
    let gram = match (cell, own) {
        (Cell::Value(x), Received::Vector(g)) => return add_outer(out, g, &functions(basis, *x)),
        (Cell::Part(part), _) => basis.gram_over(part),
        _ => basis.gram(),
    };
    if let Received::Matrix(e) = own {
        add(out.data_mut(), e.transpose().times(w).times(&gram).data(), 2.0);
    }
}

/// Adds what a step receives to what it has received.
fn give<T: Scalar>(received: &mut [Option<Received<T>>], step: usize, mut new: Received<T>) {
    match &mut received[step] {
        Some(sum) => add(sum.data_mut(), new.data_mut(), 1.0),
        empty => *empty = Some(new),
    }
}

/// Adds the gradient by W of B = W (a ⊗ ·), given that by B; returns the gradient by a.
fn first_gradient<T: Scalar>(
    w: &Matrix<T>,
    [k, k1, k2]: [usize; 3],
    gb: &Matrix<T>,
    a: &[T],
    out: &mut Matrix<T>,
) -> Vec<T> {
    let mut ga = vec![T::ZERO; k1];
    for k in 0..k {
        let g = gb.row(k);
        let slabs = w.row(k).chunks_exact(k2).zip(out.row_mut(k).chunks_exact_mut(k2));
        for ((w, out), (a, ga)) in slabs.zip(a.iter().zip(&mut ga)) {
            let a = a.conjugate();
            for ((&w, out), &g) in w.iter().zip(out).zip(g) {
                *out += g * a;
                *ga += w.conjugate() * g;
            }
        }
    }
    ga
}

/// Adds the gradient by W of B = W (· ⊗ b), given that by B; returns the gradient by b.
fn last_gradient<T: Scalar>(
    w: &Matrix<T>,
    [k, _, k2]: [usize; 3],
    gb: &Matrix<T>,
    b: &[T],
    out: &mut Matrix<T>,
) -> Vec<T> {
    let mut total = vec![T::ZERO; k2];
    for k in 0..k {
        let slabs = w.row(k).chunks_exact(k2).zip(out.row_mut(k).chunks_exact_mut(k2));
        for ((w, out), &g) in slabs.zip(gb.row(k)) {
            for (((&w, out), b), total) in w.iter().zip(out).zip(b).zip(&mut total) {
                *out += g * b.conjugate();
                *total += w.conjugate() * g;
            }
        }
    }
    total
}

/// W (· ⊗ b).
fn contract_last<T: Scalar>(w: &Matrix<T>, [k, k1, k2]: [usize; 3], b: &[T]) -> Matrix<T> {
    let dot = |slab: &[T]| slab.iter().zip(b).fold(T::ZERO, |sum, (&w, &b)| sum + w * b);
    Matrix::new(k, k1, w.data().chunks_exact(k2).map(dot).collect())
}

/// A M, where none is the identity.
fn times<T: Scalar>(a: &Matrix<T>, m: Option<&Matrix<T>>) -> Matrix<T> {
    m.map_or_else(|| a.clone(), |m| a.times(m))
}

fn entrywise<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    let data = a.data().iter().zip(b.data()).map(|(&a, &b)| a * b).collect();
    Matrix::new(a.rows(), a.cols(), data)
}

/// out += g fᴴ.
fn add_outer<T: Scalar>(out: &mut Matrix<T>, g: &[T], f: &[T]) {
    for (k, &g) in g.iter().enumerate() {
        for (out, f) in out.row_mut(k).iter_mut().zip(f) {
            *out += g * f.conjugate();
        }
    }
}

/// sum += factor x.
fn add<T: Scalar>(sum: &mut [T], x: &[T], factor: f64) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum += x.scale_by(factor);
    }
}

/// Brings the largest part to [1, 2) by a power of two and returns its exponent. Zero stays zero.
fn rescale<T: Scalar>(values: &mut [T]) -> i64 {
    let max = values.iter().fold(0.0, |max: f64, x| max.max(x.max_part()));
    if max < f64::MIN_POSITIVE {
        return 0;
    }
    let exponent = max.log2().floor().clamp(-1000.0, 1000.0) as i64;
    let factor = 2_f64.powi(-exponent as i32);
    for x in values {
        *x = x.scale_by(factor);
    }
    exponent
}

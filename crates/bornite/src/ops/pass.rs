//! One step up and one step down the tree, the building blocks of environments, expectations and
//! covariances.

use super::marginalize::received;
use super::message::{Message, contract, contract_diagonal, hadamard, kronecker};
use super::scaled::{Scaled, rescale};
use crate::basis::Basis;
use crate::circuit::{Circuit, Layer, LayerId, Orthonormal, VariableId};
use crate::linalg::{Matrix, Scalar};

/// The environment of a layer: the Hermitian E with p(evidence) = Σ E[k, k′] M[k, k′], where M is
/// the layer's message.
#[derive(Clone, Debug)]
pub(super) enum Environment<T> {
    /// The whole matrix.
    Full(Message<T>),
    /// Only the diagonal, which is all that a layer of indicator functions needs.
    Diagonal(Scaled<Vec<f64>>),
}

impl<T: Scalar> Environment<T> {
    /// Σ E[k, k′] M[k, k′].
    pub(super) fn close(&self, message: &Message<T>, width: usize) -> Scaled<f64> {
        match self {
            Environment::Full(e) => close(e, message, width),
            Environment::Diagonal(e) => {
                let (value, exponent) = match message {
                    Message::Identity => (e.value.iter().sum(), 0),
                    Message::Diagonal(d) => {
                        (e.value.iter().zip(&d.value).map(|(e, d)| e * d).sum(), d.exponent)
                    }
                    Message::Pure(v) => {
                        let terms = e.value.iter().zip(&v.value);
                        (terms.map(|(e, x)| e * x.abs2()).sum(), 2 * v.exponent)
                    }
                    Message::Mixed(m) => {
                        let diagonal = (0..width).map(|k| m.value[(k, k)].to_complex().re);
                        (e.value.iter().zip(diagonal).map(|(e, d)| e * d).sum(), m.exponent)
                    }
                };
                Scaled { value, exponent: e.exponent + exponent }
            }
        }
    }

    /// E as a message, for the layers below.
    pub(super) fn full(&self) -> &Message<T> {
        match self {
            Environment::Full(e) => e,
            Environment::Diagonal(_) => unreachable!("only inputs have only a diagonal"),
        }
    }
}

/// Σ E[k, k′] M[k, k′], which is symmetric in the two.
pub(super) fn close<T: Scalar>(e: &Message<T>, m: &Message<T>, width: usize) -> Scaled<f64> {
    match (e, m) {
        (Message::Identity, other) | (other, Message::Identity) => other.trace(width),
        (Message::Pure(a), Message::Pure(b)) => {
            let dot = a.value.iter().zip(&b.value).fold(T::ZERO, |sum, (&a, &b)| sum + a * b);
            Scaled { value: dot.abs2(), exponent: 2 * (a.exponent + b.exponent) }
        }
        (Message::Diagonal(d), other) | (other, Message::Diagonal(d)) => {
            Environment::<T>::Diagonal(d.clone()).close(other, width)
        }
        (Message::Pure(v), Message::Mixed(m)) | (Message::Mixed(m), Message::Pure(v)) => {
            let rows =
                m.value.times_vector(&v.value.iter().map(|x| x.conjugate()).collect::<Vec<_>>());
            let sum = rows.iter().zip(&v.value).fold(T::ZERO, |sum, (&r, &x)| sum + r * x);
            Scaled { value: sum.to_complex().re, exponent: m.exponent + 2 * v.exponent }
        }
        (Message::Mixed(a), Message::Mixed(b)) => {
            let terms = a.value.data().iter().zip(b.value.data());
            let sum = terms.fold(T::ZERO, |sum, (&a, &b)| sum + a * b);
            Scaled { value: sum.to_complex().re, exponent: a.exponent + b.exponent }
        }
    }
}

/// The layer that takes this layer's message: its consumer, or the sum above a fused Kronecker
/// layer.
pub(super) fn receiver(circuit: &Circuit, id: LayerId) -> Option<LayerId> {
    let consumer = circuit.consumer(id)?;
    if circuit.is_fused(consumer) { circuit.consumer(consumer) } else { Some(consumer) }
}

/// The input layer of each variable.
pub(super) fn input_layers(circuit: &Circuit) -> Vec<LayerId> {
    let mut inputs = vec![circuit.output(); circuit.num_variables()];
    for id in circuit.layer_ids() {
        if let Layer::Input { variable, .. } = circuit.layer(id) {
            inputs[variable.index()] = id;
        }
    }
    inputs
}

/// The functions of an input layer.
pub(super) fn basis_of(circuit: &Circuit, id: LayerId) -> &std::sync::Arc<Basis> {
    match circuit.layer(id) {
        Layer::Input { basis, .. } => basis,
        Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => {
            unreachable!("an input layer")
        }
    }
}

/// The messages of all layers of an orthonormal circuit; `None` for fused Kronecker layers.
pub(super) fn upward_kept<T: Scalar>(
    circuit: &Orthonormal,
    mut input: impl FnMut(VariableId, &Basis) -> Message<T>,
) -> Vec<Option<Message<T>>> {
    let mut messages: Vec<Option<Message<T>>> = Vec::with_capacity(circuit.num_layers());
    for id in circuit.layer_ids() {
        let message = match circuit.layer(id) {
            _ if circuit.is_fused(id) => None,
            Layer::Input { variable, basis } => Some(input(*variable, basis)),
            Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => {
                Some(combine(circuit, id, |i| kept(&messages, i)))
            }
        };
        messages.push(message);
    }
    messages
}

/// The message of the output layer of an orthonormal circuit. All other messages are dropped as
/// soon as they have been used.
pub(super) fn upward_with<T: Scalar>(
    circuit: &Orthonormal,
    mut input: impl FnMut(VariableId, &Basis) -> Message<T>,
) -> Message<T> {
    let mut messages: Vec<Option<Message<T>>> = vec![None; circuit.num_layers()];
    for id in circuit.layer_ids() {
        let message = match circuit.layer(id) {
            _ if circuit.is_fused(id) => continue,
            Layer::Input { variable, basis } => input(*variable, basis),
            Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => {
                combine(circuit, id, |i| kept(&messages, i))
            }
        };
        for &i in received(circuit, id) {
            messages[i.index()] = None;
        }
        messages[id.index()] = Some(message);
    }
    kept(&messages, circuit.output()).clone()
}

/// A message that must exist.
pub(super) fn kept<T>(messages: &[Option<Message<T>>], id: LayerId) -> &Message<T> {
    match &messages[id.index()] {
        Some(message) => message,
        None => unreachable!("inputs come first, and no one receives a fused layer"),
    }
}

/// The message of a layer that is not an input, given the messages that it takes.
///
/// An inner layer of an orthonormal circuit that takes only identities passes the identity on.
pub(super) fn combine<'a, T: Scalar>(
    circuit: &Orthonormal,
    id: LayerId,
    message: impl Fn(LayerId) -> &'a Message<T>,
) -> Message<T> {
    let factors: Vec<(&Message<T>, usize)> =
        received(circuit, id).iter().map(|&i| (message(i), circuit.width(i))).collect();
    let nothing = factors.iter().all(|f| matches!(f.0, Message::Identity));
    if nothing && id != circuit.output() {
        return Message::Identity;
    }
    match circuit.layer(id) {
        Layer::Hadamard { .. } => {
            let messages: Vec<_> = factors.iter().map(|f| f.0).collect();
            hadamard(&messages, circuit.width(id))
        }
        Layer::Kronecker { .. } => kronecker(&factors),
        Layer::Sum { weight, .. } => contract(&circuit.weight(*weight).to_matrix::<T>(), &factors),
        Layer::Input { .. } => unreachable!("inputs receive no message"),
    }
}

/// The environment of the output: I, stored as the vector 1 if the output has width 1.
pub(super) fn output_environment<T: Scalar>(circuit: &Circuit) -> Environment<T> {
    Environment::Full(match circuit.width(circuit.output()) {
        1 => Message::pure(vec![T::ONE], 0),
        _ => Message::Identity,
    })
}

/// The environment of the layer at position `target` among those that `id` takes messages from,
/// given the environment of `id` and the messages of the others. This is the same contraction as on
/// the way up, with the modes of the weight in a different order.
pub(super) fn descend<'a, T: Scalar>(
    circuit: &Circuit,
    id: LayerId,
    environment: &Message<T>,
    target: usize,
    message: impl Fn(LayerId) -> &'a Message<T>,
) -> Environment<T> {
    let inputs = received(circuit, id);
    let widths: Vec<usize> = inputs.iter().map(|&i| circuit.width(i)).collect();
    let others = || (0..inputs.len()).filter(|&n| n != target);
    let mut factors: Vec<(&Message<T>, usize)> = vec![(environment, circuit.width(id))];
    factors.extend(others().map(|n| (message(inputs[n]), widths[n])));
    match circuit.layer(id) {
        Layer::Sum { weight, .. } => {
            let w = mode_first(&circuit.weight(*weight).to_matrix::<T>(), &widths, target);
            if let Layer::Input { basis, .. } = circuit.layer(inputs[target])
                && matches!(**basis, Basis::Indicator(_))
            {
                return Environment::Diagonal(contract_diagonal(&w, &factors));
            }
            Environment::Full(contract(&w, &factors))
        }
        Layer::Hadamard { .. } => {
            let messages: Vec<_> = factors.iter().map(|f| f.0).collect();
            Environment::Full(hadamard(&messages, widths[target]))
        }
        Layer::Kronecker { .. } => {
            let others: Vec<&Message<T>> = factors[1..].iter().map(|f| f.0).collect();
            Environment::Full(partial_trace(environment, &widths, target, &others))
        }
        Layer::Input { .. } => unreachable!("inputs receive no message"),
    }
}

/// W[k; …, i, …] as a matrix with one row for each i of a mode, and columns (k, other modes).
pub(super) fn mode_first<T: Scalar>(w: &Matrix<T>, widths: &[usize], mode: usize) -> Matrix<T> {
    let (n, after): (usize, usize) = (widths[mode], widths[mode + 1..].iter().product());
    let slabs = w.data().len() / (n * after);
    let mut out = Vec::with_capacity(w.data().len());
    for i in 0..n {
        for p in 0..slabs {
            let start = (p * n + i) * after;
            out.extend_from_slice(&w.data()[start..start + after]);
        }
    }
    Matrix::new(n, slabs * after, out)
}

/// The environment of one factor of a Kronecker product without a sum above it.
fn partial_trace<T: Scalar>(
    environment: &Message<T>,
    widths: &[usize],
    target: usize,
    others: &[&Message<T>],
) -> Message<T> {
    let rest = || (0..widths.len()).filter(|&n| n != target);
    if let Message::Pure(a) = environment {
        let row = Matrix::new(1, a.value.len(), a.value.clone());
        let one = Message::Pure(Scaled { value: vec![T::ONE], exponent: a.exponent });
        let mut factors = vec![(&one, 1)];
        factors.extend(rest().zip(others).map(|(n, m)| (*m, widths[n])));
        return contract(&mode_first(&row, widths, target), &factors);
    }
    let mut e = environment.to_matrix(widths.iter().product());
    let mut dims = widths.to_vec();
    // In reverse, so that the positions of the remaining modes do not change.
    for (n, other) in rest().zip(others).collect::<Vec<_>>().into_iter().rev() {
        let m = other.to_matrix(widths[n]);
        e.value = trace_mode(&e.value, &dims, n, &m.value);
        e.exponent += m.exponent + rescale(e.value.data_mut());
        dims.remove(n);
    }
    Message::mixed(e.value, e.exponent)
}

/// Σ E[(…, j, …), (…, j′, …)] M[j, j′] over one mode.
fn trace_mode<T: Scalar>(e: &Matrix<T>, dims: &[usize], mode: usize, m: &Matrix<T>) -> Matrix<T> {
    let (n, after): (usize, usize) = (dims[mode], dims[mode + 1..].iter().product());
    let size = e.rows() / n;
    let place = |k: usize, j: usize| (k / after * n + j) * after + k % after;
    Matrix::from_fn(size, size, |k, l| {
        let mut sum = T::ZERO;
        for i in 0..n {
            for j in 0..n {
                sum += e[(place(k, i), place(l, j))] * m[(i, j)];
            }
        }
        sum
    })
}

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::message::{Message, contract, hadamard, kronecker};
use super::regions::{Regions, regions};
use super::{OperationError, check_entries};
use crate::algebra::{self, Form, Kind, Work};
use crate::basis::Basis;
use crate::circuit::{Circuit, Layer, LayerId, Orthonormal};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::query::{Dependence, Evidence, Query, QueryError};

/// The answer to a query, with what it cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marginal {
    /// log p(evidence); −∞ if it is impossible.
    pub log_marginal: f64,
    /// The number of layers of each dependence.
    pub layers: LayerCounts,
    /// The number of multiply-adds, compared with other methods.
    pub multiply_adds: MultiplyAdds,
}

/// The numbers of layers in φ_Y, φ_Z and φ_YZ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LayerCounts {
    /// |φ_Y|: layers whose variables all have values.
    pub kept: usize,
    /// |φ_Z|: layers whose variables are all unobserved, which are skipped.
    pub marginalized: usize,
    /// |φ_YZ|: all other layers.
    pub mixed: usize,
}

/// The multiply-adds of three methods with the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiplyAdds {
    /// By [`marginalize`].
    pub ours: u128,
    /// By the paper's Algorithm 2: Σ size(ℓ) over φ_Y plus Σ size(ℓ²) over φ_YZ, at most |φ_Y| S +
    /// |φ_YZ| S².
    pub paper_bound: u128,
    /// By squaring the whole circuit: Σ size(ℓ²) over all layers, at most L S².
    pub squaring: u128,
}

/// Computes log p(evidence) = log ∫ ‖c(y, z)‖² dz exactly, for values, missing values, sets and
/// intervals.
///
/// Every layer sends one message to the next: nothing if none of its variables is observed, a
/// vector if all have values, and a K × K matrix otherwise. If all variables have values, the
/// result is log ‖c(x)‖²; without evidence, it is 0.
///
/// Requires: an orthonormal circuit.
///
/// Cost: at a sum over a Kronecker product with widths K, K³ multiply-adds in φ_Y, none in φ_Z, and
/// 2 K³ to 3 K⁴ in φ_YZ, where squaring takes K⁶.
///
/// # Errors
/// The query was created for different variables, or it needs a matrix that is too large.
///
/// Paper: `alg:marginalization`, `thm:marginalization-complexity`.
pub fn marginalize(circuit: &Orthonormal, query: &Query) -> Result<Marginal, QueryError> {
    let forms = check_query(circuit, query)?;
    let mut layers = LayerCounts::default();
    let mut paper_bound = 0_u128;
    let mut squaring = 0_u128;
    for (id, form) in circuit.layer_ids().zip(&forms) {
        let squared = circuit.squared_size(id);
        squaring = squaring.saturating_add(squared);
        match form {
            Form::Pure => {
                layers.kept += 1;
                paper_bound = paper_bound.saturating_add(circuit.size(id));
            }
            Form::Identity => layers.marginalized += 1,
            Form::Diagonal | Form::Mixed => {
                layers.mixed += 1;
                paper_bound = paper_bound.saturating_add(squared);
            }
        }
    }
    let ours = multiply_adds(circuit, &forms);
    Ok(Marginal {
        log_marginal: checked_log_marginal(circuit, query, &forms),
        layers,
        multiply_adds: MultiplyAdds { ours, paper_bound, squaring },
    })
}

/// Computes only the log marginal: see [`marginalize`].
///
/// # Errors
/// The query was created for different variables, or it needs a matrix that is too large.
pub fn log_marginal(circuit: &Orthonormal, query: &Query) -> Result<f64, QueryError> {
    let forms = check_query(circuit, query)?;
    Ok(checked_log_marginal(circuit, query, &forms))
}

/// Checks that a query matches a circuit and needs no matrix that is too large, and returns the
/// forms of all messages. The circuit must be orthonormal, or every variable must have a value.
pub(super) fn check_query(circuit: &Circuit, query: &Query) -> Result<Vec<Form>, QueryError> {
    query.check(circuit.variables())?;
    let forms = forms(circuit, query, true);
    match check_messages(circuit, &forms) {
        Err(OperationError::TooLarge { layer, entries, limit, .. }) => {
            Err(QueryError::TooLarge { layer, entries, limit })
        }
        _ => Ok(forms),
    }
}

/// The log marginal of a query that has been checked, given the forms of all messages.
fn checked_log_marginal(circuit: &Orthonormal, query: &Query, forms: &[Form]) -> f64 {
    let width = circuit.width(circuit.output());
    if circuit.is_real() {
        finish(&upward::<f64>(circuit, query, forms), width)
    } else {
        finish(&upward::<Complex64>(circuit, query, forms), width)
    }
}

/// The log of the trace at the output. If no variable is observed, Z = 1 for any output width.
fn finish<T: Scalar>(message: &Message<T>, width: usize) -> f64 {
    match message {
        Message::Identity => 0.0,
        Message::Pure(_) | Message::Diagonal(_) | Message::Mixed(_) => message.log_trace(width),
    }
}

/// How each layer depends on the query: whether it belongs to φ_Y, φ_Z or φ_YZ.
///
/// Cost: linear in the number of layers and variables.
///
/// # Panics
/// If the query has a different number of variables; see [`Query::check`].
pub fn dependences(circuit: &Circuit, query: &Query) -> Vec<Dependence> {
    let mut kinds: Vec<Kind> = Vec::with_capacity(circuit.num_layers());
    for layer in circuit.layers() {
        let inputs = layer.inputs().iter().map(|i| kinds[i.index()]);
        let kind = match layer {
            Layer::Input { variable, .. } => query.evidence()[variable.index()].kind(),
            Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => {
                inputs.reduce(Kind::times).unwrap_or(Kind::Identity)
            }
        };
        kinds.push(kind);
    }
    kinds.into_iter().map(Dependence::from).collect()
}

/// The upward pass: computes the message of the output layer, given the [`forms`] of all messages.
pub(super) fn upward<T: Scalar>(circuit: &Circuit, query: &Query, forms: &[Form]) -> Message<T> {
    // Layers that send the identity, and fused layers, have nothing to compute.
    let is_made = |id: LayerId| !circuit.is_fused(id) && forms[id.index()] != Form::Identity;
    let climb = |layers: &[LayerId], messages: &mut Messages<T>| {
        for &id in layers.iter().filter(|&&id| is_made(id)) {
            let message = layer_message(circuit, query, id, messages);
            // A message is kept from its layer to the only layer that takes it.
            for input in received(circuit, id) {
                messages.remove(input);
            }
            messages.insert(id, message);
        }
    };
    let work = |id: LayerId| if is_made(id) { circuit.size(id) } else { 0 };
    let Regions { regions, above } = regions(circuit, work);
    let parts = regions.par_iter().map(|layers| {
        let mut messages = Messages::new();
        climb(layers, &mut messages);
        messages
    });
    let mut messages: Messages<T> = parts.collect::<Vec<_>>().into_iter().flatten().collect();
    climb(&above, &mut messages);
    messages.remove(&circuit.output()).unwrap_or(Message::Identity)
}

/// The messages that have been computed and not yet used. A layer without an entry sends the
/// identity.
type Messages<T> = BTreeMap<LayerId, Message<T>>;

/// How the message of every layer is stored.
///
/// If the circuit is `orthonormal`, a layer without observed variables sends the identity;
/// otherwise, it sends its integral.
pub(super) fn forms(circuit: &Circuit, query: &Query, orthonormal: bool) -> Vec<Form> {
    let mut forms: Vec<Form> = Vec::with_capacity(circuit.num_layers());
    for layer in circuit.layers() {
        let mut inputs = layer.inputs().iter().map(|i| forms[i.index()]);
        let form = match layer {
            Layer::Input { variable, basis } => {
                Some(input_form(basis, &query.evidence()[variable.index()]))
            }
            Layer::Hadamard { .. } => inputs.reduce(Form::hadamard),
            Layer::Kronecker { .. } => inputs.reduce(Form::kronecker),
            Layer::Sum { .. } => inputs.next().map(|form| form.sum(orthonormal)),
        };
        forms.push(form.unwrap_or(Form::Identity));
    }
    forms
}

/// The number of multiply-adds of the upward pass.
pub(super) fn multiply_adds(circuit: &Circuit, forms: &[Form]) -> u128 {
    let work = |id: LayerId| {
        let factors: Vec<(Form, usize)> =
            received(circuit, id).iter().map(|&i| (forms[i.index()], circuit.width(i))).collect();
        match circuit.layer(id) {
            _ if circuit.is_fused(id) || forms[id.index()] == Form::Identity => Work::default(),
            Layer::Input { basis, .. } => Work::full(basis.width() as u128),
            Layer::Hadamard { .. } => {
                let forms: Vec<Form> = factors.iter().map(|f| f.0).collect();
                algebra::hadamard(circuit.width(id), &forms)
            }
            Layer::Kronecker { .. } => algebra::kronecker(&factors),
            Layer::Sum { .. } => algebra::contraction(circuit.width(id), &factors),
        }
    };
    circuit.layer_ids().map(work).fold(Work::default(), |sum, work| sum + work).table
}

/// Checks that no message of the upward pass is too large. The messages of wide Kronecker products
/// without a sum above them may be.
///
/// Cost: linear in the number of layers.
pub(super) fn check_messages(circuit: &Circuit, forms: &[Form]) -> Result<(), OperationError> {
    for (id, form) in circuit.layer_ids().zip(forms) {
        let width = circuit.width(id);
        match form {
            _ if circuit.is_fused(id) => {}
            Form::Identity => {}
            Form::Pure | Form::Diagonal => check_entries(id, [width])?,
            Form::Mixed => check_entries(id, [width, width])?,
        }
    }
    Ok(())
}

/// How the message of an input layer is stored.
fn input_form(basis: &Basis, evidence: &Evidence) -> Form {
    match (basis, evidence) {
        (Basis::Squared(_), _) => Form::Pure,
        (Basis::Indicator(_), Evidence::In(_)) => Form::Diagonal,
        (_, Evidence::Unknown) if !basis.is_orthonormal() => Form::Mixed,
        (_, Evidence::Unknown | Evidence::Value(_) | Evidence::In(_)) => evidence.kind().into(),
    }
}

/// The layers whose messages a layer takes. A sum above a fused Kronecker layer takes those of the
/// Kronecker layer's inputs.
pub(super) fn received(circuit: &Circuit, id: LayerId) -> &[LayerId] {
    match circuit.layer(id) {
        Layer::Sum { input, .. } => circuit.sum_factors(input),
        layer @ (Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. }) => {
            layer.inputs()
        }
    }
}

/// The message of a layer, given the messages of the layers below.
fn layer_message<T: Scalar>(
    circuit: &Circuit,
    query: &Query,
    id: LayerId,
    messages: &Messages<T>,
) -> Message<T> {
    let factors: Vec<(&Message<T>, usize)> = received(circuit, id)
        .iter()
        .map(|i| (messages.get(i).unwrap_or(&Message::Identity), circuit.width(*i)))
        .collect();
    match circuit.layer(id) {
        Layer::Input { variable, basis } => {
            input_message(basis, &query.evidence()[variable.index()])
        }
        Layer::Hadamard { .. } => {
            let messages: Vec<_> = factors.iter().map(|f| f.0).collect();
            hadamard(&messages, circuit.width(id))
        }
        Layer::Kronecker { .. } => kronecker(&factors),
        Layer::Sum { weight, .. } => contract(&circuit.weight(*weight).to_matrix::<T>(), &factors),
    }
}

/// The message of an input layer.
pub(super) fn input_message<T: Scalar>(basis: &Basis, evidence: &Evidence) -> Message<T> {
    // A squared circuit is integrated directly: ∫ f ⊗ f* over the unobserved values.
    if let Basis::Squared(base) = basis {
        let gram = match evidence {
            Evidence::Value(x) => {
                Matrix::new(1, basis.width(), basis.evaluate_batch::<T>(&[*x]).data().to_vec())
            }
            Evidence::Unknown => base.base().gram(),
            Evidence::In(part) => base.base().gram_over(part),
        };
        return Message::pure(gram.data().to_vec(), 0);
    }
    match evidence {
        Evidence::Value(x) => {
            let mut v = vec![T::ZERO; basis.width()];
            basis.evaluate(*x, &mut v);
            Message::pure(v, 0)
        }
        Evidence::Unknown if basis.is_orthonormal() => Message::Identity,
        Evidence::Unknown => Message::mixed(basis.gram(), 0),
        Evidence::In(part) => match basis.gram_diagonal_over(part) {
            Some(diagonal) => Message::diagonal(diagonal, 0),
            None => Message::mixed(basis.gram_over(part), 0),
        },
    }
}

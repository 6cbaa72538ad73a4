use std::collections::BTreeMap;
use std::ops::Deref;

use super::marginalize::{check_query, input_message, received};
use super::message::{Message, contract};
use super::pass::{
    Environment, basis_of, combine, descend, input_layers, kept, output_environment, receiver,
    upward_kept,
};
use super::scaled::Scaled;
use super::univariate::Univariate;
use super::{MAX_ENTRIES, OperationError};
use crate::circuit::{Circuit, Layer, LayerId, Orthonormal, VariableId};
use crate::linalg::{Complex64, Matrix, Scalar, eigh};
use crate::query::{Evidence, Query, QueryError};

/// The environments of all layers: what the rest of the circuit says about each of them.
///
/// Let M = ∫ ℓ ℓᴴ be the message of a layer. Its environment is the Hermitian E with
///
/// ```math
/// p(\text{evidence}) = \sum_{k,k'} E_{kk'} M_{kk'} ,
/// ```
///
/// which is the identity at the output. At the left input of a sum over a Kronecker product, it is
/// the sum of W[k; i, j] E[k, k′] W*[k′; i′, j′] M_right[j, j′] over k, k′, j and j′. One pass up
/// and one pass down compute all environments, which give the marginals, means and variances of all
/// variables at once, with or without evidence.
///
/// The circuit is borrowed or shared: `C` is `&Orthonormal`, `Arc<Orthonormal>` or a box, so a
/// model can store its environments next to its circuit.
///
/// ```
/// use bornite::{Basis, CircuitBuilder, Domain, Orthonormal, Query, VariableId};
/// use bornite::{linalg::Matrix, ops::Environments};
///
/// // p(x, y) = 0.36 at (0, 0) and 0.64 at (1, 1).
/// let mut b = CircuitBuilder::new();
/// let (x, y) = (b.variable("x", Domain::Finite(2)), b.variable("y", Domain::Finite(2)));
/// let (f, g) = (b.input(x, Basis::indicator(2)), b.input(y, Basis::indicator(2)));
/// let product = b.kronecker([f, g]);
/// let output = b.sum(product, Matrix::from_rows(&[[0.6, 0.0, 0.0, 0.8]]));
/// let circuit = Orthonormal::verify(b.build(output)?)?;
///
/// let all = Environments::new(&circuit);
/// assert!((all.marginal(x).density(1.0) - 0.64).abs() < 1e-15);
/// assert!((all.spectrum(f)?[0] - 0.64).abs() < 1e-15);
/// assert!((all.covariance(x, y) - 0.64 * 0.36).abs() < 1e-15);
///
/// let query = Query::parse(circuit.variables(), "y=0")?;
/// assert!((all.log_marginal(&query)?.exp() - 0.36).abs() < 1e-15);
/// let posterior = Environments::given(&circuit, &query)?;
/// assert!((posterior.marginal(x).density(0.0) - 1.0).abs() < 1e-15);
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Environments<C> {
    circuit: C,
    query: Query,
    inputs: Vec<LayerId>,
    passes: Passes,
}

/// The answer to a query, computed only up to the lowest layer whose scope contains all observed
/// variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionMarginal {
    /// log p(query | evidence of the environments); −∞ if the query is impossible.
    pub log_marginal: f64,
    /// The layer whose environment ended the upward pass: the lowest one above all observed
    /// variables.
    pub closed_at: LayerId,
    /// The number of layers that sent a message.
    pub layers_touched: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Passes {
    Real(Pass<f64>),
    Complex(Pass<Complex64>),
}

/// Evaluates an expression for either number type.
macro_rules! with_pass {
    ($passes:expr, $pass:ident => $body:expr) => {
        match $passes {
            Passes::Real($pass) => $body,
            Passes::Complex($pass) => $body,
        }
    };
}
pub(super) use with_pass;

/// The messages and environments of one query.
#[derive(Clone, Debug)]
pub(super) struct Pass<T> {
    /// Empty if there is no evidence, because then all messages are identities.
    messages: Vec<Option<Message<T>>>,
    /// `None` for fused Kronecker layers.
    environments: Vec<Option<Environment<T>>>,
    evidence: Scaled<f64>,
}

impl<T: Scalar> Pass<T> {
    /// Computes the environments of all layers, or only of the `wanted` ones.
    pub(super) fn new(circuit: &Orthonormal, query: &Query, wanted: Option<&[bool]>) -> Self {
        let has_no_evidence = query.evidence().iter().all(|e| matches!(e, Evidence::Unknown));
        let messages = if has_no_evidence {
            Vec::new()
        } else {
            upward_kept(circuit, |v, basis| input_message(basis, &query.evidence()[v.index()]))
        };
        let evidence = match messages.get(circuit.output().index()) {
            Some(Some(message)) => message.trace(circuit.width(circuit.output())),
            _ => Scaled { value: 1.0, exponent: 0 },
        };
        let mut pass = Self { messages, environments: vec![None; circuit.num_layers()], evidence };
        pass.environments[circuit.output().index()] = Some(output_environment(circuit));
        for id in circuit.layer_ids().rev().filter(|&id| !circuit.is_fused(id)) {
            if pass.environments[id.index()].is_none() {
                continue;
            }
            for (target, input) in received(circuit, id).iter().enumerate() {
                if wanted.is_some_and(|w| !w[input.index()]) {
                    continue;
                }
                let e = pass.environment(id).full();
                let below = descend(circuit, id, e, target, |i| pass.message(i));
                pass.environments[input.index()] = Some(below);
            }
        }
        pass
    }

    pub(super) fn message(&self, id: LayerId) -> &Message<T> {
        if self.messages.is_empty() { &Message::Identity } else { kept(&self.messages, id) }
    }

    pub(super) fn environment(&self, id: LayerId) -> &Environment<T> {
        match &self.environments[id.index()] {
            Some(environment) => environment,
            None => {
                unreachable!("only fused layers have no environment, and inputs come last")
            }
        }
    }

    /// p(evidence).
    pub(super) fn evidence(&self) -> &Scaled<f64> {
        &self.evidence
    }
}

impl<C: Deref<Target = Orthonormal>> Environments<C> {
    /// Computes the environments of all layers without evidence, which are their reduced densities.
    ///
    /// Cost: at a sum over a Kronecker product with widths K, 2 K⁴ multiply-adds per input. Memory:
    /// K² per layer.
    pub fn new(circuit: C) -> Self {
        let query = Query::unknown(circuit.num_variables());
        Self::run(circuit, query, None)
    }

    /// Computes the environments of all layers given evidence, for all posterior marginals at once.
    ///
    /// Cost: that of [`marginalize`](super::marginalize()), plus at most 3 K⁴ multiply-adds per
    /// input of a sum over a Kronecker product on the way down. Memory: 2 K² per layer.
    ///
    /// # Errors
    /// The query was created for different variables, it needs a matrix that is too large, or its
    /// evidence has probability 0.
    pub fn given(circuit: C, query: &Query) -> Result<Self, OperationError> {
        check_query(&circuit, query)?;
        let environments = Self::run(circuit, query.clone(), None);
        if environments.is_possible() {
            Ok(environments)
        } else {
            Err(OperationError::ImpossibleEvidence)
        }
    }

    /// Computes only the environments on the paths down to these variables; other variables must
    /// not be queried. Returns `None` if the evidence has probability 0.
    pub(crate) fn toward(
        circuit: C,
        query: &Query,
        variables: impl IntoIterator<Item = VariableId>,
    ) -> Result<Option<Self>, QueryError> {
        check_query(&circuit, query)?;
        let inputs = input_layers(&circuit);
        let mut wanted = vec![false; circuit.num_layers()];
        for variable in variables {
            let mut next = Some(inputs[variable.index()]);
            while let Some(id) = next.filter(|id| !wanted[id.index()]) {
                wanted[id.index()] = true;
                next = receiver(&circuit, id);
            }
        }
        let environments = Self::run(circuit, query.clone(), Some(&wanted));
        Ok(environments.is_possible().then_some(environments))
    }

    fn is_possible(&self) -> bool {
        with_pass!(&self.passes, pass => pass.evidence.value > 0.0)
    }

    fn run(circuit: C, query: Query, wanted: Option<&[bool]>) -> Self {
        let passes = if circuit.is_real() {
            Passes::Real(Pass::new(&circuit, &query, wanted))
        } else {
            Passes::Complex(Pass::new(&circuit, &query, wanted))
        };
        let inputs = input_layers(&circuit);
        Self { circuit, query, inputs, passes }
    }

    /// The circuit.
    pub fn circuit(&self) -> &Orthonormal {
        &self.circuit
    }

    /// The evidence.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// log p(evidence); 0 without evidence.
    pub fn log_evidence(&self) -> f64 {
        with_pass!(&self.passes, pass => pass.evidence.log())
    }

    pub(super) fn passes(&self) -> &Passes {
        &self.passes
    }

    pub(super) fn input_of(&self, variable: VariableId) -> LayerId {
        self.inputs[variable.index()]
    }

    /// The reduced density ρ = E / tr E of a layer: K × K, Hermitian, positive semidefinite, with
    /// trace 1.
    ///
    /// It is the state of the layer given the evidence about the variables *outside* its scope: a
    /// normalized function g = Σ aₖ ℓₖ of the scope has probability aᴴ ρ a. Without evidence, it
    /// determines what [`truncate`](super::truncate()) can drop. At an output of width r > 1, whose
    /// rows are not orthonormal, it is W Wᴴ: the weights and overlaps of the r squares.
    ///
    /// Cost: K² if the environment is stored. For a product below a sum, or for indicators, it is
    /// computed now.
    ///
    /// # Errors
    /// The matrix would be too large.
    pub fn reduced_density(&self, id: LayerId) -> Result<Matrix<Complex64>, OperationError> {
        with_pass!(&self.passes, pass => {
            Ok(density(&self.circuit, pass, id)?.map(Scalar::to_complex))
        })
    }

    /// The entanglement spectrum of a layer: the eigenvalues of its reduced density, largest first,
    /// which sum to 1.
    ///
    /// A single nonzero value means that the layer's variables are independent of all others. K
    /// equal values mean that the width is fully used. A product below a sum has the spectrum of
    /// the sum, padded with zeros.
    ///
    /// Cost: the eigenvalues of a K × K matrix.
    ///
    /// # Errors
    /// The matrix would be too large.
    pub fn spectrum(&self, id: LayerId) -> Result<Vec<f64>, OperationError> {
        // Because W Wᴴ = I, the sum's E and the product's Wᵀ E W* have the same nonzero
        // eigenvalues.
        let source = match self.circuit.consumer(id) {
            Some(sum) if self.circuit.is_fused(id) => sum,
            _ => id,
        };
        let mut values = with_pass!(&self.passes, pass => {
            eigenvalues(&density(&self.circuit, pass, source)?)
        });
        values.resize(self.circuit.width(id), 0.0);
        Ok(values)
    }

    /// The distribution of one variable given the evidence about the *others*.
    ///
    /// For an unobserved variable, this is its posterior marginal. For an observed variable, it is
    /// the prediction from the others and shows how surprising the value is; if the evidence is a
    /// set or interval, [`Univariate::within`] adds it.
    ///
    /// Cost: K² for K input functions, or the number of values for indicators. Nothing is
    /// recomputed.
    pub fn marginal(&self, variable: VariableId) -> Univariate {
        let id = self.input_of(variable);
        let basis = basis_of(&self.circuit, id);
        let domain = self.circuit.variable(variable).domain.clone();
        with_pass!(&self.passes, pass => {
            Univariate::from_environment(domain, basis, pass.environment(id))
        })
    }

    /// The [`marginal`](Self::marginal) of every variable, in the order of the circuit's variables.
    pub fn marginals(&self) -> Vec<Univariate> {
        (0..self.circuit.num_variables()).map(|v| self.marginal(VariableId::new(v))).collect()
    }

    /// log p(query | evidence), for a query about a few more variables.
    ///
    /// See [`marginalize`](Self::marginalize).
    ///
    /// # Errors
    /// The query was created for different variables, or concerns a variable that is already part
    /// of the evidence.
    pub fn log_marginal(&self, query: &Query) -> Result<f64, OperationError> {
        Ok(self.marginalize(query)?.log_marginal)
    }

    /// Computes log p(query | evidence), going up only to the lowest layer above all observed
    /// variables, where Σ E[k, k′] M[k, k′] with the layer's environment completes the answer.
    ///
    /// Cost: that of [`marginalize`](super::marginalize()) for the layers between the observed
    /// variables and that layer, plus K². The output is reached only if it is that layer.
    ///
    /// # Errors
    /// The query was created for different variables, or concerns a variable that is already part
    /// of the evidence.
    pub fn marginalize(&self, query: &Query) -> Result<RegionMarginal, OperationError> {
        check_query(&self.circuit, query)?;
        let mut known = Vec::new();
        for (index, evidence) in query.evidence().iter().enumerate() {
            if *evidence == Evidence::Unknown {
                continue;
            }
            if self.query.evidence()[index] != Evidence::Unknown {
                let variable = self.circuit.variables()[index].name.clone();
                return Err(OperationError::AlreadyKnown { variable });
            }
            known.push(VariableId::new(index));
        }
        Ok(with_pass!(&self.passes, pass => self.climb(pass, query, &known)))
    }

    fn climb<T: Scalar>(
        &self,
        pass: &Pass<T>,
        query: &Query,
        known: &[VariableId],
    ) -> RegionMarginal {
        let circuit: &Orthonormal = &self.circuit;
        let starts: Vec<LayerId> = known.iter().map(|&v| self.input_of(v)).collect();
        let Some(top) = lowest_over(circuit, &starts) else {
            let closed_at = circuit.output();
            return RegionMarginal { log_marginal: 0.0, closed_at, layers_touched: 0 };
        };
        let mut fresh: BTreeMap<LayerId, Option<Message<T>>> = BTreeMap::new();
        for (&v, &start) in known.iter().zip(&starts) {
            let message = input_message(basis_of(circuit, start), &query.evidence()[v.index()]);
            fresh.insert(start, Some(message));
            let mut id = start;
            while id != top {
                let Some(next) = receiver(circuit, id) else { break };
                if fresh.contains_key(&next) {
                    break;
                }
                fresh.insert(next, None);
                id = next;
            }
        }
        let order: Vec<LayerId> =
            fresh.iter().filter(|(_, m)| m.is_none()).map(|(id, _)| *id).collect();
        for id in order {
            let message = combine(circuit, id, |i| match fresh.get(&i) {
                Some(Some(message)) => message,
                _ => pass.message(i),
            });
            fresh.insert(id, Some(message));
        }
        let closed = match fresh.get(&top) {
            Some(Some(m)) => pass.environment(top).close(m, circuit.width(top)),
            _ => unreachable!("every path ends at the layer above all observed variables"),
        };
        let log_marginal = closed.log() - pass.evidence.log();
        RegionMarginal { log_marginal, closed_at: top, layers_touched: fresh.len() }
    }
}

/// The lowest layer with an environment whose scope contains the scopes of all these layers.
pub(super) fn lowest_over(circuit: &Circuit, layers: &[LayerId]) -> Option<LayerId> {
    let spans = || layers.iter().map(|&id| circuit.span(id));
    let (first, last) = (spans().map(|s| s.0).min()?, spans().map(|s| s.1).max()?);
    let mut id = layers[0];
    while !(circuit.span(id).0 <= first && circuit.span(id).1 >= last) {
        id = receiver(circuit, id)?;
    }
    Some(id)
}

/// The reduced density ρ of a layer, computed now if the pass did not store its environment.
pub(super) fn density<T: Scalar>(
    circuit: &Circuit,
    pass: &Pass<T>,
    id: LayerId,
) -> Result<Matrix<T>, OperationError> {
    let width = circuit.width(id);
    let entries = (width as u128).pow(2);
    if entries > MAX_ENTRIES {
        let remedy = "";
        return Err(OperationError::TooLarge { layer: id, entries, limit: MAX_ENTRIES, remedy });
    }
    if id == circuit.output()
        && let Layer::Sum { weight, .. } = circuit.layer(id)
    {
        let w = circuit.weight(*weight).to_matrix::<T>();
        return Ok(normalized(&w.times_adjoint(&w).hermitian_part()));
    }
    let full = match &pass.environments[id.index()] {
        Some(Environment::Full(e)) => e.to_matrix(width).value,
        Some(Environment::Diagonal(_)) | None => {
            on_demand(circuit, pass, id).to_matrix(width).value
        }
    };
    Ok(normalized(&full))
}

/// The full environment of a fused Kronecker layer, or of indicators.
fn on_demand<T: Scalar>(circuit: &Circuit, pass: &Pass<T>, id: LayerId) -> Message<T> {
    let Some(sum) = receiver(circuit, id) else { unreachable!("the output is never fused") };
    let Layer::Sum { input, weight } = circuit.layer(sum) else {
        unreachable!("only sums leave out environments")
    };
    let w = circuit.weight(*weight).to_matrix::<T>();
    let environment = pass.environment(sum).full();
    let mut factors = vec![(environment, circuit.width(sum))];
    if circuit.is_fused(id) {
        return contract(&w.transpose(), &factors);
    }
    let inputs = circuit.sum_factors(input);
    let widths: Vec<usize> = inputs.iter().map(|&i| circuit.width(i)).collect();
    let others = inputs.iter().filter(|&&i| i != id);
    factors.extend(others.map(|&i| (pass.message(i), circuit.width(i))));
    let target = inputs.iter().position(|&i| i == id).unwrap_or(0);
    contract(&super::pass::mode_first(&w, &widths, target), &factors)
}

fn normalized<T: Scalar>(m: &Matrix<T>) -> Matrix<T> {
    let trace: f64 = (0..m.rows()).map(|k| m[(k, k)].to_complex().re).sum();
    m.scaled(trace.recip())
}

/// The eigenvalues of a positive semidefinite matrix, largest first, with negative ones set to 0.
fn eigenvalues<T: Scalar>(m: &Matrix<T>) -> Vec<f64> {
    match eigh(m) {
        Some(eigen) => eigen.values.into_iter().map(|x| x.max(0.0)).collect(),
        None => unreachable!("the matrix is finite"),
    }
}

use std::fmt;

use super::OperationError;
use super::environment::{Pass, density};
use super::orthonormalize::{Carried, finish, hadamard, kronecker};
use super::scaled::rescale;
use crate::circuit::{Circuit, CircuitBuilder, Layer, LayerId, Orthonormal, Weight};
use crate::linalg::{Complex64, Matrix, Scalar, eigh, row_orthonormalize};
use crate::query::Query;

/// How much of a circuit can be dropped.
#[derive(Clone, Copy)]
pub enum Budget<'a> {
    /// Keep the Hellinger distance between the two distributions at or below this number in [0, 1].
    Error(f64),
    /// Limit all layers to this width.
    Width(usize),
    /// Limit each layer to the width returned by the function, at least 1.
    Widths(&'a dyn Fn(LayerId) -> usize),
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Budget::Error(error) => f.debug_tuple("Error").field(error).finish(),
            Budget::Width(width) => f.debug_tuple("Width").field(width).finish(),
            Budget::Widths(_) => f.write_str("Widths(..)"),
        }
    }
}

/// A truncated circuit, with a bound on the error.
#[derive(Clone, Debug)]
pub struct Truncated {
    /// The truncated circuit, which is orthonormal again.
    pub circuit: Orthonormal,
    /// An upper bound on the Hellinger distance √(1 − ∫ √(p q)) between the two distributions.
    pub bound: f64,
    /// The sum of the discarded eigenvalues, which bounds ‖c − ĉ‖² before ĉ is normalized.
    pub loss: f64,
    /// The layers that could be truncated, by their ids in the original circuit.
    pub widths: Vec<WidthChange>,
}

/// The change in the width of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WidthChange {
    /// The layer of the original circuit.
    pub layer: LayerId,
    /// Its original width.
    pub before: usize,
    /// Its new width.
    pub after: usize,
}

/// Shrinks a circuit by projecting its layers onto the leading eigenvectors of their reduced
/// densities: tensor-train rounding, for any tree.
///
/// Let V be the eigenvectors of ρ that are kept. Then ℓ becomes V* Vᵀ ℓ. Because ℓ is orthonormal,
/// this is an orthogonal projection of c, and c loses the discarded eigenvalues of its squared
/// norm. A product of projections loses at most the sum of their individual losses, so
///
/// ```math
/// \|c - \hat c\|^2 \le \delta^2 = \sum_{\text{layers}} \sum_{\text{discarded}} \lambda ,
/// \qquad H^2 \le 1 - \frac{1 + n^2 - \delta^2}{2 n} \le 1 - \sqrt{1 - \delta^2} ,
/// ```
///
/// where n = ‖ĉ‖ is known, and H is the Hellinger distance between the distributions of c and ĉ /
/// n. An error budget is spent on the smallest eigenvalues of all layers first.
///
/// Inner sums are projected, and input functions that feed a Kronecker product. Under a Hadamard
/// product, ρ is diagonal, so the product itself drops coordinates, in all its inputs at once. The
/// layers further below keep their widths: if they were projected, they could only be orthonormal
/// again if the product became a Kronecker product.
///
/// Requires: an orthonormal circuit.
///
/// Cost: that of [`Environments`](super::Environments), the eigenvalues of a K × K matrix per
/// layer, and [`orthonormalize`](super::orthonormalize()).
///
/// ```
/// use bornite::{Basis, Domain, Variable, circuit::Weights, structure::{RegionTree, Structure}};
/// use bornite::ops::{Budget, orthonormalize, truncate};
/// use rand::SeedableRng;
///
/// let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
/// let structure = Structure::new(RegionTree::linear(6), bit).width(8);
/// let rng = &mut rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let circuit = orthonormalize(&structure.build(Weights::Gaussian, rng)?)?.circuit;
/// let smaller = truncate(&circuit, Budget::Error(0.1))?;
/// assert!(smaller.bound <= 0.1);
/// assert!(smaller.widths.iter().all(|w| w.after <= w.before));
/// # Ok::<(), bornite::Error>(())
/// ```
///
/// # Errors
/// The error is not in [0, 1], or a width is 0.
pub fn truncate(circuit: &Orthonormal, budget: Budget<'_>) -> Result<Truncated, OperationError> {
    match budget {
        Budget::Error(error) if !(0.0..=1.0).contains(&error) => {
            return Err(OperationError::InvalidBudget);
        }
        Budget::Width(0) => return Err(OperationError::InvalidBudget),
        Budget::Error(_) | Budget::Width(_) | Budget::Widths(_) => {}
    }
    if circuit.is_real() { run::<f64>(circuit, budget) } else { run::<Complex64>(circuit, budget) }
}

/// A layer that can be projected.
struct Candidate<T> {
    layer: LayerId,
    /// The eigenvalues of ρ, largest first.
    values: Vec<f64>,
    directions: Directions<T>,
    kept: usize,
}

enum Directions<T> {
    /// The eigenvectors, one per column.
    Vectors(Matrix<T>),
    /// The coordinates of a Hadamard product, in the order of the eigenvalues.
    Coordinates(Vec<usize>),
}

impl<T: Scalar> Candidate<T> {
    fn is_cut(&self) -> bool {
        self.kept < self.values.len()
    }

    /// The rounding error of the eigenvalues, which is charged once to every layer that is cut.
    fn rounding(&self) -> f64 {
        f64::EPSILON * self.values.len() as f64
    }

    /// The eigenvalues that are discarded, plus the rounding error.
    fn loss(&self) -> f64 {
        if self.is_cut() {
            self.values[self.kept..].iter().sum::<f64>() + self.rounding()
        } else {
            0.0
        }
    }

    /// The eigenvectors V that are kept, as columns; `None` for a Hadamard product.
    fn vectors(&self) -> Option<Matrix<T>> {
        match &self.directions {
            Directions::Vectors(v) => Some(Matrix::from_fn(v.rows(), self.kept, |i, j| v[(i, j)])),
            Directions::Coordinates(_) => None,
        }
    }

    /// The coordinates that are kept, in ascending order; `None` unless the candidate is a Hadamard
    /// product.
    fn coordinates(&self) -> Option<Vec<usize>> {
        match &self.directions {
            Directions::Vectors(_) => None,
            Directions::Coordinates(order) => {
                let mut kept = order[..self.kept].to_vec();
                kept.sort_unstable();
                Some(kept)
            }
        }
    }
}

fn run<T: Scalar>(circuit: &Orthonormal, budget: Budget<'_>) -> Result<Truncated, OperationError> {
    let mut candidates = candidates::<T>(circuit);
    match budget {
        Budget::Error(error) => spend(&mut candidates, 1.0 - (1.0 - error * error).powi(2)),
        Budget::Width(width) => {
            for c in &mut candidates {
                c.kept = c.kept.min(width);
            }
        }
        Budget::Widths(width) => {
            for c in &mut candidates {
                c.kept = match width(c.layer) {
                    0 => return Err(OperationError::InvalidBudget),
                    width => c.kept.min(width),
                };
            }
        }
    }
    let loss: f64 = candidates.iter().map(Candidate::loss).sum();
    let changes = |after: &dyn Fn(&Candidate<T>) -> usize| {
        let change = |c: &Candidate<T>| {
            let (layer, before) = (c.layer, c.values.len());
            WidthChange { layer, before, after: after(c) }
        };
        candidates.iter().map(change).collect::<Vec<_>>()
    };
    if !candidates.iter().any(Candidate::is_cut) {
        let widths = changes(&|c| c.values.len());
        return Ok(Truncated { circuit: circuit.clone(), bound: 0.0, loss: 0.0, widths });
    }
    let rebuilt = rebuild(circuit, &candidates)?;
    let n = (0.5 * rebuilt.log_norm2).exp();
    let bound = ((loss - (1.0 - n).powi(2)) / (2.0 * n)).clamp(0.0, 1.0).sqrt();
    let widths = changes(&|c| rebuilt.circuit.width(rebuilt.new_ids[c.layer.index()]));
    Ok(Truncated { circuit: rebuilt.circuit, bound, loss, widths })
}

/// All layers that can be projected, with all of their directions still kept.
fn candidates<T: Scalar>(circuit: &Orthonormal) -> Vec<Candidate<T>> {
    let pass = Pass::<T>::new(circuit, &Query::unknown(circuit.num_variables()), None);
    let below = below_hadamard(circuit);
    let mut candidates = Vec::new();
    for layer in circuit.layer_ids().filter(|id| !below[id.index()]) {
        let Some(consumer) = circuit.consumer(layer) else { continue };
        let projects = match circuit.layer(layer) {
            Layer::Sum { .. } => true,
            Layer::Input { .. } => matches!(circuit.layer(consumer), Layer::Kronecker { .. }),
            Layer::Hadamard { inputs } => {
                let selects = |i: &LayerId| {
                    matches!(circuit.layer(*i), Layer::Sum { .. } | Layer::Input { .. })
                };
                inputs.iter().all(selects)
            }
            Layer::Kronecker { .. } => false,
        };
        // A layer whose ρ would be too large keeps its width.
        if !projects || circuit.width(layer) == 1 {
            continue;
        }
        let Ok(rho) = density(circuit, &pass, layer) else { continue };
        let kept = rho.rows();
        let candidate = if let Layer::Hadamard { .. } = circuit.layer(layer) {
            let weight = |k: usize| rho[(k, k)].to_complex().re.max(0.0);
            let mut order: Vec<usize> = (0..kept).collect();
            order.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
            let values = order.iter().map(|&k| weight(k)).collect();
            Candidate { layer, values, directions: Directions::Coordinates(order), kept }
        } else {
            let Some(eigen) = eigh(&rho) else { unreachable!("the matrix is finite") };
            let values = eigen.values.iter().map(|x| x.max(0.0)).collect();
            Candidate { layer, values, directions: Directions::Vectors(eigen.vectors), kept }
        };
        candidates.push(candidate);
    }
    candidates
}

/// For each layer, whether it is below a Hadamard product, at any depth.
fn below_hadamard(circuit: &Circuit) -> Vec<bool> {
    let mut below = vec![false; circuit.num_layers()];
    for id in circuit.layer_ids().rev() {
        if let Some(consumer) = circuit.consumer(id) {
            below[id.index()] = below[consumer.index()]
                || matches!(circuit.layer(consumer), Layer::Hadamard { .. });
        }
    }
    below
}

/// Discards the smallest eigenvalues of all layers, as long as their sum is within the budget δ².
/// Every layer keeps at least its largest one.
fn spend<T: Scalar>(candidates: &mut [Candidate<T>], budget: f64) {
    let mut all: Vec<(f64, usize, usize)> = Vec::new();
    for (n, c) in candidates.iter().enumerate() {
        all.extend(c.values.iter().enumerate().skip(1).map(|(k, &value)| (value, n, k)));
    }
    // Smallest first. Among equal eigenvalues of a layer, the last comes first, so that a layer
    // keeps its leading ones.
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(b.2.cmp(&a.2)));
    let mut spent = 0.0;
    for (value, n, k) in all {
        let c = &mut candidates[n];
        let price = if c.is_cut() { value } else { value + c.rounding() };
        if c.kept == k + 1 && spent + price <= budget {
            spent += price;
            c.kept = k;
        }
    }
}

struct Rebuilt {
    circuit: Orthonormal,
    log_norm2: f64,
    /// The id in the new circuit of each layer of the old one.
    new_ids: Vec<LayerId>,
}

/// Replaces every layer ℓ that is cut by V* Vᵀ ℓ, and makes the circuit orthonormal on the way up.
fn rebuild<T: Scalar>(
    circuit: &Orthonormal,
    candidates: &[Candidate<T>],
) -> Result<Rebuilt, OperationError> {
    let mut cuts: Vec<Option<&Candidate<T>>> = vec![None; circuit.num_layers()];
    for c in candidates.iter().filter(|c| c.is_cut()) {
        cuts[c.layer.index()] = Some(c);
    }
    let mut builder = CircuitBuilder::over(circuit.variables());
    let mut new_ids = vec![LayerId::new(0); circuit.num_layers()];
    let mut carried: Vec<Option<Carried<T>>> = Vec::with_capacity(circuit.num_layers());
    for id in circuit.layer_ids() {
        if id == circuit.output() && matches!(circuit.layer(id), Layer::Sum { .. }) {
            carried.push(None);
            continue;
        }
        let inputs: Vec<Carried<T>> =
            circuit.layer(id).inputs().iter().filter_map(|i| carried[i.index()].take()).collect();
        let vectors = cuts[id.index()].and_then(Candidate::vectors);
        // The coordinates that the Hadamard product above keeps.
        let above = circuit.consumer(id).and_then(|c| cuts[c.index()]);
        let rows = above.and_then(Candidate::coordinates);
        let made = match circuit.layer(id) {
            Layer::Input { variable, basis } => {
                let layer = builder.input(*variable, basis.clone());
                project_input(&mut builder, layer, basis.width(), vectors, rows)
            }
            Layer::Kronecker { .. } => kronecker(&mut builder, inputs),
            Layer::Hadamard { .. } => {
                let coordinates = cuts[id.index()].and_then(Candidate::coordinates);
                let mut made = hadamard(&mut builder, id, inputs)?;
                if let Some(kept) = coordinates {
                    let k = circuit.width(id);
                    made.factors = vec![(Some(selection(&kept, k).transpose()), kept.len())];
                }
                made
            }
            Layer::Sum { weight, .. } => {
                let w = circuit.weight(*weight).to_matrix::<T>();
                let w = match &rows {
                    Some(rows) => Matrix::from_fn(rows.len(), w.cols(), |i, j| w[(rows[i], j)]),
                    None => w.into_owned(),
                };
                project_sum(&mut builder, &w, &inputs[0], vectors)
                    .ok_or(OperationError::ZeroCircuit { layer: id })?
            }
        };
        new_ids[id.index()] = made.layer;
        carried.push(Some(made));
    }
    let done = finish(circuit, builder, carried)?;
    Ok(Rebuilt { circuit: done.circuit, log_norm2: done.log_partition, new_ids })
}

/// The 0/1 matrix whose rows select these coordinates out of k.
fn selection<T: Scalar>(kept: &[usize], k: usize) -> Matrix<T> {
    Matrix::from_fn(kept.len(), k, |i, j| if kept[i] == j { T::ONE } else { T::ZERO })
}

fn project_input<T: Scalar>(
    builder: &mut CircuitBuilder,
    layer: LayerId,
    width: usize,
    vectors: Option<Matrix<T>>,
    rows: Option<Vec<usize>>,
) -> Carried<T> {
    if let Some(v) = vectors {
        let layer = builder.sum(layer, Weight::from_matrix(&v.transpose()));
        let kept = v.cols();
        let factors = vec![(Some(v.map(T::conjugate)), kept)];
        return Carried { layer, factors, exponent: 0 };
    }
    if let Some(rows) = rows {
        let layer = builder.sum(layer, Weight::from_matrix(&selection::<T>(&rows, width)));
        return Carried { layer, factors: vec![(None, rows.len())], exponent: 0 };
    }
    Carried { layer, factors: vec![(None, width)], exponent: 0 }
}

/// Vᵀ W R₁ = L Q: the new layer has weight Q and passes V* L on. Returns `None` if the product is
/// zero.
fn project_sum<T: Scalar>(
    builder: &mut CircuitBuilder,
    w: &Matrix<T>,
    input: &Carried<T>,
    vectors: Option<Matrix<T>>,
) -> Option<Carried<T>> {
    let made = input.apply_to(w);
    let (mut product, mut exponent) = (made.value, made.exponent);
    if let Some(v) = &vectors {
        product = v.transpose().times(&product);
    }
    // Then Vᵀ W is already semi-unitary.
    let (q, l) = if input.is_identity() {
        (product, None)
    } else {
        exponent += rescale(product.data_mut());
        let factor = row_orthonormalize(&product);
        (factor.q, Some(factor.l))
    };
    let width = q.rows();
    if width == 0 {
        return None;
    }
    let layer = builder.sum(input.layer, Weight::from_matrix(&q));
    let back = vectors.map(|v| v.map(T::conjugate));
    let r = match (back, l) {
        (Some(v), Some(l)) => Some(v.times(&l)),
        (v, l) => v.or(l),
    };
    Some(Carried { layer, factors: vec![(r, width)], exponent })
}

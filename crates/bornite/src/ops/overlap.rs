use super::OperationError;
use super::orthonormalize::{Carried, face_splitting};
use super::scaled::{Scaled, ldexp, rescale};
use crate::circuit::{Circuit, Layer, LayerId, Orthonormal};
use crate::linalg::{Complex64, Matrix, Scalar, row_svd};

/// The overlap ∫ c₁* c₂ᵀ of two orthonormal circuits: an r₁ × r₂ matrix, or one number if both
/// outputs have width 1.
///
/// ```math
/// X_{kl} = \int c_{1,k}^*(x) \, c_{2,l}(x) \, dx
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    /// X · 2^(−exponent), scaled so that the largest part is between 1 and 2.
    cross: Matrix<Complex64>,
    exponent: i64,
}

impl Overlap {
    /// ⟨c₁|c₂⟩ = ∫ c₁ᴴ c₂ = tr X if both outputs have the same width, otherwise `None`.
    ///
    /// This depends on the order and the phases of the squares at the output;
    /// [`magnitude`](Self::magnitude) does not.
    pub fn inner_product(&self) -> Option<Complex64> {
        let r = self.cross.rows();
        if r != self.cross.cols() {
            return None;
        }
        let sum: Complex64 = (0..r).map(|k| self.cross[(k, k)]).sum();
        Some(ldexp(sum, self.exponent))
    }

    /// ‖X‖, the sum of the singular values of X, in [0, 1]: |⟨c₁|c₂⟩| if both outputs have width 1.
    ///
    /// For wider outputs, it is the largest |∫ c₁ᴴ U c₂| over all unitary U, which change neither
    /// distribution. It is 1 if and only if the circuits are equal up to such a U.
    pub fn magnitude(&self) -> f64 {
        self.log_magnitude().exp()
    }

    /// The logarithm of [`magnitude`](Self::magnitude), which may be far below the range of `f64`;
    /// −∞ for 0.
    pub fn log_magnitude(&self) -> f64 {
        let Some(svd) = row_svd(&self.cross) else { unreachable!("the matrix is finite") };
        let sum: f64 = svd.values.iter().sum();
        (sum.ln() + self.exponent as f64 * std::f64::consts::LN_2).min(0.0)
    }

    /// The fidelity ‖X‖² of the two states, in [0, 1]: |⟨c₁|c₂⟩|² if both outputs have width 1.
    pub fn fidelity(&self) -> f64 {
        (2.0 * self.log_magnitude()).exp()
    }

    /// The distance √(1 − ‖X‖) between the two *amplitudes*, which is an upper bound on the
    /// Hellinger distance between the distributions.
    ///
    /// The Hellinger distance is √(1 − B) with the Bhattacharyya coefficient B = ∫ √(p₁ p₂) = ∫
    /// ‖c₁‖ ‖c₂‖, and ‖X‖ = |∫ c₁ᴴ U c₂| ≤ B. The two distances are equal if the phases of c₁ and
    /// c₂ agree everywhere. If they do not, circuits can be far apart here and still have the same
    /// distribution. The exact Hellinger distance requires enumeration, because |c| is not a
    /// circuit.
    ///
    /// Values below about 10⁻⁸ are rounding errors.
    pub fn amplitude_distance(&self) -> f64 {
        (-self.log_magnitude().exp_m1()).max(0.0).sqrt()
    }
}

/// Integrates c₁* against c₂ over all variables, for the overlap, fidelity and distance of the two
/// circuits.
///
/// Both trees are traversed together from the outputs down. Sum layers that only one circuit has,
/// Hadamard layers opposite Kronecker layers, and different widths are fine. Only the splits of the
/// variables and the input functions must agree.
///
/// Requires: two orthonormal circuits over the same variables, with the same region tree, its parts
/// in the same order, and the same input functions.
///
/// Cost: 2 K⁴ multiply-adds at a pair of sums over Kronecker products with widths K.
///
/// ```
/// use bornite::{Basis, CircuitBuilder, Domain, Orthonormal, linalg::Matrix, ops::overlap};
///
/// let coin = |a: f64, b: f64| -> Result<Orthonormal, bornite::Error> {
///     let mut builder = CircuitBuilder::new();
///     let x = builder.variable("x", Domain::Finite(2));
///     let f = builder.input(x, Basis::indicator(2));
///     let output = builder.sum(f, Matrix::from_rows(&[[a, b]]));
///     Ok(Orthonormal::verify(builder.build(output)?)?)
/// };
/// let x = overlap(&coin(0.6, 0.8)?, &coin(0.8, -0.6)?)?;
/// assert!(x.magnitude() < 1e-15);
/// let x = overlap(&coin(0.6, 0.8)?, &coin(1.0, 0.0)?)?;
/// assert!((x.fidelity() - 0.36).abs() < 1e-15);
/// # Ok::<(), bornite::Error>(())
/// ```
///
/// # Errors
/// The variables, the region trees or the input functions differ. The error names the layers that
/// do not match.
pub fn overlap(first: &Orthonormal, second: &Orthonormal) -> Result<Overlap, OperationError> {
    let (a, b) = (first.variables(), second.variables());
    let differs = (0..a.len().max(b.len())).find(|&v| a.get(v) != b.get(v));
    if let Some(variable) = differs {
        return Err(OperationError::VariablesDiffer { variable });
    }
    let pairs = pair_up(first, second)?;
    Ok(if first.is_real() && second.is_real() {
        run::<f64>(first, second, &pairs)
    } else {
        run::<Complex64>(first, second, &pairs)
    })
}

/// Two layers over the same variables, and the positions of the pairs below them.
struct Pair {
    first: LayerId,
    second: LayerId,
    below: Vec<usize>,
}

/// A product of two matrices.
type Pairing<'a, T> = &'a dyn Fn(&Matrix<T>, &Matrix<T>) -> Matrix<T>;

/// The pairs of layers to integrate, each before those below it.
fn pair_up(first: &Circuit, second: &Circuit) -> Result<Vec<Pair>, OperationError> {
    let pair = |first, second| Pair { first, second, below: Vec::new() };
    let mut pairs = vec![pair(first.output(), second.output())];
    let mut next = 0;
    while next < pairs.len() {
        let (a, b) = (pairs[next].first, pairs[next].second);
        let differ = OperationError::StructuresDiffer { layer: a, other: b };
        let below: Vec<(LayerId, LayerId)> = match (first.layer(a), second.layer(b)) {
            (Layer::Sum { input: a, .. }, Layer::Sum { input: b, .. }) => vec![(*a, *b)],
            (Layer::Sum { input: a, .. }, _) => vec![(*a, b)],
            (_, Layer::Sum { input: b, .. }) => vec![(a, *b)],
            (Layer::Input { variable: v, basis: f }, Layer::Input { variable: w, basis: g }) => {
                if v != w || f != g {
                    return Err(differ);
                }
                Vec::new()
            }
            (Layer::Input { .. }, _) | (_, Layer::Input { .. }) => return Err(differ),
            (left, right) => {
                if left.inputs().len() != right.inputs().len() {
                    return Err(differ);
                }
                left.inputs().iter().copied().zip(right.inputs().iter().copied()).collect()
            }
        };
        for (a, b) in below {
            let position = pairs.len();
            pairs[next].below.push(position);
            pairs.push(pair(a, b));
        }
        next += 1;
    }
    Ok(pairs)
}

fn run<T: Scalar>(first: &Circuit, second: &Circuit, pairs: &[Pair]) -> Overlap {
    let mut results: Vec<Option<Carried<T>>> = Vec::new();
    results.resize_with(pairs.len(), || None);
    for (n, pair) in pairs.iter().enumerate().rev() {
        let below: Vec<Carried<T>> = pair.below.iter().filter_map(|&i| results[i].take()).collect();
        results[n] = Some(integrate(first, second, pair, below));
    }
    let Some(Some(carried)) = results.into_iter().next() else {
        unreachable!("the outputs are the first pair")
    };
    let x = carried.to_matrix();
    let mut cross = x.value.map(|z| z.to_complex().conj());
    let exponent = x.exponent + rescale(cross.data_mut());
    Overlap { cross, exponent }
}

/// X = ∫ ℓ₁ ℓ₂ᴴ of one pair of layers.
fn integrate<T: Scalar>(
    first: &Circuit,
    second: &Circuit,
    pair: &Pair,
    below: Vec<Carried<T>>,
) -> Carried<T> {
    let layer = pair.first;
    let single = |x: Scaled<Matrix<T>>| {
        let mut value = x.value;
        let exponent = x.exponent + rescale(value.data_mut());
        let width = value.cols();
        Carried { layer, factors: vec![(Some(value), width)], exponent }
    };
    let identity = || {
        let exponent = below.iter().map(|c| c.exponent).sum();
        Carried { layer, factors: vec![(None, first.width(layer))], exponent }
    };
    // Multiplies the matrices of the pairs below, two at a time.
    let reduce = |turn: &dyn Fn(&Matrix<T>) -> Matrix<T>, product: Pairing<'_, T>| {
        let matrices = below.iter().map(Carried::to_matrix);
        let turned = matrices.map(|x| Scaled { value: turn(&x.value), exponent: x.exponent });
        let both = |x: Scaled<Matrix<T>>, y: Scaled<Matrix<T>>| {
            let mut value = product(&x.value, &y.value);
            let exponent = x.exponent + y.exponent + rescale(value.data_mut());
            Scaled { value, exponent }
        };
        match turned.reduce(both) {
            Some(product) => product,
            None => unreachable!("a product has at least two inputs"),
        }
    };
    match (first.layer(pair.first), second.layer(pair.second)) {
        (Layer::Sum { weight: v, .. }, Layer::Sum { weight: w, .. }) => {
            let v = below[0].apply_to(&first.weight(*v).to_matrix::<T>());
            let w = second.weight(*w).to_matrix::<T>();
            single(Scaled { value: v.value.times_adjoint(&w), exponent: v.exponent })
        }
        (Layer::Sum { weight, .. }, _) => {
            single(below[0].apply_to(&first.weight(*weight).to_matrix::<T>()))
        }
        (_, Layer::Sum { weight, .. }) => {
            // X Wᴴ = (W Xᴴ)ᴴ.
            let w = adjoint(&below[0]).apply_to(&second.weight(*weight).to_matrix::<T>());
            single(Scaled { value: w.value.adjoint(), exponent: w.exponent })
        }
        (Layer::Input { .. }, _) | (_, Layer::Input { .. }) => identity(),
        (Layer::Kronecker { .. }, Layer::Kronecker { .. }) => {
            let exponent = below.iter().map(|c| c.exponent).sum();
            let factors = below.into_iter().flat_map(|c| c.factors).collect();
            Carried { layer, factors, exponent }
        }
        (Layer::Hadamard { .. }, Layer::Hadamard { .. }) => {
            if below.iter().all(Carried::is_identity) {
                return identity();
            }
            let entrywise = |x: &Matrix<T>, y: &Matrix<T>| {
                Matrix::from_fn(x.rows(), x.cols(), |i, j| x[(i, j)] * y[(i, j)])
            };
            single(reduce(&Matrix::clone, &entrywise))
        }
        (Layer::Hadamard { .. }, Layer::Kronecker { .. }) => {
            single(reduce(&Matrix::clone, &face_splitting))
        }
        (Layer::Kronecker { .. }, Layer::Hadamard { .. }) => {
            let product = reduce(&Matrix::adjoint, &face_splitting);
            single(Scaled { value: product.value.adjoint(), exponent: product.exponent })
        }
    }
}

fn adjoint<T: Scalar>(x: &Carried<T>) -> Carried<T> {
    let adjoint = |(r, width): &(Option<Matrix<T>>, usize)| match r {
        Some(r) => (Some(r.adjoint()), r.rows()),
        None => (None, *width),
    };
    Carried {
        layer: x.layer,
        factors: x.factors.iter().map(adjoint).collect(),
        exponent: x.exponent,
    }
}

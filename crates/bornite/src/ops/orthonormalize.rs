use super::message::{kronecker_matrix, multiply_mode};
use super::partition::check_not_squared;
use super::scaled::{Scaled, rescale, rescale_if_extreme};
use super::{OperationError, check_entries};
use crate::circuit::{Circuit, CircuitBuilder, Layer, LayerId, Orthonormal, Weight};
use crate::linalg::{Complex64, Matrix, Scalar, row_orthonormalize};

/// An orthonormal circuit c′ with c = Z^½ c′, and log Z.
#[derive(Clone, Debug)]
pub struct Orthonormalized {
    /// c′, whose square is the normalized distribution of c.
    pub circuit: Orthonormal,
    /// log Z = log ∫ ‖c(x)‖² dx.
    pub log_partition: f64,
}

/// Makes a circuit orthonormal: c′(x) = Z^(−½) c(x) for all x.
///
/// From the inputs up, every layer becomes R ℓ′ with ℓ′ orthonormal. R is multiplied into the
/// weight of the next sum, whose factorization V = L Q leaves the semi-unitary Q and passes L on. A
/// layer with more outputs than independent functions shrinks. A Hadamard layer becomes a Kronecker
/// layer unless none of its inputs has an R. Input functions that are not orthonormal are replaced
/// by means of their Gram matrix. Layers that are already orthonormal stay unchanged.
///
/// Cost: at a sum over a Kronecker product with widths K, 2 K⁴ multiply-adds for V and the QR of a
/// K² × K matrix.
///
/// # Errors
/// The circuit is zero everywhere, it is already a square, or an intermediate matrix would be too
/// large.
///
/// Paper: `alg:orthonormalization`, `thm:orthogonalization-algorithm`; deviations in docs/PAPER.md.
pub fn orthonormalize(circuit: &Circuit) -> Result<Orthonormalized, OperationError> {
    check_not_squared(circuit)?;
    if circuit.is_real() { run::<f64>(circuit) } else { run::<Complex64>(circuit) }
}

/// The face-splitting product A • B, whose row i is aᵢ ⊗ bᵢ.
///
/// Paper: `defn:face-splitting-product`.
///
/// # Panics
/// If the numbers of rows differ.
pub fn face_splitting<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    assert_eq!(a.rows(), b.rows(), "rows of a face-splitting product");
    let cols = b.cols();
    Matrix::from_fn(a.rows(), a.cols() * cols, |i, j| a[(i, j / cols)] * b[(i, j % cols)])
}

/// A layer ℓ = (⊗ Rₙ) ℓ′ · 2^exponent, where `None` stands for an identity of the given width.
pub(super) struct Carried<T> {
    pub(super) layer: LayerId,
    pub(super) factors: Vec<(Option<Matrix<T>>, usize)>,
    pub(super) exponent: i64,
}

impl<T: Scalar> Carried<T> {
    pub(super) fn is_identity(&self) -> bool {
        self.factors.iter().all(|f| f.0.is_none())
    }

    /// The number of rows of R: the width of ℓ.
    pub(super) fn rows(&self) -> usize {
        self.factors.iter().map(|(r, width)| r.as_ref().map_or(*width, Matrix::rows)).product()
    }

    /// The number of columns of R: the width of ℓ′.
    pub(super) fn cols(&self) -> usize {
        self.factors.iter().map(|(_, width)| width).product()
    }

    /// R as one matrix, with the exponent.
    pub(super) fn to_matrix(&self) -> Scaled<Matrix<T>> {
        let mut product = Scaled { value: Matrix::identity(1), exponent: self.exponent };
        for (r, width) in &self.factors {
            product.value = match r {
                Some(r) => kronecker_matrix(&product.value, r),
                None => kronecker_matrix(&product.value, &Matrix::identity(*width)),
            };
            product.exponent += rescale_if_extreme(product.value.data_mut());
        }
        product
    }

    /// W R, multiplied one factor at a time, with the exponent.
    pub(super) fn apply_to(&self, w: &Matrix<T>) -> Scaled<Matrix<T>> {
        let mut dims = vec![w.rows()];
        dims.extend(self.factors.iter().map(|(r, width)| r.as_ref().map_or(*width, Matrix::rows)));
        let mut data = w.data().to_vec();
        let mut exponent = self.exponent + rescale_if_extreme(&mut data);
        for (n, (r, _)) in self.factors.iter().enumerate() {
            if let Some(r) = r {
                data = multiply_mode(&data, &dims, n + 1, r);
                dims[n + 1] = r.cols();
                exponent += rescale_if_extreme(&mut data);
            }
        }
        Scaled { value: Matrix::new(w.rows(), dims[1..].iter().product(), data), exponent }
    }
}

fn run<T: Scalar>(circuit: &Circuit) -> Result<Orthonormalized, OperationError> {
    let mut builder = CircuitBuilder::over(circuit.variables());
    let mut carried: Vec<Option<Carried<T>>> = Vec::with_capacity(circuit.num_layers());
    for id in circuit.layer_ids() {
        if id == circuit.output() && matches!(circuit.layer(id), Layer::Sum { .. }) {
            carried.push(None);
            continue;
        }
        let mut inputs = Vec::new();
        for i in circuit.layer(id).inputs() {
            let Some(input) = carried[i.index()].take() else {
                unreachable!("inputs come first and are received once")
            };
            inputs.push(input);
        }
        let result = match circuit.layer(id) {
            Layer::Input { variable, basis } => {
                let (layer, r, width) = if basis.is_orthonormal() {
                    (builder.input(*variable, basis.clone()), None, basis.width())
                } else {
                    let (orthonormal, l) = basis.orthonormalized();
                    let width = orthonormal.width();
                    if width == 0 {
                        return Err(OperationError::ZeroCircuit { layer: id });
                    }
                    let r = T::matrix_from_complex(&l).into_owned();
                    (builder.input(*variable, orthonormal), Some(r), width)
                };
                let mut r = r;
                let exponent = r.as_mut().map_or(0, |r| rescale_if_extreme(r.data_mut()));
                Carried { layer, factors: vec![(r, width)], exponent }
            }
            Layer::Kronecker { .. } => kronecker(&mut builder, inputs),
            Layer::Hadamard { .. } => hadamard(&mut builder, id, inputs)?,
            Layer::Sum { weight, .. } => {
                let w = circuit.weight(*weight).to_matrix::<T>();
                sum(&mut builder, id, &w, &inputs[0])?
            }
        };
        carried.push(Some(result));
    }
    finish(circuit, builder, carried)
}

pub(super) fn kronecker<T: Scalar>(
    builder: &mut CircuitBuilder,
    inputs: Vec<Carried<T>>,
) -> Carried<T> {
    let layers: Vec<LayerId> = inputs.iter().map(|c| c.layer).collect();
    let exponent = inputs.iter().map(|c| c.exponent).sum();
    let factors = inputs.into_iter().flat_map(|c| c.factors).collect();
    Carried { layer: builder.kronecker(layers), factors, exponent }
}

/// (R₁ ℓ₁′) ⊙ (R₂ ℓ₂′) = (R₁ • R₂)(ℓ₁′ ⊗ ℓ₂′), two inputs at a time. In between, a sum layer
/// restores the width of the product.
pub(super) fn hadamard<T: Scalar>(
    builder: &mut CircuitBuilder,
    id: LayerId,
    inputs: Vec<Carried<T>>,
) -> Result<Carried<T>, OperationError> {
    if inputs.iter().all(Carried::is_identity) {
        let width = inputs[0].factors.iter().map(|f| f.1).product();
        let exponent = inputs.iter().map(|c| c.exponent).sum();
        let layers: Vec<LayerId> = inputs.iter().map(|c| c.layer).collect();
        return Ok(Carried {
            layer: builder.hadamard(layers),
            factors: vec![(None, width)],
            exponent,
        });
    }
    let mut inputs = inputs.into_iter();
    let Some(mut product) = inputs.next() else {
        unreachable!("a product has at least two inputs")
    };
    let mut is_pair = false;
    for input in inputs {
        if is_pair {
            let identity = Matrix::identity(product.rows());
            product = sum(builder, id, &identity, &product)?;
        }
        check_entries(id, [product.rows(), product.cols(), input.cols()])?;
        let (left, right) = (product.to_matrix(), input.to_matrix());
        let mut r = face_splitting(&left.value, &right.value);
        let exponent = left.exponent + right.exponent + rescale_if_extreme(r.data_mut());
        let width = r.cols();
        let layer = builder.kronecker([product.layer, input.layer]);
        product = Carried { layer, factors: vec![(Some(r), width)], exponent };
        is_pair = true;
    }
    Ok(product)
}

/// V = W R₁ = L Q: the new layer has weight Q and passes L on. Fails if V is zero.
fn sum<T: Scalar>(
    builder: &mut CircuitBuilder,
    id: LayerId,
    w: &Matrix<T>,
    input: &Carried<T>,
) -> Result<Carried<T>, OperationError> {
    if input.is_identity() && is_semi_unitary(w) {
        let layer = builder.sum(input.layer, Weight::from_matrix(w));
        return Ok(Carried { layer, factors: vec![(None, w.rows())], exponent: input.exponent });
    }
    check_entries(id, [w.rows(), input.cols()])?;
    let mut v = input.apply_to(w);
    v.exponent += rescale(v.value.data_mut());
    let factor = row_orthonormalize(&v.value);
    let width = factor.q.rows();
    if width == 0 {
        return Err(OperationError::ZeroCircuit { layer: id });
    }
    let layer = builder.sum(input.layer, Weight::from_matrix(&factor.q));
    Ok(Carried { layer, factors: vec![(Some(factor.l), width)], exponent: v.exponent })
}

/// Whether a factorization would change W only by rounding.
fn is_semi_unitary<T: Scalar>(w: &Matrix<T>) -> bool {
    let first: f64 = w.row(0).iter().map(|x| x.abs2()).sum();
    let tolerance = 4.0 * f64::EPSILON * w.cols() as f64;
    // The first row is enough to rule out most matrices.
    (first - 1.0).abs() <= tolerance && w.semi_unitary_residual() <= tolerance
}

/// Adds the output, which keeps its width: its weight is V / ‖V‖, and Z = ‖V‖².
pub(super) fn finish<T: Scalar>(
    circuit: &Circuit,
    mut builder: CircuitBuilder,
    mut carried: Vec<Option<Carried<T>>>,
) -> Result<Orthonormalized, OperationError> {
    let output = circuit.output();
    let (w, input) = match circuit.layer(output) {
        Layer::Sum { input, weight } => (Some(circuit.weight(*weight).to_matrix::<T>()), *input),
        Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } => (None, output),
    };
    let Some(input) = carried[input.index()].take() else {
        unreachable!("every layer but the output has been carried")
    };
    check_entries(output, [circuit.width(output), input.cols()])?;
    let mut v = match w {
        Some(w) => input.apply_to(&w),
        None => input.to_matrix(),
    };
    let exponent = v.exponent + rescale(v.value.data_mut());
    let norm2 = v.value.norm2();
    if norm2 == 0.0 {
        return Err(OperationError::ZeroCircuit { layer: output });
    }
    let layer =
        builder.sum(input.layer, Weight::from_matrix(&v.value.scaled(norm2.sqrt().recip())));
    let circuit = match builder.build(layer) {
        Ok(circuit) => Orthonormal::new_unchecked(circuit),
        Err(error) => unreachable!("the new circuit has the structure of the old: {error}"),
    };
    let log_partition = norm2.ln() + 2.0 * exponent as f64 * std::f64::consts::LN_2;
    Ok(Orthonormalized { circuit, log_partition })
}

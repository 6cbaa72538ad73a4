use super::marginalize::{forms, upward};
use super::message::{Message, kronecker_matrix};
use super::partition::check_not_squared;
use super::scaled::rescale_if_extreme;
use super::{MAX_ENTRIES, OperationError};
use crate::basis::Basis;
use crate::circuit::{Circuit, CircuitBuilder, Layer, LayerId, Weight};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::query::{Query, QueryError};

/// The squared circuit c², with layers of width K², which computes ‖c(x)‖² = Σᵢ |cᵢ(x)|² as its
/// only output.
///
/// If the square of a weight would be out of the range of `f64`, its power of two is stored
/// separately.
#[derive(Clone, Debug, PartialEq)]
pub struct Squared {
    circuit: Circuit,
    exponent: i64,
}

/// Squares a circuit literally: every layer ℓ becomes one that computes ℓ ⊗ ℓ*.
///
/// The permutation that reorders ℓ₁² ⊗ ℓ₂² to match ℓ² is folded into the weight of the next sum.
/// If no sum follows, it becomes a sum layer of its own.
///
/// Cost and memory: the squares of the layers' sizes, O(L S²). This is the baseline that
/// [`marginalize`](super::marginalize()) is compared with.
///
/// # Errors
/// A weight of c² would be too large, or the circuit is already a square.
///
/// Paper: `alg:tensorized-square`.
pub fn square(circuit: &Circuit) -> Result<Squared, OperationError> {
    check_not_squared(circuit)?;
    check_sizes(circuit)?;
    Ok(if circuit.is_real() { run::<f64>(circuit) } else { run::<Complex64>(circuit) })
}

impl Squared {
    /// The circuit c², without the factor 2^[`exponent`](Self::exponent).
    pub fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// The exponent of the power of two to multiply the circuit's output by; 0 unless a weight is
    /// beyond 2^±480.
    pub fn exponent(&self) -> i64 {
        self.exponent
    }

    /// The circuit c², without the factor 2^[`exponent`](Self::exponent).
    pub fn into_circuit(self) -> Circuit {
        self.circuit
    }

    /// log Z, by integrating every input layer of c².
    ///
    /// Cost: O(L S²).
    pub fn log_partition(&self) -> f64 {
        self.integrate(&Query::unknown(self.circuit.num_variables()))
    }

    /// log ∫ ‖c(y, z)‖² dz, by integrating the input layers of unobserved variables. Subtract
    /// [`log_partition`](Self::log_partition) to get the log marginal.
    ///
    /// Cost: O(L S²) for every query.
    ///
    /// # Errors
    /// The query was created for different variables.
    pub fn log_unnormalized_marginal(&self, query: &Query) -> Result<f64, QueryError> {
        query.check(self.circuit.variables())?;
        Ok(self.integrate(query))
    }

    fn integrate(&self, query: &Query) -> f64 {
        let forms = forms(&self.circuit, query, false);
        let (value, exponent) = if self.circuit.is_real() {
            first_entry(&upward::<f64>(&self.circuit, query, &forms))
        } else {
            first_entry(&upward::<Complex64>(&self.circuit, query, &forms))
        };
        value.max(0.0).ln() + (exponent + self.exponent) as f64 * std::f64::consts::LN_2
    }
}

fn first_entry<T: Scalar>(message: &Message<T>) -> (f64, i64) {
    match message {
        Message::Pure(v) => (v.value[0].to_complex().re, v.exponent),
        Message::Identity | Message::Diagonal(_) | Message::Mixed(_) => {
            unreachable!("every input of a square sends a vector")
        }
    }
}

/// Checks that the weights of c² are not too large in total.
fn check_sizes(circuit: &Circuit) -> Result<(), OperationError> {
    let too_large = |layer, entries| OperationError::TooLarge {
        layer,
        entries,
        limit: MAX_ENTRIES,
        remedy: ", or marginalize the orthonormal circuit, which needs no squaring",
    };
    let mut total = 0_u128;
    for id in circuit.layer_ids() {
        let width = circuit.width(id) as u128;
        let entries = match circuit.layer(id) {
            Layer::Sum { .. } => circuit.squared_size(id),
            Layer::Kronecker { .. } if !circuit.is_fused(id) => width.pow(2).saturating_pow(2),
            Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } => width.pow(2),
        };
        total = total.saturating_add(entries);
        if total > MAX_ENTRIES {
            return Err(too_large(id, total));
        }
    }
    Ok(())
}

fn run<T: Scalar>(circuit: &Circuit) -> Squared {
    let mut exponent = 0;
    let mut builder = CircuitBuilder::over(circuit.variables());
    let mut squares: Vec<LayerId> = Vec::with_capacity(circuit.num_layers());
    for id in circuit.layer_ids() {
        let inputs = |layer: &Layer| -> Vec<LayerId> {
            layer.inputs().iter().map(|i| squares[i.index()]).collect()
        };
        let layer = circuit.layer(id);
        let squared = match layer {
            Layer::Input { variable, basis } => {
                builder.input(*variable, Basis::squared(basis.clone()))
            }
            Layer::Hadamard { .. } => builder.hadamard(inputs(layer)),
            Layer::Kronecker { inputs: factors } => {
                let product = builder.kronecker(inputs(layer));
                if circuit.is_fused(id) {
                    product
                } else {
                    let order = permutation(circuit, factors);
                    let p = Matrix::from_fn(order.len(), order.len(), |i, j| {
                        f64::from(u8::from(order[j] == i))
                    });
                    builder.sum(product, p)
                }
            }
            Layer::Sum { input, weight } => {
                let mut w = circuit.weight(*weight).to_matrix::<T>().into_owned();
                // The output depends on every layer exactly once, so the factor of this weight is
                // also a factor of c.
                exponent += 2 * rescale_if_extreme(w.data_mut());
                let mut ww = kronecker_matrix(&w, &w.map(T::conjugate));
                if let Layer::Kronecker { inputs: factors } = circuit.layer(*input) {
                    let order = permutation(circuit, factors);
                    ww = Matrix::from_fn(ww.rows(), ww.cols(), |i, j| ww[(i, order[j])]);
                }
                builder.sum(squares[input.index()], Weight::from_matrix(&ww))
            }
        };
        squares.push(squared);
    }
    let mut output = squares[circuit.output().index()];
    let r = circuit.width(circuit.output());
    if r > 1 {
        let diagonal = Matrix::from_fn(1, r * r, |_, j| f64::from(u8::from(j / r == j % r)));
        output = builder.sum(output, diagonal);
    }
    match builder.build(output) {
        Ok(circuit) => Squared { circuit, exponent },
        Err(error) => unreachable!("the square has the structure of the circuit: {error}"),
    }
}

/// For each position of ℓ₁² ⊗ ℓ₂² ⊗ …, its position in (ℓ₁ ⊗ ℓ₂ ⊗ …) ⊗ (ℓ₁ ⊗ ℓ₂ ⊗ …)*: the paper's
/// P.
fn permutation(circuit: &Circuit, factors: &[LayerId]) -> Vec<usize> {
    let widths: Vec<usize> = factors.iter().map(|&f| circuit.width(f)).collect();
    let width: usize = widths.iter().product();
    (0..width * width)
        .map(|position| {
            let (mut rest, mut left, mut right, mut stride) = (position, 0, 0, 1);
            for &k in widths.iter().rev() {
                right += (rest % k) * stride;
                left += (rest / k % k) * stride;
                rest /= k * k;
                stride *= k;
            }
            left * width + right
        })
        .collect()
}

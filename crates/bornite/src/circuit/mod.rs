//! Tensorized circuits: layers, scopes, widths and sizes.
//!
//! A [`CircuitBuilder`] builds a [`Circuit`], which is always valid: smooth,
//! structured-decomposable and topologically ordered, with finite weights of matching shapes.
//! Nothing downstream checks it again.

mod builder;
mod error;
mod orthonormal;
mod random;
mod skeleton;

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub use builder::CircuitBuilder;
pub use error::CircuitError;
pub use orthonormal::{NotOrthonormal, Orthonormal, Orthonormality, check_orthonormality};
pub use random::{Weights, random_weight};
pub use skeleton::Skeleton;

use crate::basis::Basis;
use crate::linalg::{Complex64, Matrix, Scalar};

/// The position of a variable in its circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableId(pub(crate) u32);

/// The position of a layer in its circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LayerId(pub(crate) u32);

/// The position of a weight in its circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WeightId(pub(crate) u32);

macro_rules! impl_id {
    ($($id:ident),*) => {$(
        impl $id {
            /// The id of the item at position `index`.
            ///
            /// # Panics
            /// If `index` does not fit into 32 bits.
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than 2³² items in a circuit"))
            }

            /// The position.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}
impl_id!(VariableId, LayerId, WeightId);

/// One layer: a vector-valued function of the variables in its scope.
///
/// Paper: `defn:tensorized-circuit`.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// K functions of one variable.
    Input {
        /// The variable.
        variable: VariableId,
        /// The functions.
        basis: Arc<Basis>,
    },
    /// The elementwise product of N ≥ 2 inputs with the same width.
    Hadamard {
        /// The inputs.
        inputs: Vec<LayerId>,
    },
    /// The Kronecker product of N ≥ 2 inputs; the first input varies slowest.
    Kronecker {
        /// The inputs.
        inputs: Vec<LayerId>,
    },
    /// The product W ℓ of a weight matrix and one input.
    Sum {
        /// The input.
        input: LayerId,
        /// The weight W, which layers may share.
        weight: WeightId,
    },
}

impl Layer {
    /// The layers that this layer takes as inputs.
    pub fn inputs(&self) -> &[LayerId] {
        match self {
            Layer::Input { .. } => &[],
            Layer::Hadamard { inputs } | Layer::Kronecker { inputs } => inputs,
            Layer::Sum { input, .. } => std::slice::from_ref(input),
        }
    }

    /// The name of the layer's kind, as in the paper: `input`, `hadamard`, `kronecker` or `sum`.
    pub fn kind(&self) -> &'static str {
        match self {
            Layer::Input { .. } => "input",
            Layer::Hadamard { .. } => "hadamard",
            Layer::Kronecker { .. } => "kronecker",
            Layer::Sum { .. } => "sum",
        }
    }
}

/// The weight matrix of one or more sum layers.
#[derive(Clone, Debug, PartialEq)]
pub enum Weight {
    /// A real matrix.
    Real(Matrix<f64>),
    /// A complex matrix.
    Complex(Matrix<Complex64>),
}

impl Weight {
    /// The number of rows: the width of the sum layer.
    pub fn rows(&self) -> usize {
        match self {
            Weight::Real(m) => m.rows(),
            Weight::Complex(m) => m.rows(),
        }
    }

    /// The number of columns: the width of the sum layer's input.
    pub fn cols(&self) -> usize {
        match self {
            Weight::Real(m) => m.cols(),
            Weight::Complex(m) => m.cols(),
        }
    }

    /// The matrix in the number type of an algorithm; borrowed if it already has that type.
    pub fn to_matrix<T: Scalar>(&self) -> Cow<'_, Matrix<T>> {
        match self {
            Weight::Real(m) => T::matrix_from_real(m),
            Weight::Complex(m) => T::matrix_from_complex(m),
        }
    }

    pub(crate) fn from_matrix<T: Scalar>(m: &Matrix<T>) -> Self {
        if T::IS_COMPLEX {
            Weight::Complex(m.map(Scalar::to_complex))
        } else {
            Weight::Real(m.map(|x| x.to_complex().re))
        }
    }

    pub(crate) fn scaled(&self, factor: f64) -> Self {
        match self {
            Weight::Real(m) => Weight::Real(m.scaled(factor)),
            Weight::Complex(m) => Weight::Complex(m.scaled(factor)),
        }
    }

    /// The row and column of the first entry that is NaN or infinite.
    fn first_not_finite(&self) -> Option<(usize, usize)> {
        let cols = self.cols().max(1);
        let position = match self {
            Weight::Real(m) => m.data().iter().position(|x| !x.is_finite()),
            Weight::Complex(m) => {
                m.data().iter().position(|z| !(z.re.is_finite() && z.im.is_finite()))
            }
        };
        position.map(|n| (n / cols, n % cols))
    }
}

impl From<Matrix<f64>> for Weight {
    fn from(m: Matrix<f64>) -> Self {
        Weight::Real(m)
    }
}

impl From<Matrix<Complex64>> for Weight {
    fn from(m: Matrix<Complex64>) -> Self {
        Weight::Complex(m)
    }
}

/// A tensorized circuit c(X) ∈ ℂʳ whose square encodes the distribution p(x) = ‖c(x)‖² / Z: a
/// [`Skeleton`] with the entries of its weights.
///
/// Paper: `defn:tensorized-circuit`, `defn:smoothness-decomposability`.
#[derive(Clone, Debug, PartialEq)]
pub struct Circuit {
    skeleton: Skeleton,
    weights: Vec<Weight>,
    is_real: bool,
}

impl Circuit {
    /// All weights.
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// One weight.
    pub fn weight(&self, id: WeightId) -> &Weight {
        &self.weights[id.index()]
    }

    /// Whether all weights and all input functions are real.
    pub fn is_real(&self) -> bool {
        self.is_real
    }

    /// The circuit without its weights.
    pub fn into_skeleton(self) -> Skeleton {
        self.skeleton
    }
}

impl Deref for Circuit {
    type Target = Skeleton;

    fn deref(&self) -> &Skeleton {
        &self.skeleton
    }
}

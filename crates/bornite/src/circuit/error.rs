use super::{LayerId, WeightId};
use crate::basis::BasisError;

/// Why layers do not form a valid circuit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CircuitError {
    /// There are no layers.
    #[error("the circuit has no layers: add at least one input layer")]
    Empty,
    /// The domain of a variable is empty, or its bounds are not finite and in order.
    #[error(
        "variable '{variable}': {domain:?} is not a valid domain; give at least one value, or finite bounds in order"
    )]
    InvalidDomain {
        /// The variable.
        variable: String,
        /// Its domain.
        domain: crate::Domain,
    },
    /// Two variables have the same name.
    #[error("two variables are named '{name}': give each its own name")]
    DuplicateVariable {
        /// The name.
        name: String,
    },
    /// A layer refers to a variable that does not exist.
    #[error("layer {layer}: there is no variable {variable}; the circuit has {count}")]
    UnknownVariable {
        /// The layer.
        layer: LayerId,
        /// The position that the layer refers to.
        variable: usize,
        /// The number of variables.
        count: usize,
    },
    /// The functions of an input layer are defined on a different domain than its variable.
    #[error(
        "layer {layer}: its basis is defined on {basis}, but the domain of variable '{variable}' is {domain}"
    )]
    BasisDomain {
        /// The layer.
        layer: LayerId,
        /// The variable.
        variable: String,
        /// The variable's domain.
        domain: crate::Domain,
        /// The domain of the basis.
        basis: crate::Domain,
    },
    /// The functions of an input layer have invalid parameters.
    #[error("layer {layer}: {source}")]
    Basis {
        /// The layer.
        layer: LayerId,
        /// The underlying error.
        source: BasisError,
    },
    /// A layer refers to an input that does not come before it.
    #[error(
        "layer {layer}: its input {input} is not an earlier layer; list layers after their inputs"
    )]
    UnknownInput {
        /// The layer.
        layer: LayerId,
        /// The position that the layer refers to.
        input: usize,
    },
    /// A product layer has fewer than two inputs.
    #[error("layer {layer}: a product layer needs at least 2 inputs but has {found}")]
    TooFewInputs {
        /// The layer.
        layer: LayerId,
        /// The number of inputs.
        found: usize,
    },
    /// The inputs of a product layer share a variable: the circuit is not decomposable.
    #[error(
        "layer {layer}: two of its inputs depend on variable '{variable}', so the product is not decomposable; \
             its inputs must have disjoint scopes"
    )]
    OverlappingScopes {
        /// The product layer.
        layer: LayerId,
        /// A variable in both scopes.
        variable: String,
    },
    /// The inputs of a Hadamard layer have different widths.
    #[error(
        "layer {layer}: the inputs of a Hadamard product need the same width, but input {input} has width {found} and the first has {expected}"
    )]
    WidthMismatch {
        /// The Hadamard layer.
        layer: LayerId,
        /// The input that differs.
        input: LayerId,
        /// The width of the first input.
        expected: usize,
        /// The width of the input that differs.
        found: usize,
    },
    /// A sum layer refers to a weight that does not exist.
    #[error("layer {layer}: there is no weight {weight}")]
    UnknownWeight {
        /// The layer.
        layer: LayerId,
        /// The weight that the layer refers to.
        weight: WeightId,
    },
    /// The weight of a sum layer does not match its input.
    #[error(
        "layer {layer}: its weight is {rows}x{cols}, but its input {input} has width {expected}; \
             the weight needs {expected} columns"
    )]
    WeightShape {
        /// The sum layer.
        layer: LayerId,
        /// Its input.
        input: LayerId,
        /// The rows of the weight.
        rows: usize,
        /// The columns of the weight.
        cols: usize,
        /// The width of the input.
        expected: usize,
    },
    /// A weight contains NaN or infinity.
    #[error("layer {layer}: its weight is not finite at row {row}, column {col}")]
    NotFinite {
        /// A layer that uses the weight.
        layer: LayerId,
        /// The row.
        row: usize,
        /// The column.
        col: usize,
    },
    /// A layer has width 0.
    #[error("layer {layer}: it has width 0; every layer needs at least one function")]
    ZeroWidth {
        /// The layer.
        layer: LayerId,
    },
    /// The width of a layer, or the memory that it needs, is too large to address.
    #[error("layer {layer}: it is too large ({what}); use smaller widths")]
    TooLarge {
        /// The layer.
        layer: LayerId,
        /// What is too large.
        what: &'static str,
    },
    /// The output is not an existing layer.
    #[error("the output {output} is not a layer; the circuit has {count}")]
    UnknownOutput {
        /// The position given as the output.
        output: usize,
        /// The number of layers.
        count: usize,
    },
    /// The output does not depend on a layer.
    #[error("layer {layer}: the output does not depend on it; remove it or connect it")]
    NotReached {
        /// The layer.
        layer: LayerId,
    },
    /// No input layer uses a variable.
    #[error("no layer uses variable '{variable}'; give it an input layer or remove it")]
    UnusedVariable {
        /// The variable.
        variable: String,
    },
    /// No sum layer uses a weight.
    #[error("no layer uses weight {weight}; give it a sum layer or remove it")]
    UnusedWeight {
        /// The weight.
        weight: WeightId,
    },
}

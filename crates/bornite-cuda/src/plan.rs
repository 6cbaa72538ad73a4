//! The plan of a fit: a circuit as steps and weights, without numbers.

/// A circuit. Every step comes after its inputs, and the last one is the output.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whether the weights are complex. Numbers are then pairs of real parts.
    pub complex: bool,
    /// The steps.
    pub steps: Vec<Step>,
    /// The weights of the steps.
    pub weights: Vec<Weight>,
}

/// A step, which computes one vector for every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The column of a weight that the code of a variable selects.
    Codes {
        /// The variable.
        variable: usize,
        /// The weight.
        weight: usize,
    },
    /// Numbers from the table.
    Functions {
        /// The number of functions.
        width: usize,
    },
    /// W (a ⊗ b).
    Kronecker {
        /// The steps of a and b.
        inputs: [usize; 2],
        /// The weight.
        weight: usize,
    },
    /// a ⊙ b.
    Hadamard {
        /// The steps of a and b.
        inputs: [usize; 2],
    },
    /// W a.
    Sum {
        /// The step of a.
        input: usize,
        /// The weight.
        weight: usize,
    },
}

/// A weight, and how it is learned.
#[derive(Clone, Debug)]
pub struct Weight {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// Whether the weight has unit norm, as that of the output does. All others are semi-unitary.
    pub is_output: bool,
    /// A factor for the learning rate.
    pub rate: f32,
    /// The strength of the penalty on differences between neighboring columns.
    pub smoothing: f32,
    /// The strength of the penalty on each column; empty for none.
    pub roughness: Vec<f32>,
}

/// The bits of factors in products over rows. Sums are in single precision, and so are scores and
/// the normalization of weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Factors {
    /// 24 bits.
    #[default]
    Single,
    /// 11 bits.
    Tf32,
    /// 8 bits, and 11 in products of weights.
    Bfloat16,
}

/// The settings of the optimizer.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The maximum number of rows in a step.
    pub batch: usize,
    /// Whether to take tangent steps, instead of differentiating the Cholesky factor.
    pub is_stiefel: bool,
    /// Whether to use momentum instead of Adam.
    pub momentum: bool,
    /// The maximum norm of a gradient, if it is clipped.
    pub clip: Option<f32>,
    /// The bits of factors in products over rows.
    pub factors: Factors,
    /// For every shift of the rows, the variable that each variable takes its value from. Rows
    /// without a shift use the first one.
    pub sources: Vec<Vec<u32>>,
}

/// Rows: the codes of variables and the values of functions.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The number of rows.
    pub len: usize,
    /// The number of bytes of a code: 1, 2 or 4.
    pub bytes: usize,
    /// The codes, one variable after another.
    pub codes: Vec<u8>,
    /// The real parts of the numbers of [`Step::Functions`], one step and one function after
    /// another, row by row.
    pub functions: Vec<f32>,
}

impl Plan {
    /// The width of every step.
    pub(crate) fn widths(&self) -> Vec<usize> {
        widths(&self.steps, |weight| self.weights[weight].rows)
    }
}

/// The width of every step, given the number of rows of each weight.
pub(crate) fn widths(steps: &[Step], rows: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut widths = Vec::with_capacity(steps.len());
    for step in steps {
        widths.push(match *step {
            Step::Codes { weight, .. }
            | Step::Kronecker { weight, .. }
            | Step::Sum { weight, .. } => rows(weight),
            Step::Functions { width } => width,
            Step::Hadamard { inputs } => widths[inputs[0]],
        });
    }
    widths
}

impl Step {
    pub(crate) fn inputs(&self) -> &[usize] {
        match self {
            Self::Codes { .. } | Self::Functions { .. } => &[],
            Self::Kronecker { inputs, .. } | Self::Hadamard { inputs } => inputs,
            Self::Sum { input, .. } => std::slice::from_ref(input),
        }
    }

    pub(crate) fn weight(&self) -> Option<usize> {
        match *self {
            Self::Codes { weight, .. }
            | Self::Kronecker { weight, .. }
            | Self::Sum { weight, .. } => Some(weight),
            Self::Functions { .. } | Self::Hadamard { .. } => None,
        }
    }
}

//! The plan of a fit: a circuit as steps over weights, without numbers.

/// A circuit: every step comes after its inputs, and the last one is the output.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whether weights are complex. Numbers are then pairs of real parts.
    pub complex: bool,
    /// The steps.
    pub steps: Vec<Step>,
    /// The weights that they multiply with.
    pub weights: Vec<Weight>,
}

/// One vector for every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The column of a weight that the code of a variable names.
    Codes {
        /// The variable.
        variable: usize,
        /// The weight.
        weight: usize,
    },
    /// Numbers from the table, as many as this.
    Functions {
        /// How many.
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
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Of unit norm, where others are semi-unitary.
    pub is_output: bool,
    /// What the rate of a step is multiplied with.
    pub rate: f32,
    /// How strongly neighboring columns are drawn together.
    pub smoothing: f32,
    /// How strongly each column is drawn to zero; empty for none.
    pub roughness: Vec<f32>,
}

/// How steps are taken.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The maximum number of rows of a step.
    pub batch: usize,
    /// Tangent steps, instead of a derivative through the Cholesky factor.
    pub is_stiefel: bool,
    /// Momentum instead of Adam.
    pub momentum: bool,
    /// The largest norm of a gradient.
    pub clip: Option<f32>,
    /// Products of factors of 11 bits, with sums in single precision.
    pub tf32: bool,
    /// For every place that rows can be moved to, the variable from which each variable takes its value. Rows without a place
    /// have the first.
    pub sources: Vec<Vec<u32>>,
}

/// Rows: codes of variables and values of functions.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// How many rows.
    pub len: usize,
    /// The bytes of a code: 1, 2 or 4.
    pub bytes: usize,
    /// Codes, variable after variable.
    pub codes: Vec<u8>,
    /// Real parts of the numbers of [`Step::Functions`], step after step and function after function, row by row.
    pub functions: Vec<f32>,
}

impl Plan {
    /// The width of every step.
    pub(crate) fn widths(&self) -> Vec<usize> {
        widths(&self.steps, |weight| self.weights[weight].rows)
    }
}

/// The width of every step, from the rows of weights.
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

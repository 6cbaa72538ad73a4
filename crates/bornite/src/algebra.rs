//! The algebra of messages: the kinds of messages that layers send, and what they cost.
//!
//! The message of a layer is ∫ ℓ ℓᴴ over its unobserved variables. In an orthonormal circuit, it is
//! the identity if none of the layer's variables is observed, v vᴴ if all of them have values, and
//! a matrix otherwise ([`Kind`]). A product of two messages of the same kind has that kind; any
//! other product is a matrix. Passes, counts and reports all follow from this rule and from the
//! cost of one input of a sum ([`Form::mode`]).

use std::ops::{Add, AddAssign, Mul};

pub(crate) use bornite_kernels::Kind;
use serde::Serialize;

/// How a message is stored: as its [`Kind`] implies, or as a diagonal if the matrix is diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "u8")]
pub(crate) enum Form {
    Identity = 0,
    Pure = 1,
    /// A diagonal matrix, such as that of a set of values under indicator functions. There may be
    /// too many of these for a full matrix.
    Diagonal = 2,
    Mixed = 3,
}

impl From<Form> for u8 {
    fn from(form: Form) -> Self {
        form as Self
    }
}

impl From<Kind> for Form {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Identity => Self::Identity,
            Kind::Pure => Self::Pure,
            Kind::Mixed => Self::Mixed,
        }
    }
}

/// The cost of one input at a sum, as a mode of the partially contracted weight tensor.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Mode {
    /// Multiply-adds per entry of the tensor.
    per_entry: u32,
    /// Multiply-adds per entry of the tensor and per unit of the input's width.
    per_output: u32,
    /// Whether this input removes the mode from the tensor.
    is_summed_out: bool,
}

impl Mode {
    /// Multiply-adds per entry of the tensor, for an input of this width.
    fn multiply_adds(self, width: usize) -> u128 {
        u128::from(self.per_entry) + u128::from(self.per_output) * width as u128
    }
}

impl Form {
    /// The exponent e for which widthᵉ entries are stored.
    #[cfg(feature = "report")]
    fn power(self) -> u32 {
        match self {
            Self::Identity => 0,
            Self::Pure | Self::Diagonal => 1,
            Self::Mixed => 2,
        }
    }

    fn is_diagonal(self) -> bool {
        matches!(self, Self::Identity | Self::Diagonal)
    }

    /// The form of a Kronecker product.
    pub(crate) fn kronecker(self, other: Self) -> Self {
        if self == other {
            self
        } else if self.is_diagonal() && other.is_diagonal() {
            Self::Diagonal
        } else {
            Self::Mixed
        }
    }

    /// The form of an elementwise product. If one factor is diagonal, so is the product.
    pub(crate) fn hadamard(self, other: Self) -> Self {
        if self == other {
            self
        } else if self.is_diagonal() || other.is_diagonal() {
            Self::Diagonal
        } else {
            Self::Mixed
        }
    }

    /// The form of a sum over one input. The identity is preserved if the weight is semi-unitary.
    pub(crate) fn sum(self, is_semi_unitary: bool) -> Self {
        match self {
            Self::Identity if is_semi_unitary => Self::Identity,
            Self::Pure => Self::Pure,
            Self::Identity | Self::Diagonal | Self::Mixed => Self::Mixed,
        }
    }

    /// What an input of this form costs at a sum.
    fn mode(self) -> Mode {
        let (per_entry, per_output, is_summed_out) = match self {
            Self::Identity => (0, 0, false),
            Self::Pure => (1, 0, true),
            Self::Diagonal => (1, 0, false),
            Self::Mixed => (0, 1, false),
        };
        Mode { per_entry, per_output, is_summed_out }
    }
}

/// The multiply-adds of a pass over some rows.
///
/// These are complex multiply-adds (8 floating-point operations each) in a complex circuit and real
/// ones (2 each) in a real circuit. Only the products of the message table count: rescaling,
/// copying and evaluating input functions do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// All entries of every product, as in the message table.
    pub table: u128,
    /// Only one half of each matrix that is known to be Hermitian: a lower bound.
    pub hermitian: u128,
}

impl Work {
    /// A count that symmetry does not reduce.
    pub(crate) fn full(count: u128) -> Self {
        Self { table: count, hermitian: count }
    }

    /// The cost of a K × K Hermitian result with `len` multiply-adds per entry.
    fn hermitian(k: u128, len: u128) -> Self {
        Self { table: k * k * len, hermitian: k * (k + 1) / 2 * len }
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { table: self.table + other.table, hermitian: self.hermitian + other.hermitian }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<usize> for Work {
    type Output = Self;

    fn mul(self, times: usize) -> Self {
        let times = times as u128;
        Self { table: self.table * times, hermitian: self.hermitian * times }
    }
}

/// The work of a sum with `outputs` outputs over the Kronecker product of inputs with the given
/// forms and widths.
///
/// Vectors are summed out first, starting from the last input. This leaves a tensor B, which is
/// multiplied by the matrices and then by Bᴴ. If all inputs are identities, so is the result, and
/// there is nothing to compute.
pub(crate) fn contraction(outputs: usize, inputs: &[(Form, usize)]) -> Work {
    if inputs.iter().all(|(form, _)| *form == Form::Identity) {
        return Work::default();
    }
    let outputs = outputs as u128;
    let mut len = inputs.iter().fold(outputs, |len, (_, width)| len * *width as u128);
    let mut work = Work::default();
    let (summed, left): (Vec<_>, Vec<_>) =
        inputs.iter().rev().copied().partition(|(form, _)| form.mode().is_summed_out);
    for (form, width) in summed {
        work += Work::full(len * form.mode().multiply_adds(width));
        len /= width.max(1) as u128;
    }
    for (form, width) in &left {
        work += Work::full(len * form.mode().multiply_adds(*width));
    }
    if left.is_empty() { work } else { work + Work::hermitian(outputs, len / outputs.max(1)) }
}

/// The work of an elementwise product of inputs that share a width.
pub(crate) fn hadamard(width: usize, inputs: &[Form]) -> Work {
    let times = inputs.len().saturating_sub(1);
    match inputs.iter().copied().reduce(Form::hadamard) {
        None | Some(Form::Identity) => Work::default(),
        Some(Form::Pure | Form::Diagonal) => Work::full(width as u128) * times,
        Some(Form::Mixed) => Work::hermitian(width as u128, 1) * times,
    }
}

/// The work of forming a Kronecker product in full, if no sum follows that would contract it.
pub(crate) fn kronecker(inputs: &[(Form, usize)]) -> Work {
    let Some(form) = inputs.iter().map(|(form, _)| *form).reduce(Form::kronecker) else {
        return Work::default();
    };
    let (mut len, mut work) = (1_u128, Work::default());
    for (_, width) in inputs {
        len *= *width as u128;
        work += match form {
            Form::Identity => Work::default(),
            Form::Pure | Form::Diagonal => Work::full(len),
            Form::Mixed => Work::hermitian(len, 1),
        };
    }
    work
}

/// The whole algebra as data, for the script of a report. Forms are given by their discriminants.
#[cfg(feature = "report")]
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    kronecker: [[Form; 4]; 4],
    hadamard: [[Form; 4]; 4],
    /// The form of a sum over one input, with a semi-unitary weight.
    sum: [Form; 4],
    /// What an input costs at a sum.
    modes: [Mode; 4],
    /// The exponents of the width: see [`Form::power`].
    powers: [u32; 4],
}

#[cfg(feature = "report")]
impl Table {
    pub(crate) fn new() -> Self {
        const ALL: [Form; 4] = [Form::Identity, Form::Pure, Form::Diagonal, Form::Mixed];
        let table = |product: fn(Form, Form) -> Form| ALL.map(|a| ALL.map(|b| product(a, b)));
        Self {
            kronecker: table(Form::kronecker),
            hadamard: table(Form::hadamard),
            sum: ALL.map(|form| form.sum(true)),
            modes: ALL.map(Form::mode),
            powers: ALL.map(Form::power),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_match_kinds_unless_they_are_diagonal() {
        for a in Kind::ALL {
            for b in Kind::ALL {
                let [f, g] = [a, b].map(Form::from);
                assert_eq!(f.kronecker(g), Form::from(a.times(b)));
                let elementwise = f.hadamard(g);
                let is_diagonal = a != b && (a == Kind::Identity || b == Kind::Identity);
                let expected = if is_diagonal { Form::Diagonal } else { a.times(b).into() };
                assert_eq!(elementwise, expected);
            }
        }
    }

    /// The message table of a sum over two inputs of widths 3 and 5, written out.
    #[test]
    fn the_table_of_two_inputs() {
        use Form::{Diagonal, Identity, Mixed, Pure};
        let (k, k1, k2) = (2, 3, 5);
        let all = k * k1 * k2;
        let close = |len: u128| k * k * len;
        for (a, b, expected) in [
            (Identity, Identity, 0),
            (Pure, Pure, all + k * k1),
            (Pure, Identity, all + close(k2)),
            (Identity, Pure, all + close(k1)),
            (Pure, Mixed, all + k * k2 * k2 + close(k2)),
            (Mixed, Pure, all + k * k1 * k1 + close(k1)),
            (Mixed, Identity, all * k1 + close(k1 * k2)),
            (Identity, Mixed, all * k2 + close(k1 * k2)),
            (Mixed, Mixed, all * (k1 + k2) + close(k1 * k2)),
            (Diagonal, Identity, all + close(k1 * k2)),
        ] {
            let work = contraction(2, &[(a, 3), (b, 5)]);
            assert_eq!(work.table, expected, "{a:?}, {b:?}");
        }
    }
}

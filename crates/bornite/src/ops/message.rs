//! Messages: ∫ ℓ ℓᴴ over the unobserved variables of a layer, each in its smallest form.

use std::borrow::Cow;

use super::scaled::{Scaled, align, is_safe, product, rescale, rescale_if_extreme};
use crate::algebra::Form;
use crate::linalg::{Matrix, Scalar, product_of_rows, product_with_adjoint};

/// ∫ ℓ ℓᴴ over the unobserved variables in a layer's scope.
///
/// Paper: `alg:marginalization`, `out[ℓ]` and `mar[ℓ]`.
#[derive(Clone, Debug)]
pub(crate) enum Message<T> {
    /// The identity: the layer is orthonormal and none of its variables is observed.
    Identity,
    /// v vᴴ: all variables have values, and v = ℓ(y).
    Pure(Scaled<Vec<T>>),
    /// A diagonal matrix, such as that of a set of values under indicator functions. There may be
    /// too many of these for a full matrix.
    Diagonal(Scaled<Vec<f64>>),
    /// A Hermitian positive semidefinite matrix.
    Mixed(Scaled<Matrix<T>>),
}

impl<T: Scalar> Message<T> {
    pub(crate) fn pure(value: Vec<T>, exponent: i64) -> Self {
        let mut value = value;
        let exponent = exponent + rescale(&mut value);
        Message::Pure(Scaled { value, exponent })
    }

    pub(crate) fn mixed(value: Matrix<T>, exponent: i64) -> Self {
        let mut value = value;
        let exponent = exponent + rescale(value.data_mut());
        Message::Mixed(Scaled { value, exponent })
    }

    pub(crate) fn diagonal(value: Vec<f64>, exponent: i64) -> Self {
        let mut value = value;
        let exponent = exponent + rescale(&mut value);
        Message::Diagonal(Scaled { value, exponent })
    }

    fn form(&self) -> Form {
        match self {
            Message::Identity => Form::Identity,
            Message::Pure(_) => Form::Pure,
            Message::Diagonal(_) => Form::Diagonal,
            Message::Mixed(_) => Form::Mixed,
        }
    }

    /// Entry (i, i) of the matrix, without the exponent.
    fn diagonal_entry(&self, i: usize) -> f64 {
        match self {
            Message::Identity => 1.0,
            Message::Pure(v) => v.value[i].abs2(),
            Message::Diagonal(d) => d.value[i],
            Message::Mixed(m) => m.value[(i, i)].to_complex().re,
        }
    }

    /// The exponent of the matrix.
    fn exponent(&self) -> i64 {
        match self {
            Message::Identity => 0,
            Message::Pure(v) => 2 * v.exponent,
            Message::Diagonal(d) => d.exponent,
            Message::Mixed(m) => m.exponent,
        }
    }

    /// The message as a full matrix of this width.
    pub(crate) fn to_matrix(&self, width: usize) -> Scaled<Matrix<T>> {
        match self {
            Message::Identity => Scaled { value: Matrix::identity(width), exponent: 0 },
            Message::Pure(v) => {
                let m = Matrix::from_fn(width, width, |i, j| v.value[i] * v.value[j].conjugate());
                Scaled { value: m, exponent: 2 * v.exponent }
            }
            Message::Diagonal(d) => {
                let entry = |i, j| if i == j { T::from_real(d.value[i]) } else { T::ZERO };
                Scaled { value: Matrix::from_fn(width, width, entry), exponent: d.exponent }
            }
            Message::Mixed(m) => m.clone(),
        }
    }

    /// The logarithm of the trace of the matrix; −∞ if the trace is 0.
    pub(crate) fn log_trace(&self, width: usize) -> f64 {
        self.trace(width).log()
    }

    /// The trace of the matrix, which may have either sign.
    pub(crate) fn trace(&self, width: usize) -> Scaled<f64> {
        let value = (0..width).map(|i| self.diagonal_entry(i)).sum();
        Scaled { value, exponent: self.exponent() }
    }
}

/// The message of a sum layer W over the Kronecker product of its factors, contracted one mode at a
/// time.
///
/// Modes with pure messages are contracted first, which leaves a tensor B. The result is (B ×ₙ Mₙ)
/// Bᴴ over the mixed modes n. Nothing larger than W is formed.
pub(crate) fn contract<T: Scalar>(w: &Matrix<T>, factors: &[(&Message<T>, usize)]) -> Message<T> {
    match halves(w, factors) {
        Halves::Vector(v) => Message::pure(v.value, v.exponent),
        Halves::Matrices { t, b, exponent } => {
            let m = product_with_adjoint(t.as_deref().unwrap_or(&b), &b, w.rows());
            Message::mixed(m.hermitian_part(), exponent)
        }
    }
}

/// Only the diagonal of what [`contract`] returns, for a W with very many rows.
pub(crate) fn contract_diagonal<T: Scalar>(
    w: &Matrix<T>,
    factors: &[(&Message<T>, usize)],
) -> Scaled<Vec<f64>> {
    let (mut value, exponent): (Vec<f64>, i64) = match halves(w, factors) {
        Halves::Vector(mut v) => {
            let exponent = v.exponent + rescale(&mut v.value);
            (v.value.iter().map(|x| x.abs2()).collect(), 2 * exponent)
        }
        Halves::Matrices { t, b, exponent } => {
            let cols = b.len() / w.rows();
            let dot = |(t, b): (&T, &T)| (*t * b.conjugate()).to_complex().re;
            let rows = t.as_deref().unwrap_or(&b).chunks_exact(cols).zip(b.chunks_exact(cols));
            (rows.map(|(t, b)| t.iter().zip(b).map(dot).sum()).collect(), exponent)
        }
    };
    let exponent = exponent + rescale(&mut value);
    Scaled { value, exponent }
}

/// What a contraction leaves to multiply: a vector v for v vᴴ, or matrices T and B, row by row, for
/// T Bᴴ. Without a T, the result is B Bᴴ.
enum Halves<'w, T: Scalar> {
    Vector(Scaled<Vec<T>>),
    Matrices { t: Option<Vec<T>>, b: Cow<'w, [T]>, exponent: i64 },
}

fn halves<'w, T: Scalar>(w: &'w Matrix<T>, factors: &[(&Message<T>, usize)]) -> Halves<'w, T> {
    let mut b = Cow::Borrowed(w.data());
    let mut exponent = if is_safe(&b) { 0 } else { rescale(b.to_mut()) };
    let mut dims: Vec<usize> =
        std::iter::once(w.rows()).chain(factors.iter().map(|f| f.1)).collect();
    let mut mixed = Vec::new();
    // In reverse, so that the positions of the remaining modes do not change.
    for (n, (message, _)) in factors.iter().enumerate().rev() {
        match message {
            Message::Identity => {}
            Message::Pure(v) => {
                let mut rest = contract_mode(&b, &dims, n + 1, &v.value);
                dims.remove(n + 1);
                for (mode, _) in &mut mixed {
                    *mode -= 1;
                }
                exponent += v.exponent + rescale_if_extreme(&mut rest);
                b = Cow::Owned(rest);
            }
            Message::Diagonal(_) | Message::Mixed(_) => mixed.push((n + 1, *message)),
        }
    }
    if dims.len() == 1 {
        return Halves::Vector(Scaled { value: b.into_owned(), exponent });
    }
    exponent *= 2;
    let mut t: Option<Vec<T>> = None;
    for (mode, message) in &mixed {
        let mut next = match message {
            Message::Diagonal(d) => {
                let mut scaled = t.take().unwrap_or_else(|| b.to_vec());
                scale_mode(&mut scaled, &dims, *mode, &d.value);
                scaled
            }
            Message::Mixed(m) => multiply_mode(t.as_deref().unwrap_or(&b), &dims, *mode, &m.value),
            Message::Identity | Message::Pure(_) => unreachable!("only matrices are left"),
        };
        exponent += message.exponent() + rescale_if_extreme(&mut next);
        t = Some(next);
    }
    Halves::Matrices { t, b, exponent }
}

/// Σᵢ b[…, i, …] v[i] over mode `mode`.
fn contract_mode<T: Scalar>(b: &[T], dims: &[usize], mode: usize, v: &[T]) -> Vec<T> {
    let (n, after): (usize, usize) = (dims[mode], dims[mode + 1..].iter().product());
    let before = b.len() / (n * after);
    if after == 1 {
        let dot = |row: &[T]| row.iter().zip(v).fold(T::ZERO, |sum, (&x, &y)| sum + x * y);
        return b.chunks_exact(n).map(dot).collect();
    }
    let mut out = vec![T::ZERO; before * after];
    for p in 0..before {
        let target = &mut out[p * after..(p + 1) * after];
        for i in 0..n {
            let source = &b[(p * n + i) * after..(p * n + i + 1) * after];
            for (o, &x) in target.iter_mut().zip(source) {
                *o += x * v[i];
            }
        }
    }
    out
}

/// b[…, i, …] d[i] over mode `mode`.
fn scale_mode<T: Scalar>(b: &mut [T], dims: &[usize], mode: usize, d: &[f64]) {
    let after: usize = dims[mode + 1..].iter().product();
    for (n, slab) in b.chunks_exact_mut(after).enumerate() {
        let factor = d[n % d.len()];
        for x in slab {
            *x = x.scale_by(factor);
        }
    }
}

/// Σᵢ b[…, i, …] m[i, i′] over mode `mode`.
pub(crate) fn multiply_mode<T: Scalar>(
    b: &[T],
    dims: &[usize],
    mode: usize,
    m: &Matrix<T>,
) -> Vec<T> {
    let (n, after): (usize, usize) = (dims[mode], dims[mode + 1..].iter().product());
    let before = b.len() / (n * after);
    if after == 1 { product_of_rows(b, before, m) } else { m.transposed_times_each(b, after) }
}

/// The message of a Hadamard product. Every entry has its own exponent in the meantime, because
/// entries that are small in one factor may be large in the next.
pub(crate) fn hadamard<T: Scalar>(factors: &[&Message<T>], width: usize) -> Message<T> {
    let form = factors.iter().map(|f| f.form()).reduce(Form::hadamard);
    let exponents: i64 = factors.iter().map(|f| f.exponent()).sum();
    match form {
        None | Some(Form::Identity) => Message::Identity,
        Some(Form::Pure) => {
            let vectors = pure_values(factors.iter().copied());
            let entry = |i: usize| product(vectors.iter().map(|v| v.value[i]));
            let v = align((0..width).map(entry).collect());
            Message::pure(v.value, v.exponent + exponents / 2)
        }
        Some(Form::Diagonal) => {
            let entry = |i: usize| product(factors.iter().map(|f| f.diagonal_entry(i)));
            let d = align((0..width).map(entry).collect());
            Message::diagonal(d.value, d.exponent + exponents)
        }
        Some(Form::Mixed) => {
            let matrices: Vec<_> = factors.iter().map(|f| f.to_matrix(width)).collect();
            let entry = |n: usize| product(matrices.iter().map(|m| m.value.data()[n]));
            let m = align((0..width * width).map(entry).collect());
            Message::mixed(Matrix::new(width, width, m.value), m.exponent + exponents)
        }
    }
}

/// The message of a Kronecker product without a sum above it, formed in full.
pub(crate) fn kronecker<T: Scalar>(factors: &[(&Message<T>, usize)]) -> Message<T> {
    let form = factors.iter().map(|f| f.0.form()).reduce(Form::kronecker);
    let mut exponent = 0;
    match form {
        None | Some(Form::Identity) => Message::Identity,
        Some(Form::Pure) => {
            let mut value = vec![T::ONE];
            for v in pure_values(factors.iter().map(|f| f.0)) {
                value = kronecker_vector(&value, &v.value);
                exponent += v.exponent + rescale_if_extreme(&mut value);
            }
            Message::pure(value, exponent)
        }
        Some(Form::Diagonal) => {
            let mut value = vec![1.0];
            for (message, width) in factors {
                let d: Vec<f64> = (0..*width).map(|i| message.diagonal_entry(i)).collect();
                value = kronecker_vector(&value, &d);
                exponent += message.exponent() + rescale_if_extreme(&mut value);
            }
            Message::diagonal(value, exponent)
        }
        Some(Form::Mixed) => {
            let mut value = Matrix::identity(1);
            for (message, width) in factors {
                let m = message.to_matrix(*width);
                value = kronecker_matrix(&value, &m.value);
                exponent += m.exponent + rescale_if_extreme(value.data_mut());
            }
            Message::mixed(value, exponent)
        }
    }
}

/// a ⊗ b.
fn kronecker_vector<T: Scalar>(a: &[T], b: &[T]) -> Vec<T> {
    a.iter().flat_map(|&x| b.iter().map(move |&y| x * y)).collect()
}

/// A ⊗ B.
pub(crate) fn kronecker_matrix<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    Matrix::from_fn(a.rows() * b.rows(), a.cols() * b.cols(), |i, j| {
        a[(i / b.rows(), j / b.cols())] * b[(i % b.rows(), j % b.cols())]
    })
}

/// The vectors of messages, all of which must be pure.
fn pure_values<'a, T: 'a>(
    messages: impl Iterator<Item = &'a Message<T>>,
) -> Vec<&'a Scaled<Vec<T>>> {
    messages
        .filter_map(|message| match message {
            Message::Pure(v) => Some(v),
            Message::Identity | Message::Diagonal(_) | Message::Mixed(_) => None,
        })
        .collect()
}

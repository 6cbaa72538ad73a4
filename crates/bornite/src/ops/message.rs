//! What a layer tells the next one: ∫ ℓ ℓᴴ over its marginalized variables, in its smallest form.

use crate::linalg::{Matrix, Scalar};

/// A vector or matrix times 2^exponent.
#[derive(Clone, Debug)]
pub(crate) struct Scaled<V> {
    pub(crate) value: V,
    pub(crate) exponent: i64,
}

impl Scaled<f64> {
    /// This number over another, of which only the ratio must be in the range of `f64`.
    pub(crate) fn over(&self, other: &Self) -> f64 {
        let ratio = self.value / other.value;
        let exponent = (self.exponent - other.exponent).clamp(-4000, 4000);
        // In four steps, since 2^exponent may be out of range where the product is not.
        (0..4).fold(ratio, |x, k| x * exp2((exponent + k).div_euclid(4)))
    }

    /// log of the number; −∞ where it is not positive.
    pub(crate) fn log(&self) -> f64 {
        self.value.max(0.0).ln() + self.exponent as f64 * std::f64::consts::LN_2
    }
}

/// ∫ ℓ ℓᴴ over the marginalized variables in a layer's scope.
///
/// Paper: `alg:marginalization`, `out[ℓ]` and `mar[ℓ]`.
#[derive(Clone, Debug)]
pub(crate) enum Message<T> {
    /// I: the layer is orthonormal and all its variables are marginalized.
    Identity,
    /// v vᴴ: no variable is marginalized, and v = ℓ(y).
    Pure(Scaled<Vec<T>>),
    /// A diagonal matrix: a set of values under indicators, of which there may be very many.
    Diagonal(Vec<f64>),
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

    /// As a matrix of this width.
    pub(crate) fn to_matrix(&self, width: usize) -> Scaled<Matrix<T>> {
        match self {
            Message::Identity => Scaled { value: Matrix::identity(width), exponent: 0 },
            Message::Pure(v) => {
                let m = Matrix::from_fn(width, width, |i, j| v.value[i] * v.value[j].conjugate());
                Scaled { value: m, exponent: 2 * v.exponent }
            }
            Message::Diagonal(d) => {
                let entry = |i, j| if i == j { T::from_real(d[i]) } else { T::ZERO };
                Scaled { value: Matrix::from_fn(width, width, entry), exponent: 0 }
            }
            Message::Mixed(m) => m.clone(),
        }
    }

    /// log of the trace of what the message stands for; −∞ for zero.
    pub(crate) fn log_trace(&self, width: usize) -> f64 {
        self.trace(width).log()
    }

    /// The trace of what the message stands for, of either sign.
    pub(crate) fn trace(&self, width: usize) -> Scaled<f64> {
        let (value, exponent) = match self {
            Message::Identity => (width as f64, 0),
            Message::Pure(v) => (v.value.iter().map(|x| x.abs2()).sum(), 2 * v.exponent),
            Message::Diagonal(d) => (d.iter().sum(), 0),
            Message::Mixed(m) => {
                ((0..width).map(|i| m.value[(i, i)].to_complex().re).sum(), m.exponent)
            }
        };
        Scaled { value, exponent }
    }
}

/// Brings the largest part to [1, 2) by a power of two, exactly, and returns the exponent taken out. Zero stays zero.
pub(crate) fn rescale<T: Scalar>(values: &mut [T]) -> i64 {
    let max = values.iter().fold(0.0, |m: f64, x| m.max(x.max_part()));
    if max == 0.0 {
        return 0;
    }
    let exponent = ilogb(max);
    // In two steps: 2^-exponent itself may be out of range.
    let (half, rest) = (-exponent / 2, -exponent - -exponent / 2);
    for x in values {
        *x = x.scale_by(exp2(half)).scale_by(exp2(rest));
    }
    exponent
}

/// floor(log₂ x) of a positive finite number.
pub(crate) fn ilogb(x: f64) -> i64 {
    let exponent = (x.to_bits() >> 52).cast_signed();
    if exponent == 0 { ilogb(x * exp2(64)) - 64 } else { exponent - 1023 }
}

/// 2^e for e in the normal range.
pub(crate) fn exp2(e: i64) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// Counts multiply-adds of the number type in use.
pub(crate) type Count = u128;

/// The message of a sum layer W over the Kronecker product of its factors: Σ over all modes, one mode at a time.
///
/// Modes with a pure message are contracted first, which leaves B; then the result is (B ×ₙ Mₙ) Bᴴ over the mixed
/// modes n. Nothing larger than W is formed.
pub(crate) fn contract<T: Scalar>(
    w: &Matrix<T>,
    factors: &[(&Message<T>, usize)],
    count: &mut Count,
) -> Message<T> {
    match halves(w, factors, count) {
        Halves::Vector(v) => Message::pure(v.value, v.exponent),
        Halves::Matrices { t, b, exponent } => {
            *count += t.rows() as Count * t.cols() as Count * t.rows() as Count;
            Message::mixed(t.times_adjoint(&b).hermitian_part(), exponent)
        }
    }
}

/// The diagonal alone of what [`contract`] gives: for a W of very many rows.
pub(crate) fn contract_diagonal<T: Scalar>(
    w: &Matrix<T>,
    factors: &[(&Message<T>, usize)],
    count: &mut Count,
) -> Scaled<Vec<f64>> {
    let (mut value, exponent): (Vec<f64>, i64) = match halves(w, factors, count) {
        Halves::Vector(mut v) => {
            let exponent = v.exponent + rescale(&mut v.value);
            (v.value.iter().map(|x| x.abs2()).collect(), 2 * exponent)
        }
        Halves::Matrices { t, b, exponent } => {
            *count += t.data().len() as Count;
            let dot = |(t, b): (&T, &T)| (*t * b.conjugate()).to_complex().re;
            let row = |i: usize| t.row(i).iter().zip(b.row(i)).map(dot).sum();
            ((0..t.rows()).map(row).collect(), exponent)
        }
    };
    let exponent = exponent + rescale(&mut value);
    Scaled { value, exponent }
}

/// What a contraction leaves to multiply: a vector v for v vᴴ, or T and B for T Bᴴ.
enum Halves<T> {
    Vector(Scaled<Vec<T>>),
    Matrices { t: Matrix<T>, b: Matrix<T>, exponent: i64 },
}

fn halves<T: Scalar>(
    w: &Matrix<T>,
    factors: &[(&Message<T>, usize)],
    count: &mut Count,
) -> Halves<T> {
    let mut exponent = 0;
    let mut b = w.data().to_vec();
    let mut dims: Vec<usize> =
        std::iter::once(w.rows()).chain(factors.iter().map(|f| f.1)).collect();
    let mut mixed = Vec::new();
    // From the last mode on, so that the positions of the modes still to come stay.
    for (n, (message, _)) in factors.iter().enumerate().rev() {
        match message {
            Message::Identity => {}
            Message::Pure(v) => {
                b = contract_mode(&b, &dims, n + 1, &v.value, count);
                dims.remove(n + 1);
                for (mode, _) in &mut mixed {
                    *mode -= 1;
                }
                exponent += v.exponent;
            }
            Message::Diagonal(_) | Message::Mixed(_) => mixed.push((n + 1, *message)),
        }
    }
    if dims.len() == 1 {
        return Halves::Vector(Scaled { value: b, exponent });
    }
    exponent *= 2;
    let mut t = b.clone();
    for (mode, message) in &mixed {
        match message {
            Message::Diagonal(d) => scale_mode(&mut t, &dims, *mode, d, count),
            Message::Mixed(m) => {
                t = multiply_mode(&t, &dims, *mode, &m.value, count);
                exponent += m.exponent;
            }
            _ => unreachable!("only matrices are left"),
        }
    }
    let rest: usize = dims[1..].iter().product();
    let (t, b) = (Matrix::new(dims[0], rest, t), Matrix::new(dims[0], rest, b));
    Halves::Matrices { t, b, exponent }
}

/// Σᵢ b[…, i, …] v[i] over mode `mode`.
fn contract_mode<T: Scalar>(
    b: &[T],
    dims: &[usize],
    mode: usize,
    v: &[T],
    count: &mut Count,
) -> Vec<T> {
    let (n, after): (usize, usize) = (dims[mode], dims[mode + 1..].iter().product());
    let before = b.len() / (n * after);
    *count += b.len() as Count;
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
fn scale_mode<T: Scalar>(b: &mut [T], dims: &[usize], mode: usize, d: &[f64], count: &mut Count) {
    let after: usize = dims[mode + 1..].iter().product();
    *count += b.len() as Count;
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
    count: &mut Count,
) -> Vec<T> {
    let (n, after): (usize, usize) = (dims[mode], dims[mode + 1..].iter().product());
    let before = b.len() / (n * after);
    *count += b.len() as Count * m.cols() as Count;
    if after == 1 {
        return Matrix::new(before, n, b.to_vec()).times(m).data().to_vec();
    }
    let left = m.transpose();
    let mut out = Vec::with_capacity(before * m.cols() * after);
    for p in 0..before {
        let slab = Matrix::new(n, after, b[p * n * after..(p + 1) * n * after].to_vec());
        out.extend_from_slice(left.times(&slab).data());
    }
    out
}

/// The message of a Hadamard product.
pub(crate) fn hadamard<T: Scalar>(
    factors: &[&Message<T>],
    width: usize,
    count: &mut Count,
) -> Message<T> {
    let multiplications = (factors.len() - 1) as Count;
    if factors.iter().all(|f| matches!(f, Message::Identity)) {
        return Message::Identity;
    }
    if let Some(vectors) = all_pure(factors) {
        *count += multiplications * width as Count;
        let value = (0..width)
            .map(|i| vectors.iter().fold(T::ONE, |product, v| product * v.value[i]))
            .collect();
        return Message::pure(value, vectors.iter().map(|v| v.exponent).sum());
    }
    let matrices: Vec<_> = factors.iter().map(|f| f.to_matrix(width)).collect();
    *count += multiplications * (width * width) as Count;
    let value = Matrix::from_fn(width, width, |i, j| {
        matrices.iter().fold(T::ONE, |product, m| product * m.value[(i, j)])
    });
    Message::mixed(value, matrices.iter().map(|m| m.exponent).sum())
}

/// The message of a Kronecker product that no sum contracts, formed in full.
pub(crate) fn kronecker<T: Scalar>(
    factors: &[(&Message<T>, usize)],
    count: &mut Count,
) -> Message<T> {
    let messages: Vec<&Message<T>> = factors.iter().map(|f| f.0).collect();
    if messages.iter().all(|f| matches!(f, Message::Identity)) {
        return Message::Identity;
    }
    if let Some(vectors) = all_pure(&messages) {
        let mut value = vec![T::ONE];
        for v in &vectors {
            value = value.iter().flat_map(|&x| v.value.iter().map(move |&y| x * y)).collect();
            *count += value.len() as Count;
        }
        return Message::pure(value, vectors.iter().map(|v| v.exponent).sum());
    }
    let mut exponent = 0;
    let mut value = Matrix::identity(1);
    for (message, width) in factors {
        let m = message.to_matrix(*width);
        exponent += m.exponent;
        value = kronecker_matrix(&value, &m.value);
        *count += value.data().len() as Count;
    }
    Message::mixed(value, exponent)
}

/// A ⊗ B.
pub(crate) fn kronecker_matrix<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    Matrix::from_fn(a.rows() * b.rows(), a.cols() * b.cols(), |i, j| {
        a[(i / b.rows(), j / b.cols())] * b[(i % b.rows(), j % b.cols())]
    })
}

fn all_pure<'a, T>(factors: &[&'a Message<T>]) -> Option<Vec<&'a Scaled<Vec<T>>>> {
    factors
        .iter()
        .map(|f| match f {
            Message::Pure(v) => Some(v),
            _ => None,
        })
        .collect()
}

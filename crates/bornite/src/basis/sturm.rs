//! Integrals of eigenfunctions of a Sturm–Liouville problem over an interval, computed from their
//! values at its ends.
//!
//! If (p uᵢ′)′ + (λᵢ w − q) uᵢ = 0, then the product of two eigenfunctions has the integral ∫ w uᵢ
//! uⱼ = [p (uᵢ uⱼ′ − uᵢ′ uⱼ)] / (λᵢ − λⱼ). A multiple of uₙ may be added to the flux p uₙ′ if the
//! factor is the same for all n. For the three classical families, this gives fluxes eₙ without
//! derivatives.

use super::quadrature::GAUSS_16;
use crate::linalg::{Matrix, Scalar};

/// The functions uₙ and their fluxes eₙ at one end of an interval.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) value: Vec<f64>,
    pub(super) flux: Vec<f64>,
}

impl End {
    /// An end where everything vanishes.
    pub(super) fn vanishing(width: usize) -> Self {
        Self { value: vec![0.0; width], flux: vec![0.0; width] }
    }
}

/// The real symmetric matrix with `f(i, j)` at and below the diagonal.
pub(super) fn symmetric<T: Scalar>(width: usize, f: impl Fn(usize, usize) -> f64) -> Matrix<T> {
    let mut out = Matrix::zeros(width, width);
    for i in 0..width {
        for j in 0..=i {
            let x = T::from_real(f(i, j));
            out[(i, j)] = x;
            out[(j, i)] = x;
        }
    }
    out
}

/// ∫ uᵢ uⱼ between two ends, given the integrals of the squares. Negative squares, which come from
/// rounding, count as 0.
///
/// Cost: K² operations for any interval. Absolute error: a few K ε.
pub(super) fn gram_between<T: Scalar>(
    low: &End,
    high: &End,
    eigenvalue: impl Fn(usize) -> f64,
    squares: &[f64],
) -> Matrix<T> {
    let wronskian =
        |end: &End, i: usize, j: usize| end.value[i] * end.flux[j] - end.flux[i] * end.value[j];
    symmetric(squares.len(), |i, j| {
        if i == j {
            squares[i].max(0.0)
        } else {
            (wronskian(high, i, j) - wronskian(low, i, j)) / (eigenvalue(i) - eigenvalue(j))
        }
    })
}

/// ∫ u uᵀ over an interval so short that 16 Gauss–Legendre nodes are exact up to rounding: the
/// phase of uᵢ uⱼ, or its logarithm, changes by at most 8 (remainder: 4³² / 32! ≈ 10⁻¹⁶ of the
/// largest value times the length).
///
/// Here, the difference between two ends would lose its leading digits. The sum of squares keeps
/// them and is positive semidefinite.
pub(super) fn gram_of_short<T: Scalar>(
    width: usize,
    low: f64,
    high: f64,
    mut evaluate: impl FnMut(f64, &mut [f64]),
) -> Matrix<T> {
    let (half, middle) = (0.5 * (high - low), 0.5 * (high + low));
    let mut sum = Matrix::<f64>::zeros(width, width);
    let mut u = vec![0.0; width];
    for (node, weight) in GAUSS_16.iter().flat_map(|&(x, w)| [(-x, w), (x, w)]) {
        evaluate(middle + half * node, &mut u);
        for i in 0..width {
            let scaled = weight * half * u[i];
            for (out, &value) in sum.row_mut(i)[..=i].iter_mut().zip(&u) {
                *out += scaled * value;
            }
        }
    }
    symmetric(width, |i, j| sum[(i, j)])
}

/// ∫ xᵖ f fᵀ for p = 0, 1, 2 of orthonormal functions with x fₙ = oₙ fₙ₊₁ + dₙ fₙ + oₙ₋₁ fₙ₋₁;
/// `None` for other p.
pub(super) fn jacobi_moments<T: Scalar>(
    width: usize,
    power: u32,
    d: impl Fn(usize) -> f64,
    o: impl Fn(usize) -> f64,
) -> Option<Matrix<T>> {
    let square = |x: f64| x * x;
    match power {
        0 => Some(Matrix::identity(width)),
        1 => Some(symmetric(width, |i, j| match i - j {
            0 => d(i),
            1 => o(j),
            _ => 0.0,
        })),
        // This is the square of the infinite matrix, so functions beyond the last one contribute.
        2 => Some(symmetric(width, |i, j| match i - j {
            0 => {
                let below = if i == 0 { 0.0 } else { square(o(i - 1)) };
                square(d(i)) + square(o(i)) + below
            }
            1 => o(j) * (d(j) + d(i)),
            2 => o(j) * o(j + 1),
            _ => 0.0,
        })),
        _ => None,
    }
}

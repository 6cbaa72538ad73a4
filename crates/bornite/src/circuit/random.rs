use rand::{Rng, RngExt};

use super::Weight;
use crate::linalg::{Complex64, Matrix, Scalar, row_orthonormalize};

/// How to draw the weights of a new circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Weights {
    /// Independent complex Gaussian entries of variance 1 / columns.
    #[default]
    Gaussian,
    /// Independent real Gaussian entries of variance 1 / columns.
    RealGaussian,
    /// Complex semi-unitary matrices, uniform with respect to the Haar measure.
    Haar,
    /// Real semi-orthogonal matrices, uniform with respect to the Haar measure.
    RealHaar,
}

impl Weights {
    /// Whether the weights are real.
    pub fn is_real(self) -> bool {
        matches!(self, Weights::RealGaussian | Weights::RealHaar)
    }

    /// Whether the weights are semi-unitary.
    pub fn is_semi_unitary(self) -> bool {
        matches!(self, Weights::Haar | Weights::RealHaar)
    }
}

/// Draws a weight. A Haar weight needs `rows ≤ cols`; with more rows, its columns are orthonormal
/// instead.
pub fn random_weight(rows: usize, cols: usize, weights: Weights, rng: &mut impl Rng) -> Weight {
    let scale = (cols.max(1) as f64).sqrt().recip();
    match weights {
        Weights::Gaussian => {
            let scale = scale * std::f64::consts::FRAC_1_SQRT_2;
            Weight::Complex(complex_gaussian(rows, cols, rng).scaled(scale))
        }
        Weights::RealGaussian => Weight::Real(real_gaussian(rows, cols, rng).scaled(scale)),
        Weights::Haar => Weight::Complex(haar(rows, cols, |r, c| complex_gaussian(r, c, rng))),
        Weights::RealHaar => Weight::Real(haar(rows, cols, |r, c| real_gaussian(r, c, rng))),
    }
}

fn real_gaussian(rows: usize, cols: usize, rng: &mut impl Rng) -> Matrix<f64> {
    Matrix::from_fn(rows, cols, |_, _| gaussian(rng).re)
}

fn complex_gaussian(rows: usize, cols: usize, rng: &mut impl Rng) -> Matrix<Complex64> {
    Matrix::from_fn(rows, cols, |_, _| gaussian(rng))
}

/// Two independent standard normal numbers, as one complex number, by the Box–Muller transform.
pub(crate) fn gaussian(rng: &mut impl Rng) -> Complex64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    let radius = (-2.0 * (1.0 - u).ln()).sqrt();
    Complex64::from_polar(radius, std::f64::consts::TAU * v)
}

/// A Haar-distributed matrix, as the polar factor of a Gaussian matrix V.
fn haar<T: Scalar>(
    rows: usize,
    cols: usize,
    mut draw: impl FnMut(usize, usize) -> Matrix<T>,
) -> Matrix<T> {
    let (short, long) = (rows.min(cols), rows.max(cols));
    if short == 0 {
        return Matrix::zeros(rows, cols);
    }
    let v = draw(short, long);
    // The unitary polar factor (V Vᴴ)^(−1/2) V is uniform, because the distribution of V is
    // invariant under rotations of its columns. The Q of V = L Q is not, because of the signs that
    // the factorization chooses.
    let f = row_orthonormalize(&v);
    let polar = polar_factor(&f.l).times(&f.q);
    if rows <= cols { polar } else { polar.adjoint() }
}

/// The unitary factor U of a square A = P U, with P positive definite.
fn polar_factor<T: Scalar>(a: &Matrix<T>) -> Matrix<T> {
    let gram = a.times_adjoint(a);
    let Some(eigen) = crate::linalg::eigh(&gram) else { return Matrix::identity(a.rows()) };
    let n = a.rows();
    let left = Matrix::from_fn(n, n, |i, j| {
        eigen.vectors[(i, j)].scale_by(eigen.values[j].max(f64::MIN_POSITIVE).sqrt().recip())
    });
    let u = left.times(&eigen.vectors.adjoint()).times(a);
    // One Newton step, U ← U (3 I − Uᴴ U) / 2, reduces the rounding error of the small eigenvalues.
    let correction = u.times_adjoint(&u).scaled(-0.5);
    let three_halves = Matrix::from_fn(n, n, |i, j| {
        correction[(i, j)] + if i == j { T::from_real(1.5) } else { T::ZERO }
    });
    three_halves.times(&u)
}

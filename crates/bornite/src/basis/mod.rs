//! Functions of one variable, for the input layers of a circuit.
//!
//! Which one should I use?
//!
//! | variable | basis |
//! |---|---|
//! | categories, counts with an upper bound | [`Basis::indicator`], or a [`Basis::table`] of smooth functions of the value |
//! | angles, times of day | [`Basis::fourier`] on a circle |
//! | a number within known bounds | [`Basis::legendre`]; [`Basis::bspline`] if the density has sharp features |
//! | a positive number | [`Basis::laguerre`] |
//! | any number | [`Basis::hermite`]; [`Basis::gaussian`] for clusters of different widths |
//! | a number on a grid, such as whole numbers or prices | [`Basis::steps`], with steps of whole grid cells |
//! | a number that often has one value, such as 0 | [`Basis::with_atoms`], over the functions of the rest |
//!
//! Indicator, Fourier, Legendre, Laguerre, Hermite and step functions are orthonormal: ∫ fᵢ fⱼ* dx = δᵢⱼ.
//! [`Basis::orthonormalized`] orthonormalizes the others. Integrals over parts of a domain are
//! closed forms or exact Gauss quadratures: for up to 64 functions, every entry is within 10⁻¹² of
//! the true value, and every matrix is exactly Hermitian.

mod atoms;
mod bspline;
mod error;
mod fourier;
mod gaussian;
mod hermite;
mod indicator;
mod laguerre;
mod legendre;
mod moment;
mod part;
pub(crate) mod quadrature;
mod scaled;
mod squared;
mod steps;
mod sturm;
mod table;
#[cfg(test)]
mod tests;
mod transformed;

use std::sync::Arc;

use num_complex::Complex64;

use crate::Domain;
use crate::linalg::{Matrix, Scalar};

pub use atoms::Atoms;
pub use bspline::BSpline;
pub use error::{
    BasisError, MAX_DEGREE, MAX_FUNCTIONS, MAX_MAGNITUDE, MAX_STEP_FUNCTIONS, MAX_STEPS,
    TRANSFORM_TOLERANCE,
};
pub use fourier::{Fourier, FourierForm};
pub use gaussian::Gaussian;
pub use hermite::Hermite;
pub use indicator::Indicator;
pub use laguerre::Laguerre;
pub use legendre::Legendre;
pub use part::Part;
pub use squared::Squared;
pub use steps::Steps;
pub use table::Table;
pub use transformed::Transformed;

/// K functions of one variable.
///
/// ```
/// use bornite::basis::{Basis, Part};
///
/// let basis = Basis::legendre(3, 0.0, 2.0)?;
/// let mut f = [0.0; 3];
/// basis.evaluate(1.0, &mut f);
/// // P₀ = 1, P₁ = 0 and P₂ = −1/2 in the middle, times √((2n + 1) / 2).
/// assert!((f[0] - 0.5f64.sqrt()).abs() < 1e-15);
/// assert!(f[1].abs() < 1e-15);
/// assert!((f[2] + 0.5 * 2.5f64.sqrt()).abs() < 1e-15);
///
/// // Every |fₙ|² is symmetric: half of its integral is over half of the domain.
/// let half = basis.gram_over::<f64>(&Part::Interval { low: 0.0, high: 1.0 });
/// assert!((0..3).all(|n| (half[(n, n)] - 0.5).abs() < 1e-14));
/// # Ok::<(), bornite::basis::BasisError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// The indicators of the values of a finite domain.
    Indicator(Indicator),
    /// Sines and cosines, or complex exponentials.
    Fourier(Fourier),
    /// Legendre polynomials on an interval.
    Legendre(Legendre),
    /// Laguerre functions on a half-line.
    Laguerre(Laguerre),
    /// Hermite functions on the real line.
    Hermite(Hermite),
    /// Arbitrary functions on a finite domain.
    Table(Table),
    /// Normal densities on the real line.
    Gaussian(Gaussian),
    /// B-splines on an interval.
    BSpline(BSpline),
    /// Orthonormal combinations of the functions of another basis.
    Transformed(Transformed),
    /// The products fᵢ fⱼ* of the functions of another basis, which are the inputs of a squared
    /// circuit.
    Squared(Squared),
    /// The indicators of atoms, and the functions of a continuous rest.
    Atoms(Atoms),
    /// Step functions on an interval.
    Steps(Steps),
}

/// Evaluates an expression for the basis of every family.
macro_rules! each {
    ($basis:expr, $b:ident => $body:expr) => {
        match $basis {
            Basis::Indicator($b) => $body,
            Basis::Fourier($b) => $body,
            Basis::Legendre($b) => $body,
            Basis::Laguerre($b) => $body,
            Basis::Hermite($b) => $body,
            Basis::Table($b) => $body,
            Basis::Gaussian($b) => $body,
            Basis::BSpline($b) => $body,
            Basis::Transformed($b) => $body,
            Basis::Squared($b) => $body,
            Basis::Atoms($b) => $body,
            Basis::Steps($b) => $body,
        }
    };
}

impl Basis {
    /// The indicators fₖ(x) = δₓₖ of the values 0 … v − 1. Without values, no valid domain accepts
    /// the basis.
    pub fn indicator(values: usize) -> Self {
        Basis::Indicator(Indicator::new(values))
    }

    /// The Fourier functions with period b − a, on the interval [a, b] or, if a = 0, on the circle
    /// with that period.
    ///
    /// # Errors
    /// There are no functions or too many, or the bounds are not finite and in order.
    pub fn fourier(
        functions: usize,
        a: f64,
        b: f64,
        form: FourierForm,
    ) -> Result<Self, BasisError> {
        Fourier::new(functions, a, b, form).map(Basis::Fourier)
    }

    /// The orthonormal Legendre polynomials on [a, b].
    ///
    /// # Errors
    /// There are no functions or too many, or the bounds are not finite and in order.
    pub fn legendre(functions: usize, a: f64, b: f64) -> Result<Self, BasisError> {
        Legendre::new(functions, a, b).map(Basis::Legendre)
    }

    /// The Laguerre functions e^(−t/2) Lₙ(t) / √scale with t = (x − a) / scale, on [a, ∞).
    ///
    /// # Errors
    /// There are no functions or too many, `a` is not finite, or the scale is not positive.
    pub fn laguerre(functions: usize, a: f64, scale: f64) -> Result<Self, BasisError> {
        Laguerre::new(functions, a, scale).map(Basis::Laguerre)
    }

    /// The Hermite functions hₙ(t) / √scale with t = (x − location) / scale, on ℝ, where h₀(t) =
    /// π^(−1/4) e^(−t²/2).
    ///
    /// # Errors
    /// There are no functions or too many, the location is not finite, or the scale is not
    /// positive.
    pub fn hermite(functions: usize, location: f64, scale: f64) -> Result<Self, BasisError> {
        Hermite::new(functions, location, scale).map(Basis::Hermite)
    }

    /// K functions on a finite domain with v values. Their values at x are column x of a K×v
    /// matrix.
    ///
    /// # Errors
    /// The matrix is empty or zero, it has too many rows, or an entry is not finite.
    pub fn table(values: Matrix<Complex64>) -> Result<Self, BasisError> {
        Table::new(values).map(Basis::Table)
    }

    /// The normal densities with these (location, scale) pairs.
    ///
    /// # Errors
    /// There are none or too many, one is not finite, a scale is not positive, or a scale is too
    /// small for its location.
    pub fn gaussian(components: Vec<(f64, f64)>) -> Result<Self, BasisError> {
        Gaussian::new(components).map(Basis::Gaussian)
    }

    /// The B-splines of one degree on nondecreasing knots: one function for every degree + 2
    /// consecutive knots.
    ///
    /// # Errors
    /// There are too few knots, they are not finite or not in order, or one is repeated so often
    /// that a function is zero.
    pub fn bspline(degree: usize, knots: Vec<f64>) -> Result<Self, BasisError> {
        BSpline::new(degree, knots).map(Basis::BSpline)
    }

    /// Orthonormal step functions on [a, b], which are constant between neighboring edges a = e₀ <
    /// e₁ < … < eₘ = b.
    ///
    /// They are polynomials in the middles of the steps, of degree 0, 1, …, orthogonal with the
    /// lengths of the steps as weights. A density made of them is constant on every step.
    ///
    /// ```
    /// use bornite::{Basis, basis::Part};
    ///
    /// let basis = Basis::steps(3, vec![0.0, 0.5, 0.75, 1.0, 2.0])?;
    /// assert!(basis.is_orthonormal());
    /// let at = |x: f64| basis.evaluate_batch::<f64>(&[x]);
    /// assert_eq!(at(0.5), at(0.7));
    /// # Ok::<(), bornite::basis::BasisError>(())
    /// ```
    ///
    /// # Errors
    /// There are no functions, more functions than steps, or too many of either, or the edges are
    /// not finite and in order.
    pub fn steps(functions: usize, edges: impl Into<Vec<f64>>) -> Result<Self, BasisError> {
        Steps::new(functions, edges.into()).map(Basis::Steps)
    }

    /// The functions T f of a base f, which must be orthonormal: T G Tᴴ = I up to 10⁻⁸.
    ///
    /// # Errors
    /// The shape does not match, the result is not orthonormal, or the base is finite (use a table)
    /// or already transformed.
    pub fn transformed(base: Basis, transform: Matrix<Complex64>) -> Result<Self, BasisError> {
        Transformed::new(base, transform).map(Basis::Transformed)
    }

    /// The K² products fᵢ fⱼ* of the functions of a base, which [`square`](crate::ops::square) uses
    /// as inputs.
    ///
    /// They can be integrated but not squared again: [`gram`](Basis::gram) and
    /// [`gram_over`](Basis::gram_over) panic.
    pub fn squared(base: impl Into<Arc<Basis>>) -> Self {
        Basis::Squared(Squared::new(base.into()))
    }

    /// Adds the indicators of the atoms `points`, in increasing order, to the functions of a
    /// continuous domain.
    ///
    /// ```
    /// use bornite::{Basis, Domain, basis::Part};
    ///
    /// let basis = Basis::laguerre(4, 0.0, 1.0)?.with_atoms(vec![0.0])?;
    /// assert!(basis.is_orthonormal());
    /// assert!(basis.accepts(&Domain::with_atoms(vec![0.0], Domain::HalfLine(0.0))));
    /// // As an atom, the point 0 has measure 1.
    /// let zero = basis.gram_over::<f64>(&Part::Interval { low: 0.0, high: f64::MIN_POSITIVE });
    /// assert_eq!(zero[(0, 0)], 1.0);
    /// # Ok::<(), bornite::basis::BasisError>(())
    /// ```
    ///
    /// # Errors
    /// There are no points or too many, they are not finite or not in order, or this basis is not
    /// continuous.
    pub fn with_atoms(self, points: impl Into<Vec<f64>>) -> Result<Self, BasisError> {
        Atoms::new(points.into(), self).map(Basis::Atoms)
    }

    /// The number K of functions.
    pub fn width(&self) -> usize {
        each!(self, b => b.width())
    }

    /// Whether this basis is defined on the domain. Bounds and numbers of values must be exactly
    /// equal.
    pub fn accepts(&self, domain: &Domain) -> bool {
        match self {
            Basis::Fourier(b) if b.interval() == *domain => true,
            Basis::Transformed(b) => b.base().accepts(domain),
            Basis::Squared(b) => b.base().accepts(domain),
            Basis::Atoms(b) => b.accepts(domain),
            Basis::Fourier(_)
            | Basis::Indicator(_)
            | Basis::Legendre(_)
            | Basis::Laguerre(_)
            | Basis::Hermite(_)
            | Basis::Table(_)
            | Basis::Gaussian(_)
            | Basis::BSpline(_)
            | Basis::Steps(_) => domain.is_valid() && self.natural_domain() == *domain,
        }
    }

    /// The natural domain of the functions.
    pub fn natural_domain(&self) -> Domain {
        match self {
            Basis::Indicator(b) => Domain::Finite(b.width()),
            Basis::Fourier(b) => b.natural_domain(),
            Basis::Legendre(b) => Domain::Interval(b.bounds().0, b.bounds().1),
            Basis::Laguerre(b) => Domain::HalfLine(b.start()),
            Basis::Hermite(_) | Basis::Gaussian(_) => Domain::Real,
            Basis::Table(b) => Domain::Finite(b.values().cols()),
            Basis::BSpline(b) => b.natural_domain(),
            Basis::Transformed(b) => b.base().natural_domain(),
            Basis::Squared(b) => b.base().natural_domain(),
            Basis::Atoms(b) => b.natural_domain(),
            Basis::Steps(b) => b.natural_domain(),
        }
    }

    /// Whether all functions are real.
    pub fn is_real(&self) -> bool {
        match self {
            Basis::Fourier(b) => b.is_real(),
            Basis::Table(b) => b.is_real(),
            Basis::Transformed(b) => b.is_real(),
            Basis::Squared(b) => b.base().is_real(),
            Basis::Atoms(b) => b.rest().is_real(),
            Basis::Indicator(_)
            | Basis::Legendre(_)
            | Basis::Laguerre(_)
            | Basis::Hermite(_)
            | Basis::Gaussian(_)
            | Basis::BSpline(_)
            | Basis::Steps(_) => true,
        }
    }

    /// Whether ∫ fᵢ fⱼ* = δᵢⱼ. This depends on the family; for a table, it holds up to 10⁻¹².
    pub fn is_orthonormal(&self) -> bool {
        match self {
            Basis::Table(b) => b.is_orthonormal(),
            Basis::Atoms(b) => b.rest().is_orthonormal(),
            Basis::Gaussian(_) | Basis::BSpline(_) | Basis::Squared(_) => false,
            Basis::Indicator(_)
            | Basis::Fourier(_)
            | Basis::Legendre(_)
            | Basis::Laguerre(_)
            | Basis::Hermite(_)
            | Basis::Transformed(_)
            | Basis::Steps(_) => true,
        }
    }

    /// How fast each function varies: n (n + 1) for the Legendre polynomial or step function of
    /// degree n, the square of the frequency for Fourier functions, n for the nth Laguerre or Hermite function, and 0
    /// for all others.
    pub(crate) fn roughness(&self) -> Vec<f64> {
        let by = |f: fn(f64) -> f64| (0..self.width()).map(|n| f(n as f64)).collect();
        match self {
            Basis::Legendre(_) | Basis::Steps(_) => by(|n| n * (n + 1.0)),
            Basis::Fourier(_) => by(|n| (0.5 * n).ceil().powi(2)),
            Basis::Laguerre(_) | Basis::Hermite(_) => by(|n| n),
            Basis::Atoms(b) => {
                let atoms = std::iter::repeat_n(0.0, b.points().len());
                atoms.chain(b.rest().roughness()).collect()
            }
            Basis::Indicator(_)
            | Basis::Table(_)
            | Basis::Gaussian(_)
            | Basis::BSpline(_)
            | Basis::Transformed(_)
            | Basis::Squared(_) => vec![0.0; self.width()],
        }
    }

    /// Writes f(x) to `out`. With `T = f64`, the imaginary parts of a complex basis are dropped.
    ///
    /// Requires: x is in the domain. Other numbers do not cause a panic.
    ///
    /// # Panics
    /// If the length of `out` is not K.
    pub fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        assert_eq!(out.len(), self.width(), "one place per function");
        each!(self, b => b.evaluate(x, out));
    }

    /// f(x) for many x, one per row. Each row has the same bits as the result of
    /// [`Basis::evaluate`].
    pub fn evaluate_batch<T: Scalar>(&self, xs: &[f64]) -> Matrix<T> {
        let mut out = Matrix::zeros(xs.len(), self.width());
        for (n, &x) in xs.iter().enumerate() {
            self.evaluate(x, out.row_mut(n));
        }
        out
    }

    /// ∫ f fᴴ over the domain, with entry (i, j) = ∫ fᵢ fⱼ*; the identity if the basis is
    /// orthonormal.
    pub fn gram<T: Scalar>(&self) -> Matrix<T> {
        match self {
            Basis::Table(b) => b.gram(),
            Basis::Gaussian(b) => b.gram(),
            Basis::BSpline(b) => b.gram(),
            Basis::Squared(b) => b.gram_over(&Part::Values(Vec::new())),
            Basis::Atoms(b) => b.gram(),
            Basis::Indicator(_)
            | Basis::Fourier(_)
            | Basis::Legendre(_)
            | Basis::Laguerre(_)
            | Basis::Hermite(_)
            | Basis::Transformed(_)
            | Basis::Steps(_) => Matrix::identity(self.width()),
        }
    }

    /// ∫ f fᴴ over a part of the domain. The part is clipped to the domain.
    ///
    /// Cost: K²; for [`Steps`], K² per step; for [`Transformed`] Gaussians, B-splines and steps, K²
    /// per node of a quadrature.
    pub fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        if part.covers(&self.natural_domain()) {
            return self.gram();
        }
        each!(self, b => b.gram_over(part))
    }

    /// The diagonal of ∫ f fᴴ over a part, if that matrix is diagonal for every part: only for
    /// [`Indicator`].
    pub fn gram_diagonal_over(&self, part: &Part) -> Option<Vec<f64>> {
        match self {
            Basis::Indicator(b) => Some(b.diagonal_over(part)),
            Basis::Fourier(_)
            | Basis::Legendre(_)
            | Basis::Laguerre(_)
            | Basis::Hermite(_)
            | Basis::Table(_)
            | Basis::Gaussian(_)
            | Basis::BSpline(_)
            | Basis::Transformed(_)
            | Basis::Squared(_)
            | Basis::Atoms(_)
            | Basis::Steps(_) => None,
        }
    }

    /// W ∫ f fᴴ over a part of the domain.
    pub(crate) fn times_gram_over<T: Scalar>(&self, w: &Matrix<T>, part: &Part) -> Matrix<T> {
        match self.gram_diagonal_over(part) {
            Some(diagonal) => {
                Matrix::from_fn(w.rows(), w.cols(), |i, j| w[(i, j)].scale_by(diagonal[j]))
            }
            None => w.times(&self.gram_over(part)),
        }
    }

    /// ∫ ℓ ℓᴴ over a part of the domain, of ℓ = W f, or ℓ = f if there is no weight.
    pub(crate) fn weighted_gram_over<T: Scalar>(
        &self,
        weight: Option<&Matrix<T>>,
        part: &Part,
    ) -> Matrix<T> {
        match weight {
            Some(w) => self.times_gram_over(w, part).times_adjoint(w).hermitian_part(),
            None => self.gram_over(part),
        }
    }

    /// ∫ xᵖ f fᴴ over the domain for p = 0, 1, 2; `None` for higher p, and for more than
    /// [`MAX_FUNCTIONS`] indicators.
    pub fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        each!(self, b => b.moments(power))
    }

    /// Computes (f′, L) with f = L f′ and f′ orthonormal.
    ///
    /// f′ may have fewer functions than f. An orthonormal basis is returned unchanged, with the
    /// identity. For many indicators, that matrix is very large, so check [`Basis::is_orthonormal`]
    /// first. Tables are factored directly, all other families through weighted values at
    /// quadrature nodes. Therefore, f = L f′ and the orthonormality hold up to κ ε, where κ is the
    /// *square root* of the condition number of the Gram matrix. Functions within 10⁻⁷ of the span
    /// of the others are dropped.
    pub fn orthonormalized(&self) -> (Basis, Matrix<Complex64>) {
        if self.is_orthonormal() {
            return (self.clone(), Matrix::identity(self.width()));
        }
        if let Basis::Table(table) = self {
            let (table, l) = table.orthonormalized();
            return (Basis::Table(table), l);
        }
        if let Basis::Atoms(atoms) = self {
            let (atoms, l) = atoms.orthonormalized();
            return (Basis::Atoms(atoms), l);
        }
        let (low, high) = self.natural_domain().bounds();
        let nodes = self.nodes_over(low, high).unwrap_or_default();
        let (transformed, l) = transformed::orthonormalize(self, &nodes);
        (Basis::Transformed(transformed), l)
    }

    /// Nodes and weights that integrate products of two functions times x², for step functions and
    /// the families that are not orthonormal.
    fn nodes_over(&self, low: f64, high: f64) -> Option<Vec<(f64, f64)>> {
        match self {
            Basis::Gaussian(b) => Some(b.nodes_over(low, high)),
            Basis::BSpline(b) => Some(b.nodes_over(low, high)),
            Basis::Steps(b) => Some(b.nodes_over(low, high)),
            Basis::Indicator(_)
            | Basis::Fourier(_)
            | Basis::Legendre(_)
            | Basis::Laguerre(_)
            | Basis::Hermite(_)
            | Basis::Table(_)
            | Basis::Transformed(_)
            | Basis::Squared(_)
            | Basis::Atoms(_) => None,
        }
    }

    /// The step functions, if this basis is one of them.
    pub(crate) fn as_steps(&self) -> Option<&Steps> {
        match self {
            Basis::Steps(b) => Some(b),
            Basis::Indicator(_)
            | Basis::Fourier(_)
            | Basis::Legendre(_)
            | Basis::Laguerre(_)
            | Basis::Hermite(_)
            | Basis::Table(_)
            | Basis::Gaussian(_)
            | Basis::BSpline(_)
            | Basis::Transformed(_)
            | Basis::Squared(_)
            | Basis::Atoms(_) => None,
        }
    }

    /// The functions of the continuous rest, without those of atoms.
    pub(crate) fn rest(&self) -> &Basis {
        if let Basis::Atoms(b) = self { b.rest() } else { self }
    }

    /// The functions that this basis is made of: without those of atoms, and before a transform.
    #[cfg(feature = "tables")]
    pub(crate) fn plain(&self) -> &Basis {
        let rest = self.rest();
        if let Basis::Transformed(b) = rest { b.base() } else { rest }
    }

    /// The atoms, in increasing order.
    pub(crate) fn atoms(&self) -> &[f64] {
        if let Basis::Atoms(b) = self { b.points() } else { &[] }
    }

    fn family(&self) -> &'static str {
        match self {
            Basis::Indicator(_) => "indicator",
            Basis::Fourier(_) => "Fourier",
            Basis::Legendre(_) => "Legendre",
            Basis::Laguerre(_) => "Laguerre",
            Basis::Hermite(_) => "Hermite",
            Basis::Table(_) => "table",
            Basis::Gaussian(_) => "Gaussian",
            Basis::BSpline(_) => "B-spline",
            Basis::Transformed(_) => "transformed",
            Basis::Squared(_) => "squared",
            Basis::Atoms(_) => "atoms",
            Basis::Steps(_) => "step",
        }
    }
}

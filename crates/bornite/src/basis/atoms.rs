use std::sync::Arc;

use super::Basis;
use super::error::{BasisError, MAX_MAGNITUDE, check_functions};
use super::part::Part;
use crate::domain::Domain;
use crate::linalg::{Complex64, Matrix, Scalar};

/// The indicators of some points, the atoms, followed by the functions of a continuous rest.
///
/// The measure of a set is the number of its atoms plus the length of the rest. With respect to it,
/// the indicators are orthonormal, and orthogonal to all functions of the rest, which are 0 at the
/// atoms. Every Gram matrix consists of a diagonal of zeros and ones and the block of the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Atoms {
    /// The natural domain.
    domain: Domain,
    rest: Arc<Basis>,
}

impl Atoms {
    pub(super) fn new(points: Vec<f64>, rest: Basis) -> Result<Self, BasisError> {
        if let Some(n) = points.iter().position(|x| x.is_nan() || x.abs() > MAX_MAGNITUDE) {
            return Err(BasisError::Location { value: points[n] });
        }
        if let Some(n) = points.windows(2).position(|w| w[0] >= w[1]) {
            let (index, left, right) = (n + 1, points[n], points[n + 1]);
            return Err(BasisError::AtomsDecrease { index, left, right });
        }
        check_functions("atoms", points.len())?;
        match rest {
            Basis::Indicator(_) | Basis::Table(_) | Basis::Atoms(_) | Basis::Squared(_) => {
                Err(BasisError::AtomsRest { family: rest.family() })
            }
            Basis::Fourier(_)
            | Basis::Legendre(_)
            | Basis::Laguerre(_)
            | Basis::Hermite(_)
            | Basis::Gaussian(_)
            | Basis::BSpline(_)
            | Basis::Transformed(_)
            | Basis::Steps(_) => {
                let domain = Domain::with_atoms(points, rest.natural_domain());
                Ok(Self { domain, rest: Arc::new(rest) })
            }
        }
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.points().len() + self.rest.width()
    }

    /// The atoms, in increasing order.
    pub fn points(&self) -> &[f64] {
        self.domain.atoms()
    }

    /// The functions of the rest.
    pub fn rest(&self) -> &Arc<Basis> {
        &self.rest
    }

    pub(super) fn natural_domain(&self) -> Domain {
        self.domain.clone()
    }

    pub(super) fn accepts(&self, domain: &Domain) -> bool {
        domain.is_valid() && domain.atoms() == self.points() && self.rest.accepts(domain.rest())
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        let (atoms, rest) = out.split_at_mut(self.points().len());
        atoms.fill(T::ZERO);
        match self.domain.atom(x) {
            Some(n) => {
                atoms[n] = T::ONE;
                rest.fill(T::ZERO);
            }
            None => self.rest.evaluate(x, rest),
        }
    }

    /// Whether each atom is in a part.
    pub(super) fn within<'a>(&'a self, part: &'a Part) -> impl Iterator<Item = bool> + 'a {
        self.points().iter().enumerate().map(|(n, &x)| match part {
            Part::Values(values) => values.binary_search(&n).is_ok(),
            Part::Interval { low, high } => (*low..*high).contains(&x),
        })
    }

    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        let one = |inside| if inside { 1.0 } else { 0.0 };
        self.blocks(self.within(part).map(one), &self.rest.gram_over(part))
    }

    pub(super) fn gram<T: Scalar>(&self) -> Matrix<T> {
        self.blocks(self.points().iter().map(|_| 1.0), &self.rest.gram())
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        let rest = self.rest.moments(power)?;
        Some(self.blocks(self.points().iter().map(|x| x.powi(power.cast_signed())), &rest))
    }

    pub(super) fn moments_about<T: Scalar>(
        &self,
        center: f64,
        power: u32,
        part: &Part,
    ) -> Option<Matrix<T>> {
        let rest = self.rest.moments_about(center, power, part)?;
        let at = |(&x, inside): (&f64, bool)| {
            if inside { (x - center).powi(power.cast_signed()) } else { 0.0 }
        };
        Some(self.blocks(self.points().iter().zip(self.within(part)).map(at), &rest))
    }

    /// (f′, L) with f = L f′. Only the rest changes.
    pub(super) fn orthonormalized(&self) -> (Self, Matrix<Complex64>) {
        let (rest, l) = self.rest.orthonormalized();
        let l = self.blocks(self.points().iter().map(|_| 1.0), &l);
        (Self { domain: self.domain.clone(), rest: Arc::new(rest) }, l)
    }

    /// A matrix with a diagonal for the atoms and a block for the rest.
    fn blocks<T: Scalar>(&self, atoms: impl Iterator<Item = f64>, rest: &Matrix<T>) -> Matrix<T> {
        let m = self.points().len();
        let mut out = Matrix::zeros(m + rest.rows(), m + rest.cols());
        for (n, x) in atoms.enumerate() {
            out[(n, n)] = T::ONE.scale_by(x);
        }
        for i in 0..rest.rows() {
            out.row_mut(m + i)[m..].copy_from_slice(rest.row(i));
        }
        out
    }
}

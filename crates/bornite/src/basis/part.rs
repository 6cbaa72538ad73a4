use crate::Domain;
use crate::linalg::{Matrix, Scalar};

/// A part of a domain that evidence restricts a variable to.
///
/// ```
/// use bornite::basis::{Basis, Part};
///
/// // A quarter of the period contains a quarter of |f₀|² = 1 / period.
/// let basis = Basis::fourier(3, 0.0, 8.0, bornite::basis::FourierForm::Real)?;
/// let part = Part::Interval { low: f64::NEG_INFINITY, high: 2.0 };
/// assert_eq!(basis.gram_over::<f64>(&part)[(0, 0)], 0.25);
/// # Ok::<(), bornite::basis::BasisError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Values of a finite domain, or indices of atoms, sorted and without duplicates.
    Values(Vec<usize>),
    /// The numbers x of the domain with `low` ≤ x < `high`. The bounds may be infinite. The part is
    /// empty if `low ≥ high` or a bound is NaN.
    ///
    /// On a continuous domain, the ends do not matter, but atoms do. To exclude the lower end,
    /// start at the next `f64` after it; to include the upper end, end there.
    Interval {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
}

impl Part {
    /// The bounds of this part within a continuous domain, or `None` if it has no length there.
    pub(crate) fn clip(&self, domain: &Domain) -> Option<(f64, f64)> {
        let Part::Interval { low, high } = *self else { return None };
        let (first, last) = domain.bounds();
        // Not `f64::max`, which would drop a NaN.
        let low = if low < first { first } else { low };
        let high = if high > last { last } else { high };
        (low < high).then_some((low, high))
    }

    /// Whether the part contains every value of this continuous domain.
    pub(crate) fn covers(&self, domain: &Domain) -> bool {
        let Part::Interval { low, high } = self else { return false };
        domain.num_values().is_none()
            && self.clip(domain) == Some(domain.bounds())
            && domain.atoms().iter().all(|x| (*low..*high).contains(x))
    }

    /// Whether the part contains every value of this continuous domain, except possibly atoms.
    pub(crate) fn covers_rest(&self, domain: &Domain) -> bool {
        let rest = domain.rest();
        rest.num_values().is_none() && self.clip(rest) == Some(rest.bounds())
    }

    /// The values 0 … v − 1 of a finite domain that are in this part.
    pub(crate) fn values(&self, num_values: usize) -> Vec<usize> {
        match self {
            Part::Values(values) => values.iter().copied().filter(|&x| x < num_values).collect(),
            Part::Interval { low, high } => {
                (0..num_values).filter(|&x| (*low..*high).contains(&(x as f64))).collect()
            }
        }
    }

    /// `integral(low, high)` over the clipped bounds; zero for an empty part.
    pub(super) fn integrate<T: Scalar>(
        &self,
        domain: &Domain,
        width: usize,
        integral: impl FnOnce(f64, f64) -> Matrix<T>,
    ) -> Matrix<T> {
        match self.clip(domain) {
            Some((low, high)) => integral(low, high),
            None => Matrix::zeros(width, width),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_keeps_to_the_domain() {
        let domain = Domain::Interval(-1.0, 2.0);
        let clip = |low, high| Part::Interval { low, high }.clip(&domain);
        assert_eq!(clip(-3.0, 0.5), Some((-1.0, 0.5)));
        assert_eq!(clip(0.0, f64::INFINITY), Some((0.0, 2.0)));
        assert_eq!(clip(1.0, 1.0), None);
        assert_eq!(clip(1.0, 0.0), None);
        assert_eq!(clip(3.0, 4.0), None);
        assert_eq!(clip(f64::NAN, 1.0), None);
        assert_eq!(clip(0.0, f64::NAN), None);
        assert!(Part::Interval { low: -1.0, high: 9.0 }.covers(&domain));
        assert!(!Part::Interval { low: -0.9, high: 9.0 }.covers(&domain));
        let with_atom = Domain::with_atoms(vec![3.0], domain.clone());
        let rest = Part::Interval { low: -1.0, high: 3.0 };
        assert!(rest.covers_rest(&with_atom) && !rest.covers(&with_atom));
        assert!(!Part::Interval { low: -1.0, high: 1.5 }.covers_rest(&with_atom));
        assert!(!Part::Values(vec![0]).covers_rest(&with_atom));
        assert_eq!(Part::Values(vec![1, 4, 9]).values(5), [1, 4]);
        assert_eq!(Part::Interval { low: 0.5, high: 3.0 }.values(9), [1, 2]);
        assert_eq!(Part::Interval { low: 1.0, high: f64::INFINITY }.values(4), [1, 2, 3]);
        assert!(Part::Interval { low: 1.0, high: 1.0 }.values(4).is_empty());
    }
}

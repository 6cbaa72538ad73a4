//! Moments over a part of a domain.

use super::Basis;
use super::part::Part;
use super::quadrature::GAUSS_16;
use crate::linalg::{Matrix, Scalar, largest};

/// A quadrature has converged when it reproduces the known ∫ f fᴴ to this accuracy.
const CONVERGED: f64 = 1e-13;

/// The maximum number of panels.
const MAX_PANELS: usize = 1 << 14;

impl Basis {
    /// ∫ (x − center)ᵖ f fᴴ over a part of the domain for p = 0, 1, 2. The part is clipped to the
    /// domain. `None` for higher p, and for more than [`MAX_FUNCTIONS`](super::MAX_FUNCTIONS)
    /// indicators.
    ///
    /// Nothing cancels if the functions are far from 0 and near the center. Without a closed form,
    /// the panels of a Gauss rule are halved until the rule reproduces the known ∫ f fᴴ of
    /// [`Basis::gram_over`] up to 10⁻¹³.
    ///
    /// Cost: K²; about K³ without a closed form.
    ///
    /// ```
    /// use bornite::basis::{Basis, Part};
    ///
    /// // |f₀|² = 1/2 on [0, 2]: ∫ x / 2 from 0 to 1 is 1/4.
    /// let basis = Basis::legendre(1, 0.0, 2.0)?;
    /// let part = Part::Interval { low: 0.0, high: 1.0 };
    /// let moments = basis.moments_about::<f64>(0.0, 1, &part).ok_or("no such power")?;
    /// assert!((moments[(0, 0)] - 0.25).abs() < 1e-15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn moments_about<T: Scalar>(
        &self,
        center: f64,
        power: u32,
        part: &Part,
    ) -> Option<Matrix<T>> {
        let domain = self.natural_domain();
        if power > 2 || (center == 0.0 && part.covers(&domain)) {
            return self.moments(power);
        }
        if power == 0 {
            return Some(self.gram_over(part));
        }
        if let Basis::Atoms(b) = self {
            return b.moments_about(center, power, part);
        }
        let weight = |x: f64| (x - center).powi(power.cast_signed());
        if let Some(v) = domain.num_values() {
            if v > super::MAX_FUNCTIONS && matches!(self, Basis::Indicator(_)) {
                return None;
            }
            let nodes = part.values(v).into_iter().map(|x| (x as f64, 1.0)).collect::<Vec<_>>();
            return Some(self.sum_over(&nodes, weight));
        }
        if part.covers(&domain)
            && let Some(shifted) = self.shifted(-center)
        {
            return shifted.moments(power);
        }
        let Some((low, high)) = part.clip(&domain) else {
            return Some(Matrix::zeros(self.width(), self.width()));
        };
        match self {
            Basis::Transformed(b) => match b.weighted(low, high, weight) {
                Some(moments) => Some(moments),
                None => Some(b.conjugated(&b.base().moments_about(center, power, part)?)),
            },
            Basis::Squared(_) => None,
            Basis::Indicator(_)
            | Basis::Fourier(_)
            | Basis::Legendre(_)
            | Basis::Laguerre(_)
            | Basis::Hermite(_)
            | Basis::Table(_)
            | Basis::Gaussian(_)
            | Basis::BSpline(_)
            | Basis::Atoms(_)
            | Basis::Steps(_) => match self.nodes_over(low, high) {
                Some(nodes) => Some(self.sum_over(&nodes, weight)),
                None => Some(self.integrate_smooth(low, high, weight)),
            },
        }
    }

    /// The functions f(x − shift), for families with a closed form of their moments.
    fn shifted(&self, shift: f64) -> Option<Basis> {
        match self {
            Basis::Hermite(b) => Basis::hermite(b.width(), b.location() + shift, b.scale()),
            Basis::Laguerre(b) => Basis::laguerre(b.width(), b.start() + shift, b.scale()),
            Basis::Legendre(b) => {
                let (low, high) = b.bounds();
                Basis::legendre(b.width(), low + shift, high + shift)
            }
            Basis::Fourier(b) => {
                let (low, high) = b.bounds();
                Basis::fourier(b.width(), low + shift, high + shift, b.form())
            }
            Basis::Indicator(_)
            | Basis::Table(_)
            | Basis::Gaussian(_)
            | Basis::BSpline(_)
            | Basis::Transformed(_)
            | Basis::Squared(_)
            | Basis::Atoms(_)
            | Basis::Steps(_) => return None,
        }
        .ok()
    }

    /// Σ w(x) f fᴴ over nodes x, each of which also has a quadrature weight.
    fn sum_over<T: Scalar>(&self, nodes: &[(f64, f64)], weight: impl Fn(f64) -> f64) -> Matrix<T> {
        let k = self.width();
        if nodes.is_empty() {
            return Matrix::zeros(k, k);
        }
        let xs: Vec<f64> = nodes.iter().map(|n| n.0).collect();
        let plain = self.evaluate_batch::<T>(&xs).transpose();
        let weighted = Matrix::from_fn(k, nodes.len(), |i, n| {
            plain[(i, n)].scale_by(nodes[n].1 * weight(nodes[n].0))
        });
        weighted.times_adjoint(&plain).hermitian_part()
    }

    /// ∫ w f fᴴ of smooth functions, by a Gauss rule on more and more panels.
    fn integrate_smooth<T: Scalar>(
        &self,
        low: f64,
        high: f64,
        weight: impl Fn(f64) -> f64,
    ) -> Matrix<T> {
        let truth = self.gram_over::<T>(&Part::Interval { low, high });
        let (low, high) = self.effective(low, high, &truth);
        let mut panels = self.width().div_ceil(8);
        loop {
            let nodes = composite(low, high, panels);
            let gram = self.sum_over::<T>(&nodes, |_| 1.0);
            let pairs = gram.data().iter().zip(truth.data());
            let distance = largest(pairs.map(|(&a, &b)| (a - b).max_part()));
            if distance <= CONVERGED || panels >= MAX_PANELS {
                return self.sum_over(&nodes, weight);
            }
            panels *= 2;
        }
    }

    /// Replaces infinite bounds by finite ones beyond which ∫ f fᴴ vanishes.
    fn effective<T: Scalar>(&self, low: f64, high: f64, truth: &Matrix<T>) -> (f64, f64) {
        let k = self.width();
        let diagonal = |m: &Matrix<T>, i: usize| m[(i, i)].to_complex().re;
        let (Some(first), Some(second)) = (self.moments::<T>(1), self.moments::<T>(2)) else {
            return (low, high);
        };
        let center = (0..k).map(|i| diagonal(&first, i)).sum::<f64>() / k as f64;
        let square =
            |i| (diagonal(&second, i) - center * (2.0 * diagonal(&first, i) - center)).abs();
        let spread = (0..k).map(square).fold(0.0, f64::max).sqrt();
        let mut reach = 4.0 * spread;
        loop {
            let near = if low.is_finite() { low } else { center.min(high) - reach };
            let far = if high.is_finite() { high } else { center.max(low) + reach };
            let inside = self.gram_over::<T>(&Part::Interval { low: near, high: far });
            let missing =
                (0..k).map(|i| diagonal(truth, i) - diagonal(&inside, i)).fold(0.0, f64::max);
            if missing <= f64::EPSILON || reach > 1e3 * spread || spread == 0.0 {
                return (near, far);
            }
            reach *= 1.5;
        }
    }
}

/// The nodes and weights of the rule with 16 nodes on each of n panels.
fn composite(low: f64, high: f64, panels: usize) -> Vec<(f64, f64)> {
    let step = (high - low) / panels as f64;
    let mut nodes = Vec::with_capacity(16 * panels);
    for p in 0..panels {
        let (middle, half) = (low + (p as f64 + 0.5) * step, 0.5 * step);
        for (x, w) in GAUSS_16 {
            nodes.push((middle - half * x, half * w));
            nodes.push((middle + half * x, half * w));
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::super::FourierForm;
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        let bases = [
            Basis::hermite(6, 3.0, 0.5).unwrap(),
            Basis::laguerre(5, -1.0, 2.0).unwrap(),
            Basis::legendre(7, -2.0, 5.0).unwrap(),
            Basis::fourier(5, 0.0, 7.0, FourierForm::Real).unwrap(),
            Basis::gaussian(vec![(0.0, 1.0), (2.0, 0.5)]).unwrap(),
            Basis::gaussian(vec![(0.0, 1.0), (2.0, 0.5)]).unwrap().orthonormalized().0,
            Basis::bspline(2, vec![0.0, 0.0, 0.0, 1.0, 2.5, 4.0, 4.0, 4.0]).unwrap(),
        ];
        for basis in bases {
            for power in 0..3 {
                let whole = basis.moments::<f64>(power).unwrap();
                let cut = [f64::NEG_INFINITY, 1.3, 2.9, f64::INFINITY];
                let mut sum = Matrix::<f64>::zeros(basis.width(), basis.width());
                for ends in cut.windows(2) {
                    let part = Part::Interval { low: ends[0], high: ends[1] };
                    let piece = basis.moments_about::<f64>(0.0, power, &part).unwrap();
                    sum =
                        Matrix::from_fn(sum.rows(), sum.cols(), |i, j| sum[(i, j)] + piece[(i, j)]);
                }
                let scale = whole.max_part();
                for (a, b) in sum.data().iter().zip(whole.data()) {
                    assert!((a - b).abs() < 1e-12 * scale.max(1.0), "{basis:?} {power}: {a} {b}");
                }
            }
        }
    }

    #[test]
    fn a_center_is_the_same_as_shifted_powers() {
        let whole = Part::Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
        let bases = [
            Basis::hermite(6, 3.0, 0.5).unwrap(),
            Basis::laguerre(5, -1.0, 2.0).unwrap(),
            Basis::legendre(7, -2.0, 5.0).unwrap(),
            Basis::fourier(5, 0.0, 7.0, FourierForm::Real).unwrap(),
            Basis::gaussian(vec![(0.0, 1.0), (2.0, 0.5)]).unwrap().orthonormalized().0,
            Basis::bspline(2, vec![0.0, 0.0, 0.0, 1.0, 2.5, 4.0, 4.0, 4.0]).unwrap(),
        ];
        let c = 1.75;
        for basis in bases {
            for part in [&whole, &Part::Interval { low: 0.5, high: 2.0 }] {
                let about = |c, p| basis.moments_about::<f64>(c, p, part).unwrap();
                let (g, x, xx) = (about(0.0, 0), about(0.0, 1), about(0.0, 2));
                let (first, second) = (about(c, 1), about(c, 2));
                for n in 0..g.data().len() {
                    let (g, x, xx) = (g.data()[n], x.data()[n], xx.data()[n]);
                    assert!((first.data()[n] - (x - c * g)).abs() < 1e-11, "{basis:?}");
                    let expected = xx - 2.0 * c * x + c * c * g;
                    assert!((second.data()[n] - expected).abs() < 1e-10, "{basis:?}");
                }
            }
        }
    }

    #[test]
    fn values_of_a_finite_domain_are_summed() {
        let part = Part::Values(vec![1, 3]);
        let moments = Basis::indicator(4).moments_about::<f64>(0.0, 2, &part).unwrap();
        let diagonal: Vec<f64> = (0..4).map(|i| moments[(i, i)]).collect();
        assert_eq!(diagonal, [0.0, 1.0, 0.0, 9.0]);
        assert!(Basis::indicator(4).moments_about::<f64>(0.0, 3, &part).is_none());
    }
}

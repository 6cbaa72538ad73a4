use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use super::error::{BasisError, check_functions, check_location, check_scale};
use super::part::Part;
use super::quadrature::{GAUSS_16, gaussian_mass};
use super::sturm::symmetric;
use crate::Domain;
use crate::linalg::{Matrix, Scalar};

/// The distance, in units of σ, beyond which a quadrature ignores a density. It is below e^(−40) of
/// its peak there.
const REACH: f64 = 9.0;

/// The smallest σ that can be resolved at a location, relative to that location.
const RESOLUTION: f64 = 1e-12;

/// Normal densities N(x; μ, σ) on ℝ. They are not orthonormal.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    components: Vec<(f64, f64)>,
}

/// N(x; μᵢ, σᵢ) N(x; μⱼ, σⱼ) = `factor` · N(x; `location`, `scale`).
struct Product {
    factor: f64,
    location: f64,
    scale: f64,
}

impl Gaussian {
    pub(super) fn new(components: Vec<(f64, f64)>) -> Result<Self, BasisError> {
        check_functions("Gaussian", components.len())?;
        for (component, &(location, scale)) in components.iter().enumerate() {
            check_location(location)?;
            check_scale(scale)?;
            if scale < RESOLUTION * location.abs() {
                return Err(BasisError::Unresolved { component, location, scale });
            }
        }
        Ok(Self { components })
    }

    /// The number of functions.
    pub fn width(&self) -> usize {
        self.components.len()
    }

    /// The location μ and scale σ of every density.
    pub fn components(&self) -> &[(f64, f64)] {
        &self.components
    }

    pub(super) fn evaluate<T: Scalar>(&self, x: f64, out: &mut [T]) {
        for (value, &(location, scale)) in out.iter_mut().zip(&self.components) {
            *value = T::from_real(density(x, location, scale));
        }
    }

    fn product(&self, i: usize, j: usize) -> Product {
        let ((m1, s1), (m2, s2)) = (self.components[i], self.components[j]);
        let s = s1.hypot(s2);
        Product {
            factor: density(m1, m2, s),
            location: m1 + (m2 - m1) * (s1 / s).powi(2),
            scale: s1 * (s2 / s),
        }
    }

    pub(super) fn gram<T: Scalar>(&self) -> Matrix<T> {
        symmetric(self.width(), |i, j| self.product(i, j).factor)
    }

    pub(super) fn gram_over<T: Scalar>(&self, part: &Part) -> Matrix<T> {
        part.integrate(&Domain::Real, self.width(), |low, high| {
            symmetric(self.width(), |i, j| {
                let Product { factor, location, scale } = self.product(i, j);
                let unit = |x: f64| (x - location) / scale * FRAC_1_SQRT_2;
                factor * gaussian_mass(unit(low), unit(high))
            })
        })
    }

    pub(super) fn moments<T: Scalar>(&self, power: u32) -> Option<Matrix<T>> {
        let moment = |p: &Product| match power {
            0 => 1.0,
            1 => p.location,
            _ => p.location * p.location + p.scale * p.scale,
        };
        (power <= 2).then(|| {
            symmetric(self.width(), |i, j| {
                let product = self.product(i, j);
                product.factor * moment(&product)
            })
        })
    }

    /// Nodes and weights that integrate every fᵢ fⱼ x^p, p ≤ 2, from low to high, up to rounding.
    ///
    /// Panels are halved until each is at most 2σ long for every density that is not negligible in
    /// it. Then 16 nodes are exact.
    pub(super) fn nodes_over(&self, low: f64, high: f64) -> Vec<(f64, f64)> {
        let reach = |&(m, s): &(f64, f64)| (m - REACH * s, m + REACH * s);
        let first = self.components.iter().map(|c| reach(c).0).fold(f64::INFINITY, f64::min);
        let last = self.components.iter().map(|c| reach(c).1).fold(f64::NEG_INFINITY, f64::max);
        let mut nodes = Vec::new();
        let mut panels = vec![(low.max(first), high.min(last), self.components.clone())];
        while let Some((low, high, mut active)) = panels.pop() {
            active.retain(|c| reach(c).0 < high && reach(c).1 > low);
            let narrowest = active.iter().map(|c| c.1).fold(f64::INFINITY, f64::min);
            let (half, middle) = (0.5 * (high - low), 0.5 * low + 0.5 * high);
            if active.is_empty() || low >= high {
                continue;
            }
            if half > narrowest && low < middle && middle < high {
                panels.push((middle, high, active.clone()));
                panels.push((low, middle, active));
            } else {
                let pairs = GAUSS_16.iter().flat_map(|&(x, w)| [(-x, w), (x, w)]);
                nodes.extend(pairs.map(|(x, w)| (middle + half * x, half * w)));
            }
        }
        nodes
    }
}

fn density(x: f64, location: f64, scale: f64) -> f64 {
    let z = (x - location) / scale;
    (-0.5 * z * z).exp() / (scale * TAU.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_gram_match_hand_computed_numbers() {
        let basis = Gaussian::new(vec![(0.0, 3.0), (5.0, 4.0)]).unwrap();
        let mut out = [0.0; 2];
        basis.evaluate(0.0, &mut out);
        assert!((out[0] - 1.0 / (3.0 * TAU.sqrt())).abs() < 1e-16);
        // ∫ N(x; 0, 3) N(x; 5, 4) = N(0; 5, 5) = e^(−1/2) / (5 √(2π)).
        let expected = (-0.5f64).exp() / (5.0 * TAU.sqrt());
        assert!((basis.gram::<f64>()[(1, 0)] - expected).abs() < 1e-16);
    }

    #[test]
    fn nodes_follow_the_widths_of_the_densities() {
        let basis = Gaussian::new(vec![(0.0, 1.0), (40.0, 1e-6), (1e9, 1e9)]).unwrap();
        let nodes = basis.nodes_over(f64::NEG_INFINITY, f64::INFINITY);
        assert!(nodes.len() < 16 * 200, "{} nodes", nodes.len());
        for (i, &(m, s)) in basis.components().iter().enumerate() {
            let mass: f64 = nodes.iter().map(|&(x, w)| w * density(x, m, s)).sum();
            assert!((mass - 1.0).abs() < 1e-9, "component {i}: {mass}");
        }
    }
}

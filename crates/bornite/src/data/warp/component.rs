//! Mixtures of normal components.

use std::f64::consts::{LN_2, PI, SQRT_2};

use serde::{Deserialize, Serialize};

/// One normal component.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// Its weight.
    pub weight: f64,
    /// Its mean, on the scale of t.
    pub mean: f64,
    /// Its standard deviation, on the scale of t.
    pub sigma: f64,
}

impl Component {
    /// The mass below and above t.
    pub(super) fn shares(&self, t: f64) -> (f64, f64) {
        let z = (t - self.mean) / (self.sigma * SQRT_2);
        let smaller = 0.5 * libm::erfc(z.abs());
        let (small, large) = (self.weight * smaller, self.weight * (1.0 - smaller));
        if z < 0.0 { (small, large) } else { (large, small) }
    }

    /// The density at t.
    pub(super) fn density(&self, t: f64) -> f64 {
        let z = (t - self.mean) / self.sigma;
        self.weight / (self.sigma * (2.0 * PI).sqrt()) * (-0.5 * z * z).exp()
    }

    /// The log density at t.
    pub(super) fn log_density(&self, t: f64) -> f64 {
        let z = (t - self.mean) / self.sigma;
        (self.weight / self.sigma).ln() - 0.5 * (z * z + LN_2 + PI.ln())
    }
}

/// The mass of a mixture below and above t.
pub(super) fn shares(components: &[Component], t: f64) -> (f64, f64) {
    components.iter().map(|c| c.shares(t)).fold((0.0, 0.0), |s, c| (s.0 + c.0, s.1 + c.1))
}

/// The log density of a mixture at t.
pub(super) fn log_density(components: &[Component], t: f64) -> f64 {
    let largest = components.iter().map(|c| c.log_density(t)).fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY || largest.is_nan() {
        return largest;
    }
    largest + components.iter().map(|c| (c.log_density(t) - largest).exp()).sum::<f64>().ln()
}

/// A point, and the mass of the mixture below and above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knot {
    pub(super) t: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
}

/// Points half a σ apart for each component, over its non-negligible range.
pub(super) fn knots(components: &[Component]) -> Vec<Knot> {
    let of = |c: &Component| {
        let (mean, sigma) = (c.mean, c.sigma);
        (-16..=16).map(move |n| mean + 0.5 * sigma * f64::from(n))
    };
    let mut places: Vec<f64> = components.iter().flat_map(of).collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let knot = |t: f64| {
        let (lower, upper) = shares(components, t);
        Knot { t, lower, upper }
    };
    places.into_iter().map(knot).collect()
}

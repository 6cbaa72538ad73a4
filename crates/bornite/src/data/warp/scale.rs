//! Scales: what a number is before the mixture applies.

use std::f64::consts::LN_2;

use serde::{Deserialize, Serialize};

use super::Support;

/// The scale t(x) of the mixture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// t = x.
    Linear,
    /// t = asinh((x − center) / unit): linear within a unit of the center, logarithmic beyond it.
    Asinh {
        /// The center.
        center: f64,
        /// The unit.
        unit: f64,
    },
    /// t = ln(x − low), for a support that starts at `low`.
    Log {
        /// The lower bound.
        low: f64,
    },
    /// t = ln((x − low) / (high − x)), for a bounded support.
    Logit {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
}

impl Scale {
    /// t(x). Like everything in F, it uses `libm`: the codec needs the same bits on every machine.
    pub(super) fn forward(self, x: f64) -> f64 {
        match self {
            Scale::Linear => x,
            Scale::Asinh { center, unit } => {
                let z = (x - center) / unit;
                if z.is_finite() {
                    return libm::asinh(z);
                }
                // So far out, asinh z is ln 2z.
                (log_distance(x, center) - libm::log(unit) + LN_2).copysign(x - center)
            }
            Scale::Log { low } => log_distance(x, low),
            Scale::Logit { low, high } => log_distance(x, low) - log_distance(high, x),
        }
    }

    pub(super) fn inverse(self, t: f64) -> f64 {
        match self {
            Scale::Linear => t,
            Scale::Asinh { center, unit } => {
                let z = t.sinh();
                if z.is_finite() {
                    return center + unit * z;
                }
                // The product may be finite even if exp overflows.
                center + (t.abs() - LN_2 + unit.ln()).exp().copysign(t)
            }
            Scale::Log { low } => low + t.exp(),
            Scale::Logit { low, high } if t < 0.0 => {
                let e = t.exp();
                low + (high - low) * (e / (1.0 + e))
            }
            Scale::Logit { low, high } => {
                let e = (-t).exp();
                high - (high - low) * (e / (1.0 + e))
            }
        }
    }

    /// ln t′(x).
    pub(super) fn log_slope(self, x: f64) -> f64 {
        match self {
            Scale::Linear => 0.0,
            Scale::Asinh { center, unit } => match (x - center).hypot(unit) {
                f64::INFINITY => -((0.5 * x - 0.5 * center).hypot(0.5 * unit).ln() + LN_2),
                distance => -distance.ln(),
            },
            Scale::Log { low } => -log_distance(x, low),
            Scale::Logit { low, high } => {
                log_distance(high, low) - log_distance(x, low) - log_distance(high, x)
            }
        }
    }

    /// t′(x) of a logarithmic scale, with the same bits on every machine; `None` for other scales.
    pub(super) fn slope(self, x: f64) -> Option<f64> {
        match self {
            Scale::Linear | Scale::Logit { .. } => None,
            Scale::Asinh { center, unit } => Some(libm::hypot(x - center, unit).recip()),
            Scale::Log { low } => Some((x - low).recip()),
        }
    }

    pub(super) fn is_valid(self, support: &Support) -> bool {
        match self {
            Scale::Linear => true,
            Scale::Asinh { center, unit } => center.is_finite() && unit.is_finite() && unit > 0.0,
            Scale::Log { low } => support.low == Some(low),
            Scale::Logit { low, high } => *support == Support { low: Some(low), high: Some(high) },
        }
    }
}

/// ln |x − y|, without overflow.
fn log_distance(x: f64, y: f64) -> f64 {
    let distance = (x - y).abs();
    if distance.is_finite() {
        return libm::log(distance);
    }
    libm::log((0.5 * x - 0.5 * y).abs()) + LN_2
}

/// A point of a scale, and the slope there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tangent {
    pub(super) x: f64,
    pub(super) t: f64,
    pub(super) slope: f64,
}

impl Tangent {
    /// The tangent of a scale at x; `None` if it is too steep or too flat to continue along.
    pub(super) fn new(scale: Scale, x: f64) -> Option<Self> {
        let (t, slope) = (scale.forward(x), scale.slope(x)?);
        let is_usable = x.is_finite() && t.is_finite() && slope.is_normal() && slope > 0.0;
        (is_usable && slope.recip().is_normal()).then_some(Self { x, t, slope })
    }

    pub(super) fn forward(&self, x: f64) -> f64 {
        self.t + self.slope * (x - self.x)
    }

    pub(super) fn inverse(&self, t: f64) -> f64 {
        self.x + (t - self.t) / self.slope
    }
}

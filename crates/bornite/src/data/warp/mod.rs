//! Transforms of real columns to (0, 1) that make their distribution nearly uniform.

mod component;
mod fit;
mod scale;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::names::shortest_number;

use component::{Knot, knots, log_density, shares};
use scale::Tangent;

pub use component::Component;
pub use fit::WarpOptions;
pub use scale::Scale;

/// The smallest value of u = F(x), and of 1 − u: 2⁻⁵³.
const EDGE: f64 = f64::EPSILON / 2.0;
/// The tail of a normal component underflows beyond this many σ.
const FARTHEST: f64 = 38.0;
/// If floats are at least this far apart, in σ of a component, F has visible steps.
const COARSE: f64 = 1e-10;
/// The maximum number of floats by which the inverse is then off.
const MAX_STEPS: usize = 64;
/// Distances beyond this would overflow when squared.
const TOO_COARSE: f64 = 1e150;
/// The tolerance for F(x) on both sides of the inverse of u.
const TOLERANCE: f64 = 1e-6;

/// A smooth, strictly increasing u = F(x) from the support of a column to (0, 1): the distribution function of a mixture of
/// normal components on a [scale](Scale), cut to the [support](Support).
///
/// A logarithmic scale may have a [range](Warp::range), outside which it continues along its tangents. The tails beyond
/// the rows are then those of normal distributions, whereas the tails of log-normal ones are so heavy that a value which
/// no row suggests can dominate the moments.
///
/// If x has the density F′, then u is uniform. In the Legendre basis on [0, 1], a product of such columns is the
/// constant function, so a circuit only learns what the marginals do not explain. The density in the units of the data
/// is p(u) · F′(x): log p(u) plus [`Warp::log_slope`].
///
/// ```
/// use bornite::data::{Support, Warp, WarpOptions};
///
/// let x: Vec<f64> = (0..100).map(|i| 20.0 + (f64::from(i) * 0.618).fract()).collect();
/// let warp = Warp::fit(&x, Support::REAL, &WarpOptions::default())?;
/// let u = warp.forward(20.25);
/// assert!((u - 0.25).abs() < 0.05);
/// assert!((warp.inverse(u) - 20.25).abs() < 1e-12);
/// # Ok::<(), bornite::data::WarpError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Warp {
    scale: Scale,
    support: Support,
    /// Where the scale holds, and its tangents at the ends of that range.
    range: Support,
    tangents: [Option<Tangent>; 2],
    components: Vec<Component>,
    /// The mass of the mixture below, above and within the support.
    below: f64,
    above: f64,
    log_mass: f64,
    /// Whether F has steps, because floats are far apart where it rises.
    is_coarse: bool,
    /// Sorted starting points for [`Warp::inverse`].
    knots: Vec<Knot>,
}

/// The range of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Support {
    /// The smallest value, if there is one.
    pub low: Option<f64>,
    /// The largest value, if there is one.
    pub high: Option<f64>,
}

impl Support {
    /// The real line.
    pub const REAL: Self = Self { low: None, high: None };

    /// Both bounds, infinite where there is none.
    pub fn bounds(&self) -> (f64, f64) {
        (self.low.unwrap_or(f64::NEG_INFINITY), self.high.unwrap_or(f64::INFINITY))
    }

    /// Both bounds, or those of floats where there is none.
    fn finite_bounds(&self) -> (f64, f64) {
        (self.low.unwrap_or(f64::MIN), self.high.unwrap_or(f64::MAX))
    }

    fn is_real(&self) -> bool {
        *self == Self::REAL
    }

    fn is_valid(&self) -> bool {
        let finite = |x: Option<f64>| x.is_none_or(f64::is_finite);
        let (low, high) = self.bounds();
        finite(self.low) && finite(self.high) && low < high
    }
}

/// The reason why there is no such transform.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WarpError {
    /// There are no values.
    #[error("there is no observed value to fit to")]
    NoValues,
    /// A value is infinite or NaN.
    #[error("{} is not finite", shortest_number(*.0))]
    NotFinite(f64),
    /// The difference between values overflows.
    #[error("the values span {} to {}, which is too wide; rescale the column", shortest_number(*low), shortest_number(*high))]
    TooWide {
        /// The smallest value.
        low: f64,
        /// The largest value.
        high: f64,
    },
    /// A value is outside the support.
    #[error("{} is outside the given bounds {} to {}", shortest_number(*value), shortest_number(*low), shortest_number(*high))]
    Outside {
        /// The value.
        value: f64,
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// The bounds are not in order.
    #[error("the bounds {} to {} are not in order", shortest_number(*low), shortest_number(*high))]
    Support {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// No cell can have the value of this atom.
    #[error("the atom {} is not a number that the column can have: it has too many digits", shortest_number(*.0))]
    Atom(f64),
    /// The parameters are invalid.
    #[error("the transform's {0} are invalid")]
    Parameters(&'static str),
    /// The stored parameters give a transform without an inverse among the finite numbers.
    #[error("the transform has no inverse: its components are too wide, too narrow or too far out")]
    NotInvertible,
}

/// The serialized form of a transform.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Parts {
    scale: Scale,
    support: Support,
    #[serde(default, skip_serializing_if = "Support::is_real")]
    range: Support,
    components: Vec<Component>,
}

impl From<Warp> for Parts {
    fn from(warp: Warp) -> Self {
        let Warp { scale, support, range, components, .. } = warp;
        Self { scale, support, range, components }
    }
}

impl TryFrom<Parts> for Warp {
    type Error = WarpError;

    /// Validates stored parameters.
    fn try_from(parts: Parts) -> Result<Self, WarpError> {
        let Parts { scale, support, range, components } = parts;
        let warp = Self::with_range(scale, support, range, components)?;
        if warp.is_invertible() { Ok(warp) } else { Err(WarpError::NotInvertible) }
    }
}

impl Warp {
    /// A transform with these parameters.
    ///
    /// # Errors
    /// The bounds or parameters are invalid, the weights do not sum to 1, or the mixture has no mass within the
    /// support.
    pub fn new(
        scale: Scale,
        support: Support,
        components: Vec<Component>,
    ) -> Result<Self, WarpError> {
        Self::with_range(scale, support, Support::REAL, components)
    }

    /// A transform with these parameters, whose scale continues along its tangents outside a range.
    ///
    /// # Errors
    /// As for [`new`](Self::new); also, the scale is not logarithmic, or the range is not within the support.
    pub fn with_range(
        scale: Scale,
        support: Support,
        range: Support,
        components: Vec<Component>,
    ) -> Result<Self, WarpError> {
        if !support.is_valid() {
            let (low, high) = support.bounds();
            return Err(WarpError::Support { low, high });
        }
        if !scale.is_valid(&support) {
            return Err(WarpError::Parameters("scale and bounds"));
        }
        let tangents = [range.low, range.high].map(|end| end.and_then(|x| Tangent::new(scale, x)));
        let given = [range.low, range.high].map(|end| end.is_some());
        let (low, high) = support.bounds();
        let is_outside = range.low.is_some_and(|x| x < low) || range.high.is_some_and(|x| x > high);
        if !range.is_valid() || is_outside || tangents.map(|t| t.is_some()) != given {
            return Err(WarpError::Parameters("range"));
        }
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let step = |c: &Component| c.mean.abs() * f64::EPSILON / c.sigma;
        let valid = |c: &Component| {
            positive(c.weight)
                && positive(c.sigma)
                && positive(c.weight / c.sigma)
                && c.mean.is_finite()
                && step(c) < TOO_COARSE
        };
        let total: f64 = components.iter().map(|c| c.weight).sum();
        if !components.iter().all(valid) || (total - 1.0).abs() > 1e-9 {
            return Err(WarpError::Parameters("components"));
        }
        let knots = knots(&components);
        let (below, above, log_mass, is_coarse) = (0.0, 0.0, 0.0, false);
        let mut warp = Self {
            scale,
            support,
            range,
            tangents,
            components,
            below,
            above,
            log_mass,
            is_coarse,
            knots,
        };
        // The mass beyond all floats is cut off too.
        let (low, high) = support.finite_bounds();
        (warp.below, _) = shares(&warp.components, warp.scaled(low));
        (_, warp.above) = shares(&warp.components, warp.scaled(high));
        let mass = (1.0 - warp.below) - warp.above;
        if mass.is_nan() || mass < 1e-6 {
            return Err(WarpError::Parameters("components and bounds"));
        }
        warp.log_mass = libm::log(mass);
        warp.is_coarse = warp.components.iter().any(|c| {
            let x = warp.at_scale(c.mean).clamp(f64::MIN, f64::MAX);
            let step_of_x = x.abs() * f64::EPSILON * warp.log_slope_of_scale(x).exp() / c.sigma;
            step(c) > COARSE || step_of_x.is_nan() || step_of_x > COARSE
        });
        Ok(warp)
    }

    /// t(x), along a tangent outside the range.
    fn scaled(&self, x: f64) -> f64 {
        match self.tangents {
            [Some(start), _] if x < start.x => start.forward(x),
            [_, Some(end)] if x > end.x => end.forward(x),
            _ => self.scale.forward(x),
        }
    }

    /// The x at t.
    fn at_scale(&self, t: f64) -> f64 {
        match self.tangents {
            [Some(start), _] if t < start.t => start.inverse(t),
            [_, Some(end)] if t > end.t => end.inverse(t),
            _ => self.scale.inverse(t),
        }
    }

    /// ln t′(x).
    fn log_slope_of_scale(&self, x: f64) -> f64 {
        let (start, end) = self.range.bounds();
        self.scale.log_slope(x.max(start).min(end))
    }

    /// Whether it has an inverse in floating point: finite, increasing, and consistent on both sides of u. Only such
    /// transforms are read from files.
    fn is_invertible(&self) -> bool {
        let small = [EDGE, 1e-9, 1e-4, 0.01];
        let levels = small.into_iter().chain((1..32).map(|n| f64::from(n) / 32.0));
        let levels = levels.chain(small.into_iter().rev().map(|u| 1.0 - u));
        let mut before = f64::NEG_INFINITY;
        for u in levels {
            let x = self.inverse(u);
            let is_between = self.distribution(x.next_down()) <= u + TOLERANCE
                && self.distribution(x.next_up()) >= u - TOLERANCE;
            if !(x.is_finite() && x >= before && is_between && self.log_slope(x).is_finite()) {
                return false;
            }
            before = x;
        }
        true
    }

    /// Rounds the parameters to few digits; `None` if the result is not a valid transform.
    pub(crate) fn rounded(&self) -> Option<Self> {
        /// Rounds to this many significant digits.
        fn round(x: f64, digits: usize) -> f64 {
            format!("{x:.digits$e}").parse().unwrap_or(x)
        }
        let mut components = self.components.clone();
        for c in &mut components {
            c.sigma = round(c.sigma, 3);
            // Round a mean to a hundredth of its σ.
            let digits = (c.mean.abs() / c.sigma).max(1.0).log10() + 2.0;
            c.mean = round(c.mean, digits.clamp(2.0, 17.0) as usize);
            c.weight = (c.weight * 1000.0).round().max(1.0);
        }
        let excess = components.iter().map(|c| c.weight).sum::<f64>() - 1000.0;
        components.iter_mut().max_by(|a, b| a.weight.total_cmp(&b.weight))?.weight -= excess;
        for c in &mut components {
            c.weight /= 1000.0;
        }
        let short = Self::with_range(self.scale, self.support, self.range, components).ok()?;
        short.is_invertible().then_some(short)
    }

    /// The scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Where the scale holds. Below and above, it continues along its tangents.
    pub fn range(&self) -> Support {
        self.range
    }

    /// The first version of model files that can store it.
    pub(super) fn format_version(&self) -> u32 {
        if self.range == Support::REAL { 1 } else { 8 }
    }

    /// The range of the values.
    pub fn support(&self) -> Support {
        self.support
    }

    /// The components.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Whether F′(x) is positive: inside the support and, on logarithmic scales, not at its ends.
    pub fn contains(&self, x: f64) -> bool {
        let (low, high) = self.support.bounds();
        x.is_finite() && x >= low && x <= high && self.log_slope(x) > f64::NEG_INFINITY
    }

    /// F(x), kept at least 2⁻⁵³ away from 0 and 1.
    pub fn forward(&self, x: f64) -> f64 {
        self.distribution(x).clamp(EDGE, 1.0 - EDGE)
    }

    /// F(x) as the mass below x, for intervals: exactly 0 below the support and 1 above it.
    pub fn distribution(&self, x: f64) -> f64 {
        let (low, high) = self.support.bounds();
        if x <= low {
            return 0.0;
        }
        if x >= high {
            return 1.0;
        }
        let (lower, upper) = shares(&self.components, self.scaled(x));
        let mass = libm::exp(self.log_mass);
        // The smaller of the two has the smaller error.
        if lower <= upper {
            ((lower - self.below) / mass).clamp(0.0, 1.0)
        } else {
            1.0 - ((upper - self.above) / mass).clamp(0.0, 1.0)
        }
    }

    /// ln F′(x), which converts log p(u) to a log density in the units of x. −∞ outside the support.
    pub fn log_slope(&self, x: f64) -> f64 {
        let (low, high) = self.support.bounds();
        if !(x >= low && x <= high) {
            return f64::NEG_INFINITY;
        }
        let t = self.scaled(x);
        if t.is_infinite() {
            return f64::NEG_INFINITY;
        }
        log_density(&self.components, t) + self.log_slope_of_scale(x) - self.log_mass
    }

    /// The x with F(x) = u. Values closer to 0 or 1 than 2⁻⁵³ are clamped.
    ///
    /// Uses Newton steps on ln F or ln (1 − F), kept within a bracket, to the precision of u itself.
    pub fn inverse(&self, u: f64) -> f64 {
        let u = u.clamp(EDGE, 1.0 - EDGE);
        let mass = self.log_mass.exp();
        let (lower, upper) = (self.below + u * mass, self.above + (1.0 - u) * mass);
        let t = if lower <= upper { self.solve(lower, true) } else { self.solve(upper, false) };
        let (low, high) = self.support.finite_bounds();
        // Logarithmic scales exclude their ends.
        let (low, high) = match self.scale {
            Scale::Linear | Scale::Asinh { .. } => (low, high),
            Scale::Log { .. } => (low.next_up(), high),
            Scale::Logit { .. } => (low.next_up(), high.next_down()),
        };
        let mut x = self.at_scale(t).max(low).min(high);
        for _ in 0..MAX_STEPS {
            // Do not return the float before the step that passes u.
            if !self.is_coarse || x >= high || self.distribution(x) >= u - f64::EPSILON {
                break;
            }
            x = x.next_up();
        }
        x
    }

    /// The t below (or above) which the mixture has this mass.
    fn solve(&self, share: f64, is_lower: bool) -> f64 {
        let (mut low, mut high, mut t) = self.bracket(share, is_lower);
        let log_share = share.ln();
        // The lengths of the last two steps, the older one first.
        let mut steps = (high - low, high - low);
        for _ in 0..200 {
            let (lower, upper) = shares(&self.components, t);
            let (found, sign) = if is_lower { (lower, 1.0) } else { (upper, -1.0) };
            // Positive if t is too large.
            let excess = sign * (found.ln() - log_share);
            if excess == 0.0 {
                break;
            }
            if excess > 0.0 {
                high = t;
            } else {
                low = t;
            }
            let density: f64 = self.components.iter().map(|c| c.density(t)).sum();
            let newton = excess * found / density;
            let mut next = t - newton;
            // Bisect if the Newton step leaves the bracket or steps do not shrink fast enough.
            let is_slow = newton.abs() > 0.5 * steps.0;
            if is_slow || !(next > low && next < high) {
                next = 0.5 * low + 0.5 * high;
            }
            steps = (steps.1, (next - t).abs());
            let done = (next - t).abs() <= f64::EPSILON * t.abs() || next == low || next == high;
            t = next;
            if done {
                break;
            }
        }
        t
    }

    /// A bracket for the t with this mass, and a guess inside.
    fn bracket(&self, share: f64, is_lower: bool) -> (f64, f64, f64) {
        let of = |knot: &Knot| if is_lower { knot.lower } else { knot.upper };
        let is_before = |knot: &Knot| if is_lower { of(knot) < share } else { of(knot) > share };
        let n = self.knots.partition_point(is_before);
        let end =
            |sign: f64| self.components.iter().map(move |c| c.mean + sign * FARTHEST * c.sigma);
        let before = n.checked_sub(1).map(|n| self.knots[n]);
        let after = self.knots.get(n);
        let low = before.map_or_else(|| end(-1.0).fold(f64::INFINITY, f64::min), |k| k.t);
        let high = after.map_or_else(|| end(1.0).fold(f64::NEG_INFINITY, f64::max), |k| k.t);
        let (low, high) = (low.max(f64::MIN), high.min(f64::MAX));
        let middle = 0.5 * low + 0.5 * high;
        let guess = match (before, after) {
            (Some(a), Some(b)) => {
                let (a, b) = (of(&a), of(b));
                low + (high - low) * ((share / a).ln() / (b / a).ln())
            }
            _ => middle,
        };
        (low, high, if guess > low && guess < high { guess } else { middle })
    }
}

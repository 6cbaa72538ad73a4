//! Fitting of transforms: EM for one-dimensional normal mixtures, with the number of components and the scale chosen by
//! BIC.

use std::f64::consts::PI;

use super::{Component, Scale, Support, Tangent, Warp, WarpError};

/// The maximum number of points for EM. Longer columns are represented by means of consecutive quantiles.
const MAX_POINTS: usize = 1024;
/// The number of values at each end that are never averaged.
const TAIL: usize = 32;
const MAX_STEPS: usize = 150;
/// EM stops below this gain in log-likelihood per value.
const SMALL_GAIN: f64 = 1e-6;
/// Logarithmic scales are excluded if more than this fraction of the rows, and more than `MAX_TIED_ROWS` rows, share
/// one value.
const MAX_TIE: f64 = 0.02;
const MAX_TIED_ROWS: f64 = 7.0;
/// The minimum number of rows of a component; with few rows, the minimum fraction, but at least two rows.
const MIN_ROWS: f64 = 5.0;
const MIN_SHARE: f64 = 0.15;
/// The tolerance for the transform's mean, in standard deviations of the rows, and for the ratio of its standard
/// deviation to theirs. A smaller deviation is fine, since a single outlier may dominate theirs.
const MEAN_TOLERANCE: f64 = 0.1;
const DEVIATION_TOLERANCE: f64 = 1.25;
/// Mean and deviation are computed up to the quantile 2^−`TAIL_PANELS`.
const TAIL_PANELS: i32 = 30;

/// How to fit a transform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarpOptions {
    /// The maximum number of components, not counting the broad one.
    pub max_components: usize,
    /// The smallest σ of a component, in standard deviations of the column (on its scale).
    ///
    /// Repeated values would let a component shrink onto one of them, and the density grow without bound, which says
    /// nothing about the data. The default, √10⁻³, corresponds to a Gaussian mixture with a ridge of 10⁻³ in
    /// standardized units, so that log densities are comparable. In any case, no σ is below 0.4 times the smallest gap
    /// between values: on a grid with spacing δ, the density times δ is then at most 1, like a probability.
    pub min_sigma: f64,
}

impl Default for WarpOptions {
    fn default() -> Self {
        Self { max_components: 8, min_sigma: 1e-3f64.sqrt() }
    }
}

impl Warp {
    /// Fits a transform to the observed values of a column.
    ///
    /// Candidates are mixtures of 1 to `max_components` normal components in x itself (cut to the support), in asinh of
    /// x around the median and, for positive values, around 0, and, if bounds are given and no value lies on them, in
    /// ln or logit. Components with fewer than 5 rows are dropped; with fewer than 33 rows in total, those with less
    /// than 15 %, but at least two rows. The candidate with the smallest BIC wins among those whose mean is close to
    /// that of the rows and whose deviation is not far above theirs: a tail fitted to a handful of rows would move the
    /// mean to where there are no rows. For the same reason, asinh and ln continue along their tangents beyond the first
    /// and the last value. Logarithmic scales are excluded if more than 2 % of the values are equal, and no scale is used
    /// that floats of this size cannot invert. One
    /// broad component with weight 1 / (n + 1) is added, so that no later value is astronomically unlikely. The result
    /// is deterministic.
    ///
    /// Cost: a sort, then at most 1024 points × components × steps of EM.
    ///
    /// # Errors
    /// There are no values, a value is not finite or outside the support, or the bounds are not in order.
    pub fn fit(values: &[f64], support: Support, options: &WarpOptions) -> Result<Self, WarpError> {
        let sorted = check(values, &support)?;
        let rows = sorted.len() as f64;
        let mut found: Vec<(f64, Warp)> = Vec::new();
        for scale in candidates(&sorted, &support) {
            let data = Data::new(&sorted, scale, options.min_sigma);
            let range = range_of(&sorted, scale, support);
            let slopes = data.points.iter().map(|p| p.count * scale.log_slope(p.x)).sum::<f64>();
            let extra = if matches!(scale, Scale::Asinh { .. }) { 2.0 } else { 0.0 };
            let (mut worse, mut least) = (0, f64::INFINITY);
            for m in 1..=options.max_components.max(1) {
                let (mut fitted, log_likelihood) = data.mixture(m);
                // Leave a handful of rows to the broad component.
                if m > 1 {
                    fitted.retain(|c| c.weight * rows >= MIN_ROWS.min((MIN_SHARE * rows).max(2.0)));
                }
                let kept: f64 = fitted.iter().map(|c| c.weight).sum();
                let is_whole = fitted.len() == m;
                if !is_whole {
                    for c in &mut fitted {
                        c.weight /= kept;
                    }
                }
                let components = data.finish(&fitted, rows);
                let Ok(warp) = Warp::with_range(scale, support, range, components) else {
                    continue;
                };
                let fit = if is_whole {
                    log_likelihood + slopes - rows * warp.log_mass
                } else {
                    data.points.iter().map(|p| p.count * warp.log_slope(p.x)).sum()
                };
                let bic = (3.0 * m as f64 - 1.0 + extra) * rows.ln() - 2.0 * fit;
                if bic < least {
                    (least, worse) = (bic, 0);
                } else {
                    worse += 1;
                }
                found.push((bic, warp));
                if worse == 3 {
                    break;
                }
            }
        }
        // The sort is stable.
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mean, deviation) = moments(sorted.iter().map(|&x| (x, 1.0)));
        let is_good = |warp: &Warp| warp.is_near(mean, deviation) && warp.is_invertible();
        let near = found.iter().position(|(_, warp)| is_good(warp));
        // A single component in x, besides the broad one, has the moments of the rows, except for what the bounds cut
        // off.
        let is_plain = |warp: &Warp| warp.scale == Scale::Linear && warp.components.len() <= 2;
        let linear = || found.iter().position(|(_, warp)| is_plain(warp) && warp.is_invertible());
        let any = || found.iter().position(|(_, warp)| warp.is_invertible());
        let best = near.or_else(linear).or_else(any);
        best.map(|n| found.swap_remove(n).1).ok_or(WarpError::Parameters("components"))
    }

    /// Whether its mean and deviation are close to these.
    fn is_near(&self, mean: f64, deviation: f64) -> bool {
        if deviation == 0.0 || !deviation.is_finite() {
            return true;
        }
        let (own, own_deviation) = moments(self.nodes());
        let ratio = own_deviation / deviation;
        (own - mean).abs() <= MEAN_TOLERANCE * deviation && ratio <= DEVIATION_TOLERANCE
    }

    /// Quadrature nodes and weights, denser in probability towards both ends.
    fn nodes(&self) -> impl Iterator<Item = (f64, f64)> {
        // Two Gauss nodes per panel.
        let node = 0.5 - 0.5 / 3f64.sqrt();
        (1..=TAIL_PANELS)
            .flat_map(move |k| {
                let (low, length) = match k {
                    TAIL_PANELS => (0.0, 0.5f64.powi(k - 1)),
                    _ => (0.5f64.powi(k + 1), 0.5f64.powi(k + 1)),
                };
                let places = [low + node * length, low + (1.0 - node) * length];
                places.into_iter().flat_map(move |u| [u, 1.0 - u]).map(move |u| (u, 0.5 * length))
            })
            .map(|(u, weight)| (self.inverse(u), weight))
    }
}

/// The mean and standard deviation of weighted numbers.
fn moments(numbers: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let mut sums = Sums::default();
    for (x, weight) in numbers {
        if sums.count == 0.0 {
            sums.around = x;
        }
        sums.add(weight, x);
    }
    let shift = sums.first / sums.count;
    (sums.around + shift, (sums.second / sums.count - shift * shift).max(0.0).sqrt())
}

/// Checks and sorts the values.
fn check(values: &[f64], support: &Support) -> Result<Vec<f64>, WarpError> {
    let (low, high) = support.bounds();
    if !support.is_valid() {
        return Err(WarpError::Support { low, high });
    }
    let mut sorted = values.to_vec();
    if let Some(&x) = sorted.iter().find(|x| !x.is_finite()) {
        return Err(WarpError::NotFinite(x));
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else {
        return Err(WarpError::NoValues);
    };
    if !((last - first) * 4.0).is_finite() {
        return Err(WarpError::TooWide { low: first, high: last });
    }
    match [first, last].into_iter().find(|&x| x < low || x > high) {
        Some(value) => Err(WarpError::Outside { value, low, high }),
        None => Ok(sorted),
    }
}

fn candidates(sorted: &[f64], support: &Support) -> Vec<Scale> {
    let mut scales = vec![Scale::Linear];
    let quantile = |q: f64| sorted[((sorted.len() - 1) as f64 * q).round() as usize];
    let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
    if longest_run(sorted) as f64 > (MAX_TIE * sorted.len() as f64).max(MAX_TIED_ROWS) {
        return scales;
    }
    let (center, unit) = (quantile(0.5), 0.25 * (quantile(0.75) - quantile(0.25)));
    if unit > f64::MIN_POSITIVE {
        scales.push(Scale::Asinh { center, unit });
    }
    if first > 0.0 && last > 4.0 * first {
        scales.push(Scale::Asinh { center: 0.0, unit: first });
    }
    match *support {
        Support { low: Some(low), high: None } if first > low => scales.push(Scale::Log { low }),
        Support { low: Some(low), high: Some(high) } if first > low && last < high => {
            scales.push(Scale::Logit { low, high });
        }
        _ => {}
    }
    scales
}

/// The range of a scale: on a logarithmic one the values, except towards a bound.
fn range_of(sorted: &[f64], scale: Scale, support: Support) -> Support {
    let has_tangent = |x: &f64| Tangent::new(scale, *x).is_some();
    let end = |x: Option<&f64>, bound: Option<f64>| {
        x.copied().filter(|_| bound.is_none()).filter(has_tangent)
    };
    let range =
        Support { low: end(sorted.first(), support.low), high: end(sorted.last(), support.high) };
    if range.is_valid() { range } else { Support::REAL }
}

fn longest_run(sorted: &[f64]) -> usize {
    sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).max().unwrap_or(0)
}

/// Points that represent `count` rows each, standardized to mean 0 and deviation 1.
struct Data {
    points: Vec<Point>,
    mean: f64,
    spread: f64,
    floor: f64,
    /// The first and last value, standardized.
    ends: (f64, f64),
    is_logarithmic: bool,
}

struct Point {
    x: f64,
    /// The standardized value.
    t: f64,
    count: f64,
}

impl Data {
    fn new(sorted: &[f64], scale: Scale, min_sigma: f64) -> Self {
        let mut points = represent(sorted, scale);
        let (mean, spread) = location(&points);
        for p in &mut points {
            p.t = (p.t - mean) / spread;
        }
        let gap = smallest_gap(sorted, scale) / spread;
        let ends = (points[0].t, points[points.len() - 1].t);
        // Far below any useful σ, even if the option is 0, but large enough that a density does not overflow.
        let floor = min_sigma.max(0.4 * gap).max(1e-9).max(1e-300 / spread);
        let is_logarithmic = match scale {
            Scale::Linear | Scale::Logit { .. } => false,
            Scale::Asinh { .. } | Scale::Log { .. } => true,
        };
        Self { points, mean, spread, floor, ends, is_logarithmic }
    }

    /// Fits m components by EM, starting from quantiles. Also returns the log-likelihood of the rows on the original
    /// scale.
    fn mixture(&self, m: usize) -> (Vec<Component>, f64) {
        let rows: f64 = self.points.iter().map(|p| p.count).sum();
        let mut components = self.quantiles(m, rows);
        let mut before = f64::NEG_INFINITY;
        let mut log_likelihood = before;
        for _ in 0..MAX_STEPS {
            let (next, now) = self.step(&components, rows);
            log_likelihood = now;
            if now - before < SMALL_GAIN * rows {
                break;
            }
            before = now;
            components = next;
        }
        (components, log_likelihood - rows * self.spread.ln())
    }

    /// One component for each of m equal fractions of the rows, in order.
    fn quantiles(&self, m: usize, rows: f64) -> Vec<Component> {
        let mut sums = vec![Sums::default(); m];
        let mut seen = 0.0;
        for p in &self.points {
            let middle = (seen + 0.5 * p.count) / rows;
            seen += p.count;
            let sum = &mut sums[((middle * m as f64) as usize).min(m - 1)];
            if sum.count == 0.0 {
                sum.around = p.t;
            }
            sum.add(p.count, p.t);
        }
        // A fraction that repeated values leave empty starts with a broad component in the middle.
        let empty = Component { weight: 1.0 / m as f64, mean: 0.0, sigma: 1.0 };
        let part = |s: Sums| s.component(rows, self.floor).unwrap_or(empty);
        normalized(sums.into_iter().map(part).collect())
    }

    /// One EM step. Also returns the log-likelihood before it.
    fn step(&self, components: &[Component], rows: f64) -> (Vec<Component>, f64) {
        let mut sums: Vec<Sums> =
            components.iter().map(|c| Sums { around: c.mean, ..Sums::default() }).collect();
        // Precompute ln(weight / σ) and 1 / σ, so that a point costs one exponential per component.
        let constants: Vec<(f64, f64)> =
            components.iter().map(|c| ((c.weight / c.sigma).ln(), c.sigma.recip())).collect();
        let mut shares = vec![0.0; components.len()];
        let mut log_likelihood = 0.0;
        for p in &self.points {
            let mut largest = f64::NEG_INFINITY;
            for ((share, c), (log, inverse)) in shares.iter_mut().zip(components).zip(&constants) {
                let z = (p.t - c.mean) * inverse;
                *share = log - 0.5 * z * z;
                largest = largest.max(*share);
            }
            let mut total = 0.0;
            for share in &mut shares {
                *share = (*share - largest).exp();
                total += *share;
            }
            log_likelihood += p.count * (largest + total.ln());
            for (sum, share) in sums.iter_mut().zip(&shares) {
                sum.add(p.count * share / total, p.t);
            }
        }
        log_likelihood -= 0.5 * rows * (2.0 * PI).ln();
        let part = |(sum, c): (Sums, &Component)| {
            sum.component(rows, self.floor).unwrap_or(Component { weight: 1e-9, ..*c })
        };
        (normalized(sums.into_iter().zip(components).map(part).collect()), log_likelihood)
    }

    /// The components on the original scale, with the broad one added.
    fn finish(&self, components: &[Component], rows: f64) -> Vec<Component> {
        let (first, last) = self.ends;
        let weight = 1.0 / (rows + 1.0);
        // On a logarithmic scale, one deviation beyond the last value is already a large factor.
        let reach = if self.is_logarithmic { 1.0 / 3.0 } else { 1.0 };
        let broad = Component {
            weight,
            mean: 0.5 * first + 0.5 * last,
            sigma: (0.5 * (last - first)).max(1.0) * reach,
        };
        let shrunk =
            components.iter().map(|c| Component { weight: c.weight * (1.0 - weight), ..*c });
        let restored = shrunk.chain([broad]).map(|c| Component {
            weight: c.weight,
            mean: self.mean + self.spread * c.mean,
            sigma: self.spread * c.sigma,
        });
        restored.collect()
    }
}

/// Sums of distances to a number near the mean, which avoids cancellation in variances.
#[derive(Clone, Default)]
struct Sums {
    around: f64,
    count: f64,
    first: f64,
    second: f64,
}

impl Sums {
    fn add(&mut self, count: f64, t: f64) {
        let d = t - self.around;
        self.count += count;
        self.first += count * d;
        self.second += count * d * d;
    }

    /// The component with these sums; `None` if it has almost no weight.
    fn component(&self, rows: f64, floor: f64) -> Option<Component> {
        if self.count <= 1e-9 {
            return None;
        }
        let shift = self.first / self.count;
        let variance = (self.second / self.count - shift * shift).max(0.0);
        let weight = self.count / rows;
        Some(Component { weight, mean: self.around + shift, sigma: variance.sqrt().max(floor) })
    }
}

/// Normalizes the weights to sum to 1.
fn normalized(mut components: Vec<Component>) -> Vec<Component> {
    let total: f64 = components.iter().map(|c| c.weight).sum();
    for c in &mut components {
        c.weight /= total;
    }
    components
}

/// At most about [`MAX_POINTS`] points: the values themselves, or means over consecutive rows, except in the tails.
fn represent(sorted: &[f64], scale: Scale) -> Vec<Point> {
    let point = |run: &[f64]| {
        let x = run[0] + run.iter().map(|x| x - run[0]).sum::<f64>() / run.len() as f64;
        Point { x, t: scale.forward(x), count: run.len() as f64 }
    };
    let distinct = sorted.chunk_by(|a, b| a == b);
    if distinct.clone().count() <= MAX_POINTS {
        return distinct.map(point).collect();
    }
    let body = &sorted[TAIL..sorted.len() - TAIL];
    let size = body.len().div_ceil(MAX_POINTS - 2 * TAIL);
    let mut points: Vec<Point> = sorted[..TAIL].chunks(1).map(point).collect();
    points.extend(body.chunks(size).map(point));
    points.extend(sorted[sorted.len() - TAIL..].chunks(1).map(point));
    points
}

/// The mean and standard deviation. The latter is replaced by half the range of the middle 98 % if outliers make it
/// larger.
fn location(points: &[Point]) -> (f64, f64) {
    let rows: f64 = points.iter().map(|p| p.count).sum();
    let start = points[0].t;
    let mean = start + points.iter().map(|p| p.count / rows * (p.t - start)).sum::<f64>();
    let largest = points.iter().map(|p| (p.t - mean).abs()).fold(0.0, f64::max);
    if largest == 0.0 || !largest.is_normal() {
        // A constant column: any width of a suitable size.
        return (mean, mean.abs().max(1e-3));
    }
    let square = |p: &Point| p.count / rows * ((p.t - mean) / largest).powi(2);
    let deviation = largest * points.iter().map(square).sum::<f64>().sqrt();
    let quantile = |q: f64| {
        let mut seen = 0.0;
        let reached = |p: &&Point| {
            seen += p.count;
            seen >= q * rows
        };
        points.iter().find(reached).map_or(mean, |p| p.t)
    };
    let middle = 0.5 * (quantile(0.99) - quantile(0.01));
    (mean, if middle > 0.0 { deviation.min(middle) } else { deviation })
}

/// The smallest difference between distinct values, on the scale of t.
fn smallest_gap(sorted: &[f64], scale: Scale) -> f64 {
    let gaps = sorted
        .windows(2)
        .filter(|w| w[0] < w[1])
        .map(|w| scale.forward(w[1]) - scale.forward(w[0]));
    let gap = gaps.fold(f64::INFINITY, f64::min);
    if gap.is_finite() { gap } else { 0.0 }
}

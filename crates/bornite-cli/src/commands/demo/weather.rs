//! A made-up table whose true distribution is known.

use bornite::data::{Column, DataError, Table};
use rand::{Rng, RngExt};

pub(super) const SEASONS: [&str; 4] = ["spring", "summer", "autumn", "winter"];
/// The median and the scale of each season's degrees, which follow logistic distributions.
const DEGREES: [(f64, f64); 4] = [(11.0, 2.2), (22.0, 2.0), (12.0, 2.4), (2.0, 1.8)];
/// The probability of rain in each season.
const RAIN: [f64; 4] = [0.35, 0.2, 0.5, 0.4];
/// The probability of an umbrella without and with rain.
const UMBRELLA: [f64; 2] = [0.08, 0.85];
/// The numbers of visitors without and with rain, all equally likely.
const VISITORS: [(i64, i64); 2] = [(5, 24), (0, 9)];

const COLUMNS: usize = 5;
/// The fraction of cells that are missing at random.
pub(super) const MISSING_SHARE: f64 = 0.08;

/// Days drawn from the distribution, with missing values.
pub(super) fn days(count: usize, rng: &mut impl Rng) -> Result<Table, DataError> {
    let (mut season, mut rain, mut umbrella) = (Vec::new(), Vec::new(), Vec::new());
    let (mut degrees, mut visitors) = (Vec::new(), Vec::new());
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let mut missing = Vec::new();
    for _ in 0..count {
        let s = rng.random_range(0..SEASONS.len());
        let wet = rng.random::<f64>() < RAIN[s];
        let u = rng.random::<f64>().clamp(1e-12, 1.0 - 1e-12);
        let (middle, scale) = DEGREES[s];
        let (low, high) = VISITORS[usize::from(wet)];
        season.push(SEASONS[s]);
        rain.push(yes_no(wet));
        umbrella.push(yes_no(rng.random::<f64>() < UMBRELLA[usize::from(wet)]));
        degrees.push(middle + scale * (u / (1.0 - u)).ln());
        visitors.push(rng.random_range(low..=high));
        missing.push([(); COLUMNS].map(|()| rng.random::<f64>() < MISSING_SHARE));
    }
    let words = |column: usize, cells: Vec<&'static str>| {
        let known = cells.into_iter().zip(&missing).map(|(c, h)| (!h[column]).then_some(c));
        known.collect::<Vec<_>>()
    };
    let degrees = degrees.iter().zip(&missing).map(|(&x, h)| if h[3] { f64::NAN } else { x });
    let visitors = visitors.iter().zip(&missing).map(|(&x, h)| (!h[4]).then_some(x));
    Table::new(vec![
        Column::labels("season", words(0, season)),
        Column::labels("rain", words(1, rain)),
        Column::labels("umbrella", words(2, umbrella)),
        Column::numbers("degrees", degrees.collect()),
        Column::integers("visitors", visitors),
    ])
}

/// Evidence about a day; `None` is unobserved.
#[derive(Clone, Copy, Default)]
pub(super) struct Day {
    pub(super) season: Option<usize>,
    pub(super) rain: Option<bool>,
    pub(super) umbrella: Option<bool>,
    /// From the first to below the second.
    pub(super) degrees: Option<(f64, f64)>,
    /// From the first to below the second.
    pub(super) visitors: Option<(i64, i64)>,
}

impl Day {
    /// The true probability, summed over all seasons and skies.
    pub(super) fn probability(&self) -> f64 {
        (0..SEASONS.len()).map(|season| self.in_season(season)).sum()
    }

    /// The true mean of the degrees given the evidence, which must not include the degrees.
    pub(super) fn mean_degrees(&self) -> f64 {
        let sum: f64 = (0..SEASONS.len()).map(|s| self.in_season(s) * DEGREES[s].0).sum();
        sum / self.probability()
    }

    fn in_season(&self, season: usize) -> f64 {
        if self.season.is_some_and(|s| s != season) {
            return 0.0;
        }
        let (middle, scale) = DEGREES[season];
        let below = |x: f64| 1.0 / (1.0 + (-(x - middle) / scale).exp());
        let degrees = self.degrees.map_or(1.0, |(low, high)| below(high) - below(low));
        let skies = [false, true].into_iter().filter(|wet| self.rain.is_none_or(|r| r == *wet));
        let sky = |wet: bool| {
            let rain = if wet { RAIN[season] } else { 1.0 - RAIN[season] };
            let umbrella = match (self.umbrella, UMBRELLA[usize::from(wet)]) {
                (None, _) => 1.0,
                (Some(true), p) => p,
                (Some(false), p) => 1.0 - p,
            };
            let (low, high) = VISITORS[usize::from(wet)];
            let visitors = self.visitors.map_or(1.0, |(from, to)| {
                let within = (high + 1).min(to) - low.max(from);
                within.max(0) as f64 / (high + 1 - low) as f64
            });
            rain * umbrella * visitors
        };
        0.25 * degrees * skies.map(sky).sum::<f64>()
    }
}

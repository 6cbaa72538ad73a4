//! Units of numbers: scores in which relations between columns are as straight as in the table.

use super::normal::{MAX_SCORE, distribution};

/// The number of pieces for a score of 1.
const PIECES: usize = 128;
/// The smallest rise of a piece, relative to that of all pieces.
const LEAST: f64 = 1e-12;

/// The score of a variable in the unit of its column, as a function of its normal score z: increasing, and linear between
/// points that are evenly spaced by z.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    scores: Vec<f64>,
}

impl Unit {
    /// The unit of a variable whose value at the fraction u of its interval represents the number `number(u)`; `None` if
    /// most numbers are the same or not finite.
    pub(crate) fn new(number: impl Fn(f64) -> f64) -> Option<Self> {
        let at = |z: f64| number(distribution(z));
        let (middle, width) = (at(0.0), 0.5 * (at(1.0) - at(-1.0)));
        let count = 2 * MAX_SCORE as usize * PIECES + 1;
        let mut scores: Vec<f64> =
            (0..count).map(|n| (at(z_of(n as f64)) - middle) / width).collect();
        let least = LEAST * (scores[count - 1] - scores[0]);
        for n in 1..count {
            scores[n] = scores[n].max(scores[n - 1] + least);
        }
        let is_valid = width > 0.0 && scores.iter().all(|s| s.is_finite()) && least > 0.0;
        is_valid.then_some(Self { scores })
    }

    /// The score at the normal score z, and the log of its slope.
    pub(super) fn score(&self, z: f64) -> (f64, f64) {
        let place = (z + MAX_SCORE) * PIECES as f64;
        let n = (place as usize).min(self.scores.len() - 2);
        let (low, high) = (self.scores[n], self.scores[n + 1]);
        let slope = (high - low) * PIECES as f64;
        (low + (high - low) * (place - n as f64), slope.ln())
    }

    /// The normal score at a score.
    pub(super) fn normal(&self, score: f64) -> f64 {
        let n = self.scores.partition_point(|s| *s <= score).clamp(1, self.scores.len() - 1) - 1;
        let (low, high) = (self.scores[n], self.scores[n + 1]);
        z_of(n as f64 + ((score - low) / (high - low)).clamp(0.0, 1.0))
    }
}

/// The normal score at the nth point.
fn z_of(n: f64) -> f64 {
    n / PIECES as f64 - MAX_SCORE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_increasing_and_its_slope_the_derivative() {
        let unit = Unit::new(|u| 2.0 + u + 30.0 * u * u * u).unwrap();
        let mut before = f64::NEG_INFINITY;
        for n in -500..=500 {
            let z = f64::from(n) / 100.0 + 1e-3;
            let (score, log_slope) = unit.score(z);
            assert!(score > before && (unit.normal(score) - z).abs() < 1e-4, "{z}");
            let step = 1e-5;
            let rise = (unit.score(z + step).0 - unit.score(z - step).0) / (2.0 * step);
            assert!((log_slope.exp() / rise - 1.0).abs() < 1e-2, "{z}");
            before = score;
        }
        assert!(Unit::new(|_| 1.0).is_none() && Unit::new(|u| 1e308 / u).is_none());
        // Bounded numbers have a slope at the bounds too.
        let bounded = Unit::new(|u| u.clamp(0.2, 0.9)).unwrap();
        assert!(bounded.score(-5.0).0 < bounded.score(-4.0).0);
        assert_eq!(bounded.normal(1e9), MAX_SCORE);
    }
}

//! Cells outside a column's domain: labels that were never seen, numbers beyond the range, and numbers between grid
//! points, such as 9.5 in a column of whole numbers.
//!
//! Each column expects a certain fraction of such cells. They are independent of the rest of the row: the probability
//! of a row with such a cell is that of its other cells, times the fraction, times the cell's share of all cells
//! outside. The exception is a number between grid points, which has the probability of the nearest grid point times
//! the fraction of such numbers.

use std::collections::BTreeSet;
use std::f64::consts::PI;

use super::{Cell, Ends};

/// A density is approximated by the share of an interval this small relative to the scale.
const SMALL: f64 = 1e-6;

/// The factor by which numbers below the natural start of a column, or between numeric labels, are less likely.
const FAINT: f64 = 0.01;

/// The share of numbers between grid points among all cells outside the domain.
pub(crate) const BETWEEN: f64 = 0.1;

/// The distribution of cells outside a column's domain.
#[derive(Clone, Debug)]
pub(crate) enum Outside {
    /// Other labels. They are indistinguishable: one label has the share of all of them.
    Labels,
    /// Other numbers.
    Numbers(Tails),
}

/// A set of cells outside a column's domain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OutsideSet {
    /// A set of labels.
    Labels(BTreeSet<String>),
    /// An interval of numbers.
    Numbers {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
}

impl OutsideSet {
    /// The intersection of two sets; `None` if it is empty.
    pub(crate) fn and(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Labels(a), Self::Labels(b)) => {
                let both: BTreeSet<String> = a.intersection(b).cloned().collect();
                (!both.is_empty()).then_some(Self::Labels(both))
            }
            (Self::Numbers { low: a, high: b }, Self::Numbers { low: c, high: d }) => {
                let (low, high) = (a.max(*c), b.min(*d));
                (low < high).then_some(Self::Numbers { low, high })
            }
            (Self::Labels(_), Self::Numbers { .. }) | (Self::Numbers { .. }, Self::Labels(_)) => {
                None
            }
        }
    }

    /// The cells outside the domain that are not in the set. Because labels are indistinguishable, a set of labels has
    /// an empty complement.
    pub(crate) fn complement(&self) -> Vec<Self> {
        match *self {
            Self::Labels(_) => Vec::new(),
            Self::Numbers { low, high } => {
                let sides = [(f64::NEG_INFINITY, low), (high, f64::INFINITY)];
                let sides = sides.into_iter().filter(|(low, high)| low < high);
                sides.map(|(low, high)| Self::Numbers { low, high }).collect()
            }
        }
    }
}

impl Outside {
    /// The numbers within an interval; `None` if there are none.
    pub(crate) fn between(&self, ends: &Ends) -> Option<OutsideSet> {
        let Self::Numbers(tails) = self else { return None };
        let (low, high) = ends.halfway(tails.unit, tails.origin);
        (low < high).then_some(OutsideSet::Numbers { low, high })
    }

    /// The set with a single cell; `None` if the cell does not have the column's type.
    pub(crate) fn cell(&self, cell: Cell<'_>) -> Option<OutsideSet> {
        match self {
            Self::Labels => Some(OutsideSet::Labels(BTreeSet::from([cell.text()]))),
            Self::Numbers(tails) => {
                let x = cell.number()?;
                // Far out, floats are further apart than that.
                let half = (0.5 * tails.unit).max(f64::EPSILON * x.abs());
                Some(OutsideSet::Numbers { low: x - half, high: x + half })
            }
        }
    }

    /// The log of the set's share of all cells outside.
    pub(crate) fn log_share(&self, set: &OutsideSet) -> f64 {
        match (self, set) {
            (Self::Labels, OutsideSet::Labels(_)) => 0.0,
            (Self::Numbers(tails), OutsideSet::Numbers { low, high }) => {
                (tails.share(*low, *high) / tails.per).ln()
            }
            (Self::Labels, OutsideSet::Numbers { .. })
            | (Self::Numbers(_), OutsideSet::Labels(_)) => f64::NEG_INFINITY,
        }
    }
}

/// The distribution of numbers outside the domain: a Cauchy distribution scaled to the column's range, with the domain
/// removed.
///
/// Half of its mass is beyond the range, and its tails are so heavy that no number is impossible.
#[derive(Clone, Debug)]
pub(crate) struct Tails {
    /// The natural start of the numbers: a column without negative numbers is unlikely to get any.
    low: f64,
    center: f64,
    scale: f64,
    /// The distance between neighboring numbers.
    unit: f64,
    /// One of these numbers.
    origin: f64,
    /// The divisor of shares: 1, or the unit if they are densities.
    per: f64,
    /// The intervals of numbers inside the domain, in order.
    inside: Vec<(f64, f64)>,
    /// The factor for other numbers within the range.
    left: f64,
}

impl Tails {
    /// The distribution outside the whole numbers from `min` to `max`.
    pub(super) fn of_range(min: f64, max: f64) -> Self {
        Self::new(&[(min - 0.5, max + 0.5)], 1.0, 0.0)
    }

    /// The distribution outside these numbers, on a grid with at most this many decimals.
    pub(super) fn of_numbers(numbers: &[f64], decimals: usize) -> Self {
        let unit = 0.1f64.powf(decimals.min(9) as f64);
        let inside: Vec<(f64, f64)> =
            numbers.iter().map(|x| (x - 0.5 * unit, x + 0.5 * unit)).collect();
        Self::new(&inside, unit, FAINT)
    }

    fn new(inside: &[(f64, f64)], unit: f64, left: f64) -> Self {
        let min = inside.iter().map(|i| i.0).fold(f64::INFINITY, f64::min);
        let max = inside.iter().map(|i| i.1).fold(f64::NEG_INFINITY, f64::max);
        let low = if min >= -0.5 * unit { -0.5 * unit } else { f64::NEG_INFINITY };
        // Halve each end first so that nothing overflows, and use a scale that floats of this size can resolve.
        let (center, half) = (0.5 * min + 0.5 * max, 0.5 * max - 0.5 * min);
        let scale = half.max(unit).max(f64::EPSILON * center.abs());
        Self { low, center, scale, unit, origin: 0.0, per: 1.0, inside: inside.to_vec(), left }
    }

    /// The distribution beyond bounds, around a center, on a grid with this unit and origin; a density if there is none.
    pub(super) fn beyond(
        (low, high): (f64, f64),
        (center, scale): (f64, f64),
        grid: Option<(f64, f64)>,
    ) -> Self {
        let scale = if scale > 0.0 { scale } else { 1.0 };
        let small = scale * SMALL;
        let per = if grid.is_some() { 1.0 } else { small };
        let (unit, origin) = grid.unwrap_or((small, 0.0));
        let (all, inside) = (f64::NEG_INFINITY, vec![(low, high)]);
        Self { low: all, center, scale, unit, origin, per, inside, left: 0.0 }
    }

    /// The mass of an interval, inside and outside the domain.
    fn mass(&self, low: f64, high: f64) -> f64 {
        self.raw_mass(low.max(self.low), high) + FAINT * self.raw_mass(low, high.min(self.low))
    }

    fn raw_mass(&self, low: f64, high: f64) -> f64 {
        if low >= high {
            return 0.0;
        }
        let place = |x: f64| (0.5 * x - 0.5 * self.center) / (0.5 * self.scale);
        let [a, b] = [low, high].map(place);
        if a == f64::NEG_INFINITY || b == f64::INFINITY {
            // Avoid cancellation far out in the tails.
            let above = |z: f64| if z > 0.0 { (1.0 / z).atan() } else { 0.5 * PI - z.atan() };
            return (above(a) - above(b)) / PI;
        }
        // atan b − atan a.
        let product = 1.0 + a * b;
        let ratio = if product.is_finite() { (b - a) / product } else { (b - a) / a / b };
        let difference = ratio.atan();
        (if product >= 0.0 { difference } else { difference + PI }) / PI
    }

    /// The share of an interval's numbers among all that are outside.
    fn share(&self, low: f64, high: f64) -> f64 {
        let outside = |low: f64, high: f64| {
            let inside = self.inside.iter().map(|i| self.mass(i.0.max(low), i.1.min(high)));
            (self.mass(low, high) - (1.0 - self.left) * inside.sum::<f64>()).max(0.0)
        };
        // Intervals beyond the domain lose nothing to rounding.
        let all = outside(f64::NEG_INFINITY, f64::INFINITY);
        if all > 0.0 { (outside(low, high) / all).min(1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (min, max) in [(0.0, 7.0), (-3.0, 12.0), (17.0, 90.0), (5.0, 5.0)] {
            let tails = Tails::of_range(min, max);
            let below = tails.share(f64::NEG_INFINITY, min - 0.5);
            let above = tails.share(max + 0.5, f64::INFINITY);
            assert!((below + above - 1.0).abs() < 1e-12, "{min} to {max}: {below}, {above}");
            assert!(tails.share(min - 0.5, max + 0.5) < 1e-15);
            // A column without negative numbers is unlikely to get any.
            assert!(below > 0.0 && (below < 0.05) == (min == 0.0), "{below}");
            let cell = |x: f64| tails.share(x - 0.5, x + 0.5);
            let cells: f64 = (1..=1000).map(|k| cell(max + f64::from(k))).sum();
            let interval = tails.share(max + 0.5, max + 1000.5);
            assert!((cells - interval).abs() < 1e-12, "{cells}, {interval}");
        }
    }

    #[test]
    fn shares_of_extreme_numbers_add_up() {
        let all = [&[-1.7e308][..], &[1.7e308], &[-1.7e308, 1.7e308], &[1e-310], &[5.0, 1e300]];
        for numbers in all {
            let tails = Tails::of_numbers(numbers, 0);
            for &x in numbers.iter().chain(&[0.0, 1e9, -1e300, f64::MAX, f64::MIN]) {
                let (below, above) =
                    (tails.share(f64::NEG_INFINITY, x), tails.share(x, f64::INFINITY));
                assert!(
                    (below + above - 1.0).abs() < 1e-12,
                    "{numbers:?} at {x}: {below}, {above}"
                );
            }
        }
    }

    #[test]
    fn numbers_beyond_a_bound_have_a_density_or_a_share() {
        let grid = Tails::beyond((-0.5, f64::INFINITY), (20.0, 5.0), Some((1.0, 0.0)));
        let all = Outside::Numbers(grid.clone());
        let cells =
            (1..100_000).map(|n| all.log_share(&all.cell(Cell::Integer(-n)).unwrap()).exp());
        let far = grid.share(f64::NEG_INFINITY, -99_999.5);
        assert!((cells.sum::<f64>() + far - 1.0).abs() < 1e-9);
        assert_eq!(all.log_share(&all.cell(Cell::Integer(3)).unwrap()), f64::NEG_INFINITY);
        let density = Outside::Numbers(Tails::beyond((0.0, f64::INFINITY), (1.0, 2.0), None));
        let at = |x: f64| density.log_share(&density.cell(Cell::Number(x)).unwrap()).exp();
        let step = 1e-3;
        let sum: f64 = (0..400_000).map(|n| at(-step * (f64::from(n) + 0.5)) * step).sum();
        assert!((sum - 1.0).abs() < 1e-2, "{sum}");
    }

    #[test]
    fn no_number_is_impossible() {
        let range = Outside::Numbers(Tails::of_range(0.0, 7.0));
        let labels = Outside::Numbers(Tails::of_numbers(&[0.0, 1.0, 2.0, 7.0], 0));
        let log = |outside: &Outside, x: f64| {
            let log = outside.log_share(&outside.cell(Cell::Number(x)).unwrap());
            assert!(log.is_finite() && log < 0.0, "{x}: {log}");
            log
        };
        for x in [8.0, 1e3, 1e9, 1e15, 1e17, 1e300] {
            log(&range, x);
            log(&labels, -x);
        }
        // Numbers between labels are less likely than numbers beyond them.
        for x in [0.5, 1.0 / 3.0, 6.9] {
            assert!(log(&labels, x) < log(&labels, 4.0), "{x}");
        }
    }
}

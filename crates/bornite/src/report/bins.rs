//! Bins of a column's values, for histograms and heat maps.

use super::axis::short;
use crate::basis::Part;
use crate::domain::Domain;
use crate::model::{ColumnDistribution, Event, Model, ModelError, Posterior};
use crate::query::Evidence;

/// The probability in each tail of a numeric column that bins do not cover.
const TAIL: f64 = 0.002;

/// The bins of one column, in order.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    column: usize,
    pub(super) kind: BinKind,
}

#[derive(Clone, Debug)]
pub(super) enum BinKind {
    /// Intervals between consecutive numbers, which are also given as values of the variable.
    Edges { numbers: Vec<f64>, values: Vec<f64> },
    /// Sets of values of the single variable, with a label each.
    Sets { labels: Vec<String>, sets: Vec<Vec<usize>> },
    /// Intervals between consecutive whole numbers, for a column with several variables.
    Compound { numbers: Vec<i64>, labels: Vec<String> },
}

impl Bins {
    /// At most `count` bins for a column with this distribution.
    pub(super) fn new(
        model: &Model,
        column: usize,
        distribution: &ColumnDistribution<'_>,
        count: usize,
    ) -> Result<Self, ModelError> {
        let schema = &model.schema().columns()[column];
        let coding = schema.kind.coding();
        let kind = match coding.domains()[..] {
            [Domain::Finite(_)] if coding.is_words(schema.storage) => {
                Self::of_labels(distribution, count)?
            }
            [Domain::Finite(_)] => Self::of_whole_numbers(distribution, count)?,
            [Domain::Circle(length)] => {
                let values = even(0.0, length, count);
                let number = |&u: &f64| coding.number(schema.storage, &[u]).unwrap_or(f64::NAN);
                BinKind::Edges { numbers: values.iter().map(number).collect(), values }
            }
            [_] => {
                let (low, high) = ends(distribution)?;
                let numbers = even(low, high, count);
                let values = numbers.iter().map(|&x| coding.nearest(x)[0]).collect();
                BinKind::Edges { values, numbers }
            }
            _ => {
                let (low, high) = ends(distribution)?;
                let mut numbers: Vec<i64> =
                    even(low, high + 1.0, count).iter().map(|x| x.round() as i64).collect();
                numbers.dedup();
                let label = |bin: &[i64]| {
                    if !coding.is_time() {
                        return format!("{} to {}", bin[0], bin[1] - 1);
                    }
                    let text = |x: i64| coding.decode(&coding.nearest(x as f64));
                    let [low, high] = [text(bin[0]), text(bin[1] - 1)];
                    format!("{} to {}", low.text().unwrap_or(""), high.text().unwrap_or(""))
                };
                let labels = numbers.windows(2).map(label).collect();
                BinKind::Compound { numbers, labels }
            }
        };
        Ok(Self { column, kind })
    }

    /// Bins of whole numbers; neighbors are merged if there are many.
    fn of_whole_numbers(
        distribution: &ColumnDistribution<'_>,
        count: usize,
    ) -> Result<BinKind, ModelError> {
        let all = distribution.probabilities()?.unwrap_or_default();
        let (mut first, mut last) = (0, all.len().saturating_sub(1));
        if all.len() > count {
            let mut sum = 0.0;
            let sums: Vec<f64> = all
                .iter()
                .map(|(_, p)| {
                    sum += p;
                    sum
                })
                .collect();
            first = sums.iter().position(|s| *s > TAIL).unwrap_or(0);
            last = sums.iter().position(|s| *s >= 1.0 - TAIL).unwrap_or(last).max(first);
        }
        let size = (last + 1 - first).div_ceil(count.max(1)).max(1);
        let sets: Vec<Vec<usize>> = (first..=last)
            .step_by(size)
            .map(|start| (start..(start + size).min(last + 1)).collect())
            .collect();
        let label = |set: &Vec<usize>| match &set[..] {
            [only] => all[*only].0.clone(),
            [from, .., to] => format!("{}–{}", all[*from].0, all[*to].0),
            [] => String::new(),
        };
        Ok(BinKind::Sets { labels: sets.iter().map(label).collect(), sets })
    }

    /// Bins of the most likely labels, with all others merged.
    fn of_labels(
        distribution: &ColumnDistribution<'_>,
        count: usize,
    ) -> Result<BinKind, ModelError> {
        let all = distribution.probabilities()?.unwrap_or_default();
        let mut order: Vec<usize> = (0..all.len()).collect();
        if all.len() > count {
            order.sort_by(|&a, &b| all[b].1.total_cmp(&all[a].1).then(a.cmp(&b)));
        }
        let shown = if all.len() > count { count - 1 } else { all.len() };
        let mut sets: Vec<Vec<usize>> = order.iter().take(shown).map(|&v| vec![v]).collect();
        let mut labels: Vec<String> = order.iter().take(shown).map(|&v| all[v].0.clone()).collect();
        if shown < all.len() {
            sets.push(order[shown..].to_vec());
            labels.push(format!("{} others", all.len() - shown));
        }
        Ok(BinKind::Sets { labels, sets })
    }

    pub(super) fn len(&self) -> usize {
        match &self.kind {
            BinKind::Edges { numbers, .. } => numbers.len() - 1,
            BinKind::Sets { sets, .. } => sets.len(),
            BinKind::Compound { numbers, .. } => numbers.len() - 1,
        }
    }

    /// The label of a bin.
    pub(super) fn label(&self, bin: usize) -> String {
        match &self.kind {
            BinKind::Edges { numbers, .. } => {
                format!("{} to {}", short(numbers[bin]), short(numbers[bin + 1]))
            }
            BinKind::Sets { labels, .. } | BinKind::Compound { labels, .. } => labels[bin].clone(),
        }
    }

    /// The range of the numbers; `None` for labels.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        match &self.kind {
            BinKind::Edges { numbers, .. } => Some((numbers[0], numbers[numbers.len() - 1])),
            BinKind::Compound { numbers, .. } => {
                Some((numbers[0] as f64, numbers[numbers.len() - 1] as f64))
            }
            BinKind::Sets { .. } => None,
        }
    }

    /// The bin of an encoded row; `None` if the cell is missing or outside of all bins.
    pub(super) fn of_row(&self, model: &Model, row: &[f64]) -> Option<usize> {
        let cell = &row[model.schema().variables_of(self.column)];
        if cell[0].is_nan() {
            return None;
        }
        let between = |count: usize, below: &dyn Fn(usize) -> bool| {
            // The number of edges at or below the value.
            let at = (0..=count).take_while(|&n| below(n)).count();
            (1..=count).contains(&at).then(|| at - 1)
        };
        match &self.kind {
            BinKind::Edges { values, .. } => {
                let last = values.len() - 1;
                let bin = between(last, &|n| values[n] <= cell[0]);
                // The last bin includes its upper end.
                if bin.is_none() && cell[0] == values[last] { Some(last - 1) } else { bin }
            }
            BinKind::Sets { sets, .. } => sets.iter().position(|s| s.contains(&(cell[0] as usize))),
            BinKind::Compound { numbers, .. } => {
                let c = &model.schema().columns()[self.column];
                let x = c.kind.coding().number(c.storage, cell)?;
                between(numbers.len() - 1, &|n| numbers[n] as f64 <= x)
            }
        }
    }

    /// The probability of each bin.
    pub(super) fn masses(
        &self,
        distribution: &ColumnDistribution<'_>,
    ) -> Result<Vec<f64>, ModelError> {
        match (&self.kind, distribution.first()) {
            (BinKind::Edges { values, .. }, Posterior::Density(density)) => {
                let last = values.len() - 1;
                let mut below: Vec<f64> = values.iter().map(|&u| density.below(u)).collect();
                // The last bin includes its upper end.
                below[last] = density.cdf(values[last]);
                Ok(below.windows(2).map(|w| w[1] - w[0]).collect())
            }
            (BinKind::Sets { sets, .. }, Posterior::Finite(p)) => {
                Ok(sets.iter().map(|set| set.iter().map(|&v| p[v]).sum()).collect())
            }
            (BinKind::Compound { numbers, .. }, Posterior::Finite(_) | Posterior::Density(_)) => {
                let below = numbers.iter().map(|&x| distribution.cdf(x as f64 - 1.0));
                let below: Vec<f64> = below.collect::<Result<_, _>>()?;
                Ok(below.windows(2).map(|w| w[1] - w[0]).collect())
            }
            (_, Posterior::Point(_))
            | (BinKind::Edges { .. }, Posterior::Finite(_))
            | (BinKind::Sets { .. }, Posterior::Density(_)) => Ok(vec![0.0; self.len()]),
        }
    }

    /// The event that the column is in a bin.
    pub(super) fn known(&self, model: &Model, bin: usize) -> Result<Event, ModelError> {
        let schema = model.schema();
        let variable = schema.variables_of(self.column).start;
        let part = match &self.kind {
            BinKind::Edges { values, .. } => {
                Part::Interval { low: values[bin], high: values[bin + 1] }
            }
            BinKind::Sets { sets, .. } => Part::Values(sets[bin].clone()),
            BinKind::Compound { numbers, .. } => {
                let (low, high) = (numbers[bin] as f64, numbers[bin + 1] as f64);
                let name = &schema.columns()[self.column].name;
                let (low, high) = (std::ops::Bound::Included(low), std::ops::Bound::Excluded(high));
                return Event::interval(schema, name, low, high);
            }
        };
        Event::from_blocks(schema, vec![vec![(variable, Evidence::In(part))]])
    }
}

/// The range of nearly all values of a numeric column.
fn ends(distribution: &ColumnDistribution<'_>) -> Result<(f64, f64), ModelError> {
    let (low, high) = (distribution.quantile(TAIL)?, distribution.quantile(1.0 - TAIL)?);
    let least = 1e-9 * low.abs().max(high.abs()).max(1e-300);
    Ok(if high - low > least { (low, high) } else { (low - 0.5, low + 0.5) })
}

/// Evenly spaced numbers.
fn even(low: f64, high: f64, count: usize) -> Vec<f64> {
    (0..=count).map(|n| low + (high - low) * n as f64 / count as f64).collect()
}

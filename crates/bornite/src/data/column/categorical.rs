//! Columns with a set of labels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::infer::Other;
use super::{
    Cell, Coding, ColumnKind, Decoded, Encoder, Ends, MAX_VALUES, NOT_NUMBERS, OTHER, Outside,
    Parts, Problem, finite_set, label_range, labels_within, nearest_label, numeric_labels,
    outside_of_labels,
};
use crate::data::Storage;
use crate::domain::Domain;
use crate::names::shown;

/// One of a set of labels. A finite variable. If the cells are numbers, the labels are numbers in ascending order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Categorical {
    /// The labels.
    pub labels: Vec<String>,
    /// Whether one more value, the catch-all value, represents all other labels.
    pub has_other: bool,
}

/// The maximum number of labels in a summary.
const SHOWN: usize = 6;

impl Categorical {
    /// The most common labels of a column; the others are merged into the catch-all value.
    pub(super) fn of(facts: &Facts<'_>) -> Self {
        let options = facts.options;
        let mut counts = facts.counts();
        let distinct = counts.len();
        let least = if distinct > options.max_labels { 2 } else { 1 };
        counts.retain(|c| c.1 >= options.min_count.max(least));
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counts.truncate(options.max_labels);
        let merged = counts.len() < distinct || counts.is_empty();
        let has_other = match options.other {
            Other::Auto => merged || distinct == 1,
            Other::Always => true,
            Other::Never => merged,
        };
        let mut labels: Vec<String> = counts.into_iter().map(|c| c.0).collect();
        labels.retain(|l| !has_other || l != OTHER);
        if facts.is_text() {
            labels.sort_unstable();
        } else {
            let number = |l: &String| l.parse().unwrap_or(f64::NAN);
            labels.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        Self { labels, has_other }
    }

    /// The kind of a column without any observed cell.
    pub(super) fn unobserved() -> Self {
        Self { labels: Vec::new(), has_other: true }
    }

    fn place(&self, found: Option<usize>) -> Result<f64, Problem> {
        found.or(self.other()).map(|n| n as f64).ok_or(Problem::Unseen)
    }
}

impl From<Categorical> for ColumnKind {
    fn from(kind: Categorical) -> Self {
        ColumnKind::Categorical(kind)
    }
}

impl Coding for Categorical {
    fn name(&self) -> &'static str {
        "categorical"
    }

    fn summary(&self) -> String {
        let labels = self.labels.iter().take(SHOWN);
        let mut named: Vec<String> = labels.map(|label| shown(label)).collect();
        if self.labels.len() > named.len() {
            named.push("…".to_owned());
        }
        if self.has_other {
            named.push(OTHER.to_owned());
        }
        format!("{}: {}", self.labels.len(), named.join(", "))
    }

    fn problem(&self, storage: Storage) -> Option<&'static str> {
        let count = self.labels.len();
        if count == 0 && !self.has_other || count as u64 >= MAX_VALUES {
            return Some("it has no labels, or too many");
        }
        let mut sorted: Vec<&String> = self.labels.iter().collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|w| w[0] == w[1]) {
            return Some("a label appears twice");
        }
        let numbers = numeric_labels(&self.labels);
        let in_order = numbers.is_some_and(|n| n.windows(2).all(|w| w[0] < w[1]));
        (storage != Storage::Labels && !in_order).then_some("its labels are not numbers in order")
    }

    fn why_no_atoms(&self, are_numbers: bool) -> Option<&'static str> {
        (!are_numbers).then_some(NOT_NUMBERS)
    }

    fn domains(&self) -> Vec<Domain> {
        vec![Domain::Finite(self.labels.len() + usize::from(self.has_other))]
    }

    fn is_words(&self, storage: Storage) -> bool {
        storage == Storage::Labels || self.labels.is_empty()
    }

    fn is_ordered(&self, storage: Storage) -> bool {
        storage != Storage::Labels
    }

    fn encoder(&self, storage: Storage) -> Encoder<'_> {
        let numbers = numeric_labels(&self.labels).filter(|_| storage != Storage::Labels);
        if let Some(numbers) = numbers {
            return Box::new(move |cell, out| {
                let found = cell.number().and_then(|x| numbers.iter().position(|&l| l == x));
                out[0] = self.place(found)?;
                Ok(0.0)
            });
        }
        let labels: BTreeMap<&str, usize> =
            self.labels.iter().enumerate().map(|(n, l)| (l.as_str(), n)).collect();
        Box::new(move |cell, out| {
            let found = match cell {
                Cell::Text(t) => labels.get(t),
                Cell::Integer(x) => labels.get(x.to_string().as_str()),
                Cell::Number(x) => labels.get(x.to_string().as_str()),
            };
            out[0] = self.place(found.copied())?;
            Ok(0.0)
        })
    }

    fn decode(&self, values: &[f64]) -> Decoded<'_> {
        match self.labels.get(values[0] as usize) {
            Some(label) => Decoded::Text(label),
            // A column that never had a value decodes to a missing cell.
            None if self.labels.is_empty() => Decoded::Missing,
            None => Decoded::Text(OTHER),
        }
    }

    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn other(&self) -> Option<usize> {
        self.has_other.then_some(self.labels.len())
    }

    fn outside(&self, storage: Storage) -> Option<Outside> {
        (!self.has_other).then(|| outside_of_labels(&self.labels, storage))
    }

    fn spread(&self, storage: Storage) -> Option<Outside> {
        Some(outside_of_labels(&self.labels, storage))
    }

    fn set(&self, values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str> {
        Ok(finite_set(values))
    }

    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str> {
        labels_within(&self.labels, ends)
    }

    fn term(&self, storage: Storage, _place: usize, x: f64) -> Option<f64> {
        let label = self.labels.get(x as usize).filter(|_| storage != Storage::Labels)?;
        label.parse().ok()
    }

    fn nearest(&self, x: f64) -> Vec<f64> {
        vec![nearest_label(&self.labels, x)]
    }

    fn range(&self) -> (f64, f64) {
        label_range(&self.labels)
    }
}

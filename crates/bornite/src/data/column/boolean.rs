//! Columns with two labels.

use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::{
    Cell, Coding, ColumnKind, Decoded, Encoder, Ends, NOT_NUMBERS, Outside, Parts, Problem,
    finite_set, label_range, labels_within, nearest_label, numeric_labels, outside_of_labels,
};
use crate::data::Storage;
use crate::domain::Domain;
use crate::names::shown;

/// The pairs of labels that are recognized as no and yes.
const PAIRS: [[&str; 2]; 5] =
    [["false", "true"], ["no", "yes"], ["f", "t"], ["n", "y"], ["off", "on"]];

/// One of two labels, no before yes. A finite variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boolean {
    /// The two labels.
    pub labels: [String; 2],
}

impl Boolean {
    /// The labels 0 and 1.
    pub(super) fn binary() -> Self {
        Self { labels: ["0".to_owned(), "1".to_owned()] }
    }

    /// The labels of a column, if it has exactly two.
    pub(super) fn of(facts: &Facts<'_>) -> Option<Self> {
        let counts = facts.counts();
        let [(a, _), (b, _)] = &counts[..] else { return None };
        let swapped = match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a > b,
            _ => false,
        };
        let labels = if swapped { [b.clone(), a.clone()] } else { [a.clone(), b.clone()] };
        Some(Self { labels })
    }

    /// Whether the labels are a known pair, such as no and yes.
    pub(super) fn is_usual(&self) -> bool {
        let lower = self.labels.clone().map(|l| l.to_lowercase());
        PAIRS.iter().any(|pair| lower == *pair)
    }

    /// The value of a cell, by text or by number. Any two labels that are not numbers also accept 0 and 1; a known pair
    /// such as no and yes also accepts the other known pairs.
    fn value(&self, cell: Cell<'_>) -> Option<f64> {
        let numbers = numeric_labels(&self.labels);
        if let Cell::Text(t) = cell {
            let place = |labels: &[&str]| labels.iter().position(|l| l.eq_ignore_ascii_case(t));
            let own = place(&self.labels.each_ref().map(String::as_str));
            let is_truth = self.is_usual() || numbers.as_deref() == Some(&[0.0, 1.0]);
            let usual = || PAIRS.iter().find_map(|pair| place(pair)).filter(|_| is_truth);
            if let Some(n) = own.or_else(usual) {
                return Some(n as f64);
            }
        }
        let x = cell.number()?;
        let numbers = numbers.unwrap_or_else(|| vec![0.0, 1.0]);
        numbers.iter().position(|&l| l == x).map(|n| n as f64)
    }
}

impl From<Boolean> for ColumnKind {
    fn from(kind: Boolean) -> Self {
        ColumnKind::Boolean(kind)
    }
}

impl Coding for Boolean {
    fn name(&self) -> &'static str {
        "Boolean"
    }

    fn summary(&self) -> String {
        self.labels.iter().map(|label| shown(label)).collect::<Vec<_>>().join(", ")
    }

    fn problem(&self, storage: Storage) -> Option<&'static str> {
        let numbers = numeric_labels(&self.labels);
        if numbers.as_ref().is_some_and(|n| n[0] >= n[1]) {
            return Some("its two labels are numbers that are not in order");
        }
        let fits = storage == Storage::Labels || numbers.is_some();
        (self.labels[0] == self.labels[1] || !fits)
            .then_some("its two labels are not two numbers or texts")
    }

    fn why_no_atoms(&self, are_numbers: bool) -> Option<&'static str> {
        (!are_numbers).then_some(NOT_NUMBERS)
    }

    fn domains(&self) -> Vec<Domain> {
        vec![Domain::Finite(2)]
    }

    fn is_words(&self, _storage: Storage) -> bool {
        true
    }

    fn encoder(&self, _storage: Storage) -> Encoder<'_> {
        Box::new(|cell, out| {
            out[0] = self.value(cell).ok_or(Problem::Unseen)?;
            Ok(0.0)
        })
    }

    fn decode(&self, values: &[f64]) -> Decoded<'_> {
        Decoded::Text(&self.labels[values[0] as usize])
    }

    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn yes(&self) -> Option<&str> {
        Some(&self.labels[1])
    }

    /// The known pair that contains this label, capitalized in the same way.
    fn in_words_of(&self, label: &str) -> Option<[String; 2]> {
        self.value(Cell::Text(label))?;
        let own = self.labels.each_ref().map(String::as_str);
        let mut pairs = std::iter::once(&own).chain(&PAIRS).chain(&[["0", "1"]]);
        let pair = pairs.find(|pair| pair.iter().any(|word| word.eq_ignore_ascii_case(label)))?;
        if pair.contains(&label) {
            return Some(pair.map(str::to_owned));
        }
        let is_upper = |text: &str| !text.chars().any(char::is_lowercase);
        let capital = |word: &str| {
            let mut letters = word.chars();
            let first = letters.next().map(|c| c.to_ascii_uppercase());
            first.into_iter().chain(letters.map(|c| c.to_ascii_lowercase())).collect()
        };
        Some(pair.map(|word| match label.chars().next() {
            _ if is_upper(label) && (label.len() > 1 || word.len() == 1) => word.to_uppercase(),
            Some(first) if first.is_uppercase() => capital(word),
            _ => word.to_lowercase(),
        }))
    }

    fn outside(&self, storage: Storage) -> Option<Outside> {
        Some(outside_of_labels(&self.labels, storage))
    }

    fn set(&self, values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str> {
        Ok(finite_set(values))
    }

    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str> {
        labels_within(&self.labels, ends)
    }

    fn term(&self, _storage: Storage, _place: usize, x: f64) -> Option<f64> {
        numeric_labels(&self.labels).map_or(Some(x), |labels| labels.get(x as usize).copied())
    }

    fn nearest(&self, x: f64) -> Vec<f64> {
        vec![nearest_label(&self.labels, x)]
    }

    fn range(&self) -> (f64, f64) {
        label_range(&self.labels)
    }
}

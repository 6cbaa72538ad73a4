//! Columns in which missing is a value.

use std::sync::Arc;

use super::{
    Cell, Coding, ColumnKind, Decoded, Encoder, Ends, MAX_VALUES, Outside, OutsideSet, Parts,
};
use crate::basis::{Basis, BasisError, Part};
use crate::data::Storage;
use crate::domain::Domain;
use crate::query::Evidence;

/// The value of a continuous variable for a missing cell: beyond all others, which are in [0, 1].
const BEYOND: f64 = 2.0;

/// A cell of another kind, or a missing one with its own probability.
///
/// Missing is one more value of the first variable: the last value of a finite variable, or an atom beyond all other
/// values of a continuous one. The remaining variables of a missing cell are unobserved.
#[derive(Clone, Debug, PartialEq)]
pub struct Optional {
    of: Box<ColumnKind>,
}

impl From<Optional> for ColumnKind {
    fn from(kind: Optional) -> Self {
        ColumnKind::Optional(kind)
    }
}

impl Optional {
    /// Adds a value for missing cells to a kind.
    ///
    /// # Errors
    /// The kind cannot have a value for missing cells; the error says why.
    pub fn new(of: ColumnKind) -> Result<Self, &'static str> {
        match of.coding().why_not_optional() {
            Some(reason) => Err(reason),
            None => Ok(Self { of: Box::new(of) }),
        }
    }

    /// The kind of the cells that are not missing.
    pub fn of(&self) -> &ColumnKind {
        &self.of
    }

    fn inner(&self) -> &dyn Coding {
        self.of.coding()
    }

    /// The value of the first variable in a missing cell.
    fn place(&self) -> f64 {
        self.inner().num_values().map_or(BEYOND, |values| values as f64)
    }

    fn is_missing(&self, values: &[f64]) -> bool {
        values.first() == Some(&self.place())
    }

    /// Excludes missing cells from evidence.
    fn known(&self, mut parts: Parts) -> Parts {
        match parts.iter_mut().find(|(place, _)| *place == 0) {
            Some((_, Evidence::In(Part::Interval { high, .. }))) => *high = high.min(self.place()),
            Some((_, Evidence::Value(_) | Evidence::In(Part::Values(_)))) => {}
            Some((_, unknown @ Evidence::Unknown)) => *unknown = self.evidence(),
            None => parts.insert(0, (0, self.evidence())),
        }
        parts
    }

    fn all_known(&self, parts: Vec<Parts>) -> Vec<Parts> {
        parts.into_iter().map(|parts| self.known(parts)).collect()
    }

    /// The evidence that the first variable has any value except that for missing cells.
    fn evidence(&self) -> Evidence {
        Evidence::In(match self.inner().num_values() {
            Some(values) => Part::Values((0..values).collect()),
            None => Part::Interval { low: f64::NEG_INFINITY, high: BEYOND },
        })
    }
}

impl Coding for Optional {
    fn name(&self) -> &'static str {
        self.inner().name()
    }

    fn summary(&self) -> String {
        self.inner().summary() + "; or missing"
    }

    fn problem(&self, storage: Storage) -> Option<&'static str> {
        let is_full =
            || self.inner().num_values().is_some_and(|values| values as u64 >= MAX_VALUES);
        self.inner().problem(storage).or_else(|| is_full().then_some("it has too many values"))
    }

    fn format_version(&self) -> u32 {
        self.inner().format_version().max(4)
    }

    fn of_known(&self) -> Option<&ColumnKind> {
        Some(self.of())
    }

    fn why_not_optional(&self) -> Option<&'static str> {
        Some("missing cells are already a value")
    }

    fn why_no_atoms(&self, are_numbers: bool) -> Option<&'static str> {
        self.inner().why_no_atoms(are_numbers)
    }

    fn domains(&self) -> Vec<Domain> {
        let mut domains = self.inner().domains();
        if let Some(first) = domains.first_mut() {
            *first = match &*first {
                Domain::Finite(values) => Domain::Finite(*values + 1),
                // A circle has no place beyond all others. Its functions are the same on the interval.
                Domain::Circle(period) => {
                    Domain::with_atoms([BEYOND], Domain::Interval(0.0, *period))
                }
                Domain::Real | Domain::Interval(..) | Domain::HalfLine(_) | Domain::Atoms(_) => {
                    let points: Vec<f64> = first.atoms().iter().copied().chain([BEYOND]).collect();
                    Domain::with_atoms(points, first.rest().clone())
                }
            };
        }
        domains
    }

    fn num_values(&self) -> Option<usize> {
        self.inner().num_values().map(|values| values + 1)
    }

    fn suffix(&self, place: usize) -> String {
        self.inner().suffix(place)
    }

    fn basis(&self, place: usize, functions: usize) -> Result<Basis, BasisError> {
        if place > 0 {
            return self.inner().basis(place, functions);
        }
        if let Some(values) = self.inner().num_values() {
            return Ok(Basis::indicator(values + 1));
        }
        let basis = self.inner().basis(0, functions)?;
        let points = basis.atoms().iter().copied().chain([BEYOND]).collect::<Vec<f64>>();
        basis.rest().clone().with_atoms(points)
    }

    fn has_grid(&self) -> bool {
        self.inner().has_grid()
    }

    fn is_words(&self, storage: Storage) -> bool {
        self.inner().is_words(storage)
    }

    fn is_ordered(&self, storage: Storage) -> bool {
        self.inner().is_ordered(storage)
    }

    fn encoder(&self, storage: Storage) -> Encoder<'_> {
        self.inner().encoder(storage)
    }

    fn are_values(&self, bytes: &Arc<Vec<u8>>) -> bool {
        self.inner().are_values(bytes)
    }

    fn decode(&self, values: &[f64]) -> Decoded<'_> {
        if self.is_missing(values) { Decoded::Missing } else { self.inner().decode(values) }
    }

    fn missing(&self) -> Option<f64> {
        Some(self.place())
    }

    fn present(&self) -> Option<Evidence> {
        Some(self.evidence())
    }

    fn labels(&self) -> &[String] {
        self.inner().labels()
    }

    fn yes(&self) -> Option<&str> {
        self.inner().yes()
    }

    fn in_words_of(&self, label: &str) -> Option<[String; 2]> {
        self.inner().in_words_of(label)
    }

    fn other(&self) -> Option<usize> {
        self.inner().other()
    }

    fn outside(&self, storage: Storage) -> Option<Outside> {
        self.inner().outside(storage)
    }

    fn outside_cell(&self, storage: Storage, cell: Cell<'_>) -> Option<OutsideSet> {
        self.inner().outside_cell(storage, cell)
    }

    fn spread(&self, storage: Storage) -> Option<Outside> {
        self.inner().spread(storage)
    }

    fn expected_outside(&self) -> Option<f64> {
        self.inner().expected_outside()
    }

    fn is_time(&self) -> bool {
        self.inner().is_time()
    }

    fn read_number(&self, text: &str) -> Option<f64> {
        self.inner().read_number(text)
    }

    fn part(&self, name: &str, values: &[String]) -> Option<Vec<Parts>> {
        self.inner().part(name, values).map(|parts| self.all_known(parts))
    }

    fn part_values(&self, name: &str) -> Option<Vec<i64>> {
        self.inner().part_values(name)
    }

    fn has_density(&self, values: &[f64]) -> bool {
        !self.is_missing(values) && self.inner().has_density(values)
    }

    fn exactly(&self, values: &[f64]) -> Parts {
        if self.is_missing(values) {
            return vec![(0, Evidence::Value(self.place()))];
        }
        self.known(self.inner().exactly(values))
    }

    fn ambiguous(&self) -> Option<usize> {
        self.inner().ambiguous()
    }

    fn same_cell(&self, values: &[f64]) -> Option<Vec<usize>> {
        if self.is_missing(values) { None } else { self.inner().same_cell(values) }
    }

    fn set(&self, values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str> {
        self.inner().set(values).map(|parts| self.all_known(parts))
    }

    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str> {
        self.inner().interval(ends).map(|parts| self.all_known(parts))
    }

    fn term(&self, storage: Storage, place: usize, x: f64) -> Option<f64> {
        if place == 0 && x == self.place() { None } else { self.inner().term(storage, place, x) }
    }

    fn base(&self) -> f64 {
        self.inner().base()
    }

    fn number(&self, storage: Storage, values: &[f64]) -> Option<f64> {
        if self.is_missing(values) { None } else { self.inner().number(storage, values) }
    }

    fn number_above(&self, storage: Storage, values: &[f64]) -> Option<f64> {
        if self.is_missing(values) { None } else { self.inner().number_above(storage, values) }
    }

    fn position(&self, x: f64) -> Option<f64> {
        self.inner().position(x)
    }

    fn end(&self, x: f64) -> Option<f64> {
        self.inner().end(x)
    }

    fn nearest(&self, x: f64) -> Vec<f64> {
        self.inner().nearest(x)
    }

    fn range(&self) -> (f64, f64) {
        self.inner().range()
    }

    fn log_spread(&self) -> f64 {
        self.inner().log_spread()
    }

    fn shortened(&self) -> Option<ColumnKind> {
        Some(Self::new(self.inner().shortened()?).ok()?.into())
    }
}

//! The distribution of one column.

use std::ops::Bound;
use std::sync::Arc;

use super::event::intersect;
use super::mode::{ModeSearch, PrefixSearch};
use super::posterior::{Density, Posterior};
use super::{Event, Model, ModelError};
use crate::data::{Cell, ColumnSchema};
use crate::mixture::log_sum;
use crate::ops::finite_quantile;
use crate::query::{Evidence, Query};

/// The distribution of one column, given the evidence about a row. If missing is a value of the column, this is the
/// distribution of the cells that are not missing.
///
/// Probabilities, quantiles and the means of finite columns are exact up to rounding. The mean of a continuous column
/// is computed by quadrature, and its mode by a search.
#[derive(Debug)]
pub struct ColumnDistribution<'m> {
    model: &'m Model,
    column: usize,
    cases: Arc<[Query]>,
    /// The distribution of the column's first variable.
    first: Posterior,
}

impl Model {
    /// Computes the distribution of a column, given evidence about the row and the model's own evidence.
    ///
    /// Cost: one pass up the circuit, and one down to the column.
    ///
    /// # Errors
    /// There is no such column, or the evidence has probability 0.
    pub fn distribution(
        &self,
        column: &str,
        known: &Event,
    ) -> Result<ColumnDistribution<'_>, ModelError> {
        let column = self.schema.find(column)?;
        let known = known.and(&self.schema, &self.given)?;
        let mut found = self.distributions_of(&[column], known.cases().to_vec())?;
        match found.pop() {
            Some(distribution) => Ok(distribution),
            None => unreachable!("one column has one distribution"),
        }
    }

    /// The distributions of columns, by position, given the model's evidence.
    pub(crate) fn distributions(
        &self,
        columns: &[usize],
    ) -> Result<Vec<ColumnDistribution<'_>>, ModelError> {
        self.distributions_of(columns, self.given.cases().to_vec())
    }

    /// The distributions of columns, given that one of the cases holds. One pass up and one pass down computes all of
    /// them, plus one of each for every column in which missing is a value, because its distribution is conditioned on
    /// a present cell.
    pub(crate) fn distributions_of(
        &self,
        columns: &[usize],
        cases: Vec<Query>,
    ) -> Result<Vec<ColumnDistribution<'_>>, ModelError> {
        let cases: Arc<[Query]> = cases.into();
        let first = |column: usize| self.schema.variables_of(column).start;
        let is_plain = |column: &usize| self.schema.present(*column).is_none();
        let plain: Vec<usize> = columns.iter().copied().filter(is_plain).map(first).collect();
        let shared = (!plain.is_empty()).then(|| self.posteriors(&cases, &plain)).transpose()?;
        let of = |&column: &usize| {
            let (first, cases) = match (&shared, self.schema.present(column)) {
                (Some(shared), None) => (shared.of(first(column))?, cases.clone()),
                (_, present) => {
                    // Condition on this column only: other columns may be missing in the same rows.
                    let mut known = Query::unknown(self.schema.num_variables());
                    let variables = self.mixture.variables();
                    known.set(variables, first(column), present.unwrap_or(Evidence::Unknown))?;
                    let known = cases.iter().filter_map(|c| intersect(variables, c, &known));
                    let known: Arc<[Query]> = known.collect();
                    (self.posterior(first(column), &known)?, known)
                }
            };
            Ok(ColumnDistribution { model: self, column, cases, first })
        };
        columns.iter().map(of).collect()
    }
}

impl<'m> ColumnDistribution<'m> {
    /// The distribution of a column with a single variable.
    pub(super) fn of_variable(model: &'m Model, column: usize, first: Posterior) -> Self {
        Self { model, column, cases: Arc::new([]), first }
    }
}

impl ColumnDistribution<'_> {
    /// The position of the column.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    /// The distribution of the column's first variable.
    pub(crate) fn first(&self) -> &Posterior {
        &self.first
    }

    /// The density p(x) of a column of real numbers, in the units of the data, or the probability of the nearest grid
    /// point. `None` for other columns, and if the evidence determines the value.
    pub fn density(&self, x: f64) -> Option<f64> {
        let Posterior::Density(density) = &self.first else { return None };
        Some(match self.model.schema.encode_nearest(self.column, Cell::Number(x)) {
            Ok((values, slope)) => density.density(values[0]) * slope.exp(),
            Err(_) => 0.0,
        })
    }

    /// The probability P(X ≤ x).
    ///
    /// A periodic column starts at its origin.
    ///
    /// # Errors
    /// The column contains text, which has no order.
    pub fn cdf(&self, x: f64) -> Result<f64, ModelError> {
        let below = |y: Option<f64>| f64::from(u8::from(y.is_some_and(|y| y <= x)));
        if self.is_compound() {
            return self.compound_cdf(x);
        }
        match &self.first {
            Posterior::Point(value) => Ok(below(self.number(&[*value]))),
            Posterior::Density(d) => {
                Ok(d.below(self.schema().kind.coding().end(x).unwrap_or(f64::NAN)))
            }
            Posterior::Finite(p) => {
                let numbers = self.numbers().ok_or_else(|| self.no_numbers("order"))?;
                let pairs = || p.iter().zip(&numbers);
                let mass: f64 = pairs().map(|(p, _)| p).sum();
                Ok(pairs().filter(|(_, y)| **y <= x).map(|(p, _)| p).sum::<f64>() / mass)
            }
        }
    }

    /// P(X ≤ x) of a compound column, as the probability of the cases with X ≤ x divided by that of all cases.
    fn compound_cdf(&self, x: f64) -> Result<f64, ModelError> {
        let schema = &self.model.schema;
        let known =
            Event::interval(schema, &self.schema().name, Bound::Unbounded, Bound::Included(x))?;
        let variables = self.model.mixture.variables();
        let both: Vec<Query> = known
            .cases()
            .iter()
            .flat_map(|a| self.cases.iter().filter_map(|b| intersect(variables, a, b)))
            .collect();
        let log = log_sum(&self.model.log_cases(&both)?);
        Ok((log - log_sum(&self.model.log_cases(&self.cases)?)).exp().min(1.0))
    }

    fn schema(&self) -> &ColumnSchema {
        &self.model.schema.columns()[self.column]
    }

    /// Whether the column has several variables, ordered lexicographically like its cells.
    fn is_compound(&self) -> bool {
        self.model.schema.variables_of(self.column).len() > 1
    }

    /// The numbers of a finite column's values; `None` for text. The catch-all value for other labels has no number.
    fn numbers(&self) -> Option<Vec<f64>> {
        self.model.finite_numbers(self.column)
    }

    /// The values of a finite column in order, with their probabilities; `None` for continuous columns and digits.
    ///
    /// # Errors
    /// Fails only if the model is corrupt.
    pub fn probabilities(&self) -> Result<Option<Vec<(String, f64)>>, ModelError> {
        let range = self.model.schema.variables_of(self.column);
        let domain = &self.model.mixture.variables()[range.start].domain;
        let Some(count) = domain.num_values().filter(|_| range.len() == 1) else {
            return Ok(None);
        };
        let p = |value: usize| match &self.first {
            Posterior::Finite(p) => p[value],
            Posterior::Point(x) => f64::from(u8::from(value as f64 == *x)),
            Posterior::Density(_) => f64::NAN,
        };
        let of = |value: usize| Ok((self.text(&[value as f64])?, p(value)));
        let missing = self.schema().kind.coding().missing();
        (0..missing.map_or(count, |missing| missing as usize))
            .map(of)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// The text of the cell with these values of the column's variables.
    pub(super) fn text(&self, values: &[f64]) -> Result<String, ModelError> {
        let schema = &self.model.schema;
        let mut row = vec![f64::NAN; schema.num_variables()];
        row[schema.variables_of(self.column)].copy_from_slice(values);
        Ok(schema.decode(&row)?.columns()[self.column].text(0).into_owned())
    }

    /// The number that these values of the column's variables represent; `None` for text.
    pub(super) fn number(&self, values: &[f64]) -> Option<f64> {
        let c = self.schema();
        c.kind.coding().number(c.storage, values)
    }

    /// The mean over values with a number; the catch-all value for other labels is excluded. For two labels, this is
    /// the probability of the second.
    ///
    /// A periodic column starts at its origin.
    ///
    /// # Errors
    /// The column contains text.
    pub fn mean(&self) -> Result<f64, ModelError> {
        if self.is_compound() {
            return self.compound_mean();
        }
        match &self.first {
            Posterior::Point(x) => self.number(&[*x]).ok_or_else(|| self.no_numbers("mean")),
            Posterior::Density(density) => Ok(self.density_mean(density)),
            Posterior::Finite(p) => {
                let numbers = self.numbers().ok_or_else(|| self.no_numbers("mean"))?;
                Ok(finite_mean(p, &numbers))
            }
        }
    }

    /// The sum of the mean contributions of the variables.
    fn compound_mean(&self) -> Result<f64, ModelError> {
        let c = self.schema();
        let coding = c.kind.coding();
        let mut mean = coding.base();
        for (place, variable) in self.model.schema.variables_of(self.column).enumerate() {
            let term =
                |x: f64| coding.term(c.storage, place, x).ok_or_else(|| self.no_numbers("mean"));
            mean += match self.model.posterior(variable, &self.cases)? {
                Posterior::Point(x) => term(x)?,
                Posterior::Density(_) => f64::NAN,
                Posterior::Finite(p) => {
                    let mut sum = 0.0;
                    for (x, p) in p.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                        sum += p * term(x as f64)?;
                    }
                    sum
                }
            };
        }
        Ok(mean)
    }

    fn no_numbers(&self, what: &'static str) -> ModelError {
        ModelError::NoNumbers { column: self.schema().name.clone(), what }
    }

    /// ∫ x(u) p(u) du plus the atoms. Panels become short towards both ends, where x(u) may be infinite.
    fn density_mean(&self, density: &Density) -> f64 {
        let mut sum: f64 = density.atoms().map(|(u, p)| p * self.term(u)).sum();
        for (n, (low, high)) in density.pieces().enumerate() {
            for node in self.model.number_nodes(self.column, low, high) {
                sum += node.weight * density.piece_density(n, node.x) * node.value;
            }
        }
        sum
    }

    fn term(&self, u: f64) -> f64 {
        self.model.term(self.column, u)
    }

    /// The values of the column's variables at the smallest number x with P(X ≤ x) ≥ level.
    ///
    /// # Errors
    /// The column contains text, which has no order, or the level is not between 0 and 1.
    pub(super) fn quantile_values(&self, level: f64) -> Result<Vec<f64>, ModelError> {
        check_level(level)?;
        if self.is_compound() {
            return self.compound_quantile(level);
        }
        match &self.first {
            Posterior::Point(x) => Ok(vec![*x]),
            Posterior::Density(density) => Ok(vec![density.quantile(level)]),
            Posterior::Finite(p) => {
                let numbers = self.numbers().ok_or_else(|| self.no_numbers("quantile"))?;
                Ok(vec![numbers_quantile(&p[..numbers.len()], level)])
            }
        }
    }

    /// The smallest number x with P(X ≤ x) ≥ level. A whole number above 2⁵³ that is not representable as a float is
    /// rounded up, so that its [`cdf`](Self::cdf) still reaches the level; a [question](Model::ask) returns it exactly.
    ///
    /// # Errors
    /// The column contains text, which has no order, or the level is not between 0 and 1.
    pub fn quantile(&self, level: f64) -> Result<f64, ModelError> {
        let values = self.quantile_values(level)?;
        let c = self.schema();
        let number = c.kind.coding().number_above(c.storage, &values);
        number.ok_or_else(|| self.no_numbers("quantile"))
    }

    /// Finds a quantile variable by variable: each variable divides the remaining level.
    fn compound_quantile(&self, level: f64) -> Result<Vec<f64>, ModelError> {
        let (mut cases, mut level) = (self.cases.to_vec(), level);
        let mut values = Vec::new();
        for variable in self.model.schema.variables_of(self.column) {
            let (digit, rest) = match self.model.posterior(variable, &cases)? {
                Posterior::Finite(p) => finite_quantile(&p, level),
                Posterior::Point(x) => (x as usize, level),
                Posterior::Density(_) => (0, level),
            };
            level = rest;
            cases = self.fixed(&cases, variable, digit as f64)?;
            values.push(digit as f64);
        }
        Ok(values)
    }

    /// Restricts the cases to those in which a variable has this value.
    fn fixed(&self, cases: &[Query], variable: usize, x: f64) -> Result<Vec<Query>, ModelError> {
        let variables = self.model.mixture.variables();
        let mut point = Query::unknown(variables.len());
        point.set(variables, variable, Evidence::Value(x))?;
        Ok(cases.iter().filter_map(|b| intersect(variables, b, &point)).collect())
    }

    /// The most likely values of the column's variables, and their probability if the column is finite.
    pub(super) fn mode_values(&self) -> Result<(Vec<f64>, Option<f64>), ModelError> {
        if self.is_compound() {
            return self.compound_mode();
        }
        match &self.first {
            Posterior::Point(x) => Ok((vec![*x], Some(1.0))),
            Posterior::Finite(p) => {
                let best = most_likely(p);
                Ok((vec![best as f64], Some(p[best])))
            }
            Posterior::Density(density) => Ok((vec![self.density_mode(density)], None)),
        }
    }

    /// The most likely value of the column, as text, with its probability if the column is finite.
    ///
    /// # Errors
    /// Fails only if the model is corrupt.
    pub fn mode(&self) -> Result<(String, Option<f64>), ModelError> {
        let (values, p) = self.mode_values()?;
        Ok((self.text(&values)?, p))
    }

    fn compound_mode(&self) -> Result<(Vec<f64>, Option<f64>), ModelError> {
        let variables: Vec<usize> = self.model.schema.variables_of(self.column).collect();
        let mut search = PrefixSearch::new(variables.len());
        loop {
            let prefix = match search.advance() {
                Ok(prefix) => prefix,
                Err((values, p)) => return Ok((values, Some(p))),
            };
            let mut cases = self.cases.to_vec();
            for (&variable, &digit) in variables.iter().zip(&prefix) {
                cases = self.fixed(&cases, variable, digit)?;
            }
            search.expand(&match self.model.posterior(variables[prefix.len()], &cases)? {
                Posterior::Finite(q) => q,
                Posterior::Point(x) => one_hot(x as usize),
                Posterior::Density(_) => Vec::new(),
            });
        }
    }

    /// The u where the density in the units of the data is largest, or an atom that outweighs the density around any u.
    fn density_mode(&self, density: &Density) -> f64 {
        let search =
            ModeSearch { model: self.model, column: self.column, bounds: density.bounds() };
        let log_densities: Vec<f64> =
            search.grid().map(|u| search.log_density(u, density.density(u))).collect();
        search.run(&log_densities, density.atoms(), |u| density.density(u))
    }
}

impl Model {
    /// The numbers of a finite column's values; `None` for text. The catch-all value for other labels has no number.
    pub(super) fn finite_numbers(&self, column: usize) -> Option<Vec<f64>> {
        let c = &self.schema.columns()[column];
        let first = self.schema.variables_of(column).start;
        let count = self.mixture.variables()[first].domain.num_values().unwrap_or(0);
        let term = |x: usize| c.kind.coding().term(c.storage, 0, x as f64);
        let base = c.kind.coding().base();
        let numbers: Vec<f64> =
            (0..).map_while(|x| term(x).map(|t| base + t)).take(count).collect();
        (!numbers.is_empty()).then_some(numbers)
    }

    /// The number at position u of a column with a density.
    pub(super) fn term(&self, column: usize, u: f64) -> f64 {
        let c = &self.schema.columns()[column];
        c.kind.coding().term(c.storage, 0, u).unwrap_or(f64::NAN)
    }
}

/// Checks that a level is between 0 and 1.
pub(super) fn check_level(level: f64) -> Result<(), ModelError> {
    if (0.0..=1.0).contains(&level) {
        return Ok(());
    }
    let remedy = "give a probability from 0 to 1";
    Err(ModelError::Option { setting: "quantile", value: level, remedy })
}

/// The mean over the values that have numbers.
pub(super) fn finite_mean(p: &[f64], numbers: &[f64]) -> f64 {
    let mass: f64 = p.iter().zip(numbers).map(|(p, _)| p).sum();
    p.iter().zip(numbers).map(|(p, x)| p * x).sum::<f64>() / mass
}

/// The first value whose cumulative share of the total reaches the level.
pub(super) fn numbers_quantile(p: &[f64], level: f64) -> f64 {
    finite_quantile(p, level * p.iter().sum::<f64>()).0 as f64
}

/// The most likely value; the first one in case of a tie.
pub(super) fn most_likely(p: &[f64]) -> usize {
    (0..p.len()).fold(0, |b, x| if p[x] > p[b] { x } else { b })
}

/// A distribution with all probability on one value.
pub(super) fn one_hot(x: usize) -> Vec<f64> {
    let mut p = vec![0.0; x + 1];
    p[x] = 1.0;
    p
}

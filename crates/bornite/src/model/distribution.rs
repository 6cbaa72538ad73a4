//! The distribution of one column.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use super::event::intersect;
use super::posterior::{Density, Posterior};
use super::{Event, Model, ModelError};
use crate::basis::Basis;
use crate::basis::quadrature::gauss_legendre;
use crate::circuit::Layer;
use crate::data::{Cell, ColumnSchema};
use crate::mixture::log_sum;
use crate::query::{Evidence, Query};

/// Points of the first search for the mode of a density.
const GRID: usize = 512;
/// An atom is the mode if it is more likely than one part in so many of the range of u at its most likely place.
const NEAR: f64 = 64.0;
/// Steps that then narrow it down.
const NARROWINGS: usize = 60;
/// The shortest panel of the mean's quadrature is 2 to the power of minus this.
const PANELS: i32 = 30;
/// Nodes of a panel, next to those that a density of many functions takes.
const PANEL_NODES: usize = 6;
/// Prefixes of digits that the search for their mode looks at.
const MAX_PREFIXES: usize = 4096;

/// The distribution of one column, given the evidence about a row. Where that a cell is missing is a value of the column, it is the
/// distribution of the cells that are not.
///
/// Probabilities, means of finite columns and quantiles are exact to rounding; the mean of a continuous column is a quadrature
/// and its mode a search.
#[derive(Debug)]
pub struct ColumnDistribution<'m> {
    model: &'m Model,
    column: usize,
    cases: Arc<[Query]>,
    /// Of the column's first variable.
    first: Posterior,
}

impl Model {
    /// The distribution of a column, given evidence about the row and the model's own evidence.
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

    /// The distributions of columns given that one of the cases holds: one pass up and one pass down for all of them, and for
    /// each one in which that a cell is missing is a value, since its distribution is that of the others.
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
                    // Of rows in which the column is not missing: other columns may be in these.
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
    /// That of a column of one variable.
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

    /// p(x) of a column of real numbers, in the units of the data, or the probability of the nearest number on a grid; `None` for other columns, and where it has a value.
    pub fn density(&self, x: f64) -> Option<f64> {
        let Posterior::Density(density) = &self.first else { return None };
        Some(match self.model.schema.encode_nearest(self.column, Cell::Number(x)) {
            Ok((values, slope)) => density.density(values[0]) * slope.exp(),
            Err(_) => 0.0,
        })
    }

    /// The probability of a number that is not above x.
    ///
    /// Of a periodic column it is taken from its origin to a period later.
    ///
    /// # Errors
    /// The column holds words, in no order.
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
                let numbers = self.numbers().ok_or_else(|| self.words("order"))?;
                let pairs = || p.iter().zip(&numbers);
                let mass: f64 = pairs().map(|(p, _)| p).sum();
                Ok(pairs().filter(|(_, y)| **y <= x).map(|(p, _)| p).sum::<f64>() / mass)
            }
        }
    }

    /// The probability of the cases in which the number is not above x, over that of all.
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

    /// Whether the column has several variables, whose values in order are the order of its cells.
    fn is_compound(&self) -> bool {
        self.model.schema.variables_of(self.column).len() > 1
    }

    /// The numbers of a finite column's values; `None` for words. The place for other labels has none.
    fn numbers(&self) -> Option<Vec<f64>> {
        self.model.finite_numbers(self.column)
    }

    /// The values of a finite column with their probabilities, in order; `None` for continuous columns and digits.
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

    /// The text of the cell that has these values of the column's variables.
    pub(super) fn text(&self, values: &[f64]) -> Result<String, ModelError> {
        let schema = &self.model.schema;
        let mut row = vec![f64::NAN; schema.num_variables()];
        row[schema.variables_of(self.column)].copy_from_slice(values);
        Ok(schema.decode(&row)?.columns()[self.column].text(0).into_owned())
    }

    /// The number that these values of the column's variables stand for; `None` for words.
    pub(super) fn number(&self, values: &[f64]) -> Option<f64> {
        let c = self.schema();
        c.kind.coding().number(c.storage, values)
    }

    /// The mean, of what has a number: the place for other labels is left out. For two words, the probability of the second.
    ///
    /// Of a periodic column it is taken from its origin to a period later.
    ///
    /// # Errors
    /// The column holds words.
    pub fn mean(&self) -> Result<f64, ModelError> {
        if self.is_compound() {
            return self.compound_mean();
        }
        match &self.first {
            Posterior::Point(x) => self.number(&[*x]).ok_or_else(|| self.words("mean")),
            Posterior::Density(density) => Ok(self.density_mean(density)),
            Posterior::Finite(p) => {
                let numbers = self.numbers().ok_or_else(|| self.words("mean"))?;
                Ok(finite_mean(p, &numbers))
            }
        }
    }

    /// The sum of the means of what each variable adds.
    fn compound_mean(&self) -> Result<f64, ModelError> {
        let c = self.schema();
        let coding = c.kind.coding();
        let mut mean = coding.base();
        for (place, variable) in self.model.schema.variables_of(self.column).enumerate() {
            let term = |x: f64| coding.term(c.storage, place, x).ok_or_else(|| self.words("mean"));
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

    fn words(&self, what: &'static str) -> ModelError {
        ModelError::NoNumbers { column: self.schema().name.clone(), what }
    }

    /// ∫ x(u) p(u) du, in panels that become short towards both ends, where x(u) may be infinite, and the atoms.
    fn density_mean(&self, density: &Density) -> f64 {
        let variable = self.model.schema.variables_of(self.column).start;
        let functions = self.model.num_functions(variable);
        let mut sum: f64 = density.atoms().map(|(u, p)| p * self.term(u)).sum();
        for (n, (low, high)) in density.pieces().enumerate() {
            for (u, w) in mean_nodes(functions, low, high) {
                sum += w * density.piece_density(n, u) * self.term(u);
            }
        }
        sum
    }

    fn term(&self, u: f64) -> f64 {
        self.model.term(self.column, u)
    }

    /// The values of the column's variables at the smallest number that at least this share is not above.
    ///
    /// # Errors
    /// The column holds words, in no order, or the level is not between 0 and 1.
    pub(super) fn quantile_values(&self, level: f64) -> Result<Vec<f64>, ModelError> {
        check_level(level)?;
        if self.is_compound() {
            return self.compound_quantile(level);
        }
        match &self.first {
            Posterior::Point(x) => Ok(vec![*x]),
            Posterior::Density(density) => Ok(vec![density.quantile(level)]),
            Posterior::Finite(p) => {
                let numbers = self.numbers().ok_or_else(|| self.words("quantile"))?;
                Ok(vec![numbers_quantile(&p[..numbers.len()], level)])
            }
        }
    }

    /// The smallest number x with P(X ≤ x) of at least this level. A whole number above 2⁵³ that is not a float is rounded
    /// up, so that its [`cdf`](Self::cdf) still reaches the level; a [question](Model::ask) gives it exactly.
    ///
    /// # Errors
    /// The column holds words, in no order, or the level is not between 0 and 1.
    pub fn quantile(&self, level: f64) -> Result<f64, ModelError> {
        let values = self.quantile_values(level)?;
        let c = self.schema();
        let number = c.kind.coding().number_above(c.storage, &values);
        number.ok_or_else(|| self.words("quantile"))
    }

    /// Variable by variable: each is the quantile of what is left of the level.
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

    /// The cases in which a variable has this value.
    fn fixed(&self, cases: &[Query], variable: usize, x: f64) -> Result<Vec<Query>, ModelError> {
        let variables = self.model.mixture.variables();
        let mut point = Query::unknown(variables.len());
        point.set(variables, variable, Evidence::Value(x))?;
        Ok(cases.iter().filter_map(|b| intersect(variables, b, &point)).collect())
    }

    /// The values of the column's variables that are the most likely, and their probability if there is one.
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

    /// The u at which the density in the units of the data is the largest, or an atom that is more likely than all u near it.
    fn density_mode(&self, density: &Density) -> f64 {
        let search =
            ModeSearch { model: self.model, column: self.column, bounds: density.bounds() };
        let worths: Vec<f64> = search.grid().map(|u| search.worth(u, density.density(u))).collect();
        search.run(&worths, density.atoms(), |u| density.density(u))
    }
}

/// The search for the most likely number of a column with a density.
pub(super) struct ModeSearch<'m> {
    pub(super) model: &'m Model,
    pub(super) column: usize,
    /// Where u can lie.
    pub(super) bounds: (f64, f64),
}

impl ModeSearch<'_> {
    fn at(&self, n: f64) -> f64 {
        let (low, high) = self.bounds;
        low + (high - low) * (n + 0.5) / GRID as f64
    }

    /// Where it begins.
    pub(super) fn grid(&self) -> impl Iterator<Item = f64> + '_ {
        (0..GRID).map(|n| self.at(n as f64))
    }

    /// The slope of the column's transform, as a logarithm.
    pub(super) fn slope(&self, u: f64) -> f64 {
        let c = &self.model.schema.columns()[self.column];
        let x = c.kind.coding().number(c.storage, &[u]).unwrap_or(f64::NAN);
        let encoded = self.model.schema.encode_value(self.column, Cell::Number(x));
        encoded.map_or(f64::NEG_INFINITY, |(_, slope)| slope)
    }

    /// The log density in the units of the data.
    pub(super) fn worth(&self, u: f64, density: f64) -> f64 {
        density.ln() + self.slope(u)
    }

    /// The most likely u, or an atom, given what the places of the grid are worth.
    pub(super) fn run(
        &self,
        worths: &[f64],
        atoms: impl Iterator<Item = (f64, f64)>,
        density: impl Fn(f64) -> f64,
    ) -> f64 {
        let best = (0..GRID).fold(0, |b, n| if worths[n] > worths[b] { n } else { b });
        let (low, high) = self.bounds;
        let mut a = self.at(best as f64 - 1.0).max(low);
        let mut b = self.at(best as f64 + 1.0).min(high);
        let worth = |u: f64| self.worth(u, density(u));
        for _ in 0..NARROWINGS {
            let (c, d) = (a + (b - a) * 0.382, a + (b - a) * 0.618);
            if worth(c) > worth(d) { b = d } else { a = c }
        }
        let rest = 0.5 * (a + b);
        let better = |a: (f64, f64), b: (f64, f64)| if b.1 > a.1 { b } else { a };
        match atoms.reduce(better) {
            Some((u, p)) if p * NEAR >= density(rest) => u,
            _ => rest,
        }
    }
}

/// The search for the most likely digits. The best prefix comes first: no number is more likely than its first digits.
#[derive(Debug)]
pub(super) struct PrefixSearch {
    len: usize,
    open: Vec<(f64, Vec<f64>)>,
    /// The prefix that is to be made longer.
    current: (f64, Vec<f64>),
    looked_at: usize,
}

impl PrefixSearch {
    /// The search for this many digits.
    pub(super) fn new(len: usize) -> Self {
        let open = vec![(1.0, Vec::new())];
        Self { len, open, current: (0.0, Vec::new()), looked_at: 0 }
    }

    /// The prefix of which the next digit's probabilities are wanted, or the digits and their probability in the end.
    pub(super) fn advance(&mut self) -> Result<Vec<f64>, (Vec<f64>, f64)> {
        // The depth first once the search takes too long: then only nearly the best.
        let worth = |(p, prefix): &(f64, Vec<f64>)| {
            if self.looked_at > MAX_PREFIXES { prefix.len() as f64 + p } else { *p }
        };
        let best = (0..self.open.len())
            .fold(0, |b, n| if worth(&self.open[n]) > worth(&self.open[b]) { n } else { b });
        if self.open.is_empty() {
            return Err((vec![f64::NAN; self.len], 0.0));
        }
        let (p, prefix) = self.open.swap_remove(best);
        if prefix.len() == self.len {
            return Err((prefix, p));
        }
        self.looked_at += 1;
        self.current = (p, prefix.clone());
        Ok(prefix)
    }

    /// Takes the probabilities of the next digit.
    pub(super) fn expand(&mut self, digits: &[f64]) {
        let (p, prefix) = &self.current;
        for (digit, q) in digits.iter().enumerate().filter(|(_, q)| **q > 0.0) {
            let mut longer = prefix.clone();
            longer.push(digit as f64);
            self.open.push((p * q, longer));
        }
    }
}

impl Model {
    /// The numbers of a finite column's values; `None` for words. The place for other labels has none.
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

    /// The number at a place of a column with a density.
    pub(super) fn term(&self, column: usize, u: f64) -> f64 {
        let c = &self.schema.columns()[column];
        c.kind.coding().term(c.storage, 0, u).unwrap_or(f64::NAN)
    }

    /// The number of functions of a continuous variable, atoms apart: the most that one of the circuits has.
    pub(super) fn num_functions(&self, variable: usize) -> usize {
        fn smooth(basis: &Basis) -> usize {
            match basis {
                Basis::Atoms(b) => smooth(b.rest()),
                Basis::Transformed(b) => smooth(b.base()),
                Basis::Indicator(_)
                | Basis::Fourier(_)
                | Basis::Legendre(_)
                | Basis::Laguerre(_)
                | Basis::Hermite(_)
                | Basis::Table(_)
                | Basis::Gaussian(_)
                | Basis::BSpline(_)
                | Basis::Squared(_) => basis.width(),
            }
        }
        let of = |layer: &Layer| match layer {
            Layer::Input { variable: v, basis } if v.index() == variable => Some(smooth(basis)),
            Layer::Input { .. }
            | Layer::Hadamard { .. }
            | Layer::Kronecker { .. }
            | Layer::Sum { .. } => None,
        };
        self.mixture.circuits().flat_map(|c| c.layers()).filter_map(of).max().unwrap_or(1)
    }
}

/// Rejects a level that is not from 0 to 1.
pub(super) fn check_level(level: f64) -> Result<(), ModelError> {
    if (0.0..=1.0).contains(&level) {
        return Ok(());
    }
    let remedy = "give a probability from 0 to 1";
    Err(ModelError::Option { setting: "quantile", value: level, remedy })
}

/// The mean of values that have numbers; others are left out.
pub(super) fn finite_mean(p: &[f64], numbers: &[f64]) -> f64 {
    let mass: f64 = p.iter().zip(numbers).map(|(p, _)| p).sum();
    p.iter().zip(numbers).map(|(p, x)| p * x).sum::<f64>() / mass
}

/// The first value up to which at least this share of all lies.
pub(super) fn numbers_quantile(p: &[f64], level: f64) -> f64 {
    finite_quantile(p, level * p.iter().sum::<f64>()).0 as f64
}

/// The first of the most likely values.
pub(super) fn most_likely(p: &[f64]) -> usize {
    (0..p.len()).fold(0, |b, x| if p[x] > p[b] { x } else { b })
}

/// All probability at one value.
pub(super) fn one_hot(x: usize) -> Vec<f64> {
    let mut p = vec![0.0; x + 1];
    p[x] = 1.0;
    p
}

/// Nodes and weights of the integral of a mean from low to high, for a density of so many functions.
pub(super) fn mean_nodes(
    functions: usize,
    low: f64,
    high: f64,
) -> impl Iterator<Item = (f64, f64)> {
    panels(functions).iter().map(move |&(v, w)| (low + (high - low) * v, (high - low) * w))
}

/// The first value with a sum of at least the level, and the level within that value.
pub(super) fn finite_quantile(p: &[f64], level: f64) -> (usize, f64) {
    let (mut sum, mut last) = (0.0, (0, 1.0));
    for (x, &q) in p.iter().enumerate().filter(|(_, q)| **q > 0.0) {
        last = (x, ((level - sum) / q).clamp(0.0, 1.0));
        sum += q;
        if sum >= level {
            break;
        }
    }
    last
}

/// Nodes and weights on [0, 1], dense towards both ends, where numbers may be infinite, and fine enough for the square of a sum of
/// so many functions.
///
/// The square of n Legendre functions has n waves in an angle θ with u = (1 − cos θ) / 2, of which the panel from 2⁻ᵏ⁻¹ to 2⁻ᵏ
/// has about n 2^(−k/2) / 5; a rule of Gauss takes some two nodes for each.
pub(super) fn panels(functions: usize) -> &'static [(f64, f64)] {
    // One rule for each power of two, and for most models one in all.
    static RULES: [OnceLock<Vec<(f64, f64)>>; 16] = [const { OnceLock::new() }; 16];
    let power = (functions.max(64).next_power_of_two().ilog2() as usize).min(RULES.len() - 1);
    RULES[power].get_or_init(|| {
        let waves = 0.5 * f64::from(1_u32 << power);
        let mut nodes = Vec::new();
        for k in 1..=PANELS {
            let high = 0.5f64.powi(k);
            let low = if k == PANELS { 0.0 } else { 0.5 * high };
            let more = (waves * high.sqrt()).ceil() as usize;
            for (t, w) in gauss_legendre(PANEL_NODES + more) {
                let half = 0.5 * (high - low);
                let u = low + half * (1.0 + t);
                nodes.push((u, half * w));
                nodes.push((1.0 - u, half * w));
            }
        }
        nodes
    })
}

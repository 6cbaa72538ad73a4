//! Statistics of columns with several variables, such as digits or the parts of a date, for many rows at once.

use super::cells::Statistic;
use super::distribution::one_hot;
use super::mode::PrefixSearch;
use super::{Model, ModelError};
use crate::engine::{Batch, CellDistribution, CellRequest};
use crate::ops::finite_quantile;
use crate::query::Evidence;

impl Model {
    /// Quantiles or modes of a compound column for all rows, one variable after another.
    pub(super) fn compound_statistics(
        &self,
        rows: &Batch,
        column: usize,
        statistic: Statistic<'_>,
    ) -> Result<Vec<Vec<f64>>, ModelError> {
        let mut out = vec![Vec::new(); rows.len()];
        if rows.is_empty() {
            return Ok(out);
        }
        match statistic {
            Statistic::Quantiles(levels) => {
                for &level in levels {
                    let found = self.compound_quantiles(rows, column, level)?;
                    out.iter_mut().zip(found).for_each(|(out, values)| out.extend(values));
                }
            }
            Statistic::Mode => out = self.compound_modes(rows, column)?,
            Statistic::Mean | Statistic::Probabilities => {}
        }
        Ok(out)
    }

    fn compound_quantiles(
        &self,
        rows: &Batch,
        column: usize,
        level: f64,
    ) -> Result<Vec<Vec<f64>>, ModelError> {
        let (mut rows, mut levels) = (rows.clone(), vec![level; rows.len()]);
        let mut out = vec![Vec::new(); rows.len()];
        for variable in self.schema.variables_of(column) {
            let p = self.digit_probabilities(&rows, &|_| Some(variable))?;
            for (row, p) in p.iter().enumerate() {
                let (digit, rest) = finite_quantile(p, levels[row]);
                levels[row] = rest;
                out[row].push(digit as f64);
            }
            let domain = &self.mixture.variables()[variable].domain;
            rows.set_column(variable, domain, |row| {
                out[row].last().map(|&digit| Evidence::Value(digit))
            });
        }
        Ok(out)
    }

    fn compound_modes(&self, rows: &Batch, column: usize) -> Result<Vec<Vec<f64>>, ModelError> {
        let variables = self.schema.variables_of(column);
        let mut out = vec![Vec::new(); rows.len()];
        let mut open: Vec<(usize, PrefixSearch, Vec<f64>)> = (0..rows.len())
            .map(|row| (row, PrefixSearch::new(variables.len()), Vec::new()))
            .collect();
        loop {
            open.retain_mut(|(row, search, prefix)| match search.advance() {
                Ok(next) => {
                    *prefix = next;
                    true
                }
                Err((values, _)) => {
                    out[*row] = values;
                    false
                }
            });
            if open.is_empty() {
                return Ok(out);
            }
            let mut next = rows.select(&open.iter().map(|o| o.0).collect::<Vec<_>>());
            for (place, variable) in variables.clone().enumerate() {
                let domain = &self.mixture.variables()[variable].domain;
                next.set_column(variable, domain, |n| {
                    open[n].2.get(place).map(|&digit| Evidence::Value(digit))
                });
            }
            let p = self
                .digit_probabilities(&next, &|n: usize| variables.clone().nth(open[n].2.len()))?;
            for ((_, search, _), p) in open.iter_mut().zip(p) {
                search.expand(&p);
            }
        }
    }

    /// The probabilities of the values of one variable per row, given the rest of the row.
    pub(super) fn digit_probabilities(
        &self,
        rows: &Batch,
        variable: &(dyn Fn(usize) -> Option<usize> + Sync),
    ) -> Result<Vec<Vec<f64>>, ModelError> {
        let cells = |row: usize, v: usize| variable(row) == Some(v) && rows.is_missing(row, v);
        let wanted = CellRequest { cells: &cells, functionals: &|_| Vec::new() };
        let (answers, _) = self.mixture.answer_cells(rows, &wanted, &|_, _, p| match p {
            CellDistribution::Finite(p) => p,
            CellDistribution::Piecewise(_) | CellDistribution::Exact(_) => Vec::new(),
        })?;
        let known = |row: usize| match variable(row).map(|v| rows.value(row, v)) {
            Some(x) if !x.is_nan() => one_hot(x as usize),
            _ => Vec::new(),
        };
        let mut out: Vec<Vec<f64>> = (0..rows.len()).map(known).collect();
        for cell in answers {
            out[cell.row] = cell.answer;
        }
        Ok(out)
    }

    /// The contribution of one digit to the mean of its number.
    pub(super) fn digit_mean(
        &self,
        column: usize,
        variable: usize,
        distribution: &CellDistribution<'_>,
    ) -> f64 {
        let c = &self.schema.columns()[column];
        let place = variable - self.schema.variables_of(column).start;
        let term = |x: usize| c.kind.coding().term(c.storage, place, x as f64).unwrap_or(f64::NAN);
        match distribution {
            CellDistribution::Finite(p) => {
                let possible = p.iter().enumerate().filter(|(_, p)| **p > 0.0);
                possible.map(|(x, p)| p * term(x)).sum()
            }
            CellDistribution::Piecewise(_) | CellDistribution::Exact(_) => f64::NAN,
        }
    }
}

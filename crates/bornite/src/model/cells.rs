//! Posterior statistics of the cells of many rows, with one pass up and one pass down the circuit for all of them.

use rayon::prelude::*;

use super::distribution::{
    ColumnDistribution, finite_mean, most_likely, numbers_quantile, one_hot,
};
use super::event::intersect_evidence;
use super::mode::ModeSearch;
use super::posterior::{Density, Posterior};
use super::{Model, ModelError};
use crate::basis::Part;
use crate::data::Coding;
use crate::domain::Domain;
use crate::engine::{Batch, CellAnswer, CellDistribution, CellRequest, PiecewiseDensity};
use crate::query::Evidence;

/// A statistic of the distribution of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) enum Statistic<'a> {
    /// The mean, as one number.
    Mean,
    /// The most likely values of the column's variables.
    Mode,
    /// The values of the column's variables at each of these levels, one level after another.
    Quantiles(&'a [f64]),
    /// The probability of every value of the first variable.
    Probabilities,
}

/// The statistic of one cell.
#[derive(Clone, Debug)]
pub(super) struct CellStatistic {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) values: Vec<f64>,
}

/// The statistic of a column, with values that all of its rows share.
struct ColumnPlan<'a> {
    statistic: Statistic<'a>,
    /// The numbers of a finite column.
    numbers: Vec<f64>,
    /// ln F′ at the grid points where the search for the mode of a density starts.
    slopes: Vec<f64>,
}

/// A predicate for the cells to compute, by row and column.
pub(super) type WantedCells<'a> = &'a (dyn Fn(usize, usize) -> bool + Sync);

impl Model {
    /// Computes the statistics of the wanted cells, ordered by row and column, given the observed cells of each row and
    /// the model's evidence. The catch-all value for other labels is excluded unless the column has no labels of its
    /// own.
    ///
    /// # Errors
    /// The evidence in a row has probability 0, or a numeric statistic is requested of a text column.
    pub(super) fn cell_statistics<'s>(
        &self,
        rows: &Batch,
        wanted: WantedCells<'_>,
        statistic: impl Fn(usize) -> Statistic<'s>,
    ) -> Result<Vec<CellStatistic>, ModelError> {
        let columns = 0..self.schema.columns().len();
        let is_asked: Vec<bool> =
            columns.clone().map(|c| (0..rows.len()).any(|row| wanted(row, c))).collect();
        let mut plans = Vec::with_capacity(is_asked.len());
        for (column, is_asked) in is_asked.iter().enumerate() {
            plans.push(is_asked.then(|| self.column_plan(column, statistic(column))).transpose()?);
        }
        let mut found = if let Some(labelled) = self.with_model_evidence(rows, Some(wanted)) {
            let (mut found, impossible) = self.batch_statistics(&labelled, wanted, &plans)?;
            if let Some(plain) =
                self.with_model_evidence(rows, None).filter(|_| !impossible.is_empty())
            {
                // The evidence may allow only the catch-all value.
                let again = |n: usize, column| wanted(impossible[n], column);
                let (more, refused) =
                    self.batch_statistics(&plain.select(&impossible), &again, &plans)?;
                if let Some(&n) = refused.first() {
                    return Err(impossible_row(impossible[n]));
                }
                found.extend(more.into_iter().map(|mut cell| {
                    cell.row = impossible[cell.row];
                    cell
                }));
            }
            found
        } else {
            let of_row = |row| self.row_statistics(rows, row, wanted, &plans);
            let all: Result<Vec<_>, _> = (0..rows.len()).into_par_iter().map(of_row).collect();
            all?.into_iter().flatten().collect()
        };
        found.sort_by_key(|cell| (cell.row, cell.column));
        Ok(found)
    }

    fn column_plan<'s>(
        &self,
        column: usize,
        statistic: Statistic<'s>,
    ) -> Result<ColumnPlan<'s>, ModelError> {
        let what = match statistic {
            Statistic::Mean => Some("mean"),
            Statistic::Quantiles(_) => Some("quantile"),
            Statistic::Mode | Statistic::Probabilities => None,
        };
        let variables = self.schema.variables_of(column);
        let is_finite = self.mixture.variables()[variables.start].domain.num_values().is_some();
        let numbers = self.finite_numbers(column).filter(|_| is_finite);
        let c = &self.schema.columns()[column];
        let in_order = matches!(statistic, Statistic::Quantiles(_)) && variables.len() > 1;
        if let Some(what) = what.filter(|_| is_finite && numbers.is_none() && !in_order) {
            return Err(ModelError::NoNumbers { column: c.name.clone(), what });
        }
        let mut slopes = Vec::new();
        if let Statistic::Mode = statistic
            && !is_finite
        {
            let search = self.mode_search(column);
            slopes = search.grid().map(|u| search.slope(u)).collect();
        }
        Ok(ColumnPlan { statistic, numbers: numbers.unwrap_or_default(), slopes })
    }

    fn mode_search(&self, column: usize) -> ModeSearch<'_> {
        let first = self.schema.variables_of(column).start;
        let bounds = self.mixture.variables()[first].domain.rest().bounds();
        ModeSearch { model: self, column, bounds }
    }

    /// Combines rows with the model's evidence. In columns to be filled, cells without a value are restricted to the
    /// column's own values: neither the catch-all value nor the value for missing cells. `None` if the model's evidence
    /// consists of several cases.
    pub(super) fn with_model_evidence(
        &self,
        rows: &Batch,
        filled: Option<WantedCells<'_>>,
    ) -> Option<Batch> {
        let [given] = self.given.cases() else { return None };
        let variables = self.mixture.variables();
        let rows = &*self.schema.evidence_rows(rows);
        let mut joined = rows.clone();
        for (v, evidence) in given.evidence().iter().enumerate() {
            let domain = &variables[v].domain;
            if *evidence != Evidence::Unknown {
                joined.set_column(v, domain, |row| {
                    let own = rows.evidence(row, v);
                    // Contradictory evidence becomes an empty set, which has probability 0.
                    Some(
                        intersect_evidence(domain, &own, evidence)
                            .unwrap_or_else(|| impossible(domain)),
                    )
                });
            }
        }
        let Some(is_filled) = filled else { return Some(joined) };
        for (column, c) in self.schema.columns().iter().enumerate() {
            let variable = self.schema.variables_of(column).start;
            let Some(own) = own_values(c.kind.coding()) else { continue };
            let is_optional = c.kind.coding().missing().is_some();
            let domain = &variables[variable].domain;
            let source = joined.clone();
            joined.set_column(variable, domain, |row| {
                let is_open = source.is_missing(row, variable);
                (is_open && (!is_optional || is_filled(row, column))).then(|| {
                    let known = source.evidence(row, variable);
                    intersect_evidence(domain, &known, &own).unwrap_or_else(|| impossible(domain))
                })
            });
        }
        Some(joined)
    }

    /// Computes statistics of cells under evidence with a single case. Also returns the rows whose evidence has
    /// probability 0.
    fn batch_statistics(
        &self,
        rows: &Batch,
        wanted: WantedCells<'_>,
        plans: &[Option<ColumnPlan<'_>>],
    ) -> Result<(Vec<CellStatistic>, Vec<usize>), ModelError> {
        let num_columns = self.schema.columns().len();
        let column_of: Vec<usize> =
            (0..num_columns).flat_map(|c| self.schema.variables_of(c).map(move |_| c)).collect();
        let is_compound = |column: usize| self.schema.variables_of(column).len() > 1;
        let plan = |column: usize| match &plans[column] {
            Some(plan) => plan,
            None => unreachable!("a column that is asked for has a plan"),
        };
        let is_mean = |column: usize| matches!(plan(column).statistic, Statistic::Mean);
        // The mean of a compound column is a sum over its variables, so all of them can be computed at once. Quantiles
        // and modes follow below, one variable after another.
        let cells = |row: usize, variable: usize| {
            let column = column_of[variable];
            wanted(row, column)
                && rows.is_missing(row, variable)
                && (!is_compound(column) || is_mean(column))
        };
        let functionals =
            |variable: usize| self.functionals(column_of[variable], plan(column_of[variable]));
        let (answers, logs) = self.mixture.answer_cells(
            rows,
            &CellRequest { cells: &cells, functionals: &functionals },
            &|_, variable, distribution| {
                let column = column_of[variable];
                if is_compound(column) {
                    return Ok(vec![self.digit_mean(column, variable, &distribution)]);
                }
                self.variable_statistic(column, plan(column), distribution)
            },
        )?;
        let impossible: Vec<usize> =
            (0..rows.len()).filter(|&row| logs[row] == f64::NEG_INFINITY).collect();
        let mut out = Vec::with_capacity(answers.len());
        for CellAnswer { row, variable, answer } in answers {
            let (column, values) = (column_of[variable], answer?);
            match out.last_mut() {
                // Add up the variables' contributions to a mean.
                Some(CellStatistic { row: r, column: c, values: sum })
                    if is_compound(column) && (*r, *c) == (row, column) =>
                {
                    sum[0] += values[0];
                }
                _ => out.push(CellStatistic { row, column, values }),
            }
        }
        for cell in out.iter_mut().filter(|cell| is_compound(cell.column)) {
            let c = &self.schema.columns()[cell.column];
            cell.values[0] += c.kind.coding().base();
            for (place, variable) in self.schema.variables_of(cell.column).enumerate() {
                if !rows.is_missing(cell.row, variable) {
                    let x = rows.value(cell.row, variable);
                    cell.values[0] += c.kind.coding().term(c.storage, place, x).unwrap_or(f64::NAN);
                }
            }
        }
        for column in (0..num_columns).filter(|&c| plans[c].is_some()) {
            let range = self.schema.variables_of(column);
            let possible = |row: &usize| wanted(*row, column) && logs[*row] > f64::NEG_INFINITY;
            // The model's evidence may determine the value.
            let is_known =
                |row: usize| range.clone().all(|variable| !rows.is_missing(row, variable));
            for row in (0..rows.len()).filter(possible).filter(|&row| is_known(row)) {
                let known: Vec<f64> = range.clone().map(|v| rows.value(row, v)).collect();
                let values = self.known_statistic(column, plan(column), &known)?;
                out.push(CellStatistic { row, column, values });
            }
            if is_compound(column) && !is_mean(column) {
                let open: Vec<usize> =
                    (0..rows.len()).filter(possible).filter(|&row| !is_known(row)).collect();
                out.extend(
                    self.compound_statistics(&rows.select(&open), column, plan(column).statistic)?
                        .into_iter()
                        .zip(&open)
                        .map(|(values, &row)| CellStatistic { row, column, values }),
                );
            }
        }
        Ok((out, impossible))
    }

    /// The linear functionals of a column's density that its statistic requires.
    fn functionals(&self, column: usize, plan: &ColumnPlan<'_>) -> Vec<Vec<(f64, f64)>> {
        let search = self.mode_search(column);
        match plan.statistic {
            Statistic::Mean => {
                let (low, high) = search.bounds;
                let nodes = self.number_nodes(column, low, high).into_iter();
                vec![nodes.map(|node| (node.x, node.weight * node.value)).collect()]
            }
            Statistic::Mode => search.grid().map(|u| vec![(u, 1.0)]).collect(),
            Statistic::Quantiles(_) | Statistic::Probabilities => Vec::new(),
        }
    }

    /// The statistic of a column with a single variable.
    fn variable_statistic(
        &self,
        column: usize,
        plan: &ColumnPlan<'_>,
        distribution: CellDistribution<'_>,
    ) -> Result<Vec<f64>, ModelError> {
        Ok(match distribution {
            CellDistribution::Finite(p) => match plan.statistic {
                Statistic::Mean => vec![finite_mean(&p, &plan.numbers)],
                Statistic::Mode => vec![most_likely(&p) as f64],
                Statistic::Quantiles(levels) => {
                    let p = &p[..plan.numbers.len()];
                    levels.iter().map(|&level| numbers_quantile(p, level)).collect()
                }
                Statistic::Probabilities => p,
            },
            CellDistribution::Piecewise(p) => self.piecewise_statistic(column, plan, &p),
            CellDistribution::Exact(distribution) => {
                let first = Posterior::Density(Density::of(distribution));
                distribution_statistic(
                    &ColumnDistribution::of_variable(self, column, first),
                    plan.statistic,
                )?
            }
        })
    }

    fn piecewise_statistic(
        &self,
        column: usize,
        plan: &ColumnPlan<'_>,
        p: &PiecewiseDensity<'_>,
    ) -> Vec<f64> {
        match plan.statistic {
            Statistic::Mean => {
                // The value for missing cells has no number.
                let atoms = p.atoms().filter(|(_, p)| *p > 0.0);
                let atoms: f64 = atoms.map(|(u, p)| p * self.term(column, u)).sum();
                vec![atoms + p.functionals()[0]]
            }
            Statistic::Mode => {
                let pairs = p.functionals().iter().zip(&plan.slopes);
                let log_densities: Vec<f64> =
                    pairs.map(|(p, slope)| p.max(0.0).ln() + slope).collect();
                let atoms = p.atoms().filter(|(_, p)| *p > 0.0);
                vec![self.mode_search(column).run(&log_densities, atoms, |u| p.density(u))]
            }
            Statistic::Quantiles(levels) => levels.iter().map(|&l| p.quantile(l)).collect(),
            Statistic::Probabilities => Vec::new(),
        }
    }

    /// The statistic of a cell with a known value.
    fn known_statistic(
        &self,
        column: usize,
        plan: &ColumnPlan<'_>,
        known: &[f64],
    ) -> Result<Vec<f64>, ModelError> {
        let c = &self.schema.columns()[column];
        Ok(match plan.statistic {
            Statistic::Mean => {
                let no_number = || ModelError::NoNumbers { column: c.name.clone(), what: "mean" };
                vec![c.kind.coding().number(c.storage, known).ok_or_else(no_number)?]
            }
            Statistic::Mode => known.to_vec(),
            Statistic::Quantiles(levels) => levels.iter().flat_map(|_| known.to_vec()).collect(),
            Statistic::Probabilities => {
                let first = self.schema.variables_of(column).start;
                let count = self.mixture.variables()[first].domain.num_values().unwrap_or(0);
                let mut p = one_hot(known[0] as usize);
                p.resize(count, 0.0);
                p
            }
        })
    }

    /// The means of all cells, row by row. The mean of an observed cell is its value.
    #[cfg(feature = "report")]
    pub(crate) fn means_of_rows(&self, rows: &Batch) -> Result<Vec<f64>, ModelError> {
        let cells = self.cell_statistics(rows, &|_, _| true, |_| Statistic::Mean)?;
        Ok(cells.into_iter().map(|cell| cell.values[0]).collect())
    }

    /// The statistics of one row, if its evidence consists of several cases.
    fn row_statistics(
        &self,
        rows: &Batch,
        row: usize,
        wanted: WantedCells<'_>,
        plans: &[Option<ColumnPlan<'_>>],
    ) -> Result<Vec<CellStatistic>, ModelError> {
        let asked: Vec<usize> = (0..plans.len()).filter(|&c| wanted(row, c)).collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let is_filled = |column: usize| wanted(row, column);
        let cases = self.labelled_cases_of_row(&rows.row(row), &is_filled)?;
        let found = self.distributions_of(&asked, cases).map_err(|error| match error {
            ModelError::Impossible { .. } => impossible_row(row),
            other => other,
        })?;
        let of = |distribution: ColumnDistribution<'_>| {
            let column = distribution.column();
            let Some(plan) = &plans[column] else {
                unreachable!("a column that is asked for has a plan")
            };
            let values = distribution_statistic(&distribution, plan.statistic)?;
            Ok(CellStatistic { row, column, values })
        };
        found.into_iter().map(of).collect()
    }
}

/// The statistic of a column's distribution.
fn distribution_statistic(
    distribution: &ColumnDistribution<'_>,
    statistic: Statistic<'_>,
) -> Result<Vec<f64>, ModelError> {
    match statistic {
        Statistic::Mean => Ok(vec![distribution.mean()?]),
        Statistic::Mode => Ok(distribution.mode_values()?.0),
        Statistic::Quantiles(levels) => {
            let mut all = Vec::new();
            for &level in levels {
                all.extend(distribution.quantile_values(level)?);
            }
            Ok(all)
        }
        Statistic::Probabilities => {
            let pairs = distribution.probabilities()?.unwrap_or_default();
            Ok(pairs.into_iter().map(|(_, p)| p).collect())
        }
    }
}

/// The error for a row whose evidence has probability 0.
pub(super) fn impossible_row(row: usize) -> ModelError {
    ModelError::ImpossibleRow { row }
}

/// Evidence that no value satisfies.
fn impossible(domain: &Domain) -> Evidence {
    Evidence::In(match domain.num_values() {
        Some(_) => Part::Values(Vec::new()),
        None => Part::Interval { low: 0.0, high: 0.0 },
    })
}

/// The number of labels of a column that also has a catch-all value for other labels.
fn num_labels_before_other(coding: &dyn Coding) -> Option<usize> {
    coding.other().filter(|&labels| labels > 0)
}

/// Restricts a column's first variable to the column's own values: not the catch-all value (unless there is no label),
/// and not the value for missing cells. `None` if the column has neither.
pub(super) fn own_values(coding: &dyn Coding) -> Option<Evidence> {
    match num_labels_before_other(coding) {
        Some(labels) => Some(Evidence::In(Part::Values((0..labels).collect()))),
        None => coding.present(),
    }
}

/// How many of a finite column's `values` values are its own.
pub(super) fn num_own_values(coding: &dyn Coding, values: usize) -> usize {
    let missing = coding.missing().map_or(values, |missing| missing as usize);
    num_labels_before_other(coding).unwrap_or(missing).min(values)
}

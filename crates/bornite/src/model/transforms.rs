//! Probability integral transforms, which show whether a model is calibrated.

use super::posterior::Density;
use super::{Model, ModelError};
use crate::engine::{Batch, CellDistribution, CellRequest};
use crate::query::{Evidence, Query};

impl Model {
    /// The probability integral transform F(cell) of every observed cell given the other cells of its row, by column.
    /// If values have probabilities of their own, `spread` gives the position within the step of F. Cells of impossible
    /// rows are skipped. `None` if the model is conditioned on several cases.
    pub(crate) fn integral_transforms(
        &self,
        rows: &Batch,
        spread: &(dyn Fn(usize, usize) -> f64 + Sync),
    ) -> Result<Option<Vec<Vec<f64>>>, ModelError> {
        let ([given], Some(joined)) = (self.given.cases(), self.with_model_evidence(rows, None))
        else {
            return Ok(None);
        };
        let columns = self.schema.columns().len();
        let mut column_of = vec![None; self.schema.num_variables()];
        for column in (0..columns).filter(|&c| self.schema.variables_of(c).len() == 1) {
            column_of[self.schema.variables_of(column).start] = Some(column);
        }
        // The value for missing cells has no position in the order of values.
        let missing_codes: Vec<Option<f64>> =
            self.schema.columns().iter().map(|c| c.kind.coding().missing()).collect();
        let has_value = |row: usize, v: usize, column: usize| {
            !rows.is_missing(row, v) && Some(rows.value(row, v)) != missing_codes[column]
        };
        let cells = |row: usize, v: usize| column_of[v].is_some_and(|c| has_value(row, v, c));
        let wanted = CellRequest { cells: &cells, functionals: &|_| Vec::new() };
        let (answers, logs) = self.mixture.answer_cells(&joined, &wanted, &|row, v, p| {
            let (x, column) = (rows.value(row, v), column_of[v].unwrap_or(0));
            // The value for missing cells comes last.
            let high = missing_codes[column].map_or(f64::INFINITY, f64::next_down);
            match p {
                CellDistribution::Finite(p) => {
                    let p = &p[..missing_codes[column].map_or(p.len(), |missing| missing as usize)];
                    of_step(p, x, spread(row, column)) / p.iter().sum::<f64>()
                }
                CellDistribution::Piecewise(p) => p.cdf(x) / p.cdf(high),
                CellDistribution::Exact(p) => {
                    let p = Density::of(p);
                    p.cdf(x) / p.cdf(high)
                }
            }
        })?;
        let mut out = vec![Vec::new(); columns];
        for cell in answers {
            out[column_of[cell.variable].unwrap_or(0)].push(cell.answer);
        }
        for column in (0..columns).filter(|&c| self.schema.variables_of(c).len() > 1) {
            let first = self.schema.variables_of(column).start;
            let known: Vec<usize> = (0..rows.len())
                .filter(|&row| logs[row] > f64::NEG_INFINITY && has_value(row, first, column))
                .collect();
            if known.is_empty() {
                continue;
            }
            let (values, others) = (rows.select(&known), joined.select(&known));
            let steps = self.digit_steps(column, &values, others, given)?;
            let transform =
                |((low, width), &row): (&(f64, f64), &usize)| low + spread(row, column) * width;
            out[column].extend(steps.iter().zip(&known).map(transform));
        }
        Ok(Some(out))
    }

    /// The step of F that contains the number of each row, as its start and height, for a column with several
    /// variables: each digit divides the step that the preceding digits leave. `others` are the other cells of the
    /// rows, whose digits are replaced.
    fn digit_steps(
        &self,
        column: usize,
        values: &Batch,
        mut others: Batch,
        given: &Query,
    ) -> Result<Vec<(f64, f64)>, ModelError> {
        let range = self.schema.variables_of(column);
        let variables = self.mixture.variables();
        for v in range.clone() {
            others.set_column(v, &variables[v].domain, |_| Some(given.evidence()[v].clone()));
        }
        let missing_code = self.schema.columns()[column].kind.coding().missing();
        let mut steps = vec![(0.0, 1.0); values.len()];
        for v in range.clone() {
            let p = self.digit_probabilities(&others, &|_| Some(v))?;
            for (row, p) in p.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
                let (low, width) = &mut steps[row];
                let x = values.value(row, v);
                let missing = missing_code.filter(|_| v == range.start);
                let all = 1.0 - missing.map_or(0.0, |missing| p[missing as usize]);
                *low += *width * of_step(p, x, 0.0) / all;
                *width *= p[x as usize] / all;
            }
            let domain = &variables[v].domain;
            others.set_column(v, domain, |row| Some(Evidence::Value(values.value(row, v))));
        }
        Ok(steps)
    }
}

/// F at a value with a probability of its own, where `spread` is the position within its step.
fn of_step(p: &[f64], x: f64, spread: f64) -> f64 {
    p[..x as usize].iter().sum::<f64>() + spread * p[x as usize]
}

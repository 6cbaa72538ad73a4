//! The least likely rows.

use super::event::log_sum;
use super::{Model, ModelError};
use crate::data::{Cell, Encoded, OutsideCell, Table};

/// A row and why it is unlikely.
#[derive(Clone, Debug, PartialEq)]
pub struct Anomaly {
    /// The row, counted from 0.
    pub row: usize,
    /// Its log density.
    pub log_density: f64,
    /// Its known cells, the most surprising first.
    pub contributions: Vec<Contribution>,
}

/// How surprising one cell is, given all others of its row.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// The column.
    pub column: String,
    /// The cell.
    pub cell: String,
    /// log p(the cell | the others), in the units of the data.
    pub log_conditional: f64,
    /// The same against an even spread, so that columns compare: over a continuous column's interquartile range, over all
    /// values of a finite one.
    pub log_standardized: f64,
}

impl Model {
    /// The `count` rows with the lowest log density, the lowest first, each with its cells by how surprising they are given the
    /// rest of the row. Of equal rows the first comes first.
    ///
    /// Cost: a score of the table, then of one row for each cell of the rows that are named.
    ///
    /// # Errors
    /// As for [`score`](Self::score).
    pub fn anomalies(&self, table: &Table, count: usize) -> Result<Vec<Anomaly>, ModelError> {
        self.anomalies_encoded(table, &self.schema.encode(table)?, count)
    }

    /// The [`anomalies`](Self::anomalies) of a table that the model's schema has encoded.
    ///
    /// # Errors
    /// Rows that were encoded by another schema.
    pub fn anomalies_encoded(
        &self,
        table: &Table,
        rows: &Encoded,
        count: usize,
    ) -> Result<Vec<Anomaly>, ModelError> {
        let anomaly = |(row, log_density)| {
            let contributions = self.contributions(table, rows, row)?;
            Ok(Anomaly { row, log_density, contributions })
        };
        self.least_likely(rows, count)?.into_iter().map(anomaly).collect()
    }

    /// The `count` rows with the lowest log density, and that.
    pub(crate) fn least_likely(
        &self,
        rows: &Encoded,
        count: usize,
    ) -> Result<Vec<(usize, f64)>, ModelError> {
        let mut scores: Vec<(usize, f64)> =
            self.score_encoded(rows)?.into_iter().enumerate().collect();
        scores.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        scores.truncate(count);
        Ok(scores)
    }

    fn contributions(
        &self,
        table: &Table,
        encoded: &Encoded,
        row: usize,
    ) -> Result<Vec<Contribution>, ModelError> {
        let whole = log_sum(&self.log_cases(&self.cases_of_row(&encoded.row(row))?)?);
        let mut out = Vec::new();
        for (column, c) in self.schema.columns().iter().enumerate() {
            let range = self.schema.variables_of(column);
            let mut others = encoded.row(row);
            let outside = encoded.outside_cell(row, column);
            if others[range.start].is_nan() && outside.is_none() {
                continue;
            }
            let cells = table.column(&c.name)?;
            let text = cells.text(row);
            let log_conditional = if let Some(OutsideCell::Beyond(set)) = outside {
                c.log_outside(set)
            } else {
                others[range].fill(f64::NAN);
                let rest = log_sum(&self.log_cases(&self.cases_of_row(&others)?)?);
                // Of the cell itself: far out its value on [0, 1] is rounded.
                let cell = cells.number(row).map_or(Cell::Text(&text), Cell::Number);
                let between = outside.map_or(0.0, |_| c.log_between());
                whole - rest + self.schema.encode_nearest(column, cell)?.1 + between
            };
            out.push(Contribution {
                column: c.name.clone(),
                cell: text.into_owned(),
                log_conditional,
                log_standardized: log_conditional + c.kind.coding().log_spread(),
            });
        }
        out.sort_by(|a, b| a.log_standardized.total_cmp(&b.log_standardized));
        Ok(out)
    }
}

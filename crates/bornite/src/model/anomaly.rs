//! The least likely rows.

use super::predict::LENIENT;
use super::{Model, ModelError};
use crate::data::{Cell, Encoded, OutsideCell, Table};
use crate::mixture::log_sum;

/// How often a cell that does not belong to its row comes from an even spread instead of its column's marginal.
const ANYWHERE: f64 = 0.01;
/// How often a strange row is one that is unlikely as a whole.
const WHOLE: f64 = 0.1;
/// Rows of a model that say which log densities are usual, the part of them that says how these fall off, and the seed that they are drawn
/// with.
const USUAL_ROWS: usize = 500;
const TAIL: f64 = 0.1;
const USUAL_SEED: u64 = 0;

/// What makes a row anomalous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Strange {
    /// It is unlikely as a whole: its negative log density.
    #[default]
    Density,
    /// A cell does not belong to the others: a log-likelihood ratio, of one cell of the row drawn anew, or all of them apart, against the
    /// row as it is: log ½ (mean over j of q(xⱼ) / p(xⱼ | the others) + Πⱼ p(xⱼ) / p(x)) over its known cells.
    ///
    /// A cell that is drawn anew comes from its column's marginal, p(xⱼ), and one time in a hundred from an even spread, so that values
    /// far out are found as well; one that was never seen comes from there for certain. Where the log density sums up the noise of all
    /// cells, this one finds the cell that does not belong to the others.
    Cells,
    /// Either: log of 0.9 times the ratio of [`Cells`](Self::Cells) and 0.1 times ½ / √P, where P is the share of the model's own rows
    /// that are no likelier than this one.
    ///
    /// The mean of both over rows of the model is about 1, so that at most a share e⁻ˢ of these has a score above s. P is that
    /// of 500 exact samples, and falls exponentially beyond them; a missing cell counts as a usual one.
    Either,
}

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

/// How surprising one cell is, given all other cells of its row.
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
        let lowest = self.least_likely(rows, count)?.into_iter();
        lowest.map(|(row, log_density)| self.anomaly(table, rows, row, log_density)).collect()
    }

    /// The cells of a row by how surprising they are given the rest of it, with the row's log density.
    ///
    /// # Errors
    /// Rows that were encoded by another schema.
    pub fn anomaly(
        &self,
        table: &Table,
        rows: &Encoded,
        row: usize,
        log_density: f64,
    ) -> Result<Anomaly, ModelError> {
        let contributions = self.contributions(table, rows, row)?;
        Ok(Anomaly { row, log_density, contributions })
    }

    /// How surprising every cell is, given the other cells of its row: the negative
    /// [`log_standardized`](Contribution::log_standardized), row by row, one number for each column of the model; NaN
    /// where a cell is missing, unless that is a value of its column.
    ///
    /// A cell from a uniform distribution has a surprise of about 0; all cells of a row that contradicts the model's
    /// evidence have an infinite surprise. Cost: a score of the table, and one for each column.
    ///
    /// # Errors
    /// As for [`score`](Self::score).
    pub fn surprises(&self, table: &Table) -> Result<Vec<f64>, ModelError> {
        let rows = self.schema.encode(table)?;
        self.surprises_of(table, (&rows, &self.score_encoded(&rows)?))
    }

    /// The same for a table that is encoded and scored.
    fn surprises_of(
        &self,
        table: &Table,
        (rows, all): (&Encoded, &[f64]),
    ) -> Result<Vec<f64>, ModelError> {
        let columns = self.schema.columns();
        let mut out = vec![f64::NAN; rows.num_rows() * columns.len()];
        for (column, c) in columns.iter().enumerate() {
            let first = self.schema.variables_of(column).start;
            let others = self.predict(table, &c.name)?.log_others()?;
            for (row, (all, others)) in all.iter().zip(&others).enumerate() {
                let spread = self.log_spread(column, rows.batch().value(row, first));
                if self.is_known(rows, row, column) {
                    let is_possible = *all > f64::NEG_INFINITY;
                    out[row * columns.len() + column] =
                        if is_possible { others - all - spread } else { f64::INFINITY };
                }
            }
        }
        Ok(out)
    }

    /// The anomaly score of every row of a table: larger is more anomalous.
    ///
    /// Cost: a score of the table, and two for each column unless it is by [`Strange::Density`].
    ///
    /// # Errors
    /// As for [`score`](Self::score).
    pub fn anomaly_scores(&self, table: &Table, by: Strange) -> Result<Vec<f64>, ModelError> {
        let rows = self.schema.encode(table)?;
        let logs = self.score_encoded(&rows)?;
        match by {
            Strange::Density => Ok(logs.into_iter().map(|log| -log).collect()),
            Strange::Cells => self.log_ratios(table, (&rows, &logs)),
            Strange::Either => {
                let (ratios, usual) = (self.log_ratios(table, (&rows, &logs))?, Usual::of(self)?);
                let score = |(row, (ratio, log)): (usize, (f64, f64))| {
                    if log == f64::NEG_INFINITY {
                        return f64::INFINITY;
                    }
                    let whole = usual.log_evidence(log + usual.missing(self, &rows, row));
                    log_sum(&[(1.0 - WHOLE).ln() + ratio, WHOLE.ln() + whole])
                };
                Ok(ratios.into_iter().zip(logs).enumerate().map(score).collect())
            }
        }
    }

    /// The log-likelihood ratios of [`Strange::Cells`], for a table that is encoded and scored.
    fn log_ratios(
        &self,
        table: &Table,
        (rows, logs): (&Encoded, &[f64]),
    ) -> Result<Vec<f64>, ModelError> {
        let columns = self.schema.columns();
        let cells = self.surprises_of(table, (rows, logs))?;
        let mut apart: Vec<f64> = logs.iter().map(|log| -log).collect();
        let mut anew = vec![Vec::with_capacity(columns.len()); logs.len()];
        for (column, c) in columns.iter().enumerate() {
            let first = self.schema.variables_of(column).start;
            let alone = table.with_columns(vec![table.column(&c.name)?.clone()])?;
            let marginal = self.score_encoded(&self.schema.encode_with(&alone, LENIENT)?)?;
            for (row, log) in marginal.iter().enumerate() {
                let surprise = cells[row * columns.len() + column];
                let spread = self.log_spread(column, rows.batch().value(row, first));
                if surprise.is_nan() {
                    continue;
                }
                apart[row] += log;
                anew[row].push(match rows.outside_cell(row, column) {
                    Some(OutsideCell::Beyond(_)) => surprise,
                    Some(OutsideCell::Between) | None => {
                        let usual = (1.0 - ANYWHERE).ln() + surprise + spread + log;
                        log_sum(&[usual, ANYWHERE.ln() + surprise])
                    }
                });
            }
        }
        let score = |((log, anew), apart): ((&f64, &Vec<f64>), &f64)| {
            if *log == f64::NEG_INFINITY {
                return f64::INFINITY;
            }
            if anew.is_empty() {
                return 0.0;
            }
            let one = log_sum(anew) - (anew.len() as f64).ln();
            log_sum(&[one, *apart]) - 2.0_f64.ln()
        };
        Ok(logs.iter().zip(&anew).zip(&apart).map(score).collect())
    }

    /// Whether a cell has a value: of its own, or one that was never seen.
    fn is_known(&self, rows: &Encoded, row: usize, column: usize) -> bool {
        let first = self.schema.variables_of(column).start;
        !rows.batch().is_missing(row, first) || rows.outside_cell(row, column).is_some()
    }

    /// ln of how many values a column has, or of how wide its middle half is; of a missing cell, that it is or is not.
    fn log_spread(&self, column: usize, first: f64) -> f64 {
        let coding = self.schema.columns()[column].kind.coding();
        if coding.missing() == Some(first) { 2.0_f64.ln() } else { coding.log_spread() }
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
            let spread = self.log_spread(column, encoded.batch().value(row, range.start));
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
                let slope = if cells.is_missing(row) {
                    0.0
                } else {
                    self.schema.encode_nearest(column, cell)?.1
                };
                whole - rest + slope + between
            };
            out.push(Contribution {
                column: c.name.clone(),
                cell: text.into_owned(),
                log_conditional,
                log_standardized: log_conditional + spread,
            });
        }
        out.sort_by(|a, b| a.log_standardized.total_cmp(&b.log_standardized));
        Ok(out)
    }
}

/// What is usual for the rows of a model.
struct Usual {
    /// The negative log densities of some of them, the lowest first.
    logs: Vec<f64>,
    /// The mean of log p(a cell | the others), for every column, in the units of the log densities.
    cells: Vec<f64>,
}

impl Usual {
    fn of(model: &Model) -> Result<Self, ModelError> {
        let rows = model.sample(USUAL_ROWS, USUAL_SEED)?;
        let mut logs: Vec<f64> = model.score(&rows)?.into_iter().map(|log| -log).collect();
        logs.sort_by(f64::total_cmp);
        let columns = model.schema.columns().len();
        let (mut cells, surprises) = (vec![0.0; columns], model.surprises(&rows)?);
        let encoded = model.schema.encode(&rows)?;
        for (column, mean) in cells.iter_mut().enumerate() {
            let first = model.schema.variables_of(column).start;
            let log = |row: usize| {
                let spread = model.log_spread(column, encoded.batch().value(row, first));
                -surprises[row * columns + column] - spread
            };
            let known: Vec<f64> = (0..logs.len()).map(log).filter(|log| log.is_finite()).collect();
            *mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        }
        Ok(Self { logs, cells })
    }

    /// The usual log density of the missing cells of a row.
    fn missing(&self, model: &Model, rows: &Encoded, row: usize) -> f64 {
        let cells = self.cells.iter().enumerate();
        cells.filter(|(column, _)| !model.is_known(rows, row, *column)).map(|(_, log)| log).sum()
    }

    /// ln ½ / √P of a log density.
    fn log_evidence(&self, log: f64) -> f64 {
        -2.0_f64.ln() - 0.5 * self.log_share(-log)
    }

    /// ln P: of the share of rows with at least this negative log density.
    fn log_share(&self, value: f64) -> f64 {
        let (n, tail) = (self.logs.len(), (TAIL * self.logs.len() as f64) as usize);
        let first = self.logs[n - tail];
        if value <= first {
            let below = self.logs.partition_point(|log| *log < value);
            return ((n - below) as f64 / n as f64).ln();
        }
        // As of an exponential distribution, and of a normal one in the end: by a factor of e a nat, or slower.
        let beyond = self.logs[n - tail..].iter().map(|log| log - first).sum::<f64>();
        TAIL.ln() - (value - first) / (beyond / tail as f64).max(1.0)
    }
}

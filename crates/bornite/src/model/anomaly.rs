//! Unlikely rows, and rows with a cell that does not fit the others.

use super::predict::LENIENT;
use super::{Model, ModelError};
use crate::data::{Cell, Encoded, OutsideCell, Table};
use crate::mixture::log_sum;

/// How often a cell that does not belong to its row is drawn uniformly instead of from its column's marginal.
const UNIFORM_SHARE: f64 = 0.01;
/// The prior weight of rows that are unlikely as a whole, among anomalous rows. Both kinds count equally: rows of a new
/// kind have cells that fit each other, and only the whole row gives them away.
const WHOLE_ROW_SHARE: f64 = 0.5;
/// The number of sampled rows that determine which log densities are typical, the fraction of them that determines how
/// the tail falls off, and the seed that they are drawn with.
const TYPICAL_ROWS: usize = 500;
const TAIL_SHARE: f64 = 0.1;
const TYPICAL_SEED: u64 = 0;

/// What makes a row anomalous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AnomalyCriterion {
    /// The row is unlikely as a whole. The score is its negative log density.
    #[default]
    Density,
    /// A cell does not fit the others. The score is a log-likelihood ratio: one cell of the row redrawn, or all cells
    /// drawn independently, against the row as observed. That is log ½ (mean over j of q(xⱼ) / p(xⱼ | the others) + Πⱼ
    /// p(xⱼ) / p(x)), over the observed cells.
    ///
    /// A redrawn cell comes from its column's marginal p(xⱼ), or, one time in a hundred, from a uniform distribution,
    /// so that extreme values are found too. A value that was never seen always comes from the uniform distribution.
    /// The log density adds up the noise of all cells; this score finds the one cell that does not belong.
    Cells,
    /// Either of these: the log of the mean of the ratio of [`Cells`](Self::Cells) and ½ / √P, where P is the fraction
    /// of the model's own rows that are at most as likely as this one.
    ///
    /// Both terms have a mean of about 1 over rows of the model, so at most a fraction e⁻ˢ of them has a score above s.
    /// P is estimated from 500 exact samples, with an exponential tail beyond them; a missing cell counts as a typical
    /// one.
    Either,
}

/// A row and what makes it unlikely.
#[derive(Clone, Debug, PartialEq)]
pub struct Anomaly {
    /// The row, counted from 0.
    pub row: usize,
    /// Its log density.
    pub log_density: f64,
    /// Its observed cells, the most surprising first.
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
    /// [`log_conditional`](Self::log_conditional) relative to a uniform distribution, so that columns can be compared:
    /// over the interquartile range of a continuous column, or over all values of a finite one.
    pub log_standardized: f64,
}

impl Model {
    /// Finds the `count` rows with the lowest log density, the lowest first, each with its cells in order of surprise
    /// given the rest of the row. Ties keep the order of the table.
    ///
    /// Cost: one score of the table, then of one row for each cell of the returned rows.
    ///
    /// # Errors
    /// As for [`score`](Self::score).
    pub fn anomalies(&self, table: &Table, count: usize) -> Result<Vec<Anomaly>, ModelError> {
        self.anomalies_encoded(table, &self.schema.encode(table)?, count)
    }

    /// [`anomalies`](Self::anomalies) of a table that the model's schema has already encoded.
    ///
    /// # Errors
    /// The rows were encoded with another schema.
    pub fn anomalies_encoded(
        &self,
        table: &Table,
        rows: &Encoded,
        count: usize,
    ) -> Result<Vec<Anomaly>, ModelError> {
        let lowest = self.least_likely(rows, count)?.into_iter();
        lowest.map(|(row, log_density)| self.anomaly(table, rows, row, log_density)).collect()
    }

    /// Explains one row: its cells in order of surprise given the rest of the row, with the row's log density.
    ///
    /// # Errors
    /// The rows were encoded with another schema.
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

    /// Computes how surprising every cell is, given the other cells of its row: the negative
    /// [`log_standardized`](Contribution::log_standardized), row by row, one number for each column of the model. The
    /// surprise of a missing cell is NaN, unless missing is a value of its column.
    ///
    /// A cell from a uniform distribution has a surprise of about 0. In a row that contradicts the model's evidence,
    /// all cells have an infinite surprise. Cost: one score of the table, and one more for each column.
    ///
    /// # Errors
    /// As for [`score`](Self::score).
    pub fn surprises(&self, table: &Table) -> Result<Vec<f64>, ModelError> {
        let rows = self.schema.encode(table)?;
        self.surprises_of(table, (&rows, &self.score_encoded(&rows)?))
    }

    /// [`surprises`](Self::surprises) of a table that is already encoded and scored.
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

    /// Computes the anomaly score of every row of a table: larger is more anomalous.
    ///
    /// Cost: one score of the table, and, except for [`AnomalyCriterion::Density`], two more for each column.
    ///
    /// # Errors
    /// As for [`score`](Self::score).
    pub fn anomaly_scores(
        &self,
        table: &Table,
        by: AnomalyCriterion,
    ) -> Result<Vec<f64>, ModelError> {
        let rows = self.schema.encode(table)?;
        let logs = self.score_encoded(&rows)?;
        match by {
            AnomalyCriterion::Density => Ok(logs.into_iter().map(|log| -log).collect()),
            AnomalyCriterion::Cells => self.log_ratios(table, (&rows, &logs)),
            AnomalyCriterion::Either => {
                let (ratios, typical) =
                    (self.log_ratios(table, (&rows, &logs))?, TypicalRows::sample(self)?);
                let score = |(row, (ratio, log)): (usize, (f64, f64))| {
                    if log == f64::NEG_INFINITY {
                        return f64::INFINITY;
                    }
                    let whole =
                        typical.log_evidence(log + typical.missing_log_density(self, &rows, row));
                    log_sum(&[(1.0 - WHOLE_ROW_SHARE).ln() + ratio, WHOLE_ROW_SHARE.ln() + whole])
                };
                Ok(ratios.into_iter().zip(logs).enumerate().map(score).collect())
            }
        }
    }

    /// The log-likelihood ratios of [`AnomalyCriterion::Cells`], for a table that is already encoded and scored.
    fn log_ratios(
        &self,
        table: &Table,
        (rows, logs): (&Encoded, &[f64]),
    ) -> Result<Vec<f64>, ModelError> {
        let columns = self.schema.columns();
        let cells = self.surprises_of(table, (rows, logs))?;
        let mut independent: Vec<f64> = logs.iter().map(|log| -log).collect();
        let mut redrawn = vec![Vec::with_capacity(columns.len()); logs.len()];
        for (column, c) in columns.iter().enumerate() {
            let first = self.schema.variables_of(column).start;
            let column_table = table.with_columns(vec![table.column(&c.name)?.clone()])?;
            let marginal = self.score_encoded(&self.schema.encode_with(&column_table, LENIENT)?)?;
            for (row, log) in marginal.iter().enumerate() {
                let surprise = cells[row * columns.len() + column];
                let spread = self.log_spread(column, rows.batch().value(row, first));
                if surprise.is_nan() {
                    continue;
                }
                independent[row] += log;
                redrawn[row].push(match rows.outside_cell(row, column) {
                    Some(OutsideCell::Beyond(_)) => surprise,
                    Some(OutsideCell::Between) | None => {
                        let typical = (1.0 - UNIFORM_SHARE).ln() + surprise + spread + log;
                        log_sum(&[typical, UNIFORM_SHARE.ln() + surprise])
                    }
                });
            }
        }
        let score = |((log, redrawn), independent): ((&f64, &Vec<f64>), &f64)| {
            if *log == f64::NEG_INFINITY {
                return f64::INFINITY;
            }
            if redrawn.is_empty() {
                return 0.0;
            }
            let one = log_sum(redrawn) - (redrawn.len() as f64).ln();
            log_sum(&[one, *independent]) - 2.0_f64.ln()
        };
        Ok(logs.iter().zip(&redrawn).zip(&independent).map(score).collect())
    }

    /// Whether a cell is observed, even if its value was never seen before.
    fn is_known(&self, rows: &Encoded, row: usize, column: usize) -> bool {
        let first = self.schema.variables_of(column).start;
        !rows.batch().is_missing(row, first) || rows.outside_cell(row, column).is_some()
    }

    /// The log of the number of values of a finite column, or of the interquartile range of a continuous one; for a
    /// cell that may be missing, of the two options.
    fn log_spread(&self, column: usize, first: f64) -> f64 {
        let coding = self.schema.columns()[column].kind.coding();
        if coding.missing() == Some(first) { 2.0_f64.ln() } else { coding.log_spread() }
    }

    /// The `count` rows with the lowest log density, and their log densities.
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
                // Use the cell itself: its encoded value in [0, 1] is rounded far out in the tails.
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

/// What the model's own rows look like.
struct TypicalRows {
    /// The negative log densities of a sample, in ascending order.
    logs: Vec<f64>,
    /// For every column, the mean of log p(cell | the others).
    cells: Vec<f64>,
}

impl TypicalRows {
    fn sample(model: &Model) -> Result<Self, ModelError> {
        let rows = model.sample(TYPICAL_ROWS, TYPICAL_SEED)?;
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

    /// The typical log density of the missing cells of a row.
    fn missing_log_density(&self, model: &Model, rows: &Encoded, row: usize) -> f64 {
        let cells = self.cells.iter().enumerate();
        cells.filter(|(column, _)| !model.is_known(rows, row, *column)).map(|(_, log)| log).sum()
    }

    /// ln(½ / √P) at a log density.
    fn log_evidence(&self, log: f64) -> f64 {
        -2.0_f64.ln() - 0.5 * self.log_tail(-log)
    }

    /// ln P: the log of the fraction of rows with at least this negative log density.
    fn log_tail(&self, value: f64) -> f64 {
        let (n, tail) = (self.logs.len(), (TAIL_SHARE * self.logs.len() as f64) as usize);
        let first = self.logs[n - tail];
        if value <= first {
            let below = self.logs.partition_point(|log| *log < value);
            return ((n - below) as f64 / n as f64).ln();
        }
        // The tail is exponential, and falls off by at most a factor of e per nat, as that of a normal distribution
        // does.
        let beyond = self.logs[n - tail..].iter().map(|log| log - first).sum::<f64>();
        TAIL_SHARE.ln() - (value - first) / (beyond / tail as f64).max(1.0)
    }
}

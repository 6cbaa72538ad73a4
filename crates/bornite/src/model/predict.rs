//! Predictions of one column for many rows, given the other cells of each row.

use super::cells::{CellStatistic, Statistic, impossible_row};
use super::distribution::check_level;
use super::{Imputation, Model, ModelError};
use crate::data::{Column, EncodeOptions, Encoded, Mismatch, Table};

/// The distribution of one column in every row of a table, given the other cells of the row.
///
/// Missing cells are integrated out, unless missing is a value of their column, and so are columns that the table does
/// not have. The table's own cells of the predicted column are used only by [`log_density`](Self::log_density). All
/// other answers assume that the predicted cell is not missing.
///
/// ```
/// use bornite::Fit;
/// use bornite::data::{Column, Table};
///
/// let pairs = [("rain", 9.0), ("rain", 11.0), ("sun", 19.0), ("sun", 21.0)].repeat(50);
/// let table = Table::new(vec![
///     Column::labels("sky", pairs.iter().map(|p| Some(p.0))),
///     Column::numbers("degrees", pairs.iter().map(|p| p.1).collect()),
/// ])?;
/// let model = Fit::new().run(&table)?;
/// let degrees = model.predict(&table, "degrees")?;
/// let mean = degrees.mean()?;
/// assert!((mean[0] - 10.0).abs() < 1.0 && (mean[2] - 20.0).abs() < 1.0);
/// let sky = model.predict(&table, "sky")?.probabilities()?;
/// assert_eq!(sky.labels, ["rain", "sun"]);
/// assert!(sky.of_row(0)[0] > 0.9);
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Debug)]
pub struct Predictions<'a> {
    model: &'a Model,
    table: &'a Table,
    column: usize,
    /// The rows without the predicted column.
    rows: Encoded,
    absent: Vec<String>,
}

/// The probabilities of the values of a column, for many rows.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueProbabilities {
    /// The values, as text.
    pub labels: Vec<String>,
    /// The probabilities, row by row, one for each value.
    pub probabilities: Vec<f64>,
}

impl ValueProbabilities {
    /// The probabilities of one row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn of_row(&self, row: usize) -> &[f64] {
        &self.probabilities[row * self.labels.len()..][..self.labels.len()]
    }
}

impl Model {
    /// The distribution of a column in every row of a table, given the other cells of the row and the model's evidence.
    ///
    /// # Errors
    /// There is no such column, or a cell of another column does not fit it.
    pub fn predict<'a>(
        &'a self,
        table: &'a Table,
        column: &str,
    ) -> Result<Predictions<'a>, ModelError> {
        let column = self.schema.find(column)?;
        let name = &self.schema.columns()[column].name;
        let has = |name: &str| table.columns().iter().any(|c| c.name() == name);
        let others = self.schema.columns().iter().filter(|c| c.name != *name);
        let absent = others.map(|c| c.name.clone()).filter(|name| !has(name)).collect();
        let kept = table.columns().iter().filter(|c| c.name() != name).cloned();
        let mut kept: Vec<Column> = kept.collect();
        if kept.is_empty() {
            // A table with only this column still has rows.
            kept.push(Column::unknown(name.clone(), table.num_rows()));
        }
        let rows = self.schema.encode_with(&table.with_columns(kept)?, LENIENT)?;
        Ok(Predictions { model: self, table, column, rows, absent })
    }
}

/// Absent columns count as missing, and unseen values are scored.
pub(super) const LENIENT: EncodeOptions =
    EncodeOptions { unseen: crate::data::Unseen::Score, absent: Mismatch::Unknown };

impl Predictions<'_> {
    /// The other columns of the model that the table does not have. They are integrated out.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }

    /// The number of rows.
    pub fn num_rows(&self) -> usize {
        self.rows.num_rows()
    }

    /// The predicted cells: the median of numbers, or the most likely label.
    ///
    /// # Errors
    /// The evidence in a row has probability 0.
    pub fn values(&self) -> Result<Column, ModelError> {
        self.values_by(Imputation::Median, 0)
    }

    /// The predicted cells, with a choice of method. Samples with different seeds are independent.
    ///
    /// # Errors
    /// The evidence in a row has probability 0.
    pub fn values_by(&self, how: Imputation, seed: u64) -> Result<Column, ModelError> {
        self.values_from(0, how, seed)
    }

    /// [`values_by`](Self::values_by) for a piece of a table that is preceded by `start` rows.
    ///
    /// # Errors
    /// As for [`values_by`](Self::values_by); rows are counted from the beginning of the piece.
    pub fn values_from(
        &self,
        start: u64,
        how: Imputation,
        seed: u64,
    ) -> Result<Column, ModelError> {
        let schema = &self.model.schema;
        let range = schema.variables_of(self.column);
        let mut values = Vec::with_capacity(self.num_rows() * range.len());
        match how {
            _ if self.num_rows() == 0 => {}
            Imputation::Sample => {
                let width = schema.num_variables();
                let is_own = |_, column: usize| column == self.column;
                let all = self.model.complete(start, self.rows.batch(), seed, &is_own)?;
                values.extend(all.chunks_exact(width).flat_map(|row| &row[range.clone()]));
            }
            Imputation::Mean | Imputation::Mode | Imputation::Median => {
                let statistic = self.model.filling(self.column, how);
                let coding = schema.columns()[self.column].kind.coding();
                for cell in self.statistics(statistic)? {
                    match statistic {
                        Statistic::Mean => values.extend(coding.nearest(cell.values[0])),
                        Statistic::Mode | Statistic::Quantiles(_) | Statistic::Probabilities => {
                            values.extend(cell.values);
                        }
                    }
                }
            }
        }
        Ok(schema.decode_column(self.column, &values)?)
    }

    /// The mean of each row.
    ///
    /// # Errors
    /// The column contains text, or the evidence in a row has probability 0.
    pub fn mean(&self) -> Result<Vec<f64>, ModelError> {
        let cells = self.statistics(Statistic::Mean)?;
        Ok(cells.into_iter().map(|cell| cell.values[0]).collect())
    }

    /// The quantiles at these levels, row by row.
    ///
    /// # Errors
    /// The column contains text, a level is not between 0 and 1, or the evidence in a row has probability 0.
    pub fn quantiles(&self, levels: &[f64]) -> Result<Vec<f64>, ModelError> {
        levels.iter().try_for_each(|&level| check_level(level))?;
        let schema = &self.model.schema;
        let (c, width) = (&schema.columns()[self.column], schema.variables_of(self.column).len());
        let mut out = Vec::with_capacity(self.num_rows() * levels.len());
        for cell in self.statistics(Statistic::Quantiles(levels))? {
            for values in cell.values.chunks_exact(width) {
                let number = c.kind.coding().number_above(c.storage, values);
                let no_number =
                    || ModelError::NoNumbers { column: c.name.clone(), what: "quantile" };
                out.push(number.ok_or_else(no_number)?);
            }
        }
        Ok(out)
    }

    /// The probabilities of the column's values, excluding the value for missing cells and, unless the column has no
    /// labels, the catch-all value for other labels.
    ///
    /// # Errors
    /// The column is continuous or has digits, or the evidence in a row has probability 0.
    pub fn probabilities(&self) -> Result<ValueProbabilities, ModelError> {
        let schema = &self.model.schema;
        let (c, range) = (&schema.columns()[self.column], schema.variables_of(self.column));
        let domain = &self.model.mixture.variables()[range.start].domain;
        let Some(count) = domain.num_values().filter(|_| range.len() == 1) else {
            return Err(ModelError::NotFinite { column: c.name.clone() });
        };
        let count = super::cells::num_own_values(c.kind.coding(), count);
        let values: Vec<f64> = (0..count).map(|x| x as f64).collect();
        let texts = schema.decode_column(self.column, &values)?;
        let labels = (0..count).map(|x| texts.text(x).into_owned()).collect();
        let mut probabilities = Vec::with_capacity(self.num_rows() * count);
        for cell in self.statistics(Statistic::Probabilities)? {
            let p = &cell.values[..count];
            // The sum is 0 if the evidence allows only the catch-all value.
            let total: f64 = p.iter().sum();
            probabilities.extend(p.iter().map(|p| if total > 0.0 { p / total } else { *p }));
        }
        Ok(ValueProbabilities { labels, probabilities })
    }

    /// log p(cell | the others), in the units of the data; 0 if the cell is missing, unless missing is a value.
    ///
    /// # Errors
    /// The table does not have the column, a cell does not fit it, or the evidence in a row has probability 0.
    pub fn log_density(&self) -> Result<Vec<f64>, ModelError> {
        let schema = &self.model.schema;
        self.table.column(&schema.columns()[self.column].name)?;
        let all = self.model.score_encoded(&schema.encode_with(self.table, LENIENT)?)?;
        let others = self.log_others()?;
        if let Some(row) = others.iter().position(|log| *log == f64::NEG_INFINITY) {
            return Err(impossible_row(row));
        }
        Ok(all.iter().zip(&others).map(|(all, others)| all - others).collect())
    }

    /// log p(the others) for every row.
    pub(super) fn log_others(&self) -> Result<Vec<f64>, ModelError> {
        self.model.score_encoded(&self.rows)
    }

    /// The statistic of the predicted cell in every row.
    fn statistics(&self, statistic: Statistic<'_>) -> Result<Vec<CellStatistic>, ModelError> {
        let wanted = |_, column: usize| column == self.column;
        self.model.cell_statistics(self.rows.batch(), &wanted, |_| statistic)
    }
}

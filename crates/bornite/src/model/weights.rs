//! Row weights.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::ModelError;
use crate::data::Table;
use crate::learn::Splitter;

/// The maximum factor by which repeating rows may enlarge a table.
pub(super) const MAX_GROWTH: usize = 4;

/// A table with row weights.
#[derive(Debug)]
pub(super) struct WeightedTable<'a> {
    /// The table without the column of weights and without rows of weight 0.
    pub(super) table: Cow<'a, Table>,
    weights: Option<Weights>,
}

/// The weights of a table's rows.
#[derive(Debug)]
struct Weights {
    column: String,
    /// The rows with weights above 0, and their weights divided by the largest one.
    rows: Vec<usize>,
    relative: Vec<f64>,
    largest: f64,
}

impl<'a> WeightedTable<'a> {
    /// Reads the weights from a column. Without a column, all rows have the same weight.
    ///
    /// # Errors
    /// There is no such column, or no other column; a weight is negative or not a number; or all weights are 0.
    pub(super) fn new(table: &'a Table, column: Option<&str>) -> Result<Self, ModelError> {
        let Some(name) = column else {
            return Ok(Self { table: Cow::Borrowed(table), weights: None });
        };
        let weights = read(table, name)?;
        let kept: Vec<usize> = (0..weights.len()).filter(|&row| weights[row] > 0.0).collect();
        if kept.is_empty() {
            return Err(ModelError::NoRows { which: "the table, without rows with weight 0," });
        }
        let table = table.without_column(name)?.select_rows(&kept);
        // Scale first: the sum of very large weights could overflow.
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let relative = kept.iter().map(|&row| weights[row] / largest).collect();
        let weights = Weights { column: name.to_owned(), rows: kept, relative, largest };
        Ok(Self { table: Cow::Owned(table), weights: Some(weights) })
    }

    /// The position of a row in the table with rows of weight 0.
    pub(super) fn place(&self, row: usize) -> usize {
        self.weights.as_ref().map_or(row, |weights| weights.rows[row])
    }

    /// The weights of all rows, if this table is a sample of them.
    pub(super) fn of_all(&self) -> Option<RowWeights> {
        let weights = self.weights.as_ref()?;
        let (total, count) = weights.scale(&(0..weights.rows.len()).collect::<Vec<_>>());
        let column = weights.column.clone();
        Some(RowWeights { column, unit: total / count * weights.largest })
    }

    /// These rows, in order, each repeated in proportion to its weight. The proportions are exact if the weights are
    /// small multiples of the smallest one. Otherwise they are rounded such that neither a row nor a run of consecutive
    /// rows is off by more than one.
    pub(super) fn repeated(&self, rows: &[usize]) -> Vec<usize> {
        let Some(weights) = &self.weights else { return rows.to_vec() };
        let (total, count) = weights.scale(rows);
        // Systematic sampling: one repetition for every unit midpoint within the weight of a row.
        let (mut taken, mut sum) = (Vec::with_capacity(count as usize), 0.0);
        for row in rows {
            sum += weights.relative[*row];
            while (taken.len() as f64 + 0.5) * total < sum * count {
                taken.push(*row);
            }
        }
        taken
    }
}

impl Weights {
    /// The total weight of these rows, and how many rows they become.
    fn scale(&self, rows: &[usize]) -> (f64, f64) {
        let weight = |row: &usize| self.relative[*row];
        let total: f64 = rows.iter().map(weight).sum();
        let least = self.relative.iter().copied().fold(f64::INFINITY, f64::min);
        let is_multiple = |row: &usize| {
            let times = weight(row) / least;
            (times - times.round()).abs() < 1e-9 * times
        };
        let exactly = (total / least).round();
        let most = (MAX_GROWTH * rows.len()) as f64;
        let are_multiples = exactly <= most && rows.iter().all(is_multiple);
        (total, if are_multiples { exactly } else { most })
    }
}

/// The weights of rows that are read in pieces. A row is repeated once for every `unit` of its weight, which is that of
/// a sample of the rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RowWeights {
    pub(super) column: String,
    pub(super) unit: f64,
}

impl RowWeights {
    /// The weights of some of the rows.
    ///
    /// # Errors
    /// There is no such column, a weight is negative or not a number, or far above those of the sample.
    pub(super) fn of(&self, table: &Table) -> Result<Vec<f64>, ModelError> {
        let weights = read(table, &self.column)?;
        match weights.iter().position(|weight| *weight > Splitter::MOST * self.unit) {
            Some(row) => Err(ModelError::LargeWeight {
                row,
                column: self.column.clone(),
                text: weights[row].to_string(),
            }),
            None => Ok(weights),
        }
    }
}

/// The numbers in a column of weights.
fn read(table: &Table, name: &str) -> Result<Vec<f64>, ModelError> {
    let column = table.column(name)?;
    let weight = |row: usize| {
        let weight = column.number(row).filter(|w| w.is_finite() && *w >= 0.0);
        weight.ok_or_else(|| ModelError::Weight {
            row,
            column: name.to_owned(),
            text: column.text(row).into_owned(),
        })
    };
    (0..column.len()).map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Column;

    fn table(weights: &[f64]) -> Table {
        let x = (0..).map(Some).take(weights.len());
        Table::new(vec![Column::integers("x", x), Column::numbers("w", weights.to_vec())]).unwrap()
    }

    #[test]
    fn whole_weights_repeat_rows() {
        let table = table(&[2.0, 0.0, 6.0, 4.0, 2.0]);
        let weighted = WeightedTable::new(&table, Some("w")).unwrap();
        assert_eq!((weighted.table.num_columns(), weighted.table.num_rows()), (1, 4));
        assert_eq!(weighted.repeated(&[0, 1, 2, 3]), [0, 1, 1, 1, 2, 2, 3]);
        assert_eq!(weighted.repeated(&[1, 2]), [1, 1, 1, 2, 2]);
        let unweighted = WeightedTable::new(&table, None).unwrap();
        assert_eq!(unweighted.repeated(&[3, 1]), [3, 1]);
    }

    #[test]
    fn any_weights_are_within_one_row() {
        let weights: Vec<f64> =
            (0..500).map(|n| 0.01 + (f64::from(n) * 0.7).sin().powi(4)).collect();
        let table = table(&weights);
        let weighted = WeightedTable::new(&table, Some("w")).unwrap();
        let all: Vec<usize> = (0..500).collect();
        let taken = weighted.repeated(&all);
        assert_eq!(taken.len(), 4 * 500);
        let unit = weights.iter().sum::<f64>() / 2000.0;
        let mut sum = 0.0;
        for (row, w) in weights.iter().enumerate() {
            let count = |to: usize| taken.iter().filter(|t| **t < to).count() as f64;
            sum += w / unit;
            assert!((count(row + 1) - count(row) - w / unit).abs() < 1.0 + 1e-9, "{row}");
            assert!((count(row + 1) - sum).abs() < 0.5 + 1e-6, "{row}");
        }
        // The sum of these overflows.
        let table = self::table(&[1e308, 1.5e308, 1e308]);
        assert_eq!(WeightedTable::new(&table, Some("w")).unwrap().repeated(&[0, 1, 2]).len(), 12);
    }

    #[test]
    fn bad_weights_are_refused() {
        let message = |weights: &[f64], name: &str| {
            WeightedTable::new(&table(weights), Some(name)).unwrap_err().to_string()
        };
        assert!(message(&[1.0, -2.0], "w").contains("row 2, column 'w': the weight '-2'"));
        assert!(message(&[f64::NAN, 2.0], "w").contains("row 1, column 'w'"));
        assert!(message(&[0.0, 0.0], "w").contains("without rows with weight 0, has no rows"));
        assert!(message(&[1.0], "v").contains("no column 'v'"));
    }
}

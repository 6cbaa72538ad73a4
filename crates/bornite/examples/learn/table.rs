//! Numbers of a table, split and standardized.

use bornite::data::{Column, CsvOptions, Table};

use super::Failure;

/// Rows to learn from, to validate with and to test on.
#[derive(Clone, Debug)]
pub(super) struct Splits {
    pub(super) train: Table,
    pub(super) valid: Table,
    pub(super) test: Table,
}

/// The columns of a UCI set with more than 30 distinct values, centred and scaled by the mean and deviation of the rows
/// to learn from.
pub(super) fn standardized(path: &str) -> Result<Splits, Failure> {
    let table = Table::read_csv(path, &CsvOptions::default())?;
    let split = table.column("split")?;
    let is_in = |row: usize, n: f64| split.number(row) == Some(n);
    let rows = |n: f64| (0..table.num_rows()).filter(|&r| is_in(r, n)).collect::<Vec<_>>();
    let (train, valid, test) = (rows(0.0), rows(1.0), rows(2.0));
    let mut columns = Vec::new();
    for column in table.columns().iter().filter(|c| c.name() != "split") {
        let values: Vec<f64> =
            (0..column.len()).map(|r| column.number(r).unwrap_or(f64::NAN)).collect();
        let mut distinct = values.clone();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        if distinct.len() > 30 {
            let n = train.len() as f64;
            let mean = train.iter().map(|&r| values[r]).sum::<f64>() / n;
            let square = train.iter().map(|&r| (values[r] - mean).powi(2)).sum::<f64>() / n;
            let scaled = values.iter().map(|x| (x - mean) / square.sqrt()).collect();
            columns.push(Column::numbers(column.name(), scaled));
        }
    }
    let table = Table::new(columns)?;
    Ok(Splits {
        train: table.select_rows(&train),
        valid: table.select_rows(&valid),
        test: table.select_rows(&test),
    })
}

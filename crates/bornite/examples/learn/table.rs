//! Tables of numbers, split into training, validation and test rows.

use bornite::data::{Column, ColumnKind, CsvOptions, Schema, Table};

use super::Failure;

/// The training, validation and test rows of a table.
#[derive(Clone, Debug)]
pub(super) struct Splits {
    pub(super) train: Table,
    pub(super) valid: Table,
    pub(super) test: Table,
}

/// The columns of a UCI data set with more than 30 distinct values, unchanged, and their standard deviations in the training
/// rows.
pub(super) fn numbers(path: &str) -> Result<(Splits, Vec<f64>), Failure> {
    let table = Table::read_csv(path, &CsvOptions::default())?;
    let split = table.column("split")?;
    let is_in = |row: usize, n: f64| split.number(row) == Some(n);
    let rows = |n: f64| (0..table.num_rows()).filter(|&r| is_in(r, n)).collect::<Vec<_>>();
    let [train, valid, test] = [0.0, 1.0, 2.0].map(rows);
    let (mut columns, mut deviations) = (Vec::new(), Vec::new());
    for column in table.columns().iter().filter(|c| c.name() != "split") {
        let values = values(column);
        let mut distinct = values.clone();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        if distinct.len() > 30 {
            columns.push(column.clone());
            deviations.push(moments(train.iter().map(|&r| values[r]))[1]);
        }
    }
    let table = Table::new(columns)?;
    let [train, valid, test] = [train, valid, test].map(|rows| table.select_rows(&rows));
    Ok((Splits { train, valid, test }, deviations))
}

/// The same columns, standardized with the means and standard deviations of the training rows.
pub(super) fn standardized(path: &str) -> Result<Splits, Failure> {
    let (Splits { train, valid, test }, _) = numbers(path)?;
    let moments: Vec<[f64; 2]> = train.columns().iter().map(|c| moments(values(c))).collect();
    let scaled = |table: &Table| {
        let scaled = table.columns().iter().zip(&moments).map(|(column, [mean, deviation])| {
            let scaled = values(column).iter().map(|x| (x - mean) / deviation).collect();
            Column::numbers(column.name(), scaled)
        });
        Table::new(scaled.collect())
    };
    Ok(Splits { train: scaled(&train)?, valid: scaled(&valid)?, test: scaled(&test)? })
}

/// The constant that converts a log-likelihood to that of a density of standardized columns, and the number of columns on a
/// grid. The probability of a cell is spread over the step of its grid.
pub(super) fn log_units(schema: &Schema, deviations: &[f64]) -> (f64, usize) {
    let steps: Vec<Option<f64>> = schema.columns().iter().map(|c| step(&c.kind)).collect();
    let units = steps.iter().zip(deviations).map(|(step, d)| (d / step.unwrap_or(1.0)).ln());
    (units.sum(), steps.iter().flatten().count())
}

/// The step of the grid that a column lies on.
fn step(kind: &ColumnKind) -> Option<f64> {
    match kind.of_known() {
        ColumnKind::Number(number) => number.unit(),
        ColumnKind::Continuous(_) | ColumnKind::Periodic(_) => None,
        ColumnKind::Integer(_) | ColumnKind::Digits(_) => Some(1.0),
        ColumnKind::Categorical(_)
        | ColumnKind::Boolean(_)
        | ColumnKind::DateTime(_)
        | ColumnKind::Optional(_) => unreachable!("columns of many numbers"),
    }
}

fn values(column: &Column) -> Vec<f64> {
    (0..column.len()).map(|row| column.number(row).unwrap_or(f64::NAN)).collect()
}

/// The mean and the standard deviation.
fn moments(values: impl IntoIterator<Item = f64>) -> [f64; 2] {
    let values: Vec<f64> = values.into_iter().collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    [mean, square.sqrt()]
}

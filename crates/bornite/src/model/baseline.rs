//! The model in which all columns are independent: what every fit is held against.

use std::collections::BTreeMap;

use crate::data::{ColumnKind, Encoded, Schema};

/// Bins of a periodic column.
const BINS: usize = 16;
/// What is added to the count of every value.
const HALF: f64 = 0.5;

/// Frequencies of finite columns, with half a row added to each value; the transform's own density of continuous ones; a
/// histogram of periodic ones. Digits are counted each after those before it.
pub(super) struct Independent {
    /// By column, and the codes that come before: the number of rows with each code.
    counts: Vec<BTreeMap<Vec<usize>, Vec<f64>>>,
}

impl Independent {
    pub(super) fn fit(schema: &Schema, rows: &Encoded) -> Self {
        let mut counts = vec![BTreeMap::new(); schema.columns().len()];
        for row in 0..rows.num_rows() {
            visit(schema, &rows.row(row), |column, prefix, code, values| {
                let of: &mut BTreeMap<Vec<usize>, Vec<f64>> = &mut counts[column];
                of.entry(prefix.to_vec()).or_insert_with(|| vec![HALF; values])[code] += 1.0;
            });
        }
        Self { counts }
    }

    /// In nats per row, and the units of the data.
    pub(super) fn mean_log_likelihood(&self, schema: &Schema, rows: &Encoded) -> f64 {
        let mut sum: f64 = rows.log_jacobian().iter().sum();
        for row in 0..rows.num_rows() {
            visit(schema, &rows.row(row), |column, prefix, code, values| {
                sum += match self.counts[column].get(prefix) {
                    Some(counts) => (counts[code] / counts.iter().sum::<f64>()).ln(),
                    None => -(values as f64).ln(),
                };
                if matches!(schema.columns()[column].kind, ColumnKind::Periodic { .. }) {
                    sum += (BINS as f64).ln();
                }
            });
        }
        sum / rows.num_rows().max(1) as f64
    }
}

/// Names every known code of a row: its column, the codes of the same column before it, and how many codes there are.
fn visit(schema: &Schema, row: &[f64], mut each: impl FnMut(usize, &[usize], usize, usize)) {
    for (column, c) in schema.columns().iter().enumerate() {
        let values = &row[schema.variables_of(column)];
        if values.iter().any(|x| x.is_nan()) {
            continue;
        }
        match &c.kind {
            ColumnKind::Continuous { .. } => {}
            ColumnKind::Periodic { .. } => {
                each(column, &[], ((values[0] * BINS as f64) as usize).min(BINS - 1), BINS);
            }
            ColumnKind::Digits { radices, .. } => {
                let codes: Vec<usize> = values.iter().map(|&x| x as usize).collect();
                for (n, &radix) in radices.iter().enumerate() {
                    each(column, &codes[..n], codes[n], radix);
                }
            }
            kind => each(column, &[], values[0] as usize, num_values(kind)),
        }
    }
}

/// The number of values of a kind of one finite variable.
fn num_values(kind: &ColumnKind) -> usize {
    match kind {
        ColumnKind::Categorical { labels, has_other } => labels.len() + usize::from(*has_other),
        ColumnKind::Boolean { .. } => 2,
        ColumnKind::Integer { min, max } => max.abs_diff(*min) as usize + 1,
        _ => 1,
    }
}

//! The model in which all columns are independent, the baseline of every fit.

use std::collections::BTreeMap;

use crate::data::{Encoded, Schema};
use crate::domain::Domain;

/// The number of histogram bins of a periodic column.
const BINS: usize = 16;
/// The pseudocount of every value.
const HALF: f64 = 0.5;

/// A model with independent columns: frequencies of finite columns, with half a row added to each value; the
/// transform's own density of continuous ones; a histogram of periodic ones. The distribution of a digit depends on the
/// digits before it.
pub(super) struct Independent {
    /// For each column, and for each prefix of codes in it, the number of rows with each next code.
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

    /// The mean log-likelihood, in nats per row and the units of the data.
    pub(super) fn mean_log_likelihood(&self, schema: &Schema, rows: &Encoded) -> f64 {
        let mut sum: f64 = rows.log_jacobian().iter().sum();
        for row in 0..rows.num_rows() {
            visit(schema, &rows.row(row), |column, prefix, code, values| {
                sum += match self.counts[column].get(prefix) {
                    Some(counts) => (counts[code] / counts.iter().sum::<f64>()).ln(),
                    None => -(values as f64).ln(),
                };
                if is_periodic(schema, column) {
                    sum += (BINS as f64).ln();
                }
            });
        }
        sum / rows.num_rows().max(1) as f64
    }
}

/// Visits every known code of a row, with its column, the codes that precede it in that column, and the number of
/// possible codes.
fn visit(schema: &Schema, row: &[f64], mut each: impl FnMut(usize, &[usize], usize, usize)) {
    for (column, c) in schema.columns().iter().enumerate() {
        let values = &row[schema.variables_of(column)];
        // If missing is a value, only the first variable of a missing cell is known.
        let known = values.iter().take_while(|x| !x.is_nan()).count();
        if known < values.len() && c.kind.coding().missing() != values.first().copied() {
            continue;
        }
        let values = &values[..known];
        let mut before = Vec::new();
        for (domain, &x) in c.kind.coding().domains().into_iter().zip(values) {
            let (code, count) = match domain {
                Domain::Finite(count) => (x as usize, count),
                Domain::Circle(length) => {
                    (((x / length * BINS as f64) as usize).min(BINS - 1), BINS)
                }
                Domain::Atoms(ref parts) => {
                    let count = parts.points.len();
                    (domain.atom(x).unwrap_or(count), count + 1)
                }
                Domain::Real | Domain::Interval(..) | Domain::HalfLine(_) => continue,
            };
            each(column, &before, code, count);
            before.push(code);
        }
    }
}

fn is_periodic(schema: &Schema, column: usize) -> bool {
    matches!(schema.columns()[column].kind.coding().domains()[..], [Domain::Circle(_)])
}

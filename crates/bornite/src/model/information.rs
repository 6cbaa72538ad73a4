//! Entropies and mutual information of columns: exact sums over the values of finite columns, means over exact samples
//! otherwise.

use super::event::{intersect, intersect_evidence};
use super::{Event, Model, ModelError};
use crate::data::{DataError, EncodeOptions, Mismatch, Table, Unseen};
use crate::mixture::log_sum;
use crate::query::{Evidence, Query};

/// The maximum number of queries in an exact sum.
const MAX_QUERIES: usize = 1 << 17;
/// The number of sampled rows.
const ROWS: usize = 1 << 13;
/// The number of queries per batch.
const BATCH: usize = 1 << 13;

/// A number, and its standard error if it is estimated from samples.
pub(super) type Estimate = (f64, Option<f64>);

impl Model {
    /// The joint entropy of some columns, in nats.
    pub(super) fn entropy(&self, columns: &[usize], given: &Event) -> Result<Estimate, ModelError> {
        self.mean_log(&[(-1.0, columns)], given)
    }

    /// The mutual information of two groups of columns, in nats.
    pub(super) fn information_between(
        &self,
        first: &[usize],
        second: &[usize],
        given: &Event,
    ) -> Result<Estimate, ModelError> {
        let all: Vec<usize> = first.iter().chain(second).copied().collect();
        let is_finite = |&column: &usize| self.finite_values(&[column]).is_some();
        if let Some(&column) = first.iter().find(|c| second.contains(c) && !is_finite(c)) {
            let problem = "its information about itself is infinite; name it on one side only";
            let column = self.schema.columns()[column].name.clone();
            return Err(DataError::Evidence { column, problem }.into());
        }
        let (value, error) = self.mean_log(&[(1.0, &all), (-1.0, first), (-1.0, second)], given)?;
        // Rounding may give a small negative number.
        Ok((if error.is_none() { value.max(0.0) } else { value }, error))
    }

    /// Whether the joint distribution of the columns has a density.
    pub(super) fn have_density(&self, columns: &[usize]) -> bool {
        let variables = self.mixture.variables();
        columns.iter().any(|&column| {
            let range = self.schema.variables_of(column);
            let coding = self.schema.columns()[column].kind.coding();
            variables[range.start].domain.num_values().is_none() && coding.has_density(&[0.5])
        })
    }

    /// The variables of these columns with their numbers of values, if all are finite.
    fn finite_values(&self, columns: &[usize]) -> Option<Vec<(usize, usize)>> {
        // The remaining variables of a missing cell are not determined.
        let has_undetermined = |&column: &usize| {
            self.schema.variables_of(column).len() > 1 && self.schema.present(column).is_some()
        };
        if columns.iter().any(has_undetermined) {
            return None;
        }
        let variables = columns.iter().flat_map(|&column| self.schema.variables_of(column));
        variables.map(|v| Some((v, self.mixture.variables()[v].domain.num_values()?))).collect()
    }

    /// E[Σ c ln p(x)] over groups of columns x with factors c, given the evidence.
    fn mean_log(&self, groups: &[(f64, &[usize])], given: &Event) -> Result<Estimate, ModelError> {
        let given = given.and(&self.schema, &self.given)?;
        let total = log_sum(&self.log_cases(given.cases())?);
        if total == f64::NEG_INFINITY {
            return Err(ModelError::Impossible { what: "the evidence".to_owned() });
        }
        let mut all: Vec<usize> =
            groups.iter().flat_map(|(_, columns)| columns.iter()).copied().collect();
        all.sort_unstable();
        all.dedup();
        let values = self.finite_values(&all);
        let count = values.as_ref().and_then(|values| {
            values.iter().try_fold(given.cases().len(), |n, (_, count)| n.checked_mul(*count))
        });
        match (values, count) {
            (Some(values), Some(count)) if count <= MAX_QUERIES => {
                self.sum_of_logs(groups, &values, given.cases(), total).map(|sum| (sum, None))
            }
            _ => self.mean_of_logs(groups, &given, total),
        }
    }

    /// [`mean_log`](Self::mean_log), by a sum over all values of finite variables.
    fn sum_of_logs(
        &self,
        groups: &[(f64, &[usize])],
        values: &[(usize, usize)],
        cases: &[Query],
        total: f64,
    ) -> Result<f64, ModelError> {
        let variables = self.mixture.variables();
        let rows: usize = values.iter().map(|(_, count)| count).product();
        // Rows enumerate the values in mixed radix; the last variable varies fastest.
        let mut stride = rows;
        let mut strides = Vec::with_capacity(values.len());
        for &(v, count) in values {
            stride /= count;
            strides.push((v, count, stride));
        }
        let value = |row: usize, (_, count, stride): (usize, usize, usize)| row / stride % count;
        let mut p = Vec::with_capacity(rows);
        let batch = (BATCH / cases.len()).max(1);
        for start in (0..rows).step_by(batch) {
            let (mut queries, mut owners) = (Vec::new(), Vec::new());
            for row in start..(start + batch).min(rows) {
                for case in cases {
                    let mut query = case.clone();
                    let fixed = strides.iter().try_for_each(|&part| {
                        let point = Evidence::Value(value(row, part) as f64);
                        let evidence = intersect_evidence(
                            &variables[part.0].domain,
                            &query.evidence()[part.0],
                            &point,
                        )?;
                        query.set(variables, part.0, evidence).ok()
                    });
                    if fixed.is_some() {
                        queries.push(query);
                        owners.push(row - start);
                    }
                }
            }
            let mut sums = vec![0.0; batch.min(rows - start)];
            for (owner, log) in owners.iter().zip(self.log_cases(&queries)?) {
                sums[*owner] += (log - total).exp();
            }
            p.extend(sums);
        }
        let mut sum = 0.0;
        for &(factor, columns) in groups {
            let own: Vec<usize> =
                columns.iter().flat_map(|&column| self.schema.variables_of(column)).collect();
            let parts: Vec<_> = strides.iter().filter(|part| own.contains(&part.0)).collect();
            let place = |row: usize| {
                parts.iter().fold(0, |place, part| place * part.1 + value(row, **part))
            };
            let mut marginal = vec![0.0; parts.iter().map(|part| part.1).product()];
            for (row, p) in p.iter().enumerate() {
                marginal[place(row)] += p;
            }
            let term = |q: &f64| if *q > 0.0 { q * q.ln() } else { 0.0 };
            sum += factor * marginal.iter().map(term).sum::<f64>();
        }
        Ok(sum)
    }

    /// [`mean_log`](Self::mean_log), estimated from samples.
    fn mean_of_logs(
        &self,
        groups: &[(f64, &[usize])],
        given: &Event,
        total: f64,
    ) -> Result<Estimate, ModelError> {
        let rows = (MAX_QUERIES / given.cases().len()).clamp(64, ROWS);
        let sample = self.sample_given(given, rows, 0)?;
        let mut sums = vec![0.0; rows];
        for &(factor, columns) in groups {
            let logs = self.log_of_rows(&sample, columns, given.cases())?;
            for (sum, log) in sums.iter_mut().zip(logs) {
                *sum += factor * (log - total);
            }
        }
        let count = rows as f64;
        let mean = sums.iter().sum::<f64>() / count;
        let variance = sums.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Ok((mean, Some((variance / count).sqrt())))
    }

    /// The log probability of some cells of every row together with the evidence.
    fn log_of_rows(
        &self,
        table: &Table,
        columns: &[usize],
        cases: &[Query],
    ) -> Result<Vec<f64>, ModelError> {
        let cells: Vec<_> = columns.iter().map(|&column| table.columns()[column].clone()).collect();
        let mut names = std::collections::BTreeSet::new();
        let cells = cells.into_iter().filter(|c| names.insert(c.name().to_owned())).collect();
        let options = EncodeOptions { unseen: Unseen::Score, absent: Mismatch::Unknown };
        let encoded = self.schema.encode_with(&Table::new(cells)?, options)?;
        let variables = self.mixture.variables();
        let mut logs = Vec::with_capacity(table.num_rows());
        for start in (0..table.num_rows()).step_by(BATCH) {
            let (mut queries, mut owners) = (Vec::new(), Vec::new());
            let end = (start + BATCH).min(table.num_rows());
            for row in start..end {
                let query = self.schema.evidence_row(variables, &encoded.row(row))?;
                for query in cases.iter().filter_map(|case| intersect(variables, case, &query)) {
                    queries.push(query);
                    owners.push(row - start);
                }
            }
            let mut parts = vec![Vec::new(); end - start];
            for (owner, log) in owners.iter().zip(self.log_cases(&queries)?) {
                parts[*owner].push(log);
            }
            logs.extend(parts.iter().map(|parts| log_sum(parts)));
        }
        Ok(logs.iter().zip(encoded.log_jacobian()).map(|(log, slope)| log + slope).collect())
    }
}

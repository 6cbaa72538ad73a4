//! Means and covariances of columns.

use super::event::intersect;
use super::{Model, ModelError};
use crate::basis::Part;
use crate::circuit::Orthonormal;
use crate::linalg::Matrix;
use crate::mixture::shares;
use crate::ops::{Environments, FunctionNode, OperationError};
use crate::query::{Evidence, Query};

/// Means and covariances.
type Moments = (Vec<f64>, Matrix<f64>);

impl Model {
    /// Computes the means of numeric columns and their covariance matrix, given the model's evidence.
    ///
    /// Rows in which one of the columns has no number, because the cell is missing or has another label, are excluded.
    /// Of two labels, the first counts as 0 and the second as 1. Periodic columns run from their origin to one period
    /// later.
    ///
    /// Cost: one pass up and one pass down for every case of the evidence and every circuit, and one path up for every
    /// variable of the columns.
    ///
    /// # Errors
    /// A column contains text, or no row has numbers in all of the columns.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn covariance(&self, columns: &[usize]) -> Result<(Vec<f64>, Matrix<f64>), ModelError> {
        self.covariance_within(columns, self.given.cases())
    }

    /// Means and covariances, given that one of the cases holds.
    pub(super) fn covariance_within(
        &self,
        columns: &[usize],
        cases: &[Query],
    ) -> Result<(Vec<f64>, Matrix<f64>), ModelError> {
        let mut numeric = Query::unknown(self.schema.num_variables());
        for &column in columns {
            self.restrict_to_numbers(column, &mut numeric)?;
        }
        let variables = self.mixture.variables();
        let cases: Vec<Query> =
            cases.iter().filter_map(|b| intersect(variables, b, &numeric)).collect();
        let (mut logs, mut moments) = (Vec::new(), Vec::new());
        for query in &cases {
            for (log_weight, circuit) in self.mixture.parts() {
                let environments = match Environments::given(circuit, query) {
                    Ok(environments) => environments,
                    Err(OperationError::ImpossibleEvidence) => continue,
                    Err(other) => return Err(other.into()),
                };
                logs.push(log_weight + environments.log_evidence());
                moments.push(self.moments_within(columns, query, &environments));
            }
        }
        let impossible =
            || ModelError::Impossible { what: "that all columns are numbers".to_owned() };
        let shares = shares(&logs).ok_or_else(impossible)?;
        let parts: Vec<(f64, Moments)> = shares.into_iter().zip(moments).collect();
        Ok(mixture(columns.len(), &parts))
    }

    /// Excludes the values for other labels and for missing cells.
    fn restrict_to_numbers(&self, column: usize, query: &mut Query) -> Result<(), ModelError> {
        let c = &self.schema.columns()[column];
        let words = || ModelError::NoNumbers { column: c.name.clone(), what: "covariance" };
        let range = self.schema.variables_of(column);
        let term = |place: usize, x: f64| c.kind.coding().term(c.storage, place, x);
        for (place, variable) in range.enumerate() {
            let Some(count) = self.mixture.variables()[variable].domain.num_values() else {
                if let Some(present) = self.schema.present(column) {
                    query.set(self.mixture.variables(), variable, present)?;
                }
                continue;
            };
            let numbers: Vec<usize> =
                (0..count).filter(|&x| term(place, x as f64).is_some()).collect();
            match numbers.len() {
                0 => return Err(words()),
                all if all == count => {}
                _ => {
                    let values = Evidence::In(Part::Values(numbers));
                    query.set(self.mixture.variables(), variable, values)?;
                }
            }
        }
        Ok(())
    }

    /// Means and covariances of the columns within one case, under one circuit.
    fn moments_within(
        &self,
        columns: &[usize],
        query: &Query,
        environments: &Environments<&Orthonormal>,
    ) -> Moments {
        let mut functions = vec![Vec::new(); self.schema.num_variables()];
        for &column in columns {
            for (place, v) in self.schema.variables_of(column).enumerate() {
                functions[v] = self.function_nodes(column, place, &query.evidence()[v]);
            }
        }
        let (means, covariances) = environments.function_moments(&functions);
        let range = |column: usize| self.schema.variables_of(column);
        let mean = |&column: &usize| {
            let base = self.schema.columns()[column].kind.coding().base();
            base + range(column).map(|v| means[v]).sum::<f64>()
        };
        let of_columns = Matrix::from_fn(columns.len(), columns.len(), |i, j| {
            let pairs = range(columns[i]).flat_map(|v| range(columns[j]).map(move |w| (v, w)));
            pairs.map(|pair| covariances[pair]).sum()
        });
        (columns.iter().map(mean).collect(), of_columns)
    }

    /// The contribution of one variable to its column's number, at nodes within the evidence about the variable.
    fn function_nodes(
        &self,
        column: usize,
        place: usize,
        evidence: &Evidence,
    ) -> Vec<FunctionNode> {
        let c = &self.schema.columns()[column];
        let domain =
            &self.mixture.variables()[self.schema.variables_of(column).start + place].domain;
        let term = |x: f64| c.kind.coding().term(c.storage, place, x);
        let number = |x: f64| term(x).unwrap_or(f64::NAN);
        let on_interval = || {
            let (low, high) = match evidence {
                Evidence::Value(x) => {
                    return vec![FunctionNode { x: *x, weight: 1.0, value: number(*x) }];
                }
                Evidence::In(Part::Interval { low, high }) => (low.max(0.0), high.min(1.0)),
                Evidence::Unknown | Evidence::In(Part::Values(_)) => (0.0, 1.0),
            };
            let known = |x: f64| match evidence {
                Evidence::In(Part::Interval { low, high }) => (*low..*high).contains(&x),
                Evidence::Unknown | Evidence::Value(_) | Evidence::In(Part::Values(_)) => true,
            };
            let atoms = domain.atoms().iter().filter(|x| known(**x));
            let atoms = atoms.map(|&x| FunctionNode { x, weight: 1.0, value: number(x) });
            let rest = if low < high { self.number_nodes(column, low, high) } else { Vec::new() };
            atoms.chain(rest).collect()
        };
        let on_values = |count: usize| -> Vec<FunctionNode> {
            let known = |x: usize| match evidence {
                Evidence::Value(v) => *v as usize == x,
                Evidence::In(Part::Values(values)) => values.contains(&x),
                Evidence::Unknown | Evidence::In(Part::Interval { .. }) => true,
            };
            let node = |x: usize| {
                let value = term(x as f64)?;
                Some(FunctionNode { x: x as f64, weight: 1.0, value })
            };
            (0..count).filter(|&x| known(x)).filter_map(node).collect()
        };
        match domain.num_values() {
            Some(count) => on_values(count),
            None => on_interval(),
        }
    }
}

/// The moments of a mixture, from those of its components.
fn mixture(size: usize, parts: &[(f64, Moments)]) -> Moments {
    let mean: Vec<f64> =
        (0..size).map(|i| parts.iter().map(|(p, (m, _))| p * m[i]).sum()).collect();
    let covariance = Matrix::from_fn(size, size, |i, j| {
        let of =
            |(p, (m, c)): &(f64, Moments)| p * (c[(i, j)] + (m[i] - mean[i]) * (m[j] - mean[j]));
        parts.iter().map(of).sum()
    });
    (mean, covariance)
}

#[cfg(test)]
mod tests {
    use crate::data::{Cell, Column, InferOptions, KindHint, Table};
    use crate::model::{Event, Fit, Model, ModelOptions};

    /// A column in digits, one with two labels, and one of real numbers, all of them dependent.
    fn model() -> Model {
        let n = 300_i64;
        let age = |i: i64| (i * 37) % 70;
        let table = Table::new(vec![
            Column::integers("age", (0..n).map(|i| Some(age(i)))),
            Column::labels("owner", (0..n).map(|i| Some(if age(i) > 40 { "yes" } else { "no" }))),
            Column::numbers("pay", (0..n).map(|i| age(i) as f64 + (i as f64).sin()).collect()),
        ])
        .unwrap();
        let kinds = [("age".to_owned(), KindHint::Digits)].into_iter().collect();
        let infer = InferOptions { kinds, ..InferOptions::default() };
        let options = ModelOptions { infer, epochs: Some(10), ..ModelOptions::default() };
        Fit::with(options).run(&table).unwrap()
    }

    /// Moments of age and owner by enumeration.
    fn enumerated(model: &Model) -> [f64; 5] {
        let schema = model.schema();
        let mut sums = [0.0; 6];
        for age in 0..72 {
            for (owner, word) in ["no", "yes"].into_iter().enumerate() {
                let Ok(a) = Event::value(schema, "age", Cell::Integer(age)) else { continue };
                let b = Event::value(schema, "owner", Cell::Text(word)).unwrap();
                let p = model.log_probability(&a.and(schema, &b).unwrap()).unwrap().exp();
                let (x, y) = (age as f64, owner as f64);
                for (sum, g) in sums.iter_mut().zip([1.0, x, y, x * x, x * y, y * y]) {
                    *sum += p * g;
                }
            }
        }
        let [one, x, y, xx, xy, yy] = sums;
        assert!((one - 1.0).abs() < 1e-9, "{one}");
        [x, y, xx - x * x, xy - x * y, yy - y * y]
    }

    fn check(model: &Model) {
        let (mean, c) = model.covariance(&[0, 1]).unwrap();
        let found = [mean[0], mean[1], c[(0, 0)], c[(0, 1)], c[(1, 1)]];
        for (f, e) in found.iter().zip(enumerated(model)) {
            assert!((f - e).abs() < 1e-8 * (1.0 + e.abs()), "{found:?}");
        }
        assert_eq!(c[(0, 1)], c[(1, 0)]);
        // Compute the mean of the real column in another way.
        let (mean, c) = model.covariance(&[2, 0]).unwrap();
        let nothing = Event::parse(model.schema(), "").unwrap();
        let pay = model.distribution("pay", &nothing).unwrap().mean().unwrap();
        assert!((mean[0] - pay).abs() < 1e-9 * (1.0 + pay.abs()));
        assert!(c[(0, 0)] > 0.0 && c[(0, 1)].powi(2) <= c[(0, 0)] * c[(1, 1)]);
    }

    #[test]
    fn covariances_are_those_of_an_enumeration() {
        let model = model();
        check(&model);
        // An interval of digits consists of several cases, whose moments are mixed.
        check(&model.condition("age in [13, 57)").unwrap());
        check(&model.condition("pay in [10, 30), owner != 'yes'").unwrap());
    }

    #[test]
    fn words_have_none() {
        let table = Table::new(vec![Column::labels("w", ["a", "b", "c"].map(Some))]).unwrap();
        let model = Fit::new().epochs(1).as_is().run(&table).unwrap();
        let error = model.covariance(&[0]).unwrap_err().to_string();
        assert!(error.contains("'w' has no covariance"), "{error}");
    }
}

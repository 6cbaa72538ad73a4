//! Tables as lists of columns: `(name, values, missing or labels)`.
//!
//! The Python package converts numpy, pandas, polars and pyarrow tables to and from this form. A column is
//! `(name, float64, None)` for real numbers, with NaN for missing cells; `(name, int64, bool or None)` for whole numbers,
//! with a mask of missing cells; or `(name, int64, list of str)` for text, with positions in the list, or −1 for missing
//! cells. A string as the third item means that the column is unobserved.

use bornite::data::{Cells, Column, Labels, Table};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::exception::{Raise, argument_error};

/// A table given as a list of columns.
pub(crate) struct TableLike(pub(crate) Table);

impl<'a, 'py> FromPyObject<'a, 'py> for TableLike {
    type Error = PyErr;

    fn extract(object: pyo3::Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let mut columns = Vec::new();
        for item in object.try_iter()? {
            columns.push(column(&item?)?);
        }
        Table::new(columns).map(Self).map_err(Raise::raise)
    }
}

fn column(item: &Bound<'_, PyAny>) -> PyResult<Column> {
    let (name, values, more): (String, Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
    if more.is_instance_of::<PyString>() {
        return Ok(Column::unknown(name, values.len()?));
    }
    if let Ok(numbers) = values.extract::<PyReadonlyArray1<'_, f64>>() {
        return Ok(Column::numbers(name, numbers.as_array().to_vec()));
    }
    let Ok(whole) = values.extract::<PyReadonlyArray1<'_, i64>>() else {
        let message = format!("column '{name}': expected an array of float64 or int64");
        return Err(argument_error(message));
    };
    let whole = whole.as_array();
    if more.is_none() {
        return Ok(Column::integers(name, whole.iter().map(|&x| Some(x))));
    }
    if let Ok(missing) = more.extract::<PyReadonlyArray1<'_, bool>>() {
        let missing = missing.as_array();
        let cell = |(&x, &missing): (&i64, &bool)| (!missing).then_some(x);
        return Ok(Column::integers(name, whole.iter().zip(missing.iter()).map(cell)));
    }
    let labels: Vec<String> = more.extract()?;
    let label = |&code: &i64| labels.get(usize::try_from(code).ok()?).map(String::as_str);
    Ok(Column::labels(name, whole.iter().map(label)))
}

/// A column as a tuple.
type ColumnTuple<'py> = (String, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// A table as a list of columns.
pub(crate) fn to_python<'py>(py: Python<'py>, table: &Table) -> PyResult<Vec<ColumnTuple<'py>>> {
    let none = || py.None().into_bound(py);
    let of = |column: &Column| {
        let name = column.name().to_owned();
        Ok(match column.cells() {
            Cells::Numbers(c) => (name, c.values().to_vec().into_pyarray(py).into_any(), none()),
            Cells::Integers(c) => {
                let values: Vec<i64> = c.iter().map(|x| x.unwrap_or(0)).collect();
                let missing: Vec<bool> = c.iter().map(|x| x.is_none()).collect();
                let missing = if missing.contains(&true) {
                    missing.into_pyarray(py).into_any()
                } else {
                    none()
                };
                (name, values.into_pyarray(py).into_any(), missing)
            }
            Cells::Labels(c) => {
                let code = |&code: &u32| if code == Labels::MISSING { -1 } else { i64::from(code) };
                let codes: Vec<i64> = c.codes().iter().map(code).collect();
                let labels = c.labels().into_pyobject(py)?.into_any();
                (name, codes.into_pyarray(py).into_any(), labels)
            }
        })
    };
    table.columns().iter().map(of).collect()
}

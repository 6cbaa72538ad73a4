//! Conversion between numpy arrays and the library's matrices.

use bornite::circuit::Weight;
use bornite::linalg::{Complex64, Matrix, Scalar};
use numpy::ndarray::{ArrayView2, Axis, Slice};
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods,
    PyReadonlyArray2, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::intern;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::detached::detached;
use crate::exception::{BorniteError, argument_error};

/// The number of rows that are passed to the library at a time. Ctrl-C takes effect between two such blocks.
const BLOCK: usize = 2048;

/// The kinds of numbers that an array can hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    Real,
    Complex,
}

/// `numpy.asarray(object)`, with the kind of its numbers.
fn as_array<'py>(object: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyUntypedArray>, NumberKind)> {
    let numpy = PyModule::import(object.py(), intern!(object.py(), "numpy"))?;
    let array = numpy.call_method1(intern!(object.py(), "asarray"), (object,))?;
    let array = array.cast_into::<PyUntypedArray>()?;
    let kind = match array.dtype().kind() {
        // Objects are numbers or None, which numpy converts to NaN.
        b'b' | b'i' | b'u' | b'f' | b'O' => NumberKind::Real,
        b'c' => NumberKind::Complex,
        _ => {
            let dtype = array.dtype();
            return Err(argument_error(format!("expected numbers, found an array of {dtype}")));
        }
    };
    Ok((array, kind))
}

/// The array with entries of type `T`, without a copy if it already has them.
fn with_type<'py, T: Element>(
    array: &Bound<'py, PyUntypedArray>,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let py = array.py();
    let numpy = PyModule::import(py, intern!(py, "numpy"))?;
    let array = numpy.call_method1(intern!(py, "asarray"), (array, numpy::dtype::<T>(py)))?;
    Ok(array.cast_into::<PyArrayDyn<T>>()?.readonly())
}

fn matrix<T: Element + Copy>(array: &Bound<'_, PyUntypedArray>, what: &str) -> PyResult<Matrix<T>> {
    let shape = array.shape();
    let &[rows, cols] = shape else {
        let axes = shape.len();
        return Err(BorniteError::new_err(format!(
            "{what} must have 2 axes, rows and columns, not {axes}"
        )));
    };
    let array = with_type::<T>(array)?;
    Ok(Matrix::new(rows, cols, array.as_array().iter().copied().collect()))
}

/// Converts an array to a weight, real or complex like the array.
pub(crate) fn weight(object: &Bound<'_, PyAny>) -> PyResult<Weight> {
    let (array, kind) = as_array(object)?;
    Ok(match kind {
        NumberKind::Real => matrix::<f64>(&array, "a weight")?.into(),
        NumberKind::Complex => matrix::<Complex64>(&array, "a weight")?.into(),
    })
}

/// Converts an array to a complex matrix.
pub(crate) fn complex_matrix(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Matrix<Complex64>> {
    matrix(&as_array(object)?.0, what)
}

/// Converts a weight to a new array of float64 or complex128.
pub(crate) fn weight_to_array<'py>(
    py: Python<'py>,
    weight: &Weight,
) -> PyResult<Bound<'py, PyAny>> {
    match weight {
        Weight::Real(m) => to_array(py, m),
        Weight::Complex(m) => to_array(py, m),
    }
}

/// Converts a matrix to a new array.
pub(crate) fn to_array<'py, T: Element + Copy>(
    py: Python<'py>,
    matrix: &Matrix<T>,
) -> PyResult<Bound<'py, PyAny>> {
    let flat = PyArray1::from_slice(py, matrix.data());
    Ok(flat.reshape([matrix.rows(), matrix.cols()])?.into_any())
}

/// Converts a matrix to a new array, of float64 if all entries are known to be real.
pub(crate) fn scalar_to_array<'py, T: Scalar>(
    py: Python<'py>,
    matrix: &Matrix<T>,
) -> PyResult<Bound<'py, PyAny>> {
    if T::IS_COMPLEX {
        to_array(py, &matrix.map(Scalar::to_complex))
    } else {
        to_array(py, &matrix.map(|x| x.to_complex().re))
    }
}

/// One row of values, or many.
pub(crate) struct Rows<'py> {
    array: PyReadonlyArray2<'py, f64>,
    /// Whether a single row was given, without an axis for rows.
    is_single: bool,
}

impl<'py> Rows<'py> {
    pub(crate) fn read(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (array, kind) = as_array(object)?;
        if kind == NumberKind::Complex {
            return Err(argument_error("expected real values, found complex ones"));
        }
        let array = with_type::<f64>(&array)?;
        let is_single = array.ndim() == 1;
        let array = match *array.shape() {
            [len] => array.reshape([1, len])?.readonly(),
            [_, _] => array.cast::<PyArray2<f64>>()?.readonly(),
            _ => {
                let axes = array.ndim();
                let message = format!("expected one row or a table of rows, found {axes} axes");
                return Err(BorniteError::new_err(message));
            }
        };
        Ok(Self { array, is_single })
    }

    pub(crate) fn is_single(&self) -> bool {
        self.is_single
    }

    pub(crate) fn num_columns(&self) -> usize {
        self.array.shape()[1]
    }

    /// The first row.
    pub(crate) fn first(&self) -> Vec<f64> {
        self.array.as_array().row(0).to_vec()
    }

    /// Applies `f` to every row, in parallel and with the interpreter released.
    pub(crate) fn map<R: Send, E: Send>(
        &self,
        py: Python<'py>,
        f: impl Fn(&[f64]) -> Result<R, E> + Sync,
        raise: impl Fn(Option<usize>, E) -> PyErr,
    ) -> PyResult<Vec<R>> {
        let columns = self.num_columns().max(1);
        let of_block = |block: &[f64]| {
            let found: Vec<Result<R, E>> = block.par_chunks(columns).map(&f).collect();
            // Report the first error by row, not by time.
            let rows = found.into_iter().enumerate();
            rows.map(|(row, result)| result.map_err(|e| (row, e))).collect::<Result<Vec<R>, _>>()
        };
        self.map_blocks(py, of_block, |row, (index, e)| {
            raise((!self.is_single).then_some(row + index), e)
        })
    }

    /// Applies `f` to one block of rows after another, with the interpreter released. `raise` gets the position of a
    /// failed block.
    pub(crate) fn map_blocks<R: Send, E: Send>(
        &self,
        py: Python<'py>,
        f: impl Fn(&[f64]) -> Result<Vec<R>, E> + Sync,
        raise: impl Fn(usize, E) -> PyErr,
    ) -> PyResult<Vec<R>> {
        let array: ArrayView2<'_, f64> = self.array.as_array();
        let num_rows = array.nrows();
        let mut results = Vec::with_capacity(num_rows);
        for start in (0..num_rows).step_by(BLOCK) {
            let block = Slice::from(start..num_rows.min(start + BLOCK));
            // Copy the block, since Python may change the array while the interpreter is released.
            let block: Vec<f64> = array.slice_axis(Axis(0), block).iter().copied().collect();
            results.extend(detached(py, || f(&block))?.map_err(|e| raise(start, e))?);
            py.check_signals()?;
        }
        Ok(results)
    }
}

/// One number per row: a float if a single row was given, otherwise an array.
pub(crate) fn numbers_to_python<'py>(
    py: Python<'py>,
    rows: &Rows<'py>,
    numbers: Vec<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    if rows.is_single() {
        Ok(numbers[0].into_pyobject(py)?.into_any())
    } else {
        Ok(numbers.into_pyarray(py).into_any())
    }
}

/// `width` numbers per row: one axis if a single row was given, otherwise two.
pub(crate) fn vectors_to_python<'py, T: Element>(
    py: Python<'py>,
    rows: &Rows<'py>,
    width: usize,
    numbers: Vec<T>,
) -> PyResult<Bound<'py, PyAny>> {
    let count = numbers.len() / width;
    let flat = numbers.into_pyarray(py);
    if rows.is_single() {
        return Ok(flat.into_any());
    }
    Ok(flat.reshape([count, width])?.into_any())
}

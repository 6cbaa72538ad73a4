//! Fits with rows held by other processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bornite::data::{Sample, SampleOptions};
use bornite::learn::Workers;
use bornite::model;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::detached::detached;
use crate::exception::Raise;
use crate::table::TableLike;

/// The compiled part of a worker of ``bornite.ray.fit``: it holds some rows of a table and computes their part of a
/// step.
#[pyclass(module = "bornite._bornite")]
#[derive(Debug)]
pub(crate) struct Worker(model::Worker);

#[pymethods]
impl Worker {
    /// The worker with this number out of `of` workers, without rows yet.
    #[new]
    fn new(plan: &[u8], number: usize, of: usize) -> PyResult<Self> {
        model::Worker::new(plan, number, of).map(Self).map_err(Raise::raise)
    }

    /// The maximum number of workers that a plan has rows for.
    #[classmethod]
    fn most(_: &Bound<'_, PyType>, plan: &[u8]) -> PyResult<usize> {
        model::Worker::most(plan).map_err(Raise::raise)
    }

    /// The columns that the worker needs.
    fn columns(&self) -> Vec<String> {
        self.0.columns().map(str::to_owned).collect()
    }

    /// The range of rows that the worker still needs: the first row, and the one after the last.
    fn wanted(&self) -> (u64, u64) {
        let wanted = self.0.wanted();
        (wanted.start, wanted.end)
    }

    /// Adds the next rows that the worker needs.
    fn add(&mut self, py: Python<'_>, table: TableLike) -> PyResult<()> {
        detached(py, || self.0.add(&table.0))?.map_err(Raise::raise)
    }

    /// The worker's answer when it has all of its rows.
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.held().map_err(Raise::raise)?))
    }

    /// The part of a step that comes from the worker's rows.
    fn answer<'py>(
        &mut self,
        py: Python<'py>,
        fit: &[u8],
        step: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let answer = detached(py, || self.0.answer(fit, step))?.map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &answer))
    }
}

/// The positions of the sampled rows of a table with this many rows and columns.
#[pyfunction]
pub(crate) fn sample_places(
    py: Python<'_>,
    num_rows: u64,
    num_columns: usize,
    memory: u64,
    seed: u64,
) -> PyResult<Bound<'_, PyArray1<u64>>> {
    let options = SampleOptions { memory, seed, ..SampleOptions::default() };
    let places = detached(py, || Sample::places_in(num_rows, num_columns, &options))?;
    Ok(places.into_pyarray(py))
}

/// A Python object whose methods `hold` and `ask` communicate with the workers.
#[derive(Debug)]
pub(crate) struct PyWorkers {
    object: Py<PyAny>,
    /// The exception that it raised.
    failure: Mutex<Option<PyErr>>,
    interrupted: AtomicBool,
}

impl PyWorkers {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self { object, failure: Mutex::default(), interrupted: AtomicBool::default() }
    }

    /// The exception that it raised, if any.
    pub(crate) fn failure(&self) -> Option<PyErr> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether Ctrl-C was pressed while workers were asked.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn call(&self, method: &str, parts: &[&[u8]]) -> Result<Vec<Vec<u8>>, String> {
        Python::attach(|py| {
            let call = || -> PyResult<Vec<Vec<u8>>> {
                let parts = parts.iter().map(|part| PyBytes::new(py, part));
                let arguments = pyo3::types::PyTuple::new(py, parts)?;
                let answers: Vec<Bound<'_, PyBytes>> =
                    self.object.bind(py).call_method1(method, arguments)?.extract()?;
                Ok(answers.iter().map(|answer| answer.as_bytes().to_vec()).collect())
            };
            let is_first_stop = |error: &PyErr| {
                error.is_instance_of::<PyKeyboardInterrupt>(py)
                    && method == "ask"
                    && !self.interrupted.swap(true, Ordering::Relaxed)
            };
            let answers = match call() {
                // The fit ends after this step, with the best model so far.
                Err(error) if is_first_stop(&error) => call(),
                other => other,
            };
            answers.map_err(|error| {
                let reason = error.to_string();
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                reason
            })
        })
    }
}

impl Workers for PyWorkers {
    fn hold(&self, plan: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        self.call("hold", &[plan])
    }

    fn ask(&self, fit: &[u8], step: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        self.call("ask", &[fit, step])
    }
}

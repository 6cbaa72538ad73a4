//! Models of tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bornite::data::{
    DataError, EncodeOptions, InferOptions, KindHint, Mismatch, Sample, SampleOptions, Support,
    Table, Unseen,
};
use bornite::engine;
use bornite::learn::{Control, Device, Effort, Progress, Quota, Workers};
use bornite::model::{
    AnomalyCriterion, AnswerValue, Event, Imputation, ModelError, ModelOptions, Question,
    StructureKind,
};
use bornite::ops::Budget;
use bornite::report::{Picture, Report};
use bornite::{Fit, Model};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyTuple, PyType};

use crate::array::to_array;
use crate::checkpoint::{self, Saver};
use crate::circuit::Circuit;
use crate::detached::detached;
use crate::exception::{BorniteError, Raise};
use crate::table::{TableLike, to_python};
use crate::worker::PyWorkers;

/// The compiled part of ``bornite.Model``, where tables are lists of columns and evidence is text.
#[pyclass(frozen, module = "bornite._bornite")]
#[derive(Debug)]
pub(crate) struct TableModel(pub(crate) Model);

/// The minimum time between two checks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// The connection between a running fit and the interpreter.
pub(crate) struct Watch<'a> {
    started: Instant,
    /// The time of the last check for signals.
    asked: Instant,
    time: Option<f64>,
    /// The fraction of the time that was used before the checkpoint that the fit continues from.
    used: f64,
    callback: Option<&'a Py<PyAny>>,
    /// The exception that the callback raised.
    failure: Option<PyErr>,
    /// Whether Ctrl-C was pressed.
    pub(crate) interrupted: bool,
    before: Arc<Before>,
}

/// The time before the first step, when Ctrl-C ends the fit without a model.
#[derive(Default)]
struct Before {
    is_over: AtomicBool,
    is_interrupted: AtomicBool,
    /// The time of the last check for signals.
    asked: Mutex<Option<Instant>>,
}

impl Before {
    /// Whether Ctrl-C was pressed. Only the main thread can find out.
    fn is_interrupted(&self) -> bool {
        if !self.is_over.load(Ordering::Relaxed)
            && let Ok(mut asked) = self.asked.try_lock()
            && asked.is_none_or(|asked| asked.elapsed() >= PATIENCE)
        {
            *asked = Some(Instant::now());
            let is_signaled = Python::attach(|py| py.check_signals().is_err());
            if is_signaled {
                self.is_interrupted.store(true, Ordering::Relaxed);
            }
        }
        self.is_interrupted.load(Ordering::Relaxed)
    }
}

impl<'a> Watch<'a> {
    pub(crate) fn new(time: Option<f64>, callback: Option<&'a Py<PyAny>>) -> Self {
        let now = Instant::now();
        let before = Arc::default();
        Self {
            started: now,
            asked: now,
            time,
            used: 0.0,
            callback,
            failure: None,
            interrupted: false,
            before,
        }
    }

    /// A quota that also ends the parts of a fit that have no steps.
    fn quota(&self) -> Quota {
        let (started, time, before) = (self.started, self.time, self.before.clone());
        let used = self.used;
        Quota::new(move || match time {
            _ if before.is_interrupted() => f64::INFINITY,
            Some(time) => used + started.elapsed().as_secs_f64() / time,
            None => 0.0,
        })
    }

    pub(crate) fn step(&mut self, progress: &Progress) -> Control {
        self.before.is_over.store(true, Ordering::Relaxed);
        if self.before.is_interrupted.load(Ordering::Relaxed) {
            self.interrupted = true;
            return Control::Stop;
        }
        let used = self.time.map(|time| self.used + self.started.elapsed().as_secs_f64() / time);
        let called = self.callback.filter(|_| progress.epoch_ended && !progress.is_trial);
        if called.is_some() || self.asked.elapsed() >= PATIENCE {
            self.asked = Instant::now();
            if !Python::attach(|py| self.ask(py, called, progress)) {
                return Control::Stop;
            }
        }
        used.map_or(Control::Continue, Control::Used)
    }

    /// Calls the callback and checks for signals. Returns whether to continue.
    fn ask(&mut self, py: Python<'_>, called: Option<&Py<PyAny>>, progress: &Progress) -> bool {
        if py.check_signals().is_err() {
            self.interrupted = true;
            return false;
        }
        let Some(callback) = called else { return true };
        let answer = report(py, progress).and_then(|r| callback.bind(py).call1((r,)));
        match answer {
            Ok(answer) => !answer.is(PyBool::new(py, false)),
            // Ctrl-C may arrive within the callback.
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                self.interrupted = true;
                false
            }
            Err(error) => {
                self.failure = Some(error);
                false
            }
        }
    }
}

/// The sample as images of this height and width, with this many channels, if they are given.
fn with_image(sample: Sample, image: Option<[usize; 3]>) -> Result<Sample, DataError> {
    match image {
        Some(shape) => sample.with_table(|table| table.with_image(shape)),
        None => Ok(sample),
    }
}

/// Checks the time limit of a fit.
pub(crate) fn check_time(time: Option<f64>) -> PyResult<()> {
    if time.is_some_and(|t| t.is_nan() || t <= 0.0) {
        return Err(BorniteError::new_err("time: give a number of seconds above 0"));
    }
    Ok(())
}

/// The progress of a fit as a dict, for a callback.
fn report<'py>(py: Python<'py>, progress: &Progress) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    report.set_item("width", progress.width)?;
    report.set_item("epoch", progress.epoch)?;
    report.set_item("epochs", progress.epochs)?;
    report.set_item("train", progress.train)?;
    report.set_item("valid", progress.valid)?;
    report.set_item("best", progress.best)?;
    Ok(report)
}

/// The declared kinds of columns: a word, or a word with numbers.
fn kinds(given: BTreeMap<String, (String, Vec<f64>)>) -> PyResult<BTreeMap<String, KindHint>> {
    let kind = |(column, (word, numbers)): (String, (String, Vec<f64>))| {
        let kind = match (word.as_str(), &numbers[..]) {
            ("categorical", []) => KindHint::Categorical,
            ("boolean", []) => KindHint::Boolean,
            ("integer", []) => KindHint::Integer,
            ("digits", []) => KindHint::Digits,
            ("number", []) => KindHint::Number { atoms_from: 0.0 },
            ("number", &[atoms_from]) => KindHint::Number { atoms_from },
            ("continuous", []) => KindHint::Continuous(Support::REAL),
            ("continuous", &[low, high]) => {
                let end = |x: f64| x.is_finite().then_some(x);
                KindHint::Continuous(Support { low: end(low), high: end(high) })
            }
            ("periodic", &[period]) => KindHint::Periodic { period },
            _ => {
                return Err(BorniteError::new_err(format!(
                    "column '{column}': '{word}' with {} numbers is not a kind; give 'categorical', 'boolean', 'integer', \
                     'digits', 'number', ('number', share), 'continuous', ('continuous', low, high) or ('periodic', period)",
                    numbers.len()
                )));
            }
        };
        Ok((column, kind))
    };
    given.into_iter().map(kind).collect()
}

fn structure(name: &str) -> PyResult<StructureKind> {
    let all = [
        StructureKind::Auto,
        StructureKind::ChowLiu,
        StructureKind::Linkage,
        StructureKind::Image,
        StructureKind::Linear,
        StructureKind::Balanced,
        StructureKind::Random,
    ];
    all.into_iter().find(|kind| kind.to_string() == name).ok_or_else(|| {
        let names = all.map(|kind| format!("'{kind}'")).join(", ");
        BorniteError::new_err(format!("there is no structure '{name}'; choose one of {names}"))
    })
}

fn device(name: &str) -> PyResult<Device> {
    match name {
        "cpu" => Ok(Device::Cpu),
        "cuda" => Ok(Device::Cuda),
        "cuda-tf32" => Ok(Device::CudaTf32),
        "cuda-bf16" => Ok(Device::CudaBf16),
        "auto" => Ok(Device::Auto),
        _ => Err(BorniteError::new_err(format!(
            "there is no device '{name}'; choose one of 'cpu', 'cuda', 'cuda-tf32', 'cuda-bf16', 'auto'"
        ))),
    }
}

fn effort(name: &str) -> PyResult<Effort> {
    match name {
        "fast" => Ok(Effort::Fast),
        "balanced" => Ok(Effort::Balanced),
        "best" => Ok(Effort::Best),
        _ => Err(BorniteError::new_err(format!(
            "there is no effort '{name}'; choose one of 'fast', 'balanced', 'best'"
        ))),
    }
}

fn picture(name: &str) -> PyResult<Picture> {
    let all = [
        ("structure", Picture::Structure),
        ("training", Picture::Training),
        ("marginals", Picture::Marginals),
        ("pairs", Picture::Pairs),
        ("calibration", Picture::Calibration),
        ("anomalies", Picture::Anomalies),
        ("samples", Picture::Samples),
    ];
    all.iter().find(|(known, _)| *known == name).map(|(_, picture)| *picture).ok_or_else(|| {
        let names = all.map(|(name, _)| format!("'{name}'")).join(", ");
        BorniteError::new_err(format!("there is no plot '{name}'; choose one of {names}"))
    })
}

/// Plots of a model, compared with the rows of a table, for some columns or the first ones.
fn report_of<'a>(
    model: &'a Model,
    table: Option<&'a TableLike>,
    columns: Option<&[String]>,
    seed: u64,
) -> Result<Report<'a>, ModelError> {
    let report = Report::new(model, table.map(|table| &table.0), seed)?;
    match columns {
        Some(columns) => report.columns(columns),
        None => Ok(report),
    }
}

/// Parses evidence in the language of questions.
fn known(model: &Model, text: &str) -> Result<Event, ModelError> {
    Event::parse(model.schema(), text)
}

/// The imputation method.
fn imputation(method: &str) -> PyResult<Imputation> {
    match method {
        "mean" => Ok(Imputation::Mean),
        "mode" => Ok(Imputation::Mode),
        "median" => Ok(Imputation::Median),
        "sample" => Ok(Imputation::Sample),
        _ => Err(BorniteError::new_err(format!(
            "there is no method '{method}'; choose 'mean', 'mode', 'median' or 'sample'"
        ))),
    }
}

type Cells<'py> = Vec<(String, Bound<'py, PyAny>, Bound<'py, PyAny>)>;
/// Row, log density, and column, cell, log conditional and log standardized of its cells.
type AnomalyTuple = (usize, f64, Vec<(String, String, f64, f64)>);

#[pymethods]
impl TableModel {
    /// Fits a model, and returns whether Ctrl-C ended the fit and why the last checkpoint could not be written.
    #[classmethod]
    #[pyo3(signature = (
        table, valid, *, files, workers, memory, start, kinds, missing_as_value, atoms, image, effort, structure, circuits, width, output_width, functions, epochs, batch, rate, patience,
        smoothing, target, emphasis, valid_share, as_is, strict, seed, device, time, weights, checkpoint, resume, progress, note
    ))]
    #[expect(clippy::too_many_arguments, reason = "all but the tables are named")]
    fn fit(
        class: &Bound<'_, PyType>,
        table: Option<TableLike>,
        valid: Option<TableLike>,
        files: Vec<PathBuf>,
        workers: Option<(Py<PyAny>, Vec<u64>, u64)>,
        memory: u64,
        start: Option<Bound<'_, Self>>,
        kinds: BTreeMap<String, (String, Vec<f64>)>,
        missing_as_value: BTreeSet<String>,
        atoms: BTreeMap<String, Vec<f64>>,
        image: Option<[usize; 3]>,
        effort: &str,
        structure: &str,
        circuits: Option<usize>,
        width: Option<usize>,
        output_width: Option<usize>,
        functions: Option<usize>,
        epochs: Option<usize>,
        batch: Option<usize>,
        rate: Option<f64>,
        patience: Option<usize>,
        smoothing: Option<f64>,
        target: Option<String>,
        emphasis: Option<f64>,
        valid_share: f64,
        as_is: bool,
        strict: bool,
        seed: u64,
        device: &str,
        time: Option<f64>,
        weights: Option<String>,
        checkpoint: Option<(PathBuf, f64)>,
        resume: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
        note: Option<String>,
    ) -> PyResult<(Self, bool, Option<String>)> {
        let mut saver = checkpoint.map(|to| Saver::new(to, &files)).transpose()?;
        let resume = resume.as_deref().map(checkpoint::read).transpose()?;
        let drawing = SampleOptions { memory, seed, ..SampleOptions::default() };
        let table = table.map(|t| t.0);
        let (workers, places) = match workers {
            Some((workers, places, rows)) => (Some(PyWorkers::new(workers)), Some((places, rows))),
            None => (None, None),
        };
        let sample = detached(class.py(), || match (table, places) {
            (Some(table), Some((places, rows))) => Ok(Sample::of_places(table, places, rows)),
            (Some(table), None) => Ok(Sample::whole(table)),
            (None, _) => Sample::draw(&files, &drawing, &mut |_, _, _| {}),
        })?;
        let sample = sample.and_then(|sample| with_image(sample, image)).map_err(Raise::raise)?;
        check_time(time)?;
        let options = ModelOptions {
            weights,
            time: time.and_then(|t| Duration::try_from_secs_f64(t).ok()),
            infer: InferOptions {
                kinds: self::kinds(kinds)?,
                missing_as_value,
                named_atoms: atoms,
                ..InferOptions::default()
            },
            effort: self::effort(effort)?,
            structure: self::structure(structure)?,
            circuits,
            width,
            output_width,
            functions,
            epochs,
            batch,
            rate,
            patience,
            smoothing,
            target,
            emphasis,
            valid_share,
            as_is,
            strict,
            seed,
            device: self::device(device)?,
            ..ModelOptions::default()
        };
        let mut watch = Watch::new(time, progress.as_ref());
        watch.used = resume.as_ref().map_or(0.0, |(_, used)| *used);
        let valid = valid.map(|v| v.0);
        let start = start.as_ref().map(|model| &model.get().0);
        let fitted = detached(class.py(), || {
            Fit::with(options)
                .start(start)
                .validation(valid.as_ref())
                .quota(watch.quota())
                .workers(workers.as_ref().map(|workers| workers as &dyn Workers))
                .resume(resume.as_ref().map(|(bytes, _)| &bytes[..]))
                .on_step(|progress, snapshot| {
                    watch.interrupted |= workers.as_ref().is_some_and(PyWorkers::is_interrupted);
                    let control =
                        if watch.interrupted { Control::Stop } else { watch.step(progress) };
                    if let Some(saver) = &mut saver {
                        saver.step(control, snapshot);
                    }
                    control
                })
                .run_sample(&sample)
        })?;
        if watch.before.is_interrupted.load(Ordering::Relaxed)
            && matches!(fitted, Err(ModelError::Stopped))
        {
            return Err(PyKeyboardInterrupt::new_err("stopped before training began"));
        }
        if let Some(failure) = watch.failure.or_else(|| workers.as_ref()?.failure()) {
            return Err(failure);
        }
        let model = fitted.map_err(Raise::raise)?.with_note(note);
        Ok((Self(model), watch.interrupted, saver.and_then(|saver| saver.failed)))
    }

    /// Reads a model from a file.
    #[classmethod]
    fn load(class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        detached(class.py(), || Model::load(path))?.map(Self).map_err(Raise::raise)
    }

    /// Writes the model to a file, completely or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detached(py, || self.0.save(path))?.map_err(Raise::raise)
    }

    /// Reads a model from the bytes of its file.
    #[classmethod]
    fn from_bytes(class: &Bound<'_, PyType>, data: &[u8]) -> PyResult<Self> {
        detached(class.py(), || Model::from_bytes(data))?.map(Self).map_err(Raise::raise)
    }

    /// The bytes of the model's file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detached(py, || self.0.to_bytes())?.map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The circuits, in order of descending weight.
    fn circuits(&self) -> Vec<Circuit> {
        self.0.mixture().circuits().map(|circuit| Circuit::from(circuit.clone())).collect()
    }

    /// The weights of the circuits.
    fn weights(&self) -> Vec<f64> {
        self.0.mixture().weights()
    }

    /// The schema of the columns, as JSON.
    fn schema(&self) -> PyResult<String> {
        serde_json::to_string(self.0.schema()).map_err(|e| BorniteError::new_err(e.to_string()))
    }

    /// How the model was fitted, as JSON.
    fn info(&self) -> PyResult<String> {
        serde_json::to_string(self.0.info()).map_err(|e| BorniteError::new_err(e.to_string()))
    }

    /// The evidence that the model is conditioned on.
    fn given(&self) -> Vec<String> {
        self.0.given().to_vec()
    }

    /// The log density of every row.
    #[pyo3(signature = (table, unseen, device="cpu"))]
    fn log_prob<'py>(
        &self,
        py: Python<'py>,
        table: TableLike,
        unseen: &str,
        device: &str,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let unseen = match unseen {
            "score" => Unseen::Score,
            "unknown" => Unseen::Missing,
            "error" => Unseen::Refuse,
            _ => {
                return Err(BorniteError::new_err(format!(
                    "unseen='{unseen}': choose 'score', 'unknown' or 'error'"
                )));
            }
        };
        let options = EncodeOptions { unseen, absent: Mismatch::Error };
        let device = match device {
            "cpu" => engine::Device::Cpu,
            "cuda" => engine::Device::Cuda,
            "auto" => engine::Device::Auto,
            _ => {
                return Err(BorniteError::new_err(format!(
                    "there is no device '{device}'; choose one of 'cpu', 'cuda', 'auto'"
                )));
            }
        };
        let score = || {
            let rows = self.0.schema().encode_with(&table.0, options)?;
            self.0.score_on(&rows, device)
        };
        Ok(detached(py, score)?.map_err(Raise::raise)?.into_pyarray(py))
    }

    /// New rows, beginning with row ``start``.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        given: &str,
        seed: u64,
        start: u64,
    ) -> PyResult<Cells<'py>> {
        let sample = || {
            let known = if given.is_empty() { None } else { Some(known(&self.0, given)?) };
            self.0.sample_from(start, known.as_ref(), count, seed)
        };
        to_python(py, &detached(py, sample)?.map_err(Raise::raise)?)
    }

    /// The conditional model, given this evidence.
    fn condition(&self, py: Python<'_>, given: &str) -> PyResult<Self> {
        detached(py, || self.0.condition(given))?.map(Self).map_err(Raise::raise)
    }

    /// The table with its missing cells imputed; ``start`` rows precede it.
    fn impute<'py>(
        &self,
        py: Python<'py>,
        table: TableLike,
        method: &str,
        seed: u64,
        start: u64,
    ) -> PyResult<Cells<'py>> {
        let how = imputation(method)?;
        let filled = detached(py, || self.0.impute_from(start, &table.0, how, seed))?;
        to_python(py, &filled.map_err(Raise::raise)?)
    }

    /// The answer to a question for every row.
    fn answer_rows<'py>(
        &self,
        py: Python<'py>,
        table: TableLike,
        question: &str,
    ) -> PyResult<Cells<'py>> {
        let answer = || {
            let question = Question::parse(self.0.schema(), question)?;
            let found = self.0.for_each_row(&question)?.answer(&table.0)?;
            Ok::<_, ModelError>(Table::new(vec![found])?)
        };
        to_python(py, &detached(py, answer)?.map_err(Raise::raise)?)
    }

    /// Predictions of a column for every row, given the others; ``start`` rows precede the table.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        table: TableLike,
        column: &str,
        method: &str,
        seed: u64,
        start: u64,
    ) -> PyResult<Cells<'py>> {
        let how = imputation(method)?;
        let predict = || {
            let found = self.0.predict(&table.0, column)?.values_from(start, how, seed)?;
            Ok::<_, ModelError>(Table::new(vec![found])?)
        };
        to_python(py, &detached(py, predict)?.map_err(Raise::raise)?)
    }

    /// The mean of a column for every row, given the others.
    fn predict_mean<'py>(
        &self,
        py: Python<'py>,
        table: TableLike,
        column: &str,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let found = detached(py, || self.0.predict(&table.0, column)?.mean())?;
        Ok(found.map_err(Raise::raise)?.into_pyarray(py))
    }

    /// Quantiles of a column for every row, given the others, row by row.
    fn predict_quantiles<'py>(
        &self,
        py: Python<'py>,
        table: TableLike,
        column: &str,
        levels: Vec<f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let found = detached(py, || self.0.predict(&table.0, column)?.quantiles(&levels))?;
        Ok(found.map_err(Raise::raise)?.into_pyarray(py))
    }

    /// The values of a finite column as texts, and their probabilities in every row, given the others, row by row.
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        table: TableLike,
        column: &str,
    ) -> PyResult<(Vec<String>, Bound<'py, PyArray1<f64>>)> {
        let found = detached(py, || self.0.predict(&table.0, column)?.probabilities())?;
        let found = found.map_err(Raise::raise)?;
        Ok((found.labels, found.probabilities.into_pyarray(py)))
    }

    /// log p of a column's cell in every row, given the others.
    fn log_conditional<'py>(
        &self,
        py: Python<'py>,
        table: TableLike,
        column: &str,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let found = detached(py, || self.0.predict(&table.0, column)?.log_density())?;
        Ok(found.map_err(Raise::raise)?.into_pyarray(py))
    }

    /// log P(evidence); a density if a continuous column has a value.
    fn log_probability(&self, py: Python<'_>, given: &str) -> PyResult<f64> {
        detached(py, || self.0.log_probability(&known(&self.0, given)?))?.map_err(Raise::raise)
    }

    /// The mean of a numeric column.
    fn mean(&self, py: Python<'_>, column: &str, given: &str) -> PyResult<f64> {
        detached(py, || self.0.distribution(column, &known(&self.0, given)?)?.mean())?
            .map_err(Raise::raise)
    }

    /// Quantiles of a numeric column.
    fn quantiles<'py>(
        &self,
        py: Python<'py>,
        column: &str,
        levels: Vec<f64>,
        given: &str,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let quantiles = || {
            let distribution = self.0.distribution(column, &known(&self.0, given)?)?;
            levels.iter().map(|&level| distribution.quantile(level)).collect()
        };
        let found: Result<Vec<f64>, ModelError> = detached(py, quantiles)?;
        Ok(found.map_err(Raise::raise)?.into_pyarray(py))
    }

    /// The most likely value of a column as text, with its probability if the column is finite.
    fn mode(&self, py: Python<'_>, column: &str, given: &str) -> PyResult<(String, Option<f64>)> {
        detached(py, || self.0.distribution(column, &known(&self.0, given)?)?.mode())?
            .map_err(Raise::raise)
    }

    /// The values of a finite column as texts, with their probabilities.
    fn probabilities(
        &self,
        py: Python<'_>,
        column: &str,
        given: &str,
    ) -> PyResult<Option<Vec<(String, f64)>>> {
        detached(py, || self.0.distribution(column, &known(&self.0, given)?)?.probabilities())?
            .map_err(Raise::raise)
    }

    /// Means and covariances of numeric columns, by their positions.
    fn covariance<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<usize>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyAny>)> {
        let count = self.0.schema().columns().len();
        if let Some(column) = columns.iter().find(|&&c| c >= count) {
            return Err(BorniteError::new_err(format!("there is no column {column}")));
        }
        let (means, covariance) =
            detached(py, || self.0.covariance(&columns))?.map_err(Raise::raise)?;
        Ok((means.into_pyarray(py), to_array(py, &covariance)?))
    }

    /// The rows with the lowest density.
    fn anomalies(
        &self,
        py: Python<'_>,
        table: TableLike,
        count: usize,
    ) -> PyResult<Vec<AnomalyTuple>> {
        let found = detached(py, || self.0.anomalies(&table.0, count))?.map_err(Raise::raise)?;
        let cells = |anomaly: bornite::model::Anomaly| {
            let cells = anomaly.contributions.into_iter();
            let cells = cells.map(|c| (c.column, c.cell, c.log_conditional, c.log_standardized));
            (anomaly.row, anomaly.log_density, cells.collect())
        };
        Ok(found.into_iter().map(cells).collect())
    }

    /// How surprising every cell is, given the other cells of its row, row by row; NaN if it is missing.
    fn surprises<'py>(
        &self,
        py: Python<'py>,
        table: TableLike,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let found = detached(py, || self.0.surprises(&table.0))?.map_err(Raise::raise)?;
        Ok(found.into_pyarray(py))
    }

    /// The anomaly score of every row: by cells, or by cells and density.
    fn anomaly_scores<'py>(
        &self,
        py: Python<'py>,
        table: TableLike,
        is_either: bool,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let by = if is_either { AnomalyCriterion::Either } else { AnomalyCriterion::Cells };
        let found = detached(py, || self.0.anomaly_scores(&table.0, by))?.map_err(Raise::raise)?;
        Ok(found.into_pyarray(py))
    }

    /// A page with all plots of the model, as HTML.
    #[pyo3(signature = (table, title, seed))]
    fn report(
        &self,
        py: Python<'_>,
        table: Option<TableLike>,
        title: &str,
        seed: u64,
    ) -> PyResult<String> {
        detached(py, || report_of(&self.0, table.as_ref(), None, seed)?.html(title))?
            .map_err(Raise::raise)
    }

    /// A plot of the model, as SVG.
    #[pyo3(signature = (what, table, columns, seed))]
    fn plot(
        &self,
        py: Python<'_>,
        what: &str,
        table: Option<TableLike>,
        columns: Option<Vec<String>>,
        seed: u64,
    ) -> PyResult<String> {
        let picture = picture(what)?;
        let draw = || report_of(&self.0, table.as_ref(), columns.as_deref(), seed)?.svg(picture);
        detached(py, draw)?.map_err(Raise::raise)
    }

    /// The answer to a question: its kind, the value, a log, a probability, a bound, a standard error, and notes.
    fn ask<'py>(&self, py: Python<'py>, question: &str) -> PyResult<AnswerTuple<'py>> {
        let answer = detached(py, || self.0.ask(question))?.map_err(Raise::raise)?;
        let value = answer_value(py, &answer.value)?;
        let (log, error) = (answer.log, answer.error);
        let notes = PyTuple::new(py, &answer.notes)?;
        Ok((answer.kind, value, log, answer.probability, answer.bound, error, notes))
    }

    /// A smaller model, and a bound on the distance between the two distributions.
    fn truncate(
        &self,
        py: Python<'_>,
        error: Option<f64>,
        width: Option<usize>,
    ) -> PyResult<(Self, f64)> {
        let limit = Limit::new(error, width)?;
        let made = detached(py, || self.0.truncate(limit.budget()))?.map_err(Raise::raise)?;
        Ok((Self(made.model), made.bound))
    }

    /// Compresses a table to bytes that this model can restore.
    fn compress<'py>(&self, py: Python<'py>, table: TableLike) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detached(py, || self.0.compress(&table.0))?.map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Restores a compressed table.
    fn decompress<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Cells<'py>> {
        to_python(py, &detached(py, || self.0.decompress(data))?.map_err(Raise::raise)?)
    }

    fn __repr__(&self) -> String {
        format!("<TableModel of {} columns>", self.0.schema().columns().len())
    }
}

/// The limit for truncating a circuit.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    Error(f64),
    Width(usize),
}

impl Limit {
    /// Requires exactly one of an error and a width.
    pub(crate) fn new(error: Option<f64>, width: Option<usize>) -> PyResult<Self> {
        match (error, width) {
            (Some(error), None) => Ok(Self::Error(error)),
            (None, Some(width)) => Ok(Self::Width(width)),
            _ => Err(BorniteError::new_err(
                "give either a maximum error from 0 to 1 or a maximum width",
            )),
        }
    }

    pub(crate) fn budget(self) -> Budget<'static> {
        match self {
            Self::Error(error) => Budget::Error(error),
            Self::Width(width) => Budget::Width(width),
        }
    }
}

/// An answer: its kind, the value, a log, a probability, a bound, a standard error, and notes.
type AnswerTuple<'py> = (
    &'static str,
    Bound<'py, PyAny>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Bound<'py, PyTuple>,
);

/// A number, a text, or a dict of several.
fn answer_value<'py>(py: Python<'py>, value: &AnswerValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        AnswerValue::Number(x) => x.into_pyobject(py)?.into_any(),
        AnswerValue::Whole(x) => x.into_pyobject(py)?.into_any(),
        AnswerValue::Label(label) => label.into_pyobject(py)?.into_any(),
        AnswerValue::Row(cells) => {
            let row = pyo3::types::PyDict::new(py);
            for (name, value) in cells {
                row.set_item(name, answer_value(py, value)?)?;
            }
            row.into_any()
        }
    })
}

//! Circuits and their operations.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bornite::circuit::check_orthonormality;
use bornite::engine::{self, Engine, RowError, SampleError};
use bornite::file::limits::MAX_RANDOM_ENTRIES;
use bornite::linalg::Complex64;
use bornite::ops::{self, OperationError};
use bornite::query::{Dependence, QueryError};
use bornite::{Orthonormal, Query, file, memory};
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyType};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::argument::{BasisLike, DomainLike, Name, OneOrEach};
use crate::array::{Rows, numbers_to_python, vectors_to_python, weight, weight_to_array};
use crate::detached::detached;
use crate::domain::Variable;
use crate::environment::Environments;
use crate::exception::{BorniteError, QueryError as PyQueryError, Raise, argument_error};
use crate::layer::Layer;
use crate::model::Limit;
use crate::overlap::Overlap;
use crate::query::{Marginal, query};
use crate::random::{self, Leaves};
use crate::squared::Squared;

/// A tensorized circuit c(x) whose square encodes the distribution p(x) = ‖c(x)‖² / Z.
///
/// Create one with ``Circuit.random``, a ``Builder``, ``from_mps`` or ``from_tree``, or load it from a file. A circuit
/// is always valid and immutable.
///
/// >>> from bornite import Circuit
/// >>> c = Circuit.random([2, 3, 2, 2], tree="balanced", width=4, seed=1)
/// >>> c
/// <Circuit: 4 variables, 10 layers, 56 parameters, complex>
/// >>> amplitude = c.evaluate([0, 2, 1, 1])
/// >>> o, log_z = c.orthonormalize()
/// >>> o.is_orthonormal, bool(abs(o.log_partition()) < 1e-12)
/// (True, True)
/// >>> p = o.marginalize("x0=1, x1 in {0, 2}")
/// >>> bool(abs(p - c.marginalize({"x0": 1, "x1": {0, 2}})) < 1e-12)
/// True
#[pyclass(frozen, module = "bornite")]
#[derive(Clone, Debug)]
pub(crate) struct Circuit(Arc<Shared>);

/// The state shared by all handles of one circuit.
#[derive(Debug)]
pub(crate) struct Shared {
    circuit: Held,
    /// The orthonormal circuit with the same distribution, created when a query first needs it.
    normalized: OnceLock<Result<Orthonormal, OperationError>>,
    /// The orthonormal circuit packed for batches, created when a table of rows first needs it.
    engine: OnceLock<Engine>,
}

/// A circuit that may be known to be orthonormal.
#[derive(Debug)]
enum Held {
    Any(bornite::Circuit),
    Orthonormal(Orthonormal),
}

impl Deref for Shared {
    type Target = bornite::Circuit;

    fn deref(&self) -> &bornite::Circuit {
        match &self.circuit {
            Held::Any(circuit) => circuit,
            Held::Orthonormal(circuit) => circuit,
        }
    }
}

impl From<bornite::Circuit> for Circuit {
    fn from(circuit: bornite::Circuit) -> Self {
        Self::hold(Held::Any(circuit))
    }
}

impl From<Orthonormal> for Circuit {
    fn from(circuit: Orthonormal) -> Self {
        Self::hold(Held::Orthonormal(circuit))
    }
}

impl Circuit {
    fn hold(circuit: Held) -> Self {
        Self(Arc::new(Shared { circuit, normalized: OnceLock::new(), engine: OnceLock::new() }))
    }

    fn normalized(&self) -> Result<&Orthonormal, OperationError> {
        let circuit = match &self.0.circuit {
            Held::Orthonormal(circuit) => return Ok(circuit),
            Held::Any(circuit) => circuit,
        };
        let normalize = || {
            if check_orthonormality(circuit).holds()
                && let Ok(orthonormal) = Orthonormal::verify(circuit.clone())
            {
                return Ok(orthonormal);
            }
            ops::orthonormalize(circuit).map(|o| o.circuit)
        };
        self.0.normalized.get_or_init(normalize).as_ref().map_err(Clone::clone)
    }

    fn engine(&self, py: Python<'_>) -> PyResult<&Engine> {
        let circuit = detached(py, || self.normalized())?.map_err(Raise::raise)?;
        detached(py, || self.0.engine.get_or_init(|| Engine::new(circuit)))
    }

    fn rows<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Rows<'py>> {
        let rows = Rows::read(x)?;
        let (expected, found) = (self.0.num_variables(), rows.num_columns());
        if expected != found {
            return Err(QueryError::Count { expected, found }.raise());
        }
        Ok(rows)
    }
}

/// The error of a row, with the row number if there are several rows.
fn row_error(row: Option<usize>, error: QueryError) -> PyErr {
    match row {
        Some(row) => PyQueryError::new_err(format!("row {row}: {error}")),
        None => error.raise(),
    }
}

#[pymethods]
impl Circuit {
    // Making circuits, and reading and writing them.

    /// Creates a circuit with random weights over a tree of the variables.
    ///
    /// ``bases`` is a list with one basis per variable, or a single basis for all variables if the tree defines their
    /// number; a whole number v means ``Basis.indicator(v)``. The tree is ``"balanced"``, ``"linear"``, ``"random"``,
    /// ``("image", height, width, channels)`` or a nested list of the variables' positions. ``width`` is the maximum
    /// width of inner sums, and ``output_width`` is the number of squares in the sum. ``product`` is ``"kronecker"``,
    /// ``"hadamard"`` or a list with one of these for each split, parts first. ``weights`` is ``"gaussian"``,
    /// ``"real_gaussian"``, ``"haar"`` (semi-unitary) or ``"real_haar"``. By default, the variables are named x0, x1, …
    /// and have the natural domains of their bases; use ``names`` and ``domains`` to change that.
    ///
    /// >>> from bornite import Basis, Circuit
    /// >>> Circuit.random([3, Basis.hermite(4), 2], tree=[[0, 2], 1], width=4, seed=7).variables[1]
    /// Variable('x1', Domain.real())
    /// >>> Circuit.random(2, tree=("image", 8, 8), weights="haar", width=4).is_orthonormal
    /// True
    #[classmethod]
    #[pyo3(
        signature = (
            bases, tree = None, *, width = 8, output_width = 1, product = None,
            weights = "gaussian", seed = 0, names = None, domains = None
        ),
        text_signature = "($cls, bases, tree='balanced', *, width=8, output_width=1, \
                          product='kronecker', weights='gaussian', seed=0, names=None, domains=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "all but the first two are named in Python")]
    fn random(
        class: &Bound<'_, PyType>,
        bases: OneOrEach<BasisLike>,
        tree: Option<&Bound<'_, PyAny>>,
        width: usize,
        output_width: usize,
        product: Option<OneOrEach<Name>>,
        weights: &str,
        seed: u64,
        names: Option<Vec<String>>,
        domains: Option<OneOrEach<DomainLike>>,
    ) -> PyResult<Self> {
        let py = class.py();
        let balanced = PyString::intern(py, "balanced").into_any();
        let tree = random::tree(tree.unwrap_or(&balanced), bases.count(), seed)?;
        let leaves = Leaves::new(tree.num_variables(), bases, domains, names)?;
        let mut structure = leaves.structure(tree).width(width).output_width(output_width);
        if let Some(product) = product {
            structure = random::with_products(structure, product)?;
        }
        let weights = random::weights(weights)?;
        let entries = structure.num_parameters();
        if entries > MAX_RANDOM_ENTRIES as u128 {
            return Err(BorniteError::new_err(format!(
                "the weights would have {entries} entries, more than the {MAX_RANDOM_ENTRIES} \
                 allowed; use a smaller width"
            )));
        }
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let circuit = detached(py, || structure.build(weights, rng))?;
        circuit.map(Self::from).map_err(Raise::raise)
    }

    /// Reads a circuit from JSON, given as text or as the objects that ``json.loads`` returns.
    ///
    /// >>> from bornite import Circuit
    /// >>> c = Circuit.from_json({
    /// ...     "variables": [{"name": "x", "domain": {"finite": 2}}],
    /// ...     "layers": [{"kind": "input", "variable": "x", "basis": {"kind": "indicator"}},
    /// ...                {"kind": "sum", "input": 0, "weight": [[0.6, [0, 0.8]]]}],
    /// ...     "output": 1})
    /// >>> c.evaluate([1])
    /// array([0.+0.8j])
    #[classmethod]
    fn from_json(class: &Bound<'_, PyType>, json: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = class.py();
        let text: String = if let Ok(text) = json.cast::<PyString>() {
            text.extract()?
        } else {
            let dumped = PyModule::import(py, "json")?.call_method1("dumps", (json,));
            dumped.map_err(|e| argument_error(e.value(py).to_string()))?.extract()?
        };
        detached(py, || file::from_json(&text))?.map(Self::from).map_err(Raise::raise)
    }

    /// Writes the circuit as JSON, preserving every bit of its weights.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || file::to_json(&self.0))
    }

    /// Reads a circuit from a file, JSON or safetensors.
    #[classmethod]
    fn load(class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        detached(class.py(), || file::load(path))?.map(Self::from).map_err(Raise::raise)
    }

    /// Writes the circuit to a file: JSON if the name ends in ``.json``, safetensors otherwise.
    ///
    /// The file is written completely or not at all.
    ///
    /// >>> import pathlib, tempfile
    /// >>> from bornite import Circuit
    /// >>> c = Circuit.random([2, 2, 2], seed=3)
    /// >>> with tempfile.TemporaryDirectory() as folder:
    /// ...     path = pathlib.Path(folder) / "c.safetensors"
    /// ...     c.save(path)
    /// ...     Circuit.load(path) == c
    /// True
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detached(py, || file::save(&self.0, path))?.map_err(Raise::raise)
    }

    /// Reads a circuit from the bytes of a file in either format.
    #[classmethod]
    fn from_bytes(class: &Bound<'_, PyType>, data: &[u8]) -> PyResult<Self> {
        detached(class.py(), || file::from_bytes(data))?.map(Self::from).map_err(Raise::raise)
    }

    /// Writes the circuit as the bytes of a safetensors file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detached(py, || file::to_bytes(&self.0))?.map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let other = other.get();
        Ok(Arc::ptr_eq(&self.0, &other.0) || detached(py, || **self.0 == **other.0)?)
    }

    fn __repr__(&self) -> String {
        let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        format!(
            "<Circuit: {}, {}, {}, {}>",
            counted(self.0.num_variables(), "variable"),
            counted(self.0.num_layers(), "layer"),
            counted(self.0.num_parameters(), "parameter"),
            if self.0.is_real() { "real" } else { "complex" }
        )
    }

    // What a circuit is made of.

    /// The variables, in the order of a row's values.
    #[getter]
    fn variables(&self) -> Vec<Variable> {
        self.0.variables().iter().cloned().map(Variable).collect()
    }

    /// The names of the variables in the order of the tree's input layers, from left to right.
    #[getter]
    fn variable_order(&self) -> Vec<&str> {
        self.0.variable_order().iter().map(|&v| self.0.variable(v).name.as_str()).collect()
    }

    /// The number of variables.
    #[getter]
    fn num_variables(&self) -> usize {
        self.0.num_variables()
    }

    /// The layers, each after its inputs.
    #[getter]
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let layers = self.0.layer_ids().map(|id| Layer::new(self.0.clone(), id));
        PyList::new(py, layers.collect::<Vec<_>>())
    }

    /// The number of layers.
    #[getter]
    fn num_layers(&self) -> usize {
        self.0.num_layers()
    }

    /// The position of the output layer.
    #[getter]
    fn output(&self) -> usize {
        self.0.output().index()
    }

    /// The width r of the output: the number of squares in the sum.
    #[getter]
    fn output_width(&self) -> usize {
        self.0.width(self.0.output())
    }

    /// The size of the largest layer.
    #[getter]
    fn max_size(&self) -> u128 {
        self.0.max_size()
    }

    /// The number of weight entries; a complex entry counts once.
    #[getter]
    fn num_parameters(&self) -> usize {
        self.0.num_parameters()
    }

    /// Whether all weights and all input functions are real.
    #[getter]
    fn is_real(&self) -> bool {
        self.0.is_real()
    }

    /// The weights as new arrays of float64 or complex128. A shared weight is listed once.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let weights = self.0.weights().iter().map(|w| weight_to_array(py, w));
        PyList::new(py, weights.collect::<PyResult<Vec<_>>>()?)
    }

    /// A circuit with the same layers and other weights, given in the order of ``weights``.
    ///
    /// >>> from bornite import Circuit
    /// >>> c = Circuit.random([2, 2], weights="real_gaussian", seed=1)
    /// >>> doubled = c.with_weights([2 * w for w in c.weights])
    /// >>> bool((doubled.evaluate([0, 1]) == 2 * c.evaluate([0, 1])).all())
    /// True
    fn with_weights(&self, weights: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let (expected, found) = (self.0.weights().len(), weights.len());
        if expected != found {
            let message =
                format!("{found} weights for a circuit with {expected}: give one per weight");
            return Err(BorniteError::new_err(message));
        }
        let weights = weights.iter().map(weight).collect::<PyResult<Vec<_>>>()?;
        self.0.with_weights(weights).map(Self::from).map_err(Raise::raise)
    }

    /// Whether the circuit is orthonormal, so that its square is a normalized distribution.
    #[getter]
    fn is_orthonormal(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(matches!(self.0.circuit, Held::Orthonormal(_))
            || detached(py, || check_orthonormality(&self.0).holds())?)
    }

    /// The layer that is farthest from orthonormal, and its residual.
    ///
    /// >>> from bornite import Circuit
    /// >>> layer, residual = Circuit.random([2, 2, 2], seed=1).orthonormalize()[0].orthonormality()
    /// >>> residual < 1e-14
    /// True
    fn orthonormality(&self, py: Python<'_>) -> PyResult<(usize, f64)> {
        let report = detached(py, || check_orthonormality(&self.0))?;
        Ok((report.worst.index(), report.residual))
    }

    /// Draws the circuit as SVG, with layers colored by how they depend on the query, if one is given.
    ///
    /// >>> from bornite import Circuit
    /// >>> Circuit.random([2] * 4).plot_svg("x0=1, x1=0").startswith("<svg")
    /// True
    #[pyo3(signature = (query = None))]
    fn plot_svg(&self, py: Python<'_>, query: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let query = query.map(|q| self::query(self.0.variables(), q)).transpose()?;
        detached(py, || bornite::draw::circuit_svg(&self.0, query.as_ref()))?.map_err(Raise::raise)
    }

    // The operations.

    /// The amplitudes c(x): r complex numbers for one row of values, or one row of r numbers for each row of a table.
    ///
    /// An amplitude outside the range of a float becomes 0 or infinite; ``log_abs_squared`` never does.
    ///
    /// >>> from bornite import Circuit
    /// >>> c = Circuit.random([2, 3, 2], output_width=2, seed=1)
    /// >>> c.evaluate([0, 2, 1]).shape, c.evaluate([[0, 2, 1], [1, 1, 0]]).shape
    /// ((2,), (2, 2))
    fn evaluate<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.rows(x)?;
        let evaluate = |row: &[f64]| Ok(ops::evaluate(&self.0, row)?.to_values());
        let values: Vec<Vec<Complex64>> = rows.map(py, evaluate, row_error)?;
        vectors_to_python(py, &rows, self.output_width(), values.concat())
    }

    /// log ‖c(x)‖² for one row of values or for each row of a table; −inf if c(x) = 0.
    fn log_abs_squared<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.rows(x)?;
        let evaluate = |row: &[f64]| Ok(ops::evaluate(&self.0, row)?.log_abs_squared());
        let numbers = rows.map(py, evaluate, row_error)?;
        numbers_to_python(py, &rows, numbers)
    }

    /// log Z, the logarithm of the integral of ‖c(x)‖² over all x.
    fn log_partition(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || ops::log_partition(&self.0))?.map_err(Raise::raise)
    }

    /// Returns an orthonormal circuit c′ with c = Z^½ c′, and log Z.
    ///
    /// >>> from bornite import Circuit
    /// >>> c = Circuit.random([2, 2, 2], seed=1)
    /// >>> o, log_z = c.orthonormalize()
    /// >>> x = [1, 0, 1]
    /// >>> bool(abs(o.log_abs_squared(x) - (c.log_abs_squared(x) - log_z)) < 1e-12)
    /// True
    fn orthonormalize(&self, py: Python<'_>) -> PyResult<(Self, f64)> {
        if matches!(self.0.circuit, Held::Orthonormal(_)) {
            return Ok((self.clone(), 0.0));
        }
        let made = detached(py, || ops::orthonormalize(&self.0))?.map_err(Raise::raise)?;
        Ok((Self::from(made.circuit), made.log_partition))
    }

    /// Squares the circuit explicitly: layers of width K² that compute ‖c(x)‖². A baseline for comparison.
    fn square(&self, py: Python<'_>) -> PyResult<Squared> {
        detached(py, || ops::square(&self.0))?.map(Squared).map_err(Raise::raise)
    }

    /// log p(evidence) of the normalized distribution p = ‖c‖² / Z.
    ///
    /// The query is text such as ``"x0=1, x2 in {0, 1}, x3 in [0.5, 2)"``, or a mapping from names to evidence: a
    /// number, a set or range of values, a pair (low, high), which means low ≤ x < high, or None. Variables that are
    /// not named are unobserved. With ``counts``, the answer also contains the numbers of layers and multiply-adds.
    ///
    /// A circuit that is not orthonormal is orthonormalized at the first query, and the result is cached.
    ///
    /// >>> import math
    /// >>> from bornite import Circuit
    /// >>> c = Circuit.random([2, 3, 4], seed=1)
    /// >>> p = [c.marginalize({"x0": 1, "x1": {0, 2}, "x2": v}) for v in range(4)]
    /// >>> math.isclose(sum(map(math.exp, p)), math.exp(c.marginalize("x0=1, x1 in {0, 2}")))
    /// True
    /// >>> c.marginalize("x7=1")
    /// Traceback (most recent call last):
    ///     ...
    /// bornite.QueryError: there is no variable 'x7'; did you mean 'x0'?, at character 1:
    ///   x7=1
    ///   ^
    #[pyo3(signature = (query, *, counts = false))]
    fn marginalize<'py>(
        &self,
        py: Python<'py>,
        query: &Bound<'py, PyAny>,
        counts: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let query: Query = self::query(self.0.variables(), query)?;
        let circuit = detached(py, || self.normalized())?.map_err(Raise::raise)?;
        if counts {
            let answer =
                detached(py, || ops::marginalize(circuit, &query))?.map_err(Raise::raise)?;
            return Ok(Bound::new(py, Marginal(answer))?.into_any());
        }
        let log = detached(py, || ops::log_marginal(circuit, &query))?.map_err(Raise::raise)?;
        Ok(log.into_pyobject(py)?.into_any())
    }

    /// log p of the observed values of one row or of each row of a table; NaN and None are missing values.
    ///
    /// >>> import math
    /// >>> from bornite import Circuit
    /// >>> c = Circuit.random([2, 3, 2], seed=1)
    /// >>> c.log_marginal([[1, math.nan, 0], [math.nan] * 3]).shape
    /// (2,)
    /// >>> math.isclose(c.log_marginal([1, None, 0]), c.marginalize("x0=1, x2=0"))
    /// True
    fn log_marginal<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.rows(x)?;
        let circuit = detached(py, || self.normalized())?.map_err(Raise::raise)?;
        let numbers = if rows.is_single() {
            let log =
                |row: &[f64]| ops::log_marginal(circuit, &Query::row(circuit.variables(), row)?);
            rows.map(py, log, row_error)?
        } else {
            let engine = self.engine(py)?;
            let log = |block: &[f64]| {
                let block = engine::Batch::from_rows(circuit.variables(), block)?;
                engine.log_marginals(&block).map_err(|source| RowError::Cell { row: 0, source })
            };
            rows.map_blocks(py, log, |start, error| match error {
                RowError::Cell { row, source } => row_error(Some(start + row), source),
                error @ RowError::Shape { .. } => PyQueryError::new_err(error.to_string()),
            })?
        };
        numbers_to_python(py, &rows, numbers)
    }

    /// Draws exact samples, one per row, given the evidence of a query; the same seed gives the same rows.
    ///
    /// >>> from bornite import Circuit
    /// >>> c = Circuit.random([2, 3, 4], seed=1)
    /// >>> c.sample(5, seed=7).shape
    /// (5, 3)
    /// >>> rows = c.sample(100, given={"x0": 1, "x2": {1, 3}}, seed=7)
    /// >>> sorted(set(rows[:, 0])), sorted(set(rows[:, 2]))
    /// ([np.float64(1.0)], [np.float64(1.0), np.float64(3.0)])
    #[pyo3(signature = (count, *, given = None, seed = 0))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        given: Option<&Bound<'py, PyAny>>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let variables = self.0.variables();
        let query = given.map(|given| self::query(variables, given)).transpose()?;
        memory::check_rows(count, variables.len())
            .map_err(|e| BorniteError::new_err(e.to_string()))?;
        let engine = self.engine(py)?;
        let values = match query {
            None => detached(py, || engine.sample(count, seed))?,
            Some(query) => {
                let queries = vec![query; count];
                let rows = engine::Batch::from_queries(variables, &queries);
                let rows = rows.map_err(|e| PyQueryError::new_err(e.to_string()))?;
                let sampled = detached(py, || engine.sample_given(&rows, seed))?;
                sampled.map_err(|error| match error {
                    SampleError::Query(error) => error.raise(),
                    _ => OperationError::ImpossibleEvidence.raise(),
                })?
            }
        };
        Ok(values.into_pyarray(py).reshape([count, variables.len()])?.into_any())
    }

    /// log p(xᵢ | the variables before i in traversal order) for every variable of one row or of each row of a table;
    /// they sum to the log density of the row.
    fn log_conditionals<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.rows(x)?;
        let engine = self.engine(py)?;
        let log = |block: &[f64]| {
            let block = engine::Batch::from_rows(self.0.variables(), block)?;
            engine.log_conditionals(&block).map_err(|source| RowError::Cell { row: 0, source })
        };
        let numbers = rows.map_blocks(py, log, |start, error| match error {
            RowError::Cell { row, source } => row_error(Some(start + row), source),
            error @ RowError::Shape { .. } => PyQueryError::new_err(error.to_string()),
        })?;
        vectors_to_python(py, &rows, self.0.num_variables(), numbers)
    }

    /// The environments of all layers, given the evidence of a query: posterior marginals, means, covariances, spectra.
    ///
    /// >>> from bornite import Circuit
    /// >>> c = Circuit.random([2, 3, 2], seed=1)
    /// >>> e = c.environments({"x2": 1})
    /// >>> p = [c.marginalize({"x1": v, "x2": 1}) - c.marginalize({"x2": 1}) for v in range(3)]
    /// >>> import numpy as np
    /// >>> np.allclose(e.marginal("x1").probabilities, np.exp(p))
    /// True
    #[pyo3(signature = (given = None))]
    fn environments(
        &self,
        py: Python<'_>,
        given: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Environments> {
        let variables = self.0.variables();
        let query = given.map_or_else(
            || Ok(Query::unknown(variables.len())),
            |given| self::query(variables, given),
        )?;
        let circuit = detached(py, || self.normalized())?.map_err(Raise::raise)?;
        detached(py, || Environments::new(circuit.clone(), &query))?.map_err(Raise::raise)
    }

    /// The overlap with a circuit over the same variables and the same tree: inner product, fidelity, distance.
    fn overlap(&self, py: Python<'_>, other: &Self) -> PyResult<Overlap> {
        let overlap = detached(py, || ops::overlap(self.normalized()?, other.normalized()?))?;
        overlap.map(Overlap).map_err(Raise::raise)
    }

    /// A smaller circuit with nearly the same distribution, and a bound on the Hellinger distance between the two.
    ///
    /// Give either the maximum error, from 0 to 1, or the maximum width of a layer.
    ///
    /// >>> from bornite import Circuit
    /// >>> c = Circuit.random([2] * 6, tree="linear", width=8, seed=1)
    /// >>> smaller, bound = c.truncate(error=0.2)
    /// >>> smaller.num_parameters < c.num_parameters, 0 < bound <= 0.2
    /// (True, True)
    #[pyo3(signature = (*, error = None, width = None))]
    fn truncate(
        &self,
        py: Python<'_>,
        error: Option<f64>,
        width: Option<usize>,
    ) -> PyResult<(Self, f64)> {
        let limit = Limit::new(error, width)?;
        let made = detached(py, || ops::truncate(self.normalized()?, limit.budget()))?;
        let made = made.map_err(Raise::raise)?;
        Ok((Self::from(made.circuit), made.bound))
    }

    /// How each layer depends on a query: ``kept`` if only on variables with a value, ``marginalized`` if only on
    /// unobserved variables, ``mixed`` if on both.
    ///
    /// >>> from bornite import Circuit
    /// >>> Circuit.random([2, 2]).dependences("x0=1")
    /// ['kept', 'marginalized', 'mixed', 'mixed']
    fn dependences(&self, query: &Bound<'_, PyAny>) -> PyResult<Vec<&'static str>> {
        let query = self::query(self.0.variables(), query)?;
        let dependences = ops::dependences(&self.0, &query).into_iter();
        Ok(dependences
            .map(|d| match d {
                Dependence::Kept => "kept",
                Dependence::Marginalized => "marginalized",
                Dependence::Mixed => "mixed",
            })
            .collect())
    }
}

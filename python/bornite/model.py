"""Models of tables: fitted to rows, then queried by column name."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import glob
from html import escape
from os import PathLike, fspath
from os.path import exists
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bornite import _forms, _notebook, _tables
from bornite._bornite import BorniteError, Circuit, TableModel
from bornite._errors import (
    ArgumentError,
    ColumnError,
    check_bytes,
    check_flag,
    check_numbers,
    check_path,
    check_text,
    check_whole,
    levels_of,
    listed,
    not_none,
    shown,
)
from bornite._evidence import column_error, evidence, quoted
from bornite._notebook import Drawing, Page
from bornite._progress import ProgressLine
from bornite._tables import Column, Field, Form, Frame
from bornite.answers import Anomaly, Answer, Contribution
from bornite.distribution import Distribution

if TYPE_CHECKING:
    from bornite.batches import Batches, Operation

Given: TypeAlias = str | Mapping[Any, Any] | None
"""Evidence about a row: text such as ``"age in [30, 40), city='Bonn'"``, or a mapping from columns to a
value, a set or list of values, or an interval ``(low, high)``, which means low ≤ x < high."""

Plot: TypeAlias = Literal[
    "structure", "training", "marginals", "pairs", "calibration", "anomalies", "samples"
]

SHOWN_COLUMNS, SHOWN_LABELS = 30, 6
"""How much notebooks show of a model."""

Floats: TypeAlias = npt.NDArray[np.float64]
Progress: TypeAlias = Callable[[dict[str, Any]], bool | None]
ColumnKind: TypeAlias = str | tuple[str, float] | tuple[str, float, float]


def fit(
    table: Any,
    *,
    start: Model | None = None,
    memory: int = 4 << 30,
    valid: Any = None,
    sample_weight: Any = None,
    time: float | None = None,
    effort: Literal["fast", "balanced", "best"] = "balanced",
    circuits: int | None = None,
    width: int | None = None,
    output_width: int | None = None,
    functions: int | None = None,
    epochs: int | None = None,
    batch: int | None = None,
    rate: float | None = None,
    patience: int | None = None,
    smoothing: float | None = None,
    target: Any = None,
    emphasis: float | None = None,
    valid_share: float = 0.1,
    structure: Literal["auto", "chow-liu", "linkage", "image", "linear", "balanced", "random"] = "auto",
    kinds: Mapping[Any, ColumnKind] | None = None,
    missing_as_value: Any = (),
    atoms: Mapping[Any, Any] | None = None,
    image: tuple[int, int] | tuple[int, int, int] | None = None,
    as_is: bool = False,
    strict: bool = False,
    seed: int = 0,
    device: Literal["cpu", "cuda", "cuda-tf32", "auto"] = "cpu",
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    resume: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    verbose: bool = False,
) -> Model:
    """Fits a model to the rows of a table.

    The table is a 2-D numpy array, a structured array, a dict of columns, or a table from pandas, polars, pyarrow or
    any other library with the Arrow stream interface. Columns contain real or whole numbers, text, True and False, or
    dates and times. NaN, None, NA and null are missing values; the fit uses the exact likelihood of the observed
    values.

    The table may also be in CSV, Parquet, NPY or IDX files: a path, a pattern such as ``"days/*.parquet"``, or a list
    of these. A table that takes more than about ``memory`` bytes is read in pieces: column types are inferred from a
    random sample of a million rows, and every epoch reads all rows in random order from a temporary file in the folder
    named by TMPDIR.

    ``start`` is a model to continue from with other rows, such as those of a new day. The fit keeps its columns,
    circuit and target and starts from its weights. No circuit gets worse on the validation rows, which are taken from
    the new rows. Values outside a column's domain are treated as in ``Model.log_prob``. Settings that require other
    columns or another circuit are rejected.

    Settings that are None depend on the size of the data. ``valid`` contains the rows used to choose the best epoch; by
    default a random fraction ``valid_share`` of the rows is held out. ``sample_weight`` weights the rows: it is the
    name of a column, which then does not become part of the model, or an array with one number per row. Rows with
    weight 0 are dropped. ``time`` is a limit in seconds; with more time, large image data sets get a larger circuit.

    ``effort`` sets how much to try: ``"fast"`` fits small circuits, a usable model in seconds; ``"best"`` tries larger
    circuits and longer fits until nothing improves, and is best combined with ``time``. ``circuits`` is the maximum
    number of circuits in the model, which is a mixture if there are several. Models of small tables average circuits
    with different validation rows: by default 5 with up to 50,000 cells and 3 with up to 150,000. On larger tables, or
    with ``valid``, a circuit is kept only if it improves the validation likelihood: by default up to 2, or 4 with
    ``effort="best"`` or ``time``. Only 1 if ``structure`` or ``width`` is given. Without ``circuits``, tables of
    more than 48 columns, all of them finite, can get 64 additional narrow circuits. ``width`` is the width of the circuits' inner layers; by default several are
    tried. ``output_width`` is the number of squares in the sum. ``smoothing`` penalizes differences between the weights
    of neighboring values of ordered columns.

    ``target`` names a column to predict. The fit then maximizes log p(x, y) + ``emphasis`` log p(y | x), which improves
    :meth:`Model.predict` and :meth:`Model.predict_proba`; the result is still a model of all columns and answers every
    other question. ``emphasis`` is 10 by default. From 3 to 100, predictions change little; the larger it is, the less
    accurately the rest of the row is modeled.

    ``kinds`` overrides how columns are interpreted: ``"categorical"``, ``"boolean"``, ``"integer"``, ``"digits"``,
    ``"number"``, ``("number", share)``, ``"continuous"``, ``("continuous", low, high)`` or ``("periodic", period)``; with
    a ``share``, values in fewer than this fraction of the rows do not get their own probability. By default, missing
    values are integrated out. In the columns listed in ``missing_as_value``, *missing* is a value that is scored,
    sampled, and can be used in questions, as in ``P(age is missing | owner='yes')``. ``atoms`` maps columns to numbers
    that get their own probability, in addition to those that the fit finds. With ``image``, the columns are the pixels
    of images with this height and width.

    Columns that cannot be learned are dropped, and ``model.info["left_out"]`` lists them with the reasons: constant and
    empty columns, identifiers and free text. ``strict=True`` rejects such a table, and ``as_is=True`` fits all columns.

    ``device`` is where the model is trained: ``"cuda"`` is an NVIDIA GPU, which needs rows without missing values,
    ``"cuda-tf32"`` is a GPU with faster, less precise products, and ``"auto"`` is a GPU if there is one that can learn
    this table.

    ``checkpoint`` is a file that the state of the fit is saved to, every ``checkpoint_every`` seconds and when the fit
    ends early. ``resume`` continues from such a file, given the same table and settings: without ``time``, to the same
    model, bit for bit, as if the fit had never been interrupted. The ``bornite`` command writes and reads them too.

    ``progress`` is called after every epoch with a dict of ``width``, ``epoch``, ``epochs``, ``train``, ``valid`` and
    ``best``, with log-likelihoods in nats per row as in ``model.info``; returning False ends the fit. ``verbose=True``
    shows a progress line on standard error, in terminals and notebooks. Ctrl-C also ends the fit, with a warning. In
    both cases the best model so far is returned. Without ``time``, the same table, settings and seed give the same
    model, bit for bit.

    >>> import numpy as np
    >>> import bornite
    >>> rng = np.random.default_rng(0)
    >>> sky = rng.choice(["sun", "rain"], 200)
    >>> wet = (sky == "rain") & (rng.random(200) < 0.8)
    >>> model = bornite.fit({"sky": sky, "wet": wet}, epochs=20)
    >>> model
    <Model: 2 columns, 200 rows>
    >>> bool(0.6 < model.query("P(wet=1 | sky='rain')") < 0.95)
    True
    """
    check_whole(memory=memory, seed=seed)
    check_whole(**not_none(circuits=circuits, width=width, output_width=output_width, functions=functions))
    check_whole(**not_none(epochs=epochs, batch=batch, patience=patience))
    check_numbers(valid_share=valid_share)
    check_numbers(**not_none(time=time, rate=rate, smoothing=smoothing, emphasis=emphasis))
    check_text(effort=effort, structure=structure, device=device)
    check_flag(as_is=as_is, strict=strict)
    if image is not None:
        image = tuple(listed(image=image))
        check_whole(**{f"image[{n}]": size for n, size in enumerate(image)})
        if len(image) not in (2, 3):
            raise BorniteError(f"image={shown(image)}: give the height, the width and optionally the channels")
    if atoms is not None and not isinstance(atoms, Mapping):
        raise ArgumentError(f"atoms={shown(atoms)}: give a dict from columns to numbers")
    if progress is not None and not isinstance(progress, (bool, np.bool_)) and not callable(progress):
        raise ArgumentError(f"progress={shown(progress)}: give True, False or a function")
    check_numbers(checkpoint_every=checkpoint_every)
    check_path(**not_none(checkpoint=checkpoint, resume=resume))
    if start is not None and not isinstance(start, Model):
        raise ArgumentError(f"start={shown(start)}: give a model")
    if start is not None and start._is_view():
        raise BorniteError("start= is a marginal of another model: give the whole model")
    shared = table if isinstance(table, Shared) else None
    files = _files(table)
    frame = Frame(table if shared is None else shared.sample) if files is None else None
    names = [] if frame is None else _tables.texts(frame.names)
    columns: list[Column] = []
    fields: list[Field] = []
    note = None if start is None else start._all_info().get("note")
    if frame is None:
        # Files are read later, so column names cannot be checked yet.
        found = _kinds(kinds, [*(kinds or ())], [str(name) for name in kinds or ()])
        target = None if target is None else str(target)
        weights = None if sample_weight is None else str(sample_weight)
        optional = [str(name) for name in _several(missing_as_value)]
        named = _atoms(atoms, [*(atoms or ())], [str(name) for name in atoms or ()])
    else:
        optional = _listed(missing_as_value, frame.names, names)
        named = _atoms(atoms, frame.names, names)
        found, target = _kinds(kinds, frame.names, names), _target(target, frame.names, names)
        if start is None:
            for index, name in enumerate(names):
                field, column = frame.read(index, name)
                fields.append(field)
                columns.append(column)
                if field.cells == "truth":
                    found.setdefault(name, ("boolean", []))
            note = _forms.to_note(frame.form(fields, tuple(range(len(fields)))))
        else:
            columns = start._encode(frame)
        weights = _weights(sample_weight, frame, names, columns)
    if valid is not None:
        held = Frame(valid)
        if start is not None:
            valid = start._encode(held)
        elif frame is None:
            valid = [held.read(index, str(name))[1] for index, name in enumerate(held.names)]
        else:
            valid = _columns(held, frame.names, names)
    line = ProgressLine(progress) if verbose else None
    try:
        core, interrupted, unsaved = TableModel.fit(
            None if frame is None else columns,
            valid,
            files=files or [],
            workers=None if shared is None else (shared.workers, shared.places, shared.num_rows),
            memory=memory,
            start=None if start is None else start._core,
            kinds=found,
            missing_as_value=set(optional),
            atoms=named,
            image=None if image is None else (*image, 1)[:3],
            effort=effort,
            structure=structure,
            circuits=circuits,
            width=width,
            output_width=output_width,
            functions=functions,
            epochs=epochs,
            batch=batch,
            rate=rate,
            patience=patience,
            smoothing=smoothing,
            target=target,
            emphasis=emphasis,
            valid_share=valid_share,
            as_is=as_is,
            strict=strict,
            seed=seed,
            device=device,
            time=time,
            weights=weights,
            checkpoint=None if checkpoint is None else (checkpoint, checkpoint_every),
            resume=resume,
            progress=progress if line is None else line,
            note=note,
        )
    finally:
        if line is not None:
            line.close()
    if interrupted:
        warnings.warn("the fit was interrupted: this is the best model so far", stacklevel=2)
    if unsaved is not None:
        warnings.warn(f"the last checkpoint was not saved: {unsaved}", stacklevel=2)
    if start is not None:
        return start._with(core)
    if frame is None:
        return Model(core)
    learned = {str(column["name"]) for column in json.loads(core.schema())["columns"]}
    places = tuple(index for index, name in enumerate(names) if name in learned)
    return Model(core, frame.form(fields, places))


@dataclass(frozen=True)
class Shared:
    """A sample of a table for ``fit``, and the workers that hold all of its rows."""

    sample: Any
    places: Sequence[int]
    """The positions of the sample's rows in the table."""
    num_rows: int
    workers: Any
    """An object with ``hold(plan)`` and ``ask(fit, step)``, like the library's trait ``Workers``."""


def _files(table: Any) -> list[str] | None:
    """The files of a table; None if it is not in files."""
    listed = [table] if isinstance(table, (str, PathLike)) else table
    if not isinstance(listed, (list, tuple)) or not listed:
        return None
    if not all(isinstance(path, (str, PathLike)) for path in listed):
        return None
    files: list[str] = []
    for path in map(fspath, listed):
        is_pattern = any(sign in path for sign in "*?[") and not exists(path)
        found = sorted(glob(path)) if is_pattern else [path]
        if not found:
            raise BorniteError(f"{path}: no such file")
        files += found
    return files


def _weights(
    sample_weight: Any, frame: Frame, names: Sequence[str], columns: list[Column]
) -> str | None:
    """The name of the weight column, which is appended to the columns if it is not one of the table's."""
    if sample_weight is None:
        return None
    text_of = _text_of(frame.names, names)
    if np.ndim(sample_weight) == 0:
        if sample_weight not in text_of:
            raise column_error(sample_weight, frame.names, "the table")
        name = text_of[sample_weight]
        if all(column[0] != name for column in columns):
            columns.append(frame.read(names.index(name), name)[1])
        return name
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (frame.height,):
        raise BorniteError(
            f"sample_weight has the shape {weights.shape} and the table {frame.height} rows: give one number for "
            "each row"
        )
    name = "sample_weight"
    while name in text_of:
        name += "_"
    columns.append((name, np.ascontiguousarray(weights), None))
    return name


def _kinds(
    kinds: Mapping[Any, ColumnKind] | None, names: Sequence[Any], texts: Sequence[str]
) -> dict[str, tuple[str, list[float]]]:
    found = {}
    text_of = _text_of(names, texts)
    for name, kind in (kinds or {}).items():
        if name not in text_of:
            raise column_error(name, names, "the table")
        word, *numbers = (kind,) if isinstance(kind, str) else kind
        found[text_of[name]] = (str(word), [float(x) for x in numbers])
    return found


def _several(columns: Any) -> list[Any]:
    """A list of columns; a single column becomes a list of one."""
    single = isinstance(columns, str) or not hasattr(columns, "__iter__")
    return [columns] if single else list(columns)


def _listed(columns: Any, names: Sequence[Any], texts: Sequence[str]) -> list[str]:
    """The names of columns in the model."""
    text_of = _text_of(names, texts)
    found = []
    for name in _several(columns):
        if name not in text_of:
            raise column_error(name, names, "the table")
        found.append(text_of[name])
    return found


def _atoms(
    atoms: Mapping[Any, Any] | None, names: Sequence[Any], texts: Sequence[str]
) -> dict[str, list[float]]:
    found = {}
    text_of = _text_of(names, texts)
    for name, numbers in (atoms or {}).items():
        if name not in text_of:
            raise column_error(name, names, "the table")
        try:
            found[text_of[name]] = [float(x) for x in np.atleast_1d(np.asarray(numbers, dtype=np.float64))]
        except (TypeError, ValueError):
            raise ArgumentError(f"atoms of column '{name}': give numbers, not {shown(numbers)}") from None
    return found


def _target(target: Any, names: Sequence[Any], texts: Sequence[str]) -> str | None:
    text_of = _text_of(names, texts)
    if target is not None and target not in text_of:
        raise column_error(target, names, "the table")
    return None if target is None else text_of[target]


def _text_of(names: Sequence[Any], texts: Sequence[str]) -> dict[Any, str]:
    """Maps what a caller may write, a column's text or its own name, to the column's name."""
    return {**dict(zip(texts, texts, strict=True)), **dict(zip(names, texts, strict=True))}


def _columns(
    frame: Frame, names: Sequence[Any], texts: Sequence[str], form: Form | None = None
) -> list[Column]:
    """The columns with these names, or by position in an array without names."""
    return [frame.read(index, text)[1] for index, text in _places(frame, names, texts, form)]


def _places(
    frame: Frame, names: Sequence[Any], texts: Sequence[str], form: Form | None = None
) -> list[tuple[int, str]]:
    if frame.kind == "numpy":
        if len(frame.names) != len(names):
            if form is not None and form.places is not None and len(frame.names) == form.width:
                # An array like the one that was fitted, including the columns that were dropped.
                place = {f.name: index for f, index in zip(form.fields, form.places, strict=True)}
                return [(place[name], text) for name, text in zip(names, texts, strict=True)]
            raise BorniteError(
                f"the array has {len(frame.names)} columns and the model {len(names)} "
                f"({', '.join(texts[:10])}): give one for each, with NaN for missing values"
            )
        return list(enumerate(texts))
    places: dict[str, int] = {}
    for index, name in enumerate(frame.names):
        places.setdefault(str(name), index)
    for text in texts:
        if text not in places:
            raise ColumnError(
                f"the table has no column '{text}'; add it, with None for missing values, or use "
                "model.marginal([...]) with the columns that it has"
            )
    return [(places[text], text) for text in texts]


class Model:
    """A distribution over the rows of a table, from ``bornite.fit`` or ``Model.load``.

    All answers are exact for the fitted distribution. Log densities are in nats, in the units of the data;
    missing values are integrated out. Results are tables of the same kind as the input, with the same types.

    >>> import numpy as np
    >>> import bornite
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(300, 1))
    >>> table = np.hstack([x, x + 0.5 * rng.normal(size=(300, 1))])
    >>> table[::7, 1] = np.nan
    >>> model = bornite.fit(table, epochs=20)
    >>> model.log_prob(table[:3]).shape
    (3,)
    >>> filled = model.impute(table)
    >>> bool(np.isnan(filled).any()), bool((filled[1] == table[1]).all())
    (False, True)
    >>> bool(model.quantile("x1", 0.5, given={"x0": 1.0}) > model.quantile("x1", 0.5))
    True
    """

    def __init__(
        self, core: TableModel, form: Form | None = None, visible: Sequence[int] | None = None
    ) -> None:
        self._core = core
        self._schema: list[dict[str, Any]] = json.loads(core.schema())["columns"]
        self._all = [str(column["name"]) for column in self._schema]
        if form is None:
            form = _forms.from_note(json.loads(core.info()).get("note"), self._all)
        self._form = form if form is not None else _default_form(self._schema)
        self._visible = list(range(len(self._all))) if visible is None else list(visible)
        self._names = [self._form.fields[index].name for index in self._visible]
        self._texts = [self._all[index] for index in self._visible]
        self._text_of = _text_of(self._names, self._texts)
        if self._form.kind == "numpy":
            places = None if self._is_view() else self._form.places
            self._text_of.update(zip(places or range(len(self._texts)), self._texts, strict=True))

    def _with(self, core: TableModel) -> Model:
        return Model(core, self._form, self._visible)

    def _column(self, column: Any) -> str:
        try:
            return self._text_of[column]
        except (KeyError, TypeError):  # A TypeError if it cannot be a name, such as a list.
            raise column_error(column, self._names) from None

    def _is_name(self, columns: Any) -> bool:
        """Whether this is a single column rather than a list of columns."""
        if isinstance(columns, str) or not hasattr(columns, "__iter__"):
            return True
        return isinstance(columns, tuple) and columns in self._text_of

    def _given(self, given: Given) -> str:
        return evidence(given, self._text_of)

    def _is_view(self) -> bool:
        return len(self._visible) < len(self._all)

    def _encode(self, frame: Frame) -> list[Column]:
        """All columns of the model: those that the view does not show are missing."""
        found = dict(zip(self._texts, _columns(frame, self._names, self._texts, self._form), strict=True))
        return [found.get(text) or _tables.unknown(text, frame.height) for text in self._all]

    def _decode(self, columns: Sequence[Column], kind: str | None) -> Any:
        form = Form(
            self._form.kind, tuple(self._form.fields[i] for i in self._visible), self._form.dtype
        )
        shown = [columns[index] for index in self._visible]
        form = _tables.in_kind(form, kind)
        fields = tuple(
            _tables.fitted(form.kind, field, column, is_boolean=self._schema[index]["kind"] == "boolean")
            for index, field, column in zip(self._visible, form.fields, shown, strict=True)
        )
        return _tables.assemble(replace(form, fields=fields), shown)

    # What the model is.

    @property
    def columns(self) -> list[Any]:
        """The names of the columns."""
        return list(self._names)

    @property
    def schema(self) -> list[dict[str, Any]]:
        """How each column is represented: its kind, with labels, bounds and transforms."""
        return [json.loads(json.dumps(self._schema[index])) for index in self._visible]

    @property
    def info(self) -> dict[str, Any]:
        """How the model was fitted: seed, rows, widths, and the mean log-likelihood of the validation rows, for the
        model and for independent columns as a baseline."""
        info = self._all_info()
        del info["history"]
        info.pop("note", None)
        return info

    def _all_info(self) -> dict[str, Any]:
        info: dict[str, Any] = json.loads(self._core.info())
        return info

    @property
    def history(self) -> list[dict[str, float]]:
        """One entry per epoch: the mean log-likelihoods of the training and validation rows, and the
        orthonormality residual."""
        history: list[dict[str, float]] = self._all_info()["history"]
        return history

    @property
    def given(self) -> list[str]:
        """The evidence that the model is conditioned on."""
        return self._core.given()

    @property
    def circuit(self) -> Circuit:
        """The circuit, without the evidence that the model is conditioned on; if there are several, the one with the
        greatest weight. Its variables are the encoded columns; see ``schema``."""
        return self._core.circuits()[0]

    @property
    def circuits(self) -> tuple[tuple[float, Circuit], ...]:
        """Pairs of weight and circuit, in order of descending weight: the model is the mixture p(x) = Σ w ‖c(x)‖². Most
        models have one circuit."""
        return tuple(zip(self._core.weights(), self._core.circuits(), strict=True))

    def __repr__(self) -> str:
        count = len(self._visible)
        given = f", given {', '.join(self.given)}" if self.given else ""
        of = f" of {len(self._all)}" if self._is_view() else ""
        return f"<Model: {count}{of} column{'s' if count != 1 else ''}, {self.info['rows'] + self.info['valid_rows']} rows{given}>"

    # How likely rows are.

    def log_prob(
        self,
        table: Any,
        *,
        column: Any = None,
        unseen: Literal["score", "unknown", "error"] = "score",
        device: Literal["cpu", "cuda", "auto"] = "cpu",
    ) -> Floats:
        """The log density of every row, in nats, in the units of the data. With ``column``, the log density of that
        column's cell given the other cells of its row; 0 if the cell is missing.

        Missing values are integrated out, except in columns where missing is a value. Rows that contradict the model's
        evidence have −inf.

        Labels that were never seen, and numbers outside the range or between grid points, have a small probability that
        the fit estimates. Only scores (``log_prob``, ``score``, ``anomalies``) use it: in questions, distributions,
        quantiles, means and samples such values have probability 0. With ``unseen="unknown"`` they count as missing, and
        with ``unseen="error"`` they are an error.

        ``device`` is where log densities are computed, in double precision: ``"cuda"`` is an NVIDIA GPU, and ``"auto"``
        is a GPU with enough memory for the model, if there is one, otherwise the CPU. It cannot be combined with
        ``column``.
        """
        check_text(unseen=unseen, device=device)
        frame = Frame(table)
        if column is None:
            return self._core.log_prob(self._encode(frame), unseen, device)
        if unseen != "score":
            raise BorniteError(f"unseen='{unseen}' is for whole rows: omit it with a column")
        if device != "cpu":
            raise BorniteError(f"device='{device}' is for whole rows: omit it with a column")
        text = self._column(column)
        columns = self._encode_others(frame, text)
        ((index, _),) = [place for place in self._target_places(frame, text) if place[1] == text]
        columns[self._all.index(text)] = frame.read(index, text)[1]
        return self._core.log_conditional(columns, text)

    def score(self, table: Any) -> float:
        """The mean of ``log_prob``, in which values that were never seen have a small probability."""
        logs = self.log_prob(table)
        if not len(logs):
            raise BorniteError("the table has no rows; give a table with at least one")
        return float(np.mean(logs))

    def surprise(self, table: Any) -> Any:
        """How surprising every cell is, given the other cells of its row: −``Contribution.log_standardized``, NaN for
        missing values. A DataFrame for pandas, otherwise an array with the rows and columns of the table.

        Ordinary cells have about 0 or less; 5 means e⁵ times less likely than under a uniform distribution.

        >>> import numpy as np
        >>> import bornite
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=300)
        >>> rows = np.column_stack([x, x + 0.1 * rng.normal(size=300), rng.normal(size=300)])
        >>> model = bornite.fit(rows, epochs=30)
        >>> cells = model.surprise([[0.5, 0.5, 0.0], [0.5, -1.5, 0.0]])
        >>> bool((cells[0] < 2).all()), bool((cells[1, :2] > 2).all()), bool(cells[1, 2] < 2)
        (True, True, True)
        """
        frame = Frame(table)
        found = self._core.surprises(self._encode(frame)).reshape(frame.height, len(self._all))
        found = found[:, self._visible]
        if frame.kind == "pandas":
            pandas = _tables.library("pandas")
            return pandas.DataFrame(found, index=frame.source.index, columns=self._names)
        return found

    def anomaly_score(
        self,
        table: Any,
        *,
        by: Literal["density", "cells", "either"] = "density",
        unseen: Literal["score", "unknown", "error"] = "score",
    ) -> Floats:
        """The anomaly score of every row: larger is more anomalous.

        ``by="density"`` is −``log_prob`` and finds rows that are unlikely as a whole. ``by="cells"`` is a
        log-likelihood ratio: one cell redrawn from its column's marginal, or all cells drawn independently, versus the
        row as it is. It finds rows with a cell that does not fit the others, even among many columns, where the density
        sums up the noise of all of them. ``by="either"`` finds both kinds of rows: at most about a fraction e⁻ˢ of the
        model's own samples has a score above s. The last two take two passes over the table for each column.
        """
        if by == "density":
            return -self.log_prob(table, unseen=unseen)
        if by not in ("cells", "either"):
            raise BorniteError(f"by='{by}': choose 'density', 'cells' or 'either'")
        if unseen != "score":
            raise BorniteError(f"unseen='{unseen}' is for by='density': omit it")
        return self._core.anomaly_scores(self._encode(Frame(table)), by == "either")

    def anomalies(
        self, table: Any, count: int = 10, *, by: Literal["density", "cells", "either"] = "density"
    ) -> list[Anomaly]:
        """The rows with the lowest density, lowest first, or with the highest ``anomaly_score`` for another ``by``. The
        cells of each row are sorted by how surprising they are given the rest of the row.

        >>> import numpy as np
        >>> import bornite
        >>> table = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = bornite.fit(table, epochs=5)
        >>> table[17, 1] = 9
        >>> worst = model.anomalies(table, 1)[0]
        >>> worst.row, worst.contributions[0].column
        (17, 'x1')
        """
        check_whole(count=count)
        name_of = dict(zip(self._texts, self._names, strict=True))
        columns = self._encode(Frame(table))
        places: dict[int, int] | None = None
        if by != "density":
            scores = self.anomaly_score(table, by=by)
            worst = np.argsort(-scores, kind="stable")[:count]
            places = {place: int(row) for place, row in enumerate(worst)}
            columns = [
                (text, values[worst], more[worst] if isinstance(more, np.ndarray) else more)
                for text, values, more in columns
            ]
        found = [
            Anomaly(
                row if places is None else places[row],
                log,
                tuple(Contribution(name_of[c], t, a, b) for c, t, a, b in cells),
            )
            for row, log, cells in self._core.anomalies(columns, count)
        ]
        if places is not None:
            found.sort(key=lambda anomaly: (-scores[anomaly.row], anomaly.row))
        return found

    def log_probability(self, event: Given) -> float:
        """log P(event); a log density, in the units of the data, if a continuous column is given a single value.

        >>> import numpy as np
        >>> import bornite
        >>> model = bornite.fit({"x": np.arange(100) % 5, "y": ["a", "b"] * 50}, epochs=5)
        >>> p = np.exp(model.log_probability({"x": {0, 1, 2, 3, 4}, "y": "a"}))
        >>> bool(np.isclose(p, np.exp(model.log_probability("y='a'"))))
        True
        """
        return self._core.log_probability(self._given(event))

    def query(self, question: str) -> Any:
        """The answer to a question: ``"P(wet=1, age in [30, 40) | sky='rain')"``, ``"E[age | …]"``, ``"std(age)"``,
        ``"var(age)"``, ``"corr(age, pay | …)"``, ``"median(age)"``, ``"quantile(age, 0.9 | …)"``, ``"argmax(sky | …)"``,
        ``"argmax(sky, wet | …)"`` (a dict), ``"H(sky | …)"`` or ``"MI(sky; wet, age | …)"``.

        Evidence is combined with commas, ``and``, ``or``, ``not`` and parentheses. Values that were never seen have
        probability 0 in questions; only scores (``log_prob``) give them a small one. ``ask`` also returns the kind of
        answer.
        """
        return self.ask(question).value

    def ask(self, question: str) -> Answer:
        """The answer to a question (see ``query``) with its kind: a probability or a density, exact or not. Its notes
        name values in the question that were never seen.

        >>> import numpy as np
        >>> import bornite
        >>> rng = np.random.default_rng(0)
        >>> model = bornite.fit({"x": rng.normal(size=300), "y": ["a", "b", "b"] * 100}, epochs=5)
        >>> model.ask("P(x=0)").kind, model.ask("P(0 < x < 1 or y == 'a')").kind
        ('density', 'probability')
        """
        check_text(question=question)
        return Answer(*self._core.ask(question))

    # Other distributions.

    def conditional(self, given: Given) -> Model:
        """The exact conditional model, given evidence.

        >>> import numpy as np
        >>> import bornite
        >>> model = bornite.fit({"x": np.arange(100) % 5, "y": ["a", "b"] * 50}, epochs=5)
        >>> m = model.conditional({"x": {0, 2, 4}})
        >>> joint = model.query("P(y='a', x in {0, 2, 4})") / model.query("P(x in {0, 2, 4})")
        >>> bool(np.isclose(m.query("P(y='a')"), joint))
        True
        """
        text = self._given(given)
        return self._with(self._core.condition(text) if text else self._core)

    def marginal(self, columns: Any, *, given: Given = None) -> Any:
        """The exact distribution of some columns.

        For a column name, returns a ``Distribution``; if missing is a value of the column, it covers the rows in which
        the column is not missing. For a list of columns, returns a ``Model`` of only these columns with the others
        integrated out. That model is a view: it shares the circuit of the full model, costs nothing to create, and
        cannot be saved by itself. Evidence and questions given as text may use all columns.

        >>> import numpy as np
        >>> import bornite
        >>> rows = np.random.default_rng(0).normal(size=(200, 3))
        >>> model = bornite.fit(rows, epochs=5)
        >>> view = model.marginal(["x0", "x2"])
        >>> holes = rows.copy()
        >>> holes[:, 1] = np.nan
        >>> np.allclose(view.log_prob(rows[:, [0, 2]]), model.log_prob(holes))
        True
        >>> model.marginal("x1").cdf(np.inf)
        1.0
        """
        base = self.conditional(given) if given is not None else self
        if not base._is_name(columns):
            places = [base._all.index(base._column(column)) for column in columns]
            if not places:
                raise BorniteError("a marginal needs at least one column")
            if len(set(places)) < len(places):
                raise BorniteError("a column is named twice: name each once")
            return Model(base._core, base._form, places)
        text = base._column(columns)
        place = base._all.index(text)
        if base._schema[place].get("missing"):
            base = base.conditional(f"{quoted(text)} is not missing")
        return Distribution(base._core, base._form.kind, base._form.fields[place], text, place)

    def truncate(self, *, error: float | None = None, width: int | None = None) -> Model:
        """A smaller model of nearly the same distribution: within Hellinger distance ``error``, or with
        layers of at most ``width``. The new model's ``truncation_bound`` bounds the distance. Conditional
        models have no such bound: truncate first, then condition.

        >>> import numpy as np
        >>> import bornite
        >>> model = bornite.fit(np.random.default_rng(0).normal(size=(200, 4)), width=8, epochs=5)
        >>> smaller = model.truncate(error=0.1)
        >>> smaller.circuit.num_parameters <= model.circuit.num_parameters
        True
        >>> smaller.truncation_bound <= 0.1
        True
        """
        check_whole(**not_none(width=width))
        check_numbers(**not_none(error=error))
        core, _ = self._core.truncate(error, width)
        return self._with(core)

    @property
    def truncation_bound(self) -> float | None:
        """The bound on the Hellinger distance to the fitted model that this one was truncated from; None if it
        was not truncated."""
        truncated = self._all_info().get("truncated")
        return None if truncated is None else float(truncated["bound"])

    # New rows and new cells.

    def sample(
        self, count: int = 1, *, given: Given = None, seed: int = 0, kind: str | None = None
    ) -> Any:
        """Exact samples, optionally given evidence. The same seed gives the same rows.

        The result is the kind of table that the model was fitted to, or ``kind``: ``"numpy"``, ``"dict"``,
        ``"pandas"``, ``"polars"`` or ``"pyarrow"``. A model loaded from a file remembers the kind and the column types;
        a model fitted by the ``bornite`` command returns a dict of arrays.

        >>> import bornite
        >>> model = bornite.fit({"x": [1, 2, 3, 4] * 20, "y": ["a", "b"] * 40}, epochs=5)
        >>> rows = model.sample(50, given={"x": (3, None)}, seed=1)
        >>> sorted(set(rows["x"].tolist()))
        [3, 4]
        """
        check_whole(count=count, seed=seed)
        return self._decode(self._core.sample(count, self._given(given), seed, 0), kind)

    def impute(
        self,
        table: Any,
        *,
        method: Literal["mean", "mode", "median", "sample"] = "median",
        n: int | None = None,
        seed: int = 0,
    ) -> Any:
        """The table with its missing values imputed, given the observed cells of each row. Observed cells and
        columns unknown to the model are unchanged.

        ``"median"``, ``"mean"`` and ``"mode"`` impute each cell separately; text columns always use the mode.
        ``"sample"`` samples the missing values of a row jointly, which preserves their dependence. Values are imputed
        as if they were not missing, even in columns of ``missing_as_value``. With ``n``, returns a list of n tables
        with consecutive seeds, for multiple imputation.
        """
        check_whole(seed=seed)
        check_text(method=method)
        frame = Frame(table)
        columns = self._encode(frame)
        if n is None:
            return self._filled(frame, columns, method, seed)
        check_whole(n=n)
        if n < 1:
            raise BorniteError(f"n={n}: give at least 1")
        return [self._filled(frame, columns, method, seed + k) for k in range(n)]

    # One column, given the others.

    def predict(
        self,
        table: Any,
        column: Any,
        *,
        method: Literal["median", "mean", "mode", "sample"] = "median",
        seed: int = 0,
    ) -> Any:
        """Predicts a column of every row of a table from the other cells of the row.

        Returns one value per row. By default, this is the median of a numeric column or the most likely label of a text
        column; the alternatives are ``"mean"``, the exact mean, ``"mode"``, and ``"sample"``, a random draw. Cells of
        the column itself are ignored. Missing values are integrated out, and so are columns that the table does not
        have, with a warning. The result is a Series for pandas and polars, and an array for pyarrow and numpy.

        >>> import numpy as np
        >>> import bornite
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=400)
        >>> model = bornite.fit({"x": x, "y": 2 * x + rng.normal(size=400)}, epochs=30)
        >>> low, high = model.predict({"x": [-1.0, 1.0]}, "y")
        >>> bool(low < 0 < high)
        True
        """
        check_whole(seed=seed)
        check_text(method=method)
        frame, text = Frame(table), self._column(column)
        columns = self._encode_others(frame, text)
        if method == "mean":
            return self._like_column(frame, column, self._core.predict_mean(columns, text))
        ((_, values, more),) = self._core.predict(columns, text, method, seed, 0)
        form = self._form
        if frame.kind != form.kind:
            form = _tables.in_kind(form, "dict" if frame.kind == "structured" else frame.kind)
        field = form.fields[self._all.index(text)]
        made = _tables.make(form.kind, field, (text, values, more))
        return self._like_column(frame, column, made)

    def predict_proba(self, table: Any, column: Any) -> dict[Any, Floats]:
        """The probability of every value of a column, for every row of a table, given the other cells of the row:
        a dict from values to arrays with one number per row. See ``predict``.

        >>> import bornite
        >>> model = bornite.fit({"x": [1, 2, 1, 2] * 50, "y": ["a", "b", "a", "a"] * 50}, epochs=30)
        >>> p = model.predict_proba({"x": [1, 2]}, "y")
        >>> sorted(p), bool(p["a"][0] > 0.9), bool(0.3 < p["b"][1] < 0.7)
        (['a', 'b'], True, True)
        """
        text = self._column(column)
        labels, found = self._core.predict_proba(self._encode_others(Frame(table), text), text)
        value = self.marginal(column)._value
        rows = found.reshape(-1, len(labels))
        return {value(label): rows[:, n].copy() for n, label in enumerate(labels)}

    def _target_places(self, frame: Frame, text: str) -> list[tuple[int, str]]:
        """The position of this column in the table; by position in an array without names."""
        if frame.kind == "numpy":
            return _places(frame, self._names, self._texts, self._form)
        return _places(frame, [self._names[self._texts.index(text)]], [text])

    def _encode_others(self, frame: Frame, target: str) -> list[Column]:
        """All columns of the model but one: those that the table does not have are missing."""
        names = [name for name, text in zip(self._names, self._texts, strict=True) if text != target]
        texts = [text for text in self._texts if text != target]
        if frame.kind == "numpy" and len(frame.names) == len(names):
            # An array of the other columns.
            places = list(enumerate(texts))
        elif frame.kind == "numpy":
            places = _places(frame, self._names, self._texts, self._form)
        else:
            there = {str(name) for name in frame.names}
            absent = [text for text in texts if text not in there]
            if absent:
                words = ", ".join(f"'{text}'" for text in absent)
                warnings.warn(
                    f"the table has no column {words}: treated as missing in every row", stacklevel=3
                )
            pairs = [(n, t) for n, t in zip(names, texts, strict=True) if t in there]
            places = _places(frame, [n for n, _ in pairs], [t for _, t in pairs])
        found = {text: frame.read(index, text)[1] for index, text in places if text != target}
        return [found.get(text) or _tables.unknown(text, frame.height) for text in self._all]

    @staticmethod
    def _like_column(frame: Frame, column: Any, values: Any) -> Any:
        """One column, in the form of a kind of table."""
        if frame.kind == "pandas":
            pandas = _tables.library("pandas")
            series = pandas.Series(values, name=column)
            series.index = frame.source.index
            return series
        if frame.kind == "polars":
            return _tables.library("polars").Series(str(column), values)
        if frame.kind == "pyarrow":
            return _tables.library("pyarrow").array(values) if isinstance(values, np.ndarray) else values
        return values

    def _filled(
        self, frame: Frame, columns: list[Column], method: str, seed: int, start: int = 0
    ) -> Any:
        filled = {name: column for name, *column in self._core.impute(columns, method, seed, start)}
        changed = {}
        for index, text in _places(frame, self._names, self._texts, self._form):
            column = columns[self._all.index(text)]
            missing = _tables.missing_of(column)
            if missing.any():
                raw = frame.raw(index)
                field, _ = frame.read(index, text)
                field = self._like(field, text) if missing.all() else field
                values, more = filled[text]
                new = _tables.make(frame.kind, field, (text, values, more))
                changed[index] = _tables.merge(frame.kind, raw, new, missing)
        return frame.replaced(changed)

    def _like(self, field: Field, text: str) -> Field:
        """A column's own form, or that of the model if the column has no observed cell."""
        own = self._form.fields[self._all.index(text)]
        if field.cells == "word" and own.cells != "word":
            return Field(field.name, own.cells, field.dtype, own.values)
        return field

    # Batches.

    def batches(
        self,
        operation: Operation,
        *,
        column: Any = None,
        question: str | None = None,
        method: Literal["mean", "mode", "median", "sample"] = "median",
        interval: float | None = None,
        proba: bool = False,
        given: Given = None,
        unseen: Literal["score", "unknown", "error"] = "score",
        seed: int = 0,
        threads: int | None = None,
    ) -> Batches:
        """An operation on batches of rows, as a callable for engines that process rows in batches. It can be pickled,
        and each process that receives it loads the model once.

        A batch is a dict of arrays, a pandas, polars or pyarrow table, a record batch, or any object with Arrow's C
        interface, and so is the result; this needs only numpy.

        - ``"score"`` returns a column ``log_density``.
        - ``"anomaly"`` returns its negative, ``anomaly_score``.
        - ``"impute"`` returns the batch with its missing values imputed with ``method``.
        - ``"predict"`` predicts ``column`` given the others, optionally with the ends of a central ``interval`` and
          with the probabilities of its values.
        - ``"query"`` answers ``question`` for every row, given its other cells.
        - ``"sample"`` returns as many new rows as the batch has.

        ``threads`` is the number of threads per call; use 1 for engines
        with threads or processes of their own.

        >>> import pickle
        >>> import numpy as np
        >>> import bornite
        >>> model = bornite.fit({"x": [1, 2, 1, 2] * 50, "y": ["a", "b", "a", "a"] * 50}, epochs=5)
        >>> ask = pickle.loads(pickle.dumps(model.batches("query", question="P(y='a')", threads=1)))
        >>> found = ask({"x": np.array([1, 2])})["probability"]
        >>> bool(np.isclose(found[1], model.query("P(y='a' | x=2)")))
        True
        """
        from bornite.batches import Batches

        return Batches(
            self,
            operation,
            column=column,
            question=question,
            method=method,
            interval=interval,
            proba=proba,
            given=given,
            unseen=unseen,
            seed=seed,
            threads=threads,
        )

    # Compression.

    def compress(self, table: Any) -> bytes:
        """Compresses the model's columns of a table losslessly, at about −log₂ p bits per row.

        ``decompress`` with the same model restores them bit for bit, including missing values, on any machine.
        Unseen labels and numbers out of range are restored too, at a higher cost. For whole files, or to
        store the model with the rows, see ``bornite.compress_file``.

        >>> import numpy as np
        >>> import bornite
        >>> rng = np.random.default_rng(0)
        >>> x = rng.integers(0, 8, size=2000)
        >>> table = np.column_stack([x, x + rng.integers(0, 2, size=2000)])
        >>> model = bornite.fit(table, epochs=20)
        >>> data = model.compress(table)
        >>> len(data) < 2000 * 4 / 8 + 300  # 4 bits a row, and a frame
        True
        >>> bool((model.decompress(data) == table).all())
        True
        """
        return self._whole().compress(self._encode(Frame(table)))

    def decompress(self, data: bytes, *, kind: str | None = None) -> Any:
        """Restores a table from the bytes of ``compress``, as the kind that the model was fitted to, or as
        ``kind``. Damaged bytes, and bytes from another model, are errors."""
        check_bytes(data=data)
        return self._decode(self._whole().decompress(data), kind)

    # Numbers.

    def _numeric(self) -> list[int]:
        """The columns that have a mean."""
        return [
            index
            for index in self._visible
            if not (
                self._schema[index]["kind"] == "date_time"
                or self._schema[index]["kind"] == "categorical"
                and (self._schema[index]["storage"] == "labels" or not self._schema[index]["labels"])
            )
        ]

    def mean(self, *, given: Given = None) -> Any:
        """The means of all numeric columns: an array for numpy, a Series for pandas, otherwise a dict.

        True counts as 1. For a column with two labels, such as no and yes, the mean is the fraction of the second.
        """
        text = self._given(given)
        means = {
            self._form.fields[index].name: self._core.mean(self._all[index], text)
            for index in self._numeric()
        }
        if self._form.kind == "numpy":
            return np.array(list(means.values()))
        if self._form.kind == "pandas":
            return _tables.library("pandas").Series(means)
        return means

    def cov(self, *, given: Given = None) -> Any:
        """The covariance matrix of all numeric columns, in order: a DataFrame for pandas, otherwise an array.

        >>> import numpy as np
        >>> import bornite
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=400)
        >>> model = bornite.fit(np.column_stack([x, x + rng.normal(size=400)]), epochs=30)
        >>> c = model.cov()
        >>> c.shape, bool(c[0, 1] > 0.5), bool(c[0, 1] == c[1, 0])
        ((2, 2), True, True)
        """
        core = self.conditional(given)._core
        columns = self._numeric()
        if not columns:
            raise BorniteError("no column has numbers, so there are no covariances")
        _, covariance = core.covariance(columns)
        if self._form.kind == "pandas":
            names = [self._form.fields[index].name for index in columns]
            return _tables.library("pandas").DataFrame(covariance, index=names, columns=names)
        return covariance

    def corr(self, *, given: Given = None) -> Any:
        """The correlation matrix of all numeric columns, in order: a DataFrame for pandas, otherwise an array.

        >>> import numpy as np
        >>> import bornite
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=400)
        >>> model = bornite.fit(np.column_stack([x, x + 0.5 * rng.normal(size=400)]), epochs=30)
        >>> bool(0.7 < model.corr()[0, 1] < 1)
        True
        """
        covariance = self.cov(given=given)
        deviations = np.sqrt(np.diag(np.asarray(covariance)))
        scale = np.outer(deviations, deviations)
        # A column with a single value has no correlation: leave 0 there.
        return covariance / np.where(scale > 0, scale, 1.0)

    def mutual_information(self, columns: Sequence[Any] | None = None, *, given: Given = None) -> Any:
        """The mutual information of all pairs of columns, in nats: a DataFrame if pandas is installed, otherwise a
        dict of lists. The diagonal contains entropies, which are infinite for columns with a density.

        Exact for pairs of finite columns. Otherwise the average over 8,192 exact samples, with the standard error that
        ``ask`` reports.

        >>> import numpy as np
        >>> import bornite
        >>> x = np.arange(400) % 4
        >>> model = bornite.fit({"x": x, "y": x // 2, "z": (x == 1) | (x == 2)}, epochs=40)
        >>> found = model.mutual_information()
        >>> bool(list(found["x"])[1] > 0.6), bool(list(found["y"])[2] < 0.1)
        (True, True)
        """
        base = self.conditional(given)
        names = list(self._names) if columns is None else listed(columns=columns)
        texts = [quoted(self._column(name)) for name in names]
        found = np.zeros((len(texts), len(texts)))
        for i, first in enumerate(texts):
            for j, second in enumerate(texts[: i + 1]):
                answer = base.ask(f"H({first})" if i == j else f"MI({first}; {second})")
                is_infinite = i == j and answer.kind != "entropy"
                found[i, j] = found[j, i] = np.inf if is_infinite else max(float(answer.value), 0.0)
        return _tables.labeled(names, names, found.tolist())

    def describe(self, *, given: Given = None) -> Any:
        """A summary of every column's marginal: kind, mean, standard deviation and quantiles of numeric columns, and the
        most likely value of finite columns with its probability. A DataFrame if pandas is installed, otherwise a
        dict of lists.

        >>> import numpy as np
        >>> import bornite
        >>> rng = np.random.default_rng(0)
        >>> model = bornite.fit({"x": rng.normal(size=300), "y": ["a", "b", "b"] * 100}, epochs=20)
        >>> found = model.describe()
        >>> list(found["kind"]), list(found["mode"])[1], bool(abs(list(found["50%"])[0]) < 0.3)
        (['number', 'categorical'], 'b', True)
        """
        base = self.conditional(given)
        levels = [0.05, 0.25, 0.5, 0.75, 0.95]
        heads = ["kind", "mean", "std", *(f"{level:.0%}" for level in levels), "mode", "probability"]
        numeric = set(self._numeric())
        rows = []
        for index, name in zip(self._visible, self._names, strict=True):
            marginal = base.marginal(name)
            is_number = index in numeric
            # No and yes have a mean but no quantiles.
            has_levels = is_number and self._schema[index]["storage"] != "labels"
            text, p = base._core.mode(self._all[index], "")
            rows.append(
                [
                    self._schema[index]["kind"].replace("_", " "),
                    marginal.mean if is_number else None,
                    marginal.std if is_number else None,
                    *(marginal.quantile(levels).tolist() if has_levels else [None] * len(levels)),
                    None if p is None else marginal._value(text),
                    p,
                ]
            )
        return _tables.labeled(self._names, heads, [list(column) for column in zip(*rows, strict=True)])

    def quantile(self, column: Any, q: Any = 0.5, *, given: Any = None) -> Any:
        """The quantile of a column at level q, or at an array of levels.

        ``given`` is evidence, or a table other than a dict. With a table, the result has one quantile, or one row of
        quantiles, for each row of the table, given its other cells, as in ``predict``.

        >>> import numpy as np
        >>> import bornite
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=400)
        >>> rows = np.column_stack([x, x + rng.normal(size=400)])
        >>> model = bornite.fit(rows, epochs=30)
        >>> model.quantile("x1", [0.05, 0.95], given=rows[:7]).shape
        (7, 2)
        """
        if given is None or isinstance(given, (str, Mapping)):
            return self.marginal(column, given=given).quantile(q)
        frame, text = Frame(given), self._column(column)
        levels, shape = levels_of(q=q)
        columns = self._encode_others(frame, text)
        found = self._core.predict_quantiles(columns, text, levels)
        return found.reshape((frame.height, *shape))

    # Pictures.

    def _repr_html_(self) -> str:
        info, shown = self.info, self._visible[:SHOWN_COLUMNS]
        rows = []
        for index in shown:
            column = self._schema[index]
            values = column.get("labels") or [column[end] for end in ("min", "max") if end in column]
            dots = " …" if len(values) > SHOWN_LABELS else ""
            text = (" – " if "min" in column else ", ").join(str(value) for value in values[:SHOWN_LABELS]) + dots
            rows.append((self._form.fields[index].name, column["kind"].replace("_", " "), text))
        more = len(self._visible) - len(shown)
        words = [
            f"{len(self._visible)} columns, {info['rows'] + info['valid_rows']} rows, width {info['width']}",
            f"{info['valid']:.3f} nats per validation row ({info['baseline']:.3f} with independent columns)",
            *([f"given {', '.join(self.given)}"] if self.given else []),
        ]
        head = "".join(f"<p>{escape(word)}</p>" for word in words)
        tail = f"<p>and {more} more columns</p>" if more else ""
        return head + _notebook.table(("column", "kind", "values"), rows) + tail

    def report(self, data: Any = None, *, title: str = "Bornite", seed: int = 0) -> Page:
        """A page with all plots of the model, compared with the rows of ``data`` if given, which should be held-out rows.

        Returns the HTML as a ``str`` that notebooks display, with ``save(path)``.

        >>> import numpy as np
        >>> import bornite
        >>> rows = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = bornite.fit(rows, epochs=5)
        >>> model.report(rows).startswith("<!doctype html>")
        True
        """
        check_whole(seed=seed)
        check_text(title=title)
        table = None if data is None else self._encode(Frame(data))
        return Page(self._whole().report(table, title, seed))

    def plot(
        self,
        what: Plot = "marginals",
        *,
        data: Any = None,
        columns: Sequence[Any] | None = None,
        seed: int = 0,
    ) -> Drawing:
        """A plot of the model, compared with the rows of ``data`` if given: ``"structure"``, ``"training"``,
        ``"marginals"``, ``"pairs"``, ``"calibration"`` or ``"anomalies"``, which need ``data``, or ``"samples"`` of
        images.

        ``columns`` selects the columns shown in marginals and pairs.
        Returns the SVG as a ``str`` that notebooks display, with ``save(path)``.

        >>> import numpy as np
        >>> import bornite
        >>> model = bornite.fit(np.random.default_rng(0).normal(size=(200, 2)), epochs=5)
        >>> model.plot("pairs").startswith("<svg")
        True
        """
        check_whole(seed=seed)
        check_text(what=what)
        table = None if data is None else self._encode(Frame(data))
        texts = None if columns is None else [self._column(c) for c in listed(columns=columns)]
        if texts is None and self._is_view():
            texts = self._texts
        return Drawing(self._core.plot(what, table, texts, seed))

    # Files.

    def _whole(self) -> TableModel:
        if self._is_view():
            raise BorniteError(
                "a marginal is a view of its model and has no circuit of its own: save that model, and call "
                f"marginal({[str(name) for name in self._names]}) again after loading it"
            )
        return self._core

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the model to a file, completely or not at all. The ``bornite`` command reads it too."""
        check_path(path=path)
        self._whole().save(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Model:
        """Loads and checks a model file. Loading never runs code from the file."""
        check_path(path=path)
        return cls(TableModel.load(path))

    def to_bytes(self) -> bytes:
        """The bytes of the model's file."""
        return self._whole().to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """Reads a model from the bytes of its file."""
        check_bytes(data=data)
        return cls(TableModel.from_bytes(data))

    def to_json(self) -> str:
        """The whole model as JSON: columns, how it was fitted, its evidence, and its circuits with their weights."""
        core = self._whole()
        return json.dumps(
            {
                "schema": json.loads(core.schema()),
                "info": json.loads(core.info()),
                "given": core.given(),
                "circuits": [
                    {"weight": weight, "circuit": json.loads(circuit.to_json())}
                    for weight, circuit in zip(core.weights(), core.circuits(), strict=True)
                ],
            }
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._core.to_bytes(), self._form, self._visible)


def _unpickle(data: bytes, form: Form, visible: list[int]) -> Model:
    return Model(TableModel.from_bytes(data), form, visible)


def _default_form(schema: list[dict[str, Any]]) -> Form:
    """A dict of arrays, for models from files."""

    def field(column: dict[str, Any]) -> Field:
        if column["storage"] == "labels":
            return Field(column["name"], "word", np.dtype(object))
        if column["storage"] == "integers":
            return Field(column["name"], "whole", np.dtype(np.int64))
        return Field(column["name"], "number", np.dtype(np.float64))

    return Form("dict", tuple(field(column) for column in schema))

"""Fits models to the rows of tables."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from os import PathLike, fspath
from os.path import exists
from typing import Any, Literal, TypeAlias

import numpy as np

from bornite import _forms, _tables
from bornite._bornite import BorniteError, TableModel
from bornite._errors import (
    ArgumentError,
    check_flag,
    check_numbers,
    check_path,
    check_text,
    check_whole,
    listed,
    not_none,
    shown,
)
from bornite._evidence import column_error
from bornite._progress import ProgressLine
from bornite._tables import Column, Field, Frame
from bornite.model import Model, _columns, _text_of

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
    device: Literal["cpu", "cuda", "cuda-tf32", "cuda-bf16", "auto"] = "cpu",
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

    ``effort`` sets how much to try: ``"fast"`` fits small circuits, a usable model in seconds; ``"best"`` tries
    larger circuits and longer fits until nothing improves, and is best combined with ``time``. ``circuits`` is the
    maximum number of circuits in the model, which is a mixture if there are several. Models of small tables average
    circuits that are fitted independently: by default 5 with up to 50,000 cells and 3 with up to 150,000. On larger
    tables, a circuit is kept only if it improves the validation likelihood: by default up to 2, or 4 with
    ``effort="best"`` or ``time``. Only 1 if ``structure`` or ``width`` is given. Without ``circuits``, tables of more
    than 48 columns, all of them finite, can get 64 additional narrow circuits. ``width`` is the width of the circuits'
    inner layers; by default several are tried. ``output_width`` is the number of squares in the sum. ``smoothing``
    penalizes differences between the weights of neighboring values of ordered columns.

    ``target`` names a column to predict. The fit then maximizes log p(x, y) + ``emphasis`` log p(y | x), which improves
    :meth:`Model.predict` and :meth:`Model.predict_proba`; the result is still a model of all columns and answers every
    other question. ``emphasis`` is 5 by default. The larger it is, the less accurately the rest of the row is modeled;
    predictions may overfit from about 30 on.

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
    ``"cuda-tf32"`` and ``"cuda-bf16"`` round the factors of products to 11 and 8 bits, which is faster, and ``"auto"``
    is a GPU if there is one that can learn this table.

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

"""Operations of a model on batches of rows, for engines that process rows in batches.

>>> import numpy as np
>>> import bornite
>>> rng = np.random.default_rng(0)
>>> x = rng.normal(size=300)
>>> model = bornite.fit({"x": x, "y": x + rng.normal(size=300)}, epochs=5)
>>> score = model.batches("score")
>>> score({"x": np.array([0.0, 1.0]), "y": np.array([0.5, np.nan])})["log_density"].shape
(2,)
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from bornite import _arrow, _bornite, _tables
from bornite._arrow_out import RecordBatch, RecordBatchStream
from bornite._bornite import BorniteError, TableModel
from bornite._errors import ArgumentError
from bornite._tables import Column, Field, Form, Frame
from bornite.model import Given, Model

Array: TypeAlias = npt.NDArray[Any]
Operation: TypeAlias = Literal["score", "anomaly", "impute", "predict", "query", "sample"]

OPERATIONS: tuple[str, ...] = get_args(Operation)

__all__ = ["Batches", "RecordBatch", "RecordBatchStream"]

# The models that this process has loaded, by their source.
_models: OrderedDict[bytes, Model] = OrderedDict()
_KEPT = 8


class Batches:
    """An operation on batches of rows, from ``Model.batches``. It can be pickled, and each process that receives it
    loads the model once.

    A batch is a dict of arrays, a pandas, polars or pyarrow table, a pyarrow record batch, or any object with
    ``__arrow_c_stream__`` or ``__arrow_c_array__``. The result is of the same kind; for other Arrow objects, and for an
    array without names, it is a ``RecordBatch``, which Arrow libraries read without a copy.
    """

    def __init__(
        self,
        model: Model,
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
    ) -> None:
        if operation not in OPERATIONS:
            raise BorniteError(f"there is no operation '{operation}' on batches: choose one of {', '.join(OPERATIONS)}")
        if (operation == "predict") != (column is not None):
            raise BorniteError("column= is the column to predict: give it only with 'predict'")
        if (operation == "query") != (question is not None):
            raise BorniteError("question= is the question to answer for every row: give it only with 'query'")
        if interval is not None and not 0 <= interval <= 1:
            raise BorniteError(f"interval={interval}: give a probability from 0 to 1, such as 0.9")
        if threads is not None and threads < 1:
            raise BorniteError(f"threads={threads}: give at least 1, or None for all")
        self.operation = operation
        self._settings: dict[str, Any] = {
            "column": None if column is None else model._column(column),
            "question": question,
            "method": method,
            "interval": interval,
            "proba": proba,
            "given": model._given(given),
            "unseen": unseen,
            "seed": seed,
            "threads": threads,
        }
        fields = tuple(_plain(field) for field in model._form.fields)
        self._form = Form("dict", fields, None, model._form.places, model._form.width)
        self._model = Model(model._core, self._form, model._visible)

    def __reduce__(self) -> tuple[Any, ...]:
        data = self._model._core.to_bytes()
        return _restored, (data, self._form, self._model._visible, self.operation, self._settings)

    def __repr__(self) -> str:
        return f"<Batches: {self.operation} of {self._model!r}>"

    def __call__(self, batch: Any, *, start: int | None = None) -> Any:
        """Applies the operation to a batch. ``start`` is the number of rows that precede it. With ``start``, random
        draws are those of the whole table; without it, they depend on the seed and the cells of the batch."""
        before = _bornite.set_threads(self._settings["threads"] or 0)
        try:
            return self._work(batch, start)
        finally:
            _bornite.set_threads(before)

    def stream(self, source: Any) -> RecordBatchStream:
        """Applies the operation lazily to the batches of a stream. ``source`` is an object with
        ``__arrow_c_stream__``, or an iterable of batches. Random draws are those of a single table.

        >>> import bornite
        >>> model = bornite.fit({"x": [1, 2, 1, 2] * 50, "y": ["a", "b", "a", "a"] * 50}, epochs=5)
        >>> parts = [{"x": [1, 2], "y": ["a", None]}, {"x": [2], "y": ["b"]}]
        >>> [batch.num_rows for batch in model.batches("impute").stream(parts)]
        [2, 1]
        """
        return RecordBatchStream(self._stream(source))

    def _stream(self, source: Any) -> Iterator[RecordBatch]:
        start = 0
        for batch in _batches(source):
            made = _record_batch(self(batch, start=start))
            yield made
            start += made.num_rows

    def _work(self, batch: Any, start: int | None) -> Any:
        model, settings = self._model, self._settings
        if self.operation == "sample" and isinstance(batch, (int, np.integer)):
            return RecordBatch(self._sampled(int(batch), settings["seed"], start or 0))
        frame = Frame(batch)
        if self.operation == "sample":
            columns = [frame.read(index, str(name))[1] for index, name in enumerate(frame.names)]
            seed = self._seed(columns, start)
            return _like(batch, frame, self._sampled(frame.height, seed, start or 0))
        if self.operation in ("score", "anomaly"):
            logs = model._core.log_prob(model._encode(frame), settings["unseen"])
            return _like(
                batch, frame, {"log_density": logs} if self.operation == "score" else {"anomaly_score": -logs}
            )
        if self.operation == "impute":
            columns = model._encode(frame)
            seed = self._seed(columns, start)
            return _filled(batch, model._filled(frame, columns, settings["method"], seed, start or 0))
        if self.operation == "query":
            columns = self._there(frame)
            ((name, values, more),) = model._core.answer_rows(columns, settings["question"])
            return _like(batch, frame, {name: _cells(name, values, more)})
        return _like(batch, frame, self._predicted(frame, start))

    def _there(self, frame: Frame) -> list[Column]:
        """The columns of the model that the table has."""
        model = self._model
        if frame.kind == "numpy":
            return model._encode(frame)
        places = {str(name): index for index, name in enumerate(frame.names)}
        return [
            frame.read(places[text], text)[1] if text in places else _tables.unknown(text, frame.height)
            for text in model._texts
        ]

    def _predicted(self, frame: Frame, start: int | None) -> dict[str, Array]:
        core, settings = self._model._core, self._settings
        text = settings["column"]
        columns = self._there(frame)
        place = self._model._all.index(text)
        columns = [c for c in columns if c[0] != text] or [_tables.unknown(text, frame.height)]
        seed = self._seed(columns, start)
        if settings["method"] == "mean":
            found = {text: core.predict_mean(columns, text)}
        else:
            (made,) = core.predict(columns, text, settings["method"], seed, start or 0)
            found = {text: _tables.make("dict", self._form.fields[place], made)}
        if settings["interval"] is not None:
            half = settings["interval"] / 2
            ends = core.predict_quantiles(columns, text, [0.5 - half, 0.5 + half]).reshape(-1, 2)
            found |= {f"{text} low": ends[:, 0].copy(), f"{text} high": ends[:, 1].copy()}
        if settings["proba"]:
            labels, probabilities = core.predict_proba(columns, text)
            rows = probabilities.reshape(-1, len(labels))
            found |= {f"{text}={label}": rows[:, n].copy() for n, label in enumerate(labels)}
        return found

    def _sampled(self, count: int, seed: int, start: int) -> dict[str, Array]:
        model = self._model
        columns = model._core.sample(count, self._settings["given"], seed, start)
        table = model._decode(columns, "dict")
        return {str(name): np.asarray(column) for name, column in table.items()}

    def _seed(self, columns: list[Column], start: int | None) -> int:
        """The seed of a batch: if its position is not known, it is derived from the cells."""
        seed = int(self._settings["seed"])
        if start is not None:
            return seed
        digest = hashlib.blake2b(digest_size=8)
        for name, values, more in columns:
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(values).tobytes())
            if more is not None and not isinstance(more, str):
                digest.update(repr(more if isinstance(more, list) else np.asarray(more).tobytes()).encode())
        return seed ^ int.from_bytes(digest.digest(), "little")


def _plain(field: Field) -> Field:
    """A field of a type that every process knows."""
    kinds = {"number": np.float64, "whole": np.int64, "truth": np.bool_, "word": object}
    return Field(str(field.name), field.cells, np.dtype(kinds[field.cells]))


def _restored(
    data: bytes, form: Form, visible: list[int], operation: Operation, settings: dict[str, Any]
) -> Batches:
    key = hashlib.blake2b(data + repr((visible, form)).encode()).digest()
    if key not in _models:
        _models[key] = Model(TableModel.from_bytes(data), form, visible)
        if len(_models) > _KEPT:
            _models.popitem(last=False)
    _models.move_to_end(key)
    return Batches(_models[key], operation, **settings)


def _batches(source: Any) -> Iterable[Any]:
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return (dict(columns) for columns in _arrow.pieces(source))
    if isinstance(source, Mapping) or not hasattr(source, "__iter__"):
        raise ArgumentError("expected a stream or an iterable of batches: give a list of one batch")
    batches: Iterator[Any] = iter(source)
    return batches


def _cells(name: str, values: Array, more: Any) -> Array:
    """A column, unchanged."""
    cells = "word" if isinstance(more, list) else "number" if values.dtype.kind == "f" else "whole"
    made: Array = _tables.make("dict", _plain(Field(name, cells, None)), (name, values, more))
    return made


def _is(batch: Any, library: str, name: str) -> bool:
    """Whether an object belongs to a library, which must then already be loaded."""
    kind = type(batch)
    return kind.__module__.split(".")[0] == library and kind.__name__ == name


def _like(batch: Any, frame: Frame, columns: dict[str, Array]) -> Any:
    """New columns, as the same kind of table as the batch."""
    if isinstance(batch, Mapping):
        return columns
    if frame.kind == "pandas":
        return _tables.library("pandas").DataFrame(columns, index=batch.index)
    made = RecordBatch(columns)
    if frame.kind == "polars":
        return _tables.library("polars").DataFrame(made)
    if _is(batch, "pyarrow", "Table"):
        return _tables.library("pyarrow").table(made)
    if _is(batch, "pyarrow", "RecordBatch"):
        return _tables.library("pyarrow").record_batch(made)
    return made


def _filled(batch: Any, table: Any) -> Any:
    """A table with imputed cells, as the same kind of table as the batch."""
    if _is(batch, "pyarrow", "RecordBatch"):
        (made,) = table.combine_chunks().to_batches() or [
            _tables.library("pyarrow").RecordBatch.from_pylist([], schema=table.schema)
        ]
        return made
    if hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__"):
        known = any(_is(batch, *kind) for kind in (("pyarrow", "Table"), ("pandas", "DataFrame"), ("polars", "DataFrame")))
        return table if known else _record_batch(table)
    return table


def _record_batch(table: Any) -> RecordBatch:
    if isinstance(table, RecordBatch):
        return table
    if isinstance(table, Mapping):
        return RecordBatch(table)
    if isinstance(table, np.ndarray):
        frame = Frame(table)
        return RecordBatch({name: frame.raw(index) for index, name in enumerate(frame.names)})
    return RecordBatch(dict(_arrow.columns(table)))

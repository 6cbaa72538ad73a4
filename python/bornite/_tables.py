"""Converts tables of many kinds to columns of real numbers, whole numbers and text, and back.

The extension takes a table as a list of columns `(name, values, more)`:

- real numbers: float64, with NaN for missing cells; None
- whole numbers: int64; the mask of missing cells, or None
- text: int64 positions in a list of labels, with -1 for missing cells; the list
- dates and times: text such as 2019-03-23 or 2019-03-23 20:21:09

Each library's own views provide these arrays, without a copy if possible; the extension copies
them once. No library other than numpy is imported unless a table comes from it.
"""

from __future__ import annotations

import datetime
import importlib
import numbers
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bornite import _arrow
from bornite._bornite import BorniteError
from bornite._errors import ArgumentError, shown

Array: TypeAlias = npt.NDArray[Any]
Column: TypeAlias = tuple[str, Array, Any]

KINDS = ("numpy", "dict", "pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Field:
    """The type of an input column: what is needed to create cells of the same type again."""

    name: Any
    cells: str
    """number, whole, truth, word or time."""
    dtype: Any
    """The library's own type."""
    values: tuple[Any, ...] | None = None
    """What labels represent if that is not text; ``("date",)`` for date objects without a time."""


@dataclass(frozen=True)
class Form:
    """The kind of a table, with its columns."""

    kind: str
    """One of ``KINDS``, or structured."""
    fields: tuple[Field, ...]
    dtype: Any = None
    """The type of a whole array."""
    places: tuple[int, ...] | None = None
    """The positions of the columns in the fitted table, if it has other columns too."""
    width: int | None = None
    """The number of columns of that table."""


class Frame:
    """An input table."""

    def __init__(self, table: Any) -> None:
        self.kind, self.source = _kind(table)
        self.names: list[Any] = _names(self.kind, self.source)
        self.height = _height(self.kind, self.source, self.names)

    def raw(self, index: int) -> Any:
        """One column, as its library stores it."""
        name = self.names[index]
        if self.kind == "numpy":
            return self.source[:, index]
        if self.kind == "pandas":
            return self.source.iloc[:, index]
        if self.kind == "polars":
            return self.source.get_column(name)
        if self.kind == "pyarrow":
            return self.source.column(index)
        return self.source[name]

    def read(self, index: int, text: str) -> tuple[Field, Column]:
        """One column, under this name."""
        return read(self.kind, self.raw(index), self.names[index], text)

    def form(self, fields: Sequence[Field], places: tuple[int, ...]) -> Form:
        """The form of the columns at these places."""
        dtype = self.source.dtype if self.kind in ("numpy", "structured") else None
        return Form(self.kind, tuple(fields[index] for index in places), dtype, places, len(fields))

    def replaced(self, columns: Mapping[int, Any]) -> Any:
        """The same table with some columns changed."""
        if self.kind == "pyarrow":
            table = self.source
            for index, column in columns.items():
                table = table.set_column(index, table.schema.field(index), column)
            return table
        if self.kind == "polars":
            return self.source.with_columns(
                [column.alias(self.names[index]) for index, column in columns.items()]
            )
        if self.kind == "pandas":
            table = self.source.copy()
            for index, column in columns.items():
                table.isetitem(index, column)
            return table
        if self.kind == "dict":
            return {**self.source, **{self.names[i]: column for i, column in columns.items()}}
        table = self.source.copy()
        for index, column in columns.items():
            if self.kind == "numpy":
                table[:, index] = column
            else:
                table[self.names[index]] = column
        return table


def library(name: str) -> Any:
    return importlib.import_module(name)


def _kind(table: Any) -> tuple[str, Any]:
    """The kind of a table, and the table in readable form."""
    pandas, polars, pyarrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return "pandas", table
    if polars is not None and isinstance(table, polars.DataFrame):
        return "polars", table
    if polars is not None and isinstance(table, polars.LazyFrame):
        return "polars", table.collect()
    if pyarrow is not None and isinstance(table, pyarrow.Table):
        return "pyarrow", table
    if isinstance(table, np.ma.MaskedArray):
        return "numpy", _two_axes(_unmasked(table))
    if isinstance(table, np.ndarray):
        if table.dtype.names is not None:
            return "structured", table
        return "numpy", _two_axes(table)
    if isinstance(table, Mapping):
        return "dict", {name: _one_axis(column, name) for name, column in table.items()}
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        try:
            return "pyarrow", library("pyarrow").table(table)
        except ImportError:
            found = _arrow.columns(table)
            texts([name for name, _ in found])
            return "dict", dict(found)
    if isinstance(table, (list, tuple)) and not any(isinstance(row, Mapping) for row in table):
        return "numpy", _two_axes(np.asarray(table))
    raise ArgumentError(
        f"expected a table, found {type(table).__name__}: give a 2-D numpy array, a dict of columns, or "
        "a pandas, polars or pyarrow table"
    )


def _unmasked(table: Any) -> Array:
    if table.dtype.kind in "biuf":
        return np.asarray(table.astype(np.float64).filled(np.nan))
    filled = np.asarray(table.astype(object).filled(None))
    return filled


def _two_axes(array: Array) -> Array:
    if array.ndim == 2:
        return array
    if array.ndim < 2:
        remedy = "use x.reshape(-1, 1) for one column, x.reshape(1, -1) for one row"
    else:
        remedy = "use x.reshape(len(x), -1), and image=(height, width) if its rows are images"
    raise BorniteError(f"a table must have 2 axes, rows and columns, not {array.ndim}: {remedy}")


def _one_axis(column: Any, name: Any) -> Array:
    array = column if isinstance(column, np.ndarray) else _as_array(column)
    if isinstance(array, np.ma.MaskedArray):
        array = _unmasked(array)
    if array.ndim != 1:
        raise BorniteError(f"column '{name}' has {array.ndim} axes: give a list of cells")
    return array


def _as_array(column: Any) -> Array:
    if hasattr(column, "to_numpy"):
        return np.asarray(column.to_numpy())
    cells = list(column)
    if cells and all(isinstance(cell, (bool, np.bool_)) for cell in cells):
        return np.array(cells, dtype=bool)
    if cells and all(isinstance(c, numbers.Real) and not isinstance(c, bool) for c in cells):
        return np.array(cells)
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def _names(kind: str, table: Any) -> list[Any]:
    if kind == "numpy":
        return [f"x{index}" for index in range(table.shape[1])]
    if kind == "structured":
        return list(table.dtype.names)
    if kind == "dict":
        return list(table)
    if kind == "pyarrow":
        return list(table.column_names)
    return list(table.columns)


def _height(kind: str, table: Any, names: list[Any]) -> int:
    if kind == "dict":
        heights = {name: len(column) for name, column in table.items()}
        for name, height in heights.items():
            if height != heights[names[0]]:
                raise BorniteError(
                    f"column '{name}' has {height} cells, but column '{names[0]}' has {heights[names[0]]}: "
                    "give all columns the same length"
                )
        return heights[names[0]] if names else 0
    return len(table)


def texts(names: Sequence[Any]) -> list[str]:
    """The names as text; duplicates are an error."""
    found = [str(name) for name in names]
    seen: dict[str, int] = {}
    for index, text in enumerate(found):
        if text in seen:
            raise BorniteError(
                f"columns {seen[text] + 1} and {index + 1} are both named '{text}': rename one"
            )
        seen[text] = index
    return found


# One column in.


def read(kind: str, raw: Any, name: Any, text: str) -> tuple[Field, Column]:
    """The content of a column."""
    if kind == "pandas":
        return _read_pandas(raw, name, text)
    if kind == "polars":
        return _read_polars(raw, name, text)
    if kind == "pyarrow":
        return _read_pyarrow(raw, name, text)
    return _read_numpy(raw, name, text)


def _number(name: Any, text: str, dtype: Any, values: Any) -> tuple[Field, Column]:
    return Field(name, "number", dtype), (text, np.ascontiguousarray(values, np.float64), None)


def _whole(
    name: Any, text: str, dtype: Any, values: Any, missing: Any = None, *, truth: bool = False
) -> tuple[Field, Column]:
    values = np.asarray(values)
    if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
        raise BorniteError(
            f"column '{text}': {values.max()} is larger than 2^63 - 1: make it a float or a string"
        )
    if missing is not None:
        missing = np.ascontiguousarray(missing, bool)
        missing = missing if missing.any() else None
    field = Field(name, "truth" if truth else "whole", dtype)
    return field, (text, np.ascontiguousarray(values, np.int64), missing)


def _words(
    name: Any, text: str, dtype: Any, codes: Any, values: Sequence[Any]
) -> tuple[Field, Column]:
    labels = [str(value) for value in values]
    plain = all(isinstance(value, str) for value in values)
    field = Field(name, "word", dtype, None if plain else tuple(values))
    return field, (text, np.ascontiguousarray(codes, np.int64), labels)


def _times(name: Any, text: str, dtype: Any, values: Any, *, days: bool = False) -> tuple[Field, Column]:
    """Dates and times in UTC, or without a zone."""
    seconds = np.asarray(values).astype("datetime64[s]")
    missing = np.isnat(seconds)
    inexact = ~missing & (seconds != values)
    if inexact.any():
        row = int(np.argmax(inexact))
        raise BorniteError(
            f"column '{text}': {np.asarray(values)[row]} in row {row + 1} has fractions of a second: round the column to "
            "seconds, or make it numbers"
        )
    moments, codes = np.unique(seconds[~missing], return_inverse=True)
    labels = np.datetime_as_string(moments, unit="D" if (moments == moments.astype("datetime64[D]")).all() else "s")
    places = np.full(len(seconds), -1, np.int64)
    places[~missing] = codes
    field = Field(name, "time", dtype, ("date",) if days else None)
    return field, (text, places, [str(label).replace("T", " ") for label in labels])


def time_text(cell: Any) -> str | None:
    """A date or time as text; None for anything else."""
    if not isinstance(cell, (datetime.date, np.datetime64)) or is_unknown(cell):
        return None
    day, _, clock = str(_naive(cell).astype("datetime64[s]")).partition("T")
    return day if clock in ("", "00:00:00") else f"{day} {clock}"


def moment_of(text: str) -> np.datetime64:
    """The date or time that a text of ``time_text`` represents; NaT for other labels."""
    try:
        return np.datetime64(text.replace(" ", "T"), "s")
    except ValueError:
        return np.datetime64("NaT", "s")


def _unreadable(text: str, what: Any) -> ArgumentError:
    return ArgumentError(
        f"column '{text}' contains {what}: convert it to numbers, text, dates or True and False, or drop it"
    )


def _read_numpy(array: Array, name: Any, text: str) -> tuple[Field, Column]:
    kind = array.dtype.kind
    if kind == "f":
        return _number(name, text, array.dtype, array)
    if kind in "iu":
        return _whole(name, text, array.dtype, array)
    if kind == "b":
        return _whole(name, text, array.dtype, array, truth=True)
    if kind == "U":
        values, codes = np.unique(array, return_inverse=True)
        return _words(name, text, array.dtype, codes, values.tolist())
    if kind == "M":
        return _times(name, text, array.dtype, array)
    if kind in "OT":
        return _read_objects(array.astype(object), name, text, array.dtype)
    raise _unreadable(text, array.dtype)


def is_unknown(cell: Any) -> bool:
    """None, NaN, pandas' NA and NaT."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, np.datetime64):
        return bool(np.isnat(cell))
    return isinstance(cell, (float, np.floating)) and bool(np.isnan(cell))


def _naive(cell: Any) -> Any:
    """A moment without its zone, in UTC."""
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        cell = cell.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return np.datetime64(cell, "us")


def _read_objects(array: Array, name: Any, text: str, dtype: Any) -> tuple[Field, Column]:
    missing = np.fromiter((is_unknown(cell) for cell in array), bool, len(array))
    known = array[~missing]
    values = np.zeros(len(array), np.float64)
    if all(isinstance(cell, str) for cell in known):
        places = {label: place for place, label in enumerate(dict.fromkeys(known))}
        codes = np.full(len(array), -1, np.int64)
        codes[~missing] = [places[label] for label in known]
        return _words(name, text, dtype, codes, list(places))
    if all(isinstance(cell, (bool, np.bool_)) for cell in known):
        values[~missing] = known.astype(np.float64)
        return _whole(name, text, dtype, values, missing, truth=True)
    if all(isinstance(cell, (datetime.date, np.datetime64)) for cell in known):
        moments = np.full(len(array), np.datetime64("NaT", "us"))
        moments[~missing] = [_naive(cell) for cell in known]
        days = all(type(cell) is datetime.date for cell in known)
        return _times(name, text, dtype, moments, days=days)
    for row in np.flatnonzero(~missing):
        if not isinstance(array[row], numbers.Number) or isinstance(array[row], (bool, complex)):
            kinds = sorted({type(cell).__name__ for cell in known})
            raise ArgumentError(
                f"column '{text}' contains {' and '.join(kinds)} (row {row + 1}: {shown(array[row])}): use "
                "only numbers, only text, or only True and False"
            )
    if all(isinstance(cell, numbers.Integral) for cell in known):
        whole = np.zeros(len(array), np.int64)
        try:
            whole[~missing] = known.astype(np.int64)
        except OverflowError:
            raise BorniteError(
                f"column '{text}': a number is larger than 2^63 - 1: make it a float or a string"
            ) from None
        return _whole(name, text, dtype, whole, missing)
    values[missing] = np.nan
    values[~missing] = known.astype(np.float64)
    return _number(name, text, dtype, values)


def _read_pandas(series: Any, name: Any, text: str) -> tuple[Field, Column]:
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if hasattr(dtype, "categories"):
        return _words(name, text, dtype, series.cat.codes.to_numpy(), list(dtype.categories))
    if kind == "f":
        return _number(name, text, dtype, series.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind in "iub":
        missing = series.isna().to_numpy()
        if not missing.any():
            return _whole(name, text, dtype, series.to_numpy(), truth=kind == "b")
        values = series.fillna(False if kind == "b" else 0).to_numpy()
        return _whole(name, text, dtype, values, missing, truth=kind == "b")
    if kind == "M":
        pandas = library("pandas")
        moments = pandas.to_datetime(series, utc=True).dt.tz_localize(None)
        return _times(name, text, dtype, moments.to_numpy())
    if kind in "OU":
        pandas = library("pandas")
        if pandas.api.types.infer_dtype(series, skipna=True) == "string":
            codes, values = pandas.factorize(series)
            return _words(name, text, dtype, codes, list(values))
        return _read_objects(series.to_numpy(dtype=object), name, text, dtype)
    raise _unreadable(text, dtype)


def _read_polars(series: Any, name: Any, text: str) -> tuple[Field, Column]:
    polars = library("polars")
    dtype = series.dtype
    missing = series.is_null().to_numpy() if series.null_count() else None
    if dtype.is_float() or dtype.is_decimal():
        numbers = series.cast(polars.Float64)
        return _number(name, text, dtype, numbers.fill_null(float("nan")).to_numpy())
    if dtype.is_integer():
        return _whole(name, text, dtype, series.fill_null(0).to_numpy(), missing)
    if dtype == polars.Boolean:
        return _whole(name, text, dtype, series.fill_null(False).to_numpy(), missing, truth=True)
    if dtype == polars.Date:
        return _times(name, text, dtype, series.cast(polars.Datetime("ms")).to_numpy())
    if dtype == polars.Datetime:
        if dtype.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return _times(name, text, dtype, series.to_numpy())
    if dtype in (polars.String, polars.Categorical, polars.Enum, polars.Null):
        cells = np.empty(len(series), dtype=object)
        cells[:] = series.to_list()
        return _read_objects(cells, name, text, dtype)
    raise _unreadable(text, dtype)


def _read_pyarrow(column: Any, name: Any, text: str) -> tuple[Field, Column]:
    pyarrow, compute = library("pyarrow"), library("pyarrow.compute")
    types, dtype = pyarrow.types, column.type
    missing = compute.is_null(column).to_numpy() if column.null_count else None
    if types.is_floating(dtype) or types.is_decimal(dtype):
        numbers = column.cast(pyarrow.float64())
        return _number(name, text, dtype, compute.fill_null(numbers, float("nan")).to_numpy())
    if types.is_integer(dtype):
        return _whole(name, text, dtype, compute.fill_null(column, 0).to_numpy(), missing)
    if types.is_boolean(dtype):
        values = compute.fill_null(column, False).to_numpy()
        return _whole(name, text, dtype, values, missing, truth=True)
    if types.is_date(dtype) or types.is_timestamp(dtype):
        if types.is_date(dtype):
            column = column.cast(pyarrow.timestamp("ms"))
        ticks = compute.fill_null(column.cast(pyarrow.int64()), np.iinfo(np.int64).min).to_numpy()
        return _times(name, text, dtype, ticks.view(f"datetime64[{column.type.unit}]"))
    is_text = types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)
    if is_text:
        words = column.cast(pyarrow.large_string()).combine_chunks().dictionary_encode()
        codes = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return _words(name, text, dtype, codes, words.dictionary.to_pylist())
    if not types.is_null(dtype) and not types.is_dictionary(dtype):
        raise _unreadable(text, dtype)
    cells = np.empty(len(column), dtype=object)
    cells[:] = column.to_pylist()
    return _read_objects(cells, name, text, dtype)


# One column out.


def unknown(name: str, height: int) -> Column:
    """A column without any information, not even whether its cells are missing."""
    return name, np.full(height, np.nan), "unknown"


def missing_of(column: Column) -> npt.NDArray[np.bool_]:
    """The mask of missing cells."""
    _, values, more = column
    if values.dtype.kind == "f":
        return np.isnan(values)
    if isinstance(more, list):
        return np.asarray(values < 0)
    return np.zeros(len(values), bool) if more is None else np.asarray(more)


def cells_of(field: Field, column: Column) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The cells as float64, int64, bool or objects, and the mask of missing cells."""
    _, values, more = column
    missing = missing_of(column)
    if field.cells == "word":
        labels = more if isinstance(more, list) else []
        meaning = {str(value): value for value in field.values or ()}
        lookup = np.empty(len(labels) + 1, dtype=object)
        lookup[:-1] = [meaning.get(label, label) for label in labels]
        lookup[-1] = None
        return lookup[values], missing
    if field.cells == "time":
        moments = np.array([*map(moment_of, more if isinstance(more, list) else []), moment_of("")])
        return moments[values], missing | np.isnat(moments[values])
    if isinstance(more, list):
        return np.zeros(len(values), np.float64), np.ones(len(values), bool)
    if field.cells == "number":
        numbers = values.astype(np.float64)
        numbers[missing] = np.nan
        return numbers, missing
    whole = np.where(missing, 0, values)
    if whole.dtype.kind == "f":
        whole = np.rint(whole).astype(np.int64)
    return (whole != 0 if field.cells == "truth" else whole), missing


def fitted(kind: str, field: Field, column: Column, *, is_boolean: bool) -> Field:
    """The field, or one of the cells' own type if they do not fit it: a table may contain no and yes instead of the
    model's True and False, or real numbers instead of whole ones."""
    _, values, more = column
    known = values[~missing_of(column)]
    if isinstance(more, list):
        cells = "time" if field.cells == "time" else "word"
    elif field.cells == "number" or bool((known != np.rint(known)).any()):
        cells = "number"
    elif field.cells != "whole" and (is_boolean or field.cells == "truth") and bool(
        np.isin(known, (0, 1)).all()
    ):
        cells = "truth"
    else:
        cells = "whole"
    if cells == field.cells:
        return field
    bare = Field(field.name, cells, None)
    return Field(field.name, cells, _dtype("numpy" if kind == "structured" else kind, bare))


def make(kind: str, field: Field, column: Column) -> Any:
    """A column with the kind and type of the input."""
    cells, missing = cells_of(field, column)
    if field.cells == "time" and _are_objects(field.dtype):
        # Objects of the datetime module.
        cells = cells.astype("datetime64[D]" if field.values else "datetime64[s]").astype(object)
    if kind == "pandas":
        return _make_pandas(field, cells, missing)
    if kind == "polars":
        return _make_polars(field, cells, missing)
    if kind == "pyarrow":
        return _make_pyarrow(field, cells, missing)
    return _make_numpy(field, cells, missing)


def _are_objects(dtype: Any) -> bool:
    return getattr(dtype, "kind", None) == "O"


def _objects(cells: Array, missing: npt.NDArray[np.bool_], unknown: Any = None) -> Array:
    objects = cells.astype(object)
    objects[missing] = unknown
    return objects


def _make_numpy(field: Field, cells: Array, missing: npt.NDArray[np.bool_]) -> Array:
    if field.dtype.kind == "O":
        return _objects(cells, missing)
    if not missing.any() or field.cells in ("number", "time"):
        # Sampled labels may be longer than those of the input.
        return cells.astype(str if field.dtype.kind == "U" else field.dtype)
    if field.cells == "whole":
        numbers = cells.astype(np.float64)
        numbers[missing] = np.nan
        return numbers
    return _objects(cells, missing)


def _make_pandas(field: Field, cells: Array, missing: npt.NDArray[np.bool_]) -> Any:
    pandas = library("pandas")
    dtype = field.dtype
    if hasattr(dtype, "categories"):
        known = [None if is_unknown(c) or c not in dtype.categories else c for c in cells]
        return pandas.Series(pandas.Categorical(known, dtype=dtype))
    if field.cells == "time" and not _are_objects(dtype):
        moments = pandas.Series(cells)
        if getattr(dtype, "tz", None) is not None:
            return moments.dt.tz_localize("UTC").astype(dtype)
        return moments.astype(dtype)
    if not missing.any() and field.cells != "word":
        return pandas.Series(cells).astype(dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        dtype = dtype.name.replace("i", "I").replace("u", "U")
    elif isinstance(dtype, np.dtype) and dtype.kind == "b":
        dtype = "boolean"
    elif isinstance(dtype, np.dtype) and dtype.kind == "f":
        return pandas.Series(cells.astype(dtype))
    unknown = None if dtype == np.dtype(object) else pandas.NA
    return pandas.Series(_objects(cells, missing, unknown), dtype=dtype)


def _make_polars(field: Field, cells: Array, missing: npt.NDArray[np.bool_]) -> Any:
    polars = library("polars")
    if field.cells == "time":
        moments = polars.Series(str(field.name), cells.astype("datetime64[us]"))
        if getattr(field.dtype, "time_zone", None) is not None:
            moments = moments.dt.replace_time_zone("UTC").dt.convert_time_zone(field.dtype.time_zone)
        return moments.cast(field.dtype)
    base = {
        "number": polars.Float64,
        "whole": polars.Int64,
        "truth": polars.Boolean,
        "word": polars.String,
    }[field.cells]
    series = polars.Series(str(field.name), _objects(cells, missing).tolist(), dtype=base)
    return series.cast(field.dtype, strict=False)


def _make_pyarrow(field: Field, cells: Array, missing: npt.NDArray[np.bool_]) -> Any:
    pyarrow = library("pyarrow")
    if field.cells == "time":
        array = pyarrow.array(cells)
        if not pyarrow.types.is_timestamp(field.dtype):
            return array.cast(field.dtype)
        # Instants stay the same, whatever the zone.
        return array.cast(pyarrow.timestamp(field.dtype.unit)).cast(pyarrow.int64()).cast(field.dtype)
    base = {
        "number": pyarrow.float64(),
        "whole": pyarrow.int64(),
        "truth": pyarrow.bool_(),
        "word": pyarrow.string(),
    }[field.cells]
    array = pyarrow.array(_objects(cells, missing).tolist(), type=base)
    if pyarrow.types.is_dictionary(field.dtype):
        array = array.dictionary_encode()
    return array.cast(field.dtype)


def merge(kind: str, raw: Any, new: Any, missing: npt.NDArray[np.bool_]) -> Any:
    """A column with its missing cells taken from another."""
    if kind == "pandas":
        new.index = raw.index
        return raw.where(~missing, new).astype(raw.dtype)
    if kind == "polars":
        return raw.zip_with(library("polars").Series(~missing), new)
    if kind == "pyarrow":
        pyarrow, compute = library("pyarrow"), library("pyarrow.compute")
        column = raw.combine_chunks() if isinstance(raw, pyarrow.ChunkedArray) else raw
        if pyarrow.types.is_dictionary(column.type):
            plain = column.type.value_type
            filled = compute.if_else(pyarrow.array(missing), new.cast(plain), column.cast(plain))
            return filled.dictionary_encode().cast(column.type)
        return compute.if_else(pyarrow.array(missing), new, column)
    merged = raw.copy()
    if merged.dtype.kind != "O" and merged.dtype != new.dtype and new.dtype.kind == "O":
        merged = merged.astype(object)
    merged[missing] = new[missing]
    return merged


def assemble(form: Form, columns: Sequence[Column]) -> Any:
    """A table with the form of the input."""
    made = [make(form.kind, f, c) for f, c in zip(form.fields, columns, strict=True)]
    names = [field.name for field in form.fields]
    if form.kind == "numpy":
        return np.column_stack(made) if made else np.empty((0, 0))
    if form.kind == "pandas":
        table = library("pandas").DataFrame(dict(enumerate(made)))
        table.columns = names
        return table
    if form.kind == "polars":
        return library("polars").DataFrame(made)
    if form.kind == "pyarrow":
        return library("pyarrow").table(made, names=names)
    if form.kind == "structured":
        dtype = [(name, column.dtype) for name, column in zip(names, made, strict=True)]
        table = np.empty(len(made[0]), dtype=dtype)
        for name, column in zip(names, made, strict=True):
            table[name] = column
        return table
    return dict(zip(names, made, strict=True))


def in_kind(form: Form, kind: str | None) -> Form:
    """The same columns in a table of another kind."""
    if kind is None or kind == form.kind:
        return form
    if kind not in KINDS:
        raise BorniteError(f"there is no kind '{kind}' of table: choose one of {', '.join(KINDS)}")
    fields = tuple(Field(f.name, f.cells, _dtype(kind, f), f.values) for f in form.fields)
    if kind == "pyarrow":
        fields = tuple(Field(str(f.name), f.cells, f.dtype, f.values) for f in fields)
    return Form(kind, fields)


def _dtype(kind: str, field: Field) -> Any:
    """The usual type of a kind's columns."""
    place = ("number", "whole", "truth", "word", "time").index(field.cells)
    if kind == "polars":
        polars = library("polars")
        moment = polars.Datetime("us")
        return (polars.Float64, polars.Int64, polars.Boolean, polars.String, moment)[place]
    if kind == "pyarrow":
        pyarrow = library("pyarrow")
        moment = pyarrow.timestamp("s")
        return (pyarrow.float64(), pyarrow.int64(), pyarrow.bool_(), pyarrow.string(), moment)[place]
    return np.dtype((np.float64, np.int64, np.bool_, object, "datetime64[s]")[place])


def labeled(index: Sequence[Any], names: Sequence[Any], columns: Sequence[list[Any]]) -> Any:
    """A small table of answers: a DataFrame if pandas is installed, otherwise a dict of lists."""
    try:
        pandas = library("pandas")
    except ImportError:
        return dict(zip(names, columns, strict=True))
    table = pandas.DataFrame(dict(enumerate(columns)))
    table.columns, table.index = list(names), list(index)
    return table

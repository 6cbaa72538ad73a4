"""Exports numpy columns as record batches through the Arrow C interface, without an Arrow library.

Numeric buffers are passed on without a copy. They stay alive until the consumer calls the release callback,
from any thread.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bornite._arrow import _NUMBERS, _Array, _Schema, _Stream
from bornite._errors import ArgumentError

Array: TypeAlias = npt.NDArray[Any]

_FORMATS = {code: name for name, code in _NUMBERS.items()}
_NULLABLE = 2

_numbers = itertools.count(1)
# The data that exported structures point to, until they are released.
_held: dict[int, Any] = {}


def _hold(things: Any) -> int:
    number = next(_numbers)
    _held[number] = things
    return number


def _release(structure: Any) -> None:
    """Releases a structure and its children, which may have been moved and released before."""
    value = structure.contents
    for place in range(value.n_children):
        child = value.children[place]
        if child.contents.release:
            child.contents.release(child)
    _held.pop(value.private_data, None)
    value.release = type(value.release)()


_release_schema = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))(_release)
_release_array = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))(_release)


def _capsule(structure: Any, name: bytes) -> Any:
    """A capsule that releases its content unless it has been consumed."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    _held[ctypes.addressof(structure)] = structure
    # A capsule stores the address of its name, so these are module constants.
    return new(ctypes.addressof(structure), name, _destructors[name])


def _destructor(name: bytes, kind: Any) -> Any:
    def drop(address: int) -> None:
        get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", ctypes.pythonapi)
        )
        place = get(address, name)
        value = kind.from_address(place)
        if value.release:
            value.release(ctypes.byref(value))
        _held.pop(place, None)

    return ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(drop)


_SCHEMA, _ARRAY, _STREAM = b"arrow_schema", b"arrow_array", b"arrow_array_stream"
_drops = {_SCHEMA: _destructor(_SCHEMA, _Schema), _ARRAY: _destructor(_ARRAY, _Array), _STREAM: _destructor(_STREAM, _Stream)}
_destructors = {name: ctypes.cast(drop, ctypes.c_void_p) for name, drop in _drops.items()}


def _children(kind: Any, structures: list[Any]) -> Any:
    return (ctypes.POINTER(kind) * len(structures))(*(ctypes.pointer(s) for s in structures))


def _schema(name: str, format: str, children: list[_Schema]) -> _Schema:
    texts = (format.encode(), name.encode())
    listed = _children(_Schema, children)
    made = _Schema(
        format=texts[0],
        name=texts[1],
        flags=_NULLABLE if not children else 0,
        n_children=len(children),
        children=listed,
        release=_release_schema,
    )
    made.private_data = _hold((texts, listed, children))
    return made


def _array(length: int, nulls: int, buffers: list[Array | None], children: list[_Array]) -> _Array:
    addresses = (ctypes.c_void_p * len(buffers))(*(None if b is None else b.ctypes.data for b in buffers))
    listed = _children(_Array, children)
    made = _Array(
        length=length,
        null_count=nulls,
        n_buffers=len(buffers),
        n_children=len(children),
        buffers=ctypes.cast(addresses, ctypes.POINTER(ctypes.c_void_p)),
        children=listed,
        release=_release_array,
    )
    made.private_data = _hold((buffers, addresses, listed, children))
    return made


def _missing(column: Array) -> Array:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind == "O":
        return np.fromiter((c is None or c != c for c in column), bool, len(column))
    return np.zeros(len(column), bool)


def _plain(column: Array, missing: Array) -> Array:
    """Objects as one type."""
    known = column[~missing].tolist()
    if all(isinstance(cell, (bool, np.bool_)) for cell in known) and known:
        return np.where(missing, False, column).astype(bool)
    if all(isinstance(cell, (int, np.integer)) for cell in known) and known:
        return np.where(missing, 0, column).astype(np.int64)
    if all(isinstance(cell, (int, float, np.number)) for cell in known) and known:
        return np.where(missing, np.nan, column).astype(np.float64)
    return np.array(["" if gone else str(cell) for cell, gone in zip(column, missing, strict=True)], str)


class Encoded:
    """A column in Arrow's layout: a format and buffers. With a given format, the cells are converted to it if possible."""

    def __init__(self, name: str, column: Array, format: str | None = None) -> None:
        self.name, self.length = name, len(column)
        missing = _missing(column)
        self.nulls = int(missing.sum())
        self.bits = np.packbits(~missing, bitorder="little") if self.nulls else None
        if column.dtype.kind == "O":
            column = _plain(column, missing)
        if format is not None:
            column = self._cast(column, missing, format)
        kind = column.dtype.kind
        if kind == "b":
            self.format, self.buffers = "b", [np.packbits(column, bitorder="little")]
        elif kind == "U":
            texts = [text.encode() for text in column.tolist()]
            self._texts([b"" if gone else text for text, gone in zip(texts, missing.tolist(), strict=True)])
        else:
            code = f"{kind}{column.dtype.itemsize}"
            if code not in _FORMATS:
                raise ArgumentError(f"column '{name}' has dtype {column.dtype}, which has no Arrow type")
            own = np.ascontiguousarray(column.astype(column.dtype.newbyteorder("="), copy=False))
            self.format, self.buffers = _FORMATS[code], [own]

    def _cast(self, column: Array, missing: Array, format: str) -> Array:
        if format in "uU":
            return column if column.dtype.kind == "U" else column.astype(str)
        target = np.dtype(bool if format == "b" else _NUMBERS[format])
        if column.dtype == target:
            return column
        known = column if target.kind == "f" else np.where(missing, np.zeros(1, column.dtype), column)
        try:
            cast = known.astype(target)
        except ValueError:
            cast = np.zeros(len(column), target)
        if not np.array_equal(cast[~missing].astype(column.dtype), column[~missing]):
            raise ArgumentError(f"column '{self.name}' has cells that do not fit the type of the previous batches")
        return cast

    def _texts(self, texts: list[bytes]) -> None:
        ends = np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.int64)])
        self.format = "u" if ends[-1] < 2**31 else "U"
        data = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
        self.buffers = [ends.astype(np.int32 if self.format == "u" else np.int64), data]

    def schema(self) -> _Schema:
        return _schema(self.name, self.format, [])

    def array(self) -> _Array:
        return _array(self.length, self.nulls, [self.bits, *self.buffers], [])


class RecordBatch:
    """Columns of the same length that Arrow libraries read without a copy: ``pyarrow.record_batch(batch)``,
    ``polars.DataFrame(batch)``. ``batch["name"]`` is a column as a numpy array.

    >>> import numpy as np
    >>> from bornite.batches import RecordBatch
    >>> batch = RecordBatch({"x": np.array([1.0, np.nan]), "y": np.array(["a", "b"])})
    >>> batch.num_rows, batch.column_names
    (2, ['x', 'y'])
    """

    def __init__(self, columns: Mapping[str, Array]) -> None:
        self._columns = {str(name): np.asarray(column) for name, column in columns.items()}

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return max((len(column) for column in self._columns.values()), default=0)

    def __getitem__(self, name: str) -> Array:
        return self._columns[name]

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        return f"<RecordBatch: {self.num_rows} rows of {', '.join(self._columns)}>"

    def to_dict(self) -> dict[str, Array]:
        """The columns by name."""
        return dict(self._columns)

    def _encoded(self) -> list[Encoded]:
        return [Encoded(name, column) for name, column in self._columns.items()]

    def __arrow_c_schema__(self) -> Any:
        return _capsule(_schema("", "+s", [column.schema() for column in self._encoded()]), _SCHEMA)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """The batch as two capsules: its schema and its cells."""
        columns = self._encoded()
        schema = _schema("", "+s", [column.schema() for column in columns])
        array = _array(self.num_rows, 0, [None], [column.array() for column in columns])
        return _capsule(schema, _SCHEMA), _capsule(array, _ARRAY)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A stream that contains only this batch."""
        return RecordBatchStream(iter([self])).__arrow_c_stream__()


class RecordBatchStream:
    """A lazy stream of record batches. It can be read once, as an iterator or by an Arrow library:
    ``pyarrow.RecordBatchReader.from_stream(stream)``. All batches have the columns and types of the first."""

    def __init__(self, batches: Iterator[RecordBatch]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[RecordBatch]:
        return self._batches

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The stream as a capsule."""
        return _capsule(_stream(self._batches), _STREAM)


# The error codes of streams.
_FAILED = 5


class _Source:
    """The state shared by the callbacks of one stream."""

    def __init__(self, batches: Iterator[RecordBatch]) -> None:
        self.batches = batches
        self.first: list[RecordBatch] = []
        self.formats: dict[str, str] | None = None
        self.error = b""

    def peek(self) -> RecordBatch:
        """The next batch, without consuming it; a batch without columns if there is none."""
        if not self.first:
            self.first = list(itertools.islice(self.batches, 1))
        return self.first[0] if self.first else RecordBatch({})

    def next(self) -> RecordBatch | None:
        return self.first.pop() if self.first else next(self.batches, None)

    def failed(self, error: BaseException) -> int:
        self.error = f"{type(error).__name__}: {error}".encode()
        return _FAILED

    def columns(self, batch: RecordBatch) -> list[Encoded]:
        if self.formats is None:
            columns = batch._encoded()
            self.formats = {column.name: column.format for column in columns}
            return columns
        if batch.column_names != list(self.formats):
            raise ArgumentError(f"a batch has columns {batch.column_names}, but the previous ones have {list(self.formats)}")
        return [Encoded(name, batch[name], format) for name, format in self.formats.items()]


def _stream(batches: Iterator[RecordBatch]) -> _Stream:
    source = _Source(batches)

    def get_schema(_: Any, out: Any) -> int:
        try:
            columns = source.columns(source.peek())
            out[0] = _schema("", "+s", [column.schema() for column in columns])
        except Exception as error:
            return source.failed(error)
        return 0

    def get_next(_: Any, out: Any) -> int:
        try:
            batch = source.next()
            if batch is None:
                out[0] = _Array()
            else:
                children = [column.array() for column in source.columns(batch)]
                out[0] = _array(batch.num_rows, 0, [None], children)
        except Exception as error:
            return source.failed(error)
        return 0

    def get_last_error(_: Any) -> int:
        return ctypes.cast(ctypes.c_char_p(source.error), ctypes.c_void_p).value or 0

    kinds: dict[str, Any] = {field[0]: field[1] for field in _Stream._fields_}
    made = _Stream(
        get_schema=kinds["get_schema"](get_schema),
        get_next=kinds["get_next"](get_next),
        get_last_error=ctypes.cast(_LAST_ERROR(get_last_error), kinds["get_last_error"]),
        release=_release_stream,
    )
    made.private_data = _hold((source, made.get_schema, made.get_next, made.get_last_error))
    return made


# A callback cannot return a string that ctypes owns, but it can return its address.
_LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def _release_of_stream(structure: Any) -> None:
    value = structure.contents
    _held.pop(value.private_data, None)
    value.release = type(value.release)()


_release_stream = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))(_release_of_stream)

"""Reads tables from the Arrow C interface as numpy arrays, without an Arrow library.

Numeric buffers are not copied if a column consists of one piece without nulls: the array is a view that keeps
the producer's memory alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bornite._bornite import BorniteError
from bornite._errors import ArgumentError

Array: TypeAlias = npt.NDArray[Any]


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))),
    ("private_data", ctypes.c_void_p),
]

_NUMBERS = {
    "c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8",
    "e": "f2", "f": "f4", "g": "f8",
}  # fmt: skip


_POINTER = ctypes.sizeof(ctypes.c_void_p)


class _Owned:
    """A structure that was received, and is released when it is no longer needed."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __del__(self) -> None:
        if self.value.release:
            self.value.release(ctypes.byref(self.value))


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = get(capsule, name)
    return address


def _fields(schema: Any) -> list[Any]:
    if schema.format != b"+s":
        raise ArgumentError("expected a table stream, found a single column: give the table")
    return [schema.children[place].contents for place in range(schema.n_children)]


def _cells(fields: list[Any], batch: _Owned) -> list[Array]:
    """The columns of one batch."""
    value = batch.value
    found = []
    for place, field in enumerate(fields):
        piece = _Piece(field, value.children[place].contents, batch)
        found.append(piece.cells(value.offset, value.length))
    return found


def pieces(table: Any) -> Iterator[list[tuple[str, Array]]]:
    """The columns of every batch of an object with ``__arrow_c_stream__`` or ``__arrow_c_array__``, in order."""
    for fields, cells in _read(table):
        yield [(_name(field), column) for field, column in zip(fields, cells, strict=True)]


def columns(table: Any) -> list[tuple[str, Array]]:
    """The columns of an object with ``__arrow_c_stream__`` or ``__arrow_c_array__``: numbers, True and False, or text; None
    or NaN is missing."""
    heads: list[tuple[str, str]] = []
    found: list[list[Array]] = []
    for fields, cells in _read(table, with_empty=True):
        # The fields are valid while the stream is being read.
        heads = [(_name(field), field.format.decode()) for field in fields]
        found.append(cells)
    return [
        (name, _joined(format, [cells[place] for cells in found if cells]))
        for place, (name, format) in enumerate(heads)
    ]


def _read(table: Any, *, with_empty: bool = False) -> Iterator[tuple[list[Any], list[Array]]]:
    """The fields, and the columns of every batch. With ``with_empty``, also the fields of a stream without batches."""
    schema = _Owned(_Schema())
    if not hasattr(table, "__arrow_c_stream__"):
        first, second = table.__arrow_c_array__()
        # The content of a capsule is moved out, and released with its new owner.
        described = _Schema.from_address(_pointer(first, b"arrow_schema"))
        held = _Array.from_address(_pointer(second, b"arrow_array"))
        batch = _Owned(_Array())
        ctypes.memmove(ctypes.byref(schema.value), ctypes.byref(described), ctypes.sizeof(_Schema))
        ctypes.memmove(ctypes.byref(batch.value), ctypes.byref(held), ctypes.sizeof(_Array))
        ctypes.memset(ctypes.addressof(described) + _Schema.release.offset, 0, _POINTER)
        ctypes.memset(ctypes.addressof(held) + _Array.release.offset, 0, _POINTER)
        fields = _fields(schema.value)
        yield fields, _cells(fields, batch)
        return
    capsule = table.__arrow_c_stream__()
    # The capsule releases the stream when it goes.
    stream = _Stream.from_address(_pointer(capsule, b"arrow_array_stream"))
    _checked(stream, stream.get_schema(ctypes.byref(stream), ctypes.byref(schema.value)))
    fields = _fields(schema.value)
    if with_empty:
        yield fields, []
    while True:
        batch = _Owned(_Array())
        _checked(stream, stream.get_next(ctypes.byref(stream), ctypes.byref(batch.value)))
        if not batch.value.release:
            break
        yield fields, _cells(fields, batch)


def _checked(stream: _Stream, code: int) -> None:
    if code:
        text = stream.get_last_error(ctypes.byref(stream)) or b"no reason is given"
        raise BorniteError(f"the Arrow stream ends with error {code}: {text.decode(errors='replace')}")


def _name(field: Any) -> str:
    return (field.name or b"").decode()


def _joined(format: str, pieces: list[Array]) -> Array:
    if not pieces:
        return np.empty(0, _NUMBERS.get(format, object))
    if len({piece.dtype for piece in pieces}) == 1:
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    # Some pieces have missing cells and others do not.
    return np.concatenate([piece.astype(object) for piece in pieces])


class _Piece:
    """One column of one batch."""

    def __init__(self, field: Any, array: Any, owner: _Owned) -> None:
        self.field, self.array, self.owner = field, array, owner
        self.format = field.format.decode()

    def cells(self, offset: int, length: int) -> Array:
        """The cells of these rows of the batch."""
        start = self.array.offset + offset
        missing = self._missing(start, length)
        if self.field.dictionary:
            words = _Piece(self.field.dictionary.contents, self.array.dictionary.contents, self.owner)
            listed = words.cells(0, words.array.length)
            codes = self._numbers(start, length)
            meaning = np.empty(len(listed) + 1, object)
            meaning[:-1], meaning[-1] = listed, None
            return np.asarray(meaning[codes if missing is None else np.where(missing, len(listed), codes)])
        read = self._reader()
        return _with_holes(read(start, length), missing)

    def _reader(self) -> Callable[[int, int], Array]:
        if self.format in _NUMBERS:
            return self._numbers
        if self.format.startswith("d:") and self.format.count(",") == 1:
            return self._decimals
        readers = {"b": self._truths, "u": self._texts, "U": self._texts, "vu": self._views, "n": self._nothing}
        if self.format not in readers:
            raise ArgumentError(
                f"column '{_name(self.field)}' has the Arrow type '{self.format}': convert it to numbers, text or True and "
                "False, or drop it"
            )
        return readers[self.format]

    def _buffer(self, place: int, dtype: Any, start: int, count: int) -> Array:
        """A view of a buffer."""
        kind = np.dtype(dtype)
        address = self.array.buffers[place]
        if not address or not count:
            return np.empty(0, kind)
        memory = (ctypes.c_char * (count * kind.itemsize)).from_address(address + start * kind.itemsize)
        memory.owner = self.owner
        return np.frombuffer(memory, kind)

    def _bits(self, place: int, start: int, length: int) -> Array:
        packed = self._buffer(place, np.uint8, start // 8, (start % 8 + length + 7) // 8)
        bits = np.unpackbits(packed, bitorder="little")
        return bits[start % 8 : start % 8 + length].astype(bool)

    def _missing(self, start: int, length: int) -> Array | None:
        if self.array.null_count == 0 or self.format == "n" or not self.array.buffers[0]:
            return None
        missing = ~self._bits(0, start, length)
        return missing if missing.any() else None

    def _numbers(self, start: int, length: int) -> Array:
        return self._buffer(1, _NUMBERS[self.format], start, length)

    def _decimals(self, start: int, length: int) -> Array:
        low, high = self._buffer(1, np.int64, 2 * start, 2 * length).reshape(-1, 2).T
        # If the upper half is only the sign, the lower half is the number.
        whole = np.where(high == low >> 63, low, high * 2.0**64 + low.astype(np.uint64))
        return np.asarray(whole / 10.0 ** int(self.format.rsplit(",", 1)[1]))

    def _truths(self, start: int, length: int) -> Array:
        return self._bits(1, start, length)

    def _nothing(self, start: int, length: int) -> Array:
        return np.full(length, None, object)

    def _texts(self, start: int, length: int) -> Array:
        ends = self._buffer(1, "i4" if self.format == "u" else "i8", start, length + 1).tolist() or [0]
        data = self._buffer(2, np.uint8, 0, ends[-1]).tobytes()
        cells = np.empty(length, object)
        # A missing cell may contain anything.
        cells[:] = [data[a:b].decode(errors="replace") for a, b in zip(ends, ends[1:], strict=False)]
        return cells

    def _views(self, start: int, length: int) -> Array:
        raw = self._buffer(1, np.uint8, 16 * start, 16 * length).tobytes()
        views = np.frombuffer(raw, "i4").reshape(-1, 4).tolist()
        pieces = self.array.n_buffers - 3
        sizes = self._buffer(int(self.array.n_buffers) - 1, "i8", 0, pieces).tolist()
        data = [self._buffer(2 + n, np.uint8, 0, size).tobytes() for n, size in enumerate(sizes)]
        cells = np.empty(length, object)
        for row, (size, _, piece, at) in enumerate(views):
            place = 16 * row + 4
            text = raw[place : place + size] if size <= 12 else data[piece][at : at + size]
            cells[row] = text.decode(errors="replace")
        return cells


def _with_holes(cells: Array, missing: Array | None) -> Array:
    if missing is None:
        return cells
    if cells.dtype.kind == "f":
        return np.where(missing, np.array(np.nan, cells.dtype), cells)
    holed = cells.astype(object)
    holed[missing] = None
    return holed

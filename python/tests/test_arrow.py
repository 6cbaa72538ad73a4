"""The Arrow C stream interface, read without a library of Arrow."""

from __future__ import annotations

import decimal
import gc
import sys
from typing import Any

import numpy as np
import pytest

import bornite
from bornite import _arrow

pyarrow = pytest.importorskip("pyarrow")
polars = pytest.importorskip("polars")

COUNT = 400


class Stream:
    """A table of a library that nobody knows."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def holes(cells: list[Any], every: int) -> list[Any]:
    return [None if row % every == 0 else cell for row, cell in enumerate(cells)]


def mixed() -> Any:
    rows = range(COUNT)
    words = ["x" * (row % 30) + "é" for row in rows]
    numbers = {
        f"{name} {kind}": pyarrow.array(cells, kind)
        for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float", "double")
        for name, cells in (("full", [row % 100 for row in rows]), ("holed", holes([row % 99 for row in rows], 7)))
    }
    return pyarrow.table(
        {
            **numbers,
            "truth": pyarrow.array([row % 3 == 0 for row in rows]),
            "maybe": pyarrow.array(holes([row % 3 == 0 for row in rows], 5)),
            "text": pyarrow.array(holes(words, 11)),
            "large": pyarrow.array(words, pyarrow.large_string()),
            "view": pyarrow.array(holes(words, 4), pyarrow.string_view()),
            "coded": pyarrow.array(["a", "b", None, "c"] * (COUNT // 4)).dictionary_encode(),
            "none": pyarrow.nulls(COUNT),
            "money": pyarrow.array([decimal.Decimal(row - 200) / 100 for row in rows], pyarrow.decimal128(10, 2)),
        }
    )


def plain(cell: Any) -> Any:
    if isinstance(cell, decimal.Decimal):
        return float(cell)
    return None if isinstance(cell, float) and np.isnan(cell) else cell


@pytest.mark.parametrize("of", [lambda t: t, polars.from_arrow], ids=["pyarrow", "polars"])
def test_cells_are_those_of_the_library(of: Any) -> None:
    table = mixed()
    for part in (
        table,
        table.slice(13, 150),
        table.slice(0, 0),
        pyarrow.concat_tables([table.slice(3, 9), table.slice(100, 50), table.slice(90, 1)]),
    ):
        found = _arrow.columns(Stream(of(part)))
        assert [name for name, _ in found] == part.column_names
        for name, cells in found:
            expected = [plain(cell) for cell in part.column(name).to_pylist()]
            assert [plain(cell) for cell in cells.tolist()] == expected, name


def test_numbers_are_views_and_are_released() -> None:
    gc.collect()
    before = pyarrow.total_allocated_bytes()
    table = pyarrow.table({"x": pyarrow.array(list(range(1000)), "int64"), "y": ["a", "b"] * 500})
    address = table.column("x").chunk(0).buffers()[1].address
    (_, cells), _ = _arrow.columns(table)
    assert cells.ctypes.data == address
    del table
    gc.collect()
    assert cells.sum() == 499_500
    assert pyarrow.total_allocated_bytes() > before
    del cells
    gc.collect()
    assert pyarrow.total_allocated_bytes() == before


def test_tables_are_read_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pyarrow.table(
        {
            "n": pyarrow.array(holes([row % 5 for row in range(80)], 9), "int16"),
            "x": np.linspace(0, 1, 80),
            "w": ["a", "b"] * 40,
        }
    )
    expected = bornite.fit(table, epochs=2, width=2)
    stream = Stream(table)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = bornite.fit(stream, epochs=2, width=2)
    # The models differ only in what they remember of the table's types.
    assert found.schema == expected.schema
    rows = {"n": [1, 4], "x": [0.25, 0.75], "w": ["a", "b"]}
    assert np.array_equal(found.log_prob(rows), expected.log_prob(rows))
    drawn = found.sample(5)
    assert list(drawn) == ["n", "x", "w"] and drawn["x"].dtype == np.float64
    assert np.array_equal(found.log_prob(stream), found.log_prob({name: drawn for name, drawn in _arrow.columns(stream)}))


def test_what_is_no_column_is_named() -> None:
    for table, message in [
        (pyarrow.table({"d": pyarrow.array([1], pyarrow.date32())}), "column 'd' has the Arrow type 'tdD'"),
        (pyarrow.table({"l": pyarrow.array([[1]])}), r"column 'l' has the Arrow type '\+l'"),
        (pyarrow.chunked_array([[1, 2]]), "single column"),
    ]:
        with pytest.raises(TypeError, match=message):
            _arrow.columns(table)
    fails = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("x", "int64")]), (1 / 0 for _ in "x"))
    with pytest.raises(ValueError, match="the Arrow stream ends with error"):
        _arrow.columns(fails)

"""Converts the kind of a table and its column types to a note in the model's file, and back.

A note is JSON with names of types, never code. A note that cannot be read, or whose library is not installed, is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from bornite._tables import KINDS, Field, Form, library

VERSION = 1
CELLS = ("number", "whole", "truth", "word", "time")
POLARS = (
    "Float32", "Float64", "Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64", "Boolean",
    "String", "Categorical", "Date", "Null",
)  # fmt: skip
UNITS = ("s", "ms", "us", "ns")


def to_note(form: Form) -> str:
    """The note about a table with all of its columns."""
    fields = [
        {
            "name": _plain(field.name),
            "cells": field.cells,
            "type": _type_to_json(form.kind, field.dtype),
            "values": None if field.values is None else _plain(field.values),
        }
        for field in form.fields
    ]
    note = {
        "version": VERSION,
        "kind": form.kind,
        "fields": fields,
        "type": None if form.dtype is None or form.dtype.names else form.dtype.str,
    }
    return json.dumps(note)


def from_note(note: str | None, names: Sequence[str]) -> Form | None:
    """The form described by a note, for the columns of a model; None if it cannot be restored."""
    if note is None:
        return None
    try:
        return _form(json.loads(note), names)
    except Exception:  # Whatever a file says, the model itself can be used.
        return None


def _form(note: Any, names: Sequence[str]) -> Form:
    kind = note["kind"]
    if note["version"] != VERSION or kind not in (*KINDS, "structured"):
        raise ValueError
    fields = []
    for field in note["fields"]:
        if field["cells"] not in CELLS:
            raise ValueError
        values = field["values"]
        fields.append(
            Field(
                _name(field["name"]),
                field["cells"],
                _type_from_json(kind, field["type"]),
                None if values is None else tuple(values),
            )
        )
    texts = [str(field.name) for field in fields]
    places = tuple(texts.index(name) for name in names)
    dtype = None if note["type"] is None else np.dtype(note["type"])
    return Form(kind, tuple(fields[place] for place in places), dtype, places, len(fields))


def _plain(value: Any) -> Any:
    """A name or label as JSON: types that JSON does not have become text."""
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return str(value)


def _name(name: Any) -> Any:
    return tuple(name) if isinstance(name, list) else name


def _type_to_json(kind: str, dtype: Any) -> Any:
    if kind == "polars":
        return _polars_to_json(dtype)
    if kind == "pyarrow":
        return str(dtype)
    if hasattr(dtype, "categories"):
        categories = [_plain(value) for value in dtype.categories]
        return {"categories": categories, "ordered": bool(dtype.ordered), "of": str(dtype.categories.dtype)}
    if isinstance(dtype, np.dtype):
        return {"numpy": dtype.str}
    name = str(dtype)
    return {"name": f"string[{dtype.storage}]" if name == "string" else name}


def _type_from_json(kind: str, found: Any) -> Any:
    if kind == "polars":
        return _polars_from_json(found)
    if kind == "pyarrow":
        return _pyarrow_type(found)
    if "numpy" in found:
        return np.dtype(found["numpy"])
    pandas = library("pandas")
    if "categories" in found:
        categories = pandas.Index(found["categories"]).astype(found["of"])
        return pandas.CategoricalDtype(categories, ordered=found["ordered"])
    return pandas.api.types.pandas_dtype(found["name"])


def _polars_to_json(dtype: Any) -> Any:
    name = str(dtype.base_type() if hasattr(dtype, "base_type") else dtype).partition("(")[0]
    if name == "Enum":
        return {"name": name, "categories": dtype.categories.to_list()}
    if name == "Datetime":
        return {"name": name, "unit": dtype.time_unit, "zone": dtype.time_zone}
    if name == "Decimal":
        return {"name": name, "precision": dtype.precision, "scale": dtype.scale}
    return {"name": name}


def _polars_from_json(found: Any) -> Any:
    polars = library("polars")
    name = found["name"]
    if name == "Enum":
        return polars.Enum(found["categories"])
    if name == "Datetime" and found["unit"] in UNITS:
        return polars.Datetime(found["unit"], found["zone"])
    if name == "Decimal":
        return polars.Decimal(found["precision"], found["scale"])
    if name not in POLARS:
        raise ValueError
    return getattr(polars, name)()


def _pyarrow_type(name: str) -> Any:
    pyarrow = library("pyarrow")
    words = re.fullmatch(r"dictionary<values=(\w+), indices=(\w+), ordered=([01])>", name)
    if words:
        values, indices, ordered = words.groups()
        return pyarrow.dictionary(_pyarrow_type(indices), _pyarrow_type(values), ordered == "1")
    moment = re.fullmatch(r"timestamp\[(s|ms|us|ns)(?:, tz=([^\]]+))?\]", name)
    if moment:
        return pyarrow.timestamp(*moment.groups())
    decimal = re.fullmatch(r"decimal(32|64|128|256)\((\d+), (-?\d+)\)", name)
    if decimal:
        size, precision, scale = decimal.groups()
        return getattr(pyarrow, f"decimal{size}")(int(precision), int(scale))
    day = re.fullmatch(r"date(?:32\[day\]|64\[ms\])", name)
    if day:
        return pyarrow.date32() if "32" in name else pyarrow.date64()
    return pyarrow.type_for_alias(name)

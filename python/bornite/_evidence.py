"""Evidence as text in the query language."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bornite._bornite import BorniteError
from bornite._errors import ArgumentError, ColumnError, shown
from bornite._tables import is_unknown, time_text


def column_error(name: Any, known: Iterable[Any], of: str = "the model") -> ColumnError:
    texts = [str(k) for k in known]
    near = difflib.get_close_matches(str(name), texts, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(texts[:10])}"
    return ColumnError(f"{of} has no column '{name}'; {hint}")


def evidence(given: str | Mapping[Any, Any] | None, names: Mapping[Any, str]) -> str:
    """Evidence as text; ``names`` maps what a caller may write to the column's name."""
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise ArgumentError(
            "expected evidence such as {'age': (30, 40), 'city': {'Bonn', 'Essen'}} or \"age in [30, 40)\", "
            f"found {type(given).__name__}"
        )
    pieces = []
    for name, known in given.items():
        if name not in names:
            raise column_error(name, names)
        pieces.append(_piece(names[name], known))
    return ", ".join(piece for piece in pieces if piece)


def quoted(text: str) -> str:
    """A word in quotes, with quotes inside it doubled."""
    quote = '"' if "'" in text and '"' not in text else "'"
    return quote + text.replace(quote, 2 * quote) + quote


def _piece(column: str, known: Any) -> str:
    name = quoted(column)
    if is_unknown(known):
        return ""
    if isinstance(known, tuple):
        if len(known) != 2:
            raise _unreadable(column, known)
        return _interval(name, column, *known)
    if isinstance(known, slice):
        if known.step is not None:
            raise _unreadable(column, known)
        return _interval(name, column, known.start, known.stop)
    if all(hasattr(known, part) for part in ("left", "right", "closed")):
        return _interval(name, column, known.left, known.right, str(known.closed))
    if isinstance(known, (set, frozenset, list, range, np.ndarray)):
        cells = [_cell(column, cell) for cell in known]
        if not cells:
            raise BorniteError(f"column '{column}': an empty set has probability 0")
        return f"{name} in {{{', '.join(sorted(set(cells)))}}}"
    return f"{name}={_cell(column, known)}"


def _cell(column: str, cell: Any) -> str:
    if isinstance(cell, str):
        return quoted(cell)
    if isinstance(cell, (bool, np.bool_)):
        return str(int(cell))
    if isinstance(cell, (int, np.integer)):
        return str(int(cell))
    if isinstance(cell, (float, np.floating)):
        return repr(float(cell))
    moment = time_text(cell)
    if moment is not None:
        return quoted(moment)
    raise _unreadable(column, cell)


def _interval(name: str, column: str, low: Any, high: Any, closed: str = "left") -> str:
    def end(x: Any) -> float | int | str | None:
        if x is None:
            return None
        moment = time_text(x)
        if moment is not None:
            return moment
        if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
            # Beyond 2**53, a float would be a different number.
            return int(x)
        if isinstance(x, str) or not hasattr(x, "__float__"):
            raise _unreadable(column, (low, high))
        number = float(x)
        if math.isnan(number):
            raise _unreadable(column, (low, high))
        return None if math.isinf(number) else number

    a, b = end(low), end(high)
    pieces = []
    if a is not None:
        pieces.append(f"{name} {'>=' if closed in ('left', 'both') else '>'} {a!r}")
    if b is not None:
        pieces.append(f"{name} {'<=' if closed in ('right', 'both') else '<'} {b!r}")
    if isinstance(a, str) is not isinstance(b, str) and a is not None and b is not None:
        raise _unreadable(column, (low, high))
    if a is not None and b is not None and a > b:  # type: ignore[operator]
        raise BorniteError(f"column '{column}': the interval from {a} to {b} is not in order")
    return ", ".join(pieces)


def _unreadable(column: str, known: Any) -> ArgumentError:
    return ArgumentError(
        f"column '{column}': expected a value, a set or list of values, an interval (low, high), or None, "
        f"found {shown(known)}"
    )

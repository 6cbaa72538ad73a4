"""Exceptions that are also of the class that Python's own functions raise."""

from __future__ import annotations

from bornite._bornite import BorniteError


class ArgumentError(BorniteError, TypeError):
    """An argument of a type that is not understood."""


class ColumnError(BorniteError, KeyError):
    """A column that the model, or a table, does not have."""

    __str__ = BorniteError.__str__

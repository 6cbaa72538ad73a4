"""Exceptions that are also instances of Python's built-in ones, and checks of arguments."""

from __future__ import annotations

from operator import index
from typing import Any

from bornite._bornite import BorniteError

_SHOWN = 60
"""The maximum number of characters of an argument in a message."""


class ArgumentError(BorniteError, TypeError):
    """An argument of an unsupported type."""


class ColumnError(BorniteError, KeyError):
    """A column that the model, or a table, does not have."""

    __str__ = BorniteError.__str__


def shown(value: Any) -> str:
    """A value for a message, truncated if it is long."""
    try:
        text = repr(value)
    except Exception:  # Such as a whole number of too many digits.
        text = f"something of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def check_whole(**arguments: Any) -> None:
    """Rejects arguments that are not whole numbers of at least 0."""
    for name, value in arguments.items():
        try:
            number = index(value)
        except TypeError:
            raise ArgumentError(f"{name}={shown(value)}: give a whole number") from None
        if not 0 <= number < 2**64:
            raise BorniteError(f"{name}={shown(value)}: give a whole number of at least 0 and below 2**64")


def check_numbers(**arguments: Any) -> None:
    """Rejects arguments that are not numbers."""
    for name, value in arguments.items():
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(f"{name}={shown(value)}: give a number") from None


def check_text(**arguments: Any) -> None:
    """Rejects arguments that are not text."""
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise ArgumentError(f"{name}={shown(value)}: give text")


def not_none(**arguments: Any) -> dict[str, Any]:
    """The arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}

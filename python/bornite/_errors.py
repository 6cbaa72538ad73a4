"""Exceptions that are also instances of Python's built-in ones, and checks of arguments."""

from __future__ import annotations

from operator import index
from os import PathLike
from typing import Any

import numpy as np

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


def check_flag(**arguments: Any) -> None:
    """Rejects arguments that are not True or False."""
    for name, value in arguments.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(f"{name}={shown(value)}: give True or False")


def check_path(**arguments: Any) -> None:
    """Rejects arguments that are not paths."""
    for name, value in arguments.items():
        if not isinstance(value, (str, PathLike)):
            raise ArgumentError(f"{name}={shown(value)}: give a path")


def check_bytes(**arguments: Any) -> None:
    """Rejects arguments that are not bytes."""
    for name, value in arguments.items():
        if not isinstance(value, bytes):
            raise ArgumentError(f"{name}={shown(value)}: give bytes")


def listed(**arguments: Any) -> list[Any]:
    """The items of the argument, which must be a list or another iterable."""
    ((name, value),) = arguments.items()
    try:
        return list(value)
    except TypeError:
        raise ArgumentError(f"{name}={shown(value)}: give a list") from None


def levels_of(**arguments: Any) -> tuple[list[float], tuple[int, ...]]:
    """The numbers of the argument, a number or an array of them, and its shape."""
    ((name, value),) = arguments.items()
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name}={shown(value)}: give a number, or an array of numbers") from None
    return [float(number) for number in numbers.ravel()], numbers.shape


def not_none(**arguments: Any) -> dict[str, Any]:
    """The arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}

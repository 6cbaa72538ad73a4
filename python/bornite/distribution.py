"""The distribution of one column of a model."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import numpy as np

from bornite import _notebook, _tables
from bornite._bornite import TableModel
from bornite._errors import levels_of
from bornite._evidence import quoted
from bornite._tables import Field, Frame

SHOWN_VALUES, SHOWN_POINTS = 12, 60
"""How much notebooks show of a distribution."""


class Distribution:
    """The exact distribution of one column, from ``Model.marginal``.

    >>> import numpy as np
    >>> import bornite
    >>> rows = {"x": np.random.default_rng(0).normal(size=300), "y": ["a", "b", "b"] * 100}
    >>> model = bornite.fit(rows, epochs=20)
    >>> model.marginal("y").probabilities.keys()
    dict_keys(['a', 'b'])
    >>> x = model.marginal("x", given={"y": "b"})
    >>> bool(np.isclose(x.cdf(x.quantile(0.2)), 0.2))
    True
    """

    def __init__(
        self, core: TableModel, kind: str, field: Field, column: str, place: int
    ) -> None:
        self._core = core
        self._kind = kind
        self._field = field
        self._column = column
        self._place = place
        self._schema: list[dict[str, Any]] = json.loads(core.schema())["columns"]

    @property
    def column(self) -> Any:
        """The name of the column."""
        return self._field.name

    def __repr__(self) -> str:
        return f"<Distribution of '{self._column}'>"

    def _repr_html_(self) -> str:
        title = f"<p>{escape(self._column)}</p>"
        shares = self.probabilities
        if shares is not None:
            likely = sorted(shares.items(), key=lambda share: -share[1])[:SHOWN_VALUES]
            left = 1.0 - sum(p for _, p in likely)
            more = [("others", left)] if len(shares) > len(likely) else []
            return title + _notebook.bars(likely + more)
        if self._field.cells in ("word", "time"):
            return title + _notebook.table(("most likely",), [(self.mode,)])
        x = np.unique(self.quantile(np.linspace(0.005, 0.995, SHOWN_POINTS)))
        if len(x) < 3:
            return title + _notebook.table(("median",), [(self.quantile(0.5),)])
        # The mean density between two quantiles is finite even at atoms.
        middle, density = (x[1:] + x[:-1]) / 2, np.diff(self.cdf(x)) / np.diff(x)
        return title + _notebook.curve(middle, density)

    def log_density(self, x: Any) -> Any:
        """log p(x) for a value or an array of values; a log probability if the column is finite."""
        single = isinstance(x, str) or np.ndim(x) == 0
        frame = Frame({self._column: [x] if single else x})
        _, column = frame.read(0, self._column)
        table = [
            column if index == self._place else _tables.unknown(str(c["name"]), frame.height)
            for index, c in enumerate(self._schema)
        ]
        logs = self._core.log_prob(table, "error")
        return float(logs[0]) if single else logs

    def density(self, x: Any) -> Any:
        """p(x); a probability if the column is finite."""
        logs = self.log_density(x)
        return float(np.exp(logs)) if isinstance(logs, float) else np.exp(logs)

    def cdf(self, x: Any) -> Any:
        """The probability of all numbers up to and including x."""
        name = quoted(self._column)

        def below(number: float) -> float:
            if np.isnan(number):
                return float("nan")
            if np.isinf(number):
                return 1.0 if number > 0 else 0.0
            return float(np.exp(self._core.log_probability(f"{name} <= {number!r}")))

        numbers, shape = levels_of(x=x)
        found = np.array([below(number) for number in numbers])
        return found.reshape(shape) if shape else float(found[0])

    def quantile(self, q: Any) -> Any:
        """The quantile at level q, or at an array of levels."""
        levels, shape = levels_of(q=q)
        found = self._core.quantiles(self._column, levels, "")
        return found.reshape(shape) if shape else float(found[0])

    @property
    def mean(self) -> float:
        """The mean of a numeric column."""
        return self._core.mean(self._column, "")

    @property
    def var(self) -> float:
        """The variance of a numeric column."""
        return float(self._core.covariance([self._place])[1][0, 0])

    @property
    def std(self) -> float:
        """The standard deviation of a numeric column."""
        return float(np.sqrt(self.var))

    def _value(self, text: str) -> Any:
        """The cell that a text represents."""
        if self._field.cells == "time":
            return _tables.moment_of(text)
        if self._field.cells == "word":
            return {str(value): value for value in self._field.values or ()}.get(text, text)
        if text == "(other)" or not text:
            return None
        number = float(text)
        if self._field.cells == "truth":
            return number != 0
        return int(text) if self._field.cells == "whole" and number.is_integer() else number

    @property
    def mode(self) -> Any:
        """The most likely value, or the maximum of the density."""
        return self._value(self._core.mode(self._column, "")[0])

    @property
    def probabilities(self) -> dict[Any, float] | None:
        """The probability of every value; None if the column is continuous or has whole numbers with a wide range."""
        found = self._core.probabilities(self._column, "")
        return None if found is None else {self._value(text): p for text, p in found}

"""What a model answers: answers to questions, and unlikely rows with their reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bornite import _notebook


@dataclass(frozen=True)
class Answer:
    """The answer to a question."""

    kind: str
    """The kind of answer: a ``"probability"``, a ``"density"``, a ``"mean"`` and so on."""
    value: Any
    """The answer itself: a number, a label, or a dict of both by column."""
    log: float | None
    """The log of a probability or density."""
    probability: float | None
    """The probability of the most likely value."""
    bound: float | None
    """An upper bound on the probability of any value, if the search ended early; None if the answer is exact."""
    error: float | None
    """The standard error of an average over samples; None if the answer is exact."""
    notes: tuple[str, ...]
    """Further remarks, such as which values in the question were never seen and so have probability 0."""

    def _repr_html_(self) -> str:
        rows = [(self.kind, self.value)]
        if isinstance(self.value, dict):
            rows = [(self.kind, ", ".join(f"{name} = {value}" for name, value in self.value.items()))]
        more = {"log": self.log, "probability": self.probability, "at most": self.bound, "standard error": self.error}
        rows += [(name, number) for name, number in more.items() if number is not None]
        rows += [("note", note) for note in self.notes]
        return _notebook.table(("", "answer"), rows)


@dataclass(frozen=True)
class Contribution:
    """How surprising one cell is, given all other cells of its row."""

    column: Any
    """The column."""
    cell: str
    """The cell, as text."""
    log_conditional: float
    """log p(the cell | the others), in the units of the data."""
    log_standardized: float
    """The log conditional relative to a uniform distribution, over the interquartile range of numbers or over all
    values of a finite column, so that columns can be compared: 0 is as likely as under the uniform distribution, and −5
    is e⁵ times less likely."""


@dataclass(frozen=True)
class Anomaly:
    """A row and why it is unlikely."""

    row: int
    """Its position, from 0."""
    log_prob: float
    """Its log density."""
    contributions: tuple[Contribution, ...]
    """Its observed cells, the most surprising first."""

    def _repr_html_(self) -> str:
        cells = [(c.column, c.cell, c.log_conditional, c.log_standardized) for c in self.contributions]
        title = f"<p>row {self.row}, log density {_notebook.number(self.log_prob)}</p>"
        return title + _notebook.table(("column", "cell", "log p(cell | rest)", "standardized"), cells)

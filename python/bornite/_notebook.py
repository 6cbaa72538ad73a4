"""Output for notebooks: small pieces of HTML and SVG, with all text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from bornite import _bornite


class _Document(str):
    """Text that can be written to a file."""

    __slots__ = ()

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the text to a file, completely or not at all. A file that is replaced keeps its permissions."""
        _bornite.write_file(path, self.encode())


class Page(_Document):
    """An HTML page: a ``str`` that notebooks display in a frame, and that ``save`` writes to a file."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 40em; border: 1px solid #ccc"
        return f'<iframe srcdoc="{escape(str(self))}" style="{style}"></iframe>'


class Drawing(_Document):
    """A plot as SVG: a ``str`` that notebooks display, and that ``save`` writes to a file."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def number(x: float) -> str:
    """A number with four digits."""
    return f"{x:.4g}"


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """An HTML table; numbers are rounded."""

    def cell(tag: str, x: Any) -> str:
        is_number = isinstance(x, (float, np.floating))
        return f"<{tag}>{escape(number(float(x)) if is_number else str(x))}</{tag}>"

    lines = ["".join(cell("td", x) for x in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{''.join(cell('th', x) for x in head)}</tr></thead><tbody>{body}</tbody></table>"


def curve(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> str:
    """A small plot of a density."""
    width, height = 320, 80
    left, right, top = float(x[0]), float(x[-1]), float(np.max(y, initial=0.0))
    across = (x - left) / ((right - left) or 1.0) * width
    up = height - y / (top or 1.0) * (height - 4)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
    text = 'font-size="11" font-family="sans-serif" fill="currentColor"'
    return (
        f'<svg width="{width}" height="{height + 16}" viewBox="0 0 {width} {height + 16}">'
        f'<polygon points="0,{height} {points} {width},{height}" fill="#4c78a8" fill-opacity="0.35" stroke="#4c78a8"/>'
        f'<text x="0" y="{height + 13}" {text}>{escape(number(left))}</text>'
        f'<text x="{width}" y="{height + 13}" text-anchor="end" {text}>{escape(number(right))}</text></svg>'
    )


def bars(shares: Sequence[tuple[Any, float]]) -> str:
    """A small plot of probabilities."""
    most = max((p for _, p in shares), default=1.0) or 1.0
    bar = '<div style="background: #4c78a8; height: 0.8em; width: {:.1f}em"></div>'
    rows = [
        f"<tr><td>{escape(str(value))}</td><td>{p:.4f}</td><td>{bar.format(12 * p / most)}</td></tr>"
        for value, p in shares
    ]
    return f"<table><tbody>{''.join(rows)}</tbody></table>"

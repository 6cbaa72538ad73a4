"""The progress line of a fit: plain text on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

REDRAW = 0.1
"""Seconds between two lines if one overwrites the other, as in terminals and notebooks."""
LOG = 10.0
"""Seconds between two lines elsewhere, where all lines remain visible."""


class ProgressLine:
    """Shows the progress of a fit after every epoch, and passes the report on.

    >>> import io
    >>> line = ProgressLine(stream=io.StringIO())
    >>> report = {"width": 8, "epoch": 3, "epochs": 40, "train": -2.0, "valid": -2.5, "best": -2.25}
    >>> line(report)
    >>> line.close()
    >>> print(line.stream.getvalue(), end="")
    width 8, epoch 3 of 40: validation -2.500, best -2.250 nats per row, 0 s
    """

    def __init__(
        self, progress: Callable[[dict[str, Any]], bool | None] | None = None, *, stream: TextIO | None = None
    ) -> None:
        self.progress = progress
        self.stream = sys.stderr if stream is None else stream
        self.overwrites = self.stream.isatty() or "ipykernel" in sys.modules
        self.start = time.monotonic()
        self.shown: float | None = None
        self.length = 0
        self.text = ""
        self.pending = False

    def __call__(self, report: dict[str, Any]) -> bool | None:
        """Shows a report, now or later, and calls the caller's own function."""
        now = time.monotonic()
        best = report["best"] if report["best"] is not None else report["valid"]
        numbers = "" if best is None else f": validation {report['valid']:.3f}, best {best:.3f} nats per row"
        self.text = (
            f"width {report['width']}, epoch {report['epoch']} of {report['epochs']}{numbers}, {now - self.start:.0f} s"
        )
        self.pending = True
        every = REDRAW if self.overwrites else LOG
        if now - (self.start if self.shown is None else self.shown) >= every:
            self._show(now)
        return None if self.progress is None else self.progress(report)

    def _show(self, now: float) -> None:
        if self.overwrites:
            self.stream.write("\r" + self.text.ljust(self.length))
            self.length = len(self.text)
        else:
            self.stream.write(self.text + "\n")
        self.stream.flush()
        self.shown, self.pending = now, False

    def close(self) -> None:
        """Shows the last report and ends the line."""
        if self.pending:
            self._show(time.monotonic())
        if self.overwrites and self.length:
            self.stream.write("\n")
            self.stream.flush()

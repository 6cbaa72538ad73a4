"""Lossless compression of files."""

from __future__ import annotations

import warnings
from os import PathLike
from os.path import isfile, samefile
from typing import TYPE_CHECKING

from bornite import _bornite
from bornite._bornite import BorniteError
from bornite._errors import check_numbers, check_whole, not_none, shown

if TYPE_CHECKING:
    from bornite.model import Model


def compress_file(
    source: str | PathLike[str],
    target: str | PathLike[str],
    *,
    model: Model | None = None,
    time: float | None = 60.0,
    width: int | None = None,
    epochs: int | None = None,
    seed: int = 0,
    header: bool | None = None,
) -> tuple[int, int]:
    """Compresses a CSV, NPY, NPZ or IDX file losslessly; returns its size before and after, in bytes.

    Without a model, a small one is fitted to the first 8 MiB within ``time`` seconds and stored with the rows. Data
    that a model does not make smaller, and all other files, are compressed with zstd. ``decompress_file`` and ``bornite
    decompress`` on the command line restore the same bytes. Files are processed in segments of 8 MiB, so memory is
    bounded. ``header`` specifies whether the first line of a CSV file is a header; by default this is detected.

    >>> import bornite, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "sky.csv").write_text("sky,hours\\n" + "rain,1.5\\nsun,8.0\\nsun,7.5\\n" * 60)
    >>> before, after = bornite.compress_file(folder / "sky.csv", folder / "sky.brz", epochs=2)
    >>> after < before
    True
    >>> bornite.decompress_file(folder / "sky.brz", folder / "back.csv")
    >>> (folder / "back.csv").read_bytes() == (folder / "sky.csv").read_bytes()
    True
    """
    check_whole(seed=seed, **not_none(width=width, epochs=epochs))
    check_numbers(**not_none(time=time))
    _check_target(source, target)
    core = None if model is None else model._whole()
    before, after, interrupted = _bornite.compress_file(
        source, target, core, time=time, width=width, epochs=epochs, seed=seed, header=header
    )
    if interrupted:
        warnings.warn("the fit was interrupted: the best model so far was used", stacklevel=2)
    return before, after


def decompress_file(
    source: str | PathLike[str], target: str | PathLike[str], *, model: Model | None = None
) -> None:
    """Restores a compressed file, byte for byte. Needs ``model`` if the file was compressed with one."""
    _check_target(source, target)
    _bornite.decompress_file(source, target, None if model is None else model._whole())


def _check_target(source: str | PathLike[str], target: str | PathLike[str]) -> None:
    """Rejects a target that is also the source."""
    try:
        is_same = samefile(source, target)
    except (OSError, TypeError, ValueError):
        return  # One of them does not exist; any other problem shows when it is read.
    if is_same and isfile(target):
        raise BorniteError(f"{shown(str(target))} is also the source, which would be lost; give another name")

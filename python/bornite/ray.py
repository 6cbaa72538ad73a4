"""Models on a Ray cluster: rows are scored and filled where they are.

Needs Ray with its data library: ``pip install 'bornite[ray]'``. A dataset may be larger than the memory of all nodes; every
worker reads the model once. Results do not depend on the number of workers, and a worker or node that is lost is replaced.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bornite._bornite import BorniteError
from bornite.batches import Batches
from bornite.model import Model

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["anomalies", "impute", "map_batches", "score"]

_ROWS = 16384


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("bornite.ray needs Ray: pip install 'bornite[ray]'") from error


def score(
    dataset: Any,
    model: Model,
    *,
    columns: Sequence[str] | None = None,
    unseen: Literal["score", "unknown", "error"] = "score",
    workers: int | None = None,
    batch_size: int = _ROWS,
) -> Any:
    """The dataset with a column ``log_density``: the log density of every row, as ``Model.log_prob`` gives it.

    Ray does not keep the order of rows, so they keep their columns, or those in ``columns``.
    """
    task = model.batches("score", unseen=unseen, threads=1)
    return map_batches(dataset, task, keep=columns, workers=workers, batch_size=batch_size)


def impute(
    dataset: Any,
    model: Model,
    *,
    method: Literal["mean", "mode", "median", "sample"] = "median",
    seed: int = 0,
    workers: int | None = None,
    batch_size: int = _ROWS,
) -> Any:
    """The dataset with its missing values imputed, as ``Model.impute`` does it. Samples depend on the seed and on which
    rows are in a batch together."""
    task = model.batches("impute", method=method, seed=seed, threads=1)
    return map_batches(dataset, task, keep=[], workers=workers, batch_size=batch_size)


def anomalies(
    dataset: Any,
    model: Model,
    count: int = 10,
    *,
    unseen: Literal["score", "unknown", "error"] = "score",
    workers: int | None = None,
    batch_size: int = _ROWS,
) -> list[dict[str, Any]]:
    """The rows with the lowest log density as dicts with ``log_density``, the lowest first. Only these leave their nodes."""
    if count < 1:
        raise BorniteError(f"count={count}: give 1 or more")
    task = model.batches("score", unseen=unseen, threads=1)
    lowest = map_batches(dataset, task, keep=None, lowest=count, workers=workers, batch_size=batch_size)
    rows: list[dict[str, Any]] = lowest.take_all()
    # Batches come in any order.
    rows.sort(key=lambda row: (row["log_density"], repr(row)))
    return rows[:count]


def map_batches(
    dataset: Any,
    task: Batches,
    *,
    keep: Sequence[str] | None = None,
    lowest: int | None = None,
    workers: int | None = None,
    batch_size: int = _ROWS,
) -> Any:
    """The dataset with what an operation makes of its rows, from ``Model.batches`` with ``threads=1``: the columns that are made,
    next to those of the rows in ``keep``, or all of them. With ``lowest`` only so many rows of each batch, those
    with the smallest number in the first column that is made.

    ``workers`` are at most so many, one CPU each; by default all CPUs of the cluster but one, which Ray needs itself.
    """
    ray, data = _library("ray"), _library("ray.data")
    if workers is not None and workers < 1:
        raise BorniteError(f"workers={workers}: give 1 or more")
    if not ray.is_initialized():
        ray.init()
    most = max(1, int(ray.cluster_resources().get("CPU", 1)) - 1)
    pool = data.ActorPoolStrategy(min_size=1, max_size=min(workers or most, most))
    # The model travels once, not with every actor.
    shared = ray.put(task)
    return dataset.map_batches(
        _Worker,
        fn_constructor_args=(shared, None if keep is None else list(keep), lowest),
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=pool,
        num_cpus=1,
    )


class _Worker:
    """A process that does one operation."""

    def __init__(self, task: Any, keep: list[str] | None, lowest: int | None) -> None:
        ray = _library("ray")
        self.task: Batches = ray.get(task) if isinstance(task, ray.ObjectRef) else task
        self.keep, self.lowest = keep, lowest

    def __call__(self, batch: Any) -> Any:
        pyarrow = _library("pyarrow")
        made = self.task(batch)
        kept = batch if self.keep is None else batch.select(self.keep)
        for name in made.column_names:
            place = kept.column_names.index(name) if name in kept.column_names else None
            column = made.column(name)
            if place is None:
                kept = kept.append_column(name, column) if kept.num_columns else pyarrow.table({name: column})
            else:
                kept = kept.set_column(place, name, column)
        if self.lowest is not None:
            worth = np.asarray(made.column(0).to_numpy())
            order = np.argsort(worth, kind="stable")[: self.lowest]
            kept = kept.take(pyarrow.array(order))
        return kept

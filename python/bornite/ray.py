"""Models on a Ray cluster: score, impute and fit datasets where their rows are stored.

Needs Ray with its data library: ``pip install 'bornite[ray]'``. A dataset may be larger than the memory of all nodes; every
worker loads the model once. Results do not depend on the number of workers, and lost workers and nodes are replaced.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bornite import _bornite
from bornite._bornite import BorniteError
from bornite._tables import Frame
from bornite.batches import Batches
from bornite.fitting import Shared
from bornite.fitting import fit as _fit
from bornite.model import Model, _columns

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["anomalies", "fit", "impute", "map_batches", "score"]

_ROWS = 16384
# How often a worker is restarted, and how often a step is repeated if its answers were lost with a node.
_RESTARTS = 100
_REPEATS = 10


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("bornite.ray needs Ray: pip install 'bornite[ray]'") from error


def _count(ray: Any, workers: int | None) -> int:
    """The number of workers: at most one for each CPU except one."""
    if workers is not None and workers < 1:
        raise BorniteError(f"workers={workers}: give at least 1")
    if not ray.is_initialized():
        ray.init()
    most = max(1, int(ray.cluster_resources().get("CPU", 1)) - 1)
    return min(workers or most, most)


def score(
    dataset: Any,
    model: Model,
    *,
    columns: Sequence[str] | None = None,
    unseen: Literal["score", "unknown", "error"] = "score",
    workers: int | None = None,
    batch_size: int = _ROWS,
) -> Any:
    """The dataset with a column ``log_density``: the log density of every row, as in ``Model.log_prob``.

    Ray does not preserve the order of rows, so the result contains the columns of the rows, or those in ``columns``.
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
    """The dataset with its missing values imputed, as in ``Model.impute``. Samples depend on the seed and on which
    rows share a batch."""
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
    """The rows with the lowest log density as dicts with ``log_density``, lowest first. Only these rows leave their
    nodes."""
    if count < 1:
        raise BorniteError(f"count={count}: give at least 1")
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
    """Applies an operation of ``Model.batches``, with ``threads=1``, to the rows of a dataset: returns the new columns
    in addition to those in ``keep``, or to all columns. With ``lowest``, returns only this many rows of each batch, those
    with the smallest number in the first new column.

    ``workers`` is the maximum number of workers, with one CPU each; by default all CPUs of the cluster except one,
    which Ray itself needs.
    """
    ray, data = _library("ray"), _library("ray.data")
    pool = data.ActorPoolStrategy(min_size=1, max_size=_count(ray, workers))
    # The model is sent once, not with every actor.
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
    """A process that performs one operation."""

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


def fit(
    dataset: Any, *, workers: int | None = None, memory: int = 4 << 30, seed: int = 0, **settings: Any
) -> Model:
    """Fits a model to a dataset that is too large for one machine. The settings are those of ``bornite.fit``.

    Every worker holds some of the rows, encoded. Each step sends the weights to the workers, gets back the sums of the
    gradients of their rows, and adds them in a fixed order. The model is the same, bit for bit, for any number of
    workers, and the same as that of ``bornite.fit(files, memory=memory)`` if it reads the same rows in pieces. If a
    worker or node is lost, it is replaced and the step is repeated.

    The column types and the initial weights are inferred from a sample of rows, which this process holds: as many as
    fit into about ``memory`` bytes, at most a million. A dataset with no more rows than that is fitted in this process,
    with ``bornite.fit``.

    ``workers`` is the maximum number of workers; by default there is one for each CPU of the cluster except one. Each
    needs 64 rows per step: 8 workers are busy with ``batch=512``, the default for large tables, and 64, the maximum,
    with ``batch=4096``. ``sample_weight`` is the name of a column. Unless the dataset is fitted in this process,
    ``device`` is the CPU. If this process is lost, ``resume=`` continues from its last ``checkpoint=``, also with another
    number of workers.
    """
    if np.ndim(settings.get("sample_weight", 0)) > 0:
        raise BorniteError("sample_weight: give the name of a column of the dataset")
    ray = _library("ray")
    _library("ray.data")
    count = _count(ray, workers)
    blocks = _Blocks(ray, dataset)
    places = _bornite.sample_places(blocks.num_rows, blocks.num_columns, memory, seed)
    sample = blocks.rows(places)
    if len(places) == blocks.num_rows:
        return _fit(sample, memory=memory, seed=seed, **settings)
    pool = _Pool(ray, blocks, count)
    try:
        shared = Shared(sample, places.tolist(), blocks.num_rows, pool)
        return _fit(shared, memory=memory, seed=seed, **settings)
    finally:
        pool.close()


class _Blocks:
    """The rows of a dataset in the object store, in order."""

    def __init__(self, ray: Any, dataset: Any) -> None:
        self.ray = ray
        if not hasattr(dataset, "to_arrow_refs"):
            raise BorniteError(f"expected a Ray dataset, not {type(dataset).__name__}: see ray.data.read_parquet")
        options = dataset.context.execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            self.refs = dataset.to_arrow_refs()
        finally:
            options.preserve_order = before
        shape = ray.remote(_shape)
        shapes = ray.get([shape.remote(ref) for ref in self.refs])
        self.ends = np.cumsum([rows for rows, _ in shapes], dtype=np.int64)
        self.num_rows = int(self.ends[-1]) if shapes else 0
        self.num_columns = max((columns for _, columns in shapes), default=0)
        if not self.num_rows or not self.num_columns:
            raise BorniteError("the dataset has no rows; give one with at least one")

    def rows(self, places: Any) -> Any:
        """The rows at these positions, in ascending order, as a pyarrow table."""
        ray, pyarrow = self.ray, _library("pyarrow")
        take = ray.remote(_take)
        places = places.astype(np.int64)
        cuts = np.searchsorted(places, self.ends)
        starts, firsts = np.r_[0, self.ends[:-1]], np.r_[0, cuts[:-1]]
        parts = [
            take.remote(ref, places[first:cut] - start)
            for ref, start, first, cut in zip(self.refs, starts, firsts, cuts, strict=True)
            if cut > first
        ]
        return pyarrow.concat_tables(ray.get(parts), promote_options="default")

    def within(self, start: int, end: int) -> list[tuple[int, Any]]:
        """The blocks with rows at these positions, each paired with the number of rows before it."""
        starts = np.r_[0, self.ends[:-1]]
        return [
            (int(first), ref)
            for first, last, ref in zip(starts, self.ends, self.refs, strict=True)
            if first < end and last > start
        ]


def _shape(block: Any) -> tuple[int, int]:
    return block.num_rows, block.num_columns


def _take(block: Any, rows: Any) -> Any:
    return block.take(rows)


class _Pool:
    """The workers of a fit, as Ray actors. Ray restarts lost actors and repeats their tasks."""

    def __init__(self, ray: Any, blocks: _Blocks, count: int) -> None:
        self.ray, self.blocks, self.count = ray, blocks, count
        self.actors: list[Any] = []
        # What all of them read, and its sources. Kept for restarted workers.
        self.plan, self.fit, self.shared = None, b"", None

    def hold(self, plan: bytes) -> list[bytes]:
        # They hold no CPU once they are placed, because the tasks that read lost blocks again need one.
        actor = self.ray.remote(
            max_restarts=_RESTARTS, max_task_retries=-1, scheduling_strategy="SPREAD"
        )(_Holder)
        of, self.plan = min(self.count, _bornite.Worker.most(plan)), self.ray.put(plan)
        for number in range(of):
            blocks = self.blocks.within(*_bornite.Worker(plan, number, of).wanted())
            self.actors.append(actor.remote([self.plan, number, of], blocks))
        return self._all("held")

    def ask(self, fit: bytes, step: bytes) -> list[bytes]:
        if fit != self.fit:
            self.fit, self.shared = fit, self.ray.put(fit)
        return self._all("answer", self.shared, self.ray.put(step))

    def _all(self, method: str, *arguments: Any) -> list[bytes]:
        errors = self.ray.exceptions
        for repeat in range(_REPEATS + 1):
            try:
                asked = [getattr(actor, method).remote(*arguments) for actor in self.actors]
                answers: list[bytes] = self.ray.get(asked)
                return answers
            except errors.RayTaskError as error:
                if isinstance(error.cause, BorniteError):
                    raise error.cause from None
                raise
            except (errors.ActorUnavailableError, errors.ObjectLostError) as error:
                # Answers depend only on the question.
                if repeat == _REPEATS:
                    raise BorniteError(f"workers keep getting lost: {str(error).splitlines()[0]}") from None
            except errors.RayActorError as error:
                raise BorniteError(f"a worker was lost: {str(error).splitlines()[0]}") from None
        raise AssertionError

    def close(self) -> None:
        for actor in self.actors:
            self.ray.kill(actor)


class _Holder:
    """A process that holds rows of a dataset and computes their gradients."""

    def __init__(self, place: list[Any], blocks: list[tuple[int, Any]]) -> None:
        self.place, self.blocks = place, blocks
        self.worker: _bornite.Worker | None = None

    def held(self) -> bytes:
        return self._loaded().held()

    def answer(self, fit: bytes, step: bytes) -> bytes:
        return self._loaded().answer(fit, step)

    def _loaded(self) -> _bornite.Worker:
        _bornite.set_threads(1)
        if self.worker is None:
            ray = _library("ray")
            plan, number, of = self.place
            worker = _bornite.Worker(ray.get(plan), number, of)
            names = worker.columns()
            for first, ref in self.blocks:
                start, end = worker.wanted()
                rows = ray.get(ref).slice(start - first, end - start)
                worker.add(_columns(Frame(rows), names, names))
            self.worker = worker
        return self.worker

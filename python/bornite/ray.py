"""Models on a Ray cluster: rows are scored, filled and learned from where they are.

Needs Ray with its data library: ``pip install 'bornite[ray]'``. A dataset may be larger than the memory of all nodes; every
worker reads the model once. Results do not depend on the number of workers, and a worker or node that is lost is replaced.
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
from bornite.model import Model, Shared, _columns
from bornite.model import fit as _fit

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["anomalies", "fit", "impute", "map_batches", "score"]

_ROWS = 16384
# How often a worker is made again, and how often a step is repeated whose answers were lost with a node.
_RESTARTS = 100
_REPEATS = 10


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("bornite.ray needs Ray: pip install 'bornite[ray]'") from error


def _count(ray: Any, workers: int | None) -> int:
    """How many workers there are, at most one for each CPU but one."""
    if workers is not None and workers < 1:
        raise BorniteError(f"workers={workers}: give 1 or more")
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
    pool = data.ActorPoolStrategy(min_size=1, max_size=_count(ray, workers))
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


def fit(
    dataset: Any, *, workers: int | None = None, memory: int = 4 << 30, seed: int = 0, **settings: Any
) -> Model:
    """Fits a model to the rows of a dataset that one machine does not hold. Settings are those of ``bornite.fit``.

    Every worker holds some of the rows, encoded. In each step the weights go out to the workers, sums of the gradients of their rows come
    back, and these are added in an order of their own: the model is the same, bit for bit, for any number of workers, and that of
    ``bornite.fit(files, memory=memory)`` where it learns from the same rows in pieces. A worker or a node that is lost is
    replaced, and the step repeated.

    What the columns mean and where learning begins is found out from a sample of rows, which this process holds: as many as fit into
    about ``memory`` bytes, a million at most. A dataset that has no more rows than that is fitted here, by ``bornite.fit``.

    ``workers`` are at most so many, and by default one for each CPU of the cluster but one. Each needs 64 rows of a step: with
    ``batch=512``, as large tables have it, 8 workers have something to do, and with ``batch=4096`` 64, the most there are.
    Rows of a dataset that is not fitted here count alike, so that there is no ``sample_weight`` for them, and ``device`` is the processor.
    """
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
    """The rows of a dataset in the object store, in their order."""

    def __init__(self, ray: Any, dataset: Any) -> None:
        self.ray = ray
        if not hasattr(dataset, "to_arrow_refs"):
            raise BorniteError(f"expected a dataset of Ray, not {type(dataset).__name__}: see ray.data.read_parquet")
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
        """The rows of these places, in ascending order, as a table of pyarrow."""
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
        """The blocks with rows of these places, each after the number of rows before it."""
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
    """The workers of a fit, as actors of Ray: one that is lost is made again by Ray, which asks it again."""

    def __init__(self, ray: Any, blocks: _Blocks, count: int) -> None:
        self.ray, self.blocks, self.count = ray, blocks, count
        self.actors: list[Any] = []
        # What all of them read, and what it was made of. Kept for those that are made again.
        self.plan, self.fit, self.shared = None, b"", None

    def hold(self, plan: bytes) -> list[bytes]:
        # They hold no CPU once they are placed: lost blocks are read again by tasks that need one.
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
                # Answers are functions of what is asked.
                if repeat == _REPEATS:
                    raise BorniteError(f"workers are lost again and again: {str(error).splitlines()[0]}") from None
            except errors.RayActorError as error:
                raise BorniteError(f"a worker is lost: {str(error).splitlines()[0]}") from None
        raise AssertionError

    def close(self) -> None:
        for actor in self.actors:
            self.ray.kill(actor)


class _Holder:
    """A process that holds rows of a dataset and learns from them."""

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

"""Fits whose rows workers hold, without an engine: they are objects of this process."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import bornite
from bornite import _bornite
from bornite._tables import Frame
from bornite.fitting import Shared
from bornite.model import _columns

ROWS = 900
SETTINGS: dict[str, Any] = {"epochs": 2, "width": 2, "functions": 12, "batch": 256}


def table() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    age = rng.integers(20, 60, ROWS).astype(float)
    pay = 20 + age + rng.normal(size=ROWS)
    pay[::9] = np.nan
    return {"age": age, "pay": pay, "owner": np.where(age > 45, "yes", "no")}


class Local:
    """Workers that raise an error, once, instead of an answer."""

    def __init__(self, count: int, error: BaseException | None = None) -> None:
        self.count, self.error, self.asked = count, error, 0

    def hold(self, plan: bytes) -> list[bytes]:
        of = min(self.count, _bornite.Worker.most(plan))
        self.workers = [_bornite.Worker(plan, number, of) for number in range(of)]
        for worker in self.workers:
            names = worker.columns()
            while True:
                start, end = worker.wanted()
                if start == end:
                    break
                part = {name: cells[start : start + 70] for name, cells in table().items()}
                worker.add(_columns(Frame(part), names, names))
        return [worker.held() for worker in self.workers]

    def ask(self, fit: bytes, step: bytes) -> list[bytes]:
        self.asked += 1
        if self.asked == 3 and self.error is not None:
            raise self.error
        return [worker.answer(fit, step) for worker in self.workers]


def shared(workers: Any) -> Shared:
    places = _bornite.sample_places(ROWS, 3, 300 * 64 * 3, 0)
    sample = {name: cells[places] for name, cells in table().items()}
    return Shared(sample, places.tolist(), ROWS, workers)


def test_any_number_of_workers_gives_the_same_model() -> None:
    models = [bornite.fit(shared(Local(count)), **SETTINGS) for count in (1, 3, 9)]
    assert models[0].info["rows"] == ROWS - 30
    assert len({model._core.to_bytes() for model in models}) == 1
    again = [bornite.fit(shared(Local(n)), start=models[0], epochs=1) for n in (1, 2)]
    assert len({model._core.to_bytes() for model in again}) == 1


def test_an_interrupted_fit_ends_with_a_model() -> None:
    workers = Local(2, KeyboardInterrupt())
    with pytest.warns(UserWarning, match="interrupted"):
        model = bornite.fit(shared(workers), **SETTINGS)
    assert workers.asked == 4 and len(model.history) == 1


def test_what_workers_raise_is_raised() -> None:
    with pytest.raises(RuntimeError, match="^lost$"):
        bornite.fit(shared(Local(2, RuntimeError("lost"))), **SETTINGS)
    plan = b"{}"
    with pytest.raises(bornite.BorniteError, match="the row layout is damaged"):
        _bornite.Worker(plan, 0, 1)
    with pytest.raises(bornite.BorniteError, match="there is no worker 2 among 2"):
        _bornite.Worker(plan, 2, 2)


def test_bad_messages_are_refused() -> None:
    workers = Local(2)
    workers.ask = lambda fit, step: [worker.answer(fit[1:], step) for worker in workers.workers]  # type: ignore[method-assign]
    with pytest.raises(bornite.BorniteError, match="a message is damaged"):
        bornite.fit(shared(workers), **SETTINGS)
    workers = Local(2)
    workers.ask = lambda fit, step: [workers.workers[0].answer(fit, step)]  # type: ignore[method-assign]
    with pytest.raises(bornite.BorniteError, match="do not cover all shards"):
        bornite.fit(shared(workers), **SETTINGS)


def test_ray_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    import bornite.ray

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"bornite\[ray\]"):
        bornite.ray.fit(None)


def test_rows_of_workers_count_by_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = table()
    weighed = {**plain, "weight": np.where(plain["owner"] == "yes", 3.0, 1.0)}
    monkeypatch.setitem(globals(), "table", lambda: weighed)
    models = [bornite.fit(shared(Local(count)), sample_weight="weight", **SETTINGS) for count in (1, 3)]
    assert len({model._core.to_bytes() for model in models}) == 1
    assert "weight" not in {column["name"] for column in models[0].schema}
    share = np.average(plain["owner"] == "yes", weights=weighed["weight"])
    assert abs(models[0].query("P(owner='yes')") - share) < 0.05


def test_a_fit_continues_from_its_checkpoint(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "fit.ck"
    whole = bornite.fit(shared(Local(2)), **SETTINGS)

    with pytest.raises(RuntimeError, match="^lost$"):
        bornite.fit(shared(Local(2, RuntimeError("lost"))), checkpoint=file, checkpoint_every=0, **SETTINGS)
    # Also with another number of workers.
    for count in (1, 3):
        resumed = bornite.fit(shared(Local(count)), resume=file, **SETTINGS)
        assert resumed._core.to_bytes() == whole._core.to_bytes()
    rows = table()
    whole = bornite.fit(rows, **SETTINGS)
    with pytest.warns(UserWarning, match="interrupted"):
        bornite.fit(rows, checkpoint=str(file), progress=interrupt, **SETTINGS)
    assert bornite.fit(rows, resume=str(file), **SETTINGS)._core.to_bytes() == whole._core.to_bytes()


def interrupt(report: dict[str, Any]) -> None:
    raise KeyboardInterrupt


def test_bad_checkpoints_are_refused(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "fit.ck"
    with pytest.raises(bornite.BorniteError, match="fit.ck: cannot read the checkpoint"):
        bornite.fit(table(), resume=file, **SETTINGS)
    file.write_bytes(b"something else")
    with pytest.raises(bornite.BorniteError, match="fit.ck: not a checkpoint"):
        bornite.fit(table(), resume=file, **SETTINGS)
    with pytest.raises(bornite.BorniteError, match="no such folder"):
        bornite.fit(table(), checkpoint=tmp_path / "none" / "fit.ck", **SETTINGS)
    with pytest.raises(bornite.BorniteError, match="checkpoint_every"):
        bornite.fit(table(), checkpoint=file, checkpoint_every=-1, **SETTINGS)
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n1,2\n")
    with pytest.raises(bornite.BorniteError, match="would be overwritten"):
        bornite.fit(str(rows), checkpoint=rows, **SETTINGS)
    assert rows.read_text() == "a,b\n1,2\n"

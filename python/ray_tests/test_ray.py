"""Models on a Ray cluster of several nodes on this machine, with workers and nodes that are lost."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import ray
from ray.cluster_utils import Cluster

import bornite
import bornite.ray

ROWS = 4000


def rows(count: int = ROWS) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    age = rng.integers(20, 60, count).astype(float)
    pay = 20 + age + rng.normal(size=count)
    pay[::9] = np.nan
    return {"id": np.arange(count), "age": age, "pay": pay, "owner": age > 45}


@pytest.fixture(scope="module")
def model() -> bornite.Model:
    table = rows(600)
    del table["id"]
    return bornite.fit(table, epochs=5, width=4)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head and two more nodes, of two CPUs each as Ray counts them."""
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    for _ in range(2):
        nodes.add_node(num_cpus=2)
    ray.init(address=nodes.address, log_to_driver=False)
    nodes.wait_for_nodes()
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("rows")
    table = pyarrow.table({n: pyarrow.array(c, from_pandas=True) for n, c in rows().items()})
    for part in range(8):
        size = ROWS // 8
        pyarrow.parquet.write_table(table.slice(part * size, size), folder / f"part-{part}.parquet")
    return folder


def by_id(dataset: Any, column: str) -> Any:
    found = sorted(dataset.take_all(), key=lambda row: row["id"])
    assert [row["id"] for row in found] == list(range(ROWS))
    return np.array([row[column] for row in found])


def expected(model: bornite.Model) -> Any:
    table = rows()
    del table["id"]
    return model.log_prob(table)


def test_scores_are_those_of_one_machine(cluster: Cluster, model: bornite.Model, files: pathlib.Path) -> None:
    assert ray.cluster_resources()["CPU"] == 6
    for workers, batch in ((None, 500), (1, 300)):
        dataset = ray.data.read_parquet(str(files))
        scored = bornite.ray.score(dataset, model, columns=["id"], workers=workers, batch_size=batch)
        assert np.array_equal(by_id(scored, "log_density"), expected(model))


def test_cells_are_filled_as_on_one_machine(cluster: Cluster, model: bornite.Model, files: pathlib.Path) -> None:
    full = bornite.ray.impute(ray.data.read_parquet(str(files)), model, batch_size=500)
    table = rows()
    filled = model.impute({name: cells for name, cells in table.items() if name != "id"})
    assert np.array_equal(by_id(full, "pay"), filled["pay"])
    assert full.columns() == list(table)


def test_the_least_likely_rows_are_found(cluster: Cluster, model: bornite.Model, files: pathlib.Path) -> None:
    worst = bornite.ray.anomalies(ray.data.read_parquet(str(files)), model, 5, batch_size=333)
    logs = expected(model)
    assert [row["log_density"] for row in worst] == np.sort(logs)[:5].tolist()
    assert [logs[row["id"]] for row in worst] == [row["log_density"] for row in worst]


class Killer:
    """Scores, and ends the process of a worker once, in the middle."""

    def __init__(self, task: Any, mark: str) -> None:
        self.task, self.mark = task, pathlib.Path(mark)

    def __call__(self, batch: Any) -> Any:
        time.sleep(0.05)
        if 1500 <= batch.column("id")[0].as_py() < 2500 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return batch.append_column("log_density", self.task(batch).column("log_density"))


def test_a_worker_that_is_killed_loses_nothing(
    cluster: Cluster, model: bornite.Model, files: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    mark = tmp_path / "killed"
    scored = ray.data.read_parquet(str(files)).map_batches(
        Killer,
        fn_constructor_args=(model.batches("score", threads=1), str(mark)),
        batch_format="pyarrow",
        batch_size=100,
        compute=ray.data.ActorPoolStrategy(min_size=2, max_size=3),
        num_cpus=1,
    )
    assert np.array_equal(by_id(scored, "log_density"), expected(model))
    assert mark.exists(), "a worker was killed"


# Some thousand rows are a large table for a fit that may hold 1000 of them, and steps are of 4 chunks.
LARGE: dict[str, Any] = {"memory": 1000 * 64 * 3, "epochs": 3, "width": 4, "functions": 12, "batch": 256}


@pytest.fixture(scope="module")
def large() -> pyarrow.Table:
    """The same rows without their numbers, and with words."""
    cells = rows()
    pay, owner = pyarrow.array(cells["pay"], from_pandas=True), np.where(cells["owner"], "yes", "no")
    return pyarrow.table({"age": cells["age"], "pay": pay, "owner": owner})


@pytest.fixture(scope="module")
def parts(large: pyarrow.Table, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("large")
    pyarrow.parquet.write_table(large[:1300], folder / "0.parquet")
    pyarrow.parquet.write_table(large[1300:], folder / "1.parquet")
    return folder


@pytest.fixture(scope="module")
def learned(parts: pathlib.Path) -> bornite.Model:
    """The model of one machine."""
    return bornite.fit(str(parts / "*.parquet"), **LARGE)


def assert_same(model: bornite.Model, other: bornite.Model) -> None:
    assert (model.schema, model.info, model.history) == (other.schema, other.info, other.history)
    [one], [two] = model.circuits, other.circuits
    assert all(np.array_equal(a, b) for a, b in zip(one[1].weights, two[1].weights, strict=True))


class Holder(bornite.ray._Holder):
    """Notes its node, and ends its process once, in the middle of the fit."""

    folder = pathlib.Path()
    fatal = -1

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.asked = 0
        (self.folder / ray.get_runtime_context().get_node_id()).touch()

    def answer(self, fit: bytes, step: bytes) -> bytes:
        self.asked += 1
        if self.asked == self.fatal and self.place[1] == 1:
            (self.folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(fit, step)


def test_fits_are_those_of_one_machine(cluster: Cluster, learned: bornite.Model, large: pyarrow.Table) -> None:
    fitted = bornite.ray.fit(ray.data.from_arrow(large), workers=3, **LARGE)
    assert fitted.info["rows"] == 3900
    assert_same(fitted, learned)


def test_a_worker_that_is_killed_is_replaced_in_the_middle_of_a_fit(
    cluster: Cluster,
    learned: bornite.Model,
    large: pyarrow.Table,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # After a restart it is asked fewer times than that.
    fragile = type("Fragile", (Holder,), {"folder": tmp_path, "fatal": 28})
    monkeypatch.setattr(bornite.ray, "_Holder", fragile)
    fitted = bornite.ray.fit(ray.data.from_arrow([large[:2500], large[2500:]]), workers=2, **LARGE)
    assert (tmp_path / "killed").exists(), "a worker was killed"
    assert_same(fitted, learned)


def test_weights_and_checkpoints_are_those_of_one_machine(
    cluster: Cluster, large: pyarrow.Table, tmp_path: pathlib.Path
) -> None:
    weights = np.where(np.arange(ROWS) % 3 > 0, 1.0, 2.5)
    weighed = large.append_column("weight", pyarrow.array(weights))
    pyarrow.parquet.write_table(weighed, tmp_path / "all.parquet")
    settings = {**LARGE, "memory": 1000 * 64 * 4, "sample_weight": "weight"}
    own = bornite.fit(str(tmp_path / "all.parquet"), **settings)
    file = tmp_path / "fit.ck"

    def stop(report: dict[str, Any]) -> bool:
        return False

    dataset = ray.data.from_arrow(weighed)
    bornite.ray.fit(dataset, workers=2, checkpoint=file, progress=stop, **settings)
    for resume in (None, file):
        assert_same(bornite.ray.fit(dataset, workers=3, resume=resume, **settings), own)
    with pytest.raises(bornite.BorniteError, match="name of a column"):
        bornite.ray.fit(dataset, sample_weight=weights)


def test_small_datasets_are_fitted_as_tables(cluster: Cluster) -> None:
    table = {name: cells for name, cells in rows(300).items() if name != "id"}
    dataset = ray.data.from_arrow(pyarrow.table(table))
    fitted = bornite.ray.fit(dataset, epochs=2, width=2)
    assert fitted.info == bornite.fit(pyarrow.table(table), epochs=2, width=2).info


def test_the_recipe_of_the_guide_runs(cluster: Cluster) -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "guide" / "scale.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python( \w+)?\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {"__name__": "guide"}
    # The block that fits the model, and those of Ray.
    own = [code for name, code in blocks if name == " ray" or (not name and "\nmodel = bornite.fit(" in code)]
    assert len(own) == 3
    for code in own:
        exec(compile(code, "scale.md", "exec"), names)


def test_a_node_that_is_lost_loses_nothing(cluster: Cluster, model: bornite.Model, files: pathlib.Path) -> None:
    """The last test: a node is gone after it."""
    node = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    scored = bornite.ray.score(ray.data.read_parquet(str(files)), model, columns=["id"], batch_size=50)
    found = []
    for number, row in enumerate(scored.iter_rows()):
        found.append(row)
        if number == 200:
            cluster.remove_node(node, allow_graceful=False)
    found.sort(key=lambda row: row["id"])
    assert [row["id"] for row in found] == list(range(ROWS))
    assert np.array_equal([row["log_density"] for row in found], expected(model))


def test_a_node_that_is_lost_in_the_middle_of_a_fit(
    cluster: Cluster,
    learned: bornite.Model,
    large: pyarrow.Table,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    monkeypatch.setattr(bornite.ray, "_Holder", type("Marked", (Holder,), {"folder": tmp_path}))

    lost = []

    def lose(report: dict[str, Any]) -> None:
        if not lost:
            # One that has a worker.
            lost.append(next(n for n in cluster.worker_nodes if (tmp_path / n.node_id).exists()))
            cluster.remove_node(lost[0], allow_graceful=False)

    # Blocks that tasks have made, which can make them again.
    halves = ray.data.from_arrow([large[:2500], large[2500:]])
    dataset = halves.map_batches(lambda batch: batch, batch_format="pyarrow")
    fitted = bornite.ray.fit(dataset, workers=4, progress=lose, **LARGE)
    assert lost
    assert_same(fitted, learned)


def test_bad_arguments_are_refused(cluster: Cluster, model: bornite.Model) -> None:
    dataset = ray.data.from_items([{"age": 1.0}])
    with pytest.raises(bornite.BorniteError, match="workers=0"):
        bornite.ray.score(dataset, model, workers=0)
    with pytest.raises(bornite.BorniteError, match="count=0"):
        bornite.ray.anomalies(dataset, model, 0)
    with pytest.raises(bornite.BorniteError, match="workers=0"):
        bornite.ray.fit(dataset, workers=0)
    with pytest.raises(bornite.BorniteError, match="has no rows"):
        bornite.ray.fit(dataset.filter(lambda row: row["age"] > 1))
    with pytest.raises(bornite.BorniteError, match="a Ray dataset, not dict"):
        bornite.ray.fit({"age": [1.0]})
    # What is wrong with the rows or the settings is said as on one machine.
    columns = {"x": np.arange(400.0) % 7, "word": np.arange(400) % 2, "less": 2 - np.arange(400) // 100}
    many = ray.data.from_arrow(pyarrow.table(columns))
    small = {"memory": 100 * 64 * 2, "epochs": 1}
    with pytest.raises(bornite.BorniteError, match="no column 'wrd'"):
        bornite.ray.fit(many, target="wrd", **small)
    with pytest.raises(bornite.BorniteError, match="column 'less': the weight '-1' is not a number"):
        bornite.ray.fit(many, sample_weight="less", **small)
    with pytest.raises(bornite.BorniteError, match="CUDA"):
        bornite.ray.fit(many, device="cuda", **small)

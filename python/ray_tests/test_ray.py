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


def test_the_recipe_of_the_guide_runs(cluster: Cluster) -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "guide" / "scale.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python( \w+)?\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {"__name__": "guide"}
    for wanted in ("", " ray"):
        # Of the blocks that need nothing else, the one that fits the model.
        code = next(code for name, code in blocks if name == wanted and "model" in code)
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


def test_bad_arguments_are_refused(cluster: Cluster, model: bornite.Model) -> None:
    dataset = ray.data.from_items([{"age": 1.0}])
    with pytest.raises(bornite.BorniteError, match="workers=0"):
        bornite.ray.score(dataset, model, workers=0)
    with pytest.raises(bornite.BorniteError, match="count=0"):
        bornite.ray.anomalies(dataset, model, 0)

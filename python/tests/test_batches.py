"""Operations on batches of rows: pickled, in any kind of table, in and out of Arrow without a library of it."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import bornite
from bornite import _arrow, _arrow_out
from bornite.batches import Batches, RecordBatch, RecordBatchStream

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

COUNT = 240


def table(count: int = COUNT, *, holes: bool = True) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    age = rng.integers(20, 60, count).astype(float)
    city = np.where(age + rng.normal(size=count) * 9 > 40, "Bonn", "Ulm").astype(object)
    children = rng.integers(0, 4, count)
    owner = age > 45
    if holes:
        age[::7] = np.nan
        city[::5] = None
    return {"age": age, "city": city, "children": children, "owner": owner}


@pytest.fixture(scope="module")
def model() -> bornite.Model:
    return bornite.fit(table(), epochs=5, width=4)


class Batch:
    """A record batch of a library that nobody knows."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.batch.__arrow_c_array__(requested_schema)


def kinds() -> dict[str, Any]:
    rows = table()
    arrow = pyarrow.table({name: pyarrow.array(column, from_pandas=True) for name, column in rows.items()})
    (batch,) = arrow.combine_chunks().to_batches()
    return {
        "dict": rows,
        "pandas": pandas.DataFrame(rows, index=np.arange(COUNT) + 100),
        "polars": polars.from_arrow(arrow),
        "table": arrow,
        "batch": batch,
        "unknown": Batch(batch),
        "ours": RecordBatch(rows),
    }


def column(result: Any, name: str) -> Any:
    cells = result[name]
    return np.asarray(cells.to_numpy(zero_copy_only=False) if isinstance(cells, pyarrow.Array) else cells.to_numpy() if hasattr(cells, "to_numpy") else cells)


@pytest.mark.parametrize("kind", list(kinds()))
def test_every_kind_of_table_gives_the_same(model: bornite.Model, kind: str) -> None:
    rows, batch = table(), kinds()[kind]
    logs = model.log_prob(rows)
    found = model.batches("score")(batch)
    assert np.array_equal(column(found, "log_density"), logs)
    assert type(found) is (RecordBatch if kind in ("unknown", "ours") else type(batch))
    assert np.array_equal(column(model.batches("anomaly")(batch), "anomaly_score"), -logs)
    expected = model.impute(rows)
    full = model.batches("impute")(batch)
    assert type(full) is type(found)
    for name in rows:
        assert column(full, name).tolist() == np.asarray(expected[name]).tolist(), name
    ask = model.batches("query", question="P(owner=1 | children < 3)")
    some = {name: cells[rows["children"] < 3] for name, cells in rows.items()}
    asked = ask(some)["probability"]
    direct = model.query(f"P(owner=1 | city='{some['city'][1]}', children={some['children'][1]}, age={some['age'][1]})")
    assert asked.shape == (len(some["age"]),) and np.isclose(asked[1], direct, rtol=1e-9)
    predicted = model.batches("predict", column="age", interval=0.8)(batch)
    assert np.array_equal(column(predicted, "age"), model.predict(rows, "age"))
    low, high = model.quantile("age", [0.1, 0.9], given=pandas.DataFrame(rows)).T
    assert np.allclose(column(predicted, "age low"), low) and np.allclose(column(predicted, "age high"), high)
    proba = model.batches("predict", column="city", proba=True)(batch)
    assert np.array_equal(column(proba, "city=Bonn"), model.predict_proba(rows, "city")["Bonn"])


def test_pieces_are_the_whole(model: bornite.Model) -> None:
    rows = table()
    pieces = [{name: cells[start : start + 50] for name, cells in rows.items()} for start in range(0, COUNT, 50)]
    for operation in (model.batches("impute", method="sample", seed=4), model.batches("sample", seed=4)):
        whole = operation(rows, start=0)
        found = list(operation.stream(iter(pieces)))
        for name in whole:
            joined = np.concatenate([batch[name] for batch in found])
            assert joined.tolist() == np.asarray(whole[name]).tolist(), name
    assert model.batches("impute", method="sample", seed=4)(rows, start=0)["age"].tolist() == (
        model.impute(rows, method="sample", seed=4)["age"].tolist()
    )
    draw = model.batches("sample", seed=9)
    drawn = model.sample(30, seed=9)
    assert draw(30)["age"].tolist() == drawn["age"].tolist()
    assert draw(10, start=20)["age"].tolist() == drawn["age"][20:].tolist()
    # Without a place, other cells give other draws.
    a, b = (draw({"id": np.arange(n, n + 40)})["age"].tolist() for n in (0, 40))
    assert a != b and a == draw({"id": np.arange(40)})["age"].tolist()


def test_streams_are_lazy_and_read_by_libraries(model: bornite.Model) -> None:
    rows = table()
    made = []

    def source() -> Any:
        for start in range(0, COUNT, 60):
            made.append(start)
            yield {name: cells[start : start + 60] for name, cells in rows.items()}

    stream = model.batches("score").stream(source())
    assert not made
    reader = pyarrow.RecordBatchReader.from_stream(stream)
    assert len(made) <= 1
    found = reader.read_all()
    assert len(made) == 4 and found.num_rows == COUNT
    assert np.array_equal(found.column("log_density").to_numpy(), model.log_prob(rows))
    arrow = pyarrow.table({name: pyarrow.array(cells, from_pandas=True) for name, cells in rows.items()})
    again = model.batches("impute").stream(arrow.to_reader(max_chunksize=33))
    frame = polars.DataFrame(again)
    assert frame["age"].to_list() == model.impute(rows)["age"].tolist()
    assert frame["city"].null_count() == 0


def test_errors_of_streams_reach_the_reader(model: bornite.Model) -> None:
    good = table()
    bad = {**good, "age": good["city"]}
    stream = model.batches("score").stream(iter([good, bad]))
    reader = pyarrow.RecordBatchReader.from_stream(stream)
    reader.read_next_batch()
    with pytest.raises(Exception, match="age"):
        reader.read_next_batch()
    with pytest.raises(bornite.BorniteError, match="age"):
        _arrow.columns(model.batches("score").stream(iter([good, bad])))


def test_arrow_out_and_in_is_the_same() -> None:
    columns = {
        "float": np.array([1.5, np.nan, -0.0]),
        "single": np.array([1.5, 2.5, np.inf], np.float32),
        "whole": np.array([1, -2, 3]),
        "byte": np.array([1, 2, 255], np.uint8),
        "big": np.array([1, 2, 3], ">i4"),
        "truth": np.array([True, False, True]),
        "text": np.array(["é", "", "long" * 10]),
        "maybe": np.array(["x", None, "z"], object),
        "holed": np.array([1, None, 3], object),
        "unsure": np.array([True, None, False], object),
        "none": np.array([None, None, None], object),
    }
    batch = RecordBatch(columns)
    arrow = pyarrow.record_batch(batch)
    arrow.validate(full=True)
    assert arrow.schema.field("byte").type == pyarrow.uint8()
    assert arrow.schema.field("maybe").type == pyarrow.string()
    assert arrow.column("float").null_count == 1
    for name, cells in columns.items():
        expected = [None if c is None or c != c else c for c in cells.tolist()]
        assert arrow.column(name).to_pylist() == expected, name
    # And by this package's own reader.
    for reader in (batch, Batch(batch), RecordBatchStream(iter([batch, batch]))):
        for name, cells in _arrow.columns(reader):
            expected = [None if c is None or c != c else c for c in columns[name].tolist()]
            times = 2 if isinstance(reader, RecordBatchStream) else 1
            assert [None if c != c else c for c in cells.tolist()] == expected * times, name
    assert pyarrow.record_batch(RecordBatch({"x": np.zeros(0)})).num_rows == 0


def test_what_is_handed_out_lives_as_long_as_it_is_used_and_no_longer(model: bornite.Model) -> None:
    gc.collect()
    before = len(_arrow_out._held)
    numbers = np.arange(100_000, dtype=float)
    arrow = pyarrow.record_batch(RecordBatch({"x": numbers}))
    expected = numbers.sum()
    # The buffer is the array's own.
    assert arrow.column("x").buffers()[1].address == numbers.ctypes.data
    del numbers
    gc.collect()
    kept = arrow.column("x")
    del arrow
    gc.collect()
    assert kept.to_numpy().sum() == expected
    del kept
    # Capsules that nobody takes, streams that nobody reads to the end.
    RecordBatch({"x": np.arange(3.0)}).__arrow_c_array__()
    RecordBatch({"x": np.arange(3.0)}).__arrow_c_schema__()
    RecordBatch({"x": np.arange(3.0)}).__arrow_c_stream__()
    reader = pyarrow.RecordBatchReader.from_stream(model.batches("score").stream(iter([table(), table()])))
    reader.read_next_batch()
    del reader
    gc.collect()
    assert len(_arrow_out._held) == before


def test_threads_of_a_caller_may_release() -> None:
    gc.collect()
    before = len(_arrow_out._held)

    def work() -> None:
        for _ in range(50):
            pyarrow.table(RecordBatch({"x": np.arange(100.0), "y": np.array(["a"] * 100)}))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert len(_arrow_out._held) == before


def test_pickles_are_small_and_load_the_model_once(model: bornite.Model) -> None:
    score = model.batches("score", threads=1)
    first, second = (pickle.loads(pickle.dumps(score)) for _ in range(2))
    assert first._model._core is second._model._core
    assert np.array_equal(first(table())["log_density"], score(table())["log_density"])
    view = model.marginal(["age", "owner"]).batches("score")
    rows = {name: cells for name, cells in table().items() if name in ("age", "owner")}
    assert np.array_equal(pickle.loads(pickle.dumps(view))(rows)["log_density"], view(rows)["log_density"])
    given = model.conditional({"owner": True}).batches("sample", given={"children": 2})
    drawn = pickle.loads(pickle.dumps(given))(20)
    assert drawn["owner"].all() and (drawn["children"] == 2).all()


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_work_on_batches(model: bornite.Model, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    rows = table()
    pieces = [{name: cells[start : start + 60] for name, cells in rows.items()} for start in range(0, COUNT, 60)]
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks next to threads
        with multiprocessing.get_context(method).Pool(2) as pool:
            found = pool.map(model.batches("score", threads=1), pieces)
    assert np.array_equal(np.concatenate([f["log_density"] for f in found]), model.log_prob(rows))


def test_nothing_but_numpy_is_needed(model: bornite.Model, tmp_path: Any) -> None:
    model.save(tmp_path / "m.model")
    code = """
import sys
for name in ("pandas", "polars", "pyarrow"):
    sys.modules[name] = None
import numpy as np, bornite
from bornite.batches import RecordBatch
model = bornite.Model.load(sys.argv[1])
rows = RecordBatch({"age": np.array([30.0, np.nan]), "city": np.array(["Bonn", None], object),
                    "children": np.array([1, 2]), "owner": np.array([True, False])})
full = model.batches("impute").stream(rows)
(batch,) = full
assert batch["city"][1] in ("Bonn", "Ulm"), batch["city"]
assert len(model.batches("score")(rows)["log_density"]) == 2
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.model")], check=True)


def test_numbers_of_threads_give_the_same_bits(model: bornite.Model) -> None:
    rows = table()
    found = [model.batches("impute", method="sample", threads=n)(rows, start=0)["age"] for n in (None, 1, 2)]
    assert all(np.array_equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"operation": "fly"}, "choose one of score"),
        ({"operation": "predict"}, "column="),
        ({"operation": "score", "column": "age"}, "column="),
        ({"operation": "query"}, "question="),
        ({"operation": "score", "threads": 0}, "threads=0"),
        ({"operation": "predict", "column": "age", "interval": 2.0}, "interval=2.0"),
    ],
)
def test_bad_settings_are_refused(model: bornite.Model, settings: dict[str, Any], part: str) -> None:
    with pytest.raises(bornite.BorniteError, match=part):
        Batches(model, **settings)


def test_bad_batches_are_refused(model: bornite.Model) -> None:
    with pytest.raises(bornite.ColumnError, match="children"):
        model.batches("score")({"age": np.array([1.0]), "city": ["Bonn"], "owner": [True]})
    with pytest.raises(bornite.ArgumentError, match="iterable of batches"):
        model.batches("score").stream(table()).__iter__().__next__()
    with pytest.raises(bornite.BorniteError, match="row by row"):
        model.batches("query", question="std(age)")(table())

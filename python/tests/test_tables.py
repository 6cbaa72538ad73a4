"""Tables of every kind go in, and come out as they went in."""

import datetime
import json
from typing import Any

import numpy as np
import pytest

import bornite
from bornite import ColumnError, Model, _forms

pandas: Any = pytest.importorskip("pandas")
polars: Any = pytest.importorskip("polars")
pyarrow: Any = pytest.importorskip("pyarrow")

ROWS = 60
RNG = np.random.default_rng(11)
HOLES = RNG.random((ROWS, 6)) < 0.2
COLUMNS: dict[str, list[Any]] = {
    "real": RNG.normal(size=ROWS).astype(np.float32).tolist(),
    "whole": RNG.integers(0, 6, ROWS).tolist(),
    "truth": (RNG.random(ROWS) > 0.4).tolist(),
    "word": RNG.choice(["a", "b", "c"], ROWS).tolist(),
    "class": RNG.choice(["x", "y"], ROWS).tolist(),
    "number": RNG.choice([10, 20], ROWS).tolist(),
}


def with_holes() -> dict[str, list[Any]]:
    return {
        name: [None if HOLES[row, k] else cell for row, cell in enumerate(cells)]
        for k, (name, cells) in enumerate(COLUMNS.items())
    }


def pandas_table() -> Any:
    table = pandas.DataFrame(with_holes(), index=np.arange(100, 100 + ROWS))
    return table.astype(
        {
            "real": "float32",
            "whole": "Int16",
            "truth": "boolean",
            "word": "string",
            "class": "category",
            "number": pandas.CategoricalDtype([10, 20], ordered=True),
        }
    )


def polars_table() -> Any:
    schema = {
        "real": polars.Float32,
        "whole": polars.Int8,
        "truth": polars.Boolean,
        "word": polars.String,
        "class": polars.Enum(["x", "y", "z"]),
        "number": polars.UInt16,
    }
    return polars.DataFrame(with_holes(), schema=schema)


def pyarrow_table() -> Any:
    types = [
        pyarrow.float32(),
        pyarrow.int32(),
        pyarrow.bool_(),
        pyarrow.large_string(),
        pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
        pyarrow.uint8(),
    ]
    schema = pyarrow.schema(list(zip(COLUMNS, types, strict=True)), metadata={"made": "here"})
    return pyarrow.table(with_holes(), schema=schema)


def dict_table() -> Any:
    table = {name: np.array(cells, dtype=object) for name, cells in with_holes().items()}
    table["real"] = table["real"].astype(np.float32)
    return table


def types(table: Any) -> list[Any]:
    if isinstance(table, pandas.DataFrame):
        return list(table.dtypes)
    if isinstance(table, polars.DataFrame):
        return list(table.schema.items())
    if isinstance(table, pyarrow.Table):
        return list(zip(table.schema.names, table.schema.types, strict=True))
    return [(name, column.dtype) for name, column in table.items()]


def rows(table: Any) -> list[list[Any]]:
    if isinstance(table, pandas.DataFrame):
        table = {name: table[name] for name in table.columns}
    elif isinstance(table, polars.DataFrame):
        table = table.to_dict(as_series=False)
    elif isinstance(table, pyarrow.Table):
        table = table.to_pydict()
    cells = [[None if is_unknown(cell) else cell for cell in column] for column in table.values()]
    return [list(row) for row in zip(*cells, strict=True)]


def is_unknown(cell: Any) -> bool:
    return cell is None or cell is pandas.NA or cell != cell


MAKERS = [pandas_table, polars_table, pyarrow_table, dict_table]


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: str(maker.__name__))
def test_kind_in_is_kind_out(maker: Any) -> None:
    table = maker()
    model = bornite.fit(table, epochs=3)
    drawn = model.sample(25, seed=1)
    assert type(drawn) is type(table)
    assert types(drawn) == types(table)
    assert model.columns == list(COLUMNS)
    filled = model.impute(table, method="sample")
    assert type(filled) is type(table)
    assert types(filled) == types(table)
    for before, after in zip(rows(table), rows(filled), strict=True):
        for known, cell in zip(before, after, strict=True):
            assert cell is not None
            assert known is None or cell == known
    if isinstance(table, pandas.DataFrame):
        assert filled.index.equals(table.index)
    if isinstance(table, pyarrow.Table):
        assert filled.schema.metadata == table.schema.metadata


def test_all_kinds_give_one_model() -> None:
    logs = []
    for maker in MAKERS:
        table = maker()
        model = bornite.fit(table, epochs=3, kinds={"number": "categorical", "class": "categorical"})
        logs.append(model.log_prob(table))
        # Each kind can be asked with each other.
        other = MAKERS[(MAKERS.index(maker) + 1) % len(MAKERS)]()
        assert np.array_equal(model.log_prob(other), logs[-1])
    # pandas' categories of numbers are words, which are ordered otherwise.
    for log in logs[2:]:
        assert np.allclose(log, logs[1], atol=1e-12)


def test_arrow_streams_of_other_libraries() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pyarrow_table().__arrow_c_stream__(requested_schema)

    assert isinstance(bornite.fit(Stream(), epochs=1).sample(2), pyarrow.Table)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
def test_arrays_keep_their_type(dtype: str) -> None:
    array = (np.random.default_rng(0).random((50, 3)) * 4).astype(dtype)
    array[::2] = 0
    model = bornite.fit(array, epochs=2)
    assert model.columns == ["x0", "x1", "x2"]
    drawn = model.sample(7)
    assert drawn.shape == (7, 3) and drawn.dtype == array.dtype
    assert model.impute(array).dtype == array.dtype
    assert model.mean().shape == (3,) and model.cov().shape == (3, 3)
    assert model.marginal(1).mean == model.mean()[1]


def test_other_arrays() -> None:
    objects = np.array([[1.5, "a"], [2.5, "b"], [None, "a"], [1.0, None]] * 10, dtype=object)
    model = bornite.fit(objects, epochs=2)
    assert rows({"": model.impute(objects)[:, 1]})[3][0] in "ab"
    words = np.array([["a", "x"], ["b", "y"]] * 10)
    assert bornite.fit(words, epochs=2).sample(3).dtype.kind == "U"
    structured = np.array([(1, 0.5), (2, 1.5)] * 10, dtype=[("n", "i4"), ("x", "f8")])
    drawn = bornite.fit(structured, epochs=2).sample(3)
    assert drawn.dtype == structured.dtype
    masked = np.ma.masked_array(np.arange(40.0).reshape(20, 2), mask=np.eye(20, 2, dtype=bool))
    assert not np.isnan(bornite.fit(masked, epochs=2).impute(masked)).any()


def test_samples_in_another_kind() -> None:
    model = bornite.fit(dict_table(), epochs=1)
    for kind, cls in [
        ("pandas", pandas.DataFrame), ("polars", polars.DataFrame), ("pyarrow", pyarrow.Table),
    ]:
        assert isinstance(model.sample(3, kind=kind), cls)
    with pytest.raises(ValueError, match="choose one of numpy"):
        model.sample(3, kind="excel")


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: str(maker.__name__))
def test_a_saved_model_remembers_its_table(maker: Any) -> None:
    table = maker()
    model = bornite.fit(table, epochs=1)
    loaded = Model.from_bytes(model.to_bytes())
    assert loaded.columns == model.columns
    for answer in (loaded.sample(9, seed=1), loaded.impute(table)):
        assert type(answer) is type(table)
        assert types(answer) == types(table)
    assert rows(loaded.sample(9, seed=1)) == rows(model.sample(9, seed=1))
    # The same after conditioning and truncating.
    assert types(Model.from_bytes(loaded.conditional("truth=1").to_bytes()).sample(3)) == types(table)


def test_a_saved_model_remembers_arrays_and_what_was_left_out() -> None:
    array = np.random.default_rng(0).integers(0, 5, (60, 3)).astype(np.int16)
    array[:, 1] = 3
    loaded = Model.from_bytes(bornite.fit(array, epochs=1).to_bytes())
    assert loaded.columns == ["x0", "x2"]
    assert loaded.sample(4).dtype == np.int16
    assert loaded.log_prob(array).shape == (60,)
    ints = pandas.DataFrame({7: [1.5, 2.5, 3.0, 4.5] * 10, ("a", 1): ["x", "y"] * 20})
    names = Model.from_bytes(bornite.fit(ints, epochs=1).to_bytes()).columns
    assert names == [7, ("a", 1)]


def test_notes_that_cannot_be_read_are_ignored() -> None:
    model = bornite.fit(pandas_table(), epochs=1)
    note = json.loads(model._core.info())["note"]
    names = list(COLUMNS)
    assert _forms.from_note(note, names) is not None
    for bad in ("", "[]", "{}", note.replace('"pandas"', '"excel"'), note.replace("real", "unreal"), note.replace("Int", "Unt")):
        assert _forms.from_note(bad, names) is None
    assert _forms.from_note(None, names) is None
    assert _forms.from_note(note, [*names, "more"]) is None
    assert "note" not in model.info


MOMENTS = [datetime.datetime(2019, 3, 23, 20, 21, 9), None, datetime.datetime(2020, 2, 29, 7, 0, 0)] * 20
DAYS = [None if moment is None else moment.date() for moment in MOMENTS]


def moment_tables() -> list[Any]:
    berlin = pandas.Series(MOMENTS).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    plain = {"at": np.array(MOMENTS, "datetime64[s]"), "on": np.array(DAYS, "datetime64[D]")}
    polars_types = {"at": polars.Datetime("ms", "Europe/Berlin"), "on": polars.Date}
    arrow_types = [("at", pyarrow.timestamp("us", "Europe/Berlin")), ("on", pyarrow.date32())]
    utc = [None if moment is None else moment.replace(tzinfo=datetime.timezone.utc) for moment in MOMENTS]
    return [
        plain,
        {"at": np.array(MOMENTS, object), "on": np.array(DAYS, object)},
        pandas.DataFrame({"at": berlin, "on": pandas.Series(DAYS, dtype=object)}),
        pandas.DataFrame(plain),
        polars.DataFrame({"at": utc, "on": DAYS}, schema=polars_types),
        pyarrow.table({"at": utc, "on": DAYS}, schema=pyarrow.schema(arrow_types)),
    ]


@pytest.mark.parametrize("place", range(6))
def test_dates_come_back_as_they_went_in(place: int) -> None:
    table = moment_tables()[place]
    model = bornite.fit(table, epochs=2)
    assert [column["kind"] for column in model.schema] == ["date_time", "date_time"]
    first = bornite.fit(moment_tables()[0], epochs=2)
    assert np.array_equal(model.log_prob(table), first.log_prob(moment_tables()[0]))
    for one in (model, Model.from_bytes(model.to_bytes())):
        assert types(one.sample(5)) == types(table)
        filled = one.impute(table)
        assert types(filled) == types(table)
        for before, after in zip(rows(table), rows(filled), strict=True):
            for known, cell in zip(before, after, strict=True):
                assert not is_unknown(cell) and (is_unknown(known) or cell == known)
    p = model.query("P(on < '2020-01-01')")
    assert 0.2 < p < 0.8
    early = model.log_probability({"on": (None, datetime.date(2020, 1, 1))})
    assert np.exp(early) == pytest.approx(p)
    day = {"at": (np.datetime64("2019-03-23"), datetime.datetime(2019, 3, 24))}
    assert np.exp(model.log_probability(day)) == pytest.approx(model.query("P(at < '2019-03-24', at >= '2019-03-23')"))
    assert model.marginal("on", given={"on": DAYS[0]}).mode == np.datetime64("2019-03-23")


def test_times_that_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="row 2 has fractions of a second: round"):
        bornite.fit({"at": np.array(["2019-01-01", "2019-01-01T00:00:00.5"], "datetime64[ms]")})


def test_pandas_answers_in_pandas() -> None:
    table = pandas_table().rename(columns={"real": 7})
    model = bornite.fit(table, epochs=2)
    mean, cov = model.mean(), model.cov()
    assert list(mean.index) == [7, "whole", "truth"]
    assert list(cov.columns) == list(cov.index) == list(mean.index)
    assert model.quantile(7, [0.1, 0.9]).shape == (2,)
    assert model.query("E['7']") == mean[7]
    assert model.log_probability({7: pandas.Interval(-1, 1, closed="both")}) <= 0
    assert model.marginal([7, "word"]).sample(2).columns.tolist() == [7, "word"]
    assert model.marginal(table.columns[:2]).columns == [7, "whole"]


def test_a_column_without_numbers_is_filled_by_the_model() -> None:
    model = bornite.fit({"x": np.arange(40) % 4, "y": np.arange(40.0)}, epochs=2)
    filled = model.impute({"x": [None, None], "y": [1.0, None]})
    assert all(cell in range(4) for cell in filled["x"])


def test_cells_in_the_place_for_others() -> None:
    table = {"x": np.full(30, 5), "y": np.arange(30.0)}
    constant = bornite.fit(table, epochs=2, as_is=True)
    drawn = constant.sample(3000, seed=1)["x"]
    assert set(drawn[~np.isnan(drawn)]) == {5}
    holes = {"x": np.where(np.arange(300) % 2, 5.0, np.nan), "y": np.full(300, np.nan)}
    for method in ("mode", "sample", "mean", "median"):
        assert set(constant.impute(holes, method=method)["x"]) == {5.0}


BAD: list[tuple[str, Any, type[Exception], str]] = [
    ("not a table", 3, TypeError, "expected a table, found int"),
    ("bytes", b"people.csv", TypeError, "expected a table, found bytes"),
    ("no file", "people.csv", bornite.DataError, "cannot read 'people.csv'"),
    ("rows as dicts", [{"a": 1}], TypeError, "dict of columns"),
    ("one axis", np.arange(3.0), ValueError, r"reshape\(-1, 1\)"),
    ("three axes", np.zeros((2, 2, 2)), ValueError, "image="),
    ("no rows", np.zeros((0, 2)), bornite.ModelError, "has no rows"),
    ("no columns", {}, bornite.DataError, "at least one column"),
    ("complex", np.zeros((2, 2), complex), TypeError, "column 'x0' contains complex128"),
    ("durations", {"t": np.zeros(2, "m8[s]")}, TypeError, "column 't' contains timedelta64"),
    ("mixed", {"a": [1, "b"]}, TypeError, r"column 'a' contains int and str \(row 2: 'b'\)|row 1: 1"),
    ("lengths", {"a": [1, 2], "b": [1]}, ValueError, "column 'b' has 1 cells"),
    ("infinite", {"a": [1.5, np.inf, 2.5]}, bornite.DataError, "row 2.*column 'a'"),
    ("huge", {"a": np.array([2**63], np.uint64)}, ValueError, "column 'a'.*make it a float"),
    ("two axes in one", {"a": np.zeros((2, 2))}, ValueError, "column 'a' has 2 axes"),
    ("same names", pandas.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "both named 'a'"),
    ("pandas durations", pandas.DataFrame({"t": pandas.to_timedelta(["1h"])}), TypeError, "'t' contains"),
    ("polars lists", polars.DataFrame({"l": [[1], [2]]}), TypeError, "column 'l' contains List"),
    ("arrow times", pyarrow.table({"d": pyarrow.array([1], pyarrow.time32("s"))}), TypeError, "'d' contains"),
]


LITTLE: list[tuple[str, Any, str]] = [
    ("one row", {"a": [1.5], "b": ["x"]}, "one row"),
    ("a single column", {"a": [1.5, 2.5]}, "only column 'a'"),
    ("constant column", {"a": [1, 2, 1], "b": ["x"] * 3, "c": [1, 0, 1]}, "'b' .always 'x'."),
    ("empty column", {"a": [1, 2, 1], "b": [None] * 3, "c": [1, 0, 1]}, "'b': every cell is missing"),
    ("empty rows", np.array([[1, 2], [np.nan] * 2, [2, 1]]), "row 2: every cell is missing"),
    (
        "many labels",
        {"a": [str(n) for n in range(999)], "b": [0, 1, 2] * 333, "c": [1, 2, 3] * 333},
        r"'a' \(999 of 999\).*drop the column \('a'\)",
    ),
]


@pytest.mark.parametrize(("table", "message"), [b[1:] for b in LITTLE], ids=[b[0] for b in LITTLE])
def test_little_to_learn_from(table: Any, message: str) -> None:
    with pytest.raises(bornite.ModelError, match=rf"(?s){message}.*as_is=True"):
        bornite.fit(table, strict=True)
    assert len(bornite.fit(table, epochs=1, as_is=True).sample(2)) > 0


def test_columns_that_cannot_be_learned_are_left_out() -> None:
    rng = np.random.default_rng(4)
    columns = [np.arange(60.0) ** 2, np.full(60, 7.0), rng.integers(0, 3, 60), rng.integers(0, 2, 60)]
    table = np.stack(columns, axis=1)
    model = bornite.fit(table, epochs=2)
    assert [column["column"] for column in model.info["left_out"]] == ["x1"]
    assert model.columns == ["x0", "x2", "x3"]
    holes = table.copy()
    holes[0, 2] = np.nan
    filled = model.impute(holes)
    assert filled.shape == table.shape and not np.isnan(filled).any()
    assert (filled[1:] == table[1:]).all() and (filled[:, 1] == 7).all()
    assert model.log_prob(table).shape == (60,)
    assert model.log_prob(table[:, [0, 2, 3]]).tolist() == model.log_prob(table).tolist()


@pytest.mark.parametrize(("table", "error", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_tables(table: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        bornite.fit(table)


SMALL = {"x": np.arange(40) % 4, "y": np.linspace(0, 1, 40), "w": ["a", "b"] * 20}
SETTINGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"width": 0}, bornite.ModelError, "width = 0: give at least 1"),
    ({"rate": 2.0}, bornite.ModelError, "rate = 2"),
    ({"epochs": 0}, bornite.ModelError, "epochs = 0"),
    ({"valid_share": 1.5}, bornite.ModelError, "valid share = 1.5"),
    ({"structure": "tree"}, ValueError, "there is no structure 'tree'; choose one of 'auto'"),
    ({"device": "gpu"}, ValueError, "there is no device 'gpu'; choose one of 'cpu'"),
    ({"structure": "image"}, bornite.ModelError, "needs a table of images"),
    ({"image": (3, 5)}, bornite.DataError, "images of 3 × 5 × 1 do not fit"),
    ({"kinds": {"z": "integer"}}, ColumnError, "the table has no column 'z'"),
    ({"kinds": {"x": "real"}}, ValueError, "column 'x': 'real' with 0 numbers is not a kind"),
    ({"kinds": {"w": "integer"}}, bornite.DataError, "column 'w' cannot be an integer"),
    ({"time": 0}, ValueError, "seconds above 0"),
    ({"seed": -1}, bornite.BorniteError, "of at least 0"),
    ({"valid": {"x": [1]}}, ColumnError, "no column 'y'"),
]


@pytest.mark.parametrize(("settings", "error", "message"), SETTINGS, ids=lambda s: str(s)[:30])
def test_bad_settings(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        bornite.fit(SMALL, **settings)


@pytest.fixture(scope="module")
def model() -> Model:
    return bornite.fit(SMALL, epochs=2)


QUESTIONS: list[tuple[str, Any, type[Exception], str]] = [
    ("column", lambda m: m.quantile("yy"), ColumnError, "no column 'yy'; did you mean 'y'"),
    ("key", lambda m: m.sample(1, given={"z": 1}), KeyError, "the model has no column 'z'; it has x, y, w"),
    ("label", lambda m: m.sample(1, given={"w": "c"}), bornite.QueryError, "'c' is not one of its 2"),
    ("set", lambda m: m.conditional({"y": {0.5}}), bornite.QueryError, "ask for an interval"),
    ("empty", lambda m: m.conditional({"w": set()}), ValueError, "an empty set"),
    ("order", lambda m: m.conditional({"y": (2, 1)}), ValueError, "not in order"),
    ("pair", lambda m: m.conditional({"y": (0, 1, 2)}), TypeError, r"an interval \(low, high\)"),
    ("object", lambda m: m.conditional({"y": object()}), TypeError, "column 'y': expected a value"),
    ("kind", lambda m: m.conditional(3), TypeError, "expected evidence such as"),
    ("impossible", lambda m: m.conditional("x=1, x=2"), bornite.ModelError, "probability 0"),
    ("question", lambda m: m.query("Q(x)"), bornite.QueryError, "expected P"),
    ("words", lambda m: m.quantile("w"), bornite.ModelError, "labels are not numbers"),
    ("level", lambda m: m.quantile("y", 2), bornite.ModelError, "probability from 0 to 1"),
    ("width", lambda m: m.log_prob(np.zeros((2, 2))), ValueError, r"2 columns and the model 3 \(x, y, w\)"),
    ("absent", lambda m: m.log_prob({"x": [1], "y": [0.5]}), ColumnError, "marginal"),
    ("range", lambda m: m.log_prob({"x": [1, 9], "y": [0.5] * 2, "w": ["a"] * 2}, unseen="error"), bornite.DataError,
     "row 2, column 'x': 9 is outside 0 to 3"),
    ("type", lambda m: m.log_prob({"x": ["one"], "y": [0.5], "w": ["a"]}), bornite.DataError,
     "row 1, column 'x': 'one' is not a whole number"),
    (
        "unseen",
        lambda m: m.log_prob({"x": [1], "y": [0.5], "w": ["c"]}, unseen="error"),
        bornite.DataError,
        "'c'",
    ),
    ("device", lambda m: m.log_prob(SMALL, device="gpu"), ValueError, "there is no device 'gpu'; choose one of 'cpu'"),
    ("whole rows", lambda m: m.log_prob(SMALL, column="x", device="auto"), ValueError, "omit it with a column"),
    ("choice", lambda m: m.log_prob(SMALL, unseen="skip"), ValueError, "'unknown' or 'error'"),
    ("method", lambda m: m.impute(SMALL, method="zero"), ValueError, "there is no method 'zero'"),
    ("column", lambda m: m.predict(SMALL, "zz"), KeyError, "no column 'zz'"),
    ("how", lambda m: m.predict(SMALL, "x", method="zero"), ValueError, "there is no method 'zero'"),
    ("n", lambda m: m.impute(SMALL, n=0), ValueError, "give at least 1"),
    ("budget", lambda m: m.truncate(), ValueError, "either a maximum error"),
    ("error", lambda m: m.truncate(error=2.0), bornite.OperationError, r"in \[0, 1\]"),
    ("conditioned", lambda m: m.conditional("x=1").truncate(width=2), bornite.ModelError, "unconditional model"),
    ("marginal", lambda m: m.marginal([]), ValueError, "at least one"),
    ("twice", lambda m: m.marginal(["x", "x"]), ValueError, "named twice"),
    ("score", lambda m: m.score({"x": [], "y": [], "w": []}), ValueError, "no rows"),
    ("file", lambda m: Model.load("not there"), FileNotFoundError, "not there"),
    ("bytes", lambda m: Model.from_bytes(m.to_bytes()[:-9]), bornite.FileError, "cut|short|bytes"),
]


@pytest.mark.parametrize(("ask", "error", "message"), [q[1:] for q in QUESTIONS], ids=[q[0] for q in QUESTIONS])
def test_bad_questions(model: Model, ask: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ask(model)


def test_what_is_unseen_can_be_unknown(model: Model) -> None:
    unseen = {"x": [1, 9], "y": [0.5, 0.5], "w": ["c", "a"]}
    unknown = {"x": [1, None], "y": [0.5, 0.5], "w": [None, "a"]}
    assert np.array_equal(model.log_prob(unseen, unseen="unknown"), model.log_prob(unknown))
    # They have a probability of their own, and a small one.
    assert (model.log_prob(unseen) < model.log_prob(unknown)).all()
    assert np.isfinite(model.log_prob(unseen)).all()


def test_no_and_yes_and_true_and_false_are_one_column() -> None:
    rng = np.random.default_rng(3)
    wet = rng.random(200) < 0.4
    sky = np.where(wet, "rain", "sun").astype(object)
    words = {"sky": sky, "wet": np.where(wet, "yes", "no").astype(object)}
    truths = {"sky": sky, "wet": wet}
    for fitted, other in [(words, truths), (truths, words)]:
        # As from a file: without the types of the table that was fitted.
        core = bornite.fit(fitted, epochs=20)._core
        loaded = bornite.Model(core)
        for model in (loaded, bornite.fit(fitted, epochs=20)):
            back = model.decompress(model.compress(other))
            assert all(list(back[name]) == list(other[name]) for name in other)
            assert np.isfinite(model.log_prob(other)).all()
            holes = {"sky": sky[:6], "wet": np.array(list(other["wet"][:6]), dtype=object)}
            holes["wet"][[0, 3]] = None
            filled = model.impute(holes)["wet"]
            assert list(filled) == list(other["wet"][:6])
    # Real numbers in a column of whole ones are not rounded.
    model = bornite.fit({"n": np.arange(60) % 7, "sky": sky[:60]}, epochs=2)
    odd = {"n": np.array([0.5, 3.0]), "sky": sky[:2]}
    assert model.decompress(model.compress(odd))["n"].tolist() == [0.5, 3.0]

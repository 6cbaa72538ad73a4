"""Models of tables answer exactly: against enumeration, quadrature, Bayes and samples."""

import json
import math
import pathlib
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bornite
from bornite import Model

Table = dict[str, npt.NDArray[Any]]


def mixed(rows: int = 240) -> Table:
    """Three finite columns and a continuous one, that depend on each other."""
    rng = np.random.default_rng(7)
    age = rng.integers(20, 30, rows)
    city = np.where(age + rng.normal(size=rows) > 25, "Essen", "Bonn").astype(object)
    city[rng.random(rows) < 0.1] = "Köln's \"Dom\""
    pay = age / 10 + 0.3 * rng.normal(size=rows)
    return {"age": age, "city": city, "owner": age > 26, "pay": pay}


@pytest.fixture(scope="module")
def table() -> Table:
    return mixed()


@pytest.fixture(scope="module")
def model(table: Table) -> Model:
    return bornite.fit(table, epochs=15, width=4, seed=1)


def combinations(model: Model) -> Table:
    """Every row of the finite columns, with nothing known of the continuous one."""
    labels = [c["labels"] for c in model.schema if c["name"] == "city"][0]
    cells = [(a, c, o) for a in range(20, 30) for c in labels for o in (False, True)]
    age, city, owner = (np.array(column, dtype=object) for column in zip(*cells, strict=True))
    return {
        "age": age.astype(int),
        "city": city,
        "owner": owner.astype(bool),
        "pay": np.full(len(cells), np.nan),
    }


def test_probabilities_of_all_rows_add_up(model: Model) -> None:
    p = np.exp(model.log_prob(combinations(model)))
    assert p.sum() == pytest.approx(1, abs=1e-9)


def test_density_integrates_to_the_marginal(model: Model) -> None:
    row: dict[str, list[Any]] = {"age": [25], "city": ["Bonn"], "owner": [False]}
    # No pay is negative.
    x = np.linspace(0, 25, 90_001)
    many = {name: cells * len(x) for name, cells in row.items()}
    p = np.exp(model.log_prob({**many, "pay": x}))
    integral = float(np.sum((p[1:] + p[:-1]) / 2 * np.diff(x)))
    assert integral == pytest.approx(
        math.exp(model.log_prob({**row, "pay": [None]})[0]), rel=1e-4
    )


def test_score_is_the_mean(model: Model, table: Table) -> None:
    assert model.score(table) == pytest.approx(float(np.mean(model.log_prob(table))))
    assert model.log_prob(table, device="auto") == pytest.approx(model.log_prob(table), abs=1e-8)
    assert np.array_equal(model.anomaly_score(table), -model.log_prob(table))


def test_conditional_is_the_quotient_of_bayes(model: Model, table: Table) -> None:
    given = {"city": {"Bonn", "Essen"}, "age": (22, 27)}
    conditional = model.conditional(given)
    inside = np.isin(table["city"], ["Bonn", "Essen"]) & (table["age"] >= 22) & (table["age"] < 27)
    rows = {name: column[inside] for name, column in table.items()}
    expected = model.log_prob(rows) - model.log_probability(given)
    assert conditional.log_prob(rows) == pytest.approx(expected, abs=1e-9)
    outside = {name: column[~inside][:5] for name, column in table.items()}
    assert np.all(np.isneginf(conditional.log_prob(outside)))
    assert conditional.given == ["'city' in {'Bonn', 'Essen'}, 'age' >= 22, 'age' < 27"]
    again = conditional.conditional("owner=1")
    assert again.query("P(age=23)") == pytest.approx(
        model.query("P(age=23 | city in {Bonn, Essen}, age in [22, 27), owner=1)")
    )


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (25, "age=25"),
        (25.0, "age=25"),
        (np.int8(25), "age=25"),
        ({21, 25}, "age in {21, 25}"),
        ([21, 25], "age in {21, 25}"),
        (range(21, 24), "age in {21, 22, 23}"),
        (np.array([21, 25]), "age in {21, 25}"),
        ((21, 25), "age in [21, 25)"),
        (slice(21, 25), "age in [21, 25)"),
        ((None, 25), "age < 25"),
        ((25, None), "age >= 25"),
        ((-math.inf, 25), "age < 25"),
        (None, ""),
        (math.nan, ""),
    ],
)
def test_forms_of_evidence(model: Model, known: Any, text: str) -> None:
    assert model.log_probability({"age": known}) == model.log_probability(text)


def test_awkward_labels_are_quoted(model: Model) -> None:
    label = "Köln's \"Dom\""
    p = model.marginal("city").probabilities[label]
    assert math.exp(model.log_probability({"city": label})) == pytest.approx(p)
    assert model.conditional({"city": label}).marginal("city").mode == label


def test_marginals_are_sums(model: Model, table: Table) -> None:
    rows = combinations(model)
    p = np.exp(model.log_prob(rows))
    found = model.marginal("age").probabilities
    assert list(found) == list(range(20, 30))
    for age, probability in found.items():
        assert probability == pytest.approx(p[rows["age"] == age].sum(), abs=1e-12)
    view = model.marginal(["owner", "age"])
    assert view.columns == ["owner", "age"]
    pairs = {"owner": np.array([True, False]), "age": np.array([27, 27])}
    expected = [p[(rows["owner"] == o) & (rows["age"] == 27)].sum() for o in (True, False)]
    assert np.exp(view.log_prob(pairs)) == pytest.approx(expected, abs=1e-12)
    assert list(view.sample(3)) == ["owner", "age"]
    assert view.conditional({"owner": True}).mean()["age"] == pytest.approx(
        model.query("E[age | owner=1]")
    )
    with pytest.raises(ValueError, match="view of its model"):
        view.save("m.model")


def test_moments_are_sums(model: Model) -> None:
    rows = combinations(model)
    p = np.exp(model.log_prob(rows))
    numbers = np.column_stack([rows["age"], rows["owner"]]).astype(float)
    mean = p @ numbers
    cov = (numbers - mean).T @ ((numbers - mean) * p[:, None])
    assert [model.mean()[name] for name in ("age", "owner")] == pytest.approx(mean.tolist())
    assert np.allclose(model.cov()[:2, :2], cov, atol=1e-9)
    assert model.marginal("age").var == pytest.approx(cov[0, 0])
    # The continuous column: against samples, and against its own distribution.
    pay = model.sample(40_000, seed=5)["pay"]
    marginal = model.marginal("pay")
    assert marginal.mean == pytest.approx(model.mean()["pay"])
    assert marginal.mean == pytest.approx(pay.mean(), abs=5 * pay.std() / 200)
    assert marginal.std == pytest.approx(pay.std(), rel=0.1)
    given = {"city": "Bonn", "pay": (2.0, 2.5)}
    inside = model.sample(20_000, given=given, seed=2)
    cov = np.cov(np.column_stack([inside["age"], inside["owner"], inside["pay"]]).T.astype(float))
    assert np.allclose(model.cov(given=given), cov, atol=0.1 * np.abs(cov).max())


def test_quantiles_invert_the_distribution_function(model: Model) -> None:
    pay = model.marginal("pay", given={"age": (20, 25)})
    q = np.linspace(0.01, 0.99, 23)
    assert pay.cdf(pay.quantile(q)) == pytest.approx(q, abs=1e-9)
    assert np.array_equal(model.quantile("pay", q, given={"age": (20, 25)}), pay.quantile(q))
    x = np.linspace(1.5, 3, 2001)
    area = np.sum((pay.density(x)[1:] + pay.density(x)[:-1]) / 2 * np.diff(x))
    assert area == pytest.approx(pay.cdf(3.0) - pay.cdf(1.5), abs=1e-6)
    assert pay.density(pay.mode) >= pay.density(x).max() - 1e-6
    age = model.marginal("age")
    assert age.quantile(0.0) in age.probabilities
    assert age.cdf(24) == pytest.approx(sum(p for a, p in age.probabilities.items() if a <= 24))


def test_samples_follow_the_model(model: Model) -> None:
    rows = combinations(model)
    p = np.exp(model.log_prob(rows))
    count = 20_000
    drawn = model.sample(count, seed=3)
    place = {cells: n for n, cells in enumerate(zip(*(rows[c] for c in ("age", "city", "owner"))))}
    drawn_cells = zip(*(drawn[c] for c in ("age", "city", "owner")), strict=True)
    counts = np.bincount([place[cells] for cells in drawn_cells], minlength=len(p))
    expected = p * count
    common = expected > 5
    chi2 = ((counts - expected) ** 2 / expected)[common].sum()
    degrees = int(common.sum())
    assert chi2 < degrees + 5 * math.sqrt(2 * degrees)
    # Kolmogorov and Smirnov's test of the continuous column.
    pay = np.sort(drawn["pay"])
    step = np.arange(0, count, 100)
    distance = np.abs(model.marginal("pay").cdf(pay[step]) - (step + 0.5) / count).max()
    assert distance < 2 / math.sqrt(count)
    assert all(np.array_equal(a, b) for a, b in zip(drawn.values(), model.sample(count, seed=3).values()))
    assert not np.array_equal(drawn["pay"], model.sample(count, seed=4)["pay"])


def test_samples_keep_to_the_evidence(model: Model) -> None:
    drawn = model.sample(500, given={"age": {21, 28}, "pay": (2.0, 2.6)}, seed=1)
    assert set(drawn["age"]) == {21, 28}
    assert np.all((drawn["pay"] >= 2.0) & (drawn["pay"] < 2.6))


@pytest.mark.parametrize("method", ["mean", "mode", "median", "sample"])
def test_imputation_keeps_known_cells(model: Model, table: Table, method: Any) -> None:
    rng = np.random.default_rng(3)
    holes: Table = {
        "pay": table["pay"].copy(),
        "city": table["city"].copy(),
        "note": np.arange(240),
        "age": table["age"],
        "owner": table["owner"].astype(object),
    }
    for name in ("pay", "city", "owner"):
        holes[name][rng.random(240) < 0.3] = None
    filled = model.impute(holes, method=method, seed=5)
    assert list(filled) == list(holes)
    for name in ("pay", "city", "owner"):
        known = [cell is not None and cell == cell for cell in holes[name]]
        assert np.array_equal(filled[name][known], holes[name][known])
        assert filled[name].dtype == holes[name].dtype
        assert not any(cell is None or cell != cell for cell in filled[name])
    assert filled["note"] is holes["note"]
    assert set(filled["owner"]) == {True, False}
    several = model.impute(holes, method=method, seed=5, n=2)
    assert np.array_equal(several[0]["pay"], filled["pay"])
    if method == "sample":
        assert not np.array_equal(several[1]["pay"], filled["pay"])


def test_imputed_cells_are_the_conditional_ones(model: Model) -> None:
    row = {"age": [23], "city": ["Bonn"], "owner": [None], "pay": [math.nan]}
    given = {"age": 23, "city": "Bonn"}
    pay = model.marginal("pay", given=given)
    assert model.impute(row, method="mean")["pay"][0] == pytest.approx(pay.mean, rel=1e-9)
    assert model.impute(row, method="median")["pay"][0] == pytest.approx(pay.quantile(0.5))
    assert model.impute(row)["owner"][0] == model.marginal("owner", given=given).mode


def test_predictions_are_the_conditional_ones(model: Model, table: Table) -> None:
    rows: Any = {name: column[:6].copy() for name, column in table.items()}
    rows["city"][2] = None
    found = model.predict(rows, "pay")
    mean = model.predict(rows, "pay", method="mean")
    proba = model.predict_proba(rows, "owner")
    logs = model.log_prob(rows, column="pay")
    age = model.predict(rows, "age")
    assert age.dtype == table["age"].dtype and found.dtype == np.float64
    for n in range(6):
        given = {name: rows[name][n] for name in ("age", "city", "owner")}
        pay = model.marginal("pay", given=given)
        assert found[n] == pytest.approx(pay.quantile(0.5))
        assert mean[n] == pytest.approx(pay.mean, rel=1e-9)
        assert logs[n] == pytest.approx(pay.log_density(rows["pay"][n]), abs=1e-9)
        given = {name: rows[name][n] for name in ("age", "city", "pay")}
        owner = model.marginal("owner", given=given)
        assert {value: p[n] for value, p in proba.items()} == pytest.approx(owner.probabilities)
    seeds = [model.predict(rows, "pay", method="sample", seed=seed) for seed in (1, 1, 2)]
    assert np.array_equal(seeds[0], seeds[1]) and not np.array_equal(seeds[0], seeds[2])
    # The sum of conditionals along a chain is the score.
    alone = {"pay": rows["pay"], **{name: [None] * 6 for name in ("age", "city", "owner")}}
    assert model.log_prob(alone, column="pay") == pytest.approx(model.log_prob(alone))


def test_predictions_of_tables_that_lack_columns(model: Model) -> None:
    with pytest.warns(UserWarning, match="no column 'age', 'city': treated as missing in every row"):
        found = model.predict({"owner": [True, False]}, "pay", method="mean")
    expected = [model.marginal("pay", given={"owner": owner}).mean for owner in (True, False)]
    assert found == pytest.approx(expected)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"owner": [True, False], "age": [21, 29], "city": ["Bonn", None]})
    frame.index = [7, 3]
    series = model.predict(frame, "pay")
    assert list(series.index) == [7, 3] and series.name == "pay"
    low, high = model.quantile("pay", [0.05, 0.95], given=frame).T
    assert (low < series.to_numpy()).all() and (series.to_numpy() < high).all()
    assert model.quantile("pay", given=frame) == pytest.approx(series.to_numpy())
    assert list(model.predict(frame.assign(pay=3.0), "city")) == list(
        model.predict(frame.assign(pay=3.0, city="Essen"), "city")
    )


def test_arrays_may_leave_out_what_is_predicted() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    rows = np.hstack([x, x + rng.normal(size=(300, 1)), -x])
    model = bornite.fit(rows, epochs=5, width=4)
    assert np.array_equal(model.predict(rows[:9], "x1"), model.predict(rows[:9, [0, 2]], "x1"))
    with pytest.raises(bornite.BorniteError, match="has 1 columns"):
        model.predict(rows[:9, :1], "x1")


def test_anomalies_are_the_least_likely_rows(model: Model, table: Table) -> None:
    strange = {name: column.copy() for name, column in table.items()}
    strange["pay"][10] = 9.0
    strange["owner"][50] = not strange["owner"][50]
    found = model.anomalies(strange, 3)
    order = np.argsort(model.log_prob(strange), kind="stable")[:3]
    assert [a.row for a in found] == order.tolist()
    worst = found[0]
    assert worst.row == 10 and worst.contributions[0].column == "pay"
    assert worst.log_prob == pytest.approx(float(model.log_prob(strange)[10]))
    rest = {name: column[10:11] for name, column in strange.items()} | {"pay": [None]}
    expected = worst.log_prob - float(model.log_prob(rest)[0])
    assert worst.contributions[0].log_conditional == pytest.approx(expected, abs=1e-9)


def test_surprises_are_those_of_the_anomalies(model: Model, table: Table) -> None:
    strange = {name: column[:40].copy() for name, column in table.items()}
    strange["pay"][10] = 1e4
    cells = model.surprise(strange)
    assert cells.shape == (40, 4)
    for anomaly in model.anomalies(strange, 5):
        for one in anomaly.contributions:
            surprise = cells[anomaly.row, model.columns.index(one.column)]
            assert surprise == pytest.approx(-one.log_standardized, abs=1e-6)
        known = np.sort(cells[anomaly.row][~np.isnan(cells[anomaly.row])])[::-1]
        assert len(known) == len(anomaly.contributions)
    scores = model.anomaly_score(strange, by="cells")
    assert np.argmax(scores) == 10
    # Of a row of two known cells, by its definition.
    pair = {"age": [24], "city": [table["city"][0]], "owner": [None], "pay": [np.nan]}
    p = {name: float(np.exp(model.marginal(name).log_density(pair[name][0]))) for name in ("age", "city")}
    both = float(np.exp(model.log_prob(pair)[0]))
    even = {name: np.exp(model.surprise(pair)[0, k]) * both / p[other] for name, other, k in (("age", "city", 0), ("city", "age", 1))}
    anew = [(0.99 * p[a] + 0.01 * even[a]) * p[b] / both for a, b in (("age", "city"), ("city", "age"))]
    ratio = (np.mean(anew) + p["age"] * p["city"] / both) / 2
    assert model.anomaly_score(pair, by="cells")[0] == pytest.approx(np.log(ratio), abs=1e-6)
    worst = model.anomalies(strange, 3, by="cells")
    assert [one.row for one in worst] == np.argsort(-scores, kind="stable")[:3].tolist()
    assert worst[0].contributions[0].column == "pay"
    assert worst[0].log_prob == pytest.approx(float(model.log_prob(strange)[10]))
    assert model.anomalies(strange, 1, by="either")[0].row == 10
    own = model.anomaly_score(model.sample(1000, seed=3), by="either")
    assert [np.mean(own > s) <= np.exp(-s) for s in (1, 2, 3)] == [True] * 3
    # A row without any known cell says nothing.
    nothing: Table = {name: np.array([None], object) for name in table}
    assert model.anomaly_score(nothing, by="cells").tolist() == [0.0]
    view = model.marginal(["pay", "age"])
    assert view.surprise({name: strange[name] for name in ("pay", "age")}).shape == (40, 2)
    with pytest.raises(ValueError, match="choose 'density', 'cells' or 'either'"):
        model.anomaly_score(strange, by="rows")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="omit it"):
        model.anomaly_score(strange, by="cells", unseen="error")


def test_files_and_pickles(model: Model, table: Table, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.model"
    conditional = model.conditional({"owner": True})
    for one in (model, conditional, model.truncate(width=2)):
        one.save(path)
        for copy in (Model.load(path), Model.from_bytes(one.to_bytes()), pickle.loads(pickle.dumps(one))):
            assert np.array_equal(copy.log_prob(table), one.log_prob(table))
            assert copy.to_bytes() == one.to_bytes()
            assert copy.given == one.given
    loaded = Model.load(path).sample(4)
    assert {name: column.dtype.kind for name, column in loaded.items()} == {
        "age": "i", "city": table["city"].dtype.kind, "owner": "b", "pay": "f",
    }
    view = pickle.loads(pickle.dumps(model.marginal(["pay", "owner"])))
    assert view.sample(2, seed=1)["owner"].dtype == bool
    parts = json.loads(model.to_json())
    assert sorted(parts) == ["circuits", "given", "info", "schema"]
    assert [part["weight"] for part in parts["circuits"]] == [weight for weight, _ in model.circuits]
    for part in parts["circuits"]:
        assert bornite.Circuit.from_json(part["circuit"]).num_variables == 4


def test_a_model_can_be_a_mixture_of_circuits() -> None:
    rng = np.random.default_rng(1)
    habits = rng.random((8, 24))

    def votes(rows: int) -> np.ndarray:
        return (rng.random((rows, 24)) < habits[rng.integers(0, 8, rows)]).astype(float)

    table, valid = votes(300), votes(2000)
    mixture = bornite.fit(table, valid=valid, width=4, epochs=10, circuits=3)
    alone = bornite.fit(table, valid=valid, width=4, epochs=10)
    assert len(alone.circuits) == 1 < len(mixture.circuits)
    weights = [weight for weight, _ in mixture.circuits]
    assert sum(weights) == pytest.approx(1) and weights == sorted(weights, reverse=True)
    assert mixture.log_prob(valid).mean() > alone.log_prob(valid).mean()
    assert mixture.circuit.num_layers == mixture.circuits[0][1].num_layers
    copy = pickle.loads(pickle.dumps(mixture))
    assert np.array_equal(copy.log_prob(valid), mixture.log_prob(valid))
    samples = mixture.sample(4000, seed=1)
    assert np.abs(np.asarray(samples).mean(0) - valid.mean(0)).max() < 0.1
    with pytest.raises(bornite.BorniteError, match="circuits"):
        bornite.fit(table, circuits=0)


def test_the_model_tells_how_it_came_about(model: Model) -> None:
    assert model.info["rows"] + model.info["valid_rows"] == 240
    assert model.info["valid"] > model.info["baseline"]
    assert 1 <= len(model.history) <= 15
    assert set(model.history[0]) == {"train", "valid", "residual"}
    assert repr(model) == "<Model: 4 columns, 240 rows>"
    assert "given 'age'=21" in repr(model.conditional({"age": 21}))
    assert model.circuit.is_orthonormal


def test_truncation_keeps_its_bound(model: Model) -> None:
    smaller = model.truncate(width=2)
    rows = combinations(model)
    p, q = (np.exp(m.log_prob(rows)) for m in (model, smaller))
    hellinger = math.sqrt(max(0.0, 1 - float(np.sqrt(p * q).sum())))
    assert smaller.truncation_bound is not None
    assert hellinger <= smaller.truncation_bound + 1e-9
    assert model.truncation_bound is None
    assert smaller.circuit.num_parameters < model.circuit.num_parameters


def test_fits_are_deterministic_and_stop(table: Table) -> None:
    reports: list[dict[str, Any]] = []

    def stop_after_three(report: dict[str, Any]) -> bool:
        reports.append(report)
        return len(reports) < 3

    one = bornite.fit(table, epochs=10, width=4, seed=2, progress=stop_after_three)
    assert [report["epoch"] for report in reports] == [1, 2, 3]
    assert len(one.history) == 3
    a, b = (bornite.fit(table, epochs=3, width=4, seed=2).to_bytes() for _ in range(2))
    widths: list[int] = []
    several = bornite.fit(table, epochs=2, progress=lambda report: widths.append(report["width"]))
    assert len(set(widths)) > 1 and several.info["width"] in widths
    assert a == b != bornite.fit(table, epochs=3, width=4, seed=3).to_bytes()
    quick = bornite.fit(table, epochs=10**6, patience=10**6, width=4, time=0.2)
    assert len(quick.history) < 10**6

    def fail(report: dict[str, Any]) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        bornite.fit(table, width=4, progress=fail)

    def interrupt(report: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        assert len(bornite.fit(table, width=4, progress=interrupt).history) == 1


def test_a_fit_goes_on_from_a_model(model: Model, table: Table, tmp_path: pathlib.Path) -> None:
    shifted = {name: cells[::-1] if name == model.columns[0] else cells for name, cells in table.items()}
    later = bornite.fit(shifted, start=model, epochs=5, seed=1)
    assert later.schema == model.schema and later.circuit.num_parameters == model.circuit.num_parameters
    assert later.score(shifted) > model.score(shifted)
    assert type(later.sample(3)) is type(model.sample(3))
    # A model that was read goes on in the same way, with rows that count for more or less.
    model.save(tmp_path / "m.model")
    read = Model.load(tmp_path / "m.model")
    same = bornite.fit(shifted, start=read, epochs=5, seed=1)
    assert np.array_equal(same.log_prob(table), later.log_prob(table))
    height = len(next(iter(table.values())))
    weighed = bornite.fit({**shifted, "w": np.ones(height)}, start=model, sample_weight="w", epochs=1)
    assert weighed.columns == model.columns
    with pytest.raises(bornite.BorniteError, match="omit the setting"):
        bornite.fit(table, start=model, width=model.info["width"] + 1)
    with pytest.raises(bornite.BorniteError, match="the whole model"):
        bornite.fit(table, start=model.marginal(model.columns[:1]))
    with pytest.raises(bornite.BorniteError, match="no column"):
        bornite.fit({"other": np.ones(9)}, start=model)


def test_tables_in_files(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=3000).round(3)
    y = np.where(x + 0.5 * rng.normal(size=3000) > 0, "up", "down")
    lines = [f"{a},{b}" for a, b in zip(x, y, strict=True)]
    for part in range(3):
        text = "\n".join(["x,y", *lines[part * 1000 : part * 1000 + 1000]]) + "\n"
        (tmp_path / f"part-{part}.csv").write_text(text)
    pattern = str(tmp_path / "part-*.csv")
    whole = bornite.fit(pattern, epochs=3, width=4, seed=1)
    assert whole.columns == ["x", "y"] and whole.info["rows"] + whole.info["valid_rows"] == 3000
    # More than this memory holds: the same rows, in pieces.
    paths = [tmp_path / f"part-{part}.csv" for part in range(3)]
    pieces = bornite.fit(paths, memory=64 * 2 * 600, epochs=3, width=4, seed=1)
    assert pieces.info["valid_rows"] == 60 and pieces.info["rows"] == 2940
    rows = {"x": x, "y": y}
    assert pieces.score(rows) == pytest.approx(whole.score(rows), abs=0.05)
    later = bornite.fit(pattern, start=pieces, epochs=2, target="y")
    assert later.schema == pieces.schema
    with pytest.raises(bornite.BorniteError, match="no such file"):
        bornite.fit(str(tmp_path / "none-*.csv"))
    (tmp_path / "part-9.csv").write_text("x,z\n1,2\n")
    with pytest.raises(bornite.BorniteError, match=r"part-9.csv.*its columns are x, z"):
        bornite.fit(pattern)


def test_validation_rows_and_kinds(table: Table) -> None:
    valid = {name: column[:40] for name, column in table.items()}
    model = bornite.fit(
        {**table, "hour": np.arange(240) % 24},
        valid={**valid, "hour": np.arange(40) % 24},
        epochs=2,
        kinds={"hour": ("periodic", 24), "age": "categorical", "pay": ("continuous", 0, math.inf)},
        width=3,
        output_width=2,
        structure="balanced",
    )
    assert model.info["valid_rows"] == 40 and model.info["structure"] == "balanced"
    assert model.info["width"] == 3 and model.circuit.output_width == 2
    kinds = {column["name"]: column["kind"] for column in model.schema}
    assert kinds == {
        "age": "categorical", "city": "categorical", "owner": "boolean",
        "pay": "continuous", "hour": "periodic",
    }
    night = model.log_probability({"hour": (0, 24)})
    assert night == pytest.approx(0, abs=1e-9)


def test_images() -> None:
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 2, (60, 4, 4), dtype=np.uint8)
    model = bornite.fit(pictures.reshape(60, -1), image=(4, 4), epochs=2)
    assert model.info["structure"] == "image"
    drawn = model.sample(3)
    assert drawn.shape == (3, 16) and drawn.dtype == np.uint8


def test_missing_is_a_value_on_request() -> None:
    rng = np.random.default_rng(3)
    kind = rng.choice(["a", "b"], 400)
    x = np.where((kind == "b") & (rng.random(400) < 0.6), np.nan, rng.normal(size=400))
    table = {"kind": kind, "x": x, "y": rng.normal(size=400)}
    model = bornite.fit(table, missing_as_value=["x"], epochs=30, width=4, seed=1)
    share = np.isnan(x[kind == "b"]).mean()
    assert model.query("P(x is missing | kind='b')") == pytest.approx(share, abs=0.15)
    assert model.query("P(x is missing | kind='a')") < 0.15
    assert model.schema[1]["missing"] is True and "missing" not in model.schema[0]
    # A hole is a value, in a table and in evidence; what is hidden or absent is unknown.
    hole = {"kind": ["b"], "x": [np.nan], "y": [np.nan]}
    expected = np.log(model.query("P(x is missing, kind='b')"))
    assert model.log_prob(hole)[0] == pytest.approx(expected)
    view = model.marginal(["kind", "y"])
    assert view.log_prob({"kind": ["b"], "y": [np.nan]})[0] == pytest.approx(np.log(model.query("P(kind='b')")))
    given = model.conditional("x is missing")
    assert given.query("P(kind='b')") == pytest.approx(model.query("P(kind='b' | x is missing)"))
    p = model.predict_proba({"x": [np.nan], "y": [0.0]}, "kind")["b"][0]
    assert p == pytest.approx(model.query("P(kind='b' | x is missing, y=0.0)"))
    # Distributions are of what is not missing.
    marginal = model.marginal("x")
    assert marginal.cdf(np.inf) == 1.0
    assert marginal.cdf(marginal.quantile(0.3)) == pytest.approx(0.3, abs=1e-9)
    assert np.isfinite([marginal.mean, marginal.std, model.log_prob(table, column="x")[0]]).all()
    sample = model.sample(500, seed=2)
    assert np.isnan(sample["x"]).mean() == pytest.approx(model.query("P(x is missing)"), abs=0.07)
    assert not np.isnan(model.impute(table)["x"]).any()
    assert np.isfinite(model.surprise(table)).all()
    again = Model.from_bytes(model.to_bytes()) if hasattr(Model, "from_bytes") else pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.log_prob(table), model.log_prob(table))
    with pytest.raises(bornite.BorniteError, match="missing as a value"):
        model.query("P(y is missing)")
    with pytest.raises(bornite.BorniteError, match="'z'"):
        bornite.fit(table, missing_as_value="z")


def test_atoms_are_named() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(5, 1, 300).round(2)
    table = {"x": x, "y": x + rng.normal(size=300)}
    plain = bornite.fit(table, epochs=2, width=2)
    named = bornite.fit(table, epochs=2, width=2, atoms={"x": [99, 0]})
    assert plain.schema[0].get("atoms", []) == [] and named.schema[0]["atoms"] == [0.0, 99.0]
    with pytest.raises(bornite.BorniteError, match="too many digits"):
        bornite.fit(table, atoms={"x": 0.001})
    with pytest.raises(bornite.BorniteError, match="'w'"):
        bornite.fit(table, atoms={"w": 0})


def test_values_never_seen_have_a_note_in_questions_and_a_share_in_scores(table: Table, model: Model) -> None:
    answer = model.ask("P(age=90)")
    assert answer.value == 0 and len(answer.notes) == 1
    assert answer.notes[0].startswith("90 was never seen in age; questions give it probability 0")
    assert "scores give unseen values" in answer.notes[0] and "90 was never seen" in answer._repr_html_()
    assert model.ask("P(age > 90)").notes[0].startswith("no value of age was ever seen in this range")
    assert model.ask("P(age=25)").notes == ()
    row = {name: column[:1].copy() for name, column in table.items()}
    seen = model.log_prob(row)[0]
    row["age"][0] = 90
    assert np.isfinite(model.log_prob(row)[0]) and model.log_prob(row)[0] < seen
    assert model.marginal("age").cdf(89) == pytest.approx(1)
    assert (model.sample(200, seed=1)["age"] < 90).all()
    with pytest.raises(bornite.BorniteError, match=r"90 was never seen in age"):
        model.query("E[pay | age=90]")

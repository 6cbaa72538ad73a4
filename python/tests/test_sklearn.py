"""The estimators pass scikit-learn's own suite, and say what the joint distribution says."""

from typing import Any

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.datasets import load_iris  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from bornite.sklearn import (  # noqa: E402
    BorniteClassifier,
    BorniteDensity,
    BorniteImputer,
    BorniteOutlierDetector,
    BorniteRegressor,
    _best_sharpness,
)

ESTIMATORS = [
    BorniteDensity(effort="fast"),
    BorniteImputer(effort="fast"),
    BorniteOutlierDetector(effort="fast"),
    BorniteClassifier(effort="fast"),
    BorniteRegressor(effort="fast"),
]


def expected_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, (BorniteDensity, BorniteImputer)):
        return {}
    reason = "the rows that the best epoch is chosen by are drawn before weights count"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)  # type: ignore[untyped-decorator]
def test_sklearn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def iris() -> tuple[Any, Any]:
    x, y = load_iris(return_X_y=True)
    return x, y


def test_classifier_is_the_quotient_of_the_joint() -> None:
    x, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])
    classifier = BorniteClassifier(effort="fast", random_state=0).fit(x, names[y])
    p = classifier.predict_proba(x)
    assert p.shape == (150, 3) and np.allclose(p.sum(axis=1), 1)
    assert classifier.score(x, names[y]) > 0.9
    model = classifier.model_
    row = {f"x{k}": float(cell) for k, cell in enumerate(x[70])}
    expected = [np.exp(model.log_probability({**row, "y": name})) for name in names]
    assert p[70] == pytest.approx(np.array(expected) / sum(expected), abs=1e-9)
    # Unknown features are integrated out.
    half = x.copy()
    half[:, :2] = np.nan
    assert classifier.score(half, names[y]) > 0.9
    assert cross_val_score(make_pipeline(StandardScaler(), classifier), x, y, cv=3).mean() > 0.85


def test_density_is_that_of_the_model() -> None:
    x, _ = iris()
    density = BorniteDensity(effort="fast", random_state=3).fit(x)
    assert density.score(x) == pytest.approx(density.score_samples(x).mean())
    again = BorniteDensity(effort="fast", random_state=3).fit(x)
    assert np.array_equal(density.score_samples(x), again.score_samples(x))
    drawn = density.sample(4000, random_state=1)
    assert drawn.shape == (4000, 4)
    assert np.allclose(drawn.mean(axis=0), x.mean(axis=0), atol=0.2)
    assert np.array_equal(drawn, density.sample(4000, random_state=1))
    # One unknown feature: the density of the others, by quadrature.
    grid = np.linspace(-20, 30, 20_001)
    rows = np.repeat(x[:1], len(grid), axis=0)
    rows[:, 3] = grid
    p = np.exp(density.score_samples(rows))
    one = x[:1].copy()
    one[0, 3] = np.nan
    integral = np.sum((p[1:] + p[:-1]) / 2) * (grid[1] - grid[0])
    assert np.exp(density.score_samples(one))[0] == pytest.approx(integral, rel=1e-3)


@pytest.mark.parametrize("method", ["mean", "median", "mode", "sample"])
def test_imputer_keeps_what_is_known(method: Any) -> None:
    x, _ = iris()
    holes = np.where(np.random.default_rng(0).random(x.shape) < 0.2, np.nan, x)
    imputer = BorniteImputer(effort="fast", method=method, random_state=0).fit(holes)
    filled = imputer.transform(holes)
    known = ~np.isnan(holes)
    assert np.array_equal(filled[known], holes[known])
    assert not np.isnan(filled).any()
    column_means = np.where(known, holes, np.nanmean(holes, axis=0))
    error = np.abs(filled - x)[~known].mean()
    assert error < 0.8 * np.abs(column_means - x)[~known].mean()
    assert list(imputer.get_feature_names_out()) == ["x0", "x1", "x2", "x3"]


def test_imputer_of_features_that_say_nothing() -> None:
    x = np.column_stack([np.full(30, np.nan), np.full(30, 4.0), np.arange(30.0)])
    imputer = BorniteImputer(effort="fast", random_state=0).fit(x)
    assert imputer.transform([[np.nan, np.nan, 3.0]]).tolist() == [[0.0, 4.0, 3.0]]
    assert imputer.transform([[7.0, 5.0, 3.0]]).tolist() == [[7.0, 5.0, 3.0]]


def test_categorical_features() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 120).astype(float)
    x = np.column_stack([kind, kind + 0.1 * rng.normal(size=120)])
    for given in ([0], [True, False]):
        density = BorniteDensity(effort="fast", categorical_features=given, random_state=0).fit(x)
        assert set(density.sample(50, random_state=0)[:, 0]) <= {0.0, 1.0, 2.0}
        assert density.model_.schema[0]["kind"] == "categorical"
    imputer = BorniteImputer(effort="fast", categorical_features=[0], method="mode", random_state=0).fit(x)
    assert imputer.transform([[np.nan, 2.0], [np.nan, 0.0]])[:, 0].tolist() == [2.0, 0.0]
    # A category that was never seen is kept, and says nothing.
    assert imputer.transform([[9.0, np.nan]])[0, 0] == 9.0
    with pytest.raises(ValueError, match="positions go from 0 to 1"):
        BorniteDensity(effort="fast", categorical_features=[2]).fit(x)
    with pytest.raises(ValueError, match="3 entries for 2 features"):
        BorniteDensity(effort="fast", categorical_features=[True, False, True]).fit(x)


def test_outliers_are_the_least_likely_rows() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    detector = BorniteOutlierDetector(effort="fast", by="density", contamination=0.05, random_state=0)
    labels = detector.fit_predict(x)
    assert (labels == -1).sum() == 10
    worst = np.argsort(detector.score_samples(x))[:10]
    assert set(np.flatnonzero(labels == -1)) == set(worst)
    assert detector.predict([[50.0, -50.0]]) == [-1]
    with pytest.raises(ValueError, match="contamination=0.7"):
        BorniteOutlierDetector(effort="fast", contamination=0.7).fit(x)


def test_outliers_by_cells_among_many_features() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(400, 1))
    x = np.hstack([base + 0.3 * rng.normal(size=(400, 8)), np.full((400, 1), 4.0)])
    detector = BorniteOutlierDetector(effort="fast", contamination=0.05, random_state=0).fit(x)
    assert detector.by == "either"
    strange = x[:40].copy()
    # One cell that is usual by itself, and one that differs from a constant.
    strange[:20, 3] = -2 * np.sign(base[:20, 0])
    strange[20, 8] = 5.0
    scores = detector.score_samples(strange)
    assert np.median(scores[:20]) < np.median(scores[21:]) - 2
    assert detector.predict(strange)[20] == -1
    with pytest.raises(ValueError, match="choose 'either', 'cells' or 'density'"):
        BorniteOutlierDetector(effort="fast", by="rows").fit(x)  # type: ignore[arg-type]


def test_outliers_by_either_are_rows_of_another_kind_too() -> None:
    x, y = iris()
    own = np.random.default_rng(0).permutation(np.flatnonzero(y == 1))
    detector = BorniteOutlierDetector(effort="fast", random_state=0).fit(x[own[:35]])
    inside, outside = detector.score_samples(x[own[35:]]), detector.score_samples(x[y != 1])
    # The share of pairs in which the row of another kind is the stranger one.
    assert np.mean(outside[:, None] < inside[None]) > 0.85


def test_fits_go_on_from_a_model() -> None:
    x, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    density = BorniteDensity(effort="fast", epochs=5, width=4, random_state=0, warm_start=True).fit(x)
    first, shifted = density.model_, x[::-1] + 0.3
    before = density.score(shifted)
    assert density.fit(shifted).model_.schema == first.schema and density.score(shifted) > before
    with pytest.raises(ValueError, match="3 features"):
        density.fit(x[:, :3])
    classifier = BorniteClassifier(effort="fast", epochs=5, random_state=0, warm_start=True).fit(x, names)
    classifier.fit(x[y != 0], names[y != 0])
    assert list(classifier.classes_) == ["setosa", "versicolor", "virginica"]
    assert classifier.predict(x[y == 1]).tolist().count("versicolor") > 40
    with pytest.raises(ValueError, match="keeps the classes"):
        classifier.fit(x, np.where(names == "setosa", "rose", names))
    regressor = BorniteRegressor(effort="fast", epochs=5, random_state=0, warm_start=True).fit(x[:, :3], x[:, 3])
    assert regressor.fit(x[:50, :3], x[:50, 3]).predict(x[:1, :3]).shape == (1,)
    imputer = BorniteImputer(effort="fast", epochs=5, random_state=0, warm_start=True).fit(x)
    assert imputer.fit(x[:80]).transform(x[:2]).shape == (2, 4)


def test_partial_fits_go_on_with_more_rows() -> None:
    x, y = iris()
    options: dict[str, Any] = {"epochs": 5, "width": 4, "random_state": 0}
    shifted = x[::-1] + 0.3
    density = BorniteDensity(effort="fast", **options).partial_fit(x)
    first, before = density.model_, density.score(shifted)
    assert first.log_prob(density._table(x)) == pytest.approx(BorniteDensity(effort="fast", **options).fit(x).score_samples(x))
    assert density.partial_fit(shifted).model_.schema == first.schema and density.score(shifted) > before
    # The same as a fit that goes on; and a plain fit begins anew.
    warm = BorniteDensity(effort="fast", **options, warm_start=True).fit(x).fit(shifted)
    assert np.array_equal(warm.score_samples(x), density.score_samples(x))
    assert density.fit(x).score(shifted) == before
    with pytest.raises(ValueError, match="3 features"):
        density.partial_fit(x[:, :3])
    classifier = BorniteClassifier(effort="fast", **options).partial_fit(x, y, classes=[0, 1, 2])
    classifier.partial_fit(x[y > 0], y[y > 0], classes=[0, 1, 2])
    assert list(classifier.classes_) == [0, 1, 2]
    assert classifier.predict(x[y == 1]).tolist().count(1) > 40
    with pytest.raises(ValueError, match="7 is not one of them"):
        classifier.partial_fit(x, np.where(y == 0, 7, y))
    for unknown in (BorniteClassifier(), classifier):
        with pytest.raises(ValueError, match="not contain class 3"):
            unknown.partial_fit(x, y, classes=[0, 1, 2, 3])
    regressor = BorniteRegressor(effort="fast", **options).partial_fit(x[:, :3], x[:, 3])
    assert regressor.partial_fit(x[:50, :3], x[:50, 3]).predict(x[:1, :3]).shape == (1,)
    imputer = BorniteImputer(effort="fast", **options).partial_fit(x)
    assert imputer.partial_fit(x[:80], sample_weight=np.ones(80)).transform(x[:2]).shape == (2, 4)
    detector = BorniteOutlierDetector(effort="fast", **options).partial_fit(x).partial_fit(x[:80])
    assert (detector.predict(x[:80]) == -1).sum() == 8


def test_weights_of_rows_count() -> None:
    x = np.repeat([[0.0], [1.0]], 100, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(200, 1))
    y = np.repeat(["a", "b"], 100)
    weights = np.repeat([3.0, 1.0], 100)
    options: dict[str, Any] = {"width": 2, "epochs": 20, "random_state": 0}
    classifier = BorniteClassifier(effort="fast", **options).fit(x, y, sample_weight=weights)
    # Without weights, it is 0.5.
    assert classifier.model_.query("P(y='a')") == pytest.approx(0.75, abs=0.05)
    regressor = BorniteRegressor(effort="fast", **options).fit(x, x[:, 0], sample_weight=weights)
    assert regressor.model_.query("E[y]") == pytest.approx(0.25, abs=0.06)
    density = BorniteDensity(effort="fast", **options).fit(x, sample_weight=weights)
    assert density.model_.query("P(x0 < 0.5)") == pytest.approx(0.75, abs=0.1)
    # Rows without weight are as if they were not there.
    weights[100:] = 0
    detector = BorniteOutlierDetector(effort="fast", **options).fit(x, sample_weight=weights)
    assert (detector.predict(x[100:]) == -1).all() and (detector.predict(x[:100]) == 1).mean() > 0.8
    imputer = BorniteImputer(effort="fast", **options).fit(x, sample_weight=weights)
    assert abs(imputer.transform([[np.nan]])[0, 0]) < 0.3
    with pytest.raises(ValueError, match="sample_weight"):
        density.fit(x, sample_weight=-weights)


def test_names_of_features_are_checked() -> None:
    pandas = pytest.importorskip("pandas")
    x, _ = iris()
    frame = pandas.DataFrame(x, columns=["a", "b", "c", "d"])
    density = BorniteDensity(effort="fast", random_state=0).fit(frame)
    assert list(density.feature_names_in_) == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names"):
        density.score_samples(frame[["b", "a", "c", "d"]])


def people(count: int = 300) -> tuple[Any, Any, Any]:
    """A DataFrame of all types with missing values, a class that follows the plan, and a number that follows both."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    plan = rng.choice(["free", "basic", "gold"], count, p=[0.5, 0.3, 0.2])
    level = pandas.Series(plan).map({"free": 0, "basic": 1, "gold": 2}).to_numpy()
    frame = pandas.DataFrame(
        {
            "plan": pandas.Categorical(plan, categories=["free", "basic", "gold"], ordered=True),
            "city": rng.choice(["Bonn", "Ulm"], count).astype(object),
            "since": np.datetime64("2020-01-01") + rng.integers(0, 700, count).astype("timedelta64[D]"),
            "active": rng.random(count) < 0.3 + 0.3 * level,
            "visits": pandas.array(rng.poisson(3 + 4 * level), dtype="Int64"),
            "score": level + 0.3 * rng.normal(size=count),
        }
    )
    paid = 10.0 * level + rng.normal(size=count)
    loyal = pandas.Series(np.where(rng.random(count) < 0.1 + 0.4 * level, "yes", "no"), name="loyal")
    for column in ("plan", "city", "visits", "score", "since"):
        frame.loc[rng.random(count) < 0.1, column] = None
    return frame, loyal, paid


def test_data_frames_of_all_types() -> None:
    frame, loyal, paid = people()
    classifier = BorniteClassifier(effort="fast", random_state=0).fit(frame, loyal)
    assert classifier.score(frame, loyal) > 0.65
    assert classifier.predict_proba(frame.head(4)).sum(axis=1) == pytest.approx(1)
    # The model speaks of the frame's own columns.
    gold, free = (classifier.model_.query(f"P(loyal='yes' | plan='{plan}')") for plan in ("gold", "free"))
    assert gold > free + 0.2
    regressor = BorniteRegressor(effort="fast", random_state=0).fit(frame, paid)
    assert regressor.score(frame, paid) > 0.8
    low, high = regressor.predict_quantile(frame, [0.05, 0.95]).T
    assert 0.75 < np.mean((low <= paid) & (paid <= high)) <= 1
    # What is missing altogether is integrated out, not guessed.
    unknown = frame.assign(plan=None, visits=None, score=None)
    assert np.ptp(regressor.predict(unknown)) < np.ptp(regressor.predict(frame))
    with pytest.raises(TypeError, match="expected a DataFrame, as in fit, found ndarray"):
        classifier.predict(frame.to_numpy())
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="requires y"):
        BorniteClassifier().fit(frame, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        BorniteRegressor().fit(frame, paid[1:])


def test_imputed_data_frames_keep_their_types() -> None:
    frame, _, _ = people()
    imputer = BorniteImputer(effort="fast", random_state=0).fit(frame)
    filled = imputer.transform(frame)
    assert filled.dtypes.tolist() == frame.dtypes.tolist()
    assert not filled.isna().any().any()
    known = frame.notna()
    for column in frame:
        assert (filled[column][known[column]] == frame[column][known[column]]).all()
    density = BorniteDensity(effort="fast", random_state=0).fit(frame)
    drawn = density.sample(20, random_state=1)
    assert drawn.dtypes.tolist() == frame.dtypes.tolist()
    assert np.isfinite(density.score_samples(frame)).all()
    assert BorniteOutlierDetector(effort="fast", random_state=0).fit(frame).predict(frame).min() == -1


def test_polars_frames_and_categories_by_name() -> None:
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 150)
    table = polars.DataFrame({"word": np.array(["a", "b", "c"])[kind], "x": kind + 0.1 * rng.normal(size=150)})
    classifier = BorniteClassifier(effort="fast", categorical_features="from_dtype", random_state=0).fit(table, kind)
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert classifier.score(table, kind) > 0.95
    holes = table.with_columns(polars.when(polars.col("x") > 1.5).then(None).otherwise(polars.col("word")).alias("word"))
    filled = BorniteImputer(effort="fast", random_state=0).fit(table).transform(holes)
    assert isinstance(filled, polars.DataFrame) and filled["word"].to_list() == table["word"].to_list()
    numbers = table.select("x").with_columns(polars.Series("kind", kind))
    density = BorniteDensity(effort="fast", categorical_features=["kind"], random_state=0).fit(numbers)
    assert density.model_.schema[1]["kind"] == "categorical"
    with pytest.raises(ValueError, match="there is no feature 'city'"):
        BorniteDensity(effort="fast", categorical_features=["city"]).fit(numbers)


def test_regressor_is_the_mean_and_the_quantiles_of_the_conditional() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = x[:, 0] - x[:, 1] + 0.3 * rng.normal(size=300)
    regressor = BorniteRegressor(effort="fast", method="mean", random_state=0).fit(x, y)
    assert regressor.score(x, y) > 0.85
    row = {"x0": float(x[7, 0]), "x1": float(x[7, 1])}
    conditional = regressor.model_.marginal("y", given=row)
    assert regressor.predict(x[7:8])[0] == pytest.approx(conditional.mean, abs=1e-6)
    assert regressor.predict_quantile(x[7:8], [0.1, 0.9])[0] == pytest.approx(conditional.quantile([0.1, 0.9]), abs=1e-6)
    median = BorniteRegressor(effort="fast", method="median", random_state=0).fit(x, y)
    assert median.predict(x[7:8])[0] == pytest.approx(conditional.quantile(0.5), abs=1e-6)
    half = x.copy()
    half[:, 1] = np.nan
    assert 0.2 < regressor.score(half, y) < regressor.score(x, y)
    with pytest.raises(ValueError, match="choose 'auto', 'mean' or 'median'"):
        BorniteRegressor(effort="fast", method="mode").fit(x, y)  # type: ignore[arg-type]


def test_regressor_predicts_between_the_median_and_the_mean_by_held_out_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    y = np.exp(x[:, 0] + rng.normal(size=400))
    regressor = BorniteRegressor(effort="fast", random_state=0).fit(x, y)
    mean, median = (np.asarray(regressor.model_.predict({"x0": x[:, 0], "x1": x[:, 1]}, "y", method=m)) for m in ("mean", "median"))
    share = regressor.mean_share_
    assert 0 <= share <= 1
    assert regressor.predict(x) == pytest.approx(median + share * (mean - median))
    # Where the target is known almost exactly, the median is nearer to it than a mean over all that is possible.
    exact = BorniteRegressor(effort="fast", random_state=0).fit(x, x[:, 0])
    assert exact.mean_share_ < 1
    fresh = rng.normal(size=(200, 2))
    score = exact.score(fresh, fresh[:, 0])
    exact.mean_share_ = 1.0
    assert score > exact.score(fresh, fresh[:, 0])
    assert BorniteRegressor(effort="fast", random_state=0).fit(x[:150], y[:150]).mean_share_ == 1.0
    weights = np.ones(400)
    weighed = BorniteRegressor(effort="fast", random_state=0).fit(x, y, sample_weight=weights)
    assert weighed.predict(x[:9]) == pytest.approx(regressor.predict(x[:9]))


def test_regressor_sharpens_its_quantiles_by_held_out_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    y = x[:, 0] * x[:, 1] + 0.1 * rng.normal(size=600)
    # After two epochs, the distributions are too wide.
    regressor = BorniteRegressor(effort="fast", epochs=2, random_state=0).fit(x, y)
    sharpness = regressor.sharpness_
    assert sharpness > 1.1
    fresh = rng.normal(size=(500, 2))
    truth = fresh[:, 0] * fresh[:, 1] + 0.1 * rng.normal(size=500)
    levels = np.array([0, 0.05, 0.5, 0.95, 1])
    odds = np.log(levels[1:4] / (1 - levels[1:4])) / sharpness
    direct = regressor.model_.quantile("y", 1 / (1 + np.exp(-odds)), given=fresh)
    found = regressor.predict_quantile(fresh, levels)
    assert found[:, 1:4] == pytest.approx(direct)
    assert (found[:, 0] <= found[:, 1]).all() and (found[:, 3] <= found[:, 4]).all()
    assert regressor.predict_quantile(fresh, 0.5).shape == (500,)

    def coverage() -> float:
        low, high = regressor.predict_quantile(fresh, [0.05, 0.95]).T
        return float(((low <= truth) & (truth <= high)).mean())

    sharpened = coverage()
    regressor.sharpness_ = 1.0
    assert abs(sharpened - 0.9) < abs(coverage() - 0.9)
    with pytest.raises(ValueError, match="give a probability from 0 to 1"):
        regressor.predict_quantile(fresh, 1.5)
    regressor.sharpness_ = 2.0
    with pytest.raises(ValueError, match="give a probability from 0 to 1"):
        regressor.predict_quantile(fresh, [0.5, -0.5])
    for method in ("mean", "median"):
        assert BorniteRegressor(effort="fast", method=method, random_state=0).fit(x, y).sharpness_ == 1.0


def test_sharpness_is_that_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    odds = np.linspace(-6, 6, 33)
    center, scale = rng.normal(size=500), np.exp(rng.normal(size=500))
    quantiles = center[:, None] + scale[:, None] * odds
    # Logistic distributions whose scale is the claimed one divided by 2, and multiplied by 1.5.
    for factor in (0.5, 1.0, 1.5):
        truth = center + factor * scale * rng.logistic(size=500)
        assert _best_sharpness(quantiles, truth, np.ones(500)) == pytest.approx(1 / factor, rel=0.15)
    # Rows without weight do not count, and few rows change little.
    weights = np.repeat([1.0, 0.0], 250)
    truth = center + np.repeat([0.5, 5.0], 250) * scale * rng.logistic(size=500)
    assert _best_sharpness(quantiles, truth, weights) == pytest.approx(2, rel=0.2)
    assert 1 < _best_sharpness(quantiles[:10], center[:10], np.ones(10)) < 1.7
    # Distributions at one point say nothing.
    assert _best_sharpness(np.ones((500, 33)), truth, np.ones(500)) == 1.0

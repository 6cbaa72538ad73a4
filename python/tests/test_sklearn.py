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
)

ESTIMATORS = [BorniteDensity(), BorniteImputer(), BorniteOutlierDetector(), BorniteClassifier()]


@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator]
def test_sklearn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def iris() -> tuple[Any, Any]:
    x, y = load_iris(return_X_y=True)
    return x, y


def test_classifier_is_the_quotient_of_the_joint() -> None:
    x, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])
    classifier = BorniteClassifier(random_state=0).fit(x, names[y])
    p = classifier.predict_proba(x)
    assert p.shape == (150, 3) and np.allclose(p.sum(axis=1), 1)
    assert classifier.score(x, names[y]) > 0.9
    model = classifier.model_
    row = {f"x{k}": float(cell) for k, cell in enumerate(x[70])}
    expected = [np.exp(model.log_probability({**row, "y": f"c{k}"})) for k in range(3)]
    assert p[70] == pytest.approx(np.array(expected) / sum(expected), abs=1e-9)
    # Unknown features are integrated out.
    half = x.copy()
    half[:, :2] = np.nan
    assert classifier.score(half, names[y]) > 0.9
    assert cross_val_score(make_pipeline(StandardScaler(), classifier), x, y, cv=3).mean() > 0.85


def test_density_is_that_of_the_model() -> None:
    x, _ = iris()
    density = BorniteDensity(random_state=3).fit(x)
    assert density.score(x) == pytest.approx(density.score_samples(x).mean())
    again = BorniteDensity(random_state=3).fit(x)
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
    imputer = BorniteImputer(method=method, random_state=0).fit(holes)
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
    imputer = BorniteImputer(random_state=0).fit(x)
    assert imputer.transform([[np.nan, np.nan, 3.0]]).tolist() == [[0.0, 4.0, 3.0]]
    assert imputer.transform([[7.0, 5.0, 3.0]]).tolist() == [[7.0, 5.0, 3.0]]


def test_categorical_features() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 120).astype(float)
    x = np.column_stack([kind, kind + 0.1 * rng.normal(size=120)])
    for given in ([0], [True, False]):
        density = BorniteDensity(categorical_features=given, random_state=0).fit(x)
        assert set(density.sample(50, random_state=0)[:, 0]) <= {0.0, 1.0, 2.0}
        assert density.model_.schema[0]["kind"] == "categorical"
    imputer = BorniteImputer(categorical_features=[0], method="mode", random_state=0).fit(x)
    assert imputer.transform([[np.nan, 2.0], [np.nan, 0.0]])[:, 0].tolist() == [2.0, 0.0]
    # A category that was never seen is kept, and says nothing.
    assert imputer.transform([[9.0, np.nan]])[0, 0] == 9.0
    with pytest.raises(ValueError, match="positions go from 0 to 1"):
        BorniteDensity(categorical_features=[2]).fit(x)
    with pytest.raises(ValueError, match="3 entries for 2 features"):
        BorniteDensity(categorical_features=[True, False, True]).fit(x)


def test_outliers_are_the_least_likely_rows() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    detector = BorniteOutlierDetector(contamination=0.05, random_state=0)
    labels = detector.fit_predict(x)
    assert (labels == -1).sum() == 10
    worst = np.argsort(detector.score_samples(x))[:10]
    assert set(np.flatnonzero(labels == -1)) == set(worst)
    assert detector.predict([[50.0, -50.0]]) == [-1]
    with pytest.raises(ValueError, match="contamination=0.7"):
        BorniteOutlierDetector(contamination=0.7).fit(x)


def test_names_of_features_are_checked() -> None:
    pandas = pytest.importorskip("pandas")
    x, _ = iris()
    frame = pandas.DataFrame(x, columns=["a", "b", "c", "d"])
    density = BorniteDensity(random_state=0).fit(frame)
    assert list(density.feature_names_in_) == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names"):
        density.score_samples(frame[["b", "a", "c", "d"]])

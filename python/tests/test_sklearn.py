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

"""Estimators for scikit-learn.

All of them learn one joint distribution of their features, take NaN for unknown wherever values go in, and
answer exactly under that distribution.

>>> import numpy as np
>>> from bornite.sklearn import BorniteImputer
>>> x = np.random.default_rng(0).normal(size=(100, 1))
>>> table = np.hstack([x, 2 * x])
>>> table[::5, 1] = np.nan
>>> bool(np.isnan(BorniteImputer(random_state=0).fit_transform(table)).any())
False

This module needs scikit-learn 1.6 or later; the rest of the package does not.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    DensityMixin,
    OneToOneFeatureMixin,
    OutlierMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from bornite.model import Model, fit

__all__ = ["BorniteClassifier", "BorniteDensity", "BorniteImputer", "BorniteOutlierDetector"]

Array = npt.NDArray[Any]


class _Estimator(BaseEstimator):
    """What all estimators share: one joint distribution, fitted to rows of numbers."""

    def __init__(
        self,
        *,
        width: int | None = None,
        output_width: int | None = None,
        functions: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        patience: int | None = 15,
        structure: str = "auto",
        categorical_features: Any = None,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.output_width = output_width
        self.functions = functions
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.patience = patience
        self.structure = structure
        self.categorical_features = categorical_features
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check(self, X: Any, *, reset: bool = False) -> Array:
        found: Array = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        return found

    def _table(self, X: Array) -> dict[str, Array]:
        return {f"x{index}": column for index, column in enumerate(X.T)}

    def _categorical(self) -> set[int]:
        """The positions of categorical features, given as such or as a mask."""
        given = self.categorical_features
        if given is None:
            return set()
        listed = np.atleast_1d(np.asarray(given))
        if listed.dtype == bool:
            if len(listed) != self.n_features_in_:
                raise ValueError(
                    f"categorical_features has {len(listed)} entries for {self.n_features_in_} features: give "
                    "one for each, or the positions"
                )
            return set(np.flatnonzero(listed).tolist())
        if any(not 0 <= int(place) < self.n_features_in_ for place in listed):
            raise ValueError(
                f"categorical_features={given!r}: positions go from 0 to {self.n_features_in_ - 1}"
            )
        return {int(place) for place in listed}

    def _fit(self, X: Array, more: dict[str, Array] | None = None) -> Model:
        categorical = self._categorical()
        kinds = {
            f"x{index}": "categorical" if index in categorical or _is_single(column) else "continuous"
            for index, column in enumerate(X.T)
        }
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return fit(
            {**self._table(X), **(more or {})},
            kinds=kinds,
            width=_width(X.size) if self.width is None else self.width,
            output_width=self.output_width,
            functions=self.functions,
            epochs=self.epochs,
            batch=self.batch,
            rate=self.rate,
            patience=self.patience,
            structure=self.structure,  # type: ignore[arg-type]
            as_is=True,
            seed=seed,
        )

    def _log_density(self, X: Any) -> Array:
        check_is_fitted(self)
        logs: Array = self.model_.log_prob(self._table(self._check(X)))
        return logs


def _width(cells: int) -> int:
    """One width for so many cells, so that a fit is quick: ``bornite.fit`` by itself tries several."""
    return int(np.clip(round(float(cells) ** 0.25 / 2), 4, 16))


def _is_single(column: Array) -> bool:
    """Whether there is at most one known number, which has no density."""
    known = column[~np.isnan(column)]
    return not len(known) or bool((known == known[0]).all())


class BorniteDensity(DensityMixin, _Estimator):
    """The joint density of the features.

    Parameters are those of ``bornite.fit``; None follows from the size of the data, and means one ``width`` where
    ``bornite.fit`` tries several. Features are continuous, but for those named in ``categorical_features``, by
    positions or as a mask, and constant ones.

    >>> import numpy as np
    >>> from bornite.sklearn import BorniteDensity
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> density = BorniteDensity(random_state=0).fit(x)
    >>> density.score_samples(x).shape, density.sample(5, random_state=1).shape
    ((200,), (5, 2))
    >>> bool(density.score(x) > density.score(x + 3))
    True
    """

    def fit(self, X: Any, y: Any = None) -> BorniteDensity:
        """Fits the density to rows; NaN is unknown."""
        self.model_ = self._fit(self._check(X, reset=True))
        return self

    def score_samples(self, X: Any) -> Array:
        """The log density of every row, unknown features integrated out."""
        return self._log_density(X)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """New rows."""
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        rows = self.model_.sample(n_samples, seed=seed)
        return np.column_stack([rows[f"x{index}"] for index in range(self.n_features_in_)])


class BorniteImputer(OneToOneFeatureMixin, TransformerMixin, _Estimator):
    """Fills NaN given the known features of a row.

    ``method`` is ``"mean"``, ``"median"``, ``"mode"`` or ``"sample"``: see ``bornite.Model.impute``. Known
    values stay as they are, and so does the place of a feature that no row knew when the imputer was fitted:
    it is filled with 0.

    >>> import numpy as np
    >>> from bornite.sklearn import BorniteImputer
    >>> x = np.random.default_rng(0).normal(size=(100, 1))
    >>> table = np.hstack([x, 2 * x])
    >>> table[0, 1] = np.nan
    >>> BorniteImputer(method="median", random_state=0).fit_transform(table).shape
    (100, 2)
    """

    def __init__(
        self,
        *,
        method: Literal["mean", "median", "mode", "sample"] = "mean",
        width: int | None = None,
        output_width: int | None = None,
        functions: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        patience: int | None = 15,
        structure: str = "auto",
        categorical_features: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            width=width,
            output_width=output_width,
            functions=functions,
            epochs=epochs,
            batch=batch,
            rate=rate,
            patience=patience,
            structure=structure,
            categorical_features=categorical_features,
            random_state=random_state,
        )
        self.method = method

    def fit(self, X: Any, y: Any = None) -> BorniteImputer:
        """Fits the joint distribution of the features."""
        checked = self._check(X, reset=True)
        self.model_ = self._fit(checked)
        known = [column[~np.isnan(column)] for column in checked.T]
        # What a place for unseen values is filled with: the commonest number.
        self.fallback_ = np.array([_commonest(column) for column in known])
        return self

    def transform(self, X: Any) -> Array:
        """The rows with NaN filled."""
        check_is_fitted(self)
        checked = self._check(X)
        if not np.isnan(checked).any():
            return checked.copy()
        # Values that the model has no place for are unknown to it, and kept.
        filled = self.model_.impute(self._known(checked), method=self.method, seed=self._seed())
        table = np.column_stack([filled[f"x{index}"] for index in range(self.n_features_in_)])
        table = np.where(np.isnan(checked), table, checked)
        return np.where(np.isnan(table), self.fallback_, table)

    def _seed(self) -> int:
        state = self.random_state
        return int(state) if isinstance(state, (int, np.integer)) else 0

    def _known(self, X: Array) -> dict[str, Array]:
        table = self._table(X.copy())
        for column in self.model_.schema:
            if column["kind"] == "categorical" and not column["has_other"]:
                labels = [float(label) for label in column["labels"]]
                cells = table[column["name"]]
                cells[~np.isin(cells, labels)] = np.nan
        return table


def _commonest(known: Array) -> float:
    if not len(known):
        return 0.0
    values, counts = np.unique(known, return_counts=True)
    return float(values[np.argmax(counts)])


class BorniteOutlierDetector(OutlierMixin, _Estimator):
    """Rows of low density.

    A share ``contamination`` of the rows that the detector is fitted to, between 0 and 0.5, are outliers.

    >>> import numpy as np
    >>> from bornite.sklearn import BorniteOutlierDetector
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> detector = BorniteOutlierDetector(random_state=0).fit(x)
    >>> detector.predict([[0, 0], [9, -9]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        contamination: float = 0.1,
        width: int | None = None,
        output_width: int | None = None,
        functions: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        patience: int | None = 15,
        structure: str = "auto",
        categorical_features: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            width=width,
            output_width=output_width,
            functions=functions,
            epochs=epochs,
            batch=batch,
            rate=rate,
            patience=patience,
            structure=structure,
            categorical_features=categorical_features,
            random_state=random_state,
        )
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None) -> BorniteOutlierDetector:
        """Fits the density, and the log density below which rows are outliers."""
        share = self.contamination
        if not isinstance(share, Real) or not 0 < float(share) <= 0.5:
            raise ValueError(f"contamination={share!r}: give a share above 0 and at most 0.5")
        self.model_ = self._fit(self._check(X, reset=True))
        self.offset_: float = float(np.percentile(self._log_density(X), 100 * float(share)))
        return self

    def score_samples(self, X: Any) -> Array:
        """The log density of every row: lower is stranger."""
        return self._log_density(X)

    def decision_function(self, X: Any) -> Array:
        """``score_samples`` less the threshold ``offset_``: negative for outliers."""
        scores: Array = self.score_samples(X) - self.offset_
        return scores

    def predict(self, X: Any) -> Array:
        """−1 for outliers, 1 for others."""
        return np.where(self.decision_function(X) < 0, -1, 1)


class BorniteClassifier(ClassifierMixin, _Estimator):
    """p(y | x) from the joint distribution of features and class, exact also where features are unknown.

    >>> import numpy as np
    >>> from bornite.sklearn import BorniteClassifier
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.where(x[:, 0] > 0, "right", "left")
    >>> classifier = BorniteClassifier(random_state=0).fit(x, y)
    >>> classifier.predict([[2, 0], [-2, np.nan]])
    array(['right', 'left'], dtype='<U5')
    """

    def fit(self, X: Any, y: Any) -> BorniteClassifier:
        """Fits the joint distribution of the features and the class."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        labels = np.array([f"c{code}" for code in range(len(self.classes_))])
        self.model_ = self._fit(X, {"y": labels[codes]})
        return self

    def predict_log_proba(self, X: Any) -> Array:
        """log p(y | x) of every class."""
        check_is_fitted(self)
        table = self._table(self._check(X))
        rows = len(next(iter(table.values())))
        joint = np.column_stack(
            [
                self.model_.log_prob({**table, "y": np.full(rows, f"c{code}")}, unseen="unknown")
                for code in range(len(self.classes_))
            ]
        )
        # A class that was seen once may have gone to the place for other labels.
        logs: Array = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
        return logs

    def predict_proba(self, X: Any) -> Array:
        """p(y | x) of every class."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """The most likely class."""
        logs = self.predict_log_proba(X)
        best: Array = self.classes_[np.argmax(logs, axis=1)]
        return best

"""Estimators for scikit-learn.

All of them learn one joint distribution of their features, accept missing values in fitting and in prediction, and
answer exactly under that distribution.

>>> import numpy as np
>>> from bornite.sklearn import BorniteImputer
>>> x = np.random.default_rng(0).normal(size=(100, 1))
>>> table = np.hstack([x, 2 * x])
>>> table[::5, 1] = np.nan
>>> bool(np.isnan(BorniteImputer(random_state=0).fit_transform(table)).any())
False

Features are numeric arrays, or pandas and polars DataFrames. In a DataFrame with columns other than numbers, the column
types are used: text, categories and Booleans are finite, dates are dates, and NaN, None and NA are missing values, as
in ``bornite.fit``. In all other cases, features are continuous unless listed in ``categorical_features``.

Every ``fit`` takes a ``sample_weight``; rows with weight 0 are dropped. ``partial_fit`` continues from the model with
more rows of the same features, such as those of a new day; the first call is a ``fit``. It starts from the model's
weights and keeps the columns, labels and circuit: see ``start`` in ``bornite.fit``.

This module needs scikit-learn 1.6 or later; the rest of the package does not.
"""

from __future__ import annotations

from collections.abc import Callable
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
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import (
    _safe_indexing,
    assert_all_finite,
    check_consistent_length,
    check_random_state,
    column_or_1d,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bornite import _tables
from bornite._bornite import BorniteError
from bornite._errors import ArgumentError
from bornite.fitting import fit
from bornite.model import Model

__all__ = [
    "BorniteClassifier",
    "BorniteDensity",
    "BorniteImputer",
    "BorniteOutlierDetector",
    "BorniteRegressor",
]

Array = npt.NDArray[Any]
Effort = Literal["fast", "balanced", "best"]

# The fraction of rows that a regressor holds out, and the minimum number of rows for which it does.
HELD_OUT_SHARE, MIN_ROWS_TO_HOLD_OUT = 0.1, 200
# The sharpnesses that a regressor compares, on at most `MAX_ROWS_TO_SHARPEN` held-out rows, by the error of quantiles at
# these levels. The result counts as much as `PRIOR_ROWS` rows that are sharp enough already.
SHARPNESSES = np.geomspace(0.5, 4, 49)
SCORED_LEVELS = np.array([0.05, 0.1, 0.25, 0.75, 0.9, 0.95])
MAX_ROWS_TO_SHARPEN, PRIOR_ROWS = 1000, 20
# The log-odds at which the quantiles of these rows are computed, to interpolate between them.
KNOTS = np.linspace(-6, 6, 33)
# For predictions, numbers with more than `MAX_DISTINCT` distinct values have an atom only at values with at least
# `MIN_ATOM_SHARE` of the rows.
MAX_DISTINCT, MIN_ATOM_SHARE = 30, 0.1


class _Estimator(BaseEstimator):
    """The base of all estimators: one joint distribution, fitted to rows."""

    model_: Model
    # Whether a fit continues from the model.
    _is_partial = False
    # Whether numbers are to be predicted rather than described: then neighbors share what is known about them.
    _predicts_numbers = False

    def __init__(
        self,
        *,
        effort: Effort = "balanced",
        width: int | None = None,
        output_width: int | None = None,
        functions: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        patience: int | None = None,
        structure: str = "auto",
        categorical_features: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.effort = effort
        self.width = width
        self.output_width = output_width
        self.functions = functions
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.patience = patience
        self.structure = structure
        self.categorical_features = categorical_features
        self.warm_start = warm_start
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _start(self) -> Model | None:
        """The model that a fit continues from."""
        return getattr(self, "model_", None) if self.warm_start or self._is_partial else None

    def _partially(self, fit: Callable[..., Any], *args: Any) -> Any:
        self._is_partial = True
        try:
            return fit(*args)
        finally:
            del self._is_partial

    def _check(self, X: Any, *, reset: bool = False) -> Any:
        """The features: an array of numbers, or a DataFrame with other columns too."""
        if reset:
            self._is_mixed = _is_mixed(X)
        if not self._is_mixed:
            return validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        if not hasattr(X, "columns"):
            raise ArgumentError(
                f"expected a DataFrame, as in fit, found {type(X).__name__}: give one with the columns "
                f"{', '.join(map(str, self._names()[:10]))}"
            )
        checked = validate_data(self, X, reset=reset, skip_check_array=True)
        if not len(checked):
            raise BorniteError("Found array with 0 sample(s) while a minimum of 1 is required.")
        return checked

    def _names(self) -> list[Any]:
        """The names of the features in the model."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{index}" for index in range(self.n_features_in_)] if names is None else list(names)

    def _table(self, X: Any) -> Any:
        """The features as the table that the model reads."""
        return X if self._is_mixed else dict(zip(self._names(), X.T, strict=True))

    def _categorical(self) -> set[int]:
        """The positions of categorical features, given as positions, names or a mask."""
        given = self.categorical_features
        if given is None or (isinstance(given, str) and given == "from_dtype"):
            return set()
        listed = np.atleast_1d(np.asarray(given))
        if listed.dtype == bool:
            if len(listed) != self.n_features_in_:
                raise BorniteError(
                    f"categorical_features has {len(listed)} entries for {self.n_features_in_} features: give "
                    "one for each, or the positions"
                )
            return set(np.flatnonzero(listed).tolist())
        if listed.dtype.kind in "UO":
            names = [str(name) for name in self._names()]
            absent = [name for name in listed if str(name) not in names]
            if absent:
                raise BorniteError(
                    f"categorical_features={given!r}: there is no feature '{absent[0]}'; there are {', '.join(names[:10])}"
                )
            return {names.index(str(name)) for name in listed}
        if any(not 0 <= int(place) < self.n_features_in_ for place in listed):
            raise BorniteError(
                f"categorical_features={given!r}: positions go from 0 to {self.n_features_in_ - 1}"
            )
        return {int(place) for place in listed}

    def _fit(
        self,
        X: Any,
        target: tuple[str, Array, str | None] | None = None,
        sample_weight: Array | None = None,
        valid: Any = None,
    ) -> Model:
        """Fits the joint distribution of the features and a target, given as its name, cells and kind. The weights have
        been checked. Without a table of validation rows, some of the rows are held out."""
        categorical, names = self._categorical(), self._names()
        kinds: dict[Any, Any] = {names[index]: "categorical" for index in categorical}
        if not self._is_mixed:
            for index, column in enumerate(X.T):
                kinds.setdefault(names[index], "categorical" if _is_single(column) else "continuous")
        else:
            for name, dtype in zip(names, X.dtypes, strict=True):
                if not _is_number(dtype):
                    continue
                column = _numbers(X[name])
                if self._predicts_numbers and _is_wide(column):
                    kinds.setdefault(name, ("number", MIN_ATOM_SHARE))
                elif not _is_single(column) and _is_real(dtype):
                    kinds.setdefault(name, "number")
        table = self._table(X)
        if target is not None:
            name, cells, kind = target
            table = _with_column(table, name, cells)
            if kind is not None:
                kinds[name] = kind
            elif self._predicts_numbers and _is_wide(cells):
                kinds[name] = ("number", MIN_ATOM_SHARE)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        start = self._start()
        return fit(
            table,
            start=start,
            valid=valid,
            sample_weight=sample_weight,
            kinds=kinds if start is None else None,
            effort=self.effort,
            width=self.width,
            output_width=self.output_width,
            functions=self.functions,
            epochs=self.epochs,
            batch=self.batch,
            rate=self.rate,
            patience=self.patience,
            structure=self.structure,  # type: ignore[arg-type]
            target=None if target is None else target[0],
            as_is=True,
            seed=seed,
        )

    def _check_with_target(self, X: Any, y: Any, *, numeric: bool) -> tuple[Any, Array]:
        """Features and a target, for a fit."""
        reset = self._start() is None
        if not _is_mixed(X):
            self._is_mixed = False
            X, y = validate_data(
                self, X, y, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan", y_numeric=numeric
            )
            return X, y
        if y is None:
            raise BorniteError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X, y = self._check(X, reset=reset), column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        assert_all_finite(y, input_name="y")
        return X, y.astype(np.float64) if numeric else y

    def _target_name(self, y: Any) -> str:
        """The name of the target in the model: that of a Series, or y, or the existing one if a fit continues."""
        if self._start() is not None:
            return str(self.target_name_)
        taken = {str(name) for name in self._names()}
        given = getattr(y, "name", None)
        name = given if isinstance(given, str) and given else "y"
        while name in taken:
            name += "_"
        return name

    def _log_density(self, X: Any) -> Array:
        check_is_fitted(self)
        logs: Array = self.model_.log_prob(self._table(self._check(X)))
        return logs


def _checked_weight(sample_weight: Any, X: Any) -> Array | None:
    """One weight of at least 0 for each row; None if there are no weights."""
    if sample_weight is None:
        return None
    weights: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return weights


def _is_mixed(X: Any) -> bool:
    """Whether this is a DataFrame with columns other than numbers."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return False

    return not all(_is_number(dtype) for dtype in X.dtypes)


def _is_number(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):
        return bool(dtype.is_numeric())
    return getattr(dtype, "kind", "O") in "iuf" and not hasattr(dtype, "categories")


def _is_real(dtype: Any) -> bool:
    return bool(dtype.is_float()) if hasattr(dtype, "is_float") else getattr(dtype, "kind", "O") == "f"


def _numbers(column: Any) -> Array:
    """The cells of a numeric column of pandas or polars, with NaN for missing values."""
    if hasattr(column, "isna"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.to_numpy(), np.float64)


def _with_column(table: Any, name: str, cells: Array) -> Any:
    if isinstance(table, dict):
        return {**table, name: cells}
    if hasattr(table, "with_columns"):
        return table.with_columns(_tables.library("polars").Series(name, cells))
    table = table.copy(deep=False)
    table[name] = cells
    return table


def _is_single(column: Array) -> bool:
    """Whether there is at most one distinct number, which has no density."""
    known = column[~np.isnan(column)]
    return not len(known) or bool((known == known[0]).all())


def _is_wide(column: Array) -> bool:
    """Whether there are many distinct numbers."""
    return len(np.unique(column[~np.isnan(column)])) > MAX_DISTINCT


class BorniteDensity(DensityMixin, _Estimator):
    """The joint density of the features.

    The parameters are those of ``bornite.fit``; None depends on the size of the data. ``categorical_features`` is a list
    of positions or names, or a mask; ``"from_dtype"`` is the same as None. With ``warm_start=True``, another ``fit``
    continues from the model with new rows of the same features: see ``start`` in ``bornite.fit``.

    >>> import numpy as np
    >>> from bornite.sklearn import BorniteDensity
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> density = BorniteDensity(random_state=0).fit(x)
    >>> density.score_samples(x).shape, density.sample(5, random_state=1).shape
    ((200,), (5, 2))
    >>> bool(density.score(x) > density.score(x + 3))
    True
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BorniteDensity:
        """Fits the density to rows; NaN is a missing value."""
        X = self._check(X, reset=self._start() is None)
        self.model_ = self._fit(X, sample_weight=_checked_weight(sample_weight, X))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BorniteDensity:
        """Continues from the density with more rows."""
        self._partially(self.fit, X, y, sample_weight)
        return self

    def score_samples(self, X: Any) -> Array:
        """The log density of every row, with missing features integrated out."""
        return self._log_density(X)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """New rows: an array, or a DataFrame if the density was fitted to one with columns other than numbers."""
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        rows = self.model_.sample(n_samples, seed=seed)
        return rows if self._is_mixed else np.column_stack([rows[name] for name in self._names()])


class BorniteImputer(OneToOneFeatureMixin, TransformerMixin, _Estimator):
    """Imputes missing values given the observed features of a row.

    ``method`` is ``"median"``, ``"mean"``, ``"mode"`` or ``"sample"``: see ``bornite.Model.impute``. Labels are imputed
    with the most likely one unless sampled. Observed values are unchanged. A feature without any observed value in
    ``fit`` is imputed with 0. A DataFrame with columns other than numbers is returned as a DataFrame with the same
    types.

    >>> import numpy as np
    >>> from bornite.sklearn import BorniteImputer
    >>> x = np.random.default_rng(0).normal(size=(100, 1))
    >>> table = np.hstack([x, 2 * x])
    >>> table[0, 1] = np.nan
    >>> BorniteImputer(method="median", random_state=0).fit_transform(table).shape
    (100, 2)
    """

    _predicts_numbers = True

    def __init__(
        self,
        *,
        effort: Effort = "balanced",
        method: Literal["mean", "median", "mode", "sample"] = "median",
        width: int | None = None,
        output_width: int | None = None,
        functions: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        patience: int | None = None,
        structure: str = "auto",
        categorical_features: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            effort=effort,
            width=width,
            output_width=output_width,
            functions=functions,
            epochs=epochs,
            batch=batch,
            rate=rate,
            patience=patience,
            structure=structure,
            categorical_features=categorical_features,
            warm_start=warm_start,
            random_state=random_state,
        )
        self.method = method

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BorniteImputer:
        """Fits the joint distribution of the features."""
        checked = self._check(X, reset=self._start() is None)
        self.model_ = self._fit(checked, sample_weight=_checked_weight(sample_weight, checked))
        if not self._is_mixed:
            known = [column[~np.isnan(column)] for column in checked.T]
            # Used if the most likely value is one that the model does not list.
            self.fallback_ = np.array([_commonest(column) for column in known])
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BorniteImputer:
        """Continues from the joint distribution with more rows."""
        self._partially(self.fit, X, y, sample_weight)
        return self

    def transform(self, X: Any) -> Any:
        """The rows with missing values imputed."""
        check_is_fitted(self)
        checked = self._check(X)
        if self._is_mixed:
            return self.model_.impute(checked, method=self.method, seed=self._seed())
        if not np.isnan(checked).any():
            return checked.copy()
        # Values outside the model's domain count as missing, but are kept.
        filled = self.model_.impute(self._known(checked), method=self.method, seed=self._seed())
        table = np.column_stack([filled[name] for name in self._names()])
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
        return dict(table)


def _commonest(known: Array) -> float:
    if not len(known):
        return 0.0
    values, counts = np.unique(known, return_counts=True)
    return float(values[np.argmax(counts)])


class BorniteOutlierDetector(OutlierMixin, _Estimator):
    """Detects rows with a cell that does not fit the others, or with a low density.

    ``by="cells"`` finds rows with a cell that is surprising given the others, ``by="density"`` finds rows that are
    unlikely as a whole, and ``by="either"`` finds both: see ``bornite.Model.anomaly_score``. A fraction
    ``contamination`` of the training rows, between 0 and 0.5, are outliers.

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
        effort: Effort = "balanced",
        by: Literal["either", "cells", "density"] = "either",
        contamination: float = 0.1,
        width: int | None = None,
        output_width: int | None = None,
        functions: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        patience: int | None = None,
        structure: str = "auto",
        categorical_features: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            effort=effort,
            width=width,
            output_width=output_width,
            functions=functions,
            epochs=epochs,
            batch=batch,
            rate=rate,
            patience=patience,
            structure=structure,
            categorical_features=categorical_features,
            warm_start=warm_start,
            random_state=random_state,
        )
        self.by = by
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BorniteOutlierDetector:
        """Fits the joint distribution, and the score below which rows are outliers."""
        if self.by not in ("either", "cells", "density"):
            raise BorniteError(f"by={self.by!r}: choose 'either', 'cells' or 'density'")
        share = self.contamination
        if not isinstance(share, Real) or not 0 < float(share) <= 0.5:
            raise BorniteError(f"contamination={share!r}: give a fraction above 0 and at most 0.5")
        checked = self._check(X, reset=self._start() is None)
        weights = _checked_weight(sample_weight, checked)
        self.model_ = self._fit(checked, sample_weight=weights)
        scores = self.score_samples(X)
        if weights is None:
            self.offset_: float = float(np.percentile(scores, 100 * float(share)))
        else:
            order = np.argsort(scores, kind="stable")
            below = np.cumsum(weights[order])
            self.offset_ = float(scores[order][np.searchsorted(below, float(share) * below[-1])])
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BorniteOutlierDetector:
        """Continues from the joint distribution with more rows; a fraction ``contamination`` of these are then outliers."""
        self._partially(self.fit, X, y, sample_weight)
        return self

    def score_samples(self, X: Any) -> Array:
        """The negative anomaly score of every row, which is the log density for ``by="density"``: lower is more
        anomalous."""
        check_is_fitted(self)
        scores: Array = -self.model_.anomaly_score(self._table(self._check(X)), by=self.by)
        return scores

    def decision_function(self, X: Any) -> Array:
        """``score_samples`` minus the threshold ``offset_``: negative for outliers."""
        scores: Array = self.score_samples(X) - self.offset_
        return scores

    def predict(self, X: Any) -> Array:
        """−1 for outliers, 1 for inliers."""
        return np.where(self.decision_function(X) < 0, -1, 1)


class BorniteClassifier(ClassifierMixin, _Estimator):
    """p(y | x) from the joint distribution of features and class, exact even if features are missing.

    In ``model_``, the class has the name of the Series y, or ``"y"``.

    >>> import numpy as np
    >>> from bornite.sklearn import BorniteClassifier
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.where(x[:, 0] > 0, "right", "left")
    >>> classifier = BorniteClassifier(random_state=0).fit(x, y)
    >>> classifier.predict([[2, 0], [-2, np.nan]])
    array(['right', 'left'], dtype='<U5')
    """

    classes_: Array

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BorniteClassifier:
        """Fits the joint distribution of the features and the class."""
        given = y
        X, y = self._check_with_target(X, y, numeric=False)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if self._start() is not None:
            new = classes[~np.isin(classes, self.classes_)]
            if len(new):
                raise BorniteError(f"a fit that continues keeps the classes, and {new.tolist()[0]!r} is not one of them: fit from scratch")
            classes, codes = self.classes_, np.asarray(np.searchsorted(self.classes_, y))
        self.classes_ = classes
        texts = [str(label) for label in self.classes_]
        is_plain = all(texts) and "(other)" not in texts and len(set(texts)) == len(texts)
        self._labels = np.array(texts if is_plain else [f"c{code}" for code in range(len(texts))])
        self.target_name_ = self._target_name(given)
        target = (self.target_name_, self._labels[codes], "categorical")
        self.model_ = self._fit(X, target, _checked_weight(sample_weight, X))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> BorniteClassifier:
        """Continues from the joint distribution with more rows. The first rows must contain all ``classes``."""
        if classes is not None:
            known = self.classes_ if hasattr(self, "model_") else np.unique(np.asarray(y))
            absent = [label for label in np.unique(np.asarray(classes)).tolist() if label not in known]
            if absent:
                raise BorniteError(f"the first rows do not contain class {absent[0]!r}: start with rows of all classes")
        self._partially(self.fit, X, y, sample_weight)
        return self

    def predict_proba(self, X: Any) -> Array:
        """p(y | x) of every class."""
        check_is_fitted(self)
        table = self._table(self._check(X))
        found = self.model_.predict_proba(table, self.target_name_)
        # A class that occurred only once may have become part of the other labels.
        nothing = np.zeros(len(next(iter(found.values()))))
        return np.column_stack([found.get(label, nothing) for label in self._labels.tolist()])

    def predict_log_proba(self, X: Any) -> Array:
        """log p(y | x) of every class."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """The most likely class."""
        p = self.predict_proba(X)
        best: Array = self.classes_[np.argmax(p, axis=1)]
        return best


class BorniteRegressor(RegressorMixin, _Estimator):
    """p(y | x) of a numeric target from the joint distribution of features and target, exact even if features are missing.

    ``method`` is what ``predict`` returns: the ``"mean"`` or ``"median"`` of p(y | x), which would minimize the squared
    or the absolute error if this were the true distribution, or by default ``"auto"``: the point between them that
    minimizes the squared error on a held-out tenth of the rows. (A small probability far away from a narrow peak moves
    the mean a lot.) ``mean_share_`` is the position of that point between the median, 0, and the mean, 1. Below 200
    rows, ``"auto"`` is the mean.

    ``"auto"`` also makes quantiles as sharp as the held-out rows: the quantile at level q is that of p(y | x) at the
    level whose log-odds are those of q, divided by ``sharpness_``. (A distribution that was learned from few rows is too
    wide, which would be a sharpness above 1.) Below 200 rows, and with another ``method``, the sharpness is 1: quantiles
    are exactly those of ``model_``.

    In ``model_``, the target has the name of the Series y, or ``"y"``.

    >>> import numpy as np
    >>> from bornite.sklearn import BorniteRegressor
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 1))
    >>> regressor = BorniteRegressor(random_state=0).fit(x, 2 * x[:, 0] + rng.normal(size=300))
    >>> low, high = regressor.predict_quantile([[1.0]], [0.05, 0.95])[0]
    >>> bool(low < regressor.predict([[1.0]])[0] < high)
    True
    """

    _predicts_numbers = True

    def __init__(
        self,
        *,
        effort: Effort = "balanced",
        method: Literal["auto", "mean", "median"] = "auto",
        width: int | None = None,
        output_width: int | None = None,
        functions: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        patience: int | None = None,
        structure: str = "auto",
        categorical_features: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            effort=effort,
            width=width,
            output_width=output_width,
            functions=functions,
            epochs=epochs,
            batch=batch,
            rate=rate,
            patience=patience,
            structure=structure,
            categorical_features=categorical_features,
            warm_start=warm_start,
            random_state=random_state,
        )
        self.method = method

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BorniteRegressor:
        """Fits the joint distribution of the features and the target."""
        if self.method not in ("auto", "mean", "median"):
            raise BorniteError(f"method={self.method!r}: choose 'auto', 'mean' or 'median'")
        given = y
        X, y = self._check_with_target(X, y, numeric=True)
        y = np.asarray(y, np.float64)
        self.target_name_ = self._target_name(given)
        self.mean_share_ = 0.0 if self.method == "median" else 1.0
        self.sharpness_ = 1.0
        weights = _checked_weight(sample_weight, X)
        if self.method != "auto" or len(y) < MIN_ROWS_TO_HOLD_OUT:
            self.model_ = self._fit(X, (self.target_name_, y, None), weights)
            return self
        order = check_random_state(self.random_state).permutation(len(y))
        held, kept = (np.sort(part) for part in np.split(order, [round(HELD_OUT_SHARE * len(y))]))
        held_table, truth = self._table(_safe_indexing(X, held)), y[held]
        valid = _with_column(held_table, self.target_name_, truth)
        target = (self.target_name_, y[kept], None)
        self.model_ = self._fit(_safe_indexing(X, kept), target, None if weights is None else weights[kept], valid)
        held_weights = np.ones(len(held)) if weights is None else weights[held]
        # The least-squares weight of the mean, as opposed to the median, on the held-out rows.
        mean, median = (self._predict(held_table, method) for method in ("mean", "median"))
        difference = mean - median
        square = float(np.sum(held_weights * difference**2))
        if square > 0:
            share = float(np.sum(held_weights * difference * (truth - median))) / square
            self.mean_share_ = min(max(share, 0.0), 1.0)
        few = np.sort(held[check_random_state(0).permutation(len(held))[:MAX_ROWS_TO_SHARPEN]])
        quantiles = self._quantiles(self._table(_safe_indexing(X, few)), 1 / (1 + np.exp(-KNOTS)))
        self.sharpness_ = _best_sharpness(quantiles, y[few], np.ones(len(few)) if weights is None else weights[few])
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> BorniteRegressor:
        """Continues from the joint distribution with more rows."""
        self._partially(self.fit, X, y, sample_weight)
        return self

    def predict(self, X: Any) -> Array:
        """The mean of the target, its median, or a point between them: see ``method``."""
        check_is_fitted(self)
        table, share = self._table(self._check(X)), self.mean_share_
        if share in (0.0, 1.0):
            return self._predict(table, "mean" if share else "median")
        mean, median = (self._predict(table, method) for method in ("mean", "median"))
        return np.asarray(median + share * (mean - median))

    def _predict(self, table: Any, method: Literal["mean", "median"]) -> Array:
        return np.asarray(self.model_.predict(table, self.target_name_, method=method), np.float64)

    def predict_quantile(self, X: Any, q: Any) -> Array:
        """The quantile of the target at level q, or an array with a column for each of several levels: see ``method``."""
        check_is_fitted(self)
        return self._quantiles(self._table(self._check(X)), _sharpened(q, self.sharpness_))

    def _quantiles(self, table: Any, q: Any) -> Array:
        # A dict would be interpreted as evidence.
        table = np.column_stack(list(table.values())) if isinstance(table, dict) else table
        found: Array = self.model_.quantile(self.target_name_, q, given=table)
        return found


def _sharpened(q: Any, sharpness: float) -> Any:
    """The levels whose log-odds are those of q, divided by the sharpness."""
    if sharpness == 1.0:
        return q
    levels = np.asarray(q, np.float64)
    inside = np.clip(levels, 0, 1)
    below, above = inside ** (1 / sharpness), (1 - inside) ** (1 / sharpness)
    # The model rejects levels outside [0, 1].
    return np.where(inside == levels, below / (below + above), levels)[()]


def _best_sharpness(quantiles: Array, truth: Array, weights: Array) -> float:
    """The sharpness with the smallest pinball loss of the quantiles at ``SCORED_LEVELS``, relative to the width of each
    row's distribution, given the row's quantiles at ``KNOTS``."""
    width = quantiles[:, -1] - quantiles[:, 0]
    weights = np.divide(weights, width, out=np.zeros_like(width), where=width > 0)
    if not weights.any():
        return 1.0

    def loss(sharpness: float) -> float:
        places = np.interp(np.log(SCORED_LEVELS / (1 - SCORED_LEVELS)) / sharpness, KNOTS, np.arange(len(KNOTS)))
        lower = np.minimum(places.astype(int), len(KNOTS) - 2)
        share = places - lower
        found = (1 - share) * quantiles[:, lower] + share * quantiles[:, lower + 1]
        above = truth[:, None] - found
        return float(weights @ np.maximum(SCORED_LEVELS * above, (SCORED_LEVELS - 1) * above).sum(axis=1))

    best = min(SHARPNESSES, key=loss)
    return float(best ** (len(truth) / (len(truth) + PRIOR_ROWS)))

"""Rows that count more or less than others."""

import numpy as np
import pytest

import bornite


@pytest.fixture
def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    sky = rng.choice(["rain", "sun"], 400)
    return {"sky": sky, "degrees": rng.normal(10, 3, 400) + 8 * (sky == "sun")}


def test_weights_by_column_and_by_array_are_the_same(table: dict[str, np.ndarray]) -> None:
    weights = np.where(table["sky"] == "rain", 4.0, 1.0)
    by_array = bornite.fit(table, sample_weight=weights, epochs=8, width=4)
    by_column = bornite.fit({**table, "w": weights}, sample_weight="w", epochs=8, width=4)
    assert by_array.query("P(sky='rain')") == by_column.query("P(sky='rain')")
    share = weights[table["sky"] == "rain"].sum() / weights.sum()
    assert abs(by_array.query("P(sky='rain')") - share) < 0.05
    assert list(by_column.sample(3)) == ["sky", "degrees"]


def test_bad_weights_are_refused(table: dict[str, np.ndarray]) -> None:
    with pytest.raises(bornite.BorniteError, match="one number for each row"):
        bornite.fit(table, sample_weight=np.ones(3))
    with pytest.raises(bornite.BorniteError, match="the weight '-1' is not a number of at least 0"):
        bornite.fit(table, sample_weight=-np.ones(400))
    with pytest.raises(bornite.BorniteError, match="no column 'v'|'v'"):
        bornite.fit(table, sample_weight="v")

"""Marginals, moments, samples, overlaps and truncation of circuits, against enumeration."""

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bornite import Basis, Circuit, OperationError, QueryError

SIZES = [2, 3, 2, 4]
CASES = [
    {"tree": "balanced", "seed": 1},
    {"tree": "linear", "output_width": 2, "seed": 2},
    {"tree": [[0, 3], [1, 2]], "weights": "real_gaussian", "seed": 3},
]
ROWS = np.array(list(itertools.product(*map(range, SIZES))), dtype=float)


def circuit(case: dict[str, Any]) -> Circuit:
    return Circuit.random(SIZES, width=3, **case)


def probabilities(c: Circuit) -> npt.NDArray[np.float64]:
    p = np.exp(c.log_abs_squared(ROWS))
    return np.asarray(p / p.sum())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("given", [None, "x1 in {0, 2}", {"x0": 1, "x3": (1, 3)}])
def test_moments_and_marginals(case: dict[str, Any], given: Any) -> None:
    c = circuit(case)
    p = probabilities(c)
    e = c.environments(given)
    inside = np.ones(len(ROWS), bool)
    if isinstance(given, str):
        inside = ROWS[:, 1] != 1
    elif given:
        inside = (ROWS[:, 0] == 1) & (ROWS[:, 3] >= 1) & (ROWS[:, 3] < 3)
    q = np.where(inside, p, 0) / p[inside].sum()
    assert e.log_evidence == pytest.approx(math.log(p[inside].sum()), abs=1e-10)
    mean = q @ ROWS
    cov = (ROWS - mean).T @ ((ROWS - mean) * q[:, None])
    assert np.allclose(e.means(), mean) and np.allclose(e.covariance(), cov)
    assert np.allclose(e.variances(), np.diag(cov))
    found = e.marginal("x2").probabilities
    assert found is not None
    assert np.allclose(found, [q[ROWS[:, 2] == x].sum() for x in range(2)])
    if given is None:
        table = [[q[(ROWS[:, 1] == a) & (ROWS[:, 3] == b)].sum() for b in range(4)] for a in range(3)]
        assert np.allclose(e.pairwise("x1", "x3"), table)
        assert e.log_marginal("x0=1") == pytest.approx(math.log(q[ROWS[:, 0] == 1].sum()))
    for layer in c.layers:
        spectrum = e.spectrum(layer.index)
        assert spectrum.sum() == pytest.approx(1) and len(spectrum) == layer.width
        density = e.reduced_density(layer.index)
        assert np.allclose(np.linalg.eigvalsh(density)[::-1], spectrum, atol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_samples(case: dict[str, Any]) -> None:
    c = circuit(case)
    p = probabilities(c)
    for given, inside in [(None, ROWS[:, 0] >= 0), ("x1 in {0, 2}", ROWS[:, 1] != 1)]:
        drawn = c.sample(20_000, given=given, seed=4)
        assert np.array_equal(drawn, c.sample(20_000, given=given, seed=4))
        places = np.ravel_multi_index(drawn.T.astype(int), SIZES)
        counts = np.bincount(places, minlength=len(ROWS))
        assert counts[~inside].sum() == 0
        expected = 20_000 * p[inside] / p[inside].sum()
        chi2 = ((counts[inside] - expected) ** 2 / expected).sum()
        assert chi2 < len(expected) + 5 * math.sqrt(2 * len(expected))


def test_conditionals_add_up_to_the_density() -> None:
    c = circuit(CASES[0])
    logs = c.log_conditionals(ROWS)
    assert logs.shape == ROWS.shape
    assert np.allclose(logs.sum(axis=1), c.log_marginal(ROWS))
    assert np.array_equal(c.log_conditionals(ROWS[5]), logs[5])
    with pytest.raises(QueryError):
        c.log_conditionals([[0, math.nan, 0, 0]])


def test_continuous_marginals() -> None:
    c = Circuit.random([Basis.hermite(4), Basis.legendre(3, 0, 2), 2], seed=5)
    e = c.environments("x2=1")
    x = np.linspace(-9, 9, 20_001)
    p = e.marginal("x0").density(x)
    dx = x[1] - x[0]
    assert p.sum() * dx == pytest.approx(1)
    assert (p * x).sum() * dx == pytest.approx(e.marginal("x0").mean)
    assert (p * x**2).sum() * dx - e.means()[0] ** 2 == pytest.approx(e.variances()[0])
    u = e.marginal("x1")
    assert u.cdf(np.array([0.0, 2.0])).tolist() == pytest.approx([0, 1])
    assert u.quantile(u.cdf(1.3)) == pytest.approx(1.3)
    assert u.probabilities is None


def test_overlaps() -> None:
    a, b = circuit({"seed": 1}), circuit({"seed": 2})
    x = a.overlap(b)
    amplitudes = [c.orthonormalize()[0].evaluate(ROWS)[:, 0] for c in (a, b)]
    inner = np.vdot(*amplitudes)
    assert x.inner_product is not None
    assert x.magnitude == pytest.approx(abs(inner)) == abs(x.inner_product)
    assert x.fidelity == pytest.approx(abs(inner) ** 2)
    assert x.log_magnitude == pytest.approx(math.log(abs(inner)))
    p, q = probabilities(a), probabilities(b)
    hellinger = math.sqrt(1 - np.sqrt(p * q).sum())
    assert hellinger <= x.amplitude_distance + 1e-12
    with pytest.raises(OperationError):
        a.overlap(Circuit.random([2, 2]))


def test_truncation() -> None:
    c = Circuit.random([2] * 8, tree="linear", width=8, seed=4)
    rows = np.array(list(itertools.product(range(2), repeat=8)), dtype=float)
    p = np.exp(c.log_marginal(rows))
    for settings in ({"error": 0.3}, {"width": 4}):
        smaller, bound = c.truncate(**settings)
        q = np.exp(smaller.log_marginal(rows))
        assert math.sqrt(max(0.0, 1 - np.sqrt(p * q).sum())) <= bound + 1e-9
        assert smaller.is_orthonormal
    with pytest.raises(ValueError, match="either a maximum error"):
        c.truncate(error=0.1, width=2)


def test_names_and_layers_are_checked() -> None:
    c = circuit(CASES[0])
    e = c.environments()
    with pytest.raises(QueryError, match="there is no variable 'y'"):
        e.marginal("y")
    with pytest.raises(ValueError, match="there is no layer 99"):
        e.spectrum(99)
    with pytest.raises(OperationError):
        Circuit.random([2, 2]).environments({"x0": (5, 6)})

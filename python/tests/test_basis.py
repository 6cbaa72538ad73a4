"""The input functions from Python: values by their formulas, integrals by quadrature."""

import math

import numpy as np
import pytest

from bornite import Basis, BasisError, Circuit, Domain

NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)
CONTINUOUS = {
    "fourier": Basis.fourier(5, -1, 2),
    "circle": Basis.fourier(5, 0, 3),
    "complex fourier": Basis.fourier(5, -1, 2, "complex"),
    "legendre": Basis.legendre(6, -1, 2),
    "laguerre": Basis.laguerre(4, 0.5, 0.7),
    "hermite": Basis.hermite(5, 0.3, 0.9),
    "gaussian": Basis.gaussian([(0, 1), (1, 0.5), (-1, 2)]),
    "bspline": Basis.bspline(2, [0, 0, 0, 1, 2, 3, 3, 3]),
    "steps": Basis.steps(3, [-1, 0, 1, 2, 3]),
}


@pytest.mark.parametrize("basis", CONTINUOUS.values(), ids=CONTINUOUS.keys())
def test_integrals_over_an_interval(basis: Basis) -> None:
    low, high = 1.0, 1.75
    x = low + (high - low) * (NODES + 1) / 2
    f = basis.evaluate(x)
    assert f.shape == (200, basis.width)
    assert f.dtype == (np.float64 if basis.is_real else np.complex128)
    expected = np.einsum("n,ni,nj->ij", WEIGHTS * (high - low) / 2, f, f.conj())
    np.testing.assert_allclose(basis.gram((low, high)), expected, rtol=0, atol=1e-12)
    whole = basis.gram()
    if basis.is_orthonormal:
        np.testing.assert_array_equal(whole, np.eye(basis.width))
    np.testing.assert_allclose(basis.gram((None, None)), whole, rtol=0, atol=1e-12)


def test_first_functions_by_hand() -> None:
    x = 0.7
    assert Basis.hermite(1).evaluate(x)[0] == pytest.approx(math.pi**-0.25 * math.exp(-x * x / 2))
    assert Basis.laguerre(2).evaluate(x)[1] == pytest.approx(math.exp(-x / 2) * (1 - x))
    assert Basis.legendre(2, 0, 2).evaluate(x)[1] == pytest.approx(math.sqrt(1.5) * (x - 1))
    wave = Basis.fourier(2, 0, 2, "complex").evaluate(x)[1]
    assert wave == pytest.approx(np.exp(1j * math.pi * x) / math.sqrt(2))
    density = math.exp(-((x - 1) ** 2) / 0.5) / math.sqrt(2 * math.pi) / 0.5
    assert Basis.gaussian([(1, 0.5)]).evaluate(x)[0] == pytest.approx(density)
    assert Basis.bspline(0, [0, 0.5, 1]).evaluate(x).tolist() == [0, 1]


def test_finite_bases() -> None:
    np.testing.assert_array_equal(Basis.indicator(3).evaluate([2, 0]), [[0, 0, 1], [1, 0, 0]])
    table = np.array([[1, 2, 3], [0, 1j, 1]])
    basis = Basis.table(table)
    assert basis.domain == Domain.finite(3) and not basis.is_real
    np.testing.assert_array_equal(basis.evaluate([0, 1, 2]), table.T)
    np.testing.assert_allclose(basis.gram(), table @ table.conj().T, atol=1e-14)
    part = table[:, [0, 2]]
    for same in ({0, 2}, frozenset([2, 0]), range(0, 3, 2)):
        np.testing.assert_allclose(basis.gram(same), part @ part.conj().T, atol=1e-14)
    np.testing.assert_allclose(basis.gram({1}), np.outer(table[:, 1], table[:, 1].conj()))


def test_a_basis_has_a_domain_and_others_on_request() -> None:
    fourier = Basis.fourier(3, 0, 2)
    assert Circuit.random([fourier]).variables[0].domain == Domain.circle(2)
    interval = Circuit.random([fourier], domains=[Domain.interval(0, 2)])
    assert interval.variables[0].domain == Domain.interval(0, 2)
    assert interval.evaluate([2.0]).shape == (1,)


def test_equal_bases_are_equal() -> None:
    assert Basis.hermite(3) == Basis.hermite(3, 0, 1) != Basis.hermite(3, 0, 2)
    assert repr(Basis.hermite(3)) == "Basis.hermite(3, 0.0, 1.0)"
    squared = Circuit.random([2, 2]).square().circuit.layers[0].basis
    assert squared is not None and squared.width == 4
    with pytest.raises(BasisError, match="no Gram matrix"):
        squared.gram()


@pytest.mark.parametrize("x", [3, -1, 0.5, math.nan, math.inf])
def test_values_outside_the_domain(x: float) -> None:
    with pytest.raises(BasisError, match="whole numbers 0 to 2"):
        Basis.indicator(3).evaluate([0, x])

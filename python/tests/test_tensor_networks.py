"""Importers: amplitudes, norms and marginals of tensor networks, against plain contractions."""

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bornite
from bornite import Circuit, CircuitError, from_mps, from_tree
from bornite.tensor_networks import Node

Array = npt.NDArray[Any]
TOLERANCE = 1e-12


def random_array(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool) -> Array:
    array: Array = rng.normal(size=shape)
    return array + 1j * rng.normal(size=shape) if is_complex else array


def random_sites(
    physical: list[int], bonds: list[int], is_complex: bool = True, seed: int = 0
) -> list[Array]:
    """Tensors with the axes left, right, physical; bonds[n] is to the left of site n."""
    rng = np.random.default_rng(seed)
    right = bonds[1:] + bonds[:1]
    shapes = zip(bonds, right, physical)
    return [random_array(rng, shape, is_complex) for shape in shapes]


def contract(sites: list[Array]) -> Array:
    """All amplitudes of sites with the axes left, right, physical, the first bond traced."""
    state = sites[0].transpose(0, 2, 1)
    for site in sites[1:]:
        state = np.einsum("a...l,lrp->a...pr", state, site)
    amplitudes: Array = np.einsum("a...a->...", state)
    return amplitudes


def check(circuit: Circuit, amplitudes: Array) -> None:
    """The circuit has these amplitudes, and their norm and marginals."""
    shape = amplitudes.shape
    assert [v.domain.num_values for v in circuit.variables] == list(shape)
    rows = np.array(list(itertools.product(*map(range, shape))))
    scale = np.abs(amplitudes).max()
    found = circuit.evaluate(rows).reshape(shape)
    np.testing.assert_allclose(found, amplitudes, rtol=0, atol=TOLERANCE * scale)
    p = np.abs(amplitudes) ** 2
    assert circuit.log_partition() == pytest.approx(math.log(p.sum()), abs=TOLERANCE)
    p /= p.sum()
    for axis, variable in enumerate(circuit.variables):
        others = tuple(n for n in range(len(shape)) if n != axis)
        logs = [circuit.marginalize({variable.name: v}) for v in range(shape[axis])]
        np.testing.assert_allclose(np.exp(logs), p.sum(axis=others), atol=TOLERANCE)


ORDERS = ["".join(order) for order in itertools.permutations("lrp")]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("is_complex", [False, True])
def test_every_order_of_axes(order: str, is_complex: bool) -> None:
    sites = random_sites([2, 3, 2, 4, 2], [1, 2, 4, 3, 2], is_complex)
    arrays = []
    for n, site in enumerate(sites):
        letters = {0: "rp", 4: "lp"}.get(n, "lrp")
        array = site.reshape([site.shape["lrp".index(c)] for c in letters])
        arrays.append(array.transpose([letters.index(c) for c in order if c in letters]))
    assert arrays[0].ndim == arrays[-1].ndim == 2
    circuit = from_mps(arrays, shape=order)
    assert circuit.is_real != is_complex
    assert max(layer.width for layer in circuit.layers if layer.kind == "sum") == 4
    check(circuit, contract(sites))


def test_open_state_with_bonds_of_one_value() -> None:
    sites = random_sites([2, 2, 2], [1, 3, 2])
    check(from_mps(sites), contract(sites))


@pytest.mark.parametrize("bonds", [[2, 2, 2], [3, 1, 2], [2, 4, 3]])
def test_periodic_state(bonds: list[int]) -> None:
    sites = random_sites([2, 3, 2], bonds)
    check(from_mps(sites), contract(sites))


def test_states_of_one_and_two_sites() -> None:
    check(from_mps([np.array([1, 2j, 3])]), np.array([1, 2j, 3]))
    left, right = random_sites([2, 3], [1, 4])
    check(from_mps([left[0], right[:, 0]]), contract([left, right]))
    pair = random_sites([2, 3], [2, 4])
    check(from_mps(pair), contract(pair))
    one = random_sites([3], [2])
    check(from_mps(one), contract(one))


def test_integers_names_and_a_long_state() -> None:
    circuit = from_mps([np.eye(2, dtype=int), np.eye(2, dtype=int)], names=["a", "b"])
    assert circuit.is_real and [v.name for v in circuit.variables] == ["a", "b"]
    sites = random_sites([2] * 2000, [1] + [4] * 1999, is_complex=False)
    circuit = from_mps(sites)
    made, log_z = circuit.orthonormalize()
    assert log_z == pytest.approx(circuit.log_partition(), rel=1e-12)
    assert made.log_marginal([np.nan] * 2000) == 0


@pytest.mark.parametrize(
    ("arrays", "options", "part"),
    [
        ([], {}, "no sites"),
        ([np.ones((2, 2)), np.ones((3, 2))], {}, "site 0: its right bond has 2 values"),
        ([np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2))], {}, "site 1: its array has 2 axes; give 3"),
        ([np.ones((2, 2)), np.ones((2, 3, 2))], {}, "site 1: its right bond has 3 values"),
        ([np.ones((2, 2)), np.ones(2)], {}, "give 2 or, in a periodic state, 3"),
        ([np.ones(2)], {"shape": "lpx"}, "'lpx' is not a permutation"),
        ([np.ones(2)], {"names": ["a", "b"]}, "2 names for 1 variables"),
        ([np.ones((0, 2)), np.ones((0, 2))], {}, "width 0"),
        ([np.ones((2, 0)), np.ones((2, 2))], {}, "not a valid domain"),
        ([np.ones((99, 99, 2)), np.ones((99, 99, 2)), np.ones((99, 99, 2))], {}, "fewer values"),
    ],
)  # fmt: skip
def test_arrays_that_are_no_state(arrays: Any, options: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        from_mps(arrays, **options)


def test_binary_tree() -> None:
    rng = np.random.default_rng(1)
    a, b = random_array(rng, (2, 3, 4), True), random_array(rng, (2, 2, 3), True)
    top = random_array(rng, (4, 3), True)
    circuit = from_tree((top, [(a, [None, None]), (b, [None, None])]))
    assert [v.name for v in circuit.variables] == ["x0", "x1", "x2", "x3"]
    check(circuit, np.einsum("uv,iju,klv->ijkl", top, a, b))


def test_tree_of_unlike_nodes() -> None:
    rng = np.random.default_rng(2)
    leaf, chain = random_array(rng, (3, 2), False), random_array(rng, (2, 5), False)
    ternary = random_array(rng, (5, 2, 4, 3), False)
    top = random_array(rng, (3, 2), False)
    tree: Node = (top, [(ternary, [(chain, [leaf]), "b", None]), "d"])
    expected = np.einsum("td,cbet,lc,al->abed", top, ternary, chain, leaf)
    circuit = from_tree(tree)
    assert [v.name for v in circuit.variables] == ["x0", "b", "x2", "d"]
    check(circuit, expected)
    check(from_tree(tree, names=["p", "q", "r", "s"]), expected)


def test_top_with_an_output() -> None:
    rng = np.random.default_rng(3)
    top = random_array(rng, (2, 3, 4), True)
    circuit = from_tree((top, ["a", "b"]))
    assert circuit.output_width == 4
    np.testing.assert_allclose(circuit.evaluate([1, 2]), top[1, 2], rtol=1e-14)
    assert math.exp(circuit.log_partition()) == pytest.approx(np.sum(np.abs(top) ** 2))


def test_a_state_is_a_tree() -> None:
    sites = random_sites([2] * 300, [1] + [2] * 299)
    tree: Any = sites[0][0].T
    for site in sites[1:-1]:
        tree = (site.transpose(0, 2, 1), [tree, None])
    tree = (sites[-1][:, 0], [tree, None])
    circuit, same = from_tree(tree), from_mps(sites)
    row = np.random.default_rng(0).integers(0, 2, size=300)
    np.testing.assert_allclose(circuit.evaluate(row), same.evaluate(row), rtol=1e-12)
    assert circuit.log_partition() == pytest.approx(same.log_partition(), rel=1e-13)


@pytest.mark.parametrize(
    ("tree", "part"),
    [
        ("a", "variable without a tensor"),
        ((np.ones(2), []), "the top has no inputs"),
        ((np.ones((2, 2)), ["a"] * 4), "2 axes; give one for each of its 4 inputs, and at most one"),
        ((np.ones((2, 2)), [np.ones(2), "b"]), "input 0 of the top: its tensor has 1 axes"),
        ((np.ones((2, 2)), [np.ones((2, 3)), "b"]), "last axis has 3 values, but .* has 2"),
        ((np.ones((2, 2)), [3, "b"]), "input 0 of the top is neither"),
        ((np.ones((2, 2)), ["a", "a"]), "two variables are named 'a'"),
    ],
)
def test_nests_that_are_no_tree(tree: Any, part: str) -> None:
    with pytest.raises(CircuitError, match=part):
        from_tree(tree)
    with pytest.raises(ValueError, match="3 names for 2 variables"):
        from_tree((np.ones((2, 2)), ["a", "b"]), names=["p", "q", "r"])


class TestQuimb:
    """quimb's own answers, where it is installed."""

    @pytest.fixture()
    def qtn(self) -> Any:
        return pytest.importorskip("quimb.tensor")

    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize("cyclic", [False, True])
    def test_state(self, qtn: Any, order: str, cyclic: bool) -> None:
        state = qtn.MPS_rand_state(6, bond_dim=3, phys_dim=2, cyclic=cyclic, dtype=complex, seed=1)
        state.permute_arrays(order)
        circuit = from_mps(state.arrays, shape=order)
        dense = np.asarray(state.to_dense()).reshape([2] * 6)
        check(circuit, dense)
        assert math.exp(circuit.log_partition() / 2) == pytest.approx(state.norm(), rel=1e-12)
        for row in [(0, 0, 0, 0, 0, 0), (1, 0, 1, 1, 0, 1)]:
            amplitude = complex(state.amplitude(row))
            assert circuit.evaluate(row)[0] == pytest.approx(amplitude, rel=1e-11)

    def test_arrays_as_they_come(self, qtn: Any) -> None:
        state = qtn.MPS_rand_state(8, bond_dim=5, phys_dim=3, seed=2)
        circuit = from_mps(state.arrays)
        state.normalize()
        rho = np.asarray(state.partial_trace_to_dense_canonical([2, 5])).reshape([3] * 4)
        for i, j in itertools.product(range(3), repeat=2):
            p = math.exp(circuit.marginalize({"x2": i, "x5": j}))
            assert p == pytest.approx(rho[i, j, i, j].real, rel=1e-10)

    def test_tree(self, qtn: Any) -> None:
        rng = np.random.default_rng(4)
        a, b = random_array(rng, (2, 3, 4), True), random_array(rng, (2, 2, 3), True)
        top = random_array(rng, (4, 3), True)
        network = qtn.TensorNetwork(
            [qtn.Tensor(a, "iju"), qtn.Tensor(b, "klv"), qtn.Tensor(top, "uv")]
        )
        dense = network.contract(output_inds="ijkl").data
        check(from_tree((top, [(a, ["i", "j"]), (b, ["k", "l"])])), dense)


def test_importers_are_exported() -> None:
    assert bornite.from_mps is from_mps and bornite.from_tree is from_tree

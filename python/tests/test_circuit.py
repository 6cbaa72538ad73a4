"""Circuits from Python: every operation against sums over all values, or quadrature."""

import copy
import itertools
import json
import math
import pathlib
import pickle
import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bornite
from bornite import Basis, Builder, Circuit, Domain

#: A sum of a few dozen products of numbers near 1.
TOLERANCE = 1e-12


def all_rows(circuit: Circuit) -> npt.NDArray[np.float64]:
    values = [range(v.domain.num_values or 0) for v in circuit.variables]
    return np.array(list(itertools.product(*values)), dtype=float)


def probabilities(circuit: Circuit) -> npt.NDArray[np.float64]:
    """p(x) for all x, with one axis for each variable, by summing over all of them."""
    squares = np.sum(np.abs(circuit.evaluate(all_rows(circuit))) ** 2, axis=1)
    shape = [v.domain.num_values or 0 for v in circuit.variables]
    return np.asarray(squares / squares.sum()).reshape(shape)


def numpy_amplitudes(circuit: Circuit, row: list[int]) -> Any:
    """c(x) of a finite circuit, by the definition of its layers."""
    position = {v.name: n for n, v in enumerate(circuit.variables)}
    outputs: list[Any] = []
    for layer in circuit.layers:
        inputs = [outputs[i] for i in layer.inputs]
        if layer.kind == "input":
            assert layer.basis is not None and layer.variable is not None
            outputs.append(layer.basis.evaluate(row[position[layer.variable]]))
        elif layer.kind == "sum":
            outputs.append(layer.weight @ inputs[0])
        elif layer.kind == "hadamard":
            outputs.append(np.prod(inputs, axis=0))
        else:
            outputs.append(inputs[0])
            for factor in inputs[1:]:
                outputs[-1] = np.kron(outputs[-1], factor)
    return outputs[circuit.output]


CIRCUITS = {
    "balanced": Circuit.random([2, 3, 2, 4], width=3, seed=1),
    "linear": Circuit.random([2, 3, 2, 4], "linear", width=3, seed=2),
    "hadamard": Circuit.random([2, 3, 2, 4], width=3, product="hadamard", seed=3),
    "nested": Circuit.random([2, 3, 2, 4], [[3, 1], 0, 2], width=3, seed=4),
    "text": Circuit.random([2, 3, 2, 4], "[[3, 1], 0, 2]", width=3, seed=4),
    "random": Circuit.random([2, 3, 2, 4], "random", width=3, seed=5),
    "mixed products": Circuit.random(
        [2, 3, 2, 4], width=3, product=["hadamard", "kronecker", "hadamard"], seed=6
    ),
    "two squares": Circuit.random([2, 3, 2, 4], width=3, output_width=2, seed=7),
    "real": Circuit.random([2, 3, 2, 4], width=3, weights="real_gaussian", seed=8),
    "Haar": Circuit.random([2, 3, 2, 4], width=3, weights="haar", seed=9),
    "image": Circuit.random(2, ("image", 2, 2), width=3, seed=10),
    "tables": Circuit.random(
        [Basis.table([[1, 1], [0, 1]]), 3, Basis.table(np.array([[1, 1j], [1, 0]])), 4], width=3, seed=11
    ),
    "one variable": Circuit.random([4], seed=12),
}
each_circuit = pytest.mark.parametrize("circuit", CIRCUITS.values(), ids=CIRCUITS.keys())


@each_circuit
def test_amplitudes_are_those_of_the_layers(circuit: Circuit) -> None:
    rows = all_rows(circuit)
    amplitudes = circuit.evaluate(rows)
    assert amplitudes.shape == (len(rows), circuit.output_width)
    assert amplitudes.dtype == np.complex128
    for row, amplitude in zip(rows, amplitudes):
        expected = numpy_amplitudes(circuit, [int(x) for x in row])
        np.testing.assert_allclose(amplitude, expected, rtol=0, atol=TOLERANCE)
        np.testing.assert_array_equal(circuit.evaluate(row), amplitude)
    squares = np.sum(np.abs(amplitudes) ** 2, axis=1)
    np.testing.assert_allclose(np.exp(circuit.log_abs_squared(rows)), squares, rtol=TOLERANCE)


@each_circuit
def test_partition_function_is_the_sum_over_all_rows(circuit: Circuit) -> None:
    z = np.sum(np.abs(circuit.evaluate(all_rows(circuit))) ** 2)
    assert math.exp(circuit.log_partition()) == pytest.approx(z, rel=TOLERANCE)
    assert math.exp(circuit.square().log_partition()) == pytest.approx(z, rel=TOLERANCE)


@each_circuit
def test_orthonormal_circuit_has_the_same_distribution(circuit: Circuit) -> None:
    made, log_z = circuit.orthonormalize()
    assert made.is_orthonormal
    assert made.orthonormality()[1] < TOLERANCE
    assert log_z == pytest.approx(circuit.log_partition(), abs=TOLERANCE)
    assert made.log_partition() == pytest.approx(0, abs=TOLERANCE)
    assert made.orthonormalize()[0] == made
    np.testing.assert_allclose(probabilities(made), probabilities(circuit), atol=TOLERANCE)


@each_circuit
def test_marginals_of_every_pattern_of_evidence(circuit: Circuit) -> None:
    p = probabilities(circuit)
    squared = circuit.square()
    names = [v.name for v in circuit.variables]
    for kinds in itertools.product(("value", "unknown", "set", "range", "pair"), repeat=len(names)):
        query: dict[str, Any] = {}
        index: list[Any] = []
        for name, kind, count in zip(names, kinds, p.shape):
            known, chosen = {
                "value": (count - 1, [count - 1]),
                "unknown": (None, range(count)),
                "set": ({0, count - 1}, sorted({0, count - 1})),
                "range": (range(1, count), range(1, count)),
                "pair": ((None, count - 1.5), range(count - 1)),
            }[kind]
            query[name] = known
            index.append(list(chosen))
        expected = p[np.ix_(*index)].sum()
        answer = circuit.marginalize(query, counts=True)
        assert math.exp(answer.log_marginal) == pytest.approx(expected, abs=TOLERANCE), query
        assert answer.log_marginal == circuit.marginalize(query)
        assert math.exp(squared.log_marginal(query)) == pytest.approx(expected, abs=TOLERANCE)


@each_circuit
def test_rows_with_holes(circuit: Circuit) -> None:
    rows = all_rows(circuit)
    rng = np.random.default_rng(0)
    rows[rng.random(rows.shape) < 0.5] = np.nan
    names = [v.name for v in circuit.variables]
    expected = [circuit.marginalize(dict(zip(names, row))) for row in rows]
    np.testing.assert_allclose(circuit.log_marginal(rows), expected, rtol=0, atol=TOLERANCE)
    assert circuit.log_marginal(rows[0]) == expected[0]


def test_text_and_mapping_ask_the_same() -> None:
    circuit = Circuit.random([5, Basis.hermite(3), 3], names=["age", "height in m", "city"])
    cases: list[tuple[str, Any]] = [
        ("", {}),
        ("age=3", {"age": 3}),
        ("age=?", {"age": float("nan")}),
        ("age in [1, 3)", {"age": (1, 3)}),
        ("age in {1, 4}", {"age": frozenset([1, 4])}),
        ("age in [1, 4]", {"age": range(1, 5)}),
        ("'height in m' in [0.5, inf)", {"height in m": (0.5, None)}),
        ("'height in m'=0.25, city=2", {"height in m": np.float32(0.25), "city": np.int8(2)}),
    ]
    for text, mapping in cases:
        answer = circuit.marginalize(text, counts=True)
        same = circuit.marginalize(mapping, counts=True)
        assert answer.log_marginal == same.log_marginal, text
        assert answer.layers == same.layers, text
    assert circuit.marginalize(None) == 0


def test_evidence_that_cannot_be() -> None:
    circuit = Circuit.random([3, 2])
    assert circuit.marginalize({"x0": set()}) == -math.inf
    assert circuit.marginalize("x0 in (0, 1)") == -math.inf


def test_continuous_marginals_by_quadrature() -> None:
    bases: list[Basis | int] = [
        3,
        Basis.hermite(4, 0.5, 0.8),
        Basis.legendre(4, -1, 2),
        Basis.gaussian([(0, 1), (1, 0.5)]),
    ]
    circuit = Circuit.random(bases, "linear", width=3, seed=1)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    low, high = -0.75, 0.5
    x = low + (high - low) * (nodes + 1) / 2
    rows = np.full((80, 4), np.nan)
    rows[:, 0], rows[:, 1], rows[:, 2] = 2, 0.3, x
    expected = (weights * np.exp(circuit.log_marginal(rows))).sum() * (high - low) / 2
    answer = circuit.marginalize({"x0": 2, "x1": 0.3, "x2": (low, high)})
    assert math.exp(answer) == pytest.approx(expected, rel=1e-11)

    # The normal densities are far below rounding outside this interval.
    nodes, weights = np.polynomial.legendre.leggauss(200)
    rows = np.full((200, 4), np.nan)
    rows[:, 0], rows[:, 3] = 1, 12 * nodes
    expected = (12 * weights * np.exp(circuit.log_marginal(rows))).sum()
    assert math.exp(circuit.marginalize("x0=1")) == pytest.approx(expected, rel=1e-11)


def test_counts_are_those_of_the_dependences() -> None:
    circuit = Circuit.random(2, ("image", 4, 4), width=4, weights="haar", seed=1)
    left = {f"x{4 * y + x}": 1 for y in range(4) for x in range(2)}
    answer = circuit.marginalize(left, counts=True)
    dependences = circuit.dependences(left)
    assert answer.layers == {
        kind: sum(d == kind for d in dependences) for kind in ("kept", "marginalized", "mixed")
    }
    assert sum(answer.layers.values()) == circuit.num_layers
    counts = answer.multiply_adds
    assert counts["ours"] < counts["paper_bound"] < counts["squaring"]


def test_amplitudes_far_outside_the_range_of_floats() -> None:
    circuit = Circuit.random([2] * 3000, "linear", width=2, weights="haar", seed=1)
    row = np.zeros(3000)
    assert circuit.evaluate(row)[0] == 0
    assert -1e5 < circuit.log_abs_squared(row) < -1000
    assert circuit.log_marginal(row) == pytest.approx(circuit.log_abs_squared(row), rel=1e-12)


def test_builder_makes_what_it_is_told() -> None:
    b = Builder()
    b.variable("x", 2)
    y = b.variable("y", Domain.interval(0, 1))
    z = b.variable("z", 2)
    shared = b.weight(np.array([[1.0, 2], [3, 4]]))
    f = b.sum(b.input("x", 2), shared)
    g = b.sum(b.input(z, Basis.indicator(2)), shared)
    h = b.input(y, Basis.legendre(3, 0, 1))
    product = b.kronecker([b.hadamard([f, g]), h])
    output = b.sum(product, np.arange(6, dtype=np.int16).reshape(1, 6))
    c = b.build(output)
    assert c.is_real and len(c.weights) == 2 and c.output == 7
    assert [v.name for v in c.variables] == ["x", "y", "z"]
    assert c.variable_order == ["x", "z", "y"]
    assert [layer.weight_index for layer in c.layers if layer.kind == "sum"] == [0, 0, 1]
    w = np.array([[1, 2], [3, 4]])
    value = np.kron(w[:, 1] * w[:, 0], Basis.legendre(3, 0, 1).evaluate(0.25)) @ np.arange(6)
    np.testing.assert_allclose(c.evaluate([1, 0.25, 0]), [value], rtol=1e-14)
    # The builder goes on from there.
    assert b.build(b.sum(output, [[2j]])).num_layers == 9


def test_layers_tell_what_they_are() -> None:
    c = Circuit.random([2, 3, 2], [[0, 2], 1], width=4, seed=1)
    assert [layer.kind for layer in c.layers].count("sum") == 2
    first, last = c.layers[0], c.layers[-1]
    assert (first.kind, first.variable, first.scope, first.width) == ("input", "x0", ["x0"], 2)
    assert first.basis == Basis.indicator(2) and first.weight is None
    assert (last.index, last.scope, last.consumer) == (c.output, ["x0", "x2", "x1"], None)
    assert last.size == 12 and last.weight is not None and last.weight.shape == (1, 12)
    for layer in c.layers:
        assert all(c.layers[i].consumer == layer.index for i in layer.inputs)
    assert c.max_size == max(layer.size for layer in c.layers)


def test_weights_go_out_and_in_exactly() -> None:
    c = Circuit.random([2, 3, 4], width=3, seed=1)
    assert all(w.dtype == np.complex128 and w.flags.writeable for w in c.weights)
    assert c.with_weights(c.weights) == c
    real = c.with_weights([w.real for w in c.weights])
    assert real.is_real and real.weights[0].dtype == np.float64
    fortran = c.with_weights([np.asfortranarray(w) for w in c.weights])
    assert fortran == c
    # What was handed out is a copy.
    c.weights[0][:] = 0
    assert fortran == c


@each_circuit
def test_files_texts_bytes_and_pickles_keep_every_bit(
    circuit: Circuit, tmp_path: pathlib.Path
) -> None:
    assert Circuit.from_json(circuit.to_json()) == circuit
    assert Circuit.from_json(json.loads(circuit.to_json())) == circuit
    assert Circuit.from_bytes(circuit.to_bytes()) == circuit
    assert pickle.loads(pickle.dumps(circuit)) == circuit
    assert copy.deepcopy(circuit) == copy.copy(circuit) == circuit
    for name in ("c.json", "c.safetensors"):
        circuit.save(tmp_path / name)
        assert Circuit.load(str(tmp_path / name)) == circuit
    assert circuit != circuit.with_weights([2 * w for w in circuit.weights])
    assert circuit != "a circuit"


def test_a_seed_means_the_same_in_a_file() -> None:
    line = {
        "variables": [{"name": f"x{v}", "domain": {"finite": 2}} for v in range(4)],
        "structure": {"tree": "balanced", "width": 3, "weights": "haar", "seed": 5},
    }
    assert Circuit.from_json(line) == Circuit.random([2] * 4, width=3, weights="haar", seed=5)


def test_many_rows_in_any_layout() -> None:
    c = Circuit.random([3] * 6, width=4, seed=1)
    rows = np.random.default_rng(0).integers(0, 3, size=(5000, 6))
    expected = c.log_marginal(rows.astype(float))
    assert expected.shape == (5000,)
    for same in (rows, rows.astype(np.int8), np.asfortranarray(rows), rows.tolist()):
        np.testing.assert_array_equal(c.log_marginal(same), expected)
    np.testing.assert_array_equal(c.log_marginal(rows[::-2]), expected[::-2])
    assert c.log_marginal(np.empty((0, 6))).shape == (0,)
    assert c.evaluate(np.empty((0, 6))).shape == (0, 1)
    with_holes = np.array([[1, None, 2, None, 0, 0]], dtype=object)
    expected = c.marginalize("x0=1, x2=2, x4=0, x5=0")
    assert c.log_marginal(with_holes)[0] == pytest.approx(expected, abs=TOLERANCE)


def test_threads_may_share_a_circuit() -> None:
    c = Circuit.random([2] * 64, width=8, seed=1)
    row = [1.0] * 32 + [math.nan] * 32
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda: found.append(c.log_marginal(row))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


def test_pictures_know_the_query() -> None:
    c = Circuit.random([2] * 4, names=["a", "b", "c", "d"])
    plain, asked = c.plot_svg(), c.plot_svg({"a": 1, "b": {0}})
    assert plain.startswith("<svg") and plain != asked and "b = 0" in asked


def test_reprs() -> None:
    c = Circuit.random([2, Basis.fourier(3, 0, 24)], names=["it's", "hour"])
    assert repr(c) == "<Circuit: 2 variables, 4 layers, 6 parameters, complex>"
    assert repr(c.variables) == (
        """[Variable("it's", Domain.finite(2)), Variable('hour', Domain.circle(24.0))]"""
    )
    assert repr(c.layers[1]) == (
        "Layer(1, 'input', variable='hour', basis=Basis.fourier(3, 0.0, 24.0, 'real'), "
        "width=3, size=3)"
    )
    assert repr(c.square()) == "<Squared: 4 layers, 36 parameters>"
    assert repr(c.marginalize("hour=2", counts=True)).startswith("Marginal(log_marginal=-")
    assert repr(Builder()) == "<Builder: 0 variables>"


def test_domains_are_values() -> None:
    domains = [
        Domain.finite(3),
        Domain.real(),
        Domain.interval(0, 1),
        Domain.half_line(0),
        Domain.circle(1),
    ]
    assert len(set(domains)) == 5
    for domain in domains:
        assert eval(repr(domain)) == domain
    kinds = [d.kind for d in domains]
    assert kinds == ["finite", "real", "interval", "half_line", "circle"]
    assert domains[0].num_values == 3 and domains[1].num_values is None
    assert domains[3].bounds == (0, math.inf)
    assert Domain.interval(-0.0, 1) == Domain.interval(0.0, 1)
    assert hash(Domain.interval(-0.0, 1)) == hash(Domain.interval(0.0, 1))


def test_version_is_text() -> None:
    assert bornite.__version__.count(".") == 2

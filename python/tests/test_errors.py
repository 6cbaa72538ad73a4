"""What is wrong is said in the library's words, by an exception of the right class."""

import pathlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bornite
from bornite import Basis, Builder, Circuit, Domain

C = Circuit.random([2, 3, Basis.hermite(3)], seed=1)


def build(make: Callable[[Builder, int], int]) -> Circuit:
    b = Builder()
    first = b.input(b.variable("x", 2), 2)
    return b.build(make(b, first))


def untyped(function: Any) -> Any:
    return function


evaluate, marginalize, log_marginal = map(untyped, (C.evaluate, C.marginalize, C.log_marginal))
random = untyped(Circuit.random)

CASES: list[tuple[type[Exception], str, Callable[[], object]]] = [
    (bornite.BasisError, "Hermite basis with 0 functions", lambda: Basis.hermite(0)),
    (bornite.BasisError, "scale -1", lambda: Basis.hermite(3, 0, -1)),
    (bornite.BasisError, "low = 2 and high = 1", lambda: Basis.legendre(3, 2, 1)),
    (bornite.BasisError, "sort the knots", lambda: Basis.bspline(1, [0, 2, 1])),
    (bornite.BasisError, "is 0", lambda: Basis.table([[0, 0]])),
    (bornite.BorniteError, "2 axes, rows and columns, not 1", lambda: Basis.table([1, 2])),
    (bornite.BorniteError, "'real' or 'complex'", lambda: untyped(Basis.fourier)(3, 0, 1, "odd")),
    (bornite.BorniteError, "a set or range", lambda: untyped(Basis.indicator(3).gram)(1)),
    (bornite.BorniteError, "a number or a list", lambda: Basis.indicator(3).evaluate([[1]])),
    (bornite.CircuitError, "no layers", lambda: Builder().build(0)),
    (bornite.CircuitError, "no variable 'y'", lambda: Builder().input("y", 2)),
    (bornite.CircuitError, "2 columns", lambda: build(lambda b, f: b.sum(f, [[1, 2, 3]]))),
    (bornite.CircuitError, "no weight 7", lambda: build(lambda b, f: b.sum(f, 7))),
    (bornite.CircuitError, "not an earlier layer", lambda: build(lambda b, f: b.sum(9, [[1, 2]]))),
    (bornite.CircuitError, "row 0, column 1", lambda: build(lambda b, f: b.sum(f, [[1, np.nan]]))),
    (bornite.CircuitError, "at least 2 inputs", lambda: build(lambda b, f: b.kronecker([f]))),
    (bornite.CircuitError, "not decomposable", lambda: build(lambda b, f: b.hadamard([f, f]))),
    (bornite.CircuitError, "output 5 is not a layer", lambda: build(lambda b, f: 5)),
    (bornite.CircuitError, "no layer uses", lambda: build(lambda b, f: (b.variable("y", 2), f)[1])),
    (bornite.CircuitError, "its basis is defined on", lambda: build(lambda b, f: b.input("x", 3))),
    (bornite.CircuitError, "not a valid domain", lambda: random([2], domains=[0])),
    (bornite.CircuitError, "width 0", lambda: random([2, 2], width=0)),
    (bornite.CircuitError, "two variables are named", lambda: random([2, 2], names=["a", "a"])),
    (bornite.BorniteError, "rows and columns, not 1", lambda: build(lambda b, f: b.sum(f, [1, 2]))),
    (bornite.ArgumentError, "expected numbers", lambda: build(lambda b, f: b.sum(f, [["a"]]))),
    (bornite.BorniteError, "a position, counted from 0, found -1", lambda: build(lambda b, f: b.sum(-1, [[1, 2]]))),
    (bornite.BorniteError, "too large for a position", lambda: build(lambda b, f: b.sum(2**40, [[1, 2]]))),
    (bornite.ArgumentError, "found None", lambda: untyped(Builder().input)(None, 2)),
    (bornite.ArgumentError, "a domain or a number of values, found 'real'", lambda: untyped(Builder().variable)("x", "real")),
    (bornite.TreeError, "at least one variable", lambda: random([])),
    (bornite.TreeError, "2 times", lambda: random([2, 2], [0, 0])),
    (bornite.TreeError, "needs at least 2", lambda: random([2, 2], [[0], 1])),
    (bornite.TreeError, "at least one variable", lambda: random(2, ("image", 0, 3))),
    (bornite.BorniteError, "3 bases for 2 variables", lambda: random([2, 2, 2], [0, 1])),
    (bornite.BorniteError, "1 names for 2 variables", lambda: random([2, 2], names=["a"])),
    (bornite.BorniteError, "2 domains for 1 variables", lambda: random([2], domains=[2, 2])),
    (bornite.BorniteError, "the number of variables", lambda: random(2, "linear")),
    (bornite.BorniteError, "there is no tree 'cubic'", lambda: random([2, 2], "cubic")),
    (bornite.BorniteError, "there is no product", lambda: random([2, 2], product="outer")),
    (bornite.BorniteError, "2 kinds of products for 1 splits", lambda: random([2, 2], product=["hadamard"] * 2)),
    (bornite.BorniteError, "no weight distribution", lambda: random([2, 2], weights="uniform")),
    (bornite.BorniteError, "use a smaller width", lambda: random([2**20] * 2, width=2**20)),
    (bornite.ArgumentError, "nested list", lambda: random([2, 2], [0, "x1"])),
    (bornite.ArgumentError, "found ('circle', 3)", lambda: random([2, 2], ("circle", 3))),
    (bornite.ArgumentError, "found 1.5", lambda: random([2, 2], 1.5)),
    (bornite.ArgumentError, "a basis or a number of values, found 'ab'", lambda: random("ab")),
    (bornite.ArgumentError, "a basis or a number of values, found None", lambda: random([2, None])),
    (bornite.BorniteError, "a number of values, found -2", lambda: random([-2])),
    (bornite.ArgumentError, "a name, found 3", lambda: random([2, 2], product=3)),
    (bornite.QueryError, "did you mean 'x1'?", lambda: marginalize({"x11": 1})),
    (bornite.QueryError, "at character 1", lambda: marginalize("y=1")),
    (bornite.QueryError, "variable 'x1' cannot be 3", lambda: marginalize({"x1": 3})),
    (bornite.QueryError, "variable 'x1' cannot be 0.5", lambda: marginalize({"x1": {0.5}})),
    (bornite.QueryError, "cannot be 3", lambda: marginalize({"x1": range(2, 10**12)})),
    (bornite.QueryError, "cannot be inf", lambda: marginalize({"x2": float("inf")})),
    (bornite.QueryError, "ask for an interval", lambda: marginalize({"x2": {1}})),
    (bornite.QueryError, "not in order", lambda: marginalize({"x2": (1, 0)})),
    (bornite.ArgumentError, "found [0, 1]", lambda: marginalize({"x1": [0, 1]})),
    (bornite.ArgumentError, "found 'a'", lambda: marginalize({"x1": "a"})),
    (bornite.ArgumentError, "found (1, 2, 3)", lambda: marginalize({"x1": (1, 2, 3)})),
    (bornite.ArgumentError, "found int", lambda: marginalize(3)),
    (bornite.ArgumentError, "a name, found 0", lambda: marginalize({0: 1})),
    (bornite.QueryError, "expected 3 values", lambda: evaluate([1, 2])),
    (bornite.QueryError, "expected 3 values", lambda: log_marginal(np.zeros((0, 2)))),
    (bornite.QueryError, "row 1: variable 'x0' cannot be 2", lambda: evaluate([[1, 1, 0], [2, 1, 0]])),
    (bornite.QueryError, "cannot be NaN", lambda: evaluate([np.nan, 1, 0])),
    (bornite.QueryError, "row 2000: ", lambda: log_marginal([[1, 1, 0]] * 2000 + [[1, 5, 0]])),
    (bornite.BorniteError, "found 3 axes", lambda: evaluate(np.zeros((1, 1, 3)))),
    (bornite.BorniteError, "found 0 axes", lambda: evaluate(1)),
    (bornite.ArgumentError, "complex", lambda: evaluate([1j, 0, 0])),
    (bornite.ArgumentError, "expected numbers", lambda: evaluate(["1", "0", "0"])),
    (bornite.OperationError, "zero everywhere",
     lambda: build(lambda b, f: b.sum(f, [[0, 0]])).orthonormalize()),
    (bornite.OperationError, "zero everywhere",
     lambda: build(lambda b, f: b.sum(f, [[0, 0]])).marginalize("x=1")),
    (bornite.OperationError, "already a square", lambda: C.square().circuit.square()),
    (bornite.OperationError, "already a square", lambda: C.square().circuit.log_partition()),
    (bornite.OperationError, "which needs no squaring", lambda: random([64] * 4, width=64).square()),
    (bornite.BorniteError, "1 weights for a circuit with 2",
     lambda: Circuit.random([2, 2, 2], width=3).with_weights([[[1]]])),
    (bornite.FileError, "invalid JSON", lambda: Circuit.from_json("{")),
    (bornite.FileError, "'layers' is missing|layers", lambda: Circuit.from_json({"variables": []})),
    (bornite.FileError, "not a circuit file", lambda: Circuit.from_bytes(b"nothing")),
    (bornite.ArgumentError, "set is not JSON", lambda: untyped(Circuit.from_json)({"variables": {1}})),
]  # fmt: skip


@pytest.mark.parametrize(("error", "part", "call"), CASES, ids=[f"{n}-{c[1]}" for n, c in enumerate(CASES)])
def test_message_and_class(
    error: type[Exception], part: str, call: Callable[[], object]
) -> None:
    pattern = part if "|" in part else re.escape(part)
    with pytest.raises(error, match=pattern) as raised:
        call()
    assert type(raised.value) is error


TABLE = {
    "city": ["Bonn", "Ulm", "Bonn"] * 20,
    "age": [20, 31, 45, 52] * 15,
    "pay": [round(10 + 0.37 * n, 2) for n in range(60)],
}
LONG, CONTROL = "x" * 100_000, "a\x1b[2J\x00b"


@pytest.fixture(scope="module")
def model() -> Any:
    return bornite.fit(TABLE, epochs=1, width=2)


ARGUMENTS: list[tuple[str, Callable[[Any], object]]] = [
    ("give text", lambda m: m.ask(1)),
    ("give text", lambda m: m.query(None)),
    ("give text", lambda m: m.ask(b"P(age=1)")),
    ("give a whole number of at least 0", lambda m: m.sample(-1)),
    ("give a whole number", lambda m: m.sample(1.5)),
    ("give a whole number", lambda m: m.sample("3")),
    ("below 2\\*\\*64", lambda m: m.sample(2**70)),
    ("seed=-1", lambda m: m.sample(1, seed=-1)),
    ("seed=None", lambda m: m.sample(1, seed=None)),
    ("seed='a'", lambda m: m.impute(TABLE, seed="a")),
    ("seed=-2", lambda m: m.predict(TABLE, "age", seed=-2)),
    ("method=3", lambda m: m.impute(TABLE, method=3)),
    (r"found \(1, 2, 3\)", lambda m: m.sample(1, given={"age": (1, 2, 3)})),
    ("found slice", lambda m: m.sample(1, given={"age": slice(1, 2, 3)})),
    ("found 1j", lambda m: m.log_probability({"age": 1j})),
    ("contains complex128", lambda m: m.log_prob({**TABLE, "age": np.zeros(60, complex)})),
    ("width=-1", lambda m: bornite.fit(TABLE, width=-1)),
    ("width='a'", lambda m: untyped(bornite.fit)(TABLE, width="a")),
    ("epochs=1.5", lambda m: untyped(bornite.fit)(TABLE, epochs=1.5)),
    ("time='soon'", lambda m: untyped(bornite.fit)(TABLE, time="soon")),
    ("rate=", lambda m: untyped(bornite.fit)(TABLE, rate=[1])),
    ("start=3", lambda m: untyped(bornite.fit)(TABLE, start=3)),
    ("effort=1", lambda m: untyped(bornite.fit)(TABLE, effort=1)),
    ("give numbers", lambda m: bornite.fit(TABLE, atoms={"pay": ["x"]})),
    ("1e300 is not a number that the column can have", lambda m: bornite.fit(TABLE, atoms={"pay": [1e300]})),
    ("atoms=3", lambda m: untyped(bornite.fit)(TABLE, atoms=3)),
    ("image=7", lambda m: untyped(bornite.fit)(TABLE, image=7)),
    ("give the height", lambda m: untyped(bornite.fit)(TABLE, image=(1,))),
    ("as_is=1", lambda m: untyped(bornite.fit)(TABLE, as_is=1)),
    ("strict='a'", lambda m: untyped(bornite.fit)(TABLE, strict="a")),
    ("progress='a'", lambda m: untyped(bornite.fit)(TABLE, progress="a")),
    ("count=-1", lambda m: m.anomalies(TABLE, -1)),
    ("count=1.5", lambda m: m.anomalies(TABLE, 1.5)),
    ("unseen=1", lambda m: m.log_prob(TABLE, unseen=1)),
    ("device=1", lambda m: m.log_prob(TABLE, device=1)),
    ("column", lambda m: m.predict(TABLE, ["age"])),
    ("width=-1", lambda m: m.truncate(width=-1)),
    ("error='a'", lambda m: m.truncate(error="a")),
    ("give bytes", lambda m: m.decompress("a")),
    ("give bytes", lambda m: bornite.Model.from_bytes(untyped("a"))),
    ("give a path", lambda m: bornite.Model.load(untyped(3))),
    ("give a path", lambda m: m.save(3)),
    ("columns=3", lambda m: m.plot(columns=3)),
    ("columns=3", lambda m: m.mutual_information(3)),
    ("q='a'", lambda m: m.quantile("age", "a")),
    ("give a probability", lambda m: m.marginal("age").quantile(None)),
    ("found -1", lambda m: bornite.set_memory_limit(-1)),
    ("found 'a'", lambda m: untyped(bornite.set_memory_limit)("a")),
    ("arrays=3", lambda m: untyped(bornite.from_mps)(3)),
    ("shape=3", lambda m: untyped(bornite.from_mps)([np.eye(2)], shape=3)),
    ("atoms must be finite", lambda m: Domain.half_line(0).with_atoms([2, 1])),
]


@pytest.mark.parametrize(("part", "call"), ARGUMENTS, ids=[f"{n}-{c[0]}" for n, c in enumerate(ARGUMENTS)])
def test_every_wrong_argument_is_an_error_of_this_package(
    model: Any, part: str, call: Callable[[Any], object]
) -> None:
    with pytest.raises(bornite.BorniteError, match=part):
        call(model)


def test_messages_are_short_and_can_be_printed(model: Any) -> None:
    row = {"city": ["Bonn"], "age": [20], "pay": [10.25]}
    calls: list[Callable[[], object]] = [
        lambda: model.ask(LONG),
        lambda: model.ask(f"P(city='{LONG}')"),
        lambda: model.ask(f"P({LONG}=1)"),
        lambda: model.ask(f"P(age={'9' * 5000})"),
        lambda: model.ask("P(" + "(" * 5000),
        lambda: model.ask(CONTROL),
        lambda: model.ask(f"P(city='{CONTROL}')"),
        lambda: model.ask("P(age=\0)"),
        lambda: model.log_prob({**row, "age": [LONG]}),
        lambda: model.log_prob({**row, "age": [CONTROL]}),
        lambda: model.sample(1, given={"age": {LONG: 1}}),
        lambda: model.sample(1, given={"age": 10**400}),
        lambda: model.sample(LONG),
        lambda: bornite.fit({"a": [1e308, -1e308, 3.0, 4.0]}, epochs=1),
    ]
    for call in calls:
        with pytest.raises(bornite.BorniteError) as raised:
            call()
        text = str(raised.value)
        assert len(text) < 500, text
        assert all(c.isprintable() or c == "\n" for c in text), text


def test_every_class_is_a_value_error() -> None:
    for name in bornite.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(bornite, name), bornite.BorniteError)
    assert issubclass(bornite.BorniteError, ValueError)
    assert bornite.QueryError.__module__ == "bornite"


def test_what_the_file_system_refuses_is_an_os_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere.json"):
        Circuit.load(tmp_path / "nowhere.json")
    with pytest.raises(OSError, match="missing"):
        C.save(tmp_path / "missing" / "c.json")
    broken = tmp_path / "broken.json"
    broken.write_text('{"variables": ')
    with pytest.raises(bornite.FileError, match=r"broken\.json: .*invalid JSON"):
        Circuit.load(broken)


def test_failed_build_leaves_the_builder_usable() -> None:
    b = Builder()
    f = b.input(b.variable("x", Domain.finite(2)), 2)
    with pytest.raises(bornite.CircuitError):
        b.build(7)
    assert b.build(b.sum(f, [[1, 1]])).num_layers == 2

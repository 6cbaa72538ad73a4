"""Exact conversion of tensor networks to circuits.

Matrix product states and tree tensor networks are circuits: every tensor is the weight of a sum
layer over the Kronecker product of the layers that it is contracted with. The circuit has
the same amplitudes as the network, without approximation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from bornite._bornite import BorniteError, Builder, Circuit, CircuitError
from bornite._errors import ArgumentError, check_text, listed

__all__ = ["Node", "from_mps", "from_tree"]

#: A tensor with its inputs, a tensor over one variable, the name of a variable, or None for a
#: variable that is named by its position.
Node: TypeAlias = Union[
    "tuple[npt.ArrayLike, Sequence[Node]]", "npt.NDArray[Any]", str, None
]

#: The most entries that the weight of one site of a periodic state may have.
_MAX_PERIODIC_ENTRIES = 1 << 27


def from_mps(
    arrays: Iterable[npt.ArrayLike],
    *,
    shape: str = "lrp",
    names: Sequence[str] | None = None,
) -> Circuit:
    """Converts a matrix product state, given as one array per site, to a circuit.

    ``shape`` is the order of the axes: l for the bond to the left, r for the bond to the right and
    p for the physical index, as in quimb, where ``MatrixProductState.arrays`` has the order ``"lrp"``.
    The first array has no axis l and the last has no axis r. If they have both, these two axes are one
    bond and the state is periodic; if that bond has more than one value, the circuit needs layers of the squared width.

    The variables take the values 0, 1, … of the physical indices and are named x0, x1, … unless
    ``names`` is given. A state with bond dimension D becomes a circuit of width D, linear
    from left to right, where c(x) is the amplitude of x.

    >>> import bornite
    >>> import numpy as np
    >>> ghz = [np.eye(2), np.zeros((2, 2, 2)), np.eye(2)]
    >>> ghz[1][0, 0, 0] = ghz[1][1, 1, 1] = 1
    >>> c = bornite.from_mps(ghz)
    >>> c.evaluate([[0, 0, 0], [1, 1, 1], [0, 1, 0]]).real.ravel().tolist()
    [1.0, 1.0, 0.0]
    >>> round(float(np.exp(c.marginalize("x0=0"))), 12)
    0.5
    """
    check_text(shape=shape)
    if sorted(shape) != ["l", "p", "r"]:
        raise BorniteError(f"the shape {shape!r} is not a permutation of the letters l, r and p, such as 'lrp'")
    sites = [_numbers(array, f"site {n}") for n, array in enumerate(listed(arrays=arrays))]
    if not sites:
        raise CircuitError("the state has no sites: give at least one array")
    last = len(sites) - 1
    sites = [_site(a, n, last, shape) for n, a in enumerate(sites)]
    for n, (left, right) in enumerate(zip(sites, sites[1:] + sites[:1])):
        if left.shape[2] != right.shape[0]:
            raise CircuitError(
                f"site {n}: its right bond has {left.shape[2]} values, but the left bond of site "
                f"{(n + 1) % len(sites)} has {right.shape[0]}; they must be the same bond"
            )
    if names is None:
        names = [f"x{n}" for n in range(len(sites))]
    _check_names(names, len(sites))

    # The values of the periodic bond are carried from the first site to the last.
    period = sites[0].shape[0]
    builder = Builder()
    layer = None
    for n, (label, site) in enumerate(zip(names, sites)):
        physical = site.shape[1]
        inputs = builder.input(builder.variable(label, physical), physical)
        if layer is not None:
            inputs = builder.kronecker([layer, inputs])
        layer = builder.sum(inputs, _mps_weight(site, n, n == last, period))
    assert layer is not None
    return builder.build(layer)


def _site(array: npt.NDArray[Any], n: int, last: int, shape: str) -> npt.NDArray[Any]:
    """The array of a site with the axes left, physical, right."""
    missing = ("l" if n == 0 else "") + ("r" if n == last else "")
    axes = shape
    if array.ndim == 3 - len(missing):
        axes = "".join(letter for letter in shape if letter not in missing)
    elif array.ndim != 3:
        wanted = "3" if not missing else f"{3 - len(missing)} or, in a periodic state, 3"
        raise CircuitError(f"site {n}: its array has {array.ndim} axes; give {wanted}")
    array = array.transpose([axes.index(letter) for letter in "lpr" if letter in axes])
    if "l" not in axes:
        array = array[np.newaxis]
    if "r" not in axes:
        array = array[..., np.newaxis]
    return array


def _mps_weight(
    site: npt.NDArray[Any], n: int, is_last: bool, period: int
) -> npt.NDArray[Any]:
    """The weight of a site: rows for its right bond, columns for its left bond and its variable."""
    weight: npt.NDArray[Any]
    left, physical, right = site.shape
    columns = physical if n == 0 else period * left * physical
    rows = 1 if is_last else period * right
    if period > 1 and rows * columns > _MAX_PERIODIC_ENTRIES:
        raise CircuitError(
            f"site {n}: the periodic state takes a weight of {rows}x{columns}; "
            "cut it at a bond with fewer values"
        )
    if n == 0 and is_last:
        weight = np.einsum("apa->p", site)
    elif n == 0:
        # The first site opens the periodic bond, with one row for each pair of its values and those of r.
        weight = site.transpose(0, 2, 1)
    elif is_last:
        # The last site closes it.
        weight = site.transpose(2, 0, 1)
    else:
        # The sites between pass it on.
        weight = np.einsum("ab,lpr->arblp", np.eye(period), site)
    return weight.reshape(rows, columns)


def from_tree(tree: Node, *, names: Sequence[str] | None = None) -> Circuit:
    """Converts a tree tensor network, given as nested pairs of a tensor and its inputs, to a circuit.

    The tensor of a node ``(tensor, inputs)`` has one axis for each input, in order, and then one for the bond to
    the tensor above it. An input is another node or a variable. A variable is given by its name, or by None to name it
    x0, x1, … by its position among the leaves, from left to right. An array by itself means ``(array,
    [None])``: its axes are the physical index and the bond. ``names`` lists the names of all variables
    instead.

    The tensor at the top has no bond above it. If it has one more axis than inputs, that axis
    is the circuit's output: its values are squared and summed.

    >>> import bornite
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> top, left = rng.normal(size=(3, 2, 2)), rng.normal(size=(2, 2, 3))
    >>> c = bornite.from_tree((top, [(left, ["a", "b"]), "c", "d"]))
    >>> c.num_variables, c.variable_order
    (4, ['a', 'b', 'c', 'd'])
    >>> amplitudes = np.einsum("kcd,abk->abcd", top, left)
    >>> bool(np.isclose(c.evaluate([1, 0, 1, 0])[0], amplitudes[1, 0, 1, 0], rtol=1e-14))
    True
    """
    builder = Builder()
    count = 0
    layers: list[int] = []
    # A node waits with the size of the axis above it and its place; its weight waits until all its
    # inputs are layers. A tree may be as deep as it has variables, so there is no recursion.
    work: list[_Waiting | _Weight] = [_Waiting(tree, None, "the top")]
    while work:
        item = work.pop()
        if isinstance(item, _Weight):
            inputs = layers[-item.num_inputs :]
            del layers[-item.num_inputs :]
            product = inputs[0] if len(inputs) == 1 else builder.kronecker(inputs)
            layers.append(builder.sum(product, item.matrix))
        elif item.node is None or isinstance(item.node, str):
            if item.size is None:
                raise CircuitError("the tree is a variable without a tensor; give (tensor, inputs)")
            label = item.node or f"x{count}"
            if names is not None:
                label = names[count] if count < len(names) else ""
            layers.append(builder.input(builder.variable(label, item.size), item.size))
            count += 1
        else:
            weight, waiting = _open(item)
            work.append(weight)
            work.extend(reversed(waiting))
    if names is not None:
        _check_names(names, count)
    return builder.build(layers[0])


class _Waiting(NamedTuple):
    """A node that is to become a layer, with the size of the axis above it; None at the top."""

    node: Node
    size: int | None
    place: str


class _Weight(NamedTuple):
    """The weight of a sum over this many layers."""

    matrix: npt.NDArray[Any]
    num_inputs: int


def _open(item: _Waiting) -> tuple[_Weight, list[_Waiting]]:
    """The weight of a node with a tensor, and its inputs."""
    node, size, place = item
    if not isinstance(node, tuple):
        node = (node, [None]) if isinstance(node, np.ndarray) else node
    if not (isinstance(node, tuple) and len(node) == 2 and isinstance(node[1], (list, tuple))):
        raise CircuitError(
            f"{place} is neither (tensor, inputs), an array, a name nor None: {type(node).__name__}"
        )
    tensor, inputs = _numbers(node[0], place), node[1]
    if not inputs:
        raise CircuitError(f"{place} has no inputs; give it at least one")
    if size is None and tensor.ndim == len(inputs):
        tensor = tensor[..., np.newaxis]
    if tensor.ndim != len(inputs) + 1:
        above = "the bond above" if size is not None else "at most one more"
        raise CircuitError(
            f"{place}: its tensor has {tensor.ndim} axes; give one for each of its {len(inputs)} "
            f"inputs, and {above}"
        )
    *sizes, above = tensor.shape
    if size is not None and above != size:
        raise CircuitError(
            f"{place}: its last axis has {above} values, but the axis of the tensor above it has "
            f"{size}; they must be the same bond"
        )
    matrix = np.moveaxis(tensor, -1, 0).reshape(above, -1)
    waiting = [
        _Waiting(part, length, f"input {n} of {place}")
        for n, (part, length) in enumerate(zip(inputs, sizes))
    ]
    return _Weight(matrix, len(inputs)), waiting


def _numbers(array: npt.ArrayLike, place: str) -> npt.NDArray[Any]:
    """An array of float64 or complex128."""
    numbers = np.asarray(array)
    if numbers.dtype.kind not in "biufc":
        raise ArgumentError(f"{place}: expected an array of numbers, found one of {numbers.dtype}")
    return numbers.astype(np.complex128 if numbers.dtype.kind == "c" else np.float64, copy=False)


def _check_names(names: Sequence[str], count: int) -> None:
    if len(names) != count:
        raise BorniteError(f"{len(names)} names for {count} variables: give one for each")

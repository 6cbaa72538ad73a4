"""Squared orthonormal circuits.

A density model that is normalized by construction and answers any marginal, conditional, range
query or sample exactly.

Build a circuit, make it orthonormal, and ask for any marginal:

>>> import math
>>> from bornite import Basis, Circuit
>>> circuit = Circuit.random(
...     [2, 3, Basis.hermite(4)], names=["smoker", "city", "height"], tree="balanced", width=4
... )
>>> model, log_z = circuit.orthonormalize()
>>> joint = model.marginalize("smoker=1, city in {0, 2}, height in [-1, 0.5)")
>>> given = model.marginalize("city in {0, 2}, height in [-1, 0.5)")
>>> 0 < math.exp(joint - given) < 1
True

Or take over a tensor network, exactly:

>>> import bornite
>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> mps = [rng.normal(size=s) for s in [(3, 2), (3, 3, 2), (3, 2)]]
>>> state = bornite.from_mps(mps)
>>> expected = np.einsum("ai,abj,bk->ijk", *mps)[1, 0, 1]
>>> bool(np.isclose(state.evaluate([1, 0, 1])[0], expected, rtol=1e-14))
True
"""

from bornite import _bornite
from bornite._bornite import (
    Basis,
    BasisError,
    BorniteError,
    Builder,
    Circuit,
    CircuitError,
    Domain,
    FileError,
    Layer,
    Marginal,
    OperationError,
    QueryError,
    Squared,
    TreeError,
    Variable,
    __version__,
)
from bornite.tensor_networks import from_mps, from_tree

__all__ = [
    "Basis",
    "BasisError",
    "BorniteError",
    "Builder",
    "Circuit",
    "CircuitError",
    "Domain",
    "FileError",
    "Layer",
    "Marginal",
    "OperationError",
    "QueryError",
    "Squared",
    "TreeError",
    "Variable",
    "__version__",
    "from_mps",
    "from_tree",
]

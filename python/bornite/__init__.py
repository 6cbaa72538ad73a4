"""Squared orthonormal circuits.

Densities that are normalized by construction, with exact marginals, conditionals, range
queries and samples.

Fit a model to a table with missing values and ask questions:

>>> import bornite
>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> age = rng.integers(20, 60, 400).astype(float)
>>> table = {"age": age, "pay": 20 + age + rng.normal(size=400), "owner": age > 45}
>>> table["pay"][::9] = np.nan
>>> model = bornite.fit(table, epochs=15)
>>> bool(model.query("P(owner=1 | age in [50, 60))") > model.query("P(owner=1 | age in [20, 30))"))
True
>>> full = model.impute(table)

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

Or import a tensor network:

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
    DataError,
    Domain,
    Environments,
    FileError,
    Layer,
    Marginal,
    ModelError,
    OperationError,
    Overlap,
    QueryError,
    Squared,
    TreeError,
    Univariate,
    Variable,
    __version__,
    set_memory_limit,
)
from bornite._errors import ArgumentError, ColumnError
from bornite.answers import Anomaly, Answer, Contribution
from bornite.distribution import Distribution
from bornite.files import compress_file, decompress_file
from bornite.fitting import fit
from bornite.model import Model
from bornite.tensor_networks import from_mps, from_tree

__all__ = [
    "Anomaly",
    "Answer",
    "ArgumentError",
    "Basis",
    "BasisError",
    "BorniteError",
    "Builder",
    "Circuit",
    "CircuitError",
    "ColumnError",
    "Contribution",
    "DataError",
    "Distribution",
    "Domain",
    "Environments",
    "FileError",
    "Layer",
    "Marginal",
    "Model",
    "ModelError",
    "OperationError",
    "Overlap",
    "QueryError",
    "Squared",
    "TreeError",
    "Univariate",
    "Variable",
    "__version__",
    "compress_file",
    "decompress_file",
    "fit",
    "from_mps",
    "from_tree",
    "set_memory_limit",
]

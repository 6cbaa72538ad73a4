"""Squared orthonormal circuits.

A density model that is normalized by construction and answers any marginal, conditional, range
query or sample exactly.

>>> import bornite
>>> bornite.__version__ == bornite._bornite.__version__
True
"""

from bornite import _bornite
from bornite._bornite import __version__

__all__ = ["__version__"]

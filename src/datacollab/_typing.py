"""Names of types that all rooms use; cheap to import."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["FloatArray", "PartyName"]

FloatArray = NDArray[np.float64]
PartyName = str | int
"""How a party is named: a string, or its position where the parties came as a plain sequence."""

"""Names of types that all rooms use; cheap to import."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Array = Any
"""A NumPy array, or an array of another library that follows the array API standard, all on one device."""
PartyName = str | int
"""How a party is named: a string, or its position where the parties came as a plain sequence."""


class DefaultNumber(int):
    """A default number, lowered where a table allows no more; a plain number that is too large is refused."""


USUAL = DefaultNumber(10)
"""Components of a map by default."""

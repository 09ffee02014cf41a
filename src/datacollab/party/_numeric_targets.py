"""Which targets are numbers rather than classes, where nobody says so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_CLASSES", "are_numbers"]

MOST_CLASSES = 20
"""Kinds of whole numbers that may still be classes; of more, each would single out some rows."""


def are_numbers(target: NDArray[Any]) -> bool:
    """Whether targets are floating-point numbers that are not all whole, or are whole and of more than twenty kinds.

    Counts and rounded measurements are whole numbers too: as classes, each row's would leave as it is.
    """
    if target.dtype.kind != "f":
        return False
    return bool((target != np.floor(target)).any()) or len(np.unique(target)) > MOST_CLASSES

"""Randomness for secrets."""

from __future__ import annotations

import numpy as np


def fresh_generator() -> np.random.RandomState:
    """Return a generator with 128 bits from the operating system, regardless of NumPy's global one."""
    # `np.random.seed`, which any library may have called, makes the global generator no secret.
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence()))

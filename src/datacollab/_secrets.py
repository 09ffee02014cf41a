"""Randomness for secrets."""

from __future__ import annotations

import numpy as np


def fresh_generator() -> np.random.RandomState:
    """Return a generator with 128 bits from the operating system, regardless of NumPy's global one."""
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence()))

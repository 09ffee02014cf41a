"""Where a party's secrets come from: the operating system, or a number in an experiment."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from .._secrets import fresh_generator

__all__ = ["generator_for", "has_fixed_seed", "secretly_seeded"]


def generator_for(purpose: int, random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """A generator for one of several purposes, whose numbers have nothing to do with those of the others.

    Parameters
    ----------
    purpose : int
        0 or above.
    random_state : int, RandomState or None
        None draws from the operating system; a RandomState moves on.
    """
    if random_state is None:
        return fresh_generator()
    if isinstance(random_state, np.random.RandomState):
        entropy: Any = random_state.randint(np.iinfo(np.int32).max, size=4).tolist()
    else:
        entropy = int(random_state)
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(entropy, spawn_key=(purpose,))))


def has_fixed_seed(obfuscator: Any) -> bool:
    """Whether a number is given for some random_state, also of nested steps."""
    return any(isinstance(seed, Integral) for seed in _random_states(obfuscator).values())


def secretly_seeded(obfuscator: Any) -> Any:
    """A clone in which each random_state that is None comes from the operating system."""
    copy = clone(obfuscator)
    # scikit-learn reads None as NumPy's global generator, which any np.random.seed(0) makes predictable.
    for name, value in _random_states(copy).items():
        if value is None:
            copy.set_params(**{name: fresh_generator()})
    return copy


def _random_states(obfuscator: Any) -> dict[str, Any]:
    parameters = obfuscator.get_params(deep=True)
    return {name: value for name, value in parameters.items() if name.rpartition("__")[2] == "random_state"}

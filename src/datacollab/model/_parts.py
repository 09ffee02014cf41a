"""All objects that an estimator is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["parts_of"]


def parts_of(estimator: Any) -> Iterator[Any]:
    """Each of scikit-learn's objects within an estimator once, itself first.

    Looks into attributes, mappings, sequences and arrays of objects.  Trees and losses of compiled code have no
    attributes, and are left to the objects that hold them.
    """
    waiting, seen = [estimator], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        if isinstance(value, Mapping):
            seen.add(id(value))
            waiting.extend(value.values())
        elif isinstance(value, list | tuple | set):
            seen.add(id(value))
            waiting.extend(value)
        elif isinstance(value, np.ndarray) and value.dtype == object:
            seen.add(id(value))
            waiting.extend(value.ravel().tolist())
        elif type(value).__module__.startswith("sklearn.") and hasattr(value, "__dict__"):
            seen.add(id(value))
            yield value
            waiting.extend(vars(value).values())

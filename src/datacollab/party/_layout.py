"""How a fitted transformer's arrays lie in memory, so that it computes the same to the last bit after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

__all__ = ["gaps", "with_gaps"]


def gaps(estimator: Any) -> dict[str, list[int]]:
    """Strides, in bytes, of those arrays in a fitted estimator that have gaps.

    A file holds arrays without them.  The linear algebra below NumPy adds in another order then, and the last bits
    of what is computed differ.

    Returns
    -------
    dict of str to list of int
        By the array's number, as `_arrays` counts them.
    """
    found = {}
    for number, (attributes, name) in enumerate(_arrays(estimator)):
        array = attributes[name]
        if array.dtype.kind == "f" and array.size and not (array.flags.c_contiguous or array.flags.f_contiguous):
            found[str(number)] = list(array.strides)
    return found


def with_gaps(estimator: Any, strides: dict[str, list[int]]) -> None:
    """Put the gaps back into the arrays of an estimator, in place.

    Raises
    ------
    ValueError
        When the strides do not fit the arrays.
    """
    places = list(_arrays(estimator))
    for number, wanted in strides.items():
        attributes, name = places[int(number)]
        attributes[name] = _spread(attributes[name], wanted)


def _spread(array: NDArray[Any], strides: list[int]) -> NDArray[Any]:
    """The same entries with the given distances between them."""
    order = sorted(range(array.ndim), key=lambda axis: abs(strides[axis]))
    # Each axis must step over all that the shorter steps reach, or entries would share memory.
    reach = array.itemsize
    for axis in order:
        if strides[axis] % array.itemsize or (array.shape[axis] > 1 and abs(strides[axis]) < reach):
            raise ValueError("entries of an array overlap")
        reach += (array.shape[axis] - 1) * abs(strides[axis])
    first = sum((length - 1) * -step for length, step in zip(array.shape, strides, strict=True) if step < 0)
    memory = np.zeros(reach // array.itemsize, dtype=array.dtype)
    spread = as_strided(memory[first // array.itemsize :], array.shape, strides)
    spread[...] = array
    return spread


def _arrays(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Where the arrays of an estimator and of its parts are, always in the same order."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, BaseEstimator):
        attributes = vars(value)
        for name in sorted(attributes):
            if isinstance(attributes[name], np.ndarray):
                yield attributes, name
            else:
                yield from _arrays(attributes[name])

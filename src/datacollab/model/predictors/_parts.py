"""Facts and arrays of one step, taken out under checks; what is left over at the end is refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ._budget import Budget
from ._refusals import bad_predictor

__all__ = ["MOST_NUMBER", "MOST_WIDTH", "Parts"]

MOST_NUMBER = 1e100
"""Largest entry of any table: products of two of them are still finite."""
MOST_WIDTH = 20_000
"""Columns that a table of rows may have between two steps."""


class Parts:
    """What describes one step.

    Parameters
    ----------
    facts : object
        Of the step, as JSON had them; `kind` among them.
    arrays : dict of str to ndarray
        All arrays of the predictor.  Those that are taken out are removed.
    path : str
        What the names of this step's arrays begin with, as ``"3."``.
    budget : Budget
        Of the whole predictor.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, also by all methods.
    """

    def __init__(self, facts: Any, arrays: dict[str, NDArray[Any]], path: str, budget: Budget) -> None:
        if not isinstance(facts, Mapping) or not isinstance(facts.get("kind"), str):
            raise bad_predictor("has a step that does not say what it is")
        self.arrays, self.path, self.budget = arrays, path, budget
        self._facts = dict(facts)
        self.kind: str = self._facts.pop("kind")

    def has(self, name: str) -> bool:
        """Whether an array is there."""
        return self.path + name in self.arrays

    def table(self, name: str, shape: tuple[int | None, ...], *, most: float = MOST_NUMBER) -> FloatArray:
        """Finite numbers of a shape, of which None leaves a size open."""
        array = self._array(name, np.float64, shape)
        if not (np.abs(array) <= most).all():
            raise bad_predictor(f"has {name} that are not finite, or beyond {most:g}")
        return array

    def integers(self, name: str, *, least: int, most: int, dtype: type = np.int32) -> NDArray[Any]:
        """A list of integers within bounds."""
        array = self._array(name, dtype, (None,))
        if array.size and (array.min() < least or array.max() > most):
            raise bad_predictor(f"has {name} that point to what is not there")
        return array

    def number(self, name: str, *, least: float = -MOST_NUMBER, most: float = MOST_NUMBER) -> float:
        """A number within bounds."""
        value = self._facts.pop(name, None)
        if isinstance(value, bool) or not isinstance(value, float | int) or not least <= value <= most:
            raise bad_predictor(f"has a {name} that is no number from {least:g} to {most:g}")
        return float(value)

    def choice(self, name: str, allowed: Collection[str]) -> str:
        """One of several words."""
        value = self._facts.pop(name, None)
        if not isinstance(value, str) or value not in allowed:
            raise bad_predictor(f"has a {name} that is none of {sorted(allowed)!r}")
        return value

    def listed(self, name: str) -> list[Any]:
        """A list that is not empty, its entries unchecked."""
        value = self._facts.pop(name, None)
        if not isinstance(value, list) or not value:
            raise bad_predictor(f"has no list of {name}")
        return value

    def finish(self) -> None:
        """Refuse facts that belong to nothing."""
        if self._facts:
            raise bad_predictor(f"has a step {self.kind!r} that says more than such a step has to say")

    def _array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
        array = self.arrays.pop(self.path + name, None)
        if array is None:
            raise bad_predictor(f"has a step {self.kind!r} without its {name}")
        fits = len(shape) == array.ndim and all(
            wanted in (None, size) for wanted, size in zip(shape, array.shape, strict=True)
        )
        if array.dtype != dtype or not fits or array.size == 0:
            raise bad_predictor(f"has {name} of another shape or type than its columns and classes want")
        return array

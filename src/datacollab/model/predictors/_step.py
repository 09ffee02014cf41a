"""One step of a predictor, what is taken out of a file for it, and what all steps together may cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...errors import ExchangeError
from .._from_elsewhere import malformed, too_large

__all__ = ["MOST_NUMBER", "MOST_WIDTH", "Budget", "Parts", "Step", "bad_predictor", "large_predictor"]


def bad_predictor(what: str) -> ExchangeError:
    """The error for a predictor whose parts contradict one another."""
    return malformed(f"its estimator {what}")


def large_predictor(what: str) -> ExchangeError:
    """The error for a predictor that would take more memory or time than one may."""
    return too_large(f"has an estimator with {what}")


_MOST_WORK = 5 * 10**6
"""For one row, in units of about a nanosecond."""
_MOST_CALLS = 50_000
"""Of compiled functions for one batch of rows, however few: each costs some microseconds, and a tree's making more."""
_MOST_NODES = 5 * 10**6
"""Of all trees: each takes some two hundred bytes while they are made ready."""


class Budget:
    """Counts, and refuses where it is too much: a file of a few kilobytes can ask for hours.

    Raises
    ------
    ExchangeError
        TOO_LARGE, by all methods.
    """

    def __init__(self) -> None:
        self.work, self.calls, self.nodes = 0.0, 0, 0

    def spend(self, work: float, calls: int) -> None:
        """Count one step, or another model of an average."""
        self.work, self.calls = self.work + work, self.calls + calls
        if self.work > _MOST_WORK or self.calls > _MOST_CALLS:
            raise large_predictor("more work for a row, or more calls, than is allowed")

    def take_nodes(self, n_nodes: int) -> None:
        """Count nodes, before anything is made of them."""
        self.nodes += n_nodes
        if self.nodes > _MOST_NODES:
            raise large_predictor(f"{self.nodes} nodes in its trees; {_MOST_NODES} are allowed")

    def take_trees(self, n_trees: int) -> None:
        """Count trees, before they are made."""
        if self.calls + n_trees > _MOST_CALLS:
            raise large_predictor(f"{n_trees} trees; {_MOST_CALLS} are allowed")


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


class Step(ABC):
    """A function of rows, one by one: a table of shape (n_rows, n_in) to one of shape (n_rows, n_out).

    Steps are made from arrays that are right (by `read`, which checks them, or from a fitted estimator), and do not
    look at them again.
    """

    kind: ClassVar[str]
    """Its name in files."""
    n_in: int
    n_out: int

    @property
    def work(self) -> float:
        """What one row costs, in nanoseconds, roughly."""
        return 10.0 * (self.n_in + self.n_out)

    @property
    def calls(self) -> int:
        """How many calls of compiled functions a batch of rows costs."""
        return 1

    @abstractmethod
    def __call__(self, rows: FloatArray) -> FloatArray:
        """The step's values, shape (n_rows, n_out)."""

    def facts(self) -> dict[str, Any]:
        """What JSON holds of it, besides its kind."""
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Its arrays by name."""
        return {}

    @classmethod
    @abstractmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        """The step that facts and arrays describe."""

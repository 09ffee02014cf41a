"""The steps that a predictor is made of, what a file says of each, and what all together may cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from .._typing import FloatArray
from ._from_elsewhere import bad_predictor, large_predictor

_MOST_WORK = 5 * 10**6
"""For one row, in units of about a nanosecond."""
_MOST_CALLS = 50_000
"""Calls of compiled functions for one batch of rows: each costs some microseconds, and making a tree more."""
_MOST_NODES = 5 * 10**6
"""Nodes of all trees: each takes some two hundred bytes while they are made ready."""


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
        Facts of the step, as JSON had them; `kind` among them.
    arrays : dict of str to ndarray
        All arrays of the predictor.  Those that are taken out are removed.
    path : str
        What the names of this step's arrays begin with, as ``"3."``.
    budget : Budget
        Budget of the whole predictor.

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
        """Return whether an array is there."""
        return self.path + name in self.arrays

    def table(self, name: str, shape: tuple[int | None, ...], *, most: float = MOST_NUMBER) -> FloatArray:
        """Return finite numbers of a shape; None leaves a size open."""
        array = self._array(name, np.float64, shape)
        if not (np.abs(array) <= most).all():
            raise bad_predictor(f"has {name} that are not finite, or beyond {most:g}")
        return array

    def integers(self, name: str, *, least: int, most: int, dtype: type = np.int32) -> NDArray[Any]:
        """Return a list of integers within bounds."""
        array = self._array(name, dtype, (None,))
        if array.size and (array.min() < least or array.max() > most):
            raise bad_predictor(f"has {name} that point to what is not there")
        return array

    def number(self, name: str, *, least: float = -MOST_NUMBER, most: float = MOST_NUMBER) -> float:
        """Return a number within bounds."""
        value = self._facts.pop(name, None)
        if isinstance(value, bool) or not isinstance(value, float | int) or not least <= value <= most:
            raise bad_predictor(f"has a {name} that is no number from {least:g} to {most:g}")
        return float(value)

    def choice(self, name: str, allowed: Collection[str]) -> str:
        """Return one of several words."""
        value = self._facts.pop(name, None)
        if not isinstance(value, str) or value not in allowed:
            raise bad_predictor(f"has a {name} that is none of {sorted(allowed)!r}")
        return value

    def listed(self, name: str) -> list[Any]:
        """Return a list that is not empty, its entries unchecked."""
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
    FACTS: ClassVar[tuple[str, ...]] = ()
    ARRAYS: ClassVar[tuple[str, ...]] = ()
    """Attributes that files keep, under the same names."""
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
        """Return the step's values, shape (n_rows, n_out)."""

    def facts(self) -> dict[str, Any]:
        """Return what JSON holds of it, besides its kind."""
        return {name: getattr(self, name) for name in self.FACTS}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays by name."""
        return {name: getattr(self, name) for name in self.ARRAYS}

    @classmethod
    @abstractmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        """Return the step that facts and arrays describe."""


_LEAST_SPREAD = 1e-100


class Affine(Step):
    """x A + b, with A of shape (n_in, n_out)."""

    kind = "affine"
    ARRAYS = ("coefficients", "intercept")

    def __init__(self, coefficients: FloatArray, intercept: FloatArray) -> None:
        self.coefficients, self.intercept = coefficients, intercept
        self.n_in, self.n_out = coefficients.shape

    def __call__(self, rows: FloatArray) -> FloatArray:
        return rows @ self.coefficients + self.intercept

    @property
    def work(self) -> float:
        """A product is fast."""
        return 0.25 * self.n_in * self.n_out

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        coefficients = parts.table("coefficients", (n_in, None))
        return cls(coefficients, parts.table("intercept", (coefficients.shape[1],)))


class Scale(Step):
    """(x - c) / s, column by column."""

    kind = "scale"
    ARRAYS = ("centre", "spread")

    def __init__(self, centre: FloatArray, spread: FloatArray) -> None:
        self.centre, self.spread = centre, spread
        self.n_in = self.n_out = len(centre)

    def __call__(self, rows: FloatArray) -> FloatArray:
        return (rows - self.centre) / self.spread

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        centre, spread = parts.table("centre", (n_in,)), parts.table("spread", (n_in,))
        if (np.abs(spread) < _LEAST_SPREAD).any():
            raise bad_predictor("divides a column by nothing")
        return cls(centre, spread)


class Stretch(Step):
    """x a + b, column by column."""

    kind = "stretch"
    ARRAYS = ("factor", "offset")

    def __init__(self, factor: FloatArray, offset: FloatArray) -> None:
        self.factor, self.offset = factor, offset
        self.n_in = self.n_out = len(factor)

    def __call__(self, rows: FloatArray) -> FloatArray:
        return rows * self.factor + self.offset

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(parts.table("factor", (n_in,)), parts.table("offset", (n_in,)))


class Clip(Step):
    """Each column cut off at two numbers."""

    kind = "clip"
    FACTS = ("low", "high")

    def __init__(self, n_columns: int, low: float, high: float) -> None:
        self.n_in = self.n_out = n_columns
        self.low, self.high = low, high

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.clip(rows, self.low, self.high)

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        low = parts.number("low")
        return cls(n_in, low, parts.number("high", least=low))


class Elementwise(Step):
    """One function of every number."""

    kind = "elementwise"
    FACTS = ("function",)
    FUNCTIONS: ClassVar[dict[str, Any]] = {
        "exp": np.exp,
        "logistic": expit,
        "relu": lambda rows: np.maximum(rows, 0.0),
        "tanh": np.tanh,
    }

    def __init__(self, n_columns: int, function: str) -> None:
        self.n_in = self.n_out = n_columns
        self.function = function

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self.FUNCTIONS[self.function](rows))

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(n_in, parts.choice("function", cls.FUNCTIONS))


class LogFloor(Step):
    """log max(x, least)."""

    kind = "log"
    FACTS = ("least",)

    def __init__(self, n_columns: int, least: float) -> None:
        self.n_in = self.n_out = n_columns
        self.least = least

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(np.log(np.maximum(rows, self.least)))

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(n_in, parts.number("least", least=1 / MOST_NUMBER))


_MOST_KNOTS = 10**7


class Columnwise(Step):
    """Rows as wide as they were, by no more than their width."""

    def __init__(self, n_columns: int) -> None:
        self.n_in = self.n_out = n_columns

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(n_in)


class Softmax(Columnwise):
    """exp(x) over its sum."""

    kind = "softmax"

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(softmax(rows, axis=1))


class Normalise(Columnwise):
    """Rows over their sums; alike where the sum is zero."""

    kind = "normalise"

    def __call__(self, rows: FloatArray) -> FloatArray:
        total = rows.sum(axis=1, keepdims=True)
        alike = np.full_like(rows, 1 / self.n_in)
        return np.asarray(np.divide(rows, total, out=alike, where=total != 0))


class Complement(Step):
    """The probability of the second class to those of both."""

    kind = "complement"
    n_in, n_out = 1, 2

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.concatenate([1 - rows, rows], axis=1)

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        _check_one_column(n_in)
        return cls()


class Binary(Complement):
    """The score of the second class to the probabilities of both, by the logistic function."""

    kind = "binary"

    def __call__(self, rows: FloatArray) -> FloatArray:
        return super().__call__(np.asarray(expit(rows)))


class Isotonic(Step):
    """A rising line through knots for each column, level beyond them."""

    kind = "isotonic"
    ARRAYS = ("lengths", "knots", "heights")

    def __init__(self, lengths: NDArray[Any], knots: FloatArray, heights: FloatArray) -> None:
        self.lengths, self.knots, self.heights = lengths, knots, heights
        self.n_in = self.n_out = len(lengths)

    def __call__(self, rows: FloatArray) -> FloatArray:
        ends = np.cumsum(self.lengths)[:-1]
        lines = zip(rows.T, np.split(self.knots, ends), np.split(self.heights, ends), strict=True)
        return np.column_stack([np.interp(column, knots, heights) for column, knots, heights in lines])

    @property
    def work(self) -> float:
        """Each number is searched for among knots."""
        return 100.0 * self.n_in

    @property
    def calls(self) -> int:
        """One for each column."""
        return self.n_in

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        lengths = parts.integers("lengths", least=1, most=_MOST_KNOTS)
        if len(lengths) != n_in:
            raise bad_predictor("has knots for other columns than there are")
        n_knots = int(lengths.sum(dtype=np.int64))
        if n_knots > _MOST_KNOTS:
            raise large_predictor(f"{n_knots} knots; {_MOST_KNOTS} are allowed")
        knots, heights = parts.table("knots", (n_knots,)), parts.table("heights", (n_knots,))
        first = np.zeros(n_knots, dtype=bool)
        first[np.concatenate([[0], np.cumsum(lengths)[:-1]])] = True
        for values in (knots, heights):
            if ((np.diff(values, prepend=-np.inf) < 0) & ~first).any():
                raise bad_predictor("has knots that do not rise")
        return cls(lengths, knots, heights)


def _check_one_column(n_in: int) -> None:
    if n_in != 1:
        raise bad_predictor(f"makes two classes of {n_in} scores; expected one")


class NormalDensities(Step):
    """log p(class) + log p(x | class), with columns independent and normal in each class."""

    kind = "normal"
    ARRAYS = ("means", "variances", "log_priors")

    def __init__(self, means: FloatArray, variances: FloatArray, log_priors: FloatArray) -> None:
        self.means, self.variances, self.log_priors = means, variances, log_priors
        self.n_out, self.n_in = means.shape

    def __call__(self, rows: FloatArray) -> FloatArray:
        constants = self.log_priors - 0.5 * np.sum(np.log(2.0 * np.pi * self.variances), axis=1)
        # Class by class: a table of rows by classes by columns may be large.
        densities = [
            constant - 0.5 * np.sum((rows - mean) ** 2 / variance, axis=1)
            for constant, mean, variance in zip(constants, self.means, self.variances, strict=True)
        ]
        return np.column_stack(densities)

    @property
    def work(self) -> float:
        """Each column of each class."""
        return 5.0 * self.n_in * self.n_out

    @property
    def calls(self) -> int:
        """One for each class."""
        return self.n_out

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        means = parts.table("means", (None, n_in))
        variances = parts.table("variances", means.shape)
        if (variances < 1 / MOST_NUMBER).any():
            raise bad_predictor("has variances that are not positive")
        return cls(means, variances, parts.table("log_priors", (len(means),)))


class Radial(Step):
    """exp(-γ ‖x - s‖²) for each landmark s, which is a row of the anchor or made of such rows."""

    kind = "radial"
    FACTS = ("gamma",)
    ARRAYS = ("landmarks",)

    def __init__(self, landmarks: FloatArray, gamma: float) -> None:
        self.landmarks, self.gamma = landmarks, gamma
        self.n_out, self.n_in = landmarks.shape

    def __call__(self, rows: FloatArray) -> FloatArray:
        # Not by rbf_kernel, which raises where an entry is infinite.
        squares = np.sum(rows**2, axis=1)[:, None] + np.sum(self.landmarks**2, axis=1) - 2 * rows @ self.landmarks.T
        return np.asarray(np.exp(-self.gamma * np.maximum(squares, 0.0)))

    @property
    def work(self) -> float:
        """A product, and an exponential for each landmark."""
        return 0.25 * self.n_in * self.n_out + 20.0 * self.n_out

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(parts.table("landmarks", (None, n_in)), parts.number("gamma", least=0))

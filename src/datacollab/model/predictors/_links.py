"""Steps that make probabilities of scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from ..._typing import FloatArray
from ._parts import Parts
from ._refusals import bad_predictor, large_predictor
from ._step import Step

__all__ = ["Binary", "Complement", "Isotonic", "Normalise", "Softmax"]

_MOST_KNOTS = 10**7


class Softmax(Step):
    """exp(x) over its sum."""

    kind = "softmax"

    def __init__(self, n_columns: int) -> None:
        self.n_in = self.n_out = n_columns

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(softmax(rows, axis=1))

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(n_in)


class Normalise(Step):
    """Rows over their sums; alike where the sum is zero."""

    kind = "normalise"

    def __init__(self, n_columns: int) -> None:
        self.n_in = self.n_out = n_columns

    def __call__(self, rows: FloatArray) -> FloatArray:
        total = rows.sum(axis=1, keepdims=True)
        alike = np.full_like(rows, 1 / self.n_in)
        return np.asarray(np.divide(rows, total, out=alike, where=total != 0))

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(n_in)


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
    """A rising line through knots for each column, level beyond them.

    Parameters
    ----------
    lengths : ndarray of shape (n_in,)
        Knots of each column.
    knots, heights : ndarray of shape (n_knots,)
        Of all columns, one after the other.
    """

    kind = "isotonic"

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

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"lengths": self.lengths, "knots": self.knots, "heights": self.heights}

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
        raise bad_predictor(f"makes two classes of {n_in} scores; one is wanted")

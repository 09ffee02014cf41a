"""Rows in cells, such as the levels of a column, beside the number of rows in all of them together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._typing import FloatArray

# Parts of a range from its middle within which parts are `alike`: four, or three of an odd number.
_NEAR_THE_MIDDLE = 2.0


@dataclass(frozen=True, eq=False)
class Cells:
    """How counts of rows in cells are sent, if the total has the sum of them already.

    If all counts were sent, every column would tell that sum once more, and the mean of many columns would tell it
    closely.  So one number less is sent, and all that are sent stay as they are if a row is spread evenly over the
    cells that are `alike`.

    Attributes
    ----------
    alike : ndarray of bool, shape (n_cells,)

    Examples
    --------
    >>> levels = Cells.of_levels(3)
    >>> sent = levels.sent @ [5.0, 2.0, 1.0]
    >>> len(sent), levels.rows(sent, 8.0).round(9)
    (2, array([5., 2., 1.]))
    """

    alike: NDArray[np.bool_]

    @classmethod
    def of_levels(cls, n: int) -> Cells:
        """Return those of levels, which are all alike."""
        return cls(np.ones(n, dtype=np.bool_))

    @classmethod
    def of_parts(cls, n: int) -> Cells:
        """Return those of equal parts of a range, alike in the middle: there, sums of numbers tell no rows either."""
        return cls(np.abs(np.arange(n) - (n - 1) / 2) < _NEAR_THE_MIDDLE)

    @cached_property
    def sent(self) -> FloatArray:
        """Return the factors of counts in the numbers sent, shape (n_cells - 1, n_cells); its rows are orthonormal."""
        # Cells that are alike are sent as contrasts, which a row spread evenly over them leaves as they are.
        contrasts = scipy.linalg.helmert(int(self.alike.sum()))
        found = np.zeros((len(self.alike) - 1, len(self.alike)))
        n_others = len(found) - len(contrasts)
        found[:n_others, ~self.alike] = np.eye(n_others)
        found[n_others:, self.alike] = contrasts
        return found

    @property
    def _back(self) -> FloatArray:
        """Return how numbers that were sent change each count, shape (n_cells, n_cells - 1), if the sum is as it is."""
        back = self.sent.T
        return np.asarray(back - np.outer(self.alike / self.alike.sum(), back.sum(axis=0)))

    @property
    def raised(self) -> float:
        """Return the noise in numbers sent, in units of the noise in the sum, with which no count has less noise.

        One of k cells that are alike is the k-th part of the sum less the m other cells, and of the contrasts all but a
        k-th part.
        """
        k = int(self.alike.sum())
        m = len(self.alike) - k
        return math.sqrt(max(1.0, (k**2 - 1) / max(k**2 - k + m, 1)))

    def move_by_row(self, of_sent: float, of_missing: float) -> float:
        """Return how far replacing a row moves rows missing and numbers sent, in units of the noise: squared.

        It leaves one cell for another, or is missing no longer.
        """
        # A row that enters one cell, and leaves no other.
        alone = float((self.sent**2).sum(axis=0).max(initial=0.0)) / of_sent**2
        return max(2 / of_sent**2, 1 / of_missing**2 + alone)

    def rows(self, sent: FloatArray, n_rows: float) -> FloatArray:
        """Return the counts, shape (n_cells,), from numbers that were sent and the sum."""
        return np.asarray(self._back @ sent + n_rows / self.alike.sum() * self.alike)

    def noise(self, of_sent: float, of_sum: float) -> FloatArray:
        """Return the noise in each count, shape (n_cells,)."""
        return np.asarray(
            np.hypot(of_sent * np.linalg.norm(self._back, axis=1), of_sum * self.alike / self.alike.sum())
        )


def noisy(least: float) -> str:
    """Return how much noise counts have, as a sentence."""
    return f"Counts have noise with a standard deviation of {least:.1f} rows or more."

"""How well probabilities of one of two classes rank rows and say how many there are, a batch at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...linalg import ranking_figures

__all__ = ["RankingScores"]


class RankingScores:
    """Figures of the probabilities of a task's second class; see `linalg.ranking_figures`.

    Parameters
    ----------
    positive : str or int
        The second class.
    find : float
        The share of its rows that is to be found.
    """

    def __init__(self, positive: str | int, find: float) -> None:
        self._positive, self._find = positive, find
        self._probabilities: list[NDArray[np.float32]] = []
        self._targets: list[NDArray[np.bool_]] = []

    def add(self, target: NDArray[Any], probabilities: FloatArray) -> None:
        """Keep a batch.

        Parameters
        ----------
        target : ndarray of shape (n_rows,)
        probabilities : ndarray of shape (n_rows,)
            Of the positive class.
        """
        # Single precision, since tables may be long.
        self._probabilities.append(np.asarray(probabilities, dtype=np.float32))
        self._targets.append(np.asarray(target == self._positive))

    def to_dict(self) -> dict[str, Any]:
        """The figures; None where the table has rows of one class only."""
        target = np.concatenate([np.zeros(0, dtype=bool), *self._targets])
        found = np.concatenate([np.zeros(0), *self._probabilities])
        return {"positive": self._positive, **ranking_figures(target, found, self._find)}

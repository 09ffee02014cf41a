"""How well probabilities of one of two classes rank rows and say how many there are, with 95 % intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, brier_score_loss

from .._typing import FloatArray

__all__ = ["RankingScores", "auc_with_interval"]

LEVEL = 0.95


class RankingScores:
    """Figures of the probabilities of a task's second class, which say something where it is rare.

    Where one row in twenty is of it, "no" for every row is right in nineteen of twenty; how well rows are ranked,
    whether the probabilities are right on the whole, and from which probability on most of the class is found, are
    other matters.

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
        told: dict[str, Any] = {"positive": self._positive, "prevalence": None, "expected": None, "brier": None}
        told |= dict.fromkeys(("auc", "auc_interval", "average_precision", "threshold"))
        if not self._targets:
            return told
        target, found = np.concatenate(self._targets), np.concatenate(self._probabilities).astype(np.float64)
        if not len(target):
            return told
        told |= {"prevalence": float(target.mean()), "expected": float(found.mean())}
        told["brier"] = float(brier_score_loss(target, np.clip(found, 0, 1), pos_label=True))
        if target.all() or not target.any():
            return told
        told["auc"], told["auc_interval"] = auc_with_interval(target, found)
        told["average_precision"] = float(average_precision_score(target, found))
        return told | {"threshold": self._threshold(target, found)}

    def _threshold(self, target: NDArray[np.bool_], found: FloatArray) -> dict[str, Any]:
        """From which probability on so many are found, and how many rows are called for that."""
        wanted = max(1, int(np.ceil(self._find * target.sum())))
        least = np.sort(found[target])[-wanted]
        called = found >= least
        return {
            "find": self._find,
            "least": float(least),
            "n_found": int((called & target).sum()),
            "n_positive": int(target.sum()),
            "n_called": int(called.sum()),
        }


def auc_with_interval(target: NDArray[np.bool_], scores: FloatArray) -> tuple[float, list[float]]:
    """Area under the curve, and DeLong's interval by midranks (Sun and Xu 2014).

    Parameters
    ----------
    target : ndarray of shape (n_rows,)
        Some true, and some not.
    scores : ndarray of shape (n_rows,)
    """
    n_positive, n_negative = int(target.sum()), int((~target).sum())
    ranks = rankdata(scores)
    # For each row the share of the other class's rows that it is ranked rightly against.
    above = (ranks[target] - rankdata(scores[target])) / n_negative
    below = 1 - (ranks[~target] - rankdata(scores[~target])) / n_positive
    area = float(above.mean())
    variance = sum(np.var(part, ddof=1) / len(part) for part in (above, below) if len(part) > 1)
    half = float(special.ndtri((1 + LEVEL) / 2)) * float(np.sqrt(variance))
    return area, [max(area - half, 0.0), min(area + half, 1.0)]

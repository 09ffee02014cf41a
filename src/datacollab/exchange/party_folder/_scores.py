"""How good predictions are against known targets: of classes, numbers and times to events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from ..._typing import FloatArray
from ...errors import NumericalError
from ...linalg import ranking_figures
from ...survival import concordance_index

__all__ = ["ClassificationScores", "RankingScores", "RegressionScores", "SurvivalScores"]

LEVEL = 0.95


class ClassificationScores:
    """Accuracy with its Wilson interval, balanced accuracy, and counts.

    Parameters
    ----------
    classes : sequence of str or int
        All classes of the project.
    """

    def __init__(self, classes: Sequence[str | int]) -> None:
        self._classes = classes
        self._counts: Counter[tuple[Any, Any]] = Counter()

    def add(self, target: NDArray[Any], predicted: NDArray[Any]) -> None:
        """Count a batch."""
        self._counts.update(zip(target.tolist(), predicted.tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The figures; accuracies are None without rows."""
        confusion = [[self._counts[true, predicted] for predicted in self._classes] for true in self._classes]
        counts = np.array(confusion)
        per_class, right = counts.sum(axis=1), counts.trace()
        n_rows = self._counts.total()
        there = per_class > 0
        return {
            "n_rows": n_rows,
            "accuracy": float(right / n_rows) if n_rows else None,
            "accuracy_interval": wilson(int(right), n_rows) if n_rows else None,
            "balanced_accuracy": float((counts.diagonal()[there] / per_class[there]).mean()) if n_rows else None,
            "classes": list(self._classes),
            "confusion": confusion,
        }


class RegressionScores:
    """Root mean squared error and mean absolute error with t intervals, and R2."""

    def __init__(self) -> None:
        self._absolute, self._squared, self._target = _Moments(), _Moments(), _Moments()

    def add(self, target: NDArray[Any], predicted: NDArray[Any]) -> None:
        """Count a batch."""
        error = predicted - target
        self._absolute.add(np.abs(error))
        self._squared.add(error**2)
        self._target.add(target)

    def to_dict(self) -> dict[str, Any]:
        """The figures; None where there are too few rows for one."""
        n_rows = self._target.n
        squares = self._squared.interval()
        return {
            "n_rows": n_rows,
            "rmse": float(np.sqrt(self._squared.mean)) if n_rows else None,
            "rmse_interval": None if squares is None else [float(np.sqrt(max(end, 0.0))) for end in squares],
            "mae": self._absolute.mean if n_rows else None,
            "mae_interval": self._absolute.interval(),
            "r2": 1 - n_rows * self._squared.mean / self._target.scatter if self._target.scatter > 0 else None,
        }


class _Moments:
    """Mean and sum of squared deviations of numbers that come in batches."""

    def __init__(self) -> None:
        self.n, self.mean, self.scatter = 0, 0.0, 0.0

    def add(self, values: NDArray[Any]) -> None:
        if not len(values):
            return
        n, mean = self.n + len(values), float(values.mean())
        shift = mean - self.mean
        # Sums of squares would cancel badly where the mean is large.
        self.scatter += float(((values - mean) ** 2).sum()) + shift**2 * self.n * len(values) / n
        self.mean += shift * len(values) / n
        self.n = n

    def interval(self) -> list[float] | None:
        """Student's, of the mean."""
        if self.n < 2:
            return None
        half = stats.t.ppf((1 + LEVEL) / 2, self.n - 1) * np.sqrt(self.scatter / (self.n - 1) / self.n)
        return [float(self.mean - half), float(self.mean + half)]


def wilson(right: int, n: int) -> list[float]:
    """Wilson's interval of a proportion."""
    z = float(special.ndtri((1 + LEVEL) / 2))
    centre = (right + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(right * (n - right) / n + z**2 / 4)
    # At the ends rounding would leave the proportion just outside.
    return [float(centre - half) if right else 0.0, float(centre + half) if right < n else 1.0]


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


class SurvivalScores:
    """Harrell's concordance of the log risk with times to an event, over all batches together."""

    def __init__(self) -> None:
        self._targets: list[NDArray[Any]] = []
        self._risks: list[NDArray[Any]] = []

    def add(self, target: NDArray[Any], predicted: NDArray[Any]) -> None:
        """Keep a batch."""
        self._targets.append(target)
        self._risks.append(predicted)

    def to_dict(self) -> dict[str, Any]:
        """The figures; the concordance is None where the order of no pair of rows is known."""
        n_rows = sum(map(len, self._targets))
        n_events = int(sum(np.count_nonzero(each["event"]) for each in self._targets))
        return {"n_rows": n_rows, "n_events": n_events, "concordance": self._concordance() if n_rows else None}

    def _concordance(self) -> float | None:
        try:
            return float(concordance_index(np.concatenate(self._targets), np.concatenate(self._risks)))
        except NumericalError:
            return None

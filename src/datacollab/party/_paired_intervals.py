r"""95 % intervals of a share, of an error, and of what one model is better than another on the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .._validation import FloatArray

__all__ = ["Estimate", "accuracy_gain", "accuracy_of", "error_reduction", "rmse_of"]

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure and its 95 % interval.

    Attributes
    ----------
    value, low, high : float
    """

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """The same as JSON can hold it."""
        return {"value": self.value, "low": self.low, "high": self.high}


def accuracy_of(right: NDArray[np.bool_]) -> Estimate:
    """Share of right predictions with Wilson's interval."""
    interval = stats.binomtest(int(right.sum()), len(right)).proportion_ci(_CONFIDENCE, method="wilson")
    return Estimate(value=float(right.mean()), low=float(interval.low), high=float(interval.high))


def accuracy_gain(right: NDArray[np.bool_], right_before: NDArray[np.bool_]) -> Estimate:
    r"""How much more accurate one model is than another on the same rows, by Agresti and Min.

    With b rows that only the other one gets right, and c that only this one does, half a row is added to each of the
    four cells: :math:`(c - b)/(n+2) \pm z \sqrt{b + c + 1 - (c-b)^2/(n+2)}/(n+2)`, which is never of no width.  Where
    the two agree on every row, that is narrow for few rows, and the exact limits for no event in n rows are taken.
    """
    n = len(right) + 2
    won, lost = int((right & ~right_before).sum()), int((~right & right_before).sum())
    middle = (won - lost) / n
    half = stats.norm.ppf((1 + _CONFIDENCE) / 2) * np.sqrt(won + lost + 1 - (won - lost) ** 2 / n) / n
    if won == lost == 0:
        half = max(half, 1 - ((1 - _CONFIDENCE) / 2) ** (1 / len(right)))
    value = (won - lost) / len(right)
    # The centre is drawn towards 0; what was seen still belongs to what is plausible.
    return Estimate(value=value, low=float(min(value, middle - half)), high=float(max(value, middle + half)))


def rmse_of(squares: FloatArray) -> Estimate:
    """Root mean squared error, with a jackknife interval of its logarithm."""
    value = float(np.sqrt(squares.mean()))
    if value == 0:
        return Estimate(value=0.0, low=0.0, high=0.0)
    half = _half_width(0.5 * np.log(_means_without(squares)))
    return Estimate(value=value, low=value * float(np.exp(-half)), high=value * float(np.exp(half)))


def error_reduction(squares: FloatArray, squares_before: FloatArray) -> Estimate:
    r"""By which part one model's root mean squared error is below another's on the same rows.

    The jackknife of :math:`\log(\mathrm{RMSE}/\mathrm{RMSE}_0)`, with a quantile of Student's t.
    """
    tiny = np.finfo(np.float64).tiny
    ratio = float(0.5 * np.log(max(squares.mean(), tiny) / max(squares_before.mean(), tiny)))
    without = np.maximum(_means_without(squares), tiny) / np.maximum(_means_without(squares_before), tiny)
    half = _half_width(0.5 * np.log(without))
    low, high = (1 - float(np.exp(ratio + side * half)) for side in (1, -1))
    return Estimate(value=1 - float(np.exp(ratio)), low=low, high=high)


def _means_without(values: FloatArray) -> FloatArray:
    """Means of all values but one, shape (n_values,)."""
    return np.asarray((values.sum() - values) / (len(values) - 1))


def _half_width(replicates: FloatArray) -> float:
    n = len(replicates)
    deviation = np.sqrt((n - 1) * np.mean((replicates - replicates.mean()) ** 2))
    return float(stats.t.ppf((1 + _CONFIDENCE) / 2, n - 1) * deviation)

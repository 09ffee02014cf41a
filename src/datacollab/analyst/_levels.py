r"""Each party's own level: an intercept beside those of the common model, as a random intercept is.

From the predictions of h for rows left out, party k's classes have
:math:`p_k(c \mid x) \propto p(c \mid x)\, e^{d_{kc}}`, and its numbers are around :math:`h(x) + \sigma d_k`, with
:math:`\sigma^2` the mean squared error of all rows.  The level :math:`d_k \sim N(0, s^2)` is the most probable one
given the party's rows.  The spread s is common: the one under which rows left out of the levels too have the smallest
loss, or 0 where none has a smaller one than h itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, PartyName
from ..model import at_level

SPREADS = (0.25, 0.5, 1.0, 2.0)
_FOLDS = 5
_STEP = 0.05
"""Exact levels would say a little more of h without single rows than the predictions for rows left out do."""
_LONGEST = 5.0
"""Largest entry of a Newton step; log odds of 5 are near certainty already."""
_MOST_STEPS = 100
_MOST_HALVINGS = 40
_TOLERANCE = 1e-10


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    r"""Levels of parties: the spread s; :math:`\sigma` (1 of classes); each :math:`d_k`, or none if s is 0.

    `left_out` is as it was given, but at the level of the party without the row.
    """

    spread: float
    unit: float
    by_party: dict[PartyName, FloatArray]
    left_out: FloatArray

    @property
    def sent(self) -> dict[PartyName, FloatArray]:
        """The levels in the unit of the target, no finer than a party needs them."""
        return {party: self.unit * _STEP * np.round(level / _STEP) for party, level in self.by_party.items()}


def levels_of(
    left_out: FloatArray,
    target: FloatArray,
    weights: FloatArray,
    groups: NDArray[np.intp],
    parties: Mapping[PartyName, slice],
) -> Levels:
    """Return the levels of the parties that are named, with their rows.

    Predictions for rows left out, and their targets, are numbers of shape (n_rows,) or, of shape (n_rows, n_classes),
    probabilities and 1 in the column of each row's class.  Rows of one number in `groups` are left out together.
    """
    unit = 1.0
    if left_out.ndim == 1 and parties:
        totals = [(weights[own] @ (target[own] - left_out[own]) ** 2, weights[own].sum()) for own in parties.values()]
        squares, n_rows = np.sum(totals, axis=0)
        unit = float(np.sqrt(squares / max(n_rows, 1.0)))
    levels = Levels(spread=0.0, unit=unit, by_party={}, left_out=left_out)
    # Without parties, or errors, there is nothing that a level could explain.
    if not parties or unit == 0:
        return levels
    best = 0.0
    for spread in SPREADS:
        gain, moved = _gain_left_out(left_out, target, weights, groups, parties, spread, unit)
        # Only a gain over h itself counts, on rows that the levels did not see.
        if gain > best:
            best = gain
            levels = replace(levels, spread=spread, left_out=moved)
    if not levels.spread:
        return levels
    by_party = {
        party: _level(left_out[own], target[own], weights[own], levels.spread, unit) for party, own in parties.items()
    }
    return replace(levels, by_party=by_party)


def _gain_left_out(
    left_out: FloatArray,
    target: FloatArray,
    weights: FloatArray,
    groups: NDArray[np.intp],
    parties: Mapping[PartyName, slice],
    spread: float,
    unit: float,
) -> tuple[float, FloatArray]:
    """Return how much levels raise the log likelihood of rows left out of them, and these rows' predictions."""
    gain = 0.0
    moved = left_out.copy()
    for own in parties.values():
        predictions = left_out[own]
        known = target[own]
        weight = weights[own]
        folds = np.unique(groups[own], return_inverse=True)[1] % _FOLDS
        for fold in range(_FOLDS):
            seen = folds != fold
            out = folds == fold
            level = _level(predictions[seen], known[seen], weight[seen], spread, unit)
            gain += _gain(predictions[out], known[out], weight[out], level, unit)
            if predictions.ndim == 1:
                moved[own][out] = predictions[out] + unit * level
            else:
                moved[own][out] = at_level(predictions[out], level)
    return gain, moved


def _gain(predictions: FloatArray, known: FloatArray, weight: FloatArray, level: FloatArray, unit: float) -> float:
    """Return by how much a level raises the log likelihood of rows."""
    if predictions.ndim == 2:
        return float(weight @ (known @ level - np.log(predictions @ np.exp(level))))
    return float(weight @ ((known - predictions) / unit * level - level**2 / 2))


def _level(predictions: FloatArray, known: FloatArray, weight: FloatArray, spread: float, unit: float) -> FloatArray:
    """Return the most probable level given rows, shape (n_classes,) or (), of classes by Newton's method."""
    if predictions.ndim == 1:
        # The posterior mean of a normal level: the mean residual, shrunken by 1 / s^2 rows of residual 0.
        return np.asarray(weight @ (known - predictions) / unit / (weight.sum() + spread**-2))
    d = np.zeros(predictions.shape[1])
    height = 0.0
    for _ in range(_MOST_STEPS):
        moved = at_level(predictions, d)
        curvature = np.diag(weight @ moved + spread**-2) - (moved * weight[:, None]).T @ moved
        step = np.linalg.solve(curvature, weight @ (known - moved) - d / spread**2)
        step *= _LONGEST / max(float(np.abs(step).max()), _LONGEST)
        # Halving keeps the posterior from falling, so that the steps converge from anywhere.
        for _ in range(_MOST_HALVINGS):
            reached = _gain(predictions, known, weight, d + step, unit)
            reached -= float((d + step) @ (d + step)) / (2 * spread**2)
            if reached >= height:
                break
            step = step / 2
        else:
            break  # the rest is rounding
        d = d + step
        height = reached
        if np.abs(step).max() <= _TOLERANCE:
            break
    return d

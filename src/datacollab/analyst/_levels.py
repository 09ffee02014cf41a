r"""Each party's own level: an intercept beside those of the common model, as a random intercept is.

With what h says of rows left out, party k's classes have :math:`p_k(c \mid x) \propto p(c \mid x)\, e^{d_{kc}}`, and
its numbers are around :math:`h(x) + \sigma d_k`, with :math:`\sigma^2` the mean squared error of all rows.  The level
:math:`d_k \sim N(0, s^2)` is the most probable one given the party's rows.  The spread s is common: the one under which
rows left out of the levels too have the smallest loss, or 0 where none has a smaller one than h itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, PartyName
from ..model import at_level

SPREADS = (0.25, 0.5, 1.0, 2.0)
_FOLDS = 5
_STEP = 0.05
"""Exact levels would say a little more of h without single rows than the predictions for rows left out do."""
_LONGEST, _MOST_STEPS, _MOST_HALVINGS, _TOLERANCE = 5.0, 100, 40, 1e-10


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

    What is said of rows left out, and their targets, are numbers of shape (n_rows,) or, of shape (n_rows, n_classes),
    probabilities and 1 in the column of each row's class.  Rows of one number in `groups` are left out together.
    """
    unit = 1.0
    if left_out.ndim == 1:
        totals = [(weights[own] @ (target[own] - left_out[own]) ** 2, weights[own].sum()) for own in parties.values()]
        squares, n_rows = np.sum(totals, axis=0) if totals else (0.0, 1.0)
        unit = float(np.sqrt(squares / max(n_rows, 1.0)))
    best, spread, found = 0.0, 0.0, left_out
    for each in SPREADS if unit > 0 else ():
        moved, gain = left_out.copy(), 0.0
        for own in parties.values():
            said, known, weight = left_out[own], target[own], weights[own]
            folds = np.unique(groups[own], return_inverse=True)[1] % _FOLDS
            for fold in range(_FOLDS):
                there, out = folds != fold, folds == fold
                level = _level(said[there], known[there], weight[there], each, unit)
                gain += _gain(said[out], known[out], weight[out], level, unit)
                moved[own][out] = said[out] + unit * level if said.ndim == 1 else at_level(said[out], level)
        if gain > best:
            best, spread, found = gain, each, moved
    named = parties.items() if spread else ()
    by_party = {party: _level(left_out[own], target[own], weights[own], spread, unit) for party, own in named}
    return Levels(spread=spread, unit=unit, by_party=by_party, left_out=found)


def _gain(said: FloatArray, known: FloatArray, weight: FloatArray, level: FloatArray, unit: float) -> float:
    """Return by how much a level raises the log likelihood of rows."""
    if said.ndim == 2:
        return float(weight @ (known @ level - np.log(said @ np.exp(level))))
    return float(weight @ ((known - said) / unit * level - level**2 / 2))


def _level(said: FloatArray, known: FloatArray, weight: FloatArray, spread: float, unit: float) -> FloatArray:
    """Return the most probable level given rows, shape (n_classes,) or (), of classes by Newton's method."""
    if said.ndim == 1:
        return np.asarray(weight @ (known - said) / unit / (weight.sum() + spread**-2))
    d, height = np.zeros(said.shape[1]), 0.0
    for _ in range(_MOST_STEPS):
        moved = at_level(said, d)
        curvature = np.diag(weight @ moved + spread**-2) - (moved * weight[:, None]).T @ moved
        step = np.linalg.solve(curvature, weight @ (known - moved) - d / spread**2)
        step *= _LONGEST / max(float(np.abs(step).max()), _LONGEST)
        for _ in range(_MOST_HALVINGS):
            there = _gain(said, known, weight, d + step, unit) - float((d + step) @ (d + step)) / (2 * spread**2)
            if there >= height:
                break
            step = step / 2
        else:
            break  # what is left is rounding
        d, height = d + step, there
        if np.abs(step).max() <= _TOLERANCE:
            break
    return d

"""Effects of a party's own columns, from coefficients of the collaboration representation and their covariance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ncx2, norm

from .._validation import FloatArray, PartyName
from ..errors import AgreementError
from ..model import PartyModel
from ._columns_of_tables import ColumnTable, place_of
from ._identification import (
    AFFINE_R2,
    MOST_LEAKAGE,
    MOST_LOST_LEAKAGE,
    OTHER_R2,
    column_steps,
    determination,
    is_additive,
    leakage,
    lost_leakage,
    numbers_of_table,
    r2_of_columns,
)
from ._inference import LocalInference

__all__ = ["ColumnEffects", "effects_of_columns"]

_NO_BIAS, _ALL_BIAS = 1e-4, 1e4
"""In standard errors; below and above, the quantile is that of no bias, or of one side, to eight digits."""
CONSTANT = "does not vary over the anchor"
MISSING = "has missing entries in the anchor"
NO_NUMBERS = "is no column of numbers"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ColumnEffects:
    """Effects of columns on a linear predictor, with what may be said of them; see `Party.column_effects`.

    Attributes
    ----------
    party : str or int
    names : tuple of str
    effect : ndarray of shape (n_columns,)
        Change of the linear predictor (the mean, the log odds, the log hazard) with a step of each column; NaN where
        refused.
    se : ndarray of shape (n_columns,)
        Standard errors.
    low, high : ndarray of shape (n_columns,)
        Interval; wider than normal where leakage of effects that the representation tells may move the estimate.
    identified : ndarray of shape (n_columns,), bool
        Whether the effect is shown.
    r2 : ndarray of shape (n_columns,)
        Share of each column, over the anchor, that is linear in the collaboration representation.
    leakage : ndarray of shape (n_columns,)
        How far a step of the column is read as a step of others, in standard deviations; NaN where not needed.
    reasons : tuple of str or None
        Why an effect is refused.
    steps : ndarray of shape (n_columns,)
        In units of the column.
    confidence : float
    """

    party: PartyName
    names: tuple[str, ...]
    effect: FloatArray
    se: FloatArray
    low: FloatArray
    high: FloatArray
    identified: NDArray[np.bool_]
    r2: FloatArray
    leakage: FloatArray
    reasons: tuple[str | None, ...]
    steps: FloatArray
    confidence: float

    def ratios(self) -> dict[str, tuple[float, float, float]]:
        """Hazard or odds ratio of each shown column, and its interval: exponentials of effect, low and high.

        They are of ``steps``: a standard deviation of the anchor, also in columns of zeros and ones, unless
        `column_effects` was asked for ``scale="unit"``.
        """
        return {
            name: tuple(float(np.exp(values[place])) for values in (self.effect, self.low, self.high))  # type: ignore[misc]
            for place, name in enumerate(self.names)
            if self.identified[place]
        }

    def __str__(self) -> str:
        width = max(len(name) for name in self.names)
        rows = [f"{'':{width}}  step    effect   se      {100 * self.confidence:g} % interval     R2"]
        for place, name in enumerate(self.names):
            said = (
                f"{self.steps[place]:<7.3g} {self.effect[place]:<+8.3g} {self.se[place]:<7.2g} "
                f"[{self.low[place]:+.3g}, {self.high[place]:+.3g}]  {self.r2[place]:.3f}"
                if self.identified[place]
                else f"refused: {self.reasons[place]}"
            )
            rows.append(f"{name:{width}}  {said}")
        return "\n".join(rows)

    def __repr__(self) -> str:
        return (
            f"ColumnEffects(party={self.party!r}, {int(self.identified.sum())} of {len(self.names)} columns identified)"
        )


def effects_of_columns(
    party: LocalInference,
    anchor: Any,
    model: PartyModel,
    *,
    columns: Sequence[str | int] | None,
    scale: str | Mapping[str, float],
    confidence: float,
) -> ColumnEffects:
    """What `column_effects` of a party does; see there."""
    name = party.name
    coefficients, covariance = linear_model_of(party._own(model), name)
    if not 0 < confidence < 1:
        raise ValueError(f"Party {name!r}: confidence must be between 0 and 1; got {confidence!r}.")
    table = ColumnTable.of(anchor, party._form, name)
    places = _places(columns, table, name)
    for place in places:
        _step(table.names[place], 1.0, scale, name)

    def transform(X: Any) -> FloatArray:
        return party.transform(X, model)

    representation = transform(table.table())
    moves = {
        place: column_steps(table, place, transform)
        for place in range(len(table.labels))
        if _reason(table, place, 1.0, 0.0) is None
    }
    told = r2_of_columns(table, representation)
    numbers, place_of_number = numbers_of_table(table)
    wanted = AFFINE_R2 if is_additive(table, transform) else OTHER_R2
    # Effects of a standard deviation, as the model has them: what leakage is of.  No step is made of categories, nor of
    # columns with missing entries: theirs are those that best say what the model answers on the anchor.
    said = np.linalg.lstsq(numbers, (representation - representation.mean(axis=0)) @ coefficients, rcond=None)[0]
    for each, place in enumerate(place_of_number):
        if place in moves:
            said[each] = moves[place][0] @ coefficients
    together = float(np.linalg.norm(said))
    is_lost = (determination(representation, numbers) < wanted) | (told < wanted)[place_of_number]
    lost, kept, place_of_kept = numbers[:, is_lost], numbers[:, ~is_lost], place_of_number[~is_lost]
    n = len(places)
    effect, se, steps, leak, reach = (np.full(n, np.nan) for _ in range(5))
    reasons = [_reason(table, place, told[place], wanted) for place in places]
    for each, place in enumerate(places):
        if reasons[each] is not None:
            continue
        D, deviation = moves[place]
        leak[each] = leakage(D, representation, numbers, int(np.flatnonzero(place_of_number == place)[0]))
        of_lost = lost_leakage(D, representation, lost)
        if of_lost > MOST_LOST_LEAKAGE:
            reasons[each] = (
                f"it reads others that were lost, whose effects are unknown: leakage of them, with chance in the "
                f"anchor, is up to {of_lost:.2f}, above {MOST_LOST_LEAKAGE:g}"
            )
        elif leak[each] > MOST_LEAKAGE:
            reasons[each] = f"leakage {leak[each]:.2f} is above {MOST_LEAKAGE:g}: others' effects would be read into it"
        else:
            steps[each] = _step(table.names[place], deviation, scale, name)
            per_step = steps[each] / deviation
            effect[each], se[each] = per_step * (D @ coefficients), abs(per_step) * np.sqrt(D @ covariance @ D)
            # That lost columns do as much as those told is all that can be said of them.
            of_told = leakage(D, representation, kept, int(np.flatnonzero(place_of_kept == place)[0]))
            most_bias = (of_told + of_lost) * together
            reach[each] = bias_aware_reach(se[each], abs(per_step) * most_bias, confidence)
    return ColumnEffects(
        party=name,
        names=tuple(table.names[place] for place in places),
        effect=effect,
        se=se,
        low=effect - reach,
        high=effect + reach,
        identified=np.array([reason is None for reason in reasons]),
        r2=told[places],
        leakage=leak,
        reasons=tuple(reasons),
        steps=steps,
        confidence=confidence,
    )


def bias_aware_reach(se: float, most_bias: float, confidence: float) -> float:
    r"""Half the length of an interval that holds what it promises for any bias up to a bound ([Armstrong2020]).

    The quantile of :math:`|N(b, s^2)|`: that of a normal interval where there is no bias, and the bound and a one-sided
    normal interval where it is large.
    """
    ratio = most_bias / se
    if ratio < _NO_BIAS:
        return float(norm.ppf((1 + confidence) / 2) * se)
    if ratio > _ALL_BIAS:
        return float(most_bias + norm.ppf(confidence) * se)
    return float(np.sqrt(ncx2.ppf(confidence, 1, ratio**2)) * se)


def linear_model_of(model: PartyModel, party: PartyName) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the collaboration representation in h, and their covariance.

    Raises
    ------
    AgreementError
        When h has none, or of another size.
    """
    found = [getattr(model.estimator, name, None) for name in ("coef_", "covariance_")]
    if any(each is None for each in found):
        raise AgreementError(
            f"Party {party!r}: effects need a linear model with its covariance, coef_ and covariance_; the model is a "
            f"{type(model.estimator).__name__}. Ask the analyst for one of LeastSquaresInference, LogisticInference or "
            "Cox regression."
        )
    coefficients, covariance = np.ravel(np.asarray(found[0], dtype=np.float64)), np.asarray(found[1], dtype=np.float64)
    size = model.integration_function.n_components
    if coefficients.shape != (size,) or covariance.shape != (size, size):
        raise AgreementError(
            f"Party {party!r}: one coefficient is wanted for each of the {size} components, and their covariance; got "
            f"shapes {coefficients.shape} and {covariance.shape}. Effects are of one outcome, or of two classes."
        )
    return coefficients, covariance


def _places(columns: Sequence[str | int] | None, table: ColumnTable, party: PartyName) -> list[int]:
    if columns is None:
        return list(range(len(table.labels)))
    if isinstance(columns, str) or not columns:
        raise AgreementError(f"Party {party!r}: columns must be a list of names or positions; got {columns!r}.")
    return [place_of(column, table.names, party) for column in columns]


def _reason(table: ColumnTable, place: int, told: float, wanted: float) -> str | None:
    column = table.numbers(place)
    if column is None:
        return NO_NUMBERS
    if np.isnan(column).any():
        return MISSING
    if column.min() == column.max():
        return CONSTANT
    if np.isnan(told):
        return "the anchor has too few rows for so many components"
    if told < wanted:
        return f"R2 {told:.3f} is below {wanted:g}: the model does not tell it from other columns"
    return None


def _step(column: str, deviation: float, scale: str | Mapping[str, float], party: PartyName) -> float:
    if isinstance(scale, Mapping):
        step = float(scale.get(column, deviation))
        if np.isfinite(step) and step != 0:
            return step
    elif scale in ("sd", "unit"):
        return deviation if scale == "sd" else 1.0
    raise ValueError(
        f"Party {party!r}: scale must be 'sd', 'unit', or steps of columns in their units, not 0; got {scale!r}."
    )

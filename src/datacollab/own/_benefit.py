"""The report on the gain from collaboration at a party, by its own rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .._validation import FloatArray, PartyName
from ..linalg import FEWEST_OF_A_CLASS, auc_difference, auc_with_interval, entropy, mean_with_interval
from ._blend import Opinions

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure and its 95 % interval; None for both ends where no interval holds."""

    value: float
    low: float | None = None
    high: float | None = None


def _estimate(value: float, interval: Sequence[float] | None) -> Estimate:
    if interval is None:
        return Estimate(value=value)
    return Estimate(value=value, low=interval[0], high=interval[1])


_Measure = Callable[..., tuple[float, list[float] | None]]


def _mean_drop(losses: FloatArray, losses_before: FloatArray) -> tuple[float, list[float] | None]:
    return mean_with_interval(losses_before - losses)


def error_reduction(squares: FloatArray, squares_before: FloatArray) -> tuple[float, list[float]]:
    r"""Return by which part one model's root mean squared error is below another's on the same rows.

    The jackknife of :math:`\log(\mathrm{RMSE}/\mathrm{RMSE}_0)`, with a quantile of Student's t.
    """
    # A model without any error would have a logarithm of minus infinity.
    tiny = np.finfo(np.float64).tiny
    ratio = float(0.5 * np.log(max(squares.mean(), tiny) / max(squares_before.mean(), tiny)))
    without = np.maximum(_means_without(squares), tiny) / np.maximum(_means_without(squares_before), tiny)
    replicates = 0.5 * np.log(without)
    n = len(replicates)
    # The jackknife's variance is (n - 1)/n times the sum of squares about the replicates' mean.
    deviation = np.sqrt((n - 1) * np.mean((replicates - replicates.mean()) ** 2))
    half = float(stats.t.ppf((1 + _CONFIDENCE) / 2, n - 1) * deviation)
    # A larger ratio is a smaller reduction, so the interval's upper end comes first.
    return 1 - float(np.exp(ratio)), [1 - float(np.exp(ratio + side * half)) for side in (1, -1)]


def _means_without(values: FloatArray) -> FloatArray:
    """Return means of all values but one, shape (n_values,)."""
    return np.asarray((values.sum() - values) / (len(values) - 1))


_SIDES = ("local", "collaboration", "combined")

_REASONS = {
    "left out": "each judged by models that it was left out of",
    "without the party": "each judged by the common model as it is without any row of the party, and by own models "
    "that it was left out of",
}


@dataclass(frozen=True, kw_only=True)
class Side:
    """How well the party does in one way.

    `loss` is the mean log loss, or squared error; `score` is in the benefit's metric, without an interval for numbers:
    none holds where few large errors make most of it.
    """

    loss: float
    score: Estimate


@dataclass(frozen=True, kw_only=True)
class Benefit:
    """The gain from collaboration at a party, as its own rows show it.

    Attributes
    ----------
    party : str or int
    metric : {"AUC", "log loss", "RMSE"}
        For two classes the area under the curve, if three judged rows or more have each; otherwise the log loss.
    basis : {"left out", "without the party"} or None
        How the common model was judged: by the left-out predictions that came with it, or by the model without the
        party.  None if neither came, so that nothing honest can be said.
    n_rows, n_judged : int
        Own rows, and those among them that were judged.
    constant : float
        The score of always answering the share of each class among the judged rows, or their mean.
    local : Side
        The best that the party has without the others.
    collaboration, combined : Side or None
        The common model, and both together.
    collaboration_gain, combined_gain : Estimate or None
        Their lead over `local` on the same rows, with a paired 95 % interval: the difference of areas, the drop of the
        log loss, or the part by which the root mean squared error is less.
    own_models, own_weights : tuple
        The models that `local` is made of, and their weights.
    weights : dict of str to float
        Of "local" and "collaboration" in the pool.

    Notes
    -----
    Nothing leaves the party, unless it shows this to somebody.  The intervals are about which rows the party happens to
    have, the fitted models given.  Weights and choices that judge a row were made without it.  All of it is about rows
    like the party's own.
    """

    party: PartyName
    metric: str
    basis: str | None
    n_rows: int
    n_judged: int
    constant: float
    local: Side
    collaboration: Side | None = None
    combined: Side | None = None
    collaboration_gain: Estimate | None = None
    combined_gain: Estimate | None = None
    own_models: tuple[str, ...]
    own_weights: tuple[float, ...]
    weights: dict[str, float]

    @property
    def sentence(self) -> str:
        """The gain in words."""
        if self.basis is None or self.combined is None or self.combined_gain is None:
            return (
                f"It cannot be said what collaboration brought: the model came without left-out predictions for the "
                f"{self.n_rows} own rows, which it was trained on. The analyst can send them for rows "
                "without defences; with defences it takes three other parties."
            )
        form = _FORMS.get(self.metric, ".3f")
        alone, both = (f"{side.score.value:{form}}" for side in (self.local, self.combined))
        gain = _describe_gain(self.metric, self.combined_gain)
        return (
            f"Collaboration {gain}: {self.metric} {alone} alone, {both} with it, {self.constant:{form}} for always "
            f"the same answer, on {self.n_judged} own rows, {_REASONS[self.basis]}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in a form that JSON can hold, with the sentence."""
        lists = {"own_models": list(self.own_models), "own_weights": list(self.own_weights)}
        return asdict(self) | lists | {"sentence": self.sentence}


# How scores are written, where not with three decimal places: errors are in the target's own unit.
_FORMS = {"RMSE": ".4g"}
# Factor, decimal places and unit of a gain.
_UNITS = {
    "AUC": (100, ".1f", "points of AUC"),
    "log loss": (1, ".3f", "of log loss"),
    "RMSE": (100, ".1f", "% less error"),
}


def _describe_gain(metric: str, gain: Estimate) -> str:
    """Return a gain and its interval as the end of a sentence on collaboration."""
    assert gain.low is not None
    assert gain.high is not None
    factor, places, unit = _UNITS[metric]
    value, low, high = (f"{factor * each:{places}}" for each in (gain.value, gain.low, gain.high))
    size = f"{value.removeprefix('-')} {unit}"
    interval = f"95 % interval {low} to {high}"
    # A gain or a loss is named as one only where the whole interval lies on its side of zero.
    if gain.low > 0:
        return f"brought {size} ({interval})"
    if gain.high < 0:
        return f"cost {size} ({interval})"
    if gain.value > 0:
        return f"brought {size}, or nothing ({interval})"
    return f"brought nothing beyond chance ({interval})"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Measures:
    """How sides are compared: a metric, a score of each and a gain over another, from one number a row."""

    metric: str
    constant: float
    losses: dict[str, FloatArray]
    numbers: dict[str, FloatArray]
    score: _Measure = mean_with_interval
    gain: _Measure = _mean_drop


def benefit_of(
    opinions: Opinions, target: NDArray[Any], judged: NDArray[np.bool_], unit: float | None, **facts: Any
) -> Benefit:
    """Return the report on the judged rows, or on the party's own models alone where no row is judged.

    For numbers, unit is one standard deviation of the target; for classes it is None, and targets are codes.
    """
    names: tuple[str, ...] = _SIDES
    rows = judged
    # One row gives no interval.
    if judged.sum() <= 1:
        names = _SIDES[:1]
        rows = np.ones_like(judged)
    outputs = {name: getattr(opinions, name)[rows] for name in names}
    if unit is None:
        measures = _measure_classes(outputs, target[rows].astype(np.intp))
    else:
        measures = _measure_numbers(outputs, target[rows], unit)
    numbers = measures.numbers
    sides: Any = {
        name: Side(loss=float(measures.losses[name].mean()), score=_estimate(*measures.score(numbers[name])))
        for name in names
    }
    gains: Any = {f"{name}_gain": _estimate(*measures.gain(numbers[name], numbers["local"])) for name in names[1:]}
    return Benefit(
        metric=measures.metric,
        constant=measures.constant,
        n_judged=int(judged.sum()),
        **sides,
        **gains,
        **facts,
    )


def _measure_numbers(outputs: dict[str, FloatArray], target: FloatArray, unit: float) -> _Measures:
    squares = {name: ((numbers - target) * unit) ** 2 for name, numbers in outputs.items()}
    return _Measures(
        metric="RMSE",
        constant=float(target.std() * unit),
        losses=squares,
        numbers=squares,
        score=lambda errors: (float(np.sqrt(errors.mean())), None),
        gain=error_reduction,
    )


def _measure_classes(outputs: dict[str, FloatArray], codes: NDArray[np.intp]) -> _Measures:
    losses = {name: -logs[np.arange(len(codes)), codes] for name, logs in outputs.items()}
    positive = codes == 1
    # An area under the curve needs two classes, and a few rows of each, or its interval means nothing.
    is_ranked = outputs["local"].shape[1] == 2 and min(positive.sum(), (~positive).sum()) >= FEWEST_OF_A_CLASS
    if not is_ranked:
        return _Measures(metric="log loss", constant=entropy(np.bincount(codes)), losses=losses, numbers=losses)
    return _Measures(
        metric="AUC",
        constant=0.5,
        losses=losses,
        # Log odds rank rows as probabilities do.
        numbers={name: logs[:, 1] - logs[:, 0] for name, logs in outputs.items()},
        score=partial(auc_with_interval, positive),
        gain=partial(auc_difference, positive),
    )

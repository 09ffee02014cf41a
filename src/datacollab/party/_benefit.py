"""What collaboration brought to one party, by its own rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from .._validation import FloatArray, PartyName
from ._blend import Opinions
from ._paired_intervals import Estimate, accuracy_gain, accuracy_of, error_reduction, rmse_of
from ._utility_plots import benefit_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Benefit", "Side", "benefit_for_classes", "benefit_for_numbers", "nothing_to_say"]

_SIDES = ("local", "collaboration", "combined")

_REASONS = {
    "left out": "each judged by models that it was left out of",
    "without the party": "each judged by the common model as it is without any row of the party, and by own models "
    "that it was left out of",
}


@dataclass(frozen=True, kw_only=True)
class Side:
    """How well the party does in one way.

    Attributes
    ----------
    loss : float
        Mean log loss; for numbers the mean squared error.
    score : Estimate
        Accuracy, or the root mean squared error, with its 95 % interval.
    auc : float or None
        Area under the curve, where there are two classes and rows of both.
    """

    loss: float
    score: Estimate
    auc: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return {"loss": self.loss, "score": self.score.to_dict(), "auc": self.auc}


@dataclass(frozen=True, kw_only=True)
class Benefit:
    """What collaboration brought to a party, as its own rows say.

    Attributes
    ----------
    party : str or int
    metric : {"accuracy", "RMSE"}
    basis : {"left out", "without the party"} or None
        How the common model was judged: by the left-out predictions that came with it, or by the model without the
        party.  None where neither came, so that nothing honest can be said.
    n_rows, n_judged : int
        Own rows, and those among them that were judged.
    local : Side
        The best that the party has without the others.
    collaboration, combined : Side or None
        The common model, and both together.
    collaboration_gain, combined_gain : Estimate or None
        What they are better than `alone` on the same rows, with a paired 95 % interval: the difference of accuracies,
        or the part by which the root mean squared error is less.
    own_models : tuple of str
        What `alone` is made of.
    own_weights : tuple of float
        Of these, in the same order.
    weights : dict of str to float
        Of "local" and "collaboration" in the pool.

    Notes
    -----
    Leaves the party: nothing, unless it shows this to somebody.  The intervals are about which rows the party happens
    to have, the fitted models given.  Weights and choices that judge a row were made without it.

    All of it is about rows like the party's own.  A party of few classes that is to predict everybody's rows gains more
    from the others than this shows.
    """

    party: PartyName
    metric: str
    basis: str | None
    n_rows: int
    n_judged: int
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
        """What collaboration brought, in words."""
        if self.basis is None or self.combined is None or self.combined_gain is None:
            return (
                f"It cannot be said what collaboration brought: the model came without left-out predictions for the "
                f"{self.n_rows} own rows, which it was trained on. Ask the analyst for a model that has them."
            )
        gain, unit = self.combined_gain, "accuracy"
        if self.metric == "RMSE":
            unit = "error"
        interval = f"95 % interval {self._points(gain.low)} to {self._points(gain.high)}"
        before = f"{self._figure(self.local.score.value)} alone, {self._figure(self.combined.score.value)} with it"
        on = f"on {self.n_judged} own rows, {_REASONS[self.basis]}"
        if gain.low > 0:
            brought = f"Collaboration brought {self._size(gain.value)} {unit} ({interval})"
        elif gain.high < 0:
            brought = f"Collaboration cost {self._size(-gain.value)} {unit} ({interval})"
        elif gain.value > 0:
            brought = f"Collaboration brought {self._size(gain.value)} {unit}, or nothing ({interval})"
        else:
            brought = f"Collaboration brought nothing that could be told from chance ({interval})"
        return f"{brought}: {self.metric} {before}, {on}."

    def _size(self, gain: float) -> str:
        return f"{100 * gain:.1f} points of" if self.metric == "accuracy" else f"{100 * gain:.1f} % less"

    @staticmethod
    def _points(gain: float) -> str:
        return f"{100 * gain:.1f}"

    def _figure(self, value: float) -> str:
        return f"{value:.3f}" if self.metric == "accuracy" else f"{value:.4g}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it, the sentence included."""
        figures: dict[str, Side | Estimate | None] = {
            "local": self.local,
            "collaboration": self.collaboration,
            "combined": self.combined,
            "collaboration_gain": self.collaboration_gain,
            "combined_gain": self.combined_gain,
        }
        return {
            "party": self.party,
            "metric": self.metric,
            "basis": self.basis,
            "n_rows": self.n_rows,
            "n_judged": self.n_judged,
            **{name: None if one is None else one.to_dict() for name, one in figures.items()},
            "own_models": list(self.own_models),
            "own_weights": list(self.own_weights),
            "weights": dict(self.weights),
            "sentence": self.sentence,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what the party has alone, with the common model, and with both, with 95 % intervals.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a figure.

        Raises
        ------
        MissingExtraError
            When matplotlib is not installed.
        """
        sides = {"local": self.local, "collaboration": self.collaboration, "combined": self.combined}
        scores = {name: side.score for name, side in sides.items() if side is not None}
        gains = {"collaboration": self.collaboration_gain, "combined": self.combined_gain}
        told = {name: gain for name, gain in gains.items() if gain is not None}
        return benefit_axes(scores, told, self.metric, self.sentence.partition(" (")[0].partition(":")[0], ax)


def benefit_for_classes(opinions: Opinions, codes: NDArray[np.intp], **facts: Any) -> Benefit:
    """Compare log probabilities of the judged rows."""
    sides: dict[str, Any] = {name: _class_side(getattr(opinions, name), codes) for name in _SIDES}
    right = {name: getattr(opinions, name).argmax(axis=1) == codes for name in sides}
    return Benefit(
        metric="accuracy",
        n_judged=len(codes),
        collaboration_gain=accuracy_gain(right["collaboration"], right["local"]),
        combined_gain=accuracy_gain(right["combined"], right["local"]),
        **sides,
        **facts,
    )


def benefit_for_numbers(opinions: Opinions, target: FloatArray, unit: float, **facts: Any) -> Benefit:
    """Compare standardised numbers of the judged rows."""
    squares = {name: ((getattr(opinions, name) - target) * unit) ** 2 for name in _SIDES}
    sides: dict[str, Any] = {name: Side(loss=float(each.mean()), score=rmse_of(each)) for name, each in squares.items()}
    return Benefit(
        metric="RMSE",
        n_judged=len(target),
        collaboration_gain=error_reduction(squares["collaboration"], squares["local"]),
        combined_gain=error_reduction(squares["combined"], squares["local"]),
        **sides,
        **facts,
    )


def nothing_to_say(local: FloatArray, target: NDArray[Any], unit: float | None, **facts: Any) -> Benefit:
    """The report where the common model cannot be judged: only what the party has alone."""
    if unit is None:
        return Benefit(metric="accuracy", n_judged=0, local=_class_side(local, target), **facts)
    squares = ((local - target) * unit) ** 2
    return Benefit(metric="RMSE", n_judged=0, local=Side(loss=float(squares.mean()), score=rmse_of(squares)), **facts)


def _class_side(logs: FloatArray, codes: NDArray[np.intp]) -> Side:
    right = logs.argmax(axis=1) == codes
    loss = float(-logs[np.arange(len(codes)), codes].mean())
    return Side(loss=loss, score=accuracy_of(right), auc=_auc(logs, codes))


def _auc(logs: FloatArray, codes: NDArray[np.intp]) -> float | None:
    """Area under the curve of two classes, ties counted half."""
    positive = codes == 1
    if logs.shape[1] != 2 or positive.all() or not positive.any():
        return None
    n_positive = int(positive.sum())
    ranks = rankdata(logs[:, 1] - logs[:, 0])
    above = ranks[positive].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * (len(codes) - n_positive)))

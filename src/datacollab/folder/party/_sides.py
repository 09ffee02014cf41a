"""The sides that a party predicts with at home, and checks of what the analyst sends, whichever way they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...agreement import Project
from ...bundle import Bundle, unpack
from ...errors import ExchangeError
from ..step_table import SIDES

_PARTS = 4
"""Of the longest time, at whose ends survival is predicted."""
NO_MODEL = "Run `datacollab party install FILE` with the file that the analyst sent."


def list_times(project: Project) -> list[float]:
    """Return quarters of the longest possible time, rounded up like the times themselves.

    With a maximum of 1826 days, rounded to 30: 480, 930, 1380 and 1830 days.
    """
    task = project.task
    assert task.maximum is not None
    assert task.latest is not None
    step = task.time_step
    times = [task.maximum * part / _PARTS for part in range(1, _PARTS)]
    if step is not None:
        # A multiple that floating point lifted a little is not rounded up to the next one.
        times = [math.ceil(time / step * (1 - 1e-12)) * step for time in times]
    return [*times, task.latest]


def times_within(model: Any, times: Sequence[float]) -> list[float]:
    """Return those of ascending times that lie within a model's observation."""
    # A party is sent the baseline of its own rows, and no other party's.
    (baseline,) = model.estimator.baselines_.values()
    return [time for time in times if time <= baseline.times[-1]]


def are_targets(predicted: Any, project: Project) -> bool:
    """Return whether an array holds only the project's classes, numbers of clusters, or else finite numbers."""
    # Clusters have numbers for names.
    if project.task.kind == "none":
        return predicted.dtype.kind in "iu" and bool((predicted >= 0).all())
    if project.task.kind == "classification":
        return bool(np.isin(predicted, np.asarray(project.task.classes)).all())
    return predicted.dtype.kind in "biuf" and bool(np.isfinite(predicted).all())


@dataclass(frozen=True, kw_only=True, eq=False)
class MappedModel:
    """One way to predict rows of the project's matrix: a model, behind a map of rows; and its classes, if any."""

    name: str
    classes: NDArray[Any] | None
    model: Any
    map: Callable[[FloatArray], FloatArray] = np.asarray
    options: Mapping[str, Any] = field(default_factory=dict)

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Return a target for each row."""
        return np.asarray(self.model.predict(self.map(X), **self.options))

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return probabilities of the classes."""
        return np.asarray(self.model.predict_proba(self.map(X), **self.options))

    def predict_survival(self, X: FloatArray, times: Sequence[float]) -> FloatArray:
        """Return the probability of no event up to each time; NaN beyond the end of the model's observation."""
        result = np.full((len(X), len(times)), np.nan)
        known = times_within(self.model, times)
        if known:
            result[:, : len(known)] = self.model.predict_survival(self.map(X), known)
        return result


@dataclass(frozen=True, kw_only=True, eq=False)
class AtHome:
    """The sides that a party predicts with, by name, the usual one first, and how collaboration helped, in words.

    Of rows with f_k and the model, if one is installed; of sums with the common model.
    """

    sides: dict[str, MappedModel]
    sentence: str
    party: Any = None
    model: Any = None
    may_distil: bool = True
    """Whether anchor predictions may come, from which a side is distilled."""

    def side(self, using: str | None = None) -> MappedModel:
        """Return one side, or the usual one; raise NOT_POOLED or NOT_INSTALLED if it is not there."""
        if using is None:
            return next(iter(self.sides.values()))
        if using in self.sides:
            return self.sides[using]
        if using not in SIDES:
            raise ValueError(f"Unknown predictions {using!r}; choose one of {', '.join(SIDES)}.")
        if using == "distilled" and self.may_distil:
            raise ExchangeError(
                "NOT_INSTALLED",
                "Nothing was distilled from anchor predictions. Run `datacollab party distil FILE` first.",
            )
        if self.model is None:
            raise ExchangeError(
                "NOT_INSTALLED",
                f"There are no predictions of the kind {using!r}, for no model is installed. Take the distilled model.",
            )
        if "local" in self.sides:
            raise ExchangeError("NOT_POOLED", "There are no models of your own rows without public ones. Take 'local'.")
        raise ExchangeError("NOT_POOLED", f"There are no predictions of the kind {using!r}. {self.sentence}")


def check_not_older(bundle: Bundle, source: Path, installed: Path, *, made_of: str) -> None:
    """Refuse a model in place of a later one that was made from the same share, which the fact `made_of` names."""
    made = _time_of_making(bundle, source)
    try:
        known = unpack(installed, kind=bundle.kind)
    # None is installed, or it is damaged: then any is better.
    except ExchangeError:
        return
    if known.facts.get(made_of) == bundle.facts.get(made_of) and made < _time_of_making(known, installed):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{source} was made at {bundle.facts['created']}, and a later model from the same share is installed, made "
            f"at {known.facts['created']}. Keep that one; --older installs the older one all the same.",
        )


def _time_of_making(bundle: Bundle, source: Path) -> datetime:
    try:
        made = datetime.fromisoformat(bundle.facts["created"])
    except (KeyError, TypeError, ValueError):
        raise malformed(f"{source} does not say when it was made") from None
    if made.tzinfo is None:
        return made.replace(tzinfo=UTC)
    return made


def malformed(sentence: str, code: str = "MODEL_MALFORMED") -> ExchangeError:
    """Return the error for a file of the analyst's that cannot be used."""
    return ExchangeError(code, f"{sentence}. Do not use it; ask the analyst.")

"""Whose predictions a party takes: of its own models and the common one together, or of either alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...errors import ExchangeError
from ...model import PartyModel, estimator_kind
from ...party import DistilledModel, LocalParty, PersonalModel
from ..project import Project

__all__ = ["SIDES", "AtHome", "DistilledSide", "Side", "agreed_times", "survival_names", "times_within"]

_PARTS = 4


def agreed_times(project: Project) -> list[float]:
    """Quarters of the longest time that is possible, rounded up like the times themselves.

    Parameters
    ----------
    project : Project
        Of times to an event.

    Examples
    --------
    With a maximum of 1826 days, rounded to 30: 480, 930, 1380 and 1830 days.
    """
    task = project.task
    assert task.maximum is not None
    assert task.latest is not None
    step = task.time_step
    quarters = [task.maximum * part / _PARTS for part in range(1, _PARTS)]
    return [each if step is None else math.ceil(each / step * (1 - 1e-12)) * step for each in quarters] + [task.latest]


def survival_names(project: Project) -> list[str]:
    """Names of the columns with the probability of no event up to each agreed time."""
    return [f"survival_{time:.10g}" for time in agreed_times(project)]


def times_within(model: PartyModel, times: Sequence[float]) -> list[float]:
    """Those times, which ascend, of which a model knows something: beyond the end of the observation nothing is."""
    (baseline,) = model.estimator.baselines_.values()
    return [time for time in times if time <= baseline.times[-1]]


SIDES = ("combined", "local", "own", "collaboration", "distilled")


class Side(Protocol):
    """Predicts rows of the project's matrix."""

    name: str
    classes: NDArray[Any] | None

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Predicted targets, of shape (n_rows,)."""

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Class probabilities, of shape (n_rows, n_classes)."""


class CommonSide:
    """The model that the analyst made, behind the party's own f_k.

    Parameters
    ----------
    party : LocalParty
    model : PartyModel
    """

    def __init__(self, party: LocalParty, model: PartyModel) -> None:
        self.party, self.model = party, model
        self.name = estimator_kind(model.estimator)
        has_probabilities = hasattr(model.estimator, "predict_proba")
        self.classes: NDArray[Any] | None = model.estimator.classes_ if has_probabilities else None

    def predict_survival(self, X: FloatArray, times: Sequence[float]) -> FloatArray:
        """Probability of no event up to each time, of shape (n_rows, n_times); NaN beyond what was observed."""
        known = times_within(self.model, times)
        result = np.full((len(X), len(times)), np.nan)
        if known:
            result[:, : len(known)] = self.model.predict_survival(self.party.obfuscate(X), known)
        return result

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Predicted targets, of shape (n_rows,)."""
        return self.model.predict(self.party.obfuscate(X))

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Class probabilities, of shape (n_rows, n_classes)."""
        return self.model.predict_proba(self.party.obfuscate(X))


class PersonalSide:
    """The party's own models, alone or pooled with the common one.

    Parameters
    ----------
    personal : PersonalModel
    using : {"combined", "local", "own"}
    """

    def __init__(self, personal: PersonalModel, using: str) -> None:
        self.personal, self.using = personal, using
        self.name = type(personal).__name__
        self.classes: NDArray[Any] | None = getattr(personal, "classes_", None)

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Predicted targets, of shape (n_rows,)."""
        return self.personal.predict(X, using=self.using)

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Class probabilities, of shape (n_rows, n_classes)."""
        return self.personal.predict_proba(X, using=self.using)


class DistilledSide:
    """What the party distilled from anchor predictions, which takes no f_k.

    Parameters
    ----------
    distilled : DistilledModel
    """

    def __init__(self, distilled: DistilledModel) -> None:
        self.distilled = distilled
        self.name = estimator_kind(distilled.estimator)
        self.classes: NDArray[Any] | None = distilled.classes_

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Predicted targets, of shape (n_rows,)."""
        return self.distilled.predict(X)

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Class probabilities, of shape (n_rows, n_classes)."""
        return self.distilled.predict_proba(X)


@dataclass(frozen=True, kw_only=True, eq=False)
class AtHome:
    """All that a party predicts with.

    Attributes
    ----------
    party : LocalParty or None
    model : PartyModel or None
        Both None where no model is installed, and all there is was distilled from anchor predictions.
    personal : PersonalModel or None
        None where nothing was pooled.
    distilled : DistilledSide or None
        None where nothing was distilled from anchor predictions.
    sentence : str
        What collaboration brought, or why that cannot be said.
    """

    party: LocalParty | None
    model: PartyModel | None
    personal: PersonalModel | None
    sentence: str
    distilled: DistilledSide | None = None

    def side(self, using: str | None = None) -> Side:
        """Whose predictions are taken; by default the pool's, the collaboration's, or what was learned, in this order.

        Raises
        ------
        ValueError
            When there is no such side.
        ExchangeError
            NOT_POOLED, where the party's own models are wanted and there are none; NOT_INSTALLED.
        """
        if using not in (None, *SIDES):
            raise ValueError(f"Unknown predictions {using!r}; choose one of {', '.join(SIDES)}.")
        if using == "distilled" or (using is None and self.model is None):
            if self.distilled is None:
                raise ExchangeError(
                    "NOT_INSTALLED",
                    "Nothing was distilled from anchor predictions. Run `datacollab party distil FILE` first.",
                )
            return self.distilled
        if self.party is None or self.model is None:
            raise ExchangeError(
                "NOT_INSTALLED",
                f"There are no predictions of the kind {using!r}, for no model is installed. Take what was learned "
                "from answers.",
            )
        if using == "collaboration" or (using is None and self.personal is None):
            return CommonSide(self.party, self.model)
        if self.personal is None:
            raise ExchangeError("NOT_POOLED", f"There are no predictions of the kind {using!r}. {self.sentence}")
        if using == "own" and using not in self.personal.sides:
            raise ExchangeError(
                "NOT_POOLED",
                "There are no models of your own rows without public ones. Take 'local'.",
            )
        return PersonalSide(self.personal, using or "combined")

    def sides(self) -> dict[str, Side]:
        """All that there are, by name."""
        names: tuple[str, ...] = () if self.model is None else ("collaboration",)
        if self.personal is not None:
            names = tuple(self.personal.sides)
        return {name: self.side(name) for name in (*names, *(("distilled",) if self.distilled is not None else ()))}

"""The sides of a party's predictions: its own models and the common one together, or either by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...errors import ExchangeError
from ...model import PartyModel, estimator_kind
from ...party import DistilledModel, LocalParty, PersonalModel
from ...sums import SumsModel
from ..project import Project
from ..steps import SIDES
from ._sums import ProjectMap

_PARTS = 4


def agreed_times(project: Project) -> list[float]:
    """Return quarters of the longest possible time, rounded up like the times themselves.

    With a maximum of 1826 days, rounded to 30: 480, 930, 1380 and 1830 days.
    """
    task = project.task
    assert task.maximum is not None
    assert task.latest is not None
    step = task.time_step
    quarters = [task.maximum * part / _PARTS for part in range(1, _PARTS)]
    return [each if step is None else math.ceil(each / step * (1 - 1e-12)) * step for each in quarters] + [task.latest]


def survival_names(project: Project) -> list[str]:
    """Return the names of the columns with the probability of no event up to each agreed time."""
    return [f"survival_{time:.10g}" for time in agreed_times(project)]


def times_within(model: PartyModel, times: Sequence[float]) -> list[float]:
    """Return those of ascending times that lie within a model's observation."""
    (baseline,) = model.estimator.baselines_.values()
    return [time for time in times if time <= baseline.times[-1]]


def are_targets(predicted: Any, project: Project) -> bool:
    """Return whether an array holds only the project's classes, numbers of clusters, or else finite numbers."""
    if project.task.kind == "none":
        return predicted.dtype.kind in "iu" and bool((predicted >= 0).all())
    if project.task.kind == "classification":
        return bool(np.isin(predicted, np.asarray(project.task.classes)).all())
    return predicted.dtype.kind in "biuf" and bool(np.isfinite(predicted).all())


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One way to predict rows of the project's matrix: functions of rows, and the classes of probabilities if any."""

    name: str
    classes: NDArray[Any] | None
    predict: Callable[[FloatArray], NDArray[Any]]
    predict_proba: Callable[[FloatArray], FloatArray]
    predict_survival: Callable[[FloatArray, Sequence[float]], FloatArray] | None = None


def _common_side(party: LocalParty, model: PartyModel) -> Side:
    """Return the analyst's model, behind the party's own f_k."""

    def predict_survival(X: FloatArray, times: Sequence[float]) -> FloatArray:
        known = times_within(model, times)
        result = np.full((len(X), len(times)), np.nan)
        if known:
            result[:, : len(known)] = model.predict_survival(party.obfuscate(X), known)
        return result

    return Side(
        name=estimator_kind(model.estimator),
        classes=model.estimator.classes_ if hasattr(model.estimator, "predict_proba") else None,
        predict=lambda X: model.predict(party.obfuscate(X)),
        predict_proba=lambda X: model.predict_proba(party.obfuscate(X)),
        predict_survival=predict_survival,
    )


def distilled_side(model: DistilledModel) -> Side:
    """Return the distilled model, which takes no f_k."""
    return Side(
        name=estimator_kind(model.estimator),
        classes=model.classes_,
        predict=model.predict,
        predict_proba=model.predict_proba,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class AtHome:
    """All that a party of a project that shares rows predicts with.

    Attributes
    ----------
    party : LocalParty or None
    model : PartyModel or None
        Both None if no model is installed, and there is only a distilled one.
    personal : PersonalModel or None
        The own models combined with the common one, if there are any.
    sentence : str
        What collaboration brought, or why that cannot be said.
    distilled : Side or None
    """

    party: LocalParty | None
    model: PartyModel | None
    personal: PersonalModel | None
    sentence: str
    distilled: Side | None = None

    def side(self, using: str | None = None) -> Side:
        """Return one side; by default the combined one, the collaboration's, or the distilled one, in this order.

        Raises
        ------
        ValueError
            If there is no such name.
        ExchangeError
            NOT_POOLED, if the party has no such models of its own; NOT_INSTALLED.
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
                f"There are no predictions of the kind {using!r}, for no model is installed. Take the distilled model.",
            )
        if using == "collaboration" or (using is None and self.personal is None):
            return _common_side(self.party, self.model)
        if self.personal is None:
            raise ExchangeError("NOT_POOLED", f"There are no predictions of the kind {using!r}. {self.sentence}")
        if using == "own" and using not in self.personal.sides:
            raise ExchangeError("NOT_POOLED", "There are no models of your own rows without public ones. Take 'local'.")
        personal, chosen = self.personal, using or "combined"
        return Side(
            name=type(personal).__name__,
            classes=getattr(personal, "classes_", None),
            predict=lambda X: personal.predict(X, using=chosen),
            predict_proba=lambda X: personal.predict_proba(X, using=chosen),
        )

    def sides(self) -> dict[str, Side]:
        """Return all sides by name."""
        names: tuple[str, ...] = () if self.model is None else ("collaboration",)
        if self.personal is not None:
            names = tuple(self.personal.sides)
        return {name: self.side(name) for name in (*names, *(("distilled",) if self.distilled is not None else ()))}


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonModel:
    """The one model of a project that shares sums, behind the common map."""

    common: ProjectMap
    model: SumsModel
    sentence: str = "Predictions are those of the one model of all parties' rows; nothing was combined with it."

    def side(self, using: str | None = None) -> Side:
        """Return the one side, or raise NOT_POOLED for another name."""
        if using not in (None, "collaboration"):
            raise ExchangeError(
                "NOT_POOLED",
                f"There are no predictions of the kind {using!r}: the project shares sums, and has one model of all "
                "rows. Take 'collaboration'.",
            )
        return Side(
            name="ridge regression on sums",
            classes=None if self.model.classes is None else np.asarray(self.model.classes),
            predict=lambda X: self.model.predict(self.common.transform(X)),
            predict_proba=lambda X: self.model.predict_proba(self.common.transform(X)),
        )

    def sides(self) -> dict[str, Side]:
        """Return the one side by name."""
        return {"collaboration": self.side()}

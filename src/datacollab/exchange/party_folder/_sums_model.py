"""The common model of all parties' sums at a party: checked, tried, and predicted with behind the common map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...bundle import Bundle
from ...errors import ExchangeError
from ...sums import SumsModel, SumsPlan
from ..project import Anchor, Project
from ..sums import fewest_rows, plan_of
from ._sides import Side
from ._sums_map import ProjectMap, project_map

__all__ = ["SENTENCE", "CommonModel", "check_common_model"]

SENTENCE = "Predictions are those of the one model of all parties' rows; nothing was pooled with it."
_LARGEST_OUTPUT = 10.0
"""Encoded targets are from -1 to 1; a model that says far more of the anchor was not fitted to them."""


class SumsSide:
    """The common model behind the common map.

    Parameters
    ----------
    common : ProjectMap
    model : SumsModel
    """

    name = "ridge regression on sums"

    def __init__(self, common: ProjectMap, model: SumsModel) -> None:
        self._common, self._model = common, model
        self.classes: NDArray[Any] | None = None if model.classes is None else np.asarray(model.classes)

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Predicted targets, of shape (n_rows,)."""
        return self._model.predict(self._common.transform(X))

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Class probabilities, of shape (n_rows, n_classes)."""
        return self._model.predict_proba(self._common.transform(X))


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonModel:
    """All that a party of a project that shares sums predicts with.

    Attributes
    ----------
    common : ProjectMap
    model : SumsModel
    """

    common: ProjectMap
    model: SumsModel
    sentence: str = SENTENCE

    def side(self, using: str | None = None) -> Side:
        """Whose predictions are taken: there is one model.

        Raises
        ------
        ExchangeError
            NOT_POOLED if others are wanted.
        """
        if using not in (None, "collaboration"):
            raise ExchangeError(
                "NOT_POOLED",
                f"There are no predictions of the kind {using!r}: the project shares sums, and has one model of all "
                "rows. Take 'collaboration'.",
            )
        return SumsSide(self.common, self.model)

    def sides(self) -> dict[str, Side]:
        """All that there are, by name."""
        return {"collaboration": self.side()}


def check_common_model(model: SumsModel, kept: Bundle, project: Project, anchor: Anchor, *, where: str) -> CommonModel:
    """Check that a model is of the sum that the party was in, of the project's targets, and of a sensible size.

    Parameters
    ----------
    model : SumsModel
    kept : Bundle
        What the party keeps of its message.
    project : Project
    anchor : Anchor
    where : str
        What an error calls the file.

    Raises
    ------
    ExchangeError
        WRONG_SHARE or MODEL_MALFORMED.
    """
    assert project.sharing is not None
    if model.context.hex() != kept.facts["context"]:
        raise ExchangeError(
            "WRONG_SHARE",
            f"{where} was made of another sum than the one that this party was in. Have the analyst integrate the "
            "files of this run.",
        )
    task = project.task
    limits = None if task.classes or task.minimum is None or task.maximum is None else (task.minimum, task.maximum)
    common = project_map(project, anchor)
    if (model.classes or ()) != task.classes or model.limits != limits:
        raise _malformed(f"{where} is of other classes, or of another range, than project {project.name!r}")
    if len(model.fit.coefficients) != common.n_components:
        raise _malformed(
            f"{where} has coefficients for {len(model.fit.coefficients)} columns, and the common map has "
            f"{common.n_components}"
        )
    commitment = str(kept.facts["anchor_commitment"])
    plan = plan_of(project, anchor_commitment=commitment, n_components=common.n_components)
    _check_size(model, plan, fewest_rows(project), where)
    outputs = model.fit.predict(common.transform(anchor.rows))
    if not (np.abs(outputs) <= _LARGEST_OUTPUT).all():
        raise _malformed(f"In a trial with the anchor, {where} gives what no target can be")
    return CommonModel(common=common, model=model)


def _check_size(model: SumsModel, plan: SumsPlan, fewest: int, where: str) -> None:
    """Refuse coefficients that no ridge regression on so many rows has, with the noise agreed on."""
    fit, noise = model.fit, plan.noise * plan.agreed.excess
    n_components, n_outputs = fit.coefficients.shape
    least = noise * math.sqrt(2 * n_components)
    wanted = len(plan.roster) * fewest
    if not (math.isfinite(fit.n_rows) and math.isfinite(fit.alpha)) or fit.alpha < least * (1 - 1e-9):
        raise _malformed(f"{where} has a smaller penalty than its noise demands")
    slack = 32 * noise
    if fit.n_rows < wanted - slack:
        raise _malformed(f"{where} says that there are {fit.n_rows:.0f} rows, and the parties add {wanted} at least")
    # The ridge solution's norm is at most |T| / (2 sqrt(alpha)); noise in the moments adds |E| / alpha.
    of_rows = math.sqrt(fit.n_rows * n_outputs / fit.alpha)
    of_noise = slack * math.sqrt(n_components * n_outputs) / fit.alpha
    if float(np.linalg.norm(fit.coefficients)) > of_rows + of_noise:
        raise _malformed(f"{where} has larger coefficients than ridge regression gives")


def _malformed(sentence: str) -> ExchangeError:
    return ExchangeError("MODEL_MALFORMED", f"{sentence}. Do not use it; ask the analyst.")

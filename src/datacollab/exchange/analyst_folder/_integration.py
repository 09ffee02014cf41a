"""What the analyst learns from an integration: how well the parties' anchors agree, and how good the model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...model import estimator_kind
from ...share import Share
from ..project import Project
from ._choice import selection_facts, selection_from
from ._row_lint import RowFinding, training_rows_in
from ._score import Score, score_of
from ._shares import ReceivedShare
from ._survival_score import survival_score

if TYPE_CHECKING:
    from ...analyst import Collaboration, Selection

__all__ = ["Integration", "anchor_concordance", "describe"]

_NAMED_PARAMETERS = ("kernel", "gamma", "alpha", "graph_weight", "center", "solver", "basis", "reference")


@dataclass(frozen=True, kw_only=True)
class Integration:
    """An integration in numbers and names.

    Attributes
    ----------
    method : str
        Class of the integrator.
    parameters : dict of str to object
        Those of it that are numbers, texts or None.
    n_components : int
    estimator : str
        Class of the model h.
    n_rows : int
        Of all parties.
    share_digests : dict of party to str
        Which shares it was made of.
    concordance : dict of party to float
        See `anchor_concordance`.
    n_repeated : dict of party to int
        Rows of each share that equal another one of it, as where rows are means of groups.
    score : Score or None
    row_findings : tuple of str
        Where the model carries training rows.
    created : str
    selection : Selection or None
        What was tried, where the analyst was left a choice.
    """

    method: str
    parameters: dict[str, Any]
    n_components: int
    estimator: str
    n_rows: int
    share_digests: dict[str, str]
    concordance: dict[str, float]
    n_repeated: dict[str, int]
    score: Score | None
    row_findings: tuple[str, ...]
    created: str
    selection: Selection | None = None

    def facts(self) -> dict[str, Any]:
        """The same as what JSON can hold."""
        selection = None if self.selection is None else selection_facts(self.selection)
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        score = None if self.score is None else asdict(self.score)
        return plain | {"row_findings": list(self.row_findings), "score": score, "selection": selection}

    def facts_to_log(self) -> dict[str, Any]:
        """The same without the candidates that were not taken."""
        facts = self.facts()
        if facts["selection"] is not None:
            facts["selection"] = {name: value for name, value in facts["selection"].items() if name != "candidates"}
        return facts

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """What `facts` gave."""
        score, selection = facts["score"], facts.get("selection")
        return cls(
            **dict(facts)
            | {
                "score": None if score is None else Score(**score),
                "row_findings": tuple(facts["row_findings"]),
                "selection": None if selection is None else selection_from(selection),
            }
        )


def anchor_concordance(mapped: Mapping[Any, FloatArray]) -> dict[Any, float]:
    r"""Share of the mean anchor's variance that each party's mapped anchor reproduces (eq. anchor-concordance).

    :math:`1 - \|g_k(\tilde A_k) - \bar Z\|^2 / \|\bar Z - \bar z\|^2` with :math:`\bar Z` the mean over the parties and
    :math:`\bar z` its mean row.  It is 1 where all agree, and near or below 0 for a party whose anchor rows are others,
    or in another order.

    Parameters
    ----------
    mapped : mapping of party to ndarray of shape (n_anchors, n_components)
    """
    mean = np.mean(list(mapped.values()), axis=0)
    spread = float(((mean - mean.mean(axis=0)) ** 2).sum())
    return {party: 1.0 - float(((rows - mean) ** 2).sum()) / spread for party, rows in mapped.items()}


def describe(
    collaboration: Collaboration, received: Sequence[ReceivedShare], project: Project, n_folds: int | None
) -> Integration:
    """Say what came of an integration."""
    integrator = collaboration.integrator_
    anchors = {each.party: each.share.anchor_representation for each in received}
    representations = collaboration.representations_
    parameters = integrator.get_params(deep=False)
    rows = np.vstack(list(representations.values()))
    return Integration(
        method=type(integrator).__name__,
        parameters={name: parameters[name] for name in _NAMED_PARAMETERS if _is_plain(parameters.get(name, ...))},
        n_components=rows.shape[1],
        estimator=_name(collaboration.estimator_),
        n_rows=len(rows),
        share_digests={each.party: each.digest for each in received},
        concordance=anchor_concordance(integrator.transform(anchors)),
        n_repeated={each.party: _count_repeated(each.share.representation) for each in received},
        score=None if n_folds is None else _score(collaboration, [each.share for each in received], project, n_folds),
        row_findings=tuple(str(each) for each in _training_rows(collaboration, received)),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        selection=collaboration.selection_,
    )


def _score(collaboration: Collaboration, shares: Sequence[Share], project: Project, n_folds: int) -> Score | None:
    if project.task.kind == "none":
        return None
    if project.task.is_single:
        return score_of(collaboration, shares, project.task, n_folds)
    return survival_score(collaboration, shares, n_folds)


def _training_rows(collaboration: Collaboration, received: Sequence[ReceivedShare]) -> list[RowFinding]:
    """Rows of parties in any model that would be sent; a row that is an anchor row is nobody's."""
    representations = [collaboration.representations_[each.party][~_are_anchor_rows(each.share)] for each in received]
    sent = {"": collaboration.estimator_} | {
        f"without {each.party}: ": collaboration.party_model(each.party).without_party for each in received
    }
    return [
        RowFinding(path=f"{prefix}{found.path}", n_rows=found.n_rows)
        for prefix, estimator in sent.items()
        if estimator is not None
        for found in training_rows_in(estimator, representations)
    ]


def _are_anchor_rows(share: Share) -> NDArray[np.bool_]:
    """Which shared rows equal an anchor row of the same share, as where anchor rows are labelled at home."""
    if share.one_to_one:
        return np.zeros(len(share.representation), dtype=bool)
    anchors = {row.tobytes() for row in share.anchor_representation}
    return np.array([row.tobytes() in anchors for row in share.representation])


def _name(estimator: Any) -> str:
    """Class of a model; of a pipeline, those of its steps."""
    steps = getattr(estimator, "steps", None)
    return estimator_kind(estimator) if steps is None else " + ".join(type(step).__name__ for _, step in steps)


def _count_repeated(rows: FloatArray) -> int:
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    return int(counts[counts > 1].sum())


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float)

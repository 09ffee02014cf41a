"""What the analyst learns from an integration: how well the parties' anchors agree, and how good the model is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..._validation import FloatArray
from ...model import estimator_kind
from ...risk.attacks import find_training_rows
from ...share import Share
from ..project import Project
from ._score import Score, score_of, survival_score
from ._shares import ReceivedShare

if TYPE_CHECKING:
    from ...analyst import Collaboration, Selection

__all__ = [
    "Integration",
    "RowFinding",
    "anchor_concordance",
    "describe",
    "selection_facts",
    "selection_from",
    "training_rows_in",
]


def selection_facts(selection: Selection) -> dict[str, Any]:
    """Write what was tried and taken as plain facts; figures that are not finite are null."""
    return {
        "metric": selection.metric,
        "judged_on": selection.judged_on,
        "n_judges": selection.n_judges,
        "chosen": _plain(asdict(selection.chosen)),
        "candidates": [_plain(asdict(candidate)) for candidate in selection.candidates],
    }


def selection_from(facts: Mapping[str, Any]) -> Selection:
    """Read what `selection_facts` wrote."""
    from ...analyst import Candidate, Selection

    return Selection(
        candidates=tuple(Candidate(**_figures(each)) for each in facts["candidates"]),
        metric=facts["metric"],
        judged_on=facts["judged_on"],
        n_judges=facts["n_judges"],
    )


_MAY_LACK = ("alpha", "failure")


def _plain(candidate: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in candidate.items()
    }


def _figures(candidate: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None and name not in _MAY_LACK else value for name, value in candidate.items()}


_MOST_ROWS = 5000

_KEEPING_ROWS = {
    "AffinityPropagation": "cluster_centers_",
    "GaussianProcessRegressor": "X_train_",
    "KNNImputer": "_fit_X",
    "KNeighborsClassifier": "_fit_X",
    "KNeighborsRegressor": "_fit_X",
    "KernelPCA": "X_fit_",
    "KernelRidge": "X_fit_",
    "LabelPropagation": "X_",
    "LabelSpreading": "X_",
    "LocalOutlierFactor": "_fit_X",
    "NearestNeighbors": "_fit_X",
    "NuSVC": "support_vectors_",
    "NuSVR": "support_vectors_",
    "Nystroem": "components_",
    "OneClassSVM": "support_vectors_",
    "RadiusNeighborsClassifier": "_fit_X",
    "RadiusNeighborsRegressor": "_fit_X",
    "SVC": "support_vectors_",
    "SVR": "support_vectors_",
    "_BinaryGaussianProcessClassifierLaplace": "X_train_",
}
"""Estimators that predict from training rows, and where they keep them."""


@dataclass(frozen=True, kw_only=True)
class RowFinding:
    """Rows that a model carries."""

    path: str
    n_rows: int

    def __str__(self) -> str:
        return f"{self.path} ({self.n_rows} rows)"


def training_rows_in(estimator: Any, representations: Sequence[FloatArray]) -> list[RowFinding]:
    """Look for training rows in a fitted model.

    Estimators known to predict from rows are found wherever they are, also where a step before them has changed the
    rows.  In all else, rows are searched for as they are and under changes of units; of more than 5,000 rows, 5,000 are
    looked for.

    Parameters
    ----------
    estimator : estimator
        h, fitted.
    representations : sequence of ndarray of shape (n_samples, n_components)
        Collaboration representations that h was fitted to, of all parties.

    Returns
    -------
    list of RowFinding
        Empty where there is none.

    Notes
    -----
    A decision tree grown down to single rows holds thresholds between rows, which are no copies, and is not found.  It
    still tells much of its rows: of each, between which values its entries lie, and what was its target.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> y = X[:, 0] > 0
    >>> [str(found) for found in training_rows_in(KNeighborsClassifier().fit(X, y), [X[:20], X[20:]])]
    ['KNeighborsClassifier._fit_X (40 rows)']
    >>> training_rows_in(LogisticRegression().fit(X, y), [X[:20], X[20:]])
    []
    """
    known = {finding.path: finding for finding in _kept_rows(estimator)}
    rows = np.vstack(representations)
    if len(rows) > _MOST_ROWS:
        rows = rows[np.random.default_rng(0).choice(len(rows), size=_MOST_ROWS, replace=False)]
    within = tuple(path.rpartition(".")[0] for path in known)
    # Without rows there is nothing to look for, but an estimator that keeps its rows still does.
    for found in find_training_rows(estimator, rows) if len(rows) else ():
        if found.n_found and not (within and found.path.startswith(within)):
            known[found.path] = RowFinding(path=found.path, n_rows=found.n_found)
    return sorted(known.values(), key=lambda finding: finding.path)


def _kept_rows(estimator: Any) -> Iterator[RowFinding]:
    """Rows of the estimators known to keep them; each object once."""
    waiting: list[tuple[str, Any]] = [(type(estimator).__name__, estimator)]
    seen: set[int] = set()
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        for kind in type(value).__mro__:
            attribute = _KEEPING_ROWS.get(kind.__name__)
            if attribute is not None and hasattr(value, attribute):
                yield RowFinding(path=f"{path}.{attribute}", n_rows=len(getattr(value, attribute)))
                break
        # In the order of `find_training_rows`, so that what is reached in two ways gets the same path in both.
        waiting.extend((path + step, child) for step, child in reversed(list(_children(value))))


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[entry {number}]", item) for number, item in enumerate(value.values()))
    elif isinstance(value, list | tuple):
        yield from ((f"[{number}]", item) for number, item in enumerate(value))
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from ((f"[{number}]", item) for number, item in enumerate(value.ravel().tolist()))
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from ((f".{name}", item) for name, item in vars(value).items())


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
        """Return the same as what JSON can hold."""
        selection = None if self.selection is None else selection_facts(self.selection)
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        score = None if self.score is None else asdict(self.score)
        return plain | {"row_findings": list(self.row_findings), "score": score, "selection": selection}

    def facts_to_log(self) -> dict[str, Any]:
        """Return the same without the candidates that were not taken."""
        facts = self.facts()
        if facts["selection"] is not None:
            facts["selection"] = {name: value for name, value in facts["selection"].items() if name != "candidates"}
        return facts

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """Read what `facts` wrote."""
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
    """Return rows of parties in any model that would be sent."""
    representations = [collaboration.representations_[each.party] for each in received]
    sent = {"": collaboration.estimator_} | {
        f"without {each.party}: ": collaboration.party_model(each.party).without_party for each in received
    }
    return [
        RowFinding(path=f"{prefix}{found.path}", n_rows=found.n_rows)
        for prefix, estimator in sent.items()
        if estimator is not None
        for found in training_rows_in(estimator, representations)
    ]


def _name(estimator: Any) -> str:
    """Class of a model; of a pipeline, those of its steps."""
    steps = getattr(estimator, "steps", None)
    return estimator_kind(estimator) if steps is None else " + ".join(type(step).__name__ for _, step in steps)


def _count_repeated(rows: FloatArray) -> int:
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    return int(counts[counts > 1].sum())


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float)

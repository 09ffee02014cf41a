"""What an analyst who chooses tries: integration methods, weights of the anchor's rows, models.

* What was tried, and how it scored on rows left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

from .._validation import FloatArray, PartyName
from ..linalg import median_gamma
from ..model import ALPHAS, CalibratedForestClassifier, LandmarkRidgeClassifier, LandmarkRidgeRegressor
from ..share import Share
from ._base import BaseIntegrator
from ._graphs import TargetDissimilarityGraph, TargetSimilarityGraph
from ._kti import KTI
from ._kti_cv import KTICV
from ._linear import LTI, ODC

__all__ = [
    "ANCHOR_WEIGHTS",
    "MORE_LANDMARKS",
    "WIDTHS",
    "Candidate",
    "NamedModel",
    "Selection",
    "default_integrators",
    "forest",
    "is_ridge",
    "kernel_models",
    "landmarks",
    "name_of",
    "reads_targets",
    "with_many_landmarks",
]


ANCHOR_WEIGHTS = (0.0, 0.3, 1.0)
"""Weights of an anchor row beside a party's row."""
WIDTHS = (0.5, 1.0, 2.0)
"""Multiples of one over the median squared distance."""
_LARGE_ALPHAS = (0.1, 1.0, 10.0)
_VERY_LARGE_ALPHAS = (1.0, 10.0)
_BEYOND = 0.7
"""Part of the difference between two anchor rows that a landmark lies beyond a third."""
FEW_LANDMARKS, MANY_LANDMARKS = 400, 1200
"""In the search, and for the model that is taken in the end."""
MORE_LANDMARKS = ", more landmarks"
"""What is added to the name of a model that has many."""
_TREES = 200
_PART_OF_COLUMNS = 1 / 3
"""Tried at a split in regression: components are many and alike, and all of them take three times as long."""


@dataclass(frozen=True, kw_only=True)
class NamedModel:
    """A model to try, and what to call it."""

    name: str
    estimator: Any


def default_integrators(shares: Mapping[PartyName, Share], *, cautious: bool = False) -> list[BaseIntegrator]:
    """Integration methods for these shares, simple ones first.

    As many components as the widest share has columns, where the anchor has more rows than that.
    """
    columns = [share.representation.shape[1] for share in shares.values()]
    first = next(iter(shares.values()))
    n_anchors = first.anchor_representation.shape[0]
    n_components = min(max(columns), n_anchors - 1)
    integrators: list[BaseIntegrator] = [ODC(reference="consensus")] if len(set(columns)) == 1 else []
    kti = KTI(n_components, alpha=0.1, center=True)
    if cautious:
        return [*integrators, kti]
    integrators += [LTI(n_components), kti]
    if any(share.anchor_target is not None for share in shares.values()):
        integrators.append(KTI(n_components, alpha=0.1, center=True, graph=TargetSimilarityGraph()))
    return integrators


def kernel_models(
    anchor: FloatArray, *, is_classification: bool, cautious: bool = False, interpolated: bool = False
) -> list[NamedModel]:
    """Linear and kernel ridge regressions whose landmarks are made of anchor rows."""
    alphas = _VERY_LARGE_ALPHAS if interpolated else _LARGE_ALPHAS if cautious else ALPHAS
    ridge = LandmarkRidgeClassifier if is_classification else LandmarkRidgeRegressor
    models = [NamedModel(name="ridge", estimator=ridge(kernel="linear", alphas=alphas))]
    S = landmarks(anchor, FEW_LANDMARKS)
    gamma = median_gamma(anchor)
    if np.isfinite(gamma) and gamma > 0:
        models += [
            NamedModel(name=f"kernel ridge, width {factor:g}", estimator=ridge(S, gamma=factor * gamma, alphas=alphas))
            for factor in WIDTHS
            if not (cautious and factor < 1)
        ]
    return models


def with_many_landmarks(model: NamedModel, anchor: FloatArray) -> NamedModel | None:
    """The same kernel ridge regression on more landmarks; None for other models, and those that have many."""
    if getattr(model.estimator, "landmarks", None) is None or model.name.endswith(MORE_LANDMARKS):
        return None
    estimator = clone(model.estimator).set_params(landmarks=landmarks(anchor, MANY_LANDMARKS))
    return NamedModel(name=model.name + MORE_LANDMARKS, estimator=estimator)


def forest(*, is_classification: bool, n_jobs: int | None, random_state: int) -> NamedModel:
    """A random forest, whose rows left out are those that a tree did not see."""
    options: dict[str, Any] = {"n_estimators": _TREES, "n_jobs": n_jobs, "random_state": random_state}
    estimator = (
        CalibratedForestClassifier(**options)
        if is_classification
        else RandomForestRegressor(max_features=_PART_OF_COLUMNS, **options)
    )
    return NamedModel(name="random forest", estimator=estimator)


def is_ridge(estimator: Any) -> bool:
    """Whether a model is one of `kernel_models`."""
    return isinstance(estimator, LandmarkRidgeClassifier | LandmarkRidgeRegressor)


def reads_targets(integrator: BaseIntegrator) -> bool:
    """Whether an integration method looks at the targets of the anchor's rows."""
    graphs = (getattr(integrator, "graph", None), getattr(integrator, "penalty_graph", None))
    reads = any(isinstance(each, TargetSimilarityGraph | TargetDissimilarityGraph) for each in graphs)
    return reads or isinstance(integrator, KTICV)


def name_of(integrator: BaseIntegrator) -> str:
    """An integration method as tables show it."""
    graph = getattr(integrator, "graph", None)
    return type(integrator).__name__ + ("" if graph is None else f" + {type(graph).__name__}")


def landmarks(anchor: FloatArray, most: int) -> FloatArray:
    r"""Rows whose kernel functions span much of what the parties' rows would, made of anchor rows alone.

    Half are anchor rows; the others are :math:`a_i + \tau (a_j - a_k)`, since parties' rows lie beyond the anchor's,
    above all where these were interpolated.  Always the same ones.
    """
    generator = np.random.default_rng(0)
    n_kept = min(len(anchor), most // 2)
    kept = anchor[np.sort(generator.choice(len(anchor), n_kept, replace=False))]
    i, j, k = generator.integers(len(anchor), size=(3, most - n_kept))
    return np.vstack([kept, anchor[i] + _BEYOND * (anchor[j] - anchor[k])])


_JUDGED_ON = {
    "rows": "the parties' rows, each left out",
    "anchor": "the anchor's rows, each left out, for the parties' rows were changed by defences",
    "groups": "the parties' rows as defences changed them, equal ones left out together; the scores may flatter",
}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An integration method, a weight of the anchor's rows and a model, and how they did; or an average of such.

    Attributes
    ----------
    integrator, model : str
    anchor_weight : float
        Of an anchor row beside a party's row in the training of h; of an average the mean.
    alpha : float or None
        The ridge penalty, chosen on rows left out, where the model has one.
    loss : float
        Mean over the rows left out; not a number where the candidate was not tried.
    standard_error : float
        Of that mean.
    difference_low, difference_high : float
        95 % interval of the loss minus that of the chosen candidate, row by row.
    seconds : float
    chosen : bool
    part : float
        Of the chosen average, where it was averaged; from 0 to 1.
    failure : str or None
        Why it was not tried or could not be fitted.
    """

    integrator: str
    model: str = ""
    anchor_weight: float = 0.0
    alpha: float | None = None
    loss: float = math.nan
    standard_error: float = math.nan
    difference_low: float = math.nan
    difference_high: float = math.nan
    seconds: float = 0.0
    chosen: bool = False
    part: float = 0.0
    failure: str | None = None

    def compared(self, low: float, high: float, chosen: bool, part: float) -> Self:
        """The same beside the chosen one."""
        return replace(self, difference_low=float(low), difference_high=float(high), chosen=chosen, part=float(part))


@dataclass(frozen=True, kw_only=True)
class Selection:
    """All candidates of a choice.

    Attributes
    ----------
    candidates : tuple of Candidate
        In the order in which they were tried, simple ones first.
    metric : {"log loss", "squared error"}
    judged_on : {"rows", "anchor", "groups"}
        What the losses are of: the parties' rows; the anchor's, where the shared rows are not the parties' own; or
        changed rows, where there is nothing else.
    n_judges : int
        Rows that judged.
    """

    candidates: tuple[Candidate, ...]
    metric: str
    judged_on: str
    n_judges: int

    @property
    def caution(self) -> str:
        """What to know before scores on the rows left out are believed; empty where these are the parties' own."""
        if self.judged_on == "rows":
            return ""
        return (
            "These rows are not the parties' own as they are, and their labels may be what models at the parties "
            "named. Expect less at the parties, and go by what each one finds on its own rows."
        )

    @property
    def chosen(self) -> Candidate:
        """The candidate that was taken."""
        return next(candidate for candidate in self.candidates if candidate.chosen)

    def ranked(self) -> list[Candidate]:
        """Candidates that were tried, from the smallest loss on."""
        return sorted((each for each in self.candidates if each.failure is None), key=lambda each: each.loss)

    def to_frame(self) -> Any:
        """All candidates as a pandas data frame, a row each (needs pandas)."""
        from .._validation import require

        return require("pandas", "cli").DataFrame([asdict(candidate) for candidate in self.candidates])

    def table(self, most: int = 10) -> str:
        """The best candidates as text, the chosen one marked."""
        lines = [f"{self.metric} on {self.n_judges} rows: {_JUDGED_ON[self.judged_on]}"]
        for each in self.ranked()[:most]:
            mark = "*" if each.chosen else " "
            alpha = "" if each.alpha is None else f", penalty {each.alpha:g}"
            what = f"{each.integrator}, {each.model}{alpha}, anchor rows × {each.anchor_weight:.2g}"
            what += f", {each.part:.0%} of the average" if each.part else ""
            interval = "" if each.chosen else f"  ({each.difference_low:+.4f} to {each.difference_high:+.4f})"
            lines.append(f" {mark} {each.loss:.4f} ± {each.standard_error:.4f}  {what}{interval}")
        if self.judged_on != "rows" and self.ranked()[0].loss < self.chosen.loss:
            lines.append(
                " The simpler one (*) was taken: rows that were made between others flatter what follows them closely, "
                "so a more complicated one has to have a loss that is 25 % smaller."
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

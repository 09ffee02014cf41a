"""What an analyst who chooses tries: integration methods, weights of the anchor's rows, models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
from ._lti import LTI
from ._odc import ODC

__all__ = [
    "ANCHOR_WEIGHTS",
    "MORE_LANDMARKS",
    "WIDTHS",
    "NamedModel",
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

    Parameters
    ----------
    shares : mapping of party to Share
    cautious : bool, default=False
        Only those that do not follow the anchor's rows closely: where these judge, they cannot tell what a method makes
        of rows that are unlike them, as LTI may multiply directions in which the anchor hardly extends.
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
    """Linear and kernel ridge regressions whose landmarks are made of anchor rows.

    Parameters
    ----------
    anchor : ndarray of shape (n_anchors, n_components)
        As the integration method sees it.
    is_classification : bool
    cautious : bool, default=False
        Only large penalties, and no wide kernels; see `default_integrators`.
    interpolated : bool, default=False
        Only very large penalties, since the smaller ones look best on interpolated rows whatever they are worth.
    """
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

    Parameters
    ----------
    anchor : ndarray of shape (n_anchors, n_components)
    most : int

    Returns
    -------
    ndarray of shape (most, n_components)
    """
    generator = np.random.default_rng(0)
    n_kept = min(len(anchor), most // 2)
    kept = anchor[np.sort(generator.choice(len(anchor), n_kept, replace=False))]
    i, j, k = generator.integers(len(anchor), size=(3, most - n_kept))
    return np.vstack([kept, anchor[i] + _BEYOND * (anchor[j] - anchor[k])])

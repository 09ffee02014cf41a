"""Integration methods and models by their names, and clusters of all parties' rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import analyst
from ...analyst import BaseIntegrator, Collaboration
from ...share import Share

__all__ = ["METHODS", "MODELS", "MODEL_NAMES", "SURVIVAL_MODELS", "clustered", "make_integrator", "make_model"]

AUTO = "auto"
"""Left to the analyst's own choice, by rows left out."""
METHODS = (AUTO, *analyst.METHODS)


def make_integrator(
    name: str,
    shares: Sequence[Share],
    *,
    task: str = "classification",
    n_components: int | None = None,
    alpha: float | None = None,
) -> BaseIntegrator | str:
    """Return an integration method for these shares.

    Parameters
    ----------
    name : str
        One of `METHODS`.  "auto" is returned, for `datacollab.Analyst` to choose; of times to an event and of
        effects it is "lti-affine", as there is nothing to choose by.
        "kti" is centred, and joins anchor rows of like targets where shares carry anchor targets.
    shares : sequence of Share
    task : str, default="classification"
        The project's kind of task.
    n_components : int, optional
        Columns of the collaboration representations.  Default: as many as the widest share has, less those
        that say nothing its others do not.
    alpha : float, optional
        Ridge penalty of "kti".

    Raises
    ------
    ValueError
        If the name is unknown, or an option does not go with it.
    """
    if name not in METHODS:
        raise ValueError(f"Unknown method {name!r}; choose one of {', '.join(METHODS)}.")
    if alpha is not None and (name == AUTO or "alpha" not in analyst.METHODS[name].options):
        raise ValueError(f"The method {name!r} takes no alpha; leave it out, or choose kti.")
    if name == AUTO and task not in ("classification", "regression"):
        name = "lti-affine"
    if n_components is not None and (name == AUTO or analyst.METHODS[name].finds_components):
        raise ValueError(f"The method {name!r} finds the number of components by itself; leave out --components.")
    if name == AUTO:
        return AUTO
    method = analyst.METHODS[name]
    if n_components is None:
        n_components = _widest(shares, centred=bool(method.options.get("fit_intercept")))
    with_targets = any(share.anchor_target is not None for share in shares)
    return method.make(n_components, with_targets=with_targets, alpha=alpha)


def _widest(shares: Sequence[Share], *, centred: bool) -> int:
    """Return the largest dimension of a column space, to which repeated columns add nothing."""
    from ...linalg import centred_columns, column_space

    anchors = [share.anchor_representation for share in shares]
    if centred:
        anchors = [centred_columns(A)[0] for A in anchors]
    spanned = [column_space(A).basis.shape[1] for A in anchors if A.any()]
    # One less where columns are centred.
    return max(1, min([max(spanned, default=1), *(len(A) - 1 for A in anchors)]))


def make_model(name: str, task: str, random_state: int | None = None, *, of_means: bool = False) -> Any:
    """Return a model h for a task.

    Parameters
    ----------
    name : str
        One of `MODELS`, or of `SURVIVAL_MODELS`. "auto" is returned, for `datacollab.Analyst` to choose; for times to
        an event it is "cox".
    task : {"classification", "regression", "survival"}
    random_state : int, optional
    of_means : bool, default=False
        Whether shared rows are means of groups: these lie closer together than the rows that are predicted, and a Cox
        regression is penalised more.

    Raises
    ------
    ValueError
        If the name is unknown, or that of a model for another task.
    """
    known = SURVIVAL_MODELS if task == "survival" else MODELS
    if name not in known:
        raise ValueError(f"Expected one of {', '.join(known)} for {task}, got {name!r}.")
    return known[name](of_means if task == "survival" else task == "classification", random_state)


def _forest(is_classification: bool, random_state: int | None) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    return (RandomForestClassifier if is_classification else RandomForestRegressor)(random_state=random_state)


def _boosting(is_classification: bool, random_state: int | None) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    return (HistGradientBoostingClassifier if is_classification else HistGradientBoostingRegressor)(
        random_state=random_state
    )


def _linear(is_classification: bool, random_state: int | None) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Collaboration representations are as small as their number of anchor rows is large.
    h = LogisticRegression(max_iter=2000, random_state=random_state) if is_classification else Ridge()
    return make_pipeline(StandardScaler(), h)


def _perceptron(is_classification: bool, random_state: int | None) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    h = (MLPClassifier if is_classification else MLPRegressor)(
        hidden_layer_sizes=(100,), early_stopping=True, max_iter=1000, random_state=random_state
    )
    return make_pipeline(StandardScaler(), h)


MODELS: dict[str, Callable[[bool, int | None], Any]] = {
    AUTO: lambda is_classification, random_state: AUTO,
    "random-forest": _forest,
    "gradient-boosting": _boosting,
    "linear": _linear,
    "perceptron": _perceptron,
}
"""Makers of models, which take whether it is a classification, and a seed.  None keeps its training rows."""
_PENALTY, _PENALTY_OF_MEANS = 1.0, 20.0
"""Of Cox regressions on standardised columns, as the section on survival of `make downstream` has them."""


def _cox(of_means: bool, random_state: int | None) -> Any:
    from ...survival import CoxRegression

    return CoxRegression(_PENALTY_OF_MEANS if of_means else _PENALTY, standardize=True)


def _survival_forest(of_means: bool, random_state: int | None) -> Any:
    from ...survival import SurvivalForest

    return SurvivalForest(random_state=random_state)


SURVIVAL_MODELS: dict[str, Callable[[bool, int | None], Any]] = {
    AUTO: _cox,
    "cox": _cox,
    "survival-forest": _survival_forest,
}
"""Makers of models of times to an event, which take whether rows are means, and a seed."""
MODEL_NAMES = tuple(dict.fromkeys((*MODELS, *SURVIVAL_MODELS)))


def clustered(shares: Sequence[Share], n_clusters: int, random_state: int) -> Collaboration:
    """Return k-means of the rows of all parties, in a common space with the distances of the anchor."""
    from sklearn.cluster import KMeans

    return analyst.cluster(analyst.integrate(shares), KMeans(n_clusters, n_init=10, random_state=random_state))

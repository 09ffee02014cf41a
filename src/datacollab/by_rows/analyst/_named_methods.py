"""Integration methods and models by their names, and clusters of all parties' rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import analyst
from ..._by_name import AUTO, METHODS, MODELS, NAMES, SURVIVAL_MODELS
from ...analyst import BaseIntegrator, Collaboration
from ...share import Share


def make_integrator(
    name: str,
    shares: Sequence[Share],
    *,
    task: str = "classification",
    n_components: int | None = None,
    alpha: float | None = None,
) -> BaseIntegrator | str:
    """Return an integration method for these shares and the project's kind of task.

    The name is one of `NAMES`.  "auto" is returned, for `datacollab.Analyst` to choose; of times to an event and of
    effects it is "lti-affine", as there is nothing to choose by.  "kti" joins anchor rows of like targets if shares
    have these, with a ridge penalty `alpha`.  Collaboration representations have `n_components` columns, by default
    the dimension of the widest share.
    """
    if name not in NAMES:
        raise ValueError(f"Unknown method {name!r}; choose one of {', '.join(NAMES)}.")
    if alpha is not None and (name == AUTO or "alpha" not in METHODS[name].options):
        raise ValueError(f"The method {name!r} takes no alpha; leave it out, or choose kti.")
    # Of classes and numbers alone there are rows left out to choose by.
    if name == AUTO and task not in ("classification", "regression"):
        name = "lti-affine"
    if n_components is not None and (name == AUTO or METHODS[name].finds_components):
        raise ValueError(f"The method {name!r} finds the number of components by itself; leave out --components.")
    if name == AUTO:
        return AUTO
    method = METHODS[name]
    # Fewer would lose directions of some party, and more would be noise.
    if n_components is None:
        n_components = _widest(shares, centred=bool(method.options.get("fit_intercept")))
    with_targets = any(share.anchor_target is not None for share in shares)
    integrator: BaseIntegrator = method.make(n_components, with_targets=with_targets, alpha=alpha)
    return integrator


def _widest(shares: Sequence[Share], *, centred: bool) -> int:
    """Return the largest dimension of a column space, to which repeated columns add nothing."""
    from ...linalg import centre_columns, column_space

    anchors = [share.anchor_representation for share in shares]
    if centred:
        anchors = [centre_columns(A)[0] for A in anchors]
    spanned = [column_space(A).basis.shape[1] for A in anchors if A.any()]
    # One less than there are anchor rows where columns are centred.
    return max(1, min([max(spanned, default=1), *(len(A) - 1 for A in anchors)]))


def make_model(name: str, task: str, random_state: int | None = None, *, of_means: bool = False) -> Any:
    """Return a model h for a classification, regression or survival; none keeps its training rows.

    The name is one of `MODELS`, or of `SURVIVAL_MODELS`.  "auto" is returned, for `datacollab.Analyst` to choose; for
    times to an event it is "cox".  Shared rows that are means of groups (`of_means`) lie closer together than the rows
    that are predicted, so that a Cox regression is penalised more.
    """
    known = SURVIVAL_MODELS if task == "survival" else MODELS
    if name not in known:
        raise ValueError(f"Expected one of {', '.join(known)} for {task}, got {name!r}.")
    if task == "survival":
        from ...survival import CoxRegression, SurvivalForest

        if name == "survival-forest":
            return SurvivalForest(random_state=random_state)
        penalty = _PENALTY_OF_MEANS if of_means else _PENALTY
        return CoxRegression(penalty, standardize=True)
    if name == AUTO:
        return AUTO
    # Slow to import, and not needed for other names.
    from sklearn import ensemble, linear_model, neural_network
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kind = "Classifier" if task == "classification" else "Regressor"
    # No nearest neighbours and no kernel machines: they would carry rows of all parties.
    if name == "random-forest":
        return getattr(ensemble, f"RandomForest{kind}")(random_state=random_state)
    if name == "gradient-boosting":
        return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=random_state)
    if name == "perceptron":
        h = getattr(neural_network, f"MLP{kind}")(early_stopping=True, max_iter=1000, random_state=random_state)
    elif task == "classification":
        h = linear_model.LogisticRegression(max_iter=2000, random_state=random_state)
    else:
        h = linear_model.Ridge()
    # Collaboration representations are as small as their number of anchor rows is large.
    return make_pipeline(StandardScaler(), h)


_PENALTY = 1.0
_PENALTY_OF_MEANS = 20.0
"""Of Cox regressions on standardised columns, as the section on survival of `make downstream` has them."""


def cluster_rows(shares: Sequence[Share], n_clusters: int, random_state: int) -> Collaboration:
    """Return k-means of the rows of all parties, in a common space with the distances of the anchor."""
    from sklearn.cluster import KMeans

    return analyst.cluster(analyst.integrate(shares), KMeans(n_clusters, n_init=10, random_state=random_state))

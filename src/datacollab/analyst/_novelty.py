"""How unlike all parties' rows a new row is, as a model that can be sent."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from .._validation import FloatArray
from ..model import mixture_novelty
from ._clustering import LEAST_ROWS
from ._collaboration import Collaboration
from ._integrated import Integrated

__all__ = ["novelty"]

_RIDGE = 0.1
"""Added to all variances, in their mean: few rows in many columns leave some with next to none."""


def novelty(
    integrated: Integrated,
    n_components: int = 8,
    *,
    least_rows: int = LEAST_ROWS,
    random_state: int | np.random.RandomState | None = 0,
) -> Collaboration:
    r"""Scores of novelty: :math:`-\log p(x)` under a mixture of normal distributions of all parties' rows.

    The estimator that goes back predicts a number for each row, the larger, the less it is like any that the parties
    had; see `datacollab.model.mixture_novelty`.  Where to draw a line is the party's choice, such as a quantile of its
    own rows' scores.

    Parameters
    ----------
    integrated : Integrated
        Of an integrator that keeps distances; see `AnchorScaled`.
    n_components : int, default=8
        Of the mixture, with full covariances, to each of which a tenth of the mean variance of a column is added.
    least_rows : int, default=5
        Of each component, in sums of the rows' probabilities.  Where one has fewer, a component less is tried.
    random_state : int, RandomState or None, default=0

    Returns
    -------
    Collaboration
        Its `party_model` gives what goes back to a party.

    Raises
    ------
    ValueError
        When there are fewer than `least_rows` rows.

    Notes
    -----
    Scores by the nearest neighbours, as the local outlier factor's, would take the parties' representations along,
    which another party could invert.  What goes to all parties here is a weight, a mean and a covariance for each
    component.  A component may be of one party's rows alone, where no other has any like them: its mean and covariance
    tell then how these lie, as those of a naive Bayes model or a linear discriminant would.

    Shared rows that are means of groups vary less than rows do, so that scores of own rows come out larger on the
    whole.  The order of rows suffers less.

    Examples
    --------
    >>> import numpy as np, datacollab as dc
    >>> from datacollab.analyst import integrate, novelty
    >>> rng = np.random.default_rng(0)
    >>> X, anchor = rng.normal(size=(200, 4)), rng.normal(size=(100, 4))
    >>> f = dc.obfuscator("pca", n_components=4)
    >>> parties = [dc.Party(k, f).fit(X[k::2]) for k in range(2)]
    >>> model = novelty(integrate(party.share(anchor) for party in parties), 2).party_model(0)
    >>> usual, unusual = parties[0].predict([np.zeros(4), np.full(4, 5.0)], model)
    >>> bool(usual < unusual)
    True
    """
    rows = integrated.pooled
    if len(rows) < least_rows:
        raise ValueError(f"{len(rows)} rows are fewer than least_rows={least_rows}; nothing can be said of them.")
    ridge = _RIDGE * float(np.mean(rows.var(axis=0)))
    for n_left in range(min(n_components, len(rows)), 0, -1):
        mixture = _mixture(rows, n_left, ridge, random_state)
        if len(rows) * mixture.weights_.min() >= least_rows:
            break
    return Collaboration(integrated.integrator, mixture_novelty(mixture), integrated.representations)


def _mixture(rows: FloatArray, n_components: int, ridge: float, random_state: Any) -> GaussianMixture:
    return GaussianMixture(n_components, reg_covar=ridge, max_iter=500, random_state=random_state).fit(rows)

"""How well a survival model orders rows left out of its training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from ...errors import NumericalError
from ...model import fit_weighted
from ...share import Share
from ...survival import concordance_index
from ._rows_together import rows_together
from ._score import Score

if TYPE_CHECKING:
    from ...analyst import Collaboration

__all__ = ["survival_score"]


def survival_score(collaboration: Collaboration, shares: Sequence[Share], n_folds: int) -> Score | None:
    """Cross-validate the concordance of the log risk on the collaboration representations, equal rows together.

    Parameters
    ----------
    collaboration : Collaboration
    shares : sequence of Share
        In the order of the collaboration's parties.
    n_folds : int

    Returns
    -------
    Score or None
        None where there are too few rows, or a fold has no pair whose order is known.
    """
    from sklearn.base import clone
    from sklearn.model_selection import GroupKFold

    rows = np.vstack([collaboration.representations_[share.party] for share in shares])
    target = np.concatenate([share.target for share in shares])
    strata = np.repeat(np.arange(len(shares)), [len(share.target) for share in shares])
    groups = rows_together(shares)
    n_folds = min(n_folds, len(np.unique(groups)))
    if n_folds < 2:
        return None
    found: list[float] = []
    for kept, out in GroupKFold(n_folds, shuffle=True, random_state=0).split(rows, groups=groups):
        fitted = fit_weighted(
            clone(collaboration.estimator_), rows[kept], target[kept], np.ones(len(kept)), strata=strata[kept]
        )
        try:
            found.append(concordance_index(target[out], fitted.predict(rows[out])))
        except NumericalError:
            return None
    values = np.array(found)
    half = float(stats.t.ppf(0.975, n_folds - 1) * values.std(ddof=1) / np.sqrt(n_folds))
    value = float(values.mean())
    return Score(
        name="concordance",
        value=value,
        low=max(value - half, 0.0),
        high=min(value + half, 1.0),
        baseline=0.5,
        n_folds=n_folds,
    )

"""How far parties explain the same rows alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from .._validation import FloatArray, PartyName
from ..errors import AgreementError
from ._explanation import Explanation

__all__ = ["ExplanationAgreement", "explanation_agreement"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplanationAgreement:
    r"""How far explanations of the same rows differ between parties.

    Attributes
    ----------
    parties : tuple of str or int
    values : ndarray of shape (n_parties, n_parties)
        Discrepancy of all values, :math:`\|\Phi_k - \Phi_l\| / \sqrt{\|\Phi_k\|^2 + \|\Phi_l\|^2}`: 0 where they are
        the same, 1 where they have nothing to do with each other.
    importance : ndarray of shape (n_parties, n_parties)
        The same for the columns' mean absolute values.
    ranks : ndarray of shape (n_parties, n_parties)
        Spearman's correlation of the columns' mean absolute values.
    discrepancy : float
        Mean of `values` over pairs of parties.
    """

    parties: tuple[PartyName, ...]
    values: FloatArray
    importance: FloatArray
    ranks: FloatArray
    discrepancy: float


def explanation_agreement(explanations: Sequence[Explanation]) -> ExplanationAgreement:
    """Compare what several parties say of the same rows.

    Parameters
    ----------
    explanations : sequence of Explanation
        Of the same rows, such as anchor rows, by the same columns and outputs.

    Returns
    -------
    ExplanationAgreement

    Raises
    ------
    AgreementError
        When there are fewer than two, or they are of other shapes or columns.

    Notes
    -----
    For this explanations come together in one place.  Compare those of anchor rows; those of private rows tell of them.

    Examples
    --------
    >>> import datacollab as dc
    >>> from datacollab.party import explanation_agreement
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> anchor = X[300:]
    >>> parties = [dc.Party(k, dc.obfuscator("pca")).fit(X[k:300:2], y[k:300:2]) for k in range(2)]
    >>> analyst = dc.Analyst(dc.LTI(10, fit_intercept=True), LinearRegression())
    >>> together = analyst.fit([party.share(anchor) for party in parties])
    >>> both = [
    ...     party.explain(anchor[:3], together.party_model(party.name), background=anchor, n_background=5)
    ...     for party in parties
    ... ]
    >>> round(explanation_agreement(both).discrepancy, 6)
    0.0
    """
    given = list(explanations)
    if len(given) < 2:
        raise AgreementError(f"Explanations of at least two parties are wanted; got {len(given)}.")
    kinds = {(each.values.shape, each.feature_names, each.output_names) for each in given}
    if len(kinds) > 1:
        raise AgreementError(
            f"Explanations must be of the same rows, columns and outputs; got {len(kinds)} kinds, of the shapes "
            f"{sorted({each.values.shape for each in given})}."
        )
    names = given[0].feature_names
    importances = np.array([[each.importance()[name] for name in names] for each in given])
    n = len(given)
    values, importance, ranks = np.zeros((n, n)), np.zeros((n, n)), np.eye(n)
    for k, other in combinations(range(n), 2):
        values[k, other] = values[other, k] = _discrepancy(given[k].values, given[other].values)
        importance[k, other] = importance[other, k] = _discrepancy(importances[k], importances[other])
        ranks[k, other] = ranks[other, k] = _correlation(rankdata(importances[k]), rankdata(importances[other]))
    return ExplanationAgreement(
        parties=tuple(each.party for each in given),
        values=values,
        importance=importance,
        ranks=ranks,
        discrepancy=float(values[np.triu_indices(n, 1)].mean()),
    )


def _discrepancy(first: FloatArray, second: FloatArray) -> float:
    size = np.hypot(np.linalg.norm(first), np.linalg.norm(second))
    return float(np.linalg.norm(first - second) / size) if size > 0 else 0.0


def _correlation(first: FloatArray, second: FloatArray) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / size) if size > 0 else float("nan")

"""How far parties' explanations of the same rows differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from .._validation import FloatArray, PartyName
from ..errors import AgreementError


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplanationAgreement:
    r"""How far explanations of the same rows differ between parties.

    Attributes
    ----------
    parties : tuple of str or int
    values, importance : ndarray of shape (n_parties, n_parties)
        Discrepancy of all values, :math:`\|\Phi_k - \Phi_l\| / \sqrt{\|\Phi_k\|^2 + \|\Phi_l\|^2}`: 0 where they are
        the same, 1 where they have nothing to do with each other; and that of the columns' mean absolute values.
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


def explanation_agreement(
    explanations: Mapping[PartyName, Any], backgrounds: Mapping[PartyName, ArrayLike]
) -> ExplanationAgreement:
    """Compare several parties' explanations of the same rows, measured from the same background.

    Parameters
    ----------
    explanations : mapping of party to shap.Explanation or ndarray
        Of the same rows, such as anchor rows, by the same columns and outputs.  Values have the shape (n_rows,
        n_columns) or (n_rows, n_columns, n_outputs).
    backgrounds : mapping of party to array-like of shape (n_background, n_columns)
        The rows that each party's explainer took masked columns from, such as the anchor.

    Raises
    ------
    AgreementError
        If there are fewer than two, they are of other shapes or columns, or backgrounds differ.

    Notes
    -----
    For this explanations come together in one place.  Compare those of anchor rows; those of private rows tell of them.
    """
    if len(explanations) < 2:
        raise AgreementError(f"Expected explanations of at least two parties, got {len(explanations)}.")
    kinds = {_kind(each) for each in explanations.values()}
    if len(kinds) > 1 or len(next(iter(kinds))[0]) not in (2, 3):
        raise AgreementError(
            f"Explanations must be of the same rows, columns and outputs; got {len(kinds)} kinds, of the shapes "
            f"{sorted({shape for shape, *_ in kinds})}."
        )
    rows = [np.asarray(backgrounds[party]) for party in explanations if party in backgrounds]
    if len(rows) < len(explanations) or not all(np.array_equal(rows[0], each) for each in rows[1:]):
        raise AgreementError(
            f"Explanations of {len(explanations)} parties came with {len(rows)} backgrounds, or these differ. Values "
            "from different backgrounds answer different questions: let all parties take one, such as the anchor."
        )
    tables = [_values(each) for each in explanations.values()]
    # A column counts by its mean absolute value over rows, and over outputs where there are several.
    importances = [np.abs(table).reshape(*table.shape[:2], -1).mean(axis=(0, 2)) for table in tables]
    n = len(tables)
    values = np.zeros((n, n))
    importance = np.zeros((n, n))
    ranks = np.eye(n)
    for k, other in combinations(range(n), 2):
        values[k, other] = values[other, k] = _discrepancy(tables[k], tables[other])
        importance[k, other] = importance[other, k] = _discrepancy(importances[k], importances[other])
        ranks[k, other] = ranks[other, k] = _correlation(rankdata(importances[k]), rankdata(importances[other]))
    return ExplanationAgreement(
        parties=tuple(explanations),
        values=values,
        importance=importance,
        ranks=ranks,
        discrepancy=float(values[np.triu_indices(n, 1)].mean()),
    )


def _values(explanation: Any) -> FloatArray:
    return np.asarray(getattr(explanation, "values", explanation), dtype=np.float64)


def _kind(explanation: Any) -> tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
    """Return shape of the values, and the names of columns and outputs where they have any."""
    return _values(explanation).shape, _names(explanation, "feature_names"), _names(explanation, "output_names")


def _names(explanation: Any, attribute: str) -> tuple[str, ...]:
    names = getattr(explanation, attribute, None)
    if names is None:
        return ()
    return tuple(map(str, names))


def _discrepancy(first: FloatArray, second: FloatArray) -> float:
    size = np.hypot(np.linalg.norm(first), np.linalg.norm(second))
    # Two explanations of zeros alone agree.
    if size == 0:
        return 0.0
    return float(np.linalg.norm(first - second) / size)


def _correlation(first: FloatArray, second: FloatArray) -> float:
    first = first - first.mean()
    second = second - second.mean()
    size = np.linalg.norm(first) * np.linalg.norm(second)
    # Where all columns count alike, there is no order to compare.
    if size == 0:
        return float("nan")
    return float(first @ second / size)

"""How far parties explain the same rows alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
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


def explanation_agreement(explanations: Mapping[PartyName, Any]) -> ExplanationAgreement:
    """Compare what several parties say of the same rows.

    Parameters
    ----------
    explanations : mapping of party to shap.Explanation or ndarray
        Of the same rows, such as anchor rows, by the same columns and outputs.  Values have the shape (n_rows,
        n_columns) or (n_rows, n_columns, n_outputs).

    Raises
    ------
    AgreementError
        If there are fewer than two, or they are of other shapes or columns.

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
    given = [_values(each) for each in explanations.values()]
    importances = [np.abs(values).reshape(*values.shape[:2], -1).mean(axis=(0, 2)) for values in given]
    n = len(given)
    values, importance, ranks = np.zeros((n, n)), np.zeros((n, n)), np.eye(n)
    for k, other in combinations(range(n), 2):
        values[k, other] = values[other, k] = _discrepancy(given[k], given[other])
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
    names, outputs = (getattr(explanation, each, None) for each in ("feature_names", "output_names"))
    texts = [() if each is None else tuple(map(str, each)) for each in (names, outputs)]
    return _values(explanation).shape, texts[0], texts[1]


def _discrepancy(first: FloatArray, second: FloatArray) -> float:
    size = np.hypot(np.linalg.norm(first), np.linalg.norm(second))
    return float(np.linalg.norm(first - second) / size) if size > 0 else 0.0


def _correlation(first: FloatArray, second: FloatArray) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / size) if size > 0 else float("nan")

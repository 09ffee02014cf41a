"""How far parties' explanations of the same rows differ."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import FloatArray, PartyName
from ..errors import AgreementError


def explanation_discrepancy(explanations: Mapping[PartyName, Any], backgrounds: Mapping[PartyName, ArrayLike]) -> float:
    r"""Return how far parties' explanations of the same rows differ, measured from the same background.

    It is the mean over pairs of parties of :math:`\|\Phi_k - \Phi_l\| / \sqrt{\|\Phi_k\|^2 + \|\Phi_l\|^2}`: 0
    where values are the same, 1 where they have nothing to do with each other.

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
    pairs = combinations([_values(each) for each in explanations.values()], 2)
    return float(np.mean([_discrepancy(*pair) for pair in pairs]))


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

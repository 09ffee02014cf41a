"""Whether the anchor looks like rows of the same table: what silently costs accuracy is said."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._validation import FloatArray
from ._groups import is_scikit_learn

__all__ = ["warn_of_anchor"]

_OF_FIT = 3
"""Frames from `is_scikit_learn` to what has called an estimator's `fit`, which calls `warn_of_anchor`."""

NARROW, WIDE = 0.5, 10.0
"""Spread of the anchor's columns in that of X's.  Uniform in the range of X they have .58 of it or more."""


def warn_of_anchor(X: Any, anchor: Any) -> None:
    """Warn where the anchor is in other units than X, or may have been cut into folds with it.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        Rows of all parties, without the column that names their owner.
    anchor : array-like or dataframe of shape (n_anchors, n_features)

    Warns
    -----
    UserWarning
        When most columns of numbers vary far less or far more in the anchor than in X, or lie elsewhere; when
        scikit-learn fits, and there are as many rows in both.
    """
    # Whoever calls `fit` without scikit-learn in between has given the anchor whole.
    if _num_samples(X) == _num_samples(anchor) and is_scikit_learn(_OF_FIT):
        warnings.warn(
            f"The anchor has as many rows as X ({_num_samples(X)}). In cross-validation scikit-learn's metadata "
            "routing cuts such an array into folds with X, and the anchor has lost rows: take one row more or less.",
            stacklevel=3,
        )
    if found := _other_units(X, anchor):
        warnings.warn(
            f"In most columns the anchor's numbers {found}, as where a step of a Pipeline has transformed X and not "
            "the anchor. Put that step into the obfuscator, as in obfuscator=make_pipeline(StandardScaler(), PCA(10)), "
            'or build the Pipeline with transform_input=["anchor"].',
            stacklevel=3,
        )


def _other_units(X: Any, anchor: Any) -> str | None:
    pairs = [(ours[np.isfinite(ours)], theirs[np.isfinite(theirs)]) for ours, theirs in _numbers(X, anchor)]
    pairs = [(ours, theirs) for ours, theirs in pairs if len(theirs) and len(ours) and np.ptp(ours) > 0]
    if not pairs:
        return None
    ratios = np.array([[spread(theirs) / spread(ours) for spread in (np.std, _deviation)] for ours, theirs in pairs])
    # Either spread alone would take a few rows far off, or zeros and ones, for another unit.
    if np.median(ratios.max(axis=1)) < NARROW:
        return "vary far less than those of X"
    if np.median(ratios.min(axis=1)) > WIDE:
        return "vary far more than those of X"
    if np.mean([_is_elsewhere(*pair) for pair in pairs]) > 0.5:
        return "lie far outside the range of X"
    return None


def _deviation(values: FloatArray) -> float:
    return float(np.mean(np.abs(values - np.median(values))))


def _is_elsewhere(ours: FloatArray, theirs: FloatArray) -> bool:
    low, high, middle = ours.min(), ours.max(), np.median(theirs)
    return bool(middle < low - (high - low) or middle > high + (high - low))


def _numbers(X: Any, anchor: Any) -> list[tuple[FloatArray, FloatArray]]:
    """Columns of numbers of both: by name where both have names, and else by position."""
    if sparse.issparse(X) or sparse.issparse(anchor):
        return []
    if hasattr(X, "columns") and hasattr(anchor, "columns"):
        there = set(anchor.columns)
        names: list[Any] = [name for name in X.columns if name in there]
    else:
        X, anchor = np.asarray(X), np.asarray(anchor)
        names = list(range(X.shape[1])) if X.ndim == anchor.ndim == 2 and X.shape[1] == anchor.shape[1] else []
    columns = []
    for name in names:
        try:
            columns.append(tuple(np.asarray(_safe_indexing(each, name, axis=1), dtype=float) for each in (X, anchor)))
        except (TypeError, ValueError):
            continue  # no numbers, which the obfuscator knows about
    return columns  # type: ignore[return-value]

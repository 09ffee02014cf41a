"""Who owns each row: from an argument, or from a column of the table."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._validation import PartyName, count_missing

__all__ = ["by_party", "is_scikit_learn", "owners", "predict_by_party", "warn_of_scorer"]


def owners(X: Any, groups: ArrayLike | None, party_column: str | int | None) -> tuple[Any, NDArray[Any]]:
    """Rows without the column that names their owner, and the owners."""
    if party_column is not None:
        X, column = _without_column(X, party_column)
        if groups is not None and not np.array_equal(np.asarray(groups), column):
            raise ValueError(f"groups and the column {party_column!r} name different owners; pass one of them only.")
        groups = column
    if groups is None:
        raise ValueError(
            "Who owns each row? Pass groups=<one party name per row>, or set party_column to the column of X that "
            "holds it. With GridSearchCV or cross_val_score, groups travel by metadata routing: "
            "sklearn.set_config(enable_metadata_routing=True). Scorers (scoring='accuracy', 'roc_auc', ...) pass "
            "nothing but X to predict, so they need party_column."
        )
    names = np.asarray(groups)
    if names.shape != (_num_samples(X),):
        raise ValueError(f"groups must have one party name per row, shape ({_num_samples(X)},); got {names.shape}.")
    missing = count_missing(names)
    if missing:
        raise ValueError(f"{missing} of {len(names)} rows have no owner (None or NaN): every row needs one.")
    return X, names


def is_scikit_learn(depth: int) -> bool:
    """Whether the code so many frames above this function is scikit-learn's."""
    name = sys._getframe(depth).f_globals.get("__name__", "")
    return str(name).partition(".")[0] == "sklearn"


def warn_of_scorer(groups: ArrayLike | None, party_column: str | int | None, *, depth: int) -> None:
    """Warn where scikit-learn predicts, for one of its scorers, without saying whose rows these are.

    It turns the error that follows into a score of nan, and its words into a traceback for each fold.  Whoever predicts
    without scikit-learn in between gets the error itself.
    """
    if groups is None and party_column is None and is_scikit_learn(depth + 1):
        warnings.warn(
            "Rows came without groups, so nobody knows whose they are: a scorer's scores will be nan. scoring='...' "
            "passes nothing but X to predict. Leave out scoring=, for the estimator's own score gets groups by "
            "metadata routing, or set party_column to the column of X that names the owners.",
            stacklevel=depth + 1,
        )


def _without_column(X: Any, column: str | int) -> tuple[Any, NDArray[Any]]:
    if hasattr(X, "columns"):
        names = list(X.columns)
        if column not in names:
            raise ValueError(f"party_column={column!r} is none of the {len(names)} columns of X.")
        kept = [name for name in names if name != column]
        return _safe_indexing(X, kept, axis=1), np.asarray(_safe_indexing(X, column, axis=1))
    if not isinstance(column, int):
        raise ValueError(f"party_column={column!r}: X has no column names; give the position of the column instead.")
    array = np.asarray(X)
    return np.delete(array, column, axis=1), array[:, column]


def by_party(names: NDArray[Any]) -> dict[PartyName, NDArray[np.intp]]:
    """Row numbers of each party, parties in sorted order."""
    unique, codes = np.unique(names, return_inverse=True)
    return {party: np.flatnonzero(codes == code) for code, party in enumerate(unique.tolist())}


def predict_by_party(
    X: Any, names: NDArray[Any], predict: Mapping[PartyName, Callable[[Any], NDArray[Any]]]
) -> NDArray[Any]:
    """Let each party predict its own rows, and put the results back in the order of the rows."""
    rows = by_party(names)
    parts = [predict[party](_safe_indexing(X, index)) for party, index in rows.items()]
    order = np.argsort(np.concatenate(list(rows.values())), kind="stable")
    return np.asarray(np.concatenate(parts)[order])

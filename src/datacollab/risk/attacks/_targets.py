"""Targets as an attacker uses them: as further columns, or to tell apart groups of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import FloatArray, check_single_targets, count_missing
from ...errors import AgreementError

__all__ = ["IntArray", "TargetCode", "check_targets", "learn_target_code"]

IntArray = NDArray[np.intp]

MAX_GROUPS = 10
"""Groups into which the quantiles of a numeric target cut the rows."""

MIN_PER_GROUP = 20
"""Rows wanted in a group of numeric targets, so that its mean and spread mean something."""


@dataclass(frozen=True, eq=False)
class TargetCode:
    """How targets become columns and groups.

    Floating-point numbers are numeric targets: one column, and groups between quantiles.  All else are classes: a
    column for each class among the leaked rows, and one group per class.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,) or None
        All known classes, sorted; None where targets are numbers.
    in_columns : ndarray of shape (n_columns,)
        Numbers of the classes that have a column.
    edges : ndarray of shape (n_groups - 1,)
        Where a numeric target's next group begins.
    mean, scale : float
        Of the numeric target.
    """

    classes: NDArray[Any] | None
    in_columns: IntArray
    edges: FloatArray
    mean: float
    scale: float

    @property
    def n_groups(self) -> int:
        """Groups there are."""
        return len(self.edges) + 1 if self.classes is None else len(self.classes)

    def groups(self, target: NDArray[Any]) -> IntArray:
        """Number of each row's group; -1 for a class not known."""
        if self.classes is None:
            return np.searchsorted(self.edges, target, side="right")
        position = {label: number for number, label in enumerate(self.classes.tolist())}
        return np.array([position.get(label, -1) for label in target.tolist()], dtype=np.intp)

    def columns(self, target: NDArray[Any]) -> FloatArray:
        """The target as columns about one in size, shape (n_rows, n_columns); a class without a column is all zero."""
        if self.classes is None:
            column: FloatArray = ((target - self.mean) / self.scale)[:, np.newaxis]
            return column
        members: FloatArray = (self.groups(target)[:, np.newaxis] == self.in_columns).astype(np.float64)
        return members


def learn_target_code(target: NDArray[Any], public_target: NDArray[Any] | None = None) -> TargetCode:
    """Read off the leaked and the public rows' targets what groups and columns there are.

    Parameters
    ----------
    target : ndarray of shape (n_leaked,)
    public_target : ndarray of shape (n_public,), optional
        Of the same kind, numbers or classes.

    Returns
    -------
    TargetCode

    Raises
    ------
    AgreementError
        When classes cannot be sorted.
    """
    known = target if public_target is None else np.concatenate([target, public_target])
    if target.dtype.kind == "f":
        n_groups = max(1, min(MAX_GROUPS, len(known) // MIN_PER_GROUP))
        edges = np.unique(np.quantile(known, np.arange(1, n_groups) / n_groups, method="higher"))
        spread = float(target.std())
        none: IntArray = np.empty(0, dtype=np.intp)
        return TargetCode(None, none, edges[edges > known.min()], float(target.mean()), spread if spread > 0 else 1.0)
    try:
        classes = np.unique(known)
    except TypeError:
        raise AgreementError(
            f"The class labels (dtype {known.dtype}) cannot be sorted: they mix types. Use labels of one type."
        ) from None
    in_columns = np.flatnonzero(np.isin(classes, target))
    return TargetCode(classes, in_columns, np.empty(0), 0.0, 1.0)


def check_targets(target: ArrayLike, n_rows: int, what: str, like: NDArray[Any] | None = None) -> NDArray[Any]:
    """One target per row, none missing.

    Parameters
    ----------
    target : array-like of shape (n_rows,)
    n_rows : int
    what : str
        What an error calls it.
    like : ndarray, optional
        Targets of whose kind, numeric, class numbers or other labels, these have to be.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    AgreementError
        When the shape is another one, entries are missing or not finite, or the kind differs.
    """
    y = np.asarray(target)
    check_single_targets(y, what, AgreementError)
    if y.shape != (n_rows,):
        raise AgreementError(
            f"{what} has shape {y.shape}, but there are {n_rows} rows; one target per row is wanted, shape ({n_rows},)."
        )
    missing = count_missing(y) or (int(np.isinf(y).sum()) if y.dtype.kind == "f" else 0)
    if missing:
        raise AgreementError(f"{what} is missing or infinite in {missing} of {n_rows} rows. Drop those rows.")
    if like is not None and _kind(y) != _kind(like):
        raise AgreementError(
            f"{what} (dtype {y.dtype}) is of another kind than the leaked rows' target (dtype {like.dtype}); floating-"
            "point numbers are regression targets, all else are class labels. Use one type for all."
        )
    return y


def _kind(y: NDArray[Any]) -> str:
    return {"f": "number", "i": "code", "u": "code", "b": "code"}.get(y.dtype.kind, "label")

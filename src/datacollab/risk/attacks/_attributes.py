"""Attribute inference: what an attack tells about one sensitive column."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import AgreementError
from ._targets import check_targets, learn_target_code

__all__ = ["attribute_inference", "label_only"]


def attribute_inference(values: ArrayLike, inferred: ArrayLike, *, baseline: ArrayLike | float | None = None) -> float:
    """How well an attribute was inferred: R2 of numbers, accuracy of categories.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        The attribute as it is.  Numbers (not truth values) are measured by R2, all else by accuracy; give integer codes
        of categories as strings.
    inferred : array-like of shape (n_rows,)
    baseline : float or array-like of shape (n_rows,), optional
        For numbers, the guess that counts as 0: such as the mean of public rows, or `label_only`, for what leaks beyond
        the targets.  By default the mean of `values`.  Without effect on categories: compare their accuracy with that
        of the baseline.

    Returns
    -------
    float
        1 for perfect inference.  NaN for numbers that the baseline guesses perfectly.

    Raises
    ------
    AgreementError
        When the shapes differ, or numbers are missing.

    Examples
    --------
    >>> from datacollab.risk.attacks import attribute_inference
    >>> attribute_inference([30.0, 50.0], [30.0, 40.0])
    0.5
    >>> attribute_inference(["smoker", "none"], ["smoker", "smoker"])
    0.5
    """
    true, guesses = np.asarray(values), np.asarray(inferred)
    if true.ndim != 1 or true.size == 0 or true.shape != guesses.shape:
        raise AgreementError(
            f"values has shape {true.shape} and inferred has {guesses.shape}; one entry per row is wanted in both."
        )
    if not _numeric(true):
        return float(np.mean(true.astype(object) == guesses.astype(object)))
    if not _numeric(guesses) or not (np.isfinite(true).all() and np.isfinite(guesses).all()):
        raise AgreementError(
            f"values (dtype {true.dtype}) are numbers; inferred (dtype {guesses.dtype}) must be numbers as well, and "
            "none may be missing."
        )
    zero = true.mean() if baseline is None else np.asarray(baseline, dtype=np.float64)
    if np.shape(zero) not in ((), true.shape):
        raise AgreementError(f"baseline has shape {np.shape(zero)}; one guess, or one per row {true.shape} is wanted.")
    left, total = float(((true - guesses) ** 2.0).sum()), float(((true - zero) ** 2.0).sum())
    return 1 - left / total if total > 0 else math.nan


def label_only(public_values: ArrayLike, public_target: ArrayLike, target: ArrayLike) -> NDArray[Any]:
    """Infer an attribute from the targets alone, which data collaboration discloses.

    Parameters
    ----------
    public_values : array-like of shape (n_public,)
        The attribute of public rows.
    public_target : array-like of shape (n_public,)
    target : array-like of shape (n_rows,)
        Of the rows under attack.  Floating-point targets are grouped by quantiles of the public ones.

    Returns
    -------
    ndarray of shape (n_rows,)
        Mean of numbers, or most frequent category, over the public rows of the same target; over all of them for a
        class that has none.  Of equally frequent categories the first in sorted order.

    Raises
    ------
    AgreementError
        When the shapes do not fit, targets are missing or of different kinds, or categories cannot be sorted.

    Examples
    --------
    >>> from datacollab.risk.attacks import label_only
    >>> label_only([20.0, 30.0, 70.0], ["healthy", "healthy", "ill"], ["ill", "healthy"])
    array([70., 25.])
    """
    attribute = np.asarray(public_values)
    if attribute.ndim != 1 or attribute.size == 0:
        raise AgreementError(f"public_values must be one-dimensional and not empty; got shape {attribute.shape}.")
    known = check_targets(public_target, len(attribute), "The public rows' target")
    wanted = check_targets(target, np.size(target), "The target", like=known)
    code = learn_target_code(known)
    public_groups, groups = code.groups(known), code.groups(wanted)
    # The guess for all rows comes last, where -1, a class not known, finds it.
    chosen = [attribute[public_groups == group] for group in range(code.n_groups)] + [attribute]
    if _numeric(attribute):
        return np.array([values.mean() for values in chosen])[groups]
    try:
        return np.array([_most_frequent(values) for values in chosen], dtype=attribute.dtype)[groups]
    except TypeError:
        raise AgreementError(
            "The categories in public_values cannot be sorted: they mix types or some are missing. Use categories of "
            "one type, with a category of its own for a missing value."
        ) from None


def _numeric(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iuf"


def _most_frequent(values: NDArray[Any]) -> Any:
    categories, counts = np.unique(values, return_counts=True)
    return categories[counts.argmax()]

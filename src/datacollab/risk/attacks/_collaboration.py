"""What another party learns: rows behind collaboration representations, and single attributes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ..._validation import FloatArray
from ...errors import AgreementError
from ._attack import ReconstructionAttack, check_rows, check_targets, learn_target_code
from ._kernels import KernelRidgeAttack

__all__ = ["attribute_inference", "invert_collaboration", "label_only"]


def invert_collaboration(
    own_collaboration: ArrayLike,
    own_original: ArrayLike,
    collaboration: ArrayLike,
    *,
    own_target: ArrayLike | None = None,
    target: ArrayLike | None = None,
    attack: ReconstructionAttack | None = None,
) -> FloatArray:
    r"""Reconstruct other parties' rows from the common feature space, without the analyst's help.

    A party j knows the anchor A, its own rows and its own g_j and f_j, so it holds pairs of originals and points of the
    common feature space: A with :math:`g_j(\tilde A^{(j)})`, and its rows with :math:`\hat X^{(j)}`.  The integration
    makes :math:`\hat X^{(k)}` of any other party comparable with them.  What undoes the party's own pairs therefore
    undoes the other's, without a single row of :math:`\tilde A^{(k)}`.

    Parameters
    ----------
    own_collaboration : array-like of shape (n_pairs, n_components)
        :math:`g_j(\tilde A^{(j)})`, and the like for own rows, below one another.
    own_original : array-like of shape (n_pairs, n_features)
        The rows these come from.
    collaboration : array-like of shape (n_rows, n_components)
        :math:`\hat X^{(k)}` of the party under attack, as a model that stores its training rows would carry it.
    own_target, target : array-like of shapes (n_pairs,) and (n_rows,), optional
        Targets of the pairs and of the rows under attack: both or neither.
    attack : ReconstructionAttack, optional
        One that needs no public rows; by default `KernelRidgeAttack`.

    Returns
    -------
    ndarray of shape (n_rows, n_features)

    Raises
    ------
    AgreementError
        When rows or columns do not fit together.
    RepresentationError
        When a table is not finite, two-dimensional and numeric, or there are too few pairs.

    Notes
    -----
    This is why collaboration representations, and models that contain them, never go to parties: see
    `find_training_rows` for a test of a model.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import LinearRegressionAttack, invert_collaboration
    >>> anchor, private = np.random.default_rng(0).normal(size=(2, 30, 4))
    >>> common = np.random.default_rng(1).normal(size=(4, 4))
    >>> guesses = invert_collaboration(anchor @ common, anchor, private @ common, attack=LinearRegressionAttack())
    >>> np.allclose(guesses, private)
    True
    """
    if (own_target is None) != (target is None):
        raise AgreementError("Give targets of the own pairs and of the rows under attack, or neither.")
    own, others = (
        check_rows(own_collaboration, "The own pairs' collaboration representation"),
        check_rows(collaboration, "The collaboration representation"),
    )
    if own.shape[1] != others.shape[1]:
        raise AgreementError(
            f"The own pairs have {own.shape[1]} columns but the rows under attack have {others.shape[1]}; both must "
            "lie in the common feature space of one integration."
        )
    inverse = KernelRidgeAttack() if attack is None else clone(attack)
    return inverse.fit(own, own_original, target=own_target).reconstruct(others, target=target)


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

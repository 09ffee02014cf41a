"""How much of the originals reconstructions explain."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..._validation import FloatArray
from ...errors import AgreementError
from ._checks import check_rows
from ._targets import check_targets, learn_target_code

__all__ = ["class_means", "explained"]


def explained(originals: ArrayLike, reconstructions: ArrayLike, baseline: ArrayLike) -> float:
    r"""Share of the originals' variation about a baseline that the reconstructions explain.

    .. math:: 1 - \sum_i |x_i - \hat x_i|^2 / \sum_i |x_i - b_i|^2

    With the mean of public rows as baseline this is R2: 0 for an attacker that knows only what such rows are like.
    With the public mean of each row's class (`class_means`) it is R2c: 0 for an attacker that knows the targets as
    well, which data collaboration discloses; what is above 0 leaks beyond them.

    Parameters
    ----------
    originals, reconstructions : array-like of shape (n_rows, n_features)
    baseline : array-like of shape (n_rows, n_features) or (n_features,)

    Returns
    -------
    float
        1 for perfect reconstructions; negative for worse ones than the baseline.  NaN where the baseline is perfect.

    Raises
    ------
    AgreementError
        When the shapes differ.
    RepresentationError
        When a table is not finite, two-dimensional and numeric.

    Notes
    -----
    A large value means a leak.  A negative one does not mean that there is none: reconstructions may be far off and
    still each be nearest to its own original.

    Examples
    --------
    >>> from datacollab.risk.attacks import explained
    >>> explained([[0.0], [2.0]], [[0.0], [1.0]], [1.0])
    0.5
    """
    X, guesses = _checked_pair(originals, reconstructions)
    known = check_rows(np.atleast_2d(np.asarray(baseline)), "The baseline")
    if known.shape not in (X.shape, (1, X.shape[1])):
        raise AgreementError(
            f"The baseline has shape {known.shape}, but the originals have {X.shape}; one row for all, or one for each "
            "original is wanted."
        )
    left, total = float(((X - guesses) ** 2).sum()), float(((X - known) ** 2).sum())
    return 1 - left / total if total > 0 else math.nan


def class_means(public: ArrayLike, public_target: ArrayLike, target: ArrayLike) -> FloatArray:
    """For each target the mean of the public rows that share it: the guess of an attacker that knows nothing else.

    Parameters
    ----------
    public : array-like of shape (n_public, n_features)
    public_target : array-like of shape (n_public,)
    target : array-like of shape (n_rows,)
        Of the rows under attack.  Floating-point targets are grouped by quantiles of the public ones.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        The mean of all public rows for a class that has none.

    Raises
    ------
    AgreementError
        When there is not one target per row, some are missing, or they are of different kinds.
    RepresentationError
        When the table is not finite, two-dimensional and numeric.

    Examples
    --------
    >>> from datacollab.risk.attacks import class_means
    >>> class_means([[0.0], [2.0], [7.0]], ["a", "a", "b"], ["b", "a", "c"])
    array([[7.],
           [1.],
           [3.]])
    """
    rows = check_rows(public, "The public table")
    known = check_targets(public_target, len(rows), "The public rows' target")
    wanted = check_targets(target, np.size(target), "The target", like=known)
    code = learn_target_code(known)
    members = np.equal.outer(np.arange(code.n_groups), code.groups(known))
    # The mean of all rows comes last, where -1, a class not known, finds it.
    means = np.vstack([(members @ rows) / members.sum(axis=1, keepdims=True), rows.mean(axis=0)])
    return np.asarray(means[code.groups(wanted)])


def _checked_pair(originals: ArrayLike, reconstructions: ArrayLike) -> tuple[FloatArray, FloatArray]:
    X = check_rows(originals, "The table of originals")
    guesses = check_rows(reconstructions, "The table of reconstructions")
    if X.shape != guesses.shape:
        raise AgreementError(
            f"The originals have shape {X.shape} but the reconstructions have {guesses.shape}; give one reconstruction "
            "for each original, in the same order."
        )
    return X, guesses

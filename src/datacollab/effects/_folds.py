"""Folds in which rows that come from one record stay together, and both arms are everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from .._validation import FloatArray
from ..errors import EffectError

__all__ = ["Folds", "effect_folds", "equal_rows"]

Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]
"""Positions that train and positions that are predicted, fold by fold."""


def equal_rows(X: FloatArray) -> NDArray[np.intp]:
    """A number for each row, the same for rows that are equal to the bit, shape (n_rows,)."""
    return np.asarray(np.unique(X, axis=0, return_inverse=True)[1], dtype=np.intp).ravel()


def effect_folds(
    treatment: NDArray[np.int64],
    groups: NDArray[np.intp],
    n_folds: int,
    random_state: int | np.random.RandomState | None,
) -> Folds:
    """Folds with about the same part of treated rows; rows of one group are in one fold.

    Parameters
    ----------
    treatment : ndarray of shape (n_rows,)
    groups : ndarray of shape (n_rows,)
        Such as `equal_rows` gives; a group of both arms counts for the one that most of its rows are of.
    n_folds : int
    random_state : int, RandomState or None

    Returns
    -------
    list of (ndarray, ndarray)

    Raises
    ------
    EffectError
        When an arm has too few groups to be in every fold's training rows.

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    >>> folds = effect_folds(np.array([0, 0, 1, 1, 0, 0, 1, 1]), groups, 2, 0)
    >>> [sorted(set(groups[test].tolist())) for _, test in folds]
    [[1, 2], [0, 3]]
    """
    _, numbers = np.unique(groups, return_inverse=True)
    arms = (np.bincount(numbers, weights=treatment) > 0.5 * np.bincount(numbers)).astype(np.intp)
    fewest = int(np.bincount(arms, minlength=2).min())
    if fewest < n_folds:
        raise EffectError(
            f"{n_folds} folds need {n_folds} distinct rows of either arm, treated and not; one arm has {fewest}. Ask "
            "for fewer folds, or for more rows."
        )
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    tests = [np.isin(numbers, test) for _, test in splitter.split(arms, arms)]
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in tests]

"""Levels of columns that have too few rows in a matrix of moments to hide these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._typing import FloatArray
from ._columns import CERTAINTY, FEWEST, CategoryColumn, Column


def too_few(columns: Sequence[Column], A: FloatArray, enough: float, sigma: float) -> str | None:
    """Return which levels, or pairs of levels, may have too few rows to hide these, as a sentence; None if none.

    A, of shape (n_coefficients, n_coefficients), are moments within parties, with noise of `sigma` on the diagonal;
    `enough` is how far a level varies that has ten rows.  So must the difference, or the sum, of levels of two columns:
    otherwise both separate the same people but for a few, whose outcomes the coefficients would tell.
    """
    names = list[str]()
    directions = list[FloatArray]()
    start = 0
    for column in columns:
        stop = start + len(column.coefficient_names)
        if isinstance(column, CategoryColumn):
            # The first level has no coefficient: it is one less all others.
            own = np.eye(len(A))[start:stop]
            directions.append(np.vstack([-own.sum(axis=0), own]))
            names += [f"{column.name}={level}" for level in column.levels]
        start = stop
    if not names:
        return None
    V = np.vstack(directions)
    which = np.repeat(np.arange(len(directions)), [*map(len, directions)])
    # Noise counts against a level: the difference to what is enough, less twice its standard deviation.
    spare = V @ A @ V.T
    norms = V @ V.T
    square = np.diag(spare)
    norm = np.diag(norms)
    if thin := [names[each] for each in np.flatnonzero(square - CERTAINTY * sigma * norm < enough)]:
        return (
            f"{', '.join(thin)} has fewer than {FEWEST} rows beyond noise, and a coefficient might reveal "
            "these people; or it hardly varies within parties. Merge the level with another"
        )
    # Of each two levels of different columns, the difference and the sum.
    for sign in (-2, 2):
        both = np.add.outer(square, square) + sign * spare
        both -= CERTAINTY * sigma * (np.add.outer(norm, norm) + sign * norms)
        for one, other in np.argwhere((both < enough) & np.less.outer(which, which)):
            return (
                f"{names[one]} and {names[other]} separate the same people but for fewer than {FEWEST} "
                "beyond noise, whose outcomes the coefficients might tell. Leave out one of both columns, or merge "
                "levels"
            )
    return None

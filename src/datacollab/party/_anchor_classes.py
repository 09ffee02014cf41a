"""Which class of the anchor's own and anchor rows belong to: by their target, or by an interval of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ObfuscationError
from ._microaggregation import bins_wanted

__all__ = ["AnchorClasses", "anchor_classes"]

LEAST_OF_BIN = 10
"""Anchor rows that an interval of numeric targets has, about."""


@dataclass(frozen=True, eq=False)
class AnchorClasses:
    """Classes of the anchor, numbered from 0 on.

    Attributes
    ----------
    own : ndarray of shape (n_samples,)
        The class of each own row; -1 where the anchor has none of it.
    anchor : ndarray of shape (n_anchors,)
    n_bins : int or None
        Intervals that were asked for; None where classes are distinct targets.
    """

    own: NDArray[np.intp]
    anchor: NDArray[np.intp]
    n_bins: int | None


def anchor_classes(target: NDArray[Any], anchor_target: NDArray[Any], n_bins: int | str | None) -> AnchorClasses:
    """Classes by distinct targets, or by intervals with about as many anchor rows each.

    Only the anchor's targets decide which classes there are.

    Parameters
    ----------
    target : ndarray of shape (n_samples,)
    anchor_target : ndarray of shape (n_anchors,)
    n_bins : int, "auto" or None
        As for `Microaggregation`, but "auto" looks at the anchor's targets.

    Raises
    ------
    ObfuscationError
        When intervals are wanted of what are no numbers.
    """
    wanted = bins_wanted(anchor_target, n_bins)
    if wanted is None:
        known, numbers = np.unique(anchor_target, return_inverse=True)
        own = np.full(len(target), -1, dtype=np.intp)
        for number, label in enumerate(known):
            own[target == label] = number
        return AnchorClasses(own, np.asarray(numbers, dtype=np.intp), None)
    if target.dtype.kind not in "biuf" or anchor_target.dtype.kind not in "biuf":
        raise ObfuscationError(
            f"n_bins={wanted} needs numeric targets; got dtype {target.dtype}, and {anchor_target.dtype} of the anchor."
        )
    n_intervals = max(1, min(wanted, len(anchor_target) // LEAST_OF_BIN))
    ends = np.unique(np.quantile(anchor_target, np.arange(1, n_intervals) / n_intervals, method="inverted_cdf"))
    # An end that is the largest target has nothing above it.
    ends = ends[ends < anchor_target.max()]
    return AnchorClasses(np.searchsorted(ends, target), np.searchsorted(ends, anchor_target), wanted)

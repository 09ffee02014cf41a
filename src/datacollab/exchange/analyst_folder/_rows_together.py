"""Rows of shares that are left out of a model's training together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...share import Share

__all__ = ["rows_together"]


def rows_together(shares: Sequence[Share]) -> NDArray[np.intp]:
    """A number for each row, the same for rows that are left out together.

    Those are equal rows of a party, as means of groups are, and rows that defences made of one anchor row.
    """
    n_anchors = len(shares[0].anchor_representation)
    numbers: list[NDArray[np.intp]] = []
    start = n_anchors
    for share in shares:
        equal = np.unique(share.representation, axis=0, return_inverse=True)[1].ravel()
        numbers.append(start + equal if share.anchor_rows is None else share.anchor_rows)
        start += len(equal)
    return np.concatenate(numbers)
